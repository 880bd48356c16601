//! Identifiers: an address of IP, a UDP port for the types that have one, and zeros.
//!
//! Reference: Machado et al., "Linux XIA", §5.1 ("the tuple (IP address, port number) followed by 14
//! zeros"; I4ID: the address followed by 16 zeros). I6ID is its counterpart.
//!
//! ```text
//!        0               4       6              16      18      20
//!       +---------------+-------+----------------------------------+
//! u4id  | IPv4 address  | port  | zero                             |
//! i4id  | IPv4 address  | zero                                     |
//!       +---------------+--------------------------+-------+-------+
//! u6id  | IPv6 address                             | port  | zero  |
//! i6id  | IPv6 address                             | zero          |
//!       +------------------------------------------+---------------+
//! ```

use std::net::{IpAddr, SocketAddr};

use weft_xip::Xid;
use weft_xip::xid::ID_LEN;

use crate::way::Way;

/// Why an identifier names no host that a packet could be sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Of a principal that names no tunnel.
    #[error("{0} names no end of a tunnel")]
    Type(Xid),
    /// The address is of the other family.
    #[error("{0} is of the wrong version of IP")]
    Family(IpAddr),
    /// Something stands behind the address and the port.
    #[error("behind the address and the port an identifier must be zero")]
    Tail,
    /// The address is unspecified, multicast or broadcast, or means something on one link only.
    #[error("{0} is not the address of one host")]
    Address(IpAddr),
    /// The port is 0.
    #[error("the UDP port must not be 0")]
    Port,
}

/// The XID of the host that receives XIP packets at `address`; the port counts for UDP alone.
///
/// # Errors
/// The address does not name one host, or is of the other version of IP.
pub fn to_xid(way: Way, address: SocketAddr) -> Result<Xid, NameError> {
    check(way, address)?;
    let mut id = [0; ID_LEN];
    let end = match address.ip() {
        IpAddr::V4(ip) => put(&mut id, 0, &ip.octets()),
        IpAddr::V6(ip) => put(&mut id, 0, &ip.octets()),
    };
    if way.is_udp() {
        put(&mut id, end, &address.port().to_be_bytes());
    }
    Ok(Xid::new(way.kind(), id))
}

/// Writes `bytes` at `at`; returns where they end.
fn put(id: &mut [u8; ID_LEN], at: usize, bytes: &[u8]) -> usize {
    let end = at + bytes.len();
    id[at..end].copy_from_slice(bytes);
    end
}

/// The address where the host named `xid` receives XIP packets; the port is 0 where there is none.
///
/// # Errors
/// The identifier is malformed or does not name one host.
pub fn from_xid(xid: &Xid) -> Result<SocketAddr, NameError> {
    let way = Way::of(xid.kind).ok_or(NameError::Type(*xid))?;
    let [a, b, c, d, ..] = xid.id;
    let (ip, rest) = if way.is_ipv4() {
        (IpAddr::from([a, b, c, d]), &xid.id[4..])
    } else {
        let mut octets = [0; 16];
        octets.copy_from_slice(&xid.id[..16]);
        (IpAddr::from(octets), &xid.id[16..])
    };
    let (port, tail) = match (way.is_udp(), rest) {
        (true, [high, low, tail @ ..]) => (u16::from_be_bytes([*high, *low]), tail),
        _ => (0, rest),
    };
    if tail.iter().any(|byte| *byte != 0) {
        return Err(NameError::Tail);
    }
    let address = SocketAddr::new(ip, port);
    check(way, address).map(|()| address)
}

/// Whether packets can be sent to one host at this address.
///
/// # Errors
/// They cannot.
pub(crate) fn check(way: Way, address: SocketAddr) -> Result<(), NameError> {
    let ip = address.ip();
    if ip.is_ipv4() != way.is_ipv4() {
        return Err(NameError::Family(ip));
    }
    let is_one_host = match ip {
        IpAddr::V4(ip) => !ip.is_unspecified() && !ip.is_multicast() && !ip.is_broadcast(),
        // A link-local address means nothing without a link; a mapped one is of IPv4.
        IpAddr::V6(v6) => {
            !v6.is_unspecified()
                && !v6.is_multicast()
                && !v6.is_unicast_link_local()
                && v6.to_ipv4_mapped().is_none()
        }
    };
    if !is_one_host {
        return Err(NameError::Address(ip));
    }
    if way.is_udp() && address.port() == 0 { Err(NameError::Port) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weft_xip::XidType;

    use super::*;

    fn of(way: Way, text: &str) -> Result<SocketAddr, NameError> {
        let address = way.read(text).unwrap();
        to_xid(way, address).and_then(|xid| from_xid(&xid))
    }

    #[test]
    fn the_example_of_a_linux_xia_host_is_read_and_written() {
        // Destination of the tunnel in a capture of Linux XIA, 2014.
        let xid: Xid = "u4id-c0a8396541d00000000000000000000000000000".parse().unwrap();
        let address = "192.168.57.101:16848".parse().unwrap();
        assert_eq!(from_xid(&xid), Ok(address));
        assert_eq!(to_xid(Way::U4id, address), Ok(xid));
    }

    #[test]
    fn each_way_has_its_form() {
        let text = |way: Way| {
            let address = way.read(way.example()).unwrap();
            to_xid(way, address).unwrap().to_string()
        };
        assert_eq!(
            Way::ALL.map(text),
            [
                "u4id-c000020135d50000000000000000000000000000",
                "u6id-20010db800000000000000000000000135d50000",
                "i4id-c000020100000000000000000000000000000000",
                "i6id-20010db800000000000000000000000100000000",
            ]
        );
    }

    #[test]
    fn what_names_no_host_is_refused() {
        for ip in ["0.0.0.0", "255.255.255.255", "224.0.0.1"] {
            let address: IpAddr = ip.parse().unwrap();
            assert_eq!(of(Way::U4id, &format!("{ip}:1")), Err(NameError::Address(address)));
            assert_eq!(of(Way::I4id, ip), Err(NameError::Address(address)));
        }
        for ip in ["::", "ff02::1", "fe80::1", "::ffff:192.0.2.1"] {
            let address: IpAddr = ip.parse().unwrap();
            assert_eq!(of(Way::U6id, &format!("[{ip}]:1")), Err(NameError::Address(address)));
            assert_eq!(of(Way::I6id, ip), Err(NameError::Address(address)));
        }
        assert_eq!(of(Way::U4id, "192.0.2.1:0"), Err(NameError::Port));
        assert_eq!(of(Way::U6id, "[2001:db8::1]:0"), Err(NameError::Port));
        let six = "[2001:db8::1]:1".parse().unwrap();
        assert!(matches!(to_xid(Way::U4id, six), Err(NameError::Family(_))));
        assert!(matches!(from_xid(&Xid::new(XidType::HID, [1; 20])), Err(NameError::Type(_))));
    }

    #[test]
    fn every_byte_behind_must_be_zero() {
        for way in Way::ALL {
            let xid = to_xid(way, way.read(way.example()).unwrap()).unwrap();
            let first = if way.is_ipv4() { 4 } else { 16 } + if way.is_udp() { 2 } else { 0 };
            for at in first..ID_LEN {
                let mut xid = xid;
                xid.id[at] = 1;
                assert_eq!(from_xid(&xid), Err(NameError::Tail), "{way:?}, byte {at}");
            }
        }
    }

    proptest! {
        #[test]
        fn reading_and_writing_undo_each_other(
            way in 0..4usize, id in any::<[u8; 20]>(), zeros in 0..20usize,
        ) {
            let mut id = id;
            id[zeros..].fill(0);
            let way = Way::ALL[way];
            let xid = Xid::new(way.kind(), id);
            if let Ok(address) = from_xid(&xid) {
                prop_assert_eq!(to_xid(way, address), Ok(xid));
            }
        }
    }
}
