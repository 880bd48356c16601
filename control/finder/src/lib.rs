//! The Finder: the broker between components.
//!
//! Reference: Handley et al., "Designing Extensible IP Router Software" (XORP), §6.2 (registration,
//! resolving, caches that the Finder keeps valid) and §7 (a random key in each resolved method, a secret
//! per process, and the set of calls that each process may make).
//!
//! The way of a resolution: a process asks for a method of a target → `tables` finds the instance, and
//! `access` the rule that lets this caller call it, with ranges for arguments → the target is told a
//! new key and a new ticket ([`finder_client`](weft_xrl::finder_client)) → when it has taken them, the
//! caller gets them. A call then never passes through the Finder.
//!
//! Who connects is who its secret says; without one, it is an operator if the kernel says that its user
//! is one. [`Finder`] is a process of its own: when it dies, everything that was resolved goes on, and
//! when it is back, everybody registers again.

mod calls;
mod clients;
mod hello;
mod monitor;
mod operators;
mod sessions;
mod tables;

use weft_base::{CounterGroup, Counters, Instant, Token};
use weft_runtime::{Action, ChannelAddress, Component, Event, Level};
use weft_xrl::frame::Secret;
use weft_xrl::{Log, Secrets, Signatures};

use clients::Clients;
use operators::Operators;
pub use operators::{Nobody, Users};
use tables::Tables;

const LISTENER: Token = Token(1);

/// What the Finder is started with.
pub struct Settings {
    /// Where processes connect.
    pub listen: ChannelAddress,
    /// The secret of its owner, the manager, who alone says which processes there are.
    pub owner: Secret,
    /// The user that runs the node; it and root may call everything.
    pub operator: u32,
    /// Who is who on this machine.
    pub users: Box<dyn Users>,
    /// Random bytes from the kernel, from which keys are made.
    pub seed: [u8; 32],
}

weft_base::reasons! {
    /// What the Finder counts.
    pub(crate) enum Activity {
        Calls = "calls", "calls that processes have made to the Finder";
        Failures = "failures", "calls that failed at once";
        Registrations = "registrations", "components that were registered";
        Resolutions = "resolutions", "methods that somebody wanted to call";
        Refused = "refused-connections", "connections of processes that are not of this node, or say nonsense";
    }
}

/// The Finder's process; see the crate's text.
pub struct Finder {
    settings: Settings,
    clients: Clients,
    tables: Tables,
    /// When the connections of processes end that are no more.
    goodbye: Option<Instant>,
    operators: Operators,
    keys: Secrets,
    signatures: Signatures,
    counters: Counters<Activity>,
    log: Log<calls::Call>,
}

impl Finder {
    /// A Finder that knows nobody yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let keys = Secrets::new(settings.seed);
        Self {
            settings,
            clients: Clients::default(),
            tables: Tables::default(),
            goodbye: None,
            operators: Operators::default(),
            keys,
            signatures: Signatures::default(),
            counters: Counters::new(),
            log: Log::new(Level::Info),
        }
    }
}

impl Finder {
    /// The Finder, whose log is of what is as serious as `level`.
    #[must_use]
    pub fn with_log(mut self, level: Level) -> Self {
        self.log = Log::new(level);
        self
    }

    fn event(&mut self, now: Instant, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Start => {
                let address = self.settings.listen.clone();
                out.push(Action::Listen { token: LISTENER, address });
            }
            Event::Stop => out.push(Action::Exit { status: 0 }),
            Event::Tick => {
                self.expire(now, out);
                self.end_goodbyes(now, out);
            }
            Event::Accepted { channel, peer, .. } => self.clients.accepted(channel, peer),
            Event::Messages { channel, messages } => {
                for message in messages {
                    self.message(now, channel, message, out);
                }
            }
            Event::Congested { channel } => self.clients.congestion(now, channel, true, out),
            Event::Drained { channel } => self.clients.congestion(now, channel, false, out),
            Event::Closed { channel } => self.gone(now, channel, out),
            Event::ChannelFailed { error, .. } => {
                let line = format!("the Finder cannot take connections: {error}");
                out.push(Action::Report { level: Level::Error, line });
                out.push(Action::Exit { status: 1 });
            }
            _ => {}
        }
    }
}

impl Component for Finder {
    type Input = Event;
    type Output = Action;

    fn handle(&mut self, now: Instant, event: Event, out: &mut Vec<Action>) {
        let before = out.len();
        self.event(now, event, out);
        if self.log.take(now, &out[before..]) {
            let answers = self.log.answers();
            self.answer_log(answers, out);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.clients.deadline().into_iter().chain(self.goodbye).min()
    }

    fn counters(&self) -> Vec<CounterGroup> {
        vec![CounterGroup::new("finder-activity", "what the Finder has done", &self.counters)]
    }
}
