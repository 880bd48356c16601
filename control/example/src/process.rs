//! The process: interfaces, the FEA's relays, the RIB and operators, and what passes between them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use ipnet::Ipv4Net;
use serde_json::{Value, json};
use weft_base::{CounterGroup, Counters, Instant};
use weft_config::Errors;
use weft_protocol::{
    Hop, Manage, Origin, OriginNumber, RelayNews, Relays, Route, Show, Table as Shown, To, ToRib,
    manage, show,
};
use weft_runtime::{Action, Component, Event, Interface, InterfaceChange, Level};
use weft_xrl::{Input, Output, XrlError, configurable};

use crate::config::{self, Config, SCHEMA, STATEMENT};
use crate::table::Table;
use crate::wire::Hello;

/// Where all routers of a link listen.
const GROUP: (Ipv4Addr, u16) = (Ipv4Addr::new(224, 0, 0, 254), 1021);
/// What changes is told at once, and then not again for so long.
const PAUSE: Duration = Duration::from_millis(50);
/// How many times the time between hellos a router may be silent.
const HOLD: u32 = 4;

weft_base::reasons! {
    /// What hearsay counts.
    enum Activity {
        Sent = "sent", "datagrams that were sent";
        Heard = "heard", "hellos of neighbours";
        Bad = "bad", "datagrams that are no hellos";
        Stranger = "stranger", "datagrams from addresses or ports of which no neighbour sends";
        TooMany = "too-many", "hellos with more routes, or of more neighbours, than are listened to";
    }
}

/// A link on which hearsay is spoken.
#[derive(Debug)]
struct Link {
    name: String,
    own: Ipv4Net,
    is_open: bool,
}

/// Hearsay; see the crate's text.
pub(crate) struct Hearsay {
    config: Option<Config>,
    pub(crate) table: Table,
    known: BTreeMap<u32, Interface>,
    links: BTreeMap<u32, Link>,
    to_rib: ToRib,
    relays: Relays,
    origin: Option<OriginNumber>,
    /// When everything was told last, and is told next.
    told: Option<Instant>,
    next: Option<Instant>,
    /// Until when neighbours are waited for, before the RIB forgets routes of an earlier life.
    patience: Option<Instant>,
    counters: Counters<Activity>,
}

impl Default for Hearsay {
    fn default() -> Self {
        Self {
            config: None,
            table: Table::default(),
            known: BTreeMap::new(),
            links: BTreeMap::new(),
            to_rib: ToRib::new(1),
            relays: Relays::new(2),
            origin: None,
            told: None,
            next: None,
            patience: None,
            counters: Counters::new(),
        }
    }
}

impl Hearsay {
    /// Speaks on the links of the configuration that can carry packets, and on no others.
    fn settle(&mut self, now: Instant, out: &mut Vec<Output>) {
        let Some(config) = &self.config else { return };
        let link = |one: &Interface| {
            let is_wanted = one.running && config.interfaces.contains(&one.name);
            let mut nets = one.addresses.iter().filter_map(|one| match one.ip {
                IpAddr::V4(ip) => Ipv4Net::new(ip, one.prefix_length).ok(),
                IpAddr::V6(_) => None,
            });
            Some((one.index, one.name.clone(), nets.next().filter(|_| is_wanted)?))
        };
        let wanted: Vec<_> = self.known.values().filter_map(link).collect();
        let stays = |index: &u32, link: &mut Link| {
            wanted.iter().any(|one| one.0 == *index && (&one.1, one.2) == (&link.name, link.own))
        };
        let gone: Vec<_> = self.links.extract_if(.., |index, link| !stays(index, link)).collect();
        for (index, _) in gone {
            self.relays.close(index, out);
            self.table.lose(config, |(link, _)| *link == index);
        }
        for (index, name, own) in wanted {
            self.relays.open(index, &format!("group:{name}:{}:{}", GROUP.0, GROUP.1), out);
            self.links.entry(index).or_insert(Link { name, own, is_open: false });
        }
        self.soon(now);
    }

    /// Everything is to be told soon.
    fn soon(&mut self, now: Instant) {
        let soon = self.told.map_or(now, |told| now.max(told + PAUSE));
        self.next = Some(self.next.map_or(soon, |next| next.min(soon)));
    }

    fn relayed(&mut self, now: Instant, out: &mut Vec<Output>) {
        for news in self.relays.take_news() {
            match news {
                RelayNews::Opened { link, .. } => {
                    self.links.entry(link).and_modify(|link| link.is_open = true);
                    self.soon(now);
                }
                RelayNews::Closed { link, error } => {
                    let Some(link) = self.links.get_mut(&link) else { continue };
                    link.is_open = false;
                    if let Some(error) = error {
                        let line = format!("{}: {error}; it will be tried again", link.name);
                        out.push(Output::World(Action::Report { level: Level::Warning, line }));
                    }
                }
                RelayNews::Packet { link, from, bytes } => self.heard(now, link, from, &bytes),
            }
        }
    }

    /// Hears a neighbour.
    fn heard(&mut self, now: Instant, index: u32, from: SocketAddr, bytes: &[u8]) {
        let (Some(link), Some(config)) = (self.links.get(&index), &self.config) else { return };
        let own = link.own;
        let SocketAddr::V4(from) = from else { return };
        if !own.contains(from.ip()) || *from.ip() == own.addr() || from.port() != GROUP.1 {
            return self.counters.add(Activity::Stranger, 1);
        }
        let Ok(hello) = Hello::parse(bytes) else { return self.counters.add(Activity::Bad, 1) };
        self.counters.add(Activity::Heard, 1);
        match self.table.hear(now, (index, *from.ip()), own.addr(), &hello, config) {
            Some(true) => self.soon(now),
            Some(false) => {}
            None => self.counters.add(Activity::TooMany, 1),
        }
    }

    /// Tells all neighbours everything, or that this router goes.
    fn tell_all(&mut self, hold: Duration, out: &mut Vec<Output>) {
        let Some(config) = &self.config else { return };
        for (index, _) in self.links.iter().filter(|(_, link)| link.is_open) {
            let heard = self.table.neighbours.keys();
            let heard = heard.filter(|(link, _)| link == index).map(|(_, address)| *address);
            let routes = self.table.told(*index, config);
            let hello = Hello { hold, heard: heard.collect(), routes };
            for bytes in hello.write() {
                self.counters.add(Activity::Sent, 1);
                self.relays.send(*index, GROUP.into(), bytes, out);
            }
        }
        self.table.have_told();
    }

    /// Does what is due, and tells the RIB what has changed.
    fn tick(&mut self, now: Instant, out: &mut Vec<Output>) {
        let (Some(config), Some(origin)) = (&self.config, self.origin) else { return };
        let hello = config.hello;
        if self.next.is_some_and(|next| next <= now) {
            self.table.expire(now, config);
            self.tell_all(hello * HOLD, out);
            (self.told, self.next) = (Some(now), Some(now + hello));
        }
        let changed = std::mem::take(&mut self.table.changed);
        if !changed.is_empty() {
            self.soon(now);
        }
        for net in changed {
            let Some(((link, neighbour), told)) = self.table.best.get(&net) else {
                self.to_rib.withdraw(&net.into());
                continue;
            };
            let gateway = Some(IpAddr::V4(*neighbour));
            let to = To::Hops(vec![Hop { gateway, interface: Some(*link), weight: 1 }]);
            let route = Route { to, metric: told.hops.into(), tag: told.tag };
            self.to_rib.set(net.into(), origin, route);
        }
        self.patience = self.patience.filter(|patience| *patience > now);
        self.to_rib.tell(self.patience.is_none(), out);
    }

    fn name(&self, link: u32) -> &str {
        self.links.get(&link).map_or("", |link| &link.name)
    }
}

impl Manage for Hearsay {
    type Config = Config;

    fn schema(&self) -> &'static str {
        SCHEMA
    }

    fn read(&self, source: &str, text: &str) -> Result<Config, Errors> {
        config::read(source, text)
    }

    fn configure(&mut self, now: Instant, config: Config, out: &mut Vec<Output>) {
        let (protocol, distance) = (STATEMENT.to_owned(), config.distance);
        self.origin = Some(self.to_rib.open(Origin { protocol, external: false, distance }, out));
        if self.config.is_none() {
            self.patience = Some(now + config.hello * HOLD);
        }
        let before = self.config.iter().flat_map(|before| &before.networks);
        let gone = before.filter(|net| !config.networks.contains(net)).copied();
        self.table.settle_all(gone, &config);
        self.config = Some(config);
        self.settle(now, out);
    }

    fn status(&self) -> (bool, String) {
        let (neighbours, routes) = (self.table.neighbours.len(), self.table.best.len());
        let rib = if self.to_rib.is_there() { "" } else { "; waits for the RIB" };
        (self.config.is_some(), format!("{neighbours} neighbours; {routes} routes{rib}"))
    }
}

impl Show for Hearsay {
    const VIEWS: &'static [(&'static str, &'static str)] = &[
        ("routes", "the best routes that neighbours have told"),
        ("neighbours", "the routers that are heard, and whether they hear this one"),
    ];

    fn table(&self, view: &str, from: Option<&str>, at_most: usize) -> Result<Shown, XrlError> {
        if view == "neighbours" {
            let columns = &["address", "interface", "hears-us", "routes"];
            let rows = self.table.neighbours.iter().map(|((link, address), one)| {
                json!({ "address": address.to_string(), "interface": self.name(*link),
                    "hears-us": one.hears_us, "routes": one.routes.len() })
            });
            return Ok(Shown { columns, rows: rows.collect(), next: None });
        }
        let wrong = |_| XrlError::bad_args("the page before says behind which prefix to go on");
        let from: Option<Ipv4Net> = from.map(str::parse).transpose().map_err(wrong)?;
        let rows = self.table.best.iter().filter(|(net, _)| from.is_none_or(|from| **net > from));
        let columns = &["prefix", "hops", "tag", "gateway", "interface"];
        Ok(Shown::page(columns, rows, at_most, |net, ((link, gateway), told)| -> Value {
            json!({ "prefix": net.to_string(), "hops": told.hops, "tag": told.tag,
                "gateway": gateway.to_string(), "interface": self.name(*link) })
        }))
    }
}

impl Component for Hearsay {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        let input = self.to_rib.hear(now, input, out);
        match input.and_then(|input| self.relays.hear(now, input, out)) {
            Some(Input::World(Event::Start)) => out.push(Output::World(Action::WatchInterfaces)),
            Some(Input::World(Event::Interface { change })) => {
                match change {
                    InterfaceChange::Added(one) | InterfaceChange::Changed(one) => {
                        self.known.insert(one.index, one);
                    }
                    InterfaceChange::Removed { index, .. } => drop(self.known.remove(&index)),
                    InterfaceChange::Complete => {}
                }
                self.settle(now, out);
            }
            Some(Input::World(Event::Stop)) => {
                self.tell_all(Duration::ZERO, out);
                return out.push(Output::World(Action::Exit { status: 0 }));
            }
            Some(Input::Called(called)) => match called.interface.name {
                name if name == configurable::INTERFACE.name => manage(self, now, called, out),
                _ => out.push(show(self, called)),
            },
            _ => {}
        }
        self.relayed(now, out);
        self.tick(now, out);
    }

    fn deadline(&self) -> Option<Instant> {
        let ways = [self.to_rib.deadline(), self.relays.deadline(), self.next, self.patience];
        ways.into_iter().flatten().min()
    }

    fn counters(&self) -> Vec<CounterGroup> {
        vec![CounterGroup::new("hearsay-activity", "what hearsay has done", &self.counters)]
    }
}
