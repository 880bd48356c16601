//! What is wrong with a PDU, and how one side tells the other.
//!
//! Reference: RFC 8210 §5.11 and §12.

use std::fmt;

use super::pdu::Version;
use crate::payload::PayloadError;

/// What is wrong, as one side tells the other. Reference: RFC 8210 §12.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// A PDU makes no sense.
    CorruptData,
    /// The sender cannot go on.
    InternalError,
    /// The cache has nothing to tell yet: the one that does not end the session.
    NoDataAvailable,
    /// A PDU came where it makes no sense.
    InvalidRequest,
    /// There is no such version here.
    UnsupportedVersion,
    /// There is no such type of PDU in this version.
    UnsupportedType,
    /// What is withdrawn was not announced.
    UnknownWithdrawal,
    /// What is announced was announced before.
    DuplicateAnnouncement,
    /// The version is not that of the session.
    UnexpectedVersion,
    /// Another one.
    Other(u16),
}

impl ErrorCode {
    /// Its number.
    #[must_use]
    pub fn code(self) -> u16 {
        match self {
            Self::CorruptData => 0,
            Self::InternalError => 1,
            Self::NoDataAvailable => 2,
            Self::InvalidRequest => 3,
            Self::UnsupportedVersion => 4,
            Self::UnsupportedType => 5,
            Self::UnknownWithdrawal => 6,
            Self::DuplicateAnnouncement => 7,
            Self::UnexpectedVersion => 8,
            Self::Other(code) => code,
        }
    }

    pub(super) fn of(code: u16) -> Self {
        match code {
            0 => Self::CorruptData,
            1 => Self::InternalError,
            2 => Self::NoDataAvailable,
            3 => Self::InvalidRequest,
            4 => Self::UnsupportedVersion,
            5 => Self::UnsupportedType,
            6 => Self::UnknownWithdrawal,
            7 => Self::DuplicateAnnouncement,
            8 => Self::UnexpectedVersion,
            other => Self::Other(other),
        }
    }
}

/// `corrupt data`.
impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CorruptData => "corrupt data",
            Self::InternalError => "internal error",
            Self::NoDataAvailable => "no data available",
            Self::InvalidRequest => "invalid request",
            Self::UnsupportedVersion => "unsupported protocol version",
            Self::UnsupportedType => "unsupported PDU type",
            Self::UnknownWithdrawal => "withdrawal of unknown record",
            Self::DuplicateAnnouncement => "duplicate announcement received",
            Self::UnexpectedVersion => "unexpected protocol version",
            Self::Other(code) => return write!(f, "error {code}"),
        })
    }
}

/// What is wrong with a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PduError {
    /// There is no such version here.
    #[error("it is of version {0}, and versions 0 and 1 are known")]
    Version(u8),
    /// There is no such type in this version.
    #[error("there is no PDU of type {kind} in version {version}")]
    Type {
        /// The version.
        version: Version,
        /// The number of the type.
        kind: u8,
    },
    /// No PDU of this type is this long.
    #[error("a PDU of type {kind} is not {length} bytes long")]
    Length {
        /// The number of the type.
        kind: u8,
        /// The length that it says it has.
        length: u32,
    },
    /// A prefix is longer than one of its version of IP can be.
    #[error("a prefix is {0} bits long")]
    PrefixLength(u8),
    /// There is no such payload.
    #[error("{0}")]
    Payload(#[from] PayloadError),
}

impl PduError {
    /// As the other side is told.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Version(_) => ErrorCode::UnsupportedVersion,
            Self::Type { .. } => ErrorCode::UnsupportedType,
            Self::Length { .. } | Self::PrefixLength(_) | Self::Payload(_) => {
                ErrorCode::CorruptData
            }
        }
    }
}
