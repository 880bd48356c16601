//! XRLs and datagrams of XIA from Python: the package in `bindings/python` and the example
//! `component-python`, against this program.

use std::path::{Path, PathBuf};
use std::process::Command;

use weft_port::testing::{lacks, privileged};

use crate::processes::Node;

/// A path of the repository.
fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// Python, if it is there and new enough.
fn python(arguments: &[&str]) -> Option<Command> {
    let python = |arguments: &[&str]| {
        let mut command = Command::new("python3");
        command.args(arguments).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    };
    let new_enough = "import sys; sys.exit(sys.version_info < (3, 11))";
    if !python(&["-c", new_enough]).status().is_ok_and(|status| status.success()) {
        lacks("python3 of version 3.11 or newer");
        return None;
    }
    let mut command = python(arguments);
    command
        .current_dir(here("bindings/python"))
        .env("PYTHONPATH", here("bindings/python"))
        .env("WEFT", env!("CARGO_BIN_EXE_weft"))
        .env_remove("WEFT_RUN_DIR");
    Some(command)
}

/// The library that `weft.xia` loads: beside the test.
fn library() -> PathBuf {
    let library = std::env::current_exe().unwrap().with_file_name("libweftxia.so");
    assert!(library.exists(), "{} was not built", library.display());
    library
}

fn expect_ok(mut command: Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("\nOK") && !said.contains("skipped"), "{said}");
}

#[test]
fn xrls_from_python() {
    let tests = ["-m", "unittest", "discover", "--start-directory", "tests/xrl"];
    if let Some(command) = python(&tests) {
        expect_ok(command);
    }
}

#[test]
fn datagrams_of_xia_from_python() {
    let tests = ["-m", "unittest", "discover", "--start-directory", "tests/xia"];
    let Some(mut command) = python(&tests) else { return };
    let node = Node::start();
    let kill = "call 'finder://manager/manager/1.0/signal?instance:txt=xia&number:u32=9'";
    let run = node.run_directory();
    let restart = format!("$WEFT {kill} --run-dir {}", run.display());
    command
        .env("WEFT_XIA_LIBRARY", library())
        .env("WEFT_XIA_SOCKET", run.join("xia.sock"))
        .env("WEFT_XIA_RESTART", restart);
    expect_ok(command);
}

/// Sends itself a datagram of XIA, from inside of its sandbox.
const APPLICATION: &str = r#"#!/usr/bin/env python3
import os, sys, time
os.environ["WEFT_XIA_LIBRARY"] = "@HERE@/libweftxia.so"
sys.dont_write_bytecode = True
sys.path.insert(0, "@HERE@")
from weft.xia import Socket
with Socket("@RUN@/xia.sock") as one, Socket("@RUN@/xia.sock") as other:
    one.send(b"from the inside", other.address)
    data, source = other.recv(timeout=60)
    print("heard", data.decode(), "from the other:", source == one.address, file=sys.stderr, flush=True)
time.sleep(3600)
"#;

#[test]
fn a_program_of_a_node_uses_xia_if_it_may_attach_by_flows() {
    if !privileged() || python(&[]).is_none() {
        return;
    }
    let outside = crate::support::directory();
    let at = outside.path();
    std::fs::copy(library(), at.join("libweftxia.so")).unwrap();
    copy(&here("bindings/python/weft"), &at.join("weft"));
    let start = |flows: &str, name: &str| {
        let script = at.join(name);
        let statements = format!(
            "principal hid; principal xdp;\n}}\nprogram talker {{ execute {}; {flows}",
            script.display()
        );
        // The run directory is known when the node is made, before anything is started.
        Node::begin(&statements, |command| {
            let run = command.get_args().last().unwrap().to_str().unwrap().to_owned();
            let text = APPLICATION.replace("@HERE@", at.to_str().unwrap()).replace("@RUN@", &run);
            std::fs::write(&script, text).unwrap();
            set_executable(&script);
        })
    };
    let node = start("flows;", "with.py");
    node.wait_for("heard from the inside from the other: True");
    drop(node);
    // Without the statement it may not attach, as before.
    let node = start("", "without.py");
    node.wait_for("NoNode: this user may not connect");
}

fn set_executable(file: &Path) {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(file, mode).unwrap();
}

/// Copies the files of a folder, and of those in it.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).unwrap()),
        }
    }
}
