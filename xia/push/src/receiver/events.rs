//! What goes into a receiver and what comes out of it.

use std::path::PathBuf;
use std::time::Duration;

use weft_base::{Packet, reasons};

use crate::host::{HostInput, HostOutput};
use crate::object::{ObjectId, SenderKey, Sha256Digest};

/// Time between two progress reports of one object.
pub(super) const PROGRESS_EVERY: Duration = Duration::from_millis(250);

/// What the world tells a receiver.
#[derive(Debug)]
pub enum ReceiverInput {
    /// Begin.
    Start,
    /// A datagram came.
    Datagram {
        /// Its bytes.
        packet: Packet,
        /// Who sent it.
        from: SenderKey,
    },
    /// What does not depend on what it is.
    Host(HostInput),
}

impl From<HostInput> for ReceiverInput {
    fn from(input: HostInput) -> Self {
        Self::Host(input)
    }
}

/// What a receiver asks of the world.
#[derive(Debug)]
pub enum ReceiverOutput {
    /// What a sender may ask for as well.
    Host(HostOutput),
    /// An object is complete, verified and in its place.
    Received(ReceiveReport),
    /// An object, or all of the receiver if there is none, cannot be received.
    Failed {
        /// Who sent it.
        sender: Option<SenderKey>,
        /// Which object.
        object: Option<ObjectId>,
        /// What the sender calls it, or its id as long as that is not known.
        name: String,
        /// Why, and what to do about it, in one sentence.
        text: String,
    },
    /// The receiver has ended, by a stop, by its count, or because nothing can be received. The last
    /// output.
    Done {
        /// Objects received.
        received: u64,
        /// Objects given up.
        failed: u64,
    },
}

/// How an object was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiveReport {
    /// Who sent it.
    pub sender: SenderKey,
    /// Its id.
    pub object: ObjectId,
    /// What the sender calls it.
    pub name: String,
    /// Where it is now; `None` on standard output.
    pub path: Option<PathBuf>,
    /// Its length.
    pub bytes: u64,
    /// Its digest, verified.
    pub sha256: Sha256Digest,
    /// Source symbols of the object: what an ideal code would need.
    pub symbols_needed: u64,
    /// Different symbols that came while they could be of use.
    pub symbols_received: u64,
    /// Symbols that blocks were made of, those of earlier runs included.
    pub symbols_used: u64,
    /// Symbols that had come before.
    pub duplicates: u64,
    /// Symbols that came for blocks that had enough.
    pub surplus: u64,
    /// Symbols that earlier runs had left on disk.
    pub symbols_resumed: u64,
    /// Blocks that needed decoding, and how often decoding failed and another symbol was needed.
    pub blocks_decoded: u64,
    /// See above.
    pub decode_failures: u64,
    /// From the first datagram to the last block, and to the verified file in its place.
    pub complete_after: Duration,
    /// See above.
    pub elapsed: Duration,
}

reasons! {
    /// Why a datagram was of no use.
    pub enum DropReason {
        Malformed = "malformed", "it is no datagram of a push, or was damaged";
        Conflict = "conflict", "it contradicts what is known of its object";
        Forged = "forged", "an announce does not match the id of its object";
        TooLarge = "too-large", "its object or block is larger than allowed here";
        Objects = "objects", "too many objects are being received";
        SenderObjects = "sender-objects", "its sender has too many objects here";
        SenderDisk = "sender-disk", "its sender's objects take too much disk";
        Index = "index", "the memory for lists of what was received is used up";
        RepairSpace = "repair-space", "the space for repair symbols is used up";
        Opening = "opening", "too many came while its object's files were being opened";
        Backlog = "backlog", "the disk does not keep up";
        DiskFull = "disk-full", "the disk is full";
        WriteFailed = "write-failed", "it could not be written to disk";
        Ended = "ended", "its object is complete or was given up";
        Duplicate = "duplicate", "the symbol came before";
        Surplus = "surplus", "its block has enough symbols";
        Window = "window", "it is too far ahead of the stream on standard output";
        NotWanted = "not-wanted", "only one stream goes to standard output";
    }
}

impl DropReason {
    /// Whether it is a limit of this receiver, which its operator should know of when it is reached.
    pub(super) fn is_limit(self) -> bool {
        matches!(
            self,
            Self::TooLarge
                | Self::Objects
                | Self::SenderObjects
                | Self::SenderDisk
                | Self::Index
                | Self::RepairSpace
        )
    }
}
