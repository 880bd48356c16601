use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use weft_base::{Instant, Packet, PortId, Random};
use weft_keys::PrivateKey;
use weft_linkstate::NodeId;
use weft_linkstate::wire::MessageRepr;
use weft_port::{PortInfo, PortSpec};
use weft_runtime::Level;
use weft_xip::principal::{Input, Output};
use weft_xip::protocol::Protocol;
use weft_xip::{Xid, XidType};

use crate::LinkState;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn host(node: usize) -> Xid {
    let key = PrivateKey::from_seed([node as u8 + 1; 32]);
    Xid::new(XidType::HID, key.public_key().hash().to_bytes())
}

fn domain(id: u8) -> Xid {
    Xid::new(XidType::AD, [id; 20])
}

fn service(id: u8) -> Xid {
    Xid::new(XidType::XDP, [id; 20])
}

/// Nodes with one interface for each cable, called by the number of the node at its other end.
struct Network {
    nodes: Vec<LinkState>,
    cables: Vec<[usize; 2]>,
    cut: Vec<[usize; 2]>,
    redirects: Vec<BTreeMap<Xid, Vec<Xid>>>,
    adjacencies: Vec<BTreeSet<Xid>>,
    reports: Vec<(usize, Level, String)>,
    now: u64,
}

/// The port of XIP packets, or of link-state routing, on the interface to `to`.
fn port(to: usize, link_state: bool) -> PortId {
    PortId(1 + 2 * to as u32 + u32::from(link_state))
}

fn mac(from: usize, to: usize) -> [u8; 6] {
    [2, 0, 0, 0, from as u8, to as u8]
}

fn info(from: usize, to: usize) -> PortInfo {
    PortInfo { mac: mac(from, to), mtu: 1500, local: None }
}

impl Network {
    fn new(nodes: usize, cables: &[[usize; 2]]) -> Self {
        let start = |node: usize| {
            let key = PrivateKey::from_seed([node as u8 + 1; 32]);
            LinkState::new(Some(key), Random::from_seed(node as u64))
        };
        let mut network = Self {
            nodes: (0..nodes).map(start).collect(),
            cables: cables.to_vec(),
            cut: Vec::new(),
            redirects: vec![BTreeMap::new(); nodes],
            adjacencies: vec![BTreeSet::new(); nodes],
            reports: Vec::new(),
            now: 0,
        };
        for node in 0..nodes {
            network.set_locals(node, &[host(node)]);
        }
        for [one, other] in cables {
            for (from, to) in [(*one, *other), (*other, *one)] {
                network.interface_up(from, to);
            }
        }
        network
    }

    fn interface_up(&mut self, from: usize, to: usize) {
        let (name, port) = (format!("to{to}"), port(to, false));
        self.tell(from, Input::InterfaceUp { name, port, info: info(from, to) });
    }

    fn set_locals(&mut self, node: usize, locals: &[Xid]) {
        let mut out = Vec::new();
        self.nodes[node].set_locals(at(self.now), locals, &mut out);
        self.carry(node, out);
    }

    fn set(&mut self, node: usize, line: &str) {
        let (words, mut out) = (line.split(' ').collect::<Vec<_>>(), Vec::new());
        self.nodes[node].set(at(self.now), &words, &mut out).unwrap();
        self.carry(node, out);
    }

    fn tell(&mut self, node: usize, input: Input) {
        let mut out = Vec::new();
        self.nodes[node].handle(at(self.now), input, &mut out);
        self.carry(node, out);
    }

    /// Node 0 hears a beacon from a hardware address at which nobody is, on the cable to node 1.
    fn beacon(&mut self, number: usize) {
        let frame = [&[0xff; 6][..], &mac(9, number), &[0xc0, 0xe0, 0, 1]].concat();
        let packets = vec![Packet::from_slice(&frame)];
        self.tell(0, Input::Packets { port: port(1, true), packets });
    }

    /// Carries out what a node wants, and what follows from it at others.
    fn carry(&mut self, node: usize, out: Vec<Output>) {
        let mut waiting: VecDeque<_> = out.into_iter().map(|output| (node, output)).collect();
        while let Some((node, output)) = waiting.pop_front() {
            let (to, input) = match output {
                Output::OpenPort { token, spec } => {
                    let PortSpec::Ethernet { interface, ethertype } = spec else {
                        panic!("unexpected {spec:?}")
                    };
                    assert_eq!(ethertype, 0xc0e0);
                    let to: usize = interface[2..].parse().unwrap();
                    let (port, info) = (port(to, true), info(node, to));
                    (node, Input::PortOpened { token, port, info })
                }
                Output::Transmit { port: from, packet } => {
                    let mut all = self.cables.iter().flat_map(|[a, b]| [(*a, *b), (*b, *a)]);
                    let (_, to) = all
                        .find(|(one, other)| *one == node && port(*other, true) == from)
                        .expect("a port of this node");
                    if self.cut.contains(&[node, to]) || self.cut.contains(&[to, node]) {
                        continue;
                    }
                    (to, Input::Packets { port: port(node, true), packets: vec![packet] })
                }
                Output::Redirect(found) => {
                    for (xid, via) in found {
                        match via.is_empty() {
                            false => self.redirects[node].insert(xid, via),
                            true => self.redirects[node].remove(&xid),
                        };
                    }
                    continue;
                }
                Output::Adjacency { own, neighbour, up } => {
                    assert_eq!(own, host(node));
                    let known = &mut self.adjacencies[node];
                    assert!(if up { known.insert(neighbour) } else { known.remove(&neighbour) });
                    continue;
                }
                Output::Report { level, line } => {
                    self.reports.push((node, level, line));
                    continue;
                }
                Output::ClosePort { .. } => continue,
                Output::Route { .. } => panic!("a protocol has no packets to route"),
                Output::WatchIp | Output::FindNeighbour { .. } => {
                    panic!("a protocol between XIA nodes needs no IP")
                }
            };
            let mut out = Vec::new();
            self.nodes[to].handle(at(self.now), input, &mut out);
            waiting.extend(out.into_iter().map(|output| (to, output)));
        }
    }

    fn run(&mut self, ms: u64) {
        let end = self.now + ms;
        while self.now < end {
            self.now += 1;
            for node in 0..self.nodes.len() {
                if self.nodes[node].deadline().is_some_and(|due| due <= at(self.now)) {
                    self.tell(node, Input::Tick);
                }
            }
        }
    }

    /// The gateways that a node has for an XID.
    fn all_via(&self, node: usize, xid: Xid) -> &[Xid] {
        self.redirects[node].get(&xid).map_or(&[], Vec::as_slice)
    }

    /// The one gateway.
    fn via(&self, node: usize, xid: Xid) -> Option<Xid> {
        match self.all_via(node, xid) {
            [] => None,
            [via] => Some(*via),
            all => panic!("{xid} has several gateways at {node}: {all:?}"),
        }
    }
}

#[test]
fn hosts_behind_others_are_reached_over_them() {
    let mut network = Network::new(3, &[[0, 1], [1, 2]]);
    network.run(1000);
    assert_eq!(network.via(0, host(2)), Some(host(1)));
    assert_eq!(network.via(2, host(0)), Some(host(1)));
    assert_eq!(network.via(0, host(1)), None, "a neighbour needs no redirect");
    assert_eq!(network.nodes[0].distance(host(2)), Some(20));
    let shown = network.nodes[0].show();
    assert_eq!(shown["neighbours"][0]["state"], "usable");
    assert_eq!(shown["neighbours"][0]["xid"], host(1).to_string());
    assert_eq!(shown["database"].as_array().map(Vec::len), Some(3));
    assert_eq!(shown["routes"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_neighbour_behind_a_cut_cable_is_reached_the_other_way_round() {
    let mut network = Network::new(3, &[[0, 1], [1, 2], [2, 0]]);
    for node in 0..3 {
        network.set(node, "hello 100ms");
    }
    // The first hellos still tell the longer hold time, and the network comes to rest.
    network.run(4500);
    assert_eq!(network.via(0, host(1)), None);
    network.cut = vec![[0, 1]];
    network.run(600);
    assert_eq!(network.via(0, host(1)), Some(host(2)));
    assert_eq!(network.via(1, host(0)), Some(host(2)));
    let lost = |(_, level, line): &(usize, Level, String)| {
        *level == Level::Warning && line.contains("has fallen silent")
    };
    assert!(network.reports.iter().any(lost), "{:?}", network.reports);
    network.cut.clear();
    network.run(3000);
    assert_eq!(network.via(0, host(1)), None);
}

#[test]
fn a_tree_shares_links_and_neighbours_are_told() {
    // 0 to 3 and to 4, over 1 and 2, which are as near.
    let mut network = Network::new(5, &[[0, 1], [0, 2], [1, 3], [2, 3], [2, 4]]);
    network.run(2000);
    let adjacent = |network: &Network, node: usize| network.adjacencies[node].clone();
    assert_eq!(adjacent(&network, 0), BTreeSet::from([host(1), host(2)]));
    let tree = |network: &Network, to: &[usize]| {
        let to: Vec<_> = to.iter().map(|node| host(*node)).collect();
        network.nodes[0].tree(&to)
    };
    let links = |links: &[[usize; 2]]| {
        let mut links: Vec<_> = links.iter().map(|[from, to]| (host(*from), host(*to))).collect();
        links.sort_unstable();
        Ok(links)
    };
    assert_eq!(tree(&network, &[4]), links(&[[0, 2], [2, 4]]));
    // Whichever of both is reached first, three links are enough.
    assert_eq!(tree(&network, &[2, 3, 4]), links(&[[0, 2], [2, 3], [2, 4]]));
    let unknown = network.nodes[0].tree(&[Xid::new(XidType::HID, [9; 20])]).unwrap_err();
    assert!(unknown.starts_with("there is no way to hid-0909"), "{unknown}");
    network.tell(2, Input::InterfaceDown { port: port(0, false) });
    network.run(6000);
    assert_eq!(adjacent(&network, 2), BTreeSet::from([host(3), host(4)]));
    assert_eq!(adjacent(&network, 0), BTreeSet::from([host(1)]));
    assert_eq!(tree(&network, &[4]), links(&[[0, 1], [1, 3], [3, 2], [2, 4]]));
}

#[test]
fn an_interface_that_goes_is_noticed_at_once() {
    let mut network = Network::new(3, &[[0, 1], [1, 2], [2, 0]]);
    network.run(10_000);
    network.tell(0, Input::InterfaceDown { port: port(1, false) });
    network.run(20);
    assert_eq!(network.via(0, host(1)), Some(host(2)));
    network.interface_up(0, 1);
    network.run(6000);
    assert_eq!(network.via(0, host(1)), None);
}

#[test]
fn sessions_go_on_over_an_interface_with_another_mtu_that_is_long_enough() {
    let mut network = Network::new(2, &[[0, 1]]);
    network.run(2000);
    network.reports.clear();
    let change = |network: &mut Network, mac: [u8; 6], mtu: usize| {
        let info = PortInfo { mac, mtu, local: None };
        let (name, port) = ("to1".to_owned(), port(1, false));
        network.tell(0, Input::InterfaceUp { name, port, info });
    };
    let is_adjacent = |network: &Network| network.adjacencies[0].contains(&host(1));
    change(&mut network, mac(0, 1), 1400);
    assert!(is_adjacent(&network) && network.reports.is_empty(), "{:?}", network.reports);
    change(&mut network, mac(0, 1), 1399);
    assert!(!is_adjacent(&network), "no room for its messages");
    assert!(network.reports.iter().any(|(_, _, line)| line.contains("its MTU is 1399")));
    change(&mut network, mac(0, 1), 9000);
    network.run(1000);
    assert!(is_adjacent(&network));
}

#[test]
fn over_an_interface_with_another_address_there_is_a_session_again_at_once() {
    let mut network = Network::new(3, &[[0, 1], [1, 2]]);
    network.run(2000);
    let info = PortInfo { mac: [2, 0, 0, 0, 9, 9], mtu: 1500, local: None };
    let (name, port) = ("to1".to_owned(), port(1, false));
    network.tell(0, Input::InterfaceUp { name, port, info });
    network.run(100);
    assert_eq!(network.via(0, host(2)), Some(host(1)));
    assert_eq!(network.via(2, host(0)), Some(host(1)));
    // What neighbours knew of the old address they forget without losing the way.
    for _ in 0..70 {
        network.run(100);
        assert_eq!(network.via(2, host(0)), Some(host(1)));
    }
    let neighbours = network.nodes[1].show()["neighbours"].as_array().cloned().unwrap();
    let usable = neighbours.iter().filter(|one| one["state"] == "usable").count();
    assert_eq!(usable, 2, "{neighbours:?}");
}

#[test]
fn domains_and_chosen_names_are_advertised_while_they_are_local() {
    let mut network = Network::new(3, &[[0, 1], [1, 2]]);
    network.set(2, &format!("advertise {}", service(7)));
    network.set_locals(2, &[domain(5), host(2), service(7), service(8)]);
    network.run(1000);
    assert_eq!(network.via(0, domain(5)), Some(host(1)));
    assert_eq!(network.via(0, service(7)), Some(host(1)));
    assert_eq!(network.via(0, service(8)), None, "nobody said that it is to be advertised");
    assert_eq!(network.via(1, service(7)), Some(host(2)));
    network.set_locals(2, &[host(2)]);
    network.run(3000);
    assert_eq!((network.via(0, domain(5)), network.via(0, service(7))), (None, None));
}

#[test]
fn nobody_advertises_the_host_of_another() {
    let mut network = Network::new(3, &[[0, 1], [1, 2]]);
    // Node 2 says that it is node 9, and node 1 that it is node 2.
    network.set_locals(2, &[host(2), host(9)]);
    network.set_locals(1, &[host(1), host(2)]);
    network.run(1000);
    assert_eq!(network.via(0, host(9)), None);
    assert_eq!(network.nodes[0].distance(host(2)), Some(20));
}

#[test]
fn hosts_of_the_second_version_are_advertised_by_themselves_and_reached_as_neighbours() {
    let second = |node: usize| Xid::new(XidType::HID2, host(node).id);
    let mut network = Network::new(3, &[[0, 1], [1, 2]]);
    for name in [second(2), second(9)] {
        network.set(2, &format!("advertise {name}"));
    }
    network.set_locals(2, &[host(2), second(2), second(9)]);
    network.run(1000);
    assert_eq!(network.via(0, second(2)), Some(host(1)));
    assert_eq!(network.via(1, second(2)), None, "a neighbour needs no redirect");
    assert_eq!(network.via(0, second(9)), None);
}

#[test]
fn one_version_of_hid_replaces_the_other() {
    let second = |node: usize| Xid::new(XidType::HID2, host(node).id);
    let mut network = Network::new(3, &[[0, 1], [1, 2]]);
    network.set_locals(2, &[domain(5), host(2)]);
    network.run(1000);
    assert_eq!(network.all_via(0, domain(5)), [host(1)]);
    // With both, either leads there: the forwarder takes one that it knows where to find.
    for node in 0..3 {
        network.set_locals(node, &[domain(5), host(node), second(node)][usize::from(node < 2)..]);
    }
    assert_eq!(network.all_via(0, domain(5)), [host(1), second(1)], "at once");
    network.run(3000);
    assert_eq!(network.all_via(0, second(2)), [host(1), second(1)], "nobody need advertise it");
    assert_eq!(network.all_via(0, second(1)), [], "a neighbour needs no redirect");
    assert_eq!(network.adjacencies[0], BTreeSet::from([host(1)]), "a link has one gateway");
    network.set_locals(1, &[second(1)]);
    network.run(3000);
    assert_eq!(network.adjacencies[0], BTreeSet::from([second(1)]), "the other has no more");
    assert_eq!(network.adjacencies[1], BTreeSet::from([second(0), second(2)]));
    assert_eq!(network.adjacencies[2], BTreeSet::from([second(1)]));
    assert_eq!(network.nodes[0].tree(&[second(2)]), network.nodes[0].tree(&[host(2)]));
    for node in 0..3 {
        network.set_locals(node, &[domain(5), second(node)][usize::from(node < 2)..]);
    }
    network.run(3000);
    assert_eq!(network.all_via(0, domain(5)), [second(1)]);
    assert_eq!(network.all_via(1, domain(5)), [second(2)]);
    assert_eq!(network.all_via(0, second(2)), [second(1)]);
    assert_eq!(network.all_via(0, host(2)), [], "it is no longer advertised");
}

#[test]
fn hardware_addresses_that_only_send_beacons_keep_no_neighbour_out() {
    let mut network = Network::new(2, &[]);
    network.cables.push([0, 1]);
    network.set(0, "neighbour-limit 2");
    network.interface_up(0, 1);
    let beacons = |network: &mut Network| {
        (1..3).for_each(|number| network.beacon(number));
    };
    beacons(&mut network);
    network.interface_up(1, 0);
    for _ in 0..60 {
        beacons(&mut network);
        network.run(200);
    }
    assert_eq!(network.nodes[0].distance(host(1)), Some(10));
    // Who has a session is not replaced.
    for _ in 0..300 {
        beacons(&mut network);
        network.run(200);
    }
    assert_eq!(network.adjacencies[0], BTreeSet::from([host(1)]));
    let lost = |(_, level, _): &(usize, Level, String)| *level == Level::Warning;
    assert!(!network.reports.iter().any(lost), "{:?}", network.reports);
}

#[test]
fn a_hardware_address_has_time_for_a_session_before_another_takes_its_place() {
    let mut network = Network::new(2, &[]);
    network.cables.push([0, 1]);
    network.set(0, "neighbour-limit 1");
    network.interface_up(0, 1);
    let beacon = |network: &mut Network, number: usize| {
        network.beacon(number);
        network.nodes[0].show()["neighbours"][0]["link"].clone()
    };
    let first = beacon(&mut network, 1);
    network.run(3900);
    assert_eq!(beacon(&mut network, 2), first);
    network.run(200);
    assert_ne!(beacon(&mut network, 2), first);
}

#[test]
fn metrics_decide_and_an_interface_may_be_left_out() {
    let mut network = Network::new(3, &[[0, 1], [1, 2], [2, 0]]);
    network.set(0, "interface to1 metric 30");
    network.run(10_000);
    assert_eq!(network.via(0, host(1)), Some(host(2)));
    assert_eq!(network.via(1, host(0)), None, "the way back costs less");
    network.set(0, "interface to2 off");
    network.run(10_000);
    assert_eq!(network.via(0, host(2)), Some(host(1)));
    let words = ["interface", "to2", "off"];
    network.nodes[0].delete(at(network.now), &words, &mut Vec::new()).unwrap();
    assert!(network.nodes[0].delete(at(network.now), &words, &mut Vec::new()).is_err());
}

/// ```text
///     1
///   /   \\
/// 0 - 2 - 4
///   \\   /
///     3
/// ```
#[test]
fn several_ways_that_cost_the_same_are_all_told() {
    let cables = [[0, 1], [0, 2], [0, 3], [1, 4], [2, 4], [3, 4]];
    let mut network = Network::new(5, &cables);
    network.set_locals(4, &[domain(5), host(4)]);
    network.run(10_000);
    let sorted = |nodes: &[usize]| {
        let mut all: Vec<_> = nodes.iter().map(|node| host(*node)).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(network.all_via(0, host(4)), sorted(&[1, 2, 3]));
    assert_eq!(network.all_via(0, domain(5)), sorted(&[1, 2, 3]));
    assert_eq!(network.all_via(1, host(2)), sorted(&[0, 4]));
    assert_eq!(network.all_via(0, host(1)), [], "a neighbour needs no redirect");
    network.tell(0, Input::InterfaceDown { port: port(2, false) });
    network.run(2000);
    assert_eq!(network.all_via(0, domain(5)), sorted(&[1, 3]));
    network.set(0, "paths 1");
    network.run(2000);
    assert_eq!(network.all_via(0, domain(5)), &sorted(&[1, 3])[..1]);
    let mut out = Vec::new();
    network.nodes[0].delete(at(network.now), &["paths", "1"], &mut out).unwrap();
    network.carry(0, out);
    network.run(2000);
    assert_eq!(network.all_via(0, domain(5)), sorted(&[1, 3]));
    // A neighbour that is as near over somebody else is reached at once.
    network.set(0, "interface to1 metric 30");
    network.run(10_000);
    assert_eq!(network.all_via(0, host(1)), []);
}

#[test]
fn who_stops_takes_leave() {
    let mut network = Network::new(3, &[[0, 1], [1, 2], [2, 0]]);
    network.run(10_000);
    let mut out = Vec::new();
    network.nodes[1].stop(at(network.now), &mut out);
    network.carry(1, out);
    network.run(200);
    assert_eq!(network.nodes[0].distance(host(1)), None);
    assert!(network.reports.iter().any(|(_, _, line)| line.contains("took leave")));
}

#[test]
fn without_a_key_a_node_says_so_and_takes_no_part() {
    let mut node = LinkState::new(None, Random::from_seed(1));
    let mut out = Vec::new();
    node.set_locals(at(0), &[host(1)], &mut out);
    let up =
        |name: &str| Input::InterfaceUp { name: name.into(), port: PortId(1), info: info(0, 1) };
    node.handle(at(0), up("eth0"), &mut out);
    node.handle(at(0), up("eth1"), &mut out);
    assert!(
        matches!(&out[..], [Output::Report { level: Level::Error, line }] if line.contains("identity")),
        "{out:?}"
    );
    assert_eq!((node.deadline(), node.distance(host(1))), (None, None));
}

#[test]
fn frames_that_are_none_of_ours_are_counted() {
    let mut network = Network::new(2, &[[0, 1]]);
    network.run(1000);
    let count = |network: &Network, name: &str| network.nodes[0].show()["counters"][name].clone();
    let mut give = |bytes: &[u8]| {
        let packets = vec![Packet::from_slice(bytes)];
        network.tell(0, Input::Packets { port: port(1, true), packets });
    };
    let frame =
        |to: [u8; 6], from: [u8; 6], rest: &[u8]| [&to[..], &from, &[0xc0, 0xe0], rest].concat();
    give(b"short");
    give(&frame(mac(0, 1), mac(1, 0), b""));
    give(&frame([0xff; 6], mac(1, 0), &[1, 2]));
    give(&frame(mac(0, 1), mac(0, 1), &[0, 1]));
    give(&frame(mac(0, 5), mac(1, 0), &[0, 1]));
    give(&frame(mac(0, 1), [3; 6], &[0, 1]));
    for number in 0..100 {
        give(&frame([0xff; 6], mac(9, number), &[0, 1]));
    }
    assert_eq!(count(&network, "bad-frame"), 3);
    assert_eq!(count(&network, "other-host"), 3);
    assert_eq!(count(&network, "too-many-neighbours"), 37);
    // Those that are only beacons are forgotten.
    network.run(35_000);
    assert_eq!(network.nodes[0].show()["neighbours"].as_array().map(Vec::len), Some(1));
}

#[test]
fn greetings_of_an_interface_are_bounded_however_many_addresses_they_come_from() {
    let mut network = Network::new(2, &[[0, 1]]);
    network.cut = vec![[0, 1]];
    let count = |network: &Network, name: &str| network.nodes[0].show()["counters"][name].as_u64();
    let greet = |network: &mut Network, address: usize| {
        let repr = MessageRepr::greeting(0, 4000).from(NodeId([9; 20]), 1, 1, 0);
        let message = repr.emit(96, |_| vec![0; 96]);
        let frame = [&mac(0, 1)[..], &mac(9, address), &[0xc0, 0xe0], &message].concat();
        let packets = vec![Packet::from_slice(&frame)];
        network.tell(0, Input::Packets { port: port(1, true), packets });
    };
    // One address alone does not use up what there is for all.
    (0..1000).for_each(|_| greet(&mut network, 0));
    assert_eq!(count(&network, "bad-proof"), Some(10));
    // Addresses that others took the place of are as new when they come again.
    for round in 0..100 {
        (0..200).for_each(|number| greet(&mut network, 1 + (round * 50 + number) % 250));
        network.run(200);
    }
    let (seconds, burst) = (20, 200);
    let verified = count(&network, "bad-proof").unwrap();
    assert!((2000..=burst + seconds * 200).contains(&verified), "{verified}");
    assert!(count(&network, "greetings-of-interface") > Some(0));
    network.cut.clear();
    network.run(10_000);
    assert_eq!(network.adjacencies[0], BTreeSet::from([host(1)]));
}
