//! IPv4 headers.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------+-------+-----------+---+-------------------------------+
//! |version|  IHL  |   DSCP    |ECN|         total length          |
//! +-------+-------+-----------+---+-----+-------------------------+
//! |        identification         |0 D M|    fragment offset      |
//! +---------------+---------------+-----+-------------------------+
//! | time to live  |   protocol    |        header checksum        |
//! +---------------+---------------+-------------------------------+
//! |                        source address                         |
//! +---------------------------------------------------------------+
//! |                      destination address                      |
//! +---------------------------------------------------------------+
//! |                    options, if IHL exceeds 5                  |
//! ```
//!
//! Reference: RFC 791 §3.1; DSCP RFC 2474, ECN RFC 3168; incremental checksum RFC 1624. Offsets are
//! in bits; D is "don't fragment", M "more fragments".
//!
//! Options are skipped: their bytes can be read, their meaning is not looked at, and [`Ipv4Repr`]
//! writes none. Fragments are recognised and refused by [`Ipv4Repr::parse`]; a forwarder uses the
//! view alone and passes them on.

use core::net::Ipv4Addr;

use crate::bytes::{get, get_u16, put, put_u16, require, require_space};
use crate::checksum;
use crate::{IpProtocol, WireError};

const HEADER: &str = "ipv4 header";
const VERSION: u8 = 4;

mod field {
    use core::ops::Range;

    pub(super) const VERSION_IHL: usize = 0;
    pub(super) const TRAFFIC_CLASS: usize = 1;
    pub(super) const TOTAL_LEN: Range<usize> = 2..4;
    pub(super) const IDENTIFICATION: Range<usize> = 4..6;
    pub(super) const FLAGS_FRAGMENT: Range<usize> = 6..8;
    pub(super) const TTL: usize = 8;
    /// Time to live and protocol: the word of the checksum that a forwarder changes.
    pub(super) const TTL_PROTOCOL: Range<usize> = 8..10;
    pub(super) const PROTOCOL: usize = 9;
    pub(super) const CHECKSUM: Range<usize> = 10..12;
    pub(super) const SOURCE: Range<usize> = 12..16;
    pub(super) const DESTINATION: Range<usize> = 16..20;

    pub(super) const DONT_FRAGMENT: u16 = 0x4000;
    pub(super) const MORE_FRAGMENTS: u16 = 0x2000;
    pub(super) const FRAGMENT_OFFSET: u16 = 0x1fff;
}

/// Length of a header without options in bytes.
pub const IPV4_HEADER_LEN: usize = field::DESTINATION.end;

/// A view of an IPv4 packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv4Packet<T> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Ipv4Packet<T> {
    /// Views `buffer` as a packet; bytes after the total length (Ethernet padding) are ignored.
    ///
    /// The checksum is not verified here, see [`Ipv4Packet::verify_checksum`].
    ///
    /// # Errors
    /// [`WireError::Truncated`] if the buffer ends before the header or before the total length;
    /// [`WireError::Field`] if the version is not 4 or the lengths contradict each other.
    pub fn new_checked(buffer: T) -> Result<Self, WireError> {
        let data = buffer.as_ref();
        require(HEADER, data, IPV4_HEADER_LEN)?;
        let version = data[field::VERSION_IHL] >> 4;
        if version != VERSION {
            return Err(malformed("version", version.into(), "4"));
        }
        let header_len = header_len(data);
        if header_len < IPV4_HEADER_LEN {
            return Err(malformed("header length", (header_len / 4) as u32, "5 or more words"));
        }
        let total_len = get_u16(data, field::TOTAL_LEN);
        if usize::from(total_len) < header_len {
            return Err(malformed("total length", total_len.into(), "at least the header length"));
        }
        require(HEADER, data, usize::from(total_len))?;
        Ok(Self { buffer })
    }

    /// Gives the buffer back.
    pub fn into_inner(self) -> T {
        self.buffer
    }

    /// Length of the header with its options, 20 to 60 bytes.
    pub fn header_len(&self) -> usize {
        header_len(self.buffer.as_ref())
    }

    /// Length of header and payload in bytes.
    pub fn total_len(&self) -> usize {
        get_u16(self.buffer.as_ref(), field::TOTAL_LEN).into()
    }

    /// Differentiated services code point (upper 6 bits) and ECN (lower 2 bits).
    pub fn traffic_class(&self) -> u8 {
        self.buffer.as_ref()[field::TRAFFIC_CLASS]
    }

    /// What the fragments of one packet have in common.
    pub fn identification(&self) -> u16 {
        get_u16(self.buffer.as_ref(), field::IDENTIFICATION)
    }

    /// Whether routers must not fragment the packet.
    pub fn dont_fragment(&self) -> bool {
        self.flags_fragment() & field::DONT_FRAGMENT != 0
    }

    /// Whether further fragments follow this one.
    pub fn more_fragments(&self) -> bool {
        self.flags_fragment() & field::MORE_FRAGMENTS != 0
    }

    /// Where in the whole payload this fragment begins, in bytes.
    pub fn fragment_offset(&self) -> usize {
        usize::from(self.flags_fragment() & field::FRAGMENT_OFFSET) * 8
    }

    /// Whether this is a fragment of a packet and not a whole one.
    pub fn is_fragment(&self) -> bool {
        self.more_fragments() || self.fragment_offset() != 0
    }

    /// Time to live in hops.
    pub fn ttl(&self) -> u8 {
        self.buffer.as_ref()[field::TTL]
    }

    /// The protocol of the payload.
    pub fn protocol(&self) -> IpProtocol {
        IpProtocol(self.buffer.as_ref()[field::PROTOCOL])
    }

    /// The header checksum as it stands in the packet.
    pub fn checksum(&self) -> u16 {
        get_u16(self.buffer.as_ref(), field::CHECKSUM)
    }

    /// Source address.
    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::from(get::<4>(self.buffer.as_ref(), field::SOURCE))
    }

    /// Destination address.
    pub fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::from(get::<4>(self.buffer.as_ref(), field::DESTINATION))
    }

    /// The options, uninterpreted.
    pub fn options(&self) -> &[u8] {
        &self.buffer.as_ref()[IPV4_HEADER_LEN..self.header_len()]
    }

    /// What the packet carries, without padding.
    pub fn payload(&self) -> &[u8] {
        &self.buffer.as_ref()[self.header_len()..self.total_len()]
    }

    /// Whether the header checksum is right.
    pub fn verify_checksum(&self) -> bool {
        checksum::is_valid(&self.buffer.as_ref()[..self.header_len()])
    }

    fn flags_fragment(&self) -> u16 {
        get_u16(self.buffer.as_ref(), field::FLAGS_FRAGMENT)
    }
}

impl<'a> Ipv4Packet<&'a [u8]> {
    /// What the packet carries, for as long as the buffer lives.
    pub fn into_payload(self) -> &'a [u8] {
        &self.buffer[self.header_len()..self.total_len()]
    }
}

/// Setters leave the checksum as it is, except where they say otherwise: end with
/// [`Ipv4Packet::fill_checksum`]. The lengths cannot be changed, [`Ipv4Repr`] writes them.
impl<T: AsRef<[u8]> + AsMut<[u8]>> Ipv4Packet<T> {
    /// Takes one hop off the time to live and updates the checksum incrementally.
    ///
    /// A wrong checksum stays wrong, so the receiver still notices a header that was damaged before.
    ///
    /// # Errors
    /// [`WireError::HopLimitExceeded`] if the time to live is 0 or 1: the packet stays as it is and
    /// must not be forwarded (RFC 1812 §5.3.1).
    pub fn decrement_ttl(&mut self) -> Result<(), WireError> {
        if self.ttl() <= 1 {
            return Err(WireError::HopLimitExceeded { header: HEADER });
        }
        let before = get_u16(self.buffer.as_ref(), field::TTL_PROTOCOL);
        self.buffer.as_mut()[field::TTL] -= 1;
        let after = get_u16(self.buffer.as_ref(), field::TTL_PROTOCOL);
        let checksum = checksum::update(self.checksum(), before, after);
        put_u16(self.buffer.as_mut(), field::CHECKSUM, checksum);
        Ok(())
    }

    /// Changes the time to live in hops.
    pub fn set_ttl(&mut self, hops: u8) {
        self.buffer.as_mut()[field::TTL] = hops;
    }

    /// Changes DSCP (upper 6 bits) and ECN (lower 2 bits).
    pub fn set_traffic_class(&mut self, value: u8) {
        self.buffer.as_mut()[field::TRAFFIC_CLASS] = value;
    }

    /// Changes the source address.
    pub fn set_source(&mut self, address: Ipv4Addr) {
        put(self.buffer.as_mut(), field::SOURCE, &address.octets());
    }

    /// Changes the destination address.
    pub fn set_destination(&mut self, address: Ipv4Addr) {
        put(self.buffer.as_mut(), field::DESTINATION, &address.octets());
    }

    /// Computes the header checksum anew.
    pub fn fill_checksum(&mut self) {
        let header_len = self.header_len();
        fill_checksum(&mut self.buffer.as_mut()[..header_len]);
    }

    /// What the packet carries, to be changed.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let range = self.header_len()..self.total_len();
        &mut self.buffer.as_mut()[range]
    }
}

fn header_len(data: &[u8]) -> usize {
    usize::from(data[field::VERSION_IHL] & 0x0f) * 4
}

fn fill_checksum(header: &mut [u8]) {
    put_u16(header, field::CHECKSUM, 0);
    let checksum = checksum::checksum(header);
    put_u16(header, field::CHECKSUM, checksum);
}

fn malformed(field: &'static str, value: u32, expected: &'static str) -> WireError {
    WireError::Field { header: HEADER, field, value, expected }
}

/// The content of the header of a whole packet, without options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv4Repr {
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// The protocol of the payload.
    pub protocol: IpProtocol,
    /// Time to live in hops.
    pub ttl: u8,
    /// DSCP (upper 6 bits) and ECN (lower 2 bits).
    pub traffic_class: u8,
    /// Identification; only fragments need it (RFC 6864).
    pub identification: u16,
    /// Whether routers must not fragment the packet.
    pub dont_fragment: bool,
    /// Length of what follows the header, in bytes.
    pub payload_len: usize,
}

impl Ipv4Repr {
    /// The longest payload that a packet without options can carry, in bytes.
    pub const MAX_PAYLOAD_LEN: usize = u16::MAX as usize - IPV4_HEADER_LEN;

    /// Reads the header of `packet`, without its options.
    ///
    /// # Errors
    /// [`WireError::Checksum`] if the header checksum is wrong, [`WireError::Fragment`] if the
    /// packet is a fragment.
    pub fn parse<T: AsRef<[u8]>>(packet: &Ipv4Packet<T>) -> Result<Self, WireError> {
        if !packet.verify_checksum() {
            return Err(WireError::Checksum { header: HEADER });
        }
        if packet.is_fragment() {
            return Err(WireError::Fragment { header: HEADER });
        }
        Ok(Self {
            source: packet.source(),
            destination: packet.destination(),
            protocol: packet.protocol(),
            ttl: packet.ttl(),
            traffic_class: packet.traffic_class(),
            identification: packet.identification(),
            dont_fragment: packet.dont_fragment(),
            payload_len: packet.total_len() - packet.header_len(),
        })
    }

    /// Length of the header in bytes.
    pub const fn buffer_len(&self) -> usize {
        IPV4_HEADER_LEN
    }

    /// Writes the header, checksum included, to the first [`IPV4_HEADER_LEN`] bytes of `buffer`.
    ///
    /// # Errors
    /// [`WireError::NoSpace`] if the buffer is shorter; [`WireError::PayloadTooLong`] if the payload
    /// exceeds [`Ipv4Repr::MAX_PAYLOAD_LEN`].
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), WireError> {
        let total_len = u16::try_from(IPV4_HEADER_LEN.saturating_add(self.payload_len));
        let total_len = total_len.map_err(|_| WireError::PayloadTooLong {
            header: HEADER,
            length: self.payload_len,
            limit: Self::MAX_PAYLOAD_LEN,
        })?;
        let header = require_space(HEADER, buffer, IPV4_HEADER_LEN)?;
        header[field::VERSION_IHL] = VERSION << 4 | (IPV4_HEADER_LEN / 4) as u8;
        header[field::TRAFFIC_CLASS] = self.traffic_class;
        put_u16(header, field::TOTAL_LEN, total_len);
        put_u16(header, field::IDENTIFICATION, self.identification);
        let flags = if self.dont_fragment { field::DONT_FRAGMENT } else { 0 };
        put_u16(header, field::FLAGS_FRAGMENT, flags);
        header[field::TTL] = self.ttl;
        header[field::PROTOCOL] = self.protocol.0;
        put(header, field::SOURCE, &self.source.octets());
        put(header, field::DESTINATION, &self.destination.octets());
        fill_checksum(header);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
