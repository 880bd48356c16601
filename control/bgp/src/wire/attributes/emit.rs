//! Writing path attributes, in the order of their codes and with the shortest lengths.
//!
//! Reference: RFC 4271 §4.3, §5 (order, Partial); RFC 6793 §4.2.2 (to speakers that know two octets).

use std::net::Ipv4Addr;

use super::{Aggregator, Attributes, NextHop, UnknownAttribute};
use crate::numbers::AS_TRANS;
use crate::numbers::attribute as code;
use crate::numbers::attribute_flag::{EXTENDED_LENGTH, OPTIONAL, PARTIAL, TRANSITIVE};

/// Appends all attributes that are not lists of prefixes to `out`. An address of IPv4 is written as NEXT_HOP if
/// `has_next_hop`; other next hops stand with their prefixes.
pub(crate) fn emit_block(
    attributes: &Attributes,
    four_octets: bool,
    has_next_hop: bool,
    out: &mut Vec<u8>,
) {
    let rare = attributes.rare();
    let mut emitter = Emitter { out, partial: rare.partial, unknown: &rare.unknown };
    emitter.fixed(code::ORIGIN, &[attributes.origin.code()]);
    let length = attributes.as_path.emit_len(four_octets);
    emitter.header(TRANSITIVE, code::AS_PATH, length);
    attributes.as_path.emit(four_octets, emitter.out);
    if let (Some(NextHop::V4(ip)), true) = (attributes.next_hop, has_next_hop) {
        emitter.fixed(code::NEXT_HOP, &ip.octets());
    }
    if let Some(med) = attributes.med {
        emitter.optional(OPTIONAL, code::MED, &[med.to_be_bytes()]);
    }
    if let Some(local_pref) = attributes.local_pref {
        emitter.fixed(code::LOCAL_PREF, &local_pref.to_be_bytes());
    }
    if attributes.atomic_aggregate {
        emitter.fixed(code::ATOMIC_AGGREGATE, &[]);
    }
    if let Some(aggregator) = &rare.aggregator {
        emitter.aggregator(aggregator, four_octets);
    }
    let both = OPTIONAL | TRANSITIVE;
    emitter.list(both, code::COMMUNITIES, attributes.communities.iter().map(|c| c.to_be_bytes()));
    if let Some(id) = rare.originator_id {
        emitter.optional(OPTIONAL, code::ORIGINATOR_ID, &[id.octets()]);
    }
    let clusters = rare.cluster_list.iter().map(Ipv4Addr::octets);
    emitter.list(OPTIONAL, code::CLUSTER_LIST, clusters);
    let extended = attributes.extended_communities.iter().map(|c| c.to_be_bytes());
    emitter.list(both, code::EXTENDED_COMMUNITIES, extended);
    if !four_octets {
        emitter.as4(attributes, rare.aggregator.as_ref());
    }
    if let Some(metric) = rare.aigp {
        emitter.header(OPTIONAL, code::AIGP, 11);
        emitter.out.extend_from_slice(&[1, 0, 11]);
        emitter.out.extend_from_slice(&metric.to_be_bytes());
    }
    let large = attributes.large_communities.iter().flat_map(|community| {
        [community.administrator, community.first, community.second].map(u32::to_be_bytes)
    });
    emitter.list(both, code::LARGE_COMMUNITIES, large);
    if let Some(number) = rare.only_to_customer {
        emitter.optional(both, code::ONLY_TO_CUSTOMER, &[number.to_be_bytes()]);
    }
    if let Some(value) = &rare.prefix_sid {
        emitter.header(both, code::PREFIX_SID, value.len());
        emitter.out.extend_from_slice(value);
    }
    emitter.unknown_below(None);
}

struct Emitter<'a> {
    out: &'a mut Vec<u8>,
    partial: u64,
    /// Those that were not written yet.
    unknown: &'a [UnknownAttribute],
}

impl Emitter<'_> {
    /// Writes flags, code and length, and in front of them unknown attributes with lower codes.
    fn header(&mut self, flags: u8, code: u8, length: usize) {
        self.unknown_below(Some(code));
        let partial = if self.partial >> code & 1 == 0 { 0 } else { PARTIAL };
        self.bare_header(flags | partial, code, length);
    }

    fn bare_header(&mut self, flags: u8, code: u8, length: usize) {
        match u8::try_from(length) {
            Ok(length) => self.out.extend_from_slice(&[flags, code, length]),
            Err(_) => {
                // Values of more than 64 KiB make the block too long for any message, which the encoder sees.
                let [.., high, low] = length.to_be_bytes();
                self.out.extend_from_slice(&[flags | EXTENDED_LENGTH, code, high, low]);
            }
        }
    }

    /// RFC 4271 §5: who does not know them says so in passing them on.
    fn unknown_below(&mut self, code: Option<u8>) {
        while let Some((first, rest)) = self.unknown.split_first()
            && code.is_none_or(|code| first.code < code)
        {
            self.unknown = rest;
            self.bare_header(OPTIONAL | TRANSITIVE | PARTIAL, first.code, first.value.len());
            self.out.extend_from_slice(&first.value);
        }
    }

    /// A well-known attribute.
    fn fixed(&mut self, code: u8, value: &[u8]) {
        self.header(TRANSITIVE, code, value.len());
        self.out.extend_from_slice(value);
    }

    fn optional<const N: usize>(&mut self, flags: u8, code: u8, value: &[[u8; N]]) {
        self.header(flags, code, value.len() * N);
        self.out.extend_from_slice(value.as_flattened());
    }

    /// Nothing if there is nothing in it: an empty list is malformed.
    fn list<const N: usize>(
        &mut self,
        flags: u8,
        code: u8,
        items: impl Iterator<Item = [u8; N]> + Clone,
    ) {
        let count = items.clone().count();
        if count > 0 {
            self.header(flags, code, count * N);
            self.out.extend(items.flatten());
        }
    }

    fn aggregator(&mut self, aggregator: &Aggregator, four_octets: bool) {
        let number = aggregator.autonomous_system;
        self.header(OPTIONAL | TRANSITIVE, code::AGGREGATOR, if four_octets { 8 } else { 6 });
        if four_octets {
            self.out.extend_from_slice(&number.to_be_bytes());
        } else {
            let short = u16::try_from(number).unwrap_or(AS_TRANS);
            self.out.extend_from_slice(&short.to_be_bytes());
        }
        self.out.extend_from_slice(&aggregator.identifier.octets());
    }

    /// What two octets cannot say. Without the confederation, which AS4_PATH must not have (RFC 6793 §3).
    fn as4(&mut self, attributes: &Attributes, aggregator: Option<&Aggregator>) {
        let flags = OPTIONAL | TRANSITIVE;
        let path = attributes.as_path.without_confederation();
        if path.needs_four_octets() {
            self.header(flags, code::AS4_PATH, path.emit_len(true));
            path.emit(true, self.out);
        }
        if let Some(aggregator) = aggregator
            && u16::try_from(aggregator.autonomous_system).is_err()
        {
            self.header(flags, code::AS4_AGGREGATOR, 8);
            self.out.extend_from_slice(&aggregator.autonomous_system.to_be_bytes());
            self.out.extend_from_slice(&aggregator.identifier.octets());
        }
    }
}
