//! One plain request, as a probe makes it.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
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
        let mut frames = response.into_body();
        let mut body = Vec::new();
        while body.len() < BODY_MAX
            && let Some(frame) = frames.frame().await
        {
            body.extend_from_slice(&frame.map_err(io::Error::other)?.into_data().unwrap_or_default());
        }
        body.truncate(BODY_MAX);
        Ok(Answer { status, body: body.into() })
    }
    .await;
    connection.abort();
    answer
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn answer_longer_than_what_is_read_is_cut_and_no_failure() {
        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = server.accept().await.unwrap();
            let _ = stream.read(&mut [0; 1024]).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n").await;
            let _ = stream.write_all(&vec![b'x'; 1_000_000]).await;
        });
        let answer = get(address, "", "/").await.unwrap();
        assert_eq!((answer.status, answer.body.len()), (200, BODY_MAX));
    }
}
