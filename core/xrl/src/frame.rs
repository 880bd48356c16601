//! What two processes say to each other on a channel.
//!
//! One message of a channel is one frame; numbers are little-endian. Who connects says hello, and need
//! not wait for the welcome before calling. Both sides of a connection with the Finder call; elsewhere
//! only who connected does.
//!
//! ```text
//! 01 hello    version(2) window(4) credential(1) bytes…
//! 02 welcome  version(2) window(4) name…
//! 03 bind     slot(2) key(16)
//! 04 name     slot(2) path…
//! 05 call     slot(2) id(4) timeout(4) arguments…
//! 06 reply    id(4) arguments…
//! 07 failed   id(4) code(2) note…
//! 08 goodbye  code(2) note…
//! 09 call     as 05, but arguments and return arguments are text: name:type=value&…
//! 0a reply    as 06, for a call of that kind
//! 0b via      name…
//! ```
//!
//! * The window is how many calls the sender of the hello or welcome takes at a time.
//! * A credential is nothing (0), a process's secret (1) or a ticket (2), or one of these two with the
//!   20 bytes of a key hash behind it (3, 4): a gateway shows it, for the remote operator who has that key.
//! * `via` comes before the hello, and only to a gateway: the instance, or the Finder, to which everything
//!   behind it goes.
//! * `bind` gives a key that came from the Finder a number for this connection; `name`, with the Finder
//!   only, gives one to a path `interface/version/method`.
//! * The timeout is in milliseconds from the sending; 0 is none.

use weft_base::{Buffer, Handle, Message};
use weft_keys::KeyHash;
use weft_runtime::frames::{FIRST_FRAME, LONGEST_FRAME};

use crate::{ErrorCode, XrlError};

/// The version of the protocol.
pub const PROTOCOL: u16 = 1;
/// How many calls may be sent before the welcome says how many the other side takes.
pub const FIRST_WINDOW: u32 = 64;
/// The longest arguments of a call or reply, in bytes.
pub const LONGEST_ARGUMENTS: usize = LONGEST_FRAME - HEADER;
/// The longest arguments that may be sent to whoever does not know yet who sends them, and to the Finder,
/// in bytes.
pub const FIRST_ARGUMENTS: usize = FIRST_FRAME - HEADER;
/// The longest header in front of them, in bytes.
const HEADER: usize = 11;
/// Bytes of a key and of a ticket.
pub const KEY_LEN: usize = 16;
/// Bytes of a secret.
pub const SECRET_LEN: usize = 32;

/// A key of a method or a ticket.
pub type Key = [u8; KEY_LEN];
/// The secret of a process.
pub type Secret = [u8; SECRET_LEN];

mod kind {
    pub(super) const HELLO: u8 = 1;
    pub(super) const WELCOME: u8 = 2;
    pub(super) const BIND: u8 = 3;
    pub(super) const NAME: u8 = 4;
    pub(super) const CALL: u8 = 5;
    pub(super) const REPLY: u8 = 6;
    pub(super) const FAILED: u8 = 7;
    pub(super) const GOODBYE: u8 = 8;
    pub(super) const CALL_TEXT: u8 = 9;
    pub(super) const REPLY_TEXT: u8 = 10;
    pub(super) const VIA: u8 = 11;
}

/// What somebody who connects shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    /// Nothing: the kernel's word on the process must do.
    None,
    /// The secret that the process was given when it was started.
    Secret(Secret),
    /// What the Finder gave for this target.
    Ticket(Key),
    /// The secret of a gateway, and the key of the operator for whom it speaks.
    SecretFor(Secret, KeyHash),
    /// What the Finder gave to that operator for this target.
    TicketFor(Key, KeyHash),
}

/// What the operator who has a key is called, as a caller.
#[must_use]
pub fn remote_operator(key: &KeyHash) -> String {
    format!("operator (key {key})")
}

/// A frame.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// The first frame of who connects.
    Hello {
        /// The version of the protocol.
        version: u16,
        /// How many calls it takes at a time.
        window: u32,
        /// Who it is.
        credential: Credential,
    },
    /// The answer to a hello.
    Welcome {
        /// The version of the protocol.
        version: u16,
        /// How many calls it takes at a time.
        window: u32,
        /// What it calls who connected.
        name: String,
    },
    /// A number for a key.
    Bind {
        /// The number.
        slot: u16,
        /// The key.
        key: Key,
    },
    /// A number for a path.
    Name {
        /// The number.
        slot: u16,
        /// The path.
        path: String,
    },
    /// A call; what follows are its arguments.
    Call {
        /// Of which method.
        slot: u16,
        /// Comes back in the reply.
        id: u32,
        /// In milliseconds; 0 is none.
        timeout: u32,
        /// Whether arguments and return arguments are text.
        text: bool,
    },
    /// A call was carried out; what follows are the return arguments.
    Reply {
        /// The call's.
        id: u32,
        /// Whether they are text.
        text: bool,
    },
    /// A call was not carried out.
    Failed {
        /// The call's.
        id: u32,
        /// Why.
        error: XrlError,
    },
    /// The connection ends because of this.
    Goodbye(XrlError),
    /// To a gateway: where what follows is to go.
    Via {
        /// An instance, or [`FINDER`](crate::FINDER).
        target: String,
    },
}

/// A message that is no frame: the other side speaks another protocol or is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message of {len} bytes that begins with {first:#04x} is no XRL frame")]
pub struct FrameError {
    /// Its first byte.
    pub first: u8,
    /// Its length in bytes.
    pub len: usize,
}

impl Frame {
    /// Reads a frame and takes it off the message; arguments are what is left.
    ///
    /// # Errors
    /// The message is no frame.
    pub fn parse(message: &mut Buffer) -> Result<Self, FrameError> {
        let bytes = message.bytes();
        let error = FrameError { first: bytes.first().copied().unwrap_or(0), len: bytes.len() };
        let (frame, len) = Self::read(bytes).ok_or(error)?;
        let _ = message.pull_front(len);
        Ok(frame)
    }

    fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let mut from = Reader { bytes };
        let [first] = from.array()?;
        let frame = match first {
            kind::CALL | kind::CALL_TEXT => {
                let (slot, id, timeout) = (from.u16()?, from.u32()?, from.u32()?);
                Self::Call { slot, id, timeout, text: first == kind::CALL_TEXT }
            }
            kind::REPLY | kind::REPLY_TEXT => {
                Self::Reply { id: from.u32()?, text: first == kind::REPLY_TEXT }
            }
            kind::HELLO => {
                let (version, window) = (from.u16()?, from.u32()?);
                Self::Hello { version, window, credential: from.credential()? }
            }
            kind::WELCOME => {
                let (version, window) = (from.u16()?, from.u32()?);
                Self::Welcome { version, window, name: from.text()? }
            }
            kind::BIND => Self::Bind { slot: from.u16()?, key: from.array()? },
            kind::NAME => Self::Name { slot: from.u16()?, path: from.text()? },
            kind::FAILED => Self::Failed { id: from.u32()?, error: from.error()? },
            kind::GOODBYE => Self::Goodbye(from.error()?),
            kind::VIA => Self::Via { target: from.text()? },
            _ => return None,
        };
        Some((frame, bytes.len() - from.bytes.len()))
    }

    /// The message of a frame without arguments.
    #[must_use]
    pub fn emit(&self) -> Message {
        let mut message = Buffer::new();
        self.write(&mut message);
        message.into()
    }

    /// The message of a frame with arguments.
    #[must_use]
    pub fn emit_with(&self, mut arguments: Buffer, handles: Vec<Handle>) -> Message {
        match self {
            Self::Call { slot, id, timeout, text } => {
                let front = arguments.push_front(11);
                front[0] = if *text { kind::CALL_TEXT } else { kind::CALL };
                front[1..3].copy_from_slice(&slot.to_le_bytes());
                front[3..7].copy_from_slice(&id.to_le_bytes());
                front[7..].copy_from_slice(&timeout.to_le_bytes());
            }
            Self::Reply { id, text } => {
                let front = arguments.push_front(5);
                front[0] = if *text { kind::REPLY_TEXT } else { kind::REPLY };
                front[1..].copy_from_slice(&id.to_le_bytes());
            }
            _ => return self.emit(),
        }
        Message { buffer: arguments, handles }
    }

    fn write(&self, to: &mut Buffer) {
        match self {
            Self::Hello { version, window, credential } => {
                to.extend(&[kind::HELLO]);
                to.extend(&version.to_le_bytes());
                to.extend(&window.to_le_bytes());
                match credential {
                    Credential::None => to.extend(&[0]),
                    Credential::Secret(secret) => {
                        to.extend(&[1]);
                        to.extend(secret);
                    }
                    Credential::Ticket(ticket) => {
                        to.extend(&[2]);
                        to.extend(ticket);
                    }
                    Credential::SecretFor(secret, key) => {
                        to.extend(&[3]);
                        to.extend(secret);
                        to.extend(key.as_bytes());
                    }
                    Credential::TicketFor(ticket, key) => {
                        to.extend(&[4]);
                        to.extend(ticket);
                        to.extend(key.as_bytes());
                    }
                }
            }
            Self::Welcome { version, window, name } => {
                to.extend(&[kind::WELCOME]);
                to.extend(&version.to_le_bytes());
                to.extend(&window.to_le_bytes());
                to.extend(name.as_bytes());
            }
            Self::Bind { slot, key } => {
                to.extend(&[kind::BIND]);
                to.extend(&slot.to_le_bytes());
                to.extend(key);
            }
            Self::Name { slot, path } => {
                to.extend(&[kind::NAME]);
                to.extend(&slot.to_le_bytes());
                to.extend(path.as_bytes());
            }
            Self::Call { .. } | Self::Reply { .. } => {
                *to = self.emit_with(Buffer::new(), Vec::new()).buffer;
            }
            Self::Failed { id, error } => {
                to.extend(&[kind::FAILED]);
                to.extend(&id.to_le_bytes());
                write_error(error, to);
            }
            Self::Goodbye(error) => {
                to.extend(&[kind::GOODBYE]);
                write_error(error, to);
            }
            Self::Via { target } => {
                to.extend(&[kind::VIA]);
                to.extend(target.as_bytes());
            }
        }
    }
}

fn write_error(error: &XrlError, to: &mut Buffer) {
    to.extend(&error.code.number().to_le_bytes());
    to.extend(error.note.as_bytes());
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(*first)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn text(&mut self) -> Option<String> {
        let bytes = std::mem::take(&mut self.bytes);
        Some(str::from_utf8(bytes).ok()?.to_owned())
    }

    fn credential(&mut self) -> Option<Credential> {
        let credential = match self.array()? {
            [0] => Credential::None,
            [1] => Credential::Secret(self.array()?),
            [2] => Credential::Ticket(self.array()?),
            [3] => Credential::SecretFor(self.array()?, KeyHash::from_bytes(self.array()?)),
            [4] => Credential::TicketFor(self.array()?, KeyHash::from_bytes(self.array()?)),
            _ => return None,
        };
        self.bytes.is_empty().then_some(credential)
    }

    fn error(&mut self) -> Option<XrlError> {
        let code = ErrorCode::from_number(self.u16()?);
        Some(XrlError { code, note: self.text()? })
    }
}

/// Whether arguments have at most `longest` bytes.
///
/// # Errors
/// They have more: what the caller is told.
pub fn fits(args: &Buffer, longest: usize) -> Result<(), XrlError> {
    if args.len() <= longest {
        return Ok(());
    }
    let note = format!("the arguments have {} bytes: at most {longest} can be sent", args.len());
    Err(XrlError::bad_args(note))
}

/// Whether two secrets are the same; takes as long whether they differ early or late.
#[must_use]
pub fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len()
        && std::hint::black_box(one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b))) == 0
}
