//! XIDs: the typed identifiers that XIP addresses are made of.
//!
//! Reference: Machado et al., "Linux XIA: An Interoperable Meta Network Architecture", §3
//! ("XIA in a nutshell"); layout as in AltraMayor/XIA-for-Linux, `include/net/xia.h`.
//!
//! An XID is a principal's type (32 bits) and an identifier (160 bits). Only the principal knows
//! what the identifier means: a hash of a key, an IPv4 address and a port, a Bloom filter. To XIP
//! it is opaque, so two XIDs are the same exactly when all 24 bytes are.
//!
//! ```text
//!  0               4                                                              24
//! +---------------+----------------------------------------------------------------+
//! | type (u32 BE) | identifier (20 bytes)                                          |
//! +---------------+----------------------------------------------------------------+
//! ```

use std::hash::{Hash, Hasher};

/// Length of an XID's identifier in bytes (160 bits).
pub const ID_LEN: usize = 20;

/// Length of an XID on the wire in bytes: type, then identifier.
pub const XID_LEN: usize = 4 + ID_LEN;

/// The number of a principal: it says how to read the identifier beside it.
///
/// The well-known numbers are associated constants ([`XidType::HID`], …), see
/// [`numbers`](crate::numbers). Any other number is legal in an address: a router which does not
/// know the principal tries the next edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct XidType(pub u32);

impl XidType {
    /// True for type 0, which is no principal but marks the end of an address in a row array.
    pub const fn is_nat(self) -> bool {
        self.0 == XidType::NAT.0
    }
}

/// One identifier of one principal.
///
/// The text form is `type-identifier`, for example
/// `hid-3abc8eadef8bc3e2c95bfb5b2f233c97fc629d69`; see [`text`](crate::text).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Xid {
    /// The principal that defines the identifier.
    pub kind: XidType,
    /// The identifier; its meaning is the principal's.
    pub id: [u8; ID_LEN],
}

impl Xid {
    /// Type 0 and an identifier of zeros: no XID, the end of an address in a row array.
    pub const NAT: Xid = Xid { kind: XidType::NAT, id: [0; ID_LEN] };

    /// The XID of principal `kind` with identifier `id`.
    pub const fn new(kind: XidType, id: [u8; ID_LEN]) -> Xid {
        Xid { kind, id }
    }

    /// Reads the 24 bytes of the wire form.
    pub fn from_bytes(bytes: &[u8; XID_LEN]) -> Xid {
        let mut kind = [0; 4];
        let mut id = [0; ID_LEN];
        kind.copy_from_slice(&bytes[..4]);
        id.copy_from_slice(&bytes[4..]);
        Xid { kind: XidType(u32::from_be_bytes(kind)), id }
    }

    /// The 24 bytes of the wire form.
    pub fn to_bytes(&self) -> [u8; XID_LEN] {
        let mut bytes = [0; XID_LEN];
        bytes[..4].copy_from_slice(&self.kind.0.to_be_bytes());
        bytes[4..].copy_from_slice(&self.id);
        bytes
    }
}

/// Three words, which a hasher takes several times faster than a slice of bytes. Each is put together
/// from two places that are not neighbours, because neighbours would be loaded as one: an XID was
/// often stored just before, in pieces, and a load that spans two pieces has to wait for both.
impl Hash for Xid {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let piece = |at: usize| -> u64 {
            let bytes = [self.id[at], self.id[at + 1], self.id[at + 2], self.id[at + 3]];
            u32::from_le_bytes(bytes).into()
        };
        state.write_u64(u64::from(self.kind.0) << 32 | piece(4));
        state.write_u64(piece(0) << 32 | piece(12));
        state.write_u64(piece(8) << 32 | piece(16));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_type_in_network_order_then_identifier() {
        let xid = Xid::new(XidType(0x0102_0304), [0xaa; ID_LEN]);
        let bytes = xid.to_bytes();
        assert_eq!(bytes[..4], [1, 2, 3, 4]);
        assert_eq!(bytes[4..], [0xaa; ID_LEN]);
        assert_eq!(Xid::from_bytes(&bytes), xid);
    }

    #[test]
    fn every_byte_counts_in_the_hash() {
        let hash = |bytes: &[u8; XID_LEN]| {
            let mut state = std::hash::DefaultHasher::new();
            Xid::from_bytes(bytes).hash(&mut state);
            state.finish()
        };
        let zero = [0; XID_LEN];
        for index in 0..XID_LEN {
            let mut bytes = zero;
            bytes[index] = 1;
            assert_ne!(hash(&bytes), hash(&zero), "byte {index}");
        }
    }

    #[test]
    fn order_is_by_type_then_identifier() {
        let low = Xid::new(XidType(1), [0xff; ID_LEN]);
        let high = Xid::new(XidType(2), [0; ID_LEN]);
        assert!(low < high);
        assert!(Xid::new(XidType(2), [0; ID_LEN]) < Xid::new(XidType(2), [1; ID_LEN]));
    }
}
