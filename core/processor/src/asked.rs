//! What the processor was asked once, and answers from then on without being asked.

use std::sync::atomic::{AtomicU8, Ordering};

/// An answer, once there is one.
pub(crate) struct Asked(AtomicU8);

/// Nobody has asked yet.
const NOT_YET: u8 = 0;

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

    #[cold]
    fn ask(&self, ask: fn() -> u8) -> u8 {
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
    }
}
