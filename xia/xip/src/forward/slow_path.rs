//! How many packets of each input port may cause a decision.
//!
//! Reference: Machado et al., "Linux XIA", §8 leaves open what addresses that never occur twice do to a router.
//! A packet for which the routing cache has nothing costs several times what one costs for which it has. So each
//! port has a budget of its own for them: a flood on one port takes from the others no more than that, and
//! packets with known addresses pass, on the flooded port, too. The budget is a token bucket in its virtual
//! scheduling form (ITU-T I.371), whose state is one time.

use std::time::Duration;

use weft_base::{Instant, PortId};

/// The budget of each input port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowPathLimit {
    /// Decisions in a second, 1 or more.
    pub per_second: u32,
    /// Decisions that may come at once, 1 or more.
    pub burst: u32,
}

impl Default for SlowPathLimit {
    /// A tenth of what one processor decides, some 15 % of its time.
    fn default() -> Self {
        Self { per_second: 100_000, burst: 20_000 }
    }
}

impl SlowPathLimit {
    fn interval(self) -> Duration {
        Duration::from_secs(1) / self.per_second.max(1)
    }

    /// How far ahead of its time a decision may be.
    fn tolerance(self) -> Duration {
        self.interval() * self.burst.saturating_sub(1)
    }
}

/// What is left of the budgets.
#[derive(Debug)]
pub(super) struct SlowPath {
    limit: Option<SlowPathLimit>,
    /// For each port when its next decision should come. Few; they are compared one after the other.
    ports: Vec<(PortId, Instant)>,
}

impl SlowPath {
    pub(super) fn new(limit: Option<SlowPathLimit>) -> Self {
        Self { limit, ports: Vec::new() }
    }

    /// Whether a packet from `port` may cause a decision now. If so, it is charged.
    pub(super) fn admits(&mut self, now: Instant, port: PortId) -> bool {
        let Some(limit) = self.limit else { return true };
        let place = self.place(now, port);
        let next = &mut self.ports[place].1;
        let due = (*next).max(now);
        let admitted = due.since(now) <= limit.tolerance();
        if admitted {
            *next = due + limit.interval();
        }
        admitted
    }

    /// The decision was one that is never kept: such packets are not what the budget is for.
    pub(super) fn give_back(&mut self, port: PortId) {
        let Some(limit) = self.limit else { return };
        if let Some((_, next)) = self.ports.iter_mut().find(|(of, _)| *of == port) {
            *next = Instant::ZERO + next.since(Instant::ZERO).saturating_sub(limit.interval());
        }
    }

    pub(super) fn remove_port(&mut self, port: PortId) {
        self.ports.retain(|(of, _)| *of != port);
    }

    fn place(&mut self, now: Instant, port: PortId) -> usize {
        let found = self.ports.iter().position(|(of, _)| *of == port);
        found.unwrap_or_else(|| {
            self.ports.push((port, now));
            self.ports.len() - 1
        })
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
            (0..count).filter(|_| slow_path.admits(at(time), PortId(port))).count()
        };
        assert_eq!(admitted(0, 1, 100), 10);
        assert_eq!(admitted(0, 2, 5), 5, "another port has its own");
        assert_eq!(admitted(3, 1, 100), 3);
        assert_eq!(admitted(1000, 1, 100), 10, "no more than a burst is saved up");
    }

    #[test]
    fn what_is_given_back_can_be_used_again() {
        let mut slow_path = SlowPath::new(Some(LIMIT));
        for _ in 0..1000 {
            assert!(slow_path.admits(at(5), PortId(1)));
            slow_path.give_back(PortId(1));
        }
        slow_path.remove_port(PortId(1));
        assert!(slow_path.ports.is_empty());
        slow_path.give_back(PortId(1));
    }

    #[test]
    fn without_a_limit_everything_is_admitted() {
        let mut slow_path = SlowPath::new(None);
        assert!((0..1000).all(|_| slow_path.admits(at(0), PortId(1))));
    }
}
