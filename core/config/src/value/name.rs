//! Names that configurations give to things, and names of network interfaces.

use std::fmt;

use super::{FromWord, ToWord, ValueError};

/// A name given in a configuration: an ASCII letter, then letters, digits, `-` or `_`; at most
/// [`Name::MAX_LEN`] characters. Safe as part of a file name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// The longest name (that of a DNS label, RFC 1035 §2.3.4).
    pub const MAX_LEN: usize = 63;

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromWord for Name {
    const WHAT: &'static str = "a name";
    const EXAMPLE: &'static str = "server";

    fn from_word(text: &str) -> Result<Self, ValueError> {
        let begins_well = text.starts_with(|c: char| c.is_ascii_alphabetic());
        let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if begins_well && text.chars().all(is_inner) && text.len() <= Self::MAX_LEN {
            Ok(Self(text.to_owned()))
        } else {
            Err(ValueError::Form(
                "a letter followed by letters, digits, `-` or `_`, at most 63 characters",
            ))
        }
    }
}

/// The name of a network interface, as Linux accepts it (`dev_valid_name` in net/core/dev.c) and
/// limited to letters, digits, `.`, `-` and `_`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceName(String);

impl InterfaceName {
    /// The longest name: `IFNAMSIZ` without the terminating zero.
    pub const MAX_LEN: usize = 15;

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromWord for InterfaceName {
    const WHAT: &'static str = "the name of a network interface";
    const EXAMPLE: &'static str = "eth0";

    fn from_word(text: &str) -> Result<Self, ValueError> {
        let is_known = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
        let fits = (1..=Self::MAX_LEN).contains(&text.len());
        if fits && text.chars().all(is_known) && text != "." && text != ".." {
            Ok(Self(text.to_owned()))
        } else {
            Err(ValueError::Form("1 to 15 letters, digits, `.`, `-` or `_`"))
        }
    }
}

macro_rules! text_of {
    ($($type:ty)*) => {$(
        impl ToWord for $type {
            fn to_word(&self) -> String {
                self.0.clone()
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    )*};
}

text_of!(Name InterfaceName);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::tests::{reads, refuses};

    #[test]
    fn names_are_identifiers() {
        for word in ["a", "server", "R1", "edge-router_2", &"x".repeat(63)] {
            reads(word, Name(word.into()), word);
        }
        for word in ["", "1a", "-a", "_a", "a.b", "a/b", "a b", "é", &"x".repeat(64)] {
            refuses::<Name>(
                word,
                "it must be a letter followed by letters, digits, `-` or `_`, at most 63 characters",
            );
        }
    }

    #[test]
    fn interface_names_fit_the_kernel() {
        for word in ["lo", "eth0", "eth0.100", "br-lan", "123456789012345", "..."] {
            reads(word, InterfaceName(word.into()), word);
        }
        for word in ["", ".", "..", "a/b", "a:b", "a b", "a%d", "1234567890123456"] {
            refuses::<InterfaceName>(word, "it must be 1 to 15 letters, digits, `.`, `-` or `_`");
        }
    }
}
