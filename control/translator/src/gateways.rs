//! What a next router is called in XIA, by its address of IP.
//!
//! Reference: Machado et al., "Linux XIA", §5.1: identifiers of U4ID, I4ID and X4ID are an address, for U4ID a port, and
//! zeros.
//!
//! All of them are text here: nothing of XIA is known but how XIDs are written.

use std::net::IpAddr;

/// The usual port of XIP in UDP.
pub(crate) const PORT: u16 = 13_781;
/// Hexadecimal digits of an identifier.
const DIGITS: usize = 40;

/// How names are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// A neighbour that the kernel's IP reaches on a link (X4ID, X6ID).
    Neighbour,
    /// The end of a tunnel over UDP with this port (U4ID, U6ID).
    Udp(u16),
    /// The end of a tunnel over IP (I4ID, I6ID).
    Ip,
}

/// The XID of a router; none if its address means something on one link only, or nobody.
pub(crate) fn name(router: IpAddr, by: By) -> Option<String> {
    let is_on_one_link = match router {
        IpAddr::V4(router) => router.is_link_local() || router.is_broadcast(),
        IpAddr::V6(router) => router.is_unicast_link_local(),
    };
    if is_on_one_link || router.is_unspecified() || router.is_loopback() || router.is_multicast() {
        return None;
    }
    let kind = match (by, router.is_ipv4()) {
        (By::Neighbour, true) => "x4id",
        (By::Neighbour, false) => "x6id",
        (By::Udp(_), true) => "u4id",
        (By::Udp(_), false) => "u6id",
        (By::Ip, true) => "i4id",
        (By::Ip, false) => "i6id",
    };
    let bits = match router {
        IpAddr::V4(router) => format!("{:08x}", router.to_bits()),
        IpAddr::V6(router) => format!("{:032x}", router.to_bits()),
    };
    let port = match by {
        By::Udp(port) => format!("{port:04x}"),
        By::Neighbour | By::Ip => String::new(),
    };
    Some(format!("{kind}-{:0<DIGITS$}", bits + &port))
}

/// Whether a text has the form of an XID.
pub(crate) fn is_xid(text: &str) -> bool {
    text.split_once('-').is_some_and(|(kind, id)| {
        !kind.is_empty()
            && kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
            && id.len() == DIGITS
            && id.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_principals() {
        let named = |router: &str, by| name(router.parse().unwrap(), by);
        let with_zeros = |text: &str| Some(format!("{text:0<45}"));
        assert_eq!(named("10.0.1.2", By::Neighbour), with_zeros("x4id-0a000102"));
        assert_eq!(named("10.0.1.2", By::Udp(PORT)), with_zeros("u4id-0a00010235d5"));
        assert_eq!(named("10.0.1.2", By::Ip), with_zeros("i4id-0a000102"));
        let v6 = "20010db8000000000000000000000001";
        assert_eq!(named("2001:db8::1", By::Neighbour), with_zeros(&format!("x6id-{v6}")));
        assert_eq!(named("2001:db8::1", By::Udp(1)), with_zeros(&format!("u6id-{v6}0001")));
        for nobody in ["0.0.0.0", "127.0.0.1", "169.254.1.1", "224.0.0.5", "fe80::1", "ff02::1"] {
            assert_eq!(named(nobody, By::Neighbour), None, "{nobody}");
        }
        for router in ["10.0.1.2", "2001:db8::1"] {
            for by in [By::Neighbour, By::Udp(PORT), By::Ip] {
                assert!(is_xid(&named(router, by).unwrap()));
            }
        }
        assert!(!is_xid("hid-12") && !is_xid("") && !is_xid(&"0".repeat(45)));
    }
}
