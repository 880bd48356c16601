use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use tempfile::TempDir;
use weft_base::Buffer;

use super::*;

mod hostile;

/// A listener in a directory of its own.
struct Stack {
    listener: Listener,
    path: PathBuf,
    _directory: TempDir,
}

impl Stack {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("stack.sock");
        Self { listener: Listener::bind(&path).unwrap(), path, _directory: directory }
    }

    fn accept(&self) -> Attaching {
        client::wait_readable(self.listener.fd(), None).unwrap();
        self.listener.accept().unwrap().unwrap()
    }

    /// Waits for an application and gives it a flow.
    fn attach(&self) -> Result<Flow, Error> {
        let mut attaching = self.accept();
        loop {
            client::wait_readable(attaching.fd(), None)?;
            match attaching.advance(&Limits::default())? {
                Attached::NotYet(again) => attaching = again,
                Attached::Flow(flow) => return Ok(flow),
            }
        }
    }

    /// Both ends of a flow.
    fn pair(&self, options: &Options) -> (Client, Flow) {
        // However busy the machine is.
        let options = Options { patience: Duration::from_secs(60), ..options.clone() };
        thread::scope(|scope| {
            let client = scope.spawn(|| Client::connect(&self.path, &options).unwrap());
            let flow = self.attach().unwrap();
            (client.join().unwrap(), flow)
        })
    }
}

/// Both ends of a flow with the smallest rings.
fn small_pair(kind: Kind) -> (Client, Flow) {
    Stack::new().pair(&Options { sizes: Sizes { up: 1, down: 1 }, ..Options::new(kind) })
}

fn is_ready(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
}

fn receive_all(flow: &mut Flow) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    while flow.receive(64, |packet| messages.push(packet.bytes().to_vec())).unwrap()
        != Received::All
    {}
    messages
}

fn packets(messages: &[Vec<u8>]) -> VecDeque<Buffer> {
    messages.iter().map(|message| Buffer::from_slice(message)).collect()
}

#[test]
fn messages_keep_their_borders_in_both_directions() {
    let (mut client, mut flow) = Stack::new().pair(&Options::new(Kind::Datagram));
    let messages: Vec<_> =
        [1, 2, 64, 1400, 65_000, LONGEST].map(|len| vec![len as u8; len]).to_vec();
    for message in &messages {
        assert_eq!(client.send(message, None).unwrap(), message.len());
    }
    assert_eq!(receive_all(&mut flow), messages);
    assert_eq!(flow.send(&mut packets(&messages)).unwrap(), Sent::All);
    let mut buffer = vec![0; LONGEST];
    for message in &messages {
        let len = client.receive(&mut buffer, None).unwrap();
        assert_eq!(&buffer[..len], message);
    }
}

#[test]
fn messages_that_cannot_be_are_refused_and_the_flow_goes_on() {
    let (mut client, mut flow) = small_pair(Kind::Datagram);
    assert!(matches!(client.send(&[], None), Err(Error::Empty)));
    assert!(matches!(
        client.send(&vec![0; LONGEST + 1], None),
        Err(Error::TooLong { len: 65_537 })
    ));
    client.send(b"hello", None).unwrap();
    let short = flow.try_receive(&mut [0; 4]);
    assert!(matches!(short, Err(Error::BufferTooSmall { needed: 5, given: 4 })), "{short:?}");
    assert_eq!(receive_all(&mut flow), [b"hello"]);
}

#[test]
fn the_descriptor_is_ready_when_something_comes_after_all_was_received() {
    let (mut client, mut flow) = small_pair(Kind::Datagram);
    assert!(!is_ready(flow.fd()));
    for _ in 0..3 {
        client.send(b"one", None).unwrap();
        client.send(b"two", None).unwrap();
        assert!(is_ready(flow.fd()));
        assert_eq!(flow.receive(1, |_| ()).unwrap(), Received::Enough);
        assert_eq!(flow.receive(2, |_| ()).unwrap(), Received::All);
        assert!(!is_ready(flow.fd()));
    }
    assert_eq!(flow.receive(1, |_| ()).unwrap(), Received::All);
    assert!(!is_ready(flow.fd()));
}

/// The other side may have sent before this side has its flow in hands.
#[test]
fn a_new_flow_is_ready_if_something_was_sent_before_it_was_looked_at() {
    let (mut client, mut flow) = small_pair(Kind::Datagram);
    flow.try_send(b"first").unwrap();
    client.send(b"first", None).unwrap();
    assert!(is_ready(flow.fd()) && is_ready(client.fd()));
    assert_eq!(receive_all(&mut flow), [b"first"]);
    assert_eq!(receive_all(client.flow()), [b"first"]);
    assert!(!is_ready(flow.fd()) && !is_ready(client.fd()));
}

#[test]
fn who_does_not_sleep_is_not_woken() {
    let (mut client, flow) = small_pair(Kind::Datagram);
    for _ in 0..1000 {
        client.send(b"message", None).unwrap();
    }
    let mut byte = [0];
    assert_eq!(recv(flow.fd(), &mut byte, RecvFlags::DONTWAIT).unwrap().1, 1);
    assert!(recv(flow.fd(), &mut byte, RecvFlags::DONTWAIT).is_err(), "woken once");
}

#[test]
fn a_full_flow_says_so_and_tells_when_there_is_room() {
    for kind in [Kind::Datagram, Kind::Stream] {
        let (mut client, mut flow) = small_pair(kind);
        let mut queue = packets(&vec![vec![7; 1000]; 200]);
        assert_eq!(flow.send(&mut queue).unwrap(), Sent::Blocked);
        assert!(flow.is_congested() && !is_ready(flow.room_fd()), "{kind:?}");
        let mut sent = Sent::Blocked;
        let (mut received, mut buffer) = (0, vec![0; LONGEST]);
        while received < 200_000 {
            received += client.receive(&mut buffer, None).unwrap();
            if is_ready(flow.room_fd()) {
                assert_eq!(sent, Sent::Blocked, "woken for nothing: {kind:?}");
                sent = flow.send(&mut queue).unwrap();
                assert_eq!(flow.is_congested(), sent == Sent::Blocked);
            }
        }
        assert_eq!((sent, queue.len(), received), (Sent::All, 0, 200_000));
    }
}

#[test]
fn the_end_comes_after_the_last_message() {
    let (mut client, mut flow) = small_pair(Kind::Datagram);
    client.send(b"last words", None).unwrap();
    drop(client);
    assert!(is_ready(flow.fd()));
    let mut messages = Vec::new();
    let end = loop {
        assert!(is_ready(flow.fd()));
        if let Err(end) = flow.receive(64, |packet| messages.push(packet.bytes().to_vec())) {
            break end;
        }
    };
    assert!(matches!(end, Error::Closed), "{end:?}");
    assert_eq!(messages, [b"last words"]);
    assert!(matches!(flow.try_send(b"anybody?"), Err(Error::Closed)));
}

#[test]
fn who_waits_for_room_hears_that_the_other_side_is_gone() {
    let (mut client, flow) = small_pair(Kind::Datagram);
    let writer = thread::spawn(move || {
        loop {
            if let Err(error) = client.send(&[1; 10_000], None) {
                return error;
            }
        }
    });
    client::wait_readable(flow.fd(), None).unwrap();
    drop(flow);
    assert!(matches!(writer.join().unwrap(), Error::Closed));
}

#[test]
fn waiting_ends_with_its_time() {
    let (mut client, _flow) = small_pair(Kind::Stream);
    let moment = Some(Duration::from_millis(1));
    for timeout in [moment, Some(Duration::ZERO)] {
        assert!(matches!(client.receive(&mut [0; 9], timeout), Err(Error::TimedOut)));
    }
    assert_eq!(client.send(&[0; 5000], moment).unwrap(), 4096, "as much as there was room for");
    assert!(matches!(client.send(&[0; 5000], moment), Err(Error::TimedOut)));
}

/// Sides that sleep whenever they can, with messages of all lengths: nobody is left asleep, nothing
/// lost.
#[test]
fn sleepers_are_woken_through_a_long_transfer() {
    const COUNT: u32 = 20_000;
    for kind in [Kind::Datagram, Kind::Stream] {
        for spin in [Duration::ZERO, Duration::from_micros(5)] {
            let (mut client, flow) = small_pair(kind);
            let mut stack = Client::over(flow);
            client.set_spin(spin);
            stack.set_spin(spin);
            let echo = thread::spawn(move || {
                let mut buffer = vec![0; LONGEST];
                while let Ok(len) = stack.receive(&mut buffer, None) {
                    stack.send(&buffer[..len], None).unwrap();
                }
            });
            let (mut ahead, mut received) = (VecDeque::new(), 0_u32);
            let mut buffer = vec![0; LONGEST];
            for number in 0..COUNT {
                // Short, and now and then long; some answers are waited for at once.
                let len = 4 + (number % 17 * number % 611) as usize;
                let mut message = vec![number as u8; len];
                message[..4].copy_from_slice(&number.to_le_bytes());
                client.send(&message, None).unwrap();
                ahead.extend(message);
                while ahead.len() > 8000 * (number % 3) as usize {
                    let len = client.receive(&mut buffer, None).unwrap();
                    assert!(ahead.drain(..len).eq(buffer[..len].iter().copied()));
                    received += 1;
                }
            }
            assert!(received > 0);
            drop(client);
            echo.join().unwrap();
        }
    }
}

#[test]
fn sizes_are_chosen_by_the_application_and_known_to_both() {
    let (mut client, flow) = Stack::new()
        .pair(&Options { sizes: Sizes { up: 3_000_000, down: 0 }, ..Options::new(Kind::Stream) });
    assert_eq!(flow.sizes(), Sizes { up: 4 << 20, down: 256 << 10 });
    assert_eq!(client.flow().sizes(), flow.sizes());
    assert_eq!(flow.peer().pid, std::process::id());
}

#[test]
fn rings_that_are_too_large_for_a_stack_are_refused_in_words() {
    let stack = Stack::new();
    let options =
        Options { sizes: Sizes { up: 0, down: u32::MAX }, ..Options::new(Kind::Datagram) };
    thread::scope(|scope| {
        let client = scope.spawn(|| Client::connect(&stack.path, &options).unwrap_err());
        assert!(matches!(stack.attach(), Err(Error::NotAFlow { .. })));
        let text = client.join().unwrap().to_string();
        assert!(text.contains("67108864 bytes is too large, it takes 4194304"), "{text}");
    });
}

#[test]
fn a_refusal_tells_the_application_why() {
    let stack = Stack::new();
    thread::scope(|scope| {
        let client =
            scope.spawn(|| Client::connect(&stack.path, &Options::new(Kind::Stream)).unwrap_err());
        stack.accept().refuse("it is full".to_owned());
        let text = client.join().unwrap().to_string();
        assert!(text.ends_with("refused the flow: it is full"), "{text}");
    });
}

#[test]
fn without_a_stack_the_error_says_what_to_do() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("nobody.sock");
    let error = Client::connect(&path, &Options::new(Kind::Stream)).unwrap_err();
    assert!(error.to_string().contains("is the node running?"), "{error}");
    std::fs::write(&path, "content").unwrap();
    assert!(Listener::bind(&path).unwrap_err().to_string().contains("not a socket"));
    assert_eq!(std::fs::read(&path).unwrap(), b"content");
}

#[test]
fn an_application_attaches_again_and_greets_again_when_its_stack_returns() {
    let stack = Stack::new();
    let options = Options { greeting: vec![b"bind me".to_vec()], ..Options::new(Kind::Datagram) };
    let (mut client, mut flow) = stack.pair(&options);
    assert_eq!(receive_all(&mut flow), [b"bind me"]);
    let path = stack.path.clone();
    let Stack { listener, _directory, .. } = stack;
    drop((flow, listener));
    let end = client.receive(&mut [0; 10], None);
    assert!(matches!(end, Err(Error::Closed)), "{end:?}");
    let error = client.reattach(Duration::ZERO).unwrap_err();
    assert!(matches!(error, Error::NoStack { .. }), "{error}");
    thread::scope(|scope| {
        let client = scope.spawn(|| {
            client.reattach(Duration::from_secs(60)).unwrap();
            client.send(b"back", None).unwrap();
        });
        let stack = Stack { listener: Listener::bind(&path).unwrap(), path, _directory };
        let mut flow = stack.attach().unwrap();
        client.join().unwrap();
        assert_eq!(receive_all(&mut flow), [&b"bind me"[..], b"back"]);
    });
}

#[test]
fn an_application_that_waits_for_its_stack_goes_on_by_itself() {
    let stack = Stack::new();
    let options = Options {
        greeting: vec![b"bind me".to_vec()],
        returning: Some(Duration::from_secs(60)),
        ..Options::new(Kind::Datagram)
    };
    let (mut client, flow) = stack.pair(&options);
    let path = stack.path.clone();
    let Stack { listener, _directory, .. } = stack;
    drop((flow, listener));
    let nobody = client.receive(&mut [0; 10], Some(Duration::from_millis(5)));
    assert!(matches!(nobody, Err(Error::TimedOut)), "{nobody:?}");
    thread::scope(|scope| {
        let client = scope.spawn(move || {
            let mut buffer = [0; 10];
            let len = client.receive(&mut buffer, None).unwrap();
            buffer[..len].to_vec()
        });
        let stack = Stack { listener: Listener::bind(&path).unwrap(), path, _directory };
        // The first one dies as soon as it has attached.
        drop(stack.attach().unwrap());
        let mut flow = stack.attach().unwrap();
        flow.try_send(b"news").unwrap();
        assert_eq!(client.join().unwrap(), b"news");
        assert_eq!(receive_all_until_closed(&mut flow), [b"bind me"]);
    });
}

fn receive_all_until_closed(flow: &mut Flow) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    while flow.receive(64, |packet| messages.push(packet.bytes().to_vec())).is_ok() {
        client::wait_readable(flow.fd(), None).unwrap();
    }
    messages
}
