//! Whether the system where a route begins may announce it, as the RPKI says.
//!
//! Reference: RFC 6811 (origin validation), RFC 8481 (nothing is done with what is found unless an operator says so).
//!
//! The process of the RPKI is told by caches, and tells this one ([`FromRpki`]). Policies ask for what is found as
//! `origin-validation`; nothing else does. If payloads change, what is accepted of the routes that they are about is found anew in
//! the background, and of no others.

mod from_rpki;
mod table;

pub(crate) use from_rpki::{Changed, FromRpki};
pub(crate) use table::Validation;

/// Whether the origin of a route is valid. Reference: RFC 6811 §2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Validity {
    /// Nobody has said who may announce the prefix.
    NotFound,
    /// Its system may announce it.
    Valid,
    /// Others may announce the prefix, or a shorter one.
    Invalid,
}

impl Validity {
    /// All of them, by their places: what policies call them.
    pub(crate) const WORDS: &'static [&'static str] = &["not-found", "valid", "invalid"];

    /// Its place in [`Self::WORDS`].
    pub(crate) fn place(self) -> usize {
        match self {
            Self::NotFound => 0,
            Self::Valid => 1,
            Self::Invalid => 2,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        Self::WORDS[self.place()]
    }
}
