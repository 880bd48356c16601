//! The processes of a node, for benchmarks that kill them.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// A process of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process(Pid);

impl Process {
    /// That of a class, of the node with this launcher.
    pub(super) fn find(launcher: u32, class: &str) -> Option<Self> {
        let path = format!("/proc/{launcher}/task/{launcher}/children");
        let pids = fs::read_to_string(path).ok()?;
        let is_it = |pid: &i32| {
            // That of a process that has ended is empty.
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut words = line.split(|byte| *byte == 0).skip_while(|word| *word != b"component");
            words.nth(1) == Some(class.as_bytes())
        };
        let mut pids = pids.split_whitespace().filter_map(|pid| pid.parse().ok());
        pids.find(is_it).and_then(Pid::from_raw).map(Self)
    }

    /// With this number.
    pub(super) fn numbered(pid: u32) -> Option<Self> {
        Pid::from_raw(pid.cast_signed()).map(Self)
    }

    /// Kills it (`kill -9`).
    pub(super) fn kill(self) -> Result<(), String> {
        kill_process(self.0, Signal::KILL)
            .map_err(|errno| format!("a process of the router cannot be killed: {errno}"))
    }
}
