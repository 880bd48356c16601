//! NOTIFICATION: the session ends, and why.
//!
//! ```text
//!  0 error code
//!  1 error subcode
//!  2 data
//! ```
//!
//! Reference: RFC 4271 §4.5, §6; RFC 4486 (Cease); RFC 6608 (state machine); RFC 8538 §3 (hard reset: code,
//! subcode and data of another error are its data); RFC 9003 (text of a shutdown: its length and UTF-8 are
//! the data); RFC 9687 (send hold timer).

use std::fmt;

use super::stream::{self, MessageType};
use crate::numbers::{
    cease, error_code, fsm_error, header_error, open_error, refresh_error, update_error,
};

/// The longest text of a shutdown, in octets of UTF-8 (RFC 9003 §2).
pub const MAX_SHUTDOWN_TEXT: usize = 255;

/// Why a session ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Notification {
    /// The error code ([`error_code`]).
    pub code: u8,
    /// The subcode; its meaning depends on the code.
    pub subcode: u8,
    /// More about it.
    pub data: Vec<u8>,
}

impl Notification {
    /// One with these numbers and data. Data that no message can hold are cut off.
    #[must_use]
    pub fn new(code: u8, subcode: u8, data: Vec<u8>) -> Self {
        Self { code, subcode, data }
    }

    /// A Cease without data.
    #[must_use]
    pub fn cease(subcode: u8) -> Self {
        Self::new(error_code::CEASE, subcode, Vec::new())
    }

    /// A Cease for [`cease::ADMIN_SHUTDOWN`] or [`cease::ADMIN_RESET`] with a text for the peer's operator,
    /// of which the first [`MAX_SHUTDOWN_TEXT`] octets are sent.
    #[must_use]
    pub fn cease_with_text(subcode: u8, text: &str) -> Self {
        let end = text.floor_char_boundary(MAX_SHUTDOWN_TEXT);
        let text = &text.as_bytes()[..end];
        // At most 255, as was just seen to.
        let mut data = vec![text.len() as u8];
        data.extend_from_slice(text);
        if text.is_empty() {
            data.clear();
        }
        Self::new(error_code::CEASE, subcode, data)
    }

    /// The same as a hard reset: the peer shall forget our routes although graceful restart was agreed on.
    #[must_use]
    pub fn into_hard_reset(self) -> Self {
        let mut data = vec![self.code, self.subcode];
        data.extend(self.data);
        Self::new(error_code::CEASE, cease::HARD_RESET, data)
    }

    /// Whether the receiver shall forget routes even with graceful restart.
    #[must_use]
    pub fn is_hard_reset(&self) -> bool {
        self.code == error_code::CEASE && self.subcode == cease::HARD_RESET
    }

    /// What is inside a hard reset; none if it is no hard reset, or says nothing more.
    #[must_use]
    pub fn inner(&self) -> Option<Self> {
        let [code, subcode, data @ ..] = &self.data[..] else { return None };
        self.is_hard_reset().then(|| Self::new(*code, *subcode, data.to_vec()))
    }

    /// The text of a shutdown or reset, also that inside a hard reset. Octets that are no UTF-8 are
    /// replaced, and control characters, which have no place in a log.
    #[must_use]
    pub fn shutdown_text(&self) -> Option<String> {
        if let Some(inner) = self.inner() {
            // What is inside is no hard reset with something inside for this purpose, whatever it says.
            return if inner.is_hard_reset() { None } else { inner.shutdown_text() };
        }
        let has_text = self.code == error_code::CEASE
            && matches!(self.subcode, cease::ADMIN_SHUTDOWN | cease::ADMIN_RESET);
        let (length, text) = self.data.split_first().filter(|_| has_text)?;
        let text = String::from_utf8_lossy(text.get(..usize::from(*length))?);
        let text: String =
            text.chars().map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect();
        Some(text).filter(|text| !text.is_empty())
    }

    /// What the body of a message says. A body has two octets at least, as [`stream::Cutter`] checks; those that
    /// are missing count as 0.
    #[must_use]
    pub fn parse(body: &[u8]) -> Self {
        let code = body.first().copied().unwrap_or(0);
        let subcode = body.get(1).copied().unwrap_or(0);
        Self::new(code, subcode, body.get(2..).unwrap_or_default().to_vec())
    }

    /// The whole message, of at most [`MAX_MESSAGE`](super::MAX_MESSAGE) bytes: data that are longer are cut off.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let room = usize::from(super::MAX_MESSAGE) - stream::HEADER_LEN - 2;
        let mut out = Vec::with_capacity(stream::HEADER_LEN + 2 + self.data.len().min(room));
        let start = stream::begin(MessageType::Notification, &mut out);
        out.extend_from_slice(&[self.code, self.subcode]);
        out.extend_from_slice(&self.data[..self.data.len().min(room)]);
        stream::end(start, &mut out);
        out
    }
}

/// `cease, administrative shutdown: "upgrade"`.
impl fmt::Display for Notification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match code_name(self.code) {
            Some(name) => f.write_str(name)?,
            None => write!(f, "error {}", self.code)?,
        }
        match subcode_name(self.code, self.subcode) {
            Some(name) => write!(f, ", {name}")?,
            None if self.subcode != 0 => write!(f, ", subcode {}", self.subcode)?,
            None => {}
        }
        if let Some(inner) = self.inner() {
            let inside = code_name(inner.code).unwrap_or("error");
            let more = subcode_name(inner.code, inner.subcode).unwrap_or("unspecific");
            write!(f, " ({inside}, {more})")?;
        }
        match self.shutdown_text() {
            Some(text) => write!(f, ": {text:?}"),
            None => Ok(()),
        }
    }
}

const fn code_name(code: u8) -> Option<&'static str> {
    Some(match code {
        error_code::HEADER => "message header error",
        error_code::OPEN => "open message error",
        error_code::UPDATE => "update message error",
        error_code::HOLD_TIMER => "hold timer expired",
        error_code::FSM => "state machine error",
        error_code::CEASE => "cease",
        error_code::ROUTE_REFRESH => "route refresh error",
        error_code::SEND_HOLD_TIMER => "send hold timer expired",
        _ => return None,
    })
}

const fn subcode_name(code: u8, subcode: u8) -> Option<&'static str> {
    Some(match (code, subcode) {
        (error_code::HEADER, header_error::NOT_SYNCHRONIZED) => "connection not synchronized",
        (error_code::HEADER, header_error::BAD_LENGTH) => "bad message length",
        (error_code::HEADER, header_error::BAD_TYPE) => "bad message type",
        (error_code::OPEN, open_error::VERSION) => "unsupported version",
        (error_code::OPEN, open_error::BAD_PEER_AS) => "bad peer AS",
        (error_code::OPEN, open_error::BAD_IDENTIFIER) => "bad identifier",
        (error_code::OPEN, open_error::UNSUPPORTED_PARAMETER) => "unsupported parameter",
        (error_code::OPEN, open_error::HOLD_TIME) => "unacceptable hold time",
        (error_code::OPEN, open_error::UNSUPPORTED_CAPABILITY) => "unsupported capability",
        (error_code::OPEN, open_error::ROLE_MISMATCH) => "role mismatch",
        (error_code::UPDATE, update_error::MALFORMED_LIST) => "malformed attribute list",
        (error_code::UPDATE, update_error::UNRECOGNIZED_WELL_KNOWN) => {
            "unrecognized well-known attribute"
        }
        (error_code::UPDATE, update_error::MISSING_WELL_KNOWN) => "missing well-known attribute",
        (error_code::UPDATE, update_error::FLAGS) => "attribute flags error",
        (error_code::UPDATE, update_error::LENGTH) => "attribute length error",
        (error_code::UPDATE, update_error::ORIGIN) => "invalid origin",
        (error_code::UPDATE, update_error::NEXT_HOP) => "invalid next hop",
        (error_code::UPDATE, update_error::OPTIONAL_ATTRIBUTE) => "optional attribute error",
        (error_code::UPDATE, update_error::NETWORK_FIELD) => "invalid network field",
        (error_code::UPDATE, update_error::AS_PATH) => "malformed AS path",
        (error_code::FSM, fsm_error::OPEN_SENT) => "unexpected message in OpenSent",
        (error_code::FSM, fsm_error::OPEN_CONFIRM) => "unexpected message in OpenConfirm",
        (error_code::FSM, fsm_error::ESTABLISHED) => "unexpected message in Established",
        (error_code::CEASE, cease::MAX_PREFIXES) => "maximum number of prefixes reached",
        (error_code::CEASE, cease::ADMIN_SHUTDOWN) => "administrative shutdown",
        (error_code::CEASE, cease::PEER_DECONFIGURED) => "peer de-configured",
        (error_code::CEASE, cease::ADMIN_RESET) => "administrative reset",
        (error_code::CEASE, cease::CONNECTION_REJECTED) => "connection rejected",
        (error_code::CEASE, cease::CONFIGURATION_CHANGE) => "other configuration change",
        (error_code::CEASE, cease::COLLISION) => "connection collision resolution",
        (error_code::CEASE, cease::OUT_OF_RESOURCES) => "out of resources",
        (error_code::CEASE, cease::HARD_RESET) => "hard reset",
        (error_code::CEASE, cease::BFD_DOWN) => "BFD down",
        (error_code::ROUTE_REFRESH, refresh_error::LENGTH) => "invalid message length",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_text_of_a_shutdown_is_read_back_and_cut_between_characters() {
        let sent = Notification::cease_with_text(cease::ADMIN_SHUTDOWN, "[TICKET-1] back at 20:00");
        let read = Notification::parse(&sent.emit()[stream::HEADER_LEN..]);
        assert_eq!(read.shutdown_text().as_deref(), Some("[TICKET-1] back at 20:00"));
        assert_eq!(
            read.to_string(),
            "cease, administrative shutdown: \"[TICKET-1] back at 20:00\""
        );
        let long = Notification::cease_with_text(cease::ADMIN_RESET, &"ä".repeat(200));
        assert_eq!((long.data.len(), long.data[0]), (255, 254));
        assert_eq!(long.shutdown_text(), Some("ä".repeat(127)));
        assert!(Notification::cease_with_text(cease::ADMIN_RESET, "").data.is_empty());
        let reset = Notification::cease(cease::MAX_PREFIXES);
        assert_eq!(reset.shutdown_text(), None);
    }

    #[test]
    fn a_text_does_not_reach_the_log_with_control_characters() {
        let read = Notification::parse(&[6, 2, 4, b'a', 0x1b, 0xFF, b'b']);
        assert_eq!(read.shutdown_text().as_deref(), Some("a\u{FFFD}\u{FFFD}b"));
        // The length is beyond the data.
        assert_eq!(Notification::parse(&[6, 2, 9, b'a']).shutdown_text(), None);
    }

    #[test]
    fn a_hard_reset_holds_another_error() {
        let shutdown = Notification::cease_with_text(cease::ADMIN_SHUTDOWN, "bye");
        let hard = shutdown.clone().into_hard_reset();
        assert_eq!(hard.data, [6, 2, 3, b'b', b'y', b'e']);
        assert_eq!(hard.inner(), Some(shutdown));
        assert_eq!(hard.shutdown_text().as_deref(), Some("bye"));
        assert_eq!(hard.to_string(), "cease, hard reset (cease, administrative shutdown): \"bye\"");
        assert_eq!(Notification::cease(cease::HARD_RESET).inner(), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(code: u8, subcode: u8, data in prop::collection::vec(any::<u8>(), 0..5000)) {
            let sent = Notification::new(code, subcode, data);
            let message = sent.emit();
            prop_assert!(message.len() <= 4096);
            let read = Notification::parse(&message[stream::HEADER_LEN..]);
            prop_assert_eq!((read.code, read.subcode), (code, subcode));
            prop_assert!(sent.data.starts_with(&read.data));
            let _ = (read.to_string(), read.shutdown_text(), read.inner());
        }
    }
}
