//! What the kernel's table of IP says, if that is where routes come from: for routers whose routes somebody else finds.
//!
//! The FEA tells it, as a stream of changes; what was told is kept, so that an FEA that comes back changes nothing that is
//! the same.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use ipnet::IpNet;
use weft_runtime::{Action, IpChange, IpWay};
use weft_xrl::Output;

/// The kernel's routes.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    is_watched: bool,
    is_complete: bool,
    known: BTreeMap<IpNet, IpWay>,
    /// What was known before everything began to be told anew.
    untold: BTreeSet<IpNet>,
    changed: BTreeSet<IpNet>,
}

impl Kernel {
    /// Has the FEA tell everything, and what changes from now on.
    pub(crate) fn watch(&mut self, out: &mut Vec<Output>) {
        if !std::mem::replace(&mut self.is_watched, true) {
            out.push(Output::World(Action::WatchIp));
        }
    }

    /// The FEA has told something.
    pub(crate) fn heard(&mut self, changes: Vec<IpChange>) {
        for change in changes {
            match change {
                IpChange::Again => self.untold = self.known.keys().copied().collect(),
                IpChange::Route { destination, way } => {
                    let net = IpNet::new(destination.ip, destination.prefix_length);
                    if let Ok(net) = net {
                        self.untold.remove(&net);
                        self.set(net, way);
                    }
                }
                IpChange::Complete => {
                    self.is_complete = true;
                    for net in std::mem::take(&mut self.untold) {
                        self.set(net, None);
                    }
                }
                IpChange::NoTable { .. }
                | IpChange::Rules { .. }
                | IpChange::Interface { .. }
                | IpChange::Neighbour { .. } => {}
            }
        }
    }

    fn set(&mut self, net: IpNet, way: Option<IpWay>) {
        let before = match way {
            Some(way) => self.known.insert(net, way),
            None => self.known.remove(&net),
        };
        if before != way {
            self.changed.insert(net);
        }
    }

    pub(crate) fn get(&self, net: &IpNet) -> Option<&IpWay> {
        self.known.get(net)
    }

    pub(crate) fn nets(&self) -> impl ExactSizeIterator<Item = &IpNet> {
        self.known.keys()
    }

    /// Those behind one, or all.
    pub(crate) fn nets_behind(&self, net: Option<IpNet>) -> impl Iterator<Item = &IpNet> {
        let from = net.map_or(Bound::Unbounded, Bound::Excluded);
        self.known.range((from, Bound::Unbounded)).map(|(net, _)| net)
    }

    /// Whether everything was told once.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The networks whose ways are others since this was asked last.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<IpNet> {
        std::mem::take(&mut self.changed)
    }
}
