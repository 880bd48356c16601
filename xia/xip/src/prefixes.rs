//! Routes to XIDs that begin with certain bits, as somebody outside of the stack has found them.
//!
//! Reference: Machado et al., "Linux XIA", §5.1 (a principal that takes what BGP knows) and §4.2.1 (routing redirects).
//!
//! Who has found them is not known here: they come by a call, and the component that takes it sees to it that one caller
//! at a time tells of a principal. What an operator has stated of a prefix goes before what was found of the same one.

use crate::Xid;

/// Something about prefixes of a principal's XIDs.
#[derive(Clone, Copy, Debug)]
pub enum PrefixNews<'a> {
    /// All is told anew from here on. What was told before serves until it is told again, or until
    /// [`PrefixNews::Complete`].
    Begin,
    /// The prefix of `length` bits at the beginning of `bits` leads there now; nowhere in particular any more if there is
    /// no lead, so that a shorter prefix counts.
    Lead {
        /// Bits from the highest on; those behind the length, and those that are missing, are zero.
        bits: &'a [u8],
        /// How many count, 160 at most.
        length: u8,
        /// Where it leads.
        lead: Option<Lead<'a>>,
    },
    /// All was told: what was not told since [`PrefixNews::Begin`] is gone.
    Complete,
}

/// Where a prefix leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lead<'a> {
    /// Nowhere: the next edge is tried.
    Nowhere,
    /// It is this node: go on behind it.
    Here,
    /// Look one of these up instead: in order, each once, at least one.
    Via(&'a [Xid]),
}

/// Why news of prefixes are not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// The principal looks XIDs up as a whole.
    #[error("its XIDs have no prefixes: only lpm has routes to some")]
    NoPrefixes,
    /// The prefix is longer than an XID, or has bits behind its length.
    #[error("a prefix has at most 160 bits, and zeros behind its length")]
    NoPrefix,
}
