//! Changes of routes while packets are forwarded: prefixes drawn at random go to another neighbour each.
//!
//! Reference: Machado et al., "Linux XIA", §6.3.2 (the update rate of the routing table).

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use weft_base::Random;

use super::threads::{Processors, Work};

/// How often changes are made; those that are due are made together.
pub(super) const STEP: Duration = Duration::from_millis(1);
/// The most changes that are made together: about as many as fit a datagram of netlink a few times over.
const MOST: u64 = 500;

/// Which routes change, and to what.
pub(super) struct Changes {
    random: Random,
    /// The neighbour of each prefix.
    neighbours: Vec<usize>,
    count: usize,
}

impl Changes {
    /// For prefixes with these of `count` neighbours.
    pub(super) fn new(neighbours: Vec<usize>, count: usize) -> Self {
        Self { random: Random::from_seed(3), neighbours, count }
    }

    /// The next change: a prefix, and its neighbour from now on.
    pub(super) fn next(&mut self) -> (usize, usize) {
        let prefix = self.random.below(self.neighbours.len() as u64) as usize;
        let neighbour = (self.neighbours[prefix] + 1) % self.count;
        self.neighbours[prefix] = neighbour;
        (prefix, neighbour)
    }
}

/// How many changes are due at a steady rate.
pub(super) struct Clock {
    begin: Instant,
    rate: f64,
    done: u64,
}

impl Clock {
    /// So many a second.
    pub(super) fn new(rate: u32) -> Self {
        Self { begin: Instant::now(), rate: rate.into(), done: 0 }
    }

    /// How many are to be made now.
    pub(super) fn due(&mut self) -> u64 {
        let all = (self.begin.elapsed().as_secs_f64() * self.rate) as u64;
        let due = all.saturating_sub(self.done).min(MOST);
        self.done += due;
        due
    }

    /// How many were made a second.
    pub(super) fn achieved(&self) -> f64 {
        self.done as f64 / self.begin.elapsed().as_secs_f64()
    }
}

/// Does `work` while another thread makes so many changes a second, or as many as two thirds of the time are
/// enough for; how many there were a second. `change` makes a number of changes.
pub(super) fn beside<T>(
    rate: u32,
    processors: Processors,
    mut change: impl FnMut(u64) -> Result<(), String> + Send,
    work: impl FnOnce() -> Result<T, String>,
) -> Result<(T, f64), String> {
    if rate == 0 {
        return Ok((work()?, 0.0));
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let changing = scope.spawn(|| {
            processors.take_place(Work::Updates);
            let mut clock = Clock::new(rate);
            while !stop.load(Ordering::Relaxed) {
                let begin = Instant::now();
                change(clock.due())?;
                // The source's thread has to wait meanwhile, and shall not wait forever.
                thread::sleep(STEP.max(begin.elapsed() / 2));
            }
            Ok::<_, String>(clock.achieved())
        });
        let result = work();
        stop.store(true, Ordering::Relaxed);
        let achieved = changing.join().map_err(|_| "the thread that changes routes panicked")?;
        Ok((result?, achieved?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_gives_a_prefix_another_neighbour() {
        let mut changes = Changes::new(vec![0, 1, 3, 2], 4);
        let mut neighbours = [0, 1, 3, 2];
        for _ in 0..100 {
            let (prefix, neighbour) = changes.next();
            assert!(neighbour < 4 && neighbours[prefix] != neighbour);
            neighbours[prefix] = neighbour;
        }
    }
}
