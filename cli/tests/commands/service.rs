//! `weft run` under a service manager: what it says, when, and the unit files.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;

use weft_port::testing::{lacks, privileged};

use crate::processes::Node;
use crate::support::finish;

/// The next notification that begins with `name=`.
fn next(socket: &UnixDatagram, name: &str) -> String {
    loop {
        let mut bytes = [0; 4096];
        let length = socket.recv(&mut bytes).unwrap();
        let text = String::from_utf8(bytes[..length].to_vec()).unwrap();
        let mut lines = text.lines();
        if let Some(value) = lines.find_map(|line| line.strip_prefix(&format!("{name}="))) {
            return value.to_owned();
        }
    }
}

#[test]
fn ready_is_said_when_every_process_serves_and_stopping_when_the_node_ends() {
    if !privileged() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let node = Node::begin("principal hid; principal xdp;", |command| {
        command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "200000");
    });
    assert_eq!(next(&socket, "READY"), "1");
    // Nothing has to be waited for now.
    let shown = node.run("show", &["processes", "--json"]);
    for one in shown.json()["processes"].as_array().unwrap() {
        assert_eq!(one["state"], "running", "{one}");
    }
    assert_eq!(next(&socket, "STATUS"), "3 processes run");
    assert_eq!(next(&socket, "WATCHDOG"), "1");
    node.call(&["finder://manager/manager/1.0/signal?instance:txt=xia&number:u32=9"]);
    assert!(next(&socket, "STATUS").starts_with("xia is "));
    while next(&socket, "STATUS") != "3 processes run" {}
    node.end();
    assert_eq!(next(&socket, "STOPPING"), "1");
}

#[test]
fn one_process_tells_the_service_manager_as_well() {
    let directory = crate::support::directory();
    let path = directory.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let file = crate::support::node_file(directory.path(), "r1", "principal xdp;");
    let run = directory.path().join("run");
    let mut command = crate::support::weft([
        Path::new("run"),
        &file,
        Path::new("--single"),
        Path::new("--run-dir"),
        &run,
    ]);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "200000");
    let node = crate::support::Running::start(command);
    assert_eq!(next(&socket, "READY"), "1");
    assert_eq!(next(&socket, "STATUS"), "one process runs, for debugging");
    assert_eq!(next(&socket, "WATCHDOG"), "1");
    assert_eq!(next(&socket, "WATCHDOG"), "1");
    let pid = rustix::process::Pid::from_raw(node.pid().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(next(&socket, "STOPPING"), "1");
}

/// A node whose standard error is a file, and what the journal would be told.
fn said_to(journal: bool) -> String {
    let outside = crate::support::directory();
    let log = outside.path().join("log");
    let file = fs::File::create(&log).unwrap();
    let found = file.metadata().unwrap();
    let stream = match journal {
        true => format!("{}:{}", found.dev(), found.ino()),
        false => "1:1".to_owned(),
    };
    let directory = crate::support::directory();
    let conf = crate::support::node_file(directory.path(), "r1", "principal xdp;");
    let run = directory.path().join("run");
    let arguments = [Path::new("run"), &conf, Path::new("--run-dir"), &run];
    let mut command = crate::support::weft(arguments);
    command.arg("--verbose").env("JOURNAL_STREAM", stream).stderr(file);
    let mut child = command.spawn().unwrap();
    let said = || fs::read_to_string(&log).unwrap();
    while !said().contains("node r1: 3 processes run") {
        assert!(child.try_wait().unwrap().is_none(), "{}", said());
        std::thread::yield_now();
    }
    let ask = |arguments: &[&str]| {
        let mut command = crate::support::weft(arguments);
        command.arg("--run-dir").arg(&run);
        finish(command)
    };
    ask(&["call", "finder://manager/manager/1.0/signal?instance:txt=xia&number:u32=9"]);
    // What the launcher says can be asked for.
    while !ask(&["show", "log"]).stdout.contains("manager: launcher: process ") {
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    child.wait().unwrap();
    said()
}

#[test]
fn every_line_of_a_node_says_when_and_who() {
    if !privileged() {
        return;
    }
    let text = said_to(false);
    for line in text.lines() {
        // 2026-11-21T22:30:00.118Z xia: …
        let (time, rest) = line.split_once("Z ").unwrap_or_else(|| panic!("{line}"));
        assert!(time.len() == 23 && time.as_bytes()[10] == b'T', "{line}");
        let (name, _) = rest.split_once(": ").unwrap_or_else(|| panic!("{line}"));
        assert!(["launcher", "manager", "finder", "fea", "xia"].contains(&name), "{line}");
    }
    assert!(text.contains("Z launcher: debug: process "), "{text}");
    assert!(text.contains("Z manager: warning: xia (process "), "{text}");
}

#[test]
fn the_journal_is_told_how_serious_each_line_is() {
    if !privileged() {
        return;
    }
    let text = said_to(true);
    for line in text.lines() {
        let priority = line.get(..3).unwrap_or_default();
        assert!(["<3>", "<4>", "<6>", "<7>"].contains(&priority), "{line}");
    }
    assert!(text.contains("<7>launcher: process "), "{text}");
    assert!(text.contains("<6>manager: node r1: 3 processes run\n"), "{text}");
    assert!(text.contains("<4>manager: xia (process "), "{text}");
}

#[test]
fn the_unit_files_are_as_systemd_wants_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/systemd");
    let directory = tempfile::tempdir().unwrap();
    let binaries = Path::new(env!("CARGO_BIN_EXE_weft")).parent().unwrap();
    let mut files = Vec::new();
    for name in ["weft@", "weft-metrics@"] {
        let text = fs::read_to_string(folder.join(format!("{name}.service"))).unwrap();
        let text = text.replace("@BINDIR@", binaries.to_str().unwrap());
        let file = directory.path().join(format!("{name}r1.service"));
        fs::write(&file, text).unwrap();
        files.push(file);
    }
    let mut command = Command::new("systemd-analyze");
    command
        .args(["verify", "--man=no"])
        .args(&files)
        .env("SYSTEMD_UNIT_PATH", format!("{}:", directory.path().display()));
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return lacks("systemd-analyze");
    }
    let done = finish(command);
    let about_these = |line: &&str| line.contains("weft");
    let complaints: Vec<_> = done.stderr.lines().filter(about_these).collect();
    assert!(complaints.is_empty(), "{done:?}");
}
