//! The tables against the paper's example, against a naive twin, and the component as protocols and the FEA see it.

mod changes;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use ipnet::{IpNet, Ipv4Net};
use proptest::prelude::*;
use weft_base::Instant;
use weft_routing::ip::{Version, split, split_for};
use weft_routing::{Hears, OriginId, Prefix, Refusal};
use weft_runtime::{Interface, InterfaceAddress, InterfaceChange};
use weft_xrl::{Output, Window};

use crate::arbiter::{Route, Standing};
use crate::connected::Connected;
use crate::fib::Fib;
use crate::hops::{BLACKHOLE, Hop, SetId, Way};
use crate::tables::Tables;

const INTERNAL: Standing = Standing { distance: 110, is_external: false };
const EXTERNAL: Standing = Standing { distance: 20, is_external: true };

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn place(text: &str) -> (Version, Prefix) {
    split(net(text))
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn hop(gateway: Option<&str>, interface: u32) -> Hop {
    let interface = Some(interface).filter(|interface| *interface > 0);
    Hop { gateway: gateway.map(ip), interface, weight: 1 }
}

fn tell(tables: &mut Tables, origin: OriginId, to: &str, hop: Hop, metric: u32) {
    let set = tables.set_of(vec![hop]);
    tables.set(place(to), origin, Route { set, metric, tag: 0 });
    tables.give(set);
}

fn settle(tables: &mut Tables) {
    while tables.routes.has_work() {
        tables.work();
    }
}

/// The ways of the route that is used to `to`; none if there is none.
fn used(tables: &mut Tables, to: &str) -> Option<Vec<Way>> {
    settle(tables);
    let (version, net) = split(net(to));
    let best = tables.routes.best(version, tables.routes.number(version, &net)?)?;
    Some(tables.sets.ways(best.route.set).to_vec())
}

fn way(gateway: &str, interface: u32) -> Vec<Way> {
    vec![Way { gateway: Some(ip(gateway)), interface, weight: 1 }]
}

/// Handley et al., Figure 8.
#[test]
fn an_answer_holds_for_the_largest_block_without_more_specific_routes() {
    let mut tables = Tables::new();
    let igp = tables.add_origin(INTERNAL);
    for (metric, to) in
        ["128.16.0.0/16", "128.16.0.0/18", "128.16.128.0/17", "128.16.192.0/18"].iter().enumerate()
    {
        tell(&mut tables, igp, to, hop(Some("10.0.0.1"), 1), metric as u32);
    }
    let (block, answer) = tables.register(1, ip("128.16.32.1"));
    assert_eq!((block, answer.way.map(|(_, metric)| metric)), (net("128.16.0.0/18"), Some(1)));
    let (block, answer) = tables.register(1, ip("128.16.160.1"));
    assert_eq!((block, answer.way.map(|(_, metric)| metric)), (net("128.16.128.0/18"), Some(2)));
    let (block, answer) = tables.register(1, ip("128.17.0.1"));
    assert_eq!((block, answer.way), (net("128.17.0.0/16"), None), "a hole is a block, too");
    assert!(tables.take_invalid().is_empty());
    // A route within a block, and the one that a block had.
    tell(&mut tables, igp, "128.16.130.0/24", hop(Some("10.0.0.1"), 1), 9);
    assert_eq!(tables.take_invalid(), [(1, net("128.16.128.0/18"))]);
    assert!(tables.withdraw(place("128.16.0.0/18"), igp));
    assert_eq!(tables.take_invalid(), [(1, net("128.16.0.0/18"))]);
    // What was told once is not told again.
    tell(&mut tables, igp, "128.16.0.0/18", hop(Some("10.0.0.1"), 1), 1);
    assert!(tables.take_invalid().is_empty());
}

#[test]
fn a_client_that_leaves_is_told_nothing() {
    let mut tables = Tables::new();
    let igp = tables.add_origin(INTERNAL);
    tables.register(1, ip("10.1.0.1"));
    tables.register(2, ip("10.1.0.1"));
    let (block, _) = tables.register(3, ip("10.1.0.1"));
    tables.left(1);
    tables.deregister(3, block);
    tell(&mut tables, igp, "10.1.0.0/16", hop(Some("10.0.0.1"), 1), 0);
    assert_eq!(tables.take_invalid(), [(2, block)]);
}

#[test]
fn the_lower_distance_wins_and_then_the_lower_metric() {
    let mut tables = Tables::new();
    let ospf = tables.add_origin(INTERNAL);
    let rip = tables.add_origin(Standing { distance: 120, ..INTERNAL });
    tell(&mut tables, rip, "10.0.0.0/8", hop(Some("10.0.0.1"), 1), 1);
    assert_eq!(used(&mut tables, "10.0.0.0/8"), Some(way("10.0.0.1", 1)));
    tell(&mut tables, ospf, "10.0.0.0/8", hop(Some("10.0.0.2"), 2), 100);
    assert_eq!(used(&mut tables, "10.0.0.0/8"), Some(way("10.0.0.2", 2)));
    tables.set_standing(rip, Standing { distance: 1, ..INTERNAL });
    assert_eq!(used(&mut tables, "10.0.0.0/8"), Some(way("10.0.0.1", 1)));
    tables.set_standing(rip, Standing { distance: 255, ..INTERNAL });
    assert!(tables.withdraw(place("10.0.0.0/8"), ospf));
    assert_eq!(used(&mut tables, "10.0.0.0/8"), None, "255 is never used");
}

#[test]
fn external_routes_go_where_internal_ones_lead_to_their_gateway() {
    let mut tables = Tables::new();
    let connected = tables.add_origin(Standing { distance: 0, ..INTERNAL });
    let igp = tables.add_origin(INTERNAL);
    let bgp = tables.add_origin(EXTERNAL);
    tell(&mut tables, bgp, "203.0.113.0/24", hop(Some("192.0.2.9"), 0), 0);
    assert_eq!(used(&mut tables, "203.0.113.0/24"), None);
    tell(&mut tables, igp, "192.0.2.0/24", hop(Some("10.0.0.1"), 1), 5);
    assert_eq!(used(&mut tables, "203.0.113.0/24"), Some(way("10.0.0.1", 1)));
    // Nearer now; and then on the link itself.
    tell(&mut tables, igp, "192.0.2.0/28", hop(Some("10.0.0.2"), 2), 5);
    assert_eq!(used(&mut tables, "203.0.113.0/24"), Some(way("10.0.0.2", 2)));
    tell(&mut tables, connected, "192.0.2.8/29", hop(None, 3), 0);
    assert_eq!(used(&mut tables, "203.0.113.0/24"), Some(way("192.0.2.9", 3)));
    // An external route leads nobody.
    tell(&mut tables, bgp, "192.0.2.9/32", hop(Some("10.0.0.7"), 0), 0);
    assert_eq!(used(&mut tables, "203.0.113.0/24"), Some(way("192.0.2.9", 3)));
    tables.begin(igp);
    tables.begin(connected);
    tables.end(igp);
    tables.end(connected);
    assert_eq!(used(&mut tables, "203.0.113.0/24"), None);
}

#[test]
fn readers_hear_when_the_way_of_a_route_changes() {
    let mut tables = Tables::new();
    let (igp, bgp) = (tables.add_origin(INTERNAL), tables.add_origin(EXTERNAL));
    let reader = tables.routes.open_reader(Version::V4, Hears::Best);
    let heard = |tables: &mut Tables| {
        settle(tables);
        let heard = std::iter::from_fn(|| tables.routes.next(Version::V4, reader));
        heard
            .map(|news| (Version::V4.net(&news.prefix), news.best.is_some()))
            .collect::<BTreeSet<_>>()
    };
    tell(&mut tables, igp, "192.0.2.0/24", hop(Some("10.0.0.1"), 1), 5);
    tell(&mut tables, bgp, "203.0.113.0/24", hop(Some("192.0.2.9"), 0), 0);
    tell(&mut tables, bgp, "203.0.112.0/24", hop(Some("198.51.100.9"), 0), 0);
    assert_eq!(heard(&mut tables).len(), 2);
    tell(&mut tables, igp, "192.0.2.0/24", hop(Some("10.0.0.2"), 1), 5);
    let both = BTreeSet::from([(net("192.0.2.0/24"), true), (net("203.0.113.0/24"), true)]);
    assert_eq!(heard(&mut tables), both);
    assert!(tables.withdraw(place("192.0.2.0/24"), igp));
    let both = BTreeSet::from([(net("192.0.2.0/24"), false), (net("203.0.113.0/24"), false)]);
    assert_eq!(heard(&mut tables), both);
    assert_eq!(heard(&mut tables), BTreeSet::new());
}

#[test]
fn routes_to_nowhere_need_no_gateway() {
    let mut tables = Tables::new();
    let bgp = tables.add_origin(EXTERNAL);
    tables.set(place("10.0.0.0/8"), bgp, Route { set: SetId(0), metric: 0, tag: 0 });
    assert_eq!(used(&mut tables, "10.0.0.0/8"), Some(Vec::new()));
}

/// Remotely triggered blackholes (RFC 5635 §3): a next hop that is set aside is reached nowhere, whatever is around it.
#[test]
fn routes_to_a_gateway_that_is_routed_nowhere_lead_nowhere() {
    let mut tables = Tables::new();
    let (igp, bgp) = (tables.add_origin(INTERNAL), tables.add_origin(EXTERNAL));
    let reader = tables.routes.open_reader(Version::V4, Hears::Best);
    let nowhere = |tables: &mut Tables, to: &str| {
        settle(tables);
        let (version, net) = place(to);
        let best = tables.routes.best(version, tables.routes.number(version, &net).unwrap());
        tables.sets.nowhere(best?.route.set)
    };
    tell(&mut tables, igp, "0.0.0.0/0", hop(Some("10.0.0.1"), 1), 0);
    tell(&mut tables, bgp, "203.0.113.7/32", hop(Some("192.0.2.1"), 0), 0);
    assert_eq!(used(&mut tables, "203.0.113.7/32"), Some(way("10.0.0.1", 1)));
    let (block, _) = tables.register(1, ip("192.0.2.1"));
    while tables.routes.next(Version::V4, reader).is_some() {}
    let unreachable = Route { set: SetId(1), metric: 3, tag: 0 };
    tables.set(place("192.0.2.1/32"), igp, unreachable);
    assert_eq!(nowhere(&mut tables, "203.0.113.7/32"), Some(SetId(1)));
    assert_eq!(used(&mut tables, "203.0.113.7/32"), Some(Vec::new()), "it is used all the same");
    let heard: BTreeSet<_> = std::iter::from_fn(|| tables.routes.next(Version::V4, reader))
        .map(|news| Version::V4.net(&news.prefix))
        .collect();
    assert_eq!(heard, [net("192.0.2.1/32"), net("203.0.113.7/32")].into());
    // Clients hear that it is reached otherwise, and not by a neighbour.
    assert_eq!(tables.take_invalid(), [(1, block)]);
    let (block, answer) = tables.register(1, ip("192.0.2.1"));
    let way = crate::watchers::way(block, &answer);
    assert_eq!((way.found, way.metric, way.is_neighbour), (true, 3, false));
    // Where there is another way, packets take that.
    let both = tables.set_of(vec![hop(Some("192.0.2.1"), 0), hop(Some("192.0.2.2"), 0)]);
    tables.set(place("203.0.113.8/32"), bgp, Route { set: both, metric: 0, tag: 0 });
    tables.give(both);
    assert_eq!(used(&mut tables, "203.0.113.8/32").map(|ways| ways.len()), Some(1));
    // A network around it leads nobody there: what has no route within is not reached at all.
    assert!(tables.withdraw(place("192.0.2.1/32"), igp));
    tables.set(place("192.0.2.0/24"), igp, unreachable);
    assert_eq!(used(&mut tables, "203.0.113.7/32"), None);
    let (_, answer) = tables.register(1, ip("192.0.2.1"));
    assert_eq!(answer.way, None);
    // And when it is over, the first one serves again.
    assert!(tables.withdraw(place("192.0.2.0/24"), igp));
    assert_eq!(nowhere(&mut tables, "203.0.113.7/32"), None);
    assert_eq!(used(&mut tables, "203.0.113.7/32").map(|ways| ways.len()), Some(1));
}

#[derive(Clone, Debug)]
enum Step {
    Tell { origin: usize, net: u8, hop: u8, metric: u32 },
    Withdraw { origin: usize, net: u8 },
    Register { session: u64, address: u8 },
    Work,
    Renew(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let net = 0u8..31;
    let step = prop_oneof![
        6 => (0usize..3, net.clone(), 0u8..7, 0u32..3)
            .prop_map(|(origin, net, hop, metric)| Step::Tell { origin, net, hop, metric }),
        3 => (0usize..3, net).prop_map(|(origin, net)| Step::Withdraw { origin, net }),
        3 => (1u64..3, 0u8..16).prop_map(|(session, address)| Step::Register { session, address }),
        2 => Just(Step::Work),
        1 => (0usize..3).prop_map(Step::Renew),
    ];
    prop::collection::vec(step, 1..120)
}

/// All nets in 10.0.0.0/28, numbered as in a heap.
fn small_net(number: u8) -> Ipv4Net {
    let length = (number + 1).ilog2() as u8;
    let place = number + 1 - (1 << length);
    let address = Ipv4Addr::new(10, 0, 0, place << (4 - length));
    Ipv4Net::new(address, 28 + length).unwrap()
}

/// Two ways by interfaces, gateways within the nets, and nowhere.
fn small_hop(number: u8) -> Option<Hop> {
    match number {
        0 => Some(hop(None, 7)),
        1 => Some(hop(Some("192.0.2.1"), 1)),
        2 => Some(hop(Some("192.0.2.2"), 2)),
        6 => None,
        near => Some(hop(Some(&format!("10.0.0.{}", near * 3)), 0)),
    }
}

/// No hop is nowhere.
type Model = BTreeMap<(usize, Ipv4Net), (Option<Hop>, u32)>;

const STANDINGS: [Standing; 3] = [Standing { distance: 0, is_external: false }, INTERNAL, EXTERNAL];

/// Whether others may go by it: it names its interface, or leads nowhere.
fn model_leads(origin: usize, hop: Option<&Hop>) -> bool {
    !STANDINGS[origin].is_external && hop.is_none_or(|hop| hop.interface.is_some())
}

/// The longest net around an address to which a route leads that others may go by, and that route.
fn model_leader(model: &Model, address: Ipv4Addr) -> Option<(Ipv4Net, Option<Hop>, u32)> {
    let leads = |(origin, net): &(usize, Ipv4Net), hop: &Option<Hop>| {
        model_leads(*origin, hop.as_ref()) && net.contains(&address)
    };
    let leaders = model.iter().filter(|(key, (hop, _))| leads(key, hop));
    let best = leaders.min_by_key(|((origin, net), (_, metric))| {
        (std::cmp::Reverse(net.prefix_len()), STANDINGS[*origin].distance, *metric, *origin)
    });
    best.map(|((_, net), (hop, metric))| (*net, *hop, *metric))
}

/// Whether anything is reached by it: a network that is nowhere leads nobody there, but a single address.
fn reaches((net, hop, _): &(Ipv4Net, Option<Hop>, u32)) -> bool {
    hop.is_some() || net.prefix_len() == 32
}

/// Where a route leads, no ways if nowhere; none if it cannot be used.
fn model_ways(model: &Model, hop: Option<&Hop>) -> Option<Vec<Way>> {
    let Some(hop) = hop else { return Some(Vec::new()) };
    if let Some(interface) = hop.interface {
        return Some(vec![Way { gateway: hop.gateway, interface, weight: 1 }]);
    }
    let Some(IpAddr::V4(gateway)) = hop.gateway else { return None };
    let (_, leader, _) = model_leader(model, gateway).filter(reaches)?;
    let way = leader.map(|leader| Way {
        gateway: leader.gateway.or(hop.gateway),
        interface: leader.interface.unwrap(),
        weight: 1,
    });
    Some(way.into_iter().collect())
}

fn run(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut tables = Tables::new();
    let origins = STANDINGS.map(|standing| tables.add_origin(standing));
    let reader = tables.routes.open_reader(Version::V4, Hears::Best);
    let mut model = Model::new();
    let mut told: BTreeMap<(u64, IpNet), (Ipv4Addr, Option<u32>)> = BTreeMap::new();
    for step in steps {
        match step {
            Step::Tell { origin, net, hop, metric } => {
                let (net, hop) = (small_net(net), small_hop(hop));
                let set = hop.map_or(BLACKHOLE, |hop| tables.set_of(vec![hop]));
                tables.set(split(net.into()), origins[origin], Route { set, metric, tag: 0 });
                hop.into_iter().for_each(|_| tables.give(set));
                model.insert((origin, net), (hop, metric));
            }
            Step::Withdraw { origin, net } => {
                let net = small_net(net);
                let was = model.remove(&(origin, net)).is_some();
                prop_assert_eq!(tables.withdraw(split(net.into()), origins[origin]), was);
            }
            Step::Register { session, address } => {
                let address = Ipv4Addr::new(10, 0, 0, address);
                let (block, answer) = tables.register(session, address.into());
                let IpNet::V4(v4) = block else { unreachable!() };
                prop_assert!(v4.contains(&address));
                let expected = model_leader(&model, address);
                prop_assert_eq!(
                    answer.way.clone().map(|(_, metric)| metric),
                    expected.filter(reaches).map(|one| one.2)
                );
                // All addresses of the block have the same leader, and a block twice as large would not do.
                let same = |net: Ipv4Net| {
                    let inside = |other: &Ipv4Net| net.contains(other) && *other != net;
                    let overlaid = model.iter().any(|((origin, other), (hop, _))| {
                        model_leads(*origin, hop.as_ref()) && inside(other)
                    });
                    let leader = model_leader(&model, net.network()).map(|one| one.0);
                    !overlaid
                        && leader.is_none_or(|leader| leader.contains(&net))
                        && leader == expected.map(|one| one.0)
                };
                prop_assert!(same(v4), "{v4} for {address}");
                if v4.prefix_len() > 0 {
                    prop_assert!(
                        !same(v4.supernet().unwrap()),
                        "{v4} is not the largest for {address}"
                    );
                }
                told.retain(|(of, other), _| {
                    *of != session || !block.contains(other) && !other.contains(&block)
                });
                told.insert((session, block), (address, answer.way.map(|(_, metric)| metric)));
            }
            Step::Work => tables.work(),
            Step::Renew(origin) => {
                tables.begin(origins[origin]);
                tables.end(origins[origin]);
                settle(&mut tables);
                model.retain(|(of, _), _| *of != origin);
            }
        }
        for (session, block) in tables.take_invalid() {
            prop_assert!(
                told.remove(&(session, block)).is_some(),
                "{block} was not told {session}"
            );
        }
        // What was not taken back holds.
        for ((_, block), (_, metric)) in &told {
            let IpNet::V4(block) = block else { unreachable!() };
            for address in [block.network(), block.broadcast()] {
                let leader = model_leader(&model, address).filter(reaches);
                prop_assert_eq!(leader.map(|one| one.2), *metric);
            }
        }
    }
    settle(&mut tables);
    let mut heard = BTreeMap::new();
    while let Some(news) = tables.routes.next(Version::V4, reader) {
        heard.insert(Version::V4.net(&news.prefix), news.best);
    }
    let nets: BTreeSet<_> = model.keys().map(|(_, net)| *net).collect();
    for net in nets {
        let usable = model
            .iter()
            .filter(|((_, of), (hop, _))| *of == net && model_ways(&model, hop.as_ref()).is_some());
        let best = usable.min_by_key(|((origin, _), (_, metric))| {
            (STANDINGS[*origin].distance, *metric, *origin)
        });
        let expected = best.and_then(|(_, (hop, _))| model_ways(&model, hop.as_ref()));
        let found = used(&mut tables, &net.to_string());
        prop_assert_eq!(&found, &expected, "{}", net);
        let heard = heard.get(&IpNet::V4(net)).copied().flatten();
        prop_assert_eq!(heard.is_some(), expected.is_some(), "{}", net);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn agrees_with_a_naive_twin(steps in steps()) {
        run(steps)?;
    }
}

/// A call that tells so many routes, each to a gateway.
fn change(origin: u32, routes: &[(&str, &str)]) -> crate::interface::Change {
    let (hops, gone, multicast) = (Vec::new(), Vec::new(), None);
    let mut request =
        crate::interface::Change { origin, hops, routes: Vec::new(), gone, multicast };
    for (set, (to, gateway)) in (crate::FIRST_SET..).zip(routes) {
        request.hops.push(crate::interface::Hop {
            set,
            gateway: ip(gateway),
            interface: 1,
            weight: 1,
        });
        request.routes.push(crate::interface::Route { net: net(to), set, metric: 0, tag: 0 });
    }
    request
}

#[test]
fn a_set_that_loses_its_last_route_and_gets_another_in_one_call_stays() {
    let mut rib = crate::Rib::new();
    let open =
        crate::interface::OpenOrigin { protocol: "test".to_owned(), external: false, distance: 10 };
    let origin =
        rib.origins.open(Instant::ZERO, (1, true), open, &rib.config, &mut rib.tables).unwrap();
    let origin = u32::from(origin.id.0);
    rib.change(Instant::ZERO, 1, change(origin, &[("10.1.0.0/16", "192.0.2.1")]), &mut Vec::new())
        .unwrap();
    // The first set goes from one network to the other.
    let moved = [("10.1.0.0/16", "192.0.2.2"), ("10.2.0.0/16", "192.0.2.1")];
    rib.change(Instant::ZERO, 1, change(origin, &moved), &mut Vec::new()).unwrap();
    // Whatever comes next must not take its place.
    rib.change(Instant::ZERO, 1, change(origin, &[("10.3.0.0/16", "192.0.2.3")]), &mut Vec::new())
        .unwrap();
    settle(&mut rib.tables);
    for (to, gateway) in moved.into_iter().chain([("10.3.0.0/16", "192.0.2.3")]) {
        assert_eq!(used(&mut rib.tables, to), Some(way(gateway, 1)), "{to}");
    }
    let gone = crate::interface::Change {
        gone: ["10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16"].map(net).to_vec(),
        ..change(origin, &[])
    };
    rib.change(Instant::ZERO, 1, gone, &mut Vec::new()).unwrap();
    assert!(used(&mut rib.tables, "10.2.0.0/16").is_none());
}

#[test]
fn routes_for_multicast_lead_where_the_others_lead_and_nobody_else_anywhere() {
    let mut tables = Tables::new();
    let [igp, bgp] = [INTERNAL, EXTERNAL].map(|standing| tables.add_origin(standing));
    let fib = tables.routes.open_reader(Version::V4, Hears::Best);
    let tell_multicast = |tables: &mut Tables, origin, to, hop| {
        let set = tables.set_of(vec![hop]);
        tables.set(split_for(net(to), true), origin, Route { set, metric: 0, tag: 0 });
        tables.give(set);
    };
    let way_of = |tables: &mut Tables, to| {
        settle(tables);
        let (version, net) = split_for(net(to), true);
        let best = tables.routes.best(version, tables.routes.number(version, &net)?)?;
        Some(tables.sets.ways(best.route.set).to_vec())
    };
    tell(&mut tables, igp, "10.0.0.0/8", hop(None, 3), 0);
    tables.register(1, ip("10.0.0.9"));
    tell_multicast(&mut tables, bgp, "192.0.2.0/24", hop(Some("10.0.0.9"), 0));
    tell_multicast(&mut tables, igp, "10.0.0.0/24", hop(None, 4));
    assert_eq!(way_of(&mut tables, "192.0.2.0/24"), Some(way("10.0.0.9", 3)));
    assert_eq!(used(&mut tables, "192.0.2.0/24"), None);
    assert_eq!(tables.take_invalid(), [], "packets go where they went");
    tell(&mut tables, igp, "10.0.0.0/24", hop(None, 5), 0);
    assert_eq!(way_of(&mut tables, "192.0.2.0/24"), Some(way("10.0.0.9", 5)));
    // Whoever tells the FEA hears of nothing else.
    let mut told = Vec::new();
    while let Some(news) = tables.routes.next(Version::V4, fib) {
        told.push(Version::V4.net(&news.prefix));
    }
    assert_eq!(told, [net("10.0.0.0/8"), net("10.0.0.0/24")]);
    assert!(tables.withdraw(split_for(net("10.0.0.0/24"), true), igp));
    assert_eq!(used(&mut tables, "10.0.0.0/24").map(|ways| ways[0].interface), Some(5));
    // Who tells its routes anew tells these anew, too.
    tables.begin(bgp);
    tables.end(bgp);
    assert_eq!(way_of(&mut tables, "192.0.2.0/24"), None);
}

#[test]
fn networks_on_links_are_where_multicast_may_come_from() {
    let mut tables = Tables::new();
    let (mut connected, origin) = (Connected::default(), tables.add_origin(INTERNAL));
    for there in [true, false] {
        let interface = Interface {
            index: 3,
            name: "eth0".to_owned(),
            kind: "ethernet".to_owned(),
            mac: None,
            mtu: 1500,
            up: true,
            running: there,
            master: None,
            addresses: [InterfaceAddress { ip: ip("10.0.0.1"), prefix_length: 24 }].into(),
        };
        connected.changed(InterfaceChange::Changed(interface), origin, &mut tables);
        let has = |multicast| tables.has_route(split_for(net("10.0.0.0/24"), multicast), origin);
        assert_eq!([false, true].map(has), [there; 2]);
    }
}

#[test]
fn what_is_told_now_does_not_wait_until_the_fea_has_answered() {
    let mut tables = Tables::new();
    // The first one's are the kernel's own.
    let [_, origin] = [(); 2].map(|()| tables.add_origin(INTERNAL));
    for number in 0..3 * Window::CHANGES as u32 {
        let to = Ipv4Net::new((0x4000_0000 + (number << 8)).into(), 24).unwrap();
        tell(&mut tables, origin, &to.to_string(), hop(Some("192.0.2.1"), 1), 0);
    }
    let mut fib = Fib::new(Version::V4);
    let calls = |fib: &mut Fib, tables: &mut Tables| {
        let mut out = Vec::new();
        fib.tell(false, tables, &mut out);
        out.iter().filter(|output| matches!(output, Output::Call(_))).count()
    };
    fib.born(254, &mut tables, &mut Vec::new());
    assert_eq!(calls(&mut fib, &mut tables), 3, "and then it waits for answers");
    assert_eq!(calls(&mut fib, &mut tables), 0);
    tell(&mut tables, origin, "10.0.0.0/8", hop(Some("192.0.2.1"), 1), 0);
    assert_eq!(calls(&mut fib, &mut tables), 1, "but not with what is new");
    let (told, _) = fib.counts();
    assert_eq!(told, 3 * Window::CHANGES as u64 + 1);
    // A flood is no news that others would have to wait for.
    for number in 0..1000u32 {
        let to = Ipv4Net::new((0x5000_0000 + (number << 8)).into(), 24).unwrap();
        tell(&mut tables, origin, &to.to_string(), hop(Some("192.0.2.1"), 1), 0);
    }
    assert_eq!(calls(&mut fib, &mut tables), 0);
}

/// What the RIB makes of a route that is told goes to the FEA and to protocols in the same turn, and its origin is nobody else's.
#[test]
fn an_aggregate_follows_what_it_rests_on_at_once() {
    use weft_runtime::Component as _;
    let mut rib = crate::Rib::new();
    let open = |rib: &mut crate::Rib, protocol: &str| {
        let (protocol, external) = (protocol.to_owned(), false);
        let request = crate::interface::OpenOrigin { protocol, external, distance: 10 };
        let (config, tables) = (&rib.config, &mut rib.tables);
        rib.origins.open(Instant::ZERO, (1, true), request, config, tables)
    };
    let taken = |rib: &mut crate::Rib| open(rib, "aggregate").unwrap_err().to_string();
    assert!(taken(&mut rib).contains("somebody else speaks for `aggregate`"));
    let text = "rib { aggregate 10.0.0.0/8; protocol aggregate { distance 30; } }";
    rib.configure(Instant::ZERO, crate::config::read("t", text).unwrap(), &mut Vec::new());
    assert!(taken(&mut rib).contains("somebody else speaks for `aggregate`"));
    rib.origins.started(Instant::ZERO);
    rib.origins.tick(Instant::ZERO + std::time::Duration::from_secs(5), &mut rib.tables);
    assert!(!rib.origins.have_told(), "the RIB's own origins are nobody who is waited for");
    let origin = u32::from(open(&mut rib, "static").unwrap().id.0);
    let has_told = |rib: &crate::Rib| {
        rib.origins.all().iter().find(|one| one.protocol == "aggregate").unwrap().has_told
    };
    rib.change(
        Instant::ZERO,
        1,
        change(origin, &[("10.1.0.0/16", "192.0.2.1"), ("0.0.0.0/0", "192.0.2.9")]),
        &mut Vec::new(),
    )
    .unwrap();
    let turn = |rib: &mut crate::Rib| {
        rib.handle(
            Instant::ZERO,
            weft_xrl::Input::World(weft_runtime::Event::Tick),
            &mut Vec::new(),
        );
        let (version, net) = place("10.0.0.0/8");
        let best = rib.tables.routes.best(version, rib.tables.routes.number(version, &net)?)?;
        let of = rib.origins.of(best.origin);
        Some((of.protocol.clone(), of.standing.distance, rib.tables.sets.nowhere(best.route.set)))
    };
    assert_eq!(turn(&mut rib), Some(("aggregate".to_owned(), 30, Some(BLACKHOLE))));
    // Protocols that were told of it before this process began keep it until all have told what it may rest on.
    assert!(!has_told(&rib));
    rib.origins.end(1, origin, &mut rib.tables).unwrap();
    turn(&mut rib);
    assert!(has_told(&rib));
    rib.origins.tick(rib.origins.deadline().unwrap(), &mut rib.tables);
    rib.origins.begin(1, origin, &mut rib.tables).unwrap();
    turn(&mut rib);
    assert!(has_told(&rib), "who begins anew later may wait for it");
    // A gateway inside of it is not led to nowhere, or what it rests on might need the gateway.
    let (_, answer) = rib.tables.register(1, ip("10.9.9.9"));
    assert!(answer.way.is_some(), "the default route leads there");
    let gone = vec![net("10.1.0.0/16")];
    rib.change(
        Instant::ZERO,
        1,
        crate::interface::Change { gone, ..change(origin, &[]) },
        &mut Vec::new(),
    )
    .unwrap();
    assert_eq!(turn(&mut rib), None);
}

#[test]
fn a_guard_lets_pass_what_is_allowed_and_nothing_else() {
    let mut rib = crate::Rib::trusting(["bgp"]);
    let text = "rib { guard guest { prefix 10.1.0.0/16; most 2; rate 1; } }";
    rib.configure(Instant::ZERO, crate::config::read("t", text).unwrap(), &mut Vec::new());
    let open = |rib: &mut crate::Rib, protocol: &str, session, is_own| {
        let (protocol, external) = (protocol.to_owned(), false);
        let request = crate::interface::OpenOrigin { protocol, external, distance: 10 };
        let (config, tables) = (&rib.config, &mut rib.tables);
        let who = (session, is_own);
        u32::from(rib.origins.open(Instant::ZERO, who, request, config, tables).unwrap().id.0)
    };
    let (guest, bgp) = (open(&mut rib, "guest", 1, false), open(&mut rib, "bgp", 2, true));
    let mut said = Vec::new();
    let mut tell = |rib: &mut crate::Rib, session, origin, routes: &[(&str, &str)]| {
        rib.change(Instant::ZERO, session, change(origin, routes), &mut said).unwrap();
    };
    let hop = "192.0.2.1";
    tell(&mut rib, 1, guest, &[("10.1.1.0/24", hop), ("10.2.0.0/16", hop), ("10.0.0.0/8", hop)]);
    tell(&mut rib, 1, guest, &[("10.1.2.0/24", hop), ("10.1.3.0/24", hop)]);
    tell(&mut rib, 1, guest, &[("10.1.2.0/24", "192.0.2.2")]);
    tell(&mut rib, 2, bgp, &[("10.2.0.0/16", hop), ("10.1.3.0/24", hop), ("0.0.0.0/0", hop)]);
    assert_eq!(said.len(), 1, "it is said once: {said:?}");
    let has = |rib: &crate::Rib, to: &str, origin: u32| {
        rib.tables.has_route(place(to), OriginId(origin as u16))
    };
    for (to, there) in [
        ("10.1.1.0/24", true),
        ("10.1.2.0/24", true),
        ("10.1.3.0/24", false),
        ("10.2.0.0/16", false),
    ] {
        assert_eq!(has(&rib, to, guest), there, "{to}");
    }
    assert!(has(&rib, "0.0.0.0/0", bgp), "who is trusted tells anything");
    let mut gone = change(guest, &[]);
    gone.gone = vec![net("10.1.9.0/24"), net("10.1.1.0/24")];
    rib.change(Instant::ZERO, 1, gone, &mut Vec::new()).unwrap();
    let refused = |rib: &crate::Rib, why| {
        rib.origins.all()[guest as usize].guard.as_ref().unwrap().refused().get(why)
    };
    let all = [Refusal::Outside, Refusal::TooMany, Refusal::TooFast, Refusal::NotTold];
    assert_eq!(all.map(|why| refused(&rib, why)), [2, 1, 1, 1]);
    let shown = |within: &str, protocol: Option<&str>| {
        let (what, within) = ("routes".to_owned(), Some(within.to_owned()));
        let protocol = protocol.map(str::to_owned);
        let request = crate::interface::Show { what, within, protocol, ..Default::default() };
        let (tables, connected, fibs) = (&rib.tables, &rib.connected, &rib.fibs);
        let json = crate::show::show(&request, tables, &rib.origins, connected, fibs)?;
        let routes = json["routes"].as_array().unwrap().iter();
        Ok(routes.map(|one| one["prefix"].as_str().unwrap().to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(shown("10.1.0.0/16", None).unwrap(), ["10.1.2.0/24", "10.1.3.0/24"]);
    assert_eq!(shown("10.1.0.0/16", Some("bgp")).unwrap(), ["10.1.3.0/24"]);
    assert_eq!(shown("0.0.0.0/0", Some("bgp")).unwrap().len(), 3);
    let error: weft_xrl::XrlError = shown("0.0.0.0/0", Some("rip")).unwrap_err();
    assert!(error.note.contains("`rip` has told routes: say one of"), "{error:?}");
    // What it may not tell any more goes; what others have told stays.
    let text = "rib { guard guest { prefix 10.9.0.0/16; } }";
    rib.configure(Instant::ZERO, crate::config::read("t", text).unwrap(), &mut Vec::new());
    assert!(!has(&rib, "10.1.2.0/24", guest) && has(&rib, "10.1.3.0/24", bgp));
}

#[test]
fn routes_of_a_process_that_died_serve_on_and_those_of_one_that_was_removed_do_not() {
    use weft_runtime::Component as _;
    // Whoever hears of the removal after the end of the connection knows the session from before.
    for (ends, there) in [(vec![false], true), (vec![true], false), (vec![false, true], false)] {
        let mut rib = crate::Rib::trusting(["static"]);
        let text = "rib { grace 60s; }";
        rib.configure(Instant::ZERO, crate::config::read("t", text).unwrap(), &mut Vec::new());
        let (protocol, distance) = ("static".to_owned(), 1);
        let request = crate::interface::OpenOrigin { protocol, external: false, distance };
        let (config, tables) = (&rib.config, &mut rib.tables);
        let opened = rib.origins.open(Instant::ZERO, (7, true), request, config, tables).unwrap();
        let told = change(u32::from(opened.id.0), &[("10.1.0.0/16", "192.0.2.1")]);
        rib.change(Instant::ZERO, 7, told, &mut Vec::new()).unwrap();
        for removed in ends {
            let left = weft_xrl::Input::Left { session: 7, removed };
            rib.handle(Instant::ZERO, left, &mut Vec::new());
        }
        settle(&mut rib.tables);
        assert_eq!(rib.tables.has_route(place("10.1.0.0/16"), opened.id), there);
    }
}

#[test]
fn who_is_not_trusted_does_not_hold_up_the_others_for_long() {
    let mut rib = crate::Rib::trusting(["bgp"]);
    rib.origins.started(Instant::ZERO);
    let open = |rib: &mut crate::Rib, protocol: &str, who| {
        let (protocol, external) = (protocol.to_owned(), false);
        let request = crate::interface::OpenOrigin { protocol, external, distance: 10 };
        let (config, tables) = (&rib.config, &mut rib.tables);
        rib.origins.open(Instant::ZERO, who, request, config, tables).unwrap()
    };
    let bgp = open(&mut rib, "bgp", (1, true));
    open(&mut rib, "guest", (2, false));
    rib.origins.end(1, bgp.id.0.into(), &mut rib.tables).unwrap();
    rib.origins.tick(rib.origins.deadline().unwrap(), &mut rib.tables);
    assert!(!rib.origins.have_told(), "the guest is waited for");
    rib.origins.tick(rib.origins.deadline().unwrap(), &mut rib.tables);
    assert!(rib.origins.have_told(), "and not any more");
    rib.origins.begin(1, bgp.id.0.into(), &mut rib.tables).unwrap();
    assert!(!rib.origins.have_told(), "who is trusted is waited for as long as it takes");
}
