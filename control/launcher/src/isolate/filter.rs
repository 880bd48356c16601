//! Which system calls a process may make: seccomp filters made from the lists in `rules`.
//!
//! Three filters hold together, and the strictest answer wins. The first ends the process at calls that only
//! an attacker makes; the second answers `EPERM` to all that is not on the list of the profile, so that
//! a library that tries something new falls back on what it did before; the third answers `ENOSYS` to
//! clone3(2), whose flags no filter can read, so that the C library uses clone(2).
//!
//! Reference: seccomp(2); Linux kernel, Documentation/userspace-api/seccomp_filter.rst.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

use super::rules::{self, Call, When};
use crate::missing::Missing;
use crate::profile::Profile;

/// What the kernel must be able to answer.
const ACTIONS: [&str; 3] = ["kill_process", "errno", "allow"];

/// Filters that are ready to be set, made while everything can still be read.
pub(super) struct Filters {
    programs: Vec<BpfProgram>,
    missing: Vec<Missing>,
}

impl Filters {
    /// The filters of a profile; none, and the reason, if the kernel has no filters.
    pub(super) fn prepare(profile: Profile) -> Result<Self, String> {
        let (_, missing) = survey();
        let programs = match missing.is_empty() {
            true => programs(profile).map_err(|error| cannot(&error))?,
            false => Vec::new(),
        };
        Ok(Self { programs, missing })
    }

    /// Restricts this process; returns what the kernel cannot restrict.
    pub(super) fn restrict(self) -> Result<Vec<Missing>, String> {
        for program in self.programs {
            apply_filter(&program).map_err(|error| cannot(&error))?;
        }
        Ok(self.missing)
    }
}

fn cannot(error: &dyn std::fmt::Display) -> String {
    format!("cannot set a seccomp filter: {error}")
}

/// What this machine can answer, and what is missing.
pub(super) fn survey() -> (String, Vec<Missing>) {
    let available =
        std::fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
    let has = |action: &&str| available.split_ascii_whitespace().any(|name| name == *action);
    match ACTIONS.iter().all(has) && architecture().is_some() {
        true => ("filters".to_owned(), Vec::new()),
        false => {
            let mend = "boot a kernel with CONFIG_SECCOMP_FILTER, on x86-64 or aarch64";
            ("no filters".to_owned(), vec![Missing::new("system calls are not filtered", mend)])
        }
    }
}

fn architecture() -> Option<TargetArch> {
    std::env::consts::ARCH.try_into().ok()
}

/// The filters of a profile, in the order in which they are set.
fn programs(profile: Profile) -> Result<Vec<BpfProgram>, seccompiler::BackendError> {
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let unknown = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let (allow, kill) = (SeccompAction::Allow, SeccompAction::KillProcess);
    let clone3 = [Call { number: libc::SYS_clone3, when: Vec::new() }];
    let clone3 = filter(&clone3, allow.clone(), unknown)?;
    Ok(match rules::of(profile) {
        rules::Rules::Only { allowed, fatal } => {
            vec![filter(&fatal, allow.clone(), kill)?, filter(&allowed, refuse, allow)?, clone3]
        }
        rules::Rules::AllBut { refused } => vec![filter(&refused, allow, refuse)?, clone3],
    })
}

/// A filter that answers `found` to the calls listed, and `other` to all others.
fn filter(
    calls: &[Call],
    other: SeccompAction,
    found: SeccompAction,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let architecture = architecture().ok_or_else(|| {
        seccompiler::BackendError::InvalidTargetArch(std::env::consts::ARCH.to_owned())
    })?;
    let mut by_number: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for call in calls {
        let rules = by_number.entry(call.number).or_default();
        if !call.when.is_empty() {
            let conditions = call.when.iter().map(condition).collect::<Result<_, _>>()?;
            rules.push(SeccompRule::new(conditions)?);
        }
    }
    SeccompFilter::new(by_number, other, found, architecture)?.try_into()
}

fn condition(when: &When) -> Result<SeccompCondition, seccompiler::BackendError> {
    let int = SeccompCmpArgLen::Dword;
    match *when {
        When::Is(argument, value) => {
            SeccompCondition::new(argument, int, SeccompCmpOp::Eq, value.into())
        }
        When::IsNot(argument, value) => {
            SeccompCondition::new(argument, int, SeccompCmpOp::Ne, value.into())
        }
        When::Null(argument) => {
            SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)
        }
        When::NotNull(argument) => {
            SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)
        }
        When::Bits(argument, mask, value) => {
            SeccompCondition::new(argument, int, SeccompCmpOp::MaskedEq(mask.into()), value.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_of_every_profile_fit_the_kernel() {
        let profiles = [
            Profile::Manager,
            Profile::Finder,
            Profile::Fea,
            Profile::Program,
            Profile::Application,
            Profile::Component,
        ];
        for profile in profiles {
            for program in programs(profile).unwrap() {
                // BPF_MAXINSNS
                assert!((1..4_096).contains(&program.len()), "{profile:?}: {}", program.len());
            }
        }
    }
}
