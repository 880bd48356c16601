//! The messages between an application and the XIA node on its machine.
//!
//! One channel (a flow of messages, `weft_flow`) is one datagram socket: bind once, then send and
//! receive. The same channel carries operators' commands as text. Message borders are kept by the
//! channel, so that a message is one byte of kind and its fields, numbers in big-endian:
//!
//! ```text
//! application → node
//!   01 bind      00 rows…              exactly this address
//!                01 xid(24)            this sink, scoped by the node's own address
//!                02 type(4)            a sink of this type that the node chooses, scoped likewise
//!   02 send      hop limit(1) rows(1) destination rows… payload…
//!   03 command   text…
//! node → application
//!   81 bound     rows…
//!   82 failed    text…
//!   83 datagram  rows(1) source rows… payload…
//!   84 reply     last(1) text…         a long reply comes in parts
//!   85 rejected  text…                 a datagram could not leave this node, or a router has dropped it
//! ```
//!
//! Rows are the 28-byte rows of XIP.

use weft_base::Packet;

use crate::dag::{Address, ROW_LEN};
use crate::header::XipPacket;
use crate::xid::XID_LEN;
use crate::{Xid, XidType};

/// Longest part of a reply in one message, in bytes.
const REPLY_PART: usize = 1400;

mod kind {
    pub(super) const BIND: u8 = 0x01;
    pub(super) const SEND: u8 = 0x02;
    pub(super) const COMMAND: u8 = 0x03;
    pub(super) const BOUND: u8 = 0x81;
    pub(super) const FAILED: u8 = 0x82;
    pub(super) const DATAGRAM: u8 = 0x83;
    pub(super) const REPLY: u8 = 0x84;
    pub(super) const REJECTED: u8 = 0x85;
}

mod bind_form {
    pub(super) const ADDRESS: u8 = 0;
    pub(super) const SINK: u8 = 1;
    pub(super) const ANY: u8 = 2;
}

/// What an application wants to be reached by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindRequest {
    /// Exactly this address, which must have one sink.
    Address(Address),
    /// This sink; the node puts its own address in front.
    Sink(Xid),
    /// Any free sink of this type; the node chooses and puts its own address in front.
    Any(XidType),
}

/// A message that cannot be understood: the other side speaks another version or is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message (first byte {first:#04x}, {len} bytes) is not one of this protocol")]
pub struct MessageError {
    /// Its first byte; zero if it is empty.
    pub first: u8,
    /// Its length in bytes.
    pub len: usize,
}

/// A message from an application, seen by the node.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// Bind the channel to an address.
    Bind(BindRequest),
    /// Send a datagram.
    Send {
        /// How far it may go, in hops.
        hop_limit: u8,
        /// Where to; checked as a whole.
        destination: Address,
        /// The payload: the message with everything in front taken off.
        payload: Packet,
    },
    /// Carry out an operator's command.
    Command(String),
}

/// A message from the node, seen by an application.
#[derive(Debug, PartialEq, Eq)]
pub enum Response {
    /// The channel is bound to this address.
    Bound(Address),
    /// The bind or the command failed, for this reason.
    Failed(String),
    /// A datagram came in.
    Datagram {
        /// Where from; `None` if the sender did not say.
        source: Option<Address>,
        /// What: the message with everything in front taken off.
        payload: Packet,
    },
    /// A part of a command's reply.
    Reply {
        /// Whether this is the last part.
        last: bool,
        /// The part's bytes; UTF-8 only when joined.
        part: Vec<u8>,
    },
    /// A datagram could not leave this node, or somebody says that it was dropped on its way, for this reason.
    /// Not told for every datagram.
    Rejected(String),
}

impl BindRequest {
    /// The message that asks for it.
    #[must_use]
    pub fn emit(&self) -> Packet {
        let mut message = Packet::from_slice(&[kind::BIND]);
        match self {
            Self::Address(address) => {
                message.extend(&[bind_form::ADDRESS]);
                extend_rows(&mut message, address);
            }
            Self::Sink(xid) => {
                message.extend(&[bind_form::SINK]);
                message.extend(&xid.to_bytes());
            }
            Self::Any(kind) => {
                message.extend(&[bind_form::ANY]);
                message.extend(&kind.0.to_be_bytes());
            }
        }
        message
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (form, fields) = bytes.split_first()?;
        match *form {
            bind_form::ADDRESS => Address::from_bytes(fields).ok().map(Self::Address),
            bind_form::SINK => {
                <&[u8; XID_LEN]>::try_from(fields).ok().map(|xid| Self::Sink(Xid::from_bytes(xid)))
            }
            bind_form::ANY => {
                <[u8; 4]>::try_from(fields).ok().map(|n| Self::Any(XidType(u32::from_be_bytes(n))))
            }
            _ => None,
        }
    }
}

/// Makes `payload` the message that sends it to `destination`.
pub fn emit_send(hop_limit: u8, destination: &Address, payload: &mut Packet) {
    let front = payload.push_front(3 + destination.wire_len());
    front[..3].copy_from_slice(&[kind::SEND, hop_limit, destination.len() as u8]);
    destination.emit(&mut front[3..]).expect("the room was made for this address");
}

/// The message that carries an operator's command.
#[must_use]
pub fn emit_command(text: &str) -> Packet {
    with_text(kind::COMMAND, text)
}

impl Request {
    /// Reads a message from an application.
    ///
    /// # Errors
    /// It is not one of this protocol.
    pub fn parse(message: Packet) -> Result<Self, MessageError> {
        let bytes = message.bytes();
        let error = error_of(bytes);
        let (first, fields) = bytes.split_first().ok_or(error)?;
        match *first {
            kind::BIND => BindRequest::parse(fields).map(Self::Bind).ok_or(error),
            kind::SEND => Self::parse_send(message).ok_or(error),
            kind::COMMAND => {
                let text = String::from_utf8(fields.to_vec()).map_err(|_| error)?;
                Ok(Self::Command(text))
            }
            _ => Err(error),
        }
    }

    fn parse_send(mut message: Packet) -> Option<Self> {
        let (front, rest) = message.bytes().split_first_chunk::<3>()?;
        let [_, hop_limit, rows] = *front;
        let len = usize::from(rows) * ROW_LEN;
        let destination = Address::from_bytes(rest.get(..len)?).ok()?;
        let before = front.len() + len;
        message.pull_front(before).then_some(())?;
        Some(Self::Send { hop_limit, destination, payload: message })
    }
}

/// The message that tells the address of a bound channel.
#[must_use]
pub fn emit_bound(address: &Address) -> Packet {
    let mut message = Packet::from_slice(&[kind::BOUND]);
    extend_rows(&mut message, address);
    message
}

/// The message that tells why a bind or a command failed.
#[must_use]
pub fn emit_failed(text: &str) -> Packet {
    with_text(kind::FAILED, text)
}

/// The message that tells why a datagram could not leave or was dropped.
#[must_use]
pub fn emit_rejected(text: &str) -> Packet {
    with_text(kind::REJECTED, text)
}

/// The messages that carry a command's reply, in order; at least one.
pub fn emit_reply(text: &str) -> impl Iterator<Item = Packet> + '_ {
    let parts = text.len().div_ceil(REPLY_PART).max(1);
    (0..parts).map(move |index| {
        let from = index * REPLY_PART;
        let part = &text.as_bytes()[from..text.len().min(from + REPLY_PART)];
        let mut message = Packet::from_slice(&[kind::REPLY, u8::from(index + 1 == parts)]);
        message.extend(part);
        message
    })
}

/// Makes a whole XIP packet, at its sink, the message that delivers its payload. `None` if the
/// packet is not one.
#[must_use]
pub fn emit_datagram(mut packet: Packet) -> Option<Packet> {
    let view = XipPacket::new_checked(packet.bytes()).ok()?;
    let rows = view.source_rows();
    let front = view.header_len() - rows * ROW_LEN;
    packet.pull_front(front - 2).then_some(())?;
    packet.bytes_mut()[..2].copy_from_slice(&[kind::DATAGRAM, rows as u8]);
    Some(packet)
}

impl Response {
    /// Reads a message from the node.
    ///
    /// # Errors
    /// It is not one of this protocol.
    pub fn parse(message: Packet) -> Result<Self, MessageError> {
        let bytes = message.bytes();
        let error = error_of(bytes);
        let (first, fields) = bytes.split_first().ok_or(error)?;
        let text = || String::from_utf8_lossy(fields).into_owned();
        match *first {
            kind::BOUND => Address::from_bytes(fields).map(Self::Bound).map_err(|_| error),
            kind::FAILED => Ok(Self::Failed(text())),
            kind::REJECTED => Ok(Self::Rejected(text())),
            kind::DATAGRAM => Self::parse_datagram(message).ok_or(error),
            kind::REPLY => {
                let (last, part) = fields.split_first().ok_or(error)?;
                Ok(Self::Reply { last: *last != 0, part: part.to_vec() })
            }
            _ => Err(error),
        }
    }

    fn parse_datagram(mut message: Packet) -> Option<Self> {
        let ([_, rows], rest) = message.bytes().split_first_chunk::<2>()?;
        let len = usize::from(*rows) * ROW_LEN;
        let rows = rest.get(..len)?;
        let source = if len == 0 { None } else { Some(Address::from_bytes(rows).ok()?) };
        message.pull_front(2 + len).then_some(())?;
        Some(Self::Datagram { source, payload: message })
    }
}

fn error_of(bytes: &[u8]) -> MessageError {
    MessageError { first: bytes.first().copied().unwrap_or(0), len: bytes.len() }
}

fn with_text(kind: u8, text: &str) -> Packet {
    let mut message = Packet::from_slice(&[kind]);
    message.extend(text.as_bytes());
    message
}

fn extend_rows(message: &mut Packet, address: &Address) {
    for row in address.rows() {
        message.extend(&row.to_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::header::XipRepr;

    fn xid(kind: XidType, byte: u8) -> Xid {
        Xid::new(kind, [byte; 20])
    }

    fn address() -> Address {
        Address::scoping(&[xid(XidType::HID, 1), xid(XidType::XDP, 2)]).unwrap()
    }

    #[test]
    fn requests_survive_the_channel() {
        for bind in [
            BindRequest::Address(address()),
            BindRequest::Sink(xid(XidType::XDP, 9)),
            BindRequest::Any(XidType::XDP),
        ] {
            assert_eq!(Request::parse(bind.emit()), Ok(Request::Bind(bind)));
        }
        let mut payload = Packet::from_slice(b"hello");
        emit_send(7, &address(), &mut payload);
        let expected = Packet::from_slice(b"hello");
        assert_eq!(
            Request::parse(payload),
            Ok(Request::Send { hop_limit: 7, destination: address(), payload: expected })
        );
        assert_eq!(Request::parse(emit_command("show")), Ok(Request::Command("show".to_owned())));
    }

    #[test]
    fn a_delivered_packet_becomes_source_and_payload() {
        let repr = XipRepr::new(address(), Some(address()), 5);
        let mut bytes = vec![0; repr.buffer_len()];
        repr.emit(&mut bytes).unwrap();
        bytes.extend(b"hello");
        let message = emit_datagram(Packet::from_slice(&bytes)).unwrap();
        let payload = Packet::from_slice(b"hello");
        assert_eq!(
            Response::parse(message),
            Ok(Response::Datagram { source: Some(address()), payload })
        );
    }

    #[test]
    fn a_long_reply_comes_in_parts_and_the_last_says_so() {
        let text = "é".repeat(2000);
        let mut joined = Vec::new();
        let mut lasts = Vec::new();
        for message in emit_reply(&text) {
            let Ok(Response::Reply { last, part }) = Response::parse(message) else {
                panic!("not a reply");
            };
            joined.extend(part);
            lasts.push(last);
        }
        assert_eq!(String::from_utf8(joined).unwrap(), text);
        assert_eq!(lasts, [false, false, true]);
    }

    proptest! {
        #[test]
        fn arbitrary_messages_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = Request::parse(Packet::from_slice(&bytes));
            let _ = Response::parse(Packet::from_slice(&bytes));
        }

        #[test]
        fn messages_cut_in_their_rows_are_errors(cut in 1_usize..59) {
            let mut message = Packet::new();
            emit_send(7, &address(), &mut message);
            message.truncate(cut);
            prop_assert!(Request::parse(message).is_err());
        }
    }
}
