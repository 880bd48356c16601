//! UDP datagrams.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------------------------------+
//! |          source port          |       destination port        |
//! +-------------------------------+-------------------------------+
//! |            length             |           checksum            |
//! +-------------------------------+-------------------------------+
//! |                            payload
//! ```
//!
//! Reference: RFC 768; over IPv6 RFC 8200 §8.1. Offsets are in bits. A checksum of zero means "none"
//! over IPv4 and is refused over IPv6; a computed zero is sent as ffff.

use crate::bytes::{get_u16, put_u16, require, require_space};
use crate::{IpProtocol, PseudoHeader, WireError};

const HEADER: &str = "udp header";

mod field {
    use core::ops::Range;

    pub(super) const SOURCE_PORT: Range<usize> = 0..2;
    pub(super) const DESTINATION_PORT: Range<usize> = 2..4;
    pub(super) const LENGTH: Range<usize> = 4..6;
    pub(super) const CHECKSUM: Range<usize> = 6..8;
}

/// Length of the header in bytes.
pub const UDP_HEADER_LEN: usize = field::CHECKSUM.end;

/// A view of a UDP datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpDatagram<T> {
    buffer: T,
}

impl<T: AsRef<[u8]>> UdpDatagram<T> {
    /// Views `buffer` as a datagram; bytes after its length are ignored.
    ///
    /// The checksum is not verified here, see [`UdpDatagram::verify_checksum`].
    ///
    /// # Errors
    /// [`WireError::Truncated`] if the buffer ends before the header or before the stated length;
    /// [`WireError::Field`] if the stated length does not even cover the header.
    pub fn new_checked(buffer: T) -> Result<Self, WireError> {
        let data = buffer.as_ref();
        require(HEADER, data, UDP_HEADER_LEN)?;
        let length = get_u16(data, field::LENGTH);
        if usize::from(length) < UDP_HEADER_LEN {
            return Err(WireError::Field {
                header: HEADER,
                field: "length",
                value: length.into(),
                expected: "8 or more",
            });
        }
        require(HEADER, data, usize::from(length))?;
        Ok(Self { buffer })
    }

    /// Gives the buffer back.
    pub fn into_inner(self) -> T {
        self.buffer
    }

    /// Port of the sender.
    pub fn source_port(&self) -> u16 {
        get_u16(self.buffer.as_ref(), field::SOURCE_PORT)
    }

    /// Port of the receiver.
    pub fn destination_port(&self) -> u16 {
        get_u16(self.buffer.as_ref(), field::DESTINATION_PORT)
    }

    /// Length of header and payload in bytes.
    pub fn total_len(&self) -> usize {
        get_u16(self.buffer.as_ref(), field::LENGTH).into()
    }

    /// The checksum as it stands in the datagram.
    pub fn checksum(&self) -> u16 {
        get_u16(self.buffer.as_ref(), field::CHECKSUM)
    }

    /// What the datagram carries.
    pub fn payload(&self) -> &[u8] {
        &self.buffer.as_ref()[UDP_HEADER_LEN..self.total_len()]
    }

    /// Whether the checksum is right, or absent where it may be.
    pub fn verify_checksum(&self, addresses: &PseudoHeader) -> bool {
        if self.checksum() == 0 {
            return matches!(addresses, PseudoHeader::V4 { .. });
        }
        addresses.is_valid(IpProtocol::UDP, &self.buffer.as_ref()[..self.total_len()])
    }
}

impl<'a> UdpDatagram<&'a [u8]> {
    /// What the datagram carries, for as long as the buffer lives.
    pub fn into_payload(self) -> &'a [u8] {
        &self.buffer[UDP_HEADER_LEN..self.total_len()]
    }
}

/// Setters leave the checksum as it is: end with [`UdpDatagram::fill_checksum`].
impl<T: AsRef<[u8]> + AsMut<[u8]>> UdpDatagram<T> {
    /// Changes the port of the sender.
    pub fn set_source_port(&mut self, port: u16) {
        put_u16(self.buffer.as_mut(), field::SOURCE_PORT, port);
    }

    /// Changes the port of the receiver.
    pub fn set_destination_port(&mut self, port: u16) {
        put_u16(self.buffer.as_mut(), field::DESTINATION_PORT, port);
    }

    /// Computes the checksum anew.
    pub fn fill_checksum(&mut self, addresses: &PseudoHeader) {
        let length = self.total_len();
        fill_checksum(&mut self.buffer.as_mut()[..length], addresses);
    }

    /// What the datagram carries, to be changed.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let length = self.total_len();
        &mut self.buffer.as_mut()[UDP_HEADER_LEN..length]
    }
}

fn fill_checksum(datagram: &mut [u8], addresses: &PseudoHeader) {
    put_u16(datagram, field::CHECKSUM, 0);
    let checksum = match addresses.checksum(IpProtocol::UDP, datagram) {
        0 => 0xffff,
        checksum => checksum,
    };
    put_u16(datagram, field::CHECKSUM, checksum);
}

/// The content of a UDP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpRepr {
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
    /// Length of what follows the header, in bytes.
    pub payload_len: usize,
}

impl UdpRepr {
    /// The longest payload that the length field can state, in bytes. IPv4 allows 20 bytes less.
    pub const MAX_PAYLOAD_LEN: usize = u16::MAX as usize - UDP_HEADER_LEN;

    /// Reads the header of `datagram`, which travelled between `addresses`.
    ///
    /// # Errors
    /// [`WireError::Checksum`] if the checksum is wrong, or absent over IPv6.
    pub fn parse<T: AsRef<[u8]>>(
        datagram: &UdpDatagram<T>,
        addresses: &PseudoHeader,
    ) -> Result<Self, WireError> {
        if !datagram.verify_checksum(addresses) {
            return Err(WireError::Checksum { header: HEADER });
        }
        Ok(Self {
            source_port: datagram.source_port(),
            destination_port: datagram.destination_port(),
            payload_len: datagram.total_len() - UDP_HEADER_LEN,
        })
    }

    /// Length of the header in bytes.
    pub const fn buffer_len(&self) -> usize {
        UDP_HEADER_LEN
    }

    /// Writes the header to the first [`UDP_HEADER_LEN`] bytes of `buffer`, before the payload that
    /// already stands behind them, and computes the checksum over both.
    ///
    /// # Errors
    /// [`WireError::NoSpace`] if the buffer is shorter than header and payload;
    /// [`WireError::PayloadTooLong`] if the payload exceeds [`UdpRepr::MAX_PAYLOAD_LEN`].
    pub fn emit(&self, buffer: &mut [u8], addresses: &PseudoHeader) -> Result<(), WireError> {
        let length = u16::try_from(UDP_HEADER_LEN.saturating_add(self.payload_len));
        let length = length.map_err(|_| WireError::PayloadTooLong {
            header: HEADER,
            length: self.payload_len,
            limit: Self::MAX_PAYLOAD_LEN,
        })?;
        let datagram = require_space(HEADER, buffer, length.into())?;
        put_u16(datagram, field::SOURCE_PORT, self.source_port);
        put_u16(datagram, field::DESTINATION_PORT, self.destination_port);
        put_u16(datagram, field::LENGTH, length);
        fill_checksum(datagram, addresses);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
