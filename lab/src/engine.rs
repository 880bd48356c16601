//! What a scenario needs of the world it runs in: network namespaces, or the simulator.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::LabError;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// By itself, with this status.
    Exited(u8),
    /// By this signal.
    Killed(i32),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "exited with status {status}"),
            Self::Killed(signal) => write!(f, "was ended by signal {signal}"),
        }
    }
}

/// What came of waiting for output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The text was written.
    Found,
    /// The process ended without writing it.
    Ended(Ended),
    /// The time was up.
    TimedOut,
}

/// A lab that was built. Processes are called by their names, nodes and links by their places in the
/// lab. Times count from the beginning of the scenario.
pub(crate) trait Engine {
    /// The time.
    fn now(&self) -> Duration;

    /// Starts a command on a node; the word `weft` at its beginning is the host program.
    fn start(&mut self, process: &str, node: usize, words: &[String]) -> Result<(), LabError>;

    /// Starts the process that belongs to a node, under the node's name.
    fn start_node(&mut self, node: usize) -> Result<(), LabError>;

    /// Waits until a process has written a line that contains `text`, since it was started.
    fn wait_output(
        &mut self,
        process: &str,
        text: &str,
        timeout: Duration,
    ) -> Result<Waited, LabError>;

    /// Waits until a process has ended; `None` if the time is up.
    fn wait_exit(&mut self, process: &str, timeout: Duration) -> Result<Option<Ended>, LabError>;

    /// Waits until this time.
    fn wait_until(&mut self, time: Duration) -> Result<(), LabError>;

    /// How a process has ended; `None` if it runs.
    fn ended(&mut self, process: &str) -> Option<Ended>;

    /// Whether a process was started and has not ended.
    fn runs(&mut self, process: &str) -> bool;

    /// Asks a process to end.
    fn stop(&mut self, process: &str);

    /// Ends a process at once.
    fn kill(&mut self, process: &str);

    /// Cuts or mends a link.
    fn set_cut(&mut self, link: usize, cut: bool) -> Result<(), LabError>;

    /// Changes the loss of a link, in parts per billion each way.
    fn set_loss(&mut self, link: usize, loss: u32) -> Result<(), LabError>;

    /// Deletes the interface at one end of a link.
    fn delete_interface(&mut self, link: usize, side: usize) -> Result<(), LabError>;

    /// Compares files, whose paths are relative to the working directory of the commands. Says how
    /// they differ, or which is missing; `None` if they are equal.
    fn difference(&mut self, files: &[PathBuf]) -> Result<Option<String>, LabError>;

    /// What a process has written to standard output.
    fn stdout(&mut self, process: &str) -> Result<String, LabError>;

    /// What nodes have dropped so far and why, for messages; empty if that is not known.
    fn drops(&self) -> String {
        String::new()
    }

    /// The last lines that a process has written, for messages; may be empty.
    fn last_words(&mut self, process: &str) -> String;
}
