//! What the processor was asked once, and answers from then on without being asked.

use std::sync::atomic::{AtomicU8, Ordering};

/// An answer, once there is one.
pub(crate) struct Asked(AtomicU8);

/// Nobody has asked yet.
const NOT_YET: u8 = 0;
const YES: u8 = 1;
const NO: u8 = 2;

impl Asked {
    /// Nobody has asked yet.
    pub(crate) const fn new() -> Self {
        Self(AtomicU8::new(NOT_YET))
    }

    /// The answer, which is the same whoever asks first, and not 0.
    #[inline(always)]
    pub(crate) fn answer(&self, ask: fn() -> u8) -> u8 {
        match self.0.load(Ordering::Relaxed) {
            NOT_YET => self.ask(ask),
            answer => answer,
        }
    }

    /// The answer to a question that is answered by yes or no.
    #[inline(always)]
    pub(crate) fn is_yes(&self, ask: fn() -> bool) -> bool {
        match self.0.load(Ordering::Relaxed) {
            NOT_YET => self.ask(|| if ask() { YES } else { NO }) == YES,
            answer => answer == YES,
        }
    }

    #[cold]
    fn ask(&self, ask: impl FnOnce() -> u8) -> u8 {
        let answer = ask();
        debug_assert_ne!(answer, NOT_YET);
        self.0.store(answer, Ordering::Relaxed);
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_asked_for_once() {
        let asked = Asked::new();
        assert_eq!(asked.answer(|| 7), 7);
        assert_eq!(asked.answer(|| unreachable!("it was asked before")), 7);
        for answer in [false, true] {
            let asked = Asked::new();
            assert_eq!(asked.is_yes(if answer { || true } else { || false }), answer);
            assert_eq!(asked.is_yes(|| unreachable!("it was asked before")), answer);
        }
    }
}
