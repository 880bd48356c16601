//! The process: interfaces, the FEA's relays, the RIB and operators, and what passes between them.
//!
//! Reference: Handley et al. (XORP), §3, §7.

use std::collections::BTreeSet;

use weft_base::{CounterGroup, Instant, Random};
use weft_config::Errors;
use weft_protocol::{
    FromRib, Hop, LinkNews, Links, Manage, Origin, OriginNumber, To, ToRib, serve,
};
use weft_runtime::{Action, Component, Event};
use weft_xrl::{Input, Output};

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
    pub(crate) links: Links,
    origin: Option<OriginNumber>,
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
            links: Links::new(3, version.group()),
            origin: None,
            is_configured: false,
        }
    }

    /// Tells the speaker what a link is.
    fn set(&mut self, now: Instant, index: u32) {
        let Some(there) = self.links.get(index) else { return };
        let Some(config) = self.speaker.config.links.get(&there.name).cloned() else { return };
        let weft_protocol::Link { name, addresses, mtu } = there.clone();
        let link = Link { name, config, addresses, mtu };
        if self.speaker.links.get(&index) != Some(&link) {
            self.speaker.set_link(now, index, link);
        }
    }

    /// What has happened on the links.
    fn linked(&mut self, now: Instant, sent: &mut Vec<Datagram>) {
        for news in self.links.take_news() {
            match news {
                LinkNews::There(link) => self.set(now, link),
                LinkNews::Gone(link) => self.speaker.remove_link(now, link),
                LinkNews::Opened(link) => {
                    let mtu = self.links.get(link).and_then(|link| link.mtu);
                    mtu.into_iter().for_each(|mtu| self.speaker.opened(now, link, mtu, sent));
                }
                LinkNews::Closed(link) => self.speaker.closed(link),
                LinkNews::Packet { link, from, bytes } => {
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
    fn tell(&mut self, out: &mut Vec<Output>) {
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
        self.to_rib.tell(self.is_configured, out);
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
            self.to_rib.wait(now + config.timers.update + config.timers.update / 2);
        }
        self.is_configured = true;
        let is_other = self.speaker.config.redistribute != config.redistribute;
        self.speaker.configure(config);
        if is_other {
            // In another way, or not at all any more.
            self.from_rib.tell_again();
        }
        self.from_rib.want(others, BTreeSet::new(), out);
        self.links.want(self.speaker.config.links.keys().cloned(), out);
        // Those that stay may have other settings.
        let links: Vec<_> = self.links.iter().map(|(index, _)| index).collect();
        links.into_iter().for_each(|index| self.set(now, index));
    }

    fn status(&self) -> (bool, String) {
        let open = self.links.iter().filter(|(_, link)| link.mtu.is_some()).count();
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
        let input = input.and_then(|input| self.links.hear(now, input, out));
        let mut sent = Vec::new();
        match input.and_then(|input| serve(self, now, input, out)) {
            Some(Input::World(Event::Start)) => self.speaker.start(now),
            Some(Input::World(Event::Stop)) => {
                self.speaker.stop(now, &mut sent);
                self.transmit(sent, out);
                return out.push(Output::World(Action::Exit { status: 0 }));
            }
            _ => {}
        }
        self.linked(now, &mut sent);
        self.redistribute(now);
        self.speaker.tick(now, &mut sent);
        self.transmit(sent, out);
        self.tell(out);
    }

    fn deadline(&self) -> Option<Instant> {
        let ways = [self.to_rib.deadline(), self.from_rib.deadline(), self.links.deadline()];
        ways.into_iter().chain([self.speaker.deadline()]).flatten().min()
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
            self.links.send(link, to, bytes, out);
        }
    }
}
