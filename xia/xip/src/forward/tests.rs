//! Tests of the forwarder with principals whose answers are tables.

mod batches;
mod errors;
mod gateways;
mod offloads;

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;
use weft_base::{Instant, LinkAddress, Packet, PortId};

use super::*;
use crate::dag::{Address, LastNode};
use crate::header::XipRepr;
use crate::offload::{Offload, OffloadRoom};
use crate::principal::{Answer, Input, Output, SocketId};
use crate::words::WordError;

const IN: PortId = PortId(1);
const OUT: PortId = PortId(2);
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 9];
const NEIGHBOUR: LinkAddress = LinkAddress::Mac([2, 0, 0, 0, 0, 7]);
const HOP: NextHop = NextHop { port: OUT, link: NEIGHBOUR };

/// A principal that answers from a table.
struct Table {
    kind: XidType,
    answers: BTreeMap<Xid, (Answer, Vec<Branch>)>,
}

impl Principal for Table {
    fn kind(&self) -> XidType {
        self.kind
    }

    fn lookup(&self, xid: &Xid, out: &mut Vec<Branch>) -> Answer {
        let Some((answer, branches)) = self.answers.get(xid) else { return Answer::Unknown };
        out.extend(branches);
        *answer
    }

    fn handle(&mut self, _: Instant, _: Input, _: &mut Vec<Output>) {}

    fn set(&mut self, _: Instant, _: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        Err(WordError::new("a test table is fixed"))
    }

    fn delete(&mut self, _: Instant, _: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        Err(WordError::new("a test table is fixed"))
    }

    fn show(&self) -> Value {
        Value::Null
    }
}

fn xid(kind: XidType, id: u8) -> Xid {
    Xid::new(kind, [id; 20])
}

fn hid(id: u8) -> Xid {
    xid(XidType::HID, id)
}

fn xdp(id: u8) -> Xid {
    xid(XidType::XDP, id)
}

fn ad(id: u8) -> Xid {
    xid(XidType::AD, id)
}

fn zf(id: u8) -> Xid {
    xid(XidType::ZF, id)
}

/// A forwarder with one open port and these answers.
fn forwarder(answers: &[(Xid, Answer)]) -> Forwarder {
    let with_branches: Vec<_> =
        answers.iter().map(|(xid, answer)| (*xid, *answer, Vec::new())).collect();
    forwarder_with_branches(&with_branches)
}

fn forwarder_with_branches(answers: &[(Xid, Answer, Vec<Branch>)]) -> Forwarder {
    let mut forwarder = Forwarder::new(
        Limits { redirects: 4, copies: 8, ..Limits::default() },
        Random::from_seed(1),
    );
    forwarder.add_port(OUT, Egress { framing: Framing::Ethernet { mac: MAC }, mtu: 1500 });
    for kind in [XidType::AD, XidType::HID, XidType::XDP, XidType::ZF] {
        let own = answers.iter().filter(|(xid, ..)| xid.kind == kind);
        let answers = own.map(|(xid, a, b)| (*xid, (*a, b.clone()))).collect();
        forwarder.add_principal(Box::new(Table { kind, answers }));
    }
    forwarder
}

fn packet_to(address: &Address) -> Packet {
    let repr = XipRepr::new(*address, None, 4);
    let mut packet = Packet::from_slice(b"data");
    repr.emit(packet.push_front(repr.buffer_len())).unwrap();
    packet.meta.port = IN;
    packet
}

/// What became of one packet.
#[derive(Debug, PartialEq)]
enum Fate {
    Sent { last_node: LastNode, hop_limit: u8 },
    Delivered(SocketId, LastNode),
    Dropped(DropReason),
}

fn fates(forwarder: &mut Forwarder, packet: Packet) -> Vec<Fate> {
    let before = forwarder.drops().clone();
    let mut out = Verdicts::new();
    forwarder.route(Instant::ZERO, packet, &mut out);
    let mut fates: Vec<Fate> = out.drain().map(fate_of).collect();
    for reason in <DropReason as weft_base::Reason>::ALL {
        for _ in before.get(*reason)..forwarder.drops().get(*reason) {
            fates.push(Fate::Dropped(*reason));
        }
    }
    fates
}

fn fate_of(verdict: Verdict) -> Fate {
    match verdict {
        Verdict::Transmit { port, packet } => {
            assert_eq!((port, packet.meta.link), (OUT, NEIGHBOUR));
            assert_eq!(packet.bytes()[..14], *b"\x02\0\0\0\0\x07\x02\0\0\0\0\x09\xc0\xde");
            let view = XipPacket::new_checked(&packet.bytes()[14..]).unwrap();
            Fate::Sent { last_node: view.last_node(), hop_limit: view.hop_limit() }
        }
        Verdict::Deliver { socket, packet } => {
            let view = XipPacket::new_checked(packet.bytes()).unwrap();
            Fate::Delivered(socket, view.last_node())
        }
    }
}

fn sent_at(last_node: LastNode) -> Vec<Fate> {
    vec![Fate::Sent { last_node, hop_limit: 127 }]
}

fn dropped(reason: DropReason) -> Vec<Fate> {
    vec![Fate::Dropped(reason)]
}

fn address(text: &str) -> Address {
    text.parse().unwrap()
}

fn scoping(path: &[Xid]) -> Address {
    Address::scoping(path).unwrap()
}

#[test]
fn a_neighbour_gets_the_packet_with_its_address_unchanged() {
    let mut forwarder = forwarder(&[(hid(1), Answer::Forward(HOP))]);
    assert_eq!(
        fates(&mut forwarder, packet_to(&scoping(&[hid(1), xdp(1)]))),
        sent_at(LastNode::Entry)
    );
}

#[test]
fn edges_are_tried_in_order_and_unknown_types_are_passed_over() {
    let mut forwarder = forwarder(&[(hid(2), Answer::Forward(HOP))]);
    let unknown = format!("0x999-{}", "11".repeat(20));
    let text = format!("{unknown}:hid-{}-2:xdp-{}-01", "02".repeat(20), "01".repeat(20));
    assert_eq!(fates(&mut forwarder, packet_to(&address(&text))), sent_at(LastNode::Entry));
    assert_eq!(
        fates(&mut forwarder, packet_to(&Address::fallback(&[hid(2), xdp(9)]).unwrap())),
        sent_at(LastNode::Entry)
    );
}

#[test]
fn a_local_node_is_passed_and_marked() {
    let mut forwarder = forwarder(&[(ad(1), Answer::Through), (hid(2), Answer::Forward(HOP))]);
    let mut out = Verdicts::new();
    forwarder.route(Instant::ZERO, packet_to(&scoping(&[ad(1), hid(2), xdp(3)])), &mut out);
    let Some(Verdict::Transmit { packet, .. }) = out.drain().next() else { panic!("not sent") };
    let view = XipPacket::new_checked(&packet.bytes()[14..]).unwrap();
    assert_eq!(view.last_node(), LastNode::Row(0));
    assert_eq!(view.destination().entry_edges()[0].to_byte(), 0x80);
    assert_eq!(view.destination().row(0).unwrap().edges[0].to_byte(), 0x01);
}

#[test]
fn a_socket_gets_the_packet_only_at_the_sink() {
    let socket = SocketId(5);
    let mut forwarder = forwarder(&[(hid(1), Answer::Through), (xdp(1), Answer::Deliver(socket))]);
    assert_eq!(
        fates(&mut forwarder, packet_to(&scoping(&[hid(1), xdp(1)]))),
        [Fate::Delivered(socket, LastNode::Row(1))]
    );
    assert_eq!(
        fates(&mut forwarder, packet_to(&scoping(&[xdp(1), hid(1)]))),
        dropped(DropReason::NotPassable)
    );
    assert_eq!(
        fates(&mut forwarder, packet_to(&scoping(&[hid(1)]))),
        dropped(DropReason::NotASink)
    );
}

#[test]
fn hop_limit_is_spent_on_packets_from_ports_only() {
    let mut forwarder = forwarder(&[(hid(1), Answer::Forward(HOP))]);
    let with_limit = |limit: u8, port: PortId| {
        let mut packet = packet_to(&scoping(&[hid(1)]));
        XipPacket::new_checked(packet.bytes_mut()).unwrap().set_hop_limit(limit);
        packet.meta.port = port;
        packet
    };
    let sent = |hop_limit| vec![Fate::Sent { last_node: LastNode::Entry, hop_limit }];
    assert_eq!(fates(&mut forwarder, with_limit(1, IN)), sent(0));
    assert_eq!(fates(&mut forwarder, with_limit(0, IN)), dropped(DropReason::HopLimit));
    assert_eq!(fates(&mut forwarder, with_limit(9, PortId::NONE)), sent(9));
}

#[test]
fn redirects_chain_up_to_the_limit_and_loops_are_found() {
    let chain = |links: u8| {
        let mut answers: Vec<_> =
            (0..links).map(|i| (ad(i), Answer::Redirect(ad(i + 1)))).collect();
        answers.push((ad(links), Answer::Forward(HOP)));
        forwarder(&answers)
    };
    let to_first = || packet_to(&scoping(&[ad(0), xdp(1)]));
    assert_eq!(fates(&mut chain(4), to_first()), sent_at(LastNode::Entry));
    assert_eq!(fates(&mut chain(5), to_first()), dropped(DropReason::RedirectDepth));
    let mut looping =
        forwarder(&[(ad(0), Answer::Redirect(hid(1))), (hid(1), Answer::Redirect(ad(0)))]);
    assert_eq!(fates(&mut looping, to_first()), dropped(DropReason::RedirectLoop));
}

#[test]
fn a_failed_redirect_tries_the_next_edge() {
    let mut forwarder =
        forwarder(&[(xdp(1), Answer::Redirect(ad(9))), (hid(1), Answer::Forward(HOP))]);
    let packet = packet_to(&Address::fallback(&[hid(1), xdp(1)]).unwrap());
    assert_eq!(fates(&mut forwarder, packet), sent_at(LastNode::Entry));
}

#[test]
fn a_refusal_tries_no_other_edge() {
    let refuse = Answer::Refuse(DropReason::MalformedXid);
    let mut forwarder = forwarder(&[(xdp(1), refuse), (hid(1), Answer::Forward(HOP))]);
    let packet = packet_to(&Address::fallback(&[hid(1), xdp(1)]).unwrap());
    assert_eq!(fates(&mut forwarder, packet), dropped(DropReason::MalformedXid));
}

#[test]
fn branches_get_copies_and_one_may_go_on_through_the_node() {
    let branches = vec![Branch::To(hid(1)), Branch::Through, Branch::To(hid(9))];
    let mut forwarder = forwarder_with_branches(&[
        (zf(3), Answer::Branches, branches),
        (hid(1), Answer::Forward(HOP), Vec::new()),
        (xdp(1), Answer::Deliver(SocketId(4)), Vec::new()),
    ]);
    assert_eq!(
        fates(&mut forwarder, packet_to(&scoping(&[zf(3), xdp(1)]))),
        [
            Fate::Sent { last_node: LastNode::Entry, hop_limit: 127 },
            Fate::Delivered(SocketId(4), LastNode::Row(1)),
            Fate::Dropped(DropReason::BranchUnreachable),
        ]
    );
    assert_eq!(forwarder.activity().get(Activity::Copied), 2);
}

#[test]
fn a_single_filter_as_sink_is_delivered_by_a_redirect_to_a_socket() {
    let mut forwarder = forwarder_with_branches(&[
        (zf(3), Answer::Branches, vec![Branch::To(xdp(1))]),
        (xdp(1), Answer::Deliver(SocketId(4)), Vec::new()),
    ]);
    assert_eq!(
        fates(&mut forwarder, packet_to(&scoping(&[zf(3)]))),
        [Fate::Delivered(SocketId(4), LastNode::Row(0))]
    );
}

#[test]
fn copies_of_one_packet_are_bounded_over_all_its_branchings() {
    let many = |next: Xid| vec![Branch::To(next); 6];
    let mut forwarder = forwarder_with_branches(&[
        (zf(1), Answer::Branches, many(zf(2))),
        (zf(2), Answer::Branches, many(hid(1))),
        (hid(1), Answer::Forward(HOP), Vec::new()),
    ]);
    let fates = fates(&mut forwarder, packet_to(&scoping(&[zf(1), xdp(1)])));
    let sent = fates.iter().filter(|fate| matches!(fate, Fate::Sent { .. })).count();
    // One for the first branch and six for those behind it; the eighth copy may not branch any more.
    assert_eq!(sent, 6, "packets that left for one");
    assert!(fates.contains(&Fate::Dropped(DropReason::CopyLimit)));
}

#[test]
fn malformed_rows_matter_only_at_the_last_node() {
    let mut forwarder = forwarder(&[(hid(2), Answer::Forward(HOP))]);
    let mut nonsense = packet_to(&scoping(&[ad(1), hid(2)]));
    // Row 0 gets senseless edges; the entry node's edges lead to row 1.
    nonsense.bytes_mut()[8 + 24..8 + 28].copy_from_slice(&[0x05, 0x85, 0x09, 0x03]);
    nonsense.bytes_mut()[8 + 28 + 24] = 1;
    assert_eq!(fates(&mut forwarder, nonsense), sent_at(LastNode::Entry));
    let mut chosen = packet_to(&scoping(&[hid(2)]));
    chosen.bytes_mut()[8 + 24] |= 0x80;
    assert_eq!(fates(&mut forwarder, chosen), dropped(DropReason::MalformedEdges));
    let mut finished = packet_to(&scoping(&[hid(2)]));
    finished.bytes_mut()[7] = 0;
    assert_eq!(fates(&mut forwarder, finished), dropped(DropReason::AtSink));
}

#[test]
fn surplus_bytes_are_cut_and_long_packets_dropped() {
    let mut forwarder = forwarder(&[(hid(1), Answer::Forward(HOP))]);
    let mut padded = packet_to(&scoping(&[hid(1)]));
    padded.extend(&[0; 20]);
    let mut out = Verdicts::new();
    forwarder.route(Instant::ZERO, padded, &mut out);
    let Some(Verdict::Transmit { packet, .. }) = out.drain().next() else { panic!("not sent") };
    assert_eq!(packet.len(), 14 + 36 + 4);
    forwarder.add_port(OUT, Egress { framing: Framing::Bare, mtu: 39 });
    assert_eq!(fates(&mut forwarder, packet_to(&scoping(&[hid(1)]))), dropped(DropReason::TooBig));
    forwarder.remove_port(OUT);
    assert_eq!(
        fates(&mut forwarder, packet_to(&scoping(&[hid(1)]))),
        dropped(DropReason::PortGone)
    );
}

#[test]
fn a_forwarder_without_principals_drops_everything_as_unreachable() {
    let mut forwarder = Forwarder::new(Limits::default(), Random::from_seed(1));
    assert_eq!(
        fates(&mut forwarder, packet_to(&scoping(&[hid(1)]))),
        dropped(DropReason::Unreachable)
    );
}

#[test]
fn the_trace_tells_each_step_and_names_the_packet_alike_on_every_node() {
    let mut first = forwarder(&[(ad(1), Answer::Through), (hid(2), Answer::Forward(HOP))]);
    first.tracer().start(1);
    let mut out = Verdicts::new();
    first.route(Instant::ZERO, packet_to(&scoping(&[ad(1), hid(2)])), &mut out);
    let visit = first.tracer().visits().next().unwrap().clone();
    assert_eq!(
        visit.steps,
        [
            Step::At(LastNode::Entry),
            Step::Edge { slot: 0, xid: ad(1) },
            Step::Asked { xid: ad(1), answer: Answer::Through },
            Step::At(LastNode::Row(0)),
            Step::Edge { slot: 0, xid: hid(2) },
            Step::Asked { xid: hid(2), answer: Answer::Forward(HOP) },
            Step::Sent { port: OUT, link: NEIGHBOUR },
        ]
    );
    let Some(Verdict::Transmit { mut packet, .. }) = out.drain().next() else { panic!("not sent") };
    assert!(packet.pull_front(14));
    let mut second = forwarder(&[]);
    second.tracer().start(1);
    second.route(Instant::ZERO, packet, &mut out);
    assert_eq!(second.tracer().visits().next().unwrap().packet, visit.packet);
}

/// What the paper's §3 says about single-way addresses, written down without regard to speed:
/// `None` if the packet is dropped, else whether it was delivered.
fn naive(address: &Address, answers: &BTreeMap<Xid, Answer>) -> Option<bool> {
    let mut node = LastNode::Entry;
    loop {
        let targets = address.candidate_edges(node).ok()?;
        let mut passed = None;
        for row in targets {
            let xid = address.row(usize::from(row))?.xid;
            let mut answer = answers.get(&xid).copied().unwrap_or(Answer::Unknown);
            let mut seen = vec![xid];
            while let Answer::Redirect(to) = answer {
                answer = if seen.contains(&to) || seen.len() > 4 {
                    Answer::Unknown
                } else {
                    seen.push(to);
                    answers.get(&to).copied().unwrap_or(Answer::Unknown)
                };
            }
            let is_sink = address.is_sink(usize::from(row));
            match answer {
                Answer::Unknown => continue,
                Answer::Through if is_sink => return None,
                Answer::Through => passed = Some(LastNode::Row(row)),
                Answer::Deliver(_) => return is_sink.then_some(true),
                Answer::Forward(_) => return Some(false),
                _ => return None,
            }
            break;
        }
        node = passed?;
    }
}

fn some_answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        Just(Answer::Unknown),
        Just(Answer::Through),
        Just(Answer::Through),
        (0_u8..6).prop_map(|id| Answer::Redirect(ad(id))),
        Just(Answer::Deliver(SocketId(1))),
        Just(Answer::Forward(HOP)),
    ]
}

fn some_address() -> impl Strategy<Value = Address> {
    let row = (0_u8..6, proptest::collection::vec(0_u8..9, 0..=4));
    proptest::collection::vec(row, 1..=9).prop_filter_map("not a valid graph", |rows| {
        let count = rows.len() as u8;
        let mut bytes = Vec::new();
        for (index, (id, edges)) in (0_u8..).zip(rows) {
            bytes.extend(ad(id).to_bytes());
            let last = index + 1 == count;
            let mut field = [0x7f; 4];
            for (slot, edge) in field.iter_mut().zip(edges) {
                let lowest = if last { 0 } else { index + 1 };
                *slot = lowest + edge % (count - lowest);
            }
            bytes.extend(field);
        }
        Address::from_bytes(&bytes).ok().filter(Address::is_valid)
    })
}

/// Packets with new addresses use up the budget of their own port only; known addresses need none.
#[test]
fn a_flood_of_new_addresses_is_bounded_and_hinders_nobody_else() {
    let other = PortId(77);
    let limit = SlowPathLimit { per_second: 1000, burst: 5 };
    let limits = Limits { slow_path: Some(limit), ..Limits::default() };
    let mut forwarder = Forwarder::new(limits, Random::from_seed(1));
    forwarder.add_port(OUT, Egress { framing: Framing::Ethernet { mac: MAC }, mtu: 1500 });
    let forward = Answer::Forward(NextHop { port: OUT, link: NEIGHBOUR });
    let answers = [(ad(0), (forward, Vec::new()))].into_iter().collect();
    forwarder.add_principal(Box::new(Table { kind: XidType::AD, answers }));
    let mut send = |to, port| {
        let mut packet = packet_to(&Address::scoping(&[to]).unwrap());
        packet.meta.port = port;
        fates(&mut forwarder, packet).remove(0)
    };
    let unreachable = Fate::Dropped(DropReason::Unreachable);
    let full = Fate::Dropped(DropReason::SlowPathFull);
    assert_eq!(send(ad(0), IN), sent_at(LastNode::Entry).remove(0));
    (1..5).for_each(|id| assert_eq!(send(ad(id), IN), unreachable));
    (5..9).for_each(|id| assert_eq!(send(ad(id), IN), full));
    assert_eq!(send(ad(0), IN), sent_at(LastNode::Entry).remove(0), "it is known");
    assert_eq!(send(ad(4), IN), unreachable, "that it is nowhere is known, too");
    assert_eq!(send(ad(9), other), unreachable);
    assert_eq!(send(ad(9), IN), unreachable, "known from the other port");
}

/// Trees are known after their first packet, and new ones use up the budget as any new address does.
#[test]
fn a_flood_of_new_trees_is_bounded_and_known_ones_pass() {
    let limit = SlowPathLimit { per_second: 1000, burst: 5 };
    let limits = Limits { slow_path: Some(limit), ..Limits::default() };
    let mut forwarder = Forwarder::new(limits, Random::from_seed(1));
    forwarder.add_port(OUT, Egress { framing: Framing::Ethernet { mac: MAC }, mtu: 1500 });
    let to_host = (Answer::Branches, vec![Branch::To(hid(1)), Branch::To(hid(2))]);
    let answers = (0..20).map(|id| (zf(id), to_host.clone())).collect();
    forwarder.add_principal(Box::new(Table { kind: XidType::ZF, answers }));
    let hosts = [hid(1), hid(2)].map(|host| (host, (Answer::Forward(HOP), Vec::new())));
    forwarder.add_principal(Box::new(Table { kind: XidType::HID, answers: hosts.into() }));
    let mut send = |trees: &[u8]| {
        let mut packets: Vec<_> =
            trees.iter().map(|id| packet_to(&scoping(&[zf(*id), xdp(1)]))).collect();
        let mut out = Verdicts::new();
        forwarder.route_batch(Instant::ZERO, &mut packets, &mut out);
        out.len()
    };
    assert_eq!(send(&[0, 1, 2, 3, 4]), 10, "each is new, and goes two ways");
    assert_eq!(send(&[5, 6]), 0, "that were too many");
    assert_eq!(send(&[0, 4, 0, 5]), 6, "known ones pass");
    let entry = forwarder.cached().find(|entry| entry.edges == [zf(0)]).unwrap();
    assert_eq!((entry.decision, entry.hits), (Decision::Several, 2));
    assert_eq!(forwarder.cache_activity().get(CacheActivity::Hit), 3);
    assert_eq!(forwarder.drops().get(DropReason::SlowPathFull), 3);
    // What is behind a tree is asked for each time.
    let mut answers = BTreeMap::new();
    answers.insert(zf(0), (Answer::Branches, vec![Branch::To(hid(2))]));
    forwarder.add_principal(Box::new(Table { kind: XidType::ZF, answers }));
    let mut out = Verdicts::new();
    forwarder.route(Instant::ZERO, packet_to(&scoping(&[zf(0), xdp(1)])), &mut out);
    assert_eq!(out.len(), 1, "it goes one way now, and is still known");
}

/// Applications of this node have a share, too.
#[test]
fn applications_do_not_use_up_the_router() {
    let limit = SlowPathLimit { per_second: 1000, burst: 5 };
    let limits = Limits { slow_path: Some(limit), ..Limits::default() };
    let mut forwarder = Forwarder::new(limits, Random::from_seed(1));
    forwarder.add_principal(Box::new(Table { kind: XidType::AD, answers: BTreeMap::new() }));
    for size in [1, 4] {
        let mut packets: Vec<_> = (0..10).map(|id| packet_to(&scoping(&[ad(id + size)]))).collect();
        packets.iter_mut().for_each(|packet| packet.meta.port = PortId::NONE);
        for batch in packets.chunks_mut(usize::from(size)) {
            let mut batch: Vec<_> = batch.iter_mut().map(Packet::take).collect();
            forwarder.route_batch(Instant::ZERO, &mut batch, &mut Verdicts::new());
        }
    }
    assert_eq!(forwarder.cached().count(), 5);
    let mut packet = packet_to(&scoping(&[ad(77)]));
    packet.meta.port = IN;
    assert_eq!(
        fates(&mut forwarder, packet),
        dropped(DropReason::Unreachable),
        "a port has its own"
    );
}

/// Who asks this node for many answers pays for them, so that its applications can still send.
#[test]
fn answers_use_up_the_budget_of_who_has_asked() {
    let limit = SlowPathLimit { per_second: 1000, burst: 5 };
    let limits = Limits { slow_path: Some(limit), ..Limits::default() };
    let mut forwarder = Forwarder::new(limits, Random::from_seed(1));
    forwarder.add_principal(Box::new(Table { kind: XidType::AD, answers: BTreeMap::new() }));
    let mut last_drop = |id, port, is_answer| {
        let mut packet = packet_to(&scoping(&[ad(id)]));
        match is_answer {
            true => forwarder.route_answer(Instant::ZERO, packet, port, &mut Verdicts::new()),
            false => {
                packet.meta.port = port;
                forwarder.route(Instant::ZERO, packet, &mut Verdicts::new());
            }
        }
        forwarder.last_drop()
    };
    for id in 0..10 {
        let reason = if id < 5 { DropReason::Unreachable } else { DropReason::SlowPathFull };
        assert_eq!(last_drop(id, IN, true), Some(reason), "{id}");
    }
    assert_eq!(last_drop(20, IN, false), Some(DropReason::SlowPathFull), "it is the port's own");
    assert_eq!(
        last_drop(21, PortId::NONE, false),
        Some(DropReason::Unreachable),
        "an application's"
    );
}

/// Each port has an equal share of the budget, here and in the other engine, also when there are more of them.
#[test]
fn ports_share_the_budget() {
    let limit = SlowPathLimit { per_second: 1000, burst: 8 };
    let limits = Limits { slow_path: Some(limit), ..Limits::default() };
    let mut forwarder = Forwarder::new(limits, Random::from_seed(1));
    forwarder.add_principal(Box::new(Table { kind: XidType::AD, answers: BTreeMap::new() }));
    forwarder.set_offloading(Some(OffloadRoom::default()));
    let mut addresses = 0..;
    for (ports, burst) in [(1, 8), (2, 4), (3, 2), (4, 2)] {
        let egress = Egress { framing: Framing::Ethernet { mac: MAC }, mtu: 1500 };
        forwarder.add_port(PortId(ports), egress);
        let mut told = Vec::new();
        forwarder.drain_offloads(usize::MAX, &mut told);
        let share = SlowPathLimit { per_second: 1000 / ports, burst };
        assert_eq!(told.last(), Some(&Offload::Limit(Some(share))));
        // From a port of which nothing was heard so far.
        let from = PortId(100 + ports);
        let decided = (0..20).filter(|_| {
            let to = ad(addresses.next().unwrap());
            let mut packet = packet_to(&Address::scoping(&[to]).unwrap());
            packet.meta.port = from;
            let fate = fates(&mut forwarder, packet).remove(0);
            fate == Fate::Dropped(DropReason::Unreachable)
        });
        assert_eq!(decided.count(), burst as usize, "{ports}");
    }
    (2..=4).for_each(|port| forwarder.remove_port(PortId(port)));
    let mut told = Vec::new();
    forwarder.drain_offloads(usize::MAX, &mut told);
    assert_eq!(told.last(), Some(&Offload::Limit(Some(limit))));
}

proptest! {
    #[test]
    fn the_walk_agrees_with_the_naive_one(
        address in some_address(),
        answers in proptest::collection::vec(some_answer(), 6),
    ) {
        let table: Vec<_> = (0..6).map(|id| (ad(id), answers[usize::from(id)])).collect();
        let fate = fates(&mut forwarder(&table), packet_to(&address)).pop();
        let got = match fate {
            Some(Fate::Sent { .. }) => Some(false),
            Some(Fate::Delivered(..)) => Some(true),
            _ => None,
        };
        prop_assert_eq!(got, naive(&address, &table.into_iter().collect()));
    }

    #[test]
    fn arbitrary_bytes_never_panic_and_are_counted(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        well_begun in any::<bool>(),
    ) {
        let mut bytes = bytes;
        if well_begun && bytes.len() > 8 {
            bytes[0] = 1;
            bytes[5] = bytes[5] % 9 + 1;
            bytes[6] %= 3;
        }
        let mut forwarder = forwarder(&[(ad(0), Answer::Through)]);
        let mut packet = Packet::from_slice(&bytes);
        packet.meta.port = IN;
        let mut out = Verdicts::new();
        forwarder.route(Instant::ZERO, packet, &mut out);
        prop_assert_eq!(out.len() as u64 + forwarder.drops().total(), 1);
    }
}
