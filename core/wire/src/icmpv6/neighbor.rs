//! Neighbour solicitation and advertisement.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+---------------------------------------------------------+
//! |R|S|O|      reserved (all reserved in a solicitation)          |
//! +-+-+-+---------------------------------------------------------+
//! |                   target address (128 bits)                   |
//! +---------------+---------------+-------------------------------+
//! |  option type  | length (x 8)  |  option data ...
//! ```
//!
//! Reference: RFC 4861 §4.3 (solicitation), §4.4 (advertisement), §4.6 (options), §7.1 (validation);
//! RFC 2464 §6 (Ethernet addresses); solicited-node addresses RFC 4291 §2.7.1. Offsets are in bits
//! and begin after the checksum of the ICMPv6 message.
//!
//! Of the options only the link-layer address is read; others are skipped, as §4.6 asks for.

use core::net::Ipv6Addr;

use crate::bytes::{get, put, require};
use crate::{Ipv6Repr, MacAddr, WireError};

const SOLICITATION: &str = "neighbor solicitation";
const ADVERTISEMENT: &str = "neighbor advertisement";

mod field {
    use core::ops::Range;

    pub(super) const FLAGS: usize = 0;
    pub(super) const RESERVED: Range<usize> = 1..4;
    pub(super) const TARGET: Range<usize> = 4..20;
    pub(super) const OPTIONS: usize = 20;

    pub(super) const ROUTER: u8 = 0x80;
    pub(super) const SOLICITED: u8 = 0x40;
    pub(super) const OVERRIDE: u8 = 0x20;

    // Within an option.
    pub(super) const OPTION_TYPE: usize = 0;
    pub(super) const OPTION_LEN: usize = 1;
    pub(super) const LINK_LAYER_ADDRESS: Range<usize> = 2..8;
    /// Option lengths count units of this many bytes.
    pub(super) const OPTION_UNIT: usize = 8;
}

/// "Source link-layer address" (RFC 4861 §4.6.1).
const OPTION_SOURCE: u8 = 1;
/// "Target link-layer address" (RFC 4861 §4.6.1).
const OPTION_TARGET: u8 = 2;

/// The group to which a node with this `address` listens: ff02::1:ff00:0/104 and its low 24 bits.
pub const fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., high, low] = address.segments();
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | high & 0xff, low)
}

/// Asks for the link-layer address of a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeighborSolicitation {
    /// The address that is looked for.
    pub target: Ipv6Addr,
    /// Link-layer address of the sender.
    pub source_link_address: Option<MacAddr>,
}

impl NeighborSolicitation {
    pub(super) fn parse(code: u8, body: &[u8]) -> Result<Self, WireError> {
        let target = parse_target(SOLICITATION, code, body)?;
        let source_link_address = link_address(SOLICITATION, body, OPTION_SOURCE)?;
        Ok(Self { target, source_link_address })
    }

    /// Checks what RFC 4861 §7.1.1 demands of the IPv6 header that carried the solicitation.
    ///
    /// # Errors
    /// [`WireError::Field`] if the hop limit is not 255 (the packet came from another link), or if
    /// the sender has no address but names a link-layer address or asks one neighbour alone.
    pub fn check_ip_header(&self, ip: &Ipv6Repr) -> Result<(), WireError> {
        check_hop_limit(SOLICITATION, ip)?;
        if ip.source.is_unspecified() {
            if self.source_link_address.is_some() {
                let expected = "absent if the source address is unspecified";
                return Err(malformed(SOLICITATION, "source link-layer address", 1, expected));
            }
            // RFC 4861 asks for *a* solicited-node address, not for that of the target; such an
            // address is the solicited-node address of itself.
            if ip.destination != solicited_node(ip.destination) {
                let expected = "a solicited-node address if the source address is unspecified";
                return Err(malformed(SOLICITATION, "destination address", 0, expected));
            }
        }
        Ok(())
    }

    pub(super) fn buffer_len(&self) -> usize {
        body_len(self.source_link_address)
    }

    pub(super) fn emit(&self, buffer: &mut [u8]) {
        emit(buffer, 0, self.target, OPTION_SOURCE, self.source_link_address);
    }
}

/// Tells the link-layer address of a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeighborAdvertisement {
    /// The sender is a router.
    pub router: bool,
    /// The advertisement answers a solicitation.
    pub solicited: bool,
    /// The advertisement replaces what the receiver knows.
    pub overrides: bool,
    /// The address whose link-layer address is told.
    pub target: Ipv6Addr,
    /// Link-layer address of the target.
    pub target_link_address: Option<MacAddr>,
}

impl NeighborAdvertisement {
    pub(super) fn parse(code: u8, body: &[u8]) -> Result<Self, WireError> {
        let target = parse_target(ADVERTISEMENT, code, body)?;
        let flags = body[field::FLAGS];
        Ok(Self {
            router: flags & field::ROUTER != 0,
            solicited: flags & field::SOLICITED != 0,
            overrides: flags & field::OVERRIDE != 0,
            target,
            target_link_address: link_address(ADVERTISEMENT, body, OPTION_TARGET)?,
        })
    }

    /// Checks what RFC 4861 §7.1.2 demands of the IPv6 header that carried the advertisement.
    ///
    /// # Errors
    /// [`WireError::Field`] if the hop limit is not 255 (the packet came from another link), or if
    /// an answer was sent to a group.
    pub fn check_ip_header(&self, ip: &Ipv6Repr) -> Result<(), WireError> {
        check_hop_limit(ADVERTISEMENT, ip)?;
        if self.solicited && ip.destination.is_multicast() {
            let expected = "clear if the destination is a multicast address";
            return Err(malformed(ADVERTISEMENT, "solicited flag", 1, expected));
        }
        Ok(())
    }

    pub(super) fn buffer_len(&self) -> usize {
        body_len(self.target_link_address)
    }

    pub(super) fn emit(&self, buffer: &mut [u8]) {
        let flags = [
            (self.router, field::ROUTER),
            (self.solicited, field::SOLICITED),
            (self.overrides, field::OVERRIDE),
        ];
        let flags = flags.iter().filter(|(set, _)| *set).fold(0, |all, (_, flag)| all | flag);
        emit(buffer, flags, self.target, OPTION_TARGET, self.target_link_address);
    }
}

fn parse_target(header: &'static str, code: u8, body: &[u8]) -> Result<Ipv6Addr, WireError> {
    if code != 0 {
        return Err(malformed(header, "code", code.into(), "0"));
    }
    require(header, body, field::OPTIONS)?;
    let target = Ipv6Addr::from(get::<16>(body, field::TARGET));
    if target.is_multicast() {
        return Err(malformed(header, "target address", 0xff, "no multicast address"));
    }
    Ok(target)
}

/// Walks all options, so that a malformed one is noticed, and returns the first of type `wanted`.
fn link_address(
    header: &'static str,
    body: &[u8],
    wanted: u8,
) -> Result<Option<MacAddr>, WireError> {
    let mut found = None;
    let mut rest = &body[field::OPTIONS..];
    while !rest.is_empty() {
        require(header, rest, field::OPTION_UNIT)?;
        let length = usize::from(rest[field::OPTION_LEN]) * field::OPTION_UNIT;
        if length == 0 {
            return Err(malformed(header, "option length", 0, "1 or more"));
        }
        require(header, rest, length)?;
        let (option, next) = rest.split_at(length);
        if found.is_none() && option[field::OPTION_TYPE] == wanted {
            if length != field::OPTION_UNIT {
                let expected = "1 for an ethernet address";
                return Err(malformed(header, "option length", option[1].into(), expected));
            }
            found = Some(MacAddr(get(option, field::LINK_LAYER_ADDRESS)));
        }
        rest = next;
    }
    Ok(found)
}

fn check_hop_limit(header: &'static str, ip: &Ipv6Repr) -> Result<(), WireError> {
    if ip.hop_limit != 255 {
        return Err(malformed(header, "hop limit", ip.hop_limit.into(), "255"));
    }
    Ok(())
}

fn body_len(link_address: Option<MacAddr>) -> usize {
    field::OPTIONS + link_address.map_or(0, |_| field::OPTION_UNIT)
}

fn emit(buffer: &mut [u8], flags: u8, target: Ipv6Addr, option: u8, address: Option<MacAddr>) {
    buffer[field::FLAGS] = flags;
    put(buffer, field::RESERVED, &[0; 3]);
    put(buffer, field::TARGET, &target.octets());
    if let Some(address) = address {
        let buffer = &mut buffer[field::OPTIONS..];
        buffer[field::OPTION_TYPE] = option;
        buffer[field::OPTION_LEN] = 1;
        put(buffer, field::LINK_LAYER_ADDRESS, &address.0);
    }
}

fn malformed(
    header: &'static str,
    field: &'static str,
    value: u32,
    expected: &'static str,
) -> WireError {
    WireError::Field { header, field, value, expected }
}
