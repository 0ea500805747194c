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
/// How long upgraded connections outlive the configuration they came under.
const DRAIN: &str = "5m";
/// Stands where the digest goes while the digest is made.
const BLANK: &str = "";

/// Between the parts of a name's file: no `Host` header holds it, for Go's server refuses one that does.
const PART: &str = "@";
/// How a file's name reads that leads past the sign-in, and one that leads through it.
const OPEN: &str = "open";
const SIGNED_IN: &str = "signed-in";
/// What a file's name says: see [`file_of`].
const PLACE: &str = "^/?(?P<how>open|signed-in)@[^@]+@(?P<alias>[^@:]+):(?P<port>[0-9]+)\
                     (?:@(?P<developer>[^@+]+)[+](?P<repository>[^@+]+))?$";

/// A generated configuration.
pub(super) struct Config {
    /// The file.
    pub(super) text: String,
    /// What it answers at [`CONFIG_PATH`]: the digest of itself with that answer left blank.
    pub(super) digest: String,
}

/// The configuration of a proxy that listens on `port` and looks public names up in the folder `names`.
///
/// No name stands in it, so that no name that comes, goes or changes makes Caddy load it anew: a load closes the
/// connections whose request was not read yet. See `docs/decisions/0006-public-names-are-files.md`.
pub(super) fn config(port: u16, names: &str) -> Config {
    let digest = Digest::of(render(port, names, BLANK).as_bytes()).to_string();
    Config { text: render(port, names, &digest), digest }
}

/// What the file of a public name is called: `how@name@alias:port`, and `@developer+repository` where it leads to one.
pub(super) fn file_of(place: &Place) -> String {
    let how = if place.signed_in { SIGNED_IN } else { OPEN };
    let Place { host, alias, port, .. } = place;
    let route = place.route.iter().map(|(developer, repository)| format!("{PART}{developer}+{repository}"));
    format!("{how}{PART}{host}{PART}{alias}:{port}{}", route.collect::<String>())
}

fn render(port: u16, names: &str, digest: &str) -> String {
    let routes = json!([
        in_lower_case(),
        { "match": [looked_up(names)], "handle": [subroute(json!([read(), through_the_sign_in(), service()]))] },
        { "match": [{ "path": [CONFIG_PATH] }], "handle": [answer(200, digest)], "terminal": true },
        { "handle": [answer(404, "no such name on this host\n")] },
    ]);
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

fn subroute(routes: Value) -> Value {
    json!({ "handler": "subroute", "routes": routes })
}

/// Names are equal whatever their case (RFC 4343), and files are not.
fn in_lower_case() -> Value {
    let letter = |upper: char| json!({ "search": upper, "replace": upper.to_ascii_lowercase() });
    json!({
        "match": [{ "header_regexp": { "Host": { "pattern": "[A-Z]" } } }],
        "handle": [{
            "handler": "headers",
            "request": { "replace": { "Host": ('A'..='Z').map(letter).collect::<Vec<_>>() } },
        }],
    })
}

/// There is a file for the name. Of two, which is while one replaces the other, that with the sign-in counts.
fn looked_up(names: &str) -> Value {
    let file = |how| format!("/{how}{PART}{{http.request.host}}{PART}*");
    json!({ "file": { "root": names, "try_files": [file(SIGNED_IN), file(OPEN)] } })
}

/// Reads the file's name. What a client says about itself is taken away first.
fn read() -> Value {
    let route = "{http.regexp.place.developer}/{http.regexp.place.repository}";
    json!({
        "match": [{ "vars_regexp": { "{http.matchers.file.relative}": { "name": "place", "pattern": PLACE } } }],
        "handle": [
            { "handler": "headers", "request": { "delete": ["X-Replicator-*", "X_Replicator_*"] } },
            subroute(json!([{
                "match": [{ "vars_regexp": { "{http.regexp.place.developer}": { "pattern": "." } } }],
                "handle": [{ "handler": "headers", "request": { "set": { "X-Replicator-Route": [route] } } }],
            }])),
        ],
    })
}

/// The sign-in is asked, unless the name is open: also of a file whose name says nothing that is understood.
fn through_the_sign_in() -> Value {
    json!({
        "match": [{ "not": [{ "vars": { "{http.regexp.place.how}": [OPEN] } }] }],
        "handle": [{ "handler": "vars", "replicator_stage": "sign-in" }, sign_in()],
    })
}

fn service() -> Value {
    json!({
        "handle": [
            { "handler": "vars", "replicator_stage": "service" },
            {
                "handler": "reverse_proxy",
                "stream_close_delay": DRAIN,
                "load_balancing": { "try_duration": HOLD, "try_interval": TRY },
                "transport": transport(None),
                "upstreams": upstreams("{http.regexp.place.alias}", "{http.regexp.place.port}"),
            },
        ],
    })
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
        "upstreams": upstreams(gateway::ALIAS, &gateway::PORT.to_string()),
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

/// The name is looked up by each dial, and within its bound. Upstreams that are looked up apart are not: one name that
/// nobody answers for holds up every other, since that is done behind one lock.
fn upstreams(alias: &str, port: &str) -> Value {
    json!([{ "dial": format!("{alias}:{port}") }])
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
