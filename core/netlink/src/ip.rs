//! Where the kernel's IP leads, and how that changes.

use std::net::IpAddr;

use crate::InterfaceAddress;

/// What the kernel does with a packet of IP to a destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IpWay {
    /// It is for this machine.
    Local,
    /// It goes nowhere: a route says that there is no way (`unreachable`, `blackhole`, `prohibit`), or one that
    /// takes more than to send it to a neighbour.
    #[default]
    Nowhere,
    /// It is sent to a neighbour.
    Out {
        /// The index of the interface.
        interface: u32,
        /// The next router; `None` if the destination itself is the neighbour.
        gateway: Option<IpAddr>,
    },
}

/// What somebody who watches IP is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IpChange {
    /// Everything is told anew from here on: what does not come before the next [`IpChange::Complete`] is gone.
    Again,
    /// There is no table of one version of IP here, or it cannot be watched: nothing will be told of it.
    NoTable {
        /// Of which: IPv6 or IPv4.
        is_ipv6: bool,
        /// Why, in one sentence.
        error: String,
    },
    /// How many rules of policy there are besides the usual three, by which the kernel may look into other tables than
    /// those that are told of. Told if there are any, or not any more.
    Rules {
        /// Of which version: IPv6 or IPv4.
        is_ipv6: bool,
        /// How many.
        count: u32,
    },
    /// An interface is up, under this name, or not up any more.
    Interface {
        /// Its index.
        index: u32,
        /// Its name; `None` if it is down or gone.
        name: Option<String>,
    },
    /// The way to a prefix is another one now: that of the route that the kernel prefers of those to this prefix,
    /// out of interfaces that are up.
    Route {
        /// The prefix; its bits beyond its length are zero.
        destination: InterfaceAddress,
        /// `None`: there is no route to this prefix any more, so that a shorter one counts.
        way: Option<IpWay>,
    },
    /// Something about a neighbour is different now.
    Neighbour {
        /// The index of the interface that it is on.
        interface: u32,
        /// Its address.
        ip: IpAddr,
        /// Its Ethernet address; `None` if the kernel knows none, any more or yet.
        mac: Option<[u8; 6]>,
        /// Nothing has come from it for a while, and the kernel will not look whether it is still there before
        /// somebody uses it (`STALE`).
        idle: bool,
    },
    /// All that there is has been told.
    Complete,
}
