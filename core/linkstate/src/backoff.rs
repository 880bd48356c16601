//! When to do again what was just done: advertising, and computing routes.

use std::time::Duration;

use weft_base::Instant;

use crate::settings::{Pauses, SpfDelays};

/// Doubling pauses; see [`Pauses`].
#[derive(Clone, Debug)]
pub(crate) struct Throttle {
    pauses: Pauses,
    /// When it was done last, and the pause that follows.
    last: Option<(Instant, Duration)>,
    /// When it is to be done.
    due: Option<Instant>,
}

impl Throttle {
    pub(crate) fn new(pauses: Pauses) -> Self {
        Self { pauses, last: None, due: None }
    }

    /// There is a reason to do it.
    pub(crate) fn ask(&mut self, now: Instant) {
        let rested = |at: Instant| now.since(at) >= 2 * self.pauses.longest;
        let due = match self.last {
            Some((at, pause)) if !rested(at) => (at + pause).max(now),
            _ => {
                self.last = None;
                now + self.pauses.first
            }
        };
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Whether it is to be done now; it counts as done then.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        if self.due.take_if(|due| *due <= now).is_none() {
            return false;
        }
        let pause = self.last.map_or(self.pauses.second, |(_, pause)| 2 * pause);
        self.last = Some((now, pause.min(self.pauses.longest)));
        true
    }
}

/// The state machine of RFC 8405 §5, which delays the computation of routes.
#[derive(Clone, Debug)]
pub(crate) struct SpfTimer {
    delays: SpfDelays,
    state: SpfState,
    /// `SPF_TIMER`.
    due: Option<Instant>,
    /// `HOLDDOWN_TIMER`.
    holddown: Option<Instant>,
    /// `LEARN_TIMER`.
    learn: Option<Instant>,
}

/// The states of RFC 8405 §5.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpfState {
    /// The network is at rest.
    Quiet,
    /// Something has happened, and more is being learned of it.
    ShortWait,
    /// The network does not come to rest.
    LongWait,
}

impl SpfState {
    /// As the RFC calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::ShortWait => "short wait",
            Self::LongWait => "long wait",
        }
    }
}

impl SpfTimer {
    pub(crate) fn new(delays: SpfDelays) -> Self {
        Self { delays, state: SpfState::Quiet, due: None, holddown: None, learn: None }
    }

    /// Transitions 1, 2 and 4: an event that calls for a computation.
    pub(crate) fn event(&mut self, now: Instant) {
        // The transitions of timers that have run out meanwhile come first.
        self.expire(now);
        let delay = match self.state {
            SpfState::Quiet => {
                self.state = SpfState::ShortWait;
                self.learn = Some(now + self.delays.learn);
                self.delays.initial
            }
            SpfState::ShortWait => self.delays.short,
            SpfState::LongWait => self.delays.long,
        };
        self.due = self.due.or(Some(now + delay));
        self.holddown = Some(now + self.delays.holddown);
    }

    /// Transitions 3, 5 and 6: timers that have run out.
    fn expire(&mut self, now: Instant) {
        if self.learn.take_if(|at| *at <= now).is_some() {
            self.state = SpfState::LongWait;
        }
        if self.holddown.take_if(|at| *at <= now).is_some() {
            self.state = SpfState::Quiet;
            self.learn = None;
        }
    }

    /// Whether to compute now.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        self.expire(now);
        self.due.take_if(|due| *due <= now).is_some()
    }

    /// When to compute. The other timers only decide what the next event does.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The state, for people.
    pub(crate) fn state(&self, now: Instant) -> SpfState {
        let mut later = self.clone();
        later.expire(now);
        later.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn pauses_double_and_begin_anew_after_a_quiet_time() {
        let pauses = Pauses { first: ms(0), second: ms(100), longest: ms(500) };
        let mut throttle = Throttle::new(pauses);
        let mut done = Vec::new();
        // There is a reason at every tenth of a second, for two seconds; then after a rest.
        for now in (0..2000).step_by(10).chain([3800]) {
            throttle.ask(at(now));
            if throttle.take(at(now)) {
                done.push(now);
            }
        }
        assert_eq!(done, [0, 100, 300, 700, 1200, 1700, 3800]);
        throttle.ask(at(3810));
        throttle.ask(at(3850));
        assert_eq!(throttle.due(), Some(at(3900)));
    }

    #[test]
    fn nothing_is_done_without_a_reason() {
        let mut throttle =
            Throttle::new(Pauses { first: ms(5), second: ms(100), longest: ms(500) });
        assert!(!throttle.take(at(1000)));
        throttle.ask(at(1000));
        assert!(!throttle.take(at(1004)) && throttle.take(at(1005)) && !throttle.take(at(1200)));
    }

    /// The values of RFC 8405 §3.
    fn timer() -> SpfTimer {
        SpfTimer::new(SpfDelays {
            initial: ms(50),
            short: ms(200),
            long: ms(5000),
            learn: ms(500),
            holddown: ms(10_000),
        })
    }

    /// Each line: when an event comes, the state behind it, and when routes are computed.
    #[test]
    fn the_states_are_those_of_rfc_8405() {
        use SpfState::{LongWait, Quiet, ShortWait};
        let mut timer = timer();
        assert_eq!(timer.state(at(0)), Quiet);
        let lines = [
            // Transition 1: quiet; the learn timer runs until 500.
            (0, ShortWait, 50),
            // Transition 2: what comes while a computation is due waits for that.
            (20, ShortWait, 50),
            (100, ShortWait, 300),
            (400, ShortWait, 600),
            // Transition 3 at 500, then 4.
            (700, LongWait, 5700),
            (5800, LongWait, 10_800),
            // Transition 5 at 15800: quiet for the hold-down time.
            (15_800, ShortWait, 15_850),
        ];
        for (now, state, due) in lines {
            if let Some(due) = timer.due().filter(|due| *due <= at(now)) {
                assert!(timer.take(due));
            }
            timer.event(at(now));
            assert_eq!((timer.state(at(now)), timer.due()), (state, Some(at(due))), "at {now}");
        }
        // Transition 6: quiet in the short wait as well.
        assert!(timer.take(at(15_850)));
        assert_eq!(timer.state(at(15_900)), ShortWait);
        assert_eq!(timer.state(at(25_800)), Quiet);
    }
}
