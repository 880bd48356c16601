//! How much memory a router has taken at most, process by process.
//!
//! What processes share, such as the program's own text, counts once: a process has its proportional share of what is
//! there now, and what it has had more at its peak.
//!
//! Reference: proc_pid_smaps_rollup(5), proc_pid_status(5).

use std::fs;
use std::path::Path;

/// A process of a router.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Share {
    /// Its component, or its program's name.
    pub(super) name: String,
    /// At most, in MiB.
    pub(super) peak: f64,
}

/// The shares of processes and of all that they have started.
pub(super) fn shares(roots: &[u32]) -> Vec<Share> {
    let mut pids = roots.to_vec();
    let mut place = 0;
    while let Some(pid) = pids.get(place) {
        pids.extend(children(*pid));
        place += 1;
    }
    // One that has just ended has no share.
    pids.into_iter().filter_map(share).collect()
}

fn children(pid: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let of_task = |path: &Path| fs::read_to_string(path.join("children")).unwrap_or_default();
    let texts = tasks.flatten().map(|task| of_task(&task.path()));
    let pids = texts.flat_map(|text| {
        text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
    });
    pids.collect()
}

fn share(pid: u32) -> Option<Share> {
    let text = |name| fs::read_to_string(format!("/proc/{pid}/{name}")).ok();
    let (status, rollup) = (text("status")?, text("smaps_rollup")?);
    let grown = kibibytes(&status, "VmHWM:")?.saturating_sub(kibibytes(&status, "VmRSS:")?);
    let peak = (kibibytes(&rollup, "Pss:")? + grown) as f64 / 1024.0;
    let line = text("cmdline").unwrap_or_default();
    let mut words = line.split('\0').skip_while(|word| *word != "component");
    let name = match words.nth(1) {
        Some(component) => component.to_owned(),
        None => text("comm")?.trim().to_owned(),
    };
    Some(Share { name, peak })
}

fn kibibytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn processes_and_what_they_have_started_have_shares() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & echo; wait"]);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("there is a shell");
        let mut line = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        let sleeping = children(child.id());
        let shares = shares(&[child.id()]);
        let sleeping = sleeping.first().map(|pid| rustix::process::Pid::from_raw(*pid as i32));
        let _ = sleeping
            .flatten()
            .map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::KILL));
        child.wait().unwrap();
        assert_eq!(shares.len(), 2);
        assert!(shares.iter().all(|share| share.peak > 0.0 && share.peak < 100.0), "{shares:?}");
        assert_eq!(kibibytes("A: 1 kB\nVmHWM:\t 12 kB\n", "VmHWM:"), Some(12));
    }
}
