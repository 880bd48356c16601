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
//! costs one look-up. Where anchors and leaves were is for others, and goes back to the system when there is much of it
//! ([`Forest::close_gap`]): so that an anchor with many leaves can be moved as fast as any other, its first leaf alone knows
//! where it is.

use std::collections::BTreeMap;

use arrayvec::ArrayVec;
use weft_base::KeyedHash;
use weft_processor::{give_back, make_room, prefetch};

use super::index::{EntryId, Index, Tag};
use super::key::{FreeKey, Key};
use super::places::{Item, Table};
use crate::changes::Change;
use crate::principal::Answer;
use crate::{Xid, XidType};

/// The number of a leaf, below [`HEAD`].
pub(super) type LeafId = u32;
/// The number of no leaf.
pub(super) const NO_LEAF: LeafId = LeafId::MAX;

/// The number of an anchor, below [`HEAD`].
type AnchorId = u32;

/// Set in what stands before a leaf: no leaf, but the anchor with the rest as its number.
const HEAD: u32 = 1 << 31;
/// Before a leaf that is none.
const GAP: u32 = u32::MAX;

/// An XID that decisions rest on.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    xid: Xid,
    answer: Answer,
    /// The first of its leaves.
    first: LeafId,
    /// Its place among those with XIDs of its type.
    at: u32,
}

/// Where a decision hangs on an anchor: in a list of the anchor's, and in one of the decision's.
#[derive(Clone, Copy, Debug)]
struct Leaf {
    entry: EntryId,
    /// The one before it on its anchor; of the first one the anchor, with [`HEAD`].
    before: u32,
    behind: LeafId,
    /// The entry's next leaf, on another anchor.
    sibling: LeafId,
}

impl Leaf {
    /// The anchor that it is the first leaf of.
    fn head_of(&self) -> Option<AnchorId> {
        (self.before & HEAD != 0).then_some(self.before & !HEAD)
    }
}

impl Item for Anchor {
    fn gap(at: u32) -> Self {
        Self { xid: Xid::NAT, answer: Answer::Unknown, first: NO_LEAF, at }
    }

    fn gap_at(&self) -> Option<u32> {
        (self.first == NO_LEAF).then_some(self.at)
    }
}

impl Item for Leaf {
    fn gap(at: u32) -> Self {
        Self { entry: at, before: GAP, behind: NO_LEAF, sibling: NO_LEAF }
    }

    fn gap_at(&self) -> Option<u32> {
        (self.before == GAP).then_some(self.entry)
    }
}

/// The anchors with XIDs of one type.
#[derive(Debug, Default)]
struct Kind {
    all: Vec<AnchorId>,
    /// In order, since the principal has spoken of a range.
    ordered: Option<BTreeMap<Xid, AnchorId>>,
}

/// The forest; see the module's text.
#[derive(Debug)]
pub(super) struct Forest {
    hash: KeyedHash,
    /// Where the anchor of an XID is.
    index: Index,
    anchors: Table<Anchor>,
    leaves: Table<Leaf>,
    /// Those that have any anchors.
    kinds: BTreeMap<XidType, Kind>,
    /// Anchors that are in order, too.
    ordered: usize,
    /// The anchors that a change concerns; kept for its memory.
    concerned: Vec<AnchorId>,
}

/// What was moved into a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moved {
    /// So many bytes.
    pub(super) bytes: usize,
    /// This entry's first leaf is another one now.
    pub(super) first: Option<(EntryId, LeafId)>,
}

/// Changes whose anchors are looked for together.
const TOGETHER: usize = 32;
/// What an anchor takes in its table and among those of its type, a list that grows by an eighth.
const ANCHOR_BYTES: usize = size_of::<Anchor>() + size_of::<AnchorId>() * 9 / 8;
/// What one takes besides that is in order, too: nodes of the tree are half full at least.
const ORDERED_BYTES: usize = 5 * size_of::<(Xid, AnchorId)>() / 2;
/// What a type of XIDs takes: a place in a node of the tree, half of which may be empty, and a list.
const KIND_BYTES: usize = 2 * size_of::<(XidType, Kind)>() + 32;

impl Forest {
    pub(super) fn new(hash: KeyedHash) -> Self {
        Self {
            hash,
            index: Index::default(),
            anchors: Table::default(),
            leaves: Table::default(),
            kinds: BTreeMap::new(),
            ordered: 0,
            concerned: Vec::new(),
        }
    }

    /// The bytes in use.
    pub(super) fn bytes(&self) -> usize {
        self.anchors.len() * ANCHOR_BYTES
            + self.ordered * ORDERED_BYTES
            + self.index.bytes()
            + self.leaves.len() * size_of::<Leaf>()
            + self.kinds.len() * KIND_BYTES
    }

    /// Bytes of places that anchors and leaves have left.
    pub(super) fn spare(&self) -> usize {
        self.anchors.spare() + self.leaves.spare()
    }

    /// The numbers of anchors and leaves.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.anchors.len(), self.leaves.len())
    }

    /// Gives the memory back. Nothing hangs on it any more.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.hash);
    }

    fn tag(&self, xid: &Xid) -> Tag {
        Tag::of(FreeKey::new(&[*xid], false).hash(&self.hash))
    }

    /// The anchor of an XID, if there is one.
    fn find(&self, xid: &Xid) -> Option<AnchorId> {
        self.index.find(self.tag(xid), |anchor| self.anchors[anchor].xid == *xid)
    }

    /// Hangs an entry on the anchors of what was asked on the way to its decision, each XID once. Returns the
    /// first leaf.
    pub(super) fn attach(&mut self, entry: EntryId, asked: &[(Xid, Answer)]) -> LeafId {
        let mut sibling = NO_LEAF;
        for (xid, answer) in asked {
            let anchor = self.find(xid).unwrap_or_else(|| self.add_anchor(xid, *answer));
            let behind = self.anchors[anchor].first;
            let leaf = self.leaves.insert(Leaf { entry, before: HEAD | anchor, behind, sibling });
            if let Some(second) = self.leaves.get_mut(behind) {
                second.before = leaf;
            }
            self.anchors[anchor].first = leaf;
            sibling = leaf;
        }
        sibling
    }

    /// The anchor of an XID that was answered so and has none, without leaves.
    fn add_anchor(&mut self, xid: &Xid, answer: Answer) -> AnchorId {
        let kind = self.kinds.entry(xid.kind).or_default();
        let at = kind.all.len() as u32;
        let anchor = self.anchors.insert(Anchor { xid: *xid, answer, first: NO_LEAF, at });
        make_room(&mut kind.all, 1);
        kind.all.push(anchor);
        if let Some(ordered) = &mut kind.ordered {
            ordered.insert(*xid, anchor);
            self.ordered += 1;
        }
        self.index.insert(self.tag(xid), anchor);
        anchor
    }

    /// Takes an entry off its anchors. Those on which nothing hangs any more go.
    pub(super) fn detach(&mut self, first: LeafId) {
        let mut next = first;
        while next != NO_LEAF {
            let leaf = self.leaves.remove(next);
            if let Some(behind) = self.leaves.get_mut(leaf.behind) {
                behind.before = leaf.before;
            }
            match leaf.head_of() {
                None => self.leaves[leaf.before].behind = leaf.behind,
                Some(anchor) if leaf.behind != NO_LEAF => self.anchors[anchor].first = leaf.behind,
                Some(anchor) => self.remove_anchor(anchor),
            }
            next = leaf.sibling;
        }
    }

    fn remove_anchor(&mut self, anchor: AnchorId) {
        let Anchor { xid, at, .. } = self.anchors.remove(anchor);
        self.index.remove(self.tag(&xid), anchor);
        let Some(kind) = self.kinds.get_mut(&xid.kind) else { return };
        kind.all.swap_remove(at as usize);
        give_back(&mut kind.all, 1);
        if let Some(moved) = kind.all.get(at as usize) {
            self.anchors[*moved].at = at;
        }
        if let Some(ordered) = &mut kind.ordered {
            ordered.remove(&xid);
            self.ordered -= 1;
        }
        if kind.all.is_empty() {
            self.kinds.remove(&xid.kind);
        }
    }

    /// The entry with these leaves has another number now.
    pub(super) fn entry_moved(&mut self, first: LeafId, entry: EntryId) {
        let mut next = first;
        while let Some(leaf) = self.leaves.get_mut(next) {
            leaf.entry = entry;
            next = leaf.sibling;
        }
    }

    /// Moves the last leaf or the last anchor into a place that another has left, whichever of the two have more bytes to spare.
    /// `first_leaf` knows the first leaf of an entry. `None` if there is nothing to move.
    pub(super) fn close_gap(&mut self, first_leaf: impl Fn(EntryId) -> LeafId) -> Option<Moved> {
        match self.anchors.spare() > self.leaves.spare() {
            true => self.close_gap_of_anchors().or_else(|| self.close_gap_of_leaves(first_leaf)),
            false => self.close_gap_of_leaves(first_leaf).or_else(|| self.close_gap_of_anchors()),
        }
    }

    fn close_gap_of_leaves(&mut self, first_leaf: impl Fn(EntryId) -> LeafId) -> Option<Moved> {
        let (from, to) = self.leaves.close_gap()?;
        let first = self.leaf_moved(from, to, first_leaf);
        Some(Moved { bytes: size_of::<Leaf>(), first })
    }

    fn close_gap_of_anchors(&mut self) -> Option<Moved> {
        let (from, to) = self.anchors.close_gap()?;
        self.anchor_moved(from, to);
        Some(Moved { bytes: size_of::<Anchor>(), first: None })
    }

    /// A leaf has another number now. Returns its entry, if that knew it.
    fn leaf_moved(
        &mut self,
        from: LeafId,
        to: LeafId,
        first_leaf: impl Fn(EntryId) -> LeafId,
    ) -> Option<(EntryId, LeafId)> {
        let leaf = self.leaves[to];
        match leaf.head_of() {
            Some(anchor) => self.anchors[anchor].first = to,
            None => self.leaves[leaf.before].behind = to,
        }
        if let Some(behind) = self.leaves.get_mut(leaf.behind) {
            behind.before = to;
        }
        let mut next = first_leaf(leaf.entry);
        if next == from {
            return Some((leaf.entry, to));
        }
        while let Some(elder) = self.leaves.get_mut(next) {
            if elder.sibling == from {
                elder.sibling = to;
                break;
            }
            next = elder.sibling;
        }
        None
    }

    /// An anchor has another number now.
    fn anchor_moved(&mut self, from: AnchorId, to: AnchorId) {
        let Anchor { xid, first, at, .. } = self.anchors[to];
        self.index.entry_moved(self.tag(&xid), from, to);
        self.leaves[first].before = HEAD | to;
        if let Some(kind) = self.kinds.get_mut(&xid.kind) {
            kind.all[at as usize] = to;
            if let Some(ordered) = &mut kind.ordered {
                ordered.insert(xid, to);
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
        let mut concerned = std::mem::take(&mut self.concerned);
        for changes in changes.chunks(TOGETHER) {
            self.prefetch_changes(changes);
            for change in changes {
                match change {
                    Change::Xid(xid) => {
                        concerned.extend(self.find(xid).filter(|_| xid.kind == kind));
                    }
                    Change::Range(first, last) => self.range(kind, *first, *last, &mut concerned),
                    Change::All => {
                        let all = self.kinds.get(&kind).into_iter().flat_map(|kind| &kind.all);
                        concerned.extend(all);
                    }
                }
            }
        }
        // The anchors do not wait for one another, and neither do their leaves.
        concerned.iter().for_each(|anchor| self.prefetch_anchor(*anchor));
        concerned.retain(|anchor| {
            let anchor = &mut self.anchors[*anchor];
            let answer = ask(&anchor.xid);
            if let Some(leaf) = self.leaves.get(anchor.first) {
                prefetch(leaf);
            }
            std::mem::replace(&mut anchor.answer, answer) != answer
        });
        for anchor in concerned.drain(..) {
            let mut next = self.anchors[anchor].first;
            while let Some(leaf) = self.leaves.get(next) {
                stale.push(leaf.entry);
                next = leaf.behind;
            }
        }
        self.concerned = concerned;
    }

    /// The anchors of a type whose XIDs lie in a range, both ends included.
    fn range(&mut self, kind: XidType, first: Xid, last: Xid, out: &mut Vec<AnchorId>) {
        let Some(kind) = self.kinds.get_mut(&kind) else { return };
        let ordered = kind.ordered.get_or_insert_with(|| {
            self.ordered += kind.all.len();
            kind.all.iter().map(|anchor| (self.anchors[*anchor].xid, *anchor)).collect()
        });
        if first <= last {
            out.extend(ordered.range(first..=last).map(|(_, anchor)| anchor));
        }
    }

    /// Has brought near what [`Forest::find`] looks at for these changes.
    fn prefetch_changes(&self, changes: &[Change]) {
        let tag = |change: &Change| match change {
            Change::Xid(xid) => Some(self.tag(xid)),
            Change::Range(..) | Change::All => None,
        };
        // One alone waits as long either way.
        if changes.len() > 1 {
            let tags: ArrayVec<_, TOGETHER> = changes.iter().filter_map(tag).collect();
            tags.iter().for_each(|tag| self.index.prefetch(*tag));
            tags.iter().for_each(|tag| self.prefetch_anchor(self.index.guess(*tag).entry()));
        }
    }

    fn prefetch_anchor(&self, anchor: AnchorId) {
        if let Some(anchor) = self.anchors.get(anchor) {
            prefetch(anchor);
            // An anchor may stand in two cache lines.
            prefetch(&anchor.at);
        }
    }

    /// Has the neighbours of an entry's leaves brought near.
    pub(super) fn prefetch_leaf(&self, leaf: LeafId) {
        if let Some(leaf) = self.leaves.get(leaf) {
            prefetch(leaf);
        }
    }

    /// The anchors: XID, answer, and how many decisions rest on it.
    pub(super) fn anchors(&self) -> impl Iterator<Item = (Xid, Answer, usize)> + '_ {
        self.anchors.iter().map(|anchor| {
            let some = |leaf: LeafId| (leaf != NO_LEAF).then_some(leaf);
            let next = |leaf: &LeafId| some(self.leaves[*leaf].behind);
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
        assert!(bytes >= 1000 * (ANCHOR_BYTES + size_of::<Leaf>() + size_of::<Kind>()), "{bytes}");
        leaves.into_iter().for_each(|leaf| forest.detach(leaf));
        assert_eq!((forest.kinds.len(), forest.bytes()), (0, 0));
        assert!(forest.spare() >= 1000 * (size_of::<Anchor>() + size_of::<Leaf>()));
        assert_eq!(forest.close_gap(|_| NO_LEAF), None);
        assert_eq!(forest.spare(), 0);
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
            steps in prop::collection::vec((0_u8..6, 0_u32..12, prop::collection::btree_set(0_u8..10, 1..5)), 1..60)
        ) {
            let mut forest = forest();
            let mut answers: Model<Xid, Answer> = Model::new();
            let mut entries: Model<EntryId, (LeafId, Vec<Xid>)> = Model::new();
            for (number, (step, entry, ids)) in steps.into_iter().enumerate() {
                let xids: Vec<Xid> = ids.iter().map(|id| if id % 2 == 0 { ad(*id) } else { hid(*id) }).collect();
                let answer_of = |answers: &Model<Xid, Answer>, xid: &Xid| *answers.get(xid).unwrap_or(&Answer::Unknown);
                if step == 5 {
                    // Few at a time, so that gaps of before meet what comes afterwards.
                    for _ in 0..ids.len() {
                        let Some(moved) = forest.close_gap(|entry| entries[&entry].0) else { break };
                        if let Some((entry, leaf)) = moved.first {
                            entries.get_mut(&entry).unwrap().0 = leaf;
                        }
                    }
                    continue;
                }
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
            prop_assert_eq!(forest.anchors().map(|(.., leaves)| leaves).sum::<usize>(), leaves);
            let all: usize = forest.kinds.values().map(|kind| kind.all.len()).sum();
            prop_assert_eq!(all, anchors.len());
        }
    }
}
