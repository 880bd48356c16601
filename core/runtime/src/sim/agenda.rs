//! The agenda of the world: what is due when, in an order that never varies.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weft_base::Instant;

use super::ids::{EndId, InterfaceId, ProcessId};

/// Something to be done at a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// A packet that this interface sent comes to the other end of its link.
    Arrival(InterfaceId),
    /// The deadline of a process.
    Deadline(ProcessId),
    /// A process has paid for its last slice of background work.
    Slice(ProcessId),
    /// The grace period of a process that was asked to stop is over.
    Grace(ProcessId),
    /// Something comes to this end of a channel.
    Channel(EndId),
    /// The disk has an answer for a process.
    Disk(ProcessId),
    /// A connection of TCP that is being made is answered, or not in time.
    Stream(u32),
    /// Nobody has adopted the connection that this handle stands for.
    Lent(u64),
}

/// Virtual time, and what is due.
#[derive(Debug)]
pub(super) struct Clock {
    now: Instant,
    agenda: Agenda<Due>,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self { now: Instant::ZERO, agenda: Agenda::new() }
    }

    pub(super) fn now(&self) -> Instant {
        self.now
    }

    /// Enters `due` for `at`. What lies in the past is due now.
    pub(super) fn schedule(&mut self, at: Instant, due: Due) {
        self.agenda.push(at, due);
    }

    /// When the next entry is due.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.agenda.next_at()
    }

    /// Takes out the next entry that is due now.
    pub(super) fn pop_due(&mut self) -> Option<(Instant, Due)> {
        self.agenda.pop_due(self.now)
    }

    /// Moves on to `to`; time never goes back.
    pub(super) fn advance(&mut self, to: Instant) {
        self.now = self.now.max(to);
    }
}

/// Things that are due at points in time. What is due at the same time comes out in the order in
/// which it was put in.
///
/// Entries are small and never taken back: whoever schedules checks, when its entry comes out,
/// whether it still means anything.
#[derive(Debug)]
struct Agenda<T> {
    heap: BinaryHeap<Reverse<(Instant, u64, T)>>,
    /// Numbers the entries, so that equal times keep their order.
    next: u64,
}

impl<T: Copy + Ord> Agenda<T> {
    fn new() -> Self {
        Self { heap: BinaryHeap::new(), next: 0 }
    }

    /// Notes that `what` is due at `at`.
    fn push(&mut self, at: Instant, what: T) {
        self.heap.push(Reverse((at, self.next, what)));
        self.next += 1;
    }

    /// When the next entry is due.
    fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// Takes out the next entry if it is due by `now`.
    fn pop_due(&mut self, now: Instant) -> Option<(Instant, T)> {
        if self.next_at()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((at, _, what))| (at, what))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_comes_out_before_it_is_due() {
        let mut agenda = Agenda::new();
        agenda.push(Instant::from_nanos(5), 'a');
        assert_eq!(agenda.next_at(), Some(Instant::from_nanos(5)));
        assert_eq!(agenda.pop_due(Instant::from_nanos(4)), None);
        assert_eq!(agenda.pop_due(Instant::from_nanos(6)), Some((Instant::from_nanos(5), 'a')));
        assert_eq!(agenda.next_at(), None);
    }

    proptest! {
        #[test]
        fn order_is_by_time_then_by_insertion(times in prop::collection::vec(0u64..8, 0..64)) {
            let mut agenda = Agenda::new();
            for (index, time) in times.iter().enumerate() {
                agenda.push(Instant::from_nanos(*time), index);
            }
            let mut expected: Vec<_> = times.iter().copied().zip(0..).collect();
            expected.sort();
            let got: Vec<_> = std::iter::from_fn(|| agenda.pop_due(Instant::MAX))
                .map(|(at, index)| (at.as_nanos(), index))
                .collect();
            prop_assert_eq!(got, expected);
        }
    }
}
