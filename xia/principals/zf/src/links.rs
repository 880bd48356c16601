//! The links that a node knows, and the list that filters are compared with.
//!
//! Unlike in other tables a link can be local and have several gateways at once: that is what
//! virtual links are made of.

use std::collections::{BTreeMap, BTreeSet};

use weft_processor::{Work, widest};
use weft_xip::Xid;
use weft_xip::principal::Branch;

use crate::filter::Bits;
use crate::rows::{Rows, WORD};
use crate::runs::{Progress, Runs};
use crate::statement::Link;

/// Where a link leads: to a gateway, or `None` for this node.
pub(crate) type Target = Option<Xid>;

/// All links as they were configured, with their targets.
#[derive(Debug, Default)]
pub(crate) struct Links(BTreeMap<Link, BTreeSet<Target>>);

impl Links {
    /// Whether the link leads there.
    pub(crate) fn has(&self, link: &Link, target: Target) -> bool {
        self.0.get(link).is_some_and(|targets| targets.contains(&target))
    }

    /// Makes the link lead there, too.
    pub(crate) fn insert(&mut self, link: Link, target: Target) {
        self.0.entry(link).or_default().insert(target);
    }

    /// False if the link does not lead there.
    pub(crate) fn remove(&mut self, link: &Link, target: Target) -> bool {
        let Some(targets) = self.0.get_mut(link) else { return false };
        let removed = targets.remove(&target);
        if targets.is_empty() {
            self.0.remove(link);
        }
        removed
    }

    /// The gateways of a link.
    pub(crate) fn gateways(&self, link: &Link) -> Vec<Xid> {
        self.0.get(link).into_iter().flatten().filter_map(|target| *target).collect()
    }

    /// Each link with each of its targets.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Link, Target)> {
        self.0.iter().flat_map(|(link, targets)| targets.iter().map(move |target| (link, *target)))
    }

    /// The links that have names.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&str, &Link)> {
        self.0.keys().filter_map(|link| match link {
            Link::Name(name) => Some((name.as_str(), link)),
            Link::Identifier(_) => None,
        })
    }
}

/// Every link identifier with every target, in the order in which branches are taken: this node
/// first, so that other copies cannot use up the limit before it; then gateways in the order of
/// their XIDs. All links to a target stand together, so that the branch is taken once however many
/// of them match.
///
/// The list is cut into words, which are searched by means of [`Rows`]; [`Runs`] make branches of what is found. To
/// give targets words of their own is slower: more words are to be read then.
#[derive(Debug, Default)]
pub(crate) struct MatchList {
    rows: Rows,
    runs: Runs,
    /// Each with at least one entry and at most [`WORD`], in order.
    words: Vec<Vec<Entry>>,
    len: usize,
}

/// Entries of a word when all are laid out anew: links that come later have room for a while.
const PACKED: usize = 60;

#[derive(Clone, Copy, Debug)]
struct Entry {
    target: Target,
    link: Xid,
    /// How many of the configured links these are; names can share an identifier.
    uses: u32,
}

impl Entry {
    fn key(&self) -> (Target, Xid) {
        (self.target, self.link)
    }
}

impl MatchList {
    /// Adds a link.
    pub(crate) fn insert(&mut self, link: Xid, target: Target) {
        match self.find(link, target) {
            Ok((word, index)) => self.words[word][index].uses += 1,
            Err((word, index)) => {
                let (word, index) = self.make_room(word, index);
                self.words[word].insert(index, Entry { target, link, uses: 1 });
                self.len += 1;
                self.write(word);
                self.tidy();
            }
        }
    }

    /// Removes a link that was added.
    pub(crate) fn remove(&mut self, link: Xid, target: Target) {
        let Ok((word, index)) = self.find(link, target) else { return };
        let entry = &mut self.words[word][index];
        entry.uses -= 1;
        if entry.uses > 0 {
            return;
        }
        self.words[word].remove(index);
        self.len -= 1;
        if self.words[word].is_empty() {
            self.words.remove(word);
            self.rows.remove_word(word);
            self.runs.remove_word(word);
        } else {
            self.write(word);
        }
        self.tidy();
    }

    /// The word and the place in it where an entry is, or where it belongs.
    fn find(&self, link: Xid, target: Target) -> Result<(usize, usize), (usize, usize)> {
        let key = (target, link);
        let behind = self.words.partition_point(|word| word[0].key() <= key);
        let word = behind.saturating_sub(1);
        let Some(entries) = self.words.get(word) else { return Err((0, 0)) };
        let found = entries.binary_search_by_key(&key, Entry::key);
        found.map(|index| (word, index)).map_err(|index| (word, index))
    }

    /// Where an entry can be put that belongs to this place.
    fn make_room(&mut self, word: usize, index: usize) -> (usize, usize) {
        let is_last = word + 1 >= self.words.len();
        match self.words.get_mut(word) {
            Some(entries) if entries.len() < WORD => return (word, index),
            // Links that come in order fill every word.
            Some(entries) if is_last && index == entries.len() => {}
            None => {}
            Some(entries) => {
                let half = entries.split_off(WORD / 2);
                self.insert_word(word + 1, half);
                self.write(word);
                self.write(word + 1);
                return if index <= WORD / 2 {
                    (word, index)
                } else {
                    (word + 1, index - WORD / 2)
                };
            }
        }
        self.insert_word(self.words.len(), Vec::new());
        (self.words.len() - 1, 0)
    }

    fn insert_word(&mut self, at: usize, entries: Vec<Entry>) {
        self.words.insert(at, entries);
        self.rows.insert_word(at);
        self.runs.insert_word(at);
    }

    /// Makes everything else of a word's entries.
    fn write(&mut self, at: usize) {
        let entries = &self.words[at];
        let branch = |entry: &Entry| entry.target.map_or(Branch::Through, Branch::To);
        self.rows.write(at, entries.iter().map(|entry| Bits::of(&entry.link)));
        self.runs.write(at, entries.iter().map(branch));
    }

    /// Lays all out anew if an eighth more words are used than it takes: words that were halved would have to be
    /// read for ever.
    fn tidy(&mut self) {
        if self.words.len() > self.len.div_ceil(PACKED) * 9 / 8 + 1 {
            self.lay_out();
        }
    }

    fn lay_out(&mut self) {
        let all: Vec<Entry> = self.words.drain(..).flatten().collect();
        self.words = all.chunks(PACKED).map(<[Entry]>::to_vec).collect();
        self.rows.reset(self.words.len());
        self.runs.reset(self.words.len());
        (0..self.words.len()).for_each(|word| self.write(word));
    }

    /// Pushes the branch of every link that is in `filter`, each branch once.
    pub(crate) fn branches(&self, filter: Bits, branches: &mut Vec<Branch>) {
        widest(Search { list: self, filter, branches });
    }

    /// Each link identifier with each of its targets, once.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Xid, Target)> {
        let entries = self.words.iter().flatten();
        entries.map(|entry| (entry.link, entry.target))
    }
}

/// A search for all links in a filter; see [`MatchList::branches`].
struct Search<'a> {
    list: &'a MatchList,
    filter: Bits,
    branches: &'a mut Vec<Branch>,
}

impl Work for Search<'_> {
    type Result = ();

    #[inline(always)]
    fn run(self) {
        let mut progress = Progress::default();
        self.list.rows.search(self.filter, |from, held| {
            self.list.runs.take(from, held, &mut progress, self.branches);
        });
    }
}
