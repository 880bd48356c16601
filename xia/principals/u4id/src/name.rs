//! U4ID identifiers: an IPv4 address and a UDP port.
//!
//! Reference: Machado et al., "Linux XIA", §5.1 ("the tuple (IP address, port number) followed by 14
//! zeros").
//!
//! ```text
//!  0               4       6                                           20
//! +---------------+-------+--------------------------------------------+
//! | IPv4 address  | port  | zero                                       |
//! +---------------+-------+--------------------------------------------+
//! ```

use std::net::{Ipv4Addr, SocketAddrV4};

use weft_xip::xid::ID_LEN;
use weft_xip::{Xid, XidType};

mod field {
    use std::ops::Range;

    pub(super) const ADDRESS: Range<usize> = 0..4;
    pub(super) const PORT: Range<usize> = 4..6;
    pub(super) const ZERO: Range<usize> = 6..super::ID_LEN;
}

/// Why an identifier names no host that a packet could be sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Of another principal.
    #[error("{0} is not of type u4id")]
    Type(Xid),
    /// Something stands behind the port.
    #[error("the last 14 bytes of a u4id identifier must be zero")]
    Tail,
    /// The address is 0.0.0.0, multicast or broadcast.
    #[error("{0} is not the address of one host")]
    Address(Ipv4Addr),
    /// The port is 0.
    #[error("the UDP port must not be 0")]
    Port,
}

/// The XID of the host that receives XIP packets at `address`.
#[must_use]
pub fn to_xid(address: SocketAddrV4) -> Xid {
    let mut id = [0; ID_LEN];
    id[field::ADDRESS].copy_from_slice(&address.ip().octets());
    id[field::PORT].copy_from_slice(&address.port().to_be_bytes());
    Xid::new(XidType::U4ID, id)
}

/// The address where the host named `xid` receives XIP packets.
///
/// # Errors
/// The identifier is malformed or does not name one host.
pub fn from_xid(xid: &Xid) -> Result<SocketAddrV4, NameError> {
    if xid.kind != XidType::U4ID {
        return Err(NameError::Type(*xid));
    }
    if xid.id[field::ZERO].iter().any(|byte| *byte != 0) {
        return Err(NameError::Tail);
    }
    let [a, b, c, d, port_high, port_low, ..] = xid.id;
    let address =
        SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([port_high, port_low]));
    check(address).map(|()| address)
}

/// Whether packets can be sent to one host at this address.
///
/// # Errors
/// They cannot.
pub(crate) fn check(address: SocketAddrV4) -> Result<(), NameError> {
    let ip = *address.ip();
    if ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast() {
        return Err(NameError::Address(ip));
    }
    if address.port() == 0 { Err(NameError::Port) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_a_linux_xia_host_is_read_and_written() {
        // Destination of the tunnel in a capture of Linux XIA, 2014.
        let xid: Xid = "u4id-c0a8396541d00000000000000000000000000000".parse().unwrap();
        let address = "192.168.57.101:16848".parse().unwrap();
        assert_eq!(from_xid(&xid), Ok(address));
        assert_eq!(to_xid(address), xid);
    }

    #[test]
    fn what_names_no_host_is_refused() {
        let of = |text: &str| from_xid(&to_xid(text.parse().unwrap()));
        assert_eq!(of("0.0.0.0:1"), Err(NameError::Address(Ipv4Addr::UNSPECIFIED)));
        assert_eq!(of("255.255.255.255:1"), Err(NameError::Address(Ipv4Addr::BROADCAST)));
        assert_eq!(of("224.0.0.1:1"), Err(NameError::Address(Ipv4Addr::new(224, 0, 0, 1))));
        assert_eq!(of("192.0.2.1:0"), Err(NameError::Port));
        assert!(matches!(from_xid(&Xid::new(XidType::I4ID, [1; 20])), Err(NameError::Type(_))));
    }

    #[test]
    fn every_byte_behind_the_port_must_be_zero() {
        for at in 6..ID_LEN {
            let mut xid = to_xid("192.0.2.1:13781".parse().unwrap());
            xid.id[at] = 1;
            assert_eq!(from_xid(&xid), Err(NameError::Tail), "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn reading_undoes_writing(ip in any::<u32>(), port in any::<u16>()) {
            let address = SocketAddrV4::new(Ipv4Addr::from(ip), port);
            let expected = check(address).map(|()| address);
            prop_assert_eq!(from_xid(&to_xid(address)), expected);
        }

        #[test]
        fn writing_undoes_reading(id in any::<[u8; 20]>(), sparse in any::<bool>()) {
            let mut id = id;
            if sparse { id[6..].fill(0); }
            let xid = Xid::new(XidType::U4ID, id);
            if let Ok(address) = from_xid(&xid) {
                prop_assert_eq!(to_xid(address), xid);
            }
        }
    }
}
