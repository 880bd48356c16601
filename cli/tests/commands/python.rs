//! XRLs and datagrams of XIA from Python: the package in `bindings/python` and the example
//! `component-python`, against this program.

use std::path::{Path, PathBuf};
use std::process::Command;

use weft_port::testing::lacks;

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
    let library = std::env::current_exe().unwrap().with_file_name("libweftflow.so");
    assert!(library.exists(), "{} was not built", library.display());
    let node = Node::start();
    let kill = "call 'finder://manager/manager/1.0/signal?instance:txt=xia&number:u32=9'";
    let run = node.run_directory();
    let restart = format!("$WEFT {kill} --run-dir {}", run.display());
    command
        .env("WEFT_FLOW_LIBRARY", library)
        .env("WEFT_XIA_SOCKET", run.join("xia.sock"))
        .env("WEFT_XIA_RESTART", restart);
    expect_ok(command);
}
