//! A processor that is slower than it is, so that a source on another one can send ten times what a router on it can
//! forward: a thread that goes before all others takes most of each millisecond.
//!
//! What is left comes in pieces, so a router must also live through pauses; they are short enough that at loads which
//! it can take no queue fills meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::threads::{Processors, Work};

const PERIOD: Duration = Duration::from_millis(1);
/// What is taken of each period.
const TAKEN: Duration = Duration::from_micros(750);

/// While there is one, the router has a quarter of its processor.
pub(super) struct Handicap {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Handicap {
    /// Begins.
    ///
    /// # Errors
    /// There is no room for another thread.
    pub(super) fn new(processors: Processors) -> Result<Self, String> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let take = move || {
            processors.take_place(Work::Handicap);
            while !stopping.load(Ordering::Relaxed) {
                let begin = Instant::now();
                while begin.elapsed() < TAKEN {
                    std::hint::spin_loop();
                }
                thread::sleep(PERIOD.saturating_sub(begin.elapsed()));
            }
        };
        let thread = thread::Builder::new().name("weft-handicap".to_owned()).spawn(take);
        let thread = thread.map_err(|error| format!("no thread for the handicap: {error}"))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Handicap {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // It cannot panic.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
