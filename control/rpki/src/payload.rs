//! What the RPKI says: which system may announce which prefix.
//!
//! Reference: RFC 6811 §2.

use std::fmt;
use std::str::FromStr;

use ipnet::IpNet;

/// A validated ROA payload (VRP): a system may announce a prefix, and those within it up to a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Payload {
    /// The prefix, without bits behind its length.
    net: IpNet,
    /// The length of the longest prefix within it that is meant, too, in bits.
    max_length: u8,
    /// The number of the system.
    system: u32,
}

/// Why there is no such payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// There are bits behind the prefix.
    #[error("{0} has bits behind its length")]
    Bits(IpNet),
    /// The greatest length is less than that of the prefix, or than there can be.
    #[error("prefixes within {net} have {} to {} bits, not {max_length}", net.prefix_len(), net.max_prefix_len())]
    MaxLength {
        /// The prefix.
        net: IpNet,
        /// The length.
        max_length: u32,
    },
}

impl Payload {
    /// A payload: `max_length` is that of the longest prefix that is meant.
    ///
    /// # Errors
    /// There is no such prefix, or none that long within it.
    pub fn new(net: IpNet, max_length: u32, system: u32) -> Result<Self, PayloadError> {
        if net != net.trunc() {
            return Err(PayloadError::Bits(net));
        }
        let lengths = net.prefix_len()..=net.max_prefix_len();
        let length = u8::try_from(max_length).ok().filter(|length| lengths.contains(length));
        let max_length = length.ok_or(PayloadError::MaxLength { net, max_length })?;
        Ok(Self { net, max_length, system })
    }

    /// The prefix.
    #[must_use]
    pub fn net(&self) -> IpNet {
        self.net
    }

    /// The length of the longest prefix within it that is meant.
    #[must_use]
    pub fn max_length(&self) -> u8 {
        self.max_length
    }

    /// The number of the system that may announce it.
    #[must_use]
    pub fn system(&self) -> u32 {
        self.system
    }
}

/// `192.0.2.0/24-26 AS65000`.
impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{} AS{}", self.net, self.max_length, self.system)
    }
}

/// The text is no payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not written like 192.0.2.0/24-26 AS65000")]
pub struct NoPayload;

impl FromStr for Payload {
    type Err = NoPayload;

    fn from_str(text: &str) -> Result<Self, NoPayload> {
        let parts = || {
            let (nets, system) = text.split_once(" AS")?;
            let (net, max_length) = nets.split_once('-')?;
            let (max_length, system) = (max_length.parse().ok()?, system.parse().ok()?);
            Self::new(net.parse().ok()?, max_length, system).ok()
        };
        parts().ok_or(NoPayload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_prefixes_that_there_are_can_be_meant() {
        let new = |net: &str, max_length| Payload::new(net.parse().unwrap(), max_length, 65000);
        let good =
            [("192.0.2.0/24", 24), ("192.0.2.0/24", 32), ("2001:db8::/32", 128), ("::/0", 0)];
        for (net, max_length) in good {
            let payload = new(net, max_length).unwrap();
            assert_eq!(payload.to_string(), format!("{net}-{max_length} AS65000"));
            assert_eq!(payload.to_string().parse(), Ok(payload));
        }
        let net = "192.0.2.0/24".parse().unwrap();
        for max_length in [0, 23, 33, 256 + 24] {
            let error = new("192.0.2.0/24", max_length).unwrap_err();
            assert_eq!(error, PayloadError::MaxLength { net, max_length });
            assert!(error.to_string().contains("24 to 32 bits"), "{error}");
        }
        assert!(matches!(new("192.0.2.1/24", 24), Err(PayloadError::Bits(_))));
    }

    #[test]
    fn what_is_written_otherwise_is_no_payload() {
        for text in ["", "192.0.2.0/24", "192.0.2.0/24-24", "192.0.2.0/24-33 AS1", "x-24 AS1"] {
            assert_eq!(text.parse::<Payload>(), Err(NoPayload), "{text}");
        }
    }
}
