//! Decisions from the routing cache, and what keeps the cache right.
//!
//! Reference: Machado et al., "Linux XIA", §4.2.2. Principals are changed through [`PrincipalMut`] only; when it
//! goes out of scope, what rested on answers that have changed is forgotten. So no caller can forget it, and
//! nothing stale is left when the call that changed something returns.

use std::ops::{Deref, DerefMut};

use weft_base::Counters;

use super::dst::{CacheActivity, CacheSize, CachedDecision, Decision, FreeKey, KeyPlace, Way};
use super::resolve::{Chain, Outcome};
use super::{CheckedPacket, DropReason, Forwarder, SlowPathLimit, Trip};
use crate::changes::Change;
use crate::offload::{Edges, Offload, OffloadRoom};
use crate::principal::{Answer, Principal};
use crate::{Targets, Xid, XidType};

impl Forwarder {
    /// What is to be done with a packet whose edges lead to `targets`: the edge and the outcome.
    pub(super) fn find_or_decide(
        &mut self,
        packet: &CheckedPacket,
        targets: &Targets,
        trip: &Trip,
        chain: &mut Chain,
    ) -> (Outcome, u8) {
        // The record of a packet shall say who answered what.
        if !self.dst.is_on() || self.tracer.is_recording() {
            return self.decide(xids(packet, targets), chain);
        }
        let key = KeyPlace::of(targets, trip.received).of_packet(packet.inner().bytes());
        let tag = self.dst.tag(&key);
        if let Some(found) = self.dst.find(&key, tag) {
            self.cache_activity.add(CacheActivity::Hit, 1);
            let (way, slot) = (found.way(), found.slot());
            if let Way::Several = way {
                // Which ways these are, the principal says for each packet.
                return (self.decide_one(xids(packet, targets), slot, chain), slot);
            }
            return (self.dst.decision(way).into(), slot);
        }
        self.cache_activity.add(CacheActivity::Miss, 1);
        if !self.slow_path.admits(trip.time, trip.payer) {
            return (Outcome::Drop(DropReason::SlowPathFull), 0);
        }
        let (outcome, slot) = self.decide(xids(packet, targets), chain);
        let decision = (outcome.decision(), slot);
        let (asked, egress) = (&self.asked, &self.egress);
        let gone = self.dst.insert(&key, tag, trip.payer, decision, asked, egress);
        self.cache_activity.add(CacheActivity::Evicted, gone as u64);
        (outcome, slot)
    }

    /// The principal of type `kind`, to be changed.
    pub fn principal_mut(&mut self, kind: XidType) -> Option<PrincipalMut<'_>> {
        self.principals.get(kind)?;
        Some(PrincipalMut { forwarder: self, kind })
    }

    /// Loads a principal; returns the one of the same type that it replaces.
    pub fn add_principal(
        &mut self,
        mut principal: Box<dyn Principal>,
    ) -> Option<Box<dyn Principal>> {
        let kind = principal.kind();
        // What it did before is no news.
        principal.drain_changes(&mut self.changes);
        self.changes.clear();
        let replaced = self.principals.insert(principal);
        self.changed(kind, &[Change::All]);
        replaced
    }

    /// Unloads the principal of type `kind`.
    pub fn remove_principal(&mut self, kind: XidType) -> Option<Box<dyn Principal>> {
        let removed = self.principals.remove(kind)?;
        self.changed(kind, &[Change::All]);
        Some(removed)
    }

    /// Forgets what rests on answers that have changed.
    fn changed(&mut self, kind: XidType, changes: &[Change]) {
        let principal = self.principals.get(kind);
        // Branches are asked for again for each packet, and gateways are the same if the answer is, so what they are does not
        // matter.
        let branches = &mut self.branches;
        let ask = |xid: &Xid| {
            branches.clear();
            principal.map_or(Answer::Unknown, |principal| principal.lookup(xid, branches))
        };
        let gone = self.dst.changed(kind, changes, ask);
        self.cache_activity.add(CacheActivity::Stale, gone as u64);
        let evicted = self.dst.keep_limit();
        self.cache_activity.add(CacheActivity::Evicted, evicted as u64);
        self.rewrite();
    }

    /// Decides anew what was stale and is in use in another engine, so that it need not miss there.
    fn rewrite(&mut self) {
        let stale = self.dst.take_to_rewrite();
        if stale.is_empty() {
            return;
        }
        for stale in stale {
            let (outcome, slot) = self.decide(stale.edges.iter().copied(), &mut Chain::new());
            let decision = outcome.decision();
            let key = FreeKey::new(&stale.edges, true);
            let tag = self.dst.tag(&key);
            let (asked, egress) = (&self.asked, &self.egress);
            let gone = self.dst.insert(&key, tag, stale.port, (decision, slot), asked, egress);
            let is_alike = self.dst.offload(&key, tag, stale);
            self.cache_activity.add(CacheActivity::RewrittenAlike, u64::from(is_alike));
            self.cache_activity.add(CacheActivity::Evicted, gone as u64);
            self.cache_activity.add(CacheActivity::Rewritten, 1);
        }
    }

    /// Begins to tell another engine, which has nothing yet and this much room, what is decided here; or ends it.
    /// What has no decision it may pass on at the rate at which each port may cause decisions.
    pub fn set_offloading(&mut self, room: Option<OffloadRoom>) {
        // What the other engine dropped, nobody would be told of.
        let reports = self.errors.is_on();
        self.dst.set_offloading(room, self.slow_path_share(), reports);
    }

    /// What each port has of the budget for decisions.
    fn slow_path_share(&self) -> Option<SlowPathLimit> {
        self.limits.slow_path.map(|limit| limit.share(self.egress.count()))
    }

    /// Gives each port its share: there is another one, or one less.
    pub(super) fn share_slow_path(&mut self) {
        let share = self.slow_path_share();
        self.slow_path.set_limit(share);
        self.dst.offload_limit(share);
    }

    /// Tells the other engine again where all neighbours are, because its ports have changed.
    pub fn offload_hops(&mut self) {
        self.dst.offload_hops();
    }

    /// What the other engine has to be told before anything else happens, in order: all that has changed, and `most` of the
    /// decisions that it shall have because they were used.
    pub fn drain_offloads(&mut self, most: usize, out: &mut Vec<Offload>) {
        self.dst.drain_offloads(most, out);
    }

    /// The other engine had no place for a decision that it was told ([`Offload::Set`]), although there was room for as
    /// many. It is told again, if there is use for it.
    pub fn offload_refused(&mut self, edges: &Edges) {
        self.dst.offload_refused(edges);
    }

    /// Whether there are more of these.
    #[must_use]
    pub fn has_offloads(&self) -> bool {
        self.dst.has_offloads()
    }

    /// What the routing cache did so far.
    #[must_use]
    pub fn cache_activity(&self) -> &Counters<CacheActivity> {
        &self.cache_activity
    }

    /// How large the routing cache is.
    #[must_use]
    pub fn cache_size(&self) -> CacheSize {
        self.dst.size()
    }

    /// The decisions in the routing cache, in no particular order.
    pub fn cached(&self) -> impl Iterator<Item = CachedDecision> + '_ {
        self.dst.entries()
    }

    /// The XIDs that decisions in the routing cache rest on, what their principals answered, and how many
    /// decisions rest on each, in no particular order.
    pub fn anchors(&self) -> impl Iterator<Item = (Xid, Answer, usize)> + '_ {
        self.dst.anchors()
    }

    /// Forgets all decisions; returns how many there were.
    pub fn flush_cache(&mut self) -> usize {
        self.dst.clear()
    }

    /// Lets the routing cache use `bytes` of memory from now on; 0 switches it off.
    pub fn set_cache_limit(&mut self, bytes: usize) {
        self.limits.cache = bytes;
        let gone = self.dst.set_limit(bytes);
        self.cache_activity.add(CacheActivity::Evicted, gone as u64);
    }

    /// Works out every decision in the routing cache again and returns those that the tables would not give
    /// now. There are none, unless a principal did not tell of a change.
    pub fn audit_cache(&mut self) -> Vec<CachedDecision> {
        let mut wrong: Vec<_> = self.cached().collect();
        // What is counted are packets' look-ups.
        let activity = self.activity.clone();
        wrong.retain(|entry| {
            let (outcome, slot) = self.decide(entry.edges.iter().copied(), &mut Chain::new());
            outcome.decision() != entry.decision || slot != entry.slot
        });
        self.activity = activity;
        wrong
    }
}

/// The XIDs in rows of a packet's destination.
pub(super) fn xids<'a>(
    packet: &'a CheckedPacket,
    rows: &'a Targets,
) -> impl Iterator<Item = Xid> + 'a {
    rows.iter().filter_map(|row| packet.destination_xid(usize::from(*row)))
}

/// A principal that may be changed; see the module's text.
pub struct PrincipalMut<'a> {
    forwarder: &'a mut Forwarder,
    kind: XidType,
}

/// The memory of so many entries is fetched together.
const TOGETHER: usize = 16;

impl PrincipalMut<'_> {
    /// Redirects each of these as [`Principal::learn`] does it. With a table that is larger than the processor's caches it
    /// is faster than one call for each, since they do not wait for memory one after the other.
    pub fn learn_all(&mut self, found: &[(Xid, &[Xid])]) {
        for some in found.chunks(TOGETHER) {
            some.iter().for_each(|(xid, _)| self.prefetch(xid));
            some.iter().for_each(|(xid, via)| self.learn(*xid, via));
        }
    }
}

impl Deref for PrincipalMut<'_> {
    type Target = dyn Principal + 'static;

    fn deref(&self) -> &Self::Target {
        self.forwarder.principals.get(self.kind).expect("found when this was made, and kept since")
    }
}

impl DerefMut for PrincipalMut<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.forwarder
            .principals
            .get_mut(self.kind)
            .expect("found when this was made, and kept since")
    }
}

impl Drop for PrincipalMut<'_> {
    fn drop(&mut self) {
        let mut changes = std::mem::take(&mut self.forwarder.changes);
        self.drain_changes(&mut changes);
        self.forwarder.changed(self.kind, &changes);
        changes.clear();
        self.forwarder.changes = changes;
    }
}

impl Outcome {
    /// As the cache keeps it.
    fn decision(&self) -> Decision {
        match *self {
            Self::NextEdge(reason) | Self::Drop(reason) => Decision::Drop(reason),
            Self::Through => Decision::Through,
            Self::Deliver(socket) => Decision::Deliver(socket),
            Self::Forward(hop) => Decision::Forward(hop),
            Self::Branches => Decision::Several,
        }
    }
}

impl From<Decision> for Outcome {
    #[inline]
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Through => Self::Through,
            Decision::Deliver(socket) => Self::Deliver(socket),
            Decision::Forward(hop) => Self::Forward(hop),
            Decision::Several => Self::Branches,
            Decision::Drop(reason) => Self::Drop(reason),
        }
    }
}
