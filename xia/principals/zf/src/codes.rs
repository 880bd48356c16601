//! Which of many link identifiers a filter holds, a look-up for each of a link's bits, 64 at once.
//!
//! Reference: Jokela et al., "LIPSIN: Line Speed Publish/Subscribe Inter-networking", SIGCOMM 2009, §4.2 (each
//! identifier is compared by itself, in parallel only in hardware).
//!
//! An identifier has few bits, five as a rule. Each becomes a *code* of one byte, and the filter becomes a table of 64
//! bytes, in which the code's low six bits name a byte and its upper two a bit of that byte. The bit says that the filter
//! lacks the position. 64 links have a line of the first code of each, a line of the second, and so on; a line takes two
//! instructions ([`unmarked`]), and nothing else of the links is read.
//!
//! * That is 128 positions, and there are 160. So there are two tables for overlapping *windows*, positions 0 to 127
//!   and 32 to 159. The first half of a word's lines are looked up in the first, the others in the second, and three
//!   positions of five can go to either.
//! * All links of a word share a bit, its *head*, if enough links can be found that do (see [`arrange`](crate::arrange)).
//!   The heads of all words are looked up first, 64 at once as well, and half of the words need not be looked at if the
//!   filter is half full. Those that do are listed without a branch for each ([`ones`]).
//!
//! 10,000 links of five bits are 43 KB, of which a filter that is half full reads half.

use weft_processor::{Coded, Line, ones, room_for_ones, unmarked};

use crate::filter::Bits;
use crate::index::{BLOCK, Finder, Found, SEGMENT, WORD, first_places};
use crate::shape::{SECOND_WINDOW, Shape, is_high, is_low};

/// Words of heads in a segment.
const HEADS: usize = SEGMENT / WORD;

/// The links; see the module's text.
#[derive(Debug, Default)]
pub(crate) struct Codes {
    /// The heads of 64 words: a line with those in the first window, and one with the others. A word without a head
    /// has no code.
    heads: Words,
    links: Words,
    /// The head of each word.
    shared: Vec<Option<usize>>,
}

/// Words of 64 items.
#[derive(Debug, Default)]
struct Words {
    words: Vec<Coded>,
    lines: Vec<Line>,
}

impl Words {
    /// Adds a word without items, with so many lines for each window.
    fn push(&mut self, first: usize, second: usize) {
        let begin = self.lines.len();
        let lines = [begin, begin + first, begin + first + second].map(|line| line as u32);
        self.words.push(Coded { lines, items: 0 });
        self.lines.resize(begin + first + second, Line::ZERO);
    }
}

/// The code of a position in a window that begins there.
fn code(position: usize, window: usize) -> u8 {
    let place = position - window;
    (place % 64) as u8 | 0x40 << (place / 64)
}

impl Codes {
    /// Adds a word without links.
    pub(crate) fn push(&mut self, shape: Shape) {
        let at = self.shared.len();
        if at.is_multiple_of(WORD) {
            self.heads.push(1, 1);
        }
        self.heads.words[at / WORD].items |= 1 << (at % WORD);
        if let Some(head) = shape.head {
            let second = usize::from(is_high(head));
            let line = &mut self.heads.lines[at / WORD * 2 + second];
            line.0[at % WORD] = code(head, second * SECOND_WINDOW);
        }
        self.links.push(shape.width.div_ceil(2), shape.width / 2);
        self.shared.push(shape.head);
    }

    /// Puts these links, at most [`WORD`], into a word in place of all that are there.
    pub(crate) fn write(&mut self, at: usize, links: impl Iterator<Item = Bits>) {
        let head = self.shared[at];
        let Coded { lines, items } = &mut self.links.words[at];
        let [begin, middle, end] = lines.map(|line| line as usize);
        let (first, second) = self.links.lines[begin..end].split_at_mut(middle - begin);
        first.fill(Line::ZERO);
        second.fill(Line::ZERO);
        *items = 0;
        for (place, link) in links.take(WORD).enumerate() {
            let link = head.map_or(link, |head| link.without(head));
            let (mut first, mut second) = (first.iter_mut(), second.iter_mut());
            let mut put = |position: usize, in_second: bool| {
                let (line, window) = match in_second {
                    true => (second.next(), SECOND_WINDOW),
                    false => (first.next(), 0),
                };
                line.map(|line| line.0[place] = code(position, window)).is_some()
            };
            let mut fits = true;
            for position in link.positions().filter(|at| is_low(*at) || is_high(*at)) {
                fits &= put(position, is_high(position));
            }
            for position in link.positions().filter(|at| !is_low(*at) && !is_high(*at)) {
                fits &= put(position, false) || put(position, true);
            }
            debug_assert!(fits, "a link in a word that it does not fit");
            *items |= u64::from(fits) << place;
        }
    }

    /// Finds the links that the filter holds: [`BLOCK`] words at once, of those whose heads the filter has.
    #[inline(always)]
    pub(crate) fn search(&self, filter: Bits, finder: &mut impl Finder) {
        const ALL: [u16; HEADS] = [0, 1, 2, 3];
        const FIRSTS: [u16; HEADS] = first_places();
        let [a, b, c, d] = filter.windows();
        let tables = [Line::of_bits(!a, !c), Line::of_bits(!b, !d)];
        let mut candidates = [0; room_for_ones(HEADS)];
        for (segment, heads) in self.heads.words.chunks(HEADS).enumerate() {
            let mut headed = [0; HEADS];
            unmarked(&tables, &self.heads.lines, heads, &ALL[..heads.len()], &mut headed);
            let count = ones(&headed[..heads.len()], &FIRSTS, &mut candidates);
            let words = &self.links.words[segment * SEGMENT..];
            for candidates in candidates[..count].chunks(BLOCK) {
                let (mut firsts, mut held) = ([0; BLOCK], [0; BLOCK]);
                let places = firsts.iter_mut().zip(candidates);
                places.for_each(|(first, word)| *first = word * WORD as u16);
                unmarked(&tables, &self.links.lines, words, candidates, &mut held);
                let (firsts, held) = (&firsts[..candidates.len()], &held[..candidates.len()]);
                finder.take(&Found { from: segment * SEGMENT * WORD, firsts, held });
            }
        }
    }
}
