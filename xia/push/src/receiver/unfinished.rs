//! Unfinished objects on disk: those being received, and those that wait for their senders.
//!
//! Nothing tells whether the sender of one that waits will ever come back. So when there are as many
//! as may be, the one that waits longest makes room for a new one. Those of earlier runs count as
//! longest, in the order of their names: the listing of a directory does not say when they were left.

use std::collections::{BTreeSet, VecDeque};

/// Known by the stems of their file names.
#[derive(Debug, Default)]
pub(super) struct Unfinished {
    active: BTreeSet<String>,
    /// The one that waits longest first.
    waiting: VecDeque<String>,
}

impl Unfinished {
    /// Those that earlier runs left.
    pub(super) fn of_earlier_runs(stems: impl Iterator<Item = String>) -> Self {
        Self { active: BTreeSet::new(), waiting: stems.collect() }
    }

    pub(super) fn len(&self) -> usize {
        self.active.len() + self.waiting.len()
    }

    /// Whether one waits.
    pub(super) fn is_waiting(&self, stem: &str) -> bool {
        self.waiting.iter().any(|other| other == stem)
    }

    /// It is being received from now on.
    pub(super) fn begin(&mut self, stem: String) {
        self.waiting.retain(|other| *other != stem);
        self.active.insert(stem);
    }

    /// It is not being received any more; whether its files stay.
    pub(super) fn end(&mut self, stem: String, stays: bool) {
        self.active.remove(&stem);
        if stays {
            self.waiting.push_back(stem);
        }
    }

    /// Takes out the one that waits longest.
    pub(super) fn take_oldest(&mut self) -> Option<String> {
        self.waiting.pop_front()
    }
}
