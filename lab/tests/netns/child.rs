//! What this binary does when a lab starts it as `weft`.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::exit;
use std::time::Duration;

use rustix::net::sockopt;

use crate::support::ARGUMENTS;

/// Not a test: the entry of the child processes. Does nothing in a test run.
#[test]
fn entry() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else { return };
    let arguments: Vec<&str> = arguments.lines().collect();
    match arguments.as_slice() {
        ["echo", address] => echo(address),
        ["ping", address, count] => ping(address, count.parse().unwrap(), PATIENCE),
        ["no-ping", address, count] => ping(address, count.parse().unwrap(), IMPATIENCE),
        ["reach", address] => reach(address, 1),
        ["reach", address, size] => reach(address, size.parse().unwrap()),
        ["send", address, count, size] => {
            send(address, count.parse().unwrap(), size.parse().unwrap())
        }
        ["receive", address, count] => receive(address, count.parse().unwrap()),
        ["link", config] => weft_lab::run_links(Path::new(config)).unwrap(),
        ["router", config] => exit(weft_lab::run_router(Path::new(config)).map_or_else(
            |error| {
                eprintln!("error: {error}");
                1
            },
            i32::from,
        )),
        ["stack", config, run_dir] => stack(config, run_dir),
        ["run-dir"] => println!("run-dir {}", std::env::var("WEFT_RUN_DIR").unwrap()),
        ["fork-and-stay"] => fork_and_stay(),
        ["lab", file, output, program] => lab(file, output, program),
        [program, "exec", lab, node, words @ ..] => exec(program, lab, node, words),
        _ => panic!("unknown arguments {arguments:?}"),
    }
    exit(0)
}

/// Sends every datagram back.
fn echo(address: &str) {
    let socket = UdpSocket::bind(address).unwrap();
    println!("echo is ready");
    let mut buffer = [0; 2000];
    loop {
        // Errors of earlier answers come here.
        let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
        let _ = socket.send_to(&buffer[..length], from);
    }
}

/// How long an answer may take on a busy machine, and how long to wait for none.
const PATIENCE: Duration = Duration::from_secs(10);
const IMPATIENCE: Duration = Duration::from_millis(200);

/// Counts the answers to `count` datagrams, one at a time.
fn ping(address: &str, count: u64, patience: Duration) {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    let address: SocketAddr = address.parse().unwrap();
    socket.connect(address).unwrap();
    socket.set_read_timeout(Some(patience)).unwrap();
    let mut answers = 0;
    for number in 0..count {
        let _ = socket.send(&number.to_be_bytes());
        let mut buffer = [0; 100];
        while let Ok(length) = socket.recv(&mut buffer) {
            if buffer[..length] == number.to_be_bytes() {
                answers += 1;
                break;
            }
        }
    }
    println!("answers {answers} of {count}");
}

/// Sends datagrams until one is answered; without an answer it does not end.
fn reach(address: &str, size: usize) {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect(address).unwrap();
    socket.set_read_timeout(Some(IMPATIENCE)).unwrap();
    loop {
        let _ = socket.send(&vec![0; size]);
        if socket.recv(&mut [0; 8]).is_ok() {
            return println!("reached");
        }
    }
}

/// How many datagrams mark the end: one of them survives any loss that is tested.
const END_MARKS: usize = 50;

/// The time, on a clock that all processes share.
fn monotonic() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap()
}

/// Sends numbered datagrams with the time of the beginning, then end marks.
fn send(address: &str, count: u64, size: usize) {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect(address).unwrap();
    let mut datagram = vec![0; size];
    datagram[8..16].copy_from_slice(&monotonic().to_be_bytes());
    for number in 0..count {
        datagram[..8].copy_from_slice(&number.to_be_bytes());
        socket.send(&datagram).unwrap();
    }
    datagram[..8].copy_from_slice(&u64::MAX.to_be_bytes());
    (0..END_MARKS).for_each(|_| drop(socket.send(&datagram)));
}

/// Prints which datagrams of [`send`] arrived, and how long after the beginning of sending the last
/// was seen: wherever the machine is busy, that takes longer and never shorter.
fn receive(address: &str, count: u64) {
    let socket = UdpSocket::bind(address).unwrap();
    // All of it fits, even if this process does not run for a while.
    sockopt::set_socket_recv_buffer_size_force(&socket, 4 << 20).unwrap();
    println!("receiver is ready");
    let mut buffer = [0; 2000];
    let mut arrived = Vec::new();
    let mut took = Duration::ZERO;
    loop {
        socket.recv(&mut buffer).unwrap();
        let number = u64::from_be_bytes(buffer[..8].try_into().unwrap());
        if number == u64::MAX {
            break;
        }
        let begin = u64::from_be_bytes(buffer[8..16].try_into().unwrap());
        took = Duration::from_nanos(monotonic() - begin);
        arrived.push(number);
    }
    let lost: Vec<_> = (0..count).filter(|number| !arrived.contains(number)).collect();
    println!("took {} ms", took.as_millis());
    println!("lost {lost:?}");
}

/// A node's stack that does nothing: writes what it was given and waits for its end.
fn stack(config: &str, run_dir: &str) {
    let run_dir = Path::new(run_dir);
    assert!(run_dir.join("key").exists(), "it was prepared");
    println!("config {:?}", fs::read_to_string(config).unwrap());
    println!("stack is ready");
    wait_for_ever();
}

/// Leaves a grandchild behind that ignores the polite signal and has left the process group.
fn fork_and_stay() {
    let script = "trap '' TERM; while :; do sleep 1000; done";
    let mut child =
        std::process::Command::new("setsid").args(["sh", "-c", script]).spawn().unwrap();
    println!("grandchild is there");
    child.wait().unwrap();
}

fn wait_for_ever() -> ! {
    loop {
        std::thread::park();
    }
}

/// Runs a lab.
fn lab(file: &str, output: &str, program: &str) {
    use weft_lab::{Lab, Log, Options, Variables, enter_user_namespace, is_root, run};
    if !is_root() {
        let error = enter_user_namespace().unwrap_err();
        println!("{error}");
        exit(1);
    }
    let lab = Lab::parse(file, &fs::read_to_string(file).unwrap(), &Variables::new()).unwrap();
    let options = Options { output: Some(output.into()), ..Options::default() };
    let host = crate::support::TestHost(Path::new(program));
    let outcome = run(&lab, &options, &host, &mut Log::new(std::io::stdout()));
    let outcome = outcome.unwrap_or_else(|error| {
        println!("{error}");
        exit(1)
    });
    println!("error {:?}", outcome.error);
    if let Some(signal) = outcome.scenario.strip_prefix("then-") {
        signal_hook::low_level::raise(signal.parse().unwrap()).unwrap();
        println!("the signal did nothing");
    }
    exit(if outcome.succeeded() { 0 } else { 1 });
}

/// Becomes a command on a node.
fn exec(program: &str, lab: &str, node: &str, words: &[&str]) {
    let words: Vec<_> = words.iter().map(Into::into).collect();
    let host = crate::support::TestHost(Path::new(program));
    panic!("{}", weft_lab::exec(Some(lab), node, &words, &host).unwrap_err());
}
