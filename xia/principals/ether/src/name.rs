//! Identifiers: the index of an interface, an Ethernet address, and zeros.
//!
//! Reference: AltraMayor/xiaconf, `xip/xipether.c`.
//!
//! ```text
//!  0                 4                         10                                 20
//! +-----------------+-------------------------+----------------------------------+
//! | interface index | Ethernet address        | zero                             |
//! +-----------------+-------------------------+----------------------------------+
//! ```
//!
//! The index is in network byte order.

use weft_wire::MacAddr;
use weft_xip::xid::ID_LEN;
use weft_xip::{Xid, XidType};

/// Where the Ethernet address begins.
const MAC: usize = 4;
/// Where it ends.
const TAIL: usize = 10;

/// Why an identifier names no station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Of another principal.
    #[error("{0} is no ether")]
    Type(Xid),
    /// Something stands behind the address.
    #[error("behind the Ethernet address an identifier must be zero")]
    Tail,
    /// The address is zero or that of a group.
    #[error("{0} is not the address of one station")]
    Address(MacAddr),
}

/// The XID of a station, or of the interface itself if the address is its own.
///
/// # Errors
/// The address is not that of one station.
pub fn to_xid(interface: u32, mac: MacAddr) -> Result<Xid, NameError> {
    check(mac)?;
    Ok(padded(interface, mac))
}

/// An index and an address with zeros behind, whatever they name.
fn padded(interface: u32, mac: MacAddr) -> Xid {
    let mut id = [0; ID_LEN];
    id[..MAC].copy_from_slice(&interface.to_be_bytes());
    id[MAC..TAIL].copy_from_slice(&mac.0);
    Xid::new(XidType::ETHER, id)
}

/// The index of the interface, and the address of the station on it.
///
/// # Errors
/// The identifier is malformed or does not name one station.
pub fn from_xid(xid: &Xid) -> Result<(u32, MacAddr), NameError> {
    if xid.kind != XidType::ETHER {
        return Err(NameError::Type(*xid));
    }
    let (index, rest) = xid.id.split_first_chunk::<MAC>().ok_or(NameError::Tail)?;
    let (mac, tail) = rest.split_first_chunk::<{ TAIL - MAC }>().ok_or(NameError::Tail)?;
    if tail.iter().any(|byte| *byte != 0) {
        return Err(NameError::Tail);
    }
    let mac = MacAddr(*mac);
    check(mac)?;
    Ok((u32::from_be_bytes(*index), mac))
}

fn check(mac: MacAddr) -> Result<(), NameError> {
    if is_station(mac) { Ok(()) } else { Err(NameError::Address(mac)) }
}

/// Whether packets can be sent to one station at this address: it is neither zero nor a group.
pub(crate) fn is_station(mac: MacAddr) -> bool {
    mac != MacAddr::UNSPECIFIED && !mac.is_multicast()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STATION: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

    #[test]
    fn an_identifier_is_an_index_an_address_and_zeros() {
        let text = to_xid(0x0102_0304, MacAddr([10, 11, 12, 13, 14, 15])).unwrap().to_string();
        assert_eq!(text, "ether-010203040a0b0c0d0e0f00000000000000000000");
    }

    #[test]
    fn what_names_no_station_is_refused() {
        for mac in [MacAddr::UNSPECIFIED, MacAddr::BROADCAST, MacAddr([1, 0, 0x5e, 0, 0, 1])] {
            assert_eq!(to_xid(1, mac), Err(NameError::Address(mac)));
            assert_eq!(from_xid(&padded(1, mac)), Err(NameError::Address(mac)));
        }
        let other = Xid::new(XidType::HID, to_xid(1, STATION).unwrap().id);
        assert_eq!(from_xid(&other), Err(NameError::Type(other)));
    }

    #[test]
    fn every_byte_behind_must_be_zero() {
        for at in TAIL..ID_LEN {
            let mut xid = to_xid(1, STATION).unwrap();
            xid.id[at] = 1;
            assert_eq!(from_xid(&xid), Err(NameError::Tail), "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn reading_and_writing_undo_each_other(id in any::<[u8; 20]>(), zeros in 0..20usize) {
            let mut id = id;
            id[zeros..].fill(0);
            let xid = Xid::new(XidType::ETHER, id);
            if let Ok((interface, mac)) = from_xid(&xid) {
                prop_assert_eq!(to_xid(interface, mac), Ok(xid));
            }
        }
    }
}
