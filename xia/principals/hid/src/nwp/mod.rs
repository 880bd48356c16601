//! NWP, the Neighborhood Watch Protocol: its messages.
//!
//! Reference: AltraMayor/XIA-for-Linux, `net/xia/ppal_hid/nwp.c`. There is no other specification.
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
//! The address length is 6 on Ethernet, the only link supported. A frame may be longer than its
//! message: short frames are padded on the wire. Messages are read in place ([`NwpMessage`]) and
//! written from values ([`NwpRepr`]).

mod repr;
#[cfg(test)]
mod tests;
mod view;

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
    /// In announcements only.
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
    /// Neither an announcement nor a neighbour list.
    #[error("the NWP message is of unknown type {0}")]
    Type(u8),
    /// A message must name a HID.
    #[error("the NWP message names no HID")]
    NoHids,
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
