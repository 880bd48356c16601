//! The network: a router and a host in network namespaces, with several cables between them.
//!
//! Every cable's end at the host is both a source and a sink. The kernel's threads that receive at the router
//! stay on one processor, and everything else, the source included, on another.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, setpriority_process};
use rustix::thread::{
    CpuSet, LinkNameSpaceType, gettid, move_into_link_name_space, sched_setaffinity,
};

/// Cables, as in Machado et al., "Linux XIA", §6.3.1.
pub(super) const PORTS: usize = 4;
/// The processors, from the end of those that there are.
const ROUTER: &str = "weft-router";
const HOST: &str = "weft-host";
/// Whatever has not happened by then will not.
const PATIENCE: Duration = Duration::from_secs(10);

/// One of the two namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Router,
    Host,
}

impl Side {
    fn namespace(self) -> &'static str {
        match self {
            Self::Router => ROUTER,
            Self::Host => HOST,
        }
    }

    /// The name of its end of a cable.
    pub(super) fn interface(self, port: usize) -> String {
        match self {
            Self::Router => format!("xfr{port}"),
            Self::Host => format!("xfh{port}"),
        }
    }

    /// The MAC address of its end of a cable; `world.rs` has the same.
    pub(super) fn mac(self, port: usize) -> [u8; 6] {
        let number = port as u8 + 1;
        match self {
            Self::Router => [2, 0, 0, 0, 0, number],
            Self::Host => [2, 0, 0, 0, 1, number],
        }
    }
}

/// The network, which ends with the thread that has made it.
pub(super) struct Network {
    router: usize,
    others: usize,
}

impl Network {
    /// Makes the network in namespaces that nobody else sees; the calling thread enters one of its own.
    pub(super) fn new() -> Result<Self, String> {
        let count = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        if count < 2 {
            return Err("this benchmark needs two processors: one is the router's alone".to_owned());
        }
        weft_port::namespace::enter().map_err(|error| {
            format!("{error}; run this benchmark as root, it makes network namespaces")
        })?;
        let network = Self { router: count - 1, others: 0 };
        for side in [Side::Router, Side::Host] {
            run("ip", &["netns", "add", side.namespace()])?;
        }
        for port in 0..PORTS {
            network.lay_cable(port)?;
        }
        Ok(network)
    }

    fn lay_cable(&self, port: usize) -> Result<(), String> {
        let ends = [Side::Router, Side::Host];
        let [router, host] = ends.map(|side| side.interface(port));
        let [to_router, to_host] = ends.map(|side| text_of(side.mac(port)));
        let cable = format!(
            "link add {router} address {to_router} netns {ROUTER} type veth \
             peer name {host} address {to_host} netns {HOST}"
        );
        run("ip", &cable.split_whitespace().collect::<Vec<_>>())?;
        for (side, interface) in ends.into_iter().zip([router, host]) {
            // With GRO an end has a queue of its own (NAPI), without which it takes no redirected frames.
            let script = format!(
                "ethtool -K {interface} gro on && ip link set {interface} up && \
                 echo 1 > /proc/sys/net/ipv6/conf/{interface}/disable_ipv6 && \
                 echo 1 > /sys/class/net/{interface}/threaded"
            );
            self.shell(side, &script)?;
        }
        Ok(())
    }

    /// Runs commands of the shell on one side.
    pub(super) fn shell(&self, side: Side, script: &str) -> Result<(), String> {
        run("ip", &["netns", "exec", side.namespace(), "sh", "-e", "-c", script])
    }

    /// Gives a program on one side its input.
    pub(super) fn feed(&self, side: Side, words: &[&str], input: &str) -> Result<(), String> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", side.namespace()]).args(words).stdin(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("cannot run ip: {error}"))?;
        let written = child.stdin.take().map(|mut pipe| pipe.write_all(input.as_bytes()));
        let status = child.wait().map_err(|error| error.to_string())?;
        match (written, status.success()) {
            (Some(Ok(())), true) => Ok(()),
            _ => Err(format!("`{}` fails with what it is given: {status}", words.join(" "))),
        }
    }

    /// Does `work` on one side, on a thread of its own.
    pub(super) fn inside<T: Send>(
        &self,
        side: Side,
        work: impl FnOnce() -> Result<T, String> + Send,
    ) -> Result<T, String> {
        let enter = || {
            let path = format!("/run/netns/{}", side.namespace());
            let enter = || -> std::io::Result<()> {
                let file = File::open(&path)?;
                Ok(move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?)
            };
            enter().map_err(|error| format!("cannot enter {path}: {error}"))?;
            work()
        };
        let result = thread::scope(|scope| scope.spawn(enter).join());
        result.map_err(|_| "a thread in a namespace panicked".to_owned())?
    }

    /// Puts the threads that receive where they belong. The kernel makes new ones whenever a program comes
    /// or goes. Returns those of the router.
    pub(super) fn place_threads(&self) -> Result<Threads, String> {
        let mut threads = Vec::new();
        for port in 0..PORTS {
            let router = receiving_thread(&Side::Router.interface(port))?;
            let host = receiving_thread(&Side::Host.interface(port))?;
            place(router, self.router)?;
            place(host, self.others)?;
            // Served at once, as by hardware: else what the sink has no time for looks like the router's loss.
            run("chrt", &["--fifo", "--pid", "50", &text_of_pid(host)])?;
            // Others on this machine shall not have the router's processor meanwhile.
            prefer(router)?;
            threads.push(router);
        }
        Ok(Threads(threads))
    }

    /// Confines the calling thread to where the source belongs, and lets only the sinks go before.
    pub(super) fn place_source(processor: usize) {
        let thread = gettid();
        // Where that is not allowed the figures become worse, which one sees.
        let _ = place(thread, processor)
            .and_then(|()| run("chrt", &["--fifo", "--pid", "10", &text_of_pid(thread)]));
    }

    /// The processor of everything but the router.
    pub(super) fn source_processor(&self) -> usize {
        self.others
    }
}

/// The kernel's threads that do the router's work.
pub(super) struct Threads(Vec<Pid>);

impl Threads {
    /// For how long they have had a processor so far.
    ///
    /// Reference: Linux kernel, Documentation/scheduler/sched-stats.rst (`schedstat` of a process).
    pub(super) fn busy(&self) -> Result<Duration, String> {
        let nanoseconds = self.0.iter().map(|thread| {
            let path = format!("/proc/{}/schedstat", text_of_pid(*thread));
            let text = fs::read_to_string(&path).unwrap_or_default();
            let first =
                text.split_ascii_whitespace().next().and_then(|word| word.parse::<u64>().ok());
            first.ok_or_else(|| format!("{path} does not tell for how long the router worked"))
        });
        Ok(Duration::from_nanos(nanoseconds.sum::<Result<u64, String>>()?))
    }
}

fn place(thread: Pid, processor: usize) -> Result<(), String> {
    let mut processors = CpuSet::new();
    processors.set(processor);
    sched_setaffinity(Some(thread), &processors)
        .map_err(|errno| format!("a thread cannot be confined to processor {processor}: {errno}"))
}

fn prefer(thread: Pid) -> Result<(), String> {
    setpriority_process(Some(thread), -20)
        .map_err(|errno| format!("a thread cannot get priority: {errno}"))
}

fn text_of_pid(thread: Pid) -> String {
    thread.as_raw_nonzero().to_string()
}

/// The kernel's thread that receives at an interface.
fn receiving_thread(interface: &str) -> Result<Pid, String> {
    let until = Instant::now() + PATIENCE;
    let name = format!("napi/{interface}-");
    loop {
        if let Some(thread) = find_thread(&name) {
            return Ok(thread);
        }
        if Instant::now() > until {
            return Err(format!("the kernel has no thread that receives at {interface}"));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn find_thread(name: &str) -> Option<Pid> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_it = |pid: &i32| {
        let command = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        command.starts_with(name)
    };
    numbers.find(is_it).and_then(Pid::from_raw)
}

/// A MAC address as `ip` reads it.
pub(super) fn text_of(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

fn run(program: &str, words: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(words).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot run {program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("`{program} {}` fails: {}", words.join(" "), said.trim()))
}
