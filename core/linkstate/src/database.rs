//! The link-state database: the newest advertisement of each node, and when it ceases to hold.
//!
//! Reference: RFC 2328 §12 to §14; ISO 10589 §7.3.16; RFC 7987. The age of an advertisement does not
//! travel: it could not be signed, and a neighbour that lies about it could make everybody forget a
//! node. Each node counts the lifetime from when it got the advertisement, as RFC 7987 §3 makes IS-IS
//! do in effect. So that two nodes do not tell each other again and again of one that is long gone, what
//! has expired is remembered without content for one more lifetime: nothing but a newer one is taken
//! then. A withdrawal is an advertisement of its own, signed as all are (the purges of ISO 10589 §7.3.16
//! were not: RFC 6232 tells of the trouble), and remembered as long.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use weft_base::{Bucket, Instant};

use crate::ids::{LsaHeader, LsaId, NodeId, Version};
use crate::wire::LsaView;

/// How often a node may change one of its advertisements: a few times in a row, as its own pauses let
/// it, and then once a second (RFC 2328 `MinLSArrival`).
const ARRIVAL: Duration = Duration::from_secs(1);
/// The few times.
const ARRIVALS: u32 = 6;

/// What is kept of an advertisement.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) version: Version,
    /// `None`: it has expired, and only newer ones are taken.
    bytes: Option<Arc<[u8]>>,
    pub(crate) expires: Instant,
    /// For how long an expired one is remembered.
    lifetime: Duration,
    arrivals: Bucket,
}

impl Entry {
    /// The advertisement, unless it has expired.
    pub(crate) fn lsa(&self) -> Option<LsaView<'_>> {
        // Only checked bytes are kept.
        self.bytes.as_deref().and_then(|bytes| LsaView::new_checked(bytes).ok())
    }

    /// Its bytes, unless it has expired.
    pub(crate) fn bytes(&self) -> Option<&Arc<[u8]>> {
        self.bytes.as_ref()
    }
}

/// What an advertisement that came is, compared with what we have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// It is newer, of this version: if its proof is good, it is to be kept.
    New(Version),
    /// It is the same version.
    Same(Version),
    /// We have a newer one than this version.
    Older(Version),
}

/// Why an advertisement whose proof is good is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Its originator changes it too often; a later copy may be taken.
    TooOften,
    /// There is no room.
    Full,
}

/// All advertisements.
#[derive(Debug)]
pub(crate) struct Database {
    entries: BTreeMap<LsaId, Entry>,
    agenda: BTreeSet<(Instant, LsaId)>,
    limit: usize,
}

impl Database {
    pub(crate) fn new(limit: usize) -> Self {
        Self { entries: BTreeMap::new(), agenda: BTreeSet::new(), limit }
    }

    pub(crate) fn get(&self, id: &LsaId) -> Option<&Entry> {
        self.entries.get(id)
    }

    /// What we can tell others of this.
    pub(crate) fn live_version(&self, id: &LsaId) -> Option<Version> {
        let entry = self.entries.get(id)?;
        entry.bytes.as_ref().map(|_| entry.version)
    }

    /// All entries in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&LsaId, &Entry)> {
        self.entries.iter()
    }

    /// The headers of all that has not expired.
    pub(crate) fn headers(&self) -> Vec<LsaHeader> {
        let live = self.entries.iter().filter(|(_, entry)| entry.bytes.is_some());
        live.map(|(id, entry)| LsaHeader { id: *id, version: entry.version }).collect()
    }

    /// The advertisements of a node that have not expired.
    pub(crate) fn of_node(&self, node: NodeId) -> impl Iterator<Item = LsaView<'_>> {
        let ids = LsaId { origin: node, fragment: 0 }..=LsaId { origin: node, fragment: 255 };
        self.entries.range(ids).filter_map(|(_, entry)| entry.lsa())
    }

    /// Compares an advertisement that a neighbour sent with what is there.
    pub(crate) fn judge(&self, lsa: &LsaView) -> Judgement {
        let Some(entry) = self.entries.get(&lsa.id()) else {
            return Judgement::New(lsa.version());
        };
        // The same bytes need not be hashed again, and most of what comes is known already.
        if entry.bytes.as_deref() == Some(lsa.bytes()) {
            return Judgement::Same(entry.version);
        }
        let version = lsa.version();
        match version.cmp(&entry.version) {
            std::cmp::Ordering::Less => Judgement::Older(version),
            std::cmp::Ordering::Equal => Judgement::Same(version),
            std::cmp::Ordering::Greater => Judgement::New(version),
        }
    }

    /// Makes room for an advertisement that is new and whose proof is good; returns what was displaced for it. What
    /// nodes advertise that are `needed` stays.
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        id: &LsaId,
        needed: impl Fn(NodeId) -> bool,
    ) -> Result<Option<(LsaId, Entry)>, Refusal> {
        let Some(entry) = self.entries.get_mut(id) else { return self.make_room(needed) };
        let allowed = entry.arrivals.take(now, ARRIVAL, ARRIVALS);
        if allowed { Ok(None) } else { Err(Refusal::TooOften) }
    }

    /// Keeps an advertisement, which is newer than what was there; returns what was there.
    pub(crate) fn install(
        &mut self,
        now: Instant,
        version: Version,
        lsa: &LsaView,
        bytes: Arc<[u8]>,
    ) -> Option<Entry> {
        let id = lsa.id();
        let old = self.remove(&id);
        let kept = old.as_ref().map_or(Duration::ZERO, |entry| entry.lifetime);
        // A withdrawal is remembered as long as what it takes back could have been.
        let lifetime = match lsa.lifetime() {
            0 => kept.max(Duration::from_secs(60)),
            seconds => Duration::from_secs(u64::from(seconds)),
        };
        let arrivals = old.as_ref().map_or_else(Bucket::default, |entry| entry.arrivals);
        let expires = now + lifetime;
        self.agenda.insert((expires, id));
        self.entries.insert(id, Entry { version, bytes: Some(bytes), expires, lifetime, arrivals });
        old
    }

    /// Takes what ceases to hold now: its name and what it said.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<(LsaId, Entry)> {
        let mut expired = Vec::new();
        while let Some((at, id)) = self.agenda.first().copied().filter(|(at, _)| *at <= now) {
            let Some(old) = self.remove(&id) else { continue };
            if old.bytes.is_some() {
                let expires = at + old.lifetime;
                self.agenda.insert((expires, id));
                self.entries.insert(id, Entry { bytes: None, expires, ..old.clone() });
                expired.push((id, old));
            }
        }
        expired
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.agenda.first().map(|(at, _)| *at)
    }

    fn remove(&mut self, id: &LsaId) -> Option<Entry> {
        let old = self.entries.remove(id)?;
        self.agenda.remove(&(old.expires, *id));
        Some(old)
    }

    /// Makes room for one more. What has expired goes first, then what no route needs: a stranger
    /// who advertises many nodes that are linked to nobody displaces nobody else.
    fn make_room(
        &mut self,
        needed: impl Fn(NodeId) -> bool,
    ) -> Result<Option<(LsaId, Entry)>, Refusal> {
        if self.entries.len() < self.limit {
            return Ok(None);
        }
        let expired = self.entries.iter().rev().find(|(_, entry)| entry.bytes.is_none());
        let idle = || self.entries.keys().rev().find(|id| !needed(id.origin));
        let id = expired.map(|(id, _)| id).or_else(idle).copied().ok_or(Refusal::Full)?;
        Ok(self.remove(&id).map(|old| (id, old)))
    }

    /// How many advertisements are kept, expired ones included.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::LsaRepr;

    fn lsa(origin: u8, sequence: u64, lifetime: u16) -> Arc<[u8]> {
        let id = LsaId { origin: NodeId([origin; 20]), fragment: 0 };
        let repr = LsaRepr { id, sequence, lifetime, links: Vec::new(), destinations: Vec::new() };
        repr.emit(0, |_| Vec::new())
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// What came of an advertisement, by the names of [`Judgement`] and [`Refusal`].
    fn offer(database: &mut Database, seconds: u64, bytes: &Arc<[u8]>) -> &'static str {
        let view = LsaView::new_checked(bytes).unwrap();
        let version = match database.judge(&view) {
            Judgement::New(version) => version,
            Judgement::Same(_) => return "same",
            Judgement::Older(_) => return "older",
        };
        match database.admit(at(seconds), &view.id(), |node| node.0[0] < 10) {
            Ok(_) => {
                database.install(at(seconds), version, &view, bytes.clone());
                "new"
            }
            Err(Refusal::TooOften) => "too often",
            Err(Refusal::Full) => "full",
        }
    }

    #[test]
    fn the_newer_one_stays() {
        let mut database = Database::new(10);
        assert_eq!(offer(&mut database, 0, &lsa(1, 5, 100)), "new");
        assert_eq!(offer(&mut database, 0, &lsa(1, 5, 100)), "same");
        assert_eq!(offer(&mut database, 0, &lsa(1, 4, 100)), "older");
        assert_eq!(offer(&mut database, 0, &lsa(1, 6, 100)), "new");
        // Of two with the same number the digest decides, whichever comes first.
        let (one, other) = (lsa(2, 1, 100), lsa(2, 1, 200));
        let newest = |order: [&Arc<[u8]>; 2]| {
            let mut database = Database::new(10);
            for bytes in order {
                offer(&mut database, 0, bytes);
            }
            database.iter().next().unwrap().1.version
        };
        assert_eq!(newest([&one, &other]), newest([&other, &one]));
    }

    #[test]
    fn what_has_expired_does_not_come_back_unless_it_is_newer() {
        let mut database = Database::new(10);
        offer(&mut database, 0, &lsa(1, 5, 100));
        assert_eq!(database.expire(at(99)).len(), 0);
        assert_eq!(database.deadline(), Some(at(100)));
        assert_eq!(database.expire(at(100)).len(), 1);
        assert_eq!(database.headers(), []);
        assert_eq!(offer(&mut database, 150, &lsa(1, 5, 100)), "same");
        assert_eq!(offer(&mut database, 150, &lsa(1, 4, 100)), "older");
        assert!(database.expire(at(200)).is_empty() && database.len() == 0);
        assert_eq!(offer(&mut database, 200, &lsa(1, 5, 100)), "new");
        database.expire(at(300));
        assert_eq!(offer(&mut database, 300, &lsa(1, 6, 100)), "new");
    }

    #[test]
    fn a_withdrawal_is_remembered_as_long_as_what_it_takes_back() {
        let mut database = Database::new(10);
        offer(&mut database, 0, &lsa(1, 5, 100));
        assert_eq!(offer(&mut database, 50, &lsa(1, 6, 0)), "new");
        assert_eq!(offer(&mut database, 149, &lsa(1, 5, 100)), "older");
        assert_eq!(database.expire(at(150)).len(), 1);
    }

    #[test]
    fn a_node_that_changes_all_the_time_is_slowed_down() {
        let mut database = Database::new(10);
        let taken = |database: &mut Database, seconds, from: u64| {
            let all = (from..from + 20).map(|sequence| lsa(1, sequence, 100));
            all.filter(|lsa| offer(database, seconds, lsa) == "new").count()
        };
        assert_eq!(taken(&mut database, 0, 1), 7, "the first and a burst");
        assert_eq!(taken(&mut database, 1, 30), 1);
        assert_eq!(taken(&mut database, 3, 60), 2);
    }

    #[test]
    fn who_is_linked_to_nobody_displaces_nobody() {
        let mut database = Database::new(3);
        for origin in [1, 2, 20] {
            assert_eq!(offer(&mut database, 0, &lsa(origin, 1, 100)), "new");
        }
        assert_eq!(offer(&mut database, 0, &lsa(3, 1, 100)), "new", "for 20");
        assert_eq!(offer(&mut database, 0, &lsa(4, 1, 100)), "full");
        assert_eq!(offer(&mut database, 0, &lsa(1, 2, 100)), "new", "no more room needed");
        database.expire(at(100));
        assert_eq!(offer(&mut database, 100, &lsa(5, 1, 100)), "new", "for an expired one");
        assert_eq!(database.len(), 3);
    }
}
