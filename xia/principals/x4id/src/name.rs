//! Identifiers: an address of IP, and zeros.
//!
//! Reference: Machado et al., "Linux XIA", §5.1 ("X4IDs have the same trailing-zero format as I4IDs": the address
//! followed by 16 zeros).
//!
//! ```text
//!        0               4                         16             20
//!       +---------------+---------------------------------------+
//! x4id  | IPv4 address  | zero                                  |
//!       +---------------+--------------------------+------------+
//! x6id  | IPv6 address                             | zero       |
//!       +------------------------------------------+------------+
//! ```

use std::net::IpAddr;

use weft_xip::xid::ID_LEN;
use weft_xip::{Xid, XidType};

/// A version of IP, and so one of the two principals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// IPv4: X4ID.
    V4,
    /// IPv6: X6ID.
    V6,
}

/// Why an identifier names no host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Of another principal.
    #[error("{0} is neither an x4id nor an x6id")]
    Type(Xid),
    /// Something stands behind the address.
    #[error("behind the address an identifier must be zero")]
    Tail,
    /// The address is unspecified, multicast, broadcast or loopback, or means something on one link only.
    #[error("{0} is not the address of one host")]
    Address(IpAddr),
}

impl Version {
    /// The type of its XIDs.
    #[must_use]
    pub const fn kind(self) -> XidType {
        match self {
            Self::V4 => XidType::X4ID,
            Self::V6 => XidType::X6ID,
        }
    }

    /// The version of an address.
    #[must_use]
    pub const fn of(ip: IpAddr) -> Self {
        if ip.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// Bytes of an address.
    pub(crate) const fn length(self) -> usize {
        match self {
            Self::V4 => 4,
            Self::V6 => 16,
        }
    }
}

/// The XID of the host that has this address.
///
/// # Errors
/// The address does not name one host.
pub fn to_xid(ip: IpAddr) -> Result<Xid, NameError> {
    check(ip)?;
    Ok(padded(ip))
}

/// An address with zeros behind, whatever it names.
pub(crate) fn padded(ip: IpAddr) -> Xid {
    let mut id = [0; ID_LEN];
    match ip {
        IpAddr::V4(ip) => id[..4].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => id[..16].copy_from_slice(&ip.octets()),
    }
    Xid::new(Version::of(ip).kind(), id)
}

/// The address of the host named `xid`.
///
/// # Errors
/// The identifier is malformed or does not name one host.
pub fn from_xid(xid: &Xid) -> Result<IpAddr, NameError> {
    let (ip, tail) = match xid.kind {
        XidType::X4ID => {
            let (octets, tail) = xid.id.split_first_chunk::<4>().ok_or(NameError::Tail)?;
            (IpAddr::from(*octets), tail)
        }
        XidType::X6ID => {
            let (octets, tail) = xid.id.split_first_chunk::<16>().ok_or(NameError::Tail)?;
            (IpAddr::from(*octets), tail)
        }
        _ => return Err(NameError::Type(*xid)),
    };
    if tail.iter().any(|byte| *byte != 0) {
        return Err(NameError::Tail);
    }
    check(ip).map(|()| ip)
}

fn check(ip: IpAddr) -> Result<(), NameError> {
    let is_one_host = match ip {
        IpAddr::V4(ip) => {
            !ip.is_unspecified() && !ip.is_multicast() && !ip.is_broadcast() && !ip.is_loopback()
        }
        // A link-local address means nothing without a link; a mapped one is of IPv4.
        IpAddr::V6(ip) => {
            !ip.is_unspecified()
                && !ip.is_multicast()
                && !ip.is_loopback()
                && !ip.is_unicast_link_local()
                && ip.to_ipv4_mapped().is_none()
        }
    };
    if is_one_host { Ok(()) } else { Err(NameError::Address(ip)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_version_has_its_form() {
        let text = |ip: &str| to_xid(ip.parse().unwrap()).unwrap().to_string();
        assert_eq!(text("192.0.2.1"), "x4id-c000020100000000000000000000000000000000");
        assert_eq!(text("2001:db8::1"), "x6id-20010db800000000000000000000000100000000");
    }

    #[test]
    fn what_names_no_host_is_refused() {
        let bad = ["0.0.0.0", "255.255.255.255", "224.0.0.1", "127.0.0.1"];
        let bad6 = ["::", "::1", "ff02::1", "fe80::1", "::ffff:192.0.2.1"];
        for ip in bad.into_iter().chain(bad6) {
            let ip: IpAddr = ip.parse().unwrap();
            assert_eq!(to_xid(ip), Err(NameError::Address(ip)));
            assert_eq!(from_xid(&padded(ip)), Err(NameError::Address(ip)));
        }
        let other = Xid::new(XidType::I4ID, [1; 20]);
        assert_eq!(from_xid(&other), Err(NameError::Type(other)));
    }

    #[test]
    fn every_byte_behind_must_be_zero() {
        for ip in ["192.0.2.1", "2001:db8::1"] {
            let ip: IpAddr = ip.parse().unwrap();
            for at in Version::of(ip).length()..ID_LEN {
                let mut xid = to_xid(ip).unwrap();
                xid.id[at] = 1;
                assert_eq!(from_xid(&xid), Err(NameError::Tail), "{ip}, byte {at}");
            }
        }
    }

    proptest! {
        #[test]
        fn reading_and_writing_undo_each_other(
            is_ipv4 in any::<bool>(), id in any::<[u8; 20]>(), zeros in 0..20usize,
        ) {
            let mut id = id;
            id[zeros..].fill(0);
            let kind = if is_ipv4 { XidType::X4ID } else { XidType::X6ID };
            let xid = Xid::new(kind, id);
            if let Ok(ip) = from_xid(&xid) {
                prop_assert_eq!(to_xid(ip), Ok(xid));
            }
        }
    }
}
