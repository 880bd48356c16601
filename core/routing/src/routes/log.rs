//! Which destinations have changed, in order.
//!
//! Reference: Handley et al. (XORP), §5.1.1: one queue of changes with n readers instead of n queues.

use std::collections::VecDeque;

/// Numbers of destinations. An entry counts if its place is the version of its net; others are older changes of
/// destinations that changed again.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    entries: VecDeque<u32>,
    /// The place of the first entry.
    begin: u64,
}

impl Log {
    /// The place of the first entry.
    pub(super) fn begin(&self) -> u64 {
        self.begin
    }

    /// The place behind the last.
    pub(super) fn end(&self) -> u64 {
        self.begin + self.entries.len() as u64
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The entry at a place that is not behind the last, nor before the first.
    pub(super) fn at(&self, place: u64) -> u32 {
        // The difference is below the number of entries.
        self.entries[(place - self.begin) as usize]
    }

    /// Appends; returns the place.
    pub(super) fn push(&mut self, number: u32) -> u64 {
        self.entries.push_back(number);
        self.end() - 1
    }

    /// Takes the first away, with its place.
    pub(super) fn pop(&mut self) -> Option<(u64, u32)> {
        let number = self.entries.pop_front()?;
        self.begin += 1;
        Some((self.begin - 1, number))
    }

    /// Keeps only the entries for which this is true; it is told the place of each and the one that it would have.
    /// The first place stays.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(u64, u32, u64) -> bool) {
        let (mut old, mut new) = (self.begin, self.begin);
        self.entries.retain(|number| {
            let kept = keep(old, *number, new);
            old += 1;
            new += u64::from(kept);
            kept
        });
    }

    /// Gives back memory that is not needed any more.
    pub(super) fn shrink(&mut self) {
        if self.entries.capacity() > 4 * self.entries.len() + 4096 {
            self.entries.shrink_to(2 * self.entries.len());
        }
    }
}
