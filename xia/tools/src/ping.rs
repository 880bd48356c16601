//! `weft xia ping`: is somebody there, and how far away?
//!
//! Sends datagrams to an echo responder (every node has one, see [`weft_xip::node::ECHO_SINK`]) and
//! waits for its answers. A datagram's payload is a sequence number and filling; the time of
//! sending is remembered here, so that a forged answer cannot forge a round trip.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use weft_base::{Instant, Packet, Token};
use weft_runtime::{Action, Component, Event, Level};
use weft_xia_sockets::{Client, ClientEvent};
use weft_xip::channel::BindRequest;
use weft_xip::{Address, XidType};

use crate::text::echo_destination;

/// Requests remembered at most while their answers are awaited.
const REMEMBERED: usize = 1024;
/// Bytes of the sequence number at the front of the payload.
const SEQUENCE_LEN: usize = 8;

/// What to ping and how.
#[derive(Clone, Debug)]
pub struct PingOptions {
    /// Where to; an address that does not end in a datagram sink means its node's echo responder.
    pub to: Address,
    /// How many requests; `None`: until stopped.
    pub count: Option<u64>,
    /// Pause between requests.
    pub interval: Duration,
    /// How long to wait for the last answers.
    pub timeout: Duration,
    /// Payload length in bytes, at least 8.
    pub size: usize,
    /// How far requests may go, in hops.
    pub hop_limit: u8,
    /// Print only the summary.
    pub quiet: bool,
}

/// The ping application.
pub struct Ping {
    options: PingOptions,
    destination: Result<Address, String>,
    client: Client,
    next_send: Option<Instant>,
    give_up: Option<Instant>,
    sent: u64,
    /// Requests without answer so far: sequence number and time of sending.
    waiting: VecDeque<(u64, Instant)>,
    round_trips: Vec<Duration>,
    rejected: Option<String>,
    finished: bool,
}

impl Ping {
    /// A ping through the node whose socket is at `node`.
    #[must_use]
    pub fn new(node: &Path, options: PingOptions) -> Self {
        let mut client = Client::new(Token(1), node, Some(BindRequest::Any(XidType::XDP)));
        client.set_hop_limit(options.hop_limit);
        Self {
            destination: echo_destination(&options.to),
            options,
            client,
            next_send: None,
            give_up: None,
            sent: 0,
            waiting: VecDeque::new(),
            round_trips: Vec::new(),
            rejected: None,
            finished: false,
        }
    }

    fn start(&mut self, out: &mut Vec<Action>) {
        match &self.destination {
            Ok(_) => self.client.start(out),
            Err(error) => {
                let error = error.clone();
                self.fail(error, out);
            }
        }
    }

    fn client_event(&mut self, now: Instant, event: ClientEvent, out: &mut Vec<Action>) {
        match event {
            ClientEvent::Ready(_) if self.all_sent() => {}
            ClientEvent::Ready(_) => self.next_send = Some(now),
            ClientEvent::Failed(error) => self.fail(error, out),
            ClientEvent::Datagram { source, payload } => {
                self.answer(now, source.as_ref(), payload.bytes(), out);
            }
            ClientEvent::Rejected(reason) => {
                if self.rejected.as_ref() != Some(&reason) {
                    let line = format!("a request was not delivered: {reason}");
                    out.push(Action::Report { level: Level::Warning, line });
                    self.rejected = Some(reason);
                }
            }
            ClientEvent::Detached => self.next_send = None,
            ClientEvent::Reply(_)
            | ClientEvent::CommandFailed(_)
            | ClientEvent::Congested
            | ClientEvent::Drained => {}
        }
    }

    fn answer(
        &mut self,
        now: Instant,
        source: Option<&Address>,
        payload: &[u8],
        out: &mut Vec<Action>,
    ) {
        let Some(sequence) = payload.first_chunk::<SEQUENCE_LEN>() else { return };
        let sequence = u64::from_be_bytes(*sequence);
        let Some(index) = self.waiting.iter().position(|(number, _)| *number == sequence) else {
            return;
        };
        let Some((_, sent)) = self.waiting.remove(index) else { return };
        let round_trip = now.since(sent);
        self.round_trips.push(round_trip);
        if !self.options.quiet {
            let from = source.map_or_else(|| "nobody".to_owned(), ToString::to_string);
            let line = format!(
                "{} bytes from {from}: seq={} time={} ms",
                payload.len(),
                sequence + 1,
                milliseconds(round_trip)
            );
            out.push(Action::Print { line });
        }
        if self.all_sent() && self.waiting.is_empty() {
            self.finish(out);
        }
    }

    fn all_sent(&self) -> bool {
        self.options.count.is_some_and(|count| self.sent >= count)
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Action>) {
        if self.next_send.is_some_and(|at| at <= now) {
            self.send(now, out);
        }
        if self.give_up.is_some_and(|at| at <= now) {
            self.finish(out);
        }
    }

    fn send(&mut self, now: Instant, out: &mut Vec<Action>) {
        let Ok(destination) = &self.destination else { return };
        if self.all_sent() {
            return;
        }
        let mut payload = Packet::from_slice(&self.sent.to_be_bytes());
        let filling = self.options.size.saturating_sub(SEQUENCE_LEN);
        payload.extend(&vec![0; filling]);
        if self.waiting.len() == REMEMBERED {
            self.waiting.pop_front();
        }
        self.waiting.push_back((self.sent, now));
        self.client.send(destination, payload, out);
        self.sent += 1;
        let all_sent = self.all_sent();
        self.next_send = (!all_sent).then(|| now + self.options.interval);
        self.give_up = all_sent.then(|| now + self.options.timeout);
    }

    fn fail(&mut self, error: String, out: &mut Vec<Action>) {
        self.finished = true;
        out.push(Action::Report { level: Level::Error, line: error });
        out.push(Action::Exit { status: 1 });
    }

    fn finish(&mut self, out: &mut Vec<Action>) {
        if self.finished {
            return;
        }
        self.finished = true;
        let received = self.round_trips.len() as u64;
        let lost = self.sent - received.min(self.sent);
        let percent = (lost * 100).checked_div(self.sent).unwrap_or(0);
        let line = format!("{} sent, {received} received, {percent} % lost", self.sent);
        out.push(Action::Print { line });
        self.round_trips.sort_unstable();
        if let (Some(min), Some(max)) = (self.round_trips.first(), self.round_trips.last()) {
            let median = self.round_trips[self.round_trips.len() / 2];
            let line = format!(
                "round trip min/median/max = {}/{}/{} ms",
                milliseconds(*min),
                milliseconds(median),
                milliseconds(*max)
            );
            out.push(Action::Print { line });
        }
        out.push(Action::Exit { status: u8::from(received == 0) });
    }
}

fn milliseconds(span: Duration) -> String {
    let micros = span.as_micros();
    format!("{}.{:03}", micros / 1000, micros % 1000)
}

impl Component for Ping {
    type Input = Event;
    type Output = Action;

    fn handle(&mut self, now: Instant, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Start => return self.start(out),
            Event::Stop => return self.finish(out),
            _ => {}
        }
        let mut events = Vec::new();
        let rest = self.client.handle(now, event, &mut events, out);
        for event in events {
            self.client_event(now, event, out);
        }
        if let Some(Event::Tick) | None = rest {
            self.tick(now, out);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        if self.finished {
            return None;
        }
        [self.next_send, self.give_up, self.client.deadline()].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;

    fn options(count: u64) -> PingOptions {
        PingOptions {
            to: format!("hid-{}-0", "01".repeat(20)).parse().unwrap(),
            count: Some(count),
            interval: Duration::from_secs(1),
            timeout: Duration::from_secs(2),
            size: 56,
            hop_limit: 128,
            quiet: false,
        }
    }

    #[test]
    fn measures_round_trips_and_counts_losses() {
        let mut harness = Harness::attached(Ping::new(Path::new("x"), options(2)));
        let [(to, first)] = harness.datagrams().try_into().unwrap();
        assert_eq!(to.sinks().next().unwrap().1, weft_xip::node::ECHO_SINK);
        assert_eq!(first.len(), 56);
        harness.advance(Duration::from_micros(1500));
        harness.deliver(&first);
        harness.advance(Duration::from_secs(1));
        assert_eq!(harness.datagrams().len(), 1);
        harness.advance(Duration::from_secs(3));
        assert_eq!(harness.exit_status(), Some(0));
        let printed = harness.printed();
        assert!(printed[0].ends_with("seq=1 time=1.500 ms"), "{printed:?}");
        assert_eq!(printed[1], "2 sent, 1 received, 50 % lost");
        assert_eq!(printed[2], "round trip min/median/max = 1.500/1.500/1.500 ms");
    }

    #[test]
    fn an_answer_counts_once_and_a_stranger_never() {
        let mut harness = Harness::attached(Ping::new(Path::new("x"), options(1)));
        let [(_, first)] = harness.datagrams().try_into().unwrap();
        harness.deliver(&[9; 56]);
        harness.deliver(&first[..4]);
        assert_eq!(harness.exit_status(), None);
        harness.deliver(&first);
        assert_eq!(harness.exit_status(), Some(0));
    }

    #[test]
    fn a_node_that_returns_after_the_last_request_does_not_keep_it_busy() {
        let mut harness = Harness::attached(Ping::new(Path::new("x"), options(1)));
        harness.restart_node();
        harness.advance(Duration::from_secs(3));
        assert_eq!(harness.exit_status(), Some(1));
    }

    #[test]
    fn no_answer_at_all_is_a_failure() {
        let mut harness = Harness::attached(Ping::new(Path::new("x"), options(1)));
        harness.advance(Duration::from_secs(3));
        assert_eq!(harness.exit_status(), Some(1));
    }
}
