//! The proxy's configuration file, generated whole: Caddy's own JSON, so that no name can be read as syntax.
//!
//! Source for every key: caddyserver.com/docs/json.

use replicator_protocol::ids::Digest;
use serde_json::{Value, json};

use super::gateway;
use super::intent::Place;

/// Answers with the digest of the configuration in force.
pub(super) const CONFIG_PATH: &str = "/.replicator/config";
/// How long a connection to a container may take to be made.
const DIAL: &str = "300ms";
/// How long requests are held while a container is replaced: its stop, its start, and some seconds.
const HOLD: &str = "15s";
/// How often a held request is tried.
const TRY: &str = "250ms";
/// How long the sign-in may take before a request is turned away.
const SIGN_IN: &str = "5s";
/// How long connections that are still open outlive a changed route.
const DRAIN: &str = "5m";
/// Stands where the digest goes while the digest is made.
const BLANK: &str = "";

/// A generated configuration.
pub(super) struct Config {
    /// The file.
    pub(super) text: String,
    /// What it answers at [`CONFIG_PATH`]: the digest of itself with that answer left blank.
    pub(super) digest: String,
}

pub(super) fn config(port: u16, places: &[Place]) -> Config {
    let digest = Digest::of(render(port, places, BLANK).as_bytes()).to_string();
    Config { text: render(port, places, &digest), digest }
}

fn render(port: u16, places: &[Place], digest: &str) -> String {
    let mut routes: Vec<Value> = places.iter().map(route).collect();
    routes.push(json!({
        "match": [{ "path": [CONFIG_PATH] }],
        "handle": [answer(200, digest)],
        "terminal": true,
    }));
    routes.push(json!({ "handle": [answer(404, "no such name on this host\n")] }));
    let config = json!({
        "admin": { "disabled": true, "config": { "persist": false } },
        "apps": { "http": {
            "grace_period": "10s",
            "servers": { "main": {
                "listen": [format!(":{port}")],
                "protocols": ["h1"],
                "automatic_https": { "disable": true },
                "routes": routes,
                "errors": { "routes": errors() },
            } },
        } },
    });
    format!("{config:#}\n")
}

fn answer(status: u16, body: &str) -> Value {
    let headers = json!({ "Content-Type": ["text/plain; charset=utf-8"], "Cache-Control": ["no-store"] });
    json!({ "handler": "static_response", "status_code": status, "headers": headers, "body": body })
}

/// One public name: what a client says about itself is taken away first, then the sign-in is asked, then the
/// container.
fn route(place: &Place) -> Value {
    let set = place.route.iter().map(|route| ("X-Replicator-Route".to_owned(), json!([route])));
    let mut handle = vec![json!({
        "handler": "headers",
        "request": { "delete": ["X-Replicator-*", "X_Replicator_*"] },
    })];
    let set: serde_json::Map<String, Value> = set.collect();
    if !set.is_empty() {
        handle.push(json!({ "handler": "headers", "request": { "set": set } }));
    }
    if place.signed_in {
        handle.push(json!({ "handler": "vars", "replicator_stage": "sign-in" }));
        handle.push(sign_in());
    }
    handle.push(json!({ "handler": "vars", "replicator_stage": "service" }));
    handle.push(json!({
        "handler": "reverse_proxy",
        "stream_close_delay": DRAIN,
        "load_balancing": { "try_duration": HOLD, "try_interval": TRY },
        "transport": transport(None),
        "dynamic_upstreams": upstreams(&place.alias, place.port),
    }));
    json!({ "match": [{ "host": [place.host] }], "handle": handle, "terminal": true })
}

/// Asks the sign-in about a request. Only a 2xx lets it through, with the name of who signed in; every other
/// answer is the client's.
fn sign_in() -> Value {
    let user = "{http.reverse_proxy.header.X-Replicator-User}";
    let admitted = json!({
        "match": { "status_code": [2] },
        "routes": [{ "handle": [{ "handler": "headers", "request": { "set": { "X-Replicator-User": [user] } } }] }],
    });
    json!({
        "handler": "reverse_proxy",
        "rewrite": { "method": "GET", "uri": "/auth/verify" },
        "headers": { "request": { "set": {
            "X-Forwarded-Method": ["{http.request.method}"],
            "X-Forwarded-Uri": ["{http.request.uri}"],
        } } },
        "handle_response": [admitted],
        "load_balancing": { "try_duration": SIGN_IN, "try_interval": TRY },
        "transport": transport(Some(SIGN_IN)),
        "dynamic_upstreams": upstreams(gateway::ALIAS, gateway::PORT),
    })
}

/// Connections are not kept: one that was left open when its container was replaced would fail a request that a
/// fresh one serves.
fn transport(answer_within: Option<&str>) -> Value {
    let mut transport = json!({ "protocol": "http", "dial_timeout": DIAL, "keep_alive": { "enabled": false } });
    if let (Some(bound), Some(fields)) = (answer_within, transport.as_object_mut()) {
        fields.insert("response_header_timeout".into(), bound.into());
    }
    transport
}

fn upstreams(alias: &str, port: u16) -> Value {
    json!({ "source": "a", "name": alias, "port": port.to_string(), "refresh": "1s", "versions": { "ipv4": true } })
}

/// What a client is told when nothing answers. Never open: a sign-in that cannot be asked is a 503.
fn errors() -> Value {
    let stage = |stage: &str, body: &str| {
        let unreachable = "{http.error.status_code} >= 500";
        json!({
            "match": [{ "vars": { "replicator_stage": [stage] }, "expression": unreachable }],
            "handle": [answer(503, body)],
            "terminal": true,
        })
    };
    json!([
        stage("sign-in", "the sign-in does not answer\n"),
        stage("service", "the service does not answer yet\n"),
        { "handle": [{ "handler": "static_response", "status_code": "{http.error.status_code}" }] },
    ])
}

#[cfg(test)]
mod tests;
