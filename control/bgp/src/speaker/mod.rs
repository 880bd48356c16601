//! The process: connections, peers, the RIB and operators, and what passes between them.
//!
//! Reference: Handley et al. (XORP), §5.1 (the pipeline), §7 (all network access by the FEA); RFC 4271 §8.2.1 (accepting
//! connections).

mod attributes;
mod capabilities;
mod context;
mod damped;
mod detail;
mod dump;
mod explain;
mod faults;
mod history;
mod limit;
mod links;
mod listeners;
mod monitored;
mod monitors;
mod operate;
mod peer;
mod refresh;
mod restart;
mod show;
mod stale;
mod strangers;
mod telling;
#[cfg(test)]
mod tests;
mod unused;
mod up;
mod validation;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use weft_base::{ChannelId, CounterGroup, Counters, Instant, KeyedHash, Random, Token};
use weft_config::Errors;
use weft_protocol::{Manage, manage};
use weft_routing::OriginId;
use weft_runtime::{Action, Component, Event, StreamEvent};
use weft_xrl::profile::{self, Clock, Profile};
use weft_xrl::{Called, Encoded, Input, Interface, Output, configurable};

use crate::config::{self, Config};
use crate::fanout::Fanout;
use crate::fsm;
use crate::interface;
use crate::numbers::cease;
use crate::own::OwnNetworks;
use crate::routes::Routes;
use crate::to_rib::ToRib;
use crate::validation::FromRpki;
use context::World;
use links::Links;
use listeners::{LISTENERS, Listeners};
use monitored::Sessions;
use monitors::Monitors;
use peer::Peer;
use restart::Restart;
use telling::Ahead;

weft_base::reasons! {
    /// What BGP counts.
    pub(crate) enum Activity {
        Accepted = "accepted", "connections that peers have opened";
        Strangers = "strangers", "connections of who is no peer, which were closed";
        Unchecked = "unchecked", "connections that were closed because it could not be checked from how far they come (ttl-security), or by which of two keys (md5-key)";
        Faults = "faults", "faults in attributes";
        Told = "told", "messages with routes that were made for peers";
    }
}

/// The first token of attempts to connect.
const FIRST_TOKEN: u32 = 16;

/// The interfaces of BGP.
#[must_use]
pub fn interfaces() -> Vec<&'static Interface> {
    vec![&interface::INTERFACE, &configurable::INTERFACE, &profile::INTERFACE]
}

/// The Border Gateway Protocol; see the crate's text.
pub struct Bgp {
    random: Random,
    config: Option<Config>,
    routes: Routes,
    fanout: Fanout,
    ahead: Ahead,
    to_rib: ToRib,
    from_rpki: FromRpki,
    own: OwnNetworks,
    peers: BTreeMap<IpAddr, Peer>,
    /// Origins of peers that there are and were, so that both tables number them alike.
    origins: BTreeMap<IpAddr, OriginId>,
    by_origin: BTreeMap<OriginId, IpAddr>,
    /// Origins of peers that nobody has named and that are gone.
    free_origins: Vec<OriginId>,
    channels: BTreeMap<ChannelId, IpAddr>,
    attempts: BTreeMap<Token, IpAddr>,
    last_token: u32,
    listeners: Listeners,
    links: Links,
    monitors: Monitors,
    restart: Restart,
    /// When peers may count as having announced what they have.
    patience: Option<Instant>,
    counters: Counters<Activity>,
}

impl Bgp {
    /// One without a configuration; what is random follows from `random`.
    #[must_use]
    pub fn new(mut random: Random) -> Self {
        Self {
            routes: Routes::new(KeyedHash::new(&mut random)),
            config: None,
            fanout: Fanout::new(random.fork("fanout")),
            ahead: Ahead::default(),
            random,
            to_rib: ToRib::new(),
            from_rpki: FromRpki::new(),
            own: OwnNetworks::new(),
            peers: BTreeMap::new(),
            origins: BTreeMap::new(),
            by_origin: BTreeMap::new(),
            free_origins: Vec::new(),
            channels: BTreeMap::new(),
            attempts: BTreeMap::new(),
            last_token: FIRST_TOKEN,
            listeners: Listeners::default(),
            links: Links::default(),
            monitors: Monitors::default(),
            restart: Restart::new(Instant::ZERO),
            patience: None,
            counters: Counters::new(),
        }
    }

    /// The same with a clock for its profile points, if there is one.
    #[must_use]
    pub fn with_clock(mut self, clock: Option<Clock>) -> Self {
        self.routes.profile = Profile::new(clock);
        self
    }

    /// Does something with a peer and everything else.
    fn with_peer(
        &mut self,
        now: Instant,
        address: IpAddr,
        out: &mut Vec<Output>,
        act: impl FnOnce(&mut Peer, &mut World<'_>),
    ) {
        let (Some(config), Some(peer)) = (&self.config, self.peers.get_mut(&address)) else {
            return;
        };
        let mut world = World {
            now,
            config,
            routes: &mut self.routes,
            fanout: &mut self.fanout,
            links: &self.links,
            monitors: &mut self.monitors,
            channels: &mut self.channels,
            attempts: &mut self.attempts,
            last_token: &mut self.last_token,
            counters: &mut self.counters,
            out,
        };
        act(peer, &mut world);
        if peer.range.is_some() {
            self.forget_gone(address);
        }
    }

    fn stream(&mut self, now: Instant, token: Token, event: StreamEvent, out: &mut Vec<Output>) {
        if let Some(place) = LISTENERS.iter().position(|one| *one == token) {
            if let StreamEvent::Accepted { channel, local, peer } = event {
                return self.accepted(now, channel, [local, peer], out);
            }
            return self.listeners.event(now, place, &event, out);
        }
        let Some(address) = self.attempts.remove(&token) else {
            if let StreamEvent::Opened { channel, .. } = event {
                out.push(Output::World(Action::Close { channel }));
            }
            return;
        };
        match event {
            StreamEvent::Opened { channel, local, .. } => {
                if !self.peers.contains_key(&address) {
                    return out.push(Output::World(Action::Close { channel }));
                }
                self.with_peer(now, address, out, |peer, world| {
                    peer.opened(token, channel, local, world);
                });
            }
            StreamEvent::Failed { error } => {
                self.with_peer(now, address, out, |peer, world| {
                    peer.failed(token, &error, world);
                });
            }
            _ => {}
        }
    }

    /// A peer has connected, or somebody else.
    fn accepted(
        &mut self,
        now: Instant,
        channel: ChannelId,
        [local, peer_end]: [SocketAddr; 2],
        out: &mut Vec<Output>,
    ) {
        let address = peer_end.ip().to_canonical();
        if !self.peers.contains_key(&address) {
            self.welcome(now, address, out);
        }
        let Some(known) = self.peers.get(&address) else {
            self.counters.add(Activity::Strangers, 1);
            return out.push(Output::World(Action::Close { channel }));
        };
        let hops = known.config.session.ttl_security;
        let is_unchecked = hops.is_some_and(|hops| !self.listeners.checks_hops(address, hops));
        if is_unchecked || self.listeners.may_have_old_key(now, address) {
            // Who can say from how far it comes, or by which key?
            self.counters.add(Activity::Unchecked, 1);
            return out.push(Output::World(Action::Close { channel }));
        }
        self.counters.add(Activity::Accepted, 1);
        self.with_peer(now, address, out, |peer, world| {
            peer.accepted(channel, [local, peer_end], world)
        });
    }

    /// Opens and closes the sockets that listen, as the configuration wants it.
    fn listen(&mut self, out: &mut Vec<Output>) {
        let config = self.config.as_ref().filter(|_| self.restart.may_begin());
        self.listeners.configure(config, out);
    }

    /// Takes another configuration.
    fn reconfigure(&mut self, now: Instant, config: Option<Config>, out: &mut Vec<Output>) {
        let mut config = config;
        if let (Some(new), Some(old)) = (&mut config, &self.config) {
            new.share(old);
        }
        let old = std::mem::replace(&mut self.config, config.clone());
        // Sockets have the new keys before anybody is given a reason to connect.
        self.listen(out);
        let wanted = self.wanted(config.as_ref());
        let is_other_router = match (&old, &config) {
            (Some(old), Some(new)) => {
                let say = |one: &Config| (one.home, one.router_id, one.cluster_id);
                say(old) != say(new)
            }
            _ => true,
        };
        let gone: Vec<_> =
            self.peers.keys().filter(|address| !wanted.contains_key(address)).copied().collect();
        // Whoever goes is told so with the old configuration.
        let new = std::mem::replace(&mut self.config, old);
        for address in gone {
            self.stop(now, address, (cease::PEER_DECONFIGURED, ""), out);
            self.peers.remove(&address);
            if let Some(origin) = self.origins.get(&address) {
                self.routes.set_damping(*origin, None);
            }
        }
        self.config = new;
        let has_rpki = config.as_ref().is_some_and(|config| config.has_rpki);
        self.from_rpki.want(has_rpki, &mut self.routes.validation);
        let multipath = config.as_ref().map_or(1, |config| config.multipath);
        self.to_rib.set_multipath(multipath, &mut self.routes);
        let named = |address: &IpAddr| {
            config.as_ref().is_some_and(|config| config.peers.contains_key(address))
        };
        for (address, wanted) in &wanted {
            if let Some(peer) = self.peers.get_mut(address).filter(|_| named(address)) {
                peer.range = None;
            }
            self.configure_peer(now, *address, wanted, is_other_router, out);
        }
        // What is said of graceful restart is said of all peers.
        self.stand();
        self.own.configure(config.as_ref(), out);
    }

    fn configure_peer(
        &mut self,
        now: Instant,
        address: IpAddr,
        wanted: &config::PeerConfig,
        is_other_router: bool,
        out: &mut Vec<Output>,
    ) {
        let Some(own) = self.config.clone() else { return };
        let standing = self.restart.standing();
        match self.peers.get(&address).map(|peer| peer.config.clone()) {
            Some(had) if had == *wanted && !is_other_router => return,
            Some(had) => {
                let reason = match &wanted.session.shutdown {
                    Some(text) => (had.session.shutdown != Some(text.clone()))
                        .then_some((cease::ADMIN_SHUTDOWN, text.as_str())),
                    None => (is_other_router || had.needs_reset(wanted))
                        .then_some((cease::CONFIGURATION_CHANGE, "")),
                };
                reason.into_iter().for_each(|reason| self.stop(now, address, reason, out));
                self.with_peer(now, address, out, |peer, world| {
                    peer.configure(wanted.clone(), &own, standing, world);
                });
            }
            None => {
                let random = self.random.fork(&address.to_string());
                let known = self.origins.get(&address).copied();
                let source = wanted.source(address, &own);
                let origin = known.unwrap_or_else(|| self.origin(source.clone()));
                let peer = Peer::new(now, address, wanted.clone(), &own, standing, origin, random);
                self.routes.set_source(peer.origin, source);
                self.origins.insert(address, peer.origin);
                self.by_origin.insert(peer.origin, address);
                self.peers.insert(address, peer);
            }
        }
        if self.restart.may_begin() {
            self.with_peer(now, address, out, |peer, world| peer.start(world));
        }
    }

    /// Sessions may begin.
    fn begin(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.stand();
        self.listen(out);
        for address in self.peers.keys().copied().collect::<Vec<_>>() {
            self.with_peer(now, address, out, |peer, world| peer.start(world));
        }
    }

    /// Has sessions say in their next OPENs how far this process has come.
    fn stand(&mut self) {
        let Some(own) = &self.config else { return };
        let standing = self.restart.standing();
        self.peers.values_mut().for_each(|peer| peer.stand(own, standing));
    }

    fn stop(
        &mut self,
        now: Instant,
        address: IpAddr,
        (subcode, text): (u8, &str),
        out: &mut Vec<Output>,
    ) {
        let stop = fsm::Input::Stop { subcode, text };
        self.with_peer(now, address, out, |peer, world| {
            peer.handle(stop, world);
            peer.stale.end_all(world.routes);
        });
    }

    /// Tells the RIB and peers what they have not heard.
    fn tell(&mut self, now: Instant, out: &mut Vec<Output>) {
        let has_asked = self.to_rib.ask(&mut self.routes, out);
        let Some(graceful) = self.config.as_ref().map(|config| config.graceful) else { return };
        if self.restart.asked(now, self.to_rib.has_kept(), &graceful) {
            self.begin(now, out);
        }
        let has_ended = self.to_rib.has_ended();
        let has_announced =
            has_ended || self.restart.have_announced(now, &graceful, self.peers.values());
        self.patience = (!has_ended || self.restart.defers())
            .then(|| self.restart.deadline(now, &graceful, self.peers.values()))
            .flatten();
        // What is best is known when it is known how next hops are reached, and all is decided.
        let may_end = has_announced && has_asked && !self.routes.has_work();
        if self.restart.defers() {
            // RFC 4724 §4.1: however much is left to do, the time ends.
            let is_over = self.restart.is_late(now, &graceful);
            if !(is_over || may_end && self.own.is_complete()) {
                return;
            }
            self.restart.finish();
            self.stand();
        }
        self.to_rib.tell(may_end, &mut self.routes, out);
        if !has_ended && self.to_rib.has_ended() {
            self.restart.has_told();
            self.stand();
        }
        self.tell_peers(now, out);
    }

    /// The peers with which there are sessions, for those who monitor them.
    fn sessions(&self) -> Sessions {
        let session = |peer: &Peer| Some((peer.origin, peer.monitored(&self.routes)?));
        self.peers.values().filter_map(session).collect()
    }

    /// Tells those who monitor peers what they have not heard.
    fn tell_monitors(&mut self, now: Instant, out: &mut Vec<Output>) {
        let swept = self.routes.take_swept(self.monitors.is_on());
        if !self.monitors.is_on() {
            return;
        }
        let is_needed = !swept.is_empty() || self.monitors.has_work();
        let sessions = if is_needed { self.sessions() } else { Sessions::new() };
        self.monitors.swept(&swept, &sessions, &self.routes);
        self.monitors.tell(now, &sessions, &self.routes, out);
    }

    fn called(&mut self, now: Instant, mut called: Called, out: &mut Vec<Output>) {
        if called.interface.name == profile::INTERFACE.name {
            return out.push(self.routes.profile.answer(called));
        }
        if called.interface.name != interface::INTERFACE.name {
            return manage(self, now, called, out);
        }
        use interface::Call;
        let result = match called.read() {
            // It is answered when there is something to say.
            Ok(Call::Monitor(request)) => return self.monitors.ask(now, called, &request, out),
            Ok(Call::Clear(request)) => self.clear(now, &request, out),
            Ok(Call::Explain(request)) => self
                .explain(&request)
                .map(|shown| Encoded::new(interface::ExplainReply { json: shown.to_string() })),
            Ok(Call::Show(request)) => self
                .show(now, &request)
                .map(|shown| Encoded::new(interface::ShowReply { json: shown.to_string() })),
            Ok(Call::Dump(request)) => self.dump(&request).map(Encoded::new),
            Err(error) => Err(error),
        };
        out.push(Output::Answer { id: called.id, result });
    }

    fn world_event(&mut self, now: Instant, event: Event, out: &mut Vec<Output>) {
        let of = |channel: &ChannelId| self.channels.get(channel).copied();
        match event {
            Event::Start => {
                self.restart = Restart::new(now);
                out.push(Output::World(Action::WatchInterfaces));
            }
            Event::Interface { change } => self.interface(now, change, out),
            Event::Stream { token, event } => self.stream(now, token, event, out),
            Event::Messages { channel, messages } => {
                let Some(address) = of(&channel) else { return };
                self.with_peer(now, address, out, |peer, world| {
                    for message in messages {
                        peer.received(channel, message.bytes(), world);
                    }
                });
            }
            Event::Closed { channel } => {
                let Some(address) = of(&channel) else { return };
                self.with_peer(now, address, out, |peer, world| peer.lost(channel, world));
            }
            Event::Congested { channel } | Event::Drained { channel } => {
                let is_congested = matches!(event, Event::Congested { .. });
                let Some(address) = of(&channel) else { return };
                self.with_peer(now, address, out, |peer, world| {
                    peer.congested(channel, is_congested, world);
                });
            }
            Event::Slice => {
                self.ahead.begin();
                self.go_on_revalidating();
                self.routes.work();
            }
            Event::Tick => self.tick(now, out),
            Event::Stop => {
                for address in self.peers.keys().copied().collect::<Vec<_>>() {
                    self.stop(now, address, (cease::ADMIN_SHUTDOWN, ""), out);
                }
                out.push(Output::World(Action::Exit { status: 0 }));
            }
            _ => {}
        }
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.listeners.tick(now, out);
        let is_due = |peer: &&Peer| peer.deadline().is_some_and(|deadline| deadline <= now);
        let due: Vec<_> = self.peers.values().filter(is_due).map(|peer| peer.address).collect();
        for address in due {
            self.with_peer(now, address, out, |peer, world| peer.tick(world));
        }
        self.use_again(now, out);
    }

    /// What is not for the dialogues with the RIB alone.
    fn hear(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::World(event) => self.world_event(now, event, out),
            Input::Called(called) => self.called(now, called, out),
            Input::Left { session, .. } => self.monitors.left(session),
            _ => {}
        }
    }
}

impl Manage for Bgp {
    type Config = Option<Config>;

    fn schema(&self) -> &'static str {
        config::SCHEMA
    }

    fn read(&self, source: &str, text: &str) -> Result<Self::Config, Errors> {
        config::read(source, text)
    }

    fn configure(&mut self, now: Instant, config: Self::Config, out: &mut Vec<Output>) {
        self.reconfigure(now, config, out);
    }

    fn status(&self) -> (bool, String) {
        let up = self.peers.values().filter(|peer| peer.up.is_some()).count();
        let rib = if self.to_rib.is_there() { "" } else { "; waits for the RIB" };
        let detail = format!("{up} of {} peers exchange routes{rib}", self.peers.len());
        (self.config.is_some(), detail)
    }
}

impl Component for Bgp {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        self.routes.begin(now);
        let input = self.own.hear(now, input, out);
        let input = input.and_then(|input| self.to_rib.hear(now, input, &mut self.routes, out));
        let validation = &mut self.routes.validation;
        let input = input.and_then(|input| self.from_rpki.hear(now, input, validation, out));
        if let Some(input) = input {
            self.hear(now, input, out);
        }
        self.heed_rpki(now, out);
        self.own.settle(&mut self.routes);
        self.tell(now, out);
        self.tell_monitors(now, out);
    }

    fn deadline(&self) -> Option<Instant> {
        let sessions = self.peers.values().filter_map(Peer::deadline);
        let others = self.listeners.deadline();
        let (rpki, rib) = (self.from_rpki.deadline(), self.to_rib.deadline());
        let components = [rib, rpki, self.own.deadline(), self.patience];
        let damping = self.routes.damping_deadline();
        let fanout = self.fanout.deadline(&self.routes);
        sessions
            .chain(others)
            .chain(damping)
            .chain(fanout)
            .chain(self.monitors.deadline())
            .chain(components.into_iter().flatten())
            .min()
    }

    fn has_background_work(&self) -> bool {
        let tells = !self.restart.defers() && self.fanout.has_work(&self.routes);
        self.routes.has_work()
            || self.routes.table.is_untidy()
            || self.own.has_work()
            || self.monitors.has_work()
            || tells
    }

    fn counters(&self) -> Vec<CounterGroup> {
        vec![CounterGroup::new("bgp-activity", "what BGP has done", &self.counters)]
    }
}
