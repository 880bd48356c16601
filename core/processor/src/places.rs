//! Where among a few words one stands.
//!
//! Words that are compared one after the other take a branch of the program each, which is foreseen wrongly as often as their
//! places cannot be known. All of them at once take four instructions and no branch.
//!
//! Reference: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, `PCMPEQD`, `PACKSSDW`, `PMOVMSKB`.
//! On other processors it is left to the compiler.

/// The places at which `word` stands: a bit for each, the lowest for the first.
#[inline(always)]
#[must_use]
pub fn places(words: &[u32; 8], word: u32) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{
            _mm_cmpeq_epi32, _mm_loadu_si128, _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32,
            _mm_set1_epi32, _mm_setzero_si128,
        };
        let ([low, high], _) = words.as_chunks::<4>() else { return 0 };
        // SAFETY: what is read are four words each, which are there; every x86-64 processor has the instructions.
        unsafe {
            let word = _mm_set1_epi32(word.cast_signed());
            let low = _mm_cmpeq_epi32(_mm_loadu_si128(low.as_ptr().cast()), word);
            let high = _mm_cmpeq_epi32(_mm_loadu_si128(high.as_ptr().cast()), word);
            let bytes = _mm_packs_epi16(_mm_packs_epi32(low, high), _mm_setzero_si128());
            _mm_movemask_epi8(bytes).cast_unsigned()
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    one_by_one(words, word)
}

/// The same for any processor.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline]
fn one_by_one(words: &[u32; 8], word: u32) -> u32 {
    words.iter().zip(0..).map(|(own, place)| u32::from(*own == word) << place).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_places_are_found_and_no_other() {
        for set in 0..256_u32 {
            for word in [0, 1, 0x8000, 0xffff, 0x1_0000, u32::MAX] {
                for other in [word ^ 1, word ^ 0x8000_0000, word ^ 0x1_0000] {
                    let is_set = |place: usize| set >> place & 1 == 1;
                    let words =
                        std::array::from_fn(|place| if is_set(place) { word } else { other });
                    assert_eq!(places(&words, word), set);
                    assert_eq!(one_by_one(&words, word), set);
                }
            }
        }
    }
}
