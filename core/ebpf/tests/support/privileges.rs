//! Whether a test that needs root can run here.

use std::fmt::Display;
use std::fs;

use weft_port::testing::{lacks, not_run};

/// Takes what [`probe`](weft_ebpf::probe) found. True if the test can run. If not, says why; but
/// fails if this process has all privileges and nothing excuses the machine.
pub(crate) fn can_run<E: Display>(probed: Result<(), E>, excused: fn(&E) -> bool) -> bool {
    let Err(error) = probed else { return true };
    if privileged() {
        assert!(excused(&error), "this should be possible here: {error}");
        not_run(&format!("needs eBPF: {error}"));
    } else {
        lacks("root");
    }
    false
}

/// Whether this process has the capabilities that are needed, and in the initial user namespace.
fn privileged() -> bool {
    const NET_ADMIN: u64 = 1 << 12;
    const SYS_ADMIN: u64 = 1 << 21;
    const BPF: u64 = 1 << 39;
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    let effective = u64::from_str_radix(effective.trim(), 16).unwrap();
    let needed = NET_ADMIN | SYS_ADMIN | BPF;
    let users = fs::read_to_string("/proc/self/uid_map").unwrap();
    effective & needed == needed && users.split_whitespace().eq(["0", "0", "4294967295"])
}
