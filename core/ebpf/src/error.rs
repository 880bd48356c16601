//! What can go wrong between weft and the kernel's eBPF.

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
    /// The interface's driver does not run programs.
    #[error(
        "the driver of {interface} runs no programs of xdp ({detail}): the network stack does, in mode `generic`"
    )]
    NoDriver {
        /// Name of the interface.
        interface: String,
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
    /// Sorts an error of a system call, made to do `action`, by what can be done.
    #[must_use]
    pub fn from_call(action: &'static str, error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EPERM) => Self::NotPermitted { action },
            Some(libc::ENOSYS) => Self::NotSupported { action, detail: error.to_string() },
            _ => Self::Refused { action, detail: error.to_string() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_sorted_by_what_can_be_done() {
        let sorted = |code| ProgramError::from_call("load", &io::Error::from_raw_os_error(code));
        assert!(matches!(sorted(libc::EPERM), ProgramError::NotPermitted { action: "load" }));
        assert!(matches!(sorted(libc::ENOSYS), ProgramError::NotSupported { .. }));
        let refused = sorted(libc::EINVAL).to_string();
        assert!(refused.starts_with("the kernel refused to load: Invalid"), "{refused}");
    }

    #[test]
    fn a_build_without_clang_is_told_with_the_packages_to_install() {
        let text = ProgramError::NotBuilt { reason: "clang cannot be run" }.to_string();
        for word in ["clang cannot be run", "libbpf-dev", "linux-libc-dev", "build again"] {
            assert!(text.contains(word), "{text}");
        }
    }
}
