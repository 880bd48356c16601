//! Which system may announce which prefix: the router's side of the RPKI.
//!
//! Reference: RFC 6811 (origin validation, what payloads are), RFC 8210 and RFC 6810 (how routers are told).
//!
//! Holders of addresses sign which system may announce them. Caches, which are programs such as Routinator or rpki-client, gather and
//! check that, and tell routers. This process has sessions with caches ([`rtr`]), keeps what they say together
//! (`payloads`), and tells whoever asks by `rpki/1.0`: BGP does, whose policies have the variable `origin-validation`.
//! That what comes from caches is read here means that whatever they send does not disturb BGP.
//!
//! Of several caches those with the least preference count among those that have told everything: of all of them, what any one
//! says. What a cache has told counts on while the connection is down, until it is too old.

#![forbid(unsafe_code)]

mod cache;
mod config;
mod payload;
mod payloads;
pub mod rtr;
mod show;
#[cfg(test)]
mod tests;
mod waiting;

use std::collections::BTreeMap;

use weft_base::{Buffer, ChannelId, CounterGroup, Counters, Instant, Message, Token};
use weft_config::Errors;
use weft_protocol::{Manage, serve};
use weft_runtime::{Action, Component, Event, Level, StreamEvent, StreamRequest};
use weft_xrl::{Called, Input, Interface, Output, configurable};

use cache::Cache;
use config::Config;
pub use config::{SCHEMA, STATEMENT};
pub use payload::{NoPayload, Payload, PayloadError};
use payloads::{CacheId, MOST_CACHES, Payloads};
use rtr::session::{Held, Outcome};
use waiting::Waiting;

#[allow(missing_docs, unreachable_pub, dead_code, reason = "made from the interface file")]
pub mod interface {
    //! Its interface.
    include!(concat!(env!("OUT_DIR"), "/rpki.rs"));
}

weft_base::reasons! {
    /// What is counted.
    pub(crate) enum Activity {
        Everything = "everything", "times that a cache has told everything";
        Changes = "changes", "times that a cache has told what has changed";
        Failures = "failures", "sessions that have ended, and attempts that have failed";
        Expired = "expired", "times that what a cache had told was too old to count";
    }
}

/// The interfaces of the component.
#[must_use]
pub fn interfaces() -> Vec<&'static Interface> {
    vec![&interface::INTERFACE, &weft_protocol::interface::INTERFACE, &configurable::INTERFACE]
}

/// The router's side of the RPKI; see the crate's text.
#[derive(Debug, Default)]
pub struct Rpki {
    is_configured: bool,
    /// A cache has told everything, though that may be too old by now.
    has_known: bool,
    /// By their names.
    caches: BTreeMap<String, Cache>,
    payloads: Payloads,
    waiting: Waiting,
    last_token: u32,
    counters: Counters<Activity>,
}

impl Rpki {
    /// One without a configuration.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn name(&self, id: CacheId) -> Option<&str> {
        let mut all = self.caches.iter();
        all.find(|(_, cache)| cache.id == id).map(|(name, _)| name.as_str())
    }

    /// The least preference of caches that have told everything.
    fn preference(&self) -> Option<u8> {
        let all = self.caches.values().filter(|cache| cache.has_told);
        all.map(|cache| cache.config.preference).min()
    }

    /// Whether what a cache says counts.
    fn counts(&self, cache: &Cache) -> bool {
        cache.has_told && self.preference() == Some(cache.config.preference)
    }

    /// Whether it is known what the RPKI says: nothing, if all that was told is too old.
    fn is_ready(&self) -> bool {
        self.is_configured && (self.caches.is_empty() || self.has_known)
    }

    /// There is no such cache any more.
    fn remove(&mut self, name: &str, out: &mut Vec<Output>) {
        let Some(cache) = self.caches.remove(name) else { return };
        if let Some(token) = cache.attempt {
            out.push(Output::World(Action::Stream { token, request: StreamRequest::Cancel }));
        }
        if let Some(channel) = cache.channel {
            out.push(Output::World(Action::Close { channel }));
        }
        self.forget(cache.id);
    }

    /// What a cache has told counts no more, and is forgotten. Others count in its place first, so that what they say, too, does not
    /// go and come.
    fn forget(&mut self, cache: CacheId) {
        self.count();
        self.payloads.replace(cache, &[]);
    }

    /// Those caches count that do.
    fn count(&mut self) {
        let counting = self.caches.values().filter(|cache| self.counts(cache));
        let counting: Vec<_> = counting.map(|cache| cache.id).collect();
        self.payloads.count(counting);
    }

    /// Does something with the session of a cache, and what follows from it.
    fn act(
        &mut self,
        name: &str,
        act: impl FnOnce(&mut Cache, &Payloads, &mut Vec<Outcome>),
        out: &mut Vec<Output>,
    ) {
        let Some(cache) = self.caches.get_mut(name) else { return };
        let (id, mut has_expired) = (cache.id, false);
        let mut outcomes = Vec::new();
        act(cache, &self.payloads, &mut outcomes);
        for outcome in outcomes {
            match outcome {
                Outcome::Connect => {
                    self.last_token = self.last_token.wrapping_add(1);
                    let token = Token(self.last_token);
                    cache.attempt = Some(token);
                    let request = StreamRequest::Open(cache.stream());
                    out.push(Output::World(Action::Stream { token, request }));
                }
                Outcome::Send(bytes) => {
                    if let Some(channel) = cache.channel {
                        let message = Message::from(Buffer::from_slice(&bytes));
                        out.push(Output::World(Action::Send { channel, message }));
                    }
                }
                Outcome::Close => {
                    if let Some(channel) = cache.channel.take() {
                        out.push(Output::World(Action::Close { channel }));
                    }
                }
                Outcome::Everything(all) => {
                    self.counters.add(Activity::Everything, 1);
                    self.payloads.replace(cache.id, &all);
                    (cache.has_told, cache.failure, self.has_known) = (true, None, true);
                    report(Level::Info, name, &format!("it has told {} payloads", all.len()), out);
                }
                Outcome::Changes(changes) => {
                    self.counters.add(Activity::Changes, 1);
                    for (payload, announced) in changes {
                        self.payloads.set(cache.id, payload, announced);
                    }
                    cache.failure = None;
                }
                Outcome::Expired => {
                    self.counters.add(Activity::Expired, 1);
                    (cache.has_told, has_expired) = (false, true);
                    report(Level::Warning, name, "what it has told is too old to count", out);
                }
                Outcome::Failed(why) => {
                    self.counters.add(Activity::Failures, 1);
                    if cache.failure.as_ref() != Some(&why) {
                        report(Level::Warning, name, &why, out);
                    }
                    cache.failure = Some(why);
                }
            }
        }
        if has_expired {
            self.forget(id);
        }
    }

    /// The cache of which this is true.
    fn find(&self, is_it: impl Fn(&Cache) -> bool) -> Option<String> {
        self.caches.iter().find(|(_, cache)| is_it(cache)).map(|(name, _)| name.clone())
    }

    fn stream(&mut self, now: Instant, token: Token, event: StreamEvent, out: &mut Vec<Output>) {
        let name = self.find(|cache| cache.attempt == Some(token));
        match (event, name) {
            (StreamEvent::Opened { channel, .. }, Some(name)) => {
                let opened = |cache: &mut Cache, _: &Payloads, outcomes: &mut Vec<Outcome>| {
                    (cache.attempt, cache.channel) = (None, Some(channel));
                    cache.session.opened(now, outcomes);
                };
                self.act(&name, opened, out);
            }
            // Of a cache that is not there any more.
            (StreamEvent::Opened { channel, .. }, None) => {
                out.push(Output::World(Action::Close { channel }));
            }
            (StreamEvent::Failed { error }, Some(name)) => {
                let failed = |cache: &mut Cache, _: &Payloads, outcomes: &mut Vec<Outcome>| {
                    cache.attempt = None;
                    cache.session.lost(
                        now,
                        &format!("it cannot be connected to: {error}"),
                        outcomes,
                    );
                };
                self.act(&name, failed, out);
            }
            _ => {}
        }
    }

    fn received(
        &mut self,
        now: Instant,
        channel: ChannelId,
        messages: &[Message],
        out: &mut Vec<Output>,
    ) {
        let Some(name) = self.find(|cache| cache.channel == Some(channel)) else { return };
        let receive = |cache: &mut Cache, payloads: &Payloads, outcomes: &mut Vec<Outcome>| {
            for message in messages {
                // Its sender is not listened to any more.
                if outcomes.contains(&Outcome::Close) {
                    return;
                }
                let (id, count) = (cache.id, payloads.count_of(cache.id));
                let held = Held { count, holds: |payload: &Payload| payloads.holds(id, payload) };
                cache.session.received(now, message.bytes(), &held, outcomes);
            }
        };
        self.act(&name, receive, out);
    }

    fn called(&mut self, now: Instant, mut called: Called, out: &mut Vec<Output>) {
        match called.read() {
            Ok(interface::Call::List(list)) => self.waiting.list(now, called, list),
            Ok(interface::Call::Changes(changes)) => self.waiting.changes(now, called, changes),
            Err(error) => out.push(called.fail(error)),
        }
    }

    fn world_event(&mut self, now: Instant, event: Event, out: &mut Vec<Output>) {
        match event {
            Event::Stream { token, event } => self.stream(now, token, event, out),
            Event::Messages { channel, messages } => self.received(now, channel, &messages, out),
            Event::Closed { channel } => {
                let Some(name) = self.find(|cache| cache.channel == Some(channel)) else { return };
                let lost = |cache: &mut Cache, _: &Payloads, outcomes: &mut Vec<Outcome>| {
                    cache.channel = None;
                    cache.session.lost(now, "it has closed the connection", outcomes);
                };
                self.act(&name, lost, out);
            }
            Event::Tick => {
                let is_due =
                    |cache: &&Cache| cache.session.deadline().is_some_and(|due| due <= now);
                let due: Vec<_> = self
                    .caches
                    .iter()
                    .filter(|(_, one)| is_due(one))
                    .map(|(name, _)| name.clone())
                    .collect();
                for name in due {
                    self.act(&name, |cache, _, outcomes| cache.session.tick(now, outcomes), out);
                }
            }
            Event::Stop => out.push(Output::World(Action::Exit { status: 0 })),
            _ => {}
        }
    }
}

fn report(level: Level, name: &str, line: &str, out: &mut Vec<Output>) {
    let line = format!("cache {name}: {line}");
    out.push(Output::World(Action::Report { level, line }));
}

impl Manage for Rpki {
    type Config = Config;

    fn schema(&self) -> &'static str {
        SCHEMA
    }

    fn read(&self, source: &str, text: &str) -> Result<Config, Errors> {
        config::read(source, text)
    }

    fn configure(&mut self, now: Instant, config: Config, out: &mut Vec<Output>) {
        // Another address or key makes another session; what counts for how much, and how often it is asked, does not.
        let stays = |name: &String, cache: &Cache| {
            let wanted = config.get(name).cloned();
            let config::CacheConfig { preference, refresh, .. } = cache.config;
            wanted.map(|wanted| config::CacheConfig { preference, refresh, ..wanted })
                == Some(cache.config.clone())
        };
        let gone = self.caches.iter().filter(|(name, cache)| !stays(name, cache));
        let gone: Vec<_> = gone.map(|(name, _)| name.clone()).collect();
        gone.iter().for_each(|name| self.remove(name, out));
        for (name, wanted) in config {
            if let Some(cache) = self.caches.get_mut(&name) {
                cache.session.refresh_within(now, wanted.refresh);
                cache.config = wanted;
                continue;
            }
            let mut ids = (0..MOST_CACHES as u8).map(CacheId);
            let is_free = |id: &CacheId| self.caches.values().all(|cache| cache.id != *id);
            // There are no more caches than numbers.
            let Some(id) = ids.find(is_free) else { continue };
            self.caches.insert(name.clone(), Cache::new(now, id, wanted));
            self.act(&name, |cache, _, outcomes| cache.session.tick(now, outcomes), out);
        }
        self.is_configured = true;
    }

    fn status(&self) -> (bool, String) {
        let told = self.caches.values().filter(|cache| cache.has_told).count();
        let (all, payloads) = (self.caches.len(), self.payloads.len());
        (self.is_configured, format!("{payloads} payloads; {told} of {all} caches have told them"))
    }
}

impl Component for Rpki {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Called(called) if called.interface.name == interface::INTERFACE.name => {
                self.called(now, called, out);
            }
            input => match serve(self, now, input, out) {
                Some(Input::World(event)) => self.world_event(now, event, out),
                Some(Input::Left { session, .. }) => self.waiting.forget(session),
                _ => {}
            },
        }
        self.count();
        self.waiting.answer(now, self.is_ready(), &self.payloads, out);
    }

    fn deadline(&self) -> Option<Instant> {
        let sessions = self.caches.values().filter_map(|cache| cache.session.deadline());
        sessions.chain(self.waiting.deadline()).min()
    }

    fn counters(&self) -> Vec<CounterGroup> {
        vec![CounterGroup::new("rpki-activity", "what caches have told", &self.counters)]
    }
}
