//! Applications that do not attach as they should, or break the rules afterwards.

use std::os::fd::AsFd;

use rustix::fs::{FallocateFlags, OFlags, fallocate, fcntl_setfl, ftruncate};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::*;
use crate::testing::{Greeting, Intruder};

/// Lets an application say something; returns what it is told.
fn refusal(stack: &Stack, say: impl FnOnce(&Intruder)) -> String {
    let intruder = Intruder::connect(&stack.path);
    say(&intruder);
    let error = stack.attach().unwrap_err();
    assert!(matches!(error, Error::NotAFlow { .. }), "{error}");
    intruder.answer().unwrap_err()
}

/// That the stack still serves others.
fn serves(stack: &Stack) {
    let (mut client, mut flow) = stack.pair(&Options::new(Kind::Datagram));
    client.send(b"served", None).unwrap();
    assert_eq!(receive_all(&mut flow), [b"served"]);
}

#[test]
fn applications_that_do_not_attach_are_told_why_and_leave_the_stack_in_peace() {
    let stack = Stack::new();
    for words in [&b"GET / HTTP/1.0\r\n\r\n"[..], b"x", &[0; 16]] {
        let why = refusal(&stack, |intruder| intruder.say(words, &[]));
        assert!(why.contains("no greeting of a flow"), "{why}");
    }
    // Says nothing.
    let intruder = Intruder::connect(&stack.path);
    let attaching = stack.accept();
    let Ok(Attached::NotYet(attaching)) = attaching.advance(&Limits::default()) else {
        panic!("it was attached without a word");
    };
    drop(intruder);
    assert!(matches!(attaching.advance(&Limits::default()), Err(Error::Closed)));
    serves(&stack);
}

#[test]
fn a_greeting_with_other_descriptors_than_its_two_is_refused() {
    let stack = Stack::new();
    let sound = || Greeting::sound(Kind::Datagram);
    let why = refusal(&stack, |intruder| intruder.say(&sound().words, &[]));
    assert!(why.contains("two descriptors and not 0"), "{why}");
    let why = refusal(&stack, |intruder| {
        let Greeting { words, memory, .. } = sound();
        intruder.say(&words, &[memory.as_fd()]);
    });
    assert!(why.contains("two descriptors and not 1"), "{why}");
    for more in 1..=14 {
        let why = refusal(&stack, |intruder| {
            let Greeting { words, memory, room, theirs } = sound();
            let mut descriptors = vec![memory.as_fd(), theirs.as_fd()];
            descriptors.extend(std::iter::repeat_n(room.as_fd(), more));
            intruder.say(&words, &descriptors);
        });
        assert!(why.contains("two descriptors") && why.contains("not"), "{why}");
    }
    serves(&stack);
}

#[test]
fn a_second_descriptor_that_is_not_the_applications_own_pair_is_refused() {
    let stack = Stack::new();
    let why_for = |second: &dyn AsFd| {
        refusal(&stack, |intruder| {
            let Greeting { words, memory, .. } = Greeting::sound(Kind::Datagram);
            intruder.say(&words, &[memory.as_fd(), second.as_fd()]);
        })
    };
    let (reader, writer) = std::io::pipe().unwrap();
    let flags = SocketFlags::CLOEXEC;
    let stream = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let memory = Greeting::sound(Kind::Datagram).memory;
    for other in [&reader as &dyn AsFd, &writer, &stream.0, &udp, &memory] {
        let why = why_for(other);
        assert!(why.contains("no Unix socket of type SOCK_SEQPACKET"), "{why}");
    }
    let lonely = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    assert!(why_for(&lonely).contains("somebody else, or nobody"));
    serves(&stack);
}

#[test]
fn memory_that_is_not_as_it_should_be_is_refused() {
    let stack = Stack::new();
    let why_for = |memory: &dyn AsFd| {
        refusal(&stack, |intruder| {
            let Greeting { words, theirs, .. } = Greeting::sound(Kind::Datagram);
            intruder.say(&words, &[memory.as_fd(), theirs.as_fd()]);
        })
    };
    // What else it may be is tried where it is checked (`segment`).
    let (reader, _writer) = std::io::pipe().unwrap();
    assert!(why_for(&reader).contains("no file in memory"));
    let small = Greeting::sound(Kind::Stream).memory;
    assert!(why_for(&small).contains("another size"));
    serves(&stack);
}

#[test]
fn memory_cannot_be_taken_from_under_a_stack() {
    let stack = Stack::new();
    let intruder = Intruder::connect(&stack.path);
    let Greeting { words, memory, room: _room, theirs } = Greeting::sound(Kind::Datagram);
    intruder.say(&words, &[memory.as_fd(), theirs.as_fd()]);
    let mut flow = stack.attach().unwrap();
    intruder.answer().unwrap();
    assert_eq!(ftruncate(&memory, 0), Err(Errno::PERM));
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    assert_eq!(fallocate(&memory, hole, 0, 1 << 17), Err(Errno::PERM));
    flow.try_send(b"still there").unwrap();
}

#[test]
fn a_side_that_says_nonsense_or_wakes_for_nothing_is_cut_off_alone() {
    let stack = Stack::new();
    let (mut good, mut served) = stack.pair(&Options::new(Kind::Datagram));
    for words in [&b"x"[..], b"wake up"] {
        let (client, mut flow) = stack.pair(&Options::new(Kind::Datagram));
        send(client.fd(), words, SendFlags::empty()).unwrap();
        let error = flow.receive(64, |_| ()).unwrap_err();
        assert!(matches!(error, Error::Hostile { .. }), "{error}");
        assert!(matches!(flow.try_send(b"x"), Err(Error::Hostile { .. })));
    }
    let (client, mut flow) = stack.pair(&Options::new(Kind::Datagram));
    let mut rounds = 0;
    while flow.receive(64, |_| ()).is_ok() {
        send(client.fd(), b"w", SendFlags::empty()).unwrap();
        rounds += 1;
        assert!(rounds < 10, "wakings for nothing are borne for ever");
    }
    // On the other socket, while nobody waits for room.
    for words in [&b"x"[..], b"w"] {
        let (client, mut flow) = stack.pair(&Options::new(Kind::Datagram));
        send(client.room_fd(), words, SendFlags::empty()).unwrap();
        let error = flow.hear_room().unwrap_err();
        assert!(matches!(error, Error::Hostile { .. }), "{error}");
    }
    good.send(b"still here", None).unwrap();
    assert_eq!(receive_all(&mut served), [b"still here"]);
}

/// Both ends of the pair were the application's, and it may have kept the stack's.
#[test]
fn who_keeps_the_stacks_socket_cannot_make_it_wait() {
    let stack = Stack::new();
    let intruder = Intruder::connect(&stack.path);
    let Greeting { words, memory, room: _room, theirs } = Greeting::sound(Kind::Datagram);
    intruder.say(&words, &[memory.as_fd(), theirs.as_fd()]);
    let mut flow = stack.attach().unwrap();
    fcntl_setfl(&theirs, OFlags::empty()).unwrap();
    fcntl_setfl(&intruder.control, OFlags::empty()).unwrap();
    let mut queue = packets(&vec![vec![0; 60_000]; 10]);
    assert_eq!(flow.send(&mut queue).unwrap(), Sent::Blocked);
    flow.hear_room().unwrap();
    assert_eq!(flow.receive(64, |_| ()).unwrap(), Received::All);
}
