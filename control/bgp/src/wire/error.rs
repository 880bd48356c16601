//! What a peer can do wrong so that its session ends, and the NOTIFICATION that says so.
//!
//! Reference: RFC 4271 §6; RFC 5492 §5; RFC 7313 §5; RFC 7606; RFC 9234 §4.2.

use super::notification::Notification;
use crate::numbers::{
    VERSION, error_code as code, header_error as header, open_error as open, refresh_error,
    update_error as update,
};

/// Why a message ends its session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The marker of a message is wrong: the stream is not where it should be.
    #[error("a message does not begin with sixteen octets of ones")]
    Marker,
    /// A message has a length that its type does not allow.
    #[error("a message of {0} octets has no length that its type allows")]
    Length(u16),
    /// No such message.
    #[error("there is no message of type {0}")]
    Type(u8),
    /// The peer speaks another version.
    #[error("the peer speaks version {0} of BGP, only 4 is known")]
    Version(u8),
    /// The peer is in another autonomous system than it should be, or in AS 0 (RFC 7607).
    #[error("the peer is in AS {0}; configure that number for it, or correct the peer")]
    PeerAs(u32),
    /// The peer's identifier is zero, or our own.
    #[error("the peer's identifier is zero, or the one of this speaker; give each its own")]
    Identifier,
    /// The OPEN has a parameter other than capabilities.
    #[error("the OPEN has a parameter of type {0}, only capabilities are known")]
    Parameter(u8),
    /// The hold time is neither 0 nor at least what is asked for.
    #[error("the peer offers a hold time of {0} seconds, which is too short")]
    HoldTime(u16),
    /// Lengths inside an OPEN do not fit together.
    #[error("the parameters of the OPEN do not end where they say")]
    Open,
    /// A capability that is needed is missing; holds the capabilities that are, as in an OPEN.
    #[error("the peer lacks a capability that is needed here")]
    Capability(Vec<u8>),
    /// The roles do not fit.
    #[error("the roles of the two speakers do not fit; one has to be corrected")]
    Role,
    /// Lengths inside an UPDATE do not fit, or an attribute is there twice that must not be.
    #[error("the list of attributes is malformed")]
    AttributeList,
    /// An attribute that every speaker should know is unknown; holds the attribute.
    #[error("there is no well-known attribute like that which was received")]
    UnknownWellKnown(Vec<u8>),
    /// An attribute is wrong and there is no route that could be withdrawn instead (RFC 7606 §5.2).
    #[error("attribute {0} is wrong, and no route can be withdrawn instead")]
    Attribute(u8),
    /// MP_REACH_NLRI or MP_UNREACH_NLRI cannot be read; holds the attribute.
    #[error("the prefixes in attribute {attribute} cannot be read", attribute = .0.get(1).copied().unwrap_or(0))]
    Multiprotocol(Vec<u8>),
    /// A prefix is longer than an address, or than the field that holds it.
    #[error("the prefixes of an UPDATE cannot be read")]
    NetworkField,
    /// A ROUTE-REFRESH is too long or too short; holds the message.
    #[error("a ROUTE-REFRESH has {length} octets instead of 23", length = .0.len())]
    RefreshLength(Vec<u8>),
}

impl MessageError {
    /// What the peer is told.
    #[must_use]
    pub fn notification(&self) -> Notification {
        let (code, subcode, data) = match self {
            Self::Marker => (code::HEADER, header::NOT_SYNCHRONIZED, Vec::new()),
            Self::Length(length) => (code::HEADER, header::BAD_LENGTH, length.to_be_bytes().into()),
            Self::Type(kind) => (code::HEADER, header::BAD_TYPE, vec![*kind]),
            Self::Version(_) => {
                (code::OPEN, open::VERSION, u16::from(VERSION).to_be_bytes().into())
            }
            Self::PeerAs(_) => (code::OPEN, open::BAD_PEER_AS, Vec::new()),
            Self::Identifier => (code::OPEN, open::BAD_IDENTIFIER, Vec::new()),
            Self::Parameter(_) => (code::OPEN, open::UNSUPPORTED_PARAMETER, Vec::new()),
            Self::HoldTime(_) => (code::OPEN, open::HOLD_TIME, Vec::new()),
            Self::Open => (code::OPEN, open::UNSPECIFIC, Vec::new()),
            Self::Capability(missing) => {
                (code::OPEN, open::UNSUPPORTED_CAPABILITY, missing.clone())
            }
            Self::Role => (code::OPEN, open::ROLE_MISMATCH, Vec::new()),
            Self::AttributeList | Self::Attribute(_) => {
                (code::UPDATE, update::MALFORMED_LIST, Vec::new())
            }
            Self::UnknownWellKnown(attribute) => {
                (code::UPDATE, update::UNRECOGNIZED_WELL_KNOWN, attribute.clone())
            }
            Self::Multiprotocol(attribute) => {
                (code::UPDATE, update::OPTIONAL_ATTRIBUTE, attribute.clone())
            }
            Self::NetworkField => (code::UPDATE, update::NETWORK_FIELD, Vec::new()),
            Self::RefreshLength(message) => {
                (code::ROUTE_REFRESH, refresh_error::LENGTH, message.clone())
            }
        };
        Notification::new(code, subcode, data)
    }
}
