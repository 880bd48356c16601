//! A message of BGP as it came.
//!
//! ```text
//!  0 autonomous systems of the peer and of the collector (2 or 4 each)
//!    number of the interface (2), family of the addresses (2)
//!    addresses of the peer and of the collector (4 or 16 each)
//!    the message, from its marker on
//! ```
//!
//! Reference: RFC 6396 §4.4; RFC 8050 §3 (ADD-PATH).

use std::net::IpAddr;

use super::Taker;
use crate::numbers::afi;

/// Subtypes (RFC 6396 §4.4, RFC 8050 §3).
pub(super) mod subtype {
    pub(crate) const MESSAGE: u16 = 1;
    pub(crate) const MESSAGE_AS4: u16 = 4;
    pub(crate) const MESSAGE_LOCAL: u16 = 6;
    pub(crate) const MESSAGE_AS4_LOCAL: u16 = 7;
    pub(crate) const MESSAGE_ADDPATH: u16 = 8;
    pub(crate) const MESSAGE_AS4_ADDPATH: u16 = 9;
    pub(crate) const MESSAGE_LOCAL_ADDPATH: u16 = 10;
    pub(crate) const MESSAGE_AS4_LOCAL_ADDPATH: u16 = 11;
}

/// A message of BGP as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The autonomous systems of the peer and of who has written this.
    pub autonomous_systems: [u32; 2],
    /// Whether numbers of autonomous systems in the message have four octets.
    pub four_octet_as: bool,
    /// Whether the message was sent by who has written this.
    pub is_sent: bool,
    /// Whether its prefixes have path identifiers (RFC 7911).
    pub has_path_ids: bool,
    /// The addresses of the peer and of who has written this, of the same version of IP.
    pub addresses: [IpAddr; 2],
    /// The message, its header included.
    pub bytes: Vec<u8>,
}

/// Reads a record of type BGP4MP; none if it is not a message.
pub(super) fn parse(subtype: u16, body: &[u8]) -> Result<Option<Message>, &'static str> {
    use subtype::*;
    let four_octet_as = matches!(
        subtype,
        MESSAGE_AS4 | MESSAGE_AS4_LOCAL | MESSAGE_AS4_ADDPATH | MESSAGE_AS4_LOCAL_ADDPATH
    );
    if !four_octet_as
        && !matches!(subtype, MESSAGE | MESSAGE_LOCAL | MESSAGE_ADDPATH | MESSAGE_LOCAL_ADDPATH)
    {
        return Ok(None);
    }
    let mut taker = Taker(body);
    let mut autonomous_system =
        || if four_octet_as { taker.u32() } else { taker.u16().map(u32::from) };
    let autonomous_systems = [autonomous_system()?, autonomous_system()?];
    taker.u16()?;
    let is_ipv6 = match taker.u16()? {
        afi::IPV4 => false,
        afi::IPV6 => true,
        _ => return Err("its addresses are neither of IPv4 nor of IPv6"),
    };
    let addresses = [taker.address(is_ipv6)?, taker.address(is_ipv6)?];
    Ok(Some(Message {
        autonomous_systems,
        four_octet_as,
        is_sent: matches!(
            subtype,
            MESSAGE_LOCAL | MESSAGE_AS4_LOCAL | MESSAGE_LOCAL_ADDPATH | MESSAGE_AS4_LOCAL_ADDPATH
        ),
        has_path_ids: subtype >= MESSAGE_ADDPATH,
        addresses,
        bytes: taker.0.to_vec(),
    }))
}

impl Message {
    /// The subtype that says all this.
    pub(super) fn subtype(&self) -> u16 {
        use subtype::*;
        match (self.four_octet_as, self.is_sent, self.has_path_ids) {
            (false, false, false) => MESSAGE,
            (true, false, false) => MESSAGE_AS4,
            (false, true, false) => MESSAGE_LOCAL,
            (true, true, false) => MESSAGE_AS4_LOCAL,
            (false, false, true) => MESSAGE_ADDPATH,
            (true, false, true) => MESSAGE_AS4_ADDPATH,
            (false, true, true) => MESSAGE_LOCAL_ADDPATH,
            (true, true, true) => MESSAGE_AS4_LOCAL_ADDPATH,
        }
    }
}
