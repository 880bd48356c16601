//! Path attributes: what a route is like, apart from its prefix.
//!
//! ```text
//!  0 flags: optional 0x80, transitive 0x40, partial 0x20, extended length 0x10
//!  1 code
//!  2 length of the value (1, or 2 with extended length)
//!    value
//! ```
//!
//! MP_REACH_NLRI and MP_UNREACH_NLRI have the form of attributes but hold prefixes: [`Update`](super::Update) reads
//! them, the [`UpdateEncoder`](super::UpdateEncoder) writes them.
//!
//! Reference: RFC 4271 §4.3, §5; RFC 1997, 4360 and 8092 (communities); RFC 4456 §8 (reflection); RFC 6793 §3 (four
//! octets); RFC 7311 §3 (AIGP); RFC 8669 §3 (Prefix-SID); RFC 9234 §5 (OTC).

mod emit;
mod fault;
mod parse;
#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, Ipv6Addr};

pub(crate) use emit::emit_block;
pub use fault::{Action, Fault, Rule};
pub use parse::Parsed;
pub(crate) use parse::{Raw, RawAttributes, expected_flags};

use super::as_path::AsPath;

/// How a route came to be known where it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// By a protocol inside the autonomous system. Preferred to the others.
    Igp,
    /// By EGP (RFC 904).
    Egp,
    /// In another way.
    #[default]
    Incomplete,
}

impl Origin {
    /// Its number on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Igp => 0,
            Self::Egp => 1,
            Self::Incomplete => 2,
        }
    }

    const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Igp,
            1 => Self::Egp,
            2 => Self::Incomplete,
            _ => return None,
        })
    }
}

/// Where packets are to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NextHop {
    /// An address of IPv4.
    V4(Ipv4Addr),
    /// One or two addresses of IPv6 (RFC 2545 §3).
    V6 {
        /// The global one; unspecified if the speaker has none, and then there is a local one.
        global: Ipv6Addr,
        /// That on the link which both speakers share.
        link_local: Option<Ipv6Addr>,
    },
}

impl NextHop {
    /// Whether it can be the address of a router (RFC 4271 §6.3: a valid address of a host).
    #[must_use]
    pub fn is_host(&self) -> bool {
        match self {
            Self::V4(ip) => !(ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast()),
            Self::V6 { global, link_local } => {
                let is_local = link_local.is_some_and(|ip| !ip.is_unspecified());
                !global.is_multicast() && (is_local || !global.is_unspecified())
            }
        }
    }
}

/// Who has put several routes into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Aggregator {
    /// Its autonomous system.
    pub autonomous_system: u32,
    /// Its identifier.
    pub identifier: Ipv4Addr,
}

/// A community of RFC 8092: who defines it, and two numbers of theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LargeCommunity {
    /// The autonomous system that says what the numbers mean.
    pub administrator: u32,
    /// Its first number.
    pub first: u32,
    /// Its second number.
    pub second: u32,
}

/// An attribute that is passed on although it means nothing here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnknownAttribute {
    /// Its code.
    pub code: u8,
    /// Its value.
    pub value: Box<[u8]>,
}

/// What a route is like. Two routes that are alike are equal, whatever their attributes looked like on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attributes {
    /// The autonomous systems it came through.
    pub as_path: AsPath,
    /// Where packets are to be sent. After parsing this is the attribute NEXT_HOP; what came with
    /// MP_REACH_NLRI is with its prefixes ([`Reach::next_hop`](super::Reach)).
    pub next_hop: Option<NextHop>,
    /// How it came to be known.
    pub origin: Origin,
    /// It is less specific than others that were left out.
    pub atomic_aggregate: bool,
    /// Which entrance a neighbour prefers: a lower one.
    pub med: Option<u32>,
    /// Which route this autonomous system prefers: a higher one.
    pub local_pref: Option<u32>,
    /// Communities (RFC 1997), in the order in which they came.
    pub communities: Box<[u32]>,
    /// Extended communities (RFC 4360), in the order in which they came.
    pub extended_communities: Box<[u64]>,
    /// Large communities (RFC 8092), in the order in which they came.
    pub large_communities: Box<[LargeCommunity]>,
    /// What few routes have: see [`Attributes::rare`] and [`Attributes::change_rare`].
    pub rare: RareBox,
}

/// Holds a [`Rare`]; nothing if that is like the default, so that it takes little and values can be compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RareBox(Option<Box<Rare>>);

impl RareBox {
    /// What it holds.
    #[must_use]
    pub fn get(&self) -> &Rare {
        self.0.as_deref().unwrap_or(&NOTHING_RARE)
    }
}

/// Attributes that few routes have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rare {
    /// Who has put several routes into one.
    pub aggregator: Option<Aggregator>,
    /// Who brought it into this autonomous system, if it was reflected.
    pub originator_id: Option<Ipv4Addr>,
    /// Clusters of reflectors that it went through, the last one first.
    pub cluster_list: Box<[Ipv4Addr]>,
    /// The metric that has accumulated on the way. It may be used only where AIGP is configured.
    pub aigp: Option<u64>,
    /// It may go to customers only, and who has said so.
    pub only_to_customer: Option<u32>,
    /// Segment identifiers (RFC 8669), as they came.
    pub prefix_sid: Option<Box<[u8]>>,
    /// A mark for other protocols of this router, which go by it; 0 without one. Policies give it, no peer is told.
    pub tag: u32,
    /// What else is passed on, by code.
    pub unknown: Box<[UnknownAttribute]>,
    /// Bit n: attribute n, which is known here, came with the flag Partial, which nobody may take off again.
    pub partial: u64,
}

/// What [`RareBox::get`] gives where there is nothing.
static NOTHING_RARE: std::sync::LazyLock<Rare> = std::sync::LazyLock::new(Rare::default);

impl Attributes {
    /// What few routes have.
    #[must_use]
    pub fn rare(&self) -> &Rare {
        self.rare.get()
    }

    /// Changes what few routes have.
    pub fn change_rare(&mut self, change: impl FnOnce(&mut Rare)) {
        let mut rare = self.rare.0.take().map_or_else(Rare::default, |rare| *rare);
        change(&mut rare);
        self.set_rare(rare);
    }

    /// Most routes have nothing of it, and need no memory for it.
    fn set_rare(&mut self, rare: Rare) {
        self.rare.0 = (rare != *NOTHING_RARE).then(|| Box::new(rare));
    }

    /// The same with another next hop.
    #[must_use]
    pub fn with_next_hop(self, next_hop: NextHop) -> Self {
        Self { next_hop: Some(next_hop), ..self }
    }

    /// Whether it carries this community.
    #[must_use]
    pub fn has_community(&self, community: u32) -> bool {
        self.communities.contains(&community)
    }
}
