//! Ethernet addresses (EUI-48).
//!
//! Reference: IEEE 802-2014 §8.2; multicast mapping RFC 1112 §6.4 (IPv4) and RFC 2464 §7 (IPv6).

use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

/// A 48-bit Ethernet address.
///
/// The text form is six pairs of hexadecimal digits. It is written in lower case with colons; upper
/// case and hyphens (the form of IEEE 802) are read as well.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// All zeros: no address.
    pub const UNSPECIFIED: Self = Self([0; 6]);
    /// All ones: every station on the link.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Whether this is a group address: multicast or broadcast.
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 0x01 != 0
    }

    /// Whether every station on the link is addressed.
    pub const fn is_broadcast(self) -> bool {
        matches!(self.0, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff])
    }

    /// Whether the address was assigned by an administrator or a program, not by a manufacturer.
    pub const fn is_local(self) -> bool {
        self.0[0] & 0x02 != 0
    }

    /// The group that carries an IPv4 multicast `group` (RFC 1112 §6.4): its low 23 bits survive.
    pub const fn from_ipv4_multicast(group: Ipv4Addr) -> Self {
        let [_, b, c, d] = group.octets();
        Self([0x01, 0x00, 0x5e, b & 0x7f, c, d])
    }

    /// The group that carries an IPv6 multicast `group` (RFC 2464 §7): its low 32 bits survive.
    pub const fn from_ipv6_multicast(group: Ipv6Addr) -> Self {
        let [.., a, b, c, d] = group.octets();
        Self([0x33, 0x33, a, b, c, d])
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not an Ethernet address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an ethernet address: write six pairs of hexadecimal digits such as 02:00:00:00:00:01")]
pub struct MacAddrParseError;

impl FromStr for MacAddr {
    type Err = MacAddrParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.as_bytes();
        if text.len() != 17 {
            return Err(MacAddrParseError);
        }
        let separator = text[2];
        if separator != b':' && separator != b'-' {
            return Err(MacAddrParseError);
        }
        let mut octets = [0; 6];
        for (octet, part) in octets.iter_mut().zip(text.chunks(3)) {
            if part.get(2).is_some_and(|&byte| byte != separator) {
                return Err(MacAddrParseError);
            }
            *octet = hex_digit(part[0])? << 4 | hex_digit(part[1])?;
        }
        Ok(Self(octets))
    }
}

fn hex_digit(byte: u8) -> Result<u8, MacAddrParseError> {
    match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        b'A'..=b'F' => Ok(byte - b'A' + 10),
        _ => Err(MacAddrParseError),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn both_text_forms_are_read_and_colons_are_written() {
        let address = MacAddr([0x02, 0x00, 0x5e, 0xab, 0xcd, 0xef]);
        assert_eq!(address.to_string(), "02:00:5e:ab:cd:ef");
        assert_eq!("02-00-5E-AB-CD-EF".parse(), Ok(address));
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "",
            "02:00:5e:ab:cd",
            "02:00:5e:ab:cd:ef:01",
            "02:00:5e:ab:cd:eg",
            "02:00-5e:ab:cd:ef",
            "02.00.5e.ab.cd.ef",
            "+2:00:5e:ab:cd:ef",
            "0200:5e:ab:cd:ef1",
            "02:00:5e:ab:cd:é",
        ] {
            assert_eq!(text.parse::<MacAddr>(), Err(MacAddrParseError), "{text:?}");
        }
    }

    #[test]
    fn kinds_follow_from_the_first_octet() {
        assert!(MacAddr::BROADCAST.is_broadcast() && MacAddr::BROADCAST.is_multicast());
        assert!(!MacAddr::UNSPECIFIED.is_multicast());
        assert!(MacAddr([0x02, 0, 0, 0, 0, 1]).is_local());
        assert!(!MacAddr([0x00, 0x1b, 0x21, 0, 0, 1]).is_local());
    }

    // RFC 1112 §6.4 (224.0.0.251 is the registered mDNS group; the high 9 bits are lost) and
    // RFC 2464 §7 (33-33 and the last four octets).
    #[test]
    fn multicast_groups_map_to_link_groups() {
        assert_eq!(
            MacAddr::from_ipv4_multicast(Ipv4Addr::new(224, 128, 0, 251)).to_string(),
            "01:00:5e:00:00:fb"
        );
        let solicited: Ipv6Addr = "ff02::1:ff28:9c5a".parse().unwrap();
        assert_eq!(MacAddr::from_ipv6_multicast(solicited).to_string(), "33:33:ff:28:9c:5a");
    }

    proptest! {
        #[test]
        fn text_form_round_trips(octets: [u8; 6]) {
            let address = MacAddr(octets);
            prop_assert_eq!(address.to_string().parse(), Ok(address));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,24}") {
            let _ = text.parse::<MacAddr>();
        }

        #[test]
        fn any_text_of_the_right_length_is_read_or_refused(text in "[0-9a-fA-F:é-]{15,17}") {
            let _ = text.parse::<MacAddr>();
        }
    }
}
