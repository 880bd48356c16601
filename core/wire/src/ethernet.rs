//! Ethernet II frames.
//!
//! ```text
//!  0                   1
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3
//! +-----------+-----------+---+----- - -
//! |destination|  source   |typ| payload
//! +-----------+-----------+---+----- - -
//! ```
//!
//! Reference: IEEE 802.3-2018 §3.1; RFC 894 for the use of the type field. Offsets are in bytes;
//! preamble and frame check sequence are never seen by software.

use crate::bytes::{get, get_u16, put, put_u16, require, require_space};
use crate::{EtherType, MacAddr, WireError};

const HEADER: &str = "ethernet header";

mod field {
    use core::ops::Range;

    pub(super) const DESTINATION: Range<usize> = 0..6;
    pub(super) const SOURCE: Range<usize> = 6..12;
    pub(super) const ETHERTYPE: Range<usize> = 12..14;
}

/// Length of the header in bytes.
pub const ETHERNET_HEADER_LEN: usize = field::ETHERTYPE.end;

/// A view of an Ethernet frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EthernetFrame<T> {
    buffer: T,
}

impl<T: AsRef<[u8]>> EthernetFrame<T> {
    /// Views `buffer` as a frame.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if the buffer is shorter than the header.
    pub fn new_checked(buffer: T) -> Result<Self, WireError> {
        require(HEADER, buffer.as_ref(), ETHERNET_HEADER_LEN)?;
        Ok(Self { buffer })
    }

    /// Gives the buffer back.
    pub fn into_inner(self) -> T {
        self.buffer
    }

    /// The station or group that the frame is for.
    pub fn destination(&self) -> MacAddr {
        MacAddr(get(self.buffer.as_ref(), field::DESTINATION))
    }

    /// The station that sent the frame.
    pub fn source(&self) -> MacAddr {
        MacAddr(get(self.buffer.as_ref(), field::SOURCE))
    }

    /// The type of the payload. Below [`EtherType::MIN`] the frame is an IEEE 802.3 frame and the
    /// value is the length of its payload.
    pub fn ethertype(&self) -> EtherType {
        EtherType(get_u16(self.buffer.as_ref(), field::ETHERTYPE))
    }

    /// Everything after the header. It can be longer than what was sent: short frames are padded.
    pub fn payload(&self) -> &[u8] {
        &self.buffer.as_ref()[ETHERNET_HEADER_LEN..]
    }
}

impl<'a> EthernetFrame<&'a [u8]> {
    /// Everything after the header, for as long as the buffer lives.
    pub fn into_payload(self) -> &'a [u8] {
        &self.buffer[ETHERNET_HEADER_LEN..]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> EthernetFrame<T> {
    /// Changes the station or group that the frame is for.
    pub fn set_destination(&mut self, address: MacAddr) {
        put(self.buffer.as_mut(), field::DESTINATION, &address.0);
    }

    /// Changes the station that the frame is from.
    pub fn set_source(&mut self, address: MacAddr) {
        put(self.buffer.as_mut(), field::SOURCE, &address.0);
    }

    /// Changes the type of the payload.
    pub fn set_ethertype(&mut self, ethertype: EtherType) {
        put_u16(self.buffer.as_mut(), field::ETHERTYPE, ethertype.0);
    }

    /// Everything after the header, to be changed.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.buffer.as_mut()[ETHERNET_HEADER_LEN..]
    }
}

/// The content of an Ethernet II header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EthernetRepr {
    /// The station or group that the frame is for.
    pub destination: MacAddr,
    /// The station that sends the frame.
    pub source: MacAddr,
    /// The type of the payload.
    pub ethertype: EtherType,
}

impl EthernetRepr {
    /// Reads the header of `frame`.
    ///
    /// # Errors
    /// [`WireError::Field`] if it is an IEEE 802.3 frame, which states a length instead of a type.
    pub fn parse<T: AsRef<[u8]>>(frame: &EthernetFrame<T>) -> Result<Self, WireError> {
        let ethertype = frame.ethertype();
        if ethertype < EtherType::MIN {
            return Err(WireError::Field {
                header: HEADER,
                field: "type",
                value: ethertype.0.into(),
                expected: "an EtherType, that is 1536 or more",
            });
        }
        Ok(Self { destination: frame.destination(), source: frame.source(), ethertype })
    }

    /// Length of the header in bytes.
    pub const fn buffer_len(&self) -> usize {
        ETHERNET_HEADER_LEN
    }

    /// Writes the header to the first [`ETHERNET_HEADER_LEN`] bytes of `buffer`.
    ///
    /// # Errors
    /// [`WireError::NoSpace`] if the buffer is shorter.
    #[inline]
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), WireError> {
        let header = require_space(HEADER, buffer, ETHERNET_HEADER_LEN)?;
        put(header, field::DESTINATION, &self.destination.0);
        put(header, field::SOURCE, &self.source.0);
        put_u16(header, field::ETHERTYPE, self.ethertype.0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{check_no_space, check_truncation, mac};
    use proptest::prelude::*;

    fn repr() -> impl Strategy<Value = EthernetRepr> {
        (mac(), mac(), EtherType::MIN.0..).prop_map(|(destination, source, ethertype)| {
            EthernetRepr { destination, source, ethertype: EtherType(ethertype) }
        })
    }

    #[test]
    fn fields_are_where_the_standard_puts_them() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x86, 0xdd, 0xaa];
        let frame = EthernetFrame::new_checked(&bytes[..]).unwrap();
        assert_eq!(frame.destination(), MacAddr([1, 2, 3, 4, 5, 6]));
        assert_eq!(frame.source(), MacAddr([7, 8, 9, 10, 11, 12]));
        assert_eq!(frame.ethertype(), EtherType::IPV6);
        assert_eq!(frame.payload(), [0xaa]);
        assert_eq!(frame.into_payload(), [0xaa]);
    }

    #[test]
    fn a_length_is_not_a_type() {
        let mut bytes = [0; 60];
        bytes[12..14].copy_from_slice(&46u16.to_be_bytes());
        let frame = EthernetFrame::new_checked(&bytes[..]).unwrap();
        assert!(matches!(EthernetRepr::parse(&frame), Err(WireError::Field { value: 46, .. })));
    }

    #[test]
    fn setters_change_one_field_each() {
        let mut bytes = [0; ETHERNET_HEADER_LEN + 1];
        let mut frame = EthernetFrame::new_checked(&mut bytes[..]).unwrap();
        frame.set_destination(MacAddr([1; 6]));
        frame.set_source(MacAddr([2; 6]));
        frame.set_ethertype(EtherType::ARP);
        frame.payload_mut()[0] = 9;
        assert_eq!(bytes, [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 8, 6, 9]);
    }

    proptest! {
        #[test]
        fn parse_of_emit_is_the_value(repr in repr()) {
            let mut bytes = [0; ETHERNET_HEADER_LEN];
            repr.emit(&mut bytes).unwrap();
            let frame = EthernetFrame::new_checked(&bytes[..]).unwrap();
            prop_assert_eq!(EthernetRepr::parse(&frame), Ok(repr));
            check_truncation(&bytes, |bytes| EthernetFrame::new_checked(bytes).map(drop));
            check_no_space(repr.buffer_len(), |buffer| repr.emit(buffer));
        }

        #[test]
        fn emit_of_parse_is_the_bytes(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(frame) = EthernetFrame::new_checked(&bytes[..])
                && let Ok(repr) = EthernetRepr::parse(&frame)
            {
                let mut copy = bytes.clone();
                copy[..ETHERNET_HEADER_LEN].fill(0);
                repr.emit(&mut copy).unwrap();
                prop_assert_eq!(&copy, &bytes);
            }
        }

        #[test]
        fn etherparse_reads_the_same(repr in repr()) {
            let mut bytes = [0; ETHERNET_HEADER_LEN];
            repr.emit(&mut bytes).unwrap();
            let (theirs, rest) = etherparse::Ethernet2Header::from_slice(&bytes).unwrap();
            prop_assert_eq!(theirs.destination, repr.destination.0);
            prop_assert_eq!(theirs.source, repr.source.0);
            prop_assert_eq!(theirs.ether_type.0, repr.ethertype.0);
            prop_assert!(rest.is_empty());
        }
    }
}
