//! The processes of a running node: what each of them may, and how they are called.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use weft_port::testing::privileged;

use crate::support::{Done, Running, directory, finish, node_file, weft};

/// A running node without interfaces.
pub(crate) struct Node {
    directory: tempfile::TempDir,
    launcher: Running,
}

impl Node {
    pub(crate) fn start() -> Self {
        Self::with("principal hid; principal xdp;")
    }

    /// One with these statements.
    pub(crate) fn with(statements: &str) -> Self {
        let node = Self::begin(statements, |_| {});
        node.launcher.wait_for("node r1: 3 processes run");
        node
    }

    /// Starts it by a changed command, and waits for nothing.
    pub(crate) fn begin(statements: &str, change: impl FnOnce(&mut Command)) -> Self {
        let directory = directory();
        let file = node_file(directory.path(), "r1", statements);
        let run = directory.path().join("run");
        let mut command = weft([Path::new("run"), &file, Path::new("--run-dir"), &run]);
        change(&mut command);
        Self { directory, launcher: Running::start(command) }
    }

    /// Waits for a line of its log.
    pub(crate) fn wait_for(&self, text: &str) {
        self.launcher.wait_for(text);
    }

    /// Tells it to end.
    pub(crate) fn end(&self) {
        let pid = Pid::from_raw(self.launcher.pid().cast_signed()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
    }

    pub(crate) fn run_directory(&self) -> PathBuf {
        self.directory.path().join("run")
    }

    pub(crate) fn call(&self, arguments: &[&str]) -> Done {
        self.run("call", arguments)
    }

    /// A command to this node.
    pub(crate) fn command(&self, command: &str, arguments: &[&str]) -> Command {
        let mut command = weft([command]);
        command.args(arguments).arg("--run-dir").arg(self.run_directory());
        command.current_dir(self.directory.path());
        command
    }

    /// What a command to this node leaves.
    pub(crate) fn run(&self, command: &str, arguments: &[&str]) -> Done {
        finish(self.command(command, arguments))
    }

    /// Waits for something that will come; a test that hangs is ended by whoever runs it.
    pub(crate) fn wait_until(&self, come: impl Fn() -> bool) {
        while !come() {
            std::thread::yield_now();
        }
    }

    /// Name and process id of every process but the launcher.
    pub(crate) fn processes(&self) -> Vec<(String, u32)> {
        let mut processes: Vec<_> = children(self.launcher.pid())
            .into_iter()
            .filter_map(|pid| {
                let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
                let words: Vec<_> = line.split(|byte| *byte == 0).collect();
                let at = words.iter().position(|word| *word == b"component")?;
                Some((String::from_utf8_lossy(words[at + 1]).into_owned(), pid))
            })
            .collect();
        processes.sort();
        processes
    }
}

fn children(pid: u32) -> Vec<u32> {
    let all = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    all.split_whitespace().map(|child| child.parse().unwrap()).collect()
}

/// A field of `status` of every thread of a process; each must be there.
fn of_threads(pid: u32, field: &str) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    threads
        .map(|thread| {
            let status = fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix(&format!("{field}:")));
            line.unwrap().split_whitespace().next().unwrap().to_owned()
        })
        .collect()
}

#[test]
fn only_the_launcher_and_the_fea_hold_anything() {
    if !privileged() {
        return;
    }
    let node = Node::start();
    let processes = node.processes();
    let names: Vec<_> = processes.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["fea", "finder", "manager", "xia"]);
    let mut users = BTreeSet::new();
    for (name, pid) in &processes {
        let all_are = |field: &str, expected: &str| {
            for found in of_threads(*pid, field) {
                assert_eq!(found, expected, "{name}: {field}");
            }
        };
        // CAP_NET_BIND_SERVICE 10, CAP_NET_ADMIN 12, CAP_NET_RAW 13, CAP_IPC_LOCK 14, CAP_SYS_NICE 23, CAP_PERFMON 38, CAP_BPF 39.
        let powers = if name == "fea" { "000000c000807400" } else { "0000000000000000" };
        for field in ["CapEff", "CapPrm", "CapBnd"] {
            all_are(field, powers);
        }
        all_are("NoNewPrivs", "1");
        all_are("Seccomp", "2");
        let uids: BTreeSet<_> = of_threads(*pid, "Uid").into_iter().collect();
        assert_eq!(uids.len(), 1, "{name}: {uids:?}");
        assert!(!uids.contains("0"), "{name} is root");
        assert!(users.is_disjoint(&uids), "{name} shares its user");
        users.extend(uids);
    }
}

#[test]
fn the_components_of_a_node_are_called_from_the_command_line() {
    if !privileged() {
        return;
    }
    let node = Node::start();
    let done = node.call(&["finder://xia/xia/1.0/show?what:txt=principals"]);
    assert_eq!(done.status, Some(0), "{done:?}");
    assert!(done.stdout.starts_with("json:txt=%7B%22hid%22:"), "{}", done.stdout);
    let done = node.call(&["--list", "xia"]);
    assert!(done.stdout.contains("finder://xia/xia/1.0/show?[what:txt]->json:txt"), "{done:?}");

    // All calls are read before the first is made.
    let done = node.call(&["finder://xia/xia/1.0/show", "finder://xia/xia/1.0"]);
    done.expect_failure(&["the method is missing", "^"]);
    assert_eq!(done.stdout, "");

    // The first that fails ends it, unless it is told to go on.
    let calls = "# What fails is named.\nfinder://xia/xia/1.0/show?what:txt=x\n\nfinder://xia/xia/1.0/show\n";
    fs::write(node.directory.path().join("calls.txt"), calls).unwrap();
    let done = node.call(&["--file", "calls.txt"]);
    done.expect_failure(&["calls.txt, line 2", "102 COMMAND_FAILED", "there is no `x` to show"]);
    assert_eq!(done.stdout, "");
    let done = node.call(&["--file", "calls.txt", "--keep-going"]);
    done.expect_failure(&["102 COMMAND_FAILED"]);
    assert!(done.stdout.starts_with("json:txt="), "{done:?}");

    for (call, parts) in [
        ("finder://bgp/bgp/1.0/x", ["201 RESOLVE_FAILED", "there are: fea, manager, xia"]),
        ("finder://xia/xia/1.0/x", ["202 NO_SUCH_METHOD", "it has: show, change"]),
        ("finder://xia/xia/1.0/show?what:u32=1", ["101 BAD_ARGS", "`what` is a txt, not a u32"]),
        ("finder://fea/fea/1.0/open_port?spec:txt=udp:%5B::%5D:0", ["101 BAD_ARGS", "of IPv6"]),
        ("stcp://xia/xia/1.0/show", ["`stcp` is not known", "finder://"]),
    ] {
        node.call(&[call]).expect_failure(&parts);
    }
}

#[test]
fn a_node_that_is_told_to_end_complains_of_nothing() {
    if !privileged() {
        return;
    }
    let node = Node::start();
    let launcher = Pid::from_raw(node.launcher.pid() as i32).unwrap();
    kill_process(launcher, Signal::TERM).unwrap();
    let said = node.launcher.rest();
    let complains = |line: &&String| line.contains(": warning: ") || line.contains(": error: ");
    assert_eq!(said.iter().find(complains), None, "{said:?}");
}

#[test]
fn one_process_says_that_nothing_is_isolated() {
    let directory = directory();
    let file = node_file(directory.path(), "r1", "principal xdp;");
    let run = directory.path().join("run");
    let arguments = [Path::new("run"), &file, Path::new("--single"), Path::new("--run-dir"), &run];
    let node = Running::start(weft(arguments));
    node.wait_for("node r1 runs in one process, for debugging: nothing is isolated");
    node.wait_for("node r1 is ready");
    assert!(children(node.pid()).is_empty());
}
