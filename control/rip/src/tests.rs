//! The rules of the RFCs at exact times, every event in every state, and routers that talk to each other over links that
//! fail.

mod network;
mod transitions;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use ipnet::{IpNet, Ipv4Net};
use weft_base::{Instant, Random};
use weft_policy::Filter;

use crate::Version;
use crate::config::{Config, LinkConfig, SplitHorizon};
use crate::speaker::{Activity, Datagram, Link, MOST_NEIGHBOURS, Speaker};
use crate::table::{MOST_ROUTES, Route, Source};
use crate::wire::auth::Auth;
use crate::wire::{Command, Entry, INFINITY, Message, ng, v2};

const MTU: usize = 1472;

fn seconds(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn link(address: &str, config: LinkConfig) -> Link {
    let name = format!("to-{address}");
    Link { name, config, addresses: vec![net(address)], mtu: None }
}

fn plain(cost: u8) -> LinkConfig {
    let split_horizon = SplitHorizon::PoisonedReverse;
    let (import, export) = (Filter::All, Filter::All);
    LinkConfig { cost, passive: false, split_horizon, auth: Auth::None, import, export }
}

/// A router with two links, 1 with 10.0.1.0/24 and 2 with 10.0.2.0/24, whose first update is over.
struct Router {
    speaker: Speaker,
    now: Instant,
}

impl Router {
    fn new() -> Self {
        Self::with(plain(1), plain(1))
    }

    fn with(first: LinkConfig, second: LinkConfig) -> Self {
        let speaker = Speaker::new(Version::V2, Random::from_seed(7), 1000);
        let mut router = Self { speaker, now: Instant::ZERO };
        router.speaker.configure(Config::default());
        for (index, address, config) in [(1, "10.0.1.1/24", first), (2, "10.0.2.1/24", second)] {
            router.speaker.set_link(router.now, index, link(address, config));
            router.speaker.opened(router.now, index, MTU, &mut Vec::new());
        }
        router.tick();
        router
    }

    fn tick(&mut self) -> Vec<Datagram> {
        let mut out = Vec::new();
        self.speaker.tick(self.now, &mut out);
        out
    }

    /// Lets time pass until something is due; what is sent then.
    fn wait(&mut self) -> Vec<Datagram> {
        self.now = self.speaker.deadline().unwrap();
        self.tick()
    }

    fn hear(&mut self, link: u32, from: &str, bytes: &[u8]) -> Vec<Datagram> {
        let mut out = Vec::new();
        self.speaker.received(self.now, link, from.parse().unwrap(), bytes, &mut out);
        self.speaker.tick(self.now, &mut out);
        out
    }

    /// A router tells a route on the first link.
    fn told(&mut self, from: &str, to: &str, metric: u8) -> Vec<Datagram> {
        self.hear(1, &format!("{from}:520"), &response(&[(to, metric)]))
    }

    fn metric(&self, to: &str) -> Option<u8> {
        self.speaker.table.get(&net(to)).map(|stored| stored.route.metric)
    }

    fn gateway(&self, to: &str) -> String {
        self.speaker.table.get(&net(to)).unwrap().route.gateway.unwrap().to_string()
    }
}

fn entries(routes: &[(&str, u8)]) -> Vec<Entry> {
    let entry =
        |(to, metric): &(&str, u8)| Entry { net: net(to), metric: *metric, tag: 0, next_hop: None };
    routes.iter().map(entry).collect()
}

fn response(routes: &[(&str, u8)]) -> Vec<u8> {
    v2::write(Command::Response, &entries(routes), &Auth::None, 0).concat()
}

fn read(bytes: &[u8]) -> Message {
    v2::parse(bytes, &Auth::None).unwrap().0
}

/// What is told on a link.
fn said(sent: &[Datagram], link: u32) -> Vec<(String, u8)> {
    let messages = sent.iter().filter(|one| one.link == link).map(|one| read(&one.bytes));
    let entries = messages.flat_map(|message| message.entries);
    entries.map(|entry| (entry.net.to_string(), entry.metric)).collect()
}

const FAR: &str = "198.51.100.0/24";

/// RFC 2453 §3.8: every 30 seconds, by chance 5 seconds earlier or later.
#[test]
fn everything_is_told_at_irregular_intervals() {
    let mut router = Router::new();
    let mut before = router.now;
    let mut intervals = Vec::new();
    for _ in 0..20 {
        let sent = router.wait();
        assert_eq!(said(&sent, 1), [("10.0.2.0/24".to_owned(), 1)]);
        assert_eq!(said(&sent, 2), [("10.0.1.0/24".to_owned(), 1)]);
        let group: SocketAddr = "224.0.0.9:520".parse().unwrap();
        assert!(sent.iter().all(|one| one.to == group));
        intervals.push(router.now.since(before));
        before = router.now;
    }
    let within = Duration::from_secs(25)..=Duration::from_secs(35);
    assert!(intervals.iter().all(|one| within.contains(one)), "{intervals:?}");
    assert_ne!(intervals[0], intervals[1]);
}

/// RFC 2453 §3.8: after 180 seconds a route is gone, after 120 more it is forgotten.
#[test]
fn a_route_that_is_not_heard_of_goes_to_the_nanosecond() {
    let mut router = Router::new();
    router.told("10.0.1.2", FAR, 3);
    let learned = router.now;
    let (timeout, garbage) = (seconds(180), seconds(300));
    while router.now < timeout {
        router.wait();
    }
    assert_eq!((router.now, router.metric(FAR)), (learned + Duration::from_secs(180), Some(16)));
    let mut said_gone = 0;
    while router.now < garbage {
        assert_eq!(router.metric(FAR), Some(16));
        let sent = router.wait();
        said_gone += said(&sent, 2).iter().filter(|(_, metric)| *metric == 16).count();
    }
    assert_eq!((router.now, router.metric(FAR)), (garbage, None));
    assert!(said_gone >= 3, "neighbours are told with each update");
    assert_eq!(router.speaker.counters.get(Activity::TimedOut), 1);
}

#[test]
fn a_route_that_is_heard_of_stays() {
    let mut router = Router::new();
    for _ in 0..20 {
        router.told("10.0.1.2", FAR, 3);
        router.wait();
    }
    assert_eq!(router.metric(FAR), Some(4));
}

/// RFC 2453 §3.10.1: at once, but the next ones 1 to 5 seconds later, all in one.
#[test]
fn changes_are_told_at_once_and_then_together() {
    let mut router = Router::new();
    router.now = seconds(6);
    let sent = router.told("10.0.1.2", FAR, 3);
    assert_eq!(said(&sent, 2), [(FAR.to_owned(), 4)], "only what has changed");
    assert_eq!(said(&sent, 1), [(FAR.to_owned(), 16)], "poisoned where it came from");
    assert!(router.told("10.0.1.2", "198.51.101.0/24", 3).is_empty());
    assert!(router.told("10.0.1.3", "198.51.102.0/24", 3).is_empty());
    let sent = router.wait();
    let late = router.now.since(seconds(6));
    assert!((Duration::from_secs(1)..=Duration::from_secs(5)).contains(&late), "{late:?}");
    assert_eq!(said(&sent, 2).len(), 2);
    assert_eq!(router.speaker.counters.get(Activity::Triggered), 2);
    // A route that is told again as it was is no change.
    router.now = seconds(20);
    assert!(router.told("10.0.1.2", FAR, 3).is_empty());
}

/// RFC 2453 §3.4.3.
#[test]
fn split_horizon_is_as_configured() {
    for (split_horizon, expected) in [
        (SplitHorizon::Off, vec![("10.0.1.0/24", 1), ("10.0.2.0/24", 1), (FAR, 4)]),
        (SplitHorizon::On, vec![("10.0.2.0/24", 1)]),
        (SplitHorizon::PoisonedReverse, vec![("10.0.2.0/24", 1), (FAR, 16)]),
    ] {
        let mut router = Router::with(LinkConfig { split_horizon, ..plain(1) }, plain(1));
        router.told("10.0.1.2", FAR, 3);
        let mut sent = Vec::new();
        let asked = v2::ask_for_all(&Auth::None, 0);
        let from = "10.0.1.9:520".parse().unwrap();
        router.speaker.received(router.now, 1, from, &asked, &mut sent);
        let expected: Vec<_> =
            expected.into_iter().map(|(net, metric)| (net.to_owned(), metric)).collect();
        assert_eq!(said(&sent, 1), expected, "{split_horizon:?}");
        assert!(sent.iter().all(|one| one.to == from));
    }
}

/// RFC 2453 §3.9.1.
#[test]
fn single_routes_are_told_as_they_are() {
    let mut router = Router::new();
    router.told("10.0.1.2", FAR, 3);
    let asked =
        v2::write(Command::Request, &entries(&[(FAR, 16), ("203.0.113.0/24", 16)]), &Auth::None, 0);
    // Whoever asks from another port wants to look.
    let sent = router.hear(1, "10.0.1.9:4000", &asked[0]);
    let answer: Vec<_> = sent.iter().filter(|one| one.to.port() == 4000).cloned().collect();
    assert_eq!(said(&answer, 1), [(FAR.to_owned(), 4), ("203.0.113.0/24".to_owned(), 16)]);
}

/// RFC 2453 §3.9.2.
#[test]
fn responses_of_strangers_are_refused() {
    let mut router = Router::new();
    let told = response(&[(FAR, 1)]);
    for from in ["10.0.1.2:521", "10.0.2.2:520", "10.0.1.1:520", "192.0.2.1:520"] {
        assert!(router.hear(1, from, &told).is_empty(), "{from}");
    }
    assert_eq!(router.speaker.counters.get(Activity::Strangers), 4);
    assert_eq!((router.metric(FAR), router.speaker.neighbours.len()), (None, 0));
    router.hear(1, "10.0.1.2:520", &told);
    assert_eq!((router.metric(FAR), router.speaker.neighbours.len()), (Some(2), 1));
}

/// RFC 2453 §3.9.2, and its heuristic for routes that are equally long.
#[test]
fn the_shortest_route_is_used_and_its_router_is_believed() {
    let mut router = Router::new();
    router.told("10.0.1.2", FAR, 5);
    router.told("10.0.1.3", FAR, 5);
    assert_eq!((router.gateway(FAR).as_str(), router.metric(FAR)), ("10.0.1.2", Some(6)));
    router.told("10.0.1.3", FAR, 4);
    assert_eq!((router.gateway(FAR).as_str(), router.metric(FAR)), ("10.0.1.3", Some(5)));
    // Its own router may say that it is longer now.
    router.told("10.0.1.3", FAR, 9);
    assert_eq!(router.metric(FAR), Some(10));
    // One that is equally long takes its place when it was not heard of for half its timeout.
    router.now += Duration::from_secs(90) - Duration::from_nanos(1);
    router.told("10.0.1.2", FAR, 9);
    assert_eq!(router.gateway(FAR), "10.0.1.3");
    router.now += Duration::from_nanos(1);
    router.told("10.0.1.2", FAR, 9);
    assert_eq!(router.gateway(FAR), "10.0.1.2");
    // What is further away than anything cannot be reached.
    router.told("10.0.1.2", FAR, 15);
    assert_eq!(router.metric(FAR), Some(16));
}

#[test]
fn costs_and_next_hops_are_those_of_the_link() {
    let mut router = Router::with(plain(4), plain(1));
    let mut told = entries(&[(FAR, 3), ("203.0.113.0/24", 3)]);
    told[0].next_hop = Some([10, 0, 1, 77].into());
    told[1].next_hop = Some([10, 0, 9, 77].into());
    let bytes = v2::write(Command::Response, &told, &Auth::None, 0);
    router.hear(1, "10.0.1.2:520", &bytes[0]);
    assert_eq!((router.metric(FAR), router.gateway(FAR).as_str()), (Some(7), "10.0.1.77"));
    assert_eq!(router.gateway("203.0.113.0/24"), "10.0.1.2", "it is not on the link");
}

#[test]
fn a_link_that_fails_takes_its_routes_along_at_once() {
    let mut router = Router::new();
    router.told("10.0.1.2", FAR, 3);
    router.now = seconds(20);
    router.speaker.remove_link(router.now, 1);
    let sent = router.tick();
    let both = [("10.0.1.0/24".to_owned(), 16), (FAR.to_owned(), 16)];
    assert_eq!(said(&sent, 2), both);
    assert!(router.speaker.neighbours.is_empty());
    // It comes back before neighbours have forgotten.
    router.speaker.set_link(router.now, 1, link("10.0.1.1/24", plain(1)));
    assert_eq!((router.metric("10.0.1.0/24"), router.metric(FAR)), (Some(1), Some(16)));
}

/// Whatever link goes, and whichever of two had told the network.
#[test]
fn a_network_that_another_link_has_stays_connected() {
    for last in [1, 2] {
        let mut router = Router::new();
        let both = |address: &str| {
            let mut link = link(address, plain(1));
            link.addresses.push(net("10.0.9.1/24"));
            link
        };
        router.speaker.set_link(router.now, 1, both("10.0.1.1/24"));
        router.speaker.set_link(router.now, 2, both("10.0.2.1/24"));
        router.tick();
        match last {
            1 => router.speaker.remove_link(router.now, 2),
            _ => router.speaker.set_link(router.now, 1, link("10.0.1.1/24", plain(1))),
        }
        let stored = router.speaker.table.get(&net("10.0.9.0/24")).unwrap();
        assert_eq!((stored.is_valid(), stored.route.metric, stored.route.link), (true, 1, last));
    }
}

/// Nothing that neighbours send grows without bounds.
#[test]
fn neighbours_and_routes_are_limited_and_forgotten() {
    let mut router = Router::new();
    for number in 0..=MOST_NEIGHBOURS as u32 {
        let from = Ipv4Addr::from_bits(0x0a00_0000 + number);
        router.speaker.set_link(router.now, 1, link("10.0.255.254/16", plain(1)));
        router.hear(1, &format!("{from}:520"), &response(&[(FAR, 3)]));
    }
    assert_eq!(router.speaker.neighbours.len(), MOST_NEIGHBOURS);
    assert_eq!(router.speaker.counters.get(Activity::TooMany), 1);
    // As long as their routes are told and are told to be gone they are known.
    router.now += Duration::from_secs(180 + 120);
    router.tick();
    assert!(router.speaker.neighbours.is_empty());
    router.now += Duration::from_secs(120);
    router.tick();
    assert_eq!(router.metric(FAR), None);

    let nets: Vec<_> = (0..MOST_ROUTES as u32 + 10)
        .map(|number| Entry {
            net: Ipv4Net::new(Ipv4Addr::from_bits(0x1400_0000 + (number << 4)), 28).unwrap().into(),
            metric: 1,
            tag: 0,
            next_hop: None,
        })
        .collect();
    let before = router.speaker.table.iter().count();
    for bytes in v2::write(Command::Response, &nets, &Auth::None, 0) {
        router.speaker.received(
            router.now,
            1,
            "10.0.0.9:520".parse().unwrap(),
            &bytes,
            &mut Vec::new(),
        );
    }
    assert_eq!(router.speaker.table.iter().count(), before + MOST_ROUTES);
    assert_eq!(router.speaker.counters.get(Activity::TooMany), 11);
    // What is known may change, and what is forgotten makes room.
    router.told("10.0.0.9", "20.0.0.0/28", 5);
    assert_eq!(router.metric("20.0.0.0/28"), Some(6));
    router.now += Duration::from_secs(180 + 120);
    router.tick();
    router.now += Duration::from_secs(180 + 120);
    router.tick();
    router.told("10.0.0.9", FAR, 5);
    assert_eq!(router.metric(FAR), Some(6));
}

#[test]
fn a_passive_link_listens_only() {
    let mut router = Router::with(LinkConfig { passive: true, ..plain(1) }, plain(1));
    router.told("10.0.1.2", FAR, 3);
    assert_eq!(router.metric(FAR), Some(4));
    let asked = v2::ask_for_all(&Auth::None, 0);
    assert!(router.hear(1, "10.0.1.2:520", &asked).is_empty());
    let sent: Vec<_> = (0..5).flat_map(|_| router.wait()).collect();
    assert!(sent.iter().all(|one| one.link == 2));
}

#[test]
fn routes_of_others_are_told_with_their_tags_until_they_go() {
    let mut router = Router::new();
    let route = Route {
        source: Source::Redistributed,
        link: 2,
        gateway: Some([10, 0, 2, 5].into()),
        metric: 3,
        tag: 77,
    };
    router.speaker.redistribute(router.now, net(FAR), Some(route));
    // What neighbours say of it is of no interest.
    router.told("10.0.1.2", FAR, 1);
    let asked = v2::ask_for_all(&Auth::None, 0);
    let told = |sent: Vec<Datagram>| {
        let entries = sent.iter().flat_map(|one| read(&one.bytes).entries);
        entries.filter(|one| one.net == net(FAR)).collect::<Vec<_>>()
    };
    router.now = seconds(24);
    let expected = Entry { net: net(FAR), metric: 3, tag: 77, next_hop: None };
    assert_eq!(told(router.hear(1, "10.0.1.9:520", &asked)), [expected]);
    // On the link of the next router it is named (RFC 2453 §4.4).
    let [only] = told(router.hear(2, "10.0.2.9:520", &asked))[..] else { panic!() };
    assert_eq!((only.metric, only.next_hop), (3, Some([10, 0, 2, 5].into())));
    router.speaker.redistribute(router.now, net(FAR), None);
    assert_eq!(router.metric(FAR), Some(16));
    router.told("10.0.1.2", FAR, 1);
    assert_eq!(router.metric(FAR), Some(2), "now a neighbour knows better");
}

#[test]
fn neighbours_need_not_wait_for_who_stops() {
    let mut router = Router::new();
    router.told("10.0.1.2", FAR, 3);
    let mut sent = Vec::new();
    router.speaker.stop(router.now, &mut sent);
    let all = [("10.0.1.0/24".to_owned(), 16), (FAR.to_owned(), 16)];
    assert_eq!(said(&sent, 2), all);
}

/// RFC 4822 §3.2.2.
#[test]
fn what_was_signed_before_is_not_believed_again() {
    let keys = [(1, (crate::wire::auth::Algorithm::Sha256, crate::wire::auth::Secret::new("s")))];
    let auth = Auth::Keys { keys: keys.into_iter().collect(), signs: 1 };
    let mut router = Router::with(LinkConfig { auth: auth.clone(), ..plain(1) }, plain(1));
    let tell = |router: &mut Router, metric, sequence| {
        let entries = entries(&[(FAR, metric)]);
        let bytes = v2::write(Command::Response, &entries, &auth, sequence);
        router.hear(1, "10.0.1.2:520", &bytes[0]);
        router.metric(FAR)
    };
    assert_eq!(tell(&mut router, 3, 50), Some(4));
    assert_eq!(tell(&mut router, 2, 50), Some(3), "several messages may have the same");
    assert_eq!(tell(&mut router, 1, 49), Some(3));
    assert_eq!(router.told("10.0.1.2", FAR, 1), [], "it is not signed");
    assert_eq!(router.speaker.counters.get(Activity::Unauthenticated), 2);
    let neighbour = router.speaker.neighbours.values().next().unwrap();
    assert_eq!((neighbour.messages, neighbour.bad), (2, 2));
    // One that was silent until its routes were gone may have begun anew.
    router.now += Duration::from_secs(180);
    assert_eq!(tell(&mut router, 5, 1), Some(6));
}

/// RFC 2080 §2.4.2, §2.5: link-local addresses, and next hops for several routes.
#[test]
fn ripng_is_spoken_by_link_local_addresses() {
    let mut speaker = Speaker::new(Version::Ng, Random::from_seed(7), 0);
    let addresses = vec![net("fe80::1/64"), net("2001:db8:1::1/64")];
    let own = Link { name: "one".to_owned(), config: plain(1), addresses, mtu: None };
    let mut out = Vec::new();
    speaker.set_link(Instant::ZERO, 1, own);
    speaker.opened(Instant::ZERO, 1, MTU, &mut out);
    assert_eq!(out[0].to, "[ff02::9]:521".parse().unwrap());
    assert!(ng::parse(&out[0].bytes).unwrap().asks_for_all);
    let mut told = entries(&[("2001:db8:2::/48", 1), ("2001:db8:3::/48", 1)]);
    told[1].next_hop = Some("fe80::77".parse().unwrap());
    let bytes = ng::write(Command::Response, &told, MTU).concat();
    for from in ["[2001:db8:1::2]:521", "[fe80::1]:521"] {
        speaker.received(Instant::ZERO, 1, from.parse().unwrap(), &bytes, &mut out);
    }
    assert_eq!(speaker.counters.get(Activity::Strangers), 2);
    speaker.received(Instant::ZERO, 1, "[fe80::2%4]:521".parse().unwrap(), &bytes, &mut out);
    let gateway = |to: &str| speaker.table.get(&net(to)).unwrap().route.gateway.unwrap();
    assert_eq!(gateway("2001:db8:2::/48"), "fe80::2".parse::<std::net::IpAddr>().unwrap());
    assert_eq!(gateway("2001:db8:3::/48"), "fe80::77".parse::<std::net::IpAddr>().unwrap());
    assert!(speaker.table.get(&net("fe80::/64")).is_none(), "every link has that");
    assert_eq!(INFINITY, 16);
}

/// Entries of the answers that a link was sent, as they would be read there; requests are left out.
fn answered(sent: &[Datagram], link: u32) -> Vec<(String, u8)> {
    let is_answer = |one: &&Datagram| read(&one.bytes).command == Command::Response;
    let answers: Vec<_> = sent.iter().filter(is_answer).cloned().collect();
    said(&answers, link)
}

#[test]
fn what_policies_of_a_link_refuse_is_not_believed_and_not_told_and_a_change_holds_at_once() {
    let far = || vec![(FAR.to_owned(), 3)];
    let mut router = Router::with(LinkConfig { import: Filter::None, ..plain(1) }, plain(1));
    router.told("10.0.1.2", FAR, 2);
    assert_eq!(router.metric(FAR), None, "it was never there");
    let set = |router: &mut Router, index, address, config| {
        let link = Link { mtu: Some(MTU), ..link(address, config) };
        router.speaker.set_link(router.now, index, link);
        router.tick()
    };
    // Routers are asked for what was refused.
    let sent = set(&mut router, 1, "10.0.1.1/24", plain(1));
    let asks = |one: &Datagram| one.link == 1 && read(&one.bytes).asks_for_all;
    assert!(sent.iter().any(asks), "{sent:?}");
    router.told("10.0.1.2", FAR, 2);
    assert_eq!(router.metric(FAR), Some(3));
    router.wait();
    // What is not told any more is told as unreachable, once; what is told again is told at once.
    let silent = || LinkConfig { export: Filter::None, ..plain(1) };
    let sent = set(&mut router, 2, "10.0.2.1/24", silent());
    assert!(answered(&sent, 2).contains(&(FAR.to_owned(), INFINITY)), "{sent:?}");
    assert!(answered(&set(&mut router, 2, "10.0.2.1/24", silent()), 2).is_empty());
    assert_eq!(answered(&router.wait(), 2), []);
    let sent = set(&mut router, 2, "10.0.2.1/24", plain(1));
    assert!(far().iter().all(|one| answered(&sent, 2).contains(one)), "{sent:?}");
    // One that is refused now is gone when its router tells it again.
    set(&mut router, 1, "10.0.1.1/24", LinkConfig { import: Filter::None, ..plain(1) });
    router.told("10.0.1.2", FAR, 2);
    assert_eq!(router.metric(FAR), Some(INFINITY));
}

/// A policy that looks at the metric would refuse a route at the moment that it goes.
#[test]
fn a_route_that_was_told_is_told_as_gone_also_if_policy_refuses_it_by_then() {
    let text = "policy { policy-statement near { from { hops le 5; } then { accept; } } }
        rip { interface eth0 { export near; } }";
    let config = crate::config::read(Version::V2, "t", text).unwrap();
    let export = config.links["eth0"].export.clone();
    let mut router = Router::with(plain(1), LinkConfig { export, ..plain(1) });
    let of_far = |sent: &[Datagram]| -> Vec<u8> {
        let all = answered(sent, 2).into_iter().filter(|(net, _)| net == FAR);
        all.map(|(_, metric)| metric).collect()
    };
    let mut sent = router.told("10.0.1.2", FAR, 2);
    if of_far(&sent).is_empty() {
        sent = router.wait();
    }
    assert_eq!(of_far(&sent), [3]);
    for metric in [9, INFINITY] {
        let mut sent = router.told("10.0.1.2", FAR, metric);
        while of_far(&sent).is_empty() {
            sent = router.wait();
        }
        assert_eq!(of_far(&sent), [INFINITY], "{metric}");
    }
}
