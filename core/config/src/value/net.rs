//! IPv4 addresses, sockets, interface addresses and prefixes.
//!
//! Reference: RFC 4632 §3.1 (prefix notation).

use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};

use super::number::is_digits;
use super::{FromWord, ToWord, ValueError};

impl FromWord for Ipv4Addr {
    const WHAT: &'static str = "an IPv4 address";
    const EXAMPLE: &'static str = "10.0.1.1";

    fn from_word(text: &str) -> Result<Self, ValueError> {
        text.parse().map_err(|_| ValueError::Form("four numbers 0 to 255 with points between"))
    }
}

impl FromWord for SocketAddrV4 {
    const WHAT: &'static str = "an IPv4 address with port";
    const EXAMPLE: &'static str = "10.0.1.1:13781";

    fn from_word(text: &str) -> Result<Self, ValueError> {
        text.parse().map_err(|_| ValueError::Form("ADDRESS:PORT"))
    }
}

/// The address of an interface with the length of its network's prefix: `10.0.1.1/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ipv4Interface {
    address: Ipv4Addr,
    prefix_len: u8,
}

impl Ipv4Interface {
    /// `None` if the length is above 32.
    pub const fn new(address: Ipv4Addr, prefix_len: u8) -> Option<Self> {
        if prefix_len <= 32 { Some(Self { address, prefix_len }) } else { None }
    }

    /// The address.
    pub const fn address(self) -> Ipv4Addr {
        self.address
    }

    /// The length of the prefix in bits, at most 32.
    pub const fn prefix_len(self) -> u8 {
        self.prefix_len
    }

    /// The network that the interface is in.
    pub const fn network(self) -> Ipv4Prefix {
        let network = self.address.to_bits() & mask(self.prefix_len);
        Ipv4Prefix { network: Ipv4Addr::from_bits(network), prefix_len: self.prefix_len }
    }
}

/// A destination prefix, all host bits zero: `10.0.1.0/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ipv4Prefix {
    network: Ipv4Addr,
    prefix_len: u8,
}

impl Ipv4Prefix {
    /// The prefix of every address.
    pub const DEFAULT: Self = Self { network: Ipv4Addr::UNSPECIFIED, prefix_len: 0 };

    /// The first address.
    pub const fn network(self) -> Ipv4Addr {
        self.network
    }

    /// The length in bits, at most 32.
    pub const fn prefix_len(self) -> u8 {
        self.prefix_len
    }

    /// Whether the address begins with this prefix.
    pub const fn contains(self, address: Ipv4Addr) -> bool {
        address.to_bits() & mask(self.prefix_len) == self.network.to_bits()
    }
}

/// The `len` first bits, at most 32.
const fn mask(len: u8) -> u32 {
    if len == 0 { 0 } else { u32::MAX << (32 - len) }
}

impl FromWord for Ipv4Interface {
    const WHAT: &'static str = "an IPv4 address with prefix length";
    const EXAMPLE: &'static str = "10.0.1.1/24";

    fn from_word(text: &str) -> Result<Self, ValueError> {
        parse(text).ok_or(ValueError::Form("ADDRESS/LENGTH with a length of 0 to 32"))
    }
}

impl FromWord for Ipv4Prefix {
    const WHAT: &'static str = "an IPv4 prefix";
    const EXAMPLE: &'static str = "10.0.1.0/24";

    fn from_word(text: &str) -> Result<Self, ValueError> {
        let interface =
            parse(text).ok_or(ValueError::Form("NETWORK/LENGTH with a length of 0 to 32"))?;
        let prefix = interface.network();
        if prefix.network == interface.address {
            Ok(prefix)
        } else {
            Err(ValueError::Other(format!("it has host bits, its network is `{prefix}`")))
        }
    }
}

fn parse(text: &str) -> Option<Ipv4Interface> {
    let (address, prefix_len) = text.split_once('/')?;
    if !is_digits(prefix_len) || prefix_len.len() > 2 {
        return None;
    }
    Ipv4Interface::new(address.parse().ok()?, prefix_len.parse().ok()?)
}

impl fmt::Display for Ipv4Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_len)
    }
}

impl fmt::Display for Ipv4Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix_len)
    }
}

macro_rules! word_is_display {
    ($($type:ty)*) => {$(
        impl ToWord for $type {
            fn to_word(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

word_is_display!(Ipv4Addr SocketAddrV4 Ipv4Interface Ipv4Prefix);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::tests::{reads, refuses};
    use proptest::prelude::*;

    const ONE: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);

    #[test]
    fn addresses_and_sockets_have_their_usual_form() {
        reads("10.0.1.1", ONE, "10.0.1.1");
        reads("10.0.1.1:13781", SocketAddrV4::new(ONE, 13781), "10.0.1.1:13781");
        for word in ["", "10.0.1", "10.0.1.256", "10.0.1.01", "10.0.1.1/24", "host"] {
            refuses::<Ipv4Addr>(word, "it must be four numbers 0 to 255 with points between");
        }
        for word in ["10.0.1.1", "10.0.1.1:", "10.0.1.1:65536", ":80"] {
            refuses::<SocketAddrV4>(word, "it must be ADDRESS:PORT");
        }
    }

    #[test]
    fn interface_addresses_keep_their_host_bits() {
        let interface = Ipv4Interface::new(ONE, 24).unwrap();
        reads("10.0.1.1/24", interface, "10.0.1.1/24");
        assert_eq!(interface.network().to_string(), "10.0.1.0/24");
        assert_eq!(Ipv4Interface::new(ONE, 33), None);
        for word in ["10.0.1.1", "10.0.1.1/", "10.0.1.1/33", "10.0.1.1/+4", "10.0.1.1/024", "/8"] {
            refuses::<Ipv4Interface>(word, "it must be ADDRESS/LENGTH with a length of 0 to 32");
        }
    }

    #[test]
    fn prefixes_have_no_host_bits() {
        reads("0.0.0.0/0", Ipv4Prefix::DEFAULT, "0.0.0.0/0");
        reads("10.0.1.1/32", Ipv4Interface::new(ONE, 32).unwrap().network(), "10.0.1.1/32");
        refuses::<Ipv4Prefix>("10.0.1.1/24", "it has host bits, its network is `10.0.1.0/24`");
        refuses::<Ipv4Prefix>("10.0.1.0", "it must be NETWORK/LENGTH with a length of 0 to 32");
    }

    proptest! {
        #[test]
        fn interface_addresses_round_trip_and_lie_in_their_network(bits: u32, len in 0u8..=32) {
            let interface = Ipv4Interface::new(Ipv4Addr::from_bits(bits), len).unwrap();
            prop_assert_eq!(Ipv4Interface::from_word(&interface.to_word()), Ok(interface));
            let network = interface.network();
            prop_assert_eq!(Ipv4Prefix::from_word(&network.to_word()), Ok(network));
            prop_assert!(network.contains(interface.address()));
        }

        #[test]
        fn prefix_contains_exactly_the_addresses_with_its_first_bits(
            a: u32, b: u32, len in 1u8..=32, flip in 0u32..32,
        ) {
            let network = Ipv4Interface::new(Ipv4Addr::from_bits(a), len).unwrap().network();
            let same = a & mask(len) | b & !mask(len);
            prop_assert!(network.contains(Ipv4Addr::from_bits(same)));
            let flipped = same ^ (1 << (31 - flip % u32::from(len)));
            prop_assert!(!network.contains(Ipv4Addr::from_bits(flipped)));
        }
    }
}
