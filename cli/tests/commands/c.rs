//! Datagrams of XIA from C: libweftxia against a running node, whose stack is killed meanwhile, and the
//! example of the handbook.

use std::path::{Path, PathBuf};
use std::process::Command;

use weft_c_border::testing::{self, expect_success};

use crate::processes::Node;

/// A path of the repository.
fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// Compiles a program into `directory`; returns where it is.
fn compile(directory: &Path, source: &Path) -> PathBuf {
    testing::compile(directory, &here("xia/c"), source, &testing::shared("libweftxia.so"))
}

#[test]
fn sockets_of_a_program_in_c() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), &here("xia/c/tests/sockets.c"));
    let node = Node::start();
    let run = node.run_directory();
    let kill = "call 'finder://manager/manager/1.0/signal?instance:txt=xia&number:u32=9'";
    let restart = format!("{} {kill} --run-dir {}", env!("CARGO_BIN_EXE_weft"), run.display());
    expect_success(
        Command::new(&program).arg(run.join("xia.sock")).arg(restart).env_remove("WEFT_RUN_DIR"),
    );
}

#[test]
fn the_example_of_the_handbook() {
    let chapter = std::fs::read_to_string(here("docs/src/xia/applications.md")).unwrap();
    let example = chapter.split("```c\n").nth(1).unwrap().split("```").next().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("example.c");
    std::fs::write(&source, example).unwrap();
    let program = compile(directory.path(), &source);
    let host = format!("hid-{}", "0a".repeat(20));
    let node = Node::with(&format!("principal hid {{ local {host}; }} principal xdp;"));
    let responder = format!("{host}-1:{}-0", weft_xip::node::ECHO_SINK);
    let mut command = Command::new(&program);
    command.arg(node.run_directory().join("xia.sock")).arg(responder);
    assert_eq!(expect_success(&mut command).stdout, b"hello\n", "the node echoes");
}
