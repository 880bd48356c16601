//! Clients that wait to be told which answers hold no longer.
//!
//! Reference: Handley et al. (XORP), §5.2.1 (the "cache invalidated" message).

use std::collections::BTreeMap;
use std::time::Duration;

use ipnet::IpNet;
use weft_base::Instant;
use weft_xrl::{Called, Output};

use crate::hops::Lead;
use crate::interface;
use crate::leads::Answer;
use crate::reach::Session;

/// The longest that a client may wait, in milliseconds.
const LONGEST: u32 = 25_000;

/// A client.
#[derive(Debug, Default)]
struct Client {
    blocks: Vec<IpNet>,
    /// The call with which it waits, and until when.
    waiting: Option<(Called, Instant)>,
}

impl Client {
    fn until(&self) -> Option<Instant> {
        self.waiting.as_ref().map(|(_, until)| *until)
    }

    /// Answers the call with which it waits, with what there is.
    fn answer(&mut self, out: &mut Vec<Output>) {
        if let Some((called, _)) = self.waiting.take() {
            let blocks = std::mem::take(&mut self.blocks);
            out.push(called.answer(Ok(interface::InvalidReply { blocks })));
        }
    }
}

/// All of them, by their sessions.
#[derive(Debug, Default)]
pub(crate) struct Watchers(BTreeMap<Session, Client>);

impl Watchers {
    /// A client waits with this call, and with no earlier one any more.
    pub(crate) fn wait(&mut self, now: Instant, called: Called, wait: u32, out: &mut Vec<Output>) {
        let until = now + Duration::from_millis(wait.min(LONGEST).into());
        let client = self.0.entry(called.session).or_default();
        client.answer(out);
        client.waiting = Some((called, until));
        if !client.blocks.is_empty() {
            client.answer(out);
        }
    }

    /// These answers hold no longer.
    pub(crate) fn invalid(&mut self, invalid: Vec<(Session, IpNet)>, out: &mut Vec<Output>) {
        for (session, block) in invalid {
            self.0.entry(session).or_default().blocks.push(block);
        }
        for client in self.0.values_mut().filter(|client| !client.blocks.is_empty()) {
            client.answer(out);
        }
    }

    /// A client is gone.
    pub(crate) fn left(&mut self, session: Session) {
        self.0.remove(&session);
    }

    /// Answers those who have waited as long as they wanted.
    pub(crate) fn tick(&mut self, now: Instant, out: &mut Vec<Output>) {
        let is_due = |client: &Client| client.until().is_some_and(|until| until <= now);
        self.0.values_mut().filter(|client| is_due(client)).for_each(|client| client.answer(out));
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.0.values().filter_map(Client::until).min()
    }
}

/// An answer as clients are told it.
pub(crate) fn way(block: IpNet, answer: &Answer) -> interface::Way {
    let is_neighbour = |lead: &Lead| match lead {
        Lead::Ways(ways) => ways.iter().any(|way| way.gateway.is_none()),
        Lead::Nowhere(_) => false,
    };
    interface::Way {
        block,
        found: answer.way.is_some(),
        metric: answer.way.as_ref().map_or(0, |(_, metric)| *metric),
        is_neighbour: answer.way.as_ref().is_some_and(|(lead, _)| is_neighbour(lead)),
    }
}
