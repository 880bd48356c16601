//! Times batches of packets.

use std::time::Instant;

use crate::bench::samples::Samples;

/// Collects how long batches of the same size take.
pub(super) struct Stopwatch {
    batch: usize,
    nanoseconds: Vec<f64>,
}

impl Stopwatch {
    /// For batches of `batch` packets.
    pub(super) fn new(batch: usize) -> Self {
        Self { batch, nanoseconds: Vec::new() }
    }

    /// Does the work for one batch.
    pub(super) fn time(&mut self, work: impl FnOnce()) {
        let begin = Instant::now();
        work();
        self.nanoseconds.push(begin.elapsed().as_nanos() as f64);
    }

    /// The median time per packet in nanoseconds.
    pub(super) fn median(self) -> f64 {
        Samples::new(self.nanoseconds).median() / self.batch as f64
    }
}
