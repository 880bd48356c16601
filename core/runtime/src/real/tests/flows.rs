//! Channels that are flows: applications that keep no rules, and what is not so with sockets.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::net::{SendFlags, Shutdown, send, shutdown};
use weft_base::{ChannelId, Packet, Token};
use weft_flow::testing::{CONTROL_BYTES, Greeting, Intruder};
use weft_flow::{Client, Kind, LONGEST};
use weft_port::datagrams::BATCH;
use weft_port::unix::{self, SocketType};

use super::channels::{Server, connect};
use super::{Turn, options, run_script_with};
use crate::real::{Inherited, Options};
use crate::{Action, ChannelAddress, Event};

/// However busy the machine is.
const PATIENCE: Option<Duration> = Some(Duration::from_secs(60));

fn say(channel: ChannelId, bytes: &[u8]) -> Action {
    Action::Send { channel, message: Packet::from_slice(bytes).into() }
}

/// A server that sends back what comes; except: `fill` fills the memory of whoever says that, `count` is
/// answered with what the driver has dropped, and `exit` ends it.
fn echo() -> Server {
    let mut asked = None;
    Server::start(ChannelAddress::Flow, move |turn| match &turn.event {
        Event::Messages { channel, messages } => {
            for message in messages {
                match message.bytes() {
                    b"exit" => turn.out.push(Action::Exit { status: 0 }),
                    b"count" => {
                        asked = Some(*channel);
                        turn.out.push(Action::Count { token: Token(9) });
                    }
                    b"fill" => {
                        let much = vec![7; LONGEST];
                        turn.out.extend((0..100).map(|_| say(*channel, &much)));
                    }
                    bytes => turn.out.push(say(*channel, bytes)),
                }
            }
        }
        Event::Counted { counts, .. } => {
            let drops: Vec<_> =
                counts.drops.iter().map(|(name, n)| format!("{name} {n}")).collect();
            turn.out.push(say(asked.unwrap(), format!("drops {}", drops.join(", ")).as_bytes()));
        }
        _ => {}
    })
}

fn client(server: &Server) -> Client {
    let patience = PATIENCE.unwrap();
    let options = weft_flow::Options { patience, ..weft_flow::Options::new(Kind::Datagram) };
    Client::connect(&server.path, &options).unwrap()
}

/// Asks something and waits for the answer.
fn ask(client: &mut Client, question: &str) -> String {
    client.send(question.as_bytes(), PATIENCE).unwrap();
    let mut answer = vec![0; LONGEST];
    let len = client.receive(&mut answer, PATIENCE).unwrap();
    String::from_utf8_lossy(&answer[..len]).into_owned()
}

/// Waits until the driver has counted this.
fn wait_for(client: &mut Client, count: &str) {
    for _ in 0..1_000_000 {
        if ask(client, "count").contains(count) {
            return;
        }
    }
    panic!("never counted: {count}, but {}", ask(client, "count"));
}

/// Waits until the stack has closed an intruder's connection.
fn wait_for_end(socket: &OwnedFd) {
    let mut bytes = [0; 16];
    while !matches!(rustix::io::read(socket, &mut bytes), Ok(0) | Err(_)) {}
}

#[test]
fn applications_that_keep_no_rules_are_cut_off_alone_and_nobody_else_notices() {
    let server = echo();
    let mut good = client(&server);
    let _silent = Intruder::connect(&server.path);
    for words in [&b"hello"[..], &[0; 16]] {
        let intruder = Intruder::connect(&server.path);
        intruder.say(words, &[]);
        intruder.answer().unwrap_err();
    }
    let intruder = Intruder::connect(&server.path);
    let Greeting { words, theirs, .. } = Greeting::sound(Kind::Datagram);
    let file = OwnedFd::from(tempfile::tempfile().unwrap());
    intruder.say(&words, &[file.as_fd(), theirs.as_fd()]);
    intruder.answer().unwrap_err();
    wait_for(&mut good, "flow-refused 3");
    // Those that attach, and then: write nonsense and wake the stack, wake it for nothing, say nonsense.
    let attach = || {
        let intruder = Intruder::connect(&server.path);
        let (room, scribbler) = intruder.attach(Kind::Datagram);
        (intruder.control, room, scribbler)
    };
    let wake = |socket: &OwnedFd| {
        send(socket, b"w", SendFlags::empty()).unwrap();
    };
    let (control, _room, scribbler) = attach();
    scribbler.scribble(0, &[0xff; CONTROL_BYTES]);
    wake(&control);
    wait_for_end(&control);
    wait_for(&mut good, "flow-broken 1");
    let (control, room, _) = attach();
    wake(&room);
    wait_for_end(&control);
    wait_for(&mut good, "flow-broken 2");
    let (control, _room, _) = attach();
    send(&control, b"nonsense", SendFlags::empty()).unwrap();
    wait_for_end(&control);
    wait_for(&mut good, "flow-broken 3");
    // Its other socket alone is at its end: so is the flow.
    let (control, room, _) = attach();
    shutdown(&room, Shutdown::Both).unwrap();
    wait_for_end(&control);
    assert_eq!(ask(&mut good, "still here"), "still here");
    good.send(b"exit", PATIENCE).unwrap();
    assert_eq!(server.finish(), 0);
}

#[test]
fn an_application_that_never_reads_loses_messages_and_keeps_nobody_waiting() {
    let server = echo();
    let (mut deaf, mut good) = (client(&server), client(&server));
    deaf.send(b"fill", PATIENCE).unwrap();
    // What does not fit waits, up to a limit.
    assert_eq!(ask(&mut good, "one"), "one");
    for _ in 0..20 {
        deaf.send(b"fill", PATIENCE).unwrap();
    }
    wait_for(&mut good, "channel-queue-full");
    drop(deaf);
    assert_eq!(ask(&mut good, "two"), "two");
    good.send(b"exit", PATIENCE).unwrap();
    assert_eq!(server.finish(), 0);
}

/// Its socket for room ends with the flow, whatever else it has said.
#[test]
fn an_application_that_hangs_up_on_a_full_flow_is_at_its_end_for_the_process_too() {
    let (told, closed) = mpsc::channel();
    let server = Server::start(ChannelAddress::Flow, move |turn| match &turn.event {
        Event::Accepted { channel, .. } => {
            turn.out.extend((0..100).map(|_| say(*channel, &[7; LONGEST])));
        }
        Event::Congested { .. } => told.send("congested").unwrap(),
        Event::Closed { .. } => turn.exit(0),
        other => panic!("{other:?}"),
    });
    let intruder = Intruder::connect(&server.path);
    let (room, _scribbler) = intruder.attach(Kind::Datagram);
    assert_eq!(closed.recv().unwrap(), "congested");
    drop(room);
    assert_eq!(server.finish(), 0);
}

#[test]
fn a_flooded_flow_does_not_keep_another_one_waiting() {
    const FLOOD: usize = 1000;
    let (filled, wait) = mpsc::channel();
    let (mut flooded, mut quiet) = (0, false);
    let server = Server::start(ChannelAddress::Flow, move |turn| {
        let Event::Messages { messages, .. } = &turn.event else { return };
        for message in messages {
            match message.bytes() {
                // Both have sent all they have when this turn is over.
                b"wait" => wait.recv().unwrap(),
                b"flood" => flooded += 1,
                b"quiet" => {
                    // A batch in the turn in which this waited, and one in the turn after.
                    assert!(flooded <= 2 * BATCH, "{flooded} messages went first");
                    quiet = true;
                }
                other => panic!("{other:?}"),
            }
        }
        if quiet && flooded == FLOOD {
            turn.exit(0);
        }
    });
    let mut clients = [client(&server), client(&server), client(&server)];
    let [first, busy, other] = &mut clients;
    first.send(b"wait", PATIENCE).unwrap();
    for _ in 0..FLOOD {
        busy.send(b"flood", PATIENCE).unwrap();
    }
    other.send(b"quiet", PATIENCE).unwrap();
    filled.send(()).unwrap();
    assert_eq!(server.finish(), 0);
}

#[test]
fn what_is_sent_before_closing_arrives_though_it_has_to_wait_for_room() {
    const MESSAGES: usize = 50;
    let server = Server::start(ChannelAddress::Flow, |turn| match &turn.event {
        Event::Accepted { channel, .. } => {
            turn.out.extend((0..MESSAGES).map(|n| say(*channel, &[n as u8; LONGEST])));
            turn.out.push(Action::Close { channel: *channel });
            turn.exit(0);
        }
        other => panic!("{other:?}"),
    });
    let mut client = client(&server);
    let mut buffer = vec![0; LONGEST];
    for number in 0..MESSAGES {
        // What this side says meanwhile is heard by nobody.
        let _ = client.send(b"what?", PATIENCE);
        assert_eq!(client.receive(&mut buffer, PATIENCE).unwrap(), LONGEST);
        assert_eq!(buffer[0], number as u8);
    }
    assert!(matches!(client.receive(&mut buffer, PATIENCE), Err(weft_flow::Error::Closed)));
    assert_eq!(server.finish(), 0);
}

#[test]
fn a_listener_that_was_inherited_takes_flows() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let listener = unix::Listener::bind(&path, SocketType::SEQPACKET).unwrap();
    let socket = listener.fd().try_clone_to_owned().unwrap();
    let inherited = vec![Inherited::Listener { path: path.clone(), socket }];
    let asking = thread::spawn({
        let path = path.clone();
        // It connects before anybody accepts.
        move || Client::connect(path, &weft_flow::Options::new(Kind::Datagram)).map(drop)
    });
    let options = Options { inherited, ..options() };
    let status = run_script_with(options, move |turn| match &turn.event {
        Event::Start => {
            let address = ChannelAddress::Flow(path.clone());
            turn.out.push(Action::Listen { token: Token(1), address });
        }
        Event::Closed { .. } => turn.exit(0),
        Event::Listening { .. } | Event::Accepted { .. } => {}
        other => panic!("{other:?}"),
    });
    assert_eq!(status, 0);
    asking.join().unwrap().unwrap();
}

#[test]
fn a_listener_that_speaks_something_else_is_a_sentence() {
    // It answers a hello with a message that is no welcome.
    let server = Server::start(ChannelAddress::Packets, |turn| match &turn.event {
        Event::Messages { channel, .. } => turn.out.push(say(*channel, b"what do you mean?")),
        Event::Closed { .. } => turn.exit(0),
        _ => {}
    });
    let mut connect = Some(connect(ChannelAddress::Flow, &server.path));
    let status = run_script_with(options(), move |turn| match &turn.event {
        Event::Start => turn.out.extend(connect.take()),
        Event::ChannelFailed { error, .. } => {
            assert!(error.contains("does not attach as flows do"), "{error}");
            turn.exit(0);
        }
        other => panic!("{other:?}"),
    });
    assert_eq!((status, server.finish()), (0, 0));
}

#[test]
fn flows_beyond_the_limit_are_closed_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let options = Options { channels: 3, ..options() };
    // One process on both sides: two of its own channels, then the limit.
    let (mut accepted, mut connected, mut failed) = (0, 0, 0);
    let mut script = move |turn: &mut Turn<'_>| {
        let connect = || connect(ChannelAddress::Flow, &path);
        match &turn.event {
            Event::Start => {
                let address = ChannelAddress::Flow(path.clone());
                turn.out.push(Action::Listen { token: Token(1), address });
            }
            Event::Listening { .. } => turn.out.extend([connect(), connect()]),
            Event::Connected { .. } => connected += 1,
            Event::Accepted { .. } => accepted += 1,
            Event::ChannelFailed { error, .. } => {
                assert!(error.contains("closed the connection"), "{error}");
                failed += 1;
            }
            Event::Counted { counts, .. } => {
                assert_eq!(counts.drops, [("connection-refused", 1)]);
                turn.exit(0);
            }
            other => panic!("{other:?}"),
        }
        if (connected, accepted, failed) == (1, 1, 1) {
            turn.out.push(Action::Count { token: Token(5) });
        }
    };
    assert_eq!(run_script_with(options, move |turn| script(turn)), 0);
}
