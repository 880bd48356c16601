//! What two speakers have agreed on, as far as it decides how messages are read and written.
//!
//! Reference: RFC 6793 (four octets), RFC 7911 (ADD-PATH), RFC 8950 (next hops), RFC 8654 (long messages).

use super::family::{Families, Family};

/// The longest message without extensions, in bytes (RFC 4271 §4.1).
pub const MAX_MESSAGE: u16 = 4096;
/// The longest extended message, in bytes (RFC 8654 §3).
pub const MAX_EXTENDED_MESSAGE: u16 = u16::MAX;

/// Where a peer is, as seen from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Neighbour {
    /// In the same autonomous system.
    Internal,
    /// In another autonomous system.
    External,
    /// In another member of the same confederation (RFC 5065).
    Confederation,
}

/// How messages of a session are read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// Where the peer is.
    pub neighbour: Neighbour,
    /// Numbers of autonomous systems have four octets.
    pub four_octet_as: bool,
    /// Families whose routes are exchanged; what comes of others is passed over.
    pub families: Families,
    /// Families whose prefixes come with path identifiers.
    pub add_path_receive: Families,
    /// Families whose prefixes are sent with path identifiers.
    pub add_path_send: Families,
    /// Families of IPv4 whose next hop may be of IPv6.
    pub extended_next_hop: Families,
    /// The longest message to send, in bytes: [`MAX_MESSAGE`] or [`MAX_EXTENDED_MESSAGE`].
    pub send_limit: u16,
    /// Routes with an AS_SET are taken, which RFC 9774 forbids.
    pub accept_as_sets: bool,
}

impl Context {
    /// RFC 4271 with numbers of four octets: routes of IPv4, nothing else.
    #[must_use]
    pub fn new(neighbour: Neighbour) -> Self {
        Self {
            neighbour,
            four_octet_as: true,
            families: Families::from_iter([Family::IPV4_UNICAST]),
            add_path_receive: Families::EMPTY,
            add_path_send: Families::EMPTY,
            extended_next_hop: Families::EMPTY,
            send_limit: MAX_MESSAGE,
            accept_as_sets: false,
        }
    }
}
