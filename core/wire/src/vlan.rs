//! IEEE 802.1Q VLAN tags.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-----+-+-----------------------+-------------------------------+
//! | PCP |D|          VID          |    EtherType of the payload   |
//! +-----+-+-----------------------+-------------------------------+
//! ```
//!
//! Reference: IEEE 802.1Q-2018 §9.6. The tag follows the EtherType [`EtherType::VLAN`] of the
//! Ethernet header; D is the drop eligible indicator. Offsets are in bits.

use crate::bytes::{get_u16, put_u16, require, require_space};
use crate::{EtherType, WireError};

const HEADER: &str = "802.1q tag";

mod field {
    use core::ops::Range;

    pub(super) const CONTROL: Range<usize> = 0..2;
    pub(super) const ETHERTYPE: Range<usize> = 2..4;

    pub(super) const PRIORITY_SHIFT: u16 = 13;
    pub(super) const DROP_ELIGIBLE: u16 = 0x1000;
    pub(super) const IDENTIFIER: u16 = 0x0fff;
}

/// Length of the tag in bytes, without the EtherType that announces it.
pub const VLAN_TAG_LEN: usize = field::ETHERTYPE.end;

/// The VLAN that a frame belongs to: 1 to 4094, or 0 in a frame that only carries a priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VlanId(u16);

impl VlanId {
    /// No VLAN: the tag only carries a priority.
    pub const PRIORITY_ONLY: Self = Self(0);

    /// A VLAN identifier; `None` if it exceeds 4094 (4095 is reserved by the standard).
    pub const fn new(id: u16) -> Option<Self> {
        if id < 0x0fff { Some(Self(id)) } else { None }
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// A view of the tag and what follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VlanTag<T> {
    buffer: T,
}

impl<T: AsRef<[u8]>> VlanTag<T> {
    /// Views `buffer`, the payload of an Ethernet frame of type [`EtherType::VLAN`], as a tag.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if the buffer is shorter than the tag.
    pub fn new_checked(buffer: T) -> Result<Self, WireError> {
        require(HEADER, buffer.as_ref(), VLAN_TAG_LEN)?;
        Ok(Self { buffer })
    }

    /// Priority code point, 0 to 7.
    pub fn priority(&self) -> u8 {
        (self.control() >> field::PRIORITY_SHIFT) as u8
    }

    /// Whether the frame may be dropped first under congestion.
    pub fn drop_eligible(&self) -> bool {
        self.control() & field::DROP_ELIGIBLE != 0
    }

    /// The VLAN; `None` for the reserved value 4095.
    pub fn vlan(&self) -> Option<VlanId> {
        VlanId::new(self.control() & field::IDENTIFIER)
    }

    /// The type of the payload.
    pub fn ethertype(&self) -> EtherType {
        EtherType(get_u16(self.buffer.as_ref(), field::ETHERTYPE))
    }

    /// Everything after the tag.
    pub fn payload(&self) -> &[u8] {
        &self.buffer.as_ref()[VLAN_TAG_LEN..]
    }

    fn control(&self) -> u16 {
        get_u16(self.buffer.as_ref(), field::CONTROL)
    }
}

/// The content of a VLAN tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VlanRepr {
    /// Priority code point, 0 to 7.
    pub priority: u8,
    /// Whether the frame may be dropped first under congestion.
    pub drop_eligible: bool,
    /// The VLAN.
    pub vlan: VlanId,
    /// The type of the payload.
    pub ethertype: EtherType,
}

impl VlanRepr {
    /// Reads `tag`.
    ///
    /// # Errors
    /// [`WireError::Field`] if the identifier is the reserved 4095.
    pub fn parse<T: AsRef<[u8]>>(tag: &VlanTag<T>) -> Result<Self, WireError> {
        let vlan = tag.vlan().ok_or(WireError::Field {
            header: HEADER,
            field: "VID",
            value: field::IDENTIFIER.into(),
            expected: "0 to 4094",
        })?;
        Ok(Self {
            priority: tag.priority(),
            drop_eligible: tag.drop_eligible(),
            vlan,
            ethertype: tag.ethertype(),
        })
    }

    /// Length of the tag in bytes.
    pub const fn buffer_len(&self) -> usize {
        VLAN_TAG_LEN
    }

    /// Writes the tag to the first [`VLAN_TAG_LEN`] bytes of `buffer`.
    ///
    /// # Errors
    /// [`WireError::NoSpace`] if the buffer is shorter; [`WireError::Field`] if the priority
    /// exceeds 7.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), WireError> {
        if self.priority > 7 {
            return Err(WireError::Field {
                header: HEADER,
                field: "PCP",
                value: self.priority.into(),
                expected: "0 to 7",
            });
        }
        let tag = require_space(HEADER, buffer, VLAN_TAG_LEN)?;
        let mut control = u16::from(self.priority) << field::PRIORITY_SHIFT | self.vlan.get();
        if self.drop_eligible {
            control |= field::DROP_ELIGIBLE;
        }
        put_u16(tag, field::CONTROL, control);
        put_u16(tag, field::ETHERTYPE, self.ethertype.0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{check_no_space, check_truncation};
    use proptest::prelude::*;

    fn repr() -> impl Strategy<Value = VlanRepr> {
        (0u8..8, any::<bool>(), 0u16..4095, any::<u16>()).prop_map(
            |(priority, drop_eligible, vlan, ethertype)| VlanRepr {
                priority,
                drop_eligible,
                vlan: VlanId::new(vlan).unwrap(),
                ethertype: EtherType(ethertype),
            },
        )
    }

    #[test]
    fn control_bits_are_split_as_the_standard_says() {
        let tag = VlanTag::new_checked([0b1011_0001, 0x02, 0x08, 0x00, 0xee]).unwrap();
        assert_eq!(tag.priority(), 0b101);
        assert!(tag.drop_eligible());
        assert_eq!(tag.vlan().map(VlanId::get), Some(0x102));
        assert_eq!(tag.ethertype(), EtherType::IPV4);
        assert_eq!(tag.payload(), [0xee]);
    }

    #[test]
    fn reserved_identifier_and_priority_above_seven_are_refused() {
        let tag = VlanTag::new_checked([0x0f, 0xff, 8, 0]).unwrap();
        assert!(matches!(VlanRepr::parse(&tag), Err(WireError::Field { field: "VID", .. })));
        let repr = VlanRepr {
            priority: 8,
            drop_eligible: false,
            vlan: VlanId::PRIORITY_ONLY,
            ethertype: EtherType::IPV4,
        };
        assert!(matches!(repr.emit(&mut [0; 4]), Err(WireError::Field { field: "PCP", .. })));
    }

    proptest! {
        #[test]
        fn parse_of_emit_is_the_value(repr in repr()) {
            let mut bytes = [0; VLAN_TAG_LEN];
            repr.emit(&mut bytes).unwrap();
            prop_assert_eq!(VlanRepr::parse(&VlanTag::new_checked(bytes).unwrap()), Ok(repr));
            check_truncation(&bytes, |bytes| VlanTag::new_checked(bytes).map(drop));
            check_no_space(repr.buffer_len(), |buffer| repr.emit(buffer));
        }

        #[test]
        fn emit_of_parse_is_the_bytes(bytes: [u8; VLAN_TAG_LEN]) {
            if let Ok(repr) = VlanRepr::parse(&VlanTag::new_checked(bytes).unwrap()) {
                let mut copy = [0; VLAN_TAG_LEN];
                repr.emit(&mut copy).unwrap();
                prop_assert_eq!(copy, bytes);
            }
        }

        #[test]
        fn etherparse_reads_the_same(repr in repr()) {
            let mut bytes = [0; VLAN_TAG_LEN];
            repr.emit(&mut bytes).unwrap();
            let (theirs, _) = etherparse::SingleVlanHeader::from_slice(&bytes).unwrap();
            prop_assert_eq!(theirs.pcp.value(), repr.priority);
            prop_assert_eq!(theirs.drop_eligible_indicator, repr.drop_eligible);
            prop_assert_eq!(theirs.vlan_id.value(), repr.vlan.get());
            prop_assert_eq!(theirs.ether_type.0, repr.ethertype.0);
        }
    }
}
