//! What goes into a sender and what comes out of it.

use std::time::Duration;

use weft_base::Packet;

use crate::host::{HostInput, HostOutput};
use crate::object::{ObjectId, Total};

/// What the world tells a sender.
#[derive(Debug)]
pub enum SenderInput {
    /// Begin.
    Start,
    /// What does not depend on what it is.
    Host(HostInput),
    /// The socket does not keep up: send nothing until [`SenderInput::Drained`].
    Congested,
    /// The socket takes datagrams again.
    Drained,
}

impl From<HostInput> for SenderInput {
    fn from(input: HostInput) -> Self {
        Self::Host(input)
    }
}

/// What a sender asks of the world.
#[derive(Debug)]
pub enum SenderOutput {
    /// Send this datagram to the destination.
    Datagram(Packet),
    /// What a receiver may ask for as well.
    Host(HostOutput),
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
