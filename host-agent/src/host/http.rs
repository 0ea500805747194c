//! One plain request, as a probe makes it.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::Request;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Most that is read of an answer, in bytes.
const BODY_MAX: usize = 64 * 1024;

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The body, up to 64 KiB.
    pub body: Bytes,
}

/// Asks `address` for `path`, by the name `host` where one is given. The caller bounds it.
///
/// # Errors
///
/// Where nothing answered, or not in HTTP.
pub async fn get(address: SocketAddr, host: &str, path: &str) -> io::Result<Answer> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    let connection = tokio::spawn(connection);
    let host = if host.is_empty() { address.to_string() } else { host.to_owned() };
    let request = Request::get(path)
        .header(hyper::header::HOST, host)
        .header(hyper::header::CONNECTION, "close")
        .body(Empty::<Bytes>::new())
        .map_err(io::Error::other)?;
    let answer = async {
        let response = sender.send_request(request).await.map_err(io::Error::other)?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), BODY_MAX).collect().await.map_err(io::Error::other)?;
        Ok(Answer { status, body: body.to_bytes() })
    }
    .await;
    connection.abort();
    answer
}
