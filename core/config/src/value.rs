//! Typed values of words: what a word means, and what to write instead when it means nothing.

mod decimal;
mod duration;
mod keyword;
mod name;
mod net;
mod number;
mod probability;
mod rate;
mod scale;
mod size;

pub use keyword::Keyword;
pub use name::{InterfaceName, Name};
pub use net::{Ipv4Interface, Ipv4Prefix};
pub use probability::Probability;
pub use rate::Rate;
pub use size::ByteSize;

use crate::error::Error;
use crate::source::Location;
use crate::suggest::list;

/// A value that one word of a statement expresses.
///
/// Implemented for `bool`, the integers, `String`, [`std::time::Duration`], [`Rate`], [`ByteSize`],
/// [`Probability`], IPv4 addresses, prefixes and sockets, [`Name`], [`InterfaceName`], and for every
/// enum with [`Keyword`]. Consumers implement it for their own types:
///
/// ```
/// use weft_config::{FromWord, InterfaceName, Name, ValueError};
///
/// /// An interface of a node: `server:eth0`.
/// struct Endpoint {
///     node: Name,
///     interface: InterfaceName,
/// }
///
/// impl FromWord for Endpoint {
///     const WHAT: &'static str = "an end of a link";
///     const EXAMPLE: &'static str = "server:eth0";
///
///     fn from_word(text: &str) -> Result<Self, ValueError> {
///         let (node, interface) = text.split_once(':').ok_or(ValueError::Form("NODE:INTERFACE"))?;
///         let interface = InterfaceName::from_word(interface)?;
///         Ok(Self { node: Name::from_word(node)?, interface })
///     }
/// }
///
/// let end = Endpoint::from_word("server:eth0").unwrap();
/// assert_eq!((end.node.as_str(), end.interface.as_str()), ("server", "eth0"));
/// ```
pub trait FromWord: Sized {
    /// What it is, with article, to follow "`x` is not": "a duration".
    const WHAT: &'static str;
    /// An accepted word.
    const EXAMPLE: &'static str;

    /// The value of a word.
    ///
    /// # Errors
    /// Why the word is no such value.
    fn from_word(text: &str) -> Result<Self, ValueError>;
}

/// The word that expresses a value; [`FromWord`] reads it back as the same value.
pub trait ToWord {
    /// The canonical word, without quotes.
    fn to_word(&self) -> String;
}

impl ToWord for str {
    fn to_word(&self) -> String {
        self.to_owned()
    }
}

impl ToWord for String {
    fn to_word(&self) -> String {
        self.clone()
    }
}

/// Any word as it stands.
impl FromWord for String {
    const WHAT: &'static str = "a text";
    const EXAMPLE: &'static str = "text";

    fn from_word(text: &str) -> Result<Self, ValueError> {
        Ok(text.to_owned())
    }
}

/// How messages speak of a kind of value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// What it is, with article: "an XIA address".
    pub what: &'static str,
    /// An accepted word.
    pub example: &'static str,
}

/// A value together with the place of its word, for consumers that check it later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub location: Location,
}

impl<T> Located<T> {
    /// A mistake that the consumer found in the value.
    pub fn error(&self, sentence: impl Into<String>) -> Error {
        self.location.error(sentence)
    }
}

/// What [`crate::Block`] and [`crate::Entry`] read: any [`FromWord`], and [`Located`] around one.
pub trait ReadWord: Sized {
    /// How messages speak of it.
    const FORM: Form;

    /// The value of the word that stands at `location`.
    ///
    /// # Errors
    /// Why the word is no such value.
    fn read_word(text: &str, location: Location) -> Result<Self, ValueError>;
}

impl<T: FromWord> ReadWord for T {
    const FORM: Form = Form { what: T::WHAT, example: T::EXAMPLE };

    fn read_word(text: &str, _: Location) -> Result<Self, ValueError> {
        T::from_word(text)
    }
}

impl<T: FromWord> ReadWord for Located<T> {
    const FORM: Form = <T as ReadWord>::FORM;

    fn read_word(text: &str, location: Location) -> Result<Self, ValueError> {
        Ok(Self { value: T::from_word(text)?, location })
    }
}

/// Why a word is not the wanted value. `Display` completes the sentence "`x` is not a rate: …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// It does not have the form of such a value, which is this.
    #[error("it must be {0}")]
    Form(&'static str),
    /// A number without the unit it needs.
    #[error("its unit is missing, one of {}", list(.0))]
    MissingUnit(Vec<&'static str>),
    /// A number with a unit that does not exist.
    #[error("its unit `{}` is unknown, {}", crate::source::shown(.unit), one_of(*.suggestion, .units))]
    UnknownUnit {
        /// The unit found.
        unit: String,
        /// The most similar unit.
        suggestion: Option<&'static str>,
        /// All units.
        units: Vec<&'static str>,
    },
    /// A fraction that the exact representation cannot hold.
    #[error("it is finer than {0}")]
    TooFine(&'static str),
    /// The type of the value ends before.
    #[error("it must be {min} to {max}")]
    OutOfRange {
        /// The least value.
        min: String,
        /// The greatest value.
        max: String,
    },
    /// A word that is none of those of an enum.
    #[error("{}", one_of(*.suggestion, .accepted))]
    NotOneOf {
        /// The most similar one.
        suggestion: Option<&'static str>,
        /// All of them.
        accepted: Vec<&'static str>,
    },
    /// The consumer's own reason.
    #[error("{0}")]
    Other(String),
}

fn one_of(suggestion: Option<&str>, accepted: &[&str]) -> String {
    match suggestion {
        Some(word) => format!("did you mean `{word}`?"),
        None => format!("it is one of {}", list(accepted)),
    }
}

impl ValueError {
    /// Whether the sentence already names a word to write.
    pub(crate) fn names_a_word(&self) -> bool {
        match self {
            Self::NotOneOf { .. } | Self::UnknownUnit { suggestion: Some(_), .. } => true,
            Self::Form(_)
            | Self::MissingUnit(_)
            | Self::UnknownUnit { suggestion: None, .. }
            | Self::TooFine(_)
            | Self::OutOfRange { .. }
            | Self::Other(_) => false,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::fmt::Debug;

    /// The word means this value, and the value is written as this canonical word.
    pub(crate) fn reads<T: FromWord + ToWord + PartialEq + Debug>(
        word: &str,
        value: T,
        canonical: &str,
    ) {
        assert_eq!(T::from_word(word).as_ref(), Ok(&value), "{word}");
        assert_eq!(value.to_word(), canonical);
        assert_eq!(T::from_word(canonical), Ok(value), "{canonical}");
    }

    /// The word is refused for this reason.
    pub(crate) fn refuses<T: FromWord + Debug>(word: &str, reason: &str) {
        let error = T::from_word(word).expect_err(word);
        assert_eq!(error.to_string(), reason, "{word}");
        T::from_word(T::EXAMPLE).expect("the example is accepted");
    }
}
