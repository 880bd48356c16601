//! The process: interfaces, the FEA's relays, the RIB and operators, and what passes between them.
//!
//! Reference: Handley et al. (XORP), §3, §7.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use weft_base::{CounterGroup, Instant, Random};
use weft_config::Errors;
use weft_protocol::{
    FromRib, Hop, Manage, Origin, OriginNumber, RelayNews, Relays, To, ToRib, manage, show,
};
use weft_runtime::{
    Action, Component, Event, Interface as NetworkInterface, InterfaceChange, Level,
};
use weft_xrl::{Input, Output, configurable};

use crate::Version;
use crate::config::{self, Config};
use crate::policy;
use crate::speaker::{Datagram, Link, Speaker};
use crate::table::{Route, Source};

/// RIP version 2, or RIPng; see the crate's text.
pub struct Rip {
    pub(crate) version: Version,
    pub(crate) speaker: Speaker,
    to_rib: ToRib,
    from_rib: FromRib,
    relays: Relays,
    origin: Option<OriginNumber>,
    /// All interfaces that there are.
    pub(crate) known: BTreeMap<u32, NetworkInterface>,
    /// Until when routes of neighbours are waited for, before the RIB forgets those of an earlier life.
    patience: Option<Instant>,
    is_configured: bool,
}

impl Rip {
    /// One without a configuration. What is random follows from `random`; sequence numbers of digests begin at
    /// `epoch`, the seconds of the wall clock.
    #[must_use]
    pub fn new(version: Version, random: Random, epoch: u32) -> Self {
        Self {
            version,
            speaker: Speaker::new(version, random, epoch),
            to_rib: ToRib::new(1),
            from_rib: FromRib::new(2),
            relays: Relays::new(3),
            origin: None,
            known: BTreeMap::new(),
            patience: None,
            is_configured: false,
        }
    }

    /// What an interface is to the protocol; none if it is not spoken there now.
    fn link(&self, interface: &NetworkInterface) -> Option<Link> {
        let config = self.speaker.config.links.get(&interface.name)?.clone();
        let of_version = interface.addresses.iter().filter(|one| self.version.is_of(&one.ip));
        let addresses: Vec<_> =
            of_version.filter_map(|one| IpNet::new(one.ip, one.prefix_length).ok()).collect();
        // RIPng speaks from link-local addresses (RFC 2080 §2.5.1).
        let speaks = addresses.iter().any(|one| match one.addr() {
            IpAddr::V4(_) => true,
            IpAddr::V6(address) => address.is_unicast_link_local(),
        });
        let before = self.speaker.links.get(&interface.index);
        let mtu = before.filter(|before| before.name == interface.name).and_then(|one| one.mtu);
        let name = interface.name.clone();
        (interface.running && speaks).then_some(Link { name, config, addresses, mtu })
    }

    /// Speaks where it is to be spoken, and nowhere else.
    fn settle(&mut self, now: Instant, out: &mut Vec<Output>) {
        let wanted: BTreeMap<_, _> = self
            .known
            .iter()
            .filter_map(|(index, interface)| Some((*index, self.link(interface)?)))
            .collect();
        let links = self.speaker.links.keys();
        let gone: Vec<_> = links.filter(|index| !wanted.contains_key(index)).copied().collect();
        for index in gone {
            self.speaker.remove_link(now, index);
            self.relays.close(index, out);
        }
        for (index, link) in wanted {
            let spec = format!("group:{}:{}", link.name, self.version.group());
            if self.speaker.links.get(&index) != Some(&link) {
                self.speaker.set_link(now, index, link);
            }
            self.relays.open(index, &spec, out);
        }
    }

    fn interface(&mut self, now: Instant, change: InterfaceChange, out: &mut Vec<Output>) {
        match change {
            InterfaceChange::Added(one) | InterfaceChange::Changed(one) => {
                self.known.insert(one.index, one);
            }
            InterfaceChange::Removed { index, .. } => drop(self.known.remove(&index)),
            InterfaceChange::Complete => {}
        }
        self.settle(now, out);
    }

    /// What came by the relays.
    fn relayed(&mut self, now: Instant, sent: &mut Vec<Datagram>, out: &mut Vec<Output>) {
        for news in self.relays.take_news() {
            match news {
                RelayNews::Opened { link, mtu } => self.speaker.opened(now, link, mtu, sent),
                RelayNews::Closed { link, error } => {
                    self.speaker.closed(link);
                    if let Some(error) = error {
                        let name = self.known.get(&link).map_or("", |one| &*one.name);
                        let line = format!("{name}: {error}; it will be tried again");
                        out.push(Output::World(Action::Report { level: Level::Warning, line }));
                    }
                }
                RelayNews::Packet { link, from, bytes } => {
                    self.speaker.received(now, link, from, &bytes, sent);
                }
            }
        }
    }

    /// Takes what other protocols know.
    fn redistribute(&mut self, now: Instant) {
        for net in self.from_rib.take_changed() {
            if !self.version.is_of(&net.addr()) {
                continue;
            }
            let used = self.from_rib.get(&net);
            let settings = &self.speaker.config.redistribute;
            let route = used.and_then(|used| {
                let (metric, tag) = policy::tell(net, used, settings.get(&used.protocol)?)?;
                let (link, gateway) = (used.interface.unwrap_or(0), used.gateway);
                Some(Route { source: Source::Redistributed, link, gateway, metric, tag })
            });
            self.speaker.redistribute(now, net, route);
        }
    }

    /// Tells the RIB what was learned.
    fn tell(&mut self, now: Instant, out: &mut Vec<Output>) {
        let Some(origin) = self.origin else { return };
        for net in self.speaker.table.take_untold() {
            let stored = self.speaker.table.get(&net).filter(|stored| stored.is_valid());
            let learned = stored
                .map(|stored| stored.route)
                .filter(|route| matches!(route.source, Source::Learned { .. }));
            match learned {
                Some(route) => {
                    let hop =
                        Hop { gateway: route.gateway, interface: Some(route.link), weight: 1 };
                    let to = To::Hops(vec![hop]);
                    let (metric, tag) = (route.metric.into(), route.tag.into());
                    self.to_rib.set(net, origin, weft_protocol::Route { to, metric, tag });
                }
                None => self.to_rib.withdraw(&net),
            }
        }
        self.patience = self.patience.filter(|patience| *patience > now);
        self.to_rib.tell(self.is_configured && self.patience.is_none(), out);
    }
}

impl Manage for Rip {
    type Config = Config;

    fn schema(&self) -> &'static str {
        match self.version {
            Version::V2 => config::SCHEMA,
            Version::Ng => config::SCHEMA_NG,
        }
    }

    fn read(&self, source: &str, text: &str) -> Result<Config, Errors> {
        config::read(self.version, source, text)
    }

    fn configure(&mut self, now: Instant, config: Config, out: &mut Vec<Output>) {
        let protocol = self.version.statement().to_owned();
        let own = Origin { protocol: protocol.clone(), external: false, distance: config.distance };
        self.origin = Some(self.to_rib.open(own, out));
        let mut others: BTreeSet<_> = config.redistribute.keys().cloned().collect();
        // Its own routes are told anyway.
        others.remove(&protocol);
        if !self.is_configured {
            // Neighbours are asked when the ports are open; those that do not answer tell everything by themselves.
            self.patience = Some(now + config.timers.update + config.timers.update / 2);
        }
        self.is_configured = true;
        let is_other = self.speaker.config.redistribute != config.redistribute;
        self.speaker.configure(config);
        if is_other {
            // In another way, or not at all any more.
            self.from_rib.tell_again();
        }
        self.from_rib.want(others, BTreeSet::new(), out);
        self.settle(now, out);
    }

    fn status(&self) -> (bool, String) {
        let open = self.speaker.links.keys().filter(|index| self.relays.is_open(**index)).count();
        let wanted = self.speaker.config.links.len();
        let neighbours = self.speaker.neighbours.len();
        let rib = if self.to_rib.is_there() { "" } else { "; waits for the RIB" };
        let detail =
            format!("{neighbours} neighbours; {open} of {wanted} interfaces are in use{rib}");
        (self.is_configured, detail)
    }
}

impl Component for Rip {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        let input = self.to_rib.hear(now, input, out);
        let input = input.and_then(|input| self.from_rib.hear(now, input, out));
        let input = input.and_then(|input| self.relays.hear(now, input, out));
        let mut sent = Vec::new();
        match input {
            Some(Input::World(Event::Start)) => {
                self.speaker.start(now);
                out.push(Output::World(Action::WatchInterfaces));
            }
            Some(Input::World(Event::Interface { change })) => self.interface(now, change, out),
            Some(Input::World(Event::Stop)) => {
                self.speaker.stop(now, &mut sent);
                self.transmit(sent, out);
                return out.push(Output::World(Action::Exit { status: 0 }));
            }
            Some(Input::Called(called)) => match called.interface.name {
                name if name == configurable::INTERFACE.name => manage(self, now, called, out),
                _ => out.push(show(self, called)),
            },
            _ => {}
        }
        self.relayed(now, &mut sent, out);
        self.redistribute(now);
        self.speaker.tick(now, &mut sent);
        self.transmit(sent, out);
        self.tell(now, out);
    }

    fn deadline(&self) -> Option<Instant> {
        let ways = [self.to_rib.deadline(), self.from_rib.deadline(), self.relays.deadline()];
        let own = [self.speaker.deadline(), self.patience];
        ways.into_iter().chain(own).flatten().min()
    }

    fn counters(&self) -> Vec<CounterGroup> {
        let name = match self.version {
            Version::V2 => "rip-activity",
            Version::Ng => "ripng-activity",
        };
        vec![CounterGroup::new(name, "what RIP has done", &self.speaker.counters)]
    }
}

impl Rip {
    fn transmit(&mut self, sent: Vec<Datagram>, out: &mut Vec<Output>) {
        for Datagram { link, to, bytes } in sent {
            self.relays.send(link, to, bytes, out);
        }
    }
}
