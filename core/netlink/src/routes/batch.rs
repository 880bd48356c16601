//! The bytes of changes of routes, many in one datagram.
//!
//! Reference: RFC 3549 §2.2 (message header), §3.2.1 (`struct rtmsg`); rtnetlink(7); linux/rtnetlink.h.
//!
//! ```text
//! each change   nlmsghdr(16) rtmsg(12) RTA_DST [RTA_TABLE] [RTA_PRIORITY] way
//! way           RTA_NH_ID                               a single one that is an object of the kernel (`next_hops`)
//!               [RTA_GATEWAY or RTA_VIA] [RTA_OIF]      another single one
//!               RTA_MULTIPATH { rtnexthop(8) [RTA_GATEWAY or RTA_VIA] }…
//! attribute     length(2) kind(2) value, up to a multiple of four bytes
//! ```
//!
//! Everything is of the machine's byte order but addresses. The bytes are written straight into a buffer that is used
//! again: a full table has a million routes.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST};

use super::next_hops::Chosen;
use super::{RouteChange, RouteOperation, RouteSpace, RouteTarget, RouteWay};
use crate::ip_message::RTA_VIA;

/// A datagram takes no further change when it is as long as this. The kernel takes those that fit its send buffer, of
/// which 212,992 bytes are usual.
const LONG: usize = 64 << 10;
/// Bytes of `struct nlmsghdr` and `struct rtmsg`.
const HEADERS: usize = 16 + 12;
/// `RTNH_F_ONLINK`: the gateway is a neighbour, whatever the addresses say.
const ONLINK: u8 = 4;
/// `RTA_NH_ID`: the number of a next hop that is an object of its own.
const RTA_NH_ID: u16 = 30;

/// Changes of routes, ready for the kernel.
#[derive(Debug, Default)]
pub struct RouteBatch {
    pub(super) bytes: Vec<u8>,
    /// The number of the first change; the others follow.
    pub(super) first: u32,
    pub(super) count: u32,
}

impl RouteBatch {
    /// The bytes of the datagram.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes changes in the place of what was there, as many as fit one datagram, numbered from `first` on. Says how
    /// many.
    pub fn emit(&mut self, first: u32, space: &RouteSpace, changes: &[RouteChange]) -> usize {
        self.emit_by(first, space, changes, &Chosen::default())
    }

    /// As [`RouteBatch::emit`], with targets by objects where there are some.
    pub(super) fn emit_by(
        &mut self,
        first: u32,
        space: &RouteSpace,
        changes: &[RouteChange],
        chosen: &Chosen,
    ) -> usize {
        self.bytes.clear();
        (self.first, self.count) = (first, 0);
        let mut last = 0;
        for change in changes {
            if self.bytes.len() >= LONG {
                break;
            }
            last = self.bytes.len();
            message(&mut self.bytes, space, change, chosen, first.wrapping_add(self.count));
            self.count += 1;
        }
        // The kernel says unasked which ones it refuses; that all is done says the answer to the last one.
        if let Some(flags) = self.bytes.get_mut(last + 6..last + 8) {
            flags.copy_from_slice(
                &(flags_of(&changes[self.count as usize - 1]) | NLM_F_ACK).to_ne_bytes(),
            );
        }
        self.count as usize
    }
}

fn flags_of(change: &RouteChange) -> u16 {
    NLM_F_REQUEST
        | match change.operation {
            RouteOperation::Add(_) => NLM_F_CREATE | NLM_F_EXCL,
            RouteOperation::Replace(_) => NLM_F_CREATE | NLM_F_REPLACE,
            RouteOperation::Delete => 0,
        }
}

fn message(
    bytes: &mut Vec<u8>,
    space: &RouteSpace,
    change: &RouteChange,
    chosen: &Chosen,
    sequence: u32,
) {
    let start = bytes.len();
    let object = change.target().and_then(|target| chosen.of(target));
    let (message_type, kind, scope, flags) = match &change.operation {
        RouteOperation::Add(target) | RouteOperation::Replace(target) => {
            let flags = if object.is_some() { 0 } else { flags(target) };
            (libc::RTM_NEWROUTE, kind(target), scope(target), flags)
        }
        // Of every kind and scope.
        RouteOperation::Delete => (libc::RTM_DELROUTE, libc::RTN_UNSPEC, libc::RT_SCOPE_NOWHERE, 0),
    };
    let small_table = u8::try_from(space.table).unwrap_or(libc::RT_TABLE_UNSPEC);
    let mut headers = [0; HEADERS];
    headers[4..6].copy_from_slice(&message_type.to_ne_bytes());
    headers[6..8].copy_from_slice(&flags_of(change).to_ne_bytes());
    headers[8..12].copy_from_slice(&sequence.to_ne_bytes());
    headers[16] = if space.is_ipv6 { libc::AF_INET6 as u8 } else { libc::AF_INET as u8 };
    headers[17] = change.destination.prefix_length;
    headers[20..24].copy_from_slice(&[small_table, space.protocol, scope, kind]);
    headers[24..28].copy_from_slice(&u32::from(flags).to_ne_bytes());
    bytes.extend_from_slice(&headers);
    match change.destination.ip {
        IpAddr::V4(ip) => attribute(bytes, libc::RTA_DST, &ip.octets()),
        IpAddr::V6(ip) => attribute(bytes, libc::RTA_DST, &ip.octets()),
    }
    if small_table == libc::RT_TABLE_UNSPEC {
        attribute(bytes, libc::RTA_TABLE, &space.table.to_ne_bytes());
    }
    if change.metric != 0 {
        attribute(bytes, libc::RTA_PRIORITY, &change.metric.to_ne_bytes());
    }
    if let Some(number) = object {
        attribute(bytes, RTA_NH_ID, &number.to_ne_bytes());
    } else if let Some(RouteTarget::Ways(ways)) = change.target().map(|target| &**target) {
        match ways.as_slice() {
            [way] => single(bytes, space, way),
            ways => several(bytes, space, ways),
        }
    }
    let length = (bytes.len() - start) as u32;
    bytes[start..start + 4].copy_from_slice(&length.to_ne_bytes());
}

fn kind(target: &RouteTarget) -> u8 {
    match target {
        RouteTarget::Ways(_) => libc::RTN_UNICAST,
        RouteTarget::Blackhole => libc::RTN_BLACKHOLE,
        RouteTarget::Unreachable => libc::RTN_UNREACHABLE,
        RouteTarget::Prohibit => libc::RTN_PROHIBIT,
    }
}

/// A destination on the link is as near as the link, so that gateways can be reached by this route.
fn scope(target: &RouteTarget) -> u8 {
    match target {
        RouteTarget::Ways(ways) if ways.iter().all(|way| way.gateway.is_none()) => {
            libc::RT_SCOPE_LINK
        }
        _ => libc::RT_SCOPE_UNIVERSE,
    }
}

fn flags(target: &RouteTarget) -> u8 {
    match target {
        RouteTarget::Ways(ways) => match ways.as_slice() {
            [way] => flags_of_way(way),
            _ => 0,
        },
        _ => 0,
    }
}

fn flags_of_way(way: &RouteWay) -> u8 {
    if way.gateway.is_some() && way.interface != 0 { ONLINK } else { 0 }
}

fn single(bytes: &mut Vec<u8>, space: &RouteSpace, way: &RouteWay) {
    gateway(bytes, space, way);
    if way.interface != 0 {
        attribute(bytes, libc::RTA_OIF, &way.interface.to_ne_bytes());
    }
}

fn several(bytes: &mut Vec<u8>, space: &RouteSpace, ways: &[RouteWay]) {
    let start = bytes.len();
    bytes.extend_from_slice(&[0; 4]);
    for way in ways {
        let hop = bytes.len();
        // The kernel counts weights from 0 on.
        let weight = way.weight.clamp(1, 256) - 1;
        bytes.extend_from_slice(&[0, 0, flags_of_way(way), weight as u8]);
        bytes.extend_from_slice(&way.interface.to_ne_bytes());
        gateway(bytes, space, way);
        set_length(bytes, hop);
    }
    set_length(bytes, start);
    bytes[start + 2..start + 4].copy_from_slice(&libc::RTA_MULTIPATH.to_ne_bytes());
}

fn gateway(bytes: &mut Vec<u8>, space: &RouteSpace, way: &RouteWay) {
    match way.gateway {
        Some(IpAddr::V4(ip)) if !space.is_ipv6 => attribute(bytes, libc::RTA_GATEWAY, &ip.octets()),
        Some(IpAddr::V6(ip)) if space.is_ipv6 => attribute(bytes, libc::RTA_GATEWAY, &ip.octets()),
        // `struct rtvia`: the family in front.
        Some(IpAddr::V6(ip)) => {
            let mut via = [0; 18];
            via[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
            via[2..].copy_from_slice(&ip.octets());
            attribute(bytes, RTA_VIA, &via);
        }
        // The kernel refuses it in its own words.
        Some(IpAddr::V4(ip)) => {
            let mut via = [0; 6];
            via[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
            via[2..].copy_from_slice(&ip.octets());
            attribute(bytes, RTA_VIA, &via);
        }
        None => {}
    }
}

#[inline]
fn attribute(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = (4 + value.len()) as u16;
    bytes.extend_from_slice(&length.to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// Writes how long what began there is, into its first two bytes. Ways are bounded, so that it fits.
fn set_length(bytes: &mut [u8], start: usize) {
    let length = (bytes.len() - start) as u16;
    bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};
    use std::sync::Arc;

    use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
    use netlink_packet_route::RouteNetlinkMessage;
    use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteProtocol, RouteType};
    use proptest::prelude::*;

    use super::super::Reader;
    use super::*;
    use crate::{InterfaceAddress, KernelRoute};

    fn way(is_ipv6: bool) -> impl Strategy<Value = RouteWay> {
        let v4 = any::<u32>().prop_map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits)));
        let v6 = any::<u128>().prop_map(|bits| IpAddr::V6(Ipv6Addr::from_bits(bits)));
        let gateway = if is_ipv6 { v6.boxed() } else { prop_oneof![v4, v6].boxed() };
        (prop::option::of(gateway), 1..9u32, 1..=256u16)
            .prop_map(|(gateway, interface, weight)| RouteWay { gateway, interface, weight })
    }

    fn change(is_ipv6: bool) -> impl Strategy<Value = RouteChange> {
        let target = prop_oneof![
            Just(RouteTarget::Blackhole),
            Just(RouteTarget::Unreachable),
            Just(RouteTarget::Prohibit),
            prop::collection::vec(way(is_ipv6), 1..5).prop_map(RouteTarget::ways),
        ];
        let longest = if is_ipv6 { 128 } else { 32u8 };
        (any::<u128>(), 0..=longest, any::<u32>(), target, any::<bool>()).prop_map(
            move |(bits, prefix_length, metric, target, new)| {
                let ip = match is_ipv6 {
                    true => IpAddr::V6(Ipv6Addr::from_bits(bits)),
                    false => IpAddr::V4(Ipv4Addr::from_bits(bits as u32)),
                };
                let target = Arc::new(target);
                let operation = match new {
                    true => RouteOperation::Add(target),
                    false => RouteOperation::Replace(target),
                };
                let destination = InterfaceAddress { ip, prefix_length };
                RouteChange { destination, metric, operation }
            },
        )
    }

    fn space(is_ipv6: bool) -> impl Strategy<Value = RouteSpace> {
        (
            prop_oneof![
                1..256u32,
                any::<u32>().prop_filter("there is no table 0", |table| *table > 0)
            ],
            any::<u8>(),
        )
            .prop_map(move |(table, protocol)| RouteSpace { is_ipv6, table, protocol })
    }

    fn case() -> impl Strategy<Value = (RouteSpace, Vec<RouteChange>)> {
        any::<bool>().prop_flat_map(|is_ipv6| {
            (space(is_ipv6), prop::collection::vec(change(is_ipv6), 1..20))
        })
    }

    /// What the kernel has of a route once it was set.
    fn there(change: &RouteChange) -> KernelRoute {
        let (RouteOperation::Add(target) | RouteOperation::Replace(target)) = &change.operation
        else {
            panic!("{change:?}")
        };
        let mut target = RouteTarget::clone(target);
        if let RouteTarget::Ways(ways) = &mut target
            && let [way] = &mut ways[..]
        {
            way.weight = 1;
        }
        let RouteChange { destination, metric, .. } = *change;
        KernelRoute { destination, metric, target: Some(Arc::new(target)) }
    }

    proptest! {
        /// The kernel tells of routes in the form in which they are set.
        #[test]
        fn what_is_set_is_read((space, changes) in case()) {
            let mut batch = RouteBatch::default();
            prop_assert_eq!(batch.emit(9, &space, &changes), changes.len());
            let mut reader = Reader::new(space);
            let mut read = Vec::new();
            reader.routes(&batch.bytes, &mut read);
            prop_assert_eq!(read, changes.iter().map(there).collect::<Vec<_>>());
        }

        #[test]
        fn what_fits_is_taken_and_the_rest_the_next_time(count in 1..4000usize, first in any::<u32>()) {
            let destination = |number: usize| InterfaceAddress {
                ip: IpAddr::from(Ipv4Addr::from_bits((number as u32) << 8)),
                prefix_length: 24,
            };
            let change = |number| RouteChange {
                destination: destination(number),
                metric: 7,
                operation: RouteOperation::Delete,
            };
            let changes: Vec<_> = (0..count).map(change).collect();
            let space = RouteSpace { is_ipv6: false, table: 1000, protocol: 119 };
            let (mut batch, mut done) = (RouteBatch::default(), 0);
            while done < count {
                let number = first.wrapping_add(done as u32);
                let taken = batch.emit(number, &space, &changes[done..]);
                prop_assert!(taken > 0 && batch.bytes.len() < LONG + 100);
                let mut asked = Vec::new();
                crate::message::each(&batch.bytes, |header, _| asked.push(header));
                prop_assert_eq!(asked.len(), taken);
                for (place, header) in asked.iter().enumerate() {
                    prop_assert_eq!(header.sequence, number.wrapping_add(place as u32));
                    prop_assert_eq!(header.flags & NLM_F_ACK != 0, place + 1 == taken);
                }
                done += taken;
            }
        }
    }

    /// As the other implementation writes it, which this workspace uses where speed does not matter.
    #[test]
    fn another_implementation_reads_the_same() {
        let way = RouteWay { gateway: Some([192, 0, 2, 1].into()), interface: 3, weight: 1 };
        let change = RouteChange {
            destination: InterfaceAddress { ip: [203, 0, 113, 0].into(), prefix_length: 24 },
            metric: 40,
            operation: RouteOperation::Add(Arc::new(RouteTarget::ways(vec![way]))),
        };
        let space = RouteSpace { is_ipv6: false, table: 10_000, protocol: 119 };
        let mut batch = RouteBatch::default();
        batch.emit(5, &space, &[change]);
        let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&batch.bytes).unwrap();
        assert_eq!(message.header.sequence_number, 5);
        assert_eq!(message.header.flags, NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK);
        let NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewRoute(route)) = message.payload
        else {
            panic!("{message:?}")
        };
        assert_eq!(route.header.destination_prefix_length, 24);
        assert_eq!(route.header.protocol, RouteProtocol::from(119));
        assert_eq!(route.header.kind, RouteType::Unicast);
        assert_eq!(
            route.attributes,
            [
                RouteAttribute::Destination(RouteAddress::Inet([203, 0, 113, 0].into())),
                RouteAttribute::Table(10_000),
                RouteAttribute::Priority(40),
                RouteAttribute::Gateway(RouteAddress::Inet([192, 0, 2, 1].into())),
                RouteAttribute::Oif(3),
            ]
        );
    }
}
