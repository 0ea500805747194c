//! What each role answers.

use std::fmt::Write as _;
use std::time::Duration;

use crate::http::{Request, Response};
use crate::sha256;

/// The cookie of who signed in.
const COOKIE: &str = "lab_session";
/// Above the five seconds after which the proxy gives a sign-in up.
const SLOW: Duration = Duration::from_secs(8);

/// What the program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// What a repository builds.
    Workload,
    /// What asks who somebody is.
    Gateway,
    /// What holds the network of a pod.
    Net,
}

impl Role {
    /// As `LAB_ROLE` says: `gateway`, `net`, else a workload.
    pub(crate) fn from_environment() -> Self {
        match std::env::var("LAB_ROLE").as_deref() {
            Ok("gateway") => Self::Gateway,
            Ok("net") => Self::Net,
            Ok(_) | Err(_) => Self::Workload,
        }
    }
}

/// How it behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// As it should.
    Serve,
    /// Ends with status 1 as soon as it starts.
    Exit,
    /// Ends likewise, and tells its secrets to whoever reads its output.
    Leak,
    /// Answers, and says that it is not healthy.
    Unhealthy,
    /// Answers after eight seconds.
    Slow,
}

impl Mode {
    /// As `LAB_MODE` says: `exit`, `leak`, `unhealthy`, `slow`, else as it should.
    pub(crate) fn from_environment() -> Self {
        match std::env::var("LAB_MODE").as_deref() {
            Ok("exit") => Self::Exit,
            Ok("leak") => Self::Leak,
            Ok("unhealthy") => Self::Unhealthy,
            Ok("slow") => Self::Slow,
            Ok(_) | Err(_) => Self::Serve,
        }
    }
}

/// The answer to one request.
pub(crate) fn answer(role: Role, mode: Mode, request: &Request) -> Response {
    match (mode, request.path.as_str()) {
        (Mode::Unhealthy, "/health") => return Response::new(503, "told to be unhealthy\n"),
        (Mode::Serve | Mode::Exit | Mode::Leak | Mode::Slow, "/health") => return Response::new(200, "healthy\n"),
        (Mode::Slow, _) => std::thread::sleep(SLOW),
        (Mode::Serve | Mode::Exit | Mode::Leak | Mode::Unhealthy, _) => {}
    }
    match (role, request.path.as_str()) {
        (Role::Gateway, "/auth/verify") => verify(request),
        (Role::Gateway, "/sign-in") => sign_in(request),
        (Role::Workload | Role::Gateway | Role::Net, _) => page(request, std::env::vars()),
    }
}

/// The sign-in contract, for the proxy: 2xx with a name lets through, every other answer is the client's.
fn verify(request: &Request) -> Response {
    match request.cookie(COOKIE) {
        Some(user) if is_name(user) => Response::new(200, "signed in\n").with("X-Replicator-User", user),
        Some(_) => Response::new(403, "this session is none of ours\n"),
        None if request.header("accept").is_some_and(|accept| accept.contains("text/html")) => {
            let host = std::env::var("GATEWAY_HOST").unwrap_or_default();
            Response::new(302, "sign in first\n").with("Location", format!("//{host}/sign-in"))
        }
        None => Response::new(401, "sign in first\n"),
    }
}

/// Whoever says a name is believed: this stands in for a gateway, and is none.
fn sign_in(request: &Request) -> Response {
    match request.query.split('&').find_map(|pair| pair.strip_prefix("user=")).filter(|user| is_name(user)) {
        Some(user) => Response::new(200, format!("signed in as {user}\n"))
            .with("Set-Cookie", format!("{COOKIE}={user}; Path=/; HttpOnly; SameSite=Lax")),
        None => Response::new(200, "a stand-in for the sign-in: add ?user=NAME\n"),
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= 63 && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
}

/// A greeting, what the proxy said about the request, and the digest of each secret that a `NAME_FILE` names.
fn page(request: &Request, environment: impl Iterator<Item = (String, String)>) -> Response {
    let mut variables: Vec<_> = environment.collect();
    variables.sort();
    let greeting = variables.iter().find(|(name, _)| name == "GREETING").map_or("hello", |(_, text)| text.as_str());
    let release = variables.iter().find(|(name, _)| name == "LAB_RELEASE").map_or("-", |(_, text)| text.as_str());
    let mut page = format!("{greeting} from the lab's workload\nrelease: {release}\n");
    const SHOWN: [&str; 3] = ["host", "x-replicator-user", "x-replicator-route"];
    for header in SHOWN {
        // Writing to a string cannot fail.
        let _ = writeln!(page, "{header}: {}", request.header(header).unwrap_or("-"));
    }
    // Whatever else speaks for the proxy, under either spelling that a program may take for the same.
    let ours = |name: &str| name.replace('_', "-").starts_with("x-replicator-") && !SHOWN.contains(&name);
    for (name, value) in request.headers().iter().filter(|(name, _)| ours(name)) {
        let _ = writeln!(page, "{name}: {value}");
    }
    for (variable, path) in &variables {
        let Some(name) = variable.strip_suffix("_FILE") else { continue };
        let _ = match std::fs::read(path) {
            Ok(secret) => writeln!(page, "{name}: sha256 {}", sha256::hex(&secret)),
            Err(error) => writeln!(page, "{name}: cannot be read: {error}"),
        };
    }
    Response::new(200, page)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(head: &str) -> Request {
        Request::read(&mut format!("GET {head}\r\n\r\n").as_bytes()).unwrap()
    }

    fn text(response: &Response) -> String {
        String::from_utf8(response.bytes()).unwrap()
    }

    #[test]
    fn page_shows_the_digest_of_a_secret_and_never_the_secret() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "planted-value").unwrap();
        let variables = [("token_FILE".to_owned(), file.display().to_string()), ("GREETING".into(), "moin".into())];
        let shown = text(&page(&ask("/ HTTP/1.1\r\nHost: web"), variables.into_iter()));
        assert!(shown.contains(&format!("token: sha256 {}\n", sha256::hex(b"planted-value"))), "{shown}");
        assert!(shown.contains("moin from") && !shown.contains("planted-value"), "{shown}");
    }

    #[test]
    fn gateway_admits_a_session_sends_a_browser_to_sign_in_and_refuses_the_rest() {
        let ask = |headers: &str| answer(Role::Gateway, Mode::Serve, &ask(&format!("/auth/verify HTTP/1.1{headers}")));
        let admitted = ask("\r\nCookie: lab_session=ada");
        assert_eq!(admitted.status, 200);
        assert!(text(&admitted).contains("X-Replicator-User: ada\r\n"));
        assert_eq!(ask("\r\nX-Replicator-User: ada").status, 401);
        assert_eq!(ask("\r\nAccept: text/html").status, 302);
        assert_eq!(ask("\r\nCookie: lab_session=A D A").status, 403);
    }

    #[test]
    fn page_shows_every_header_that_speaks_for_the_proxy() {
        let forged = ask("/ HTTP/1.1\r\nX_Replicator_User: root\r\nX-Replicator-Admin: yes\r\nX-Other: no");
        let shown = text(&page(&forged, std::iter::empty()));
        assert!(shown.contains("x_replicator_user: root\n") && shown.contains("x-replicator-admin: yes\n"), "{shown}");
        assert!(shown.contains("x-replicator-user: -\n") && !shown.contains("x-other"), "{shown}");
    }

    #[test]
    fn unhealthy_program_serves_and_says_that_it_is_not_well() {
        let status = |mode, path: &str| answer(Role::Workload, mode, &ask(&format!("{path} HTTP/1.1"))).status;
        assert_eq!((status(Mode::Unhealthy, "/health"), status(Mode::Unhealthy, "/")), (503, 200));
        assert_eq!(status(Mode::Serve, "/health"), 200);
    }
}
