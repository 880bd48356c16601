//! One network from its beginning to its end.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use serde_json::Value;
use weft_base::{Instant, Random};
use weft_bgp::interface::Clear;
use weft_runtime::LinkConfig;
use weft_runtime::sim::{InterfaceConfig, InterfaceId, World, WorldConfig};

use crate::faults::{Event, Faults};
use crate::plan::{Plan, ROUTERS};
use crate::reference::{State, Used};
use crate::router::{PROCESSES, Router};

/// After this time nothing happens any more: longer than attempts to connect, graceful restarts, and what the RIB keeps.
const QUIET: Duration = Duration::from_secs(600);
/// How long the answers of a router may take.
const ANSWERS: Duration = Duration::from_secs(5);
/// Before the first fault.
const BEGIN: Duration = Duration::from_secs(5);

struct Network {
    world: World,
    plan: Plan,
    routers: Vec<Router>,
    /// Of both ends of each link.
    links: Vec<[InterfaceId; 2]>,
    stubs: Vec<InterfaceId>,
}

impl Network {
    fn new(seed: u64, plan: Plan, random: &Random) -> Self {
        let mut world = World::new(WorldConfig { seed, ..WorldConfig::default() });
        let names: Vec<_> = (0..ROUTERS).map(|router| format!("r{router}")).collect();
        let nodes: Vec<_> = names.iter().map(|name| world.add_node(name).unwrap()).collect();
        let mut interface = |router: usize, name: String, address: Ipv4Addr| {
            let id = world.add_interface(nodes[router], InterfaceConfig::new(&name)).unwrap();
            world.add_address(id, address, 24).unwrap();
            id
        };
        let links: Vec<[InterfaceId; 2]> = (0..plan.links.len())
            .map(|link| {
                plan.links[link].ends.map(|router| {
                    interface(router, format!("link{link}"), plan.address(link, router))
                })
            })
            .collect();
        let stubs: Vec<_> = (0..ROUTERS)
            .map(|router| {
                let address = Ipv4Addr::new(192, 168, router as u8, 1);
                interface(router, "stub".to_owned(), address)
            })
            .collect();
        // A link without another end does not run.
        let hosts = world.add_node("hosts").unwrap();
        for (router, stub) in stubs.iter().enumerate() {
            let host = InterfaceConfig::new(&names[router]);
            let host = world.add_interface(hosts, host).unwrap();
            let usual = LinkConfig::default();
            world.connect((*stub, usual.clone()), (host, usual)).unwrap();
        }
        for [one, other] in &links {
            let config = LinkConfig { delay: Duration::from_millis(1), ..LinkConfig::default() };
            world.connect((*one, config.clone()), (*other, config)).unwrap();
        }
        let routers = nodes.iter().zip(&names).enumerate().map(|(place, (node, name))| {
            Router::new(*node, name, plan.config(place), random.fork(name))
        });
        let routers = routers.collect();
        Self { world, plan, routers, links, stubs }
    }

    fn happen(&mut self, event: Event) {
        let (world, routers) = (&mut self.world, &mut self.routers);
        match event {
            Event::Link(link, up) => self.links[link].iter().for_each(|one| world.set_up(*one, up)),
            Event::Stub(router, up) => world.set_up(self.stubs[router], up),
            Event::Kill(router, place) => routers[router].kill(world, place),
            Event::Start(router, place) => routers[router].start(world, place),
            Event::Clear(router, link, soft) => {
                let peer = self.plan.address(link, self.plan.links[link].other(router));
                // Where a session ends, both sides keep routes on every other link.
                let hard = (soft.is_none() && link % 2 == 1).then_some(true);
                let (peer, soft) = (peer.into(), soft.map(str::to_owned));
                routers[router].clear(world, Clear { peer, soft, hard, others: None });
            }
        }
    }

    /// Prints what processes have reported, if that is wanted.
    fn log(&self) {
        if std::env::var_os("WEFT_BGP_LOG").is_none() {
            return;
        }
        for process in self.world.processes() {
            for line in self.world.lines(process) {
                eprintln!("{} {line:?}", self.world.process_name(process));
            }
        }
    }

    /// What BGP and the RIB of each router use: by network the AS path and the peer, or neither; and the gateway.
    fn used(&mut self) -> Vec<Tables> {
        let world = &mut self.world;
        let answers: Vec<_> = self.routers.iter().map(|router| router.ask(world)).collect();
        let until = world.now() + ANSWERS;
        world.run_until(until).unwrap();
        let read = |answers: crate::router::Answers| {
            let answers = answers.borrow();
            let [bgp, rib] = [0, 1].map(|place| {
                let text = answers[place].as_ref().expect("it answers in time");
                serde_json::from_str::<Value>(text).unwrap()
            });
            Tables { bgp: bgp_routes(&bgp), rib: rib_routes(&rib) }
        };
        answers.into_iter().map(read).collect()
    }
}

/// What a router uses.
#[derive(Debug)]
struct Tables {
    /// The path and the peer; none of both if it is the router's own.
    bgp: BTreeMap<String, Option<(String, String)>>,
    /// The protocol and the gateway.
    rib: BTreeMap<String, (String, Option<String>)>,
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn entries<'a>(
    shown: &'a Value,
    list: &'a str,
    mark: &'a str,
) -> impl Iterator<Item = (String, &'a Value)> {
    assert!(shown["next"].is_null(), "it is one page");
    let nets = shown["routes"].as_array().unwrap().iter();
    nets.filter_map(move |net| {
        let mut all = net[list].as_array().unwrap().iter();
        Some((text(&net["prefix"])?, all.find(|one| one[mark] == Value::Bool(true))?))
    })
}

fn bgp_routes(shown: &Value) -> BTreeMap<String, Option<(String, String)>> {
    let route = |one: &Value| Some((text(&one["as-path"])?, text(&one["peer"])?));
    entries(shown, "paths", "best").map(|(net, one)| (net, route(one))).collect()
}

fn rib_routes(shown: &Value) -> BTreeMap<String, (String, Option<String>)> {
    let route = |one: &Value| (text(&one["protocol"]).unwrap(), text(&one["gateways"][0]));
    entries(shown, "routes", "used").map(|(net, one)| (net, route(one))).collect()
}

/// What a seed's network is.
pub(crate) fn plan(seed: u64) -> Plan {
    Plan::new(&mut random(seed))
}

fn random(seed: u64) -> Random {
    Random::from_seed(seed).fork("ten routers")
}

/// Runs the network of a seed.
pub(crate) fn run(seed: u64) {
    let mut random = random(seed);
    let plan = Plan::new(&mut random);
    let faults = Faults::new(&plan, &mut random);
    let mut network = Network::new(seed, plan, &random);
    for router in 0..ROUTERS {
        (0..PROCESSES.len()).for_each(|place| network.happen(Event::Start(router, place)));
    }
    for (at, event) in &faults.events {
        network.world.run_until(Instant::ZERO + BEGIN + *at).unwrap();
        network.happen(*event);
    }
    let until = network.world.now() + QUIET;
    network.world.run_until(until).unwrap();
    network.log();
    let tables = network.used();
    let Faults { down, stubs_down, .. } = &faults;
    let plan = &network.plan;
    let state = State { plan, down, stubs_down };
    if std::env::var_os("WEFT_BGP_LOG").is_some() {
        eprintln!("{tables:#?}");
    }
    let context = |router: usize| format!("seed {seed}, r{router}, after {:?}", faults.events);
    for network in plan.networks() {
        let expected = state.solve(&network);
        for (router, used) in expected.iter().enumerate() {
            let (bgp, rib) = (tables[router].bgp.get(&network), tables[router].rib.get(&network));
            let wanted = used.as_ref().map(|used| match used {
                Used::Own => None,
                Used::Learned(one) => Some((one.path_text(), one.peer.to_string())),
            });
            assert_eq!(bgp.cloned(), wanted, "BGP, {network}: {}", context(router));
            let learned = rib.filter(|(protocol, _)| protocol.ends_with("bgp"));
            let gateway = learned.map(|(_, gateway)| gateway.clone());
            let wanted = wanted.flatten().map(|(_, peer)| Some(peer));
            assert_eq!(gateway, wanted, "the RIB, {network}: {}", context(router));
            walk(plan, &tables, &network, router, used.is_some(), &context(router));
        }
    }
    // Nobody has anything else.
    let networks = plan.networks();
    for (router, tables) in tables.iter().enumerate() {
        let stale = tables.bgp.keys().find(|net| !networks.contains(net));
        assert_eq!(stale, None, "{}", context(router));
    }
}

/// Follows the RIBs from a router to where the network is.
fn walk(
    plan: &Plan,
    tables: &[Tables],
    network: &str,
    from: usize,
    is_reached: bool,
    context: &str,
) {
    let mut at = from;
    for _ in 0..=ROUTERS {
        let Some((_, Some(gateway))) = tables[at].rib.get(network) else {
            let is_own = tables[at].bgp.get(network).is_some_and(Option::is_none);
            assert_eq!(is_own, is_reached, "{network} ends at r{at}: {context}");
            return;
        };
        let next = plan.links_of(at).map(|link| (link, plan.links[link].other(at)));
        let mut next =
            next.filter(|(link, other)| plan.address(*link, *other).to_string() == *gateway);
        at = next.next().expect("gateways are neighbours").1;
    }
    panic!("{network} goes around in circles: {context}");
}
