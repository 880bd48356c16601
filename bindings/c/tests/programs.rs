//! Programs in C and Python that talk over flows to a stack, which is played here: it echoes.
#![allow(clippy::unwrap_used, reason = "what helpers of a test cannot do fails the test")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use tempfile::TempDir;
use weft_c_border::testing::{archive, compile, expect_success, library, shared};
use weft_flow::{Attached, Client, LONGEST, Limits, Listener};

/// Echoes whatever applications send, each on a thread of its own, and closes the flow of one that
/// sends "close". The threads end with the test.
fn stack() -> (TempDir, PathBuf) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("stack.sock");
    let listener = Listener::bind(&path).unwrap();
    thread::spawn(move || {
        loop {
            poll(&mut [PollFd::new(&listener.fd(), PollFlags::IN)], None).unwrap();
            if let Some(mut attaching) = listener.accept().unwrap() {
                thread::spawn(move || {
                    let flow = loop {
                        poll(&mut [PollFd::new(&attaching.fd(), PollFlags::IN)], None).unwrap();
                        match attaching.advance(&Limits::default()) {
                            Ok(Attached::NotYet(again)) => attaching = again,
                            Ok(Attached::Flow(flow)) => break flow,
                            Err(_) => return,
                        }
                    };
                    echo(Client::over(flow));
                });
            }
        }
    });
    (directory, path)
}

fn echo(mut client: Client) {
    let mut buffer = vec![0; LONGEST];
    while let Ok(len) = client.receive(&mut buffer, None) {
        if &buffer[..len] == b"close" || client.send(&buffer[..len], None).is_err() {
            return;
        }
    }
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn echo_in_c(link: &[OsString]) {
    let (directory, socket) = stack();
    let program = compile(directory.path(), &here(""), &here("tests/echo.c"), link);
    let missing = directory.path().join("missing.sock");
    expect_success(Command::new(&program).arg(&socket).arg(&missing));
}

#[test]
fn a_program_in_c_with_the_shared_library() {
    echo_in_c(&shared("libweftflow.so"));
}

#[test]
fn a_program_in_c_with_the_static_library() {
    echo_in_c(&archive("libweftflow.a"));
}

#[test]
fn the_example_of_the_handbook() {
    let chapter = std::fs::read_to_string(here("../../docs/src/flows.md")).unwrap();
    let example = chapter.split("```c\n").nth(1).unwrap().split("```").next().unwrap();
    let (directory, socket) = stack();
    let source = directory.path().join("example.c");
    std::fs::write(&source, example).unwrap();
    let program = compile(directory.path(), &here(""), &source, &shared("libweftflow.so"));
    let output = expect_success(Command::new(&program).arg(&socket));
    assert_eq!(output.stdout, b"ping\n", "the stack echoes");
}

#[test]
fn a_program_in_python() {
    let (directory, socket) = stack();
    let output = expect_success(
        Command::new("python3")
            .args(["-m", "unittest", "discover", "--start-directory", "tests"])
            .current_dir(here("../python"))
            .env("PYTHONPATH", here("../python"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("WEFT_FLOW_LIBRARY", library("libweftflow.so"))
            .env("WEFT_FLOW_STACK", &socket)
            .env("WEFT_FLOW_MISSING", directory.path().join("missing.sock")),
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("Ran 7 tests") && !said.contains("skipped"), "{said}");
}
