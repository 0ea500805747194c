use super::*;

fn place(route: Option<(&str, &str)>, signed_in: bool) -> Place {
    let route = route.map(|(developer, repository)| (developer.to_owned(), repository.to_owned()));
    Place { host: "web-3000--jane.x".into(), alias: "pod-jane".into(), port: 3000, signed_in, route }
}

/// The handlers of a kind anywhere in `value`, in order.
fn handlers<'v>(value: &'v Value, kind: &str) -> Vec<&'v Value> {
    match value {
        Value::Object(fields) if fields.get("handler").is_some_and(|handler| handler == kind) => vec![value],
        Value::Object(fields) => fields.values().flat_map(|field| handlers(field, kind)).collect(),
        Value::Array(items) => items.iter().flat_map(|item| handlers(item, kind)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

fn named() -> Value {
    let config: Value = serde_json::from_str(&config(8080, "/names").text).unwrap();
    config["apps"]["http"]["servers"]["main"]["routes"][1].clone()
}

#[test]
fn file_of_a_name_says_where_it_leads_and_how() {
    let open = place(Some(("jane", "web")), false);
    assert_eq!(file_of(&open), "open@web-3000--jane.x@pod-jane:3000@jane+web");
    assert_eq!(file_of(&place(None, false)), "open@web-3000--jane.x@pod-jane:3000");
    assert_eq!(file_of(&place(None, true)), "signed-in@web-3000--jane.x@pod-jane:3000");
}

#[test]
fn name_with_the_sign_in_is_looked_up_before_one_without() {
    let files = &named()["match"][0]["file"]["try_files"];
    assert_eq!(files, &json!(["/signed-in@{http.request.host}@*", "/open@{http.request.host}@*"]));
}

#[test]
fn what_a_client_says_of_itself_is_taken_away_before_anything_else() {
    let named = named();
    let first = &named["handle"][0]["routes"][0]["handle"][0];
    assert_eq!(first["request"]["delete"], json!(["X-Replicator-*", "X_Replicator_*"]));
}

#[test]
fn sign_in_stands_before_the_service_and_is_left_out_for_an_open_name_alone() {
    let named = named();
    let routes = named["handle"][0]["routes"].as_array().unwrap();
    let upstream = |route: &Value| {
        let proxied = handlers(route, "reverse_proxy");
        proxied.first().map(|handler| handler["upstreams"][0]["dial"].as_str().unwrap().to_owned())
    };
    let upstreams: Vec<_> = routes.iter().filter_map(upstream).collect();
    assert_eq!(upstreams, ["gateway:8080", "{http.regexp.place.alias}:{http.regexp.place.port}"]);
    assert_eq!(routes[1]["match"], json!([{ "not": [{ "vars": { "{http.regexp.place.how}": ["open"] } }] }]));
    assert_eq!(routes[2]["match"], Value::Null);
}

#[test]
fn file_answers_with_the_digest_of_itself() {
    let (one, other) = (config(8080, "/names"), config(8081, "/names"));
    assert_ne!(one.digest, other.digest);
    assert!(one.text.contains(&one.digest));
    assert_eq!(one.digest, Digest::of(one.text.replace(&one.digest, "").as_bytes()).to_string());
}

#[test]
fn dial_is_bounded_looks_the_name_up_itself_and_requests_are_held() {
    let named = named();
    let proxied = handlers(&named, "reverse_proxy");
    let service = proxied.last().unwrap();
    assert_eq!(service["transport"]["dial_timeout"], "300ms");
    assert_eq!(service["upstreams"][0]["dial"], "{http.regexp.place.alias}:{http.regexp.place.port}");
    assert!(!named.to_string().contains("dynamic_upstreams"), "{named:#}");
    assert_eq!(service["load_balancing"]["try_duration"], "15s");
}
