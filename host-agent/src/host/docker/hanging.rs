//! Tells a runtime that is slow at one thing from one that answers nothing any more, so that one that hangs costs one
//! wait, and not one for each thing it is asked for.

use std::future::Future;
use std::time::Duration;

use bollard::errors::Error as ClientError;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::{Docker, LOOK, RuntimeError};

/// How patient the agent is with a runtime.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// How long a call is under way before the runtime is asked whether it answers anything, and between two such
    /// questions.
    ask_after: Duration,
    /// Longest until that is answered: it takes the runtime no lock and no disk, only a machine that is not stalled.
    sign_within: Duration,
    /// How long one that was found hanging is asked nothing, unless it answers before.
    spared: Duration,
}

/// A runtime is found hanging within 15 s, and then every call of the look under way fails at once.
pub(super) const PATIENCE: Patience = Patience {
    ask_after: Duration::from_secs(5),
    sign_within: Duration::from_secs(10),
    spared: Duration::from_secs(10),
};

/// When the runtime was last found hanging; `None` where it answered since.
pub(super) type Hangs = watch::Sender<Option<Instant>>;

impl Docker {
    /// Waits for the answer to `call`, no longer than `bound`, and no longer than the runtime gives any sign.
    pub(super) async fn bounded<T>(
        &self,
        call: &'static str,
        bound: Duration,
        answer: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, RuntimeError> {
        let no_sign = RuntimeError::TimedOut { call, bound: self.patience.ask_after + self.patience.sign_within };
        if self.hangs.borrow().is_some_and(|found| found.elapsed() < self.patience.spared) {
            return Err(no_sign);
        }
        tokio::select! {
            biased;
            answered = timeout(bound, answer) => match answered {
                Ok(answer) => answer.map_err(|error| RuntimeError::of(call, error)),
                Err(_) => Err(RuntimeError::TimedOut { call, bound }),
            },
            // On the heap: every call would be larger by it.
            () = Box::pin(self.no_sign()) => {
                self.hangs.send_replace(Some(Instant::now()));
                Err(no_sign)
            }
        }
    }

    /// Ends when the runtime does not even say that it is there. One that says no, or is gone, fails the call itself.
    async fn no_sign(&self) {
        loop {
            sleep(self.patience.ask_after).await;
            let Ok(client) = self.client() else { continue };
            if timeout(self.patience.sign_within, client.ping()).await.is_err() {
                return;
            }
        }
    }

    /// Ends when the runtime is found hanging, from now on.
    pub async fn found_hanging(&self) {
        // The sender lives as long as this handle.
        let _ = self.hangs.subscribe().changed().await;
    }

    /// Whether it answers now; one that hangs is waited for, up to 30 s. Also where it was found hanging.
    pub async fn answers(&self) -> bool {
        let Ok(client) = self.client() else { return false };
        let answered = matches!(timeout(LOOK, client.ping()).await, Ok(Ok(_)));
        if answered {
            // Nobody waits for that: it is no finding.
            self.hangs.send_if_modified(|found| {
                *found = None;
                false
            });
        }
        answered
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::UnixListener;

    use super::*;

    const SHORT: Patience = Patience {
        ask_after: Duration::from_millis(20),
        sign_within: Duration::from_millis(300),
        spared: Duration::from_secs(3600),
    };
    /// Longer than it takes to find that a runtime hangs, many times over.
    const BOUND: Duration = Duration::from_secs(30);

    /// A runtime that answers nothing but whether it is there, and that only while `alive`.
    struct Stuck {
        docker: Docker,
        alive: Arc<AtomicBool>,
        _folder: tempfile::TempDir,
    }

    impl Stuck {
        fn new(alive: bool) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let socket = folder.path().join("docker.sock");
            let listener = UnixListener::bind(&socket).unwrap();
            let alive = Arc::new(AtomicBool::new(alive));
            let answers = Arc::clone(&alive);
            tokio::spawn(async move {
                loop {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    let answers = Arc::clone(&answers);
                    tokio::spawn(async move {
                        let mut head = Vec::new();
                        while !head.ends_with(b"\r\n\r\n") {
                            head.push(stream.read_u8().await.unwrap());
                        }
                        let is_ping = String::from_utf8_lossy(&head).contains("/_ping ");
                        while !(is_ping && answers.load(Ordering::SeqCst)) {
                            sleep(Duration::from_millis(5)).await;
                        }
                        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nOK";
                        stream.write_all(answer).await.unwrap();
                    });
                }
            });
            let docker = Docker { patience: SHORT, ..Docker::new(socket.to_str().unwrap()) };
            Self { docker, alive, _folder: folder }
        }

        /// The bound at which a call was given up.
        async fn given_up_at(&self, bound: Duration) -> Duration {
            let call = self
                .docker
                .client()
                .unwrap()
                .inspect_container("app", None::<bollard::query_parameters::InspectContainerOptions>);
            match self.docker.bounded("container.inspect", bound, call).await {
                Err(RuntimeError::TimedOut { bound, .. }) => bound,
                other => panic!("{:?}", other.map(drop)),
            }
        }
    }

    #[tokio::test]
    async fn runtime_that_hangs_is_waited_for_once_and_asked_again_once_it_answers() {
        let stuck = Stuck::new(false);
        let (found, at) =
            tokio::join!(tokio::time::timeout(BOUND, stuck.docker.found_hanging()), stuck.given_up_at(BOUND));
        found.unwrap();
        assert_eq!(at, SHORT.ask_after + SHORT.sign_within);
        // Asked for anything else, it is waited for no more: none of these is even sent.
        let begun = Instant::now();
        for _ in 0..20 {
            stuck.given_up_at(BOUND).await;
        }
        assert!(begun.elapsed() < SHORT.sign_within * 20 / 2, "{:?}", begun.elapsed());
        stuck.alive.store(true, Ordering::SeqCst);
        assert!(stuck.docker.answers().await);
        let bound = Duration::from_millis(200);
        assert_eq!(stuck.given_up_at(bound).await, bound, "it is asked again, and was too slow for this");
    }

    #[tokio::test]
    async fn runtime_that_is_slow_at_one_thing_is_not_found_hanging() {
        let stuck = Stuck::new(true);
        let bound = Duration::from_millis(200);
        for _ in 0..2 {
            let begun = Instant::now();
            assert_eq!(stuck.given_up_at(bound).await, bound);
            assert!(begun.elapsed() >= bound, "it is asked each time");
        }
    }
}
