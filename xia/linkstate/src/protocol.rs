//! The protocol itself: carries messages for the engine, and turns its routes into redirects.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use weft_base::{CounterGroup, Counters, Instant, Packet, PortId, Random, Token};
use weft_keys::PrivateKey;
use weft_linkstate::wire::Message;
use weft_linkstate::{self as engine, LinkId, Metric, NeighbourState, Settings, SettingsError};
use weft_port::PortInfo;
use weft_runtime::{Component, Level};
use weft_wire::{EtherType, EthernetFrame, MacAddr};
use weft_xip::kept_port::PortState;
use weft_xip::numbers::ETHERTYPE_LINK_STATE;
use weft_xip::principal::{Input, Output};
use weft_xip::protocol::Protocol;
use weft_xip::words::WordError;
use weft_xip::{Xid, XidType};

use crate::activity::Activity;
use crate::gateways::{Gateways, is_about_gateways};
use crate::hosts::{Hosts, destination, host, names_host, node, xid};
use crate::neighbours::{BEACON, BEACON_PERIOD, FORGET, Heard, Interface, Links, PATIENCE, frame};
use crate::statements::Statement;

/// What it costs to send over an interface of which nothing is said.
pub const DEFAULT_METRIC: Metric = 10;
/// Neighbours on one interface, unless `neighbour-limit` says otherwise.
const DEFAULT_LIMIT: usize = 64;
/// The hold time is so many hello intervals, unless `hold` says otherwise.
const HOLD: u32 = 4;

/// Link-state routing; see the crate's text.
pub struct LinkState {
    /// `None` without a key.
    pub(crate) engine: Option<engine::LinkState<Hosts>>,
    options: Options,
    pub(crate) interfaces: BTreeMap<String, Interface>,
    pub(crate) links: Links,
    pub(crate) locals: Vec<Xid>,
    pub(crate) gateways: Gateways,
    beacon: Option<Instant>,
    last_token: u32,
    random: Random,
    pub(crate) counters: Counters<Activity>,
    /// The operator was told that there is no key.
    complained: bool,
    /// The time of the last input.
    pub(crate) now: Instant,
}

/// What was stated.
#[derive(Clone, Debug, Default)]
struct Options {
    hello: Option<Duration>,
    hold: Option<Duration>,
    metrics: BTreeMap<String, Metric>,
    off: BTreeSet<String>,
    advertised: BTreeSet<Xid>,
    limit: Option<usize>,
    paths: Option<usize>,
}

impl Options {
    fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        settings.hello = self.hello.unwrap_or(settings.hello);
        settings.hold = self.hold.unwrap_or(settings.hello * HOLD);
        settings.next_hops = self.paths.unwrap_or(settings.next_hops);
        settings
    }

    /// Takes a statement back; false if it was not made.
    fn delete(&mut self, statement: &Statement) -> bool {
        let take = |option: &mut Option<Duration>, value| option.take_if(|v| *v == value).is_some();
        match statement {
            Statement::Hello(hello) => take(&mut self.hello, *hello),
            Statement::Hold(hold) => take(&mut self.hold, *hold),
            Statement::Metric { interface, metric } => {
                let there = self.metrics.get(interface) == Some(metric);
                there && self.metrics.remove(interface).is_some()
            }
            Statement::Off(interface) => self.off.remove(interface),
            Statement::Advertise(xid) => self.advertised.remove(xid),
            Statement::Limit(limit) => self.limit.take_if(|l| l == limit).is_some(),
            Statement::Paths(paths) => self.paths.take_if(|p| p == paths).is_some(),
        }
    }

    fn set(&mut self, statement: Statement) {
        match statement {
            Statement::Hello(hello) => self.hello = Some(hello),
            Statement::Hold(hold) => self.hold = Some(hold),
            Statement::Metric { interface, metric } => {
                self.metrics.insert(interface, metric);
            }
            Statement::Off(interface) => {
                self.off.insert(interface);
            }
            Statement::Advertise(xid) => {
                self.advertised.insert(xid);
            }
            Statement::Limit(limit) => self.limit = Some(limit),
            Statement::Paths(paths) => self.paths = Some(paths),
        }
    }
}

impl LinkState {
    /// A node with this key, if it has one. `random` makes numbers that nobody may guess, and jitter.
    #[must_use]
    pub fn new(key: Option<PrivateKey>, random: Random) -> Self {
        let engine = key.map(|key| {
            let random = random.fork("engine");
            engine::LinkState::new(Hosts::new(key), Settings::default(), random)
                .expect("a test of the engine says that these settings are right")
        });
        Self {
            engine,
            options: Options::default(),
            interfaces: BTreeMap::new(),
            links: Links::default(),
            locals: Vec::new(),
            gateways: Gateways::default(),
            beacon: None,
            last_token: 0,
            random,
            counters: Counters::new(),
            complained: false,
            now: Instant::ZERO,
        }
    }

    /// What it costs to send over an interface.
    pub(crate) fn metric(&self, interface: &str) -> Metric {
        self.options.metrics.get(interface).copied().unwrap_or(DEFAULT_METRIC)
    }

    /// Gives the engine an input and carries out what comes of it.
    fn tell(&mut self, input: engine::Input, out: &mut Vec<Output>) {
        let Some(engine) = &mut self.engine else { return };
        let mut outputs = Vec::new();
        engine.handle(self.now, input, &mut outputs);
        let is_news = outputs.iter().any(is_about_gateways);
        outputs.into_iter().for_each(|output| self.carry_out(output, out));
        if is_news {
            self.tell_adjacencies(out);
        }
    }

    fn carry_out(&mut self, output: engine::Output, out: &mut Vec<Output>) {
        match output {
            engine::Output::Send { link, message } => self.send(link, &message, out),
            engine::Output::NeighbourUp { link, node } => {
                let line = format!("neighbour {} {}is usable", host(node), self.place_text(link));
                out.push(Output::Report { level: Level::Info, line });
            }
            engine::Output::NeighbourDown { link, node, reason } => {
                let place = self.place_text(link);
                let line = format!("neighbour {} {place}{}", host(node), reason.text());
                out.push(Output::Report { level: Level::Warning, line });
            }
            engine::Output::Route { destination, route } => {
                let Some(xid) = xid(&destination) else { return };
                let found = (xid, self.gateways.of(xid, route.as_ref()));
                // Routes change many at a time, and the principals take them in faster together.
                match out.last_mut() {
                    Some(Output::Redirect(all)) => all.push(found),
                    _ => out.push(Output::Redirect(vec![found])),
                }
            }
        }
    }

    fn place_text(&self, link: LinkId) -> String {
        self.links.place(link).map_or_else(String::new, |place| format!("on {} ", place.interface))
    }

    fn send(&self, link: LinkId, message: &[u8], out: &mut Vec<Output>) {
        let Some(place) = self.links.place(link) else { return };
        let Some(interface) = self.interfaces.get(&place.interface) else { return };
        let Some(port) = interface.port.port() else { return };
        out.push(Output::Transmit { port, packet: frame(message, interface.mac, place.mac) });
    }

    fn interface_up(&mut self, name: &str, xip: PortId, info: &PortInfo, out: &mut Vec<Output>) {
        let interface = Interface::new(name, xip, info);
        let needed = Settings::default().message_size;
        if interface.has_addresses() && interface.mtu < needed {
            let line = format!(
                "no link-state routing on {name}: its MTU is {}, and {needed} are needed",
                interface.mtu
            );
            out.push(Output::Report { level: Level::Warning, line });
        }
        match self.interfaces.get_mut(name) {
            // What neighbours know of this node holds, and sessions go on.
            Some(known) if known.mac == interface.mac => {
                (known.xip, known.mtu) = (xip, interface.mtu);
            }
            known => {
                if let Some(old) = known.map(|known| known.xip) {
                    self.interface_down(old, out);
                }
                self.interfaces.insert(name.to_owned(), interface);
            }
        }
        self.apply_switches(out);
    }

    fn interface_down(&mut self, xip: PortId, out: &mut Vec<Output>) {
        let found = self.interfaces.iter().find(|(_, interface)| interface.xip == xip);
        let Some(name) = found.map(|(name, _)| name.clone()) else { return };
        self.forget_links(&name, out);
        if let Some(mut interface) = self.interfaces.remove(&name) {
            interface.port.close(out);
        }
    }

    /// Loses all neighbours on an interface.
    fn forget_links(&mut self, name: &str, out: &mut Vec<Output>) {
        let links = self.links.on(name).collect();
        self.forget(links, out);
    }

    fn forget(&mut self, links: Vec<LinkId>, out: &mut Vec<Output>) {
        for link in links {
            self.tell(engine::Input::LinkDown { link }, out);
            self.links.remove(link);
        }
    }

    /// Opens and closes ports as the statements say.
    fn apply_switches(&mut self, out: &mut Vec<Output>) {
        let needed = Settings::default().message_size;
        let mut silenced = Vec::new();
        for (name, interface) in &mut self.interfaces {
            let fits = interface.has_addresses() && interface.mtu >= needed;
            let wanted = fits && self.engine.is_some() && !self.options.off.contains(name);
            if wanted && interface.port.state() == PortState::Closed {
                interface.port.open(next(&mut self.last_token), out);
            } else if !wanted && interface.port.state() != PortState::Closed {
                silenced.push(name.clone());
            }
        }
        for name in silenced {
            self.forget_links(&name, out);
            if let Some(interface) = self.interfaces.get_mut(&name) {
                interface.port.close(out);
            }
        }
    }

    fn port_opened(&mut self, token: Token, port: PortId, out: &mut Vec<Output>) {
        let asked = |interface: &Interface| interface.port.state() == PortState::Opening(token);
        let found = self.interfaces.iter_mut().find(|(_, interface)| asked(interface));
        let Some((name, interface)) = found else {
            // The interface went away, or was switched off, while the port was being opened.
            out.push(Output::ClosePort { port });
            return;
        };
        if interface.port.opened(port) {
            let line = format!("link-state routing works again on {name}");
            out.push(Output::Report { level: Level::Info, line });
        }
        let name = name.clone();
        self.send_beacon(&name, out);
        self.beacon.get_or_insert(self.now + BEACON_PERIOD);
    }

    fn port_failed(&mut self, failed: PortState, error: &str, out: &mut Vec<Output>) {
        let found = self.interfaces.iter_mut().find(|(_, one)| one.port.state() == failed);
        let Some((name, interface)) = found else { return };
        if interface.port.failed(self.now) {
            let line = format!("no link-state routing on {name}: {error}; it is tried again");
            out.push(Output::Report { level: Level::Warning, line });
        }
        let name = name.clone();
        self.forget_links(&name, out);
    }

    fn send_beacon(&mut self, name: &str, out: &mut Vec<Output>) {
        let Some(interface) = self.interfaces.get(name) else { return };
        let Some(port) = interface.port.port() else { return };
        let packet = frame(&BEACON, interface.mac, MacAddr::BROADCAST);
        self.counters.add(Activity::BeaconsSent, 1);
        out.push(Output::Transmit { port, packet });
    }

    fn receive(&mut self, port: PortId, packets: &[Packet], out: &mut Vec<Output>) {
        let found = self.interfaces.iter().find(|(_, one)| one.port.port() == Some(port));
        let Some((name, own)) = found.map(|(name, one)| (name.clone(), one.mac)) else { return };
        for packet in packets {
            self.receive_frame(&name, own, packet.bytes(), out);
        }
    }

    fn receive_frame(&mut self, name: &str, own: MacAddr, bytes: &[u8], out: &mut Vec<Output>) {
        let frame = match EthernetFrame::new_checked(bytes) {
            Ok(frame) if frame.ethertype() == EtherType(ETHERTYPE_LINK_STATE) => frame,
            _ => return self.counters.add(Activity::BadFrame, 1),
        };
        let (source, destination) = (frame.source(), frame.destination());
        let is_station = source != MacAddr::UNSPECIFIED && !source.is_multicast();
        if source == own || !is_station || !(destination == own || destination.is_broadcast()) {
            return self.counters.add(Activity::OtherHost, 1);
        }
        let payload = frame.payload();
        let is_beacon = match payload.first() {
            Some(0) => true,
            Some(_) if destination == own => false,
            _ => return self.counters.add(Activity::BadFrame, 1),
        };
        let limit = self.options.limit.unwrap_or(DEFAULT_LIMIT);
        let mut heard = self.links.hear(self.now, name, source, limit);
        if heard == Heard::TooMany
            && let Some(idle) = self.idle_link(name)
        {
            self.forget(vec![idle], out);
            heard = self.links.hear(self.now, name, source, limit);
        }
        let link = match heard {
            Heard::Known(link) => link,
            Heard::New(link) => {
                let metric = self.metric(name);
                self.tell(engine::Input::LinkUp { link, metric, neighbour: None }, out);
                link
            }
            Heard::TooMany => return self.counters.add(Activity::TooManyNeighbours, 1),
        };
        if is_beacon {
            self.counters.add(Activity::BeaconsReceived, 1);
        } else if Message::is_greeting(payload) && !self.admits_greeting(name, link) {
            self.counters.add(Activity::GreetingsOfInterface, 1);
        } else {
            self.tell(engine::Input::Received { link, message: payload.to_vec() }, out);
        }
    }

    /// Whether a greeting may cost a verification. Hardware addresses are invented easily, and each is a link.
    fn admits_greeting(&mut self, name: &str, link: LinkId) -> bool {
        let (place, interface) = (self.links.place_mut(link), self.interfaces.get_mut(name));
        place
            .zip(interface)
            .is_some_and(|(place, interface)| place.admits_greeting(self.now, interface))
    }

    /// The link on an interface that gives way to a new one: of those that have had time for a session, and have none,
    /// that of which nothing was heard for longest.
    fn idle_link(&self, name: &str) -> Option<LinkId> {
        let neighbours = self.engine.as_ref()?.neighbours();
        let idle = neighbours.filter(|one| {
            one.state == NeighbourState::Greeted && self.now.since(one.since) >= PATIENCE
        });
        let heard = |link: LinkId| {
            let place = self.links.place(link).filter(|place| place.interface == name)?;
            Some((place.heard, link))
        };
        idle.filter_map(|one| heard(one.link)).min().map(|(_, link)| link)
    }

    /// Does what is due.
    fn run_timers(&mut self, out: &mut Vec<Output>) {
        let now = self.now;
        for interface in self.interfaces.values_mut() {
            if interface.port.retry_at().is_some_and(|at| at <= now) {
                interface.port.open(next(&mut self.last_token), out);
            }
        }
        if self.beacon.is_some_and(|at| at <= now) {
            // A quarter less by chance, so that the nodes of a link do not speak all at once.
            let quarter = (BEACON_PERIOD / 4).as_nanos() as u64;
            let jitter = Duration::from_nanos(self.random.below(quarter));
            self.beacon = Some(now + (BEACON_PERIOD - jitter));
            let names: Vec<_> = self.interfaces.keys().cloned().collect();
            names.iter().for_each(|name| self.send_beacon(name, out));
            self.forget_silent(out);
        }
        let due = self.engine.as_ref().and_then(|engine| engine.deadline());
        if due.is_some_and(|due| due <= now) {
            self.tell(engine::Input::Tick, out);
        }
    }

    /// Forgets hardware addresses without a session of which nothing is heard.
    fn forget_silent(&mut self, out: &mut Vec<Output>) {
        let Some(engine) = &self.engine else { return };
        let greeted = engine.neighbours().filter(|one| one.state == NeighbourState::Greeted);
        let is_silent = |link: &LinkId| {
            self.links.place(*link).is_none_or(|place| self.now.since(place.heard) >= FORGET)
        };
        let silent = greeted.map(|one| one.link).filter(is_silent).collect();
        self.forget(silent, out);
    }

    /// Advertises what is to be advertised of what is this node.
    fn advertise(&mut self, out: &mut Vec<Output>) {
        let Some(own) = self.engine.as_ref().map(|engine| host(engine.node())) else { return };
        let is_ours = |xid: &Xid| match xid.kind {
            // Of another host others would not believe it.
            _ if names_host(xid) => xid.id == own.id,
            XidType::AD => true,
            _ => self.options.advertised.contains(xid),
        };
        let ours = self.locals.iter().filter(|xid| is_ours(xid));
        let destinations = ours.map(|xid| (destination(*xid), 0)).collect();
        self.tell(engine::Input::Advertise { destinations }, out);
    }

    /// Makes changed options hold.
    fn apply(
        &mut self,
        now: Instant,
        options: Options,
        out: &mut Vec<Output>,
    ) -> Result<(), WordError> {
        self.now = now;
        let refused = |error: SettingsError| WordError::new(error.to_string());
        let settings = options.settings();
        settings.check().map_err(refused)?;
        self.options = options;
        if let Some(engine) = &mut self.engine {
            engine.set_settings(now, settings).map_err(refused)?;
        }
        self.apply_switches(out);
        self.advertise(out);
        let links: Vec<_> = self.interfaces.keys().flat_map(|name| self.links.on(name)).collect();
        for link in links {
            let Some(place) = self.links.place(link) else { continue };
            let metric = self.metric(&place.interface);
            self.tell(engine::Input::Metric { link, metric }, out);
        }
        Ok(())
    }

    /// The host at the other end of a link, if its session is up.
    pub(crate) fn host_of(&self, link: LinkId) -> Option<Xid> {
        let engine = self.engine.as_ref()?;
        engine.neighbours().find(|one| one.link == link)?.node.map(host)
    }

    /// How far a host is, for tests and people.
    #[must_use]
    pub fn distance(&self, to: Xid) -> Option<u64> {
        self.engine.as_ref()?.distance(node(to))
    }
}

/// A token that no port was asked for with yet.
fn next(last: &mut u32) -> Token {
    *last += 1;
    Token(*last)
}

impl Protocol for LinkState {
    fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        self.now = now;
        if self.engine.is_none() && !std::mem::replace(&mut self.complained, true) {
            let line = "no link-state routing: the node has no key; give it one with `identity`";
            out.push(Output::Report { level: Level::Error, line: line.to_owned() });
        }
        match input {
            Input::Tick | Input::Adjacency { .. } | Input::Ip { .. } => {}
            Input::InterfaceUp { name, port, info } => self.interface_up(&name, port, &info, out),
            Input::InterfaceDown { port } => self.interface_down(port, out),
            Input::PortOpened { token, port, .. } => self.port_opened(token, port, out),
            Input::PortFailed { token, error } => {
                self.port_failed(PortState::Opening(token), &error, out);
            }
            Input::PortLost { port, error } => {
                self.port_failed(PortState::Open(port), &error, out);
            }
            Input::Packets { port, packets } => self.receive(port, &packets, out),
        }
        self.run_timers(out);
    }

    fn set_locals(&mut self, now: Instant, locals: &[Xid], out: &mut Vec<Output>) {
        self.now = now;
        self.locals = locals.to_vec();
        self.choose_versions(out);
        self.advertise(out);
    }

    fn stop(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.now = now;
        self.tell(engine::Input::Stop, out);
    }

    fn deadline(&self) -> Option<Instant> {
        let retries = self.interfaces.values().filter_map(|interface| interface.port.retry_at());
        let engine = self.engine.as_ref().and_then(|engine| engine.deadline());
        retries.chain(self.beacon).chain(engine).min()
    }

    fn set(
        &mut self,
        now: Instant,
        words: &[&str],
        out: &mut Vec<Output>,
    ) -> Result<(), WordError> {
        let mut options = self.options.clone();
        options.set(Statement::read(words)?);
        self.apply(now, options, out)
    }

    fn delete(
        &mut self,
        now: Instant,
        words: &[&str],
        out: &mut Vec<Output>,
    ) -> Result<(), WordError> {
        let mut options = self.options.clone();
        if !options.delete(&Statement::read(words)?) {
            return Err(WordError::new("there is no such statement to delete").absent());
        }
        self.apply(now, options, out)
    }

    fn show(&self) -> Value {
        crate::show::show(self)
    }

    fn tree(&self, to: &[Xid]) -> Result<Vec<(Xid, Xid)>, String> {
        let engine = self.engine.as_ref().ok_or("the node has no key")?;
        let nodes: Vec<_> = to.iter().map(|host| node(*host)).collect();
        let links = engine.tree(&nodes);
        let links = links.map_err(|lost| format!("there is no way to {}", host(lost)))?;
        Ok(links.into_iter().map(|(from, to)| (host(from), host(to))).collect())
    }

    fn counters(&self) -> Option<CounterGroup> {
        let mut group = self.engine.as_ref()?.counters().pop()?;
        group.add_all("", &self.counters);
        Some(group)
    }
}
