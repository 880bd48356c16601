//! ICMPv6 messages: echo, packet too big and neighbour discovery.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |     type      |     code      |           checksum            |
//! +---------------+---------------+-------------------------------+
//! |                     body, depends on type
//! ```
//!
//! Reference: RFC 4443 §2.1 (form), §2.3 (checksum), §3.2 (packet too big), §4.1-4.2 (echo);
//! RFC 4861 §4.3-4.4 (neighbour solicitation and advertisement). Offsets are in bits.
//!
//! Messages that this module does not read survive as [`Icmpv6Repr::Other`].

mod neighbor;

use core::net::Ipv6Addr;

use crate::bytes::{get_u16, get_u32, put, put_u16, put_u32, require, require_space};
use crate::{IpProtocol, PseudoHeader, WireError};

pub use neighbor::{NeighborAdvertisement, NeighborSolicitation, solicited_node};

const HEADER: &str = "icmpv6 message";

mod field {
    use core::ops::Range;

    pub(super) const TYPE: usize = 0;
    pub(super) const CODE: usize = 1;
    pub(super) const CHECKSUM: Range<usize> = 2..4;

    // In the body of echo messages.
    pub(super) const IDENTIFIER: Range<usize> = 0..2;
    pub(super) const SEQUENCE: Range<usize> = 2..4;
    // In the body of "packet too big".
    pub(super) const MTU: Range<usize> = 0..4;
    /// Echo and "packet too big" carry data after this many bytes of their body.
    pub(super) const DATA: usize = 4;
}

/// Length of type, code and checksum in bytes.
pub const ICMPV6_HEADER_LEN: usize = field::CHECKSUM.end;

/// What a message is about (IANA, "ICMPv6 Parameters"). Numbers that are not named here survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Icmpv6Type(pub u8);

impl Icmpv6Type {
    /// A packet exceeded the MTU of the next link.
    pub const PACKET_TOO_BIG: Self = Self(2);
    /// Asks for an echo.
    pub const ECHO_REQUEST: Self = Self(128);
    /// The echo.
    pub const ECHO_REPLY: Self = Self(129);
    /// Asks for the link-layer address of a neighbour.
    pub const NEIGHBOR_SOLICITATION: Self = Self(135);
    /// Tells the link-layer address of a neighbour.
    pub const NEIGHBOR_ADVERTISEMENT: Self = Self(136);

    /// Whether the message reports an error, and so must not be answered by another one.
    pub const fn is_error(self) -> bool {
        self.0 < 128
    }
}

/// A view of an ICMPv6 message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Icmpv6Message<T> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Icmpv6Message<T> {
    /// Views `buffer`, the whole payload of an IPv6 packet, as a message.
    ///
    /// The checksum is not verified here, see [`Icmpv6Message::verify_checksum`].
    ///
    /// # Errors
    /// [`WireError::Truncated`] if the buffer is shorter than type, code and checksum.
    pub fn new_checked(buffer: T) -> Result<Self, WireError> {
        require(HEADER, buffer.as_ref(), ICMPV6_HEADER_LEN)?;
        Ok(Self { buffer })
    }

    /// Gives the buffer back.
    pub fn into_inner(self) -> T {
        self.buffer
    }

    /// What the message is about.
    pub fn message_type(&self) -> Icmpv6Type {
        Icmpv6Type(self.buffer.as_ref()[field::TYPE])
    }

    /// A number that refines the type.
    pub fn code(&self) -> u8 {
        self.buffer.as_ref()[field::CODE]
    }

    /// The checksum as it stands in the message.
    pub fn checksum(&self) -> u16 {
        get_u16(self.buffer.as_ref(), field::CHECKSUM)
    }

    /// Everything after the checksum.
    pub fn body(&self) -> &[u8] {
        &self.buffer.as_ref()[ICMPV6_HEADER_LEN..]
    }

    /// Whether the checksum is right for a message between these addresses.
    pub fn verify_checksum(&self, source: Ipv6Addr, destination: Ipv6Addr) -> bool {
        PseudoHeader::V6 { source, destination }.is_valid(IpProtocol::ICMPV6, self.buffer.as_ref())
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Icmpv6Message<T> {
    /// Computes the checksum anew, for a message between these addresses.
    pub fn fill_checksum(&mut self, source: Ipv6Addr, destination: Ipv6Addr) {
        fill_checksum(self.buffer.as_mut(), source, destination);
    }
}

fn fill_checksum(message: &mut [u8], source: Ipv6Addr, destination: Ipv6Addr) {
    put_u16(message, field::CHECKSUM, 0);
    let addresses = PseudoHeader::V6 { source, destination };
    let checksum = addresses.checksum(IpProtocol::ICMPV6, message);
    put_u16(message, field::CHECKSUM, checksum);
}

/// The content of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Icmpv6Repr<'a> {
    /// A packet exceeded the MTU of the next link.
    PacketTooBig {
        /// MTU of that link in bytes.
        mtu: u32,
        /// The beginning of the packet.
        invoking: &'a [u8],
    },
    /// Asks for an echo.
    EchoRequest {
        /// Tells requests of different programs apart.
        identifier: u16,
        /// Tells requests of one program apart.
        sequence: u16,
        /// Comes back in the echo.
        data: &'a [u8],
    },
    /// The echo.
    EchoReply {
        /// As in the request.
        identifier: u16,
        /// As in the request.
        sequence: u16,
        /// As in the request.
        data: &'a [u8],
    },
    /// Asks for the link-layer address of a neighbour.
    NeighborSolicitation(NeighborSolicitation),
    /// Tells the link-layer address of a neighbour.
    NeighborAdvertisement(NeighborAdvertisement),
    /// Any other message, unread.
    Other {
        /// What the message is about.
        message_type: Icmpv6Type,
        /// A number that refines the type.
        code: u8,
        /// Everything after the checksum.
        body: &'a [u8],
    },
}

impl<'a> Icmpv6Repr<'a> {
    /// Reads `message`, which travelled between these addresses.
    ///
    /// Neighbour discovery has rules about the IPv6 header as well: check them with
    /// [`NeighborSolicitation::check_ip_header`] and [`NeighborAdvertisement::check_ip_header`].
    ///
    /// # Errors
    /// [`WireError::Checksum`] if the checksum is wrong; [`WireError::Truncated`] or
    /// [`WireError::Field`] if the body breaks a rule of its type. The code of "packet too big" is
    /// ignored (RFC 4443 §3.2).
    pub fn parse(
        message: &Icmpv6Message<&'a [u8]>,
        source: Ipv6Addr,
        destination: Ipv6Addr,
    ) -> Result<Self, WireError> {
        if !message.verify_checksum(source, destination) {
            return Err(WireError::Checksum { header: HEADER });
        }
        let (message_type, code) = (message.message_type(), message.code());
        let body = &message.buffer[ICMPV6_HEADER_LEN..];
        match message_type {
            Icmpv6Type::PACKET_TOO_BIG => {
                let (head, invoking) = split_data(body)?;
                Ok(Self::PacketTooBig { mtu: get_u32(head, field::MTU), invoking })
            }
            Icmpv6Type::ECHO_REQUEST if code == 0 => {
                let (identifier, sequence, data) = parse_echo(body)?;
                Ok(Self::EchoRequest { identifier, sequence, data })
            }
            Icmpv6Type::ECHO_REPLY if code == 0 => {
                let (identifier, sequence, data) = parse_echo(body)?;
                Ok(Self::EchoReply { identifier, sequence, data })
            }
            Icmpv6Type::NEIGHBOR_SOLICITATION => {
                NeighborSolicitation::parse(code, body).map(Self::NeighborSolicitation)
            }
            Icmpv6Type::NEIGHBOR_ADVERTISEMENT => {
                NeighborAdvertisement::parse(code, body).map(Self::NeighborAdvertisement)
            }
            _ => Ok(Self::Other { message_type, code, body }),
        }
    }

    /// Length of the message in bytes.
    pub fn buffer_len(&self) -> usize {
        ICMPV6_HEADER_LEN
            + match self {
                Self::PacketTooBig { invoking: data, .. }
                | Self::EchoRequest { data, .. }
                | Self::EchoReply { data, .. } => field::DATA + data.len(),
                Self::NeighborSolicitation(body) => body.buffer_len(),
                Self::NeighborAdvertisement(body) => body.buffer_len(),
                Self::Other { body, .. } => body.len(),
            }
    }

    /// Writes the message, with the checksum for these addresses, to the first
    /// [`Icmpv6Repr::buffer_len`] bytes of `buffer`.
    ///
    /// # Errors
    /// [`WireError::NoSpace`] if the buffer is shorter.
    pub fn emit(
        &self,
        buffer: &mut [u8],
        source: Ipv6Addr,
        destination: Ipv6Addr,
    ) -> Result<(), WireError> {
        let message = require_space(HEADER, buffer, self.buffer_len())?;
        let (message_type, code) = self.type_and_code();
        message[field::TYPE] = message_type.0;
        message[field::CODE] = code;
        self.emit_body(&mut message[ICMPV6_HEADER_LEN..]);
        fill_checksum(message, source, destination);
        Ok(())
    }

    fn type_and_code(&self) -> (Icmpv6Type, u8) {
        match *self {
            Self::PacketTooBig { .. } => (Icmpv6Type::PACKET_TOO_BIG, 0),
            Self::EchoRequest { .. } => (Icmpv6Type::ECHO_REQUEST, 0),
            Self::EchoReply { .. } => (Icmpv6Type::ECHO_REPLY, 0),
            Self::NeighborSolicitation(_) => (Icmpv6Type::NEIGHBOR_SOLICITATION, 0),
            Self::NeighborAdvertisement(_) => (Icmpv6Type::NEIGHBOR_ADVERTISEMENT, 0),
            Self::Other { message_type, code, .. } => (message_type, code),
        }
    }

    fn emit_body(&self, buffer: &mut [u8]) {
        match *self {
            Self::PacketTooBig { mtu, invoking } => {
                put_u32(buffer, field::MTU, mtu);
                buffer[field::DATA..].copy_from_slice(invoking);
            }
            Self::EchoRequest { identifier, sequence, data }
            | Self::EchoReply { identifier, sequence, data } => {
                put_u16(buffer, field::IDENTIFIER, identifier);
                put_u16(buffer, field::SEQUENCE, sequence);
                buffer[field::DATA..].copy_from_slice(data);
            }
            Self::NeighborSolicitation(body) => body.emit(buffer),
            Self::NeighborAdvertisement(body) => body.emit(buffer),
            Self::Other { body, .. } => put(buffer, 0..body.len(), body),
        }
    }
}

fn parse_echo(body: &[u8]) -> Result<(u16, u16, &[u8]), WireError> {
    let (head, data) = split_data(body)?;
    Ok((get_u16(head, field::IDENTIFIER), get_u16(head, field::SEQUENCE), data))
}

/// Splits a body into its fixed part and the data behind it.
fn split_data(body: &[u8]) -> Result<(&[u8], &[u8]), WireError> {
    require(HEADER, body, field::DATA)?;
    Ok(body.split_at(field::DATA))
}

#[cfg(test)]
mod tests;
