//! The entries of the cache, by the number of their edges.
//!
//! Keys of one XID to four differ in size by a factor of four, and most are short: so each number of edges
//! has a list of its own. An entry with one edge is one cache line, any other two.

use std::mem::offset_of;

use weft_base::Reason;
use weft_processor::{make_room, prefetch};

use super::forest::{LeafId, NO_LEAF};
use super::index::{EntryId, Tag};
use super::key::{Key, Kind, XidWords};
use super::{DropReason, HopId, Way};
use crate::numbers::MAX_FAN_OUT;
use crate::principal::SocketId;

/// An entry's neighbour in a queue if there is none.
pub(super) const NOBODY: EntryId = EntryId::MAX;

/// Whether another engine has an entry, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offloaded {
    No,
    /// It was used, so it will be offered.
    Wanted,
    Yes,
}

/// What is known of an entry besides its key: half a cache line, so that an entry with two to four edges is two of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meta {
    /// Packets for which it was used.
    pub(super) hits: u64,
    /// What the index finds it by.
    pub(super) tag: Tag,
    /// The first of its leaves in the forest.
    pub(super) leaf: LeafId,
    /// Its neighbours in the queue it stands in.
    pub(super) newer: EntryId,
    pub(super) older: EntryId,
    /// The socket, the next hop or the reason that belongs to `what`.
    which: u32,
    /// What is to be done.
    what: What,
    /// Of which kind its key is; [`Kind::NONE`] if the place is free.
    kind: Kind,
    /// The edge that the decision is about, and the bits below.
    bits: u8,
    /// Which share of the cache it counts for.
    pub(super) share: u8,
}

/// [`Way`] without what belongs to it.
#[derive(Clone, Copy, Debug)]
enum What {
    Through,
    Deliver,
    Forward,
    Several,
    Drop,
}

/// What an entry says, as it says it.
#[derive(Clone, Copy, Debug)]
pub(in crate::forward) struct Found {
    which: u32,
    what: What,
    slot: u8,
}

impl Found {
    /// The neighbour that the packet goes to, if it goes to one: what most packets do, and known without a look at the
    /// other ways.
    #[inline]
    pub(in crate::forward) fn hop(&self) -> Option<HopId> {
        matches!(self.what, What::Forward).then(|| HopId::of(self.which))
    }

    /// What is to be done.
    #[inline]
    pub(in crate::forward) fn way(&self) -> Way {
        match self.what {
            What::Through => Way::Through,
            What::Deliver => Way::Deliver(SocketId(self.which)),
            What::Forward => Way::Forward(HopId::of(self.which)),
            What::Several => Way::Several,
            What::Drop => Way::Drop(DropReason::ALL[self.which as usize]),
        }
    }

    /// The edge that it is about.
    #[inline]
    pub(in crate::forward) fn slot(&self) -> u8 {
        self.slot
    }
}

/// Of [`Meta::bits`], the edge.
const SLOT: u8 = 3;
/// It stands in the main queue of its share.
const MAIN: u8 = 1 << 2;
/// Another engine has it, or will be offered it.
const OFFLOADED: u8 = 1 << 3;
const WANTED: u8 = 1 << 4;
/// Uses since the replacement looked at it last, up to three.
const WARMTH: u8 = 3 << WARMTH_SHIFT;
const WARMTH_SHIFT: u32 = 5;

/// A cache line for one edge, two for more. In the order in which it is written here, so that the first line has what is known
/// of the entry and the last one the key's end, and both can be asked for.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Entry<const N: usize> {
    meta: Meta,
    key: [XidWords; N],
}

const _: () = assert!(size_of::<Entry<1>>() == 64, "an entry with one edge fits a cache line");
const _: () = assert!(size_of::<Entry<4>>() == 128, "an entry with four edges fits two");
const _: () = assert!(offset_of!(Entry<4>, meta) == 0, "its first line has what is known of it");

impl<const N: usize> Entry<N> {
    /// Whether it is the one for `key`. All words are compared whether the first are equal or not: as a rule, they are.
    #[inline]
    fn is_for(&self, key: &impl Key) -> bool {
        let kind = self.meta.kind.difference(key.kind());
        let differ = (0..N).fold(kind, |differ, at| {
            let [[a, b, c], [x, y, z]] = [self.key[at], key.words(at)];
            differ | (a ^ x) | (b ^ y) | (c ^ z)
        });
        differ == 0
    }

    /// Counts a use, if it is the one for `key`.
    #[inline]
    fn use_for(&mut self, key: &impl Key) -> Option<Found> {
        self.is_for(key).then(|| self.meta.used())
    }
}

/// Entries with the same number of edges.
#[derive(Debug, Default)]
struct Slab<const N: usize> {
    entries: Vec<Entry<N>>,
    free: Vec<u32>,
}

impl<const N: usize> Slab<N> {
    /// Puts an entry into a free place.
    fn insert(&mut self, meta: Meta, key: &impl Key) -> usize {
        let entry = Entry { meta, key: std::array::from_fn(|at| key.words(at)) };
        match self.free.pop() {
            Some(place) => {
                self.entries[place as usize] = entry;
                place as usize
            }
            None => {
                make_room(&mut self.entries, 1);
                self.entries.push(entry);
                self.entries.len() - 1
            }
        }
    }

    fn remove(&mut self, place: usize) {
        self.entries[place].meta.kind = Kind::NONE;
        self.free.push(place as u32);
    }

    /// Both lines of an entry that has two.
    #[inline]
    fn prefetch(&self, place: usize) {
        if let Some(entry) = self.entries.get(place) {
            prefetch(&entry.meta);
            prefetch(&entry.key[N - 1][2]);
        }
    }

    #[inline]
    fn is_for(&self, place: usize, key: &impl Key) -> bool {
        self.entries.get(place).is_some_and(|entry| entry.is_for(key))
    }

    /// Counts a use, if the entry is the one for `key`.
    #[inline]
    fn use_for(&mut self, place: usize, key: &impl Key) -> Option<Found> {
        self.entries.get_mut(place)?.use_for(key)
    }

    fn live(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.entries.len()).filter(|place| self.entries[*place].meta.is_used())
    }
}

/// All entries. An entry's number is one less than the number of its edges, in the two high bits, and its place
/// in that list.
#[derive(Debug, Default)]
pub(super) struct Store {
    one: Slab<1>,
    two: Slab<2>,
    three: Slab<3>,
    four: Slab<MAX_FAN_OUT>,
}

const PLACE_BITS: u32 = 30;

#[inline]
fn number(edges: usize, place: usize) -> EntryId {
    ((edges - 1) as u32) << PLACE_BITS | place as u32
}

#[inline]
fn place(id: EntryId) -> usize {
    (id & ((1 << PLACE_BITS) - 1)) as usize
}

#[inline]
fn edges(id: EntryId) -> usize {
    (id >> PLACE_BITS) as usize + 1
}

impl Store {
    /// The bytes that an entry takes, by its number.
    pub(super) fn bytes(id: EntryId) -> usize {
        match edges(id) {
            1 => size_of::<Entry<1>>(),
            2 => size_of::<Entry<2>>(),
            3 => size_of::<Entry<3>>(),
            _ => size_of::<Entry<MAX_FAN_OUT>>(),
        }
    }

    /// The number of edges of an entry, by its number.
    #[inline]
    pub(super) fn edges(id: EntryId) -> usize {
        edges(id)
    }

    /// The next place in a list, 0 to 3, that may have an entry; `None` if there is none.
    pub(super) fn turn(&self, list: usize, hand: &mut usize) -> Option<EntryId> {
        let places = match list {
            0 => self.one.entries.len(),
            1 => self.two.entries.len(),
            2 => self.three.entries.len(),
            _ => self.four.entries.len(),
        };
        *hand = (*hand + 1).checked_rem(places)?;
        Some(number(list + 1, *hand))
    }

    /// Adds an entry, which stands in no queue and has no leaves yet. A key without edges is not for here.
    pub(super) fn insert(&mut self, key: &impl Key, tag: Tag, way: Way, slot: u8) -> EntryId {
        let edges = key.kind().edges();
        let (what, which) = parts(way);
        let meta = Meta {
            hits: 0,
            tag,
            leaf: NO_LEAF,
            newer: NOBODY,
            older: NOBODY,
            which,
            what,
            kind: key.kind(),
            bits: slot & SLOT,
            share: 0,
        };
        let place = match edges {
            1 => self.one.insert(meta, key),
            2 => self.two.insert(meta, key),
            3 => self.three.insert(meta, key),
            _ => self.four.insert(meta, key),
        };
        number(edges, place)
    }

    pub(super) fn remove(&mut self, id: EntryId) {
        match edges(id) {
            1 => self.one.remove(place(id)),
            2 => self.two.remove(place(id)),
            3 => self.three.remove(place(id)),
            _ => self.four.remove(place(id)),
        }
    }

    #[inline]
    pub(super) fn meta(&self, id: EntryId) -> &Meta {
        match edges(id) {
            1 => &self.one.entries[place(id)].meta,
            2 => &self.two.entries[place(id)].meta,
            3 => &self.three.entries[place(id)].meta,
            _ => &self.four.entries[place(id)].meta,
        }
    }

    #[inline]
    pub(super) fn meta_mut(&mut self, id: EntryId) -> &mut Meta {
        match edges(id) {
            1 => &mut self.one.entries[place(id)].meta,
            2 => &mut self.two.entries[place(id)].meta,
            3 => &mut self.three.entries[place(id)].meta,
            _ => &mut self.four.entries[place(id)].meta,
        }
    }

    /// Whether there is an entry with this number.
    #[inline]
    pub(super) fn is_live(&self, id: EntryId) -> bool {
        self.meta(id).is_used()
    }

    /// Has an entry brought near, if there is one with this number.
    #[inline]
    pub(super) fn prefetch(&self, id: EntryId) {
        // Those with one edge have the lowest numbers, which are their places.
        if let Some(entry) = self.one.entries.get(id as usize) {
            return prefetch(entry);
        }
        match edges(id) {
            1 => {}
            2 => self.two.prefetch(place(id)),
            3 => self.three.prefetch(place(id)),
            _ => self.four.prefetch(place(id)),
        }
    }

    /// The XIDs of an entry's key.
    #[inline]
    pub(super) fn words(&self, id: EntryId) -> &[XidWords] {
        match edges(id) {
            1 => &self.one.entries[place(id)].key,
            2 => &self.two.entries[place(id)].key,
            3 => &self.three.entries[place(id)].key,
            _ => &self.four.entries[place(id)].key,
        }
    }

    /// Whether an entry is the one for `key`, and still there.
    #[inline]
    pub(super) fn is_for(&self, id: EntryId, key: &impl Key) -> bool {
        match edges(id) {
            1 => self.one.is_for(place(id), key),
            2 => self.two.is_for(place(id), key),
            3 => self.three.is_for(place(id), key),
            _ => self.four.is_for(place(id), key),
        }
    }

    /// Counts a use, if there is an entry with this number, and it is the one for `key`: what is to be done, and the edge that it is about.
    #[inline]
    pub(super) fn use_for(&mut self, id: EntryId, key: &impl Key) -> Option<Found> {
        // Most have one edge, and then the number is the place; a jump that can be foreseen is better than one by a table.
        if let Some(entry) = self.one.entries.get_mut(id as usize) {
            return entry.use_for(key);
        }
        match edges(id) {
            1 => None,
            2 => self.two.use_for(place(id), key),
            3 => self.three.use_for(place(id), key),
            _ => self.four.use_for(place(id), key),
        }
    }

    /// Counts a use.
    #[inline]
    pub(super) fn used(&mut self, id: EntryId) -> Found {
        self.meta_mut(id).used()
    }

    /// The numbers of all entries.
    pub(super) fn ids(&self) -> impl Iterator<Item = EntryId> + '_ {
        let one = self.one.live().map(|place| number(1, place));
        let two = self.two.live().map(|place| number(2, place));
        let three = self.three.live().map(|place| number(3, place));
        let four = self.four.live().map(|place| number(4, place));
        one.chain(two).chain(three).chain(four)
    }
}

/// A way, and what belongs to it.
fn parts(way: Way) -> (What, u32) {
    match way {
        Way::Through => (What::Through, 0),
        Way::Deliver(socket) => (What::Deliver, socket.0),
        Way::Forward(hop) => (What::Forward, hop.number()),
        Way::Several => (What::Several, 0),
        Way::Drop(reason) => (What::Drop, reason.index() as u32),
    }
}

impl Meta {
    /// What is to be done.
    #[inline]
    pub(super) fn way(&self) -> Way {
        self.found().way()
    }

    #[inline]
    fn found(&self) -> Found {
        Found { which: self.which, what: self.what, slot: self.slot() }
    }

    /// The edge that the decision is about: 0 to 3.
    #[inline]
    pub(super) fn slot(&self) -> u8 {
        self.bits & SLOT
    }

    #[inline]
    fn used(&mut self) -> Found {
        self.hits += 1;
        // Some are as warm as can be: which, nobody can foresee, so it is no branch.
        self.bits += u8::from(self.bits & WARMTH != WARMTH) << WARMTH_SHIFT;
        self.found()
    }

    /// Whether it is for packets that came in on a port.
    pub(super) fn received(&self) -> bool {
        self.kind.received()
    }

    fn is_used(&self) -> bool {
        self.kind != Kind::NONE
    }

    /// Uses since the replacement looked at it last, up to three.
    pub(super) fn warmth(&self) -> u8 {
        (self.bits & WARMTH) >> WARMTH_SHIFT
    }

    /// Sets what [`Meta::warmth`] says.
    pub(super) fn set_warmth(&mut self, warmth: u8) {
        self.bits = self.bits & !WARMTH | warmth << WARMTH_SHIFT & WARMTH;
    }

    /// In which queue of its share it stands.
    pub(super) fn is_main(&self) -> bool {
        self.bits & MAIN != 0
    }

    pub(super) fn set_main(&mut self, is_main: bool) {
        self.bits = self.bits & !MAIN | if is_main { MAIN } else { 0 };
    }

    pub(super) fn offloaded(&self) -> Offloaded {
        match self.bits & (OFFLOADED | WANTED) {
            0 => Offloaded::No,
            WANTED => Offloaded::Wanted,
            _ => Offloaded::Yes,
        }
    }

    pub(super) fn set_offloaded(&mut self, offloaded: Offloaded) {
        let bits = match offloaded {
            Offloaded::No => 0,
            Offloaded::Wanted => WANTED,
            Offloaded::Yes => OFFLOADED,
        };
        self.bits = self.bits & !(OFFLOADED | WANTED) | bits;
    }
}
