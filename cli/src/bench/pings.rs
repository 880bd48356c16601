//! Pings that go on while something is done to the network, and when they were answered.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What has not been answered by then will not be.
const PATIENCE: Duration = Duration::from_secs(60);

/// `weft xia ping` or another program that pings, which ends with this.
pub(super) struct Pings {
    process: Child,
    answers: Arc<Answers>,
}

impl Pings {
    /// Begins to ping an address from the node in a run directory, `interval` seconds apart, and waits for
    /// the first answer.
    pub(super) fn start(to: &str, interval: &str, run_directory: &str) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(&program);
        command.args(["xia", "ping", to, "--interval", interval, "--run-dir", run_directory]);
        Self::of(&mut command)
    }

    /// Begins to ping by this command, which prints a line with `time=` for each answer, and waits for the
    /// first.
    pub(super) fn of(command: &mut Command) -> Result<Self, String> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let process = command.spawn().map_err(|error| {
            format!("{} cannot be started: {error}", command.get_program().display())
        })?;
        let mut pings = Self { process, answers: Arc::default() };
        let lines = pings.process.stdout.take().ok_or("a ping has no output")?;
        let noted = Arc::clone(&pings.answers);
        thread::spawn(move || noted.note(BufReader::new(lines)));
        pings.wait_for(Instant::now())?;
        Ok(pings)
    }

    /// Waits for the first answer after `time`; when it came.
    pub(super) fn wait_for(&self, time: Instant) -> Result<Instant, String> {
        self.answers.wait_for(time)
    }

    /// Waits until `end`, and says how long no ping was answered between `begin` and the first answer after
    /// `end`.
    pub(super) fn longest_pause(&self, begin: Instant, end: Instant) -> Result<Duration, String> {
        self.answers.wait_for(end)?;
        Ok(longest_pause(&self.answers.times(), begin, end))
    }
}

impl Drop for Pings {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// When pings were answered, in order.
#[derive(Default)]
struct Answers {
    times: Mutex<Vec<Instant>>,
    came: Condvar,
}

impl Answers {
    /// Notes each answer of a ping when it comes; a line for each.
    fn note(&self, lines: impl BufRead) {
        for line in lines.lines().map_while(Result::ok) {
            if line.contains(" time=") || line.contains(" ms") {
                self.times.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
                self.came.notify_all();
            }
        }
    }

    /// Waits for the first answer after `time`; when it came.
    fn wait_for(&self, time: Instant) -> Result<Instant, String> {
        let until = Instant::now() + PATIENCE;
        let mut times = self.times();
        loop {
            let first = times.partition_point(|answer| *answer <= time);
            if let Some(answer) = times.get(first) {
                return Ok(*answer);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err("pings were not answered for a minute".to_owned());
            }
            let waited = self.came.wait_timeout(times, left);
            times = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn times(&self) -> MutexGuard<'_, Vec<Instant>> {
        // A list of times is whole whatever happens.
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The longest time between two answers, of those that came from the last one before `begin` to the first
/// one after `end`.
fn longest_pause(times: &[Instant], begin: Instant, end: Instant) -> Duration {
    let first = times.partition_point(|time| *time <= begin).saturating_sub(1);
    let last = times.partition_point(|time| *time <= end).min(times.len().saturating_sub(1));
    let pairs = times.get(first..=last).unwrap_or_default().windows(2);
    pairs.map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_pause_is_that_around_the_kill() {
        let base = Instant::now();
        let at = |milliseconds| base + Duration::from_millis(milliseconds);
        let times: Vec<_> = [0, 500, 510, 520, 560, 570, 900].map(at).into();
        let pause = |begin, end| longest_pause(&times, at(begin), at(end)).as_millis();
        assert_eq!(pause(525, 565), 40);
        assert_eq!(pause(511, 512), 10);
        assert_eq!(pause(525, 600), 330);
        assert_eq!(longest_pause(&[], base, base), Duration::ZERO);
    }

    #[test]
    fn answers_are_waited_for() {
        let answers = Arc::new(Answers::default());
        let begin = Instant::now();
        let noting = Arc::clone(&answers);
        let line = "56 bytes from c: sequence=1 time=0.1 ms\n";
        let thread = thread::spawn(move || noting.note(line.as_bytes()));
        assert!(answers.wait_for(begin).unwrap() > begin);
        thread.join().unwrap();
        assert_eq!(answers.times().len(), 1);
    }
}
