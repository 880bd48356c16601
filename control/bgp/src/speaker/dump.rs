//! The table as records of MRT, in pages.
//!
//! Reference: RFC 6396 §4.3; RFC 8050 §4. All paths are written that peers have announced, as they have announced them.

use std::net::Ipv4Addr;

use weft_routing::ip::{Asked, Version, split};
use weft_routing::{Candidate, OriginId};
use weft_xrl::{Binary, XrlError};

use super::Bgp;
use crate::incoming::family;
use crate::interface;
use crate::mrt::{Peer, PeerTable, Rib, RibEntry, emit_peers, emit_rib};
use crate::routes::Path;

impl Bgp {
    /// A page of the table. The first one begins with the record of the peers.
    pub(super) fn dump(&self, request: &interface::Dump) -> Result<interface::DumpReply, XrlError> {
        let from = request.from.as_deref();
        let page =
            self.routes.table.page(&Asked { from, at_most: request.at_most, ..Asked::default() });
        let page = page.map_err(|error| XrlError::bad_args(error.to_string()))?;
        let mut records = Vec::new();
        if from.is_none() {
            emit_peers(request.seconds, &self.peer_table(), &mut records);
        }
        for (sequence, (version, number)) in (request.sequence..).zip(&page.found) {
            let ribs = self.ribs(sequence, request.seconds, *version, *number).into_iter();
            for rib in ribs.filter(|rib| !rib.entries.is_empty()) {
                emit_rib(request.seconds, &rib, &mut records);
            }
        }
        // A page has some thousand destinations at most.
        let count = page.found.len() as u32;
        let next = page.next.map(|net| net.to_string());
        Ok(interface::DumpReply { records: Binary(records), count, next })
    }

    /// Who has announced something, now or before: the numbers are those of origins, so that they are the same in all
    /// pages, whoever comes and goes meanwhile.
    fn peer_table(&self) -> PeerTable {
        let config = self.config.as_ref();
        let collector = config.map_or(Ipv4Addr::UNSPECIFIED, |config| config.router_id);
        let last = self.by_origin.keys().next_back().copied();
        let peers = (0..=last.map_or(0, |last| last.0)).map(|number| {
            let origin = OriginId(number);
            let address = self.by_origin.get(&origin);
            Peer {
                identifier: address
                    .map_or(Ipv4Addr::UNSPECIFIED, |_| self.routes.source(origin).router_id),
                address: address.copied().unwrap_or(Ipv4Addr::UNSPECIFIED.into()),
                autonomous_system: address
                    .and_then(|address| self.peers.get(address))
                    .and_then(|peer| peer.remote_as())
                    .unwrap_or(0),
            }
        });
        PeerTable { collector, view: String::new(), peers: peers.collect() }
    }

    /// What is said of a prefix: with path identifiers and without are records of their own.
    fn ribs(&self, sequence: u32, seconds: u32, version: Version, number: u32) -> [Rib; 2] {
        let table = &self.routes.table;
        let (_, prefix) = split(table.net(version, number));
        let (with, without): (Vec<_>, Vec<_>) = table
            .candidates(version, number)
            .filter(|one| self.routes.source(one.origin).own.is_none())
            .map(|one| self.entry(seconds, one))
            .partition(|entry| entry.path_id.is_some());
        [without, with].map(|entries| Rib { sequence, family: family(version), prefix, entries })
    }

    fn entry(&self, seconds: u32, one: &Candidate<Path>) -> RibEntry {
        RibEntry {
            peer: one.origin.0,
            // Since when a path is there is not kept.
            since: seconds,
            path_id: (one.path != 0).then_some(one.path),
            attributes: self.routes.sets.get(one.route.received).unpack(),
        }
    }
}
