//! The timers of a session: each has a name, and all deadlines stand in one table.
//!
//! Reference: RFC 4271 §8 (which there are), §10 (how long, jitter); RFC 9687 §3 (SendHoldTimer).

use std::time::Duration;

use weft_base::{Instant, Random};

/// The timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// ConnectRetryTimer: when to connect again.
    ConnectRetry,
    /// HoldTimer: for how long the peer may be silent.
    Hold,
    /// KeepaliveTimer: when to say that we are there.
    Keepalive,
    /// DelayOpenTimer: for how long the peer may send its OPEN first.
    DelayOpen,
    /// IdleHoldTimer: for how long nothing happens after an error.
    IdleHold,
    /// SendHoldTimer: for how long the peer may take nothing.
    SendHold,
}

impl Timer {
    /// All of them. Of those that are due at the same time an earlier one goes first.
    pub(super) const ALL: [Self; 6] = [
        Self::ConnectRetry,
        Self::Hold,
        Self::Keepalive,
        Self::DelayOpen,
        Self::IdleHold,
        Self::SendHold,
    ];
}

/// When each timer expires, of those that run.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers([Option<Instant>; Timer::ALL.len()]);

impl Timers {
    pub(super) fn start(&mut self, timer: Timer, at: Instant) {
        self.0[timer as usize] = Some(at);
    }

    pub(super) fn stop(&mut self, timer: Timer) {
        self.0[timer as usize] = None;
    }

    pub(super) fn stop_all(&mut self) {
        self.0 = Default::default();
    }

    pub(super) fn runs(&self, timer: Timer) -> bool {
        self.0[timer as usize].is_some()
    }

    /// The earliest deadline.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.iter().flatten().min().copied()
    }

    /// Stops a timer that has expired by `now`, the one that expired first, and says which.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Timer> {
        let due = |timer: &Timer| self.0[*timer as usize].filter(|at| *at <= now);
        let timer = Timer::ALL.into_iter().filter(|timer| due(timer).is_some()).min_by_key(due)?;
        self.stop(timer);
        Some(timer)
    }
}

/// The span times a random factor between 0.75 and 1 (RFC 4271 §10).
pub(crate) fn jittered(span: Duration, random: &mut Random) -> Duration {
    const STEPS: u32 = 1 << 16;
    // At most STEPS.
    let part = random.below(u64::from(STEPS) + 1) as u32;
    span - span / 4 / STEPS * part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn timers_expire_in_the_order_of_their_deadlines() {
        let mut timers = Timers::default();
        timers.start(Timer::Hold, at(9));
        timers.start(Timer::Keepalive, at(3));
        timers.start(Timer::SendHold, at(3));
        assert_eq!((timers.next(), timers.expire(at(2))), (Some(at(3)), None));
        assert_eq!(timers.expire(at(9)), Some(Timer::Keepalive));
        assert_eq!(timers.expire(at(9)), Some(Timer::SendHold));
        assert_eq!(timers.expire(at(9)), Some(Timer::Hold));
        assert_eq!((timers.next(), timers.expire(at(99))), (None, None));
    }

    #[test]
    fn jitter_takes_up_to_a_quarter_away() {
        let mut random = Random::from_seed(1);
        let spans: Vec<_> =
            (0..1000).map(|_| jittered(Duration::from_secs(100), &mut random)).collect();
        let (least, most) = (spans.iter().min().unwrap(), spans.iter().max().unwrap());
        assert!(*least >= Duration::from_secs(75) && *least < Duration::from_secs(76));
        assert!(*most <= Duration::from_secs(100) && *most > Duration::from_secs(99));
    }
}
