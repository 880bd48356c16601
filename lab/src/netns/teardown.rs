//! Taking a lab down, from nothing but its state: for the end of a run, for `lab down`, and for labs
//! whose process was killed.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::ip::Batch;
use super::namespace::{Namespace, process_namespace};
use super::state::{self, Directory, State};
use super::watch::wait_readable;
use crate::LabError;

/// How long processes may take to end by themselves.
const GRACE: Duration = Duration::from_secs(3);
/// How often the namespaces are searched for processes; a process may start others while it is ended.
const SEARCHES: usize = 100;

/// A lab that was to be removed, and whether it was.
pub(crate) struct Removed {
    pub(crate) name: String,
    pub(crate) result: Result<(), LabError>,
}

/// Takes down the labs whose owners died without doing it.
pub(crate) fn remove_stale() -> Result<Vec<Removed>, LabError> {
    // One process at a time: what another one has removed meanwhile is not found any more.
    let _lock = state::lock()?;
    let stale = state::all().into_iter().filter(State::is_stale);
    // An owner may have removed its lab before it died, since the state was read.
    let stale = stale.filter(|state| Directory::of(state).path().exists());
    Ok(stale.map(|state| Removed { name: state.full_name(), result: take_down(&state) }).collect())
}

/// Ends all processes of a lab and removes its namespaces and its directory. Goes on after failures
/// and reports the first one.
pub(crate) fn take_down(state: &State) -> Result<(), LabError> {
    let ended = end_processes(state);
    let mut batch = Batch::default();
    for name in state.namespaces().filter(|name| Namespace::new(*name).exists()) {
        batch.add(&["netns", "delete", name]);
    }
    let removed = batch.run_all(None);
    // The directory goes last: without it nobody would find the rest.
    ended.and(removed).and_then(|()| Directory::of(state).remove())
}

/// Asks the processes of the lab to end, then ends everything that is left in its namespaces.
fn end_processes(state: &State) -> Result<(), LabError> {
    let known = state.processes.iter().map(|process| process.id);
    let handles: Vec<OwnedFd> =
        known.filter(|id| id.is_alive()).filter_map(|id| handle(id.pid)).collect();
    for handle in &handles {
        // It may have ended meanwhile.
        let _ = pidfd_send_signal(handle, Signal::TERM);
    }
    wait_for_end(&handles, GRACE);
    for handle in &handles {
        let _ = pidfd_send_signal(handle, Signal::KILL);
    }
    wait_for_end(&handles, GRACE);
    end_residents(state)
}

/// Ends all processes in the namespaces of the lab.
fn end_residents(state: &State) -> Result<(), LabError> {
    let namespaces: BTreeSet<_> =
        state.namespaces().filter_map(|name| Namespace::new(name).id().ok()).collect();
    if namespaces.is_empty() {
        return Ok(());
    }
    for _ in 0..SEARCHES {
        let handles = residents(&namespaces);
        if handles.is_empty() {
            return Ok(());
        }
        for handle in &handles {
            let _ = pidfd_send_signal(handle, Signal::KILL);
        }
        wait_for_end(&handles, GRACE);
    }
    Err(LabError::System {
        action: format!("end all processes of the lab {}", state.full_name()),
        reason: "they start new ones faster than they are ended".into(),
    })
}

/// Handles of all processes whose network namespace is one of these.
fn residents(namespaces: &BTreeSet<(u64, u64)>) -> Vec<OwnedFd> {
    let is_inside = |pid: u32| process_namespace(pid).is_ok_and(|id| namespaces.contains(&id));
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    // Looked at again once its handle is there, lest the id has passed on to another process.
    let found = pids.filter(|pid| is_inside(*pid)).filter_map(|pid| Some((pid, handle(pid)?)));
    found.filter(|(pid, _)| is_inside(*pid)).map(|(_, handle)| handle).collect()
}

fn handle(pid: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Waits until all these processes have ended, at most `time`.
fn wait_for_end(handles: &[OwnedFd], time: Duration) {
    let until = Instant::now() + time;
    for handle in handles {
        if Instant::now() < until {
            // A failure shows when the namespaces are searched.
            let _ = wait_readable([handle.as_fd()].into_iter(), Some(until));
        }
    }
}
