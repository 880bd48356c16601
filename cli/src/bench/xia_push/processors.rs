//! How long the machine's processors were busy, whoever kept them so: packets that the kernel forwards
//! belong to no process.
//!
//! Reference: proc_stat(5).

use std::fs;
use std::time::{Duration, Instant};

/// The kernel counts in hundredths of a second (`USER_HZ`, the same on all systems that weft runs on).
const TICK: Duration = Duration::from_millis(10);

/// The state of the processors at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Processors {
    time: Instant,
    count: u32,
    idle: Duration,
}

impl Processors {
    /// The state now.
    pub(super) fn now() -> Result<Self, String> {
        let text = fs::read_to_string("/proc/stat")
            .map_err(|error| format!("the use of the processors cannot be read: {error}"))?;
        let (count, idle) =
            parse(&text).ok_or("the use of the processors cannot be found in /proc/stat")?;
        Ok(Self { time: Instant::now(), count, idle })
    }

    /// How long all processors together were busy since an earlier state.
    pub(super) fn busy_since(&self, earlier: &Self) -> Duration {
        let idle = self.idle.saturating_sub(earlier.idle);
        (self.time.duration_since(earlier.time) * self.count).saturating_sub(idle)
    }
}

/// The number of processors, and how long they were idle or waited for a device.
fn parse(text: &str) -> Option<(u32, Duration)> {
    let mut lines = text.lines();
    let mut all = lines.next()?.strip_prefix("cpu ")?.split_ascii_whitespace().skip(3);
    let mut ticks = || all.next()?.parse::<u32>().ok();
    let idle = ticks()?.checked_add(ticks()?)?;
    let count = lines.take_while(|line| line.starts_with("cpu")).count();
    Some((u32::try_from(count).ok()?, TICK * idle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_and_processors_are_found() {
        let text = "cpu  100 0 50 4000 30 0 7 0 0 0\ncpu0 50 0 20 2000 10 0 7 0 0 0\n\
                    cpu1 50 0 30 2000 20 0 0 0 0 0\nintr 1 2 3\n";
        assert_eq!(parse(text), Some((2, Duration::from_millis(40_300))));
        assert_eq!(parse("intr 1 2 3\n"), None);
        assert_eq!(parse("cpu  100 0 50\n"), None);
    }

    #[test]
    fn who_computes_keeps_a_processor_busy() {
        let before = Processors::now().unwrap();
        let begin = Instant::now();
        // Ticks are coarse, and a busy machine lends its processors rarely: until it shows.
        while Processors::now().unwrap().busy_since(&before) < TICK {
            assert!(begin.elapsed() < Duration::from_secs(60), "computing does not show");
        }
    }
}
