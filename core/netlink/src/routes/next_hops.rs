//! Next hops that many routes share, as objects of the kernel.
//!
//! Reference: linux/nexthop.h (`struct nhmsg`, `NHA_…`); Linux kernel, net/ipv4/nexthop.c (since 5.3),
//! net/ipv4/fib_semantics.c (`fib_create_info`: a route that names an object finds what it shares with others by one look,
//! where another makes a next hop of its own, compares it with all, and throws it away).
//!
//! ```text
//! message       nlmsghdr(16) nhmsg(8) [NHA_ID] [NHA_OIF] [NHA_GATEWAY]
//! nhmsg         family(1) scope(1) protocol(1) 0(1) flags(4)
//! ```
//!
//! An object is made when a piece of changes has [`MANY`] routes of one way, so that a few routes look as people know
//! them. From then on every route of that way names it. The kernel throws objects away, and the routes that name them,
//! when their interface goes down or loses its carrier; whoever is refused then says so by [`NextHops::forget`]. No
//! object is thrown away here: the kernel does not say whether one is in use, and takes the routes along. Whoever opens
//! a new socket finds the objects of before.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::Arc;

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REQUEST};
use netlink_sys::protocols::NETLINK_ROUTE;

use super::{RouteChange, RouteTarget};
use crate::Refusal;
use crate::exchange::Exchange;
use crate::message::{self, Body, attributes, ip, number};

/// So many routes of one way in a piece are worth an object.
const MANY: usize = 32;
/// The most objects.
const MOST: usize = 1024;
/// So many numbers in a row may be somebody else's.
const ATTEMPTS: usize = 64;
/// The first number of objects: far above those that people and other daemons begin with.
const FIRST: u32 = 119 << 24;

/// `RTM_NEWNEXTHOP`, `RTM_GETNEXTHOP`
const NEW: u16 = 104;
const GET: u16 = 106;
const NHA_ID: u16 = 1;
const NHA_OIF: u16 = 5;
const NHA_GATEWAY: u16 = 6;
/// `RTNH_F_ONLINK`: the gateway is a neighbour, whatever the addresses say.
const ONLINK: u32 = 4;

/// Which gateway on which interface.
type Way = (IpAddr, u32);

/// See the module's text.
#[derive(Debug)]
pub(super) struct NextHops {
    exchange: Exchange,
    state: State,
    known: BTreeMap<Way, u32>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// None was wanted yet.
    Unread,
    /// Those of a protocol are known. The next that is made has this number, or one behind it.
    Read { protocol: u8, next: u32 },
    /// The kernel has no such objects, or we are not let.
    Unusable,
}

/// The objects of the targets of some changes.
#[derive(Debug, Default)]
pub(super) struct Chosen(Vec<(*const RouteTarget, u32)>);

impl Chosen {
    /// The number of the object that is the way of a target.
    pub(super) fn of(&self, target: &Arc<RouteTarget>) -> Option<u32> {
        let place = self.0.binary_search_by_key(&Arc::as_ptr(target), |(known, _)| *known).ok()?;
        Some(self.0[place].1)
    }
}

impl NextHops {
    /// For the network namespace that the calling thread is in.
    ///
    /// # Errors
    /// Those of socket(2) and setsockopt(2).
    pub(super) fn open() -> io::Result<Self> {
        let exchange = Exchange::open(NETLINK_ROUTE)?;
        Ok(Self { exchange, state: State::Unread, known: BTreeMap::new() })
    }

    /// The objects for changes of routes of a protocol. Those that are worth it are made; where the kernel lets none be
    /// made, the routes are told as they are, and it says of them why they cannot be.
    pub(super) fn choose(&mut self, protocol: u8, changes: &[RouteChange]) -> Chosen {
        if self.known.is_empty() && changes.len() < MANY {
            return Chosen::default();
        }
        let mut targets: Vec<_> = changes.iter().filter_map(RouteChange::target).collect();
        let mut counts = BTreeMap::<Way, usize>::new();
        for way in targets.iter().filter_map(|target| way(target)) {
            *counts.entry(way).or_default() += 1;
        }
        for (way, _) in counts.into_iter().filter(|(_, count)| *count >= MANY) {
            self.make(protocol, way);
        }
        targets.sort_unstable_by_key(|target| Arc::as_ptr(target));
        targets.dedup_by_key(|target| Arc::as_ptr(target));
        let number = |target: &Arc<RouteTarget>| self.known.get(&way(target)?).copied();
        let chosen = |target: &Arc<RouteTarget>| Some((Arc::as_ptr(target), number(target)?));
        Chosen(targets.into_iter().filter_map(chosen).collect())
    }

    /// The kernel does not have this object any more.
    pub(super) fn forget(&mut self, number: u32) {
        self.known.retain(|_, known| *known != number);
    }

    /// Makes an object if there is none yet, there may be more, and the kernel lets us.
    fn make(&mut self, protocol: u8, way: Way) {
        let mut next = match self.state {
            State::Unusable => return,
            State::Read { protocol: read, next } if read == protocol => next,
            State::Unread | State::Read { .. } => match self.read(protocol) {
                Ok(next) => next,
                Err(_) => return self.state = State::Unusable,
            },
        };
        self.state = State::Read { protocol, next };
        if self.known.len() >= MOST || self.known.contains_key(&way) {
            return;
        }
        for _ in 0..ATTEMPTS {
            let number = next;
            next = number.checked_add(1).unwrap_or(FIRST);
            self.state = State::Read { protocol, next };
            match self.exchange.ask(|sequence| creation(sequence, protocol, number, way), answer) {
                Ok(()) => drop(self.known.insert(way, number)),
                // It is somebody else's.
                Err(refusal) if refusal.code() == Some(libc::EEXIST) => continue,
                Err(_) => {}
            }
            return;
        }
    }

    /// Learns what objects of a protocol there are, and which number is free behind them.
    fn read(&mut self, protocol: u8) -> Result<u32, Refusal> {
        self.known.clear();
        let ask = |sequence| request(sequence, GET, NLM_F_DUMP, [0; 8], &[]);
        self.exchange.ask(ask, |datagram, sequence| {
            message::each(datagram, |header, payload| {
                if header.sequence == sequence && header.kind == NEW {
                    self.known.extend(object(payload, protocol));
                }
            });
            answer(datagram, sequence)
        })?;
        Ok(self.known.values().max().map_or(FIRST, |last| last.saturating_add(1)))
    }
}

/// The way of a target, if an object can be it: the only one, by a gateway on a known interface.
fn way(target: &RouteTarget) -> Option<Way> {
    let RouteTarget::Ways(ways) = target else { return None };
    let [way] = ways.as_slice() else { return None };
    let gateway = way.gateway.filter(|_| way.interface != 0)?;
    Some((gateway, way.interface))
}

/// Way and number of an object as the kernel tells of it, if it is one of ours and of the form that is made here.
fn object(payload: &[u8], protocol: u8) -> Option<(Way, u32)> {
    let [family, _scope, of, _] = *payload.first_chunk::<4>()?;
    let flags = number(payload.get(4..)?)?;
    let (mut id, mut interface, mut gateway) = (None, None, None);
    for (kind, value) in attributes(payload.get(8..)?) {
        match kind {
            NHA_ID => id = number(value),
            NHA_OIF => interface = number(value),
            NHA_GATEWAY => gateway = ip(family, value),
            _ => return None,
        }
    }
    (of == protocol && flags & ONLINK != 0).then_some(((gateway?, interface?), id?))
}

/// The bytes that make an object.
fn creation(sequence: u32, protocol: u8, id: u32, (gateway, interface): Way) -> Vec<u8> {
    let family = if gateway.is_ipv6() { libc::AF_INET6 } else { libc::AF_INET };
    let mut header = [family as u8, 0, protocol, 0, 0, 0, 0, 0];
    header[4..].copy_from_slice(&ONLINK.to_ne_bytes());
    let gateway = match gateway {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let attributes: [(u16, &[u8]); 3] =
        [(NHA_ID, &id.to_ne_bytes()), (NHA_OIF, &interface.to_ne_bytes()), (NHA_GATEWAY, &gateway)];
    request(sequence, NEW, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, header, &attributes)
}

/// A message about objects; all attributes are as long as multiples of four bytes.
fn request(
    sequence: u32,
    kind: u16,
    flags: u16,
    header: [u8; 8],
    attributes: &[(u16, &[u8])],
) -> Vec<u8> {
    let mut bytes = vec![0; 16];
    bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
    bytes[6..8].copy_from_slice(&(NLM_F_REQUEST | flags).to_ne_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
    bytes.extend_from_slice(&header);
    for (kind, value) in attributes {
        bytes.extend_from_slice(&(4 + value.len() as u16).to_ne_bytes());
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(value);
    }
    let length = bytes.len() as u32;
    bytes[..4].copy_from_slice(&length.to_ne_bytes());
    bytes
}

/// Whether a datagram ends the answer to a request, and how.
fn answer(datagram: &[u8], sequence: u32) -> ControlFlow<Result<(), Refusal>> {
    let mut end = ControlFlow::Continue(());
    message::read(datagram, |message| match message.body {
        _ if message.sequence != sequence => {}
        Body::Answer { errno: 0, .. } | Body::Done => end = ControlFlow::Break(Ok(())),
        Body::Answer { errno, text } => end = ControlFlow::Break(Err(Refusal::new(errno, text))),
        _ => {}
    });
    end
}
