//! A hostile manager: what it asks for beyond its rights is refused, and nothing happens.

use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use weft_launcher::protocol::{Command as Order, Limits, Outcome, Spec};
use weft_port::testing::privileged;

use crate::node::{Node, listener, name, spec};

#[test]
fn what_is_no_request_is_refused_and_the_launcher_lives_on() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    let garbage: [&[u8]; 9] = [
        b"{",
        b"\xff\xfe",
        b"null",
        br#"{"id":1}"#,
        br#"{"id":1,"command":"start"}"#,
        br#"{"id":1,"command":{"list":{}},"more":1}"#,
        br#"{"id":1,"command":{"list":{"uid":0}}}"#,
        br#"{"id":1,"command":{"drop":{"name":"../x"}}}"#,
        br#"{"id":1,"command":{"stop":{"instance":"-x","grace_ms":1}}}"#,
    ];
    for bytes in garbage {
        let (_, outcome) = node.say(bytes, &[]);
        assert!(matches!(outcome, Outcome::Refused { .. }), "{outcome:?}");
    }
    let long = vec![b' '; 61 * 1024];
    assert!(matches!(node.say(&long, &[]).1, Outcome::Refused { .. }));
    assert!(node.list().instances.is_empty());
}

#[test]
fn names_paths_groups_and_numbers_have_their_bounds() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    let directory = node.run_directory.clone();
    let outside = directory.with_file_name("outside.sock");
    let paths = [
        outside.clone(),
        directory.join("../outside.sock"),
        directory.join("state/one/x.sock"),
        directory.join(".hidden"),
        directory.join("launcher.lock"),
        "/etc/passwd".into(),
    ];
    for path in paths {
        let hostile = Spec { listeners: vec![listener(&path)], ..spec("one", "agent") };
        match node.ask(Order::Start(hostile)) {
            Outcome::Refused { error } => assert!(error.contains("run directory"), "{error}"),
            // The lock is in the run directory, and no socket.
            Outcome::Done {} => assert!(node.failed("one").contains("not a socket")),
            Outcome::Listing(_) | Outcome::Usage(_) => unreachable!(),
        }
    }
    assert!(!outside.exists());
    let mut group = node.agent("one");
    group.listeners[0].group = Some("shadow".to_owned());
    assert!(node.refused(Order::Start(group)).contains("group `shadow`"));
    let mut mode = node.agent("one");
    mode.listeners[0].mode = 0o4777;
    assert!(node.refused(Order::Start(mode)).contains("4777"));
    let limits = Limits { nice: Some(-20), ..Limits::default() };
    let nice = Spec { limits, ..spec("one", "agent") };
    assert!(node.refused(Order::Start(nice)).contains("niceness is -20"));
    let arguments = vec!["x".repeat(9_000)];
    let long = Spec { arguments, ..spec("one", "agent") };
    assert!(node.refused(Order::Start(long)).contains("arguments"));
    let number = Order::Signal { instance: name("manager"), number: 0 };
    assert!(node.refused(number).contains("signal is 0"));
}

#[test]
fn privileges_cannot_be_asked_for() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    assert!(node.refused(Order::Start(spec("x", "manager"))).contains("launcher alone"));
    assert!(node.refused(Order::Start(spec("manager", "agent"))).contains("launcher alone"));
    let arguments = vec!["--config=/etc/shadow".to_owned()];
    let fea = Spec { arguments, ..spec("fea", "fea") };
    assert!(node.refused(Order::Start(fea)).contains("takes no arguments"));
    node.start_instance(spec("fea", "fea"));
    assert!(node.refused(Order::Start(spec("fea2", "fea"))).contains("already"));
    assert!(node.refused(Order::Start(spec("fea", "fea"))).contains("runs already"));
}

#[test]
fn what_is_not_there_cannot_be_stopped_signalled_given_or_dropped() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    let nobody = || name("nobody");
    let orders = [
        Order::Stop { instance: nobody(), grace_ms: 0 },
        Order::Signal { instance: nobody(), number: 9 },
        Order::Give { name: nobody(), instance: nobody() },
        Order::Drop { name: nobody() },
        // No descriptor comes with it.
        Order::Keep { name: nobody(), instance: None },
    ];
    for order in orders {
        node.refused(order);
    }
    let file = std::fs::File::open("/dev/null").unwrap();
    let (list, fd) = (Order::List { after: None }, file.as_fd());
    let Outcome::Refused { error } = node.ask_with(list, &[fd]) else { panic!() };
    assert!(error.contains("number of descriptors"), "{error}");
}

#[test]
fn more_than_the_launcher_keeps_is_refused() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    let file = std::fs::File::open("/dev/null").unwrap();
    let mut refused = 0;
    for n in 0..140 {
        let order = Order::Keep { name: name(&format!("d{n}")), instance: None };
        if matches!(node.ask_with(order, &[file.as_fd()]), Outcome::Refused { .. }) {
            refused += 1;
        }
    }
    assert_eq!((refused, node.list().kept.len()), (12, 128));
    let many = [file.as_fd(); 8];
    let order = Order::Keep { name: name("many"), instance: None };
    assert!(matches!(node.ask_with(order, &many), Outcome::Refused { .. }));
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", node.launcher.id())).unwrap();
    assert!(descriptors.count() < 200);
}

#[test]
fn another_instances_socket_is_not_taken_and_no_other_processes() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    node.start_instance(node.agent("one"));
    let listeners = vec![listener(&node.path("one"))];
    node.order(Order::Start(Spec { listeners, ..spec("two", "agent") }));
    assert!(node.failed("two").contains("belongs to one"));
    // A live socket that is not the launcher's.
    let path = node.path("three");
    let theirs = UnixListener::bind(&path).unwrap();
    let before = std::fs::metadata(&path).unwrap().ino();
    node.order(Order::Start(node.agent("three")));
    assert!(node.failed("three").contains("another process listens"));
    assert_eq!(std::fs::metadata(&path).unwrap().ino(), before);
    // A stale one is replaced.
    drop(theirs);
    // Another test may be starting a process, which has a copy until it executes its program.
    while UnixStream::connect(&path).is_ok() {
        std::thread::sleep(Duration::from_millis(1));
    }
    node.start_instance(node.agent("three"));
    assert!(!node.talk("three").ask("state").is_empty());
}
