//! What arrived of a numbered sequence: how much, what came twice, and what came out of order.
//!
//! Reference: RFC 4737, §3 (the singleton *Type-P-Reordered*) and §4.1 (the ratio); RFC 5560 (duplicates).
//! A datagram is *reordered* if its number is less than one more than the largest that came before it; the
//! one that overtakes is not. Copies do not count: only the first of them is looked at. The ratio is of what
//! arrived, not of what was sent.
//!
//! Which numbers came is remembered for the last [`WINDOW`] numbers below the largest, so that the memory is
//! bounded whatever the other side sends. What is older can be no more told from a copy: it is *too late*,
//! and counts as lost.

use std::time::Duration;

use weft_base::Instant;

/// How many numbers below the largest are remembered.
pub const WINDOW: u64 = 1 << 18;

const WORD: u64 = 64;

/// What arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Different datagrams.
    pub received: u64,
    /// Further copies of them.
    pub duplicates: u64,
    /// Of those received, how many were reordered in the sense of RFC 4737.
    pub reordered: u64,
    /// Datagrams that came so late that they might have been copies; not received.
    pub too_late: u64,
    /// Payload bytes of those received.
    pub bytes: u64,
    /// From the first to the last that was received, in nanoseconds.
    pub span_nanos: u64,
}

impl Summary {
    /// The ratio of reordered datagrams to those received, 0 to 1; 0 if there are none.
    #[must_use]
    pub fn reordered_ratio(&self) -> f64 {
        ratio(self.reordered, self.received)
    }

    /// How many of `sent` did not arrive.
    #[must_use]
    pub fn lost(&self, sent: u64) -> u64 {
        sent.saturating_sub(self.received)
    }

    /// Datagrams per second and payload bits per second, from the first to the last that arrived: the gaps
    /// between them are one fewer than they are. `None` if there was no time between them.
    #[must_use]
    pub fn rates(&self) -> Option<(f64, f64)> {
        let gaps = self.received.checked_sub(1)?;
        let seconds = Duration::from_nanos(self.span_nanos).as_secs_f64();
        let datagrams = gaps as f64 / seconds;
        let mean_bits = self.bytes as f64 * 8.0 / self.received as f64;
        (seconds > 0.0).then_some((datagrams, datagrams * mean_bits))
    }
}

/// A part of a whole; 0 of nothing.
pub(super) fn ratio(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}

/// What a datagram turned out to be when it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A new one in order.
    InOrder,
    /// A new one, reordered.
    Reordered,
    /// A copy.
    Duplicate,
    /// Too old to say.
    TooLate,
}

/// Counts what arrives.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    summary: Summary,
    /// One more than the largest number; *NextExp* in RFC 4737.
    next: u64,
    /// Of the last `WINDOW` numbers below `next`, which came: number n at bit n modulo `WINDOW`.
    seen: Vec<u64>,
    first: Option<Instant>,
}

impl Arrivals {
    /// A datagram with this number, less than 2⁶³, and of so many bytes has arrived.
    pub fn note(&mut self, now: Instant, number: u64, bytes: usize) -> Arrival {
        let arrival = self.judge(number);
        match arrival {
            Arrival::InOrder => {}
            Arrival::Reordered => self.summary.reordered += 1,
            Arrival::Duplicate => {
                self.summary.duplicates += 1;
                return arrival;
            }
            Arrival::TooLate => {
                self.summary.too_late += 1;
                return arrival;
            }
        }
        let first = *self.first.get_or_insert(now);
        self.summary.received += 1;
        self.summary.bytes += bytes as u64;
        self.summary.span_nanos = u64::try_from(now.since(first).as_nanos()).unwrap_or(u64::MAX);
        arrival
    }

    /// What has arrived until now.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.summary
    }

    fn judge(&mut self, number: u64) -> Arrival {
        if number >= self.next {
            self.advance(number);
            self.set(number);
            return Arrival::InOrder;
        }
        if self.next - number > WINDOW {
            return Arrival::TooLate;
        }
        if self.is_set(number) {
            return Arrival::Duplicate;
        }
        self.set(number);
        Arrival::Reordered
    }

    /// Makes `number` the largest: forgets what leaves the window.
    fn advance(&mut self, number: u64) {
        let words = (WINDOW / WORD) as usize;
        if self.seen.is_empty() || number - self.next >= WINDOW {
            self.seen.clear();
            self.seen.resize(words, 0);
        } else {
            let mut at = self.next;
            while at <= number {
                if at.is_multiple_of(WORD) && number - at >= WORD - 1 {
                    self.seen[(at % WINDOW / WORD) as usize] = 0;
                    at += WORD;
                } else {
                    self.seen[(at % WINDOW / WORD) as usize] &= !(1 << (at % WORD));
                    at += 1;
                }
            }
        }
        self.next = number + 1;
    }

    fn set(&mut self, number: u64) {
        self.seen[(number % WINDOW / WORD) as usize] |= 1 << (number % WORD);
    }

    fn is_set(&self, number: u64) -> bool {
        self.seen[(number % WINDOW / WORD) as usize] & 1 << (number % WORD) != 0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn noted(numbers: &[u64]) -> Summary {
        let mut arrivals = Arrivals::default();
        for (at, number) in numbers.iter().enumerate() {
            arrivals.note(Instant::from_nanos(at as u64 * 10), *number, 100);
        }
        arrivals.summary()
    }

    /// The definitions, word by word, with everything remembered.
    fn by_definition(numbers: &[u64]) -> Summary {
        let (mut seen, mut next) = (BTreeSet::new(), 0);
        let mut summary = Summary::default();
        for number in numbers {
            if next > *number && next - number > WINDOW {
                summary.too_late += 1;
            } else if !seen.insert(*number) {
                summary.duplicates += 1;
            } else {
                summary.received += 1;
                summary.reordered += u64::from(*number < next);
                next = next.max(number + 1);
            }
        }
        summary
    }

    /// The example in RFC 4737, §3.4 and §7: packet 4 arrives late.
    #[test]
    fn one_late_packet_is_one_reordered_packet() {
        let summary = noted(&[1, 2, 3, 5, 6, 7, 8, 4, 9, 10]);
        assert_eq!((summary.received, summary.reordered), (10, 1));
        assert_eq!(summary.reordered_ratio(), 0.1);
    }

    #[test]
    fn rates_count_the_gaps() {
        let summary = noted(&[0, 1, 2, 3, 4]);
        assert_eq!(summary.span_nanos, 40);
        assert_eq!(summary.rates(), Some((1e8, 8e10)));
        assert_eq!(noted(&[0]).rates(), None);
        assert_eq!(noted(&[]).rates(), None);
        assert_eq!(summary.lost(8), 3);
    }

    #[test]
    fn copies_count_once_and_the_first_of_them() {
        let summary = noted(&[0, 0, 2, 1, 1, 2]);
        assert_eq!((summary.received, summary.duplicates, summary.reordered), (3, 3, 1));
        assert_eq!(summary.bytes, 300);
    }

    #[test]
    fn what_left_the_window_is_too_late_and_its_place_is_free() {
        let summary = noted(&[0, WINDOW, 0, WINDOW + 1, 1, WINDOW, WINDOW - 1]);
        assert_eq!((summary.received, summary.too_late), (4, 2));
        assert_eq!((summary.duplicates, summary.reordered), (1, 1));
    }

    proptest! {
        /// Steps forwards and back by little and by much, so that the window is left on both sides.
        #[test]
        fn the_window_counts_as_the_definitions_do(
            steps in proptest::collection::vec((any::<bool>(), prop_oneof![0_u64..5, 0_u64..200, 0..2 * WINDOW]), 0..400)
        ) {
            let mut at = 0_u64;
            let numbers: Vec<_> = steps
                .iter()
                .map(|(back, by)| {
                    at = if *back { at.saturating_sub(*by) } else { at + by };
                    at
                })
                .collect();
            let (summary, expected) = (noted(&numbers), by_definition(&numbers));
            prop_assert_eq!(
                (summary.received, summary.duplicates, summary.reordered, summary.too_late),
                (expected.received, expected.duplicates, expected.reordered, expected.too_late)
            );
        }
    }
}
