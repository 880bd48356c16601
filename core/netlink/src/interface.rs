//! What is known of a network interface, and how that changes.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its number, which stays the same when it is renamed.
    pub index: u32,
    /// Its name, such as `eth0`.
    pub name: String,
    /// What it is: the kernel's word for virtual ones, such as `veth`, `bridge`, `vlan` or `vrf`; else
    /// `ethernet`, `loopback` or `other`.
    pub kind: String,
    /// Its Ethernet address, if it has one.
    pub mac: Option<[u8; 6]>,
    /// The largest packet without the header of the link, in bytes.
    pub mtu: u32,
    /// Whether it was set up.
    pub up: bool,
    /// Whether it can carry packets: it is up, and so is what it stands on (carrier).
    pub running: bool,
    /// The index of the bridge, VRF or other interface that it belongs to.
    pub master: Option<u32>,
    /// Its addresses that can be used; an IPv6 address that may yet turn out to be a duplicate is not
    /// among them.
    pub addresses: BTreeSet<InterfaceAddress>,
}

/// An address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceAddress {
    /// The address.
    pub ip: IpAddr,
    /// How many of its first bits name the network on the link.
    pub prefix_length: u8,
}

impl fmt::Display for InterfaceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.prefix_length)
    }
}

/// What somebody who watches is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfaceChange {
    /// There is an interface that was not known.
    Added(Interface),
    /// Something about an interface is different now.
    Changed(Interface),
    /// An interface is gone.
    Removed {
        /// Its index.
        index: u32,
        /// Its name.
        name: String,
    },
    /// All interfaces that were there at the beginning have been told. Said once.
    Complete,
}
