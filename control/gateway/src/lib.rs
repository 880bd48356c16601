//! The gateway: lets operators on other machines call this node's components.
//!
//! Reference: Handley et al., "Designing Extensible IP Router Software" (XORP), §6.1 (XRLs can be sent to
//! other hosts) and §7 (a secret per process, and the set of calls that each caller may make). Beyond
//! the paper everything is encrypted and both sides prove their keys, which `weft_runtime` does: the
//! gateway sees who has which key, and messages.
//!
//! It holds no rights of its own: it says to the Finder for whom it speaks, and the Finder resolves for
//! that operator what the access list of its key allows. Frames pass through it as they are (`guests`);
//! targets check tickets, keys and ranges as for everybody else.
//!
//! The FEA opens its listening socket, since it has no right to; the manager tells it whose keys are
//! accepted, and its own key is part of its statement (`config`).

mod config;
mod guests;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use config::Config;
pub use config::{SCHEMA, STATEMENT};
use guests::Guests;
use weft_base::{CounterGroup, Counters, Instant, Token};
use weft_keys::KeyHash;
use weft_runtime::{Action, ChannelAddress, Component, Event, Keys, Level, Peer};
use weft_xrl::frame::Secret;
use weft_xrl::{
    Call, Called, Encoded, Input, Interface, Output, Reply, XrlError, configurable, fea, gateway,
};

/// What the listener is to the driver.
const LISTENER: Token = Token(1);
/// When the FEA is asked again for a socket that it could not open: perhaps its address is not there yet.
const AGAIN: Duration = Duration::from_secs(1);
/// The name of the one who may say whose keys are accepted.
const MANAGER: &str = "manager";
/// The FEA's class.
const FEA: &str = "fea";
/// How many who were turned away are written to the log until some time has passed.
const REPORTS: u32 = 10;
/// That time.
const REPORTS_PER: Duration = Duration::from_secs(60);

weft_base::reasons! {
    /// What the gateway counts.
    pub(crate) enum Activity {
        Guests = "guests", "connections with an accepted key";
        Rejected = "rejected", "connections without one";
        Nonsense = "nonsense", "connections that did not say in the right form where they lead";
        TooMany = "too-many", "connections beyond those that one key may have";
        Unreachable = "unreachable", "connections to components that are not there";
        Forward = "to-node", "messages passed on to the node";
        Backward = "from-node", "messages passed on to operators";
        Handles = "handles", "replies with descriptors, which no network carries";
    }
}

/// What the gateway is started with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The path of a component's socket is this with the name of its instance behind.
    pub sockets: PathBuf,
    /// What shows the Finder that it is the gateway.
    pub secret: Secret,
}

/// The interfaces of the gateway.
#[must_use]
pub fn interfaces() -> Vec<&'static Interface> {
    vec![&gateway::INTERFACE, &configurable::INTERFACE]
}

/// The gateway; see the crate's text.
pub struct Gateway {
    config: Option<Config>,
    accepted: BTreeSet<KeyHash>,
    listening: Listening,
    /// Grows with each configuration, so that an answer that comes too late is known as such.
    attempt: u64,
    guests: Guests,
    counters: Counters<Activity>,
    /// How many have been reported since then.
    reported: (u32, Instant),
}

/// How far it is with its socket.
#[derive(Debug)]
enum Listening {
    No,
    /// The FEA was asked.
    Asked,
    /// The FEA is to be asked again, and why.
    Again(Instant, String),
    At(String),
}

impl Gateway {
    /// A gateway without a configuration yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            config: None,
            accepted: BTreeSet::new(),
            listening: Listening::No,
            attempt: 0,
            guests: Guests::new(settings),
            counters: Counters::new(),
            reported: (0, Instant::ZERO),
        }
    }

    fn called(&mut self, mut called: Called, out: &mut Vec<Output>) {
        let result = match called.interface.name {
            "gateway" => called.read().and_then(|call| self.asked(&called, call, out)),
            _ => called.read().and_then(|call| self.manage(call, out)),
        };
        out.push(Output::Answer { id: called.id, result });
    }

    fn asked(
        &mut self,
        called: &Called,
        call: gateway::Call,
        out: &mut Vec<Output>,
    ) -> Result<Encoded, XrlError> {
        match call {
            gateway::Call::Accept(_) if &*called.caller != MANAGER => {
                Err(XrlError::failed("only the manager says whose keys are accepted"))
            }
            gateway::Call::Accept(gateway::Accept { keys }) => {
                let hash = |key: &String| {
                    key.parse().map_err(|error| XrlError::bad_args(format!("`{key}`: {error}")))
                };
                self.accepted = keys.iter().map(hash).collect::<Result<_, _>>()?;
                self.set_keys(out);
                Ok(Encoded::default())
            }
            gateway::Call::Status(_) => Ok(Encoded::new(gateway::StatusReply {
                key: self.own().map(|key| key.to_string()).unwrap_or_default(),
                listen: match &self.listening {
                    Listening::At(address) => address.clone(),
                    _ => String::new(),
                },
                guests: self.guests.all(),
            })),
        }
    }

    fn own(&self) -> Option<KeyHash> {
        self.config.as_ref().map(|config| config.key.public_key().hash())
    }

    fn manage(
        &mut self,
        call: configurable::Call,
        out: &mut Vec<Output>,
    ) -> Result<Encoded, XrlError> {
        match call {
            configurable::Call::Check(configurable::Check { source, text, .. }) => {
                config::read(&source, &text).map_err(XrlError::failed)?;
                Ok(Encoded::default())
            }
            configurable::Call::Configure(configurable::Configure { source, text, .. }) => {
                let config = config::read(&source, &text).map_err(XrlError::failed)?;
                self.configure(config, out);
                Ok(Encoded::default())
            }
            configurable::Call::Schema(_) => {
                Ok(Encoded::new(configurable::SchemaReply { text: SCHEMA.to_owned() }))
            }
            configurable::Call::Status(_) => {
                let ready = matches!(self.listening, Listening::At(_));
                let detail = match &self.listening {
                    Listening::No => "has no configuration yet".to_owned(),
                    Listening::Asked => "waits for the FEA to open its socket".to_owned(),
                    Listening::Again(_, why) => why.clone(),
                    Listening::At(address) => format!("listens at {address}"),
                };
                Ok(Encoded::new(configurable::StatusReply { ready, detail }))
            }
        }
    }

    fn configure(&mut self, config: Config, out: &mut Vec<Output>) {
        let old = self.config.replace(config);
        self.set_keys(out);
        let same = |old: &Config| self.config.as_ref().is_some_and(|new| new.listen == old.listen);
        if old.as_ref().is_some_and(same) {
            return;
        }
        if matches!(self.listening, Listening::At(_)) {
            out.push(Output::World(Action::CloseListener { token: LISTENER }));
        }
        self.open(out);
    }

    fn set_keys(&mut self, out: &mut Vec<Output>) {
        if let Some(config) = &self.config {
            let keys = Keys { own: config.key.clone(), peers: self.accepted.clone() };
            out.push(Output::World(Action::SetKeys { keys }));
        }
    }

    /// Asks the FEA for the socket.
    fn open(&mut self, out: &mut Vec<Output>) {
        let Some(config) = &self.config else { return };
        self.attempt += 1;
        self.listening = Listening::Asked;
        let address = config.listen.to_string();
        out.push(Call::new(self.attempt, FEA, fea::OpenListener { address }).into());
    }

    fn opened(
        &mut self,
        now: Instant,
        token: u64,
        result: Result<Reply, XrlError>,
        out: &mut Vec<Output>,
    ) {
        if token != self.attempt {
            return;
        }
        let opened = result.and_then(|reply| reply.read::<fea::OpenListener>()).and_then(
            |fea::OpenListenerReply { listener, local }| {
                let wrong = |_| XrlError::bad_args(format!("`{local}` is no address of TCP"));
                Ok((local.parse().map_err(wrong)?, listener))
            },
        );
        match opened {
            Ok((address, handle)) => {
                let address = ChannelAddress::Tls { address, peer: None };
                let token = LISTENER;
                out.push(Output::World(Action::AdoptListener { token, address, handle }));
            }
            Err(error) => self.failed(now, error.note, out),
        }
    }

    fn failed(&mut self, now: Instant, why: String, out: &mut Vec<Output>) {
        let known = matches!(&self.listening, Listening::Again(_, before) if *before == why);
        if !known {
            report(Level::Warning, format!("the gateway does not listen yet: {why}"), out);
        }
        self.listening = Listening::Again(now + AGAIN, why);
    }

    fn world(&mut self, now: Instant, event: Event, out: &mut Vec<Output>) {
        match event {
            Event::Listening { address: ChannelAddress::Tls { address, .. }, .. } => {
                let own = self.own().map(|key| key.to_string()).unwrap_or_default();
                report(Level::Info, format!("the gateway listens at {address}, key {own}"), out);
                self.listening = Listening::At(address.to_string());
            }
            Event::ChannelFailed { token: LISTENER, error } => self.failed(now, error, out),
            Event::ChannelFailed { token, error } => {
                self.guests.unreachable(token, &error, &mut self.counters, out);
            }
            Event::Accepted { channel, peer: Peer::Key { key, address }, .. } => {
                self.guests.accepted(channel, key, address, &mut self.counters, out);
            }
            Event::Rejected { error, .. } => self.rejected(now, error, out),
            Event::Connected { token, channel } => self.guests.connected(token, channel, out),
            Event::Messages { channel, messages } => {
                self.guests.messages(channel, messages, &mut self.counters, out);
            }
            Event::Closed { channel } => self.guests.closed(channel, out),
            Event::Tick => {
                if matches!(self.listening, Listening::Again(at, _) if at <= now) {
                    let before = std::mem::replace(&mut self.listening, Listening::No);
                    self.open(out);
                    // Why it failed stays known, so that the same is not reported again.
                    self.listening = match before {
                        Listening::Again(_, why) => Listening::Again(now + 60 * AGAIN, why),
                        other => other,
                    };
                }
            }
            Event::Stop => out.push(Output::World(Action::Exit { status: 0 })),
            _ => {}
        }
    }

    /// Counts who was turned away, and reports so many that a crowd does not fill the log.
    fn rejected(&mut self, now: Instant, error: String, out: &mut Vec<Output>) {
        self.counters.add(Activity::Rejected, 1);
        if now.since(self.reported.1) >= REPORTS_PER {
            self.reported = (0, now);
        }
        self.reported.0 = self.reported.0.saturating_add(1);
        match self.reported.0 {
            ..REPORTS => report(Level::Warning, error, out),
            REPORTS => {
                let more = "more were turned away, which are only counted for a minute";
                report(Level::Warning, format!("{error}; {more}"), out);
            }
            _ => {}
        }
    }
}

fn report(level: Level, line: String, out: &mut Vec<Output>) {
    out.push(Output::World(Action::Report { level, line }));
}

impl Component for Gateway {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Called(called) => self.called(called, out),
            Input::Replied { token, result } => self.opened(now, token, result, out),
            Input::World(event) => self.world(now, event, out),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match &self.listening {
            Listening::Again(at, _) => Some(*at),
            _ => None,
        }
    }

    fn counters(&self) -> Vec<CounterGroup> {
        vec![CounterGroup::new("gateway-activity", "what the gateway has done", &self.counters)]
    }
}
