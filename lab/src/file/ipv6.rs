//! `address6 ADDRESS/LENGTH ADDRESS/LENGTH;`: the addresses of IPv6 of the two ends of a link.
//!
//! Reference: RFC 4291 §2.3 (text form of prefixes).

use std::fmt;
use std::net::Ipv6Addr;

use weft_config::{Block, Errors, FromWord, Located, ValueError};

/// An address of IPv6 with the length of its network: `2001:db8:1::1/64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ipv6Interface {
    pub(crate) address: Ipv6Addr,
    /// In bits, at most 128.
    length: u8,
}

impl Ipv6Interface {
    /// The network that the interface is in.
    fn network(self) -> Self {
        let host = u128::MAX.checked_shr(self.length.into()).unwrap_or(0);
        Self { address: Ipv6Addr::from_bits(self.address.to_bits() & !host), ..self }
    }
}

impl fmt::Display for Ipv6Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl FromWord for Ipv6Interface {
    const WHAT: &'static str = "an IPv6 address with the length of its network";
    const EXAMPLE: &'static str = "2001:db8:1::1/64";

    fn from_word(text: &str) -> Result<Self, ValueError> {
        let form = || ValueError::Form("ADDRESS/LENGTH");
        let (address, length) = text.split_once('/').ok_or_else(form)?;
        let address = address.parse().map_err(|_| form())?;
        let length = length.parse().ok().filter(|length| *length <= 128).ok_or_else(form)?;
        Ok(Self { address, length })
    }
}

/// None, or one for each end.
pub(super) fn read_addresses(block: &mut Block<'_>) -> Result<Vec<Located<Ipv6Interface>>, Errors> {
    let Some(mut entry) = block.one("address6")? else { return Ok(Vec::new()) };
    let first: Located<Ipv6Interface> = entry.argument("the address of the first end")?;
    let second: Located<Ipv6Interface> = entry.argument("the address of the second end")?;
    entry.end()?;
    let (one, other) = (first.value.network(), second.value.network());
    if one != other {
        let sentence = format!(
            "the two ends are in different networks, {one} and {other}: use addresses of one network"
        );
        return Err(second.error(sentence).into());
    }
    Ok(vec![first, second])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Ipv6Interface> {
        Ipv6Interface::from_word(text).ok()
    }

    #[test]
    fn addresses_have_a_network() {
        let one = read("2001:db8:1::1/64").unwrap();
        assert_eq!(one.to_string(), "2001:db8:1::1/64");
        assert_eq!(one.network().to_string(), "2001:db8:1::/64");
        assert_eq!(read("::1/128").unwrap().network().to_string(), "::1/128");
        assert_eq!(read("2001:db8::1/0").unwrap().network().to_string(), "::/0");
        for wrong in ["", "2001:db8::1", "2001:db8::1/129", "2001:db8::1/-1", "10.0.0.1/24", "x/64"]
        {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
