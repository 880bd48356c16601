//! Packets through routers: the forwarder with zFilter and a stand-in for HID.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;
use weft_base::{Instant, LinkAddress, Packet, PortId, Random};
use weft_xip::forward::{DropReason, Egress, Forwarder, Framing, Limits, Verdict, Verdicts};
use weft_xip::principal::{Answer, Branch, NextHop, Output, Principal, SocketId};
use weft_xip::words::WordError;
use weft_xip::{Address, Xid, XidType, XipRepr};

use crate::{ZFilter, fill, link_identifier, union};

const NOW: Instant = Instant::ZERO;

/// Every host `n` is a neighbour, reached out of port `n`.
struct Hosts;

impl Principal for Hosts {
    fn kind(&self) -> XidType {
        XidType::HID
    }

    fn lookup(&self, xid: &Xid, _: &mut Vec<Branch>) -> Answer {
        let [.., high, low] = xid.id;
        let port = PortId(u32::from(u16::from_be_bytes([high, low])));
        Answer::Forward(NextHop { port, link: LinkAddress::None })
    }

    fn set(&mut self, _: Instant, _: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        Ok(())
    }

    fn delete(&mut self, _: Instant, _: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        Ok(())
    }

    fn show(&self) -> Value {
        Value::Null
    }
}

/// Every XDP name is bound.
struct Sink;

impl Principal for Sink {
    fn kind(&self) -> XidType {
        XidType::XDP
    }

    fn lookup(&self, _: &Xid, _: &mut Vec<Branch>) -> Answer {
        Answer::Deliver(SocketId(1))
    }

    fn set(&mut self, _: Instant, _: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        Ok(())
    }

    fn delete(&mut self, _: Instant, _: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        Ok(())
    }

    fn show(&self) -> Value {
        Value::Null
    }
}

fn host(n: u16) -> Xid {
    let mut id = [0; 20];
    id[18..].copy_from_slice(&n.to_be_bytes());
    Xid::new(XidType::HID, id)
}

/// A router with these links, and one port for each host below `ports`.
fn router(limits: Limits, lines: &[String], ports: u16) -> Forwarder {
    let mut zf = ZFilter::new();
    for line in lines {
        let words: Vec<_> = line.split(' ').collect();
        zf.set(NOW, &words, &mut Vec::new()).unwrap();
    }
    let mut forwarder = Forwarder::new(limits, Random::from_seed(1));
    forwarder.add_principal(Box::new(zf));
    forwarder.add_principal(Box::new(Hosts));
    forwarder.add_principal(Box::new(Sink));
    for port in 0..ports {
        let egress = Egress { framing: Framing::Bare, mtu: 1500 };
        forwarder.add_port(PortId(u32::from(port)), egress);
    }
    forwarder
}

/// A packet to `filter`, then to a socket; as received on port 9999.
fn packet(filter: Xid) -> Packet {
    packet_by(&[filter])
}

/// A packet to these filters, one behind the other, then to a socket.
fn packet_by(filters: &[Xid]) -> Packet {
    let path: Vec<_> = filters.iter().copied().chain([Xid::new(XidType::XDP, [9; 20])]).collect();
    let repr = XipRepr::new(Address::scoping(&path).unwrap(), None, 4);
    let mut bytes = vec![0; repr.buffer_len()];
    repr.emit(&mut bytes).unwrap();
    bytes.extend(b"data");
    let mut packet = Packet::from_slice(&bytes);
    packet.meta.port = PortId(9999);
    packet
}

fn route(forwarder: &mut Forwarder, packet: Packet) -> Vec<Verdict> {
    let mut out = Verdicts::new();
    forwarder.route(NOW, packet, &mut out);
    out.drain().collect()
}

/// A router with a thousand links, each to a host of its own.
fn wide_router() -> Forwarder {
    let line = |n| format!("route link l{n} via {}", host(n));
    router(Limits::default(), &(0..1000).map(line).collect::<Vec<_>>(), 1000)
}

#[test]
fn an_all_ones_filter_is_no_amplifier() {
    let mut forwarder = wide_router();
    let out = route(&mut forwarder, packet(Xid::new(XidType::ZF, [0xff; 20])));
    assert!(out.is_empty());
    assert_eq!(forwarder.drops().get(DropReason::FilterTooFull), 1);
    assert_eq!(forwarder.drops().total(), 1);
}

#[test]
fn a_filter_just_within_the_limit_makes_as_many_copies_as_one_packet_may() {
    let mut forwarder = wide_router();
    let mut id = [0; 20];
    id[..10].fill(0xff);
    let out = route(&mut forwarder, packet(Xid::new(XidType::ZF, id)));
    // Half of all bits hold (1/2)^5 of 1000 links on average; which ones is in their names.
    assert_eq!(out.len(), COPIES_OF_HALF);
    assert_eq!(forwarder.drops().total(), 0);

    let limits = Limits { copies: 5, ..Limits::default() };
    let line = |n| format!("route link l{n} via {}", host(n));
    let lines: Vec<_> = (0..1000).map(line).collect();
    let mut forwarder = router(limits, &lines, 1000);
    let out = route(&mut forwarder, packet(Xid::new(XidType::ZF, id)));
    assert_eq!(out.len(), 5);
    assert_eq!(forwarder.drops().get(DropReason::CopyLimit), COPIES_OF_HALF as u64 - 5);
}

/// Counted by an implementation of the naming rule of its own.
const COPIES_OF_HALF: usize = 30;

#[test]
fn copies_leave_with_the_address_unchanged_and_one_hop_less() {
    let lines = [
        format!("route link a via {}", host(1)),
        format!("route link b via {}", host(2)),
        "local link here".to_owned(),
    ];
    let mut forwarder = router(Limits::default(), &lines, 3);
    let links = ["a", "b", "here"].map(|name| link_identifier(name, 5));
    let sent = packet(union(&links));
    let original = sent.bytes().to_vec();
    let out = route(&mut forwarder, sent);
    let mut expected = original.clone();
    expected[4] -= 1;
    let mut ports = Vec::new();
    for verdict in &out {
        match verdict {
            Verdict::Transmit { port, packet } => {
                assert_eq!(packet.bytes(), expected);
                ports.push(port.0);
            }
            Verdict::Deliver { packet, .. } => {
                assert_eq!(packet.bytes()[4], original[4], "delivery costs no hop");
                assert_eq!(packet.bytes()[7], 1, "the sink is the last node");
            }
        }
    }
    ports.sort_unstable();
    assert_eq!((ports, out.len()), (vec![1, 2], 3));
}

#[test]
fn a_local_filter_as_a_sink_receives_nothing() {
    let mut forwarder = router(Limits::default(), &["local link here".to_owned()], 0);
    let repr = XipRepr::new(Address::simple(link_identifier("here", 5)).unwrap(), None, 0);
    let mut bytes = vec![0; repr.buffer_len()];
    repr.emit(&mut bytes).unwrap();
    assert!(route(&mut forwarder, Packet::from_slice(&bytes)).is_empty());
    assert_eq!(forwarder.drops().get(DropReason::NotASink), 1);
}

/// A tree of routers in which node `n` has the children `FAN_OUT * n + 1 ..= FAN_OUT * n + FAN_OUT`.
/// Port `n` of any router leads to node `n`.
struct Tree {
    routers: Vec<Forwarder>,
}

const FAN_OUT: u16 = 4;
/// 1 + 4 + 16 inner nodes.
const INNER: u16 = 21;
/// And 64 leaves.
const NODES: u16 = 85;

fn children(node: u16) -> std::ops::RangeInclusive<u16> {
    FAN_OUT * node + 1..=FAN_OUT * node + FAN_OUT
}

fn link_to(node: u16) -> String {
    format!("to-{node}")
}

impl Tree {
    /// Every link has an identifier of its own; with `virtual_link`, the tree has one besides.
    fn new(virtual_link: Option<&str>) -> Self {
        let lines = |node: u16| -> Vec<String> {
            if node >= INNER {
                let names = [Some(link_to(node)), virtual_link.map(str::to_owned)];
                return names.iter().flatten().map(|name| format!("local link {name}")).collect();
            }
            let names = |child| [Some(link_to(child)), virtual_link.map(str::to_owned)];
            children(node)
                .flat_map(|child| names(child).into_iter().flatten().map(move |n| (child, n)))
                .map(|(child, name)| format!("route link {name} via {}", host(child)))
                .collect()
        };
        let routers = (0..NODES).map(|n| router(Limits::default(), &lines(n), NODES)).collect();
        Self { routers }
    }

    /// How often each leaf gets a packet that enters at the root.
    fn multicast(&mut self, filter: Xid) -> BTreeMap<u16, u32> {
        self.send(packet(filter))
    }

    fn send(&mut self, packet: Packet) -> BTreeMap<u16, u32> {
        let mut delivered = BTreeMap::new();
        let mut travelling = VecDeque::from([(0, packet)]);
        while let Some((node, mut packet)) = travelling.pop_front() {
            packet.meta.port = PortId(9999);
            for verdict in route(&mut self.routers[usize::from(node)], packet) {
                match verdict {
                    Verdict::Transmit { port, packet } => {
                        travelling.push_back((u16::try_from(port.0).unwrap(), packet));
                    }
                    Verdict::Deliver { .. } => *delivered.entry(node).or_default() += 1,
                }
            }
        }
        delivered
    }
}

#[test]
fn a_small_tree_fits_one_filter_of_its_links() {
    let mut tree = Tree::new(None);
    // Root, 1, 5 and the leaves 21 and 23; root, 2, 9 and leaf 40.
    let links = [1, 5, 21, 23, 2, 9, 40].map(|node| link_identifier(&link_to(node), 5));
    let filter = union(&links);
    let delivered = tree.multicast(filter);
    assert_eq!(delivered, BTreeMap::from([(21, 1), (23, 1), (40, 1)]));
}

#[test]
fn a_tree_that_is_larger_than_a_filter_needs_one_identifier() {
    let all: Vec<_> = (1..NODES).map(|node| link_identifier(&link_to(node), 5)).collect();
    let mut tree = Tree::new(None);
    assert!(fill(&union(&all)) > 80);
    assert!(tree.multicast(union(&all)).is_empty(), "the union of all links is too full");

    let mut tree = Tree::new(Some("tree-1"));
    let every_leaf: BTreeMap<u16, u32> = (INNER..NODES).map(|leaf| (leaf, 1)).collect();
    assert_eq!(tree.multicast(link_identifier("tree-1", 5)), every_leaf);
    assert!(tree.multicast(link_identifier("tree-2", 5)).is_empty());
}

#[test]
fn a_virtual_link_and_single_links_share_a_filter() {
    let mut tree = Tree::new(Some("tree-1"));
    let filter = union(&[link_identifier("tree-1", 5), link_identifier("to-1", 5)]);
    let delivered = tree.multicast(filter);
    assert_eq!(delivered.len(), 64);
    assert!(delivered.values().all(|copies| *copies == 1), "one copy for each gateway");
}

#[test]
fn a_tree_that_is_larger_than_a_filter_fits_two_in_one_address() {
    let mut tree = Tree::new(None);
    // The second filter begins at the nodes 1 and 2, all of whose leaves are receivers: with their links
    // the whole tree has 2 + 8 + 32, which no filter holds.
    for node in [1, 2] {
        let line = format!("local link stage-{node}");
        let words: Vec<_> = line.split(' ').collect();
        let router = &mut tree.routers[node];
        let mut zf = router.principal_mut(XidType::ZF).unwrap();
        zf.set(NOW, &words, &mut Vec::new()).unwrap();
    }
    let upper = ["to-1", "to-2", "stage-1", "stage-2"].map(|name| link_identifier(name, 5));
    let below: Vec<u16> = [1, 2].into_iter().flat_map(children).collect();
    let leaves: Vec<u16> = below.iter().copied().flat_map(children).collect();
    let of = |nodes: &[u16]| {
        let links = nodes.iter().map(|node| link_identifier(&link_to(*node), 5));
        union(&links.collect::<Vec<_>>())
    };
    assert!(fill(&of(&leaves)) > 80);
    // Each half of the leaves is a tree that fits.
    let mut delivered = BTreeMap::new();
    for (stage, part) in [(1, 0..4), (2, 4..8)] {
        let links =
            [link_to(stage), format!("stage-{stage}")].map(|name| link_identifier(&name, 5));
        let lower: Vec<_> =
            below[part].iter().flat_map(|node| children(*node).chain([*node])).collect();
        let lower = of(&lower);
        assert!(fill(&lower) <= 80);
        delivered.extend(tree.send(packet_by(&[union(&links), lower])));
    }
    let every_leaf: BTreeMap<u16, u32> = leaves.iter().map(|leaf| (*leaf, 1)).collect();
    assert_eq!(delivered, every_leaf);
    // One packet whose lower part is the same below both.
    let few: Vec<_> = below.iter().map(|node| *children(*node).start()).collect();
    let lower = of(&below.iter().chain(&few).copied().collect::<Vec<_>>());
    let both: BTreeMap<u16, u32> = few.iter().map(|leaf| (*leaf, 1)).collect();
    assert_eq!(tree.send(packet_by(&[union(&upper), lower])), both);
}
