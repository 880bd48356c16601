//! Static routes: those that the configuration says.
//!
//! Reference: Handley et al. (XORP), §3 (static routes are a protocol like any other to the RIB).
//!
//! A route leads to those of its next hops that can be reached; while there are none, to the first of its backups of
//! which that is true. A next hop whose interface is named can be reached while that interface can carry packets, and so can
//! one that is on a link; any other one while the RIB knows how: it says so, and when that changes. The RIB is told on which
//! link a next hop is, so that other routes may lead to what a static one does, as those of BGP to a router's own address.

#![forbid(unsafe_code)]

#[allow(unreachable_pub, reason = "what a trait's type is must be as visible as the trait")]
mod config;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use config::{Alternative, Choice, Config, DISTANCE, NextHop, SCHEMA, STATEMENT, StaticRoute};
use ipnet::IpNet;
use serde_json::{Value, json};
use weft_base::Instant;
use weft_config::Errors;
use weft_protocol::{
    Hop, Manage, Origin, OriginNumber, Protocol, Reach, Route, Show, Table, To, ToRib, serve,
};
use weft_runtime::{Action, Component, Event, InterfaceChange};
use weft_xrl::{Input, Output, XrlError};

/// The protocol, as the binary knows it.
pub const PROTOCOL: Protocol = Protocol {
    name: config::STATEMENT,
    schema: config::SCHEMA,
    reads: &[],
    group: None,
    variables: &[],
    make: |_| Box::<Static>::default(),
};

/// Static routes; see the crate's text.
pub struct Static {
    /// Whether there was a configuration.
    is_configured: bool,
    config: Config,
    /// Interfaces that can carry packets, by their names.
    running: BTreeMap<String, u32>,
    /// This router's addresses on them, with the lengths of their networks, by their numbers.
    addresses: BTreeMap<u32, Vec<IpNet>>,
    /// Whether all interfaces that there are have been told.
    knows_interfaces: bool,
    to_rib: ToRib,
    reach: Reach,
    /// By their distances.
    origins: BTreeMap<u32, OriginNumber>,
}

impl Default for Static {
    fn default() -> Self {
        Self::new()
    }
}

impl Static {
    /// No routes yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            is_configured: false,
            config: Config::new(),
            running: BTreeMap::new(),
            addresses: BTreeMap::new(),
            knows_interfaces: false,
            to_rib: ToRib::new(1),
            reach: Reach::new(2),
            origins: BTreeMap::new(),
        }
    }

    /// What a next hop is now; none if it cannot be reached.
    fn hop(&self, hop: &NextHop) -> Option<Hop> {
        let NextHop { gateway, weight, .. } = *hop;
        let interface = match &hop.interface {
            Some(name) => Some(*self.running.get(name)?),
            None => {
                let link = self.link_to(&gateway?);
                if link.is_none() {
                    self.reach.of(&gateway?)?;
                }
                link
            }
        };
        Some(Hop { gateway, interface, weight })
    }

    /// The link on which an address is: that with the smallest network, of several the one with the lowest number.
    fn link_to(&self, address: &IpAddr) -> Option<u32> {
        let all =
            self.addresses.iter().flat_map(|(link, nets)| nets.iter().map(|net| (*link, net)));
        let on_link = all.filter(|(_, net)| net.contains(address) && net.addr() != *address);
        on_link.min_by_key(|(link, net)| (Reverse(net.prefix_len()), *link)).map(|(link, _)| link)
    }

    /// Which of its alternatives a route is now, and where it leads.
    fn choose<'a>(&self, route: &'a StaticRoute) -> Option<(usize, &'a Alternative, To)> {
        let mut all = route.alternatives.iter().enumerate();
        all.find_map(|(place, one)| match &one.choice {
            Choice::Nowhere(to) => Some((place, one, to.clone())),
            Choice::Hops(hops) => {
                let hops: Vec<_> = hops.iter().filter_map(|hop| self.hop(hop)).collect();
                (!hops.is_empty()).then_some((place, one, To::Hops(hops)))
            }
        })
    }

    /// Makes each route what it is now.
    fn settle(&mut self) {
        let chosen: Vec<_> = self
            .config
            .iter()
            .map(|(net, route)| {
                let chosen = self.choose(route).map(|(_, one, to)| {
                    let Alternative { metric, tag, .. } = *one;
                    (self.origins[&route.distance], Route { to, metric, tag })
                });
                (*net, chosen)
            })
            .collect();
        for (net, chosen) in chosen {
            match chosen {
                Some((origin, route)) => self.to_rib.set(net, origin, route),
                None => self.to_rib.withdraw(&net),
            }
        }
    }

    /// The origin of routes with a distance, which has a name of its own unless it is the usual one.
    fn open(&mut self, distance: u32, out: &mut Vec<Output>) {
        let protocol = match distance {
            DISTANCE => STATEMENT.to_owned(),
            other => format!("{STATEMENT}-{other}"),
        };
        let number = self.to_rib.open(Origin { protocol, external: false, distance }, out);
        self.origins.insert(distance, number);
    }

    /// Something about an interface is different.
    fn interface(&mut self, change: InterfaceChange) {
        let before = (self.running.clone(), self.addresses.clone());
        match change {
            InterfaceChange::Added(one) | InterfaceChange::Changed(one) => {
                self.forget(one.index);
                if one.running {
                    let net = |ip, length| IpNet::new(ip, length).ok();
                    let nets =
                        one.addresses.iter().filter_map(|one| net(one.ip, one.prefix_length));
                    self.addresses.insert(one.index, nets.collect());
                    self.running.insert(one.name, one.index);
                }
            }
            InterfaceChange::Removed { index, .. } => self.forget(index),
            InterfaceChange::Complete => self.knows_interfaces = true,
        }
        if (&before.0, &before.1) != (&self.running, &self.addresses) {
            self.settle();
        }
    }

    fn forget(&mut self, index: u32) {
        self.running.retain(|_, one| *one != index);
        self.addresses.remove(&index);
    }

    /// Whether it is known of all next hops whether they are reached.
    fn has_found_all(&self) -> bool {
        self.is_configured && self.knows_interfaces && self.reach.is_complete()
    }

    fn row(&self, net: &IpNet, route: &StaticRoute) -> Value {
        let used = self.choose(route);
        let state = match &used {
            None => "unreachable next hops".to_owned(),
            Some((0, ..)) => "used".to_owned(),
            Some((place, ..)) => format!("backup {place}"),
        };
        json!({
            "prefix": net.to_string(), "distance": route.distance,
            "metric": used.as_ref().map(|(_, one, _)| one.metric),
            "tag": used.as_ref().map(|(_, one, _)| one.tag),
            "to": used.map(|(_, _, to)| self.words(&to)), "state": state,
        })
    }

    /// Where a route leads, in words.
    fn words(&self, to: &To) -> String {
        let hops = match to {
            To::Blackhole => return "blackhole".to_owned(),
            To::Unreachable => return "unreachable".to_owned(),
            To::Prohibit => return "prohibit".to_owned(),
            To::Hops(hops) => hops,
        };
        let name = |index: u32| self.running.iter().find(|(_, one)| **one == index);
        let hop = |hop: &Hop| {
            let gateway = hop.gateway.map(|gateway| format!("via {gateway}"));
            let interface =
                hop.interface.and_then(name).map(|(name, _)| format!("interface {name}"));
            gateway.into_iter().chain(interface).collect::<Vec<_>>().join(" ")
        };
        hops.iter().map(hop).collect::<Vec<_>>().join(", ")
    }
}

impl Manage for Static {
    type Config = Config;

    fn schema(&self) -> &'static str {
        SCHEMA
    }

    fn read(&self, source: &str, text: &str) -> Result<Config, Errors> {
        config::read(source, text)
    }

    fn configure(&mut self, _: Instant, config: Config, out: &mut Vec<Output>) {
        let gone: Vec<_> =
            self.config.keys().filter(|net| !config.contains_key(net)).copied().collect();
        gone.iter().for_each(|net| self.to_rib.withdraw(net));
        // The usual one is there even without routes: so earlier routes go.
        let distances: BTreeSet<_> =
            config.values().map(|route| route.distance).chain([DISTANCE]).collect();
        distances.into_iter().for_each(|distance| self.open(distance, out));
        let alternatives = config.values().flat_map(|route| &route.alternatives);
        let hops = alternatives.filter_map(|one| match &one.choice {
            Choice::Hops(hops) => Some(hops),
            Choice::Nowhere(_) => None,
        });
        let far = hops.flatten().filter(|hop| hop.interface.is_none());
        let wanted: BTreeSet<IpAddr> = far.filter_map(|hop| hop.gateway).collect();
        self.reach.want(wanted);
        self.config = config;
        self.is_configured = true;
        self.settle();
    }

    fn status(&self) -> (bool, String) {
        let rib = if self.to_rib.is_there() { "" } else { "; waits for the RIB" };
        let used = self.to_rib.len();
        (self.is_configured, format!("{used} of {} routes are used{rib}", self.config.len()))
    }
}

impl Show for Static {
    const VIEWS: &'static [(&'static str, &'static str)] =
        &[("routes", "the routes of the configuration, and which of their ways are used")];

    fn table(
        &self,
        _: Instant,
        _: &str,
        from: Option<&str>,
        at_most: usize,
    ) -> Result<Table, XrlError> {
        let columns = &["prefix", "distance", "metric", "tag", "to", "state"];
        let wrong = |_| XrlError::bad_args("the page before says behind which prefix to go on");
        let from: Option<IpNet> = from.map(str::parse).transpose().map_err(wrong)?;
        let rows = self.config.iter().filter(|(net, _)| from.is_none_or(|from| **net > from));
        Ok(Table::page(columns, rows, at_most, |net, route| self.row(net, route)))
    }
}

impl Component for Static {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        let input = self.to_rib.hear(now, input, out);
        let input = input.and_then(|input| self.reach.hear(now, input, out));
        match input.and_then(|input| serve(self, now, input, out)) {
            Some(Input::World(Event::Start)) => out.push(Output::World(Action::WatchInterfaces)),
            Some(Input::World(Event::Interface { change })) => self.interface(change),
            Some(Input::World(Event::Stop)) => out.push(Output::World(Action::Exit { status: 0 })),
            _ => {}
        }
        if self.reach.take_changed() {
            self.settle();
        }
        self.reach.ask(out);
        self.to_rib.tell(self.has_found_all(), out);
    }

    fn deadline(&self) -> Option<Instant> {
        self.to_rib.deadline().into_iter().chain(self.reach.deadline()).min()
    }
}
