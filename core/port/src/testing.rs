//! Help for tests of ports and of what stands on them: what a test needs of its machine, network
//! namespaces and waiting.
//!
//! Everything here panics on failure; it is compiled only for tests (feature `testing`).

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a test helper fails by panicking"
)]

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use weft_base::Packet;

use crate::Port;

/// Names a file to which a line is added for each test that is not run: its name, a tab, and why.
const NOT_RUN: &str = "WEFT_NOT_RUN";

/// Whether this process is root, which this test needs, to make network namespaces for example. If
/// it is not, the test [`lacks`] it.
#[must_use]
pub fn privileged() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        lacks("root");
    }
    root
}

/// A program that every user may run: itself, or a copy in `directory` if others cannot pass the way to it, as
/// in root's home. They must be able to pass that to `directory`.
#[must_use]
pub fn runnable_by_all(program: &Path, directory: &Path) -> PathBuf {
    let open = |folder: &Path| folder.metadata().unwrap().mode() & 0o001 != 0;
    if program.ancestors().skip(1).all(open) {
        return program.to_owned();
    }
    let copy = directory.join(program.file_name().unwrap());
    if !copy.exists() {
        std::fs::copy(program, &copy).unwrap();
    }
    copy
}

/// This test cannot run for lack of `what`, a privilege or a program. In continuous integration,
/// where the environment names `CI`, everything is there, so it fails; elsewhere it is [`not_run`].
pub fn lacks(what: &str) {
    let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!ci, "this test needs {what}, and with CI in the environment it must run");
    not_run(&format!("needs {what}"));
}

/// Says that this test is not run, on standard error as it is, not as tests capture it, and in the
/// file that `WEFT_NOT_RUN` names.
pub fn not_run(why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let _ = writeln!(io::stderr(), "NOT RUN: {test}: {why}");
    if let Some(path) = std::env::var_os(NOT_RUN) {
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        // In one write, so that lines of other processes are not torn.
        file.write_all(format!("{test}\t{why}\n").as_bytes()).unwrap();
    }
}

/// A network namespace of its own, removed when dropped.
pub struct Namespace {
    name: String,
    file: File,
}

impl Namespace {
    /// A new namespace with a name that no other test uses; its loopback interface is up.
    #[must_use]
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("weft-test-{}-{number}", std::process::id());
        ip(&format!("netns add {name}"));
        let file = File::open(format!("/run/netns/{name}")).unwrap();
        let namespace = Self { name, file };
        namespace.ip("link set lo up");
        namespace
    }

    /// Runs `ip ARGUMENTS` inside.
    pub fn ip(&self, arguments: &str) {
        ip(&format!("-n {} {arguments}", self.name));
    }

    /// Runs `work` on a new thread inside. Sockets that it opens stay inside.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(self.file.as_fd(), kind).unwrap();
                work()
            });
            thread.join().unwrap()
        })
    }

    /// Interfaces made in here from now on have no IPv6, so that the kernel sends nothing by itself
    /// (neighbour discovery, multicast listener reports) among the frames of a test.
    pub fn silence(&self) {
        let file = "/proc/sys/net/ipv6/conf/default/disable_ipv6";
        self.run(|| match std::fs::write(file, "1") {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {} // A kernel without IPv6.
            result => result.unwrap(),
        });
    }

    /// Connects interface `ours` in here to `theirs` in `other` by a virtual cable; both are up and
    /// carry frames.
    pub fn connect(&self, ours: &str, other: &Self, theirs: &str) {
        self.ip(&format!("link add name {ours} type veth peer name {theirs} netns {}", other.name));
        self.ip(&format!("link set dev {ours} up"));
        other.ip(&format!("link set dev {theirs} up"));
        self.wait_for_carrier(ours);
        other.wait_for_carrier(theirs);
    }

    /// Adds `address`, of IPv6 and with the length of its prefix, to `interface` and waits until what is
    /// sent to it arrives: the kernel makes its local route a little later, by a worker of its own, and until
    /// then drops such packets silently though sockets can be bound to it.
    pub fn add_address6(&self, address: &str, interface: &str) {
        self.ip(&format!("address add {address} dev {interface} nodad"));
        let bare = address.split('/').next().unwrap_or(address);
        let local = format!("-n {} -6 route show table local {bare} dev {interface}", self.name);
        while ip(&local).is_empty() {}
    }

    /// Waits until `interface` carries frames: when the other end comes up, the kernel notices the
    /// carrier a little later, and until then it silently drops what is sent.
    pub fn wait_for_carrier(&self, interface: &str) {
        loop {
            let state = ip(&format!("-n {} link show dev {interface}", self.name));
            if state.contains("state UP") && !state.contains("qdisc noop ") {
                return;
            }
        }
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).status();
    }
}

/// Runs `ip ARGUMENTS` and returns what it prints.
fn ip(arguments: &str) -> String {
    let output = Command::new("ip").args(arguments.split_whitespace()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Sends all of `packets` out of `port`, waiting for it as long as it takes.
pub fn send_all(packets: impl IntoIterator<Item = Packet>, port: &mut dyn Port) {
    let mut queue = packets.into_iter().collect();
    loop {
        port.transmit(&mut queue).unwrap();
        if queue.is_empty() {
            return;
        }
        wait(port, PollFlags::OUT);
    }
}

/// Receives until there are `count` packets, waiting for the port as long as it takes.
pub fn receive_some(port: &mut dyn Port, count: usize) -> Vec<Packet> {
    let mut packets = Vec::new();
    while packets.len() < count {
        wait(port, PollFlags::IN);
        let missing = count - packets.len();
        port.receive(&mut packets, missing).unwrap();
    }
    packets
}

/// Waits until the port is ready for what `flags` say; a test that hangs fails after a minute.
pub fn wait(port: &dyn Port, flags: PollFlags) {
    let minute = rustix::time::Timespec { tv_sec: 60, tv_nsec: 0 };
    // The second one is for receiving alone.
    let second = port.second_fd().filter(|_| flags == PollFlags::IN);
    let fds = std::iter::once(port.fd()).chain(second);
    let mut fds: Vec<_> = fds.map(|fd| PollFd::from_borrowed_fd(fd, flags)).collect();
    let ready = rustix::io::retry_on_intr(|| poll(&mut fds, Some(&minute))).unwrap();
    assert_ne!(ready, 0, "nothing happened on the port for a minute");
}

#[cfg(test)]
mod tests {
    use std::process::Output;

    use super::*;

    const ROLE: &str = "WEFT_TEST_ROLE";

    /// Not a test of its own: what the test below lets another process do.
    #[test]
    fn role() {
        if std::env::var_os(ROLE).is_some() {
            lacks("wings");
        }
    }

    /// Runs the role with `CI` in its environment as given; the file `list` says what is not run.
    fn play(ci: Option<&str>, list: &std::path::Path) -> Output {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "testing::tests::role"]).env(ROLE, "yes").env(NOT_RUN, list);
        command.env_remove("CI").envs(ci.map(|value| ("CI", value)));
        command.output().unwrap()
    }

    #[test]
    fn what_is_missing_is_said_though_tests_are_captured_and_fails_in_ci() {
        let list = std::env::temp_dir().join(format!("weft-not-run-{}", std::process::id()));
        let elsewhere = [play(None, &list), play(Some(""), &list)];
        let in_ci = play(Some("true"), &list);
        let listed = std::fs::read_to_string(&list).unwrap();
        std::fs::remove_file(&list).unwrap();
        for output in elsewhere {
            assert!(output.status.success());
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(said, "NOT RUN: testing::tests::role: needs wings\n");
        }
        assert_eq!(listed, "testing::tests::role\tneeds wings\n".repeat(2));
        assert!(!in_ci.status.success());
        assert!(String::from_utf8_lossy(&in_ci.stdout).contains("this test needs wings"));
    }
}
