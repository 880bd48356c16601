//! What a process may use: one that runs wild meets its own limits.

use std::path::PathBuf;

use weft_launcher::protocol::{Limits, Spec};
use weft_port::testing::privileged;

use crate::node::{Node, spec};

/// The folders of a process's control groups, in whatever hierarchies there are.
fn groups(pid: i32) -> Vec<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let paths: Vec<_> = groups.lines().filter_map(|line| line.splitn(3, ':').nth(2)).collect();
    let points = mounts.lines().filter(|line| line.contains(" - cgroup"));
    let points = points.filter_map(|line| line.split(' ').nth(4));
    let all = points.flat_map(|point| paths.iter().map(move |path| format!("{point}{path}")));
    all.map(PathBuf::from).filter(|path| path.is_dir()).collect()
}

/// What a file of one of the groups holds, the first that is there.
fn setting(pid: i32, files: &[&str]) -> Option<String> {
    let groups = groups(pid);
    let candidates = groups.iter().flat_map(|group| files.iter().map(move |file| group.join(file)));
    let named = candidates.filter(|path| path.to_string_lossy().contains("/weft-"));
    named.filter_map(|path| std::fs::read_to_string(path).ok()).next()
}

#[test]
fn a_leak_ends_the_process_that_has_it_and_no_other() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    let limits = Limits { memory: Some(64 << 20), ..Limits::default() };
    node.start_instance(Spec { limits, ..node.agent("leaky") });
    let other = node.start_instance(node.agent("other"));
    let grouped = !node.list().missing.iter().any(|text| text.contains("`memory`"));
    let talk = node.talk("leaky");
    talk.send("leak");
    let exit = node.exited("leaky");
    if grouped {
        assert_eq!(exit.signal, Some(libc::SIGKILL));
        assert!(exit.cause.unwrap().contains("memory"));
    } else {
        // The address space is limited: an allocation failed.
        assert_eq!(exit.signal, Some(libc::SIGABRT));
    }
    assert!(!node.talk("other").ask("state").is_empty());
    assert!(PathBuf::from(format!("/proc/{other}")).exists());
}

#[test]
fn processor_time_threads_and_descriptors_are_limited() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    let limits = Limits {
        memory: Some(256 << 20),
        processor_weight: Some(50),
        processor_percent: Some(80),
        threads: Some(47),
        descriptors: Some(100),
        nice: Some(3),
    };
    let pid = node.start_instance(Spec { limits, ..node.agent("one") });
    let missing = node.list().missing.join(" ");
    let has = |controller: &str| !missing.contains(&format!("`{controller}`"));
    if has("cpu") {
        let weight = setting(pid, &["cpu.weight", "cpu.shares"]).unwrap();
        assert!(["50", "512"].contains(&weight.trim()), "{weight}");
        let quota = setting(pid, &["cpu.max", "cpu.cfs_quota_us"]).unwrap();
        assert!(["80000 100000", "80000"].contains(&quota.trim()), "{quota}");
    }
    if has("memory") {
        let memory = setting(pid, &["memory.max", "memory.limit_in_bytes"]).unwrap();
        assert_eq!(memory.trim(), (256 << 20).to_string());
    }
    if has("pids") {
        assert_eq!(setting(pid, &["pids.max"]).unwrap().trim(), "47");
    }
    let text = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let limit = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(limit("Max open files"), "100");
    assert_eq!(limit("Max processes"), "47");
    assert_eq!(limit("Max core file size"), "0");
    let pid = rustix::process::Pid::from_raw(pid);
    assert_eq!(rustix::process::getpriority_process(pid).unwrap(), 3);
}

#[test]
fn an_endless_loop_leaves_the_others_and_the_launcher_their_share() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    let limits = Limits { processor_percent: Some(20), ..Limits::default() };
    let pid = node.start_instance(Spec { limits, ..node.agent("wild") });
    node.start_instance(spec("quiet", "agent"));
    node.talk("wild").send("loop");
    if setting(pid, &["cpu.stat"]).is_some() {
        // The kernel has held it back, which is to be seen in its statistics.
        let held_back = || {
            let text = setting(pid, &["cpu.stat"]).unwrap();
            let count = text.lines().find_map(|line| line.strip_prefix("nr_throttled "));
            count.is_some_and(|count| count.trim() != "0")
        };
        while !held_back() {
            std::thread::yield_now();
        }
    }
    let number = libc::SIGKILL;
    let instance = "wild".parse().unwrap();
    node.order(weft_launcher::protocol::Command::Signal { instance, number });
    assert_eq!(node.exited("wild").signal, Some(number));
}
