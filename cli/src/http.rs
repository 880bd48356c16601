//! As much of an HTTP server as readers of a node's state need: `GET` and `HEAD`, one request per connection.
//!
//! Reference: RFC 9112 (HTTP/1.1), RFC 3986 §2.1 and §3.4 (queries); requests are parsed by `httparse`. Whoever connects is
//! bounded in the length of a request, in time, and in number.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::output::Outcome;

/// The longest head of a request, in bytes.
const LONGEST: usize = 8 * 1024;
/// The most header fields of a request.
const FIELDS: usize = 64;
/// How long a request may take to come, and an answer as a whole to be read.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it takes until connections are accepted again when there are no descriptors or no memory.
const PAUSE: Duration = Duration::from_millis(100);
/// How many connections are served at a time; further ones are closed.
const MOST: usize = 16;
/// The content type of words.
const PLAIN: &str = "text/plain; charset=utf-8";

/// What somebody asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The path, such as `/metrics`, as it was sent.
    pub(crate) path: String,
    /// The arguments of the query; of several with the same name the last.
    pub(crate) query: BTreeMap<String, String>,
}

/// What is answered.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    status: &'static str,
    kind: &'static str,
    body: String,
}

impl Answer {
    /// A page of this content type.
    pub(crate) fn page(kind: &'static str, body: String) -> Self {
        Self { status: "200 OK", kind, body }
    }

    /// There is no page, and why.
    pub(crate) fn refused(status: &'static str, why: &str) -> Self {
        Self { status, kind: PLAIN, body: format!("{why}\n") }
    }

    /// There is no such page.
    pub(crate) fn not_found(why: &str) -> Self {
        Self::refused("404 Not Found", why)
    }

    /// Whoever knows does not answer now.
    pub(crate) fn unavailable(why: &str) -> Self {
        Self::refused("503 Service Unavailable", why)
    }
}

/// Makes pages.
type Pages<'a> = &'a (dyn Fn(&Asked) -> Answer + Sync);

/// Serves until the socket fails.
pub(crate) fn serve(listener: &TcpListener, pages: Pages<'_>) -> Outcome {
    let open = AtomicUsize::new(0);
    thread::scope(|scope| {
        loop {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                // Somebody connected and went.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                Err(error) if passes(&error) => {
                    thread::sleep(PAUSE);
                    continue;
                }
                Err(error) => return Err(format!("no connection can be accepted: {error}")),
            };
            let Some(place) = Place::take(&open) else { continue };
            let serve = move || {
                let _place = place;
                // Who does not listen misses the answer, and nothing else happens.
                let _ = answer(stream, pages, PATIENCE);
            };
            // If there is no thread for it, the connection is closed.
            let _ = thread::Builder::new().spawn_scoped(scope, serve);
        }
    })
}

/// Whether there is too little of something now, which others give back.
fn passes(error: &Error) -> bool {
    let short = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|errno| short.contains(&errno))
}

/// One of the connections that are served; it is none any more when this is dropped, be it by a panic.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    /// None if there are as many as may be.
    fn take(open: &'a AtomicUsize) -> Option<Self> {
        // One thread takes places.
        let has_room = open.load(Ordering::Relaxed) < MOST;
        has_room.then(|| {
            open.fetch_add(1, Ordering::Relaxed);
            Self(open)
        })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a request wants.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Page { asked: Asked, with_body: bool },
    Nothing { status: &'static str, why: &'static str },
}

fn answer(mut stream: TcpStream, pages: Pages<'_>, patience: Duration) -> std::io::Result<()> {
    let wanted = read(&mut stream, Instant::now() + patience)?;
    let (Answer { status, kind, body }, with_body) = match wanted {
        Wanted::Page { asked, with_body } => (pages(&asked), with_body),
        Wanted::Nothing { status, why } => (Answer::refused(status, why), true),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let deadline = Instant::now() + patience;
    write(&mut stream, head.as_bytes(), deadline)?;
    if with_body {
        write(&mut stream, body.as_bytes(), deadline)?;
    }
    stream.flush()
}

/// How long it is until then.
fn left(deadline: Instant) -> std::io::Result<Duration> {
    match deadline.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(ErrorKind::TimedOut.into()),
        left => Ok(left),
    }
}

/// Writes all of it until then, however little of it is read at a time.
fn write(stream: &mut TcpStream, mut bytes: &[u8], deadline: Instant) -> std::io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(deadline)?))?;
        match stream.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads the head of a request; there is no body in what is answered here.
fn read(stream: &mut TcpStream, deadline: Instant) -> std::io::Result<Wanted> {
    let mut head = Vec::new();
    loop {
        if let Some(wanted) = parse(&head) {
            return Ok(wanted);
        }
        stream.set_read_timeout(Some(left(deadline)?))?;
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
    let with_body = match request.method {
        Some("GET") => true,
        Some("HEAD") => false,
        _ => return nothing("405 Method Not Allowed", "only GET and HEAD are answered"),
    };
    let target = request.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match arguments(query) {
        Some(query) => {
            Some(Wanted::Page { asked: Asked { path: path.to_owned(), query }, with_body })
        }
        None => nothing("400 Bad Request", "the query is no list of NAME=VALUE, joined by `&`"),
    }
}

/// The arguments of a query; `None` if it is none.
fn arguments(query: &str) -> Option<BTreeMap<String, String>> {
    let parts = query.split('&').filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            Some((decoded(name)?, decoded(value)?))
        })
        .collect()
}

/// A name or value, in which `+` stands for a blank and `%` for a byte.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                // Two digits are a byte.
                (digit()? << 4 | digit()?) as u8
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_request_is_answered_when_it_is_complete_and_not_too_long() {
        let status = |head: &[u8]| match parse(head) {
            Some(Wanted::Page { with_body, asked }) => {
                format!("{} {}", if with_body { "page" } else { "head" }, asked.path)
            }
            Some(Wanted::Nothing { status, .. }) => status.to_owned(),
            None => "more".to_owned(),
        };
        assert_eq!(status(b""), "more");
        assert_eq!(status(b"GET /metrics HTTP/1.1\r\nHost: x\r\n"), "more");
        assert_eq!(status(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), "page /metrics");
        assert_eq!(status(b"GET /metrics?a=b HTTP/1.0\r\n\r\n"), "page /metrics");
        assert_eq!(status(b"HEAD / HTTP/1.1\r\n\r\n"), "head /");
        assert_eq!(status(b"POST /metrics HTTP/1.1\r\n\r\n"), "405 Method Not Allowed");
        assert_eq!(status(b"GET /?a=%2 HTTP/1.1\r\n\r\n"), "400 Bad Request");
        assert_eq!(status(b"\x16\x03\x01\x02"), "400 Bad Request");
        let long = [b"GET /metrics HTTP/1.1\r\nX: ".as_slice(), &[b'a'; LONGEST]].concat();
        assert_eq!(status(&long), "431 Request Header Fields Too Large");
        let many = b"GET / HTTP/1.1\r\n".to_vec();
        let many = [many, b"A: b\r\n".repeat(FIELDS + 1)].concat();
        assert_eq!(status(&many), "400 Bad Request");
    }

    #[test]
    fn a_query_has_names_and_values() {
        let read = |query: &str| arguments(query).map(|all| all.into_iter().collect::<Vec<_>>());
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(read(""), Some(Vec::new()));
        let expected = vec![pair("a", "1 2"), pair("prefix", "10.0.0.0/8"), pair("x", "")];
        assert_eq!(read("prefix=10.0.0.0%2F8&a=1+2&x"), Some(expected));
        assert_eq!(read("a=1&a=2"), Some(vec![pair("a", "2")]));
        for wrong in ["a=%", "a=%2", "a=%zz", "a=%ff", "%ff=a"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn who_reads_slowly_is_cut() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let (stream, _) = listener.accept().unwrap();
        let server = thread::spawn(move || {
            // More than the buffers of both ends hold.
            let page = |_: &Asked| Answer::page(PLAIN, "x".repeat(32 << 20));
            answer(stream, &page, Duration::from_millis(100))
        });
        // A byte at a time, so that something goes on all the time.
        while !server.is_finished() {
            client.read_exact(&mut [0]).unwrap();
        }
        assert!(server.join().unwrap().is_err(), "the answer was not read in time");
    }

    #[test]
    fn who_reads_is_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let (stream, _) = listener.accept().unwrap();
        let page = |_: &Asked| Answer::page(PLAIN, "words".to_owned());
        answer(stream, &page, PATIENCE).unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        assert!(
            text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\nwords"),
            "{text}"
        );
    }

    #[test]
    fn a_panic_gives_its_place_back() {
        let open = AtomicUsize::new(0);
        let places: Vec<_> = (0..MOST).map_while(|_| Place::take(&open)).collect();
        assert!(places.len() == MOST && Place::take(&open).is_none());
        drop(places);
        let place = Place::take(&open);
        let panics = std::panic::AssertUnwindSafe(move || {
            let _place = place;
            panic!("as a page might");
        });
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!(open.into_inner(), 0);
    }

    #[test]
    fn too_few_descriptors_pass_and_a_socket_that_is_none_does_not() {
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM] {
            assert!(passes(&errno.into()));
        }
        assert!(!passes(&Errno::BADF.into()));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            parse(&bytes);
        }

        #[test]
        fn no_query_makes_it_panic(query in "[a-z=&%+0-9é]{0,40}") {
            arguments(&query);
        }
    }
}
