//! A peer: its session, its connections, and its routes.
//!
//! Reference: RFC 4271 §8 (the session), §9 (what is done with UPDATEs).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use weft_base::{Buffer, ChannelId, Instant, Message, Random, Token};
use weft_routing::OriginId;
use weft_routing::ip::Version;
use weft_runtime::{Action, Level, StreamRequest, StreamSpec};
use weft_xrl::Output;

use super::Activity;
use super::context::World;
use super::faults::Faults;
use super::history::History;
use super::limit::{Held, Limit, Verdict};
use super::stale::Stale;
use super::up::{Up, settings};
use crate::config::{Config, PORT, PeerConfig, Standing};
use crate::fsm::{
    AttemptId, ConnectionId, Ending, Input, Negotiated, Output as Outcome, PeerAs, Session, State,
};
use crate::incoming::{Announcer, Taken, version};
use crate::numbers::cease;
use crate::routes::decision::Source;
use crate::routes::export::Audience;
use crate::wire::{MessageCounts, Open};

/// What a peer has sent and was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// UPDATEs that came.
    pub(super) updates: u64,
    /// Paths announced.
    pub(super) announced: u64,
    /// Paths withdrawn.
    pub(super) withdrawn: u64,
    /// Faults of attributes.
    pub(super) faults: u64,
    /// How often routes were exchanged.
    pub(super) sessions: u64,
    /// Messages that it was sent; those that came the session counts.
    pub(super) sent: MessageCounts,
}

/// A peer.
pub(super) struct Peer {
    pub(super) address: IpAddr,
    /// The range that allows it, if the configuration does not name it.
    pub(super) range: Option<IpNet>,
    pub(super) config: PeerConfig,
    pub(super) session: Session,
    pub(super) origin: OriginId,
    pub(super) up: Option<Up>,
    /// Who has announced what is kept of it while it is away.
    away: Option<Announcer>,
    pub(super) tally: Tally,
    /// Why routes are not exchanged any more.
    pub(super) ending: Option<String>,
    /// What has become of the session.
    pub(super) history: History,
    /// Routes of it that serve on while it is away.
    pub(super) stale: Stale,
    /// What became of the limit on its prefixes.
    pub(super) limit: Limit,
    /// Both ends of its connections, this router's first.
    ends: BTreeMap<ChannelId, [SocketAddr; 2]>,
    /// Attempts to connect, and what they are to the driver.
    attempts: BTreeMap<Token, AttemptId>,
}

impl Peer {
    /// One that is not started.
    pub(super) fn new(
        now: Instant,
        address: IpAddr,
        config: PeerConfig,
        own: &Config,
        standing: Standing,
        origin: OriginId,
        random: Random,
    ) -> Self {
        Self {
            address,
            range: None,
            session: Session::new(settings(&config, own, standing), random),
            config,
            origin,
            up: None,
            away: None,
            tally: Tally::default(),
            ending: None,
            history: History::new(now),
            stale: Stale::new(origin),
            limit: Limit::default(),
            ends: BTreeMap::new(),
            attempts: BTreeMap::new(),
        }
    }

    /// Takes another configuration. If the session had to end for it, it has.
    pub(super) fn configure(
        &mut self,
        config: PeerConfig,
        own: &Config,
        standing: Standing,
        world: &mut World<'_>,
    ) {
        let had = std::mem::replace(&mut self.config, config);
        self.stand(own, standing);
        if had.session.prefix_limit != self.config.session.prefix_limit {
            self.limit = Limit::default();
        }
        let is_damped_so = world.routes.set_damping(self.origin, self.config.damping);
        self.filter(is_damped_so || had.import != self.config.import, world);
    }

    /// Who has announced its routes, in this session or in the last one.
    pub(super) fn known_announcer(&self) -> Option<&Announcer> {
        self.up.as_ref().map(|up| &up.announcer).or(self.away.as_ref())
    }

    /// Other routes pass from now on, while the session goes on, or its routes serve on without one: what it has announced is
    /// looked at again, and it is told what is different.
    fn filter(&mut self, takes_others: bool, world: &mut World<'_>) {
        let announcer = self.up.as_mut().map(|up| &mut up.announcer).or(self.away.as_mut());
        if let Some(announcer) = announcer.filter(|_| takes_others) {
            announcer.import = self.config.import.clone();
            world.routes.refilter(announcer.clone());
        }
        let Some(system) = self.up.as_ref().map(|up| up.announcer.remote_as) else { return };
        let peer = self.asked_for(system);
        let Some(up) = &mut self.up else { return };
        let (export, is_closing) =
            (self.config.export.clone(), self.config.session.graceful_shutdown);
        let interval = self.config.session.advertisement_interval;
        let audience = Audience { is_closing, export, interval, peer, ..up.audience.clone() };
        if audience != up.audience {
            up.audience = audience;
            world.fanout.change(self.origin, up.audience.clone());
        }
    }

    /// This router's addresses may be other ones.
    pub(super) fn readdress(&mut self, world: &mut World<'_>) {
        let Some(up) = &mut self.up else { return };
        let address_beside = world.links.beside(up.audience.local_address);
        if address_beside != up.audience.address_beside {
            up.audience.address_beside = address_beside;
            world.fanout.change(self.origin, up.audience.clone());
        }
    }

    /// There shall be a session, if nothing speaks against it.
    pub(super) fn start(&mut self, world: &mut World<'_>) {
        if self.may_run() && self.state() == State::Idle {
            self.handle(Input::Start, world);
        }
    }

    /// The number of its system, as far as that is known.
    pub(super) fn remote_as(&self) -> Option<u32> {
        match self.config.remote_as {
            PeerAs::Exactly(number) => Some(number),
            PeerAs::External | PeerAs::Any => self.up.as_ref().map(|up| up.announcer.remote_as),
        }
    }

    /// Whether it has no connection.
    pub(super) fn is_alone(&self) -> bool {
        self.ends.is_empty()
    }

    /// Both ends of the connection on which routes are exchanged, or of the first one that there is, this router's first.
    pub(super) fn connection(&self) -> Option<[SocketAddr; 2]> {
        let up = self.up.as_ref().and_then(|up| self.ends.get(&up.channel));
        up.or_else(|| self.ends.values().next()).copied()
    }

    pub(super) fn may_run(&self) -> bool {
        self.config.session.shutdown.is_none() && self.limit.held == Held::No
    }

    /// What the process says of itself from the next connection on.
    pub(super) fn stand(&mut self, own: &Config, standing: Standing) {
        self.session.set_settings(settings(&self.config, own, standing));
    }

    /// When something is to be done at the latest.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let others = [self.stale.until(), self.limit.deadline()];
        self.session.deadline().into_iter().chain(others.into_iter().flatten()).min()
    }

    /// Time has passed.
    pub(super) fn tick(&mut self, world: &mut World<'_>) {
        self.expire(world);
        if self.limit.is_over(world.now) {
            self.start(world);
        }
        self.handle(Input::Tick, world);
    }

    /// Lets stale routes go that have had their time.
    fn expire(&mut self, world: &mut World<'_>) {
        let expired = self.stale.expire(world.now, world.routes);
        if expired.has_gone {
            let line = format!("{}: what it has not announced again in time goes", self.address);
            report(Level::Warning, line, world.out);
        }
        if expired.is_long_lived {
            let line =
                format!("{}: its routes serve on only where there are no others", self.address);
            report(Level::Warning, line, world.out);
        }
    }

    /// Something happens to the session: does all that follows.
    pub(super) fn handle(&mut self, input: Input<'_>, world: &mut World<'_>) {
        let mut outcomes = Vec::new();
        self.session.handle(world.now, input, &mut outcomes);
        let mut outcomes = VecDeque::from(outcomes);
        while let Some(outcome) = outcomes.pop_front() {
            let Some(input) = self.carry_out(outcome, world) else { continue };
            if matches!(input, Input::BadUpdate(_) | Input::Stop { .. }) {
                // What is behind it does not count any more.
                outcomes.retain(|outcome| !matches!(outcome, Outcome::Update(_)));
            }
            let mut more = Vec::new();
            self.session.handle(world.now, input, &mut more);
            outcomes.extend(more);
        }
        self.history.is_in(self.session.state(), world.now);
    }

    /// Does what the session asks for; returns what the session must hear of it.
    fn carry_out(&mut self, outcome: Outcome, world: &mut World<'_>) -> Option<Input<'static>> {
        match outcome {
            Outcome::Connect(attempt) => self.connect(attempt, world),
            Outcome::CancelConnect(attempt) => self.cancel(attempt, world),
            Outcome::Send { connection, bytes } => {
                let channel = channel(connection);
                self.tally.sent.add_all(&bytes);
                send(channel, Buffer::from_slice(&bytes), world.out);
                // While nothing waits the driver takes what it is given.
                let waits = |up: &Up| up.is_congested && up.channel == channel;
                return (!self.up.as_ref().is_some_and(waits)).then_some(Input::Sent(connection));
            }
            Outcome::Close(connection) => {
                let channel = channel(connection);
                self.ends.remove(&channel);
                world.channels.remove(&channel);
                world.out.push(Output::World(Action::Close { channel }));
            }
            Outcome::Up { connection, negotiated, open } => {
                self.is_up(connection, (&open, &negotiated), world);
            }
            Outcome::Down { ending, is_graceful } => self.is_down(&ending, is_graceful, world),
            Outcome::Failed(ending) => {
                self.history.ended(&ending, world.now);
                // What is only lost says nothing of why; what was said before does.
                let is_lost = matches!(ending, Ending::Lost | Ending::Replaced);
                if !(is_lost && self.ending.is_some()) {
                    self.has_failed(ending.to_string(), world);
                }
            }
            Outcome::Update(body) => return self.update(&body, world),
            Outcome::Refresh(refresh) => self.refresh(refresh, world),
            Outcome::Transition(transition) => {
                let line = format!(
                    "{}: {} to {} by {}",
                    self.address, transition.from, transition.to, transition.event
                );
                report(Level::Debug, line, world.out);
            }
        }
        None
    }

    fn connect(&mut self, attempt: AttemptId, world: &mut World<'_>) {
        let token = world.token();
        self.attempts.insert(token, attempt);
        world.attempts.insert(token, self.address);
        let spec = StreamSpec {
            peer: SocketAddr::new(self.address, PORT),
            local: self.config.local_address.map(|local| SocketAddr::new(local, 0)),
            key: self.config.session.key.clone(),
            options: self.config.session.options(self.config.neighbour),
        };
        let request = StreamRequest::Open(spec);
        world.out.push(Output::World(Action::Stream { token, request }));
    }

    fn cancel(&mut self, attempt: AttemptId, world: &mut World<'_>) {
        let token = self.attempts.iter().find(|(_, one)| **one == attempt).map(|(token, _)| *token);
        if let Some(token) = token {
            world.out.push(Output::World(Action::Stream { token, request: StreamRequest::Cancel }));
        }
    }

    /// An attempt to connect has succeeded.
    pub(super) fn opened(
        &mut self,
        token: Token,
        channel: ChannelId,
        local: SocketAddr,
        world: &mut World<'_>,
    ) {
        let Some(attempt) = self.attempts.remove(&token) else {
            // Of a peer with this address that is not there any more.
            return world.out.push(Output::World(Action::Close { channel }));
        };
        self.ends.insert(channel, [local, SocketAddr::new(self.address, PORT)]);
        world.channels.insert(channel, self.address);
        let connection = connection(channel);
        self.handle(Input::Opened { attempt, connection }, world);
    }

    /// An attempt to connect has failed.
    pub(super) fn failed(&mut self, token: Token, error: &str, world: &mut World<'_>) {
        if let Some(attempt) = self.attempts.remove(&token) {
            self.has_failed(format!("it cannot be connected to: {error}"), world);
            self.handle(Input::OpenFailed(attempt), world);
        }
    }

    /// The peer has connected.
    pub(super) fn accepted(
        &mut self,
        channel: ChannelId,
        ends: [SocketAddr; 2],
        world: &mut World<'_>,
    ) {
        self.ends.insert(channel, ends);
        world.channels.insert(channel, self.address);
        self.handle(Input::Accepted(connection(channel)), world);
    }

    /// A connection has brought bytes.
    pub(super) fn received(&mut self, channel: ChannelId, bytes: &[u8], world: &mut World<'_>) {
        let connection = connection(channel);
        self.handle(Input::Received { connection, bytes }, world);
    }

    /// A connection is gone.
    pub(super) fn lost(&mut self, channel: ChannelId, world: &mut World<'_>) {
        self.ends.remove(&channel);
        world.channels.remove(&channel);
        self.handle(Input::Lost(connection(channel)), world);
    }

    /// The link to it is down: its connections are as good as lost.
    pub(super) fn link_is_down(&mut self, world: &mut World<'_>) {
        for channel in self.ends.keys().copied().collect::<Vec<_>>() {
            self.lost(channel, world);
        }
    }

    /// The link to it is up again: it is connected to at once, if we wait for that to make sense.
    pub(super) fn link_is_up(&mut self, world: &mut World<'_>) {
        if !self.config.passive && matches!(self.state(), State::Connect | State::Active) {
            self.handle(Input::Stop { subcode: cease::ADMIN_RESET, text: "" }, world);
            self.start(world);
        }
    }

    /// The peer does not keep up, or does again.
    pub(super) fn congested(
        &mut self,
        channel: ChannelId,
        is_congested: bool,
        world: &mut World<'_>,
    ) {
        let Some(up) = self.up.as_mut().filter(|up| up.channel == channel) else { return };
        up.is_congested = is_congested;
        if is_congested {
            world.fanout.congested(self.origin, world.routes);
        } else {
            world.fanout.drained(self.origin, world.routes);
            self.handle(Input::Sent(connection(channel)), world);
        }
    }

    /// It is told something of routes: whole messages.
    pub(super) fn tell(&mut self, piece: Buffer, world: &mut World<'_>) {
        let Some(up) = &self.up else { return };
        self.tally.sent.add_all(piece.bytes());
        send(up.channel, piece, world.out);
        if !up.is_congested {
            let sent = Input::Sent(connection(up.channel));
            self.handle(sent, world);
        }
    }

    /// Routes can be exchanged.
    fn is_up(
        &mut self,
        connection: ConnectionId,
        (open, negotiated): (&Open, &Negotiated),
        world: &mut World<'_>,
    ) {
        let channel = channel(connection);
        let Some([local, other]) = self.ends.get(&channel) else { return };
        let (local, port) = (*local, other.port());
        let (context, own) = (negotiated.context, world.config);
        let announcer = self.announcer(negotiated, local.ip(), own);
        let audience = self.audience(negotiated, local.ip(), world);
        let source = self.config.source(self.address, own);
        let source =
            Source { router_id: negotiated.peer_identifier, system: negotiated.peer_as, ..source };
        world.routes.set_source(self.origin, source);
        if world.routes.stop_refiltering(self.origin) {
            // What it has not announced anew yet goes by the policy of now, too.
            world.routes.refilter(announcer.clone());
        }
        self.away = None;
        world.routes.set_damping(self.origin, self.config.damping);
        let mut up = Up {
            channel,
            announcer,
            audience: audience.clone(),
            since: world.now,
            complete: BTreeSet::new(),
            refreshing: BTreeSet::new(),
            renewed: BTreeSet::new(),
            introduction: [].into(),
            graceful: negotiated.graceful_restart.clone(),
            long_lived: negotiated.long_lived.clone().unwrap_or_default(),
            is_enhanced: negotiated.enhanced_refresh,
            is_congested: false,
            faults: Faults::default(),
        };
        let mut introduction = Vec::new();
        let subject = up.subject(self.address, world.routes);
        subject.up(local, port, [open, &negotiated.open], &mut introduction);
        up.introduction = introduction.into();
        world.monitors.say(|out| out.extend(&*up.introduction));
        let (now, time) = (world.now, own.graceful.stale_time);
        self.stale.resumed(now, time, context.families, up.said(), world.routes);
        self.up = Some(up);
        self.tally.sessions += 1;
        self.ending = None;
        for version in self.families() {
            world.fanout.join(self.origin, version, audience.clone(), context, world.routes);
        }
        report(Level::Info, format!("{}: routes are exchanged", self.address), world.out);
    }

    /// The families that are exchanged and have a table.
    pub(super) fn families(&self) -> Vec<Version> {
        let families = self.up.as_ref().map(|up| up.announcer.context.families);
        families.into_iter().flat_map(|families| families.iter().filter_map(version)).collect()
    }

    /// There was no session. While nothing else is wrong people are told once.
    fn has_failed(&mut self, why: String, world: &mut World<'_>) {
        if self.up.is_none() && self.ending.as_ref() != Some(&why) {
            report(Level::Warning, format!("{}: no session: {why}", self.address), world.out);
            self.ending = Some(why);
        }
    }

    fn is_down(&mut self, ending: &Ending, is_graceful: bool, world: &mut World<'_>) {
        let exchanged = self.families();
        world.fanout.leave(self.origin, world.routes);
        let up = self.up.take();
        if let Some(up) = &up {
            let subject = up.subject(self.address, world.routes);
            world.monitors.say(|out| subject.down(ending, out));
        }
        self.away = up.as_ref().map(|up| up.announcer.clone());
        let said = up.as_ref().and_then(Up::said).filter(|_| is_graceful);
        let is_lost = matches!(ending, Ending::Lost | Ending::Replaced);
        let graceful = &world.config.graceful;
        self.stale.begin(world.now, &exchanged, (said, graceful), is_lost, world.routes);
        let more = if self.stale.versions().next().is_none() { "" } else { "; its own serve on" };
        let line = format!("{}: routes are not exchanged any more: {ending}{more}", self.address);
        report(Level::Warning, line, world.out);
        self.expire(world);
        self.history.ended(ending, world.now);
        self.ending = Some(ending.to_string());
    }

    /// The peer announces something; if the session has to end for it, returns how.
    fn update(&mut self, body: &[u8], world: &mut World<'_>) -> Option<Input<'static>> {
        let up = self.up.as_mut()?;
        self.tally.updates += 1;
        let taken = match up.announcer.take(body, world.routes) {
            Ok(taken) => taken,
            Err(error) => return Some(Input::BadUpdate(error.notification())),
        };
        if world.monitors.is_on() {
            let (routes, this) = (&*world.routes, &*self);
            world.monitors.say(|out| this.has_sent(body, &taken, routes, out));
        }
        let up = self.up.as_mut()?;
        self.stale.announces(world.now);
        let count = taken.fault_count();
        self.tally.faults += count;
        world.counters.add(Activity::Faults, count);
        if let Some(line) = up.faults.come(world.now, &taken) {
            report(Level::Warning, format!("{}: {line}", self.address), world.out);
        }
        let Taken { announced, withdrawn, end_of_rib, disabled, .. } = taken;
        self.tally.announced += announced;
        self.tally.withdrawn += withdrawn;
        if let Some(version) = end_of_rib.and_then(version) {
            up.complete.insert(version);
            self.stale.end(version, world.routes);
        }
        if let Some(family) = disabled {
            up.announcer.context.families.remove(family);
            if let Some(version) = version(family) {
                up.renewed.insert(version);
                world.routes.table.renew(version, self.origin);
                world.routes.sweep(version, self.origin);
                self.stale.end(version, world.routes);
            }
        }
        self.check_limit(world)
    }

    /// Whether it has announced more than it may; if the session has to end for that, returns how.
    fn check_limit(&mut self, world: &mut World<'_>) -> Option<Input<'static>> {
        let limit = self.config.session.prefix_limit;
        let (line, ends) = match self.limit.judge(limit, self.origin, world.routes) {
            Verdict::Fine => return None,
            Verdict::Warn(line) => (line, false),
            Verdict::End(line) => (line, true),
        };
        report(Level::Warning, format!("{}: {line}", self.address), world.out);
        if !ends {
            return None;
        }
        self.limit.hold(world.now, limit);
        Some(Input::Stop { subcode: cease::MAX_PREFIXES, text: "" })
    }

    /// The state of its session, for people.
    pub(super) fn state(&self) -> State {
        self.session.state()
    }
}

/// A connection as the session knows it: by the number of its channel.
fn connection(channel: ChannelId) -> ConnectionId {
    ConnectionId(channel.0.into())
}

fn channel(connection: ConnectionId) -> ChannelId {
    // It was made of one.
    ChannelId(connection.0 as u32)
}

fn send(channel: ChannelId, bytes: Buffer, out: &mut Vec<Output>) {
    let message = Message::from(bytes);
    out.push(Output::World(Action::Send { channel, message }));
}

fn report(level: Level, line: String, out: &mut Vec<Output>) {
    out.push(Output::World(Action::Report { level, line }));
}
