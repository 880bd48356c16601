//! Flows between processes, one of which dies: what the other one sees, and that nothing is left behind.
//!
//! The test runs itself again as the other process, which finds in its environment what it has to be.
#![allow(clippy::unwrap_used, reason = "what helpers of a test cannot do fails the test")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use weft_flow::{
    Attached, Client, Error, Flow, Kind, LONGEST, Limits, Listener, Options, Received,
};

/// What the process started by a test has to be.
const ROLE: &str = "WEFT_FLOW_TEST_ROLE";
/// Where the stack listens.
const PATH: &str = "WEFT_FLOW_TEST_PATH";

/// Everything in one test: it counts the descriptors and mappings of its process.
#[test]
fn a_side_that_is_killed_is_noticed_and_leaves_nothing_behind() {
    let path = || std::env::var_os(PATH).unwrap();
    match std::env::var(ROLE).as_deref() {
        Ok("application") => return application(path().as_ref()),
        Ok("stack") => return stack(path().as_ref()),
        _ => {}
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("stack.sock");
    // Whatever is loaded or opened once has been after a first round.
    applications_die(&path);
    stacks_die(&path);
    let before = belongings();
    for _ in 0..5 {
        applications_die(&path);
        stacks_die(&path);
    }
    assert_eq!(belongings(), before, "descriptors and mappings of flows");
}

/// How many descriptors this process has, and how many mappings of flows.
fn belongings() -> (usize, usize) {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mappings = maps.lines().filter(|line| line.contains("memfd:weft-flow")).count();
    (fs::read_dir("/proc/self/fd").unwrap().count(), mappings)
}

fn start(role: &str, path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_side_that_is_killed_is_noticed_and_leaves_nothing_behind"])
        .args(["--nocapture", "--test-threads", "1"])
        .env(ROLE, role)
        .env(PATH, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn wait(fd: BorrowedFd<'_>) {
    poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], None).unwrap();
}

fn accept(listener: &Listener) -> Flow {
    wait(listener.fd());
    let mut attaching = listener.accept().unwrap().unwrap();
    loop {
        wait(attaching.fd());
        match attaching.advance(&Limits::default()).unwrap() {
            Attached::NotYet(again) => attaching = again,
            Attached::Flow(flow) => return flow,
        }
    }
}

/// Sends numbered messages until somebody ends it.
fn application(path: &Path) {
    let mut client = Client::connect(path, &Options::new(Kind::Datagram)).unwrap();
    for number in 0_u64.. {
        let mut message = vec![0; 8 + number as usize % 3000];
        message[..8].copy_from_slice(&number.to_le_bytes());
        if client.send(&message, None).is_err() {
            return;
        }
    }
}

/// An application is killed in the middle of sending, once while the stack keeps up and once while it
/// waits for room. What came is whole and in order.
fn applications_die(path: &Path) {
    let listener = Listener::bind(path).unwrap();
    for blocked in [false, true] {
        let mut child = start("application", path);
        let mut flow = accept(&listener);
        wait(flow.fd());
        let mut next = 0_u64;
        let mut take = |packet: weft_base::Buffer| {
            let (number, rest) = packet.bytes().split_first_chunk().unwrap();
            assert_eq!((u64::from_le_bytes(*number), rest.len() as u64), (next, next % 3000));
            next += 1;
        };
        if !blocked {
            flow.receive(1000, &mut take).unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let end = loop {
            match flow.receive(64, &mut take) {
                Ok(Received::Enough) => {}
                Ok(Received::All) => wait(flow.fd()),
                Err(end) => break end,
            }
        };
        assert!(matches!(end, Error::Closed), "{end:?}");
        assert!(next > 0);
    }
}

/// Echoes what an application sends until somebody ends it.
fn stack(path: &Path) {
    let listener = Listener::bind(path).unwrap();
    println!("\nlistening");
    let mut stack = Client::over(accept(&listener));
    let mut buffer = vec![0; LONGEST];
    while let Ok(len) = stack.receive(&mut buffer, None) {
        stack.send(&buffer[..len], None).unwrap();
    }
    // Nobody reads what the test would print at its end.
    drop(listener);
    std::process::exit(0);
}

fn start_stack(path: &Path) -> Child {
    let mut child = start("stack", path);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "listening"));
    child
}

/// A stack is killed while an application uses it, and returns.
fn stacks_die(path: &Path) {
    let mut child = start_stack(path);
    let greeting = vec![b"bind".to_vec()];
    let options = Options { greeting, ..Options::new(Kind::Datagram) };
    let mut client = Client::connect(path, &options).unwrap();
    let mut buffer = vec![0; LONGEST];
    let len = client.receive(&mut buffer, None).unwrap();
    assert_eq!(&buffer[..len], b"bind");
    child.kill().unwrap();
    child.wait().unwrap();
    let end = client.receive(&mut buffer, None);
    assert!(matches!(end, Err(Error::Closed)), "{end:?}");

    let mut child = start_stack(path);
    client.reattach(Duration::from_secs(60)).unwrap();
    client.send(b"again", None).unwrap();
    for expected in [&b"bind"[..], b"again"] {
        let len = client.receive(&mut buffer, None).unwrap();
        assert_eq!(&buffer[..len], expected);
    }
    drop(client);
    // Without anybody to serve, it ends by itself.
    assert!(child.wait().unwrap().success());
}
