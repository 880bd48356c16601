//! Which of many link identifiers a filter holds, 64 at once.
//!
//! Reference: Jokela et al., "LIPSIN: Line Speed Publish/Subscribe Inter-networking", SIGCOMM 2009, §4.2 (each
//! identifier is compared by itself, in parallel only in hardware). The comparison is sliced by bits here,
//! as in signature files: Faloutsos, "Access Methods for Text", ACM Computing Surveys 17(1), 1985.
//!
//! The 160 bits are cut into 32 pieces of five. For each piece and each of its 32 values there is a row with one
//! bit for each link: whether the link's bits in that piece are all set in the value. A filter holds exactly
//! those links whose bits are set in all of the 32 rows that the filter's own pieces name:
//!
//! ```text
//! filter   01101 00010 … 11000         links →
//!          │     │       └─ piece 31, row 24   1011001…
//!          │     └─ piece 1, row 2             1110111…
//!          └─ piece 0, row 13                  1010101…   and of all: 1010001…
//! ```
//!
//! So a search reads 32 bits for each link, one after the other, and nothing else: its time grows with the number
//! of links, but neither with the number of one bits nor with that of matches, and there is no branch that could be
//! foreseen wrongly. What is made of the matches comes on top; see [`Runs`](crate::runs::Runs).
//! Pieces of five bits, because more of them mean more to read, and longer ones a table that outgrows the caches:
//! 10,000 links have 1.3 MB of rows, of which 40 KB are read.

use std::ops::{Deref, DerefMut};

use crate::filter::{Bits, PIECES};

/// Values of a piece.
const VALUES: usize = 32;
const ROWS: usize = PIECES * VALUES;
/// Words of all rows that are combined before any of the result is used.
const PASS: usize = 16 * BLOCK;

/// Words that are found at once. Rows are made of whole blocks.
pub(crate) const BLOCK: usize = 16;

/// Links in one word.
pub(crate) const WORD: usize = 64;

/// The rows; see the module's text. Links are placed in words, by whoever uses this.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    words: usize,
    /// Words from one row to the next; those behind [`Rows::words`] are zero.
    stride: usize,
    bits: Words,
}

/// Words that begin with a line of the processor's caches: so what is read at once lies in one line.
#[derive(Debug, Default)]
struct Words {
    words: Vec<u64>,
    begin: usize,
}

/// Bytes of a line, or a multiple of that.
const LINE: usize = 64;

/// The result of a pass, which begins with a line, too.
#[repr(align(64))]
struct Held([u64; PASS]);

impl Words {
    fn zeroes(count: usize) -> Self {
        let words = vec![0; count + LINE / size_of::<u64>() - 1];
        // They stay where they are, because none is ever added.
        let begin = words.as_ptr().align_offset(LINE).min(words.len() - count);
        Self { words, begin }
    }
}

impl Deref for Words {
    type Target = [u64];

    #[inline(always)]
    fn deref(&self) -> &[u64] {
        &self.words[self.begin..]
    }
}

impl DerefMut for Words {
    fn deref_mut(&mut self) -> &mut [u64] {
        &mut self.words[self.begin..]
    }
}

impl Rows {
    /// Makes room for a word at `at` and moves all behind it; no link is in it.
    pub(crate) fn insert_word(&mut self, at: usize) {
        if self.words == self.stride {
            self.reserve(self.words + self.words / 4 + 1);
        }
        let words = self.words;
        for row in self.bits.chunks_exact_mut(self.stride) {
            row.copy_within(at..words, at + 1);
            row[at] = 0;
        }
        self.words += 1;
    }

    /// Takes the word at `at` out and moves all behind it.
    pub(crate) fn remove_word(&mut self, at: usize) {
        for row in self.bits.chunks_exact_mut(self.stride) {
            row[..self.words].copy_within(at + 1.., at);
            row[self.words - 1] = 0;
        }
        self.words -= 1;
    }

    /// Forgets all links and has this many words.
    pub(crate) fn reset(&mut self, words: usize) {
        let stride = words.next_multiple_of(BLOCK);
        *self = Self { words, stride, bits: Words::zeroes(ROWS * stride) };
    }

    /// Puts these links, at most [`WORD`], into the word at `at` in place of all that are there. The first is
    /// the word's lowest bit.
    pub(crate) fn write(&mut self, at: usize, links: impl Iterator<Item = Bits>) {
        let mut table = [[0; VALUES]; PIECES];
        for (position, link) in links.take(WORD).enumerate() {
            for (values, piece) in table.iter_mut().zip(link.pieces()) {
                values[usize::from(piece)] |= 1 << position;
            }
        }
        for values in &mut table {
            // A value holds what it holds without one of its bits, and besides links that need the bit.
            for bit in [1, 2, 4, 8, 16] {
                for value in (0..VALUES).filter(|value| value & bit != 0) {
                    values[value] |= values[value ^ bit];
                }
            }
        }
        let rows = self.bits.chunks_exact_mut(self.stride);
        rows.zip(table.as_flattened()).for_each(|(row, links)| row[at] = *links);
    }

    /// Calls `found` with the links of all words that the filter holds, in order: of [`BLOCK`] words at once, with the
    /// number of the first. There are none in words that do not exist.
    #[inline(always)]
    pub(crate) fn search(&self, filter: Bits, mut found: impl FnMut(usize, &[u64; BLOCK])) {
        let mut held = Held([0; PASS]);
        for from in (0..self.words).step_by(PASS) {
            let held = &mut held.0[..PASS.min(self.stride - from)];
            self.combine(filter, from, held);
            let (blocks, _) = held.as_chunks();
            blocks.iter().zip((from..self.words).step_by(BLOCK)).for_each(|(b, f)| found(f, b));
        }
    }

    /// The links that the filter holds, of the words from `from` on.
    #[inline(always)]
    fn combine(&self, filter: Bits, from: usize, held: &mut [u64]) {
        let pieces = filter.pieces();
        let row = |piece: usize| {
            let begin = (piece * VALUES + usize::from(pieces[piece])) * self.stride + from;
            &self.bits[begin..][..held.len()]
        };
        let rows: [&[u64]; PIECES] = std::array::from_fn(row);
        held.fill(u64::MAX);
        // Several rows at once, because the result is read and written each time.
        let (eights, _) = rows.as_chunks::<8>();
        for [a, b, c, d, e, f, g, h] in eights {
            let rows = a.iter().zip(*b).zip(*c).zip(*d).zip(*e).zip(*f).zip(*g).zip(*h);
            for (held, (((((((a, b), c), d), e), f), g), h)) in held.iter_mut().zip(rows) {
                *held &= a & b & c & d & e & f & g & h;
            }
        }
    }

    /// Makes room for so many words.
    fn reserve(&mut self, words: usize) {
        let stride = words.next_multiple_of(BLOCK);
        let mut bits = Words::zeroes(ROWS * stride);
        if self.stride > 0 {
            let old = self.bits.chunks_exact(self.stride);
            for (new, old) in bits.chunks_exact_mut(stride).zip(old) {
                new[..self.stride].copy_from_slice(old);
            }
        }
        (self.bits, self.stride) = (bits, stride);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weft_xip::{Xid, XidType};

    use super::*;

    /// The rows, and what was written to each word.
    #[derive(Default)]
    struct Twin {
        rows: Rows,
        words: Vec<Vec<Bits>>,
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(usize),
        Remove(usize),
        Write(usize, Vec<[u8; 20]>),
        Reset,
    }

    impl Twin {
        fn take(&mut self, step: Step) {
            let words = self.words.len();
            match step {
                Step::Insert(at) => {
                    self.rows.insert_word(at % (words + 1));
                    self.words.insert(at % (words + 1), Vec::new());
                }
                Step::Remove(at) if words > 0 => {
                    self.rows.remove_word(at % words);
                    self.words.remove(at % words);
                }
                Step::Write(at, links) if words > 0 => {
                    let links: Vec<_> = links.into_iter().map(bits).collect();
                    self.rows.write(at % words, links.iter().copied());
                    self.words[at % words] = links;
                }
                Step::Reset => {
                    self.rows.reset(words);
                    self.words.iter_mut().for_each(Vec::clear);
                }
                Step::Remove(_) | Step::Write(..) => {}
            }
        }

        fn check(&self, filter: Bits) {
            let mut found = vec![0; self.words.len()];
            self.rows.search(filter, |from, links| {
                found[from..].iter_mut().zip(links).for_each(|(found, links)| *found = *links);
            });
            for (links, found) in self.words.iter().zip(found) {
                let held = |n: usize| links.get(n).is_some_and(|link| filter.holds(*link));
                assert_eq!(found, (0..WORD).map(|n| u64::from(held(n)) << n).sum::<u64>());
            }
        }
    }

    fn bits(id: [u8; 20]) -> Bits {
        Bits::of(&Xid::new(XidType::ZF, id))
    }

    /// Few one bits, so that filters hold some.
    fn link() -> impl Strategy<Value = [u8; 20]> {
        prop::collection::vec(0usize..160, 0..4).prop_map(|positions| {
            let mut id = [0; 20];
            positions.iter().for_each(|at| id[at / 8] |= 1 << (at % 8));
            id
        })
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => any::<usize>().prop_map(Step::Insert),
            2 => any::<usize>().prop_map(Step::Remove),
            6 => (any::<usize>(), prop::collection::vec(link(), 0..=WORD))
                .prop_map(|(at, links)| Step::Write(at, links)),
            1 => Just(Step::Reset),
        ]
    }

    proptest! {
        #[test]
        fn finds_what_a_comparison_with_each_link_finds(
            steps in prop::collection::vec(step(), 0..60),
            filters in prop::collection::vec(any::<[u8; 20]>(), 1..6),
        ) {
            let mut twin = Twin::default();
            for step in steps {
                twin.take(step);
                filters.iter().for_each(|filter| twin.check(bits(*filter)));
            }
            twin.check(bits([0xff; 20]));
            twin.check(bits([0; 20]));
        }
    }

    #[test]
    fn more_words_than_one_block_has() {
        let mut twin = Twin::default();
        let words = 20 * BLOCK + 3;
        (0..words).for_each(|word| twin.take(Step::Insert(word)));
        for word in (0..words).step_by(7) {
            let mut id = [0; 20];
            id[word % 20] = 1;
            twin.take(Step::Write(word, vec![id; word % WORD]));
        }
        let mut filter = [0; 20];
        filter[3..9].fill(0x0f);
        twin.check(bits(filter));
    }
}
