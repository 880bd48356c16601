//! Cutting the stream of a connection into messages.
//!
//! ```text
//!  0 marker (16): all ones
//! 16 length of the whole message (2)
//! 18 type
//! 19 body
//! ```
//!
//! Reference: RFC 4271 §4.1, §4.4, §6.1; RFC 8654 §3 (length of extended messages).

use std::fmt;
use std::ops::Range;

use super::context::{MAX_EXTENDED_MESSAGE, MAX_MESSAGE};
use super::error::MessageError;
use crate::numbers::message_type;

/// Length of the part that all messages begin with, in bytes.
pub const HEADER_LEN: usize = 19;

/// What an OPEN has room for behind its header, in bytes.
pub(crate) const MAX_BODY: usize = MAX_MESSAGE as usize - HEADER_LEN;

mod field {
    use super::Range;

    pub(super) const MARKER: Range<usize> = 0..16;
    pub(super) const LENGTH: Range<usize> = 16..18;
    pub(super) const TYPE: usize = 18;
}

/// Types of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageType {
    /// Who the speaker is and what it can do.
    Open,
    /// Routes that come and go.
    Update,
    /// The session ends, and why.
    Notification,
    /// The speaker is there.
    Keepalive,
    /// Routes are to be sent again.
    RouteRefresh,
}

impl MessageType {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::Open, Self::Update, Self::Notification, Self::Keepalive, Self::RouteRefresh];

    /// Its number on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Open => message_type::OPEN,
            Self::Update => message_type::UPDATE,
            Self::Notification => message_type::NOTIFICATION,
            Self::Keepalive => message_type::KEEPALIVE,
            Self::RouteRefresh => message_type::ROUTE_REFRESH,
        }
    }

    const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            message_type::OPEN => Self::Open,
            message_type::UPDATE => Self::Update,
            message_type::NOTIFICATION => Self::Notification,
            message_type::KEEPALIVE => Self::Keepalive,
            message_type::ROUTE_REFRESH => Self::RouteRefresh,
            _ => return None,
        })
    }

    /// Whether a whole message of this type may have `length` bytes where others may have `limit`.
    const fn allows(self, length: u16, limit: u16) -> bool {
        match self {
            Self::Open => length >= 29 && length <= MAX_MESSAGE,
            Self::Update => length >= 23 && length <= limit,
            Self::Notification => length >= 21 && length <= limit,
            Self::Keepalive => length == HEADER_LEN as u16,
            // RFC 7313 has an answer of its own to a length that is wrong.
            Self::RouteRefresh => length <= limit,
        }
    }
}

/// `route-refresh`.
impl fmt::Display for MessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Update => "update",
            Self::Notification => "notification",
            Self::Keepalive => "keepalive",
            Self::RouteRefresh => "route-refresh",
        })
    }
}

/// A message as it was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its type.
    pub kind: MessageType,
    /// The whole message, header included.
    pub bytes: &'a [u8],
}

impl<'a> Message<'a> {
    /// What stands behind the header.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        &self.bytes[HEADER_LEN..]
    }
}

/// Takes bytes as they come and gives messages.
#[derive(Clone, Debug, Default)]
pub struct Cutter {
    buffer: Vec<u8>,
    /// Bytes at the front of the buffer that were taken.
    taken: usize,
    is_extended: bool,
}

impl Cutter {
    /// For messages of up to [`MAX_MESSAGE`] bytes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on messages other than OPEN and KEEPALIVE may have [`MAX_EXTENDED_MESSAGE`] bytes.
    pub fn allow_extended(&mut self) {
        self.is_extended = true;
    }

    /// Adds what was received. What is held is at most what was pushed since [`Cutter::take`] last gave
    /// nothing, and a message that is not complete.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next message; none if more bytes are needed for it.
    ///
    /// # Errors
    /// The header is wrong. There is no way to find the next message then.
    pub fn take(&mut self) -> Result<Option<Message<'_>>, MessageError> {
        let rest = &self.buffer[self.taken..];
        let Some(header) = rest.first_chunk::<HEADER_LEN>() else { return Ok(None) };
        let (kind, length) = self.check(header)?;
        let Some(bytes) = rest.get(..length) else { return Ok(None) };
        self.taken += length;
        Ok(Some(Message { kind, bytes }))
    }

    /// The type and length that a header states.
    fn check(&self, header: &[u8; HEADER_LEN]) -> Result<(MessageType, usize), MessageError> {
        if header[field::MARKER] != [0xFF; 16] {
            return Err(MessageError::Marker);
        }
        let length =
            u16::from_be_bytes([header[field::LENGTH.start], header[field::LENGTH.start + 1]]);
        let limit = if self.is_extended { MAX_EXTENDED_MESSAGE } else { MAX_MESSAGE };
        if usize::from(length) < HEADER_LEN || length > limit {
            return Err(MessageError::Length(length));
        }
        let kind = header[field::TYPE];
        let kind = MessageType::from_code(kind).ok_or(MessageError::Type(kind))?;
        if !kind.allows(length, limit) {
            return Err(MessageError::Length(length));
        }
        Ok((kind, usize::from(length)))
    }
}

/// The type of the message at the front of `bytes`, which this process has made, and what is behind it; none if there is none.
pub(super) fn peek(bytes: &[u8]) -> Option<(MessageType, &[u8])> {
    let header = bytes.first_chunk::<HEADER_LEN>()?;
    let length = u16::from_be_bytes([header[field::LENGTH.start], header[field::LENGTH.start + 1]]);
    let behind = bytes.get(usize::from(length).max(HEADER_LEN)..)?;
    Some((MessageType::from_code(header[field::TYPE])?, behind))
}

/// Begins a message in `out`; what follows is its body. The result is for [`end`].
pub(crate) fn begin(kind: MessageType, out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0xFF; 16]);
    out.extend_from_slice(&[0, 0, kind.code()]);
    start
}

/// States the length of the message that began at `start`; it must be below 64 KiB.
pub(crate) fn end(start: usize, out: &mut [u8]) {
    let message = &mut out[start..];
    debug_assert!(message.len() <= usize::from(u16::MAX), "a message is too long");
    let length = (message.len() as u16).to_be_bytes();
    message[field::LENGTH].copy_from_slice(&length);
}

/// Appends a message with this body, which is that of one.
pub(crate) fn framed(kind: MessageType, body: &[u8], out: &mut Vec<u8>) {
    let start = begin(kind, out);
    out.extend_from_slice(body);
    end(start, out);
}

/// A KEEPALIVE.
#[must_use]
pub fn keepalive() -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_LEN);
    let start = begin(MessageType::Keepalive, &mut out);
    end(start, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: MessageType, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let start = begin(kind, &mut out);
        out.extend_from_slice(body);
        end(start, &mut out);
        out
    }

    fn all(cutter: &mut Cutter) -> Vec<Vec<u8>> {
        let mut taken = Vec::new();
        while let Some(message) = cutter.take().unwrap() {
            taken.push(message.bytes.to_vec());
        }
        taken
    }

    #[test]
    fn a_keepalive_is_a_header_alone() {
        let mut expected = vec![0xFF; 16];
        expected.extend([0, 19, 4]);
        assert_eq!(keepalive(), expected);
    }

    #[test]
    fn the_stream_may_be_split_anywhere() {
        let messages = [
            keepalive(),
            message(MessageType::Update, &[0, 0, 0, 0]),
            message(MessageType::Notification, &[6, 2]),
            message(MessageType::RouteRefresh, &[0, 1, 0, 1]),
        ];
        let stream = messages.concat();
        for first in 0..=stream.len() {
            for second in [first, first + 1, (first + stream.len()) / 2, stream.len()] {
                let second = second.min(stream.len());
                let mut cutter = Cutter::new();
                let mut taken = Vec::new();
                for part in [&stream[..first], &stream[first..second], &stream[second..]] {
                    cutter.push(part);
                    taken.extend(all(&mut cutter));
                }
                assert_eq!(taken, messages);
            }
        }
    }

    fn refused(bytes: &[u8], is_extended: bool) -> MessageError {
        let mut cutter = Cutter::new();
        if is_extended {
            cutter.allow_extended();
        }
        cutter.push(bytes);
        cutter.take().unwrap_err()
    }

    #[test]
    fn headers_that_are_wrong_end_the_session() {
        let mut marker = keepalive();
        marker[3] = 0;
        assert_eq!(refused(&marker, false), MessageError::Marker);
        assert_eq!(
            refused(&message(MessageType::Keepalive, &[0]), false),
            MessageError::Length(20)
        );
        assert_eq!(refused(&message(MessageType::Open, &[0; 9]), false), MessageError::Length(28));
        assert_eq!(
            refused(&message(MessageType::Update, &[0; 3]), false),
            MessageError::Length(22)
        );
        let notification = message(MessageType::Notification, &[6]);
        assert_eq!(refused(&notification, false), MessageError::Length(20));
        let mut short = keepalive();
        short[17] = 18;
        assert_eq!(refused(&short, false), MessageError::Length(18));
        let mut unknown = keepalive();
        unknown[18] = 6;
        assert_eq!(refused(&unknown, false), MessageError::Type(6));
        assert_eq!(
            MessageError::Length(18).notification().to_string(),
            "message header error, bad message length"
        );
    }

    #[test]
    fn long_messages_have_to_be_agreed_on_and_are_never_open() {
        let long = message(MessageType::Update, &[0; 4096]);
        assert_eq!(refused(&long, false), MessageError::Length(4115));
        let mut cutter = Cutter::new();
        cutter.allow_extended();
        cutter.push(&long);
        assert_eq!(all(&mut cutter), [long]);
        let open = message(MessageType::Open, &[0; 4096]);
        assert_eq!(refused(&open, true), MessageError::Length(4115));
    }
}
