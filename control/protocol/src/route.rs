//! Routes, as protocols tell them the RIB.

use std::net::IpAddr;

/// Where packets go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hop {
    /// The next router; none if the destination is on the link itself.
    pub gateway: Option<IpAddr>,
    /// The number of the interface; none if it follows from the gateway.
    pub interface: Option<u32>,
    /// Its share among the hops, from 1 to 256.
    pub weight: u32,
}

/// Where a route leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum To {
    /// To one of these.
    Hops(Vec<Hop>),
    /// Nowhere, without a word.
    Blackhole,
    /// Nowhere, and senders are told that there is no way.
    Unreachable,
    /// Nowhere, and senders are told that it is not allowed.
    Prohibit,
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Where it leads.
    pub to: To,
    /// How far that is.
    pub metric: u32,
    /// A mark for policies; 0 without one.
    pub tag: u32,
}
