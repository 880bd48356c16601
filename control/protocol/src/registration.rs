//! What a protocol says of itself, once: from this the binary knows its class, its statement and what it may call.
//!
//! Reference: Handley et al. (XORP), §8.3 (what a new protocol has to bring along); §7 (it may call nothing else).

use weft_base::Random;
use weft_policy::Variable;
use weft_runtime::Component;
use weft_xrl::{Input, Interface, Output, configurable};

/// What every protocol may call: all of the RIB, and which network interfaces there are.
const ACCESS: &str = "rib/rib fea/fea/1.0/watch_interfaces";

/// A routing protocol that is linked into the binary.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// The name of its statement, of its class and of its process.
    pub name: &'static str,
    /// What may be configured.
    pub schema: &'static str,
    /// Further statements that it reads, such as that of policies.
    pub reads: &'static [&'static str],
    /// The group and port of the datagrams that it exchanges on links, as an access list writes them, such as
    /// `224.0.0.9:520`; none without.
    pub group: Option<&'static str>,
    /// What its routes are to policies; empty if it asks none.
    pub variables: &'static [Variable],
    /// Makes the component.
    pub make: fn(Beginning) -> Box<dyn Component<Input = Input, Output = Output>>,
}

/// What a process is given that begins.
#[derive(Clone, Debug)]
pub struct Beginning {
    /// What is random in it follows from this.
    pub random: Random,
    /// The wall clock in seconds since 1970, of which 32 bits are used.
    pub epoch: u32,
}

impl Protocol {
    /// What its process may call, as the Finder reads it.
    #[must_use]
    pub fn access(&self) -> String {
        let relays = self.group.map(|group| {
            let calls = ["send_packets", "receive_packets", "close_relay"]
                .map(|method| format!(" fea/fea/1.0/{method}"));
            format!(" fea/fea/1.0/open_relay?spec=group:*:{group}{}", calls.concat())
        });
        format!("{ACCESS}{}", relays.unwrap_or_default())
    }
}

/// The interfaces of every protocol's process.
#[must_use]
pub fn interfaces() -> Vec<&'static Interface> {
    vec![&crate::interface::INTERFACE, &configurable::INTERFACE]
}

#[cfg(test)]
mod tests {
    use weft_xrl::Access;

    use super::*;

    fn protocol(group: Option<&'static str>) -> Protocol {
        let make = |_| -> Box<dyn Component<Input = Input, Output = Output>> { unreachable!() };
        Protocol { name: "one", schema: "", reads: &[], group, variables: &[], make }
    }

    #[test]
    fn only_who_names_a_group_may_open_relays() {
        let open = |access: &str| {
            let access = Access::parse(access).unwrap();
            access.limits(["fea", "fea"], "fea/1.0/open_relay").map(str::to_owned)
        };
        assert_eq!(open(&protocol(None).access()), None);
        let with = protocol(Some("224.0.0.9:520")).access();
        assert_eq!(open(&with).unwrap(), "spec=group:*:224.0.0.9:520");
    }
}
