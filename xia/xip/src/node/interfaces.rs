//! The node's network interfaces: opened, lost, and tried again until they are back.

use std::time::Duration;

use weft_base::{Instant, PortId, Token};
use weft_port::{PortInfo, PortSpec};

use crate::numbers::ETHERTYPE_XIP;

/// Pause between attempts to open an interface.
const RETRY: Duration = Duration::from_secs(1);

/// An interface that carries XIP packets, or should.
pub(super) struct Interface {
    pub(super) name: String,
    state: State,
    /// The failure was reported; say no more until it changes.
    reported: Option<String>,
}

enum State {
    /// To be opened at this time.
    Waiting(Instant),
    Opening(Token),
    Up(PortId, PortInfo),
}

impl Interface {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), state: State::Waiting(Instant::ZERO), reported: None }
    }

    /// The port and what is known of it, while it is up.
    pub(super) fn up(&self) -> Option<(PortId, PortInfo)> {
        match self.state {
            State::Up(port, info) => Some((port, info)),
            _ => None,
        }
    }

    /// Whether it is up on this port.
    pub(super) fn has(&self, port: PortId) -> bool {
        self.up().is_some_and(|(own, _)| own == port)
    }

    /// Whether its port was asked for and nothing has come yet.
    pub(super) fn is_opening(&self) -> bool {
        matches!(self.state, State::Opening(_))
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Waiting(at) => Some(at),
            _ => None,
        }
    }

    /// Whether it is this interface's port that `token` asked for.
    pub(super) fn awaits(&self, token: Token) -> bool {
        matches!(self.state, State::Opening(awaited) if awaited == token)
    }

    /// The port to ask for, if it is time to.
    pub(super) fn open(&mut self, now: Instant, token: Token) -> Option<PortSpec> {
        let State::Waiting(at) = self.state else { return None };
        (at <= now).then(|| {
            self.state = State::Opening(token);
            PortSpec::Ethernet { interface: self.name.clone(), ethertype: ETHERTYPE_XIP }
        })
    }

    pub(super) fn opened(&mut self, port: PortId, info: PortInfo) {
        self.state = State::Up(port, info);
        self.reported = None;
    }

    /// Notes that it is not there, to try again later. Returns whether this is news to the operator.
    pub(super) fn failed(&mut self, now: Instant, error: &str) -> bool {
        self.state = State::Waiting(now + RETRY);
        let news = self.reported.as_deref() != Some(error);
        self.reported = Some(error.to_owned());
        news
    }

    /// Why it is not up, if that is known.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.reported.as_deref()
    }
}
