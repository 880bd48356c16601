//! What a network of namespaces is made of.
//!
//! Reference: ip-netns(8), veth(4), tc(8); Linux kernel, Documentation/networking.

use super::capabilities::{namespaces_remedy, setting};
use super::check::{Check, Subject};
use super::trial::{Attempt, NO_DEVICE, Place, Trial, Trials};

const NAMESPACES: Subject = Subject {
    name: "namespaces",
    purpose: "labs: each node has a network namespace of its own",
    required: true,
};

/// Something that is tried inside, and what to say of it.
struct Feature {
    attempt: Attempt,
    subject: Subject,
    /// What does it where the kernel cannot.
    instead: Option<&'static str>,
    remedy: &'static str,
}

const FEATURES: [Feature; 12] = [
    Feature {
        attempt: Attempt::Name,
        subject: Subject {
            name: "named-namespaces",
            purpose: "labs: nodes are found by name, also by `ip netns exec`",
            required: true,
        },
        instead: None,
        remedy: "allow this process to mount (CAP_SYS_ADMIN); container managers do so with \
                 `--privileged`",
    },
    Feature {
        attempt: Attempt::PacketSocket,
        subject: Subject {
            name: "lab-packet-sockets",
            purpose: "labs: XIA on the links between nodes (AF_PACKET)",
            required: true,
        },
        instead: None,
        remedy: "run `modprobe af_packet` as root, or use a kernel with CONFIG_PACKET",
    },
    Feature {
        attempt: Attempt::Veth,
        subject: Subject { name: "veth", purpose: "labs: the links between nodes", required: true },
        instead: None,
        remedy: "run `modprobe veth` as root, or use a kernel with CONFIG_VETH",
    },
    Feature {
        attempt: Attempt::XdpSocket,
        subject: Subject {
            name: "af-xdp",
            purpose: "`packet-io xdp`: packets past the network stack",
            required: false,
        },
        instead: Some("packet sockets, which are slower, can be used instead"),
        remedy: "run as root, on Linux 6.4 or newer with CONFIG_XDP_SOCKETS and CONFIG_BPF_SYSCALL",
    },
    Feature {
        attempt: Attempt::KernelEngine,
        subject: Subject {
            name: "kernel-engine",
            purpose: "`engine auto`: the kernel forwards XIP",
            required: false,
        },
        instead: Some("the portable engine forwards instead"),
        remedy: "run as root, on a kernel with CONFIG_BPF_SYSCALL; if weft was built without clang, install clang, \
                 libbpf-dev and linux-libc-dev, and build it again",
    },
    Feature {
        attempt: Attempt::Forwarding,
        subject: Subject {
            name: "ip-forwarding",
            purpose: "labs: nodes that are plain Linux IP routers",
            required: true,
        },
        instead: None,
        remedy: "mount /proc/sys writable; container managers do so with `--privileged`",
    },
    Feature {
        attempt: Attempt::Tbf,
        subject: Subject {
            name: "tbf",
            purpose: "labs: the rate of a link, limited by the kernel",
            required: false,
        },
        instead: Some("links with a rate are made in user space instead"),
        remedy: "run `modprobe sch_tbf` as root, or use a kernel with CONFIG_NET_SCH_TBF",
    },
    Feature {
        attempt: Attempt::Clsact,
        subject: Subject {
            name: "clsact",
            purpose: "labs: the hook of the loss program at an interface",
            required: false,
        },
        instead: Some("links with loss are made in user space instead"),
        remedy: "run `modprobe sch_ingress` as root, or use a kernel with CONFIG_NET_SCH_INGRESS",
    },
    Feature {
        attempt: Attempt::Netem,
        subject: Subject {
            name: "netem",
            purpose: "impairments that you set yourself with tc; labs do without",
            required: false,
        },
        instead: Some("links with delay are made in user space anyway"),
        remedy: "run `modprobe sch_netem` as root, or use a kernel with CONFIG_NET_SCH_NETEM",
    },
    Feature {
        attempt: Attempt::Bridge,
        subject: Subject {
            name: "bridge",
            purpose: "joining a lab to other interfaces by hand; labs do without",
            required: false,
        },
        instead: None,
        remedy: "run `modprobe bridge` as root, or use a kernel with CONFIG_BRIDGE",
    },
    Feature {
        attempt: Attempt::Tun,
        subject: Subject { name: "tun", purpose: "TUN ports; labs do without", required: false },
        instead: None,
        remedy: TUN_REMEDY,
    },
    Feature {
        attempt: Attempt::Tap,
        subject: Subject { name: "tap", purpose: "TAP ports; labs do without", required: false },
        instead: None,
        remedy: TUN_REMEDY,
    },
];

const CONTAINER: &str = "in a container, allow it to make namespaces (CAP_SYS_ADMIN); container \
                         managers do so with `--privileged`";

const TUN_REMEDY: &str = "run `modprobe tun` as root, or use a kernel with CONFIG_TUN; in a \
                          container, pass the device on (`--device /dev/net/tun`)";

pub(super) fn checks(trials: &Trials) -> Vec<Check> {
    let (place, trial) = trials.of_labs();
    let mut checks = vec![namespaces(place, trial)];
    if trial.result(Attempt::Enter).is_ok() {
        checks.extend(FEATURES.iter().map(|feature| judge(feature, trial)));
    }
    checks
}

fn namespaces(place: Place, trial: &Trial) -> Check {
    match (trial.result(Attempt::Enter), place) {
        (Ok(()), Place::Here) => NAMESPACES.ok("can be made"),
        (Ok(()), Place::UserNamespace) => NAMESPACES.ok("can be made inside a user namespace"),
        (Err(reason), Place::Here) => NAMESPACES.missing(reason, CONTAINER),
        (Err(reason), Place::UserNamespace) => {
            NAMESPACES.missing(reason, namespaces_remedy(setting))
        }
    }
}

fn judge(feature: &Feature, trial: &Trial) -> Check {
    let Feature { attempt, subject, instead, remedy } = feature;
    let Err(reason) = trial.result(*attempt) else { return subject.ok("works") };
    let remedy = match reason {
        NO_DEVICE => "run `chmod 666 /dev/net/tun` as root",
        _ if reason.ends_with("is missing, so that this cannot be tried") => {
            "install iproute2 (see tools)"
        }
        _ => remedy,
    };
    match instead {
        Some(instead) => subject.degraded(format!("{reason}; {instead}"), remedy),
        None => subject.missing(reason, remedy),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::super::trial::tests::{all_but, refused};
    use super::*;

    fn checks_of(here: Trial) -> Vec<Check> {
        let in_user_namespace = refused("not asked for");
        checks(&Trials { here, in_user_namespace, is_root: true })
    }

    fn named(checks: &[Check], name: &str) -> Check {
        checks.iter().find(|check| check.subject.name == name).unwrap().clone()
    }

    #[test]
    fn where_everything_works_all_is_well() {
        let checks = checks_of(all_but(&[]));
        assert_eq!(checks.len(), 1 + FEATURES.len());
        assert!(checks.iter().all(|check| check.state == State::Ok), "{checks:?}");
    }

    #[test]
    fn what_user_space_does_instead_is_degraded_and_the_rest_is_missing() {
        let failed = [(Attempt::Tbf, "Unknown qdisc"), (Attempt::Veth, "Unknown device type")];
        let checks = checks_of(all_but(&failed));
        let (tbf, veth) = (named(&checks, "tbf"), named(&checks, "veth"));
        assert_eq!((tbf.state, tbf.subject.required), (State::Degraded, false));
        assert!(tbf.found.starts_with("Unknown qdisc; links with a rate"), "{tbf:?}");
        assert_eq!((veth.state, veth.subject.required), (State::Missing, true));
        assert!(veth.remedy.contains("modprobe veth"), "{veth:?}");
        assert_eq!(named(&checks, "netem").state, State::Ok);
    }

    #[test]
    fn without_root_the_user_namespace_counts() {
        let in_user_namespace = all_but(&[(Attempt::Tun, NO_DEVICE)]);
        let here = refused("not permitted");
        let checks = checks(&Trials { here, in_user_namespace, is_root: false });
        assert_eq!(checks[0].found, "can be made inside a user namespace");
        assert_eq!(named(&checks, "tun").remedy, "run `chmod 666 /dev/net/tun` as root");
    }

    #[test]
    fn without_namespaces_nothing_else_is_said() {
        let checks = checks_of(refused("not permitted"));
        assert_eq!(checks.len(), 1);
        assert_eq!((checks[0].state, checks[0].subject.required), (State::Missing, true));
        assert_eq!(checks[0].found, "not permitted");
    }

    #[test]
    fn without_iproute2_that_is_what_is_to_be_installed() {
        let reason = "`tc` is missing, so that this cannot be tried";
        let checks = checks_of(all_but(&[(Attempt::Clsact, reason)]));
        assert_eq!(named(&checks, "clsact").remedy, "install iproute2 (see tools)");
    }

    #[test]
    fn every_attempt_is_reported_once() {
        let attempts: std::collections::BTreeSet<_> =
            FEATURES.iter().map(|feature| feature.attempt).collect();
        assert_eq!(attempts.len(), Attempt::INSIDE.len());
    }
}
