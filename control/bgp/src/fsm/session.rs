//! Inputs become events, two connections become one.
//!
//! Reference: RFC 4271 §6.8 (collisions), §8.2.1 (a state machine for each connection); RFC 4724 §5; RFC 6286 §2.3.

use weft_base::{Instant, Random};

use super::event::Event;
use super::negotiate::{Negotiated, negotiate};
use super::settings::Settings;
use super::timers::Timers;
use super::{AttemptId, ConnectionId, Input, Output, State, Transition};
use crate::numbers::{error_code, open_error};
use crate::wire::{
    Cutter, Message, MessageCounts, MessageError, MessageType, Notification, Open, RouteRefresh,
};

/// The state machine that opens connections.
pub(super) const PRIMARY: usize = 0;
/// The one of a connection beside that of the other, until it is settled which is kept.
const RIVAL: usize = 1;

/// Who has opened a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opener {
    Us,
    Peer,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) id: ConnectionId,
    opener: Opener,
    pub(super) cutter: Cutter,
}

impl Link {
    pub(super) fn new(id: ConnectionId, opener: Opener) -> Self {
        Self { id, opener, cutter: Cutter::new() }
    }
}

/// The state machine of a connection.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) state: State,
    pub(super) timers: Timers,
    pub(super) link: Option<Link>,
    /// Our OPEN, when it is sent.
    pub(super) open: Option<Box<Open>>,
    pub(super) negotiated: Option<Box<Negotiated>>,
}

impl Machine {
    fn new() -> Self {
        let (link, open, negotiated) = (None, None, None);
        Self { state: State::Idle, timers: Timers::default(), link, open, negotiated }
    }
}

/// A session with a peer.
///
/// ```
/// use std::net::Ipv4Addr;
/// use weft_base::{Instant, Random};
/// use weft_bgp::fsm::{AttemptId, ConnectionId, Input, Output, PeerAs, Session, Settings, State};
///
/// let settings = Settings::new(65001, Ipv4Addr::new(192, 0, 2, 1), PeerAs::Exactly(65002));
/// let mut session = Session::new(settings, Random::from_seed(1));
/// let mut out = Vec::new();
/// session.handle(Instant::ZERO, Input::Start, &mut out);
/// assert!(out.contains(&Output::Connect(AttemptId(1))));
/// let opened = Input::Opened { attempt: AttemptId(1), connection: ConnectionId(7) };
/// session.handle(Instant::ZERO, opened, &mut out);
/// assert_eq!(session.state(), State::OpenSent);
/// ```
#[derive(Debug)]
pub struct Session {
    pub(super) settings: Settings,
    pub(super) random: Random,
    pub(super) machines: [Machine; 2],
    /// The attempt to open a connection that is under way.
    pub(super) attempt: Option<AttemptId>,
    pub(super) attempts: u64,
    /// ConnectRetryCounter.
    pub(super) retries: u32,
    /// Errors since a session was up for long.
    pub(super) errors: u32,
    pub(super) up_since: Option<Instant>,
    /// The peer is to open the next connection, for a moment.
    pub(super) waits_for_peer: bool,
    transitions: [[u64; State::ALL.len()]; State::ALL.len()],
    /// Messages that have come, of all connections.
    received: MessageCounts,
    pub(super) now: Instant,
    pub(super) out: Vec<Output>,
}

impl Session {
    /// One that has not been started. `random` is for the jitter of timers.
    #[must_use]
    pub fn new(settings: Settings, random: Random) -> Self {
        Self {
            settings,
            random,
            machines: [Machine::new(), Machine::new()],
            attempt: None,
            attempts: 0,
            retries: 0,
            errors: 0,
            up_since: None,
            waits_for_peer: false,
            transitions: Default::default(),
            received: MessageCounts::default(),
            now: Instant::ZERO,
            out: Vec::new(),
        }
    }

    /// What it is to be like.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Changes what it is to be like from the next connection on.
    pub fn set_settings(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// The state of its connection; with two of them, of the older one.
    #[must_use]
    pub const fn state(&self) -> State {
        self.machines[PRIMARY].state
    }

    /// The connection on which routes are exchanged.
    #[must_use]
    pub fn connection(&self) -> Option<ConnectionId> {
        self.established().and_then(|at| self.connection_at(at))
    }

    /// What was agreed on, while routes are exchanged.
    #[must_use]
    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.established().and_then(|at| self.machines[at].negotiated.as_deref())
    }

    /// Our OPEN, as it was sent, and the peer's, while routes are exchanged.
    pub(crate) fn opens(&self) -> Option<(&Open, &Open)> {
        let machine = &self.machines[self.established()?];
        Some((machine.open.as_deref()?, &machine.negotiated.as_deref()?.open))
    }

    /// How many messages have come, of all connections.
    pub(crate) const fn received_messages(&self) -> &MessageCounts {
        &self.received
    }

    /// ConnectRetryCounter of RFC 4271 §8.
    #[must_use]
    pub const fn connect_retry_counter(&self) -> u32 {
        self.retries
    }

    /// How often a connection went from one state to another.
    #[must_use]
    pub const fn transitions(&self, from: State, to: State) -> u64 {
        self.transitions[from as usize][to as usize]
    }

    /// Takes an input and adds what has to be done to `out`.
    pub fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Vec<Output>) {
        self.now = now;
        self.take(input);
        self.expire();
        out.append(&mut self.out);
    }

    /// When `handle` has to be called with [`Input::Tick`] at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.machines.iter().filter_map(|machine| machine.timers.next()).min()
    }

    fn take(&mut self, input: Input<'_>) {
        match input {
            Input::Start => self.event(PRIMARY, Event::ManualStart),
            Input::Stop { subcode, text } => {
                let told = Notification::cease_with_text(subcode, text);
                self.event(RIVAL, Event::ManualStop(told.clone()));
                self.event(PRIMARY, Event::ManualStop(told));
                // In Idle it may have been about to begin again.
                self.machines[PRIMARY].timers.stop_all();
                self.errors = 0;
            }
            Input::Reset(told) => {
                self.event(RIVAL, Event::AutomaticStop(told.clone()));
                self.event(PRIMARY, Event::AutomaticStop(told));
            }
            Input::Opened { attempt, connection } if self.attempt == Some(attempt) => {
                self.attempt = None;
                self.connected(connection, Opener::Us);
            }
            // It was given up in the meantime.
            Input::Opened { connection, .. } => self.out.push(Output::Close(connection)),
            Input::OpenFailed(attempt) if self.attempt == Some(attempt) => {
                self.attempt = None;
                if self.state() == State::Connect && self.machines[PRIMARY].link.is_none() {
                    self.event(PRIMARY, Event::ConnectionFails);
                }
            }
            Input::OpenFailed(_) | Input::Tick => {}
            Input::Accepted(connection) => self.connected(connection, Opener::Peer),
            Input::Lost(connection) => {
                if let Some(at) = self.machine_of(connection) {
                    self.event(at, Event::ConnectionFails);
                }
            }
            Input::Received { connection, bytes } => self.received(connection, bytes),
            Input::Sent(connection) => {
                let at = self.machine_of(connection);
                if let Some(at) = at.filter(|at| self.machines[*at].state == State::Established) {
                    self.restart_send_hold(at);
                }
            }
            Input::BadUpdate(told) => {
                if let Some(at) = self.established() {
                    self.event(at, Event::UpdateError(told));
                }
            }
        }
    }

    /// All timers that are due.
    fn expire(&mut self) {
        // An event can start a timer that is due at once, and swap the two.
        while let Some((at, timer)) = [PRIMARY, RIVAL]
            .into_iter()
            .find_map(|at| Some((at, self.machines[at].timers.expire(self.now)?)))
        {
            self.event(at, Event::of(timer));
        }
    }

    /// There is a connection.
    fn connected(&mut self, id: ConnectionId, opener: Opener) {
        let primary = &self.machines[PRIMARY];
        let is_restart = opener == Opener::Peer
            && primary.state == State::Established
            && primary.negotiated.as_ref().is_some_and(|n| n.graceful_restart.is_some());
        if is_restart {
            self.event(PRIMARY, Event::Replaced);
        }
        let at = match &self.machines {
            [primary, _] if primary.state == State::Idle => None,
            [primary, _] if primary.link.is_none() => Some(PRIMARY),
            [_, rival] if rival.link.is_none() => Some(RIVAL),
            _ => None,
        };
        let Some(at) = at else { return self.out.push(Output::Close(id)) };
        if at == RIVAL {
            self.event(RIVAL, Event::AutomaticStart);
        }
        self.machines[at].link = Some(Link::new(id, opener));
        self.event(
            at,
            match opener {
                Opener::Us => Event::ConnectAcked,
                Opener::Peer => Event::ConnectionConfirmed,
            },
        );
    }

    fn received(&mut self, connection: ConnectionId, bytes: &[u8]) {
        if let Some(link) =
            self.machine_of(connection).and_then(|at| self.machines[at].link.as_mut())
        {
            link.cutter.push(bytes);
        }
        // Each message can end the connection, or give it another place.
        while let Some(at) = self.machine_of(connection)
            && let Some(event) = self.next_message(at)
        {
            if let Event::Open(negotiated) | Event::OpenWithDelay(negotiated) = &event
                && !self.is_kept(at, &negotiated.open)
            {
                self.event(at, Event::CollisionDump);
                continue;
            }
            // The one that was not kept may have had the first place.
            let Some(at) = self.machine_of(connection) else { break };
            self.event(at, event);
        }
    }

    /// The next message that has come on a connection.
    fn next_message(&mut self, at: usize) -> Option<Event> {
        let machine = &mut self.machines[at];
        let has_delay = machine.timers.runs(super::Timer::DelayOpen);
        let is_enhanced = machine.negotiated.as_ref().is_some_and(|n| n.enhanced_refresh);
        let message = match machine.link.as_mut()?.cutter.take() {
            Ok(message) => message?,
            Err(error) => return Some(Event::HeaderError(error)),
        };
        self.received.add(message.kind);
        Some(match message.kind {
            MessageType::Open => match read_open(&self.settings, &message) {
                Ok(negotiated) if has_delay => Event::OpenWithDelay(negotiated),
                Ok(negotiated) => Event::Open(negotiated),
                Err(error) => Event::OpenError(error),
            },
            MessageType::Update => Event::Update(message.body().to_vec()),
            MessageType::Notification => {
                let received = Notification::parse(message.body());
                match (received.code, received.subcode) {
                    (error_code::OPEN, open_error::VERSION) => Event::NotificationVersion(received),
                    _ => Event::Notification(received),
                }
            }
            MessageType::Keepalive => Event::Keepalive,
            MessageType::RouteRefresh => match RouteRefresh::parse(message.body(), is_enhanced) {
                Ok(refresh) => Event::Refresh(refresh),
                Err(error) => Event::HeaderError(error),
            },
        })
    }

    /// Settles which of two connections is kept when `open` has come on one of them, and ends the other if it is
    /// this one.
    fn is_kept(&mut self, at: usize, open: &Open) -> bool {
        let other = 1 - at;
        let (Some(this), Some(that)) = (&self.machines[at].link, &self.machines[other].link) else {
            return true;
        };
        if self.machines[other].state == State::Established {
            return false;
        }
        let ours = (self.settings.identifier, self.settings.local_as);
        let theirs = (open.identifier, open.autonomous_system());
        let kept = if ours > theirs { Opener::Us } else { Opener::Peer };
        // The RFC has no answer if one side has opened both: it will have had a reason to open another one.
        let is_newer = at == RIVAL;
        let is_kept = if this.opener == that.opener { is_newer } else { this.opener == kept };
        if is_kept {
            self.event(other, Event::CollisionDump);
        }
        is_kept
    }

    /// The state machine of a connection.
    fn machine_of(&self, connection: ConnectionId) -> Option<usize> {
        [PRIMARY, RIVAL].into_iter().find(|at| self.connection_at(*at) == Some(connection))
    }

    fn established(&self) -> Option<usize> {
        [PRIMARY, RIVAL].into_iter().find(|at| self.machines[*at].state == State::Established)
    }

    /// Something happens to a connection: the table says what follows.
    pub(super) fn event(&mut self, at: usize, event: Event) {
        let name = event.name();
        let connection = self.connection_at(at);
        let was_up = self.machines[at].state == State::Established;
        let next = self.next_state(at, event);
        self.enter(at, next, name, connection);
        if next == State::Established && !was_up && self.machines[1 - at].link.is_some() {
            self.event(1 - at, Event::CollisionDump);
        }
        self.settle(name);
    }

    /// The one place where a state is assigned.
    fn enter(&mut self, at: usize, to: State, event: &'static str, before: Option<ConnectionId>) {
        let from = std::mem::replace(&mut self.machines[at].state, to);
        if from != to {
            self.transitions[from as usize][to as usize] += 1;
            let connection = self.connection_at(at).or(before);
            self.out.push(Output::Transition(Transition { connection, from, to, event }));
        }
    }

    /// Puts things in order after an event: with one connection that is the first, and Idle opens none.
    fn settle(&mut self, event: &'static str) {
        if self.machines[PRIMARY].link.is_none() && self.machines[RIVAL].link.is_some() {
            self.machines.swap(PRIMARY, RIVAL);
            self.machines[RIVAL].timers.stop_all();
            self.waits_for_peer = false;
            self.enter(RIVAL, State::Idle, event, None);
        }
        if self.state() == State::Idle {
            self.cancel_attempt();
        }
    }
}

/// What is agreed on with who has sent this OPEN.
fn read_open(settings: &Settings, message: &Message<'_>) -> Result<Box<Negotiated>, MessageError> {
    Ok(Box::new(negotiate(settings, Open::parse(message.body())?)?))
}
