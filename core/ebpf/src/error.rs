//! What can go wrong between weft and the kernel's eBPF.

use std::error::Error;
use std::io;

use crate::Direction;

/// Why a loss program could not be loaded, attached, read or detached.
#[derive(Debug, thiserror::Error)]
pub enum LossError {
    /// The build machine had no compiler for the program.
    #[error(
        "this program was built without its ebpf loss program ({reason}): install clang, \
         libbpf-dev and linux-libc-dev and build again; until then lossy links use the user-space \
         link"
    )]
    NotBuilt {
        /// What was missing at build time.
        reason: &'static str,
    },
    /// The process lacks a capability.
    #[error(
        "not permitted to {action}: run as root of the initial user namespace (cap_bpf, \
         cap_net_admin and cap_sys_admin); without that lossy links use the user-space link"
    )]
    NotPermitted {
        /// What was tried.
        action: &'static str,
    },
    /// The kernel lacks a feature.
    #[error(
        "this kernel cannot {action} ({detail}): use linux 5.12 or newer with CONFIG_BPF_SYSCALL, \
         CONFIG_NET_CLS_BPF and CONFIG_NET_SCH_INGRESS; without them lossy links use the user-space \
         link"
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
    /// The interface has a loss program already.
    #[error(
        "interface {interface} has a loss program at {direction} already: detach it, or change its \
         probability"
    )]
    AlreadyAttached {
        /// Name of the interface.
        interface: String,
        /// The hook.
        direction: Direction,
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

impl LossError {
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

    fn from_bpf(code: i32) -> LossError {
        LossError::from_bpf("load", &Wrapped(io::Error::from_raw_os_error(code)))
    }

    #[test]
    fn errors_are_sorted_by_their_innermost_cause() {
        assert!(matches!(from_bpf(libc::EPERM), LossError::NotPermitted { action: "load" }));
        assert!(matches!(from_bpf(libc::ENOSYS), LossError::NotSupported { .. }));
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
        let text = LossError::NotBuilt { reason: "clang cannot be run" }.to_string();
        for word in ["clang cannot be run", "libbpf-dev", "linux-libc-dev", "user-space link"] {
            assert!(text.contains(word), "{text}");
        }
    }
}
