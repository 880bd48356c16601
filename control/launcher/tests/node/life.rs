//! Starting, ending, adopting: who outlives whom.

use rustix::process::Signal;
use std::os::fd::AsFd;
use weft_launcher::Secret;
use weft_launcher::protocol::{Command as Order, Outcome, Spec, State};
use weft_port::testing::privileged;

use crate::node::{Node, name, signal, wait, watch};

#[test]
fn an_instance_is_started_listed_and_its_end_is_told() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    let mut one = node.agent("one");
    one.secret = Secret::new(std::array::from_fn(|n| n as u8));
    let pid = node.start_instance(one.clone());
    let listed = node.instance("one").unwrap();
    assert_eq!(listed.spec, one);
    assert!(
        matches!(listed.state, State::Running { pid: p, stopping: false, since } if p == pid && since > 0)
    );
    let talk = node.talk("one");
    assert_eq!(talk.ask("secret"), format!("{:?}", one.secret.bytes()));
    talk.send("exit 3");
    assert_eq!(node.exited("one").status, Some(3));
    let ended = node.instance("one").unwrap();
    assert!(
        matches!(ended.state, State::Ended { pid: p, exit } if p == pid && exit.status == Some(3))
    );
    assert!(node.start_instance(one) != pid);
}

#[test]
fn what_every_process_uses_is_told() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    let pid = node.start_instance(node.agent("one"));
    let Outcome::Usage(all) = node.ask(Order::Usage {}) else { panic!() };
    let names: Vec<_> = all.iter().map(|one| one.instance.as_str()).collect();
    assert_eq!(names, ["launcher", "manager", "one"]);
    assert_eq!(all[2].pid, pid);
    assert!(all.iter().all(|one| one.memory > 0 && one.since > 0 && one.restarts == 0), "{all:?}");
    let end = watch(node.manager_pid());
    signal(node.manager_pid(), Signal::KILL);
    wait(end.as_fd());
    node.connect();
    let Outcome::Usage(all) = node.ask(Order::Usage {}) else { panic!() };
    assert_eq!(all[1].restarts, 1);
}

#[test]
fn what_is_stopped_is_forgotten_and_what_ignores_it_is_killed() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    node.start_instance(node.agent("one"));
    node.order(Order::Stop { instance: name("one"), grace_ms: 600_000 });
    assert_eq!(node.exited("one").signal, Some(15));
    assert!(node.instance("one").is_none() && !node.path("one").exists());
    let pid = node.start_instance(node.agent("two"));
    // It cannot act on SIGTERM now.
    node.order(Order::Signal { instance: name("two"), number: 19 });
    node.order(Order::Stop { instance: name("two"), grace_ms: 0 });
    assert_eq!(node.exited("two").signal, Some(9));
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn everything_outlives_the_manager_and_the_next_one_learns_of_it() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    let one = node.agent("one");
    let pid = node.start_instance(one.clone());
    node.start_instance(node.agent("two"));
    let (talk, two) = (node.talk("one"), node.talk("two"));
    let manager = node.manager_pid();
    let end = watch(manager);
    signal(manager, Signal::STOP);
    two.send("exit 5");
    signal(manager, Signal::KILL);
    wait(end.as_fd());
    node.connect();
    let again = node.instance("one").unwrap();
    assert_eq!(again.spec, one);
    assert!(matches!(again.state, State::Running { pid: p, .. } if p == pid));
    while !matches!(node.instance("two").unwrap().state, State::Ended { .. }) {}
    let State::Ended { exit, .. } = node.instance("two").unwrap().state else { unreachable!() };
    assert_eq!(exit.status, Some(5));
    assert!(!talk.ask("state").is_empty());
    assert!(node.manager_pid() != manager);
}

#[test]
fn nothing_outlives_the_launcher() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    let fea = Spec { class: name("fea"), ..node.agent("fea") };
    let program = Spec { class: name("program"), ..node.agent("program") };
    let mut pids = vec![node.manager_pid()];
    for spec in [node.agent("one"), fea, program] {
        let instance = spec.instance.to_string();
        pids.push(node.start_instance(spec));
        // It has executed, and entered its sandbox.
        assert_eq!(node.talk(&instance).ask("missing"), "nothing");
    }
    let ends: Vec<_> = pids.into_iter().map(watch).collect();
    signal(node.launcher.id() as i32, Signal::KILL);
    for end in ends {
        wait(end.as_fd());
    }
    // The next node begins anew: sockets and folders of the dead one are no obstacle.
    node.restart();
    assert!(node.list().instances.is_empty());
    node.start_instance(node.agent("one"));
    assert!(!node.talk("one").ask("state").is_empty());
}

#[test]
fn a_node_that_is_ended_leaves_nothing() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    let pids = [node.start_instance(node.agent("one")), node.manager_pid()];
    let ends = pids.map(watch);
    assert_eq!(node.end(), Some(0));
    for end in ends {
        wait(end.as_fd());
    }
    let left = std::fs::read_dir(&node.run_directory).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name().into_string().unwrap()).collect();
    assert!(!left.iter().any(|name| name.ends_with(".sock")), "{left:?}");
}

#[test]
fn a_manager_that_does_not_stay_alive_ends_the_node_with_a_reason() {
    if !privileged() {
        return;
    }
    let mut node = Node::begin(|command| {
        command.env("TRIAL_MANAGER", "status 4").stderr(std::process::Stdio::piped());
    });
    let mut said = String::new();
    std::io::Read::read_to_string(&mut node.launcher.stderr.take().unwrap(), &mut said).unwrap();
    assert_eq!(node.launcher.wait().unwrap().code(), Some(1));
    assert!(said.contains("died 3 times in a row") && said.contains("status 4"), "{said}");
}

#[test]
fn a_second_launcher_does_not_take_the_run_directory() {
    if !privileged() {
        return;
    }
    let node = Node::start();
    let second = std::process::Command::new(crate::node::BINARY)
        .arg("launcher")
        .arg(&node.run_directory)
        .output()
        .unwrap();
    let said = String::from_utf8(second.stderr).unwrap();
    assert!(said.contains("another node runs in"), "{said}");
}

#[test]
fn a_node_of_many_large_instances_is_listed_in_pages() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    let arguments = vec!["\"".repeat(4_000), "\\".repeat(4_000)];
    for n in 0..9 {
        let name = format!("i{n}");
        let spec = Spec { arguments: arguments.clone(), ..crate::node::spec(&name, "agent") };
        node.start_instance(spec);
    }
    let Outcome::Listing(first) = node.ask(Order::List { after: None }) else { panic!() };
    assert!(first.more && !first.instances.is_empty() && first.instances.len() < 9);
    let all = node.list().instances;
    let names: Vec<_> = all.iter().map(|one| one.spec.instance.as_str()).collect();
    assert_eq!(names, ["i0", "i1", "i2", "i3", "i4", "i5", "i6", "i7", "i8"]);
    assert!(all.iter().all(|one| one.spec.arguments == arguments));
}

#[test]
fn a_manager_that_does_not_read_is_served_when_it_does() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    // More answers than the launcher queues and the socket holds.
    let count = 3_000;
    let requests: Vec<_> =
        (0..count).map(|n| format!(r#"{{"id":{n},"command":{{"list":{{}}}}}}"#)).collect();
    let mut answered = 0;
    for request in &requests {
        answered += node.say_later(request.as_bytes());
    }
    while answered < count {
        node.reply();
        answered += 1;
    }
    assert!(!node.manager_pid().to_string().is_empty());
}

#[test]
fn what_a_program_started_ends_with_it() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    let mut commands = vec!["spawn /bin/sleep 100000"];
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    if mounts.contains(" - cgroup2 ") {
        // In a session of its own only the control group holds it.
        commands.push("spawn /usr/bin/setsid /bin/sleep 100000");
    }
    for command in commands {
        let program = Spec { class: name("program"), ..node.agent("program") };
        node.start_instance(program);
        let talk = node.talk("program");
        let said = talk.ask(command);
        let child = watch(said.strip_prefix("ok ").unwrap().parse().unwrap());
        talk.send("exit 0");
        assert_eq!(node.exited("program").status, Some(0));
        wait(child.as_fd());
    }
}
