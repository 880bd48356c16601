//! What an ordinary user gets, and root of a user namespace: the same processes with less between them,
//! and the list of what is missing.

use weft_launcher::protocol::{Limits, Spec, State};

use crate::node::{Node, signal, wait, watch};
use std::os::fd::AsFd;

/// What makes an ordinary user of root.
const NOBODY: u32 = 65_534;

fn by_an_ordinary_user() -> Node {
    if rustix::process::geteuid().is_root() {
        let (uid, gid) = (format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"));
        return Node::start_by(&["setpriv", &uid, &gid, "--clear-groups"], Some(NOBODY));
    }
    Node::start()
}

fn field(pid: i32, name: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().trim_start_matches(':').trim().to_owned()
}

/// What holds everywhere: a sandbox, no privilege, lives and deaths.
fn check(node: &mut Node) {
    let one = node.agent("one");
    let pid = node.start_instance(one.clone());
    let talk = node.talk("one");
    assert_eq!(talk.ask("missing"), "nothing");
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(field(pid, set), "0000000000000000", "{set}");
    }
    assert_eq!((field(pid, "NoNewPrivs"), field(pid, "Seccomp")), ("1".to_owned(), "2".to_owned()));
    assert_eq!(talk.ask("read /etc/passwd"), "error 13");
    assert_eq!(talk.ask(&format!("call {} 2 1 0", libc::SYS_socket)), "error 1");
    // The same user, and still out of reach.
    let other = node.start_instance(node.agent("two"));
    assert_eq!(talk.ask(&format!("call {} {other} 9", libc::SYS_kill)), "error 1");
    let state = node.talk("two").ask("state");
    assert_eq!(talk.ask(&format!("list {state}")), "error 13");
    talk.send("exit 1");
    assert_eq!(node.exited("one").status, Some(1));
    assert!(matches!(node.instance("one").unwrap().state, State::Ended { .. }));
    let pid = node.start_instance(one);
    let ends = [pid, other, node.manager_pid()].map(watch);
    signal(node.launcher.id() as i32, rustix::process::Signal::KILL);
    for end in ends {
        wait(end.as_fd());
    }
    // The next node in the same place begins anew, and tidies up.
    node.restart();
    assert!(node.list().instances.is_empty());
    assert_eq!(node.end(), Some(0));
}

#[test]
fn an_ordinary_user_runs_a_node_and_is_told_what_isolation_is_missing() {
    let mut node = by_an_ordinary_user();
    let missing = node.list().missing.join("\n");
    assert!(missing.contains("no process has a user of its own"), "{missing}");
    check(&mut node);
}

#[test]
fn root_of_a_user_namespace_runs_a_node_without_users() {
    let entered = std::process::Command::new("unshare").args(["-r", "true"]).status();
    if !entered.is_ok_and(|status| status.success()) {
        return weft_port::testing::lacks("user namespaces");
    }
    let mut node = Node::start_by(&["unshare", "-r"], None);
    let missing = node.list().missing.join("\n");
    assert!(missing.contains("no process has a user of its own"), "{missing}");
    check(&mut node);
}

#[test]
fn without_control_groups_the_address_space_is_limited() {
    let mut node = by_an_ordinary_user();
    if !node.list().missing.iter().any(|text| text.contains("address space")) {
        // This user has control groups, and tests/node/limits.rs says the rest.
        return;
    }
    let limits = Limits { memory: Some(64 << 20), ..Limits::default() };
    node.start_instance(Spec { limits, ..node.agent("leaky") });
    node.talk("leaky").send("leak");
    assert_eq!(node.exited("leaky").signal, Some(libc::SIGABRT));
}
