//! Channels on streams of bytes: Unix and TCP, handles, inherited sockets, and hostile peers.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;

use weft_base::{Buffer, ChannelId, Handle, Message, Token};
use weft_port::datagrams;

use super::{Turn, options, run_script_with};
use crate::real::{Inherited, Options};
use crate::{Action, ChannelAddress, Event, Peer, frames};

/// A process that listens, on a thread of its own.
struct Server {
    address: ChannelAddress,
    thread: JoinHandle<u8>,
}

impl Server {
    /// Runs `script` behind a listener at `address`, and returns when that is ready.
    fn start(
        address: ChannelAddress,
        options: impl FnOnce() -> Options + Send + 'static,
        mut script: impl FnMut(&mut Turn<'_>) + Send + 'static,
    ) -> Self {
        let (ready, wait_until_ready) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            run_script_with(options(), move |turn| match &turn.event {
                Event::Start => {
                    let address = address.clone();
                    turn.out.push(Action::Listen { token: Token(1), address });
                }
                Event::Listening { address, .. } => ready.send(address.clone()).unwrap(),
                Event::ChannelFailed { error, .. } => panic!("{error}"),
                _ => script(turn),
            })
        });
        Self { address: wait_until_ready.recv().unwrap(), thread }
    }

    /// Connects and runs `script`; returns both exit statuses.
    fn client(self, mut script: impl FnMut(&mut Turn<'_>) + 'static) -> (u8, u8) {
        let address = self.address;
        let status = run_script_with(options(), move |turn| match &turn.event {
            Event::Start => {
                let address = address.clone();
                turn.out.push(Action::Connect { token: Token(2), address });
            }
            Event::ChannelFailed { error, .. } => panic!("{error}"),
            _ => script(turn),
        });
        (status, self.thread.join().unwrap())
    }
}

/// An address of each kind that carries frames.
fn addresses(directory: &Path) -> [ChannelAddress; 3] {
    [
        ChannelAddress::Stream(directory.join("socket")),
        ChannelAddress::Tcp("127.0.0.1:0".parse().unwrap()),
        ChannelAddress::Tcp("[::1]:0".parse().unwrap()),
    ]
}

fn message(bytes: &[u8]) -> Message {
    Buffer::from_slice(bytes).into()
}

fn send(channel: ChannelId, message: impl Into<Message>) -> Action {
    Action::Send { channel, message: message.into() }
}

/// The message with this number, of a size that follows from it: mostly short ones.
fn numbered(number: u32) -> Buffer {
    let len = if number.is_multiple_of(1000) { 300_000 } else { number as usize % 50 };
    let mut buffer = Buffer::from_slice(&number.to_be_bytes());
    buffer.extend(&vec![number as u8; len]);
    buffer
}

/// A file that holds `text`, to be handed over.
fn file(text: &str) -> Handle {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    Handle::from(OwnedFd::from(file))
}

/// What the files of a message hold.
fn texts(message: &mut Message) -> Vec<String> {
    let handles = message.handles.drain(..);
    handles
        .map(|handle| {
            let mut file = File::from(handle.into_descriptor().unwrap());
            let flags = rustix::io::fcntl_getfd(&file).unwrap();
            assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
            let mut text = String::new();
            file.rewind().unwrap();
            file.read_to_string(&mut text).unwrap();
            text
        })
        .collect()
}

/// Asks for the counts, and remembers one of them.
fn dropped(event: &Event, reason: &str) -> Option<u64> {
    let Event::Counted { counts, .. } = event else { return None };
    Some(counts.drops.iter().find(|(name, _)| *name == reason).map_or(0, |(_, count)| *count))
}

#[test]
fn messages_of_all_sizes_arrive_in_order_and_what_was_sent_before_a_close_does_too() {
    const MESSAGES: u32 = 20_000;
    let directory = tempfile::tempdir().unwrap();
    for address in addresses(directory.path()) {
        let mut next = 0;
        let server = Server::start(address.clone(), options, move |turn| match &turn.event {
            Event::Accepted { peer: Peer::Process { pid, .. }, .. } => {
                assert_eq!(*pid, std::process::id());
            }
            Event::Accepted { peer: Peer::Address(peer), channel, .. } => {
                assert!(peer.ip().is_loopback());
                // The client never reads it: it closes with something unread.
                turn.out.push(send(*channel, message(b"hello")));
            }
            Event::Messages { messages, .. } => {
                for message in messages {
                    assert_eq!(message.bytes(), numbered(next).bytes());
                    next += 1;
                }
            }
            Event::Closed { .. } => turn.exit(u8::from(next != MESSAGES)),
            other => panic!("{other:?}"),
        });
        let (mut next, mut channel) = (0, ChannelId(0));
        let statuses = server.client(move |turn| {
            match &turn.event {
                Event::Connected { token, channel: connected } => {
                    assert_eq!(*token, Token(2));
                    channel = *connected;
                    *turn.deadline = Some(turn.now);
                }
                Event::Congested { .. } => *turn.deadline = None,
                Event::Drained { .. } => *turn.deadline = Some(turn.now),
                Event::Tick | Event::Messages { .. } => {}
                other => panic!("{other:?}"),
            }
            if turn.deadline.is_some() {
                let batch = next..MESSAGES.min(next + 700);
                next = batch.end;
                turn.out.extend(batch.map(|number| send(channel, numbered(number))));
                if next == MESSAGES {
                    turn.out.push(Action::Close { channel });
                    turn.exit(0);
                }
            }
        });
        assert_eq!(statuses, (0, 0), "{address}");
    }
}

#[test]
fn handles_arrive_with_the_message_they_were_sent_with() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    for address in [ChannelAddress::Stream(path.clone()), ChannelAddress::Packets(path)] {
        let longest = match address {
            ChannelAddress::Packets(_) => 65_536,
            _ => frames::FIRST_FRAME,
        };
        let mut next = 0;
        let server = Server::start(address.clone(), options, move |turn| match &mut turn.event {
            Event::Messages { messages, .. } => {
                for message in messages {
                    let number = u32::from_be_bytes(message.bytes()[..4].try_into().unwrap());
                    assert_eq!(number, next);
                    let expected: Vec<_> =
                        (0..handles_of(number)).map(|place| format!("{number}/{place}")).collect();
                    assert_eq!(texts(message), expected);
                    next += 1;
                }
            }
            Event::Closed { .. } => turn.exit(u8::from(next != 300)),
            Event::Accepted { .. } => {}
            other => panic!("{other:?}"),
        });
        // Of three messages one has handles; some are long, and all leave at once.
        fn handles_of(number: u32) -> u32 {
            if number.is_multiple_of(3) { 1 + number % 16 } else { 0 }
        }
        let statuses = server.client(move |turn| match &turn.event {
            Event::Connected { channel, .. } => {
                for number in 0..300_u32 {
                    let mut buffer = Buffer::from_slice(&number.to_be_bytes());
                    if number.is_multiple_of(50) {
                        buffer.extend(&vec![7; longest - 4]);
                    }
                    let handles =
                        (0..handles_of(number)).map(|place| file(&format!("{number}/{place}")));
                    let handles = handles.collect();
                    turn.out.push(send(*channel, Message { buffer, handles }));
                }
                turn.out.push(Action::Close { channel: *channel });
                turn.exit(0);
            }
            Event::Congested { .. } => {}
            other => panic!("{other:?}"),
        });
        assert_eq!(statuses, (0, 0), "{address}");
    }
}

#[test]
fn long_messages_are_taken_only_of_those_who_are_known() {
    let directory = tempfile::tempdir().unwrap();
    let [stream, tcp, _] = addresses(directory.path());
    for (address, known) in [(&stream, false), (&stream, true), (&tcp, false), (&tcp, true)] {
        let server = Server::start(address.clone(), options, move |turn| match &turn.event {
            Event::Accepted { channel, .. } if known => {
                turn.out.push(Action::TakeLong { channel: *channel });
            }
            Event::Accepted { .. } => {}
            Event::Messages { messages, .. } => {
                assert_eq!(messages[0].bytes().len(), frames::LONGEST_FRAME);
                turn.exit(1);
            }
            Event::Closed { .. } => turn.exit(2),
            other => panic!("{other:?}"),
        });
        let statuses = server.client(|turn| match &turn.event {
            Event::Connected { channel, .. } => {
                turn.out.push(send(*channel, message(&vec![7; frames::LONGEST_FRAME])));
            }
            Event::Congested { .. } | Event::Drained { .. } => {}
            Event::Closed { .. } => turn.exit(0),
            other => panic!("{other:?}"),
        });
        assert_eq!(statuses, (0, if known { 1 } else { 2 }), "{address}");
    }
}

/// Sends `bad` on a channel to `address` and returns whether that closed the channel. It must have been
/// counted as `reason`.
fn refusal(address: ChannelAddress, bad: Message, reason: &'static str) -> bool {
    let server = Server::start(address, options, |turn| match &turn.event {
        Event::Closed { .. } => turn.exit(0),
        Event::Accepted { .. } => {}
        Event::Messages { messages, .. } => assert_eq!(messages[0].bytes(), b"good"),
        other => panic!("{other:?}"),
    });
    let (mut bad, mut closed) = (Some(bad), false);
    let statuses = server.client(move |turn| match &turn.event {
        Event::Connected { channel, .. } => {
            turn.out.push(send(*channel, bad.take().unwrap()));
            turn.out.push(send(*channel, message(b"good")));
            turn.out.push(Action::Count { token: Token(3) });
        }
        Event::Closed { .. } => closed = true,
        event => {
            assert_eq!(dropped(event, reason), Some(1), "{reason}: {event:?}");
            turn.exit(u8::from(closed));
        }
    });
    assert_eq!(statuses.1, 0);
    statuses.0 == 1
}

#[test]
fn what_a_channel_does_not_carry_closes_a_stream_and_is_dropped_from_packets() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let with_handles = |count| Message {
        buffer: Buffer::from_slice(b"x"),
        handles: (0..count).map(|_| file("")).collect(),
    };
    let packets = ChannelAddress::Packets(path.clone());
    let [stream, tcp, _] = addresses(directory.path());
    let long = vec![0; frames::LONGEST_FRAME + 1];
    for (address, closes) in [(&packets, false), (&stream, true), (&tcp, true)] {
        assert_eq!(refusal(address.clone(), message(b""), "message-empty"), closes);
        assert_eq!(refusal(address.clone(), message(&long), "message-too-long"), closes);
    }
    assert!(!refusal(packets, with_handles(17), "handles-too-many"));
    assert!(refusal(stream, with_handles(17), "handles-too-many"));
    assert!(refusal(tcp, with_handles(1), "handles-not-carried"));
}

#[test]
fn a_stream_whose_sender_ignores_congestion_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let (go, wait) = mpsc::channel::<()>();
    let [stream, ..] = addresses(directory.path());
    let mut next = 0_u32;
    let server = Server::start(stream, options, move |turn| match &turn.event {
        Event::Accepted { .. } => wait.recv().unwrap(),
        // What comes is whole and in order.
        Event::Messages { messages, .. } => {
            for message in messages {
                assert_eq!(message.bytes()[..4], next.to_be_bytes());
                next += 1;
            }
        }
        Event::Closed { .. } => turn.exit(0),
        other => panic!("{other:?}"),
    });
    let mut congested = false;
    let statuses = server.client(move |turn| match &turn.event {
        Event::Connected { channel, .. } => {
            for number in 0..400_u32 {
                let mut buffer = Buffer::from_slice(&number.to_be_bytes());
                buffer.extend(&[0; 100_000]);
                turn.out.push(send(*channel, buffer));
            }
            turn.out.push(Action::Count { token: Token(3) });
        }
        Event::Congested { .. } => congested = true,
        Event::Closed { .. } => go.send(()).unwrap(),
        event => {
            assert_eq!(dropped(event, "stream-queue-full"), Some(1));
            assert!(congested);
            turn.exit(0);
        }
    });
    assert_eq!(statuses, (0, 0));
}

/// Lets `attack` do what it wants with a connection to a process. It must be closed, and counted as
/// `reason` once, after `good` messages came in; no descriptor may be left.
fn attacked(
    address: ChannelAddress,
    reason: &'static str,
    good: usize,
    attack: impl FnOnce(&ChannelAddress),
) {
    let mut came = 0;
    let server = Server::start(address, options, move |turn| match &turn.event {
        Event::Accepted { .. } => {}
        Event::Messages { messages, .. } => came += messages.len(),
        Event::Closed { .. } => turn.out.push(Action::Count { token: Token(3) }),
        event => {
            assert_eq!(dropped(event, reason), Some(1), "{event:?}");
            assert_eq!(came, good);
            turn.exit(0);
        }
    });
    attack(&server.address);
    assert_eq!(server.thread.join().unwrap(), 0, "{reason}");
}

/// Connects with nothing but the standard library, so that nothing keeps to the rules.
fn unix(address: &ChannelAddress) -> UnixStream {
    let ChannelAddress::Stream(path) = address else { panic!("{address}") };
    UnixStream::connect(path).unwrap()
}

#[test]
fn malformed_frames_close_the_channel_and_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let [stream, tcp, _] = addresses(directory.path());
    let too_long = (frames::LONGEST_FRAME as u32 + 1).to_le_bytes();
    for bad in [[0; 4], too_long, [0xff; 4]] {
        attacked(stream.clone(), "frame-length", 1, |address| {
            let mut socket = unix(address);
            socket.write_all(&[b"\x02\0\0\0ok", &bad[..]].concat()).unwrap();
            // The process closes it, so that this comes to an end.
            let _ = socket.read(&mut [0]);
        });
    }
    attacked(tcp, "frame-cut-off", 2, |address| {
        let ChannelAddress::Tcp(address) = address else { panic!("{address}") };
        let mut socket = TcpStream::connect(address).unwrap();
        socket.write_all(b"\x02\0\0\0ok\x01\0\0\0!\x05\0\0\0four").unwrap();
    });
}

#[test]
fn handles_that_no_frame_begins_with_close_the_channel() {
    let directory = tempfile::tempdir().unwrap();
    let [stream, ..] = addresses(directory.path());
    attacked(stream, "handles-misplaced", 1, |address| {
        let socket = unix(address);
        datagrams::send_with_handles(socket.as_fd(), b"\x09\0\0\0begin", &[file("a")]).unwrap();
        datagrams::send_with_handles(socket.as_fd(), b"ning", &[file("b")]).unwrap();
        let _ = (&socket).read(&mut [0]);
    });
}

#[test]
fn surplus_descriptors_of_a_hostile_sender_are_closed() {
    let directory = tempfile::tempdir().unwrap();
    let [stream, ..] = addresses(directory.path());
    let (reader, writer) = std::io::pipe().unwrap();
    let (reader, writer) = (OwnedFd::from(reader), OwnedFd::from(writer));
    attacked(stream, "handles-missing", 0, |address| {
        let socket = unix(address);
        send_many(&socket, b"\x01\0\0\0x", &writer, 40);
        drop(writer);
        let _ = (&socket).read(&mut [0]);
    });
    // The end comes when the last copy of the writing side is closed.
    assert_eq!(rustix::io::read(&reader, &mut [0]), Ok(0));
}

/// Sends the same descriptor `count` times with some bytes, which weft itself would not do.
fn send_many(socket: &UnixStream, bytes: &[u8], fd: &OwnedFd, count: usize) {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    let descriptors = vec![fd.as_fd(); count];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(100))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
    let bytes = [std::io::IoSlice::new(bytes)];
    sendmsg(socket, &bytes, &mut control, SendFlags::empty()).unwrap();
}

#[test]
fn an_inherited_listener_is_used_and_its_path_stays() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let socket = OwnedFd::from(UnixListener::bind(&path).unwrap());
    let inherited = Inherited::Listener { path: path.clone(), socket };
    let server = Server::start(
        ChannelAddress::Stream(path.clone()),
        move || Options { inherited: vec![inherited], ..options() },
        move |turn| match &turn.event {
            Event::Accepted { channel, .. } => {
                turn.out.push(send(*channel, message(b"hello")));
            }
            Event::Closed { .. } => turn.exit(0),
            other => panic!("{other:?}"),
        },
    );
    let statuses = server.client(|turn| match &turn.event {
        Event::Messages { .. } => turn.exit(0),
        Event::Connected { .. } => {}
        other => panic!("{other:?}"),
    });
    assert_eq!(statuses, (0, 0));
    assert!(path.exists(), "whoever made it removes it");
}

#[test]
fn an_inherited_listener_of_another_kind_is_a_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let socket = OwnedFd::from(UnixListener::bind(&path).unwrap());
    let inherited = vec![Inherited::Listener { path: path.clone(), socket }];
    let status =
        run_script_with(Options { inherited, ..options() }, move |turn| match &turn.event {
            Event::Start => {
                let address = ChannelAddress::Packets(path.clone());
                turn.out.push(Action::Listen { token: Token(1), address });
            }
            Event::ChannelFailed { error, .. } => {
                assert!(error.contains("SOCK_STREAM") && error.contains("SOCK_SEQPACKET"));
                turn.exit(0);
            }
            other => panic!("{other:?}"),
        });
    assert_eq!(status, 0);
}

#[test]
fn inherited_channels_are_announced_right_after_the_start() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let tcp = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut accepted, _) = listener.accept().unwrap();
    let channel = |name: &str, socket| Inherited::Channel { name: name.to_owned(), socket };
    let inherited = vec![channel("launcher", ours.into()), channel("net", tcp.into())];
    let mut names = Vec::new();
    let mut theirs = Some(theirs);
    let status =
        run_script_with(Options { inherited, ..options() }, move |turn| match &turn.event {
            Event::Start => assert!(names.is_empty()),
            Event::Inherited { name, channel } => {
                names.push(name.clone());
                turn.out.push(send(*channel, message(name.as_bytes())));
                if names == ["launcher", "net"] {
                    turn.out.push(send(*channel, message(b"again")));
                    theirs.as_mut().unwrap().write_all(b"\x01\0\0\0x").unwrap();
                }
            }
            Event::Messages { channel: ChannelId(1), messages } => {
                assert_eq!(messages[0].bytes(), b"x");
                let mut bytes = [0; 12];
                theirs.as_mut().unwrap().read_exact(&mut bytes).unwrap();
                assert_eq!(&bytes, b"\x08\0\0\0launcher");
                turn.exit(0);
            }
            other => panic!("{other:?}"),
        });
    assert_eq!(status, 0);
    let mut bytes = Vec::new();
    accepted.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, b"\x03\0\0\0net\x05\0\0\0again");
}

#[test]
fn what_is_not_a_socket_cannot_be_inherited() {
    let socket = OwnedFd::from(tempfile::tempfile().unwrap());
    let inherited = vec![Inherited::Channel { name: "launcher".to_owned(), socket }];
    let status = run_script_with(Options { inherited, ..options() }, |turn| turn.exit(0));
    assert_eq!(status, 1);
}

#[test]
fn connecting_where_nobody_listens_and_beyond_this_machine_are_sentences() {
    let free: SocketAddr = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let mut errors = 0;
    let status = run_script_with(options(), move |turn| match &turn.event {
        Event::Start => {
            for address in [free, "192.0.2.1:80".parse().unwrap()] {
                let address = ChannelAddress::Tcp(address);
                turn.out.push(Action::Connect { token: Token(2), address });
            }
        }
        Event::ChannelFailed { token: Token(2), error } => {
            assert!(error.contains("nobody listens at TCP") || error.contains("not encrypted"));
            errors += 1;
            if errors == 2 {
                turn.exit(0);
            }
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(status, 0);
}
