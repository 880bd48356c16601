//! Which files a process may touch, and what of TCP and signals: Landlock.
//!
//! Reference: landlock(7); Linux kernel, Documentation/userspace-api/landlock.rst.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope,
};

use crate::missing::Missing;
use crate::profile::{Profile, Sandbox};
use crate::sys;

/// The version whose rights are handled; older kernels handle what they know.
const NEWEST: ABI = ABI::V6;
/// The versions since which a kernel can do something that weft uses, and what.
const SINCE: &[(i32, &str)] = &[
    (1, "files are restricted by their permissions alone"),
    (4, "TCP is restricted by seccomp alone"),
    (5, "ioctl on devices is restricted by seccomp alone"),
    (6, "signals and abstract sockets are restricted by users alone"),
];

/// What a process needs of its own image, for the names in a backtrace.
const OWN: [&str; 2] = ["/proc/self/exe", "/proc/self"];

/// What the FEA reads.
const FEA_READS: [&str; 5] = [
    "/proc/sys/net",
    "/sys/class/net",
    "/sys/devices",
    "/proc/net",
    // Whether threads of real time leave something to others.
    "/proc/sys/kernel/sched_rt_runtime_us",
];
/// What the FEA writes: settings of interfaces, ports of its own.
const FEA_WRITES: [&str; 2] = ["/proc/sys/net", "/dev/net"];

/// Restricts this process; returns what the kernel cannot restrict.
pub(super) fn restrict(sandbox: &Sandbox) -> Result<Vec<Missing>, String> {
    let status = enter(sandbox).map_err(|error| format!("cannot enter Landlock: {error}"))?;
    Ok(match status.ruleset {
        RulesetStatus::FullyEnforced => Vec::new(),
        RulesetStatus::PartiallyEnforced => missing(sys::landlock_version()),
        RulesetStatus::NotEnforced => missing(0),
    })
}

/// The version of this machine in words, and what is missing.
pub(super) fn survey() -> (String, Vec<Missing>) {
    match sys::landlock_version() {
        0 => ("not enabled".to_owned(), missing(0)),
        version => (format!("version {version}"), missing(version)),
    }
}

/// What a kernel with this version of Landlock cannot do, and what is left.
fn missing(version: i32) -> Vec<Missing> {
    let gaps: Vec<_> =
        SINCE.iter().filter(|(since, _)| version < *since).map(|(_, gap)| *gap).collect();
    if gaps.is_empty() {
        return Vec::new();
    }
    let mend = match version {
        0 => "boot a kernel with CONFIG_SECURITY_LANDLOCK and `landlock` in lsm=",
        _ => "boot Linux 6.12 or newer",
    };
    let what = format!("Landlock of this kernel has version {version}, so {}", gaps.join(", "));
    vec![Missing::new(what, mend)]
}

fn enter(sandbox: &Sandbox) -> Result<RestrictionStatus, RulesetError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?;
    // The FEA opens connections for others.
    let ruleset = match sandbox.profile {
        Profile::Fea => ruleset,
        _ => ruleset.handle_access(AccessNet::from_all(NEWEST))?,
    };
    let mut ruleset = ruleset.create()?;
    for (path, access) in rules(sandbox) {
        ruleset = allow(ruleset, &path, access)?;
    }
    ruleset.restrict_self()
}

/// Allows `access` to `path` and what is below; what is not there needs no permission.
fn allow(
    ruleset: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    match PathFd::new(path) {
        Ok(fd) => {
            let is_file = std::fs::metadata(path).is_ok_and(|found| !found.is_dir());
            let access = if is_file { access & AccessFs::from_file(NEWEST) } else { access };
            ruleset.add_rule(PathBeneath::new(fd, access))
        }
        Err(_) => Ok(ruleset),
    }
}

/// What a process may do with which paths.
fn rules(sandbox: &Sandbox) -> Vec<(PathBuf, BitFlags<AccessFs>)> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let keep = read
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir
        | AccessFs::Refer;
    let mut rules: Vec<_> = OWN.iter().map(|path| (PathBuf::from(path), read)).collect();
    rules.extend(sandbox.write.iter().map(|path| (path.clone(), keep)));
    match sandbox.profile {
        Profile::Fea => {
            rules.extend(FEA_READS.iter().map(|path| (PathBuf::from(path), read)));
            let write = keep | AccessFs::IoctlDev;
            rules.extend(FEA_WRITES.iter().map(|path| (PathBuf::from(path), write)));
        }
        // A program of others needs libraries, an interpreter and data that nobody here knows of.
        Profile::Program | Profile::Application => {
            rules.push((PathBuf::from("/"), read | AccessFs::Execute));
            rules.push((PathBuf::from("/dev/null"), read | AccessFs::WriteFile));
            rules
                .extend(sandbox.write.iter().map(|path| (path.clone(), keep | AccessFs::MakeSock)));
        }
        // Users and groups. The files are replaced when they change, so a rule for each would not last.
        Profile::Finder => rules.push((PathBuf::from("/etc"), read)),
        Profile::Manager | Profile::Component => {}
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_kernels_lack_what_came_later_and_say_how_to_mend_it() {
        assert_eq!(missing(6), Vec::new());
        let none = missing(0).remove(0).to_string();
        assert!(none.contains("files are restricted") && none.contains("lsm="), "{none}");
        let old = missing(4).remove(0).to_string();
        assert!(!old.contains("TCP") && old.contains("signals") && old.contains("6.12"), "{old}");
    }
}
