//! What can go wrong between weft and the kernel's eBPF.

use std::error::Error;
use std::io;

use crate::Direction;

/// Why a program could not be loaded, attached, read or detached.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The build machine had no compiler for the program.
    #[error(
        "weft was built without its ebpf programs ({reason}): install clang, libbpf-dev and \
         linux-libc-dev and build again"
    )]
    NotBuilt {
        /// What was missing at build time.
        reason: &'static str,
    },
    /// The process lacks a capability.
    #[error(
        "not permitted to {action}: run as root of the initial user namespace (cap_bpf and \
         cap_net_admin; cap_sys_admin to find what another process has attached)"
    )]
    NotPermitted {
        /// What was tried.
        action: &'static str,
    },
    /// The kernel lacks a feature.
    #[error(
        "this kernel cannot {action} ({detail}): use linux 5.12 or newer with CONFIG_BPF_SYSCALL, \
         CONFIG_NET_CLS_BPF and CONFIG_NET_SCH_INGRESS"
    )]
    NotSupported {
        /// What was tried.
        action: &'static str,
        /// What the kernel said.
        detail: String,
    },
    /// There is no such interface.
    #[error(
        "no interface {interface} in this network namespace: enter the namespace of the link first, \
         and see `ip link` for its interfaces"
    )]
    NoInterface {
        /// The name that was looked for.
        interface: String,
    },
    /// The interface has this program already.
    #[error(
        "interface {interface} has the program {program} at {direction} already: detach it, or change \
         its parameters"
    )]
    AlreadyAttached {
        /// Name of the interface.
        interface: String,
        /// The hook.
        direction: Direction,
        /// What is attached.
        program: String,
    },
    /// Somebody else's program is where only one can be. It is left alone.
    #[error(
        "interface {interface} has {found} at the place that weft uses at {direction}, which is somebody \
         else's and is left alone: detach it, if it is not needed, and try again"
    )]
    Occupied {
        /// Name of the interface.
        interface: String,
        /// The hook.
        direction: Direction,
        /// What is there: its kind, and its name and number where they are known.
        found: String,
    },
    /// What was kept of a program is not what it should be, or its interface is gone.
    #[error("what was kept of the program {program} cannot be used: {detail}")]
    NotOurs {
        /// What it should be.
        program: &'static str,
        /// What it is.
        detail: &'static str,
    },
    /// The interface has no loss program.
    #[error("interface {interface} has no loss program at {direction}: attach one first")]
    NotAttached {
        /// Name of the interface.
        interface: String,
        /// The hook.
        direction: Direction,
    },
    /// The kernel refused for another reason.
    #[error("the kernel refused to {action}: {detail}")]
    Refused {
        /// What was tried.
        action: &'static str,
        /// What the kernel said.
        detail: String,
    },
}

impl ProgramError {
    /// Sorts an error of a system call by what can be done.
    pub(crate) fn from_call(action: &'static str, error: &io::Error) -> Self {
        Self::from_bpf(action, error)
    }

    /// Sorts an error of the `bpf` system call, or of a library that made it, by what can be done.
    pub(crate) fn from_bpf(action: &'static str, error: &(dyn Error + 'static)) -> Self {
        match system_error(error).and_then(io::Error::raw_os_error) {
            Some(libc::EPERM) => Self::NotPermitted { action },
            Some(libc::ENOSYS) => Self::NotSupported { action, detail: describe(error) },
            _ => Self::Refused { action, detail: describe(error) },
        }
    }
}

/// Whether the call failed because what it named is not there.
pub(crate) fn is_missing(error: &(dyn Error + 'static)) -> bool {
    system_error(error).and_then(io::Error::raw_os_error) == Some(libc::ENOENT)
}

/// The system's own error under the layers that wrap it.
fn system_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// The error with its causes, in one line.
fn describe(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
        next = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the call failed")]
    struct Wrapped(#[source] io::Error);

    fn from_bpf(code: i32) -> ProgramError {
        ProgramError::from_bpf("load", &Wrapped(io::Error::from_raw_os_error(code)))
    }

    #[test]
    fn errors_are_sorted_by_their_innermost_cause() {
        assert!(matches!(from_bpf(libc::EPERM), ProgramError::NotPermitted { action: "load" }));
        assert!(matches!(from_bpf(libc::ENOSYS), ProgramError::NotSupported { .. }));
        let refused = from_bpf(libc::EINVAL).to_string();
        assert!(refused.starts_with("the kernel refused to load: the call failed: Invalid"));
    }

    #[test]
    fn what_is_missing_is_told_from_what_is_refused() {
        let is_missing = |code| is_missing(&Wrapped(io::Error::from_raw_os_error(code)));
        assert!(is_missing(libc::ENOENT));
        assert!(!is_missing(libc::EPERM));
    }

    #[test]
    fn a_build_without_clang_is_told_with_the_packages_to_install() {
        let text = ProgramError::NotBuilt { reason: "clang cannot be run" }.to_string();
        for word in ["clang cannot be run", "libbpf-dev", "linux-libc-dev", "build again"] {
            assert!(text.contains(word), "{text}");
        }
    }
}
