//! What can be wrong with an attribute, and what is done about it.
//!
//! Reference: RFC 7606 §2 (what can be done), §3 to §7 (what is wrong).

use std::fmt;

use super::super::family::Family;

/// What is done about a fault; a later one is stronger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// The attribute is taken away, and the route used without it.
    DiscardAttribute,
    /// The routes of the message are taken for withdrawn.
    TreatAsWithdraw,
    /// Routes of the family are ignored until the session ends, and those that are known are forgotten.
    DisableFamily(Family),
    /// The session ends.
    ResetSession,
}

/// `its routes are taken for withdrawn`: those of the message.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DiscardAttribute => f.write_str("its routes are used without it"),
            Self::TreatAsWithdraw => f.write_str("its routes are taken for withdrawn"),
            Self::DisableFamily(family) => {
                write!(f, "routes of {family} are ignored until the session ends")
            }
            Self::ResetSession => f.write_str("the session ends"),
        }
    }
}

/// What is wrong with an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rule {
    /// Optional or Transitive are not as they should be (RFC 7606 §3 c).
    #[error("has flags that it must not have")]
    Flags,
    /// The value is too long or too short.
    #[error("has a length that it must not have")]
    Length,
    /// The value has no meaning.
    #[error("has a value without meaning")]
    Value,
    /// It has to be there and is not (RFC 7606 §3 d).
    #[error("is missing")]
    Missing,
    /// It was there before (RFC 7606 §3 g).
    #[error("is there for the second time")]
    Duplicate,
    /// It ends behind the last one's end (RFC 7606 §4).
    #[error("is longer than all attributes together")]
    Overrun,
    /// A segment of a path is malformed (RFC 7606 §7.2).
    #[error("has a malformed segment")]
    Segment,
    /// AS 0 occurs (RFC 7607).
    #[error("goes through AS 0")]
    Zero,
    /// A set occurs (RFC 9774).
    #[error("has autonomous systems without an order")]
    Set,
    /// It has members of a confederation, and comes from outside (RFC 5065 §5).
    #[error("has members of a confederation and comes from outside")]
    Confederation,
    /// It does not begin with a member of the confederation, though it comes from one (RFC 5065 §5).
    #[error("does not begin with a member of the confederation, though it comes from one")]
    Member,
    /// It means nothing to others, and comes from another autonomous system.
    #[error("comes from another autonomous system, where it has no meaning")]
    External,
    /// It is for speakers that know two octets, and comes from one that knows four (RFC 6793 §6).
    #[error("comes from a speaker that has no need for it")]
    FourOctetSpeaker,
    /// A type-length-value inside it is malformed.
    #[error("has malformed content")]
    Content,
    /// Nobody has agreed on its family.
    #[error("is of a family that was not agreed on")]
    Family,
    /// The next hop is too long or too short for the family (RFC 7606 §7.11).
    #[error("has a next hop whose length does not fit its family")]
    NextHop,
    /// Its prefixes cannot be read (RFC 7606 §5.3).
    #[error("has prefixes that cannot be read")]
    Prefixes,
    /// Every speaker should know it, and this one does not.
    #[error("is well-known by its flags and unknown by its code")]
    Unrecognized,
}

/// Something wrong with an attribute of an UPDATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The attribute's code.
    pub attribute: u8,
    /// What is wrong.
    pub rule: Rule,
    /// What is done about it.
    pub action: Action,
}

/// `attribute 2 has a malformed segment`.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attribute {} {}", self.attribute, self.rule)
    }
}
