//! Connections of TCP to peers that speak protocols of others: bytes both ways, descriptors, and peers that do not
//! follow.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread::JoinHandle;

use weft_base::{Buffer, ChannelId, Token};
use weft_port::testing::{Namespace, privileged};

use super::{Turn, options, run_script, run_script_with};
use crate::{
    Action, Event, PeerKey, StreamEvent, StreamKey, StreamListenerSpec, StreamOptions,
    StreamRequest, StreamSpec,
};

pub(super) const OPENED: Token = Token(1);
pub(super) const LISTENER: Token = Token(2);

pub(super) fn to(peer: SocketAddr) -> StreamSpec {
    StreamSpec { peer, local: None, key: None, options: StreamOptions::default() }
}

pub(super) fn at(local: &str) -> StreamListenerSpec {
    let local = local.parse().unwrap();
    StreamListenerSpec {
        local,
        keys: Vec::new(),
        least_ttls: Vec::new(),
        options: StreamOptions::default(),
    }
}

pub(super) fn key(text: &str) -> StreamKey {
    StreamKey::new(text).unwrap()
}

pub(super) fn peer_key(network: &str, prefix_length: u8, text: &str) -> PeerKey {
    PeerKey { network: network.parse().unwrap(), prefix_length, key: key(text) }
}

pub(super) fn stream(token: Token, request: StreamRequest) -> Action {
    Action::Stream { token, request }
}

fn send(channel: ChannelId, bytes: &[u8]) -> Action {
    Action::Send { channel, message: Buffer::from_slice(bytes).into() }
}

/// A process that listens, on a thread of its own.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    pub(super) thread: JoinHandle<u8>,
}

impl Server {
    /// Runs `script` behind a listener, and returns when that is ready.
    pub(super) fn start(
        spec: StreamListenerSpec,
        mut script: impl FnMut(&mut Turn<'_>) + Send + 'static,
    ) -> Self {
        let (ready, wait_until_ready) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            run_script_with(options(), move |turn| match &turn.event {
                Event::Start => {
                    turn.out.push(stream(LISTENER, StreamRequest::Listen(spec.clone())));
                }
                Event::Stream { event: StreamEvent::Listening { local }, .. } => {
                    ready.send(*local).unwrap();
                }
                Event::Stream { event: StreamEvent::Failed { error }, .. } => panic!("{error}"),
                _ => script(turn),
            })
        });
        Self { address: wait_until_ready.recv().unwrap(), thread }
    }
}

/// Opens one connection and does what `script` says.
fn client(spec: StreamSpec, mut script: impl FnMut(&mut Turn<'_>) + 'static) -> u8 {
    run_script(move |turn| match &turn.event {
        Event::Start => turn.out.push(stream(OPENED, StreamRequest::Open(spec.clone()))),
        _ => script(turn),
    })
}

/// What comes of a connection: a word, or the error.
pub(super) fn outcome(spec: StreamSpec) -> Result<(), String> {
    let (tell, told) = mpsc::channel();
    client(spec, move |turn| {
        let Event::Stream { token: OPENED, event } = &turn.event else { return };
        tell.send(match event {
            StreamEvent::Opened { .. } => Ok(()),
            StreamEvent::Failed { error } => Err(error.clone()),
            other => panic!("{other:?}"),
        })
        .unwrap();
        turn.exit(0);
    });
    told.recv().unwrap()
}

/// Sends a pattern as fast as it leaves, and checks that the same comes in.
struct Flood {
    channel: ChannelId,
    left: usize,
    sent: u64,
    taken: u64,
    congested: bool,
}

impl Flood {
    /// More than a channel may keep, so that who does not heed congestion loses it.
    const LEN: usize = 24 << 20;
    const PIECE: usize = 100_000;

    fn new(channel: ChannelId) -> Self {
        let (left, sent, taken) = (Self::LEN, 0, 0);
        Self { channel, left, sent, taken, congested: false }
    }

    fn byte(position: u64) -> u8 {
        (position / 251 + position) as u8
    }

    fn go_on(&mut self, out: &mut Vec<Action>) {
        // A few at a time, as congestion is told when the turn is over.
        for _ in 0..8 {
            if !self.has_more() {
                return;
            }
            let len = Self::PIECE.min(self.left);
            let bytes: Vec<u8> = (self.sent..).take(len).map(Self::byte).collect();
            out.push(send(self.channel, &bytes));
            self.sent += len as u64;
            self.left -= len;
        }
    }

    fn has_more(&self) -> bool {
        !self.congested && self.left > 0
    }

    /// Takes an event; whether all has left and come.
    fn handle(&mut self, event: &Event, out: &mut Vec<Action>) -> bool {
        match event {
            Event::Congested { .. } => self.congested = true,
            Event::Drained { .. } => self.congested = false,
            Event::Messages { messages, .. } => {
                for message in messages {
                    assert!(message.bytes().len() <= 64 << 10);
                    for byte in message.bytes() {
                        assert_eq!(*byte, Self::byte(self.taken), "at {}", self.taken);
                        self.taken += 1;
                    }
                }
            }
            Event::Closed { .. } => panic!("closed after {} bytes", self.taken),
            _ => {}
        }
        self.go_on(out);
        self.left == 0 && !self.congested && self.taken == Self::LEN as u64
    }
}

#[test]
fn bytes_come_both_ways_in_order_however_slow_the_other_side_is() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let mut flood = None;
        let server = Server::start(at(address), move |turn| match &turn.event {
            Event::Stream { token: LISTENER, event: StreamEvent::Accepted { channel, .. } } => {
                flood = Some(Flood::new(*channel));
                *turn.background = true;
            }
            Event::Closed { .. } => {
                let taken = flood.as_ref().map(|flood: &Flood| flood.taken);
                turn.exit(u8::from(taken != Some(Flood::LEN as u64)));
            }
            event => {
                if let Some(flood) = &mut flood {
                    flood.handle(event, turn.out);
                    // More is to be sent though nothing happens.
                    *turn.background = flood.has_more();
                }
            }
        });
        let mut flood = None;
        let status = client(to(server.address), move |turn| match &turn.event {
            Event::Stream { event: StreamEvent::Opened { channel, local, peer }, .. } => {
                assert!(local.ip().is_loopback() && local.port() != peer.port());
                flood = Some(Flood::new(*channel));
                *turn.background = true;
            }
            event => {
                let Some(flood): &mut Option<Flood> = &mut flood else { return };
                if flood.handle(event, turn.out) {
                    turn.out.push(Action::Close { channel: flood.channel });
                    turn.exit(0);
                }
                *turn.background = flood.has_more();
            }
        });
        assert_eq!((status, server.thread.join().unwrap()), (0, 0));
    }
}

#[test]
fn who_sends_more_than_the_peer_takes_is_told_to_wait_and_when_to_go_on() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (take, taking) = mpsc::channel();
    let peer = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        taking.recv().unwrap();
        let mut all = Vec::new();
        socket.read_to_end(&mut all).unwrap();
        all
    });
    let (mut flood, mut times) = (None, [0, 0]);
    let status = client(to(address), move |turn| {
        match &turn.event {
            Event::Stream { event: StreamEvent::Opened { channel, .. }, .. } => {
                flood = Some(Flood::new(*channel));
            }
            Event::Congested { .. } => {
                times[0] += 1;
                take.send(()).unwrap();
            }
            Event::Drained { .. } => times[1] += 1,
            _ => {}
        }
        let Some(flood): &mut Option<Flood> = &mut flood else { return };
        flood.handle(&turn.event, turn.out);
        *turn.background = flood.has_more();
        if flood.left == 0 && times[0] == times[1] {
            assert!(times[0] > 0);
            turn.out.push(Action::Close { channel: flood.channel });
            turn.exit(0);
        }
    });
    assert_eq!(status, 0);
    let all = peer.join().unwrap();
    assert_eq!(all.len(), Flood::LEN);
    assert!((0..).zip(&all).all(|(position, byte)| Flood::byte(position) == *byte));
}

#[test]
fn a_peer_gets_the_bytes_alone_and_one_that_sends_no_more_is_closed_when_all_was_read() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let peer = std::thread::spawn(move || {
        let (mut socket, from) = listener.accept().unwrap();
        let mut hello = [0; 6];
        socket.read_exact(&mut hello).unwrap();
        assert_eq!(&hello, b"he llo");
        socket.write_all(&[7; 300_000]).unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        // What was sent before the close still arrives, and then the end.
        let mut rest = Vec::new();
        socket.read_to_end(&mut rest).unwrap();
        (from, rest)
    });
    let (tell, told) = mpsc::channel();
    let mut taken = 0;
    let status = client(to(address), move |turn| match &turn.event {
        Event::Stream { event: StreamEvent::Opened { channel, local, peer }, .. } => {
            assert_eq!(*peer, address);
            tell.send(*local).unwrap();
            // Nothing is nothing, and no end.
            for bytes in [&b"he"[..], b"", b" ", b"llo"] {
                turn.out.push(send(*channel, bytes));
            }
        }
        Event::Messages { messages, .. } => {
            taken += messages.iter().map(|message| message.bytes().len()).sum::<usize>();
        }
        Event::Closed { .. } => {
            assert_eq!(taken, 300_000);
            turn.exit(0);
        }
        _ => {}
    });
    assert_eq!(status, 0);
    assert_eq!(peer.join().unwrap(), (told.recv().unwrap(), Vec::new()));
}

#[test]
fn what_was_sent_before_a_close_arrives_though_the_peer_has_sent_what_nobody_reads() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let peer = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.write_all(&[1; 100_000]).unwrap();
        let mut farewell = Vec::new();
        socket.read_to_end(&mut farewell).unwrap();
        listener.accept().unwrap().0.write_all(b"done").unwrap();
        farewell
    });
    let mut closed = None;
    let status = client(to(address), move |turn| match &turn.event {
        Event::Stream { token: OPENED, event: StreamEvent::Opened { channel, .. } } => {
            turn.out.push(send(*channel, &[2; 100_000]));
            turn.out.push(Action::Close { channel: *channel });
            // It is not heard of any more, but by another connection.
            turn.out.push(stream(Token(3), StreamRequest::Open(to(address))));
            closed = Some(*channel);
        }
        Event::Messages { channel, messages } => {
            assert!(Some(*channel) != closed && messages[0].bytes() == b"done");
            turn.exit(0);
        }
        Event::Closed { .. } => panic!("who closes a channel is not told"),
        _ => {}
    });
    assert_eq!((status, peer.join().unwrap()), (0, vec![2; 100_000]));
}

#[test]
fn a_peer_that_dies_closes_the_channel() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let peer = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        // Closed with something unread: a reset.
        let mut one = [0];
        socket.read_exact(&mut one).unwrap();
    });
    let status = client(to(address), move |turn| match &turn.event {
        Event::Stream { event: StreamEvent::Opened { channel, .. }, .. } => {
            turn.out.push(send(*channel, &[0; 10_000]));
        }
        Event::Closed { .. } => turn.exit(0),
        _ => {}
    });
    peer.join().unwrap();
    assert_eq!(status, 0);
}

#[test]
fn one_process_opens_what_another_uses() {
    // Here it is the same one; what travels between are descriptors.
    let mut accepted = None;
    let status = run_script(move |turn| {
        let Event::Stream { token, event } = &mut turn.event else {
            match &turn.event {
                Event::Start => {
                    let request = StreamRequest::OpenListenerHandle(at("127.0.0.1:0"));
                    turn.out.push(stream(LISTENER, request));
                }
                Event::Messages { messages, .. } => {
                    assert_eq!(messages[0].bytes(), b"hello");
                    // Keys are set by the token of who has opened it, and by nobody else.
                    for token in [Token(4), LISTENER] {
                        let keys = vec![peer_key("127.0.0.0", 8, "secret")];
                        turn.out.push(stream(token, StreamRequest::SetKeys(keys)));
                    }
                }
                _ => {}
            }
            return;
        };
        let request = match event {
            StreamEvent::ListenerOpened { .. } => {
                let StreamEvent::ListenerOpened { handle, local } =
                    std::mem::replace(event, StreamEvent::Failed { error: String::new() })
                else {
                    return;
                };
                turn.out.push(stream(Token(3), StreamRequest::AdoptListener(handle)));
                stream(OPENED, StreamRequest::OpenHandle(to(local)))
            }
            StreamEvent::HandleOpened { .. } => {
                let StreamEvent::HandleOpened { handle, .. } =
                    std::mem::replace(event, StreamEvent::Failed { error: String::new() })
                else {
                    return;
                };
                stream(Token(4), StreamRequest::Adopt(handle))
            }
            StreamEvent::Accepted { channel, .. } => {
                assert_eq!(*token, Token(3));
                accepted = Some(*channel);
                return;
            }
            StreamEvent::Opened { channel, .. } => {
                assert_eq!(*token, Token(4));
                send(*channel, b"hello")
            }
            StreamEvent::KeysSet { result } if *token == LISTENER => {
                assert_eq!(*result, Ok(()));
                turn.out.push(Action::CloseListener { token: LISTENER });
                let again = StreamRequest::SetKeys(Vec::new());
                turn.out.push(stream(LISTENER, again));
                *token = Token(5);
                return turn.exit(u8::from(accepted.is_none()));
            }
            StreamEvent::KeysSet { result } => {
                assert!(result.as_ref().unwrap_err().contains("was opened here"), "{result:?}");
                return;
            }
            StreamEvent::Listening { .. } => return,
            StreamEvent::Failed { error } => panic!("{error}"),
        };
        turn.out.push(request);
    });
    assert_eq!(status, 0);
}

#[test]
fn descriptors_of_other_kinds_are_not_adopted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connected = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (unix, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    let handle = |fd: std::os::fd::OwnedFd| weft_base::Handle::from(fd);
    let mut requests = vec![
        (
            StreamRequest::Adopt(handle(listener.try_clone().unwrap().into())),
            "a socket that listens",
        ),
        (StreamRequest::AdoptListener(handle(connected.into())), "does not listen"),
        (StreamRequest::Adopt(handle(unix.into())), "no socket of TCP"),
        (StreamRequest::Adopt(weft_base::Handle::from_number(1)), "no descriptor"),
    ];
    let mut expected = Vec::new();
    let mut answers = 0;
    let status = run_script(move |turn| match &turn.event {
        Event::Start => {
            for (request, part) in requests.drain(..) {
                expected.push(part);
                turn.out.push(stream(OPENED, request));
            }
        }
        Event::Stream { event: StreamEvent::Failed { error }, .. } => {
            assert!(error.contains(expected[answers]), "{error}");
            answers += 1;
            if answers == expected.len() {
                turn.exit(0);
            }
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(status, 0);
}

#[test]
fn connecting_can_be_given_up() {
    if !privileged() {
        return;
    }
    let (here, there) = (Namespace::new(), Namespace::new());
    here.connect("one", &there, "other");
    // Nobody has the address, and it takes a while until that is known.
    here.ip("address add 192.0.2.1/24 dev one");
    let status = here.run(|| {
        run_script(|turn| match &turn.event {
            Event::Start => {
                let request = StreamRequest::Open(to("192.0.2.9:179".parse().unwrap()));
                turn.out.push(stream(OPENED, request));
                turn.out.push(stream(Token(9), StreamRequest::Cancel));
                turn.out.push(stream(OPENED, StreamRequest::Cancel));
                turn.out.push(stream(OPENED, StreamRequest::Cancel));
            }
            Event::Stream { token: OPENED, event: StreamEvent::Failed { error } } => {
                assert!(error.contains("192.0.2.9:179 was given up"), "{error}");
                turn.exit(0);
            }
            other => panic!("{other:?}"),
        })
    });
    assert_eq!(status, 0);
}

#[test]
fn connecting_from_an_address_that_is_not_there_says_so() {
    let spec = StreamSpec {
        local: Some("192.0.2.200:0".parse().unwrap()),
        ..to("127.0.0.1:1".parse().unwrap())
    };
    let error = outcome(spec).unwrap_err();
    assert!(error.contains("no interface of this machine has the address 192.0.2.200"), "{error}");
    let spec = StreamSpec {
        options: StreamOptions { interface: Some("nowhere".into()), ..StreamOptions::default() },
        ..to("127.0.0.1:1".parse().unwrap())
    };
    let error = outcome(spec).unwrap_err();
    assert!(error.contains("the interface nowhere cannot be set"), "{error}");
    let error = outcome(to("[fe80::1]:179".parse().unwrap())).unwrap_err();
    assert!(error.contains("say of which interface"), "{error}");
}
