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
//! foreseen wrongly. Words are not passed over by their heads, because eight of them are read at once.
//! Pieces of five bits, because more of them mean more to read, and longer ones a table that outgrows the caches:
//! 10,000 links have 1.3 MB of rows, of which 40 KB are read.

use std::ops::{Deref, DerefMut};

use crate::filter::{Bits, PIECES};
use crate::index::{BLOCK, Finder, Found, SEGMENT, WORD, first_places};

/// Values of a piece.
const VALUES: usize = 32;
const ROWS: usize = PIECES * VALUES;
/// Words of all rows that are combined before any of the result is used.
const PASS: usize = SEGMENT;

/// The rows; see the module's text. They are made of whole blocks.
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
    /// Adds a word without links.
    pub(crate) fn push(&mut self) {
        if self.words == self.stride {
            self.reserve(self.words + self.words / 4 + 1);
        }
        self.words += 1;
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

    /// Finds the links of all words that the filter holds, [`BLOCK`] words at once.
    #[inline(always)]
    pub(crate) fn search(&self, filter: Bits, finder: &mut impl Finder) {
        const FIRSTS: [u16; PASS] = first_places();
        let mut held = Held([0; PASS]);
        for word in (0..self.words).step_by(PASS) {
            let held = &mut held.0[..PASS.min(self.stride - word)];
            self.combine(filter, word, held);
            let held = &held[..PASS.min(self.words - word)];
            for (held, firsts) in held.chunks(BLOCK).zip(FIRSTS.chunks(BLOCK)) {
                finder.take(&Found { from: word * WORD, firsts, held });
            }
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
