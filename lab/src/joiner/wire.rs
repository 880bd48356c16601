//! One direction of a user-space link: the model, and the frames that are on their way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weft_base::{Instant, Packet, Random};
use weft_runtime::{LinkConfig, LinkModel};

/// Frames on their way at most; those beyond are dropped. Long delays at high rates reach it.
const MOST_FLYING: usize = 1 << 16;

/// A frame on its way, ordered by its arrival and then by its number.
struct Flying {
    at: Instant,
    number: u64,
    packet: Packet,
}

impl PartialEq for Flying {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Flying {}

impl PartialOrd for Flying {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Flying {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl Flying {
    fn key(&self) -> (Instant, u64) {
        (self.at, self.number)
    }
}

/// One direction of a link.
pub(super) struct Wire {
    model: LinkModel,
    flying: BinaryHeap<Reverse<Flying>>,
    offered: u64,
    arrivals: Vec<(Instant, Packet)>,
    cut: bool,
}

impl Wire {
    pub(super) fn new(config: LinkConfig, random: &Random) -> Self {
        Self {
            model: LinkModel::new(config, random),
            flying: BinaryHeap::new(),
            offered: 0,
            arrivals: Vec::new(),
            cut: false,
        }
    }

    /// Changes its properties for the frames that come from now on. If it is cut, also the frames on
    /// their way are lost, as in the simulator.
    pub(super) fn set(&mut self, config: LinkConfig, cut: bool) {
        self.model.set_config(config);
        self.cut = cut;
        if cut {
            self.flying.clear();
        }
    }

    /// Takes a frame in at `now`; false if too many are on their way.
    pub(super) fn offer(&mut self, now: Instant, packet: Packet) -> bool {
        if self.cut {
            return true;
        }
        if self.flying.len() >= MOST_FLYING {
            return false;
        }
        self.model.offer(now, packet, &mut self.arrivals);
        for (at, packet) in self.arrivals.drain(..) {
            let number = self.offered;
            self.offered += 1;
            self.flying.push(Reverse(Flying { at, number, packet }));
        }
        true
    }

    /// When the next frame arrives.
    pub(super) fn next(&self) -> Option<Instant> {
        self.flying.peek().map(|Reverse(flying)| flying.at)
    }

    /// A frame that has arrived by `now`.
    pub(super) fn take(&mut self, now: Instant) -> Option<Packet> {
        self.next().filter(|at| *at <= now)?;
        self.flying.pop().map(|Reverse(flying)| flying.packet)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn frames_arrive_in_order_after_their_delay() {
        let config = LinkConfig { delay: Duration::from_millis(5), ..LinkConfig::default() };
        let mut wire = Wire::new(config, &Random::from_seed(1));
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        for byte in 0..3 {
            assert!(wire.offer(at(1), Packet::from_slice(&[byte])));
        }
        assert!(wire.offer(at(2), Packet::from_slice(&[3])));
        assert_eq!(wire.next(), Some(at(6)));
        assert!(wire.take(at(5)).is_none());
        let mut arrived = Vec::new();
        arrived.extend(std::iter::from_fn(|| wire.take(at(6))).map(|packet| packet.bytes()[0]));
        assert_eq!(arrived, [0, 1, 2]);
        assert_eq!(wire.next(), Some(at(7)));
    }

    #[test]
    fn a_cut_wire_loses_what_is_on_it_and_what_comes() {
        let config = LinkConfig { delay: Duration::from_millis(5), ..LinkConfig::default() };
        let mut wire = Wire::new(config.clone(), &Random::from_seed(1));
        let offer = |wire: &mut Wire| wire.offer(Instant::ZERO, Packet::from_slice(&[0]));
        assert!(offer(&mut wire));
        wire.set(config.clone(), true);
        assert!(offer(&mut wire));
        assert_eq!(wire.next(), None);
        wire.set(config, false);
        assert_eq!(wire.next(), None);
        assert!(offer(&mut wire));
        assert!(wire.next().is_some());
    }

    #[test]
    fn frames_on_their_way_are_bounded() {
        let config = LinkConfig { delay: Duration::from_secs(3600), ..LinkConfig::default() };
        let mut wire = Wire::new(config, &Random::from_seed(1));
        let mut offer = || wire.offer(Instant::ZERO, Packet::from_slice(&[0]));
        assert!((0..MOST_FLYING).all(|_| offer()));
        assert!(!offer());
    }
}
