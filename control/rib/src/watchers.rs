//! Clients that wait to be told which answers hold no longer.
//!
//! Reference: Handley et al. (XORP), §5.2.1 (the "cache invalidated" message).

use std::collections::BTreeMap;
use std::time::Duration;

use ipnet::IpNet;
use weft_base::Instant;
use weft_xrl::{Called, Output, XrlError};

use crate::family::Answer;
use crate::interface;
use crate::reach::Session;

/// The longest that a client may wait, in milliseconds.
const LONGEST: u32 = 25_000;

/// A client.
#[derive(Debug, Default)]
struct Client {
    blocks: Vec<IpNet>,
    waiting: Option<Called>,
    /// Until when it waits.
    until: Option<Instant>,
}

/// All of them, by their sessions.
#[derive(Debug, Default)]
pub(crate) struct Watchers(BTreeMap<Session, Client>);

impl Watchers {
    /// A client is going to wait.
    pub(crate) fn will_wait(
        &mut self,
        now: Instant,
        session: Session,
        wait: u32,
    ) -> Result<(), XrlError> {
        let client = self.0.entry(session).or_default();
        if client.waiting.is_some() {
            return Err(XrlError::failed("this caller waits already, with an earlier call"));
        }
        client.until = Some(now + Duration::from_millis(wait.min(LONGEST).into()));
        Ok(())
    }

    /// It waits with this call.
    pub(crate) fn wait(&mut self, called: Called) {
        let client = self.0.entry(called.session).or_default();
        client.waiting = Some(called);
    }

    /// These answers hold no longer.
    pub(crate) fn invalid(&mut self, invalid: Vec<(Session, IpNet)>, out: &mut Vec<Output>) {
        for (session, block) in invalid {
            self.0.entry(session).or_default().blocks.push(block);
        }
        for client in self.0.values_mut().filter(|client| !client.blocks.is_empty()) {
            if let Some(called) = client.waiting.take() {
                let blocks = std::mem::take(&mut client.blocks);
                client.until = None;
                out.push(called.answer(Ok(interface::InvalidReply { blocks })));
            }
        }
    }

    /// A client is gone.
    pub(crate) fn left(&mut self, session: Session) {
        self.0.remove(&session);
    }

    /// Answers those who have waited as long as they wanted.
    pub(crate) fn tick(&mut self, now: Instant, out: &mut Vec<Output>) {
        for client in self.0.values_mut() {
            if client.until.is_some_and(|until| until <= now) {
                client.until = None;
                let none = interface::InvalidReply { blocks: Vec::new() };
                out.extend(client.waiting.take().map(|called| called.answer(Ok(none))));
            }
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.0.values().filter_map(|client| client.until).min()
    }
}

/// An answer as clients are told it.
pub(crate) fn way(block: IpNet, answer: &Answer) -> interface::Way {
    interface::Way {
        block,
        found: answer.way.is_some(),
        metric: answer.way.as_ref().map_or(0, |(_, metric)| *metric),
        is_neighbour: answer
            .way
            .as_ref()
            .is_some_and(|(ways, _)| ways.iter().any(|way| way.gateway.is_none())),
    }
}
