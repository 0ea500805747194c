//! As much of HTTP as the pages need: one request without a body, one answer, then the end of the connection.

use std::io::Read;

/// Most bytes of a request's head.
const HEAD_MAX: usize = 64 * 1024;

/// What a client asks for.
pub(crate) struct Request {
    /// The path, without what follows `?`.
    pub(crate) path: String,
    /// What follows `?`.
    pub(crate) query: String,
    headers: Vec<(String, String)>,
}

impl Request {
    /// Reads one; none where what comes is no request.
    pub(crate) fn read(stream: &mut impl Read) -> Option<Self> {
        let mut head = Vec::new();
        let mut part = [0; 4096];
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            let length = stream.read(&mut part).ok()?;
            if length == 0 || head.len() + length > HEAD_MAX {
                return None;
            }
            head.extend_from_slice(&part[..length]);
        }
        Self::parse(&String::from_utf8_lossy(&head))
    }

    fn parse(head: &str) -> Option<Self> {
        let mut lines = head.split("\r\n");
        let mut first = lines.next()?.split(' ');
        let (_method, target) = (first.next()?, first.next()?);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let header = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        let headers = lines.take_while(|line| !line.is_empty()).filter_map(header).collect();
        path.starts_with('/').then(|| Self { path: path.to_owned(), query: query.to_owned(), headers })
    }

    /// A header's value; `name` in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(have, _)| have == name).map(|(_, value)| value.as_str())
    }

    /// Every header, its name in lower case.
    pub(crate) fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// A cookie's value.
    pub(crate) fn cookie(&self, name: &str) -> Option<&str> {
        let pairs = self.header("cookie")?.split(';');
        pairs.filter_map(|pair| pair.trim().split_once('=')).find(|(have, _)| *have == name).map(|(_, value)| value)
    }
}

/// What a client is told.
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl Response {
    /// Plain text with a status.
    pub(crate) fn new(status: u16, body: impl Into<String>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }

    /// With one more header.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// As it is sent.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let Self { status, headers, body } = self;
        let own: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        format!(
            "HTTP/1.1 {status} .\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\
             Connection: close\r\n{own}\r\n{body}"
        )
        .into_bytes()
    }
}

/// The status of an answer; none where what comes is no answer.
pub(crate) fn status(stream: &mut impl Read) -> std::io::Result<Option<u16>> {
    let mut answer = Vec::new();
    stream.take(64 * 1024).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).split(' ').nth(1).and_then(|status| status.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_read_from_any_pieces_and_rubbish_is_none() {
        let head = b"GET /a?b=c HTTP/1.1\r\nHost: x\r\nCookie: one=1; session=ada\r\n\r\n";
        let mut pieces = head[..20].chain(&head[20..]);
        let request = Request::read(&mut pieces).unwrap();
        assert_eq!((request.path.as_str(), request.query.as_str()), ("/a", "b=c"));
        assert_eq!(request.header("host"), Some("x"));
        assert_eq!(request.cookie("session"), Some("ada"));
        assert_eq!(request.cookie("two"), None);
        assert!(Request::read(&mut &b"GET / HTTP/1.1\r\n"[..]).is_none(), "it never ends");
        assert!(Request::read(&mut &b"\r\n\r\n"[..]).is_none());
    }

    #[test]
    fn answer_is_read_back_by_its_status() {
        let bytes = Response::new(503, "no\n").with("X-A", "b").bytes();
        assert_eq!(status(&mut bytes.as_slice()).unwrap(), Some(503));
        assert!(String::from_utf8(bytes).unwrap().ends_with("X-A: b\r\n\r\nno\n"));
        assert_eq!(status(&mut &b""[..]).unwrap(), None);
    }
}
