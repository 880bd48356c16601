//! Which of many link identifiers a filter holds: the links in words of 64, and the ways to search them.

use weft_processor::has_lookups;

use crate::codes::Codes;
use crate::filter::Bits;
use crate::rows::Rows;
use crate::shape::Shape;

/// Links in one word.
pub(crate) const WORD: usize = 64;
/// Words that are found at once.
pub(crate) const BLOCK: usize = 16;
/// Words whose places are numbers of 16 bits.
pub(crate) const SEGMENT: usize = 256;

/// What was found in some words, at most [`BLOCK`]. Link number n of word number w has the place 64 · w + n.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    /// The place from which [`Found::firsts`] count.
    pub(crate) from: usize,
    /// The first place of each word.
    pub(crate) firsts: &'a [u16],
    /// The links of each word that are held.
    pub(crate) held: &'a [u64],
}

/// The first place of each word, of the first so many.
pub(crate) const fn first_places<const WORDS: usize>() -> [u16; WORDS] {
    let mut first = [0; WORDS];
    let mut word = 0;
    while word < WORDS {
        first[word] = (WORD * word) as u16;
        word += 1;
    }
    first
}

/// Takes what is found. (A closure would not be compiled for the processor that is there, as the rest of a search is.)
pub(crate) trait Finder {
    /// Takes the links that are held of some words, which come in the order of their places. Must be `#[inline(always)]`.
    fn take(&mut self, found: &Found<'_>);
}

/// The links, for one of the ways to search them.
#[derive(Debug)]
pub(crate) enum Index {
    /// By the filter's bits, for any processor.
    Rows(Rows),
    /// By the links' bits, for processors that look up 64 at once.
    Codes(Codes),
}

impl Index {
    /// The faster one on this processor.
    pub(crate) fn new() -> Self {
        if has_lookups() { Self::Codes(Codes::default()) } else { Self::Rows(Rows::default()) }
    }

    /// Forgets all links and words.
    pub(crate) fn clear(&mut self) {
        match self {
            Self::Rows(rows) => *rows = Rows::default(),
            Self::Codes(codes) => *codes = Codes::default(),
        }
    }

    /// Adds a word without links, for those that fit the shape.
    pub(crate) fn push(&mut self, shape: Shape) {
        match self {
            Self::Rows(rows) => rows.push(),
            Self::Codes(codes) => codes.push(shape),
        }
    }

    /// Puts these links, at most [`WORD`], into a word in place of all that are there. They fit the word's shape.
    pub(crate) fn write(&mut self, word: usize, links: impl Iterator<Item = Bits>) {
        match self {
            Self::Rows(rows) => rows.write(word, links),
            Self::Codes(codes) => codes.write(word, links),
        }
    }

    /// Finds the links that the filter holds, in the order of their places.
    #[inline(always)]
    pub(crate) fn search(&self, filter: Bits, finder: &mut impl Finder) {
        match self {
            Self::Rows(rows) => rows.search(filter, finder),
            Self::Codes(codes) => codes.search(filter, finder),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weft_xip::{Xid, XidType};

    use super::*;

    /// The links, in both ways, and what was written to each word.
    struct Twin {
        indices: [Index; 2],
        words: Vec<(Shape, Vec<Bits>)>,
    }

    impl Twin {
        fn new() -> Self {
            let indices = [Index::Rows(Rows::default()), Index::Codes(Codes::default())];
            Self { indices, words: Vec::new() }
        }

        fn push(&mut self, shape: Shape) {
            self.indices.iter_mut().for_each(|index| index.push(shape));
            self.words.push((shape, Vec::new()));
        }

        /// Those that fit are written.
        fn write(&mut self, at: usize, links: &[Bits]) {
            let (shape, word) = &mut self.words[at];
            *word = links.iter().copied().filter(|link| shape.fits(*link)).collect();
            for index in &mut self.indices {
                index.write(at, word.iter().copied());
            }
        }

        fn check(&self, filter: Bits) {
            let mut expected = Vec::new();
            for (word, (_, links)) in self.words.iter().enumerate() {
                let held = links.iter().enumerate().filter(|(_, link)| filter.holds(**link));
                expected.extend(held.map(|(place, _)| WORD * word + place));
            }
            for index in &self.indices {
                let mut places = Places(Vec::new());
                index.search(filter, &mut places);
                assert_eq!(places.0, expected);
            }
        }
    }

    /// The places of all links that were found.
    struct Places(Vec<usize>);

    impl Finder for Places {
        fn take(&mut self, found: &Found<'_>) {
            for (first, held) in found.firsts.iter().zip(found.held) {
                let bits = (0..WORD).filter(|bit| held >> bit & 1 == 1);
                self.0.extend(bits.map(|bit| found.from + usize::from(*first) + bit));
            }
        }
    }

    fn bits(id: [u8; 20]) -> Bits {
        Bits::of(&Xid::new(XidType::ZF, id))
    }

    /// Few one bits as a rule, so that filters hold some; and many.
    fn link() -> impl Strategy<Value = Bits> {
        let positions = |most| prop::collection::vec(0_usize..160, 1..most);
        prop_oneof![8 => positions(5), 1 => positions(40)].prop_map(|positions| {
            let mut id = [0; 20];
            positions.iter().for_each(|at| id[at / 8] |= 1 << (at % 8));
            bits(id)
        })
    }

    /// A shape that at least the first of the links fits, and the links.
    fn word() -> impl Strategy<Value = (Shape, Vec<Bits>)> {
        let links = prop::collection::vec(link(), 1..=WORD);
        (links, any::<bool>(), 0_usize..3).prop_map(|(links, has_head, room)| {
            let head = if has_head { links[0].positions().next() } else { None };
            let shape = Shape::of(links[0], head);
            (Shape { width: shape.width + room, ..shape }, links)
        })
    }

    proptest! {
        #[test]
        fn finds_what_a_comparison_with_each_link_finds(
            words in prop::collection::vec(word(), 0..2 * BLOCK),
            again in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(link(), 0..=WORD)), 0..8),
            filters in prop::collection::vec(any::<[u8; 20]>(), 1..6),
        ) {
            let mut twin = Twin::new();
            for (shape, links) in words {
                twin.push(shape);
                twin.check(bits([0xff; 20]));
                twin.write(twin.words.len() - 1, &links);
            }
            let check = |twin: &Twin| {
                filters.iter().for_each(|filter| twin.check(bits(*filter)));
                twin.check(bits([0xff; 20]));
                twin.check(bits([0; 20]));
            };
            check(&twin);
            for (at, links) in again {
                if !twin.words.is_empty() {
                    twin.write(at.index(twin.words.len()), &links);
                    check(&twin);
                }
            }
            twin.indices.iter_mut().for_each(Index::clear);
            twin.words.clear();
            twin.check(bits([0xff; 20]));
        }
    }

    #[test]
    fn more_words_than_one_segment_has() {
        let mut twin = Twin::new();
        for word in 0..2 * SEGMENT + BLOCK + 3 {
            let mut id = [0; 20];
            (id[word % 20], id[word % 7]) = (1, 4);
            let link = bits(id);
            // Words without a link, and without a head, among them.
            let head = (word % 3 != 0).then(|| 8 * (word % 20));
            twin.push(Shape::of(link, head));
            twin.write(word, &vec![link; word % 5 * 16]);
        }
        let mut filter = [0; 20];
        (0..19).for_each(|at| {
            filter[at] = 0x05;
            twin.check(bits(filter));
        });
    }
}
