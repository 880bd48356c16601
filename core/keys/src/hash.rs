//! 160-bit hashes of public keys.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// The first 160 bits of SHA-256 over a public key in SubjectPublicKeyInfo DER form.
///
/// The text form is 40 hexadecimal digits, printed in lower case and read in either.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash([u8; KeyHash::LEN]);

impl KeyHash {
    /// The length in bytes.
    pub const LEN: usize = 20;

    /// From its bytes, in the order in which they are hashed and sent.
    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    pub const fn to_bytes(self) -> [u8; Self::LEN] {
        self.0
    }

    /// The bytes.
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    /// The hash of a public key of any algorithm, given as SubjectPublicKeyInfo in DER form.
    pub fn of_spki_der(der: &[u8]) -> Self {
        let mut bytes = [0; Self::LEN];
        bytes.copy_from_slice(&Sha256::digest(der)[..Self::LEN]);
        Self(bytes)
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyHash({self})")
    }
}

/// Why a text is no [`KeyHash`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseKeyHashError {
    /// Too short or too long.
    #[error("a key hash has 40 hexadecimal digits, not {0} characters: copy all of it")]
    Length(usize),
    /// A character that is no digit.
    #[error(
        "`{character}` at position {position} is not a hexadecimal digit: use 0 to 9 and a to f"
    )]
    Digit {
        /// The character.
        character: char,
        /// Its place, counted from 1.
        position: usize,
    },
}

impl FromStr for KeyHash {
    type Err = ParseKeyHashError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let length = text.chars().count();
        if length != 2 * Self::LEN {
            return Err(ParseKeyHashError::Length(length));
        }
        let mut bytes = [0; Self::LEN];
        for (index, character) in text.chars().enumerate() {
            let digit = character.to_digit(16);
            let digit = digit.ok_or(ParseKeyHashError::Digit { character, position: index + 1 })?;
            bytes[index / 2] = bytes[index / 2] << 4 | digit as u8;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hash_is_the_beginning_of_sha256() {
        // FIPS 180-4 example: SHA-256("abc") = ba7816bf 8f01cfea 414140de 5dae2223 b00361a3 …
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a3";
        assert_eq!(KeyHash::of_spki_der(b"abc").to_string(), expected);
    }

    #[test]
    fn malformed_texts_are_refused() {
        let parse = |text: &str| text.parse::<KeyHash>().unwrap_err();
        assert_eq!(parse(""), ParseKeyHashError::Length(0));
        assert_eq!(parse(&"0".repeat(39)), ParseKeyHashError::Length(39));
        assert_eq!(parse(&"0".repeat(41)), ParseKeyHashError::Length(41));
        let digit = |character, position| ParseKeyHashError::Digit { character, position };
        assert_eq!(parse(&format!("{}g", "0".repeat(39))), digit('g', 40));
        assert_eq!(parse(&format!("+{}", "0".repeat(39))), digit('+', 1));
        assert_eq!(parse(&"é".repeat(40)), digit('é', 1));
        assert_eq!(parse(&"é".repeat(20)), ParseKeyHashError::Length(20));
    }

    proptest! {
        #[test]
        fn text_form_round_trips_in_either_case(bytes: [u8; 20]) {
            let hash = KeyHash::from_bytes(bytes);
            let text = hash.to_string();
            prop_assert_eq!(text.parse(), Ok(hash));
            prop_assert_eq!(text.to_uppercase().parse(), Ok(hash));
        }

        #[test]
        fn arbitrary_texts_never_panic(text in ".{0,50}") {
            let _ = text.parse::<KeyHash>();
        }
    }
}
