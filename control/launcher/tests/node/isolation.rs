//! What a process has and may do after it entered its sandbox.

use std::collections::BTreeMap;
use std::path::Path;

use weft_launcher::protocol::Spec;
use weft_port::testing::privileged;

use crate::node::{Node, listener};

/// The answers of the kernel's two watchmen.
const EPERM: &str = "error 1";
const EACCES: &str = "error 13";

/// The fields of /proc/PID/task/TID/status of each thread of a process.
fn threads(pid: i32) -> Vec<BTreeMap<String, String>> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let read = |task: std::fs::DirEntry| {
        let text = std::fs::read_to_string(task.path().join("status")).unwrap();
        let field = |line: &str| {
            let (name, value) = line.split_once(':').unwrap();
            let words: Vec<_> = value.split_whitespace().collect();
            (name.to_owned(), words.join(" "))
        };
        text.lines().map(field).collect()
    };
    tasks.flatten().map(read).collect()
}

const NOTHING: &str = "0000000000000000";

fn check(thread: &BTreeMap<String, String>, capabilities: &str) {
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(thread[set], capabilities, "{set} of {}", thread["Name"]);
    }
    assert_eq!((thread["NoNewPrivs"].as_str(), thread["Seccomp"].as_str()), ("1", "2"));
    assert_eq!(thread["Groups"], "");
    let ids: Vec<_> = thread["Uid"].split(' ').chain(thread["Gid"].split(' ')).collect();
    assert!(ids.iter().all(|id| id.parse::<u32>().unwrap() >= 1_900_000_000), "{ids:?}");
}

/// An agent in the place of a process of another class.
fn of_class(node: &Node, class: &str) -> Spec {
    let class = class.parse().unwrap();
    Spec { class, ..node.agent("one") }
}

#[test]
fn every_thread_has_a_user_of_its_own_and_no_privilege() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    let one = node.start_instance(node.agent("one"));
    let two = node.start_instance(node.agent("two"));
    let talk = node.talk("one");
    talk.ask("thread");
    assert_eq!(talk.ask("missing"), "nothing");
    assert_eq!(node.talk("two").ask("missing"), "nothing");
    // The manager has answered, so it is in its sandbox, too.
    let (one, two, manager) = (threads(one), threads(two), threads(node.manager_pid()));
    assert_eq!(one.len(), 2);
    for thread in one.iter().chain(&two).chain(&manager) {
        check(thread, NOTHING);
    }
    let mut users: Vec<_> = [&one, &two, &manager].map(|threads| threads[0]["Uid"].clone()).into();
    users.dedup();
    assert_eq!(users.len(), 3, "{users:?}");
    assert_eq!(one[0]["Name"], "weft-one");
    let listed = node.instance("one").unwrap();
    assert!(one[0]["Uid"].starts_with(&listed.uid.unwrap().to_string()));
    // The launcher has what its work and the FEA's need: nothing to mount, trace or load modules with.
    let launcher = &threads(node.launcher.id() as i32)[0];
    let has = u64::from_str_radix(&launcher["CapPrm"], 16).unwrap();
    for (number, name) in
        [(16, "SYS_MODULE"), (17, "SYS_RAWIO"), (19, "SYS_PTRACE"), (21, "SYS_ADMIN")]
    {
        assert_eq!(has >> number & 1, 0, "CAP_{name}");
    }
    // What the agents lack because of this machine, the launcher said.
    assert!(!node.list().missing.iter().any(|text| text.contains("has a user of its own")));
}

#[test]
fn the_fea_alone_has_capabilities_and_can_use_them() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    let fea = of_class(&node, "fea");
    let pid = node.start_instance(fea);
    let talk = node.talk("one");
    assert_eq!(talk.ask("missing"), "nothing");
    for thread in threads(pid) {
        // CAP_NET_BIND_SERVICE 10, CAP_NET_ADMIN 12, CAP_NET_RAW 13, CAP_IPC_LOCK 14, CAP_SYS_NICE 23, CAP_PERFMON 38, CAP_BPF 39.
        check(&thread, "000000c000807400");
    }
    let socket = libc::SYS_socket;
    for family in [libc::AF_PACKET, libc::AF_NETLINK, libc::AF_INET, libc::AF_INET6] {
        let said = talk.ask(&format!("call {socket} {family} {} 0", libc::SOCK_RAW));
        let expected =
            if family == libc::AF_INET || family == libc::AF_INET6 { "error 93" } else { "ok" };
        assert!(said.starts_with(expected), "{family}: {said}");
    }
    // Programs for tc (3) and XDP (6); maps: hash (1), array (2) is of other keys, LPM trie (11).
    for kind in [3, 6] {
        assert!(talk.ask(&format!("load {kind}")).starts_with("ok"), "{kind}");
    }
    for (kind, flags) in [(1, 0), (11, 1)] {
        assert!(talk.ask(&format!("map {kind} {flags}")).starts_with("ok"), "{kind}");
    }
    assert_eq!(talk.ask("read /etc/passwd"), EACCES);
    assert!(talk.ask("read /proc/sys/net/ipv4/ip_forward").starts_with("ok"));
}

#[test]
fn what_a_component_has_no_use_for_is_refused() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    node.start_instance(node.agent("one"));
    let talk = node.talk("one");
    let launcher = node.launcher.id();
    let families = [libc::AF_INET, libc::AF_INET6, libc::AF_PACKET, libc::AF_NETLINK, libc::AF_XDP];
    let mut calls: Vec<_> = families
        .iter()
        .map(|family| format!("call {} {family} {} 0", libc::SYS_socket, libc::SOCK_DGRAM))
        .collect();
    calls.extend([
        format!("call {} {launcher} 9", libc::SYS_kill),
        format!("call {} -1 9", libc::SYS_kill),
        format!("call {} {launcher} {launcher} 9", libc::SYS_tgkill),
        format!("call {} {launcher} 0", libc::SYS_pidfd_open),
        // Fork, and a thread in a namespace of its own.
        format!("call {} {}", libc::SYS_clone, libc::SIGCHLD),
        format!("call {} {}", libc::SYS_clone, libc::CLONE_THREAD | libc::CLONE_NEWUSER),
        // To outlive the launcher; to be traced by others.
        format!("call {} {} 0", libc::SYS_prctl, libc::PR_SET_PDEATHSIG),
        format!("call {} {} -1", libc::SYS_prctl, libc::PR_SET_PTRACER),
        // To have signals sent for it.
        format!("call {} 0 {} {launcher}", libc::SYS_fcntl, libc::F_SETOWN),
        format!("call {} 0 4096 7 34 -1 0", libc::SYS_mmap),
        format!("call {} 0 0 0", libc::SYS_setresuid),
        format!("call {} @00 511", libc::SYS_fchmodat),
        format!("call {} {launcher} 7 0 0", libc::SYS_prlimit64),
        format!("call {} 1", libc::SYS_personality),
        "load 3".to_owned(),
        "map 1 0".to_owned(),
    ]);
    for call in calls {
        assert_eq!(talk.ask(&call), EPERM, "{call}");
    }
    // So that the C library makes threads in the older way.
    assert_eq!(talk.ask(&format!("call {} 0 0", libc::SYS_clone3)), "error 38");
}

#[test]
fn what_only_an_attacker_does_ends_the_process_and_the_launcher_says_so() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    let calls = [
        libc::SYS_execve,
        libc::SYS_ptrace,
        libc::SYS_mount,
        libc::SYS_setns,
        libc::SYS_unshare,
        libc::SYS_io_uring_setup,
        libc::SYS_process_vm_readv,
        libc::SYS_pidfd_getfd,
    ];
    for call in calls {
        node.start_instance(node.agent("one"));
        assert_eq!(node.talk("one").try_ask(&format!("call {call}")), None);
        let exit = node.exited("one");
        assert_eq!(exit.signal, Some(libc::SIGSYS), "{call}");
        assert!(exit.cause.unwrap().contains("seccomp filter"));
    }
}

#[test]
fn files_are_out_of_reach_but_its_own() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    node.start_instance(node.agent("one"));
    node.start_instance(node.agent("two"));
    let talk = node.talk("one");
    let (own, other) = (talk.ask("state"), node.talk("two").ask("state"));
    assert_eq!(talk.ask(&format!("write {own}/file")), "ok 1");
    assert_eq!(talk.ask(&format!("read {own}/file")), "ok 1");
    let configuration = node.run_directory.with_extension("conf");
    std::fs::write(configuration.join("node.conf"), "secret").unwrap();
    for path in [
        "/etc/passwd".to_owned(),
        "/etc/shadow".to_owned(),
        "/proc/1/status".to_owned(),
        "/sys/kernel/uevent_seqnum".to_owned(),
        "/dev/null".to_owned(),
        format!("{}/node.conf", configuration.display()),
        format!("{other}/file"),
    ] {
        assert_eq!(talk.ask(&format!("read {path}")), EACCES, "{path}");
    }
    for path in ["/", "/etc", &node.run_directory.display().to_string()] {
        assert_eq!(talk.ask(&format!("list {path}")), EACCES, "{path}");
    }
    for path in
        ["/tmp/weft-is-not-allowed-to", "/dev/null", &format!("{}/x", node.run_directory.display())]
    {
        assert_eq!(talk.ask(&format!("write {path}")), EACCES, "{path}");
    }
    // Neither can others of the machine see what is its own.
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(&own).unwrap();
    assert_eq!(
        (found.mode() & 0o777, Some(found.uid())),
        (0o700, node.instance("one").unwrap().uid)
    );
    assert!(Path::new(&own).join("file").exists());
}

#[test]
fn a_program_of_others_may_execute_and_nothing_else() {
    if !privileged() {
        return;
    }
    for class in ["program", "application"] {
        check_program(class);
    }
}

fn check_program(class: &str) {
    let mut node = Node::start();
    let program = of_class(&node, class);
    let pid = node.start_instance(program);
    let talk = node.talk("one");
    assert_eq!(talk.ask("missing"), "nothing");
    check(&threads(pid)[0], NOTHING);
    assert_eq!(talk.ask("run /bin/true"), "ok 0");
    assert!(talk.ask("read /etc/passwd").starts_with("ok"));
    let own = talk.ask("state");
    assert_eq!(talk.ask(&format!("write {own}/file")), "ok 1");
    assert_eq!(talk.ask("write /tmp/weft-x"), EACCES);
    assert_eq!(talk.ask("read /etc/shadow"), EACCES);
    let x32 = 0x4000_0000;
    let mut calls = vec![
        format!("call {} {} 1 0", libc::SYS_socket, libc::AF_INET),
        format!("call {} {} 3 0", libc::SYS_socket, libc::AF_PACKET),
        format!("call {}", libc::SYS_mount),
        format!("call {} {}", libc::SYS_unshare, libc::CLONE_NEWUSER),
        format!("call {} {}", libc::SYS_clone, libc::CLONE_NEWUSER | libc::SIGCHLD),
        format!("call {} {} 0", libc::SYS_prctl, libc::PR_SET_PDEATHSIG),
        // Signals stay among itself: this is the launcher.
        format!("call {} {} 0", libc::SYS_kill, node.launcher.id()),
        "load 3".to_owned(),
    ];
    if cfg!(target_arch = "x86_64") {
        calls.push(format!("call {} {} 1 0", libc::SYS_socket | x32, libc::AF_INET));
    }
    for call in calls {
        assert_eq!(talk.ask(&call), EPERM, "{call}");
    }
}

#[test]
fn nobody_but_the_nodes_own_connects_where_only_they_may() {
    if !privileged() {
        return;
    }
    use std::os::unix::fs::MetadataExt;
    let mut node = Node::start();
    let mut one = node.agent("one");
    one.listeners[0].mode = 0o660;
    one.listeners.push(listener(&node.path("public")));
    one.listeners[1].mode = 0o666;
    node.start_instance(one);
    let found = std::fs::metadata(node.path("one")).unwrap();
    let group = std::fs::metadata(format!("/proc/{}", node.manager_pid())).unwrap().gid();
    assert_eq!((found.mode() & 0o777, found.uid(), found.gid()), (0o660, 0, group));
    assert_eq!(std::fs::metadata(node.path("public")).unwrap().mode() & 0o777, 0o666);
}
