//! Taking a lab down, from nothing but its state: for the end of a run, for `lab down`, and for labs
//! whose process was killed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use weft_launcher::Config;

use super::ip::Batch;
use super::namespace::{Namespace, process_namespace};
use super::state::{self, Directory, ProcessId, State};
use super::watch::wait_readable;
use crate::LabError;

/// How long processes may take to end by themselves: what the launcher of a node gives its manager and then the rest, and
/// a little for itself, so that nothing ends a launcher that is just ending others.
const GRACE: Duration = Config::GRACE.saturating_mul(2).saturating_add(Duration::from_secs(2));
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
    let stale = state::all()?.into_iter().filter(State::is_stale);
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

/// Asks the processes of the lab to end, then ends everything that is left of their process groups
/// and in the lab's namespaces. The groups matter after a lab without root was killed: the names of
/// its namespaces are gone with it.
fn end_processes(state: &State) -> Result<(), LabError> {
    let groups = groups(state);
    for group in &groups {
        group.signal(Signal::TERM);
    }
    wait_for_end(groups.iter().map(|group| &group.leader), GRACE);
    for group in &groups {
        group.signal(Signal::KILL);
    }
    wait_for_end(groups.iter().flat_map(|group| &group.members), GRACE);
    end_residents(state)
}

/// A process that the lab has started, and those in its process group.
struct Group {
    id: ProcessId,
    leader: OwnedFd,
    /// With the leader.
    members: Vec<OwnedFd>,
}

impl Group {
    /// Sends a signal to all of them, if any is there: only then the group's number is still its own.
    fn signal(&self, signal: Signal) {
        let is_there = self.id.is_alive() || self.members.iter().any(|member| !has_ended(member));
        if let Some(group) = pid(self.id.pid).filter(|_| is_there) {
            // They may have ended meanwhile.
            let _ = kill_process_group(group, signal);
        }
    }
}

/// The groups of the lab's processes that are still there. Each process leads a group of its own.
fn groups(state: &State) -> Vec<Group> {
    let known = state.processes.iter().map(|process| process.id);
    let mut members: BTreeMap<u32, Vec<OwnedFd>> =
        known.clone().map(|id| (id.pid, Vec::new())).collect();
    for pid in all_processes() {
        let group = || state::process_group(pid);
        // Looked at again once its handle is there, as with residents.
        if let Some(number) = group()
            && let Some(members) = members.get_mut(&number)
            && let Some(handle) = handle(pid)
            && group() == Some(number)
        {
            members.push(handle);
        }
    }
    // Looked at now: a group whose leader is still there was the same all the time.
    known
        .filter_map(|id| {
            let leader = handle(id.pid).filter(|_| id.is_alive())?;
            Some(Group { id, leader, members: members.remove(&id.pid)? })
        })
        .collect()
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
    let pids = all_processes().filter(|pid| is_inside(*pid));
    // Looked at again once its handle is there, lest the id has passed on to another process.
    let found = pids.filter_map(|pid| Some((pid, handle(pid)?)));
    found.filter(|(pid, _)| is_inside(*pid)).map(|(_, handle)| handle).collect()
}

/// The ids of all processes of the machine.
fn all_processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// A process id as the system calls take it.
fn pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

fn handle(process: u32) -> Option<OwnedFd> {
    pidfd_open(pid(process)?, PidfdFlags::empty()).ok()
}

fn has_ended(handle: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(handle, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Waits until all these processes have ended, at most `time`.
fn wait_for_end<'h>(handles: impl IntoIterator<Item = &'h OwnedFd>, time: Duration) {
    let until = Instant::now() + time;
    for handle in handles {
        if Instant::now() < until {
            // A failure shows when the namespaces are searched.
            let _ = wait_readable([handle.as_fd()].into_iter(), Some(until));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::netns::state::ProcessState;

    #[test]
    fn processes_are_ended_with_their_groups() {
        // The grandchild survives the polite signal and its parent.
        let script = "sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done' & wait";
        let mut leader = Command::new("sh");
        leader.args(["-c", script]).process_group(0).stdout(Stdio::piped());
        let mut leader = leader.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(leader.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let grandchild = handle(line.trim().parse().unwrap()).unwrap();
        let mut other = Command::new("sleep").arg("1000").process_group(0).spawn().unwrap();

        let ids = [
            ProcessId::of(leader.id()).unwrap(),
            ProcessId::of(other.id()).unwrap().of_another_process(),
        ];
        let process = |id| ProcessState { name: "p".into(), node: "n".into(), id };
        let state = State {
            lab: "l".into(),
            id: "1".into(),
            owner: None,
            output: PathBuf::new(),
            nodes: Vec::new(),
            link_namespace: None,
            processes: ids.map(process).into(),
        };
        end_processes(&state).unwrap();
        assert!(has_ended(&grandchild));
        assert!(other.try_wait().unwrap().is_none(), "its id was given to another process");
        other.kill().unwrap();
        other.wait().unwrap();
        leader.wait().unwrap();
    }
}
