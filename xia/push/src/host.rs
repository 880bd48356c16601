//! What a sender and a receiver have in common towards whoever runs them: files, time, words for
//! people.

use weft_base::Token;
use weft_runtime::{Action, DiskError, DiskReply, DiskRequest, Event, Level};

/// What both are told.
#[derive(Debug)]
pub enum HostInput {
    /// The answer to [`HostOutput::Disk`]. Answers come in the order of the requests.
    Disk {
        /// The token of the request.
        token: Token,
        /// What came of it.
        result: Result<DiskReply, DiskError>,
    },
    /// The deadline has come.
    Tick,
    /// Do one slice of background work.
    Slice,
    /// End: a sender of a file at once, of a stream when what was read is sent (a second stop ends it
    /// at once, too), a receiver when what it has is saved.
    Stop,
}

impl HostInput {
    /// The input that a process's event means; `None` if it means nothing to them.
    #[must_use]
    pub fn from_event(event: Event) -> Option<Self> {
        Some(match event {
            Event::Disk { token, result } => Self::Disk { token, result },
            Event::Tick => Self::Tick,
            Event::Slice => Self::Slice,
            Event::Stop => Self::Stop,
            _ => return None,
        })
    }
}

/// What both ask for.
#[derive(Debug)]
pub enum HostOutput {
    /// Do something with a file.
    Disk {
        /// Comes back in the answer.
        token: Token,
        /// What to do.
        request: DiskRequest,
    },
    /// How far an object has come.
    Progress {
        /// The object's name.
        label: String,
        /// Bytes received, or passed in this round.
        done: u64,
        /// Bytes of the object, if known.
        total: Option<u64>,
        /// More for people.
        note: String,
    },
    /// A line for the operator.
    Report {
        /// How serious it is.
        level: Level,
        /// Without the line end.
        line: String,
    },
}

/// The action by which a process has it done.
impl From<HostOutput> for Action {
    fn from(output: HostOutput) -> Self {
        match output {
            HostOutput::Disk { token, request } => Self::Disk { token, request },
            HostOutput::Progress { label, done, total, note } => {
                Self::Progress { label, done, total, note }
            }
            HostOutput::Report { level, line } => Self::Report { level, line },
        }
    }
}
