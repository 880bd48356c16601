//! A port that a principal wants to have: asked for, and asked for again when it fails.
//!
//! Interfaces come and go and other programs hold sockets, so a port that cannot be opened now may
//! be there later. The wait doubles from one second to a minute, so that a lasting failure costs
//! nothing.

use std::time::Duration;

use weft_base::{Instant, PortId, Token};
use weft_port::PortSpec;

use crate::principal::Output;

/// The wait after the first failure in a row.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Doublings after which the longest wait is reached.
const DOUBLINGS: u32 = 6;

/// How far a port has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortState {
    /// Not wanted.
    Closed,
    /// Asked for with this token.
    Opening(Token),
    /// There.
    Open(PortId),
    /// Not to be had; it is to be asked for again at this time.
    Failed(Instant),
}

/// A port and how far it has come; begins closed.
#[derive(Debug)]
pub struct KeptPort {
    spec: PortSpec,
    state: PortState,
    failures: u32,
}

impl KeptPort {
    /// The port that `spec` describes.
    #[must_use]
    pub fn new(spec: PortSpec) -> Self {
        Self { spec, state: PortState::Closed, failures: 0 }
    }

    /// How far it has come.
    #[must_use]
    pub fn state(&self) -> PortState {
        self.state
    }

    /// The port, if it is open.
    #[must_use]
    pub fn port(&self) -> Option<PortId> {
        match self.state {
            PortState::Open(port) => Some(port),
            _ => None,
        }
    }

    /// When it must be asked for again with [`KeptPort::open`].
    #[must_use]
    pub fn retry_at(&self) -> Option<Instant> {
        match self.state {
            PortState::Failed(at) => Some(at),
            _ => None,
        }
    }

    /// Asks for the port. `token` must not be in use by this principal.
    pub fn open(&mut self, token: Token, out: &mut Vec<Output>) {
        self.state = PortState::Opening(token);
        out.push(Output::OpenPort { token, spec: self.spec.clone() });
    }

    /// Closes the port. If it is just being opened, nobody waits for its token any more; whoever
    /// gets such a port closes it.
    pub fn close(&mut self, out: &mut Vec<Output>) {
        if let PortState::Open(port) = self.state {
            out.push(Output::ClosePort { port });
        }
        self.state = PortState::Closed;
        self.failures = 0;
    }

    /// The port is there. True if it had failed, so that there is good news to report.
    pub fn opened(&mut self, port: PortId) -> bool {
        self.state = PortState::Open(port);
        std::mem::take(&mut self.failures) > 0
    }

    /// The port could not be opened or was lost. True if this is the first failure in a row, so that
    /// there is something to report.
    pub fn failed(&mut self, now: Instant) -> bool {
        let wait = (FIRST_WAIT * (1 << self.failures.min(DOUBLINGS))).min(LONGEST_WAIT);
        self.state = PortState::Failed(now + wait);
        self.failures = self.failures.saturating_add(1);
        self.failures == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> KeptPort {
        KeptPort::new(PortSpec::Tun { name: "tun0".into() })
    }

    #[test]
    fn the_wait_doubles_up_to_a_minute_and_begins_anew_after_success() {
        let (mut kept, mut out) = (kept(), Vec::new());
        let mut waits = Vec::new();
        for round in 0..8 {
            kept.open(Token(round), &mut out);
            assert_eq!(kept.failed(Instant::ZERO), round == 0);
            waits.extend(kept.retry_at().map(|at| at.since(Instant::ZERO).as_secs()));
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert!(kept.opened(PortId(5)));
        assert_eq!((kept.port(), kept.retry_at()), (Some(PortId(5)), None));
        assert!(kept.failed(Instant::ZERO));
        assert_eq!(kept.retry_at(), Some(Instant::ZERO + FIRST_WAIT));
    }

    #[test]
    fn only_an_open_port_is_closed() {
        let (mut kept, mut out) = (kept(), Vec::new());
        kept.open(Token(1), &mut out);
        kept.close(&mut out);
        assert_eq!((out.len(), kept.state()), (1, PortState::Closed));
        kept.open(Token(2), &mut out);
        assert!(!kept.opened(PortId(3)));
        kept.close(&mut out);
        assert!(matches!(out.last(), Some(Output::ClosePort { port: PortId(3) })));
    }
}
