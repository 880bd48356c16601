//! Names of instances and descriptors, and the secret that an instance proves itself with.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

/// The longest name, in bytes.
const LONGEST: usize = 32;

/// A name: 1 to 32 lower-case letters, digits and `-`; it begins with a letter or a digit, so that as an
/// argument it is never an option.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl Name {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.to_owned().try_into()
    }
}

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let fits = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        let length = (1..=LONGEST).contains(&text.len());
        if length && text.bytes().all(fits) && !text.starts_with('-') {
            return Ok(Self(text));
        }
        Err(format!(
            "`{}` is no name: use 1 to {LONGEST} of a-z, 0-9 and -, and do not begin with -",
            text.escape_debug()
        ))
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// The 32 bytes with which an instance proves to the Finder who it is. In JSON they are 64 hexadecimal
/// digits; `Debug` does not show them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Secret([u8; 32]);

impl Secret {
    /// A secret of these bytes.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl TryFrom<String> for Secret {
    type Error = String;

    fn try_from(mut text: String) -> Result<Self, String> {
        let secret = Self::parse(text.as_bytes());
        text.zeroize();
        secret.ok_or_else(|| "a secret is not 64 hexadecimal digits".to_owned())
    }
}

impl Secret {
    fn parse(text: &[u8]) -> Option<Self> {
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|d| u8::try_from(d).ok());
        let mut bytes = [0; 32];
        if text.len() != 2 * bytes.len() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(bytes))
    }
}

impl From<Secret> for String {
    fn from(secret: Secret) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
        secret.0.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_plain_words() {
        for good in ["a", "xia", "bgp-2", "0", &"x".repeat(32)] {
            assert_eq!(good.parse::<Name>().unwrap().as_str(), good);
        }
        for bad in ["", "-x", "X", "a b", "a/b", "..", "é", "a\0", &"x".repeat(33)] {
            assert!(bad.parse::<Name>().unwrap_err().contains("is no name"), "{bad}");
        }
    }

    #[test]
    fn a_secret_is_hexadecimal_and_not_shown() {
        let secret = Secret::new(std::array::from_fn(|n| n as u8 * 8));
        let text = String::from(secret.clone());
        assert!(text.starts_with("000810") && text.ends_with("f8"), "{text}");
        assert_eq!(Secret::try_from(text.clone()).unwrap(), secret);
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        for bad in ["", &text[1..], &text.replace('f', "g"), &"é".repeat(32)] {
            let error = Secret::try_from((*bad).to_owned()).unwrap_err();
            assert!(!error.contains("0810"), "{error}");
        }
    }
}
