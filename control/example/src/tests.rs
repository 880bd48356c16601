//! Bytes, policies, and routers on links that fail and lose datagrams: everybody's routes are the shortest ones.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;

use ipnet::Ipv4Net;
use proptest::prelude::*;
use weft_base::{Instant, Random};
use weft_config::{LoadMode, Schema, Tree};

use crate::config::{Config, SCHEMA, STATEMENT, VARIABLES, read};
use crate::table::Table;
use crate::wire::{Hello, INFINITY, WireError};

fn net(text: &str) -> Ipv4Net {
    text.parse().unwrap()
}

fn hellos() -> impl Strategy<Value = Hello> {
    let route = (any::<u32>(), 0u8..=32, 0u8..=INFINITY).prop_map(|(bits, length, hops)| {
        (Ipv4Net::new(Ipv4Addr::from_bits(bits), length).unwrap().trunc(), hops)
    });
    let heard = prop::collection::vec(any::<u32>().prop_map(Ipv4Addr::from_bits), 0..130);
    (any::<u16>(), heard, prop::collection::vec(route, 0..500)).prop_map(|(hold, heard, routes)| {
        Hello { hold: Duration::from_millis(hold.into()), heard, routes }
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(hello in hellos()) {
        let datagrams = hello.write();
        prop_assert!(datagrams.iter().all(|one| one.len() <= 1200));
        let all: Vec<_> = datagrams.iter().map(|one| Hello::parse(one).unwrap()).collect();
        let heard = &hello.heard[..hello.heard.len().min(128)];
        prop_assert!(all.iter().all(|one| (one.hold, &*one.heard) == (hello.hold, heard)));
        let routes: Vec<_> = all.into_iter().flat_map(|one| one.routes).collect();
        prop_assert_eq!(routes, hello.routes);
    }

    #[test]
    fn what_is_cut_off_is_refused_unless_whole_routes_are_missing(hello in hellos()) {
        let bytes = hello.write().remove(0);
        for end in 0..bytes.len() {
            let head = 4 + 4 * hello.heard.len().min(128);
            let is_whole = end >= head && (end - head) % 6 == 0;
            prop_assert_eq!(Hello::parse(&bytes[..end]).is_ok(), is_whole);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(hello) = Hello::parse(&bytes) {
            prop_assert_eq!(hello.write(), [bytes]);
        }
    }
}

/// The same bytes stand in the tests of the Python example.
#[test]
fn a_hello_has_these_bytes() {
    let hello = Hello {
        hold: Duration::from_secs(4),
        heard: vec![[10, 0, 1, 2].into()],
        routes: vec![(net("192.0.2.0/24"), 0), (net("203.0.113.128/25"), 16)],
    };
    let bytes = [1, 1, 0x0f, 0xa0, 10, 0, 1, 2, 192, 0, 2, 0, 24, 0, 203, 0, 113, 128, 25, 16];
    assert_eq!(hello.write(), [bytes]);
    assert_eq!(Hello::parse(&bytes), Ok(hello));
}

#[test]
fn what_makes_no_sense_is_refused_with_its_reason() {
    let refused = |bytes: &[u8]| Hello::parse(bytes).unwrap_err();
    assert_eq!(refused(&[2, 0, 0, 0]), WireError::Version(2));
    assert_eq!(refused(&[1, 129, 0, 0]), WireError::Neighbours(129));
    assert_eq!(refused(&[1, 0, 0]), WireError::Length);
    for (route, length, hops) in [([10, 0, 0, 1], 24, 1), ([10; 4], 33, 1), ([10, 0, 0, 0], 8, 17)]
    {
        let [a, b, c, d] = route;
        let error = WireError::Route(route.into(), length, hops);
        assert_eq!(refused(&[1, 0, 0, 0, a, b, c, d, length, hops]), error);
    }
}

const TEXT: &str = "policy {
    policy-statement far { from { prefix 192.0.2.0/24; } then { hops add 3; tag 7; accept; } }
    policy-statement rest { from { neighbor ne 10.0.1.9; } then { hops 1; accept; } }
}
hearsay {
    interface eth0 eth1;
    network 198.51.100.0/24;
    import far rest;
    export none;
    hello 500ms;
    distance 99;
}";

#[test]
fn what_is_said_is_read_and_the_schema_accepts_it() {
    let config = read("t", TEXT).unwrap();
    assert_eq!(config.interfaces, ["eth0", "eth1"].map(str::to_owned).into());
    assert_eq!(config.networks, [net("198.51.100.0/24")].into());
    assert_eq!((config.hello, config.distance), (Duration::from_millis(500), 99));
    let schema = format!("version 1; {} {SCHEMA}", weft_policy::SCHEMA);
    let schema = Schema::parse("s", &schema).unwrap();
    let tree = Tree::parse("t", &format!("version 1; {TEXT}")).unwrap();
    let loaded = schema.load(&Tree::empty(), &tree, LoadMode::Override).unwrap();
    let part =
        |name| -> String { loaded.part(name).statements().map(ToString::to_string).collect() };
    let again = part(weft_policy::STATEMENT) + &part(STATEMENT);
    assert_eq!(read("t", &again).unwrap(), config);
    assert_eq!(read("t", "").unwrap(), Config::default());
}

#[test]
fn mistakes_have_places() {
    for (text, part) in [
        ("network 2001:db8::/32;", "2001:db8::/32"),
        ("network 10.0.0.1/24;", "10.0.0.1/24"),
        ("hello 10ms;", "10ms"),
        ("import all none;", "stands alone"),
        ("import unknown;", "unknown"),
        ("interfaces eth0;", "interfaces"),
    ] {
        let error = read("t", &format!("hearsay {{ {text} }}")).unwrap_err().to_string();
        assert!(error.starts_with("t:1:") && error.contains(part), "{text}: {error}");
    }
}

const US: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);

/// A router on link 1 says this.
fn say(table: &mut Table, from: u8, hears_us: bool, routes: &[(&str, u8)], config: &Config) {
    let heard = if hears_us { vec![US] } else { Vec::new() };
    let routes = routes.iter().map(|(to, hops)| (net(to), *hops)).collect();
    let hello = Hello { hold: Duration::from_secs(4), heard, routes };
    let from = (1, Ipv4Addr::new(10, 0, 1, from));
    assert!(table.hear(Instant::ZERO, from, US, &hello, config).is_some());
}

fn hops(table: &Table, to: &str) -> Option<(u8, u32)> {
    table.best.get(&net(to)).map(|(_, told)| (told.hops, told.tag))
}

#[test]
fn policies_decide_what_is_taken_and_told() {
    let config = read("t", TEXT).unwrap();
    let mut table = Table::default();
    say(&mut table, 2, true, &[("192.0.2.0/24", 1), ("203.0.113.0/24", 2)], &config);
    say(&mut table, 9, true, &[("203.0.113.0/24", 0), ("198.51.100.0/24", 0)], &config);
    assert_eq!(hops(&table, "192.0.2.0/24"), Some((5, 7)));
    assert_eq!(hops(&table, "203.0.113.0/24"), Some((3, 0)), "hops only grow; of 9 nothing");
    assert_eq!(hops(&table, "198.51.100.0/24"), None, "it is a network of this router");
    assert!(table.told(2, &config).iter().all(|(_, hops)| *hops == INFINITY));
    let other = Config { import: weft_policy::Filter::All, ..config };
    table.settle_all(std::iter::once(net("10.7.0.0/16")), &other);
    assert!(table.told(2, &other).contains(&(net("10.7.0.0/16"), INFINITY)), "not any more");
    assert_eq!(hops(&table, "203.0.113.0/24"), Some((1, 0)));
    assert!(
        VARIABLES
            .iter()
            .all(|one| include_str!("../../../docs/src/own-protocol.md").contains(one.name))
    );
}

#[test]
fn who_does_not_hear_this_router_is_not_sent_packets() {
    let (mut table, config) = (Table::default(), Config::default());
    say(&mut table, 2, false, &[("192.0.2.0/24", 0)], &config);
    assert_eq!(hops(&table, "192.0.2.0/24"), None);
    say(&mut table, 2, true, &[], &config);
    assert_eq!(hops(&table, "192.0.2.0/24"), Some((1, 0)));
}

/// A neighbour that begins anew has heard nobody yet; one that hears this router no more never says that it does.
#[test]
fn what_a_neighbour_has_said_of_its_hearing_holds_as_long_as_a_hello() {
    let (mut table, config) = (Table::default(), Config::default());
    let routes = vec![(net("192.0.2.0/24"), 0)];
    let hold = Duration::from_secs(4);
    let mut hello = |at: u64, heard: &[Ipv4Addr]| {
        let now = Instant::ZERO + Duration::from_secs(at);
        table.expire(now, &config);
        let hello = Hello { hold, heard: heard.to_vec(), routes: routes.clone() };
        let is_soon = table.hear(now, (2, Ipv4Addr::new(10, 0, 2, 2)), US, &hello, &config);
        (is_soon.unwrap(), table.best.len())
    };
    assert_eq!(hello(0, &[]), (true, 0), "it shall hear this router");
    assert_eq!(hello(1, &[US]), (true, 1), "it does");
    assert_eq!(hello(2, &[US]), (false, 1));
    assert_eq!(hello(3, &[]), (true, 1), "it shall hear this router again, and packets go there");
    assert_eq!(hello(4, &[US]), (false, 1), "it does");
    for at in 5..8 {
        assert_eq!(hello(at, &[]), (true, 1));
    }
    assert_eq!(hello(8, &[]), (true, 0), "it was the last time at 4");
    assert_eq!(hello(9, &[US]), (true, 1));
}

#[test]
fn what_goes_is_told_as_out_of_reach_four_times() {
    let (mut table, config) = (Table::default(), Config::default());
    say(&mut table, 2, true, &[("192.0.2.0/24", 0)], &config);
    assert_eq!(table.told(2, &config), [(net("192.0.2.0/24"), 1)]);
    assert_eq!(table.told(1, &config), [(net("192.0.2.0/24"), INFINITY)], "it leads there");
    say(&mut table, 2, true, &[("192.0.2.0/24", INFINITY)], &config);
    for _ in 0..4 {
        assert_eq!(table.told(2, &config), [(net("192.0.2.0/24"), INFINITY)]);
        table.have_told();
    }
    assert_eq!(table.told(2, &config), []);
}

/// Routers, each with a network of its own, and links between two of them, which lose some datagrams.
struct Network {
    now: Instant,
    routers: Vec<(Table, Config)>,
    links: Vec<(usize, usize)>,
    down: BTreeSet<usize>,
    random: Random,
    /// How many of 100 datagrams are lost.
    loss: u64,
}

impl Network {
    fn new(count: usize, links: &[(usize, usize)], seed: u64, loss: u64) -> Self {
        let own = |place: usize| net(&format!("192.168.{place}.0/24"));
        let config = |place| Config { networks: [own(place)].into(), ..Config::default() };
        let routers = (0..count).map(|place| (Table::default(), config(place))).collect();
        let (now, random) = (Instant::ZERO, Random::from_seed(seed));
        Self { now, routers, links: links.to_vec(), down: BTreeSet::new(), random, loss }
    }

    fn address(&self, link: usize, router: usize) -> Ipv4Addr {
        let side = if self.links[link].0 == router { 1 } else { 2 };
        Ipv4Addr::new(10, 0, link as u8, side)
    }

    /// A second passes, in which everybody says hello on all links.
    fn second(&mut self) {
        self.now += Duration::from_secs(1);
        for router in 0..self.routers.len() {
            let (table, config) = &mut self.routers[router];
            table.expire(self.now, config);
            for place in 0..self.links.len() {
                let (one, other) = self.links[place];
                let to = if one == router { other } else { one };
                if ![one, other].contains(&router) || self.down.contains(&place) {
                    continue;
                }
                let link = place as u32 + 1;
                let (table, config) = &self.routers[router];
                let heard = table.neighbours.keys().filter(|one| one.0 == link);
                let heard = heard.map(|one| one.1).collect();
                let routes = table.told(link, config);
                let hello = Hello { hold: Duration::from_secs(4), heard, routes };
                let (from, own) = (self.address(place, router), self.address(place, to));
                for bytes in hello.write() {
                    if self.random.below(100) >= self.loss {
                        let (table, config) = &mut self.routers[to];
                        let hello = Hello::parse(&bytes).unwrap();
                        table.hear(self.now, (link, from), own, &hello, config);
                    }
                }
            }
            self.routers[router].0.have_told();
        }
    }

    /// How far all routers are from this one, by a search through the links that work.
    fn distances(&self, from: usize) -> BTreeMap<usize, u8> {
        let (mut found, mut queue) = (BTreeMap::from([(from, 0)]), VecDeque::from([from]));
        while let Some(one) = queue.pop_front() {
            for (place, (left, right)) in self.links.iter().enumerate() {
                let next = match one {
                    one if one == *left => *right,
                    one if one == *right => *left,
                    _ => continue,
                };
                if !self.down.contains(&place) && !found.contains_key(&next) {
                    found.insert(next, found[&one] + 1);
                    queue.push_back(next);
                }
            }
        }
        found
    }

    fn check(&self) {
        for (router, (table, _)) in self.routers.iter().enumerate() {
            let mut expected = self.distances(router);
            expected.remove(&router);
            let found = table.best.iter();
            let found =
                found.map(|(net, (_, told))| (usize::from(net.network().octets()[2]), told.hops));
            assert_eq!(found.collect::<BTreeMap<_, _>>(), expected, "of router {router}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn all_ways_are_the_shortest_after_links_have_failed(
        count in 2usize..8,
        ends in prop::collection::vec((0usize..8, 0usize..8), 1..12),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        seed: u64,
    ) {
        let ends = ends.into_iter().map(|(one, other)| (one % count, other % count));
        let links: Vec<_> = ends.filter(|(one, other)| one != other).collect();
        let mut network = Network::new(count, &links, seed, 15);
        for _ in 0..20 {
            network.second();
        }
        for cut in cuts.into_iter().filter(|_| !links.is_empty()) {
            network.down.insert(cut.index(links.len()));
            network.second();
        }
        // Datagrams are lost while routes change, and not while they are compared.
        for _ in 0..20 {
            network.second();
        }
        network.loss = 0;
        for _ in 0..40 {
            network.second();
        }
        network.check();
    }
}
