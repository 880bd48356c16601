//! What can become of a call besides its answer.
//!
//! Reference: XORP's error classes and their numbers (libxipc, `xrl_error.cc`): 1xx the call was
//! answered, 20x it found no target, 21x it was not carried, 220 somebody is broken.

use std::fmt;

/// The kinds of failure of a call, with the numbers that XORP gave them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum ErrorCode {
    /// The arguments are not those of the method.
    BadArgs = 101,
    /// The component could not do it.
    CommandFailed = 102,
    /// There is no Finder.
    NoFinder = 200,
    /// The target is not there, or the caller may not call it.
    ResolveFailed = 201,
    /// The target has no such method.
    NoSuchMethod = 202,
    /// The call could not be sent; whether it would be later is not known.
    SendFailed = 210,
    /// No reply came in time; whether the call was carried out is not known.
    ReplyTimedOut = 211,
    /// The call could not be sent now; it can be tried again.
    SendFailedTransient = 212,
    /// Somebody does not keep to the protocol.
    InternalError = 220,
}

impl ErrorCode {
    /// All of them, in order of number.
    pub const ALL: [Self; 9] = [
        Self::BadArgs,
        Self::CommandFailed,
        Self::NoFinder,
        Self::ResolveFailed,
        Self::NoSuchMethod,
        Self::SendFailed,
        Self::ReplyTimedOut,
        Self::SendFailedTransient,
        Self::InternalError,
    ];

    /// The number on the wire.
    #[must_use]
    pub fn number(self) -> u16 {
        self as u16
    }

    /// The code of a number. Unknown numbers are the other side's mistake: [`Self::InternalError`].
    #[must_use]
    pub fn from_number(number: u16) -> Self {
        Self::ALL.into_iter().find(|code| code.number() == number).unwrap_or(Self::InternalError)
    }

    /// Its name as XORP writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BadArgs => "BAD_ARGS",
            Self::CommandFailed => "COMMAND_FAILED",
            Self::NoFinder => "NO_FINDER",
            Self::ResolveFailed => "RESOLVE_FAILED",
            Self::NoSuchMethod => "NO_SUCH_METHOD",
            Self::SendFailed => "SEND_FAILED",
            Self::ReplyTimedOut => "REPLY_TIMED_OUT",
            Self::SendFailedTransient => "SEND_FAILED_TRANSIENT",
            Self::InternalError => "INTERNAL_ERROR",
        }
    }
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct XrlError {
    /// The kind of failure, for programs.
    pub code: ErrorCode,
    /// What happened, for people, in one sentence.
    pub note: String,
}

impl fmt::Display for XrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.code.number(), self.code.name(), self.note)
    }
}

impl XrlError {
    /// An error of a kind.
    #[must_use]
    pub fn new(code: ErrorCode, note: impl Into<String>) -> Self {
        Self { code, note: note.into() }
    }

    /// The component could not do it.
    #[must_use]
    pub fn failed(note: impl Into<String>) -> Self {
        Self::new(ErrorCode::CommandFailed, note)
    }

    /// Whether the target was not there, or went before it answered.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(
            self.code,
            ErrorCode::ResolveFailed | ErrorCode::SendFailed | ErrorCode::SendFailedTransient
        )
    }

    /// The arguments do not fit.
    #[must_use]
    pub fn bad_args(note: impl Into<String>) -> Self {
        Self::new(ErrorCode::BadArgs, note)
    }
}

impl From<crate::Malformed> for XrlError {
    fn from(malformed: crate::Malformed) -> Self {
        Self::bad_args(malformed.to_string())
    }
}
