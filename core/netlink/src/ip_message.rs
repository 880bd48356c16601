//! The bytes of rtnetlink messages about routes and neighbours: reading what matters here.
//!
//! Reference: RFC 3549 §3.2; rtnetlink(7); linux/rtnetlink.h (`struct rtmsg`, `struct rtnexthop`, `RTA_…`),
//! linux/neighbour.h (`struct ndmsg`, `NDA_…`, `NUD_…`).

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_APPEND, NLM_F_REPLACE};

use crate::message::{attributes, ip, number};
use crate::{InterfaceAddress, IpWay};

/// Bytes of `struct rtmsg`, and of `struct ndmsg`.
pub(crate) const HEADER: usize = 12;
/// Bytes of `struct rtnexthop`.
const NEXT_HOP: usize = 8;
/// `RTNH_F_DEAD`: the kernel does not use this way.
const DEAD: u8 = 1;
/// `RTA_VIA`: a gateway of another family.
pub(crate) const RTA_VIA: u16 = 18;
/// `RTA_ENCAP_TYPE`: it takes a header in front, such as one of MPLS.
pub(crate) const RTA_ENCAP_TYPE: u16 = 21;
/// `NTF_PROXY`: an entry that is answered for, not one that packets go to.
const PROXY: u8 = 8;
/// States in which the kernel sends to the hardware address that it has.
const USABLE: u16 = libc::NUD_REACHABLE
    | libc::NUD_STALE
    | libc::NUD_DELAY
    | libc::NUD_PROBE
    | libc::NUD_NOARP
    | libc::NUD_PERMANENT;

/// A route, as the kernel tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RouteMessage {
    pub(crate) destination: InterfaceAddress,
    pub(crate) entry: Entry,
    pub(crate) event: RouteEvent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteEvent {
    /// It is there, in front of others that are as good.
    Added,
    /// It is there, behind others that are as good.
    Appended,
    /// It is there instead of another that was as good.
    Replaced,
    Removed,
}

/// One of the routes to a prefix. Sorted as the kernel prefers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The place of its table among those that are looked into.
    pub(crate) table: u8,
    /// The metric; the least is best.
    pub(crate) metric: u32,
    pub(crate) way: IpWay,
    /// It has several ways, of which this is the first that works.
    pub(crate) several: bool,
}

impl Entry {
    /// What the kernel prefers by.
    pub(crate) fn rank(&self) -> (u8, u32) {
        (self.table, self.metric)
    }
}

/// `FR_ACT_TO_TBL`: a rule that says which table to look into.
const TO_TABLE: u8 = 1;
const FRA_PRIORITY: u16 = 6;
const FRA_TABLE: u16 = 15;
const FRA_SUPPRESS_PREFIXLEN: u16 = 14;
const FRA_PROTOCOL: u16 = 21;

/// A rule of policy, as the kernel tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) is_ipv6: bool,
    /// It is one of those that every machine has.
    pub(crate) usual: bool,
}

/// A neighbour, as the kernel tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Neighbour {
    pub(crate) interface: u32,
    pub(crate) ip: IpAddr,
    pub(crate) mac: Option<[u8; 6]>,
    pub(crate) idle: bool,
}

/// The place of a table among those that are looked into; `None` for those that only rules lead to.
fn table(number: u32) -> Option<u8> {
    match u8::try_from(number) {
        Ok(libc::RT_TABLE_LOCAL) => Some(0),
        Ok(libc::RT_TABLE_MAIN) => Some(1),
        Ok(libc::RT_TABLE_DEFAULT) => Some(2),
        _ => None,
    }
}

/// A `struct rtmsg` and its attributes; nothing for routes that are not for all packets to a prefix.
pub(crate) fn route(payload: &[u8], flags: u16, there: bool) -> Option<RouteMessage> {
    let [family, length, source_length, tos, small_table, _protocol, _scope, kind] =
        *payload.first_chunk::<8>()?;
    let route_flags = number(payload.get(8..)?)?;
    let any = match i32::from(family) {
        libc::AF_INET => IpAddr::from([0; 4]),
        libc::AF_INET6 => IpAddr::from([0; 16]),
        _ => return None,
    };
    if source_length > 0 || tos > 0 || route_flags & libc::RTM_F_CLONED != 0 {
        return None;
    }
    let (mut destination, mut number_of_table, mut metric) = (any, u32::from(small_table), 0);
    let (mut interface, mut gateway) = (None, None);
    let (mut first, mut several, mut with_header) = (None, false, false);
    for (attribute, value) in attributes(payload.get(HEADER..)?) {
        match attribute {
            libc::RTA_DST => destination = ip(family, value)?,
            libc::RTA_TABLE => number_of_table = number(value)?,
            libc::RTA_PRIORITY => metric = number(value)?,
            libc::RTA_OIF => interface = number(value),
            libc::RTA_GATEWAY => gateway = Some(ip(family, value)?),
            RTA_VIA => gateway = Some(via(value)?),
            RTA_ENCAP_TYPE => with_header = true,
            libc::RTA_MULTIPATH => {
                let mut hops = next_hops(family, value);
                several = hops.clone().count() > 1;
                first = hops.find_map(|hop| hop?.way());
            }
            _ => {}
        }
    }
    let out = match interface {
        Some(interface) if route_flags & u32::from(DEAD) == 0 => {
            Some(IpWay::Out { interface, gateway })
        }
        _ => None,
    };
    let way = match kind {
        libc::RTN_UNICAST if with_header => IpWay::Nowhere,
        // A way that does not work leaves the packet to the next route.
        libc::RTN_UNICAST => first.or(out)?,
        libc::RTN_LOCAL | libc::RTN_ANYCAST => IpWay::Local,
        libc::RTN_THROW => return None,
        _ => IpWay::Nowhere,
    };
    let longest = if any.is_ipv4() { 32 } else { 128 };
    if length > longest {
        return None;
    }
    Some(RouteMessage {
        destination: InterfaceAddress { ip: destination, prefix_length: length },
        entry: Entry { table: table(number_of_table)?, metric, way, several },
        event: match there {
            false => RouteEvent::Removed,
            true if flags & NLM_F_REPLACE != 0 => RouteEvent::Replaced,
            true if flags & NLM_F_APPEND != 0 => RouteEvent::Appended,
            true => RouteEvent::Added,
        },
    })
}

/// A `struct fib_rule_hdr` (which is as long as `struct rtmsg`) and its attributes.
pub(crate) fn rule(payload: &[u8]) -> Option<Rule> {
    let [family, destination, source, tos, small_table, _, _, action] =
        *payload.first_chunk::<8>()?;
    let is_ipv6 = match i32::from(family) {
        libc::AF_INET => false,
        libc::AF_INET6 => true,
        _ => return None,
    };
    let (mut priority, mut number_of_table) = (0, u32::from(small_table));
    let mut usual = action == TO_TABLE && destination == 0 && source == 0 && tos == 0;
    for (attribute, value) in attributes(payload.get(HEADER..)?) {
        match attribute {
            FRA_PRIORITY => priority = number(value)?,
            FRA_TABLE => number_of_table = number(value)?,
            // Minus one: nothing is suppressed.
            FRA_SUPPRESS_PREFIXLEN => usual &= number(value)? == u32::MAX,
            // Who made it.
            FRA_PROTOCOL => {}
            _ => usual = false,
        }
    }
    let place = match table(number_of_table) {
        Some(0) => Some(0),
        Some(1) => Some(32_766),
        Some(_) => Some(32_767),
        None => None,
    };
    Some(Rule { is_ipv6, usual: usual && place == Some(priority) })
}

/// A `struct rtvia`: a family and an address.
pub(crate) fn via(value: &[u8]) -> Option<IpAddr> {
    let family = u16::from_ne_bytes(*value.first_chunk()?);
    ip(u8::try_from(family).ok()?, value.get(2..)?)
}

/// One way of a route that has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextHop {
    pub(crate) interface: u32,
    pub(crate) gateway: Option<IpAddr>,
    /// From 0 on.
    pub(crate) weight: u8,
    /// The kernel does not use it.
    pub(crate) is_dead: bool,
    /// Packets take a header in front.
    pub(crate) has_header: bool,
}

impl NextHop {
    /// Where it leads, if it works and takes no header in front.
    fn way(&self) -> Option<IpWay> {
        let Self { interface, gateway, .. } = *self;
        (!self.is_dead && !self.has_header).then_some(IpWay::Out { interface, gateway })
    }
}

/// The ways of a route that has several, each a `struct rtnexthop` with attributes; `None` for one that cannot be read.
pub(crate) fn next_hops(
    family: u8,
    value: &[u8],
) -> impl Iterator<Item = Option<NextHop>> + Clone + '_ {
    let mut rest = value;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*rest.first_chunk()?));
        let hop = rest.get(..length).filter(|hop| hop.len() >= NEXT_HOP)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(next_hop(family, hop))
    })
}

fn next_hop(family: u8, hop: &[u8]) -> Option<NextHop> {
    let [_, _, flags, weight] = *hop.first_chunk::<4>()?;
    let interface = number(hop.get(4..NEXT_HOP)?)?;
    let (mut gateway, mut has_header) = (None, false);
    for (attribute, value) in attributes(hop.get(NEXT_HOP..)?) {
        match attribute {
            libc::RTA_GATEWAY => gateway = Some(ip(family, value)?),
            RTA_VIA => gateway = Some(via(value)?),
            RTA_ENCAP_TYPE => has_header = true,
            _ => {}
        }
    }
    Some(NextHop { interface, gateway, weight, is_dead: flags & DEAD != 0, has_header })
}

/// A `struct ndmsg` and its attributes.
pub(crate) fn neighbour(payload: &[u8], there: bool) -> Option<Neighbour> {
    let family = *payload.first()?;
    let interface = number(payload.get(4..)?)?;
    let state = u16::from_ne_bytes(*payload.get(8..)?.first_chunk()?);
    let (mut address, mut mac) = (None, None);
    for (attribute, value) in attributes(payload.get(HEADER..)?) {
        match attribute {
            libc::NDA_DST => address = ip(family, value),
            libc::NDA_LLADDR => mac = value.try_into().ok(),
            _ => {}
        }
    }
    let ip = address.filter(|ip| !ip.is_multicast())?;
    if payload.get(10)? & PROXY != 0 {
        return None;
    }
    // Links without hardware addresses have zeros.
    let mac = mac.filter(|mac| there && state & USABLE != 0 && *mac != [0; 6]);
    Some(Neighbour { interface, ip, mac, idle: mac.is_some() && state == libc::NUD_STALE })
}
