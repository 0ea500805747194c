//! Behind the gateway: nobody gets in who did not sign in, whatever they say and whatever is broken.

use std::time::{Duration, Instant};

use replicator_lab::dockerd::docker;
use replicator_lab::fleet::{Fleet, PROXY};
use replicator_lab::wait;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// A name behind the sign-in.
const CLOSED: &str = "web-3000--ada.lab.localhost";
/// A name of the same pod that is open to everyone.
const OPEN: &str = "open-3001--ada.lab.localhost";
/// The sign-in's own name.
const SIGN_IN: &str = "api.lab.localhost";
/// Who signed in.
const COOKIE: &str = "Cookie: lab_session=ada";
/// What says somebody is who they are not, in every spelling that a program may take for the same.
const FORGED: &str = "X-Replicator-User: root\r\nx-replicator-route: eve/web\r\nX_Replicator_User: root\r\n\
                      X-Replicator_User: root\r\nX-Replicator-Admin: yes";
/// Above the five seconds the sign-in may take.
const TURNED_AWAY_WITHIN: Duration = Duration::from_secs(12);

/// What a client was told.
#[derive(Debug)]
struct Told {
    status: u16,
    /// The head in lower case.
    head: String,
    body: String,
}

/// Asks the proxy for `/` of `host` with more headers.
async fn ask(host: &str, path: &str, headers: &str) -> Told {
    let asked = async {
        let mut stream = tokio::net::TcpStream::connect(PROXY).await?;
        let end = if headers.is_empty() { "\r\n" } else { "\r\n\r\n" };
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}{end}");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        std::io::Result::Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    let answer = tokio::time::timeout(Duration::from_secs(30), asked).await.unwrap().unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Told { status, head: head.to_lowercase(), body: body.to_owned() }
}

/// Demands a 503 in time, also for who signed in, and that the open name is open all the while.
async fn demand_turned_away(what: &str) {
    let turned_away = async |headers| {
        let started = Instant::now();
        let told = ask(CLOSED, "/", headers).await;
        assert_eq!(told.status, 503, "{what}, {headers:?}: {told:?}");
        assert!(!told.body.contains("from the lab's workload"), "{what}: it was open: {told:?}");
        assert!(started.elapsed() < TURNED_AWAY_WITHIN, "{what}: only after {:?}", started.elapsed());
    };
    tokio::join!(turned_away(""), turned_away(COOKIE), turned_away(FORGED));
    assert_eq!(ask(OPEN, "/", "").await.status, 200, "{what}");
}

async fn demand_let_in() {
    let in_again = wait::until("who signed in is let in again", Duration::from_secs(20), async || {
        Ok((ask(CLOSED, "/", COOKIE).await.status == 200).then_some(()))
    });
    in_again.await.unwrap();
    assert_eq!(ask(CLOSED, "/", "").await.status, 401);
}

async fn behind_the_gateway() -> Fleet {
    let fleet = Fleet::start().await.unwrap();
    for name in ["gatewayAppId", "gatewayAppPrivateKey", "gatewayBridgeSecret"] {
        fleet.set_secret(name, "some-value").await.unwrap();
    }
    let spec = format!("{}gateway:\n  host: {SIGN_IN}\n  imageTag: \"1\"\n", fleet.spec());
    std::fs::write(fleet.file(&format!("hosts/{}.yml", fleet.host)), spec).unwrap();
    // Without a word about it, a public port is behind the sign-in.
    fleet.edit("        auth: none\n", "").unwrap();
    let open = "      secrets: [ webToken ]\n  - repo: acme/open\n    image: local:replicator-demo/web:2\n    ports:\n      \
                - port: 3001\n        public: true\n        auth: none\n    env:\n      plain:\n        PORT: \"3001\"\n";
    fleet.edit("      secrets: [ webToken ]\n", open).unwrap();
    fleet.host("up").await.unwrap().done().unwrap();
    fleet
}

#[tokio::test]
async fn nobody_gets_in_who_did_not_sign_in() {
    let fleet = behind_the_gateway().await;

    // No cookie: what the sign-in says is what the client is told.
    assert_eq!(ask(CLOSED, "/", "").await.status, 401);
    assert_eq!(ask(CLOSED, "/", "Cookie: lab_session=A D A").await.status, 403);
    let sent = ask(CLOSED, "/", "Accept: text/html").await;
    assert_eq!(sent.status, 302);
    assert!(sent.head.contains("location: //api.lab.localhost/sign-in"), "{sent:?}");
    let page = ask(SIGN_IN, "/sign-in?user=ada", "").await;
    assert_eq!(page.status, 200, "the sign-in itself needs none: {page:?}");
    assert!(page.head.contains("set-cookie: lab_session=ada"), "{page:?}");

    // Who signed in, and for whom: told by the proxy.
    let told = ask(CLOSED, "/", COOKIE).await;
    assert_eq!(told.status, 200, "{told:?}");
    assert!(told.body.contains("x-replicator-user: ada\n"), "{told:?}");
    assert!(told.body.contains("x-replicator-route: ada/web\n"), "{told:?}");

    // A client that says so itself is not believed.
    assert_eq!(ask(CLOSED, "/", FORGED).await.status, 401);
    let both = ask(CLOSED, "/", &format!("{FORGED}\r\n{COOKIE}")).await;
    assert_eq!(both.status, 200);
    let open = ask(OPEN, "/", FORGED).await;
    assert_eq!(open.status, 200);
    for (told, user, route) in [(&both, "ada", "ada/web"), (&open, "-", "ada/open")] {
        assert!(told.body.contains(&format!("x-replicator-user: {user}\nx-replicator-route: {route}\n")), "{told:?}");
        assert!(!["root", "yes", "eve"].iter().any(|forged| told.body.contains(forged)), "forged: {told:?}");
    }

    // A name is the same in any case, and what is no name leads nowhere.
    assert_eq!(ask("Open-3001--ADA.lab.localhost", "/", "").await.status, 200);
    assert_eq!(ask("WEB-3000--ada.lab.localhost:8480", "/", "").await.status, 401);
    for odd in ["*", "..", "open-3001--ada.lab.localhos", "%2e%2e", "[::1]", "nobody.lab.localhost"] {
        assert_eq!(ask(odd, "/", COOKIE).await.status, 404, "{odd}");
    }
    assert_eq!(ask("../names/open", "/", COOKIE).await.status, 400);

    // Open means open: without a cookie, with one of nobody, and nobody is asked about it.
    for headers in ["", "Cookie: lab_session=A D A", "Accept: text/html"] {
        assert_eq!(ask(OPEN, "/", headers).await.status, 200, "{headers:?}");
    }
    fleet.host("down").await.unwrap().done().unwrap();
}

#[tokio::test]
async fn sign_in_that_does_not_answer_is_never_open() {
    let fleet = behind_the_gateway().await;
    demand_let_in().await;
    let container = format!("{}_gateway", fleet.host);

    // Held still, it takes connections and never answers.
    // So that it mends nothing.
    fleet.kill_agent().await.unwrap();
    docker(&["pause", &container]).unwrap();
    demand_turned_away("held still").await;
    docker(&["unpause", &container]).unwrap();
    demand_let_in().await;

    // Stopped, there is nothing to ask.
    docker(&["stop", "--time", "0", &container]).unwrap();
    demand_turned_away("stopped").await;
    docker(&["start", &container]).unwrap();
    demand_let_in().await;

    // Not even known by name any more.
    docker(&["rm", "-f", &container]).unwrap();
    demand_turned_away("gone").await;

    // The next `up` starts the agent, which makes it again.
    fleet.host("up").await.unwrap().done().unwrap();
    demand_let_in().await;

    // One that says yes, and only after eight seconds.
    let spec = fleet.file(&format!("hosts/{}.yml", fleet.host));
    let slow = std::fs::read_to_string(&spec).unwrap().replace("imageTag: \"1\"", "imageTag: slow");
    std::fs::write(&spec, slow).unwrap();
    let said = fleet.host("converge").await.unwrap();
    assert!(
        docker(&["inspect", "--format", "{{.Config.Env}}", &container]).unwrap().contains("LAB_MODE=slow"),
        "{said:?}"
    );
    demand_turned_away("slow").await;
    fleet.host("down").await.unwrap().done().unwrap();
}
