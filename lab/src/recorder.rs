//! A door before the container runtime's socket that notes every call that goes through.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

type Body = BoxBody<Bytes, hyper::Error>;

/// One call, as it went through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// What is done.
    pub method: Method,
    /// To what, with its query.
    pub path: String,
}

impl Call {
    /// Whether it may change something: the runtime's interface reads by `GET` and `HEAD` and by nothing else.
    #[must_use]
    pub fn changes(&self) -> bool {
        !matches!(self.method, Method::GET | Method::HEAD)
    }
}

/// The door. It is gone when it is dropped.
pub struct Recorder {
    folder: tempfile::TempDir,
    calls: Arc<Mutex<Vec<Call>>>,
    task: JoinHandle<()>,
}

impl Recorder {
    /// Opens a door before the runtime that listens on `runtime`.
    ///
    /// # Errors
    ///
    /// No folder, no socket in it.
    pub fn before(runtime: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let listener = UnixListener::bind(folder.path().join("docker.sock"))?;
        let calls = Arc::default();
        let task = tokio::spawn(keep_forwarding(listener, PathBuf::from(runtime), Arc::clone(&calls)));
        Ok(Self { folder, calls, task })
    }

    /// Its socket.
    #[must_use]
    pub fn socket(&self) -> String {
        self.folder.path().join("docker.sock").to_string_lossy().into_owned()
    }

    /// Every call since the last time this was asked.
    #[must_use]
    pub fn take(&self) -> Vec<Call> {
        std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn keep_forwarding(listener: UnixListener, runtime: PathBuf, calls: Arc<Mutex<Vec<Call>>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (runtime, calls) = (runtime.clone(), Arc::clone(&calls));
        tokio::spawn(async move {
            let service = service_fn(|request: Request<Incoming>| {
                let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
                let call = Call { method: request.method().clone(), path };
                // Before it is done: what fails was asked for too.
                calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
                answer(&runtime, request)
            });
            // A client that goes away ends its connection.
            let _gone =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(runtime: &Path, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    Ok(forward(runtime, request).await.unwrap_or_else(|error| {
        let mut response = Response::new(Full::from(error.to_string()).map_err(|never| match never {}).boxed());
        *response.status_mut() = hyper::StatusCode::BAD_GATEWAY;
        response
    }))
}

async fn forward(runtime: &Path, request: Request<Incoming>) -> Result<Response<Body>> {
    let stream = UnixStream::connect(runtime).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // Ends with the answer's last byte.
    tokio::spawn(connection);
    Ok(sender.send_request(request).await?.map(BodyExt::boxed))
}
