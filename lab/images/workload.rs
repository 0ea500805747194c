//! The lab's one program inside containers: a workload, a stand-in for `net`, and a stand-in for the gateway.
//! Nothing but the standard library, linked statically, so that an image holds this file and nothing else.
//!
//! `serve` answers on `PORT` (3000); `check` asks `/health` there, for the runtime's own check; `net` waits.
//! `FAIL=exit` ends `serve` at once, `FAIL=health` makes `/health` answer 503. `gateway` answers
//! `/auth/verify` on 8080: 200 with `X-Replicator-User` for the cookie `session=good`, else 401.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

unsafe extern "C" {
    fn signal(number: i32, handler: extern "C" fn(i32)) -> usize;
}

const SIGUSR1: i32 = 10;
const SIGTERM: i32 = 15;

/// The first process of a container ignores every signal it has no handler for.
extern "C" fn end(_: i32) {
    std::process::exit(0)
}

extern "C" fn note(_: i32) {}

fn main() {
    // Both handlers are plain functions, and `exit` in one is the end of this program.
    unsafe {
        signal(SIGTERM, end);
        signal(SIGUSR1, note);
    }
    match std::env::args().nth(1).as_deref() {
        Some("check") => std::process::exit(i32::from(!healthy())),
        Some("net") => loop {
            std::thread::sleep(Duration::from_secs(3600));
        },
        Some("gateway") => serve(8080, gateway),
        _ => {
            if std::env::var("FAIL").as_deref() == Ok("exit") {
                let secrets: Vec<String> = secrets().into_iter().map(|(_, value)| value).collect();
                eprintln!("this workload was told to fail; its secrets are {}", secrets.join(", "));
                std::process::exit(3);
            }
            serve(port(), page);
        }
    }
}

fn port() -> u16 {
    std::env::var("PORT").ok().and_then(|port| port.parse().ok()).unwrap_or(3000)
}

fn healthy() -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port())) else { return false };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
    let mut answer = String::new();
    stream.write_all(b"GET /health HTTP/1.0\r\n\r\n").is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && answer.starts_with("HTTP/1.1 200")
}

fn serve(port: u16, answer: fn(&str) -> String) {
    let listener = TcpListener::bind(("0.0.0.0", port)).expect("the port is free in a container of its own");
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { continue };
        std::thread::spawn(move || {
            let mut request = [0; 8192];
            let read = stream.read(&mut request).unwrap_or(0);
            let request = String::from_utf8_lossy(&request[..read]).into_owned();
            let _ = stream.write_all(answer(&request).as_bytes());
        });
    }
}

fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}", body.len())
}

/// Every secret this container was given as a file, by the name of its variable.
fn secrets() -> Vec<(String, String)> {
    let mut all: Vec<_> = std::env::vars()
        .filter_map(|(name, path)| {
            Some((name.strip_suffix("_FILE")?.to_owned(), std::fs::read_to_string(path).ok()?))
        })
        .collect();
    all.sort();
    all
}

/// The page says how long each secret is, and what the proxy said of the caller.
fn page(request: &str) -> String {
    if request.starts_with("GET /health ") && std::env::var("FAIL").as_deref() == Ok("health") {
        return response("503 Service Unavailable", "", "not healthy\n");
    }
    let mut body = format!("{}\n", std::env::var("GREETING").unwrap_or_else(|_| "hello".into()));
    for (name, value) in secrets() {
        body.push_str(&format!("{name} has {} bytes\n", value.len()));
    }
    for line in request.lines().filter(|line| line.to_ascii_lowercase().starts_with("x-replicator-")) {
        body.push_str(&format!("{line}\n"));
    }
    response("200 OK", "", &body)
}

fn gateway(request: &str) -> String {
    let signed_in = request.lines().any(|line| {
        let line = line.to_ascii_lowercase();
        line.starts_with("cookie:") && line.contains("session=good")
    });
    if signed_in {
        response("200 OK", "X-Replicator-User: ada\r\n", "")
    } else {
        response("401 Unauthorized", "", "sign in first\n")
    }
}
