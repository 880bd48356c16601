//! When the next datagram may go: a fixed rate with short bursts.
//!
//! The idea is that of a leaky bucket run by deadlines: each datagram of n bytes makes the next one
//! due n × 8 / rate later. Whoever comes late may catch up, by at most [`BURST`] or four datagrams,
//! so that a busy machine does not lower the rate and a stalled one does not flood the network.

use std::time::Duration;

use weft_base::Instant;

/// Longest time that may be caught up.
pub const BURST: Duration = Duration::from_millis(1);
/// At high rates the sender is woken once for all datagrams of this time, not for each.
const QUANTUM: Duration = Duration::from_micros(500);
/// Datagrams that may always be caught up, however long each takes.
const BURST_DATAGRAMS: u32 = 4;
const NANOS: u128 = 1_000_000_000;

/// Spaces datagrams in time.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// Bits per second; `None` for as fast as can be.
    rate: Option<u64>,
    due: Instant,
    /// What the division into nanoseconds left over, in units of 1/rate ns, so that no error adds up.
    rest: u128,
    /// What the last datagram took.
    cost: Duration,
}

impl Pacer {
    /// A pacer for `rate` bits per second, at least one; `None` does not wait at all.
    #[must_use]
    pub fn new(rate: Option<u64>) -> Self {
        let rate = rate.map(|rate| rate.max(1));
        Self { rate, due: Instant::ZERO, rest: 0, cost: Duration::ZERO }
    }

    /// Whether a datagram may go at `now`.
    #[must_use]
    pub fn is_due(&self, now: Instant) -> bool {
        self.rate.is_none() || self.due <= now
    }

    /// A datagram of `bytes` went at `now`.
    pub fn sent(&mut self, now: Instant, bytes: usize) {
        let Some(rate) = self.rate.map(u128::from) else { return };
        let units = bytes as u128 * 8 * NANOS + self.rest;
        self.rest = units % rate;
        self.cost = Duration::from_nanos(u64::try_from(units / rate).unwrap_or(u64::MAX));
        let late = BURST.max(self.cost.saturating_mul(BURST_DATAGRAMS));
        self.due = self.due.max(now - late) + self.cost;
    }

    /// Forgets what could be caught up: sending was impossible until `now`, and nobody needs a burst.
    pub fn restart(&mut self, now: Instant) {
        self.due = self.due.max(now);
    }

    /// Lets nothing go before `time`.
    pub fn wait_until(&mut self, time: Instant) {
        self.due = self.due.max(time);
    }

    /// When to look again: a little after the next datagram is due if datagrams are short, so that
    /// several go at once. `None` if there is no rate to keep.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.rate.map(|_| self.due + QUANTUM.saturating_sub(self.cost))
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
