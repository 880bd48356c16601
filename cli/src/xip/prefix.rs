//! Prefixes of LPM as `xip` has them: an identifier and a length apart.

use std::net::Ipv4Addr;

use weft_xip::xid::ID_LEN;
use weft_xip::{Xid, XidType};

use super::Failure;
use super::read::{identifier, number};

/// Bits of an identifier.
const ID_BITS: u32 = 8 * ID_LEN as u32;

/// An identifier, of which the first bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    pub(super) xid: Xid,
    length: u32,
}

impl Prefix {
    /// Reads `0x` and up to 40 hexadecimal digits, or an IPv4 address; and the length.
    pub(super) fn read(id: &str, length: &str) -> Result<Self, Failure> {
        let usage = |text: String| Failure::Usage(text, "");
        let count = number(length);
        let count = count.ok_or_else(|| usage(format!("\"{length}\" is not an integer")))?;
        if count > ID_BITS {
            return Err(usage(format!("Prefix length must be in range 0 - {ID_BITS}")));
        }
        let digits = match (id.strip_prefix("0x"), id.parse::<Ipv4Addr>()) {
            (Some(digits), _) => digits.to_owned(),
            (None, Ok(address)) => format!("{:08x}", address.to_bits()),
            (None, Err(_)) => return Err(usage(format!("invalid IPv4 address: {id}"))),
        };
        let xid = identifier(XidType::LPM, &format!("{digits:0<40}"))?;
        Ok(Self { xid, length: count })
    }

    /// Reads what the principal shows: `0x0a/8`.
    pub(super) fn of_stack(text: &str) -> Option<Self> {
        let (id, length) = text.split_once('/')?;
        Self::read(id, length).ok()
    }

    /// As the principal reads it.
    pub(super) fn to_stack(self) -> String {
        let digits: String = self.xid.id.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("0x{digits}/{}", self.length)
    }

    /// As the tool prints it, whose XID has a name of its own.
    pub(super) fn text(self, xid: &str) -> String {
        format!("{xid}/{}", self.length)
    }
}

/// A word of the stack that should be a prefix.
pub(super) fn expect_prefix(text: &str) -> Result<Prefix, Failure> {
    let wrong = || Failure::Refused(format!("`{text}` is no prefix"));
    Prefix::of_stack(text).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_filled_up_with_zeros_at_their_end() {
        let zeros = "0".repeat(32);
        let ten = Prefix::read("10.0.0.0", "8").unwrap();
        assert_eq!(ten.to_stack(), format!("0x0a000000{zeros}/8"));
        assert_eq!(Prefix::read("0x0a", "8"), Ok(ten));
        assert_eq!(Prefix::of_stack("0x0a/8"), Some(ten));
        assert_eq!(Prefix::of_stack("0x/0"), Prefix::read("0.0.0.0", "0").ok());
        assert_eq!(ten.text("lpm-x"), "lpm-x/8");
    }

    #[test]
    fn mistakes_are_told() {
        for (id, length) in [("10.0.0", "8"), ("10.0.0.0", "161"), ("10.0.0.0", "x"), ("0x0g", "8")]
        {
            assert!(Prefix::read(id, length).is_err(), "{id} {length}");
        }
        assert!(Prefix::read(&format!("0x{}", "0".repeat(41)), "8").is_err());
    }
}
