//! Which thread has which processor, and who goes before whom there.
//!
//! The router has a processor to itself: the kernel's threads that receive at its ports, and for the portable engine
//! the thread that forwards, which goes before them. If both were equals, the kernel would spend its half of the
//! processor on packets that the other has no time for, the more the more come (Mogul and Ramakrishnan,
//! "Eliminating Receive Livelock in an Interrupt-driven Kernel", ACM TOCS 15(3), 1997); as it is, the kernel
//! receives when everything that it has received before is forwarded.
//!
//! On the other processor who counts goes first, for two moments: what is read late is of another time than what was
//! read before. Then come the sinks, as if they were hardware: what they have no time for would look like a loss of
//! the router. Then come changes of routes, then the source.

use std::fs;
use std::num::NonZero;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, setpriority_process};
use rustix::thread::{CpuSet, gettid, sched_setaffinity};

use super::network::{Network, Side, run};

/// Whatever has not happened by then will not.
const PATIENCE: Duration = Duration::from_secs(10);

/// The processors.
#[derive(Clone, Copy, Debug)]
pub(in crate::bench) struct Processors {
    router: usize,
    others: usize,
}

/// What a thread of this process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// It forwards.
    Router,
    /// It sends what is to be forwarded.
    Source,
    /// It changes routes meanwhile.
    Updates,
    /// It takes the router's processor from it.
    Handicap,
    /// It reads what has been counted.
    Counting,
}

impl Processors {
    /// The last one for the router, the first one for everything else.
    ///
    /// # Errors
    /// There is only one.
    pub(in crate::bench) fn new() -> Result<Self, String> {
        match thread::available_parallelism().map_or(1, NonZero::get) {
            1 => Err("this benchmark needs two processors: one is the router's alone".to_owned()),
            count => Ok(Self { router: count - 1, others: 0 }),
        }
    }

    /// Confines the calling thread to where its work belongs.
    pub(super) fn take_place(self, work: Work) {
        let thread = gettid();
        let (processor, priority) = match work {
            Work::Router => (self.router, "10"),
            Work::Source => (self.others, "10"),
            Work::Updates => (self.others, "20"),
            Work::Handicap => (self.router, "60"),
            Work::Counting => (self.others, "70"),
        };
        // Where that is not allowed the figures become worse, which one sees.
        let _ = place(thread, processor)
            .and_then(|()| run("chrt", &["--fifo", "--pid", priority, &text_of(thread)]));
    }

    /// Puts the kernel's threads that receive where they belong. The kernel makes new ones whenever a program
    /// comes or goes. Returns those of the router.
    pub(in crate::bench) fn place_receivers(self, network: &Network) -> Result<Threads, String> {
        let mut threads = Vec::new();
        for port in 0..network.ports() {
            let router = receiving_thread(&network.interface(Side::Router, port))?;
            let host = receiving_thread(&network.interface(Side::Host, port))?;
            place(router, self.router)?;
            place(host, self.others)?;
            run("chrt", &["--fifo", "--pid", "50", &text_of(host)])?;
            // Others on this machine shall not have the router's processor meanwhile.
            prefer(router)?;
            threads.push(router);
        }
        Ok(Threads(threads))
    }
}

/// Threads that do the router's work.
#[derive(Clone, Debug)]
pub(in crate::bench) struct Threads(Vec<Pid>);

impl Threads {
    /// These, and one more.
    pub(in crate::bench) fn and(mut self, thread: Pid) -> Self {
        self.0.push(thread);
        self
    }

    /// For how long they have had a processor so far.
    ///
    /// Reference: Linux kernel, Documentation/scheduler/sched-stats.rst (`schedstat` of a process).
    pub(super) fn busy(&self) -> Result<Duration, String> {
        let nanoseconds = self.0.iter().map(|thread| {
            let path = format!("/proc/{}/schedstat", text_of(*thread));
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

fn text_of(thread: Pid) -> String {
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
