//! The list of links that filters are compared with.

use std::collections::BTreeMap;

use weft_processor::{Work, widest};
use weft_xip::Xid;
use weft_xip::principal::Branch;

use crate::arrange::{Group, arrange};
use crate::filter::Bits;
use crate::index::{Index, WORD};
use crate::links::Target;
use crate::shape::Shape;
use crate::targets::{Collector, Targets};

/// All is laid out anew after this many changes, and one for each so many links.
const CHANGES: usize = 64;
const LINKS_FOR_A_CHANGE: usize = 16;

/// Every link identifier with every target.
///
/// The links stand in words, which an [`Index`] searches; [`Targets`] make branches of what is found. Which links stand
/// together in a word makes the search fast ([`arrange`]). Links that come later take places that are free in
/// words that they fit, or words that any link fits, and now and then all are laid out anew.
///
/// Words of links to this node come before all others: so its branch is the first, and copies for gateways cannot use
/// up the limit before it.
#[derive(Debug)]
pub(crate) struct MatchList {
    entries: BTreeMap<Key, Entry>,
    words: Vec<Word>,
    index: Index,
    targets: Targets,
    /// Since all was laid out.
    changes: usize,
}

/// A link to a target.
type Key = (Target, Xid);

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// How many of the configured links these are; names can share an identifier.
    uses: usize,
    /// The place of the link: its word, and which of the word's links it is.
    word: usize,
    number: usize,
}

#[derive(Debug)]
struct Word {
    shape: Shape,
    /// Whether its links lead to this node. Others do not.
    is_local: bool,
    /// At most [`WORD`].
    links: Vec<Key>,
}

impl Word {
    fn has_room_for(&self, (target, link): &Key) -> bool {
        self.links.len() < WORD
            && self.is_local == target.is_none()
            && self.shape.fits(Bits::of(link))
    }
}

impl MatchList {
    /// Without links.
    pub(crate) fn new(index: Index) -> Self {
        let (entries, words) = (BTreeMap::new(), Vec::new());
        Self { entries, words, index, targets: Targets::default(), changes: 0 }
    }

    /// Adds a link.
    pub(crate) fn insert(&mut self, link: Xid, target: Target) {
        let key = (target, link);
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.uses += 1;
            return;
        }
        self.targets.add(target);
        match self.make_room(&key) {
            Some(word) => {
                let links = &mut self.words[word].links;
                self.entries.insert(key, Entry { uses: 1, word, number: links.len() });
                links.push(key);
                self.write(word);
                self.changed();
            }
            None => {
                self.entries.insert(key, Entry { uses: 1, word: 0, number: 0 });
                self.lay_out();
            }
        }
    }

    /// Removes a link that was added.
    pub(crate) fn remove(&mut self, link: Xid, target: Target) {
        let key = (target, link);
        let Some(entry) = self.entries.get_mut(&key) else { return };
        entry.uses -= 1;
        if entry.uses > 0 {
            return;
        }
        let Entry { word, number, .. } = *entry;
        self.entries.remove(&key);
        self.targets.remove(target);
        let links = &mut self.words[word].links;
        links.swap_remove(number);
        if let Some(moved) = links.get(number).and_then(|key| self.entries.get_mut(key)) {
            moved.number = number;
        }
        self.write(word);
        self.changed();
    }

    /// Forgets all links.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.targets = Targets::default();
        self.lay_out();
    }

    /// A word that the link can be added to; none if that needs another order of words.
    fn make_room(&mut self, key: &Key) -> Option<usize> {
        let fit = |(_, word): &(usize, &Word)| word.has_room_for(key);
        // Those without a head, which all links fit, are for others if there is one with.
        let best = self.words.iter().enumerate().filter(fit);
        let found = best.min_by_key(|(_, word)| word.shape.head.is_none()).map(|(at, _)| at);
        let (target, link) = key;
        if found.is_some() || target.is_none() {
            return found;
        }
        let shape = Shape::of(Bits::of(link), None);
        self.push(Word { shape, is_local: false, links: Vec::new() });
        Some(self.words.len() - 1)
    }

    fn push(&mut self, word: Word) {
        self.index.push(word.shape);
        self.targets.push();
        self.words.push(word);
    }

    /// Makes everything else of a word's links.
    fn write(&mut self, at: usize) {
        let links = &self.words[at].links;
        self.index.write(at, links.iter().map(|(_, link)| Bits::of(link)));
        self.targets.write(at, links.iter().map(|(target, _)| *target));
    }

    fn changed(&mut self) {
        self.changes += 1;
        if self.changes > CHANGES + self.entries.len() / LINKS_FOR_A_CHANGE {
            self.lay_out();
        }
    }

    fn lay_out(&mut self) {
        self.changes = 0;
        self.words.clear();
        self.index.clear();
        self.targets.clear_places();
        let keys: Vec<Key> = self.entries.keys().copied().collect();
        // Links to this node come first among the keys, too.
        let others = keys.partition_point(|(target, _)| target.is_none());
        for (keys, is_local) in [(&keys[..others], true), (&keys[others..], false)] {
            let links: Vec<Bits> = keys.iter().map(|(_, link)| Bits::of(link)).collect();
            for Group { shape, links } in arrange(&links) {
                let links: Vec<Key> = links.into_iter().map(|link| keys[link]).collect();
                for (number, key) in links.iter().enumerate() {
                    if let Some(entry) = self.entries.get_mut(key) {
                        (entry.word, entry.number) = (self.words.len(), number);
                    }
                }
                self.push(Word { shape, is_local, links });
                self.write(self.words.len() - 1);
            }
        }
    }

    /// Pushes the branch of every link that is in `filter`, each branch once: that to this node first.
    pub(crate) fn branches(&self, filter: Bits, branches: &mut Vec<Branch>) {
        let index = &self.index;
        self.targets.collect(branches, |collector| widest(Search { index, filter, collector }));
    }

    /// Each link identifier with each of its targets, once, in the order of the targets.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Xid, Target)> {
        self.entries.keys().map(|(target, link)| (*link, *target))
    }
}

/// A search for all links in a filter; see [`MatchList::branches`].
struct Search<'a, 'b> {
    index: &'a Index,
    filter: Bits,
    collector: &'a mut Collector<'b>,
}

impl Work for Search<'_, '_> {
    type Result = ();

    #[inline(always)]
    fn run(self) {
        self.index.search(self.filter, self.collector);
        self.collector.finish();
    }
}
