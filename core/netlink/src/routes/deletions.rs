//! Routes that somebody else deletes.
//!
//! Reference: rtnetlink(7) (`RTM_DELROUTE`, `struct rtmsg`); netlink(7) (`nlmsg_pid`: whose request it was); socket(7)
//! (`SO_ATTACH_FILTER`).
//!
//! The kernel tells whoever listens of every change of every route. A filter lets pass what others have deleted of one protocol's
//! routes and nothing else, so that own changes cost nothing here, however many they are. What the kernel deletes by itself
//! does not pass either: it goes with interfaces and addresses, which are told of.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;

use super::RouteSpace;
use crate::feed::{Feed, Heard};
use crate::message::{self, attributes, number};

/// Where the kind of a message, who asked for it, and the protocol of a route stand.
const KIND: u32 = 4;
const ASKED_BY: u32 = 12;
const PROTOCOL: u32 = 16 + 5;
/// Bytes of `struct rtmsg`.
const RTMSG: usize = 12;

/// A socket that hears of it; see the module's text.
#[derive(Debug)]
pub struct DeletedRoutes {
    feed: Feed,
    protocol: u8,
}

/// What others have deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deletions {
    /// How many routes of each space.
    pub routes: BTreeMap<RouteSpace, u64>,
    /// There were more than there was room for; of which spaces nobody knows.
    pub omitted: bool,
}

impl Deletions {
    /// Nothing was deleted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty() && !self.omitted
    }
}

impl DeletedRoutes {
    /// Listens in the network namespace that the calling thread is in. What comes before [`DeletedRoutes::filter`] is in
    /// place counts as somebody else's. Needs no privileges.
    ///
    /// # Errors
    /// Those of socket(2) and bind(2).
    pub fn open(protocol: u8) -> io::Result<Self> {
        let feed = Feed::open(libc::RTMGRP_IPV4_ROUTE | libc::RTMGRP_IPV6_ROUTE)?;
        Ok(Self { feed, protocol })
    }

    /// The filter for the socket, of the classic language, that keeps out what `own` asks for: the number of a
    /// [`RouteWriter`](super::RouteWriter).
    #[must_use]
    pub fn filter(&self, own: u32) -> [libc::sock_filter; 9] {
        // It reads numbers as the network has them, and these are the machine's.
        let half = |number: u16| u32::from(u16::from_be_bytes(number.to_ne_bytes()));
        let word = |number: u32| u32::from_be_bytes(number.to_ne_bytes());
        let one = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
        let load = |size, place| one(libc::BPF_LD | size | libc::BPF_ABS, 0, 0, place);
        let compare = |k, jt, jf| one(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, jt, jf, k);
        let end = |bytes| one(libc::BPF_RET | libc::BPF_K, 0, 0, bytes);
        [
            load(libc::BPF_H, KIND),
            compare(half(libc::RTM_DELROUTE), 0, 6),
            load(libc::BPF_B, PROTOCOL),
            compare(self.protocol.into(), 0, 4),
            load(libc::BPF_W, ASKED_BY),
            compare(word(own), 2, 0),
            compare(0, 1, 0),
            end(u32::MAX),
            end(0),
        ]
    }

    /// Readable when there is something for [`DeletedRoutes::read`].
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.feed.fd()
    }

    /// Reads what is there, a limited number of messages at a time.
    ///
    /// # Errors
    /// Those of recvfrom(2) that last.
    pub fn read(&mut self) -> io::Result<Deletions> {
        let (protocol, mut deletions) = (self.protocol, Deletions::default());
        self.feed.read(|heard| {
            match heard {
                Heard::Datagram(datagram) => message::each(datagram, |header, payload| {
                    let deleted = header.kind == libc::RTM_DELROUTE;
                    let space =
                        space(payload).filter(|space| deleted && space.protocol == protocol);
                    if let Some(space) = space {
                        *deletions.routes.entry(space).or_default() += 1;
                    }
                }),
                Heard::Lost => deletions.omitted = true,
            }
            None
        })?;
        Ok(deletions)
    }
}

/// Where a route stands: of a `struct rtmsg` and its attributes.
fn space(payload: &[u8]) -> Option<RouteSpace> {
    let [family, _, _, _, small_table, protocol] = *payload.first_chunk::<6>()?;
    let is_ipv6 = match i32::from(family) {
        libc::AF_INET => false,
        libc::AF_INET6 => true,
        _ => return None,
    };
    let mut all = attributes(payload.get(RTMSG..)?);
    let table = all.find(|(kind, _)| *kind == libc::RTA_TABLE).and_then(|(_, value)| number(value));
    Some(RouteSpace { is_ipv6, table: table.unwrap_or(small_table.into()), protocol })
}
