//! Which entry goes when the cache is full.
//!
//! Reference: Machado et al., "Linux XIA", §6.3 and §8 leave open what a flood of addresses that occur once
//! does to the cache. The order of replacement follows S3-FIFO (Yang et al., "FIFO queues are all you need for
//! cache eviction", SOSP 2023), which such a flood passes through without touching what is in use:
//!
//! * A new entry stands in the small queue of its share. If it is used again before it comes to the end, it
//!   moves to the main queue; else it is forgotten, but for a *ghost*: the tag of its hash.
//! * What comes while its ghost is remembered goes to the main queue at once.
//! * At the end of the main queue, an entry that was used goes back to the beginning, a little colder.
//!
//! Every input port has a share of its own, with both queues. When room is needed, the share that takes most
//! gives, so that nobody loses entries to another port as long as he takes less than an equal part. What this
//! costs an adversary who shares the port with the traffic that he wants to hurt, and what he can reach, is in
//! the handbook, "The routing cache".

use weft_base::PortId;

use super::index::{EntryId, Tag};
use super::store::{NOBODY, Store};

/// The part of a share that is for entries which were not used again, as one in this many bytes.
const SMALL_PART: usize = 10;
/// Entries looked at to find one that can go; then the next goes, used or not. It bounds the work of a miss.
const MOST_LOOKS: usize = 64;
/// The most shares; further ports share.
const MOST_SHARES: usize = 64;
/// Ghosts at the beginning; there are as many as entries, and at least these.
const LEAST_GHOSTS: usize = 1024;

/// Entries in the order in which they came.
#[derive(Debug)]
struct Queue {
    oldest: EntryId,
    newest: EntryId,
    bytes: usize,
}

impl Default for Queue {
    fn default() -> Self {
        Self { oldest: NOBODY, newest: NOBODY, bytes: 0 }
    }
}

impl Queue {
    fn push(&mut self, store: &mut Store, id: EntryId) {
        self.bytes += Store::bytes(id);
        let cold = store.cold_mut(id);
        cold.older = self.newest;
        cold.newer = NOBODY;
        match std::mem::replace(&mut self.newest, id) {
            NOBODY => self.oldest = id,
            before => store.cold_mut(before).newer = id,
        }
    }

    /// An entry has another number now.
    fn entry_moved(&mut self, store: &mut Store, id: EntryId) {
        let (older, newer) = (store.cold(id).older, store.cold(id).newer);
        self.put_behind(store, older, id);
        self.put_before(store, newer, id);
    }

    /// Has `id` stand behind an entry, or as the oldest.
    fn put_behind(&mut self, store: &mut Store, older: EntryId, id: EntryId) {
        match older {
            NOBODY => self.oldest = id,
            older => store.cold_mut(older).newer = id,
        }
    }

    /// Has `id` stand before an entry, or as the newest.
    fn put_before(&mut self, store: &mut Store, newer: EntryId, id: EntryId) {
        match newer {
            NOBODY => self.newest = id,
            newer => store.cold_mut(newer).older = id,
        }
    }

    fn remove(&mut self, store: &mut Store, id: EntryId) {
        self.bytes -= Store::bytes(id);
        let (older, newer) = (store.cold(id).older, store.cold(id).newer);
        self.put_behind(store, older, newer);
        self.put_before(store, newer, older);
    }
}

/// What entries of one input port take.
#[derive(Debug)]
struct Share {
    port: PortId,
    small: Queue,
    main: Queue,
}

impl Share {
    fn bytes(&self) -> usize {
        self.small.bytes + self.main.bytes
    }

    fn queue(&mut self, is_main: bool) -> &mut Queue {
        if is_main { &mut self.main } else { &mut self.small }
    }

    /// The entry to go, still in its queue; `None` if there is none at all.
    fn victim(&mut self, store: &mut Store) -> Option<EntryId> {
        for _ in 0..MOST_LOOKS {
            let from_small = self.small.bytes * SMALL_PART > self.bytes() || self.main.bytes == 0;
            let id = self.queue(!from_small).oldest;
            if id == NOBODY || store.hot(id).warmth() == 0 {
                return (id != NOBODY).then_some(id);
            }
            self.queue(!from_small).remove(store, id);
            let hot = store.hot_mut(id);
            hot.set_warmth(if from_small { 0 } else { hot.warmth() - 1 });
            store.cold_mut(id).set_main(true);
            self.main.push(store, id);
        }
        let id = self.main.oldest;
        (id != NOBODY).then_some(id)
    }
}

/// The order of replacement; see the module's text.
#[derive(Debug, Default)]
pub(super) struct Replacement {
    shares: Vec<Share>,
    /// Tags of keys that went without having been used again; each place takes the latest.
    ghosts: Vec<Option<Tag>>,
}

impl Replacement {
    /// The most bytes that ghosts take for each entry, if there are not very few.
    pub(super) const MOST_BYTES_EACH: usize = 2 * size_of::<Option<Tag>>();

    /// Puts a new entry of input port `port` into its queue. `entries` is how many there are.
    pub(super) fn insert(&mut self, store: &mut Store, id: EntryId, port: PortId, entries: usize) {
        let share = self.share_of(port);
        let is_main = self.is_ghost(store.cold(id).tag);
        let cold = store.cold_mut(id);
        cold.set_main(is_main);
        cold.share = share as u8;
        self.shares[share].queue(is_main).push(store, id);
        if entries > self.ghosts.len() || self.ghosts.is_empty() {
            // Ghosts are forgotten by it, which happens as often as the table of entries grows.
            self.ghosts = vec![None; entries.max(LEAST_GHOSTS).next_power_of_two()];
        }
    }

    fn share_of(&mut self, port: PortId) -> usize {
        if let Some(found) = self.shares.iter().position(|share| share.port == port) {
            return found;
        }
        if let Some(empty) = self.shares.iter().position(|share| share.bytes() == 0) {
            self.shares[empty].port = port;
            return empty;
        }
        if self.shares.len() == MOST_SHARES {
            return port.0 as usize % MOST_SHARES;
        }
        self.shares.push(Share { port, small: Queue::default(), main: Queue::default() });
        self.shares.len() - 1
    }

    /// Takes an entry out of its queue.
    pub(super) fn remove(&mut self, store: &mut Store, id: EntryId) {
        let (share, is_main) = (store.cold(id).share, store.cold(id).is_main());
        self.shares[usize::from(share)].queue(is_main).remove(store, id);
    }

    /// An entry has this number now, and knows its neighbours.
    pub(super) fn entry_moved(&mut self, store: &mut Store, id: EntryId) {
        let (share, is_main) = (store.cold(id).share, store.cold(id).is_main());
        self.shares[usize::from(share)].queue(is_main).entry_moved(store, id);
    }

    /// The entry that has to go for others, still in its queue; `None` if there is none.
    pub(super) fn victim(&mut self, store: &mut Store) -> Option<EntryId> {
        let share = self.shares.iter_mut().max_by_key(|share| share.bytes())?;
        let id = share.victim(store)?;
        if !store.cold(id).is_main() {
            self.remember(store.cold(id).tag);
        }
        Some(id)
    }

    /// The port whose share an entry counts for.
    pub(super) fn port(&self, share: u8) -> PortId {
        self.shares.get(usize::from(share)).map_or(PortId::NONE, |share| share.port)
    }

    /// The place for a tag, if there are places.
    fn place(&self, tag: Tag) -> usize {
        tag.bits() as usize & self.ghosts.len().wrapping_sub(1)
    }

    fn remember(&mut self, tag: Tag) {
        let place = self.place(tag);
        if let Some(ghost) = self.ghosts.get_mut(place) {
            *ghost = Some(tag);
        }
    }

    fn is_ghost(&self, tag: Tag) -> bool {
        self.ghosts.get(self.place(tag)) == Some(&Some(tag))
    }

    /// What the entries of each input port take, in bytes.
    pub(super) fn shares(&self) -> impl Iterator<Item = (PortId, usize)> + '_ {
        self.shares
            .iter()
            .filter(|share| share.bytes() > 0)
            .map(|share| (share.port, share.bytes()))
    }

    /// Forgets all entries.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
