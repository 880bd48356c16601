//! What anybody of the machine can do to a running node by its sockets: garbage, too many connections, calls
//! whose answers nobody reads. Meanwhile and afterwards its operator is served, and packets pass.
//!
//! What the processes make of single frames, keys and lists is tested where it is decided (`core/xrl`,
//! `control/finder`, `bindings/python`); here it is that one user does not take the node from the others.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use weft_base::Random;
use weft_port::testing::privileged;

use crate::processes::Node;

/// The user and group `nobody` of every Linux system.
const NOBODY: u32 = 65_534;
/// More connections than a process takes from one user.
const MANY: usize = 300;
/// Rounds of garbage on each socket.
const ROUNDS: u64 = 40;
/// Calls that are sent at once; more than a process takes from one connection.
const CALLS: usize = 20_000;

/// The sockets in a node's run directory that everybody may connect to, and that of applications.
fn sockets(node: &Node) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(node.run_directory()).unwrap().flatten();
    let sockets = entries.filter(|entry| entry.file_type().unwrap().is_socket());
    let mut paths: Vec<_> = sockets.map(|entry| entry.path()).collect();
    paths.sort();
    assert!(paths.len() >= 5, "{paths:?}");
    paths
}

/// Does something as another user: threads have users of their own.
fn as_nobody<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let work = move || {
        let id = rustix::process::Gid::from_raw(NOBODY);
        rustix::thread::set_thread_groups(&[]).unwrap();
        rustix::thread::set_thread_res_gid(id, id, id).unwrap();
        let id = rustix::process::Uid::from_raw(NOBODY);
        rustix::thread::set_thread_res_uid(id, id, id).unwrap();
        work()
    };
    thread::spawn(work).join().unwrap()
}

/// The operator is served.
#[track_caller]
fn serves(node: &Node) {
    for call in ["manager/manager/1.0/processes", "fea/component/1.0/status", "xia/xia/1.0/show"] {
        let done = node.call(&[&format!("finder://{call}")]);
        assert_eq!(done.status, Some(0), "{call}: {done:?}");
    }
}

/// A message of random bytes: half of them look as if a frame began.
fn garbage(random: &mut Random) -> Vec<u8> {
    let len = random.below(300) as usize;
    let mut bytes = vec![0; len];
    random.fill(&mut bytes);
    if random.chance(1, 2) {
        let kind = 1 + random.below(10) as u8;
        let mut framed = (len as u32 + 1).to_le_bytes().to_vec();
        framed.push(kind);
        framed.append(&mut bytes);
        return framed;
    }
    bytes
}

/// A connection of the kind that a socket takes.
fn connect(path: &Path) -> Option<UnixStream> {
    let address = SocketAddrUnix::new(path).unwrap();
    [SocketType::STREAM, SocketType::SEQPACKET].into_iter().find_map(|kind| {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, kind, flags, None).unwrap();
        rustix::net::connect(&socket, &address).ok()?;
        Some(socket.into())
    })
}

/// Sends garbage and waits until the other side has hung up.
fn throw(path: &Path, random: &mut Random) {
    // Not everybody may connect everywhere.
    let Some(mut stream) = connect(path) else { return };
    stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    for _ in 0..random.below(20) {
        if stream.write_all(&garbage(random)).is_err() {
            return;
        }
    }
    // Nobody waits for more: what it has got must be enough to decide.
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    if let Err(error) = stream.read_to_end(&mut answer) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{}: {error}", path.display());
    }
}

#[test]
fn garbage_on_every_socket_changes_nothing() {
    if !privileged() {
        return;
    }
    let node = Node::start();
    let before = node.processes();
    let paths = sockets(&node);
    for nobody in [true, false] {
        let paths = paths.clone();
        let work = move || {
            let mut random = Random::from_seed(5);
            for _ in 0..ROUNDS {
                paths.iter().for_each(|path| throw(path, &mut random));
            }
        };
        match nobody {
            true => as_nobody(work),
            false => work(),
        }
        serves(&node);
    }
    assert_eq!(node.processes(), before, "nothing was started again");
}

#[test]
fn nobody_takes_all_connections() {
    if !privileged() {
        return;
    }
    let node = Node::start();
    let before = node.processes();
    let calls = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("xrl-");
    let paths: Vec<_> = sockets(&node).into_iter().filter(calls).collect();
    for path in paths {
        let held = as_nobody(move || {
            let connect = |_| UnixStream::connect(&path).unwrap();
            let mut held: Vec<_> = (0..MANY).map(connect).collect();
            // The process has seen them all when it has hung up on the last one.
            let last = held.last_mut().unwrap();
            last.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            assert_eq!(last.read(&mut [0]).unwrap(), 0, "{} takes them all", path.display());
            held
        });
        serves(&node);
        drop(held);
    }
    serves(&node);
    assert_eq!(node.processes(), before, "nothing was started again");
}

/// The frames of core/xrl/src/frame.rs that begin a connection with the Finder and call one of its methods,
/// in text, again and again.
fn calls() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut frame = |content: &[u8]| {
        bytes.extend((content.len() as u32).to_le_bytes());
        bytes.extend(content);
    };
    // Hello: version 1, window 64, no credential.
    frame(&[1, 1, 0, 64, 0, 0, 0, 0]);
    let path = b"finder/1.0/targets";
    frame(&[&[4, 0, 0][..], path].concat());
    for number in 0..CALLS as u32 {
        frame(&[&[9, 0, 0][..], &number.to_le_bytes(), &[0; 4]].concat());
    }
    bytes
}

/// Two nodes with a tunnel between them, and the address of the second.
fn pair() -> (Node, Node, String) {
    let id = std::process::id();
    let address = |last| {
        let ip = Ipv4Addr::new(127, last, (id >> 8) as u8, id as u8);
        SocketAddrV4::new(ip, 13_781)
    };
    let start = |address: SocketAddrV4| {
        let own = weft_xia_tunnel::to_xid(weft_xia_tunnel::Way::U4id, address.into()).unwrap();
        let statements = format!(
            "address {own}; principal hid; principal u4id {{ tunnel {address}; }} principal xdp;"
        );
        (Node::with(&statements), format!("{own}-0"))
    };
    let ((one, _), (two, second)) = (start(address(71)), start(address(72)));
    (one, two, second)
}

/// Ends the flood.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn who_floods_and_reads_nothing_waits_and_the_others_do_not() {
    if !privileged() {
        return;
    }
    let (node, _other, there) = pair();
    let passes = || {
        let done = node.run("xia", &["ping", &there, "--count", "5", "--interval", "0.01"]);
        assert_eq!(done.status, Some(0), "{done:?}");
    };
    passes();
    let before = node.processes();
    let finder = node.run_directory().join("xrl-finder");
    // Its operator may call the Finder, so nothing but the limits protects it.
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let bytes = calls();
                while !over.load(Ordering::Relaxed) {
                    let Ok(mut stream) = UnixStream::connect(&finder) else { continue };
                    // It need not be taken at all.
                    stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
                    let mut sent = 0;
                    while sent < bytes.len() && !over.load(Ordering::Relaxed) {
                        match stream.write(&bytes[sent..]) {
                            Ok(count) => sent += count,
                            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                            Err(_) => break,
                        }
                    }
                }
            });
        }
        // Also if one of these fails.
        let _end = End(&over);
        for _ in 0..3 {
            serves(&node);
            passes();
        }
    });
    serves(&node);
    assert_eq!(node.processes(), before, "nothing was started again");
}
