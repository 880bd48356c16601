//! The fixed IPv6 header.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------+---------------+---------------------------------------+
//! |version| traffic class |              flow label               |
//! +-------+---------------+-------+---------------+---------------+
//! |        payload length         |  next header  |   hop limit   |
//! +-------------------------------+---------------+---------------+
//! |                   source address (128 bits)                   |
//! +---------------------------------------------------------------+
//! |                 destination address (128 bits)                |
//! +---------------------------------------------------------------+
//! ```
//!
//! Reference: RFC 8200 §3. Offsets are in bits. Extension headers are part of the payload here;
//! jumbograms (RFC 2675), which state a length of zero, appear with an empty payload.

use core::net::Ipv6Addr;

use crate::bytes::{get, get_u16, get_u32, put, put_u16, put_u32, require, require_space};
use crate::{IpProtocol, WireError};

const HEADER: &str = "ipv6 header";
const VERSION: u8 = 6;

mod field {
    use core::ops::Range;

    pub(super) const VERSION_CLASS_FLOW: Range<usize> = 0..4;
    pub(super) const PAYLOAD_LEN: Range<usize> = 4..6;
    pub(super) const NEXT_HEADER: usize = 6;
    pub(super) const HOP_LIMIT: usize = 7;
    pub(super) const SOURCE: Range<usize> = 8..24;
    pub(super) const DESTINATION: Range<usize> = 24..40;

    pub(super) const VERSION_SHIFT: u32 = 28;
    pub(super) const CLASS_SHIFT: u32 = 20;
    pub(super) const FLOW_LABEL: u32 = 0x000f_ffff;
}

/// Length of the fixed header in bytes.
pub const IPV6_HEADER_LEN: usize = field::DESTINATION.end;

/// A view of an IPv6 packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv6Packet<T> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Ipv6Packet<T> {
    /// Views `buffer` as a packet; bytes after the payload length (Ethernet padding) are ignored.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if the buffer ends before the header or before the payload length;
    /// [`WireError::Field`] if the version is not 6.
    pub fn new_checked(buffer: T) -> Result<Self, WireError> {
        let data = buffer.as_ref();
        require(HEADER, data, IPV6_HEADER_LEN)?;
        let version = get_u32(data, field::VERSION_CLASS_FLOW) >> field::VERSION_SHIFT;
        if version != VERSION.into() {
            return Err(WireError::Field {
                header: HEADER,
                field: "version",
                value: version,
                expected: "6",
            });
        }
        let payload_len = get_u16(data, field::PAYLOAD_LEN);
        require(HEADER, data, IPV6_HEADER_LEN + usize::from(payload_len))?;
        Ok(Self { buffer })
    }

    /// Gives the buffer back.
    pub fn into_inner(self) -> T {
        self.buffer
    }

    /// DSCP (upper 6 bits) and ECN (lower 2 bits).
    pub fn traffic_class(&self) -> u8 {
        (get_u32(self.buffer.as_ref(), field::VERSION_CLASS_FLOW) >> field::CLASS_SHIFT) as u8
    }

    /// Flow label, 20 bits.
    pub fn flow_label(&self) -> u32 {
        get_u32(self.buffer.as_ref(), field::VERSION_CLASS_FLOW) & field::FLOW_LABEL
    }

    /// Length of everything after the fixed header in bytes.
    pub fn payload_len(&self) -> usize {
        get_u16(self.buffer.as_ref(), field::PAYLOAD_LEN).into()
    }

    /// The type of the header that follows.
    pub fn next_header(&self) -> IpProtocol {
        IpProtocol(self.buffer.as_ref()[field::NEXT_HEADER])
    }

    /// Hops that are left.
    pub fn hop_limit(&self) -> u8 {
        self.buffer.as_ref()[field::HOP_LIMIT]
    }

    /// Source address.
    pub fn source(&self) -> Ipv6Addr {
        Ipv6Addr::from(get::<16>(self.buffer.as_ref(), field::SOURCE))
    }

    /// Destination address.
    pub fn destination(&self) -> Ipv6Addr {
        Ipv6Addr::from(get::<16>(self.buffer.as_ref(), field::DESTINATION))
    }

    /// Everything after the fixed header, extension headers included, without padding.
    pub fn payload(&self) -> &[u8] {
        &self.buffer.as_ref()[IPV6_HEADER_LEN..IPV6_HEADER_LEN + self.payload_len()]
    }
}

impl<'a> Ipv6Packet<&'a [u8]> {
    /// Everything after the fixed header, for as long as the buffer lives.
    pub fn into_payload(self) -> &'a [u8] {
        &self.buffer[IPV6_HEADER_LEN..IPV6_HEADER_LEN + self.payload_len()]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Ipv6Packet<T> {
    /// Takes one hop off the hop limit.
    ///
    /// # Errors
    /// [`WireError::HopLimitExceeded`] if the hop limit is 0 or 1: the packet stays as it is and
    /// must not be forwarded (RFC 8200 §3).
    pub fn decrement_hop_limit(&mut self) -> Result<(), WireError> {
        if self.hop_limit() <= 1 {
            return Err(WireError::HopLimitExceeded { header: HEADER });
        }
        self.buffer.as_mut()[field::HOP_LIMIT] -= 1;
        Ok(())
    }

    /// Changes the hops that are left.
    pub fn set_hop_limit(&mut self, hops: u8) {
        self.buffer.as_mut()[field::HOP_LIMIT] = hops;
    }

    /// Changes the source address. Checksums of the payload cover it.
    pub fn set_source(&mut self, address: Ipv6Addr) {
        put(self.buffer.as_mut(), field::SOURCE, &address.octets());
    }

    /// Changes the destination address. Checksums of the payload cover it.
    pub fn set_destination(&mut self, address: Ipv6Addr) {
        put(self.buffer.as_mut(), field::DESTINATION, &address.octets());
    }

    /// Everything after the fixed header, to be changed.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let range = IPV6_HEADER_LEN..IPV6_HEADER_LEN + self.payload_len();
        &mut self.buffer.as_mut()[range]
    }
}

/// The content of the fixed IPv6 header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv6Repr {
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
    /// The type of the header that follows.
    pub next_header: IpProtocol,
    /// Hops that are left.
    pub hop_limit: u8,
    /// DSCP (upper 6 bits) and ECN (lower 2 bits).
    pub traffic_class: u8,
    /// Flow label, at most 20 bits.
    pub flow_label: u32,
    /// Length of what follows the header, in bytes.
    pub payload_len: usize,
}

impl Ipv6Repr {
    /// The longest payload in bytes (without the jumbograms of RFC 2675).
    pub const MAX_PAYLOAD_LEN: usize = u16::MAX as usize;

    /// Reads the header of `packet`.
    pub fn parse<T: AsRef<[u8]>>(packet: &Ipv6Packet<T>) -> Self {
        Self {
            source: packet.source(),
            destination: packet.destination(),
            next_header: packet.next_header(),
            hop_limit: packet.hop_limit(),
            traffic_class: packet.traffic_class(),
            flow_label: packet.flow_label(),
            payload_len: packet.payload_len(),
        }
    }

    /// Length of the header in bytes.
    pub const fn buffer_len(&self) -> usize {
        IPV6_HEADER_LEN
    }

    /// Writes the header to the first [`IPV6_HEADER_LEN`] bytes of `buffer`.
    ///
    /// # Errors
    /// [`WireError::NoSpace`] if the buffer is shorter; [`WireError::PayloadTooLong`] if the payload
    /// exceeds [`Ipv6Repr::MAX_PAYLOAD_LEN`]; [`WireError::Field`] if the flow label exceeds 20 bits.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), WireError> {
        let payload_len = u16::try_from(self.payload_len);
        let payload_len = payload_len.map_err(|_| WireError::PayloadTooLong {
            header: HEADER,
            length: self.payload_len,
            limit: Self::MAX_PAYLOAD_LEN,
        })?;
        if self.flow_label > field::FLOW_LABEL {
            return Err(WireError::Field {
                header: HEADER,
                field: "flow label",
                value: self.flow_label,
                expected: "at most 1048575",
            });
        }
        let header = require_space(HEADER, buffer, IPV6_HEADER_LEN)?;
        let first = u32::from(VERSION) << field::VERSION_SHIFT
            | u32::from(self.traffic_class) << field::CLASS_SHIFT
            | self.flow_label;
        put_u32(header, field::VERSION_CLASS_FLOW, first);
        put_u16(header, field::PAYLOAD_LEN, payload_len);
        header[field::NEXT_HEADER] = self.next_header.0;
        header[field::HOP_LIMIT] = self.hop_limit;
        put(header, field::SOURCE, &self.source.octets());
        put(header, field::DESTINATION, &self.destination.octets());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{check_no_space, check_truncation, ipv6};
    use proptest::prelude::*;

    fn repr() -> impl Strategy<Value = Ipv6Repr> {
        let addresses = (ipv6(), ipv6());
        (addresses, any::<(u8, u8, u8)>(), 0u32..1 << 20, 0usize..200).prop_map(
            |((source, destination), rest, flow_label, payload_len)| Ipv6Repr {
                source,
                destination,
                next_header: IpProtocol(rest.0),
                hop_limit: rest.1,
                traffic_class: rest.2,
                flow_label,
                payload_len,
            },
        )
    }

    fn emitted(repr: &Ipv6Repr) -> Vec<u8> {
        let mut bytes = vec![0x5a; IPV6_HEADER_LEN + repr.payload_len];
        repr.emit(&mut bytes).unwrap();
        bytes
    }

    fn example() -> Ipv6Repr {
        Ipv6Repr {
            source: "2001:db8::1".parse().unwrap(),
            destination: "2001:db8::2".parse().unwrap(),
            next_header: IpProtocol::UDP,
            hop_limit: 64,
            traffic_class: 0xb9,
            flow_label: 0x12345,
            payload_len: 2,
        }
    }

    // Field order and sizes: RFC 8200 §3.
    #[test]
    fn header_has_the_bytes_of_rfc_8200() {
        let mut expected = vec![0x6b, 0x91, 0x23, 0x45, 0, 2, 17, 64];
        expected.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        expected.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        expected.extend([0x5a, 0x5a]);
        assert_eq!(emitted(&example()), expected);
    }

    #[test]
    fn other_versions_are_refused_and_padding_is_ignored() {
        let mut bytes = emitted(&example());
        bytes.extend([0; 9]);
        let packet = Ipv6Packet::new_checked(&bytes[..]).unwrap();
        assert_eq!(packet.payload(), [0x5a, 0x5a]);
        assert_eq!(packet.into_payload(), [0x5a, 0x5a]);
        bytes[0] = 0x45;
        let result = Ipv6Packet::new_checked(&bytes[..]);
        assert!(matches!(result, Err(WireError::Field { field: "version", value: 4, .. })));
    }

    #[test]
    fn the_last_hop_is_not_forwarded() {
        for (hop_limit, left) in [(0, None), (1, None), (2, Some(1)), (255, Some(254))] {
            let mut bytes = emitted(&Ipv6Repr { hop_limit, ..example() });
            let mut packet = Ipv6Packet::new_checked(&mut bytes[..]).unwrap();
            assert_eq!(packet.decrement_hop_limit().is_ok(), left.is_some());
            assert_eq!(packet.hop_limit(), left.unwrap_or(hop_limit));
        }
    }

    #[test]
    fn values_beyond_their_fields_are_refused() {
        let mut buffer = [0; IPV6_HEADER_LEN];
        let longest = Ipv6Repr { payload_len: 65535, ..example() };
        assert_eq!(longest.emit(&mut buffer), Ok(()));
        let longer = Ipv6Repr { payload_len: 65536, ..example() };
        assert!(matches!(longer.emit(&mut buffer), Err(WireError::PayloadTooLong { .. })));
        let label = Ipv6Repr { flow_label: 1 << 20, ..example() };
        assert!(matches!(label.emit(&mut buffer), Err(WireError::Field { .. })));
    }

    #[test]
    fn setters_change_what_they_name() {
        let mut bytes = emitted(&example());
        let mut packet = Ipv6Packet::new_checked(&mut bytes[..]).unwrap();
        packet.set_hop_limit(3);
        packet.set_source(Ipv6Addr::LOCALHOST);
        packet.set_destination(Ipv6Addr::UNSPECIFIED);
        packet.payload_mut()[1] = 1;
        assert_eq!(packet.payload(), [0x5a, 1]);
        let expected = Ipv6Repr {
            hop_limit: 3,
            source: Ipv6Addr::LOCALHOST,
            destination: Ipv6Addr::UNSPECIFIED,
            ..example()
        };
        assert_eq!(Ipv6Repr::parse(&packet), expected);
    }

    proptest! {
        #[test]
        fn parse_of_emit_is_the_value(repr in repr()) {
            let bytes = emitted(&repr);
            prop_assert_eq!(Ipv6Repr::parse(&Ipv6Packet::new_checked(&bytes[..]).unwrap()), repr);
            check_truncation(&bytes, |bytes| Ipv6Packet::new_checked(bytes).map(drop));
            check_no_space(repr.buffer_len(), |buffer| repr.emit(buffer));
        }

        #[test]
        fn emit_of_parse_is_the_bytes(mut bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if bytes.len() >= IPV6_HEADER_LEN {
                bytes[0] = 0x60 | bytes[0] & 0x0f;
                bytes[4] = 0;
            }
            if let Ok(packet) = Ipv6Packet::new_checked(&bytes[..]) {
                let repr = Ipv6Repr::parse(&packet);
                prop_assert_eq!(packet.payload().len(), repr.payload_len);
                let mut copy = bytes.clone();
                copy[..IPV6_HEADER_LEN].fill(0);
                repr.emit(&mut copy).unwrap();
                prop_assert_eq!(&copy, &bytes);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = Ipv6Packet::new_checked(bytes).map(|packet| Ipv6Repr::parse(&packet));
        }

        #[test]
        fn etherparse_reads_and_writes_the_same(repr in repr()) {
            let bytes = emitted(&repr);
            let theirs = etherparse::Ipv6HeaderSlice::from_slice(&bytes).unwrap().to_header();
            prop_assert_eq!(theirs.source_addr(), repr.source);
            prop_assert_eq!(theirs.destination_addr(), repr.destination);
            prop_assert_eq!(theirs.next_header.0, repr.next_header.0);
            prop_assert_eq!(theirs.hop_limit, repr.hop_limit);
            prop_assert_eq!(theirs.traffic_class, repr.traffic_class);
            prop_assert_eq!(theirs.flow_label.value(), repr.flow_label);
            prop_assert_eq!(&theirs.to_bytes()[..], &bytes[..IPV6_HEADER_LEN]);
        }
    }
}
