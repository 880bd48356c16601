//! Isolation that a machine or a user cannot give.

use std::fmt;

/// Something that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// What it is, and what takes its place.
    pub(crate) what: String,
    /// What to do about it.
    pub(crate) mend: &'static str,
}

impl Missing {
    pub(crate) fn new(what: impl Into<String>, mend: &'static str) -> Self {
        Self { what: what.into(), mend }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.mend)
    }
}
