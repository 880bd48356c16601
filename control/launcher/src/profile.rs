//! Which kinds of processes there are, and what each may do: the table that nobody can change at run time.

use std::path::PathBuf;

use rustix::thread::CapabilitySet;
use serde::{Deserialize, Serialize};

use crate::name::Name;
use crate::protocol::Limits;

/// The variable in which the launcher tells a child its [`Sandbox`].
pub(crate) const SANDBOX: &str = "WEFT_SANDBOX";
/// The class of the RIB.
const RIB: &str = "rib";

/// What kind of process an instance is, as far as its rights are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// The manager: reads and writes the directories of the configuration.
    Manager,
    /// The Finder.
    Finder,
    /// The FEA: the only one with capabilities, to open sockets, to change routes and interfaces, and to schedule
    /// threads that move packets.
    Fea,
    /// A program of others: it may execute programs, and may do nothing else that a component may not.
    Program,
    /// A program of others that attaches to stacks by flows: it may send descriptors, which attaching takes,
    /// and therefore receive none, so that it never holds a packet port.
    Application,
    /// Everything else: works with the descriptors that it is given.
    Component,
}

impl Profile {
    /// The profile of a class of components.
    #[must_use]
    pub fn of_class(class: &Name) -> Self {
        match class.as_str() {
            "manager" => Self::Manager,
            "finder" => Self::Finder,
            "fea" => Self::Fea,
            "program" => Self::Program,
            "application" => Self::Application,
            _ => Self::Component,
        }
    }

    /// The capabilities that it keeps.
    pub(crate) fn capabilities(self) -> CapabilitySet {
        match self {
            Self::Fea => {
                CapabilitySet::NET_ADMIN
                    | CapabilitySet::NET_RAW
                    | CapabilitySet::NET_BIND_SERVICE
                    | CapabilitySet::IPC_LOCK
                    | CapabilitySet::PERFMON
                    | CapabilitySet::BPF
                    | CapabilitySet::SYS_NICE
            }
            Self::Manager | Self::Finder | Self::Program | Self::Application | Self::Component => {
                CapabilitySet::empty()
            }
        }
    }

    /// The limits of a class of components with this profile where the manager sets none.
    pub(crate) fn limits(self, class: &Name) -> Limits {
        // Packets wait for what the FEA does, and all processes for the Finder. Either has an effect only where the other
        // has none, and both say three to one. The RIB is what protocols and the FEA wait for when they are all at work, and
        // has less to do than they have.
        let (nice, weight) = match self {
            Self::Manager | Self::Finder | Self::Fea => (0, 300),
            Self::Component if class.as_str() == RIB => (0, 1_000),
            Self::Program | Self::Application | Self::Component => (5, 100),
        };
        Limits {
            memory: Some(2 << 30),
            processor_weight: Some(weight),
            processor_percent: None,
            threads: Some(64),
            descriptors: Some(4_096),
            nice: Some(nice),
        }
    }

    /// Whether the manager may choose arguments for it. Where there are privileges, it may not.
    pub(crate) fn takes_arguments(self) -> bool {
        self != Self::Fea
    }

    /// Whether it may be started with descriptors that are kept. Who may send with an address in memory
    /// holds no socket on which that means anything.
    pub(crate) fn takes_descriptors(self) -> bool {
        self != Self::Application
    }
}

/// What a process may touch; the launcher gives it to its children.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sandbox {
    /// What kind of process it is.
    pub profile: Profile,
    /// The name of the instance, which it shows in lists of processes.
    pub instance: Name,
    /// The node's run directory, below which it connects to others.
    pub run_directory: PathBuf,
    /// Directories whose files it may read, write, make and remove; the first is its own for files that
    /// last as long as the node runs.
    pub write: Vec<PathBuf>,
}

impl Sandbox {
    /// The sandbox that the launcher intends for this process; `None` if no launcher started it.
    ///
    /// # Errors
    /// The variable `WEFT_SANDBOX` does not hold one.
    pub fn from_environment() -> Result<Option<Self>, String> {
        let Ok(text) = std::env::var(SANDBOX) else { return Ok(None) };
        let sandbox = serde_json::from_str(&text).map_err(|error| {
            format!("the variable {SANDBOX} is not what a launcher sets: {error}")
        })?;
        Ok(Some(sandbox))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_many_gives_way_to_who_is_waited_for() {
        let limits = |class: &str| {
            let class = class.parse::<Name>().unwrap();
            let limits = Profile::of_class(&class).limits(&class);
            (limits.processor_weight.unwrap(), limits.nice.unwrap())
        };
        assert_eq!(limits("rib"), (1_000, 0));
        assert_eq!(limits("fea"), (300, 0));
        assert_eq!(limits("bgp"), (100, 5));
        assert_eq!(limits("program"), (100, 5), "whatever it is called inside");
    }
}
