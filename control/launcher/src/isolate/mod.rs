//! Giving up what a process does not need, at its very beginning: Landlock for files, TCP and signals,
//! seccomp for system calls.
//!
//! [`enter`] comes before the first thread, because both hold for the calling thread and those it
//! starts. Nothing of it can be undone, and programs that are executed inherit it.
//!
//! What each profile may do is in `rules`, and in the handbook under "Privileges".

mod files;
mod filter;
mod rules;

use std::ffi::CString;

use crate::inherit::thread_count;
use crate::missing::Missing;
use crate::profile::Sandbox;

/// Why a build that is made to find out what is executed how often (`scripts/profile.sh`) has no sandbox: a process
/// writes its counts at its end, to a file that no sandbox lets it have.
const COUNTS: &str = "this build counts what it executes, and has no sandbox: not for use";

/// Gives up everything that `sandbox` does not name. Returns what this kernel cannot do, a sentence each;
/// the launcher has said the same for all processes of the node. A build that counts gives up nothing, and says so.
///
/// # Errors
/// This process has threads already, or a restriction that this kernel has cannot be entered; the
/// process must not go on then.
pub fn enter(sandbox: &Sandbox) -> Result<Vec<String>, String> {
    if thread_count() != Some(1) {
        return Err("a process enters its sandbox before its first thread, and with /proc mounted"
            .to_owned());
    }
    set_name(sandbox);
    if cfg!(weft_counts) {
        return Ok(vec![COUNTS.to_owned()]);
    }
    // Set by the launcher already, unless this process was started by hand.
    rustix::thread::set_no_new_privs(true)
        .map_err(|errno| format!("cannot forbid new privileges: {errno}"))?;
    let filters = filter::Filters::prepare(sandbox.profile)?;
    let mut missing = files::restrict(sandbox)?;
    missing.extend(filters.restrict()?);
    Ok(missing.iter().map(ToString::to_string).collect())
}

/// What of files and system calls no process on this machine can be kept from.
pub(crate) fn missing() -> Vec<Missing> {
    let ((_, files), (_, calls)) = (files::survey(), filter::survey());
    files.into_iter().chain(calls).collect()
}

/// Shows the instance in lists of processes; there is room for 15 bytes.
fn set_name(sandbox: &Sandbox) {
    let mut name = format!("weft-{}", sandbox.instance);
    name.truncate(15);
    if let Ok(name) = CString::new(name) {
        let _ = rustix::thread::set_name(&name);
    }
}

/// One kind of isolation that a machine has or has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its name: `landlock`, `seccomp`, `users` or `control-groups`.
    pub name: &'static str,
    /// What there is of it.
    pub found: String,
    /// What is missing; empty if nothing is.
    pub missing: String,
    /// How to mend it.
    pub remedy: String,
}

/// What isolation this machine and this user can give to the processes of a node. Nothing is changed:
/// control groups that are made to find out are removed.
#[must_use]
pub fn survey() -> Vec<Finding> {
    let finding = |name, found: String, missing: Vec<Missing>| {
        let mut mends: Vec<_> = missing.iter().map(|missing| missing.mend).collect();
        mends.dedup();
        let what: Vec<_> = missing.iter().map(|missing| missing.what.as_str()).collect();
        Finding { name, found, missing: what.join("; "), remedy: mends.join("; ") }
    };
    let (version, missing_files) = files::survey();
    let (actions, missing_calls) = filter::survey();
    let [users, groups] = crate::launcher::survey();
    vec![
        finding("landlock", version, missing_files),
        finding("seccomp", actions, missing_calls),
        finding("users", users.0, users.1),
        finding("control-groups", groups.0, groups.1),
    ]
}
