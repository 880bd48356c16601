//! Routes go in as UPDATEs and come out as UPDATEs: what each peer believes in the end is compared with a naive twin,
//! whatever peers come, go, and cannot take more meanwhile.

mod cohorts;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use ipnet::{IpNet, Ipv4Net};
use proptest::prelude::*;
use weft_base::{KeyedHash, Random};
use weft_routing::ip::Version;
use weft_routing::{BitString, OriginId, Prefix};

use crate::fanout::{Fanout, Sending, TOGETHER};
use crate::home::Home;
use crate::incoming::Announcer;
use crate::policy::Filter;
use crate::routes::Routes;
use crate::routes::decision::Source;
use crate::routes::export::Audience;
use crate::routes::next_hops::{Due, Reached};
use crate::wire::{
    AsPath, Attributes, Context, Cutter, Family, MessageType, Neighbour, NextHop, RefreshKind,
    RouteRefresh, Update, UpdateEncoder, withdraw,
};

const LOCAL_AS: u32 = 65000;
/// The last three are in this router's own system.
const PEERS: [u32; 6] = [65001, 65002, 65002, LOCAL_AS, LOCAL_AS, LOCAL_AS];
/// These are told all paths: an external one, and a client.
const HEAR_PATHS: [usize; 2] = [2, 4];
/// These know what it means that routes live long.
const KNOW: [usize; 4] = [0, 2, 3, 5];
/// These are clients of this router's.
const CLIENTS: [usize; 2] = [4, 5];

/// What a peer announces: how long the path is behind its own system, the MED, the preference, communities, and whether it
/// lives long since the peer is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Announced {
    length: u8,
    med: u8,
    preference: u8,
    community: bool,
    no_llgr: bool,
    is_stale: bool,
}

#[derive(Clone, Debug)]
enum Step {
    Announce {
        peer: usize,
        net: u8,
        what: Announced,
    },
    Withdraw {
        peer: usize,
        net: u8,
    },
    /// The session ends.
    Down(usize),
    /// The session ends, and routes live long.
    Away(usize),
    Up(usize),
    Congested(usize),
    Drained(usize),
    /// A next hop is reached, or not.
    Metric(usize, Option<u32>),
    /// Other routes of a peer are taken.
    Import(usize, usize),
    /// A peer is told other routes.
    Export(usize, usize),
    /// A peer wants to hear everything again.
    Again(usize),
    Work,
    Tell,
}

fn steps(with_policies: bool) -> impl Strategy<Value = Vec<Step>> {
    let peer = 0usize..PEERS.len();
    let rare = prop::bool::weighted(0.1);
    let what = (0u8..3, 0u8..3, 0u8..2, rare, rare).prop_map(
        |(length, med, preference, community, no_llgr)| {
            let is_stale = false;
            Announced { length, med, preference, community, no_llgr, is_stale }
        },
    );
    let step = prop_oneof![
        10 => (peer.clone(), 0u8..10, what)
            .prop_map(|(peer, net, what)| Step::Announce { peer, net, what }),
        4 => (peer.clone(), 0u8..10).prop_map(|(peer, net)| Step::Withdraw { peer, net }),
        1 => peer.clone().prop_map(Step::Down),
        2 => peer.clone().prop_map(Step::Up),
        1 => peer.clone().prop_map(Step::Congested),
        1 => peer.clone().prop_map(Step::Drained),
        1 => (peer.clone(), prop::option::weighted(0.8, 0u32..3))
            .prop_map(|(peer, metric)| Step::Metric(peer, metric)),
        1 => peer.clone().prop_map(Step::Again),
        3 => Just(Step::Work),
        6 => Just(Step::Tell),
    ];
    let peer = 0usize..PEERS.len();
    let change = prop_oneof![
        (peer.clone(), 0..FILTERS).prop_map(|(peer, which)| Step::Import(peer, which)),
        (peer, 0..FILTERS).prop_map(|(peer, which)| Step::Export(peer, which)),
    ];
    let away = (0usize..PEERS.len()).prop_map(Step::Away);
    let step = match with_policies {
        true => prop_oneof![6 => step, 1 => change].boxed(),
        false => prop_oneof![30 => step, 1 => away].boxed(),
    };
    prop::collection::vec(step, 1..150)
}

fn net(number: u8) -> Prefix {
    Ipv4Net::new(Ipv4Addr::new(203, 0, number, 0), 24).unwrap().prefix()
}

fn address(peer: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, 10 + peer as u8)
}

fn context(peer: usize) -> Context {
    let is_internal = PEERS[peer] == LOCAL_AS;
    let neighbour = if is_internal { Neighbour::Internal } else { Neighbour::External };
    let paths = HEAR_PATHS.contains(&peer).then_some(Family::IPV4_UNICAST);
    Context { add_path_send: paths.into_iter().collect(), ..Context::new(neighbour) }
}

const NO_EXPORT: u32 = 0xffff_ff01;
const LLGR_STALE: u32 = 0xffff_0006;
const NO_LLGR: u32 = 0xffff_0007;

fn attributes(peer: usize, what: Announced) -> Attributes {
    let external = (PEERS[peer] != LOCAL_AS).then_some(PEERS[peer]);
    let path: Vec<_> =
        external.into_iter().chain((0..u32::from(what.length)).map(|one| 100 + one)).collect();
    let communities =
        [(what.community, NO_EXPORT), (what.no_llgr, NO_LLGR), (what.is_stale, LLGR_STALE)];
    Attributes {
        as_path: AsPath::from_sequence(&path),
        next_hop: Some(NextHop::V4(address(peer))),
        med: Some(what.med.into()),
        local_pref: external.is_none().then_some(100 + u32::from(what.preference)),
        communities: communities.iter().filter(|(has, _)| *has).map(|(_, one)| *one).collect(),
        ..Attributes::default()
    }
}

/// Everything under test, and what each peer has heard.
struct World {
    routes: Routes,
    fanout: Fanout,
    origins: Vec<OriginId>,
    /// By prefix and path identifier.
    heard: Vec<BTreeMap<(Prefix, u32), Attributes>>,
    /// What each has not heard again that is told everything again.
    unheard: Vec<Option<BTreeSet<(Prefix, u32)>>>,
    up: [bool; PEERS.len()],
    congested: BTreeSet<usize>,
    metrics: [Option<u32>; PEERS.len()],
    /// Which routes are taken from peers, and told them.
    filters: [(Filter, Filter); PEERS.len()],
    /// What each peer has announced.
    told: BTreeMap<(usize, u8), Announced>,
}

impl World {
    fn new() -> Self {
        let mut routes = Routes::new(KeyedHash::new(&mut Random::from_seed(1)));
        let origins = (0..PEERS.len()).map(|peer| routes.add_source(source(peer))).collect();
        Self {
            routes,
            fanout: Fanout::new(Random::from_seed(1)),
            origins,
            heard: vec![BTreeMap::new(); PEERS.len()],
            unheard: vec![None; PEERS.len()],
            up: [false; PEERS.len()],
            congested: BTreeSet::new(),
            metrics: [Some(0); PEERS.len()],
            filters: std::array::from_fn(|_| (Filter::All, Filter::All)),
            told: BTreeMap::new(),
        }
    }

    fn audience(&self, peer: usize) -> Audience {
        let export = self.filters[peer].1.clone();
        let source = source(peer);
        let party = source.party().filter(|_| export.asks_for_peer());
        Audience {
            neighbour: source.neighbour,
            is_client: CLIENTS.contains(&peer),
            home: Home::alone(LOCAL_AS),
            cluster_id: Ipv4Addr::new(10, 0, 0, 1),
            next_hop_self: false,
            local_address: [10, 0, 0, 1].into(),
            address_beside: None,
            role: None,
            is_closing: false,
            knows_long_lived: KNOW.contains(&peer),
            is_partial: false,
            export,
            interval: Duration::ZERO,
            peer: party,
        }
    }

    /// The RIB answers what it is asked.
    fn answer(&mut self) {
        for address in self.routes.next_hops.take_wanted() {
            let is_peer = |peer: &usize| IpAddr::from(self::address(*peer)) == address;
            let metric = self.metrics[(0..PEERS.len()).find(is_peer).unwrap()];
            let reached = Reached { metric, is_neighbour: true };
            let mut due = Due::default();
            self.routes.next_hops.told(IpNet::from(address), reached, &mut due);
            self.routes.decide(due);
        }
    }

    fn announcer(&self, peer: usize) -> Announcer {
        Announcer {
            origin: self.origins[peer],
            context: context(peer),
            remote_as: PEERS[peer],
            home: Home::alone(LOCAL_AS),
            router_id: Ipv4Addr::new(10, 0, 0, 1),
            cluster_id: Ipv4Addr::new(10, 0, 0, 1),
            role: None,
            enforce_first_as: true,
            local_address: [10, 0, 0, 1].into(),
            import: self.filters[peer].0.clone(),
        }
    }

    fn take(&mut self, peer: usize, bytes: &[u8]) {
        let announcer = self.announcer(peer);
        for (_, body) in messages(bytes) {
            announcer.take(&body, &mut self.routes).unwrap();
        }
        self.answer();
    }

    fn step(&mut self, step: &Step) {
        let family = Family::IPV4_UNICAST;
        match *step {
            Step::Announce { peer, net: number, what } if self.up[peer] => {
                let attributes = attributes(peer, what);
                let context = Context::new(context(peer).neighbour);
                let encoder = UpdateEncoder::new(&attributes, family, &context).unwrap();
                let mut bytes = Vec::new();
                encoder.all([(0, net(number))], &mut bytes);
                self.take(peer, &bytes);
                self.told.insert((peer, number), what);
            }
            Step::Withdraw { peer, net: number } if self.up[peer] => {
                let mut bytes = Vec::new();
                let context = Context::new(context(peer).neighbour);
                withdraw(family, &context, [(0, net(number))], &mut bytes);
                self.take(peer, &bytes);
                self.told.remove(&(peer, number));
            }
            Step::Down(peer) if self.up[peer] => {
                self.up[peer] = false;
                self.fanout.leave(self.origins[peer], &mut self.routes);
                self.congested.remove(&peer);
                self.routes.table.renew(Version::V4, self.origins[peer]);
                self.routes.table.sweep(Version::V4, self.origins[peer]);
                self.told.retain(|(of, _), _| *of != peer);
                self.heard[peer].clear();
                self.unheard[peer] = None;
            }
            Step::Away(peer) if self.up[peer] => {
                self.up[peer] = false;
                self.fanout.leave(self.origins[peer], &mut self.routes);
                self.congested.remove(&peer);
                self.routes.table.renew(Version::V4, self.origins[peer]);
                self.routes.live_long(Version::V4, self.origins[peer]);
                self.told.retain(|(of, _), what| *of != peer || !what.no_llgr);
                let its = self.told.iter_mut().filter(|((of, _), _)| *of == peer);
                its.for_each(|(_, what)| what.is_stale = true);
                self.heard[peer].clear();
                self.unheard[peer] = None;
            }
            Step::Up(peer) if !self.up[peer] => {
                self.up[peer] = true;
                self.routes.stop_rounds(self.origins[peer]);
                self.routes.table.sweep(Version::V4, self.origins[peer]);
                self.told.retain(|(of, _), _| *of != peer);
                let (audience, context) = (self.audience(peer), context(peer));
                self.fanout.join(
                    self.origins[peer],
                    Version::V4,
                    audience,
                    context,
                    &mut self.routes,
                );
            }
            Step::Congested(peer) if self.up[peer] => {
                self.congested.insert(peer);
                self.fanout.congested(self.origins[peer], &mut self.routes);
            }
            Step::Drained(peer) => {
                self.congested.remove(&peer);
                self.fanout.drained(self.origins[peer], &mut self.routes);
            }
            Step::Metric(peer, metric) => {
                self.metrics[peer] = metric;
                self.routes.next_hops.invalid(&IpNet::from(IpAddr::from(address(peer))));
                self.answer();
            }
            Step::Import(peer, which) => {
                self.filters[peer].0 = filter(which);
                if self.up[peer] {
                    self.routes.refilter(self.announcer(peer));
                    self.answer();
                }
            }
            Step::Export(peer, which) => {
                self.filters[peer].1 = filter(which);
                if self.up[peer] {
                    self.fanout.change(self.origins[peer], self.audience(peer));
                }
            }
            Step::Again(peer) if self.up[peer] => {
                // Some of them know where it begins and ends.
                let is_marked = peer % 2 == 0;
                // And another one of those, if there is one.
                let others = self.origins.get(peer ^ 2);
                let asks = others.into_iter().chain([&self.origins[peer]]).copied().collect();
                self.fanout.tell_again(&asks, Version::V4, is_marked, &mut self.routes);
            }
            Step::Work => {
                self.routes.work();
                self.answer();
            }
            Step::Tell => self.tell(),
            _ => {}
        }
    }

    fn tell(&mut self) {
        for Sending { to, bytes } in self.fanout.tell(&mut self.routes) {
            for origin in to {
                let peer = self.origins.iter().position(|one| *one == origin).unwrap();
                assert!(self.up[peer] && !self.congested.contains(&peer), "{peer} was told");
                self.hear(peer, &bytes);
            }
        }
    }

    fn hear(&mut self, peer: usize, bytes: &[u8]) {
        for (kind, body) in messages(bytes) {
            if kind == MessageType::RouteRefresh {
                self.hear_mark(peer, &body);
                continue;
            }
            let add_path_receive = context(peer).add_path_send;
            let context = Context { add_path_receive, ..context(peer) };
            let update = Update::new_checked(&body, &context).unwrap();
            for (_, nlri) in update.withdrawn() {
                for (path, prefix) in nlri {
                    let known = self.heard[peer].remove(&(prefix, path));
                    assert!(known.is_some(), "{peer} never heard of what is withdrawn");
                }
            }
            let attributes = update.judge(&context).attributes;
            for reach in update.reach() {
                for (path, prefix) in reach.nlri {
                    self.heard[peer].insert((prefix, path), attributes.clone());
                    self.unheard[peer].as_mut().map(|left| left.remove(&(prefix, path)));
                }
            }
        }
    }

    /// A peer is told everything again from here, or up to here: what it has not heard is gone (RFC 7313 §4).
    fn hear_mark(&mut self, peer: usize, body: &[u8]) {
        let known: BTreeSet<_> = self.heard[peer].keys().copied().collect();
        match RouteRefresh::parse(body, true).unwrap().unwrap().kind {
            RefreshKind::Begin => {
                assert_eq!(self.unheard[peer].replace(known), None, "two begin");
            }
            RefreshKind::End => {
                let gone = self.unheard[peer].take().expect("nothing has begun that ends");
                self.heard[peer].retain(|key, _| !gone.contains(key));
            }
            RefreshKind::Request => panic!("nobody asks"),
        }
    }

    /// What a peer must have heard: the attributes of each path, in order.
    fn expected(&self, to: usize) -> BTreeMap<Prefix, Vec<Attributes>> {
        let mut expected = BTreeMap::<_, Vec<_>>::new();
        for number in 0..10 {
            let told = (0..PEERS.len()).filter(|peer| self.metrics[*peer].is_some());
            let told = told.filter_map(|peer| Some((peer, *self.told.get(&(peer, number))?)));
            let told: Vec<_> = match HEAR_PATHS.contains(&to) {
                true => told.collect(),
                false => best(told.collect(), &self.metrics).into_iter().collect(),
            };
            for (from, what) in told.into_iter().filter(|(from, _)| *from != to) {
                let told = self.audience(to).tell(&attributes(from, what), &source(from), None);
                if let Some(told) = told {
                    expected.entry(net(number)).or_default().push(told);
                }
            }
        }
        expected.values_mut().for_each(|all| sort(all));
        expected
    }

    /// Among which next hops packets to a network are shared out, of two at most.
    fn ways(&self, net: u8) -> (Vec<IpAddr>, Vec<IpAddr>) {
        let Some(number) = self.routes.table.number(Version::V4, &self::net(net)) else {
            return Default::default();
        };
        let ways = self.routes.next_hops_to(Version::V4, number, 2).into_iter();
        let told = (0..PEERS.len()).filter(|peer| self.metrics[*peer].is_some());
        let told = told.filter_map(|peer| Some((peer, *self.told.get(&(peer, net))?)));
        let expected = ties(told.collect(), &self.metrics).into_iter().take(2);
        (
            ways.map(|id| self.routes.next_hops.address(id)).collect(),
            expected.map(|(peer, _)| address(peer).into()).collect(),
        )
    }

    /// What operators are shown that a peer is told.
    fn shown(&self, peer: usize) -> BTreeMap<(Prefix, u32), Attributes> {
        let mut shown = BTreeMap::new();
        for net in (0..10).map(net) {
            let Some(number) = self.routes.table.number(Version::V4, &net) else { continue };
            let place = (Version::V4, number);
            for one in self.fanout.shown(self.origins[peer], place, &self.routes) {
                shown.insert((net, one.id.unwrap_or_default()), one.attributes);
            }
        }
        shown
    }

    /// How many routes of a peer are accepted, and how many it was told: as that is counted, and as it is.
    fn counts(&self, peer: usize) -> [(usize, usize); 2] {
        let (origin, table) = (self.origins[peer], &self.routes.table);
        let all = 0..table.end_of_numbers(Version::V4);
        let all = all.flat_map(|number| table.candidates(Version::V4, number));
        let accepted = all.filter(|one| one.origin == origin && one.route.is_accepted()).count();
        let counted = self.routes.accepted_of(Version::V4, origin);
        let told = self.fanout.told_to(origin, Version::V4).unwrap_or(0);
        let heard = if self.up[peer] { self.heard[peer].len() } else { 0 };
        [(counted, accepted), (told, heard)]
    }

    /// What a peer has heard: the attributes of each path, in order.
    fn heard(&self, peer: usize) -> BTreeMap<Prefix, Vec<Attributes>> {
        let mut heard = BTreeMap::<_, Vec<_>>::new();
        for ((prefix, _), attributes) in &self.heard[peer] {
            heard.entry(*prefix).or_default().push(attributes.clone());
        }
        heard.values_mut().for_each(|all| sort(all));
        heard
    }
}

fn sort(attributes: &mut [Attributes]) {
    attributes.sort_by_key(|one| format!("{one:?}"));
}

fn source(peer: usize) -> Source {
    Source {
        own: None,
        neighbour: context(peer).neighbour,
        system: PEERS[peer],
        is_client: CLIENTS.contains(&peer),
        is_direct: false,
        is_long_lived: true,
        has_blackholes: false,
        router_id: address(peer),
        address: address(peer).into(),
    }
}

/// RFC 4271 §9.1.2.2, by elimination: those that are equally good but for identifiers and addresses, the best first.
fn ties(mut rivals: Vec<(usize, Announced)>, metrics: &[Option<u32>]) -> Vec<(usize, Announced)> {
    fn keep_least<K: Ord>(
        rivals: &mut Vec<(usize, Announced)>,
        key: impl Fn(&(usize, Announced)) -> K,
    ) {
        let least = rivals.iter().map(&key).min();
        rivals.retain(|one| Some(key(one)) == least);
    }
    let is_external = |peer: usize| PEERS[peer] != LOCAL_AS;
    keep_least(&mut rivals, |(_, what)| what.is_stale);
    keep_least(&mut rivals, |(peer, what)| {
        std::cmp::Reverse(if is_external(*peer) { 100 } else { 100 + u32::from(what.preference) })
    });
    keep_least(&mut rivals, |(peer, what)| what.length + u8::from(is_external(*peer)));
    let first_as = |(peer, what): &(usize, Announced)| match is_external(*peer) {
        true => Some(PEERS[*peer]),
        false => (what.length > 0).then_some(100),
    };
    let all = rivals.clone();
    rivals.retain(|one| {
        !all.iter().any(|other| first_as(other) == first_as(one) && other.1.med < one.1.med)
    });
    keep_least(&mut rivals, |(peer, _)| !is_external(*peer));
    keep_least(&mut rivals, |(peer, _)| metrics[*peer]);
    rivals.sort_by_key(|(peer, _)| address(*peer));
    rivals
}

fn best(rivals: Vec<(usize, Announced)>, metrics: &[Option<u32>]) -> Option<(usize, Announced)> {
    ties(rivals, metrics).first().copied()
}

/// The types and bodies of messages.
fn messages(bytes: &[u8]) -> Vec<(MessageType, Vec<u8>)> {
    let mut cutter = Cutter::new();
    cutter.push(bytes);
    let next = || cutter.take().unwrap().map(|message| (message.kind, message.body().to_vec()));
    std::iter::from_fn(next).collect()
}

/// What `import` and `export` may say.
const POLICIES: [&[&str]; FILTERS] =
    [&["all"], &["none"], &["even"], &["mark", "rest"], &["short"], &["special", "rest"]];
const FILTERS: usize = 6;

/// One of them, read as a process reads it.
fn filter(which: usize) -> Filter {
    let policies = "policy {
        prefix-list even { 203.0.0.0/23 orlonger; 203.0.4.0/24; 203.0.8.0/24; }
        policy-statement even {
            from { prefix in even; }
            then { local-pref 300; med remove; accept; }
        }
        policy-statement mark {
            term local { from { community has no-export; } then { reject; } }
            term far { from { as-path length ge 3; } then { med add 5; local-pref sub 50; } }
            then { community add 1:1; origin igp; }
        }
        policy-statement rest { then { accept; } }
        policy-statement short {
            term long { from { as-path matches \"101$\"; } then { reject; } }
            then { as-path prepend 7 2; med 1; accept; }
        }
        policy-statement special {
            term one { to { neighbor 10.0.0.12 10.0.0.13; } then { med 9; next-hop 10.9.9.9; accept; } }
            term other { from { peer-type external; not { prefix in even; } } to { peer-as ne 65001; } then { next policy; } }
            then { large-community add 1:2:3; }
        }
    }";
    let names = POLICIES[which].join(" ");
    let text = format!(
        "{policies} bgp {{ as 1; router-id 10.0.0.1; peer 10.0.0.2 {{ as 2; import {names}; }} }}"
    );
    let config = crate::config::read("t", &text).unwrap().unwrap();
    config.peers.into_values().next().unwrap().import
}

/// Everything that is under way is done.
fn settle(world: &mut World) {
    for peer in 0..PEERS.len() {
        world.step(&Step::Drained(peer));
    }
    while world.routes.has_work() {
        world.step(&Step::Work);
    }
    while world.fanout.has_work(&world.routes) {
        world.tell();
    }
}

/// Peers that are told the same have come together, and nothing is left behind when all are gone.
fn finish(mut world: World) -> Result<(), TestCaseError> {
    for (counted, is) in (0..PEERS.len()).flat_map(|peer| world.counts(peer)) {
        prop_assert_eq!(counted, is);
    }
    let mut kinds = Vec::new();
    for peer in (0..PEERS.len()).filter(|peer| world.up[*peer]) {
        let kind = (world.audience(peer), HEAR_PATHS.contains(&peer));
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    prop_assert_eq!(world.fanout.count(), (kinds.len(), 0));
    for peer in 0..PEERS.len() {
        world.step(&Step::Up(peer));
        world.step(&Step::Down(peer));
    }
    while world.routes.has_work() {
        world.routes.work();
    }
    prop_assert_eq!((world.routes.table.len(Version::V4), world.routes.sets.len()), (0, 0));
    prop_assert_eq!(world.routes.path_ids.len(), 0);
    prop_assert!((0..PEERS.len()).all(|peer| world.counts(peer) == [(0, 0); 2]));
    prop_assert_eq!(world.fanout.count(), (0, 0));
    Ok(())
}

fn run(steps: &[Step]) -> Result<(), TestCaseError> {
    let mut world = World::new();
    steps.iter().for_each(|step| world.step(step));
    settle(&mut world);
    for peer in 0..PEERS.len() {
        if world.up[peer] {
            prop_assert_eq!(world.heard(peer), world.expected(peer), "peer {}", peer);
            prop_assert_eq!(world.shown(peer), world.heard[peer].clone(), "peer {}", peer);
        }
    }
    for number in 0..10 {
        let (ways, expected) = world.ways(number);
        prop_assert_eq!(ways, expected, "network {}", number);
    }
    finish(world)
}

/// Whatever policies there were meanwhile, in the end peers believe what a router would tell them that has had no others.
fn run_with_policies(steps: &[Step]) -> Result<(), TestCaseError> {
    let mut world = World::new();
    steps.iter().for_each(|step| world.step(step));
    settle(&mut world);
    let mut fresh = World::new();
    fresh.filters.clone_from(&world.filters);
    fresh.metrics = world.metrics;
    for peer in (0..PEERS.len()).filter(|peer| world.up[*peer]) {
        fresh.step(&Step::Up(peer));
    }
    for ((peer, net), what) in &world.told {
        fresh.step(&Step::Announce { peer: *peer, net: *net, what: *what });
    }
    settle(&mut fresh);
    for peer in 0..PEERS.len() {
        prop_assert_eq!(world.heard(peer), fresh.heard(peer), "peer {}", peer);
        prop_assert_eq!(world.shown(peer), world.heard[peer].clone(), "peer {}", peer);
    }
    finish(world)
}

/// While a policy takes effect the session ends, and begins with another one.
#[test]
fn a_policy_of_an_earlier_session_is_over() -> Result<(), TestCaseError> {
    let (no_llgr, is_stale) = (false, false);
    let what = Announced { length: 0, med: 0, preference: 0, community: false, no_llgr, is_stale };
    let announce = |peer| Step::Announce { peer, net: 0, what };
    let begin = [Step::Up(0), Step::Up(3), Step::Import(3, 0), Step::Down(3), announce(0)];
    let end = [Step::Import(3, 3), Step::Up(3), announce(3)];
    run_with_policies(&[begin.as_slice(), &end].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn peers_believe_what_is_best_in_the_end(steps in steps(false)) {
        run(&steps)?;
    }

    #[test]
    fn policies_change_while_routes_flow(steps in steps(true)) {
        run_with_policies(&steps)?;
    }
}
