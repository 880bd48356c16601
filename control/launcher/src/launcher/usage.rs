//! What processes use: the kernel's account of their memory and processor time.
//!
//! Reference: proc_pid_status(5) (`VmRSS`), proc_pid_stat(5) (`utime`, `stime`).

use std::fs;

use rustix::process::{getpid, getuid};

use super::Launcher;
use crate::protocol::{Message, Outcome, Usage};

/// Nanoseconds of the clock in which proc_pid_stat(5) counts: `USER_HZ` is 100 on every architecture that
/// weft runs on (linux, include/uapi/asm-generic/param.h).
const TICK: u64 = 1_000_000_000 / 100;
/// Which fields behind the name of the command are `utime` and `stime`.
const TIMES: [usize; 2] = [11, 12];

impl Launcher {
    /// Puts into a message what the kernel knows of processes, and the launcher itself.
    pub(super) fn complete(&self, message: &mut Message) {
        let Message::Reply { outcome: Outcome::Usage(all), .. } = message else { return };
        all.push(Usage {
            instance: super::name(),
            pid: getpid().as_raw_pid(),
            uid: Some(getuid().as_raw()),
            since: self.since.as_nanos(),
            restarts: 0,
            memory: 0,
            processor: 0,
        });
        all.sort_by(|a, b| a.instance.cmp(&b.instance));
        for one in all {
            (one.memory, one.processor) = used(one.pid);
        }
    }
}

/// Bytes of memory and nanoseconds of processor time of a process; zeros where the kernel does not say.
fn used(pid: i32) -> (u64, u64) {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let memory = resident(&read("status")).unwrap_or_default();
    (memory, processor(&read("stat")).unwrap_or_default())
}

/// Bytes of memory, from `status`.
fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// Nanoseconds of processor time, from `stat`. The command's name, in parentheses, may hold anything.
fn processor(stat: &str) -> Option<u64> {
    let (_, behind) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = behind.split(' ').collect();
    let ticks = TIMES.map(|index| fields.get(index).and_then(|field| field.parse::<u64>().ok()));
    Some((ticks[0]? + ticks[1]?) * TICK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_account_is_read_whatever_the_command_is_called() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 99 0 0 0 12 30 5 6 20 0 1 0 42 0 0";
        assert_eq!(processor(stat), Some(420_000_000));
        assert_eq!(processor("7 (a) S 1"), None);
        assert_eq!(resident("Name:\tx\nVmRSS:\t    2048 kB\n"), Some(2 << 20));
        assert_eq!(resident("Name:\tx\n"), None);
    }

    #[test]
    fn every_process_has_some() {
        assert!(used(getpid().as_raw_pid()).0 > 0);
    }
}
