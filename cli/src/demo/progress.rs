//! How far the receivers of the demo are while its lab runs: one line on standard error.
//!
//! Every two seconds a receiver writes its progress into its log, as every program does whose standard
//! error is no terminal (`core/runtime/src/real/terminal.rs`). A thread looks at the ends of the logs and
//! shows the slowest and the fastest of them: on a terminal in one line that is drawn again, elsewhere
//! every few seconds in a line of its own.

use std::fs::{self, File};
use std::io::{self, IsTerminal, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use weft_lab::{Log, Observer, Progress};

/// How often the logs are looked at on a terminal, and elsewhere.
const LOOK: Duration = Duration::from_millis(500);
const LOOK_SELDOM: Duration = Duration::from_secs(4);
/// How much of the end of a log is read, in bytes: more than its last line.
const TAIL: i64 = 1000;
/// Columns of the bar.
const BAR: usize = 20;
/// Back to the start of the line, and clear it (ECMA-48, CR and EL).
const CLEAR: &str = "\r\x1b[K";

/// Writes what happens to the lab to standard error, and how far the receivers are.
pub(super) struct Show {
    screen: Arc<Mutex<Screen>>,
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Show {
    /// For a lab whose processes keep their logs below `output`; without it, without the receivers.
    pub(super) fn new(output: Option<&Path>) -> Self {
        let redraws = io::stderr().is_terminal();
        let screen = Screen { redraws, drawn: String::new(), is_up: false };
        let screen = Arc::new(Mutex::new(screen));
        let thread = output.map(|output| {
            let (stop, stopped) = channel();
            let (screen, logs) = (Arc::clone(&screen), output.join("logs"));
            let pause = if redraws { LOOK } else { LOOK_SELDOM };
            let follow = move || {
                while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                    lock(&screen).show(&shares(&logs));
                }
            };
            (stop, thread::spawn(follow))
        });
        Self { screen, thread }
    }
}

impl Drop for Show {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.thread.take() {
            drop(stop);
            // If it has panicked, the progress is missing, and nothing else.
            let _ = thread.join();
        }
        lock(&self.screen).clear();
    }
}

impl Observer for Show {
    fn see(&mut self, time: Duration, progress: Progress<'_>) {
        let mut screen = lock(&self.screen);
        screen.clear();
        // Before that the logs may be those of an earlier run.
        screen.is_up |= matches!(progress, Progress::Up { .. });
        Log::new(io::stderr()).see(time, progress);
    }
}

fn lock(screen: &Mutex<Screen>) -> MutexGuard<'_, Screen> {
    screen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Standard error, which two threads write to.
struct Screen {
    /// It is a terminal.
    redraws: bool,
    /// The line that stands there, or that was written last.
    drawn: String,
    /// The lab is up.
    is_up: bool,
}

impl Screen {
    fn show(&mut self, shares: &[u64]) {
        let Some(line) = line(shares).filter(|line| self.is_up && *line != self.drawn) else {
            return;
        };
        // If that fails there is nobody left to tell.
        let _ = match self.redraws {
            true => write!(io::stderr(), "{CLEAR}{line}"),
            false => writeln!(io::stderr(), "{line}"),
        };
        self.drawn = line;
    }

    fn clear(&mut self) {
        if self.redraws && !self.drawn.is_empty() {
            let _ = write!(io::stderr(), "{CLEAR}");
            self.drawn.clear();
        }
    }
}

/// A line about the shares of the file that the receivers have, in percent; none before the first one has
/// something and after the last one has all.
fn line(shares: &[u64]) -> Option<String> {
    let (slowest, fastest) = (*shares.iter().min()?, *shares.iter().max()?);
    if fastest == 0 || slowest >= 100 {
        return None;
    }
    let full = usize::try_from(slowest).unwrap_or(0) * BAR / 100;
    let bar = format!("{}{}", "#".repeat(full), "-".repeat(BAR - full));
    Some(format!("receivers [{bar}] slowest {slowest:3} %, fastest {fastest:3} %"))
}

/// What the receivers that keep their logs in this folder have of their file, in percent.
fn shares(logs: &Path) -> Vec<u64> {
    let entries = fs::read_dir(logs).into_iter().flatten().flatten();
    let names = entries.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with("receiver") && name.ends_with(".stderr")
    });
    names.map(|entry| share(&end(entry.path()).unwrap_or_default())).collect()
}

/// The end of a log.
fn end(path: PathBuf) -> io::Result<String> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() > TAIL.unsigned_abs() {
        file.seek(SeekFrom::End(-TAIL))?;
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The share that the last line of progress in a log states: `name [####----]  42 % …`.
fn share(log: &str) -> u64 {
    let percent = |line: &str| {
        let (number, _) = line.rsplit_once("] ")?.1.split_once(" % ")?;
        number.trim().parse().ok()
    };
    log.lines().rev().find_map(percent).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_progress_of_a_log_counts() {
        let log = "ready to receive at hid-…\n\
                   a [b]  c [##------]   7 % 1.5M/20.0M 10 bytes complete\n\
                   a [b]  c [####----]  42 % 8.4M/20.0M 10 bytes complete\n\
                   warning: 50 % of something\n";
        assert_eq!(share(log), 42);
        assert_eq!(share("x [########] 100 % 20.0M/20.0M \n"), 100);
        assert_eq!((share(""), share("ready to receive\n")), (0, 0));
    }

    #[test]
    fn the_receivers_of_a_folder_are_shown_between_their_first_and_last_bytes() {
        let logs = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String| fs::write(logs.path().join(name), text).unwrap();
        assert_eq!(line(&shares(logs.path())), None, "no receivers");
        write("receiver1.stderr", "ready\n".to_owned());
        write("receiver2.stderr", "ready\n".to_owned());
        write("sender.stderr", "payload [####]  99 % 1/1 \n".to_owned());
        assert_eq!(line(&shares(logs.path())), None, "none has anything");
        let long = "payload [###]  10 % 1/10 \n".repeat(1000);
        write("receiver1.stderr", long + "payload [###]  35 % 3/10 \n");
        let expected = "receivers [--------------------] slowest   0 %, fastest  35 %";
        assert_eq!(line(&shares(logs.path())).unwrap(), expected);
        assert_eq!(line(&[50, 100]).unwrap().matches('#').count(), BAR / 2);
        assert_eq!(line(&[100, 100]), None, "all have all");
    }
}
