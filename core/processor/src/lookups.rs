//! 64 look-ups at once in a table of 64 bytes.
//!
//! Items have codes of one byte each, and a table says which codes are marked. 64 items form a word: a line has a code of each,
//! and a word of 64 bits says which of them have no code that is marked. That is an instruction for 64 look-ups and one
//! for the comparison, if the processor has them.
//!
//! Reference: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, `VPERMB` (AVX-512 VBMI),
//! `VPTESTNMB` (AVX-512 BW).

/// 64 bytes that lie in one line of the processor's caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub struct Line(pub [u8; 64]);

impl Line {
    /// All bytes are 0.
    pub const ZERO: Self = Self([0; 64]);

    /// Byte n has its bit 6 from bit n of `sixth`, its bit 7 from that of `seventh`, and no others.
    #[inline(always)]
    #[must_use]
    pub fn of_bits(sixth: u64, seventh: u64) -> Self {
        #[cfg(target_arch = "x86_64")]
        if has_lookups() {
            // SAFETY: the processor has the instructions.
            return unsafe { wide::of_bits(sixth, seventh) };
        }
        of_bits_each(sixth, seventh)
    }
}

fn of_bits_each(sixth: u64, seventh: u64) -> Line {
    let bit = |word: u64, at: usize| (word >> at & 1) as u8;
    Line(std::array::from_fn(|at| bit(sixth, at) << 6 | bit(seventh, at) << 7))
}

/// 64 items, or less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coded {
    /// The number of the first line of codes; of the first whose codes are looked up in the second table; of the
    /// first that is none of the word's.
    pub lines: [u32; 3],
    /// Which of the 64 there are: bit n stands for the byte n of each line.
    pub items: u64,
}

/// Whether this processor has instructions for [`unmarked`]. Without, it does 64 look-ups one after the other.
#[inline(always)]
#[must_use]
pub fn has_lookups() -> bool {
    #[cfg(target_arch = "x86_64")]
    return wide::is_there();
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Finds the items without a mark: those all of whose codes have `table[code & 63] & code` = 0. The words are those of
/// `words` that `which` names, and what is found in each is put into `found`.
///
/// # Panics
/// There is no such word, or no such line.
#[inline(always)]
pub fn unmarked(
    tables: &[Line; 2],
    lines: &[Line],
    words: &[Coded],
    which: &[u16],
    found: &mut [u64],
) {
    #[cfg(target_arch = "x86_64")]
    if has_lookups() {
        // SAFETY: the processor has the instructions.
        unsafe { wide::unmarked(tables, lines, words, which, found) };
        return;
    }
    unmarked_each(tables, lines, words, which, found);
}

/// The same for any processor.
fn unmarked_each(
    tables: &[Line; 2],
    lines: &[Line],
    words: &[Coded],
    which: &[u16],
    found: &mut [u64],
) {
    for (found, word) in found.iter_mut().zip(which) {
        let Coded { lines: [begin, middle, end], items } = words[usize::from(*word)];
        *found = items;
        for (table, from, to) in [(&tables[0], begin, middle), (&tables[1], middle, end)] {
            for line in &lines[from as usize..to as usize] {
                for (item, code) in line.0.iter().enumerate() {
                    let is_marked = table.0[usize::from(code & 63)] & code != 0;
                    *found &= !(u64::from(is_marked) << item);
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{
        __m512i, _mm512_load_si512, _mm512_mask_testn_epi8_mask, _mm512_maskz_set1_epi8,
        _mm512_or_si512, _mm512_permutexvar_epi8, _mm512_setzero_si512, _mm512_store_si512,
        _mm512_ternarylogic_epi64,
    };

    use super::{Coded, Line};
    use crate::asked::Asked;

    /// Whether the processor has the instructions.
    #[inline(always)]
    pub(super) fn is_there() -> bool {
        static ANSWER: Asked = Asked::new();
        ANSWER.is_yes(ask)
    }

    fn ask() -> bool {
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vbmi")
    }

    /// # Safety
    /// The processor must have the instructions.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    pub(super) unsafe fn of_bits(sixth: u64, seventh: u64) -> Line {
        let sixth = _mm512_maskz_set1_epi8(sixth, 1 << 6);
        let seventh = _mm512_maskz_set1_epi8(seventh, i8::MIN);
        let mut line = Line::ZERO;
        // SAFETY: a line has 64 bytes, and begins at a multiple of 64.
        unsafe {
            _mm512_store_si512(line.0.as_mut_ptr().cast(), _mm512_or_si512(sixth, seventh));
        }
        line
    }

    /// # Safety
    /// The processor must have the instructions.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    pub(super) unsafe fn unmarked(
        tables: &[Line; 2],
        lines: &[Line],
        words: &[Coded],
        which: &[u16],
        found: &mut [u64],
    ) {
        let (first, second) = (load(&tables[0]), load(&tables[1]));
        for (found, word) in found.iter_mut().zip(which) {
            let Coded { lines: [begin, middle, end], items } = words[usize::from(*word)];
            let mut marks = _mm512_setzero_si512();
            for line in &lines[begin as usize..middle as usize] {
                marks = with_marks(first, line, marks);
            }
            for line in &lines[middle as usize..end as usize] {
                marks = with_marks(second, line, marks);
            }
            *found = _mm512_mask_testn_epi8_mask(items, marks, marks);
        }
    }

    /// The marks, and those of a line besides. (They are collected so because a comparison takes longer.)
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn with_marks(table: __m512i, line: &Line, marks: __m512i) -> __m512i {
        const MARKS_OR_BOTH: i32 = 0b1111_1000;
        let codes = load(line);
        // The low six bits of a code say which byte of the table is taken, and the others do not matter.
        let there = _mm512_permutexvar_epi8(codes, table);
        _mm512_ternarylogic_epi64::<MARKS_OR_BOTH>(marks, there, codes)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(line: &Line) -> __m512i {
        // SAFETY: a line has 64 bytes, and begins at a multiple of 64.
        unsafe { _mm512_load_si512(line.0.as_ptr().cast()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of which none is like the one before.
    fn line(seed: u64) -> Line {
        let mut number = seed;
        Line(std::array::from_fn(|_| {
            number = number.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (number >> 33) as u8
        }))
    }

    #[test]
    fn every_form_finds_what_the_definition_says() {
        let (mut there, mut all) = (0, 0);
        for seed in 0..100 {
            let few = |seed| Line(line(seed).0.map(|byte| byte & line(seed + 7).0[1]));
            let tables = [few(seed), few(seed + 1)];
            // Some items without a code.
            let sparse = |seed| Line(line(seed).0.map(|code| if code % 5 == 0 { 0 } else { code }));
            let lines = [sparse(seed + 1000), sparse(seed + 2000), sparse(seed + 3000)];
            let items = u64::MAX >> (seed % 64);
            let words = [[0, 0, 0], [0, 1, 1], [1, 1, 3], [0, 2, 3]];
            let words = words.map(|lines| Coded { lines, items });
            let which = [3, 1, 2, 0, 2];
            let expected = which.map(|word: u16| {
                let [begin, middle, end] = words[usize::from(word)].lines.map(|at| at as usize);
                let is_marked = |item: usize, at: usize| {
                    let code = lines[at].0[item];
                    tables[usize::from(at >= middle)].0[code as usize % 64] & code != 0
                };
                let bit = |item| u64::from(!(begin..end).any(|at| is_marked(item, at))) << item;
                (0..64).map(bit).sum::<u64>() & items
            });
            let mut found = [7; 6];
            unmarked(&tables, &lines, &words, &which, &mut found);
            assert_eq!((&found[..5], found[5]), (&expected[..], 7));
            found = [7; 6];
            unmarked_each(&tables, &lines, &words, &which, &mut found);
            assert_eq!((&found[..5], found[5]), (&expected[..], 7));
            there += expected[1].count_ones();
            all += items.count_ones();
        }
        assert!((all / 10..all * 9 / 10).contains(&there), "{there} of {all}");
    }

    #[test]
    fn an_item_without_a_code_has_no_mark() {
        let words = [Coded { lines: [0, 1, 1], items: u64::MAX }];
        for (code, expected) in [(0, u64::MAX), (0x80, 0)] {
            let mut found = [1];
            unmarked(&[Line([0xff; 64]); 2], &[Line([code; 64])], &words, &[0], &mut found);
            assert_eq!(found, [expected]);
        }
    }

    #[test]
    #[should_panic(expected = "out of")]
    fn lines_that_are_not_there_are_refused() {
        let words = [Coded { lines: [0, 1, 2], items: 1 }];
        unmarked(&[Line::ZERO; 2], &[Line::ZERO], &words, &[0], &mut [0]);
    }

    #[test]
    fn every_form_makes_the_same_line_of_bits() {
        let (sixth, seventh) = (0x8000_0000_0000_0005_u64, 0x8000_ffff_0000_0001_u64);
        let line = Line::of_bits(sixth, seventh);
        assert_eq!(line, of_bits_each(sixth, seventh));
        assert_eq!(line.0[..4], [0xc0, 0, 0x40, 0]);
        assert_eq!(line.0[63], 0xc0);
        assert_eq!(line.0[32..48], [0x80; 16]);
    }
}
