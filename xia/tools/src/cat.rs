//! `weft xia cat`: standard input into datagrams, datagrams to standard output.
//!
//! With a destination, every read of standard input becomes one datagram (at most `size` bytes);
//! the end of the input ends the application after a pause for late answers. Without one, or
//! beside it, whatever arrives is written out as it comes. There is no reliability and no order
//! beyond the network's: for files there is `weft xia push`. What standard output does not take as
//! fast as it comes waits up to a limit; beyond it datagrams are dropped, and that is said.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weft_base::{FileId, Instant, Packet, Token};
use weft_runtime::{Action, Component, DiskReply, DiskRequest, Event, Level, OpenMode};
use weft_xia_sockets::{Client, ClientEvent};
use weft_xip::Address;
use weft_xip::channel::BindRequest;

const CLIENT: Token = Token(1);
const OPEN_INPUT: Token = Token(2);
const OPEN_OUTPUT: Token = Token(3);
const READ: Token = Token(4);
const WRITE: Token = Token(5);
/// How much waits for standard output before datagrams are dropped, in bytes.
const WAITING_LIMIT: usize = 4 << 20;
/// What a datagram that waits costs beside its bytes, so that empty ones are bounded, too.
const COST: usize = 64;

/// What to connect with what.
#[derive(Clone, Debug)]
pub struct CatOptions {
    /// What to be reached by.
    pub bind: BindRequest,
    /// Where standard input goes; `None`: it is not read.
    pub to: Option<Address>,
    /// Most bytes per datagram.
    pub size: usize,
    /// Pause after the end of the input, for answers that are under way.
    pub linger: Duration,
    /// End after this many datagrams were received; `None`: do not.
    pub count: Option<u64>,
}

/// The cat application.
pub struct Cat {
    options: CatOptions,
    client: Client,
    input: Option<FileId>,
    output: Option<FileId>,
    received: u64,
    /// Datagrams that came before standard output was open.
    early: Vec<Vec<u8>>,
    /// The costs of the datagrams that are not written yet, in their order.
    waiting: VecDeque<usize>,
    /// The sum of `waiting`.
    unwritten: usize,
    dropped: u64,
    /// Standard input was asked for.
    asked_for_input: bool,
    /// A read is under way.
    reading: bool,
    /// What was read while the node was away.
    unsent: Option<Vec<u8>>,
    /// Nothing more comes from standard input.
    input_ended: bool,
    congested: bool,
    end: Option<Instant>,
}

impl Cat {
    /// A cat through the node whose socket is at `node`.
    #[must_use]
    pub fn new(node: &Path, options: CatOptions) -> Self {
        Self {
            client: Client::new(CLIENT, node, Some(options.bind)),
            options,
            input: None,
            output: None,
            received: 0,
            early: Vec::new(),
            waiting: VecDeque::new(),
            unwritten: 0,
            dropped: 0,
            asked_for_input: false,
            reading: false,
            unsent: None,
            input_ended: false,
            congested: false,
            end: None,
        }
    }

    fn start(&mut self, out: &mut Vec<Action>) {
        self.client.start(out);
        out.push(open(OPEN_OUTPUT, OpenMode::Replace));
    }

    fn client_event(&mut self, now: Instant, event: ClientEvent, out: &mut Vec<Action>) {
        match event {
            ClientEvent::Ready(address) => {
                if let Some(address) = address {
                    let line = format!("reachable at {address}");
                    out.push(Action::Report { level: Level::Info, line });
                }
                if self.options.to.is_some() && !self.asked_for_input {
                    self.asked_for_input = true;
                    out.push(open(OPEN_INPUT, OpenMode::Read));
                }
                // A node that was away has forgotten that it did not keep up.
                self.congested = false;
                if let Some(bytes) = self.unsent.take() {
                    self.send(now, bytes, out);
                }
                self.read(out);
            }
            ClientEvent::Failed(error) => self.fail(error, out),
            ClientEvent::Datagram { payload, .. } => self.received(payload.bytes(), out),
            ClientEvent::Rejected(reason) => {
                let line = format!("a datagram was not delivered: {reason}");
                out.push(Action::Report { level: Level::Warning, line });
            }
            ClientEvent::Congested => self.congested = true,
            ClientEvent::Drained => {
                self.congested = false;
                self.read(out);
            }
            ClientEvent::Detached | ClientEvent::Reply(_) | ClientEvent::CommandFailed(_) => {}
        }
    }

    fn received(&mut self, payload: &[u8], out: &mut Vec<Action>) {
        let cost = payload.len() + COST;
        if self.unwritten + cost > WAITING_LIMIT {
            self.drop_datagram(out);
            return;
        }
        self.unwritten += cost;
        self.waiting.push_back(cost);
        match self.output {
            Some(file) => out.push(write(file, payload.to_vec())),
            None => self.early.push(payload.to_vec()),
        }
        self.received += 1;
        if self.options.count == Some(self.received) {
            self.end(out);
        }
    }

    fn drop_datagram(&mut self, out: &mut Vec<Action>) {
        self.dropped += 1;
        if self.dropped == 1 {
            let line = "standard output takes less than arrives: datagrams are dropped".to_owned();
            out.push(Action::Report { level: Level::Warning, line });
        }
    }

    /// The application has done what it was asked for, or was told to stop.
    fn end(&self, out: &mut Vec<Action>) {
        self.report_drops(out);
        out.push(Action::Exit { status: 0 });
    }

    fn fail(&self, error: String, out: &mut Vec<Action>) {
        self.report_drops(out);
        out.push(Action::Report { level: Level::Error, line: error });
        out.push(Action::Exit { status: 1 });
    }

    fn report_drops(&self, out: &mut Vec<Action>) {
        if self.dropped > 0 {
            let dropped = self.dropped;
            let line = format!("{dropped} datagrams were dropped: standard output was too slow");
            out.push(Action::Report { level: Level::Warning, line });
        }
    }

    /// Sends what was read, or keeps it while the node is away. The last of it begins the pause.
    fn send(&mut self, now: Instant, bytes: Vec<u8>, out: &mut Vec<Action>) {
        if let Some(to) = self.options.to.filter(|_| !bytes.is_empty())
            && !self.client.send(&to, Packet::from_slice(&bytes), out)
        {
            self.unsent = Some(bytes);
        } else if self.input_ended {
            self.end = Some(now + self.options.linger);
        }
    }

    /// Asks for more input, if it can be sent.
    fn read(&mut self, out: &mut Vec<Action>) {
        let Some(file) = self.input else { return };
        if self.reading || self.congested || !self.client.is_ready() {
            return;
        }
        self.reading = true;
        let request = DiskRequest::Read { file, offset: 0, len: self.options.size };
        out.push(Action::Disk { token: READ, request });
    }

    fn disk(&mut self, now: Instant, token: Token, reply: DiskReply, out: &mut Vec<Action>) {
        match (token, reply) {
            (OPEN_INPUT, DiskReply::Opened { file, .. }) => self.input = Some(file),
            (OPEN_OUTPUT, DiskReply::Opened { file, .. }) => {
                self.output = Some(file);
                let early = std::mem::take(&mut self.early);
                out.extend(early.into_iter().map(|payload| write(file, payload)));
            }
            (WRITE, DiskReply::Done) => {
                self.unwritten -= self.waiting.pop_front().unwrap_or(0);
            }
            (READ, DiskReply::Data { bytes, end }) => {
                self.reading = false;
                if end {
                    (self.input, self.input_ended) = (None, true);
                }
                self.send(now, bytes, out);
            }
            _ => {}
        }
        self.read(out);
    }
}

fn open(token: Token, mode: OpenMode) -> Action {
    Action::Disk { token, request: DiskRequest::Open { path: PathBuf::from("-"), mode } }
}

fn write(file: FileId, bytes: Vec<u8>) -> Action {
    Action::Disk { token: WRITE, request: DiskRequest::Write { file, offset: 0, bytes } }
}

impl Component for Cat {
    type Input = Event;
    type Output = Action;

    fn handle(&mut self, now: Instant, event: Event, out: &mut Vec<Action>) {
        let mut events = Vec::new();
        match self.client.handle(now, event, &mut events, out) {
            Some(Event::Start) => self.start(out),
            Some(Event::Stop) => self.end(out),
            Some(Event::Disk { token, result: Ok(reply) }) => self.disk(now, token, reply, out),
            Some(Event::Disk { result: Err(error), .. }) => self.fail(error.text, out),
            _ => {}
        }
        for event in events {
            self.client_event(now, event, out);
        }
        if self.end.is_some_and(|at| at <= now) {
            self.end = None;
            self.end(out);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        [self.end, self.client.deadline()].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use weft_xip::XidType;

    use super::*;
    use crate::testing::Harness;

    fn options(to: Option<Address>, count: Option<u64>) -> CatOptions {
        let bind = BindRequest::Any(XidType::XDP);
        CatOptions { bind, to, size: 4, linger: Duration::from_millis(100), count }
    }

    fn cat(to: Option<Address>, count: Option<u64>) -> Harness<Cat> {
        let mut harness = Harness::attached(Cat::new(Path::new("x"), options(to, count)));
        for (token, request) in harness.disk() {
            let DiskRequest::Open { mode, .. } = request else { panic!("{request:?}") };
            let file = FileId(u32::from(mode == OpenMode::Replace));
            harness.give(opened(token, file));
        }
        harness
    }

    fn opened(token: Token, file: FileId) -> Event {
        Event::Disk { token, result: Ok(DiskReply::Opened { file, len: None }) }
    }

    fn data(bytes: &[u8], end: bool) -> Event {
        Event::Disk { token: READ, result: Ok(DiskReply::Data { bytes: bytes.to_vec(), end }) }
    }

    #[test]
    fn input_becomes_datagrams_and_its_end_ends_the_application() {
        let to = Harness::<Cat>::own_address();
        let mut harness = cat(Some(to), None);
        assert!(matches!(harness.disk()[..], [(READ, DiskRequest::Read { len: 4, .. })]));
        harness.give(data(b"abcd", false));
        harness.give(data(b"e", true));
        let sent: Vec<_> = harness.datagrams().into_iter().map(|(_, bytes)| bytes).collect();
        assert_eq!(sent, [b"abcd".to_vec(), b"e".to_vec()]);
        assert_eq!(harness.exit_status(), None);
        harness.advance(Duration::from_millis(100));
        assert_eq!(harness.exit_status(), Some(0));
    }

    /// Longer than the application waits until it looks for the node again.
    const AWAY: Duration = Duration::from_secs(1);

    fn reads(harness: &mut Harness<Cat>) -> usize {
        harness.disk().iter().filter(|(token, _)| *token == READ).count()
    }

    #[test]
    fn a_node_that_went_away_while_it_was_busy_gets_datagrams_again() {
        let mut harness = cat(Some(Harness::<Cat>::own_address()), None);
        harness.give(Event::Congested { channel: Harness::<Cat>::CHANNEL });
        harness.give(data(b"abcd", false));
        assert_eq!(reads(&mut harness), 1, "the first, before the node was busy");
        harness.restart_node();
        harness.advance(AWAY);
        assert_eq!(reads(&mut harness), 1);
    }

    #[test]
    fn what_is_read_while_the_node_is_away_is_sent_when_it_is_back() {
        let mut harness = cat(Some(Harness::<Cat>::own_address()), None);
        assert_eq!(reads(&mut harness), 1);
        harness.restart_node();
        harness.give(data(b"abcd", true));
        harness.advance(AWAY);
        assert_eq!(harness.exit_status(), Some(0), "the pause begins when it is sent");
        let sent: Vec<_> = harness.datagrams().into_iter().map(|(_, bytes)| bytes).collect();
        assert_eq!(sent, [b"abcd"]);
    }

    #[test]
    fn standard_input_is_opened_once() {
        let to = Some(Harness::<Cat>::own_address());
        let mut harness = Harness::attached(Cat::new(Path::new("x"), options(to, None)));
        harness.restart_node();
        harness.advance(AWAY);
        let opened = harness.disk();
        assert_eq!(opened.iter().filter(|(token, _)| *token == OPEN_INPUT).count(), 1);
    }

    #[test]
    fn datagrams_become_output_and_are_counted() {
        let mut harness = cat(None, Some(2));
        harness.deliver(b"one");
        harness.deliver(b"two");
        let written: Vec<_> = harness
            .disk()
            .into_iter()
            .map(|(_, request)| match request {
                DiskRequest::Write { bytes, .. } => bytes,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(written, [b"one".to_vec(), b"two".to_vec()]);
        assert_eq!(harness.exit_status(), Some(0));
    }
    #[test]
    fn what_standard_output_does_not_take_is_dropped_beyond_a_limit_and_said() {
        for payload in [&[0; 60_000][..], &[]] {
            let mut harness = cat(None, None);
            let fits = WAITING_LIMIT / (payload.len() + COST);
            for _ in 0..fits + 7 {
                harness.deliver(payload);
            }
            assert_eq!(harness.disk().len(), fits);
            assert_eq!(harness.reported().len(), 1 + 1, "reachable, and dropped once");
            // One is written: another one may wait.
            harness.give(Event::Disk { token: WRITE, result: Ok(DiskReply::Done) });
            harness.deliver(payload);
            harness.deliver(payload);
            assert_eq!(harness.disk().len(), 1);
            harness.give(Event::Stop);
            let last = harness.reported().last().unwrap();
            assert_eq!(last, "8 datagrams were dropped: standard output was too slow");
            assert_eq!(harness.exit_status(), Some(0));
        }
    }
}
