//! As much of an HTTP server as a scraper needs: `GET` and `HEAD` of one page, one request per connection.
//!
//! Reference: RFC 9112 (HTTP/1.1); requests are parsed by `httparse`. Whoever connects is bounded in the length
//! of a request, in time, and in number.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::output::Outcome;

/// The longest head of a request, in bytes.
const LONGEST: usize = 8 * 1024;
/// The most header fields of a request.
const FIELDS: usize = 64;
/// How long a request may take to come, and an answer to be read.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many connections are served at a time; further ones are closed.
const MOST: usize = 16;
/// The content type of the text format.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Makes the page, or says why there is none.
type Page<'a> = &'a (dyn Fn() -> Result<String, String> + Sync);

/// Serves until the socket fails.
pub(super) fn serve(listener: &TcpListener, page: Page<'_>) -> Outcome {
    let open = AtomicUsize::new(0);
    thread::scope(|scope| {
        loop {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                // Somebody connected and went, or there are no descriptors now.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(format!("no connection can be accepted: {error}")),
            };
            if open.load(Ordering::Relaxed) >= MOST {
                continue;
            }
            open.fetch_add(1, Ordering::Relaxed);
            let open = &open;
            let serve = move || {
                // Who does not listen misses the answer, and nothing else happens.
                let _ = answer(stream, page);
                open.fetch_sub(1, Ordering::Relaxed);
            };
            if thread::Builder::new().spawn_scoped(scope, serve).is_err() {
                open.fetch_sub(1, Ordering::Relaxed);
            }
        }
    })
}

/// What a request wants.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Page { with_body: bool },
    Nothing { status: &'static str, why: &'static str },
}

fn answer(mut stream: TcpStream, page: Page<'_>) -> std::io::Result<()> {
    let wanted = read(&mut stream)?;
    let (status, kind, body, with_body) = match wanted {
        Wanted::Page { with_body } => match page() {
            Ok(text) => ("200 OK", METRICS, text, with_body),
            Err(error) => ("503 Service Unavailable", PLAIN, error + "\n", with_body),
        },
        Wanted::Nothing { status, why } => (status, PLAIN, format!("{why}\n"), true),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(head.as_bytes())?;
    if with_body {
        stream.write_all(body.as_bytes())?;
    }
    stream.flush()
}

/// Reads the head of a request; there is no body in what is answered here.
fn read(stream: &mut TcpStream) -> std::io::Result<Wanted> {
    let deadline = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    loop {
        if let Some(wanted) = parse(&head) {
            return Ok(wanted);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let mut bytes = [0; 1024];
        match stream.read(&mut bytes)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => head.extend_from_slice(&bytes[..count]),
        }
    }
}

/// What is wanted; `None` if the head is not complete.
fn parse(head: &[u8]) -> Option<Wanted> {
    let nothing = |status, why| Some(Wanted::Nothing { status, why });
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(head) {
        Ok(httparse::Status::Partial) if head.len() < LONGEST => return None,
        Ok(httparse::Status::Partial) => {
            return nothing("431 Request Header Fields Too Large", "the request is too long");
        }
        Err(_) => return nothing("400 Bad Request", "this is no request of HTTP/1.1"),
        Ok(httparse::Status::Complete(_)) => {}
    }
    let target = request.path.unwrap_or_default();
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    match (request.method, path) {
        (Some("GET"), "/metrics") => Some(Wanted::Page { with_body: true }),
        (Some("HEAD"), "/metrics") => Some(Wanted::Page { with_body: false }),
        (Some("GET" | "HEAD"), _) => nothing("404 Not Found", "there is /metrics and nothing else"),
        _ => nothing("405 Method Not Allowed", "only GET and HEAD are answered"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_request_is_answered_when_it_is_complete_and_not_too_long() {
        let status = |head: &[u8]| match parse(head) {
            Some(Wanted::Page { with_body }) => if with_body { "page" } else { "head" }.to_owned(),
            Some(Wanted::Nothing { status, .. }) => status.to_owned(),
            None => "more".to_owned(),
        };
        assert_eq!(status(b""), "more");
        assert_eq!(status(b"GET /metrics HTTP/1.1\r\nHost: x\r\n"), "more");
        assert_eq!(status(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), "page");
        assert_eq!(status(b"GET /metrics?a=b HTTP/1.0\r\n\r\n"), "page");
        assert_eq!(status(b"HEAD /metrics HTTP/1.1\r\n\r\n"), "head");
        assert_eq!(status(b"GET / HTTP/1.1\r\n\r\n"), "404 Not Found");
        assert_eq!(status(b"POST /metrics HTTP/1.1\r\n\r\n"), "405 Method Not Allowed");
        assert_eq!(status(b"\x16\x03\x01\x02"), "400 Bad Request");
        let long = [b"GET /metrics HTTP/1.1\r\nX: ".as_slice(), &[b'a'; LONGEST]].concat();
        assert_eq!(status(&long), "431 Request Header Fields Too Large");
        let many = b"GET / HTTP/1.1\r\n".to_vec();
        let many = [many, b"A: b\r\n".repeat(FIELDS + 1)].concat();
        assert_eq!(status(&many), "400 Bad Request");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            parse(&bytes);
        }
    }
}
