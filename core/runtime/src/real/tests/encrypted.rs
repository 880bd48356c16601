//! Channels of TLS: two processes that know each other's keys, and everybody else.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use weft_base::{ChannelId, Packet, Token};
use weft_keys::{KeyHash, PrivateKey};

use super::{Turn, options, run_script_with};
use crate::real::Options;
use crate::{Action, ChannelAddress, Event, Keys, Peer};

/// What may never be on the wire.
const SECRET: &[u8] = b"the launch code is zero zero zero zero";

fn key(number: u8) -> PrivateKey {
    PrivateKey::from_seed([number; 32])
}

fn name(number: u8) -> KeyHash {
    key(number).public_key().hash()
}

fn keys(own: u8, peers: &[u8]) -> Action {
    let peers: BTreeSet<_> = peers.iter().map(|number| name(*number)).collect();
    Action::SetKeys { keys: Keys { own: key(own), peers } }
}

fn send(channel: ChannelId, bytes: &[u8]) -> Action {
    Action::Send { channel, message: Packet::from_slice(bytes).into() }
}

fn count(event: &Event, reason: &str) -> u64 {
    let Event::Counted { counts, .. } = event else { return 0 };
    counts.drops.iter().find(|(name, _)| *name == reason).map_or(0, |(_, count)| *count)
}

/// A process with key 1 that accepts key 2, on a thread of its own.
struct Server {
    address: SocketAddr,
    thread: JoinHandle<u8>,
}

impl Server {
    fn start(options: Options, mut script: impl FnMut(&mut Turn<'_>) + Send + 'static) -> Self {
        let (ready, wait_until_ready) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            run_script_with(options, move |turn| match &turn.event {
                Event::Start => {
                    turn.out.push(keys(1, &[2]));
                    let address = "127.0.0.1:0".parse().unwrap();
                    let address = ChannelAddress::Tls { address, peer: None };
                    turn.out.push(Action::Listen { token: Token(1), address });
                }
                Event::Listening { address: ChannelAddress::Tls { address, .. }, .. } => {
                    ready.send(*address).unwrap();
                }
                Event::ChannelFailed { error, .. } => panic!("{error}"),
                _ => script(turn),
            })
        });
        Self { address: wait_until_ready.recv().unwrap(), thread }
    }

    /// A server that answers every message with itself, ends when key 2 has closed a channel, and tells the
    /// sentences about those whom it has rejected.
    fn echoing(options: Options) -> (Self, Receiver<String>) {
        let (told, tell) = mpsc::channel();
        let server = Self::start(options, move |turn| match &turn.event {
            Event::Accepted { token, peer: Peer::Key { key, address }, .. } => {
                assert_eq!((*token, *key), (Token(1), name(2)));
                assert!(address.ip().is_loopback());
            }
            Event::Messages { channel, messages } => {
                turn.out.extend(messages.iter().map(|one| send(*channel, one.bytes())));
            }
            Event::Rejected { token, error } => {
                assert_eq!(*token, Token(1));
                told.send(error.clone()).unwrap();
            }
            Event::Closed { .. } => turn.exit(0),
            Event::Congested { .. } | Event::Drained { .. } => {}
            other => panic!("{other:?}"),
        });
        (server, tell)
    }
}

/// Connects with key `own` to who should have key `wanted`; the error, if there is one, and else what `script`
/// does with the channel.
fn connect(
    own: u8,
    wanted: u8,
    address: SocketAddr,
    mut script: impl FnMut(&mut Turn<'_>) + 'static,
) -> Result<u8, String> {
    let failed = Arc::new(Mutex::new(None));
    let into = Arc::clone(&failed);
    let status = run_script_with(options(), move |turn| match &turn.event {
        Event::Start => {
            turn.out.push(keys(own, &[]));
            let address = ChannelAddress::Tls { address, peer: Some(name(wanted)) };
            turn.out.push(Action::Connect { token: Token(2), address });
        }
        Event::ChannelFailed { token, error } => {
            assert_eq!(*token, Token(2));
            *into.lock().unwrap() = Some(error.clone());
            turn.exit(1);
        }
        _ => script(turn),
    });
    failed.lock().unwrap().take().map_or(Ok(status), Err)
}

/// Has a good client speak with the server once, which ends that.
fn say_hello(address: SocketAddr) {
    let status = connect(2, 1, address, |turn| match &turn.event {
        Event::Connected { channel, .. } => turn.out.push(send(*channel, SECRET)),
        Event::Messages { messages, .. } => {
            assert_eq!(messages[0].bytes(), SECRET);
            turn.exit(0);
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(status, Ok(0));
}

/// Somebody in the middle: takes one connection, and passes on what `change` makes of each piece, by
/// direction (`true`: to the server), and ends it when that says no. Returns all that passed.
fn between(
    server: SocketAddr,
    change: impl Fn(bool, &mut Vec<u8>) -> bool + Send + Sync + 'static,
) -> (SocketAddr, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let client = listener.accept().unwrap().0;
        let server = TcpStream::connect(server).unwrap();
        let (change, seen) = (Arc::new(change), Arc::new(Mutex::new(Vec::new())));
        let ways = [(true, &client, &server), (false, &server, &client)];
        let threads = ways.map(|(up, from, to)| {
            let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            let (change, seen) = (Arc::clone(&change), Arc::clone(&seen));
            std::thread::spawn(move || {
                let mut piece = vec![0; 1 << 16];
                while let Ok(count @ 1..) = from.read(&mut piece) {
                    let mut bytes = piece[..count].to_vec();
                    seen.lock().unwrap().extend_from_slice(&bytes);
                    let goes_on = change(up, &mut bytes);
                    if to.write_all(&bytes).is_err() || !goes_on {
                        let _ = from.shutdown(Shutdown::Both);
                        break;
                    }
                }
                let _ = to.shutdown(Shutdown::Write);
            })
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let seen = seen.lock().unwrap();
        seen.clone()
    });
    (address, thread)
}

#[test]
fn messages_of_all_sizes_arrive_in_order_and_nobody_in_between_can_read_them() {
    let mut sizes: Vec<usize> = (0..3000).map(|number| 40 + number % 500).collect();
    sizes.extend([1 << 20, 16_384, 16_385, crate::frames::FIRST_FRAME, 60]);
    let message = |size: usize| SECRET.iter().copied().cycle().take(size).collect::<Vec<u8>>();
    let (server, _) = Server::echoing(options());
    let (address, spy) = between(server.address, |_, _| true);
    let mut left = sizes.clone().into_iter();
    let status = connect(2, 1, address, move |turn| match &turn.event {
        Event::Connected { channel, .. } => {
            turn.out.extend(sizes.iter().map(|size| send(*channel, &message(*size))));
        }
        Event::Messages { messages, channel } => {
            for one in messages {
                assert_eq!(one.bytes(), message(left.next().unwrap()));
            }
            if left.len() == 0 {
                turn.out.push(Action::Close { channel: *channel });
                turn.exit(0);
            }
        }
        Event::Congested { .. } | Event::Drained { .. } => {}
        other => panic!("{other:?}"),
    });
    assert_eq!((status, server.thread.join().unwrap()), (Ok(0), 0));
    let seen = spy.join().unwrap();
    // It has seen everything, twice, and understood nothing: not even a word.
    assert!(seen.len() > 2 * (2 << 20));
    assert!(!seen.windows(8).any(|window| window == &SECRET[..8]));
}

/// For what epoll wakes this process at connections with this port, in the bits of epoll_ctl(2).
fn awaited(port: u16) -> Vec<u32> {
    let here = Path::new("/proc/self");
    let text = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let port = format!(":{port:04X}");
    let inodes: Vec<_> = text(here.join("net/tcp"))
        .lines()
        .map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter(|words| words.iter().take(3).any(|word| word.ends_with(&port)))
        // Who listens is no connection.
        .filter(|words| words[3] != "0A")
        .map(|words| format!("socket:[{}]", words[9]))
        .collect();
    let names: Vec<_> = std::fs::read_dir(here.join("fd"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let is_one = |name: &str| {
        let what = std::fs::read_link(here.join("fd").join(name));
        what.is_ok_and(|what| inodes.iter().any(|inode| what == Path::new(inode)))
    };
    // Lines such as `tfd:       12 events:       19 data: …`; other descriptors have no such lines.
    let watched = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let ["tfd:", name, "events:", events, ..] = words[..] else { return None };
        is_one(name).then(|| u32::from_str_radix(events, 16).unwrap())
    };
    let lines = names.iter().map(|name| text(here.join("fdinfo").join(name)));
    lines.flat_map(|text| text.lines().filter_map(watched).collect::<Vec<_>>()).collect()
}

#[test]
fn a_channel_with_nothing_to_send_does_not_wait_for_room() {
    let (server, _) = Server::echoing(options());
    let address = server.address;
    let mut answers = 0;
    let status = connect(2, 1, address, move |turn| match &turn.event {
        Event::Connected { channel, .. } => turn.out.push(send(*channel, SECRET)),
        // With the second answer even what was left of the handshake has been sent, and more.
        Event::Messages { channel, .. } if answers == 0 => {
            answers += 1;
            turn.out.push(send(*channel, SECRET));
        }
        Event::Messages { .. } => {
            let awaited = awaited(address.port());
            assert_eq!(awaited.len(), 2, "both ends are in this process");
            let room = rustix::event::epoll::EventFlags::OUT.bits();
            assert!(awaited.iter().all(|events| events & room == 0), "{awaited:x?}");
            turn.exit(0);
        }
        other => panic!("{other:?}"),
    });
    assert_eq!((status, server.thread.join().unwrap()), (Ok(0), 0));
}

#[test]
fn who_shows_another_key_is_turned_away_on_both_sides_with_the_keys_named() {
    let (server, rejected) = Server::echoing(options());
    let error = connect(3, 1, server.address, |turn| panic!("{:?}", turn.event)).unwrap_err();
    assert!(error.contains(&name(3).to_string()) && error.contains("refused this side"), "{error}");
    let error = rejected.recv().unwrap();
    let expected = format!("showed the key {}, expected {}", name(3), name(2));
    assert!(error.contains(&expected) && error.contains("127.0.0.1:"), "{error}");

    let error = connect(2, 4, server.address, |turn| panic!("{:?}", turn.event)).unwrap_err();
    let expected = format!("{} showed the key {}, expected {}", server.address, name(1), name(4));
    assert!(error.contains(&expected), "{error}");
    let error = rejected.recv().unwrap();
    assert!(error.contains(&name(1).to_string()), "{error}");
    say_hello(server.address);
    assert_eq!(server.thread.join().unwrap(), 0);
}

#[test]
fn who_shows_no_key_or_does_not_speak_tls_is_turned_away_and_counted() {
    let mut told = 0;
    let server = Server::start(options(), move |turn| match &turn.event {
        Event::Rejected { error, .. } => {
            told += 1;
            let expected = if told == 1 { "showed no key" } else { "does not speak TLS 1.3" };
            assert!(error.contains(expected), "{error}");
        }
        Event::Accepted { .. } => turn.out.push(Action::Count { token: Token(3) }),
        counted @ Event::Counted { .. } => {
            assert_eq!((count(counted, "tls-key"), count(counted, "tls-handshake")), (1, 3));
        }
        Event::Messages { channel, messages } => {
            turn.out.extend(messages.iter().map(|one| send(*channel, one.bytes())));
        }
        Event::Closed { .. } => turn.exit(0),
        other => panic!("{other:?}"),
    });
    let mut nameless = crate::real::tls::testing::without_key(&key(2), name(1));
    let mut socket = TcpStream::connect(server.address).unwrap();
    while nameless.complete_io(&mut socket).is_ok() {}
    let lone = [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0x16, 3, 1, 0xff, 0xff, 1], &[0; 9000]];
    for garbage in lone {
        let mut socket = TcpStream::connect(server.address).unwrap();
        socket.write_all(garbage).unwrap();
        // The process closes it, so that this comes to an end.
        while let Ok(1..) = socket.read(&mut [0; 100]) {}
    }
    say_hello(server.address);
    assert_eq!(server.thread.join().unwrap(), 0);
}

#[test]
fn a_handshake_that_is_cut_off_is_an_error_on_both_sides() {
    let (server, rejected) = Server::echoing(options());
    for (direction, at) in [(true, 1), (true, 100), (false, 1), (false, 200)] {
        let (address, spy) = between(server.address, move |up, bytes| {
            if up == direction {
                bytes.truncate(at);
            }
            up != direction
        });
        let error = connect(2, 1, address, |turn| panic!("{:?}", turn.event)).unwrap_err();
        assert!(error.contains(&format!("{address} broke off")), "{error}");
        let error = rejected.recv().unwrap();
        assert!(error.contains("broke off: it ended the connection"), "{error}");
        spy.join().unwrap();
    }
    say_hello(server.address);
    assert_eq!(server.thread.join().unwrap(), 0);
}

#[test]
fn who_says_nothing_is_given_up_and_a_crowd_of_them_keeps_nobody_out() {
    let patience = Options { handshake: Duration::from_millis(100), ..options() };
    let (server, rejected) = Server::echoing(patience);
    let _silent = TcpStream::connect(server.address).unwrap();
    let error = rejected.recv().unwrap();
    assert!(error.contains("did not get done with its handshake in 100ms"), "{error}");
    say_hello(server.address);
    assert_eq!(server.thread.join().unwrap(), 0);

    let (seen, counted) = mpsc::channel();
    let server = Server::start(options(), move |turn| match &turn.event {
        Event::Accepted { .. } => turn.out.push(Action::Count { token: Token(3) }),
        event @ Event::Counted { .. } => seen.send(count(event, "tls-crowded")).unwrap(),
        Event::Messages { channel, messages } => {
            turn.out.extend(messages.iter().map(|one| send(*channel, one.bytes())));
        }
        Event::Closed { .. } => turn.exit(0),
        other => panic!("{other:?}"),
    });
    let crowd: Vec<_> = (0..150).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    say_hello(server.address);
    assert_eq!(server.thread.join().unwrap(), 0);
    // The last one of the crowd gave way to who came behind it.
    assert_eq!(counted.recv().unwrap(), 150 + 1 - 64);
    drop(crowd);
}

#[test]
fn a_bit_that_is_changed_on_the_way_ends_the_channel() {
    let (seen, counted) = mpsc::channel();
    let server = Server::start(options(), move |turn| match &turn.event {
        Event::Accepted { .. } => {}
        Event::Closed { .. } => turn.out.push(Action::Count { token: Token(3) }),
        event @ Event::Counted { .. } => {
            seen.send(count(event, "tls-broken")).unwrap();
            turn.exit(0);
        }
        other => panic!("{other:?}"),
    });
    // What is longer than anything of the handshake is the message.
    let (address, spy) = between(server.address, |up, bytes| {
        if up && bytes.len() > 2000 {
            bytes[1000] ^= 1;
        }
        true
    });
    let status = connect(2, 1, address, |turn| match &turn.event {
        Event::Connected { channel, .. } => turn.out.push(send(*channel, &[7; 9000])),
        Event::Closed { .. } => turn.exit(0),
        other => panic!("{other:?}"),
    });
    assert_eq!((status, server.thread.join().unwrap()), (Ok(0), 0));
    assert_eq!(counted.recv().unwrap(), 1);
    drop(spy);
}

#[test]
fn channels_end_when_their_key_is_accepted_no_more() {
    let server = Server::start(options(), |turn| match &turn.event {
        Event::Accepted { .. } => {}
        // It still is one that is accepted, and then is none.
        Event::Messages { messages, channel } if messages[0].bytes() == b"stay" => {
            turn.out.extend([keys(1, &[2, 3]), send(*channel, b"go")]);
        }
        Event::Messages { .. } => turn.out.push(keys(1, &[3])),
        Event::Closed { .. } => turn.exit(0),
        other => panic!("{other:?}"),
    });
    let status = connect(2, 1, server.address, |turn| match &turn.event {
        Event::Connected { channel, .. } => turn.out.push(send(*channel, b"stay")),
        Event::Messages { channel, .. } => turn.out.push(send(*channel, b"revoke me")),
        Event::Closed { .. } => turn.exit(0),
        other => panic!("{other:?}"),
    });
    assert_eq!((status, server.thread.join().unwrap()), (Ok(0), 0));
}

#[test]
fn a_listener_that_another_process_opened_is_adopted_and_nothing_else_is() {
    let mut address_of_listener = None;
    let status = run_script_with(options(), move |turn| match &turn.event {
        Event::Start => {
            let address = "127.0.0.1:0".parse().unwrap();
            turn.out.push(keys(1, &[2]));
            turn.out.push(Action::OpenListener { token: Token(5), address });
        }
        Event::ListenerOpened { token, address, .. } => {
            assert_eq!(*token, Token(5));
            let address = ChannelAddress::Tls { address: *address, peer: None };
            let no_listener = std::os::fd::OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
            let (token, handle) = (Token(6), no_listener.into());
            turn.out.push(Action::AdoptListener { token, address: address.clone(), handle });
            let Event::ListenerOpened { handle, .. } =
                std::mem::replace(&mut turn.event, Event::Tick)
            else {
                return;
            };
            turn.out.push(Action::AdoptListener { token: Token(7), address, handle });
        }
        Event::ChannelFailed { token, error } => {
            let refused = if *token == Token(6) { "is not for that" } else { "nobody listens" };
            assert!(error.contains(refused), "{error}");
            if *token == Token(8) {
                turn.exit(0);
            }
        }
        Event::Listening { token, address: ChannelAddress::Tls { address, .. } } => {
            assert_eq!(*token, Token(7));
            assert_ne!(address.port(), 0);
            let at = *address;
            address_of_listener = Some(at);
            std::thread::spawn(move || say_hello(at));
        }
        Event::Accepted { token, .. } => {
            assert_eq!(*token, Token(7));
            turn.out.push(Action::CloseListener { token: *token });
        }
        Event::Messages { channel, messages } => {
            turn.out.extend(messages.iter().map(|one| send(*channel, one.bytes())));
        }
        Event::Closed { .. } => {
            // The one connection was there before the listener was closed; there are no more.
            let address = address_of_listener.unwrap();
            let address = ChannelAddress::Tls { address, peer: Some(name(2)) };
            turn.out.push(Action::Connect { token: Token(8), address });
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(status, 0);
}

#[test]
fn without_a_key_of_its_own_a_process_neither_listens_nor_connects() {
    let mut errors = 0;
    let status = run_script_with(options(), move |turn| match &turn.event {
        Event::Start => {
            let address = "127.0.0.1:0".parse().unwrap();
            let address = ChannelAddress::Tls { address, peer: None };
            turn.out.push(Action::Listen { token: Token(1), address: address.clone() });
            turn.out.push(Action::Connect { token: Token(2), address });
        }
        Event::ChannelFailed { error, .. } => {
            assert!(error.contains("was given no key"), "{error}");
            errors += 1;
            if errors == 2 {
                turn.exit(0);
            }
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(status, 0);
}
