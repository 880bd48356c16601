//! Networks of this router's own: peers are told of them as of what other peers have announced.
//!
//! Reference: RFC 4271 §9.4 (originating BGP routes), §5.1.1 (ORIGIN), §5.1.4 (MED), §5.1.6 and §5.1.7 (aggregates); RFC 9774 (AS_SET); Handley et al. (XORP), §3 and §5.2
//! (route redistribution).
//!
//! The RIB says which of its routes are those. Each becomes a path in the table, of a source that stands for its protocol, and
//! takes part in the decision. It is never told the RIB, which has it already.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use ipnet::IpNet;
use weft_base::Instant;
use weft_protocol::rib::AGGREGATE;
use weft_protocol::{FromRib, Used};
use weft_routing::OriginId;
use weft_routing::ip::{is_destination, split};
use weft_xrl::{Input, Output};

use crate::config::{Config, Network, OwnConfig};
use crate::home::Home;
use crate::policy::{Filter, RouteView};
use crate::routes::attribute_sets::AttributesId;
use crate::routes::decision::Source;
use crate::routes::{Path, Routes};
use crate::wire::{Aggregator, Attributes, NextHop, Origin};

/// Networks that are looked at between two events.
const SLICE: usize = 4096;
/// The numbers of the dialogues with the RIB; 0 and 3 are those of [`ToRib`](crate::to_rib::ToRib).
const DIALOGUES: [u8; 2] = [1, 2];
/// The protocol of a network to which there is no route.
const NO_PROTOCOL: &str = "network";

/// A network as peers are to be told of it, before policy.
struct Wanted<'a> {
    protocol: &'a str,
    distance: u32,
    origin: Origin,
    /// Those of the route.
    metric: Option<u32>,
    tag: u32,
    /// Who has made an aggregate of it, if it is one.
    aggregator: Option<Aggregator>,
    policy: &'a Filter,
}

/// This router's own networks.
pub(crate) struct OwnNetworks {
    /// Routes to networks that are named. When the RIB is new nobody can say who else knows of one, so that it takes longer
    /// until all are there.
    named: FromRib,
    /// Routes of protocols.
    redistributed: FromRib,
    config: OwnConfig,
    home: Home,
    router_id: Ipv4Addr,
    /// By the names of protocols.
    origins: BTreeMap<Rc<str>, OriginId>,
    /// Those that are in the table, and of whom.
    told: BTreeMap<IpNet, OriginId>,
    /// Those to be looked at.
    changed: BTreeSet<IpNet>,
}

impl OwnNetworks {
    /// None.
    pub(crate) fn new() -> Self {
        Self {
            named: FromRib::new(DIALOGUES[0]),
            redistributed: FromRib::new(DIALOGUES[1]),
            config: OwnConfig::default(),
            home: Home::default(),
            router_id: Ipv4Addr::UNSPECIFIED,
            origins: BTreeMap::new(),
            told: BTreeMap::new(),
            changed: BTreeSet::new(),
        }
    }

    /// Takes another configuration.
    pub(crate) fn configure(&mut self, config: Option<&Config>, out: &mut Vec<Output>) {
        let own = config.map(|config| config.own.clone()).unwrap_or_default();
        let (home, router_id) = config
            .map_or((Home::default(), Ipv4Addr::UNSPECIFIED), |one| (one.home, one.router_id));
        if (&own, home, router_id) == (&self.config, self.home, self.router_id) {
            return;
        }
        (self.config, self.home, self.router_id) = (own, home, router_id);
        let OwnConfig { networks, redistribute } = &self.config;
        self.named.want(BTreeSet::new(), networks.keys().copied().collect(), out);
        self.redistributed.want(redistribute.keys().cloned().collect(), BTreeSet::new(), out);
        self.redistributed.tell_again();
        self.changed.extend(self.told.keys().chain(networks.keys()));
    }

    /// Hears an input; gives it back if it is not for this alone.
    pub(crate) fn hear(
        &mut self,
        now: Instant,
        input: Input,
        out: &mut Vec<Output>,
    ) -> Option<Input> {
        let input = self.named.hear(now, input, out);
        let input = input.and_then(|input| self.redistributed.hear(now, input, out));
        self.changed.append(&mut self.named.take_changed());
        self.changed.append(&mut self.redistributed.take_changed());
        input
    }

    /// When something is to be done at the latest.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        [&self.named, &self.redistributed].into_iter().filter_map(FromRib::deadline).min()
    }

    /// Whether networks are to be looked at.
    pub(crate) fn has_work(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Whether all that there are are in the table.
    pub(crate) fn is_complete(&self) -> bool {
        let is_there =
            |(net, network): (&IpNet, &Network)| network.always || self.named.get(net).is_some();
        let has_named = self.named.is_complete() || self.config.networks.iter().all(is_there);
        has_named && self.redistributed.is_complete() && !self.has_work()
    }

    /// The metric of the RIB's route to a network of this router's own.
    pub(crate) fn metric(&self, net: &IpNet) -> Option<u32> {
        self.used(net).map(|used| used.metric)
    }

    fn used(&self, net: &IpNet) -> Option<&Used> {
        self.named.get(net).or_else(|| self.redistributed.get(net))
    }

    /// Puts some of what has changed into the table.
    pub(crate) fn settle(&mut self, routes: &mut Routes) {
        for _ in 0..SLICE {
            let Some(net) = self.changed.pop_first() else { break };
            self.settle_one(net, routes);
        }
    }

    fn settle_one(&mut self, net: IpNet, routes: &mut Routes) {
        let (version, prefix) = split(net);
        let wanted = self.wanted(&net).map(|wanted| {
            let received = routes.intern(&wanted.attributes(&net));
            let accepted = self.filter(&wanted, received, net, routes);
            (Source::own(wanted.protocol, wanted.distance), Path { received, accepted })
        });
        let now = wanted.map(|(source, path)| {
            let origin = self.origin(source, routes);
            routes.announce((version, &prefix), origin, 0, path);
            routes.give(path.received);
            routes.give(path.accepted);
            origin
        });
        let before = match now {
            Some(origin) => self.told.insert(net, origin),
            None => self.told.remove(&net),
        };
        if let Some(before) = before.filter(|before| now != Some(*before)) {
            routes.withdraw((version, &prefix), before, 0);
        }
    }

    /// How peers are to be told of a network, if they are.
    fn wanted(&self, net: &IpNet) -> Option<Wanted<'_>> {
        let used = self.used(net);
        let network = self.config.networks.get(net);
        let (origin, policy) = match (network, used) {
            (Some(network), used) if used.is_some() || network.always => {
                (Origin::Igp, &network.policy)
            }
            (None, Some(used)) if is_destination(net) => {
                (Origin::Incomplete, self.config.redistribute.get(&used.protocol)?)
            }
            _ => return None,
        };
        let protocol = used.map_or(NO_PROTOCOL, |used| &used.protocol);
        let distance = used.map_or(0, |used| used.distance);
        let metric = used.map(|used| used.metric);
        let tag = used.map_or(0, |used| used.tag);
        let this =
            Aggregator { autonomous_system: self.home.outside(), identifier: self.router_id };
        let aggregator = Some(this).filter(|_| protocol == AGGREGATE);
        Some(Wanted { protocol, distance, origin, metric, tag, aggregator, policy })
    }

    /// What policy makes of it; the set has one use more.
    fn filter(
        &self,
        wanted: &Wanted<'_>,
        received: AttributesId,
        net: IpNet,
        routes: &mut Routes,
    ) -> AttributesId {
        let attributes = &routes.sets.get(received).unpack();
        let view = RouteView {
            attributes,
            prefix: Some(net),
            protocol: wanted.protocol,
            metric: wanted.metric,
            from: None,
            to: None,
            own: (here(&net), self.home.outside()),
            validity: None,
        };
        match wanted.policy.run(&view) {
            None => AttributesId::NONE,
            Some(changes) => {
                let changed = changes.apply(attributes);
                routes.intern(&changed)
            }
        }
    }

    /// The source that stands for a protocol.
    fn origin(&mut self, source: Source, routes: &mut Routes) -> OriginId {
        let protocol = source.protocol().0;
        match self.origins.get(protocol) {
            Some(origin) => {
                routes.set_source(*origin, source);
                *origin
            }
            None => {
                let protocol = protocol.into();
                let origin = routes.add_source(source);
                self.origins.insert(protocol, origin);
                origin
            }
        }
    }
}

impl Wanted<'_> {
    fn attributes(&self, net: &IpNet) -> Attributes {
        let next_hop = match here(net) {
            IpAddr::V4(address) => NextHop::V4(address),
            IpAddr::V6(global) => NextHop::V6 { global, link_local: None },
        };
        let mut attributes = Attributes {
            origin: self.origin,
            next_hop: Some(next_hop),
            med: self.metric,
            // Through which systems its parts have come nobody hears (RFC 4271 §5.1.6; sets are not for that any more, RFC 9774).
            atomic_aggregate: self.aggregator.is_some(),
            ..Attributes::default()
        };
        attributes.change_rare(|rare| (rare.tag, rare.aggregator) = (self.tag, self.aggregator));
        attributes
    }
}

/// What stands for this router as the next hop to a network.
fn here(net: &IpNet) -> IpAddr {
    match net {
        IpNet::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpNet::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}
