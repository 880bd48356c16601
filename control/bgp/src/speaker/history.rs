//! What has become of a session: since when it is in its state, and which NOTIFICATIONs were sent and received last.
//!
//! Reference: RFC 4271 §6 (NOTIFICATIONs), §8.2.2 (states).

use serde_json::{Value, json};
use weft_base::Instant;

use crate::fsm::{Ending, State};
use crate::wire::Notification;

/// Octets of a NOTIFICATION's data that are kept: others may send 65,000.
const DATA: usize = 64;

/// A NOTIFICATION, and when it was sent or received.
#[derive(Clone, Debug)]
struct Told {
    at: Instant,
    code: u8,
    subcode: u8,
    /// The first of them.
    data: Vec<u8>,
    /// What it means, for people.
    text: String,
}

impl Told {
    fn new(at: Instant, told: &Notification) -> Self {
        let data = told.data.iter().copied().take(DATA).collect();
        Self { at, code: told.code, subcode: told.subcode, data, text: told.to_string() }
    }

    fn shown(&self, now: Instant) -> Value {
        let data: String = self.data.iter().map(|byte| format!("{byte:02x}")).collect();
        json!({
            "seconds-ago": now.since(self.at).as_secs(), "code": self.code, "subcode": self.subcode,
            "data": data, "text": self.text,
        })
    }
}

/// What has become of a session.
#[derive(Clone, Debug)]
pub(super) struct History {
    state: State,
    since: Instant,
    sent: Option<Told>,
    received: Option<Told>,
}

impl History {
    /// Nothing has happened yet.
    pub(super) fn new(now: Instant) -> Self {
        Self { state: State::Idle, since: now, sent: None, received: None }
    }

    /// The session is in this state now.
    pub(super) fn is_in(&mut self, state: State, now: Instant) {
        if self.state != state {
            (self.state, self.since) = (state, now);
        }
    }

    /// A connection has ended.
    pub(super) fn ended(&mut self, ending: &Ending, now: Instant) {
        match ending {
            Ending::Sent(told) => self.sent = Some(Told::new(now, told)),
            Ending::Received(told) => self.received = Some(Told::new(now, told)),
            Ending::Lost | Ending::Replaced => {}
        }
    }

    /// For how many seconds the session has been in its state.
    pub(super) fn seconds(&self, now: Instant) -> u64 {
        now.since(self.since).as_secs()
    }

    /// The last NOTIFICATIONs, sent and received, as JSON.
    pub(super) fn told(&self, now: Instant) -> [Value; 2] {
        [&self.sent, &self.received]
            .map(|one| one.as_ref().map_or(Value::Null, |told| told.shown(now)))
    }
}
