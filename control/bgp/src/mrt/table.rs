//! The table of a moment: which peers there were, and what they said of each prefix.
//!
//! ```text
//!  PEER_INDEX_TABLE                          RIB_IPV4_UNICAST and others
//!  0 identifier of the collector (4)         0 sequence number (4)
//!  4 length of the view's name (2), name     4 length of the prefix in bits; its octets
//!    number of peers (2), of each              number of entries (2), of each
//!      type: 1 IPv6, 2 four octets               number of the peer (2)
//!      identifier (4), address (4 or 16)         since when (4)
//!      autonomous system (2 or 4)                with ADD-PATH its path identifier (4)
//!                                                length of the attributes (2), attributes
//! ```
//!
//! In the attributes, numbers of autonomous systems have four octets, and MP_REACH_NLRI is its next hop alone.
//!
//! Reference: RFC 6396 §4.3; RFC 8050 §4 (ADD-PATH).

use std::net::{IpAddr, Ipv4Addr};

use weft_routing::Prefix;

use super::{Record, Taker};
use crate::numbers::attribute as code;
use crate::numbers::attribute_flag::{EXTENDED_LENGTH, PARTIAL};
use crate::wire::{
    Attributes, Context, Families, Family, Neighbour, NextHop, Nlri, RawAttributes, expected_flags,
};

/// Subtypes (RFC 6396 §4.3, RFC 8050 §4).
pub(super) mod subtype {
    pub(crate) const PEER_INDEX_TABLE: u16 = 1;
    pub(crate) const RIB_IPV4_UNICAST: u16 = 2;
    pub(crate) const RIB_IPV4_MULTICAST: u16 = 3;
    pub(crate) const RIB_IPV6_UNICAST: u16 = 4;
    pub(crate) const RIB_IPV6_MULTICAST: u16 = 5;
    /// What is added to these if there are path identifiers.
    pub(crate) const ADD_PATH: u16 = 6;
}

/// Bits of a peer's type.
pub(super) const IS_IPV6: u8 = 1;
pub(super) const HAS_FOUR_OCTETS: u8 = 2;

/// Which peers there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerTable {
    /// The identifier of who has written this.
    pub collector: Ipv4Addr,
    /// The name of the view; mostly empty.
    pub view: String,
    /// The peers, by their numbers.
    pub peers: Vec<Peer>,
}

/// A peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its identifier.
    pub identifier: Ipv4Addr,
    /// Its address.
    pub address: IpAddr,
    /// Its autonomous system.
    pub autonomous_system: u32,
}

/// A prefix, and what peers say of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rib {
    /// The number of the record, from 0 on.
    pub sequence: u32,
    /// The family of the prefix.
    pub family: Family,
    /// The prefix.
    pub prefix: Prefix,
    /// What is said.
    pub entries: Vec<RibEntry>,
}

/// What a peer says of a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RibEntry {
    /// The peer's number in the [`PeerTable`].
    pub peer: u16,
    /// Since when, in seconds since 1970.
    pub since: u32,
    /// The path identifier (RFC 7911); none without ADD-PATH.
    pub path_id: Option<u32>,
    /// The attributes that could be read, the next hop among them.
    pub attributes: Attributes,
}

/// Reads a record of type TABLE_DUMP_V2.
pub(super) fn parse(subtype: u16, body: &[u8]) -> Result<Option<Record>, &'static str> {
    if subtype == subtype::PEER_INDEX_TABLE {
        return peers(body).map(|peers| Some(Record::Peers(peers)));
    }
    let has_ids = subtype > subtype::RIB_IPV6_MULTICAST + 1;
    let base = if has_ids { subtype - subtype::ADD_PATH } else { subtype };
    let family = match base {
        subtype::RIB_IPV4_UNICAST => Family::IPV4_UNICAST,
        subtype::RIB_IPV4_MULTICAST => Family::IPV4_MULTICAST,
        subtype::RIB_IPV6_UNICAST => Family::IPV6_UNICAST,
        subtype::RIB_IPV6_MULTICAST => Family::IPV6_MULTICAST,
        _ => return Ok(None),
    };
    rib(family, has_ids, body).map(|rib| Some(Record::Rib(rib)))
}

fn peers(body: &[u8]) -> Result<PeerTable, &'static str> {
    let mut taker = Taker(body);
    let collector = taker.array::<4>()?.into();
    let length = taker.u16()?;
    let view = String::from_utf8_lossy(taker.bytes(usize::from(length))?).into_owned();
    let count = taker.u16()?;
    let peer = |_| {
        let kind = taker.u8()?;
        Ok(Peer {
            identifier: taker.array::<4>()?.into(),
            address: taker.address(kind & IS_IPV6 != 0)?,
            autonomous_system: match kind & HAS_FOUR_OCTETS {
                0 => taker.u16()?.into(),
                _ => taker.u32()?,
            },
        })
    };
    let peers = (0..count).map(peer).collect::<Result<_, &'static str>>()?;
    Ok(PeerTable { collector, view, peers })
}

fn rib(family: Family, has_ids: bool, body: &[u8]) -> Result<Rib, &'static str> {
    let mut taker = Taker(body);
    let sequence = taker.u32()?;
    let length = *taker.0.first().ok_or("it has no prefix")?;
    let octets = taker.bytes(1 + usize::from(length.div_ceil(8)))?;
    let wrong = "its prefix is longer than an address";
    let nlri = Nlri::new_checked(octets, family, false).map_err(|_| wrong)?;
    let (_, prefix) = nlri.iter().next().ok_or(wrong)?;
    let count = taker.u16()?;
    let mut entries = Vec::new();
    for _ in 0..count {
        let (peer, since) = (taker.u16()?, taker.u32()?);
        let path_id = if has_ids { Some(taker.u32()?) } else { None };
        let length = taker.u16()?;
        let attributes = attributes(family, taker.bytes(usize::from(length))?)?;
        entries.push(RibEntry { peer, since, path_id, attributes });
    }
    Ok(Rib { sequence, family, prefix, entries })
}

/// Reads attributes as they stand in a table.
fn attributes(family: Family, block: &[u8]) -> Result<Attributes, &'static str> {
    // Where the peer was nobody knows here; from inside more attributes are right.
    let context = Context {
        families: Families::from_iter([family]),
        accept_as_sets: true,
        ..Context::new(Neighbour::Internal)
    };
    let mut attributes = Attributes::parse(&with_flags(block), &context).attributes;
    // As everywhere, what cannot be the address of a router is none.
    if let Some(next_hop) = next_hop(block)?.filter(NextHop::is_host) {
        attributes.next_hop = Some(next_hop);
    }
    Ok(attributes)
}

/// The same attributes with the flags that they should have: BIRD writes none for those that its filters have set.
fn with_flags(block: &[u8]) -> Vec<u8> {
    let mut flagged = Vec::with_capacity(block.len());
    for raw in RawAttributes(block).map_while(Result::ok) {
        let at = flagged.len();
        flagged.extend(raw.whole);
        if let Some(expected) = expected_flags(raw.code) {
            flagged[at] = expected | raw.flags & (PARTIAL | EXTENDED_LENGTH);
        }
    }
    flagged
}

/// The next hop of MP_REACH_NLRI: alone, as it should be, or within the whole attribute, as some write it.
fn next_hop(block: &[u8]) -> Result<Option<NextHop>, &'static str> {
    let reach = RawAttributes(block).flatten().find(|raw| raw.code == code::MP_REACH_NLRI);
    let Some(value) = reach.map(|raw| raw.value) else { return Ok(None) };
    let wrong = "a next hop is of no length that a next hop has";
    let shortened =
        value.split_first().filter(|(length, rest)| usize::from(**length) == rest.len());
    let bytes = match shortened {
        Some((_, bytes)) => bytes,
        None => {
            let (_, rest) = value.split_first_chunk::<3>().ok_or(wrong)?;
            let (length, rest) = rest.split_first().ok_or(wrong)?;
            rest.get(..usize::from(*length)).ok_or(wrong)?
        }
    };
    let mut taker = Taker(bytes);
    match bytes.len() {
        4 => Ok(Some(NextHop::V4(taker.array::<4>()?.into()))),
        16 => Ok(Some(NextHop::V6 { global: taker.array::<16>()?.into(), link_local: None })),
        32 => {
            let (global, link_local) = (taker.array::<16>()?, taker.array::<16>()?);
            Ok(Some(NextHop::V6 { global: global.into(), link_local: Some(link_local.into()) }))
        }
        _ => Err(wrong),
    }
}
