//! Where the one bits of words are.
//!
//! A loop over the one bits of a word ends after as many turns as there are, which nobody can foresee. So a few places are
//! written for each word whether it has so many or not, and the next word writes over those that were none; or, by one
//! instruction, all that there are.
//!
//! Reference: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, `VPCOMPRESSB` (AVX-512 VBMI2),
//! `VPMOVZXBW`.

/// Places that are written for each word in any case.
const AT_ONCE: usize = 4;

/// How many places [`ones()`] needs for so many words. Those behind the last one bit may be written, too.
#[must_use]
pub const fn room_for_ones(words: usize) -> usize {
    64 * words + AT_ONCE
}

/// The places of the one bits of all words, in order: the lowest bit of a word has the place that `firsts` says, the next
/// one more, and so on. Returns how many there are. A word without a first place has none.
///
/// # Panics
/// `places` has less room than [`room_for_ones`] says.
#[inline(always)]
pub fn ones(words: &[u64], firsts: &[u16], places: &mut [u16]) -> usize {
    assert!(places.len() >= room_for_ones(words.len()), "there must be room for all places");
    #[cfg(target_arch = "x86_64")]
    if compress::is_there() {
        // SAFETY: the processor has the instructions, and there is room for 64 places of each word.
        return unsafe { compress::ones(words, firsts, places) };
    }
    one_by_one(words, firsts, places)
}

/// The same for any processor.
#[inline(always)]
fn one_by_one(words: &[u64], firsts: &[u16], places: &mut [u16]) -> usize {
    let mut count = 0;
    for (word, first) in words.iter().zip(firsts) {
        let (mut rest, mut place) = (*word, count);
        loop {
            for slot in &mut places[place..][..AT_ONCE] {
                *slot = first.wrapping_add(rest.trailing_zeros() as u16);
                rest &= rest.wrapping_sub(1);
            }
            place += AT_ONCE;
            if rest == 0 {
                break;
            }
        }
        count += word.count_ones() as usize;
    }
    count
}

#[cfg(target_arch = "x86_64")]
mod compress {
    use std::arch::x86_64::{
        __m512i, _mm512_add_epi16, _mm512_castsi512_si256, _mm512_cvtepu8_epi16,
        _mm512_extracti64x4_epi64, _mm512_loadu_si512, _mm512_maskz_compress_epi8,
        _mm512_set1_epi16, _mm512_storeu_si512,
    };

    use crate::asked::Asked;

    /// Places that one store writes.
    const STORED: usize = 32;

    /// Whether the processor has the instructions.
    #[inline(always)]
    pub(super) fn is_there() -> bool {
        static ANSWER: Asked = Asked::new();
        ANSWER.is_yes(ask)
    }

    fn ask() -> bool {
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vbmi2")
            && is_x86_feature_detected!("popcnt")
    }

    /// # Safety
    /// The processor must have the instructions, and `places` room for 64 of each word.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
    pub(super) unsafe fn ones(words: &[u64], firsts: &[u16], places: &mut [u16]) -> usize {
        const BYTES: [u8; 64] = {
            let mut bytes = [0; 64];
            let mut at = 0;
            while at < 64 {
                bytes[at] = at as u8;
                at += 1;
            }
            bytes
        };
        // SAFETY: 64 bytes are read, and there are so many.
        let bytes = unsafe { _mm512_loadu_si512(BYTES.as_ptr().cast()) };
        let begin = places.as_mut_ptr();
        let mut count = 0;
        for (word, first) in words.iter().zip(firsts) {
            let found = _mm512_maskz_compress_epi8(*word, bytes);
            let ones = word.count_ones() as usize;
            let from = _mm512_set1_epi16(first.cast_signed());
            let low = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(found));
            // SAFETY: words before this one have written 64 places each at most, so there is room for 64 more.
            unsafe { store(begin.add(count), _mm512_add_epi16(low, from)) };
            if ones > STORED {
                let high = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64::<1>(found));
                // SAFETY: the same.
                unsafe { store(begin.add(count + STORED), _mm512_add_epi16(high, from)) };
            }
            count += ones;
        }
        count
    }

    /// # Safety
    /// 32 places must be there.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn store(to: *mut u16, places: __m512i) {
        // SAFETY: as the caller says.
        unsafe { _mm512_storeu_si512(to.cast(), places) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<const WORDS: usize>(words: [u64; WORDS]) {
        // Words that do not stand one behind the other, and the last possible one.
        let firsts: [u16; WORDS] = std::array::from_fn(|word| match word {
            0 => u16::MAX - 63,
            word => 64 * (3 * word as u16 % 7),
        });
        let places = |(word, first): (&u64, &u16)| {
            let (word, first) = (*word, *first);
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| first + bit)
        };
        let expected: Vec<u16> = words.iter().zip(&firsts).flat_map(places).collect();
        // What was there before is written over or left alone.
        let mut places = vec![u16::MAX; room_for_ones(WORDS)];
        let count = ones(&words, &firsts, &mut places);
        assert_eq!(places[..count], expected, "{words:x?}");
        let count = one_by_one(&words, &firsts, &mut places);
        assert_eq!(places[..count], expected, "{words:x?}");
    }

    #[test]
    fn all_one_bits_are_found_in_their_order() {
        check([0; 3]);
        check([u64::MAX; 16]);
        check([u64::MAX, 0, 1, 1 << 63, u64::MAX >> 31, u64::MAX >> 32]);
        let mut number = 1_u64;
        for step in 0..2000_u32 {
            check([(); 4].map(|()| {
                number =
                    number.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                let bits = number ^ number >> 29;
                // Few of them, half of them, most of them.
                [bits & number >> 7 & number >> 13 & number >> 17, bits, bits | number >> 7]
                    [step as usize % 3]
            }));
        }
    }

    #[test]
    #[should_panic(expected = "room for all places")]
    fn too_little_room_is_refused() {
        ones(&[1], &[0], &mut [0; 64]);
    }
}
