//! What goes into a sender and what comes out of it.

use std::time::Duration;

use weft_base::{Packet, Token};
use weft_runtime::{DiskError, DiskReply, DiskRequest, Level};

use crate::object::{ObjectId, Total};

/// What the world tells a sender.
#[derive(Debug)]
pub enum SenderInput {
    /// Begin.
    Start,
    /// The answer to [`SenderOutput::Disk`].
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
    /// The socket does not keep up: send nothing until [`SenderInput::Drained`].
    Congested,
    /// The socket takes datagrams again.
    Drained,
    /// End: at once for a file, at the end of what was read for a stream (a second stop ends it at
    /// once, too).
    Stop,
}

/// What a sender asks of the world.
#[derive(Debug)]
pub enum SenderOutput {
    /// Send this datagram to the destination.
    Datagram(Packet),
    /// Do something with a file.
    Disk {
        /// Comes back in the answer.
        token: Token,
        /// What to do.
        request: DiskRequest,
    },
    /// How far it has come.
    Progress {
        /// The object's name.
        label: String,
        /// Bytes of the object passed in this round.
        done: u64,
        /// Bytes of the object, if known.
        total: Option<u64>,
        /// Round and rate, for people.
        note: String,
    },
    /// A line for the operator.
    Report {
        /// How serious it is.
        level: Level,
        /// Without the line end.
        line: String,
    },
    /// Everything was sent, or it was stopped. The last output.
    Done(SendSummary),
    /// It cannot go on: one sentence. The last output.
    Failed(String),
}

/// What a sender has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendSummary {
    /// The object's name.
    pub name: String,
    /// Its id; `None` if it was stopped before the file was hashed.
    pub object: Option<ObjectId>,
    /// Length and digest, if they became known.
    pub total: Option<Total>,
    /// Repair rounds begun.
    pub rounds: u32,
    /// Source symbols sent.
    pub source_symbols: u64,
    /// Repair symbols sent.
    pub repair_symbols: u64,
    /// Announces sent.
    pub announces: u64,
    /// Bytes of all datagrams.
    pub datagram_bytes: u64,
    /// From the first datagram to the end.
    pub elapsed: Duration,
}
