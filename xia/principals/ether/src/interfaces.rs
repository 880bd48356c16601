//! What is known of the interfaces of this node: their indexes, their ports and their Ethernet addresses.

use std::collections::{BTreeMap, BTreeSet};

use weft_base::PortId;
use weft_wire::MacAddr;

/// What is known of them; an index and a port meet at the name.
#[derive(Debug, Default)]
pub(crate) struct Interfaces {
    /// The names of those that are up, by index.
    names: BTreeMap<u32, String>,
    /// Those that carry XIP packets, by name.
    links: BTreeMap<String, Link>,
    /// While everything is told anew: what was told before and was not told again yet.
    untold: Option<BTreeSet<u32>>,
}

/// Where the packets of an interface go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// The port that carries its XIP packets.
    pub(crate) port: PortId,
    /// Its own Ethernet address; zero if it has none.
    pub(crate) mac: MacAddr,
}

impl Interfaces {
    /// The interface with this index, if packets can be sent out of it.
    pub(crate) fn get(&self, index: u32) -> Option<(&str, Link)> {
        let name = self.names.get(&index)?;
        self.links.get(name).map(|link| (name.as_str(), *link))
    }

    /// The indexes of this name. There is one at most, but for the moment in which a name goes from one interface to
    /// another and only the second has been told.
    pub(crate) fn indexes(&self, name: &str) -> impl Iterator<Item = u32> {
        self.names.iter().filter(move |(_, own)| *own == name).map(|(index, _)| *index)
    }

    /// The link of this name.
    pub(crate) fn link(&self, name: &str) -> Option<Link> {
        self.links.get(name).copied()
    }

    /// The name of an interface, whether or not packets can be sent out of it.
    pub(crate) fn name(&self, index: u32) -> Option<&str> {
        self.names.get(&index).map(String::as_str)
    }

    /// The name of the interface that has this port.
    pub(crate) fn name_of_port(&self, port: PortId) -> Option<&str> {
        let found = self.links.iter().find(|(_, link)| link.port == port);
        found.map(|(name, _)| name.as_str())
    }

    /// An interface has this name, or is down or gone.
    pub(crate) fn set_name(&mut self, index: u32, name: Option<String>) {
        match name {
            Some(name) => self.names.insert(index, name),
            None => self.names.remove(&index),
        };
    }

    /// An interface carries XIP packets like this, or none any more.
    pub(crate) fn set_link(&mut self, name: &str, link: Option<Link>) {
        match link {
            Some(link) => self.links.insert(name.to_owned(), link),
            None => self.links.remove(name),
        };
    }

    /// All indexes are told anew from here on.
    pub(crate) fn begin_again(&mut self) {
        self.untold = Some(self.names.keys().copied().collect());
    }

    /// Something was told of this index.
    pub(crate) fn told(&mut self, index: u32) {
        if let Some(untold) = &mut self.untold {
            untold.remove(&index);
        }
    }

    /// All has been told; returns the indexes of which nothing was, which are gone.
    pub(crate) fn complete(&mut self) -> BTreeSet<u32> {
        self.untold.take().unwrap_or_default()
    }
}
