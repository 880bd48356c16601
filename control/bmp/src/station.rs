//! A station: the connection to it, and the reader at BGP by which it hears what peers say.
//!
//! Reference: RFC 7854 §3.2 (connections are opened by routers, which hear nothing on them; when they are tried again), §3.3 (a new
//! connection begins from the beginning).
//!
//! A connection lives as long as what was told on it is true: when BGP's process ends, or has forgotten what is to be told since the
//! station is too slow, the connection ends, too, and the next one begins anew.

use std::time::Duration;

use weft_base::{Buffer, ChannelId, Instant, Message, Token};
use weft_runtime::{Action, Level, StreamOptions, StreamRequest};
use weft_xrl::Output;

use crate::config::{LONGEST_RETRY, StationConfig};
use crate::interface::{Monitor, MonitorReply};
use crate::messages::{initiation, termination};

/// Bytes that are asked for at once.
const AT_MOST: u32 = 64 << 10;
/// How long a station may take nothing, and its system acknowledge nothing.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long there may be nothing to say, in milliseconds.
const QUIET: u32 = 20_000;

/// The number of a connection, of all to all stations: what was asked for an earlier one is not told on it.
pub(crate) type Connection = u64;

/// How far the connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There is none, and none is opened before this.
    Idle(Instant),
    Connecting(Token),
    Up {
        channel: ChannelId,
        connection: Connection,
        /// It takes no more, and the connection ends then if it goes on like that.
        stalls: Option<Instant>,
        /// BGP was asked for what comes next.
        is_asked: bool,
        /// BGP has answered for the first time.
        has_begun: bool,
        /// Everything that there was has been told.
        is_complete: bool,
    },
}

/// A station.
#[derive(Debug)]
pub(crate) struct Station {
    name: String,
    pub(crate) config: StationConfig,
    /// The number of its reader.
    pub(crate) reader: u8,
    state: State,
    failures: u32,
    /// Bytes that were told in all.
    pub(crate) told: u64,
    /// What went wrong last.
    pub(crate) failure: Option<String>,
    /// Who this router is.
    router: String,
}

impl Station {
    /// One that is connected to as soon as BGP is there.
    pub(crate) fn new(
        now: Instant,
        (name, router): (&str, &str),
        reader: u8,
        config: StationConfig,
    ) -> Self {
        Self {
            name: name.to_owned(),
            config,
            reader,
            state: State::Idle(now),
            failures: 0,
            told: 0,
            failure: None,
            router: router.to_owned(),
        }
    }

    /// How far it is, in words.
    pub(crate) fn state(&self) -> &'static str {
        match self.state {
            State::Idle(_) => "idle",
            State::Connecting(_) => "connecting",
            State::Up { stalls: Some(_), .. } => "takes no more",
            State::Up { is_complete: true, .. } => "up to date",
            State::Up { .. } => "hears what there is",
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        matches!(self.state, State::Up { .. })
    }

    pub(crate) fn is_attempt(&self, token: Token) -> bool {
        self.state == State::Connecting(token)
    }

    pub(crate) fn is_on(&self, of: ChannelId) -> bool {
        matches!(self.state, State::Up { channel, .. } if channel == of)
    }

    /// Connects with this token, if it is time for that.
    pub(crate) fn connect(&mut self, now: Instant, token: Token, out: &mut Vec<Output>) {
        if !matches!(self.state, State::Idle(then) if then <= now) {
            return;
        }
        self.state = State::Connecting(token);
        let options = StreamOptions { user_timeout: Some(PATIENCE), ..StreamOptions::default() };
        let request = StreamRequest::Open(self.config.remote.stream(options));
        out.push(Output::World(Action::Stream { token, request }));
    }

    /// When it is connected to, if it is not.
    pub(crate) fn connects(&self) -> Option<Instant> {
        match self.state {
            State::Idle(then) => Some(then),
            State::Connecting(_) | State::Up { .. } => None,
        }
    }

    /// When the connection ends, if nothing more is taken.
    pub(crate) fn stalls(&self) -> Option<Instant> {
        match self.state {
            State::Up { stalls, .. } => stalls,
            State::Connecting(_) | State::Idle(_) => None,
        }
    }

    /// Ends the connection if that has lasted too long.
    pub(crate) fn expire(&mut self, now: Instant, out: &mut Vec<Output>) {
        if self.stalls().is_some_and(|then| then <= now) {
            let seconds = PATIENCE.as_secs();
            self.fail(now, &format!("it has taken nothing for {seconds} seconds"), out);
        }
    }

    /// There is a connection.
    pub(crate) fn opened(
        &mut self,
        channel: ChannelId,
        connection: Connection,
        out: &mut Vec<Output>,
    ) {
        self.state = State::Up {
            channel,
            connection,
            stalls: None,
            is_asked: false,
            has_begun: false,
            is_complete: false,
        };
        self.failure = None;
        self.send(channel, initiation(&self.router), out);
    }

    /// There is none, or not any more.
    pub(crate) fn lost(&mut self, now: Instant, why: &str, out: &mut Vec<Output>) {
        // A connection on which everything was told was a good one.
        if matches!(self.state, State::Up { is_complete: true, .. }) {
            self.failures = 0;
        }
        self.state = State::Idle(now + self.again());
        if self.failure.as_deref() != Some(why) {
            let line = format!("station {}: {why}", self.name);
            out.push(Output::World(Action::Report { level: Level::Warning, line }));
        }
        self.failure = Some(why.to_owned());
    }

    /// How long until the next attempt, after one failure more.
    fn again(&mut self) -> Duration {
        let doubled = self.config.connect_retry.saturating_mul(1 << self.failures.min(16));
        self.failures += 1;
        doubled.min(LONGEST_RETRY)
    }

    /// The station does not keep up, or does again.
    pub(crate) fn congested(&mut self, now: Instant, is_congested: bool) {
        if let State::Up { stalls, .. } = &mut self.state {
            *stalls = is_congested.then_some(now + PATIENCE);
        }
    }

    /// There is no such station any more, or this process stops.
    pub(crate) fn close(&mut self, now: Instant, out: &mut Vec<Output>) {
        match self.state {
            State::Idle(_) => {}
            State::Connecting(token) => {
                let request = StreamRequest::Cancel;
                out.push(Output::World(Action::Stream { token, request }));
            }
            State::Up { channel, .. } => {
                self.send(channel, termination(), out);
                out.push(Output::World(Action::Close { channel }));
            }
        }
        self.state = State::Idle(now);
    }

    /// What is told on the connection would not be true any more: it ends, and there is a new one at once.
    pub(crate) fn renew(&mut self, now: Instant, why: &str, out: &mut Vec<Output>) {
        if !matches!(self.state, State::Up { .. }) {
            return;
        }
        let line = format!("station {}: {why}, so that it is told everything anew", self.name);
        out.push(Output::World(Action::Report { level: Level::Info, line }));
        self.close(now, out);
    }

    /// There is no going on with the connection, and another one is tried after a time.
    pub(crate) fn fail(&mut self, now: Instant, why: &str, out: &mut Vec<Output>) {
        if self.is_up() {
            self.close(now, out);
            self.lost(now, why, out);
        }
    }

    /// Whether this is the connection that there is.
    pub(crate) fn is_about(&self, about: Connection) -> bool {
        matches!(self.state, State::Up { connection, .. } if connection == about)
    }

    fn send(&mut self, channel: ChannelId, bytes: Vec<u8>, out: &mut Vec<Output>) {
        if !bytes.is_empty() {
            self.told += bytes.len() as u64;
            let message = Message::from(Buffer::from_slice(&bytes));
            out.push(Output::World(Action::Send { channel, message }));
        }
    }

    /// What BGP is to be asked for now, and for which connection: what comes next, if the station can take more.
    pub(crate) fn wants(&mut self) -> Option<(Connection, Monitor)> {
        let State::Up { connection, stalls: None, is_asked, has_begun, .. } = &mut self.state
        else {
            return None;
        };
        if std::mem::replace(is_asked, true) {
            return None;
        }
        let (reader, begin) = (self.reader.into(), !*has_begun);
        Some((*connection, Monitor { reader, begin, at_most: AT_MOST, wait: QUIET }))
    }

    /// BGP has answered what was asked for a connection.
    pub(crate) fn answered(
        &mut self,
        now: Instant,
        about: Connection,
        reply: MonitorReply,
        out: &mut Vec<Output>,
    ) {
        let State::Up { channel, connection, is_asked, has_begun, is_complete, .. } =
            &mut self.state
        else {
            return;
        };
        if *connection != about {
            return;
        }
        let (channel, is_first) = (*channel, !std::mem::replace(has_begun, true));
        *is_asked = false;
        if reply.again && !is_first {
            return self.fail(now, "it is too slow", out);
        }
        if reply.complete {
            (*is_complete, self.failures) = (true, 0);
        }
        self.send(channel, reply.messages.0, out);
    }
}
