//! The routes that are announced: a table like that of the Internet, and single routes to probe with.
//!
//! Neighbouring prefixes share attributes by three or four, paths have three to six autonomous systems, two of five
//! groups have communities, one of five a MED; the order of the groups is random. All of it follows from the number of
//! routes.
//!
//! Reference: Handley et al., "Designing Extensible IP Router Software", §8.2 (a table of 146,515 routes).

use std::net::Ipv4Addr;

use weft_base::Random;
use weft_bgp::wire::{
    AsPath, Attributes, Context, Family, Neighbour, NextHop, Origin, UpdateEncoder, end_of_rib,
    withdraw,
};
use weft_netlink::InterfaceAddress;
use weft_routing::Prefix;

use super::super::xip_forward::prefixes::prefixes;

/// How many probes there can be; `told.bpf.c` has the same number.
pub(super) const MOST_PROBES: usize = 8192;
/// The probes are the networks of this length in 198.18.0.0/15 (RFC 2544).
pub(super) const PROBE_LENGTH: u8 = 28;
const FIRST_PROBE: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);

/// Numbers of autonomous systems to draw from.
const OLD: u64 = 64_000;
const NEW: (u64, u64) = (131_072, 400_000);

/// A table, encoded.
pub(super) struct Stream {
    pub(super) bytes: Vec<u8>,
    pub(super) messages: usize,
}

/// Addresses and lengths of prefixes that share attributes.
type Group = Vec<(u32, u8)>;

/// So many prefixes in groups, in the order in which they are announced, and what else is random.
fn groups(count: usize) -> (Vec<Group>, Random) {
    let mut random = Random::from_seed(count as u64);
    let mut table: Vec<_> = prefixes(count, &mut random)
        .into_iter()
        .map(|one| (one.address.to_bits(), one.length))
        .collect();
    table.sort_unstable();
    let mut groups = Vec::with_capacity(count / 3);
    let mut rest = &table[..];
    while !rest.is_empty() {
        let (group, others) = rest.split_at(rest.len().min(3 + random.below(2) as usize));
        groups.push(group.to_vec());
        rest = others;
    }
    for last in (1..groups.len()).rev() {
        groups.swap(last, random.below(last as u64 + 1) as usize);
    }
    (groups, random)
}

/// The networks of a table, in the order in which they are announced.
pub(super) fn nets(count: usize) -> Vec<InterfaceAddress> {
    let net = |(bits, length)| InterfaceAddress {
        ip: Ipv4Addr::from_bits(bits).into(),
        prefix_length: length,
    };
    groups(count).0.into_iter().flatten().map(net).collect()
}

/// The UPDATEs of a speaker with so many routes, and at their end what says that these were all.
pub(super) fn stream(count: usize, autonomous_system: u32, next_hop: Ipv4Addr) -> Stream {
    let (groups, mut random) = groups(count);
    let mut stream = Stream { bytes: Vec::with_capacity(count * 24), messages: 1 };
    let context = Context::new(Neighbour::External);
    for group in groups {
        let attributes = drawn(autonomous_system, next_hop, &mut random);
        let encoder = UpdateEncoder::new(&attributes, Family::IPV4_UNICAST, &context)
            .expect("attributes with a next hop of IPv4 and a few numbers fit");
        let prefixes = group.iter().map(|(bits, length)| (0, prefix(*bits, *length)));
        stream.messages += encoder.all(prefixes, &mut stream.bytes);
    }
    stream.bytes.extend(end_of_rib(Family::IPV4_UNICAST));
    stream
}

fn drawn(autonomous_system: u32, next_hop: Ipv4Addr, random: &mut Random) -> Attributes {
    let number = |random: &mut Random| match random.below(8) {
        0..3 => NEW.0 + random.below(NEW.1 - NEW.0),
        _ => 1 + random.below(OLD),
    };
    let mut path = vec![autonomous_system];
    path.extend((0..2 + random.below(4)).map(|_| number(random) as u32));
    let communities = if random.below(5) < 2 {
        let community =
            |random: &mut Random| ((1 + random.below(OLD)) << 16 | random.below(10_000)) as u32;
        (0..1 + random.below(5)).map(|_| community(random)).collect()
    } else {
        Box::default()
    };
    Attributes {
        as_path: AsPath::from_sequence(&path),
        next_hop: Some(NextHop::V4(next_hop)),
        origin: Origin::Igp,
        med: (random.below(5) == 0).then(|| random.below(200) as u32),
        communities,
        ..Attributes::default()
    }
}

fn prefix(bits: u32, length: u8) -> Prefix {
    Prefix::new(&bits.to_be_bytes(), length).expect("addresses of IPv4 have 32 bits")
}

/// The prefix of a probe.
pub(super) fn probe(number: usize) -> Prefix {
    prefix(FIRST_PROBE.to_bits() + ((number as u32) << (32 - PROBE_LENGTH)), PROBE_LENGTH)
}

/// Which probe a prefix is, if it is one.
pub(super) fn probe_number(prefix: &Prefix) -> Option<usize> {
    let key = key(prefix);
    let (bits, length) = ((key >> 8) as u32, key as u8);
    let number = bits.checked_sub(FIRST_PROBE.to_bits())? >> (32 - PROBE_LENGTH);
    (length == PROBE_LENGTH && (number as usize) < MOST_PROBES).then_some(number as usize)
}

/// A prefix of IPv4 as a number.
pub(super) fn key(prefix: &Prefix) -> u64 {
    let [a, b, c, d, ..] = prefix.first();
    u64::from(u32::from_be_bytes([a, b, c, d])) << 8 | u64::from(prefix.length())
}

/// The UPDATE that announces a probe, or withdraws it.
pub(super) fn probe_message(
    number: usize,
    announce: bool,
    autonomous_system: u32,
    next_hop: Ipv4Addr,
) -> Vec<u8> {
    let context = Context::new(Neighbour::External);
    let (mut bytes, prefixes) = (Vec::new(), [(0, probe(number))]);
    if !announce {
        withdraw(Family::IPV4_UNICAST, &context, prefixes, &mut bytes);
        return bytes;
    }
    let attributes = Attributes {
        as_path: AsPath::from_sequence(&[autonomous_system, 64_999]),
        next_hop: Some(NextHop::V4(next_hop)),
        origin: Origin::Igp,
        ..Attributes::default()
    };
    let encoder = UpdateEncoder::new(&attributes, Family::IPV4_UNICAST, &context)
        .expect("two numbers and a next hop fit");
    encoder.all(prefixes, &mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use weft_bgp::wire::{Cutter, Update};

    use super::*;

    const NEXT_HOP: Ipv4Addr = Ipv4Addr::new(10, 255, 1, 2);

    #[test]
    fn a_table_is_complete_and_always_the_same() {
        let stream = stream(5_000, 65_001, NEXT_HOP);
        assert_eq!(stream.bytes, super::stream(5_000, 65_001, NEXT_HOP).bytes);
        let context = Context::new(Neighbour::External);
        let mut cutter = Cutter::new();
        cutter.push(&stream.bytes);
        let (mut known, mut messages, mut lengths) = (HashSet::new(), 0, HashSet::new());
        let mut ends = 0;
        while let Some(message) = cutter.take().unwrap() {
            messages += 1;
            let update = Update::new_checked(message.body(), &context).unwrap();
            ends += usize::from(update.end_of_rib().is_some());
            for reach in update.reach() {
                known.extend(reach.nlri.iter().map(|(_, prefix)| key(&prefix)));
                lengths.insert(update.judge(&context).attributes.as_path.length());
            }
        }
        assert_eq!((known.len(), messages, ends), (5_000, stream.messages, 1));
        assert_eq!(lengths, HashSet::from([3, 4, 5, 6]));
    }

    #[test]
    fn probes_are_known_by_their_prefix_and_nothing_else_is_one() {
        for number in [0, 1, 255, MOST_PROBES - 1] {
            assert_eq!(probe_number(&probe(number)), Some(number));
        }
        assert_eq!(probe_number(&prefix(FIRST_PROBE.to_bits(), 24)), None);
        assert_eq!(probe_number(&prefix(0xC614_0000, 28)), None);
        assert_eq!(probe_number(&prefix(0xC000_0000, 28)), None);
    }
}
