//! The processes of a router, and the programs that talk to it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::TOOLS;
use crate::LabError;
use crate::engine::Ended;
use crate::netns::Watch;

/// How often one looks whether a router answers.
const GLANCE: Duration = Duration::from_millis(20);
/// Where daemons are that no user calls: Debian's directory of FRR.
const HIDDEN: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/usr/lib/frr"];

/// A program of a router, and the package of Debian that has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) package: &'static str,
}

impl Program {
    /// Where it is, leaving out what [`write_tool`] has made.
    pub(super) fn find(self) -> Result<PathBuf, LabError> {
        find(self.name).ok_or(LabError::Missing { program: self.name, package: self.package })
    }

    /// Where another program of the same package is.
    pub(super) fn find_beside(self, name: &str) -> Result<PathBuf, LabError> {
        find(name).ok_or_else(|| LabError::System {
            action: format!("start `{name}`"),
            reason: format!("there is no such program in the package {}", self.package),
        })
    }
}

fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let own = env::var_os("WEFT_RUN_DIR").map(|run_dir| Path::new(&run_dir).join(TOOLS));
    let folders = env::split_paths(&path).filter(|folder| Some(folder) != own.as_ref());
    let all = folders.chain(HIDDEN.iter().map(PathBuf::from));
    all.map(|folder| folder.join(name)).find(|program| is_program(program))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// Makes the script `name`, which calls `words` with what it is called with.
pub(super) fn write_tool(run_dir: &Path, name: &str, words: &[OsString]) -> Result<(), LabError> {
    let folder = run_dir.join(TOOLS);
    fs::create_dir_all(&folder).map_err(LabError::disk("make the directory", &folder))?;
    let quoted = words.iter().map(|word| word.to_string_lossy().replace('\'', r"'\''"));
    let words: String = quoted.map(|word| format!("'{word}' ")).collect();
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\nexec {words}\"$@\"\n"))
        .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)))
        .map_err(LabError::disk("write", &path))
}

/// Whether a command succeeds; nobody sees what it says.
pub(super) fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// What was started, in this order. Dropping it ends all at once.
#[derive(Default)]
pub(super) struct Processes(Vec<Process>);

struct Process {
    name: String,
    child: Child,
    handle: OwnedFd,
}

impl Processes {
    /// Starts a process, which writes to the standard error of this one, and waits until `answers` says that it does.
    /// If it ends before, its exit status.
    pub(super) fn start(
        &mut self,
        name: &str,
        command: &mut Command,
        watch: &mut Watch,
        mut answers: impl FnMut() -> bool,
    ) -> Result<Option<u8>, LabError> {
        let failed = || format!("start `{name}`");
        // Where the lab looks for the reason when something fails.
        let said = io::stderr().as_fd().try_clone_to_owned();
        let said = said.map_err(LabError::system(failed()))?;
        let child = command.stdin(Stdio::null()).stdout(said).spawn();
        let child = child.map_err(LabError::system(failed()))?;
        let handle = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
        let handle = handle.map_err(LabError::system(failed()))?;
        self.0.push(Process { name: name.to_owned(), child, handle });
        while !answers() {
            if let Some(status) = self.ended() {
                return Ok(Some(status));
            }
            self.look(watch, Some(Instant::now() + GLANCE))?;
        }
        Ok(None)
    }

    /// Waits until one has ended; its exit status.
    pub(super) fn wait(&mut self, watch: &mut Watch) -> Result<u8, LabError> {
        loop {
            if let Some(status) = self.ended() {
                return Ok(status);
            }
            self.look(watch, None)?;
        }
    }

    fn look(&self, watch: &mut Watch, until: Option<Instant>) -> Result<(), LabError> {
        let handles: Vec<_> = self.0.iter().map(|process| process.handle.as_fd()).collect();
        watch.wait(&handles, until)
    }

    /// The exit status of one that has ended; 1 if a signal has ended it.
    fn ended(&mut self) -> Option<u8> {
        let is_one_of_several = self.0.len() > 1;
        self.0.iter_mut().find_map(|Process { name, child, .. }| {
            let ended: Ended = child.try_wait().ok()??.into();
            let status = if let Ended::Exited(status) = ended { Some(status) } else { None };
            // One that exits says the reason itself; of several it is not clear which it was.
            if is_one_of_several || status.is_none() {
                eprintln!("{name} {ended}");
            }
            Some(status.unwrap_or(1))
        })
    }

    /// Asks all to end, the last one first, and waits until they have.
    pub(super) fn end(&mut self) {
        for Process { child, .. } in self.0.iter_mut().rev() {
            if let Ok(None) = child.try_wait() {
                // It may end at this very moment; its id stays reserved until it is waited for.
                let _ = kill_process(Pid::from_child(child), Signal::TERM);
            }
        }
        for Process { child, .. } in self.0.iter_mut().rev() {
            let _ = child.wait();
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for Process { child, .. } in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_call_what_they_stand_for() {
        let directory = tempfile::tempdir().unwrap();
        let words = ["printf", "%s,", "it's one word"].map(OsString::from);
        write_tool(directory.path(), "tool", &words).unwrap();
        let said = Command::new(directory.path().join("bin/tool")).args(["a b", "$c"]).output();
        assert_eq!(String::from_utf8(said.unwrap().stdout).unwrap(), "it's one word,a b,$c,");
    }

    #[test]
    fn programs_are_found_or_their_package_is_named() {
        assert!(find("sh").unwrap().is_absolute());
        let none = Program { name: "no-such-router", package: "no-such-package" };
        let error = none.find().unwrap_err().to_string();
        assert!(error.contains("`no-such-router` is missing"), "{error}");
        assert!(error.contains("apt-get install no-such-package"), "{error}");
    }

    #[test]
    fn the_status_of_what_ends_too_early_is_told() {
        let mut watch = Watch::signals().unwrap();
        let mut processes = Processes::default();
        let status =
            processes
                .start("false", Command::new("sh").args(["-c", "exit 3"]), &mut watch, || false);
        assert_eq!(status.unwrap(), Some(3));
    }

    #[test]
    fn what_answers_runs_until_it_is_ended() {
        let mut watch = Watch::signals().unwrap();
        let mut processes = Processes::default();
        let started =
            processes.start("sleep", Command::new("sleep").arg("1000"), &mut watch, || true);
        assert_eq!(started.unwrap(), None);
        assert_eq!(processes.ended(), None);
        processes.end();
        assert_eq!(processes.ended(), Some(1), "a signal has ended it");
    }
}
