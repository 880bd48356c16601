//! Work with the instructions of the processor that is there.
//!
//! A program is compiled for what every processor of its kind can do: on x86-64 that is registers of 128 bits, and
//! neither a count of one bits nor the place of the first. Nearly all of them can do more. Here the same work is compiled twice more,
//! for level 3 of the instruction set (AVX2, BMI, POPCNT and others) and for level 4 (AVX-512), and the processor is
//! asked which of them it can run.
//!
//! Reference: System V Application Binary Interface, AMD64 Architecture Processor Supplement, §3.1.1
//! (x86-64-v3, x86-64-v4). Processors of other kinds have the instructions in question, and there is only one form.

#[cfg(target_arch = "x86_64")]
use crate::asked::Asked;

/// What can be compiled several times.
///
/// [`Work::run`], and all of it that counts, must be `#[inline(always)]`: a function of its own has one form
/// only.
pub trait Work {
    /// What comes of it.
    type Result;

    /// Does the work.
    fn run(self) -> Self::Result;
}

/// Does the work, in the form with the most instructions that this processor has.
#[inline(always)]
pub fn widest<W: Work>(work: W) -> W::Result {
    #[cfg(target_arch = "x86_64")]
    match level() {
        // SAFETY: the processor has all that the function is compiled for.
        4 => return unsafe { level_4::run(work) },
        // SAFETY: the same.
        3 => return unsafe { level_3::run(work) },
        _ => {}
    }
    work.run()
}

/// The level of this processor's instruction set.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn level() -> u8 {
    static LEVEL: Asked = Asked::new();
    LEVEL.answer(|| match (level_3::is_there(), level_4::is_there()) {
        (_, true) => 4,
        (true, false) => 3,
        (false, false) => 1,
    })
}

/// A form for a level of the instruction set: its name, and all features that are needed.
#[cfg(target_arch = "x86_64")]
macro_rules! level {
    ($name:ident, [$($feature:tt),+]) => {
        mod $name {
            use super::Work;

            /// Whether the processor has the instructions, and the kernel keeps its registers.
            pub(super) fn is_there() -> bool {
                $(is_x86_feature_detected!($feature))&&+
            }

            /// The work, compiled for the level.
            ///
            /// # Safety
            /// The processor must have its instructions.
            $(#[target_feature(enable = $feature)])+
            pub(super) unsafe fn run<W: Work>(work: W) -> W::Result {
                work.run()
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
level!(level_3, ["avx2", "bmi1", "bmi2", "fma", "lzcnt", "movbe", "popcnt"]);
#[cfg(target_arch = "x86_64")]
level!(
    level_4,
    [
        "avx2", "bmi1", "bmi2", "fma", "lzcnt", "movbe", "popcnt", "avx512f", "avx512bw",
        "avx512cd", "avx512dq", "avx512vl"
    ]
);

#[cfg(test)]
mod tests {
    use super::*;

    struct Places<'a>(&'a [u64]);

    impl Work for Places<'_> {
        type Result = Vec<u32>;

        #[inline(always)]
        fn run(self) -> Vec<u32> {
            self.0.iter().map(|word| word.count_ones() * 100 + word.trailing_zeros()).collect()
        }
    }

    #[test]
    fn every_form_comes_to_the_same() {
        let words: Vec<u64> =
            (0..1000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) << (n % 64)).collect();
        let expected = Places(&words).run();
        assert_eq!(widest(Places(&words)), expected);
        #[cfg(target_arch = "x86_64")]
        if level_3::is_there() {
            // SAFETY: the processor has the instructions.
            assert_eq!(unsafe { level_3::run(Places(&words)) }, expected);
        }
        assert!(expected.contains(&64), "a word without one bits");
        assert!(expected.iter().any(|both| *both > 3000), "a word with many one bits");
    }
}
