//! ARP for IPv4 over Ethernet.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------------------------------+
//! |      hardware type (1)        |    protocol type (0x0800)     |
//! +---------------+---------------+-------------------------------+
//! | hw length (6) |pro length (4) |          operation            |
//! +---------------+---------------+-------------------------------+
//! |                 sender hardware address                       |
//! |                               +-------------------------------+
//! |                               |  sender protocol address      |
//! +-------------------------------+-------------------------------+
//! |                               |                               |
//! +-------------------------------+  target hardware address      |
//! |                                                               |
//! +---------------------------------------------------------------+
//! |                 target protocol address                       |
//! +---------------------------------------------------------------+
//! ```
//!
//! Reference: RFC 826, "An Ethernet Address Resolution Protocol"; operation numbers: IANA, "ARP
//! Parameters". Offsets are in bits.

use core::net::Ipv4Addr;

use crate::bytes::{get, get_u16, put, put_u16, require, require_space};
use crate::{EtherType, MacAddr, WireError};

const HEADER: &str = "arp packet";
const HARDWARE_ETHERNET: u16 = 1;
const HARDWARE_LEN: u8 = 6;
const PROTOCOL_LEN: u8 = 4;

mod field {
    use core::ops::Range;

    pub(super) const HARDWARE_TYPE: Range<usize> = 0..2;
    pub(super) const PROTOCOL_TYPE: Range<usize> = 2..4;
    pub(super) const HARDWARE_LEN: usize = 4;
    pub(super) const PROTOCOL_LEN: usize = 5;
    pub(super) const OPERATION: Range<usize> = 6..8;
    pub(super) const SENDER_HARDWARE: Range<usize> = 8..14;
    pub(super) const SENDER_PROTOCOL: Range<usize> = 14..18;
    pub(super) const TARGET_HARDWARE: Range<usize> = 18..24;
    pub(super) const TARGET_PROTOCOL: Range<usize> = 24..28;
}

/// Length of an ARP packet for IPv4 over Ethernet in bytes.
pub const ARP_LEN: usize = field::TARGET_PROTOCOL.end;

/// What an ARP packet wants. Numbers that are not named here survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArpOperation(pub u16);

impl ArpOperation {
    /// Who has the target protocol address?
    pub const REQUEST: Self = Self(1);
    /// The sender has its protocol address.
    pub const REPLY: Self = Self(2);
}

/// A view of an ARP packet for IPv4 over Ethernet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArpPacket<T> {
    buffer: T,
}

impl<T: AsRef<[u8]>> ArpPacket<T> {
    /// Views `buffer` as an ARP packet; bytes after it (Ethernet padding) are ignored.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if the buffer is too short, [`WireError::Field`] if the packet is
    /// not about IPv4 over Ethernet.
    pub fn new_checked(buffer: T) -> Result<Self, WireError> {
        let data = buffer.as_ref();
        require(HEADER, data, ARP_LEN)?;
        let hardware = get_u16(data, field::HARDWARE_TYPE).into();
        expect("hardware type", hardware, HARDWARE_ETHERNET.into(), "1 (ethernet)")?;
        let protocol = get_u16(data, field::PROTOCOL_TYPE).into();
        expect("protocol type", protocol, EtherType::IPV4.0.into(), "2048 (ipv4)")?;
        let lengths = [data[field::HARDWARE_LEN], data[field::PROTOCOL_LEN]];
        expect("hardware address length", lengths[0].into(), HARDWARE_LEN.into(), "6")?;
        expect("protocol address length", lengths[1].into(), PROTOCOL_LEN.into(), "4")?;
        Ok(Self { buffer })
    }

    /// What the packet wants.
    pub fn operation(&self) -> ArpOperation {
        ArpOperation(get_u16(self.buffer.as_ref(), field::OPERATION))
    }

    /// Ethernet address of the sender.
    pub fn sender_hardware(&self) -> MacAddr {
        MacAddr(get(self.buffer.as_ref(), field::SENDER_HARDWARE))
    }

    /// IPv4 address of the sender.
    pub fn sender_protocol(&self) -> Ipv4Addr {
        Ipv4Addr::from(get::<4>(self.buffer.as_ref(), field::SENDER_PROTOCOL))
    }

    /// Ethernet address of the target; without meaning in a request.
    pub fn target_hardware(&self) -> MacAddr {
        MacAddr(get(self.buffer.as_ref(), field::TARGET_HARDWARE))
    }

    /// IPv4 address of the target.
    pub fn target_protocol(&self) -> Ipv4Addr {
        Ipv4Addr::from(get::<4>(self.buffer.as_ref(), field::TARGET_PROTOCOL))
    }
}

fn expect(
    field: &'static str,
    value: u32,
    wanted: u32,
    expected: &'static str,
) -> Result<(), WireError> {
    if value != wanted {
        return Err(WireError::Field { header: HEADER, field, value, expected });
    }
    Ok(())
}

/// The content of an ARP packet for IPv4 over Ethernet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArpRepr {
    /// What the packet wants.
    pub operation: ArpOperation,
    /// Ethernet address of the sender.
    pub sender_hardware: MacAddr,
    /// IPv4 address of the sender.
    pub sender_protocol: Ipv4Addr,
    /// Ethernet address of the target; [`MacAddr::UNSPECIFIED`] in a request.
    pub target_hardware: MacAddr,
    /// IPv4 address of the target.
    pub target_protocol: Ipv4Addr,
}

impl ArpRepr {
    /// Reads `packet`.
    pub fn parse<T: AsRef<[u8]>>(packet: &ArpPacket<T>) -> Self {
        Self {
            operation: packet.operation(),
            sender_hardware: packet.sender_hardware(),
            sender_protocol: packet.sender_protocol(),
            target_hardware: packet.target_hardware(),
            target_protocol: packet.target_protocol(),
        }
    }

    /// Length of the packet in bytes.
    pub const fn buffer_len(&self) -> usize {
        ARP_LEN
    }

    /// Writes the packet to the first [`ARP_LEN`] bytes of `buffer`.
    ///
    /// # Errors
    /// [`WireError::NoSpace`] if the buffer is shorter.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), WireError> {
        let packet = require_space(HEADER, buffer, ARP_LEN)?;
        put_u16(packet, field::HARDWARE_TYPE, HARDWARE_ETHERNET);
        put_u16(packet, field::PROTOCOL_TYPE, EtherType::IPV4.0);
        packet[field::HARDWARE_LEN] = HARDWARE_LEN;
        packet[field::PROTOCOL_LEN] = PROTOCOL_LEN;
        put_u16(packet, field::OPERATION, self.operation.0);
        put(packet, field::SENDER_HARDWARE, &self.sender_hardware.0);
        put(packet, field::SENDER_PROTOCOL, &self.sender_protocol.octets());
        put(packet, field::TARGET_HARDWARE, &self.target_hardware.0);
        put(packet, field::TARGET_PROTOCOL, &self.target_protocol.octets());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{check_no_space, check_truncation, ipv4, mac};
    use proptest::prelude::*;

    fn repr() -> impl Strategy<Value = ArpRepr> {
        (any::<u16>(), mac(), ipv4(), mac(), ipv4()).prop_map(
            |(operation, sender_hardware, sender_protocol, target_hardware, target_protocol)| {
                ArpRepr {
                    operation: ArpOperation(operation),
                    sender_hardware,
                    sender_protocol,
                    target_hardware,
                    target_protocol,
                }
            },
        )
    }

    // Field order and sizes: RFC 826, "Packet format".
    #[test]
    fn a_request_has_the_bytes_of_rfc_826() {
        let request = ArpRepr {
            operation: ArpOperation::REQUEST,
            sender_hardware: MacAddr([2, 0, 0, 0, 0, 1]),
            sender_protocol: Ipv4Addr::new(192, 0, 2, 1),
            target_hardware: MacAddr::UNSPECIFIED,
            target_protocol: Ipv4Addr::new(192, 0, 2, 2),
        };
        let mut bytes = [0xee; ARP_LEN];
        request.emit(&mut bytes).unwrap();
        let expected: [u8; ARP_LEN] = [
            0, 1, 0x08, 0x00, 6, 4, 0, 1, // Types, lengths, operation.
            2, 0, 0, 0, 0, 1, 192, 0, 2, 1, // Sender.
            0, 0, 0, 0, 0, 0, 192, 0, 2, 2, // Target.
        ];
        assert_eq!(bytes, expected);
    }

    #[test]
    fn other_hardware_and_protocols_are_refused() {
        let good =
            [0, 1, 8, 0, 6, 4, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert!(ArpPacket::new_checked(good).is_ok());
        for offset in [0, 1, 2, 3, 4, 5] {
            let mut bad = good;
            bad[offset] ^= 0x40;
            let result = ArpPacket::new_checked(bad);
            assert!(matches!(result, Err(WireError::Field { .. })), "offset {offset}: {result:?}");
        }
    }

    proptest! {
        #[test]
        fn parse_of_emit_is_the_value(repr in repr()) {
            let mut bytes = [0; ARP_LEN];
            repr.emit(&mut bytes).unwrap();
            prop_assert_eq!(ArpRepr::parse(&ArpPacket::new_checked(bytes).unwrap()), repr);
            check_truncation(&bytes, |bytes| ArpPacket::new_checked(bytes).map(drop));
            check_no_space(repr.buffer_len(), |buffer| repr.emit(buffer));
        }

        #[test]
        fn emit_of_parse_is_the_bytes(tail: [u8; ARP_LEN - 6]) {
            let mut bytes = [0, 1, 8, 0, 6, 4].to_vec();
            bytes.extend(tail);
            let mut copy = [0; ARP_LEN];
            ArpRepr::parse(&ArpPacket::new_checked(&bytes).unwrap()).emit(&mut copy).unwrap();
            prop_assert_eq!(&copy[..], &bytes[..]);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = ArpPacket::new_checked(bytes).map(|packet| ArpRepr::parse(&packet));
        }

        #[test]
        fn etherparse_reads_the_same(repr in repr()) {
            let mut bytes = [0; ARP_LEN];
            repr.emit(&mut bytes).unwrap();
            let theirs = etherparse::ArpPacketSlice::from_slice(&bytes).unwrap();
            prop_assert_eq!(theirs.operation().0, repr.operation.0);
            prop_assert_eq!(theirs.sender_hw_addr(), &repr.sender_hardware.0[..]);
            prop_assert_eq!(theirs.sender_protocol_addr(), &repr.sender_protocol.octets()[..]);
            prop_assert_eq!(theirs.target_hw_addr(), &repr.target_hardware.0[..]);
            prop_assert_eq!(theirs.target_protocol_addr(), &repr.target_protocol.octets()[..]);
        }
    }
}
