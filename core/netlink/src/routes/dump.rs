//! Reading the routes of one protocol in one table, a piece at a time.
//!
//! Reference: RFC 3549 §2.3 (dumps); netlink(7) (`NETLINK_GET_STRICT_CHK`, `NLM_F_DUMP_INTR`); Linux kernel,
//! net/ipv4/fib_frontend.c (`ip_valid_fib_dump_req`: what a dump can be narrowed to).
//!
//! The kernel leaves out what is not asked for. Each time that the socket is read it goes on where it was, so that
//! nobody waits for a full table. For IPv4 it tells routes in order of their addresses, of several prefixes with one
//! address the longest first; for IPv6 the shortest first.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR};

use super::{KernelRoute, RouteSpace, RouteTarget, RouteWay};
use crate::InterfaceAddress;
use crate::feed::{Feed, Heard};
use crate::inquiry::ATTEMPTS;
use crate::ip_message::{HEADER, RTA_ENCAP_TYPE, RTA_VIA, next_hops, via};
use crate::message::{self, attributes, ip, number};

/// Datagrams that are read at a time, each of some five hundred routes.
const AT_A_TIME: usize = 2;
/// Bytes of `struct nlmsghdr` and `struct rtmsg`.
const HEADERS: usize = 16 + 12;

/// A dump that is under way; see the module's text.
#[derive(Debug)]
pub struct RouteDump {
    feed: Feed,
    reader: Reader,
}

/// What [`RouteDump::read`] has come to.
#[derive(Debug)]
pub enum RoutesTold {
    /// There may be more.
    More,
    /// Something changed meanwhile, so that the kernel is asked again: what was told so far is void, the routes that
    /// were appended just now, too.
    Again,
    /// That is all.
    All,
}

impl RouteDump {
    /// Begins to read the routes of a space, in the network namespace that the calling thread is in. Needs no
    /// privileges.
    ///
    /// # Errors
    /// Those of socket(2), setsockopt(2) and send(2).
    pub fn open(space: RouteSpace) -> io::Result<Self> {
        let mut reader = Reader::new(space);
        let feed = Feed::open_strict()?;
        feed.send(Some(reader.ask()))?;
        Ok(Self { feed, reader })
    }

    /// Readable when there is something for [`RouteDump::read`].
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.feed.fd()
    }

    /// Reads a piece and appends its routes. A table that is not there has none.
    ///
    /// # Errors
    /// Those of recvfrom(2) and send(2), and what the kernel answers.
    pub fn read(&mut self, routes: &mut Vec<KernelRoute>) -> io::Result<RoutesTold> {
        let (mut told, reader) = (Ok(RoutesTold::More), &mut self.reader);
        self.feed.read_some(AT_A_TIME, |heard| {
            if !matches!(told, Ok(RoutesTold::More)) {
                return None;
            }
            told = match heard {
                Heard::Datagram(datagram) => reader.take(datagram, routes),
                // An answer has room, as one part of it waits at a time; so this is nothing that was asked for.
                Heard::Lost => Ok(RoutesTold::More),
            };
            match told {
                Ok(RoutesTold::Again) => Some(reader.ask()),
                _ => None,
            }
        })?;
        told
    }
}

/// Reads what the kernel answers, without a socket.
#[derive(Debug)]
pub(crate) struct Reader {
    space: RouteSpace,
    sequence: u32,
    /// Something changed while the kernel answered.
    interrupted: bool,
    attempts: u32,
    ways: Vec<RouteWay>,
    /// Each way, or several, as it was first told; routes share them.
    known: BTreeMap<Vec<RouteWay>, Arc<RouteTarget>>,
    last: Option<Arc<RouteTarget>>,
    nowhere: [Arc<RouteTarget>; 3],
}

impl Reader {
    pub(crate) fn new(space: RouteSpace) -> Self {
        let nowhere = [RouteTarget::Blackhole, RouteTarget::Unreachable, RouteTarget::Prohibit];
        Self {
            space,
            sequence: 0,
            interrupted: false,
            attempts: 0,
            ways: Vec::new(),
            known: BTreeMap::new(),
            last: None,
            nowhere: nowhere.map(Arc::new),
        }
    }

    /// The bytes that ask for everything.
    fn ask(&mut self) -> Vec<u8> {
        self.sequence += 1;
        self.attempts += 1;
        self.interrupted = false;
        let family = if self.space.is_ipv6 { libc::AF_INET6 } else { libc::AF_INET };
        let mut bytes = vec![0; HEADERS + 8];
        let length = bytes.len() as u32;
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        bytes[4..6].copy_from_slice(&libc::RTM_GETROUTE.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
        bytes[16] = family as u8;
        bytes[21] = self.space.protocol;
        bytes[28..30].copy_from_slice(&8u16.to_ne_bytes());
        bytes[30..32].copy_from_slice(&libc::RTA_TABLE.to_ne_bytes());
        bytes[32..].copy_from_slice(&self.space.table.to_ne_bytes());
        bytes
    }

    /// Takes one datagram of the answer.
    fn take(&mut self, datagram: &[u8], routes: &mut Vec<KernelRoute>) -> io::Result<RoutesTold> {
        let mut end = None;
        message::each(datagram, |header, payload| {
            if header.sequence != self.sequence || end.is_some() {
                return;
            }
            self.interrupted |= header.is_interrupted();
            match header.kind {
                libc::RTM_NEWROUTE => routes.extend(self.route(payload)),
                // How it ended: zero, or the number of an error below it.
                NLMSG_DONE | NLMSG_ERROR => {
                    end = Some(number(payload).map_or(0, |code| (code as i32).saturating_neg()));
                }
                _ => {}
            }
        });
        match end {
            None => Ok(RoutesTold::More),
            Some(0) if self.interrupted && self.attempts < ATTEMPTS => {
                routes.clear();
                Ok(RoutesTold::Again)
            }
            // `ENOENT`: there is no such table.
            Some(0 | libc::ENOENT) => Ok(RoutesTold::All),
            Some(code) => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// Appends the routes of a datagram, whoever asked for them.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn routes(&mut self, datagram: &[u8], routes: &mut Vec<KernelRoute>) {
        message::each(datagram, |header, payload| {
            if header.kind == libc::RTM_NEWROUTE {
                routes.extend(self.route(payload));
            }
        });
    }

    /// A `struct rtmsg` and its attributes; nothing for what is not of the space.
    fn route(&mut self, payload: &[u8]) -> Option<KernelRoute> {
        let [family, prefix_length, source_length, tos, small_table, protocol, _scope, kind] =
            *payload.first_chunk::<8>()?;
        let flags = number(payload.get(8..)?)?;
        let (wanted, any, longest) = match self.space.is_ipv6 {
            true => (libc::AF_INET6, IpAddr::from([0; 16]), 128),
            false => (libc::AF_INET, IpAddr::from([0; 4]), 32),
        };
        if i32::from(family) != wanted
            || prefix_length > longest
            || source_length > 0
            || tos > 0
            || protocol != self.space.protocol
            || flags & libc::RTM_F_CLONED != 0
        {
            return None;
        }
        let (mut destination, mut table, mut metric) = (any, u32::from(small_table), 0);
        let (mut interface, mut gateway, mut is_usual) = (0, None, true);
        self.ways.clear();
        for (attribute, value) in attributes(payload.get(HEADER..)?) {
            match attribute {
                libc::RTA_DST => destination = ip(family, value)?,
                libc::RTA_TABLE => table = number(value)?,
                libc::RTA_PRIORITY => metric = number(value)?,
                libc::RTA_OIF => interface = number(value)?,
                libc::RTA_GATEWAY => gateway = Some(ip(family, value)?),
                RTA_VIA => gateway = Some(via(value)?),
                RTA_ENCAP_TYPE => is_usual = false,
                libc::RTA_MULTIPATH => {
                    for hop in next_hops(family, value) {
                        let hop = hop.filter(|hop| !hop.has_header);
                        is_usual &= hop.is_some();
                        self.ways.extend(hop.map(|hop| RouteWay {
                            gateway: hop.gateway,
                            interface: hop.interface,
                            weight: u16::from(hop.weight) + 1,
                        }));
                    }
                }
                _ => {}
            }
        }
        if table != self.space.table {
            return None;
        }
        if self.ways.is_empty() {
            self.ways.push(RouteWay { gateway, interface, weight: 1 });
        }
        let target = match kind {
            libc::RTN_UNICAST if is_usual => Some(self.target()),
            libc::RTN_BLACKHOLE => Some(Arc::clone(&self.nowhere[0])),
            libc::RTN_UNREACHABLE => Some(Arc::clone(&self.nowhere[1])),
            libc::RTN_PROHIBIT => Some(Arc::clone(&self.nowhere[2])),
            _ => None,
        };
        let destination = InterfaceAddress { ip: destination, prefix_length };
        Some(KernelRoute { destination, metric, target })
    }

    /// The ways that were read last.
    fn target(&mut self) -> Arc<RouteTarget> {
        if let Some(last) = &self.last
            && matches!(&**last, RouteTarget::Ways(ways) if *ways == self.ways)
        {
            return Arc::clone(last);
        }
        let target = match self.known.get(&self.ways) {
            Some(target) => Arc::clone(target),
            None => {
                let target = Arc::new(RouteTarget::ways(self.ways.clone()));
                self.known.insert(self.ways.clone(), Arc::clone(&target));
                target
            }
        };
        self.last = Some(Arc::clone(&target));
        target
    }
}
