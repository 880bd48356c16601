//! Message channels between two processes: what sockets that keep borders and flows have in common.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, epoll, poll};
use weft_base::{ChannelId, Message, Packet, Token};
use weft_port::datagrams;

use super::{Turn, options, run_script, run_script_with};
use crate::address::ChannelKind;
use crate::real::Options;
use crate::real::listeners::connect_to;
use crate::{Action, ChannelAddress, Event, Peer};

/// The kinds of channel that drop single messages rather than end.
const KINDS: [Kind; 2] = [ChannelAddress::Packets, ChannelAddress::Flow];

/// Makes the address of a channel of this kind.
pub(super) type Kind = fn(PathBuf) -> ChannelAddress;

/// A temporary directory with a listener in it, which runs on a thread of its own.
pub(super) struct Server {
    pub(super) path: PathBuf,
    kind: Kind,
    thread: JoinHandle<u8>,
    _directory: tempfile::TempDir,
}

impl Server {
    /// Runs `script` behind a listener, and returns when that is ready.
    pub(super) fn start(
        kind: Kind,
        mut script: impl FnMut(&mut Turn<'_>) + Send + 'static,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let (ready, wait_until_ready) = mpsc::channel();
        let address = kind(path.clone());
        let listen = Action::Listen { token: Token(1), address };
        let thread = std::thread::spawn(move || {
            let mut listen = Some(listen);
            run_script(move |turn| match &turn.event {
                Event::Start => turn.out.extend(listen.take()),
                Event::Listening { token, .. } => {
                    assert_eq!(*token, Token(1));
                    ready.send(()).unwrap();
                }
                _ => script(turn),
            })
        });
        wait_until_ready.recv().unwrap();
        Self { path, kind, thread, _directory: directory }
    }

    /// A server that reads nothing before `go`, and then sends what it got once its client is gone.
    fn collecting(kind: Kind, go: Receiver<()>) -> (Self, Receiver<Vec<u32>>) {
        let (result, results): (Sender<Vec<u32>>, _) = mpsc::channel();
        let mut numbers: Vec<u32> = Vec::new();
        let mut closed = 0;
        let server = Self::start(kind, move |turn| match &turn.event {
            Event::Accepted { .. } => go.recv().unwrap(),
            Event::Messages { messages, .. } => numbers.extend(messages.iter().map(number)),
            Event::Closed { .. } => {
                closed += 1;
                assert_eq!(closed, 1);
                result.send(std::mem::take(&mut numbers)).unwrap();
                // Another end of the same channel would come before this.
                *turn.deadline = Some(turn.now + std::time::Duration::from_millis(5));
            }
            Event::Tick => turn.exit(0),
            other => panic!("{other:?}"),
        });
        (server, results)
    }

    pub(super) fn finish(self) -> u8 {
        self.thread.join().unwrap()
    }

    /// Connects to it.
    pub(super) fn connect(&self) -> Action {
        connect(self.kind, &self.path)
    }
}

pub(super) fn connect(kind: Kind, path: &Path) -> Action {
    Action::Connect { token: Token(2), address: kind(path.to_owned()) }
}

/// A message of 1,500 bytes that begins with a number.
fn numbered_message(number: u32) -> Packet {
    let mut message = Packet::from_slice(&number.to_be_bytes());
    message.extend(&[0; 1496]);
    message
}

fn numbered(channel: ChannelId, number: u32) -> Action {
    Action::Send { channel, message: numbered_message(number).into() }
}

fn number(message: &Message) -> u32 {
    assert_eq!(message.bytes().len(), 1500);
    u32::from_be_bytes(message.bytes()[..4].try_into().unwrap())
}

#[test]
fn messages_keep_their_borders_in_both_directions_and_peers_are_known() {
    KINDS.into_iter().for_each(messages_keep_their_borders_on);
}

fn messages_keep_their_borders_on(kind: Kind) {
    let server = Server::start(kind, |turn| match &turn.event {
        Event::Accepted { token, peer, .. } => {
            let Peer::Process { pid, uid, .. } = peer else { panic!("{peer:?}") };
            assert_eq!((*token, *pid), (Token(1), std::process::id()));
            assert_eq!(*uid, rustix::process::geteuid().as_raw());
        }
        Event::Messages { channel, messages } => {
            turn.out.extend(messages.iter().map(|message| Action::Send {
                channel: *channel,
                message: message.buffer.duplicate().into(),
            }));
        }
        Event::Closed { .. } => turn.exit(0),
        other => panic!("{other:?}"),
    });
    let sizes = [1, 1792, 1793, 9000, 65_536];
    let (mut connect, mut received) = (Some(server.connect()), Vec::new());
    let status = run_script(move |turn| match &turn.event {
        Event::Start => turn.out.extend(connect.take()),
        Event::Connected { token, channel } => {
            assert_eq!(*token, Token(2));
            // An empty message and one that is too long are not sent; the others are.
            for size in sizes.into_iter().chain([0, 65_537, 2]) {
                let message = Packet::from_slice(&vec![size as u8; size]);
                turn.out.push(Action::Send { channel: *channel, message: message.into() });
            }
        }
        Event::Messages { messages, .. } => {
            for message in messages {
                let value = message.bytes().len() as u8;
                assert!(message.bytes().iter().all(|byte| *byte == value));
                received.push(message.bytes().len());
            }
            if received.len() == sizes.len() + 1 {
                assert_eq!(received[..sizes.len()], sizes);
                turn.exit(0);
            }
        }
        Event::Congested { .. } | Event::Drained { .. } => {}
        other => panic!("{other:?}"),
    });
    assert_eq!((status, server.finish()), (0, 0));
}

#[test]
fn a_sender_that_heeds_congestion_loses_nothing() {
    KINDS.into_iter().for_each(a_sender_loses_nothing_on);
}

fn a_sender_loses_nothing_on(kind: Kind) {
    const MESSAGES: u32 = 20_000;
    let (go, wait) = mpsc::channel();
    let (server, results) = Server::collecting(kind, wait);
    let (mut connect, mut next, mut congestions) = (Some(server.connect()), 0, 0);
    let mut channel = ChannelId(0);
    let status = run_script(move |turn| {
        let mut may_send = false;
        match &turn.event {
            Event::Start => turn.out.extend(connect.take()),
            Event::Connected { channel: connected, .. } => {
                channel = *connected;
                may_send = true;
            }
            Event::Congested { .. } => {
                congestions += 1;
                *turn.deadline = None;
                // Only now the other side begins to read.
                let _ = go.send(());
            }
            Event::Drained { .. } | Event::Tick => may_send = true,
            other => panic!("{other:?}"),
        }
        if may_send {
            let batch = next..MESSAGES.min(next + 200);
            next = batch.end;
            turn.out.extend(batch.map(|number| numbered(channel, number)));
            *turn.deadline = Some(turn.now);
            if next == MESSAGES {
                assert!(congestions > 0);
                turn.out.push(Action::Close { channel });
                turn.exit(0);
            }
        }
    });
    assert_eq!(status, 0);
    assert!(results.recv().unwrap().into_iter().eq(0..MESSAGES));
    assert_eq!(server.finish(), 0);
}

#[test]
fn messages_beyond_the_limit_are_dropped_and_the_others_arrive_though_the_sender_is_gone() {
    KINDS.into_iter().for_each(messages_beyond_the_limit_are_dropped_on);
}

fn messages_beyond_the_limit_are_dropped_on(kind: Kind) {
    const MESSAGES: u32 = 5000;
    let (go, wait) = mpsc::channel();
    let (server, results) = Server::collecting(kind, wait);
    let mut connect = Some(server.connect());
    let mut go = Some(go);
    let options = Options { channel_queue: 100, ..options() };
    let status = run_script_with(options, move |turn| match &turn.event {
        Event::Start => turn.out.extend(connect.take()),
        Event::Connected { channel, .. } => {
            turn.out.extend((0..MESSAGES).map(|number| numbered(*channel, number)));
        }
        Event::Congested { .. } => {
            go.take().unwrap().send(()).unwrap();
            turn.exit(0);
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(status, 0);
    let received = results.recv().unwrap();
    // What the kernel took and what was queued arrives, from the first on; the rest does not.
    assert!(received.len() > 100 && received.len() < MESSAGES as usize, "{}", received.len());
    assert!(received.iter().copied().eq(0..received.len() as u32));
    assert_eq!(server.finish(), 0);
}

#[test]
fn a_peer_that_dies_with_unread_messages_is_closed_after_its_last_message() {
    // The server sends a greeting that the client never reads: the kernel reports a reset, while
    // the server has a part of the messages still to read.
    let (gone, wait_until_gone) = mpsc::channel();
    let mut received = 0;
    let server = Server::start(ChannelAddress::Packets, move |turn| match &turn.event {
        Event::Accepted { channel, .. } => turn.out.push(numbered(*channel, 0)),
        Event::Messages { messages, .. } => {
            if received == 0 {
                wait_until_gone.recv().unwrap();
            }
            received += messages.len();
        }
        Event::Closed { .. } => turn.exit(received as u8),
        other => panic!("{other:?}"),
    });
    let socket = connect_to(&server.path, ChannelKind::Packets).unwrap();
    let mut messages: VecDeque<Packet> = (0..70).map(numbered_message).collect();
    datagrams::send(socket.as_fd(), &mut messages, |_| None, |_| (), Err).unwrap();
    assert!(messages.is_empty());
    let mut greeted = [PollFd::new(&socket, PollFlags::IN)];
    poll(&mut greeted, None).unwrap();
    drop(socket);
    gone.send(()).unwrap();
    assert_eq!(server.finish(), 70);
}

#[test]
fn what_is_passed_on_leaves_before_the_answer() {
    let mut clients = Vec::new();
    let mut closed = 0;
    let server = Server::start(ChannelAddress::Packets, move |turn| match &turn.event {
        Event::Accepted { channel, .. } => {
            clients.push(*channel);
            if clients.len() == 2 {
                turn.out.push(numbered(clients[0], 0));
            }
        }
        Event::Messages { channel, messages } => {
            let number = number(&messages[0]);
            assert_eq!((*channel, messages.len()), (clients[0], 1));
            turn.out.extend(clients.iter().map(|client| numbered(*client, number)));
        }
        Event::Closed { .. } => {
            closed += 1;
            if closed == clients.len() {
                turn.exit(0);
            }
        }
        other => panic!("{other:?}"),
    });
    let [asks, is_told] = [(); 2].map(|()| connect_to(&server.path, ChannelKind::Packets).unwrap());
    // What becomes ready first stands first in the list of the ready.
    let ready = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    for (client, name) in [(&asks, 0), (&is_told, 1)] {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&ready, client, epoll::EventData::new_u64(name), flags).unwrap();
    }
    let mut order: Vec<u64> = Vec::new();
    let mut wait_for = |count| {
        while order.len() < count {
            let mut events = [MaybeUninit::uninit(); 2];
            let (events, _) = epoll::wait(&ready, &mut events, None).unwrap();
            order.extend(events.iter().map(|event| event.data.u64()));
        }
    };
    // The first message comes by itself when both are there.
    wait_for(1);
    for round in 1..=2 {
        let mut message = VecDeque::from([numbered_message(round)]);
        datagrams::send(asks.as_fd(), &mut message, |_| None, |_| (), Err).unwrap();
        wait_for(1 + 2 * round as usize);
    }
    assert_eq!(order, [0, 1, 0, 1, 0]);
    drop((asks, is_told));
    assert_eq!(server.finish(), 0);
}

#[test]
fn connecting_to_nobody_and_listening_in_nowhere_are_sentences() {
    let mut errors = Vec::new();
    let status = run_script(move |turn| match &turn.event {
        Event::Start => {
            for kind in KINDS {
                turn.out.push(connect(kind, Path::new("/nowhere/socket")));
            }
            let address = ChannelAddress::Flow("/nowhere/socket".into());
            turn.out.push(Action::Listen { token: Token(3), address });
        }
        Event::ChannelFailed { token, error } => {
            errors.push((*token, error.clone()));
            if let [(Token(2), connecting), (Token(2), other), (Token(3), listening)] = &errors[..]
            {
                assert!(connecting.contains("nobody listens at `/nowhere/socket`"));
                assert_eq!(connecting, other);
                assert!(listening.contains("its directory does not exist"));
                turn.exit(0);
            }
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(status, 0);
}

#[test]
fn connections_beyond_the_limit_are_closed_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let options = Options { channels: 3, ..options() };
    // One process on both sides: two of its own channels, then the limit.
    let (mut accepted, mut connected, mut closed) = (0, 0, 0);
    let status = run_script_with(options, move |turn| {
        match &turn.event {
            Event::Start => {
                let address = ChannelAddress::Packets(path.clone());
                turn.out.push(Action::Listen { token: Token(1), address });
            }
            Event::Listening { .. } => {
                let connect = || connect(ChannelAddress::Packets, &path);
                turn.out.extend([connect(), connect()]);
            }
            Event::Connected { .. } => connected += 1,
            Event::Accepted { .. } => accepted += 1,
            Event::Closed { .. } => closed += 1,
            other => panic!("{other:?}"),
        }
        if (connected, accepted, closed) == (2, 1, 1) {
            turn.exit(0);
        }
    });
    assert_eq!(status, 0);
}
