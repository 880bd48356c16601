//! What outlives a process: its listening sockets, and descriptors that are kept.

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{MemfdFlags, memfd_create};
use weft_launcher::protocol::{Command as Order, State};
use weft_port::testing::privileged;

use crate::node::{Node, name};

fn memory(content: &str) -> OwnedFd {
    let mut file = std::fs::File::from(memfd_create("test", MemfdFlags::CLOEXEC).unwrap());
    file.write_all(content.as_bytes()).unwrap();
    file.into()
}

#[test]
fn connections_wait_while_a_process_is_started_anew() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    let one = node.agent("one");
    let pid = node.start_instance(one.clone());
    node.talk("one").send("exit 1");
    node.exited("one");
    // Nobody accepts now, and nobody is refused.
    let waiting: Vec<_> = (0..3).map(|_| node.talk("one")).collect();
    waiting[0].send("state");
    assert!(matches!(node.instance("one").unwrap().state, State::Ended { .. }));
    assert_ne!(node.start_instance(one), pid);
    assert!(waiting[0].answer().unwrap().ends_with("state/one"));
}

#[test]
fn kept_descriptors_outlive_who_made_them_and_are_handed_over_again() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    let kept = memory("a link");
    node.ask_with(Order::Keep { name: name("link"), instance: None }, &[kept.as_fd()]);
    node.order(Order::Give { name: name("link"), instance: name("one") });
    drop(kept);
    for _ in 0..2 {
        node.start_instance(node.agent("one"));
        assert_eq!(node.talk("one").ask("kept"), "kept link=a link");
        node.order(Order::Signal { instance: name("one"), number: 9 });
        assert_eq!(node.exited("one").signal, Some(9));
    }
    // Another one in its place goes to the same instance; others get none.
    node.ask_with(Order::Keep { name: name("link"), instance: None }, &[memory("new").as_fd()]);
    node.start_instance(node.agent("one"));
    node.start_instance(node.agent("two"));
    assert_eq!(node.talk("one").ask("kept"), "kept link=new");
    assert_eq!(node.talk("two").ask("kept"), "kept ");
    let listed = node.list().kept;
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].instance, Some(name("one")));
    node.order(Order::Drop { name: name("link") });
    assert!(node.list().kept.is_empty());
}

#[test]
fn a_child_has_its_descriptors_and_its_environment_and_no_others() {
    if !privileged() {
        return;
    }
    // This one is open in the launcher, too, and not marked to be closed by exec.
    let foreign = memory("foreign");
    rustix::io::fcntl_setfd(&foreign, rustix::io::FdFlags::empty()).unwrap();
    let mut node = Node::start();
    node.start_instance(node.agent("one"));
    let talk = node.talk("one");
    let descriptors = talk.ask("descriptors");
    assert!(!descriptors.contains("memfd"), "{descriptors}");
    let sockets = descriptors.matches("socket:").count();
    assert_eq!(sockets, 2, "the listener and this connection: {descriptors}");
    assert!(descriptors.contains("/dev/null"), "{descriptors}");
    let environment = talk.ask("environment");
    assert_eq!(environment, "WEFT_SANDBOX");
}
