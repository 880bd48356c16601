//! The process: interfaces, the FEA's relays, the RIB and operators, and what passes between them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use ipnet::{IpNet, Ipv4Net};
use serde_json::{Value, json};
use weft_base::{CounterGroup, Counters, Instant};
use weft_config::Errors;
use weft_protocol::{
    Hop, LinkNews, Links, Manage, Origin, OriginNumber, Route, Show, Table as Shown, To, ToRib,
    serve,
};
use weft_runtime::{Action, Component, Event};
use weft_xrl::{Input, Output, XrlError};

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

/// Hearsay; see the crate's text.
pub(crate) struct Hearsay {
    config: Option<Config>,
    pub(crate) table: Table,
    links: Links,
    to_rib: ToRib,
    origin: Option<OriginNumber>,
    /// When everything was told last, and is told next.
    told: Option<Instant>,
    next: Option<Instant>,
    counters: Counters<Activity>,
}

impl Default for Hearsay {
    fn default() -> Self {
        Self {
            config: None,
            table: Table::default(),
            links: Links::new(2, GROUP.into()),
            to_rib: ToRib::new(1),
            origin: None,
            told: None,
            next: None,
            counters: Counters::new(),
        }
    }
}

impl Hearsay {
    /// Everything is to be told soon.
    fn soon(&mut self, now: Instant) {
        let soon = self.told.map_or(now, |told| now.max(told + PAUSE));
        self.next = Some(self.next.map_or(soon, |next| next.min(soon)));
    }

    /// What has happened on the links.
    fn linked(&mut self, now: Instant) {
        for news in self.links.take_news() {
            match news {
                LinkNews::There(link) | LinkNews::Gone(link) => {
                    if let Some(config) = &self.config {
                        self.table.lose(config, |one| one.0 == link);
                    }
                }
                LinkNews::Opened(_) => self.soon(now),
                LinkNews::Closed(_) => {}
                LinkNews::Packet { link, from, bytes } => self.heard(now, link, from, &bytes),
            }
        }
    }

    /// Hears a neighbour.
    fn heard(&mut self, now: Instant, index: u32, from: SocketAddr, bytes: &[u8]) {
        let (Some(link), Some(config)) = (self.links.get(index), &self.config) else { return };
        let (Some(IpNet::V4(own)), SocketAddr::V4(from)) = (link.addresses.first(), from) else {
            return;
        };
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
        let open = self.links.iter().filter(|(_, link)| link.mtu.is_some());
        for index in open.map(|(index, _)| index).collect::<Vec<_>>() {
            let heard = self.table.neighbours.keys();
            let heard = heard.filter(|(link, _)| *link == index).map(|(_, address)| *address);
            let routes = self.table.told(index, config);
            let hello = Hello { hold, heard: heard.collect(), routes };
            for bytes in hello.write() {
                self.counters.add(Activity::Sent, 1);
                self.links.send(index, GROUP.into(), bytes, out);
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
        self.to_rib.tell(true, out);
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
            self.to_rib.wait(now + config.hello * HOLD);
        }
        let before = self.config.iter().flat_map(|before| &before.networks);
        let gone = before.filter(|net| !config.networks.contains(net)).copied();
        self.table.settle_all(gone, &config);
        self.links.want(config.interfaces.iter().cloned(), out);
        self.config = Some(config);
        self.soon(now);
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

    fn table(
        &self,
        _: Instant,
        view: &str,
        from: Option<&str>,
        at_most: usize,
    ) -> Result<Shown, XrlError> {
        if view == "neighbours" {
            let columns = &["address", "interface", "hears-us", "routes"];
            let rows = self.table.neighbours.iter().map(|((link, address), one)| {
                json!({ "address": address.to_string(), "interface": self.links.name(*link),
                    "hears-us": one.hears_us.is_some(), "routes": one.routes.len() })
            });
            return Ok(Shown { columns, rows: rows.collect(), next: None });
        }
        let wrong = |_| XrlError::bad_args("the page before says behind which prefix to go on");
        let from: Option<Ipv4Net> = from.map(str::parse).transpose().map_err(wrong)?;
        let rows = self.table.best.iter().filter(|(net, _)| from.is_none_or(|from| **net > from));
        let columns = &["prefix", "hops", "tag", "gateway", "interface"];
        Ok(Shown::page(columns, rows, at_most, |net, ((link, gateway), told)| -> Value {
            json!({ "prefix": net.to_string(), "hops": told.hops, "tag": told.tag,
                "gateway": gateway.to_string(), "interface": self.links.name(*link) })
        }))
    }
}

impl Component for Hearsay {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        let input = self.to_rib.hear(now, input, out);
        let input = input.and_then(|input| self.links.hear(now, input, out));
        let input = input.and_then(|input| serve(self, now, input, out));
        if matches!(input, Some(Input::World(Event::Stop))) {
            self.tell_all(Duration::ZERO, out);
            return out.push(Output::World(Action::Exit { status: 0 }));
        }
        self.linked(now);
        self.tick(now, out);
    }

    fn deadline(&self) -> Option<Instant> {
        [self.to_rib.deadline(), self.links.deadline(), self.next].into_iter().flatten().min()
    }

    fn counters(&self) -> Vec<CounterGroup> {
        vec![CounterGroup::new("hearsay-activity", "what hearsay has done", &self.counters)]
    }
}
