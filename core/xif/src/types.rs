//! The types of arguments.
//!
//! Reference: Handley et al. (XORP), §6.1: network addresses, numbers, strings, booleans, binary
//! arrays, and lists of these. Records, `ip` and `ipnet` for either family, `id` and `handle` are
//! additions.

use std::fmt;

/// Which addresses a type holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4 or IPv6, said by each value.
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

/// The type of an argument, an element or a field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// `i32`
    I32,
    /// `u32`
    U32,
    /// `i64`
    I64,
    /// `u64`
    U64,
    /// `fp64`: an IEEE 754 double.
    Fp64,
    /// `bool`
    Bool,
    /// `txt`: UTF-8.
    Txt,
    /// `binary`: bytes.
    Binary,
    /// `mac`: 48-bit hardware address.
    Mac,
    /// `ip`, `ipv4`, `ipv6`: an address.
    Ip(Family),
    /// `ipnet`, `ipv4net`, `ipv6net`: an address prefix.
    IpNet(Family),
    /// `id`: an identifier of another kind of network: the number of its family and bytes.
    Id,
    /// `handle`: a descriptor, which only transports inside one machine carry.
    Handle,
    /// `list<…>`: any number of one type.
    List(Box<Type>),
    /// A record of the same interface.
    Record(String),
}

/// The types with a word of their own.
const WORDS: [(&str, Type); 17] = [
    ("i32", Type::I32),
    ("u32", Type::U32),
    ("i64", Type::I64),
    ("u64", Type::U64),
    ("fp64", Type::Fp64),
    ("bool", Type::Bool),
    ("txt", Type::Txt),
    ("binary", Type::Binary),
    ("mac", Type::Mac),
    ("ip", Type::Ip(Family::Any)),
    ("ipv4", Type::Ip(Family::V4)),
    ("ipv6", Type::Ip(Family::V6)),
    ("ipnet", Type::IpNet(Family::Any)),
    ("ipv4net", Type::IpNet(Family::V4)),
    ("ipv6net", Type::IpNet(Family::V6)),
    ("id", Type::Id),
    ("handle", Type::Handle),
];

/// The deepest nesting of lists.
const DEEPEST: usize = 4;

impl Type {
    /// The type of a word, such as `u32`, or of `list<word>`; every other name is that of a record.
    /// `None` if it is not even a name, or nested too deeply.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::nested(word, DEEPEST)
    }

    fn nested(word: &str, depth: usize) -> Option<Self> {
        if let Some(inner) = word.strip_prefix("list<").and_then(|rest| rest.strip_suffix('>')) {
            let inner = Self::nested(inner, depth.checked_sub(1)?)?;
            return Some(Self::List(Box::new(inner)));
        }
        if let Some((_, known)) = WORDS.iter().find(|(known, _)| *known == word) {
            return Some(known.clone());
        }
        is_name(word).then(|| Self::Record(word.to_owned()))
    }

    /// The record that this type is made of, if any.
    #[must_use]
    pub fn record(&self) -> Option<&str> {
        match self {
            Self::Record(name) => Some(name),
            Self::List(inner) => inner.record(),
            _ => None,
        }
    }
}

/// Whether a word is a name: a letter, then letters, digits and `_` or `-`.
pub(crate) fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphabetic())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(inner) => write!(f, "list<{inner}>"),
            Self::Record(name) => f.write_str(name),
            other => {
                let word = WORDS.iter().find(|(_, known)| known == other);
                f.write_str(word.map_or("?", |(word, _)| word))
            }
        }
    }
}
