use super::*;

fn place(host: &str, signed_in: bool) -> Place {
    Place { host: host.into(), alias: "pod-jane".into(), port: 3000, signed_in, route: Some("jane/web".into()) }
}

fn routes(places: &[Place]) -> Vec<Value> {
    let config: Value = serde_json::from_str(&config(8080, places).text).unwrap();
    config["apps"]["http"]["servers"]["main"]["routes"].as_array().unwrap().clone()
}

#[test]
fn what_a_client_says_of_itself_is_taken_away_before_anything_else() {
    for signed_in in [true, false] {
        let routes = routes(&[place("a.x", signed_in)]);
        let first = &routes[0]["handle"][0];
        assert_eq!(first["request"]["delete"], json!(["X-Replicator-*", "X_Replicator_*"]));
    }
}

#[test]
fn sign_in_stands_before_the_service_and_only_there_where_it_is_wanted() {
    let proxied = |signed_in| {
        let routes = routes(&[place("a.x", signed_in)]);
        let handlers = routes[0]["handle"].as_array().unwrap().clone();
        let names = handlers.iter().filter(|handler| handler["handler"] == "reverse_proxy");
        names.map(|handler| handler["dynamic_upstreams"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(proxied(true), ["gateway", "pod-jane"]);
    assert_eq!(proxied(false), ["pod-jane"]);
}

#[test]
fn file_answers_with_the_digest_of_itself() {
    let (one, other) = (config(8080, &[place("a.x", true)]), config(8080, &[place("b.x", true)]));
    assert_ne!(one.digest, other.digest);
    assert!(one.text.contains(&one.digest));
    assert_eq!(one.digest, Digest::of(one.text.replace(&one.digest, "").as_bytes()).to_string());
}

#[test]
fn dial_is_bounded_names_are_looked_up_each_second_and_requests_are_held() {
    let routes = routes(&[place("a.x", false)]);
    let service = routes[0]["handle"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(service["transport"]["dial_timeout"], "300ms");
    assert_eq!(service["dynamic_upstreams"]["refresh"], "1s");
    assert_eq!(service["load_balancing"]["try_duration"], "15s");
}
