//! The one process that the launcher starts by itself.

use std::time::Duration;

use weft_base::Instant;

use super::Output;
use crate::config::LauncherError;
use crate::name::Name;
use crate::protocol::Usage;

/// A manager that lived so long did not fail to start.
const SETTLED: Duration = Duration::from_secs(10);
/// The longest time between a death and the next start.
const LONGEST_DELAY: Duration = Duration::from_secs(5);

/// The manager's instance and class.
pub(crate) fn name() -> Name {
    "manager".parse().unwrap_or_else(|_| unreachable!("it is a name"))
}

#[derive(Default)]
pub(super) struct Manager {
    phase: Phase,
    started: Option<Instant>,
    uid: Option<u32>,
    /// How often it was started again.
    restarts: u32,
    /// Deaths in a row before it had settled.
    failures: u32,
}

#[derive(Clone, Copy)]
enum Phase {
    /// It is to be started at this time.
    Due(Instant),
    Starting,
    Up(i32),
}

impl Default for Phase {
    fn default() -> Self {
        Self::Due(Instant::ZERO)
    }
}

impl Manager {
    /// Whether it is to be started now.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.start_at().is_some_and(|at| now >= at)
    }

    /// When to start it; `None` while it runs.
    pub(super) fn start_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Due(at) => Some(at),
            Phase::Starting | Phase::Up(_) => None,
        }
    }

    pub(super) fn is_down(&self) -> bool {
        self.start_at().is_some()
    }

    pub(super) fn pid(&self) -> Option<i32> {
        match self.phase {
            Phase::Up(pid) => Some(pid),
            Phase::Due(_) | Phase::Starting => None,
        }
    }

    pub(super) fn start(&mut self, now: Instant) {
        self.phase = Phase::Starting;
        self.restarts += u32::from(self.started.is_some());
        self.started = Some(now);
    }

    pub(super) fn runs(&mut self, pid: i32, uid: Option<u32>) {
        self.phase = Phase::Up(pid);
        self.uid = uid;
    }

    /// What is known of it while it runs.
    pub(super) fn usage(&self) -> Option<Usage> {
        Some(Usage {
            instance: name(),
            pid: self.pid()?,
            uid: self.uid,
            since: self.started?.as_nanos(),
            restarts: self.restarts,
            memory: 0,
            processor: 0,
        })
    }

    /// Plans the next start after a death, of which `how` tells.
    pub(super) fn died(
        &mut self,
        how: String,
        limit: u32,
        now: Instant,
    ) -> Result<(), LauncherError> {
        let settled = self.started.is_some_and(|started| now.since(started) >= SETTLED);
        self.failures = if settled { 1 } else { self.failures + 1 };
        self.phase = Phase::Due(now + delay(self.failures));
        if self.failures >= limit {
            return Err(LauncherError::Manager { failures: self.failures, last: how });
        }
        Ok(())
    }

    /// Sends it a signal, if it runs.
    pub(super) fn signal(&self, number: i32, out: &mut Vec<Output>) {
        out.extend(self.pid().map(|pid| Output::Signal { pid, number }));
    }
}

/// How long to wait after so many deaths in a row: 0, 100 ms, 200 ms, …
fn delay(failures: u32) -> Duration {
    match failures {
        0 | 1 => Duration::ZERO,
        n => {
            (Duration::from_millis(100) * 2_u32.saturating_pow((n - 2).min(16))).min(LONGEST_DELAY)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deaths_in_a_row_are_followed_by_longer_and_longer_waits() {
        let delays: Vec<_> = (1..10).map(|n| delay(n).as_millis()).collect();
        assert_eq!(delays, [0, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(delay(u32::MAX), LONGEST_DELAY);
    }

    #[test]
    fn only_deaths_before_it_settled_count() {
        let start = Instant::from_nanos(7);
        let mut manager = Manager::default();
        let mut live = |time: Duration| {
            manager.start(start);
            manager.died("ended".to_owned(), 3, start + time)
        };
        let short = Duration::from_secs(9);
        assert!(live(short).is_ok() && live(short).is_ok() && live(SETTLED).is_ok());
        assert!(live(short).is_ok());
        let error = live(short).unwrap_err().to_string();
        assert!(error.contains("3 times") && error.ends_with("it ended"), "{error}");
    }
}
