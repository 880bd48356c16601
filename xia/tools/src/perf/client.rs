//! `weft xia perf client`: sends numbered datagrams, and finds out what became of them.
//!
//! | phase | ends |
//! |---|---|
//! | greeting: the server is asked what arrived, until it answers | with its first report |
//! | sending: datagrams leave when they are due | when all have left, or the time is over |
//! | closing: the server is asked again and again, echoes are waited for | when nothing is missing, or after the timeout |

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use weft_base::{Instant, Packet, Random, Token};
use weft_runtime::{Action, Component, Event, Level};
use weft_xia_sockets::{Client, ClientEvent};
use weft_xip::channel::BindRequest;
use weft_xip::{Address, XidType};

use super::PERF_SINK;
use super::arrivals::{Arrival, Arrivals, Summary, WINDOW};
use super::latency::Latencies;
use super::report::{self, Findings};
use super::schedule::{Pace, Schedule};
use super::wire::{Datagram, HEADER_LEN, Kind, REPORT_LEN};
use crate::text::destination;

/// How often a server is asked that does not answer.
const ASK_EVERY: Duration = Duration::from_millis(200);
/// How long a server is waited for that never answered, or that does not any more.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long after its end a measurement sends what was due before.
const CATCH_UP: Duration = Duration::from_secs(1);
/// Datagrams sent between two looks at what else happens.
const BATCH: u64 = 64;
/// How often progress is told.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// What to measure.
#[derive(Clone, Debug)]
pub struct PerfOptions {
    /// Where the server is; an address that does not end in a datagram sink means the usual one behind it.
    pub to: Address,
    /// How fast to send.
    pub pace: Pace,
    /// How many datagrams at most.
    pub count: Option<u64>,
    /// How long to send.
    pub duration: Option<Duration>,
    /// Payload bytes of a datagram, at least [`HEADER_LEN`].
    pub size: usize,
    /// Have each datagram sent back, and measure round trips.
    pub echo: bool,
    /// How far datagrams may go, in hops.
    pub hop_limit: u8,
    /// How long to wait for what is missing at the end.
    pub timeout: Duration,
    /// Print the findings as JSON.
    pub json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Attaching,
    Greeting { until: Instant },
    Sending { began: Instant },
    Closing { until: Instant },
    Done,
}

/// The client of a measurement.
pub struct PerfClient {
    options: PerfOptions,
    destination: Result<Address, String>,
    client: Client,
    session: u64,
    schedule: Option<Schedule>,
    phase: Phase,
    congested: bool,
    sent: u64,
    first_sent: Instant,
    last_sent: Instant,
    behind: Duration,
    /// When the last of the datagrams should have left, those with the largest numbers, in their order.
    due_at: VecDeque<Instant>,
    echoes: Arrivals,
    latencies: Latencies,
    ask_at: Instant,
    questions: u64,
    /// The number of the last question that was answered, and the answer.
    server: Option<(u64, Summary)>,
    rejected: Option<String>,
    progress_at: Instant,
    progress_sent: u64,
}

impl PerfClient {
    /// A client through the node whose socket is at `node`; `random` gives the number of the session.
    #[must_use]
    pub fn new(node: &Path, options: PerfOptions, mut random: Random) -> Self {
        let mut client = Client::new(Token(1), node, Some(BindRequest::Any(XidType::XDP)));
        client.set_hop_limit(options.hop_limit);
        Self {
            destination: destination(&options.to, PERF_SINK),
            schedule: Schedule::new(options.pace, options.size),
            options,
            client,
            session: random.number(),
            phase: Phase::Attaching,
            congested: false,
            sent: 0,
            first_sent: Instant::ZERO,
            last_sent: Instant::ZERO,
            behind: Duration::ZERO,
            due_at: VecDeque::new(),
            echoes: Arrivals::default(),
            latencies: Latencies::default(),
            ask_at: Instant::ZERO,
            questions: 0,
            server: None,
            rejected: None,
            progress_at: Instant::ZERO,
            progress_sent: 0,
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
            ClientEvent::Ready(_) if self.phase == Phase::Attaching => {
                self.phase = Phase::Greeting { until: now + PATIENCE };
                self.ask_at = now;
            }
            ClientEvent::Failed(error) => self.fail(error, out),
            ClientEvent::Detached => {
                self.fail("the node went away in the middle of the measurement".to_owned(), out);
            }
            ClientEvent::Datagram { payload, .. } => self.datagram(now, &payload, out),
            ClientEvent::Rejected(reason) => {
                if self.rejected.as_ref() != Some(&reason) {
                    let line = format!("a datagram was not delivered: {reason}");
                    out.push(Action::Report { level: Level::Warning, line });
                    self.rejected = Some(reason);
                }
            }
            ClientEvent::Congested => self.congested = true,
            ClientEvent::Drained => self.congested = false,
            ClientEvent::Ready(_) | ClientEvent::Reply(_) | ClientEvent::CommandFailed(_) => {}
        }
    }

    fn datagram(&mut self, now: Instant, payload: &Packet, out: &mut Vec<Action>) {
        let Some(datagram) = Datagram::parse(payload.bytes()) else { return };
        if datagram.session != self.session {
            return;
        }
        match datagram.kind {
            Kind::Echo if datagram.sequence < self.sent => {
                self.echo(now, datagram.sequence, payload.len());
            }
            Kind::Report(summary) if datagram.sequence < self.questions => {
                self.report(now, datagram.sequence, summary);
            }
            _ => return,
        }
        self.end_if_complete(out);
    }

    fn echo(&mut self, now: Instant, sequence: u64, len: usize) {
        let arrival = self.echoes.note(now, sequence, len);
        if matches!(arrival, Arrival::InOrder | Arrival::Reordered) {
            let kept_from = self.sent - self.due_at.len() as u64;
            let index = sequence.checked_sub(kept_from).and_then(|at| usize::try_from(at).ok());
            if let Some(due) = index.and_then(|index| self.due_at.get(index)) {
                self.latencies.note(now.since(*due));
            }
        }
    }

    fn report(&mut self, now: Instant, question: u64, summary: Summary) {
        if let Phase::Greeting { .. } = self.phase {
            self.phase = Phase::Sending { began: now };
            self.progress_at = now;
            return;
        }
        // Questions overtake each other, too.
        if self.server.is_none_or(|(last, _)| question >= last) {
            self.server = Some((question, summary));
        }
    }

    /// Whether everything that was sent arrived, and came back if it should.
    fn end_if_complete(&mut self, out: &mut Vec<Action>) {
        let Phase::Closing { .. } = self.phase else { return };
        let arrived = self.server.is_some_and(|(_, server)| server.received >= self.sent);
        let back = !self.options.echo || self.echoes.summary().received >= self.sent;
        if arrived && back {
            self.finish(out);
        }
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Action>) {
        match self.phase {
            Phase::Attaching | Phase::Done => {}
            Phase::Greeting { until } if now >= until => self.give_up(out),
            Phase::Closing { until } if now >= until + PATIENCE => self.finish(out),
            Phase::Closing { until } if now >= until && self.server.is_some() => self.finish(out),
            Phase::Greeting { .. } | Phase::Closing { .. } => self.ask(now, out),
            Phase::Sending { began } => self.send(now, began, out),
        }
    }

    fn ask(&mut self, now: Instant, out: &mut Vec<Action>) {
        if now >= self.ask_at {
            let (session, sequence) = (self.session, self.questions);
            let question = Datagram { session, sequence, kind: Kind::Question };
            self.give(question.emit(REPORT_LEN), out);
            self.questions += 1;
            self.ask_at = now + ASK_EVERY;
        }
    }

    /// Sends what is due, and ends that when it is time.
    fn send(&mut self, now: Instant, began: Instant, out: &mut Vec<Action>) {
        let elapsed = now.since(began);
        for _ in 0..BATCH {
            if self.congested || self.sent >= self.due(elapsed) {
                break;
            }
            let due = self.schedule.map_or(now, |schedule| began + schedule.due(self.sent));
            self.send_one(now, due, out);
        }
        let all = self.sent >= self.total();
        let over = all || self.over_at(began).is_some_and(|over| now >= over);
        if over || now.since(self.progress_at) >= PROGRESS_EVERY {
            self.progress(now, out);
        }
        if over {
            self.phase = Phase::Closing { until: now + self.options.timeout };
            self.ask_at = now;
            self.ask(now, out);
        }
    }

    /// How many should have been sent by now.
    fn due(&self, elapsed: Duration) -> u64 {
        let due = match &self.schedule {
            // Its own due time is in the span, too.
            Some(schedule) => schedule.count(elapsed + Duration::from_nanos(1)),
            None => u64::MAX,
        };
        due.min(self.total())
    }

    /// How many shall be sent at all.
    fn total(&self) -> u64 {
        let timed = match (&self.schedule, self.options.duration) {
            (Some(schedule), Some(duration)) => schedule.count(duration),
            _ => u64::MAX,
        };
        timed.min(self.options.count.unwrap_or(u64::MAX))
    }

    /// When sending ends, whatever is left to be sent.
    fn over_at(&self, began: Instant) -> Option<Instant> {
        let late = if self.schedule.is_some() { CATCH_UP } else { Duration::ZERO };
        self.options.duration.map(|duration| began + duration + late)
    }

    fn send_one(&mut self, now: Instant, due: Instant, out: &mut Vec<Action>) {
        let kind = Kind::Probe { echo: self.options.echo };
        let probe = Datagram { session: self.session, sequence: self.sent, kind };
        self.give(probe.emit(self.options.size.max(HEADER_LEN)), out);
        if self.sent == 0 {
            self.first_sent = now;
        }
        self.last_sent = now;
        self.behind = self.behind.max(now.since(due));
        self.sent += 1;
        if self.options.echo {
            if self.due_at.len() as u64 == WINDOW {
                self.due_at.pop_front();
            }
            self.due_at.push_back(due);
        }
    }

    fn give(&self, payload: Packet, out: &mut Vec<Action>) {
        if let Ok(destination) = &self.destination {
            self.client.send(destination, payload, out);
        }
    }

    fn progress(&mut self, now: Instant, out: &mut Vec<Action>) {
        let span = now.since(self.progress_at).max(Duration::from_micros(1));
        let rate = (self.sent - self.progress_sent) as f64 / span.as_secs_f64();
        (self.progress_at, self.progress_sent) = (now, self.sent);
        let back = match self.options.echo {
            true => format!(", {} came back", self.echoes.summary().received),
            false => String::new(),
        };
        out.push(Action::Progress {
            label: "datagrams".to_owned(),
            done: self.sent,
            total: Some(self.total()).filter(|total| *total < u64::MAX),
            note: format!("{rate:.0}/s{back}"),
        });
    }

    /// The server never answered.
    fn give_up(&mut self, out: &mut Vec<Action>) {
        let to = self.destination.clone().map_or_else(|error| error, |to| to.to_string());
        let error = format!(
            "nobody measures at {to}: start `weft xia perf server` there, and see with `weft xia ping` \
             whether its host is reached"
        );
        self.fail(error, out);
    }

    fn fail(&mut self, error: String, out: &mut Vec<Action>) {
        if self.phase != Phase::Done {
            self.phase = Phase::Done;
            out.push(Action::Report { level: Level::Error, line: error });
            out.push(Action::Exit { status: 1 });
        }
    }

    fn stop(&mut self, now: Instant, out: &mut Vec<Action>) {
        match self.phase {
            Phase::Sending { .. } => {
                // There is time for one answer.
                self.phase = Phase::Closing { until: now };
                self.ask_at = now;
                self.ask(now, out);
            }
            Phase::Closing { .. } => self.finish(out),
            _ => {
                self.phase = Phase::Done;
                out.push(Action::Exit { status: 1 });
            }
        }
    }

    fn finish(&mut self, out: &mut Vec<Action>) {
        let due = match self.total() {
            u64::MAX => self.sent,
            total => total,
        };
        self.warn_of_what_is_missing(due, out);
        let server = self.server.map(|(_, summary)| summary);
        let findings = Findings {
            to: self.destination.as_ref().unwrap_or(&self.options.to),
            size: self.options.size.max(HEADER_LEN),
            due,
            sent: self.sent,
            span: self.last_sent.since(self.first_sent),
            behind: self.behind,
            server,
            echoes: self.options.echo.then(|| (self.echoes.summary(), &self.latencies)),
        };
        let lines = report::found(&findings, self.options.json).into_iter();
        out.extend(lines.map(|line| Action::Print { line }));
        self.phase = Phase::Done;
        let arrived = server.is_some_and(|server| server.received > 0);
        out.push(Action::Exit { status: u8::from(!arrived) });
    }

    fn warn_of_what_is_missing(&self, due: u64, out: &mut Vec<Action>) {
        let mut warn = |line: String| out.push(Action::Report { level: Level::Warning, line });
        if self.sent < due {
            warn(format!(
                "{} of {due} datagrams were not sent: times are those of the others, and better than all \
                 would have been",
                due - self.sent
            ));
        }
        if self.server.is_none() {
            warn("the server does not answer any more: what arrived there is not known".to_owned());
        }
    }
}

impl Component for PerfClient {
    type Input = Event;
    type Output = Action;

    fn handle(&mut self, now: Instant, event: Event, out: &mut Vec<Action>) {
        let mut events = Vec::new();
        match self.client.handle(now, event, &mut events, out) {
            Some(Event::Start) => self.start(out),
            Some(Event::Stop) => self.stop(now, out),
            _ => {}
        }
        for event in events {
            self.client_event(now, event, out);
        }
        self.tick(now, out);
    }

    fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Attaching => self.client.deadline(),
            Phase::Greeting { until } => Some(until.min(self.ask_at)),
            Phase::Sending { began } => {
                let next = self.schedule.filter(|_| !self.congested && self.sent < self.total());
                let next = next.map(|schedule| began + schedule.due(self.sent));
                next.into_iter().chain(self.over_at(began)).min()
            }
            Phase::Closing { until } if self.server.is_some() => Some(until.min(self.ask_at)),
            Phase::Closing { until } => Some(self.ask_at.min(until + PATIENCE)),
            Phase::Done => None,
        }
    }

    /// An unlimited pace is work that never ends.
    fn has_background_work(&self) -> bool {
        let sending = matches!(self.phase, Phase::Sending { .. });
        sending && self.schedule.is_none() && !self.congested
    }
}

#[cfg(test)]
mod tests;
