//! Hearing from the container runtime that something happened to a container of ours, and that it is back.

use std::time::Duration;

use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::host::docker::Docker;

/// Pause before a runtime that went away is asked again, so that one that is down is not asked without end.
pub const ASK_AGAIN: Duration = Duration::from_secs(5);

/// What is heard of the runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// Something happened to a container of ours.
    Happened,
    /// It was away, or hung, and answers again: what could not be done is to be tried now.
    Back,
}

/// Passes on what is heard of the containers of `host`, for as long as somebody takes it.
///
/// Nothing is missed: all events come over one answer, and where that ended the next one begins with what happened
/// since the look that is asked for in between. Whatever was before the first is found by whoever starts.
pub async fn listen(docker: Docker, host: String, clock: &dyn Clock, (tell, again): (mpsc::Sender<Heard>, Duration)) {
    let happened = || match tell.try_send(Heard::Happened) {
        // One that waits already says the same, and more.
        Ok(()) | Err(mpsc::error::TrySendError::Full(_)) => true,
        Err(mpsc::error::TrySendError::Closed(_)) => false,
    };
    let mut since = clock.wall_time();
    loop {
        tokio::select! {
            () = docker.each_event(&host, since, happened) => {}
            () = docker.found_hanging() => {}
        }
        loop {
            tokio::time::sleep(again).await;
            if tell.is_closed() || docker.answers().await {
                break;
            }
        }
        since = clock.wall_time();
        if tell.send(Heard::Back).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{UnixListener, UnixStream};

    use super::*;
    use crate::clock::SystemClock;

    /// Longest wait for what comes at once.
    const SOON: Duration = Duration::from_secs(10);
    const EVENT: &str = "{\"Type\":\"container\",\"Action\":\"die\"}\n";

    /// Takes the next question, begins its answer, and returns what was asked.
    async fn asked(listener: &UnixListener) -> (UnixStream, String) {
        let (mut stream, head) = accepted(listener).await;
        let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
        stream.write_all(answer.as_bytes()).await.unwrap();
        (stream, head)
    }

    /// Answers that it is there.
    async fn answers(listener: &UnixListener) {
        let (mut stream, question) = accepted(listener).await;
        assert!(question.contains("/_ping "), "{question}");
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nOK";
        stream.write_all(answer).await.unwrap();
    }

    async fn accepted(listener: &UnixListener) -> (UnixStream, String) {
        let (mut stream, _) = tokio::time::timeout(SOON, listener.accept()).await.unwrap().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        (stream, String::from_utf8(head).unwrap())
    }

    async fn send(stream: &mut UnixStream) {
        let chunk = format!("{:x}\r\n{EVENT}\r\n", EVENT.len());
        stream.write_all(chunk.as_bytes()).await.unwrap();
    }

    #[tokio::test]
    async fn event_right_behind_another_is_heard_and_so_is_one_while_nobody_was_asked() {
        let at = tempfile::tempdir().unwrap();
        let socket = at.path().join("docker.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let (happened, mut heard) = mpsc::channel(16);
        let docker = Docker::new(socket.to_str().unwrap());
        let listening = tokio::spawn(async move {
            listen(docker, "a-host".into(), &SystemClock, (happened, Duration::from_millis(10))).await;
        });
        let mut hears = async || tokio::time::timeout(SOON, heard.recv()).await.unwrap().unwrap();
        let (mut stream, question) = asked(&listener).await;
        assert!(question.contains("since="), "{question}");
        for _ in 0..3 {
            send(&mut stream).await;
            assert_eq!(hears().await, Heard::Happened);
        }
        let before = SystemClock.wall_time() / 1000;
        drop(stream);
        // Away still: that is told to nobody.
        drop(accepted(&listener).await);
        answers(&listener).await;
        assert_eq!(hears().await, Heard::Back);
        let (mut stream, question) = asked(&listener).await;
        let since: u64 = question.split("since=").nth(1).unwrap()[..10].parse().unwrap();
        assert!(since >= before, "from the look on that was just asked for: {question}");
        send(&mut stream).await;
        assert_eq!(hears().await, Heard::Happened);
        drop(heard);
        drop(stream);
        tokio::time::timeout(SOON, listening).await.unwrap().unwrap();
    }
}
