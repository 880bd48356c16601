//! How many packets of each input port may cause a decision.
//!
//! Reference: Machado et al., "Linux XIA", §8 leaves open what addresses that never occur twice do to a router.
//! A packet for which the routing cache has nothing costs several times what one costs for which it has. So the
//! router has a budget for them, of which each port has an equal share, and the applications of this node together as much
//! as a port besides: floods on all ports take no more of the router
//! than that, a flood on one port takes nothing from the others, and packets with known addresses pass, on the flooded
//! port, too. A share is a token bucket in its virtual scheduling form (ITU-T I.371), whose state is one time; and once
//! it is empty, some dozens of decisions are saved up before the next one, because they cost less together.

use std::time::Duration;

use weft_base::{Instant, PortId};

/// A budget: of a router, or of each input port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowPathLimit {
    /// Decisions in a second, 1 or more.
    pub per_second: u32,
    /// Decisions that may come at once, 1 or more.
    pub burst: u32,
}

impl Default for SlowPathLimit {
    /// That of a router. It takes a few hundredths of a processor if decisions are taken together, and an eighth if each
    /// comes alone.
    fn default() -> Self {
        Self { per_second: 25_000, burst: 5_000 }
    }
}

/// Decisions that a port saves up before it causes the next one, once its budget was used up; half of the burst if that
/// is less.
const TOGETHER: u32 = 64;

/// What is left of the budgets.
#[derive(Debug)]
pub(super) struct SlowPath {
    bucket: Option<Bucket>,
    /// Few; they are compared one after the other.
    ports: Vec<Budget>,
}

/// What is left to a port.
#[derive(Debug)]
struct Budget {
    port: PortId,
    /// When its next decision should come.
    next: Instant,
    /// It was used up and has not saved up enough since.
    saves: bool,
}

/// A limit in times.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Between two decisions.
    interval: Duration,
    /// How far ahead of its time a decision may be.
    tolerance: Duration,
    /// The same for the first one after a time of saving.
    tolerance_saving: Duration,
}

impl SlowPathLimit {
    /// What each of so many ports has of it, at least 1.
    #[must_use]
    pub fn share(&self, ports: usize) -> Self {
        let ports = u32::try_from(ports.max(1)).unwrap_or(u32::MAX);
        let of = |whole: u32| (whole / ports).max(1);
        Self { per_second: of(self.per_second), burst: of(self.burst) }
    }

    /// Decisions that a port saves up before it causes the next one, once its budget was used up. Decisions that come
    /// together cost a fraction of what they cost one by one, since they wait for memory together.
    #[must_use]
    pub const fn together(&self) -> u32 {
        let half = self.burst / 2;
        if half < 1 {
            1
        } else if half < TOGETHER {
            half
        } else {
            TOGETHER
        }
    }
}

impl Bucket {
    fn new(limit: SlowPathLimit) -> Self {
        let interval = Duration::from_secs(1) / limit.per_second.max(1);
        let tolerance = interval * limit.burst.saturating_sub(1);
        let saved = interval * (limit.together() - 1);
        Self { interval, tolerance, tolerance_saving: tolerance.saturating_sub(saved) }
    }

    /// How far ahead the next decision of a port may be.
    fn tolerance(&self, budget: &Budget) -> Duration {
        if budget.saves { self.tolerance_saving } else { self.tolerance }
    }
}

impl SlowPath {
    pub(super) fn new(limit: Option<SlowPathLimit>) -> Self {
        Self { bucket: limit.map(Bucket::new), ports: Vec::new() }
    }

    /// Another limit of each port, from now on.
    pub(super) fn set_limit(&mut self, limit: Option<SlowPathLimit>) {
        self.bucket = limit.map(Bucket::new);
    }

    /// Whether a packet from `port` may cause a decision now. If so, it is charged.
    pub(super) fn admits(&mut self, now: Instant, port: PortId) -> bool {
        let Some(bucket) = self.bucket else { return true };
        let budget = self.budget(now, port);
        let due = budget.next.max(now);
        let admitted = due.since(now) <= bucket.tolerance(budget);
        budget.saves = !admitted;
        if admitted {
            budget.next = due + bucket.interval;
        }
        admitted
    }

    /// How many decisions packets from `port` may cause now.
    pub(super) fn room(&self, now: Instant, port: PortId) -> u32 {
        let Some(bucket) = self.bucket else { return u32::MAX };
        let budget = self.ports.iter().find(|budget| budget.port == port);
        let ahead = budget.map_or(Duration::ZERO, |budget| budget.next.since(now));
        if budget.is_some_and(|budget| ahead > bucket.tolerance(budget)) {
            return 0;
        }
        let left = bucket.tolerance.saturating_sub(ahead);
        let more = left.as_nanos() / bucket.interval.as_nanos().max(1);
        u32::try_from(more).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// Whether that is none, for a packet that would cause one.
    #[inline]
    pub(super) fn is_used_up(&mut self, now: Instant, port: PortId) -> bool {
        let Some(bucket) = self.bucket else { return false };
        let budget = self.ports.iter_mut().find(|budget| budget.port == port);
        budget.is_some_and(|budget| {
            budget.saves = budget.next.since(now) > bucket.tolerance(budget);
            budget.saves
        })
    }

    pub(super) fn remove_port(&mut self, port: PortId) {
        self.ports.retain(|budget| budget.port != port);
    }

    fn budget(&mut self, now: Instant, port: PortId) -> &mut Budget {
        let found = self.ports.iter().position(|budget| budget.port == port);
        let place = found.unwrap_or_else(|| {
            self.ports.push(Budget { port, next: now, saves: false });
            self.ports.len() - 1
        });
        &mut self.ports[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: SlowPathLimit = SlowPathLimit { per_second: 1000, burst: 10 };

    fn at(milliseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(milliseconds)
    }

    #[test]
    fn each_port_has_a_burst_and_then_its_rate() {
        let mut slow_path = SlowPath::new(Some(LIMIT));
        let mut admitted = |time, port, count| {
            let room = slow_path.room(at(time), PortId(port)) as usize;
            let admitted = (0..count).filter(|_| slow_path.admits(at(time), PortId(port))).count();
            assert_eq!(admitted, room.min(count));
            assert_eq!(slow_path.is_used_up(at(time), PortId(port)), room <= count);
            admitted
        };
        assert_eq!(admitted(0, 1, 100), 10);
        assert_eq!(admitted(0, 2, 5), 5, "another port has its own");
        assert_eq!(admitted(3, 1, 100), 0, "three are too few to go on with");
        assert_eq!(admitted(5, 1, 100), 5);
        assert_eq!(admitted(9, 1, 100), 0);
        assert_eq!(admitted(10, 1, 1), 1);
        assert_eq!(admitted(11, 1, 100), 5, "what was not used is kept");
        assert_eq!(admitted(1000, 1, 100), 10, "no more than a burst is saved up");
    }

    #[test]
    fn a_port_that_is_gone_is_forgotten() {
        let mut slow_path = SlowPath::new(Some(LIMIT));
        assert!(slow_path.admits(at(5), PortId(1)));
        slow_path.remove_port(PortId(1));
        assert!(slow_path.ports.is_empty());
    }

    #[test]
    fn without_a_limit_everything_is_admitted() {
        let mut slow_path = SlowPath::new(None);
        assert!((0..1000).all(|_| slow_path.admits(at(0), PortId(1))));
    }
}
