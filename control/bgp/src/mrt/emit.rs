//! Writing records.
//!
//! Reference: RFC 6396 §2, §4.3, §4.4; RFC 8050.

use std::net::IpAddr;

use super::kind;
use super::message::Message;
use super::table::{HAS_FOUR_OCTETS, IS_IPV6, PeerTable, Rib, RibEntry, subtype};
use crate::numbers::afi;
use crate::numbers::attribute as code;
use crate::numbers::attribute_flag::OPTIONAL;
use crate::wire::{Family, NextHop, emit_block, emit_prefix};

/// Appends the record that says which peers there are: the first of a table. Peers beyond 65,535 are left out, and so
/// is what is behind 65,535 bytes of the view's name.
pub fn emit_peers(seconds: u32, table: &PeerTable, out: &mut Vec<u8>) {
    record(seconds, kind::TABLE_DUMP_V2, subtype::PEER_INDEX_TABLE, out, |out| {
        out.extend(table.collector.octets());
        let view = table.view.as_bytes();
        let view = &view[..view.len().min(usize::from(u16::MAX))];
        out.extend((view.len() as u16).to_be_bytes());
        out.extend(view);
        let count = table.peers.len().min(usize::from(u16::MAX));
        out.extend((count as u16).to_be_bytes());
        for peer in &table.peers[..count] {
            let is_ipv6 = if peer.address.is_ipv6() { IS_IPV6 } else { 0 };
            out.push(is_ipv6 | HAS_FOUR_OCTETS);
            out.extend(peer.identifier.octets());
            address(&peer.address, out);
            out.extend(peer.autonomous_system.to_be_bytes());
        }
    });
}

/// Appends the record of a prefix; true if it was written. What has a path identifier, and what has none, cannot stand
/// in one record: all entries must be alike in that. Families other than unicast and multicast of IP are not written.
pub fn emit_rib(seconds: u32, rib: &Rib, out: &mut Vec<u8>) -> bool {
    let base = match rib.family {
        Family::IPV4_UNICAST => subtype::RIB_IPV4_UNICAST,
        Family::IPV4_MULTICAST => subtype::RIB_IPV4_MULTICAST,
        Family::IPV6_UNICAST => subtype::RIB_IPV6_UNICAST,
        Family::IPV6_MULTICAST => subtype::RIB_IPV6_MULTICAST,
        _ => return false,
    };
    let has_ids = rib.entries.first().is_some_and(|entry| entry.path_id.is_some());
    let is_alike = rib.entries.iter().all(|entry| entry.path_id.is_some() == has_ids);
    let Some(count) = u16::try_from(rib.entries.len()).ok().filter(|_| is_alike) else {
        return false;
    };
    let subtype = if has_ids { base + subtype::ADD_PATH } else { base };
    let blocks: Vec<_> = rib.entries.iter().map(block).collect();
    if blocks.iter().any(|block| block.len() > usize::from(u16::MAX)) {
        return false;
    }
    record(seconds, kind::TABLE_DUMP_V2, subtype, out, |out| {
        out.extend(rib.sequence.to_be_bytes());
        emit_prefix(None, &rib.prefix, out);
        out.extend(count.to_be_bytes());
        for (entry, block) in rib.entries.iter().zip(&blocks) {
            out.extend(entry.peer.to_be_bytes());
            out.extend(entry.since.to_be_bytes());
            out.extend(entry.path_id.into_iter().flat_map(u32::to_be_bytes));
            out.extend((block.len() as u16).to_be_bytes());
            out.extend(block);
        }
    });
    true
}

/// Appends the record of a message.
pub fn emit_message(seconds: u32, message: &Message, out: &mut Vec<u8>) {
    record(seconds, kind::BGP4MP, message.subtype(), out, |out| {
        for number in message.autonomous_systems {
            match message.four_octet_as {
                true => out.extend(number.to_be_bytes()),
                // Who counts in two octets has no greater numbers.
                false => out.extend((number as u16).to_be_bytes()),
            }
        }
        // Which interface it was nobody asks.
        out.extend([0, 0]);
        let is_ipv6 = message.addresses.iter().any(IpAddr::is_ipv6);
        out.extend(if is_ipv6 { afi::IPV6 } else { afi::IPV4 }.to_be_bytes());
        message.addresses.iter().for_each(|one| address(one, out));
        out.extend(&message.bytes);
    });
}

fn record(
    seconds: u32,
    kind: u16,
    subtype: u16,
    out: &mut Vec<u8>,
    body: impl FnOnce(&mut Vec<u8>),
) {
    out.extend(seconds.to_be_bytes());
    out.extend(kind.to_be_bytes());
    out.extend(subtype.to_be_bytes());
    let at = out.len();
    out.extend([0; 4]);
    body(out);
    // Records are made of lists whose lengths have two octets.
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

/// The attributes of an entry: a next hop of IPv6 in MP_REACH_NLRI without its family and prefixes (RFC 6396 §4.3.4).
fn block(entry: &RibEntry) -> Vec<u8> {
    let mut block = Vec::new();
    emit_block(&entry.attributes, true, true, &mut block);
    if let Some(NextHop::V6 { global, link_local }) = entry.attributes.next_hop {
        let octets: Vec<u8> =
            [Some(global), link_local].into_iter().flatten().flat_map(|one| one.octets()).collect();
        // 32 at most.
        let length = octets.len() as u8;
        block.extend([OPTIONAL, code::MP_REACH_NLRI, length + 1, length]);
        block.extend(octets);
    }
    block
}

fn address(address: &IpAddr, out: &mut Vec<u8>) {
    match address {
        IpAddr::V4(address) => out.extend(address.octets()),
        IpAddr::V6(address) => out.extend(address.octets()),
    }
}
