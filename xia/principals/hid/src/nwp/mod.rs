//! NWP, the Neighborhood Watch Protocol: its messages.
//!
//! Reference: AltraMayor/XIA-for-Linux, `net/xia/ppal_hid/nwp.c`, for the first two; there is no other
//! specification. The others are weft's own.
//!
//! Hosts on an Ethernet tell each other which HID is reached at which hardware address, directly in
//! frames of EtherType 0xC0DF. An *announcement* says "these are my HIDs"; a *neighbour list* passes
//! on what its sender knows of others.
//!
//! ```text
//!  announcement                            neighbour list
//!  0       1       2       3       4       0       1       2       3       4
//! +-------+-------+-------+-------+       +-------+-------+-------+-------+
//! |version|type   |number |address|       |version|type   |number |address|
//! | = 1   | = 1   |of HIDs|length |       | = 1   | = 2   |of HIDs|length |
//! +-------+-------+-------+-------+       +-------+-------+-------+-------+
//! | hardware address of the sender|       | HID (20 bytes)                | \
//! +-------------------------------+       +-------+-----------------------+  | for
//! | HID (20 bytes)                | \     |number |hardware addresses     |  | each
//! +-------------------------------+ / n   +-------+-----------------------+ /  HID
//! ```
//!
//! Messages of weft's own have types from 0x80 on. A node of Linux XIA reads no further than a type that is not
//! 1 or 2, and drops the frame. Who gets a *question* about HIDs answers at once, for those that are its own:
//! a *probe* asks whether they are there, and is answered by *here*; a *challenge* asks for proofs of them. The
//! *nonce* of an answer is that of the question. A *withdrawal* says that a HID is not here any more.
//!
//! ```text
//!  probe, challenge, here                  proof, withdrawal
//!  0       1       2       3       4       0       1       2       3       4
//! +-------+-------+-------+-------+       +-------+-------+-------+-------+
//! |version|0x80   |number |address|       |version|0x83,  | 1     |address|
//! | = 1   |to 0x82|of HIDs|length |       | = 1   |0x84   |       |length |
//! +-------+-------+-------+-------+       +-------+-------+-------+-------+
//! | hardware address of the sender|       | hardware address of the sender|
//! +-------------------------------+       +-------------------------------+
//! | nonce (16 bytes)              |       | nonce (16 bytes)              |
//! +-------------------------------+       +-------------------------------+
//! | HID (20 bytes)                | \     | HID (20 bytes)                |
//! +-------------------------------+ / n   +-------------------------------+
//!                                         | epoch (16 bytes)              |
//!                                         +-------------------------------+
//!                                         | public key (32 bytes)         |
//!                                         +-------------------------------+
//!                                         | signature (64 bytes)          |
//!                                         +-------------------------------+
//! ```
//!
//! The key is an Ed25519 public key, of which the HID is the hash. The signature is over a text that says what is
//! signed, for a proof the hardware address of who asked, and all of the message before the signature
//! ([`signed_proof`], [`signed_withdrawal`]). A withdrawal answers nothing; its nonce is zero. The *epoch* is a number that a node makes for itself and
//! changes when it has withdrawn a HID, so that a withdrawal which is sent once more by somebody else says nothing.
//! A node that has no key for a HID withdraws it with zeros for epoch, key and signature.
//!
//! The address length is 6 on Ethernet, the only link supported. A frame may be longer than its
//! message: short frames are padded on the wire. Messages are read in place ([`NwpMessage`]) and
//! written from values ([`NwpRepr`]).

mod extension;
mod repr;
#[cfg(test)]
mod tests;
mod view;

pub use extension::{
    EPOCH_LEN, NONCE_LEN, Question, QuestionRepr, SEAL_LEN, Seal, Sealed, SealedRepr,
    hids_in_question, signed_proof, signed_withdrawal,
};
pub use repr::{NeighbourRepr, NwpRepr, announcements, neighbour_lists};
pub use view::{Announcement, NeighbourEntry, NeighbourList, NwpMessage};

/// The only version of NWP.
pub const NWP_VERSION: u8 = 1;

/// Most HIDs in one message: their number has 8 bits.
pub const MAX_HIDS: usize = 255;

/// Most hardware addresses of one HID: their number has 8 bits.
pub const MAX_ADDRESSES: usize = 255;

const TYPE_ANNOUNCEMENT: u8 = 1;
const TYPE_NEIGHBOUR_LIST: u8 = 2;
/// The first of weft's own: far from those that others may add.
const TYPE_PROBE: u8 = 0x80;
const TYPE_CHALLENGE: u8 = 0x81;
const TYPE_HERE: u8 = 0x82;
const TYPE_PROOF: u8 = 0x83;
const TYPE_WITHDRAWAL: u8 = 0x84;

/// Length of a hardware address, that is of an Ethernet address, in bytes.
const ADDRESS_LEN: usize = 6;
/// Length of the part that all messages begin with, in bytes.
const HEADER_LEN: usize = 4;

mod field {
    use std::ops::Range;

    pub(super) const VERSION: usize = 0;
    pub(super) const TYPE: usize = 1;
    pub(super) const HID_COUNT: usize = 2;
    pub(super) const ADDRESS_LEN: usize = 3;
    /// In all messages but neighbour lists.
    pub(super) const HARDWARE_ADDRESS: Range<usize> = 4..10;
}

/// Why bytes are no NWP message, or a value cannot become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NwpError {
    /// The message ends too early.
    #[error("the NWP message ends after {available} bytes; {needed} are needed at least")]
    Truncated {
        /// Bytes needed for the part that was read.
        needed: usize,
        /// Bytes there are.
        available: usize,
    },
    /// Not version 1.
    #[error("the NWP version is {0}, only {NWP_VERSION} is known")]
    Version(u8),
    /// None of those of Linux XIA or of weft.
    #[error("the NWP message is of unknown type {0}")]
    Type(u8),
    /// A message must name a HID.
    #[error("the NWP message names no HID")]
    NoHids,
    /// A proof or a withdrawal is of one HID.
    #[error("the NWP message is of {0} HIDs; a proof or a withdrawal is of one")]
    NotOneHid(u8),
    /// Not Ethernet.
    #[error(
        "hardware addresses have {0} bytes; only those of Ethernet, with {ADDRESS_LEN}, are supported"
    )]
    AddressLength(u8),
    /// A message to be written has more HIDs, or one of them more addresses, than can be counted.
    #[error("an NWP message counts {limit} HIDs or addresses at most, not {count}; split it")]
    TooMany {
        /// How many there are.
        count: usize,
        /// How many there can be.
        limit: usize,
    },
    /// The buffer to write to is too short.
    #[error("the NWP message has {needed} bytes, the buffer {available}; pass a longer one")]
    NoSpace {
        /// Length of the message.
        needed: usize,
        /// Length of the buffer.
        available: usize,
    },
}
