//! The routing cache: decisions, kept in step with the principals' tables.
//!
//! Reference: Machado et al., "Linux XIA", §4.2.2 (DST table and dependency forest). A decision depends on
//! the XIDs that the last node's edges lead to, and on whether the packet came in on a port; so this is the
//! [`Key`], and packets with different addresses share entries. Failures are decisions, too.
//!
//! | part | what it is |
//! |---|---|
//! | `key` | the XIDs of the edges as words, and their keyed hash |
//! | `index` | where an entry is, by the key's hash: lines of eight slots |
//! | `store`, `entry` | the entries: what a hit needs, half a cache line if there is one edge, and what else is known |
//! | `forest` | which decisions rest on which answers of principals |
//! | `slab`, `places` | tables whose gaps can be closed |
//! | `replacement` | who goes when the memory is used up |
//! | `hops` | the neighbours that decisions lead to |
//! | `offloading` | which decisions another engine has, too |
//!
//! What is *not* part of a decision is worked out for each packet: whether the edge's target is a sink, the
//! hop limit, and the port's framing and MTU. Of packets that leave as several the cache knows by which edge; the
//! ways are asked for again, because a principal may have thousands for one XID.
//!
//! After [`DstCache::changed`] no entry is there that the tables would not give now, and no other entry is
//! gone.

mod entry;
mod forest;
mod hops;
mod index;
mod key;
mod offloading;
mod places;
mod replacement;
mod slab;
mod store;
#[cfg(test)]
mod tests;

use weft_base::{KeyedHash, PortId, Random};

pub(super) use entry::Found;
pub(super) use hops::HopId;
pub(super) use index::{Guess, Tag};
pub(super) use key::{FreeKey, Key, KeyPlace};

use super::egress::{Departure, EgressTable};
use super::{DropReason, SlowPathLimit};
use crate::changes::Change;
use crate::offload::{Edges, Offload, OffloadRoom};
use crate::principal::{Answer, NextHop, SocketId};
use crate::{Xid, XidType};
use forest::Forest;
use hops::Hops;
use index::{EntryId, Index};
use offloading::Offloading;
use replacement::Replacement;
use store::Store;

/// What is to be done with a packet, as entries hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The XID is this node.
    Through,
    /// The XID is a socket.
    Deliver(SocketId),
    /// The XID is reached over this neighbour.
    Forward(HopId),
    /// Several ways at once, which the principal says for each packet.
    Several,
    /// No edge leads anywhere, or something is wrong.
    Drop(DropReason),
}

/// A decision, as the rest of the forwarder has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The edge leads to this node: mark it and go on, unless its target is a sink.
    Through,
    /// The edge leads to a socket: deliver, if its target is a sink.
    Deliver(SocketId),
    /// Send the packet to this neighbour, its address unchanged.
    Forward(NextHop),
    /// The edge leads several ways at once; which ones, the principal says for each packet.
    Several,
    /// No edge leads anywhere, or something is wrong.
    Drop(DropReason),
}

weft_base::reasons! {
    /// What the cache counts.
    pub enum CacheActivity {
        Hit = "hits", "decisions found in the cache";
        Miss = "misses", "decisions worked out from the principals' tables";
        Stale = "stale", "entries removed because an answer that they rested on has changed";
        Rewritten = "rewritten", "stale entries that another engine had, and for which it has a new decision";
        RewrittenAlike = "rewritten-alike", "of these, those whose new decision says what the old one did";
        Evicted = "evicted", "entries removed because the memory was used up";
    }
}

/// An entry, for people and tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedDecision {
    /// The XIDs that the last node's edges lead to.
    pub edges: Vec<Xid>,
    /// Whether it is for packets that came in on a port.
    pub received: bool,
    /// Which edge the decision is about, 0 to 3.
    pub slot: u8,
    /// What is to be done.
    pub decision: Decision,
    /// Packets for which it was used.
    pub hits: u64,
}

/// How large the cache is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSize {
    /// Decisions kept.
    pub entries: usize,
    /// XIDs that they rest on.
    pub anchors: usize,
    /// Ties between the two.
    pub leaves: usize,
    /// Neighbours that they lead to.
    pub hops: usize,
    /// Decisions that another engine has, too.
    pub offloaded: usize,
    /// How often a decision that is in use had no room there.
    pub without_room: u64,
    /// Bytes in use.
    pub bytes: usize,
    /// Bytes of places that entries have left, which others may take. They count for the limit, too.
    pub spare: usize,
    /// Bytes that it may use.
    pub limit: usize,
    /// Bytes of the entries by the ports on which their packets came in.
    pub shares: Vec<(PortId, usize)>,
}

/// Entries that are taken back from another engine to make room once.
const MOST_TAKEN_BACK: usize = 8;
/// Numbers of neighbours that rest at most while another engine reads them.
const RESTING_HOPS: usize = 64;
/// One in so many bytes of the limit is for places that entries have left.
const SPARE_PART: usize = 16;
/// So many bytes are moved into gaps at most for each byte that comes into the cache: what comes replaces no more than itself.
const MOST_MOVED: usize = 2;
/// Entries that are removed together, so that their memory is waited for once.
const TOGETHER: usize = 32;

/// The cache; see the module's text.
#[derive(Debug)]
pub(super) struct DstCache {
    hash: KeyedHash,
    index: Index,
    store: Store,
    entries: usize,
    /// Bytes of the entries.
    entry_bytes: usize,
    forest: Forest,
    hops: Hops,
    replacement: Replacement,
    offloading: Offloading,
    limit: usize,
    /// Entries to be removed; kept for its memory.
    stale: Vec<EntryId>,
    /// What stale entries were for that another engine has.
    to_rewrite: Vec<ToRewrite>,
}

/// What a stale decision was for that another engine still has.
#[derive(Debug)]
pub(super) struct ToRewrite {
    /// The edges.
    pub(super) edges: Edges,
    /// A port on which such packets came in.
    pub(super) port: PortId,
    /// Where the other engine sends them until it is told otherwise: so long no other neighbour may have that number.
    hop: Option<HopId>,
    /// What it does with them until then.
    said: (Way, u8),
}

impl DstCache {
    /// An empty cache that uses `limit` bytes at most; none if it is 0.
    pub(super) fn new(limit: usize, random: &mut Random) -> Self {
        let hash = KeyedHash::new(random);
        Self {
            hash,
            index: Index::default(),
            store: Store::default(),
            entries: 0,
            entry_bytes: 0,
            forest: Forest::new(KeyedHash::new(random)),
            hops: Hops::new(KeyedHash::new(random)),
            replacement: Replacement::default(),
            offloading: Offloading::default(),
            limit,
            stale: Vec::new(),
            to_rewrite: Vec::new(),
        }
    }

    /// Whether anything is kept at all.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.limit > 0
    }

    /// Where `key` would be.
    #[inline]
    pub(super) fn tag(&self, key: &impl Key) -> Tag {
        Tag::of(key.hash(&self.hash))
    }

    /// Has the slots brought near in which [`DstCache::find`] looks first.
    #[inline]
    pub(super) fn fetch_slots(&self, tag: Tag) {
        self.index.prefetch(tag);
    }

    /// What the slots say of where an entry is. Good for as long as nothing is kept or forgotten.
    #[inline]
    pub(super) fn guess(&self, tag: Tag) -> Guess {
        self.index.guess(tag)
    }

    /// Has the entry brought near that is most likely meant.
    #[inline]
    pub(super) fn fetch_entry(&self, guess: Guess) {
        self.store.prefetch(guess.entry());
    }

    /// As [`DstCache::find`], if the entry is the one that [`DstCache::guess`] named.
    #[inline]
    pub(super) fn find_guessed(&mut self, key: &impl Key, guess: Guess) -> Option<Found> {
        let found = self.store.use_for(guess.entry(), key)?;
        self.tell_of_use(guess.entry());
        Some(found)
    }

    /// What is to be done with packets that have `key`, and the edge that it is about, if it is there; counts the use.
    #[inline]
    pub(super) fn find(&mut self, key: &impl Key, tag: Tag) -> Option<Found> {
        let id = self.index.find(tag, |id| self.store.is_for(id, key))?;
        self.tell_of_use(id);
        Some(self.store.used(id))
    }

    /// The other engine may want an entry that is used.
    #[inline]
    fn tell_of_use(&mut self, id: EntryId) {
        if self.offloading.is_on() {
            self.offloading.entry_used(&mut self.store, id);
        }
    }

    /// How packets leave by the neighbour that a decision leads to.
    #[inline]
    pub(super) fn departure(&self, id: HopId) -> &Departure {
        self.hops.get(id)
    }

    /// The ports that packets leave by are others now.
    pub(super) fn ports_changed(&mut self, egress: &EgressTable) {
        self.hops.ports_changed(egress);
    }

    /// A decision as the rest of the forwarder has it.
    #[inline]
    pub(super) fn decision(&self, way: Way) -> Decision {
        match way {
            Way::Through => Decision::Through,
            Way::Deliver(socket) => Decision::Deliver(socket),
            Way::Forward(hop) => Decision::Forward(*self.hops.get(hop).hop()),
            Way::Several => Decision::Several,
            Way::Drop(reason) => Decision::Drop(reason),
        }
    }

    /// Keeps a decision about edge `slot` that rests on the answers in `asked`, each XID once, for packets such
    /// as one that came in on `port`, and leave as `egress` says. The key must not be there. Returns how many entries had to go for it.
    pub(super) fn insert(
        &mut self,
        key: &impl Key,
        tag: Tag,
        port: PortId,
        (decision, slot): (Decision, u8),
        asked: &[(Xid, Answer)],
        egress: &EgressTable,
    ) -> usize {
        let way = match decision {
            Decision::Through => Way::Through,
            Decision::Deliver(socket) => Way::Deliver(socket),
            Decision::Forward(hop) => {
                let (id, is_new) = self.hops.take(hop, egress);
                if is_new {
                    self.offloading.hop_changed(id.number(), Some(hop));
                }
                Way::Forward(id)
            }
            Decision::Several => Way::Several,
            Decision::Drop(reason) => Way::Drop(reason),
        };
        let before = self.entry_bytes + self.forest.bytes();
        let id = self.store.insert(key, tag, way, slot);
        self.store.cold_mut(id).leaf = self.forest.attach(id, asked);
        self.index.insert(tag, id);
        self.entries += 1;
        self.entry_bytes += Store::bytes(id);
        self.replacement.insert(&mut self.store, id, port, self.entries);
        let new = self.entry_bytes + self.forest.bytes() - before;
        let gone = self.make_room();
        self.close_gaps(MOST_MOVED * new);
        gone
    }

    /// Removes entries until the limit is kept.
    fn make_room(&mut self) -> usize {
        let mut gone = 0;
        let mut chances = MOST_TAKEN_BACK;
        while self.bytes() > self.limit - self.limit / SPARE_PART {
            let Some(victim) = self.replacement.victim(&mut self.store) else { break };
            // It may be in use there.
            if chances > 0 && self.offloading.take_back(&mut self.store, victim) {
                self.store.hot_mut(victim).set_warmth(1);
                chances -= 1;
                continue;
            }
            self.remove(victim);
            gone += 1;
        }
        gone
    }

    /// Gives memory back that entries and what they rest on have left, if there is much of it: so much for each decision
    /// that comes that it cannot become more, and no more, so that none waits long.
    fn close_gaps(&mut self, most: usize) {
        let mut moved = 0;
        while moved < most && self.bytes() + self.spare() > self.limit {
            let done = match self.store.spare() >= self.forest.spare() {
                true => self.close_gap_of_entries().or_else(|| self.close_gap_of_forest()),
                false => self.close_gap_of_forest().or_else(|| self.close_gap_of_entries()),
            };
            let Some(bytes) = done else { break };
            moved += bytes;
        }
    }

    /// Moves an entry; how many bytes these were. `None` if there is none to be moved.
    fn close_gap_of_entries(&mut self) -> Option<usize> {
        let (from, to) = self.store.close_gap()?;
        let cold = *self.store.cold(to);
        self.index.entry_moved(cold.tag, from, to);
        self.forest.entry_moved(cold.leaf, to);
        self.replacement.entry_moved(&mut self.store, to);
        self.offloading.entry_moved(&self.store, to);
        Some(Store::bytes(to))
    }

    /// Moves something of the forest; how many bytes these were. `None` if there is nothing to be moved.
    fn close_gap_of_forest(&mut self) -> Option<usize> {
        let moved = self.forest.close_gap(|id| self.store.cold(id).leaf)?;
        if let Some((id, leaf)) = moved.first {
            self.store.cold_mut(id).leaf = leaf;
        }
        Some(moved.bytes)
    }

    /// Bytes of places that entries and what they rest on have left.
    fn spare(&self) -> usize {
        self.store.spare() + self.forest.spare()
    }

    fn bytes(&self) -> usize {
        let tables = self.index.bytes() + self.entries * Replacement::MOST_BYTES_EACH;
        tables + self.entry_bytes + self.forest.bytes() + self.hops.bytes()
    }

    fn remove(&mut self, id: EntryId) {
        self.offloading.take_back(&mut self.store, id);
        let hop = self.take_out(id);
        self.release(hop);
    }

    /// Removes an entry that the other engine does not have; its use of a neighbour, which is returned, goes on.
    fn take_out(&mut self, id: EntryId) -> Option<HopId> {
        self.replacement.remove(&mut self.store, id);
        let (cold, found) = (*self.store.cold(id), self.store.hot(id).found());
        self.index.remove(cold.tag, id);
        self.forest.detach(cold.leaf);
        self.entries -= 1;
        self.entry_bytes -= Store::bytes(id);
        self.store.remove(id);
        match found.way() {
            Way::Forward(hop) => Some(hop),
            _ => None,
        }
    }

    /// Ends the use of a neighbour.
    fn release(&mut self, hop: Option<HopId>) {
        if let Some(hop) = hop
            && self.hops.release(hop)
        {
            self.offloading.hop_changed(hop.number(), None);
        }
    }

    /// Has brought near what [`DstCache::remove`] will change besides the entry.
    fn prefetch_for_removal(&self, id: EntryId) {
        let cold = self.store.cold(id);
        self.index.prefetch(cold.tag);
        self.forest.prefetch_leaf(cold.leaf);
        [cold.older, cold.newer].into_iter().for_each(|id| self.store.prefetch_cold(id));
    }

    /// Removes what rests on answers of principal `kind` that are others now. Returns how many entries went. The next matters are
    /// the limit ([`DstCache::keep_limit`]) and what another engine still has of them ([`DstCache::take_to_rewrite`]).
    pub(super) fn changed(
        &mut self,
        kind: XidType,
        changes: &[Change],
        ask: impl FnMut(&Xid) -> Answer,
    ) -> usize {
        let mut stale = std::mem::take(&mut self.stale);
        self.forest.changed(kind, changes, ask, &mut stale);
        let mut gone = 0;
        for ids in stale.chunks(TOGETHER) {
            for id in ids {
                self.store.prefetch(*id);
                self.store.prefetch_cold(*id);
            }
            ids.iter().for_each(|id| self.prefetch_for_removal(*id));
            for id in ids {
                // One that rests on several answers is there several times.
                if self.store.is_live(*id) {
                    if self.offloading.forget(&mut self.store, *id) {
                        let port = self.replacement.port(self.store.cold(*id).share);
                        let edges = offloading::edges(&self.store, *id);
                        let found = self.store.hot(*id).found();
                        let said = (found.way(), found.slot());
                        let hop = self.take_out(*id);
                        self.to_rewrite.push(ToRewrite { edges, port, hop, said });
                    } else {
                        self.remove(*id);
                    }
                    gone += 1;
                }
            }
        }
        stale.clear();
        self.stale = stale;
        gone
    }

    /// Removes entries until the limit is kept: anchors take more once a principal has spoken of a range. Returns how many went.
    pub(super) fn keep_limit(&mut self) -> usize {
        let gone = self.make_room();
        self.close_gaps(usize::MAX);
        gone
    }

    /// The stale decisions that another engine still has. It has to be told by [`DstCache::offload`] or
    /// [`DstCache::offload_nothing`].
    pub(super) fn take_to_rewrite(&mut self) -> Vec<ToRewrite> {
        std::mem::take(&mut self.to_rewrite)
    }

    /// Gives the decision for `key` to the other engine, in place of what that has for it. Returns whether it says the
    /// same.
    pub(super) fn offload(&mut self, key: &impl Key, tag: Tag, stale: ToRewrite) -> bool {
        let id = self.index.find(tag, |id| self.store.is_for(id, key));
        let says = id.map(|id| self.store.hot(id).found()).map(|found| (found.way(), found.slot()));
        let is_alike = says == Some(stale.said);
        if id.is_some_and(|id| self.offloading.add(&mut self.store, id)) {
            self.release(stale.hop);
        } else {
            self.offload_nothing(stale);
        }
        is_alike
    }

    /// Takes from the other engine what that has.
    pub(super) fn offload_nothing(&mut self, stale: ToRewrite) {
        self.offloading.remove(stale.edges);
        self.release(stale.hop);
    }

    /// Begins to tell another engine of decisions, one that has none yet and this much room, and may pass on as much
    /// as this; or ends it. With `reports` sources are told of packets that are dropped, which takes this engine.
    pub(super) fn set_offloading(
        &mut self,
        room: Option<OffloadRoom>,
        limit: Option<SlowPathLimit>,
        reports: bool,
    ) {
        self.hops.let_rest(room.map_or(0, |room| (room.hops / 8).min(RESTING_HOPS)));
        let (store, hops) = (&mut self.store, &self.hops);
        self.offloading.set_room(room, limit, reports, store, hops);
    }

    /// Tells the other engine how many packets it may pass on from each port.
    pub(super) fn offload_limit(&mut self, limit: Option<SlowPathLimit>) {
        self.offloading.set_limit(limit);
    }

    /// Tells the other engine again where all neighbours are.
    pub(super) fn offload_hops(&mut self) {
        self.offloading.tell_hops(&self.hops);
    }

    /// What the other engine has to be told, in order, with `most` of the entries that were used.
    pub(super) fn drain_offloads(&mut self, most: usize, out: &mut Vec<Offload>) {
        if self.offloading.is_on() {
            self.offloading.drain(&mut self.store, most, out);
        }
    }

    /// The other engine had no place for the decision about these edges. It is offered again when it is used again.
    pub(super) fn offload_refused(&mut self, edges: &Edges) {
        let key = FreeKey::new(edges, true);
        let found = self.index.find(self.tag(&key), |id| self.store.is_for(id, &key));
        if let Some(id) = found {
            self.offloading.refused(&mut self.store, id);
        }
    }

    /// Whether entries that were used wait to be told.
    pub(super) fn has_offloads(&self) -> bool {
        self.offloading.has_more()
    }

    /// Forgets all decisions; returns how many there were.
    pub(super) fn clear(&mut self) -> usize {
        let ids: Vec<_> = self.store.ids().collect();
        ids.iter().for_each(|id| self.remove(*id));
        // All tables give their memory back.
        self.store = Store::default();
        self.forest.clear();
        self.replacement.clear();
        self.index.clear();
        self.offloading.clear();
        ids.len()
    }

    /// Another limit, which holds at once; 0 ends caching. Returns how many entries had to go.
    pub(super) fn set_limit(&mut self, limit: usize) -> usize {
        self.limit = limit;
        if limit == 0 {
            return self.clear();
        }
        self.keep_limit()
    }

    /// Every entry.
    pub(super) fn entries(&self) -> impl Iterator<Item = CachedDecision> + '_ {
        self.store.ids().map(|id| {
            let hot = self.store.hot(id);
            CachedDecision {
                edges: key::xids(self.store.words(id)).to_vec(),
                received: hot.received(),
                slot: hot.found().slot(),
                decision: self.decision(hot.found().way()),
                hits: self.store.hits(id),
            }
        })
    }

    /// The XIDs that decisions rest on, what was answered, and how many rest on it.
    pub(super) fn anchors(&self) -> impl Iterator<Item = (Xid, Answer, usize)> + '_ {
        self.forest.anchors()
    }

    pub(super) fn size(&self) -> CacheSize {
        let (anchors, leaves) = self.forest.size();
        CacheSize {
            entries: self.entries,
            anchors,
            leaves,
            hops: self.hops.len(),
            offloaded: self.offloading.used(),
            without_room: self.offloading.without_room(),
            bytes: self.bytes(),
            spare: self.spare(),
            limit: self.limit,
            shares: self.replacement.shares().collect(),
        }
    }
}
