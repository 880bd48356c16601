//! `weft xia perf server`: counts what clients send, sends back what they want back, and says what arrived.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use weft_base::{Instant, Packet, Token};
use weft_runtime::{Action, Component, Event, Level};
use weft_xia_sockets::{Client, ClientEvent};
use weft_xip::Address;
use weft_xip::channel::BindRequest;

use super::arrivals::{Arrivals, Summary};
use super::report;
use super::wire::{Datagram, Kind, echo};

/// Measurements at a time; with one more, the one that was silent for longest is over.
const SESSIONS: usize = 64;
/// A measurement is over when its client has been told what arrived and has said nothing for so long, …
const AFTER_QUESTION: Duration = Duration::from_secs(2);
/// … or has been silent for so long.
const AFTER_PROBE: Duration = Duration::from_secs(60);

/// What to be reached by, and how long to serve.
#[derive(Clone, Debug)]
pub struct PerfServerOptions {
    /// The address that clients send to, or its sink.
    pub bind: BindRequest,
    /// End after this many measurements.
    pub count: Option<u64>,
    /// Print reports as JSON, one object a line.
    pub json: bool,
}

/// One client's measurement.
struct Session {
    arrivals: Arrivals,
    from: Option<Address>,
    echoes: u64,
    /// Datagrams that came, of whatever kind: who came last is younger than all others.
    over_at: Instant,
    heard_at: Instant,
}

/// The server of measurements.
pub struct PerfServer {
    options: PerfServerOptions,
    client: Client,
    sessions: BTreeMap<u64, Session>,
    finished: u64,
    congested: bool,
    /// Echoes that were not sent because the node did not keep up.
    withheld: u64,
    ended: bool,
}

impl PerfServer {
    /// A server through the node whose socket is at `node`.
    #[must_use]
    pub fn new(node: &Path, options: PerfServerOptions) -> Self {
        let client = Client::new(Token(1), node, Some(options.bind));
        let sessions = BTreeMap::new();
        Self { options, client, sessions, finished: 0, congested: false, withheld: 0, ended: false }
    }

    fn client_event(&mut self, now: Instant, event: ClientEvent, out: &mut Vec<Action>) {
        match event {
            ClientEvent::Ready(address) => {
                self.congested = false;
                if let Some(address) = address {
                    let line = format!("measuring at {address}");
                    out.push(Action::Report { level: Level::Info, line });
                }
            }
            ClientEvent::Failed(error) => {
                self.ended = true;
                out.push(Action::Report { level: Level::Error, line: error });
                out.push(Action::Exit { status: 1 });
            }
            ClientEvent::Datagram { source, payload } => self.datagram(now, source, payload, out),
            ClientEvent::Detached => {
                let line = "the node went away; waiting for it to return".to_owned();
                out.push(Action::Report { level: Level::Warning, line });
            }
            ClientEvent::Congested => self.congested = true,
            ClientEvent::Drained => self.congested = false,
            ClientEvent::Rejected(_) | ClientEvent::Reply(_) | ClientEvent::CommandFailed(_) => {}
        }
    }

    fn datagram(
        &mut self,
        now: Instant,
        source: Option<Address>,
        payload: Packet,
        out: &mut Vec<Action>,
    ) {
        let Some(datagram) = Datagram::parse(payload.bytes()) else { return };
        match datagram.kind {
            Kind::Probe { echo } => self.probe(now, &datagram, echo, source, payload, out),
            Kind::Question => self.question(now, &datagram, source.as_ref(), out),
            Kind::Echo | Kind::Report(_) => {}
        }
    }

    fn probe(
        &mut self,
        now: Instant,
        probe: &Datagram,
        wants_echo: bool,
        source: Option<Address>,
        payload: Packet,
        out: &mut Vec<Action>,
    ) {
        if !self.sessions.contains_key(&probe.session) {
            self.make_room(out);
            let (arrivals, over_at) = (Arrivals::default(), now + AFTER_PROBE);
            let session = Session { arrivals, from: source, echoes: 0, over_at, heard_at: now };
            self.sessions.insert(probe.session, session);
        }
        let Some(session) = self.sessions.get_mut(&probe.session) else { return };
        session.arrivals.note(now, probe.sequence, payload.len());
        (session.heard_at, session.over_at) = (now, now + AFTER_PROBE);
        // Copies are sent back, too: the client counts what happened to both directions together.
        let Some(source) = source.filter(|_| wants_echo) else { return };
        if self.congested {
            self.withheld += 1;
        } else if self.client.send(&source, echo(payload), out) {
            session.echoes += 1;
        }
    }

    /// A question about what never came is answered, and remembered by nobody.
    fn question(
        &mut self,
        now: Instant,
        question: &Datagram,
        source: Option<&Address>,
        out: &mut Vec<Action>,
    ) {
        let mut summary = Summary::default();
        if let Some(session) = self.sessions.get_mut(&question.session) {
            summary = session.arrivals.summary();
            (session.heard_at, session.over_at) = (now, now + AFTER_QUESTION);
        }
        if let Some(source) = source {
            let report = Datagram { kind: Kind::Report(summary), ..*question };
            self.client.send(source, report.emit(0), out);
        }
    }

    fn make_room(&mut self, out: &mut Vec<Action>) {
        let oldest = self.sessions.iter().min_by_key(|(_, session)| session.heard_at);
        if self.sessions.len() >= SESSIONS
            && let Some(id) = oldest.map(|(id, _)| *id)
        {
            self.finish(id, out);
        }
    }

    /// A measurement is over.
    fn finish(&mut self, id: u64, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.remove(&id) else { return };
        let summary = session.arrivals.summary();
        let from = session.from.as_ref();
        let line = report::served(from, &summary, session.echoes, self.options.json);
        out.push(Action::Print { line });
        self.finished += 1;
        if self.options.count == Some(self.finished) {
            self.end(out);
        }
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Action>) {
        let over = self.sessions.iter().filter(|(_, session)| session.over_at <= now);
        let over: Vec<u64> = over.map(|(id, _)| *id).collect();
        over.into_iter().for_each(|id| self.finish(id, out));
    }

    fn end(&mut self, out: &mut Vec<Action>) {
        if self.ended {
            return;
        }
        self.ended = true;
        if self.withheld > 0 {
            let line = format!("{} echoes were not sent: the node was too slow", self.withheld);
            out.push(Action::Report { level: Level::Warning, line });
        }
        out.push(Action::Exit { status: 0 });
    }
}

impl Component for PerfServer {
    type Input = Event;
    type Output = Action;

    fn handle(&mut self, now: Instant, event: Event, out: &mut Vec<Action>) {
        let mut events = Vec::new();
        match self.client.handle(now, event, &mut events, out) {
            Some(Event::Start) => self.client.start(out),
            Some(Event::Stop) => {
                let ids: Vec<u64> = self.sessions.keys().copied().collect();
                ids.into_iter().for_each(|id| self.finish(id, out));
                self.end(out);
            }
            _ => {}
        }
        for event in events {
            self.client_event(now, event, out);
        }
        self.tick(now, out);
    }

    fn deadline(&self) -> Option<Instant> {
        if self.ended {
            return None;
        }
        let over = self.sessions.values().map(|session| session.over_at);
        over.chain(self.client.deadline()).min()
    }
}

#[cfg(test)]
mod tests {
    use weft_xip::XidType;

    use super::super::wire::REPORT_LEN;
    use super::*;
    use crate::testing::Harness;

    fn server(count: Option<u64>) -> Harness<PerfServer> {
        let bind = BindRequest::Any(XidType::XDP);
        let options = PerfServerOptions { bind, count, json: false };
        Harness::attached(PerfServer::new(Path::new("x"), options))
    }

    fn give(harness: &mut Harness<PerfServer>, session: u64, sequence: u64, kind: Kind) {
        let datagram = Datagram { session, sequence, kind };
        harness.deliver_from(Harness::<PerfServer>::own_address(), datagram.emit(100).bytes());
    }

    #[test]
    fn probes_are_counted_and_those_that_want_it_sent_back() {
        let mut harness = server(Some(1));
        give(&mut harness, 7, 0, Kind::Probe { echo: false });
        assert_eq!(harness.datagrams(), []);
        give(&mut harness, 7, 2, Kind::Probe { echo: true });
        let [(_, echoed)] = harness.datagrams().try_into().unwrap();
        let expected = Datagram { session: 7, sequence: 2, kind: Kind::Echo };
        assert_eq!((Datagram::parse(&echoed), echoed.len()), (Some(expected), 100));
        give(&mut harness, 7, 5, Kind::Question);
        let [(_, told)] = harness.datagrams().try_into().unwrap();
        assert_eq!(told.len(), REPORT_LEN);
        let told = Datagram::parse(&told).unwrap();
        let Kind::Report(summary) = told.kind else { panic!("{told:?}") };
        assert_eq!((told.sequence, summary.received, summary.bytes), (5, 2, 200));
        harness.advance(AFTER_QUESTION);
        assert!(harness.printed()[0].contains("2 datagrams"), "{:?}", harness.printed());
        assert_eq!(harness.exit_status(), Some(0));
    }

    #[test]
    fn a_question_out_of_the_blue_is_answered_and_not_remembered() {
        let mut harness = server(None);
        give(&mut harness, 9, 0, Kind::Question);
        let [(_, told)] = harness.datagrams().try_into().unwrap();
        let told = Datagram::parse(&told).map(|told| told.kind);
        assert_eq!(told, Some(Kind::Report(Summary::default())));
        harness.deliver(b"nonsense");
        harness.advance(AFTER_PROBE);
        assert!(harness.printed().is_empty());
    }

    #[test]
    fn sessions_are_bounded_and_the_one_that_is_silent_for_longest_goes() {
        let mut harness = server(None);
        for session in 0..SESSIONS as u64 {
            give(&mut harness, session, 0, Kind::Probe { echo: false });
            harness.advance(Duration::from_millis(1));
        }
        give(&mut harness, 0, 1, Kind::Probe { echo: false });
        assert!(harness.printed().is_empty());
        give(&mut harness, 1 << 40, 0, Kind::Probe { echo: false });
        assert_eq!(harness.printed().len(), 1);
        give(&mut harness, 0, 1, Kind::Question);
        let (_, told) = harness.datagrams().pop().unwrap();
        let Some(Kind::Report(summary)) = Datagram::parse(&told).map(|told| told.kind) else {
            panic!()
        };
        assert_eq!(summary.received, 2, "the first session was heard again, and stays");
    }

    #[test]
    fn a_client_that_goes_silent_is_over_at_last_and_all_are_when_it_is_stopped() {
        let mut harness = server(None);
        give(&mut harness, 1, 0, Kind::Probe { echo: false });
        harness.advance(AFTER_PROBE);
        assert_eq!(harness.printed().len(), 1);
        give(&mut harness, 2, 0, Kind::Probe { echo: false });
        harness.give(Event::Stop);
        assert_eq!((harness.printed().len(), harness.exit_status()), (2, Some(0)));
    }
}
