//! `weft xia push` from one process to another, on one node.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Running, finish, node_file, weft};

/// A node with datagram sockets, ended when dropped.
struct Node {
    directory: tempfile::TempDir,
    _running: Running,
}

impl Node {
    fn start() -> Self {
        let directory = crate::support::directory();
        let file = node_file(directory.path(), "r1", "principal xdp;");
        let run_directory = directory.path().join("run");
        let running =
            Running::start(weft([Path::new("run"), &file, Path::new("--run-dir"), &run_directory]));
        running.wait_for("node r1 is ready");
        Self { directory, _running: running }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = weft(["xia"].iter().chain(arguments));
        command.arg("--run-dir").arg(self.directory.path().join("run"));
        command
    }
}

/// Ended when dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_slow_stream_that_is_stopped_is_sent_to_its_end() {
    let node = Node::start();
    let sink = format!("xdp-{}", "ab".repeat(20));
    let inbox = node.directory.path().join("inbox");
    let mut receive = node.command(&["receive", "--bind", &sink, "--count", "1", "--json"]);
    receive.arg(&inbox).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut receiver = Ended(receive.spawn().unwrap());
    let mut said = BufReader::new(receiver.0.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(said.any(|line| line.contains("ready to receive")));

    // A block takes two seconds, and a sender holds up to three.
    let rate = ["--rate", "200kbit/s", "--block-size", "40KiB"];
    let mut push = node.command(&["push", "-", "--to", &sink]);
    push.args(rate).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut sender = Ended(push.spawn().unwrap());
    let mut input = sender.0.stdin.take().unwrap();
    // What does not fit the pipe, 64 KiB, has been read when this is written.
    let content: Vec<u8> = (0..65_536 + 40_000_u32).map(|number| number as u8).collect();
    input.write_all(&content).unwrap();
    kill_process(Pid::from_child(&sender.0), Signal::TERM).unwrap();
    assert_eq!(sender.0.wait().unwrap().code(), Some(0));

    let mut report = String::new();
    receiver.0.stdout.take().unwrap().read_to_string(&mut report).unwrap();
    assert_eq!(receiver.0.wait().unwrap().code(), Some(0), "{report}");
    let received = std::fs::read(inbox.join("stream")).unwrap();
    assert!(received.len() >= 40_000, "{} bytes", received.len());
    assert!(content.starts_with(&received));
}

#[test]
fn what_receives_no_datagrams_is_not_pushed_to() {
    let node = Node::start();
    let host = format!("hid-{}", "ab".repeat(20));
    let done = finish(node.command(&["push", "/dev/null", "--to", &host]));
    done.expect_failure(&[&host, "datagram sink", "zFilter"]);
}
