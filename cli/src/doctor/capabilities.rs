//! Who runs this and what the kernel lets that user do.
//!
//! Reference: capabilities(7), user_namespaces(7); Linux kernel, Documentation/admin-guide/sysctl.

use std::fs;
use std::io;

use rustix::thread::{CapabilitySet, capabilities};

use super::check::{Check, Subject};
use super::trial::{Attempt, Trials};
use crate::node::open_packet_socket;

const USER: Subject = Subject {
    name: "user",
    purpose: "as root everything works that the kernel has been built for; without root a lab runs \
              in a user namespace, and its links lose packets in user space",
    required: false,
};
const NET_RAW: Subject = Subject {
    name: "cap_net_raw",
    purpose: "`weft run` with interfaces: packet sockets (AF_PACKET)",
    required: false,
};
const NET_ADMIN: Subject = Subject {
    name: "cap_net_admin",
    purpose: "TUN and TAP ports, and receive buffers beyond net.core.rmem_max",
    required: false,
};
const PACKET_SOCKETS: Subject = Subject {
    name: "packet-sockets",
    purpose: "`weft run` with interfaces of this machine",
    required: false,
};
const USER_NAMESPACES: Subject = Subject {
    name: "user-namespaces",
    purpose: "labs and `weft demo` without root",
    required: false,
};

/// How to give one program the capabilities for good.
const GRANT: &str = "run `sudo weft …`, or once `setcap cap_net_raw,cap_net_admin+ep \
                     \"$(command -v weft)\"` as root";

pub(super) fn checks(trials: &Trials) -> Vec<Check> {
    let uid_map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    // A process may always ask for its own; whatever goes wrong, it can rely on nothing.
    let effective = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    vec![
        user(trials.is_root, is_initial(&uid_map)),
        capability(NET_RAW, effective.contains(CapabilitySet::NET_RAW)),
        capability(NET_ADMIN, effective.contains(CapabilitySet::NET_ADMIN)),
        packet_sockets(open_packet_socket()),
        user_namespaces(trials.in_user_namespace.result(Attempt::Enter), trials.is_root, setting),
    ]
}

/// Whether a uid_map is that of the initial user namespace: every user is itself.
fn is_initial(uid_map: &str) -> bool {
    uid_map.split_ascii_whitespace().eq(["0", "0", "4294967295"])
}

fn user(is_root: bool, is_initial: bool) -> Check {
    match (is_root, is_initial) {
        (true, true) => USER.ok("root"),
        (true, false) => USER.degraded(
            "root of a user namespace, without power over the machine itself",
            "for physical interfaces and loss programs in the kernel, run as root outside",
        ),
        (false, _) => USER.degraded("not root", "run `sudo weft doctor` to see the difference"),
    }
}

fn capability(subject: Subject, has: bool) -> Check {
    if has { subject.ok("effective") } else { subject.missing("not granted", GRANT) }
}

fn packet_sockets(opened: io::Result<()>) -> Check {
    match opened {
        Ok(()) => PACKET_SOCKETS.ok("can be opened"),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            PACKET_SOCKETS.missing("not permitted", GRANT)
        }
        Err(error) => PACKET_SOCKETS.missing(
            error.to_string(),
            "run `modprobe af_packet` as root, or use a kernel with CONFIG_PACKET",
        ),
    }
}

/// The value of a setting of the kernel, by its path below /proc/sys.
pub(super) fn setting(path: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/sys/{path}")).ok()?;
    Some(text.trim().to_owned())
}

/// `entered` is what came of entering a user namespace.
fn user_namespaces(
    entered: Result<(), &str>,
    is_root: bool,
    setting: impl Fn(&str) -> Option<String>,
) -> Check {
    match entered {
        Ok(()) => USER_NAMESPACES.ok("allowed"),
        // Root makes namespaces without.
        Err(reason) if is_root => USER_NAMESPACES.degraded(reason, namespaces_remedy(setting)),
        Err(reason) => USER_NAMESPACES.missing(reason, namespaces_remedy(setting)),
    }
}

/// Which setting is in the way, and how to change it.
pub(super) fn namespaces_remedy(setting: impl Fn(&str) -> Option<String>) -> String {
    /// Path, the value that forbids, and the one that allows.
    const SWITCHES: [(&str, &str, &str); 3] = [
        ("kernel/unprivileged_userns_clone", "0", "1"),
        ("user/max_user_namespaces", "0", "10000"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
    ];
    let in_the_way = SWITCHES.iter().find(|(path, bad, _)| setting(path).as_deref() == Some(bad));
    match in_the_way {
        Some((path, _, good)) => {
            format!(
                "run `sysctl -w {}={good}` as root, or run labs as root",
                path.replace('/', ".")
            )
        }
        None => "run labs as root; in a container, allow it to make namespaces (CAP_SYS_ADMIN)"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;

    #[test]
    fn the_initial_user_namespace_maps_every_user_to_itself() {
        assert!(is_initial("         0          0 4294967295\n"));
        assert!(!is_initial("         0       1000          1\n"));
        assert!(!is_initial(""));
    }

    #[test]
    fn root_of_a_user_namespace_is_not_root() {
        assert_eq!(user(true, true).state, State::Ok);
        assert_eq!(user(true, false).state, State::Degraded);
        assert_eq!(user(false, true).state, State::Degraded);
    }

    #[test]
    fn a_refused_packet_socket_is_mended_by_a_capability() {
        assert_eq!(packet_sockets(Ok(())).state, State::Ok);
        let refused = packet_sockets(Err(io::ErrorKind::PermissionDenied.into()));
        assert_eq!((refused.state, refused.remedy.as_str()), (State::Missing, GRANT));
        let unsupported = packet_sockets(Err(io::ErrorKind::Unsupported.into()));
        assert!(unsupported.remedy.contains("CONFIG_PACKET"), "{unsupported:?}");
    }

    #[test]
    fn the_setting_that_forbids_user_namespaces_is_named() {
        let remedy = |path: &'static str, value: &'static str| {
            namespaces_remedy(move |asked| (asked == path).then(|| value.to_owned()))
        };
        let cases = [
            ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
            ("user/max_user_namespaces", "0", "user.max_user_namespaces=10000"),
            (
                "kernel/apparmor_restrict_unprivileged_userns",
                "1",
                "kernel.apparmor_restrict_unprivileged_userns=0",
            ),
        ];
        for (path, value, expected) in cases {
            let text = remedy(path, value);
            assert!(text.starts_with(&format!("run `sysctl -w {expected}` as root")), "{text}");
        }
        assert!(remedy("user/max_user_namespaces", "96365").contains("CAP_SYS_ADMIN"));
    }

    #[test]
    fn root_can_do_without_user_namespaces() {
        let state =
            |entered, can_do_without| user_namespaces(entered, can_do_without, |_| None).state;
        assert_eq!(state(Ok(()), false), State::Ok);
        assert_eq!(state(Err("refused"), true), State::Degraded);
        assert_eq!(state(Err("refused"), false), State::Missing);
    }
}
