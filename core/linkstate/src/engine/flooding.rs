//! Telling neighbours what is new, and taking what they tell.
//!
//! Reference: ISO 10589 §7.3.15 to §7.3.17; RFC 2328 §13.

use std::sync::Arc;

use weft_base::Instant;

use super::LinkState;
use super::neighbour::Link;
use crate::activity::Activity;
use crate::authority::Authority;
use crate::database::{Judgement, Refusal};
use crate::event::Output;
use crate::ids::{LsaHeader, Version};
use crate::origin;
use crate::wire::{Headers, LsaView, Lsas, MessageRepr, TAG_LEN};

impl<A: Authority> LinkState<A> {
    /// A session is up: the neighbour is told what we have, and then what it lacks of that.
    pub(super) fn begin(&mut self, now: Instant, link: &mut Link, out: &mut Vec<Output>) {
        link.since = now;
        link.summaries.clear();
        link.told_complete = false;
        link.flood = crate::flood::Flood::default();
        let headers = self.database.headers();
        headers.iter().for_each(|header| link.flood.enqueue(header.id));
        link.flood.wait = Some(now + self.settings.retransmit);
        let room = self.settings.message_size - MessageRepr::HEADER_LEN - TAG_LEN - 4;
        let parts: Vec<&[LsaHeader]> = headers.chunks(room / MessageRepr::LSA_HEADER_LEN).collect();
        let parts = if parts.is_empty() { vec![&[][..]] } else { parts };
        // A database of four million advertisements does not fit into memory.
        let count = parts.len() as u16;
        for (index, part) in (0..count).zip(parts) {
            self.send(link, &MessageRepr::summary(index, count, part), out);
        }
    }

    /// The neighbour has said what it has.
    pub(super) fn summarized(
        &mut self,
        link: &mut Link,
        index: u16,
        count: u16,
        headers: &Headers,
    ) {
        self.acknowledged(link, headers);
        link.summaries.insert(index);
        if link.summaries.len() >= usize::from(count) {
            link.flood.wait = None;
        }
    }

    /// The neighbour has these.
    pub(super) fn acknowledged(&mut self, link: &mut Link, headers: &Headers) {
        for LsaHeader { id, version } in headers.iter() {
            link.flood.knows(id, version, self.database.live_version(&id));
        }
    }

    /// The neighbour tells us something.
    pub(super) fn updated(&mut self, now: Instant, link: &mut Link, lsas: &Lsas) {
        for lsa in lsas.iter() {
            self.offered(now, link, &lsa);
        }
    }

    fn offered(&mut self, now: Instant, link: &mut Link, lsa: &LsaView) {
        let id = lsa.id();
        let version = match self.database.judge(lsa) {
            Judgement::New(version) => version,
            Judgement::Same(version) => {
                self.counters.add(Activity::Known, 1);
                return self.has(now, link, LsaHeader { id, version });
            }
            Judgement::Older(version) => {
                self.counters.add(Activity::Older, 1);
                return match self.database.live_version(&id) {
                    Some(_) => link.flood.enqueue(id),
                    // There is nothing newer to send; at least it need not be told again.
                    None => self.has(now, link, LsaHeader { id, version }),
                };
            }
        };
        // Without an acknowledgement it comes again, later.
        let rate = self.settings.verifications;
        if !link.verifications.take(now, std::time::Duration::from_secs(1) / rate, rate) {
            return self.counters.add(Activity::TooManyAdvertisements, 1);
        }
        let proven = [origin::PURPOSE, lsa.proven()].concat();
        if !self.authority.verify(id.origin, &proven, lsa.proof()) {
            return self.counters.add(Activity::BadProof, 1);
        }
        if id.origin == self.node {
            self.counters.add(Activity::OwnFromBefore, 1);
            self.originator.outbid(now, id.fragment, version.sequence);
            return self.has(now, link, LsaHeader { id, version });
        }
        // Routes rest on this node and its neighbours, too, also before they are computed the next time.
        let is_neighbour = |node| {
            let mut links = self.links.values().chain([&*link]);
            links.any(|link| link.neighbour() == Some(node))
        };
        let needed =
            |node| node == self.node || self.reach.contains_key(&node) || is_neighbour(node);
        match self.database.admit(now, &id, needed) {
            Ok(displaced) => {
                if let Some((id, old)) = displaced {
                    self.content_changed(now, &id, Some(&old));
                }
                self.counters.add(Activity::Learned, 1);
                self.install(now, version, lsa);
            }
            Err(Refusal::TooOften) => return self.counters.add(Activity::TooOften, 1),
            // It would be sent again for ever.
            Err(Refusal::Full) => self.counters.add(Activity::DatabaseFull, 1),
        }
        self.has(now, link, LsaHeader { id, version });
    }

    /// The neighbour has this, and is told that we need not be told.
    fn has(&self, now: Instant, link: &mut Link, header: LsaHeader) {
        link.flood.knows(header.id, header.version, self.database.live_version(&header.id));
        link.flood.acknowledge(now, self.settings.acknowledge, header);
    }

    /// Keeps an advertisement and has all neighbours in `links` told.
    pub(super) fn install(&mut self, now: Instant, version: Version, lsa: &LsaView) {
        let id = lsa.id();
        let bytes: Arc<[u8]> = lsa.bytes().into();
        let old = self.database.install(now, version, lsa, bytes);
        self.content_changed(now, &id, old.as_ref());
        for link in self.links.values_mut().filter(|link| link.neighbour().is_some()) {
            link.flood.enqueue(id);
        }
    }

    /// Sends acknowledgements and advertisements that are due.
    pub(super) fn flush(&mut self, now: Instant, link: &mut Link, out: &mut Vec<Output>) {
        if link.neighbour().is_none() {
            return;
        }
        let room = self.settings.message_size - MessageRepr::HEADER_LEN - TAG_LEN;
        let full = room / MessageRepr::LSA_HEADER_LEN;
        for headers in link.flood.take_acks(now, full).chunks(full) {
            self.send(link, &MessageRepr::ack(headers), out);
        }
        let database = &self.database;
        let (retransmit, window) = (self.settings.retransmit, self.settings.window);
        let (due, again) =
            link.flood.take_due(now, retransmit, window, |id| database.live_version(id));
        self.counters.add(Activity::Retransmitted, again as u64);
        let lsas: Vec<Arc<[u8]>> =
            due.iter().filter_map(|id| self.database.get(id)?.bytes().cloned()).collect();
        if !lsas.is_empty() {
            link.flood.wait = Some(now + self.settings.pacing);
        }
        let mut rest = &lsas[..];
        while !rest.is_empty() {
            let mut len = 0;
            let fits = |lsa: &&Arc<[u8]>| {
                len += 2 + lsa.len();
                len <= room
            };
            // One fits always: the settings were checked.
            let count = rest.iter().take_while(fits).count().max(1);
            let (now, later) = rest.split_at(count);
            self.send(link, &MessageRepr::update(now.iter().map(|lsa| &lsa[..])), out);
            rest = later;
        }
        if link.flood.is_complete() && !std::mem::replace(&mut link.told_complete, true) {
            self.hello(link, out);
        }
    }
}
