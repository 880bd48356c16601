//! The messages between neighbours, and the advertisements in them.
//!
//! There is no standard for these; what they say is what OSPF (RFC 2328 §A.3, RFC 5340 §A.3) and IS-IS
//! (ISO 10589 §9) say in theirs. Numbers are big-endian.
//!
//! ```text
//!  message                                        advertisement (LSA)
//!   0 version = 1                                  0 originator (20)
//!   1 type                                        20 fragment
//!   2 flags                                       21 length of the proof
//!   3 length of the seal                          22 lifetime in seconds (2); 0: withdrawn
//!   4 length of the whole message (2)             24 sequence number (8)
//!   6 sender (20)                                 32 number of links (2)
//!  26 session of the sender (8)                   34 number of destinations (2)
//!  34 counter in the session (8)                  36 links: node (20), metric (4)
//!  42 body                                           destinations: length (1), metric (4), name
//!     seal                                           proof
//!
//!  type        body                                          seal
//!  1 greeting  session heard (8), hold time in ms (4)        the sender's proof
//!  2 hello     hold time in ms (4); 0: farewell              tag of the session
//!  3 summary   index (2), number of summaries (2), headers   tag of the session
//!  4 update    advertisements, each behind its length (2)    tag of the session
//!  5 ack       headers                                       tag of the session
//!
//!  header (45): originator (20), fragment (1), sequence number (8), digest (16)
//! ```
//!
//! A frame may be longer than its message. Messages are read in place ([`Message`], [`LsaView`]) and
//! written from values ([`MessageRepr`], [`LsaRepr`]).

mod lsa;
mod message;
#[cfg(test)]
mod tests;

pub use lsa::{LsaRepr, LsaView};
pub use message::{Body, Headers, Lsas, Message, MessageRepr};

use crate::ids::{Destination, LsaHeader, LsaId, NodeId, Version};

/// The only version.
pub const VERSION: u8 = 1;

/// The longest advertisement in bytes: one for the whole network, since everybody passes on everybody's.
/// ISO 10589 has `originatingLSPBufferSize`, 1492 bytes, for the same.
pub const MAX_LSA_LEN: usize = 1280;

/// The longest proof that an advertisement or a greeting carries, in bytes.
pub const MAX_PROOF_LEN: usize = 128;

/// Length of the tag that ends the messages of a session, in bytes.
pub const TAG_LEN: usize = 16;

/// What an update with one advertisement has more than that, in bytes.
pub const OVERHEAD: usize = HEADER_LEN + 2 + TAG_LEN;

/// In [`Message::flags`]: the sender has nothing more to tell that the receiver does not know.
pub const FLAG_COMPLETE: u8 = 1;

/// Length of the part that all messages begin with, in bytes.
const HEADER_LEN: usize = 42;
/// Length of a header of an advertisement, in bytes.
const LSA_HEADER_LEN: usize = NodeId::LEN + 1 + 8 + Version::DIGEST_LEN;

const TYPE_GREETING: u8 = 1;
const TYPE_HELLO: u8 = 2;
const TYPE_SUMMARY: u8 = 3;
const TYPE_UPDATE: u8 = 4;
const TYPE_ACK: u8 = 5;

/// Why bytes are no message, or no advertisement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The message ends too early.
    #[error("the message ends after {available} bytes; {needed} are needed at least")]
    Truncated {
        /// Bytes needed for the part that was read.
        needed: usize,
        /// Bytes there are.
        available: usize,
    },
    /// Not version 1.
    #[error("the version is {0}, only {VERSION} is known")]
    Version(u8),
    /// No type of message.
    #[error("the message is of unknown type {0}")]
    Type(u8),
    /// The lengths inside a message do not add up to its own.
    #[error("{0} bytes of the message belong to nothing")]
    Surplus(usize),
    /// An advertisement is longer than everybody takes.
    #[error("the advertisement has {0} bytes; {MAX_LSA_LEN} are allowed")]
    LsaTooLong(usize),
    /// A destination without a name, or with one that is too long.
    #[error("the name of a destination has {0} bytes; 1 to {max} are allowed", max = Destination::MAX_LEN)]
    DestinationLength(usize),
    /// A link that costs nothing, or a metric of more than 24 bits.
    #[error("{0} is no metric of a link or destination")]
    Metric(u32),
    /// What is withdrawn has content.
    #[error("an advertisement is withdrawn and not empty")]
    WithdrawnContent,
    /// A summary's index is not below the number of summaries.
    #[error("this is summary {index} of {count}")]
    SummaryIndex {
        /// Which it says it is, from 0.
        index: u16,
        /// How many it says there are.
        count: u16,
    },
}

/// Takes bytes from the front of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], WireError> {
        let short = WireError::Truncated { needed: len, available: self.0.len() };
        let (front, rest) = self.0.split_at_checked(len).ok_or(short)?;
        self.0 = rest;
        Ok(front)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u8(&mut self) -> Result<u8, WireError> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Result<u16, WireError> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(u64::from_be_bytes)
    }

    fn header(&mut self) -> Result<LsaHeader, WireError> {
        let id = LsaId { origin: NodeId(self.array()?), fragment: self.u8()? };
        Ok(LsaHeader { id, version: Version { sequence: self.u64()?, digest: self.array()? } })
    }

    fn end(self) -> Result<(), WireError> {
        if self.0.is_empty() { Ok(()) } else { Err(WireError::Surplus(self.0.len())) }
    }
}

fn emit_header(header: &LsaHeader, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&header.id.origin.0);
    bytes.push(header.id.fragment);
    bytes.extend_from_slice(&header.version.sequence.to_be_bytes());
    bytes.extend_from_slice(&header.version.digest);
}
