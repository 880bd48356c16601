//! `weft run` under a service manager: what it says, when, and the unit files.

use std::fs;
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
