//! Prefixes as text.
//!
//! ```text
//! prefix := ipv4 [ "/" length ] | ipv6 [ "/" length ] | "0x" hex* "/" length | "lpm-" 40 hex
//! ```
//! The form that is written is `0x…/LEN`, with as many bytes as the length needs: the table does not know
//! whether bits were an address of IP.

use std::net::{IpAddr, Ipv4Addr};

use weft_routing::{Prefix, PrefixError};
use weft_xip::xid::ID_LEN;
use weft_xip::{Xid, XidType};

/// Bits of an identifier.
pub(crate) const ID_BITS: u8 = 8 * ID_LEN as u8;

/// Why a word is no prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PrefixTextError {
    #[error(
        "`{0}` is no prefix; write 10.0.0.0/8, 2001:db8::/32 or hexadecimal digits as in 0x0a/8"
    )]
    Form(String),
    #[error("the length in `{word}` must be a number from 0 to {most}")]
    Length { word: String, most: u8 },
    #[error("bits behind the first {} are set in `{word}`; write {meant}", meant_length(.meant))]
    BitsBehind { word: String, meant: String },
    #[error("an LPM identifier has 40 hexadecimal digits, `{0}` has more")]
    TooManyDigits(String),
    #[error("{0} is not of type lpm")]
    Type(Xid),
}

/// The length behind the `/`.
fn meant_length(meant: &str) -> &str {
    meant.rsplit('/').next().unwrap_or_default()
}

/// Reads a prefix.
pub(crate) fn read(word: &str) -> Result<Prefix, PrefixTextError> {
    if let Ok(xid) = word.parse::<Xid>() {
        let right = xid.kind == XidType::LPM;
        return if right { Ok(xid.id.into()) } else { Err(PrefixTextError::Type(xid)) };
    }
    let (bits, length) = match word.split_once('/') {
        Some((bits, length)) => (bits, Some(length)),
        None => (word, None),
    };
    let form = || PrefixTextError::Form(word.to_owned());
    if let Some(digits) = bits.strip_prefix("0x") {
        let bytes = hexadecimal(digits).ok_or_else(form)?;
        if bytes.len() > ID_LEN {
            return Err(PrefixTextError::TooManyDigits(word.to_owned()));
        }
        let length = length.ok_or_else(form)?;
        return prefix(word, &bytes, Some(length), ID_BITS, &hexadecimal_text);
    }
    match bits.parse().map_err(|_| form())? {
        IpAddr::V4(address) => {
            prefix(word, &address.octets(), length, 32, &|prefix| ipv4(prefix).unwrap_or_default())
        }
        IpAddr::V6(address) => prefix(word, &address.octets(), length, 128, &ipv6),
    }
}

/// The prefix of this length, or the whole without one. `text` writes it in the form that was read.
fn prefix(
    word: &str,
    bytes: &[u8],
    length: Option<&str>,
    most: u8,
    text: &dyn Fn(&Prefix) -> String,
) -> Result<Prefix, PrefixTextError> {
    let number = |length: &str| -> Option<u8> {
        let is_number = length.bytes().all(|byte| byte.is_ascii_digit());
        length.parse().ok().filter(|length| is_number && *length <= most)
    };
    let length = match length {
        None => most,
        Some(length) => {
            number(length).ok_or_else(|| PrefixTextError::Length { word: word.to_owned(), most })?
        }
    };
    Prefix::new(bytes, length).map_err(|error| match error {
        PrefixError::BitsBehind { .. } => {
            let whole = Prefix::of(bytes).unwrap_or_default();
            let meant = text(&whole.truncate(length));
            PrefixTextError::BitsBehind { word: word.to_owned(), meant }
        }
        PrefixError::TooLong { .. } => PrefixTextError::Form(word.to_owned()),
    })
}

/// Bytes from pairs of digits; a digit that is missing at the end is a zero.
fn hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let pair = |pair: &[u8]| {
        let low = pair.get(1).map_or(Some(0), |digit| value(*digit))?;
        Some(value(pair[0])? << 4 | low)
    };
    digits.as_bytes().chunks(2).map(pair).collect()
}

/// `0x0a/8`, which every prefix can be written as.
pub(crate) fn hexadecimal_text(prefix: &Prefix) -> String {
    format!("{prefix:?}")
}

/// `10.0.0.0/8`, if the prefix is not longer than an address of IPv4.
pub(crate) fn ipv4(prefix: &Prefix) -> Option<String> {
    let [a, b, c, d, ..] = prefix.first();
    let length = prefix.length();
    (length <= 32).then(|| format!("{}/{length}", Ipv4Addr::new(a, b, c, d)))
}

fn ipv6(prefix: &Prefix) -> String {
    let mut octets = [0; 16];
    octets.copy_from_slice(&prefix.first()[..16]);
    format!("{}/{}", std::net::Ipv6Addr::from(octets), prefix.length())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn prefix_of(bytes: &[u8], length: u8) -> Prefix {
        Prefix::new(bytes, length).unwrap()
    }

    #[test]
    fn every_form_of_a_prefix_is_read() {
        let ten = prefix_of(&[10], 8);
        for word in ["10.0.0.0/8", "0x0a/8", "0x0A00/8", "0x0a00000000/8", "a00::/8", "0x0a0/8"] {
            assert_eq!(read(word), Ok(ten), "{word}");
        }
        assert_eq!(read("10.1.2.3"), Ok(prefix_of(&[10, 1, 2, 3], 32)));
        assert_eq!(read("2001:db8::/32"), Ok(prefix_of(&[0x20, 1, 0xd, 0xb8], 32)));
        assert_eq!(read("::1").map(|prefix| prefix.length()), Ok(128));
        for word in ["0x/0", "0.0.0.0/0", "::/0"] {
            assert_eq!(read(word), Ok(Prefix::ALL), "{word}");
        }
        let all = format!("lpm-{}", "5a".repeat(20));
        assert_eq!(read(&all), Ok([0x5a; 20].into()));
        assert_eq!(read(&format!("0x{}/160", "5a".repeat(20))), Ok([0x5a; 20].into()));
    }

    #[test]
    fn an_error_says_what_would_be_right() {
        let text = |word: &str| read(word).unwrap_err().to_string();
        assert_eq!(
            text("10.0.0.1/8"),
            "bits behind the first 8 are set in `10.0.0.1/8`; write 10.0.0.0/8"
        );
        assert!(text("2001:db8::1/32").ends_with("write 2001:db8::/32"));
        assert!(text("0x0a01/8").ends_with("write 0x0a/8"));
        for word in ["10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "::/129", "0x0a/161", "0x0a/999"] {
            assert!(text(word).starts_with("the length in"), "{word}");
        }
        for word in ["", "ten", "10.0.0/8", "0x0a", "0xno/8", "10.0.0.0/8/8x", "lpm-12"] {
            let text = text(word);
            assert!(
                text.contains("is no prefix") || text.starts_with("the length"),
                "{word}: {text}"
            );
        }
        assert!(text(&format!("0x{}/8", "0".repeat(42))).contains("has more"));
        assert!(text(&format!("hid-{}", "5a".repeat(20))).ends_with("is not of type lpm"));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(bytes in any::<[u8; 20]>(), length in 0..=160u8) {
            let prefix = Prefix::from(bytes).truncate(length);
            prop_assert_eq!(read(&hexadecimal_text(&prefix)), Ok(prefix));
            let ipv4 = ipv4(&prefix);
            prop_assert_eq!(ipv4.is_some(), length <= 32);
            if let Some(text) = ipv4 {
                prop_assert_eq!(read(&text), Ok(prefix));
            }
        }

        #[test]
        fn any_word_is_read_or_refused(word in "(0x)?[0-9a-f:./]{0,12}") {
            if let Ok(prefix) = read(&word) {
                prop_assert!(prefix.length() <= ID_BITS);
            }
        }
    }
}
