//! Which entries another engine has, and what it is to be told.
//!
//! Reference: Machado et al., "Linux XIA", §4.2.2 (the routing cache in the kernel), and `crate::offload`.
//!
//! An entry goes there when it is used again after it came into the cache, and from then on the cache sees no
//! packets of it. So before it would be replaced it is taken back for once: if it is in use, it is used here then.
//!
//! When the other engine has no room for more, every [`DISPLACING`]th entry that would go there takes the
//! place of another: the working set gets there in the end, and entries that alternate do not cost a change of the
//! other engine's tables for each packet.

use super::index::EntryId;
use super::store::{Offloaded, Store};
use super::{Hops, Way, key};
use crate::forward::SlowPathLimit;
use crate::numbers::MAX_FAN_OUT;
use crate::offload::{self, Offload, OffloadRoom};
use crate::principal::NextHop;

/// One in so many entries displaces another.
const DISPLACING: u32 = 4;
/// Places looked at to find an entry that can be displaced.
const MOST_LOOKS: usize = 64;

/// What the other engine has; see the module's text.
#[derive(Debug, Default)]
pub(super) struct Offloading {
    is_on: bool,
    /// Whether sources are told of packets that are dropped.
    reports: bool,
    room: OffloadRoom,
    used: [usize; MAX_FAN_OUT],
    /// Entries that were used.
    wanted: Vec<EntryId>,
    /// What the other engine has to be told.
    changes: Vec<Offload>,
    /// Where entries to be displaced are looked for.
    hands: [usize; MAX_FAN_OUT],
    displacing: u32,
    /// How often there was no room for an entry.
    without_room: u64,
}

impl Offloading {
    /// Begins, with an engine that has nothing and as much room as this; or ends. `limit` is how many packets it may
    /// pass on.
    pub(super) fn set_room(
        &mut self,
        room: Option<OffloadRoom>,
        limit: Option<SlowPathLimit>,
        reports: bool,
        store: &mut Store,
        hops: &Hops,
    ) {
        let ids: Vec<_> = store.ids().collect();
        ids.iter().for_each(|id| store.set_offloaded(*id, Offloaded::No));
        let (is_on, room) = (room.is_some(), room.unwrap_or_default());
        *self = Self { is_on, reports, room, ..Self::default() };
        if self.is_on {
            self.changes.extend([Offload::Clear, Offload::Limit(limit)]);
            self.tell_hops(hops);
            // What was in use before goes on without a packet that finds nothing there.
            for id in ids {
                if store.hits(id) > 0 {
                    self.entry_used(store, id);
                }
            }
        }
    }

    /// The other engine may pass on as many packets from each port as this.
    pub(super) fn set_limit(&mut self, limit: Option<SlowPathLimit>) {
        if self.is_on {
            self.changes.push(Offload::Limit(limit));
        }
    }

    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Entries that the other engine has.
    pub(super) fn used(&self) -> usize {
        self.used.iter().sum()
    }

    /// An entry was used.
    #[inline]
    pub(super) fn entry_used(&mut self, store: &mut Store, id: EntryId) {
        let hot = store.hot(id);
        if !hot.is_told() && hot.received() {
            store.set_offloaded(id, Offloaded::Wanted);
            self.wanted.push(id);
        }
    }

    /// An entry has this number now.
    pub(super) fn entry_moved(&mut self, store: &Store, id: EntryId) {
        if store.offloaded(id) == Offloaded::Wanted {
            self.wanted.push(id);
        }
    }

    /// Tells again where all neighbours are.
    pub(super) fn tell_hops(&mut self, hops: &Hops) {
        hops.all().for_each(|(id, hop)| self.hop_changed(id, Some(hop)));
    }

    /// There is a neighbour, or no longer.
    pub(super) fn hop_changed(&mut self, id: u32, hop: Option<NextHop>) {
        if self.is_on && (id as usize) < self.room.hops {
            self.changes.push(Offload::Hop { id, hop });
        }
    }

    /// What the other engine has to do, in order: all that has changed, and `most` of the entries that were used.
    pub(super) fn drain(&mut self, store: &mut Store, most: usize, out: &mut Vec<Offload>) {
        let mut wanted = std::mem::take(&mut self.wanted);
        for id in wanted.drain(wanted.len().saturating_sub(most)..) {
            if store.is_live(id) && store.offloaded(id) == Offloaded::Wanted {
                self.add(store, id);
            }
        }
        self.wanted = wanted;
        out.append(&mut self.changes);
    }

    /// Whether entries that were used wait to be told.
    pub(super) fn has_more(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// Entries that there was no room for.
    pub(super) fn without_room(&self) -> u64 {
        self.without_room
    }

    /// Gives an entry to the other engine, if that can have it; returns whether it did.
    pub(super) fn add(&mut self, store: &mut Store, id: EntryId) -> bool {
        let decision = self.decision(store, id);
        let table = Store::edges(id) - 1;
        if self.used[table] >= self.room.decisions[table] && !self.make_room(store, table) {
            store.set_offloaded(id, Offloaded::No);
            self.without_room += 1;
            return false;
        }
        self.used[table] += 1;
        store.set_offloaded(id, Offloaded::Yes);
        let (edges, edge) = (edges(store, id), store.hot(id).found().slot());
        self.changes.push(Offload::Set { edges, edge, decision });
        true
    }

    fn decision(&self, store: &Store, id: EntryId) -> offload::Offloaded {
        match store.hot(id).found().way() {
            Way::Through => offload::Offloaded::Through,
            Way::Forward(hop) if (hop.number() as usize) < self.room.hops => {
                offload::Offloaded::Forward(hop.number())
            }
            Way::Forward(_) | Way::Deliver(_) | Way::Several => offload::Offloaded::Pass,
            Way::Drop(_) if self.reports => offload::Offloaded::Report,
            Way::Drop(reason) => offload::Offloaded::Drop(reason),
        }
    }

    /// Takes an entry back so that there is room for another; not every time.
    fn make_room(&mut self, store: &mut Store, table: usize) -> bool {
        self.displacing += 1;
        if !self.displacing.is_multiple_of(DISPLACING) {
            return false;
        }
        for _ in 0..MOST_LOOKS {
            let Some(id) = store.turn(table, &mut self.hands[table]) else { return false };
            if self.take_back(store, id) {
                return true;
            }
        }
        false
    }

    /// Takes an entry back, which stays in the cache. False if the other engine does not have it.
    pub(super) fn take_back(&mut self, store: &mut Store, id: EntryId) -> bool {
        let has = self.forget(store, id);
        if has {
            self.changes.push(Offload::Remove { edges: edges(store, id) });
        }
        has
    }

    /// The other engine had no place for an entry that it was given.
    pub(super) fn refused(&mut self, store: &mut Store, id: EntryId) {
        // It may have been given again since, and there was a place.
        if self.take_back(store, id) {
            self.without_room += 1;
        }
    }

    /// The other engine will be told something else about what this entry is for. False if it does not have it.
    pub(super) fn forget(&mut self, store: &mut Store, id: EntryId) -> bool {
        let has = store.is_live(id) && store.offloaded(id) == Offloaded::Yes;
        if has {
            self.used[Store::edges(id) - 1] -= 1;
            store.set_offloaded(id, Offloaded::No);
        }
        has
    }

    /// There is no decision for what an entry was for that had been given away.
    pub(super) fn remove(&mut self, edges: offload::Edges) {
        self.changes.push(Offload::Remove { edges });
    }

    /// Nothing is in the cache any more.
    pub(super) fn clear(&mut self) {
        if self.is_on {
            self.used = Default::default();
            self.wanted.clear();
            // How much may be passed on is no matter of decisions, and is told once.
            self.changes.retain(|change| matches!(change, Offload::Limit(_)));
            self.changes.push(Offload::Clear);
        }
    }
}

/// The XIDs of an entry.
pub(super) fn edges(store: &Store, id: EntryId) -> offload::Edges {
    key::xids(store.words(id))
}
