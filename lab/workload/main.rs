//! `lab-workload`: one small program that stands in, in the lab's images, for whatever a fleet runs.
//!
//! Comes in: `LAB_ROLE` says what it is, `LAB_MODE` how it behaves, `PORT` where it listens. Goes out: pages over
//! HTTP. It has no dependency and is linked statically, so that an image of it holds one file. It never shows a
//! secret, only the digest of one, unless it is told to leak.

mod http;
mod pages;
mod sha256;

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener, UnixStream};
use std::process::ExitCode;
use std::time::Duration;

use http::{Request, Response};
use pages::{Mode, Role};

/// Where a workload listens unless `PORT` says otherwise.
const WORKLOAD_PORT: u16 = 3000;
/// Where the gateway is asked.
const GATEWAY_PORT: u16 = 8080;
/// How long a client may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the program may take to answer its own question after its health.
const HEALTH: Duration = Duration::from_secs(2);
/// What the `net` container listens on: a name, not a port, for every port belongs to the workloads beside it.
const NET: &[u8] = b"replicator-lab-net";

fn main() -> ExitCode {
    let role = Role::from_environment();
    let asked = std::env::args().nth(1);
    let outcome = match (asked.as_deref(), role) {
        (Some("health"), Role::Net) => healthy_net(),
        (Some("health"), Role::Workload | Role::Gateway) => healthy(port(role)),
        (_, Role::Net) => net(),
        (_, Role::Workload | Role::Gateway) => serve(role),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(says) => {
            say(&says);
            ExitCode::FAILURE
        }
    }
}

fn say(line: &str) {
    // With stderr gone there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "lab-workload: {line}");
}

fn port(role: Role) -> u16 {
    let own = match role {
        Role::Gateway => GATEWAY_PORT,
        Role::Workload | Role::Net => WORKLOAD_PORT,
    };
    std::env::var("PORT").ok().and_then(|port| port.parse().ok()).unwrap_or(own)
}

fn serve(role: Role) -> Result<(), String> {
    let mode = Mode::from_environment();
    if mode == Mode::Leak {
        for (name, path) in std::env::vars().filter(|(name, _)| name.ends_with("_FILE")) {
            say(&format!("{name} holds {}", std::fs::read_to_string(path).unwrap_or_default()));
        }
    }
    if matches!(mode, Mode::Exit | Mode::Leak) {
        return Err("told to end at once".into());
    }
    let port = port(role);
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))
        .map_err(|error| format!("cannot listen on port {port}: {error}"))?;
    say(&format!("listens on port {port}"));
    for stream in listener.incoming().flatten() {
        std::thread::spawn(move || converse(stream, |request| pages::answer(role, mode, request)));
    }
    Ok(())
}

/// One request, one answer, and the connection ends: nothing is left open that a stop would break.
fn converse(mut stream: TcpStream, answer: impl FnOnce(&Request) -> Response) {
    if stream.set_read_timeout(Some(PATIENCE)).is_err() || stream.set_write_timeout(Some(PATIENCE)).is_err() {
        return;
    }
    let response = match Request::read(&mut stream) {
        Some(request) => answer(&request),
        None => Response::new(400, "this is no request\n"),
    };
    // A client that went away is no concern of a server.
    let _ = stream.write_all(&response.bytes());
}

fn healthy(port: u16) -> Result<(), String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let ask = || -> std::io::Result<Option<u16>> {
        let mut stream = TcpStream::connect_timeout(&address, HEALTH)?;
        stream.set_read_timeout(Some(HEALTH))?;
        stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        http::status(&mut stream)
    };
    match ask() {
        Ok(Some(200)) => Ok(()),
        Ok(status) => Err(format!("not healthy: status {}", status.unwrap_or(0))),
        Err(error) => Err(format!("not healthy: {error}")),
    }
}

fn net() -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot answer for its health: {error}");
    let name = UnixAddr::from_abstract_name(NET).map_err(failed)?;
    let listener = UnixListener::bind_addr(&name).map_err(failed)?;
    say("holds the network");
    // Each connection is the question, and that it was taken is the answer.
    listener.incoming().for_each(drop);
    Ok(())
}

fn healthy_net() -> Result<(), String> {
    let failed = |error: std::io::Error| format!("not healthy: {error}");
    let name = UnixAddr::from_abstract_name(NET).map_err(failed)?;
    UnixStream::connect_addr(&name).map(drop).map_err(failed)
}
