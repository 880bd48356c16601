//! Times batches of packets.

use std::time::Instant;

use crate::bench::samples::Samples;

/// Collects how long batches of the same size take.
pub(in crate::bench) struct Stopwatch {
    batch: usize,
    nanoseconds: Vec<f64>,
}

impl Stopwatch {
    /// For batches of `batch` packets.
    pub(in crate::bench) fn new(batch: usize) -> Self {
        Self { batch, nanoseconds: Vec::new() }
    }

    /// Does the work for one batch.
    pub(in crate::bench) fn time(&mut self, work: impl FnOnce()) {
        let begin = Instant::now();
        work();
        self.nanoseconds.push(begin.elapsed().as_nanos() as f64);
    }

    /// The median time per packet in nanoseconds.
    pub(super) fn median(self) -> f64 {
        Samples::new(self.nanoseconds).median() / self.batch as f64
    }

    /// The mean time per packet in nanoseconds, without this part of the batches, those that took longest:
    /// others have interrupted them.
    pub(in crate::bench) fn mean_without(mut self, interrupted: f64) -> f64 {
        self.nanoseconds.sort_unstable_by(f64::total_cmp);
        let kept = ((1.0 - interrupted) * self.nanoseconds.len() as f64).ceil() as usize;
        self.nanoseconds.truncate(kept);
        self.nanoseconds.iter().sum::<f64>() / (kept.max(1) * self.batch) as f64
    }
}
