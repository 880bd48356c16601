//! What people and programs get to see of a lab: progress while it runs, the outcome at its end.

use std::borrow::Cow;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

/// Something that happens to a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// A lab was removed whose process had died without doing it.
    RemovedStale(&'a str),
    /// Something is odd, but does not keep the lab from working.
    Warning(&'a str),
    /// The network is being built.
    Building {
        /// How many nodes it has.
        nodes: usize,
        /// How many links.
        links: usize,
    },
    /// All nodes are ready.
    Up {
        /// By this name the lab is found while it runs.
        name: &'a str,
    },
    /// A step begins.
    Step {
        /// Its number, from 1.
        number: usize,
        /// How many there are.
        of: usize,
        /// As it stands in the file.
        text: &'a str,
    },
    /// A text for people: from the lab file, or the life of a packet.
    Say(&'a str),
    /// The lab is taken down.
    TakingDown,
}

/// Somebody who is told what happens. Times count from the beginning of the scenario; before it they
/// are zero.
pub trait Observer {
    /// Something happens at `time`.
    fn see(&mut self, time: Duration, progress: Progress<'_>);
}

/// Writes lines for people.
#[derive(Debug)]
pub struct Log<W>(W);

impl<W: Write> Log<W> {
    /// Writes to `out`, usually standard error.
    pub fn new(out: W) -> Self {
        Self(out)
    }
}

impl<W: Write> Observer for Log<W> {
    fn see(&mut self, time: Duration, progress: Progress<'_>) {
        let out = &mut self.0;
        // Progress that nobody can read is not worth failing for.
        let _ = match progress {
            Progress::RemovedStale(name) => writeln!(out, "removed what was left of lab {name}"),
            Progress::Warning(text) => writeln!(out, "warning: {text}"),
            Progress::Building { nodes, links } => {
                writeln!(out, "building {nodes} nodes and {links} links")
            }
            Progress::Up { name } => writeln!(out, "lab {name} is up"),
            Progress::Step { number, of, text } => {
                let text = shortened(text);
                writeln!(out, "[{:9.3}s] {number}/{of} {text}", time.as_secs_f64())
            }
            Progress::Say(text) => writeln!(out, "{text}"),
            Progress::TakingDown => writeln!(out, "[{:9.3}s] taking down", time.as_secs_f64()),
        };
    }
}

/// The longest step that is shown in full, in characters.
const LONGEST_STEP: usize = 120;

/// A step as it fits a line or two of a terminal.
fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(LONGEST_STEP) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

/// What came of a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The lab.
    pub lab: String,
    /// `netns` or `sim`.
    pub engine: &'static str,
    /// The scenario.
    pub scenario: String,
    /// The seed of all randomness.
    pub seed: u64,
    /// Why it failed; `None` if all steps succeeded.
    pub error: Option<String>,
    /// The steps that were begun, in order.
    pub steps: Vec<StepOutcome>,
    /// The processes that were started, sorted by name.
    pub processes: Vec<ProcessOutcome>,
    /// How long the scenario took, in nanoseconds; virtual ones in the simulator.
    pub time_ns: u64,
    /// In the simulator, the number that stands for every packet of the run.
    pub trace_hash: Option<String>,
    /// Where files and logs are.
    pub output: PathBuf,
}

impl Outcome {
    /// Whether all steps succeeded.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.error.is_none()
    }
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepOutcome {
    /// As it stands in the file.
    pub step: String,
    /// File, line and column.
    pub place: String,
    /// When it began, in nanoseconds after the beginning of the scenario.
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Whether it succeeded.
    pub succeeded: bool,
}

/// What came of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProcessOutcome {
    /// Its name in the scenario.
    pub name: String,
    /// On which node it ran.
    pub node: String,
    /// Its exit status, if it has exited by itself before the end of the scenario.
    pub status: Option<u8>,
    /// What it wrote to standard output, as a file in [`Outcome::output`].
    pub stdout: PathBuf,
}

/// Whole nanoseconds, as outcomes state times.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
