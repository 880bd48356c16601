//! When the next datagram may go: a fixed rate with short bursts.
//!
//! The idea is that of a leaky bucket run by deadlines: each datagram of n bytes makes the next one
//! due n × 8 / rate later. Whoever comes late may catch up, so that a busy machine does not lower the
//! rate: what was missed during the last [`CATCH_UP`], by sending at twice the rate and never more
//! than [`BURST`] or four datagrams at once, so that a stalled machine does not flood the network
//! either. Two buckets do that, one for the rate and one for twice the rate; both must agree.

use std::time::Duration;

use weft_base::Instant;

/// Longest time whose datagrams go at once.
pub const BURST: Duration = Duration::from_millis(1);
/// Longest time that may be caught up. A machine that has more to do than processors lets a program
/// wait for a few milliseconds at a time.
pub const CATCH_UP: Duration = Duration::from_millis(20);
/// How much faster than the rate it is caught up.
const HASTE: u64 = 2;
/// At high rates the sender is woken once for all datagrams of this time, not for each.
const QUANTUM: Duration = Duration::from_micros(500);
/// Datagrams that may always be caught up, however long each takes.
const BURST_DATAGRAMS: u32 = 4;
const NANOS: u128 = 1_000_000_000;

/// Spaces datagrams in time.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// For the rate, and for the most when something is caught up; `None` for as fast as can be.
    buckets: Option<[Bucket; 2]>,
}

/// A rate that is kept.
#[derive(Clone, Debug)]
struct Bucket {
    /// Bits per second, at least one.
    rate: u128,
    /// What may be made up for.
    late: Duration,
    due: Instant,
    /// What the division into nanoseconds left over, in units of 1/rate ns, so that no error adds up.
    rest: u128,
    /// What the last datagram took.
    cost: Duration,
}

impl Bucket {
    fn new(rate: u64, late: Duration) -> Self {
        let rate = u128::from(rate.max(1));
        Self { rate, late, due: Instant::ZERO, rest: 0, cost: Duration::ZERO }
    }

    fn sent(&mut self, now: Instant, bytes: usize) {
        let units = bytes as u128 * 8 * NANOS + self.rest;
        self.rest = units % self.rate;
        self.cost = Duration::from_nanos(u64::try_from(units / self.rate).unwrap_or(u64::MAX));
        let late = self.late.max(self.cost.saturating_mul(BURST_DATAGRAMS));
        self.due = self.due.max(now - late) + self.cost;
    }

    /// When the next datagram is due; a little later if datagrams are short, so that several go at
    /// once.
    fn deadline(&self) -> Instant {
        self.due + QUANTUM.saturating_sub(self.cost)
    }
}

impl Pacer {
    /// A pacer for `rate` bits per second, at least one; `None` does not wait at all.
    #[must_use]
    pub fn new(rate: Option<u64>) -> Self {
        let buckets = rate.map(|rate| {
            // The bucket for twice the rate gets to twice as many datagrams in the same time.
            let haste = Bucket::new(rate.max(1).saturating_mul(HASTE), BURST / HASTE as u32);
            [Bucket::new(rate, CATCH_UP), haste]
        });
        Self { buckets }
    }

    fn buckets(&self) -> impl Iterator<Item = &Bucket> {
        self.buckets.iter().flatten()
    }

    /// Whether a datagram may go at `now`.
    #[must_use]
    pub fn is_due(&self, now: Instant) -> bool {
        self.buckets().all(|bucket| bucket.due <= now)
    }

    /// A datagram of `bytes` went at `now`.
    pub fn sent(&mut self, now: Instant, bytes: usize) {
        self.buckets.iter_mut().flatten().for_each(|bucket| bucket.sent(now, bytes));
    }

    /// Forgets what could be caught up: sending was impossible until `now`, and nobody needs a burst.
    pub fn restart(&mut self, now: Instant) {
        self.wait_until(now);
    }

    /// Lets nothing go before `time`.
    pub fn wait_until(&mut self, time: Instant) {
        for bucket in self.buckets.iter_mut().flatten() {
            bucket.due = bucket.due.max(time);
        }
    }

    /// When to look again. `None` if there is no rate to keep.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.buckets().map(Bucket::deadline).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 1312;

    /// Sends whenever the deadline has come, always `late` after it; returns the times.
    fn run(rate: u64, late: Duration, span: Duration) -> Vec<Instant> {
        let mut pacer = Pacer::new(Some(rate));
        let mut now = Instant::ZERO + Duration::from_secs(5);
        let end = now + span;
        pacer.restart(now);
        let mut sent = Vec::new();
        while now < end {
            while pacer.is_due(now) {
                pacer.sent(now, BYTES);
                sent.push(now);
            }
            now = pacer.deadline().unwrap() + late;
        }
        sent
    }

    /// Datagrams that take `span` at `rate`, exactly.
    fn exact(rate: u64, span: Duration) -> f64 {
        rate as f64 * span.as_secs_f64() / (BYTES * 8) as f64
    }

    #[test]
    fn the_rate_is_exact_over_any_time() {
        for rate in [9_600, 1_000_000, 33_333_333, 200_000_000, 10_000_000_000] {
            let span = Duration::from_secs(3);
            let sent = run(rate, Duration::ZERO, span);
            let burst = exact(rate, QUANTUM) + 2.0;
            assert!((sent.len() as f64 - exact(rate, span)).abs() <= burst, "rate {rate}");
        }
    }

    #[test]
    fn no_burst_is_longer_than_allowed() {
        for (rate, late) in [(1_000_000, 100), (200_000_000, 0), (200_000_000, 5_000)] {
            let sent = run(rate, Duration::from_micros(late), Duration::from_millis(500));
            let most = exact(rate, BURST).max(f64::from(BURST_DATAGRAMS)) + 1.0;
            for (first, time) in sent.iter().enumerate() {
                let same = sent[first..].iter().take_while(|other| *other == time).count();
                assert!(same as f64 <= most.ceil(), "{same} at once at rate {rate}");
            }
        }
    }

    #[test]
    fn short_delays_do_not_lower_the_rate() {
        let span = Duration::from_secs(1);
        let sent = run(100_000_000, Duration::from_micros(400), span);
        assert!(sent.len() as f64 >= exact(100_000_000, span) - exact(100_000_000, BURST));
    }

    #[test]
    fn stalls_do_not_lower_the_rate() {
        // As often as not the sender is kept from running for 5 ms, as on a busy machine.
        let (rate, stall) = (240_000_000, Duration::from_millis(5));
        let begin = Instant::ZERO + Duration::from_secs(5);
        let mut pacer = Pacer::new(Some(rate));
        pacer.restart(begin);
        let (mut now, mut sent) = (begin, 0);
        while now < begin + Duration::from_secs(1) {
            let stalled = (now.since(begin).as_nanos() / stall.as_nanos()).is_multiple_of(2);
            if !stalled {
                while pacer.is_due(now) {
                    pacer.sent(now, BYTES);
                    sent += 1;
                }
            }
            now += Duration::from_micros(100);
        }
        let expected = exact(rate, Duration::from_secs(1) - stall);
        assert!(f64::from(sent) >= expected, "{sent} of {expected}");
    }

    #[test]
    fn what_was_missed_is_made_up_for_at_twice_the_rate_and_not_without_end() {
        let rate = 100_000_000;
        let mut pacer = Pacer::new(Some(rate));
        let begin = Instant::ZERO + Duration::from_secs(5);
        pacer.restart(begin);
        // Nothing goes for a second; then it is looked every 50 us.
        let resumed = begin + Duration::from_secs(1);
        let mut times = Vec::new();
        for step in 0..4000 {
            let now = resumed + Duration::from_micros(50) * step;
            while pacer.is_due(now) {
                pacer.sent(now, BYTES);
                times.push(now);
            }
        }
        let within = |span: Duration| {
            let most = times.iter().enumerate().map(|(first, time)| {
                times[first..].iter().take_while(|other| **other < *time + span).count()
            });
            most.max().unwrap() as f64
        };
        for span in [Duration::from_millis(2), Duration::from_millis(10)] {
            assert!(within(span) <= 2.0 * exact(rate, span) + exact(rate, BURST) + 2.0);
        }
        let span = Duration::from_millis(200);
        let all = exact(rate, span + CATCH_UP);
        assert!((times.len() as f64 - all).abs() <= exact(rate, BURST) + 2.0, "{}", times.len());
    }

    #[test]
    fn high_rates_need_few_wakeups_and_low_rates_no_delay() {
        let mut wakeups = run(500_000_000, Duration::ZERO, Duration::from_secs(1));
        wakeups.dedup();
        assert!(wakeups.len() <= 2100, "{} wakeups", wakeups.len());
        let mut pacer = Pacer::new(Some(1_000_000));
        pacer.sent(Instant::ZERO, BYTES);
        assert_eq!(pacer.deadline(), Some(Instant::from_nanos(10_496_000)));
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let mut pacer = Pacer::new(None);
        pacer.sent(Instant::ZERO, BYTES);
        assert!(pacer.is_due(Instant::ZERO));
        assert_eq!(pacer.deadline(), None);
    }
}
