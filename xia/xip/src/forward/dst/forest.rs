//! The dependency forest: which decisions rest on which answers.
//!
//! Reference: Machado et al., "Linux XIA", §4.2.2. There anchors belong to entries of routing tables, and an
//! anchor per principal stands for all that it does not know; so a new route empties the cache of every
//! decision that rested on the principal's ignorance, related or not.
//!
//! Here an anchor belongs to an XID that somebody *asked about*, and holds the answer: positive and
//! negative answers are the same thing, and a default route or a tunnel that takes every address needs nothing
//! of its own. A decision hangs on the anchor of every XID that was asked about on the way to it, by a leaf each.
//! When answers may have changed, each anchor concerned asks again. If the answer is the same,
//! nothing happened; if not, exactly the decisions on this anchor are stale.
//!
//! An anchor goes with its last leaf, and what is kept of a type of XIDs with its last anchor: a sender may name any of 2^32
//! types. So the forest is as large as the cache, however large the routing tables are, and an update of what nobody asked about
//! costs one look-up.

use std::collections::{BTreeMap, HashMap};

use slab::Slab;
use weft_base::KeyedHash;
use weft_processor::prefetch;

use super::index::EntryId;
use crate::changes::Change;
use crate::principal::Answer;
use crate::{Xid, XidType};

/// The number of a leaf.
pub(super) type LeafId = u32;
/// The number of no leaf.
pub(super) const NO_LEAF: LeafId = LeafId::MAX;

type AnchorId = u32;

/// An XID that decisions rest on.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    xid: Xid,
    answer: Answer,
    /// The first of its leaves.
    first: LeafId,
}

/// Where a decision hangs on an anchor: in a list of the anchor's, and in one of the decision's.
#[derive(Clone, Copy, Debug)]
struct Leaf {
    entry: EntryId,
    anchor: AnchorId,
    before: LeafId,
    behind: LeafId,
    /// The entry's next leaf, on another anchor.
    sibling: LeafId,
}

/// The anchors of one principal's XIDs.
#[derive(Debug)]
enum Anchors {
    Hashed(HashMap<Xid, AnchorId, KeyedHash>),
    /// In order, since the principal has spoken of a range.
    Ordered(BTreeMap<Xid, AnchorId>),
}

impl Anchors {
    fn get(&self, xid: &Xid) -> Option<AnchorId> {
        match self {
            Self::Hashed(map) => map.get(xid).copied(),
            Self::Ordered(map) => map.get(xid).copied(),
        }
    }

    fn insert(&mut self, xid: Xid, anchor: AnchorId) {
        match self {
            Self::Hashed(map) => map.insert(xid, anchor),
            Self::Ordered(map) => map.insert(xid, anchor),
        };
    }

    fn remove(&mut self, xid: &Xid) {
        match self {
            Self::Hashed(map) => map.remove(xid),
            Self::Ordered(map) => map.remove(xid),
        };
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Hashed(map) => map.is_empty(),
            Self::Ordered(map) => map.is_empty(),
        }
    }

    fn all(&self, out: &mut Vec<AnchorId>) {
        match self {
            Self::Hashed(map) => out.extend(map.values()),
            Self::Ordered(map) => out.extend(map.values()),
        }
    }

    fn range(&mut self, first: Xid, last: Xid, out: &mut Vec<AnchorId>) {
        if let Self::Hashed(map) = self {
            *self = Self::Ordered(map.drain().collect());
        }
        if let Self::Ordered(map) = self
            && first <= last
        {
            out.extend(map.range(first..=last).map(|(_, anchor)| anchor));
        }
    }
}

/// The forest; see the module's text.
#[derive(Debug)]
pub(super) struct Forest {
    hash: KeyedHash,
    /// Those that have any.
    kinds: BTreeMap<XidType, Anchors>,
    anchors: Slab<Anchor>,
    leaves: Slab<Leaf>,
    /// The anchors that a change concerns; kept for its memory.
    concerned: Vec<AnchorId>,
}

/// What an anchor takes in its slab and in its principal's map, where an eighth of the places is empty.
const ANCHOR_BYTES: usize = size_of::<Anchor>() + 8 + (size_of::<(Xid, AnchorId)>() + 1) * 8 / 7;
/// What a type of XIDs takes: a place in a node of the tree, half of which may be empty, and the first table of a hash map.
const KIND_BYTES: usize =
    2 * size_of::<(XidType, Anchors)>() + 4 * size_of::<(Xid, AnchorId)>() + 32;
/// What a leaf takes in its slab.
const LEAF_BYTES: usize = size_of::<Leaf>().next_multiple_of(8);

impl Forest {
    pub(super) fn new(hash: KeyedHash) -> Self {
        Self {
            hash,
            kinds: BTreeMap::new(),
            anchors: Slab::new(),
            leaves: Slab::new(),
            concerned: Vec::new(),
        }
    }

    /// The bytes in use.
    pub(super) fn bytes(&self) -> usize {
        self.anchors.len() * ANCHOR_BYTES
            + self.leaves.len() * LEAF_BYTES
            + self.kinds.len() * KIND_BYTES
    }

    /// The numbers of anchors and leaves.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.anchors.len(), self.leaves.len())
    }

    /// Gives the memory back. Nothing hangs on it any more.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.hash);
    }

    /// Hangs an entry on the anchors of what was asked on the way to its decision, each XID once. Returns the
    /// first leaf.
    pub(super) fn attach(&mut self, entry: EntryId, asked: &[(Xid, Answer)]) -> LeafId {
        let mut sibling = NO_LEAF;
        for (xid, answer) in asked {
            let anchor = self.anchor(xid, *answer);
            let behind = self.anchors[anchor as usize].first;
            let leaf = Leaf { entry, anchor, before: NO_LEAF, behind, sibling };
            let leaf = self.leaves.insert(leaf) as LeafId;
            if behind != NO_LEAF {
                self.leaves[behind as usize].before = leaf;
            }
            self.anchors[anchor as usize].first = leaf;
            sibling = leaf;
        }
        sibling
    }

    /// The anchor of an XID that was answered so.
    fn anchor(&mut self, xid: &Xid, answer: Answer) -> AnchorId {
        let none = || Anchors::Hashed(HashMap::with_hasher(self.hash));
        let anchors = self.kinds.entry(xid.kind).or_insert_with(none);
        if let Some(found) = anchors.get(xid) {
            return found;
        }
        let made = self.anchors.insert(Anchor { xid: *xid, answer, first: NO_LEAF }) as AnchorId;
        anchors.insert(*xid, made);
        made
    }

    /// The entry with these leaves has another number now.
    pub(super) fn entry_moved(&mut self, first: LeafId, entry: EntryId) {
        let mut next = first;
        while let Some(leaf) = self.leaves.get_mut(next as usize) {
            leaf.entry = entry;
            next = leaf.sibling;
        }
    }

    /// Takes an entry off its anchors. Those on which nothing hangs any more go.
    pub(super) fn detach(&mut self, first: LeafId) {
        let mut next = first;
        while next != NO_LEAF {
            let leaf = self.leaves.remove(next as usize);
            if leaf.behind != NO_LEAF {
                self.leaves[leaf.behind as usize].before = leaf.before;
            }
            if leaf.before != NO_LEAF {
                self.leaves[leaf.before as usize].behind = leaf.behind;
            } else if leaf.behind != NO_LEAF {
                self.anchors[leaf.anchor as usize].first = leaf.behind;
            } else {
                self.remove_anchor(leaf.anchor);
            }
            next = leaf.sibling;
        }
    }

    fn remove_anchor(&mut self, anchor: AnchorId) {
        let xid = self.anchors.remove(anchor as usize).xid;
        if let Some(anchors) = self.kinds.get_mut(&xid.kind) {
            anchors.remove(&xid);
            if anchors.is_empty() {
                self.kinds.remove(&xid.kind);
            }
        }
    }

    /// Asks again what changes of the principal `kind` concern, and adds the entries to `stale` that rest on
    /// another answer. One that hangs on several such anchors is added several times.
    pub(super) fn changed(
        &mut self,
        kind: XidType,
        changes: &[Change],
        mut ask: impl FnMut(&Xid) -> Answer,
        stale: &mut Vec<EntryId>,
    ) {
        let Some(anchors) = self.kinds.get_mut(&kind) else { return };
        let mut concerned = std::mem::take(&mut self.concerned);
        for change in changes {
            match change {
                Change::Xid(xid) => concerned.extend(anchors.get(xid)),
                Change::Range(first, last) => anchors.range(*first, *last, &mut concerned),
                Change::All => anchors.all(&mut concerned),
            }
        }
        // The anchors do not wait for one another, and neither do their leaves.
        concerned.iter().for_each(|anchor| self.prefetch_anchor(*anchor));
        concerned.retain(|anchor| {
            let anchor = &mut self.anchors[*anchor as usize];
            let answer = ask(&anchor.xid);
            if let Some(leaf) = self.leaves.get(anchor.first as usize) {
                prefetch(leaf);
            }
            std::mem::replace(&mut anchor.answer, answer) != answer
        });
        for anchor in concerned.drain(..) {
            let mut next = self.anchors[anchor as usize].first;
            while next != NO_LEAF {
                let leaf = &self.leaves[next as usize];
                stale.push(leaf.entry);
                next = leaf.behind;
            }
        }
        self.concerned = concerned;
    }

    fn prefetch_anchor(&self, anchor: AnchorId) {
        if let Some(anchor) = self.anchors.get(anchor as usize) {
            prefetch(anchor);
            // An anchor is longer than a cache line.
            prefetch(&anchor.first);
        }
    }

    /// Has the neighbours of an entry's leaves brought near.
    pub(super) fn prefetch_leaf(&self, leaf: LeafId) {
        if let Some(leaf) = self.leaves.get(leaf as usize) {
            prefetch(leaf);
        }
    }

    /// The anchors: XID, answer, and how many decisions rest on it.
    pub(super) fn anchors(&self) -> impl Iterator<Item = (Xid, Answer, usize)> + '_ {
        self.anchors.iter().map(|(_, anchor)| {
            let some = |leaf: LeafId| (leaf != NO_LEAF).then_some(leaf);
            let next = |leaf: &LeafId| some(self.leaves[*leaf as usize].behind);
            let leaves = std::iter::successors(some(anchor.first), next);
            (anchor.xid, anchor.answer, leaves.count())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap as Model, BTreeSet};

    use proptest::prelude::*;

    use super::*;
    use crate::principal::SocketId;
    use crate::xid::ID_LEN;

    fn forest() -> Forest {
        Forest::new(KeyedHash::new(&mut weft_base::Random::from_seed(1)))
    }

    fn xid(kind: XidType, id: u8) -> Xid {
        Xid::new(kind, [id; ID_LEN])
    }

    fn ad(id: u8) -> Xid {
        xid(XidType::AD, id)
    }

    fn hid(id: u8) -> Xid {
        xid(XidType::HID, id)
    }

    fn stale(
        forest: &mut Forest,
        kind: XidType,
        change: Change,
        ask: impl Fn(&Xid) -> Answer,
    ) -> Vec<EntryId> {
        let mut stale = Vec::new();
        forest.changed(kind, &[change], ask, &mut stale);
        stale.sort_unstable();
        stale
    }

    #[test]
    fn an_answer_that_stays_the_same_hurts_nobody() {
        let mut forest = forest();
        let to = Answer::Redirect(hid(9));
        forest.attach(1, &[(ad(1), to), (hid(9), Answer::Through)]);
        assert!(stale(&mut forest, XidType::AD, Change::All, |_| to).is_empty());
        let other = Answer::Redirect(hid(8));
        assert!(stale(&mut forest, XidType::AD, Change::Xid(ad(2)), |_| other).is_empty());
        assert!(stale(&mut forest, XidType::HID, Change::All, |_| Answer::Through).is_empty());
        assert_eq!(stale(&mut forest, XidType::AD, Change::Xid(ad(1)), |_| other), [1]);
        assert!(stale(&mut forest, XidType::AD, Change::All, |_| other).is_empty(), "asked again");
    }

    #[test]
    fn a_range_has_both_its_ends() {
        let mut forest = forest();
        for id in 1..6 {
            forest.attach(id.into(), &[(ad(id), Answer::Unknown)]);
        }
        let range = Change::Range(ad(2), ad(4));
        assert_eq!(stale(&mut forest, XidType::AD, range, |_| Answer::Through), [2, 3, 4]);
        let nothing = Change::Range(ad(5), ad(1));
        assert!(stale(&mut forest, XidType::AD, nothing, |_| Answer::Through).is_empty());
    }

    #[test]
    fn anchors_go_with_their_last_leaf() {
        let mut forest = forest();
        let asked = [(ad(1), Answer::Redirect(hid(1))), (hid(1), Answer::Through)];
        let (one, two) = (forest.attach(1, &asked), forest.attach(2, &asked[1..]));
        assert_eq!(forest.size(), (2, 3));
        forest.detach(one);
        assert_eq!(forest.anchors().collect::<Vec<_>>(), [(hid(1), Answer::Through, 1)]);
        forest.detach(two);
        assert_eq!((forest.size(), forest.bytes()), ((0, 0), 0));
    }

    #[test]
    fn types_of_xids_that_somebody_invents_are_counted_and_go() {
        let mut forest = forest();
        let unknown = |number: u32| (xid(XidType(number), 1), Answer::Unknown);
        let leaves: Vec<_> =
            (0..1000).map(|entry| forest.attach(entry, &[unknown(entry)])).collect();
        let bytes = forest.bytes();
        assert!(bytes >= 1000 * (ANCHOR_BYTES + LEAF_BYTES + size_of::<Anchors>()), "{bytes}");
        leaves.into_iter().for_each(|leaf| forest.detach(leaf));
        assert_eq!((forest.kinds.len(), forest.bytes()), (0, 0));
        // All that is of a type goes when the answers do, also if it was there before.
        forest.attach(1, &[unknown(7)]);
        let deliver = |_: &Xid| Answer::Deliver(SocketId(1));
        assert_eq!(stale(&mut forest, XidType(7), Change::All, deliver), [1]);
    }

    proptest! {
        /// The model: each entry with what was asked for it. Answers are sockets with the number of the last
        /// change, so that each change is one.
        #[test]
        fn exactly_the_entries_on_changed_answers_are_stale(
            steps in prop::collection::vec((0_u8..5, 0_u32..12, prop::collection::btree_set(0_u8..10, 1..5)), 1..60)
        ) {
            let mut forest = forest();
            let mut answers: Model<Xid, Answer> = Model::new();
            let mut entries: Model<EntryId, (LeafId, Vec<Xid>)> = Model::new();
            for (number, (step, entry, ids)) in steps.into_iter().enumerate() {
                let xids: Vec<Xid> = ids.iter().map(|id| if id % 2 == 0 { ad(*id) } else { hid(*id) }).collect();
                let answer_of = |answers: &Model<Xid, Answer>, xid: &Xid| *answers.get(xid).unwrap_or(&Answer::Unknown);
                if let Some((leaf, _)) = entries.remove(&entry) {
                    forest.detach(leaf);
                }
                if step < 3 {
                    let asked: Vec<_> = xids.iter().map(|xid| (*xid, answer_of(&answers, xid))).collect();
                    entries.insert(entry, (forest.attach(entry, &asked), xids));
                    continue;
                }
                let new = Answer::Deliver(SocketId(number as u32));
                let (first, last) = (xids[0], xids[xids.len() - 1]);
                let change = match step {
                    3 => Change::Xid(first),
                    _ if first.kind == last.kind => Change::Range(first, last),
                    _ => Change::All,
                };
                let concerned = |xid: &Xid| xid.kind == first.kind && match change {
                    Change::Xid(one) => *xid == one,
                    Change::Range(first, last) => (first..=last).contains(xid),
                    Change::All => true,
                };
                for id in 0..10 {
                    for xid in [ad(id), hid(id)].into_iter().filter(concerned) {
                        answers.insert(xid, new);
                    }
                }
                let found: BTreeSet<_> =
                    stale(&mut forest, first.kind, change, |xid| answer_of(&answers, xid)).into_iter().collect();
                let expected: BTreeSet<_> = entries
                    .iter()
                    .filter(|(_, (_, xids))| xids.iter().any(concerned))
                    .map(|(entry, _)| *entry)
                    .collect();
                prop_assert_eq!(&found, &expected);
                for entry in found {
                    if let Some((leaf, _)) = entries.remove(&entry) {
                        forest.detach(leaf);
                    }
                }
            }
            let leaves: usize = entries.values().map(|(_, xids)| xids.len()).sum();
            let anchors: BTreeSet<_> = entries.values().flat_map(|(_, xids)| xids).collect();
            prop_assert_eq!(forest.size(), (anchors.len(), leaves));
        }
    }
}
