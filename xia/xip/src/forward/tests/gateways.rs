//! Routes with several gateways.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::principal::GatewaySet;
use crate::table::gateways::MAX_GATEWAYS;

/// An answer with several gateways.
fn any_of(gateways: &[Xid]) -> (Answer, Vec<Branch>) {
    let branches = gateways.iter().copied().map(Branch::To).collect();
    (Answer::AnyOf(GatewaySet::of(gateways)), branches)
}

/// A forwarder whose answers have no branches, or these.
fn with(one: &[(Xid, Answer)], several: &[(Xid, &[Xid])]) -> Forwarder {
    let one = one.iter().map(|(xid, answer)| (*xid, *answer, Vec::new()));
    let several = several.iter().map(|(xid, gateways)| {
        let (answer, branches) = any_of(gateways);
        (*xid, answer, branches)
    });
    forwarder_with_branches(&one.chain(several).collect::<Vec<_>>())
}

/// These gateways, the one first that is to be taken for packets to `to`.
fn in_order(forwarder: &Forwarder, to: &[Xid], gateways: &[Xid]) -> Vec<Xid> {
    let mut all = gateways.to_vec();
    all.sort_by_key(|gateway| std::cmp::Reverse(forwarder.spread().weight(to, gateway)));
    all
}

fn simple(xid: Xid) -> Packet {
    packet_to(&Address::simple(xid).unwrap())
}

fn hop(number: u8) -> NextHop {
    NextHop { port: OUT, link: LinkAddress::Mac([2, 0, 0, 0, 1, number]) }
}

/// The neighbour that a packet is sent to.
fn neighbour(forwarder: &mut Forwarder, packet: Packet) -> LinkAddress {
    let mut out = Verdicts::new();
    forwarder.route(Instant::ZERO, packet, &mut out);
    match &out.drain().collect::<Vec<_>>()[..] {
        [Verdict::Transmit { packet, .. }] => packet.meta.link,
        other => panic!("{other:?}, {:?}", forwarder.last_drop()),
    }
}

#[test]
fn the_heaviest_gateway_that_leads_on_is_taken() {
    let all = [hid(1), hid(2), hid(3)];
    let routes: [(Xid, &[Xid]); 1] = [(ad(1), &all)];
    for missing in 0..=all.len() {
        let order = in_order(&with(&[], &routes), &[ad(1)], &all);
        // The heaviest of them are not there.
        let there = order[missing..].iter().map(|xid| (*xid, Answer::Forward(hop(xid.id[0]))));
        let mut forwarder = with(&there.collect::<Vec<_>>(), &routes);
        match order.get(missing) {
            Some(taken) => {
                let link = neighbour(&mut forwarder, simple(ad(1)));
                assert_eq!(link, hop(taken.id[0]).link);
            }
            None => {
                let lost = dropped(DropReason::Unreachable);
                assert_eq!(fates(&mut forwarder, simple(ad(1))), lost);
            }
        }
    }
}

#[test]
fn where_no_gateway_leads_on_the_next_edge_is_tried() {
    let routes: [(Xid, &[Xid]); 2] = [(xdp(1), &[ad(8), ad(9)]), (ad(9), &[hid(8), xdp(1)])];
    let packet = || packet_to(&Address::fallback(&[hid(1), xdp(1)]).unwrap());
    let mut forwarder = with(&[(hid(1), Answer::Forward(HOP))], &routes);
    assert_eq!(fates(&mut forwarder, packet()), sent_at(LastNode::Entry));
    // What is wrong with one gateway tells more than that another is unknown.
    let mut forwarder = with(&[], &routes);
    assert_eq!(fates(&mut forwarder, packet()), dropped(DropReason::RedirectLoop));
    // A gateway that refuses ends it.
    let refuse = Answer::Refuse(DropReason::MalformedXid);
    let mut forwarder =
        with(&[(hid(1), Answer::Forward(HOP)), (ad(8), refuse), (ad(9), refuse)], &routes[..1]);
    assert_eq!(fates(&mut forwarder, packet()), dropped(DropReason::MalformedXid));
}

#[test]
fn gateways_can_have_gateways_and_circles_end() {
    let routes: [(Xid, &[Xid]); 3] =
        [(ad(1), &[ad(2), ad(3)]), (ad(2), &[ad(1), ad(3)]), (ad(3), &[ad(2), hid(1)])];
    let mut forwarder = with(&[(hid(1), Answer::Forward(HOP))], &routes);
    assert_eq!(fates(&mut forwarder, simple(ad(1))), sent_at(LastNode::Entry));
    let mut forwarder = with(&[], &routes);
    assert_eq!(fates(&mut forwarder, simple(ad(1))), dropped(DropReason::RedirectLoop));
}

#[test]
fn one_of_several_ways_at_once_can_have_gateways() {
    let routes: [(Xid, &[Xid]); 1] = [(ad(1), &[hid(1), hid(9)])];
    let mut forwarder = with(&[(hid(1), Answer::Forward(HOP))], &routes);
    let (answer, branches) = (Answer::Branches, vec![Branch::To(ad(1)), Branch::To(hid(1))]);
    let answers = BTreeMap::from([(zf(1), (answer, branches))]);
    forwarder.add_principal(Box::new(Table { kind: XidType::ZF, answers }));
    let sent = fates(&mut forwarder, simple(zf(1)));
    let once = || sent_at(LastNode::Entry).into_iter();
    assert_eq!(sent, once().chain(once()).collect::<Vec<_>>());
}

/// Each of its XIDs leads to each other one; counts how often it is asked.
struct Maze {
    asked: Arc<AtomicUsize>,
}

impl Principal for Maze {
    fn kind(&self) -> XidType {
        XidType::AD
    }

    fn lookup(&self, xid: &Xid, branches: &mut Vec<Branch>) -> Answer {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let others: Vec<_> =
            (0..=MAX_GATEWAYS as u8).map(ad).filter(|other| other != xid).collect();
        let (answer, all) = any_of(&others);
        branches.extend(all);
        answer
    }

    fn set(&mut self, _: Instant, _: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        Err(WordError::new("a maze is fixed"))
    }

    fn delete(&mut self, _: Instant, _: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        Err(WordError::new("a maze is fixed"))
    }

    fn show(&self) -> Value {
        Value::Null
    }
}

#[test]
fn a_maze_of_gateways_costs_no_more_than_a_bound() {
    let limits = Limits { redirects: MAX_REDIRECTS, ..Limits::default() };
    let mut forwarder = Forwarder::new(limits, Random::from_seed(1));
    let asked = Arc::new(AtomicUsize::new(0));
    forwarder.add_principal(Box::new(Maze { asked: asked.clone() }));
    asked.store(0, Ordering::Relaxed);
    assert_eq!(fates(&mut forwarder, simple(ad(0))), dropped(DropReason::RedirectLoop));
    assert_eq!(asked.load(Ordering::Relaxed), MAX_ASKED);
    assert_eq!(forwarder.cache_size().leaves, 1 + MAX_GATEWAYS);
}

#[test]
fn packets_with_the_same_edges_go_the_same_way_and_others_another() {
    let all = [hid(1), hid(2)];
    let hops = all.map(|xid| (xid, Answer::Forward(hop(xid.id[0]))));
    let (answer, branches) = any_of(&all);
    let mut forwarder = with(&hops, &[]);
    let domains = (0..100).map(|id| (ad(id), (answer, branches.clone()))).collect();
    forwarder.add_principal(Box::new(Table { kind: XidType::AD, answers: domains }));
    let ways = |forwarder: &mut Forwarder| -> Vec<_> {
        (0..100).map(|id| neighbour(forwarder, simple(ad(id)))).collect()
    };
    let before = ways(&mut forwarder);
    let first = before.iter().filter(|link| **link == hop(1).link).count();
    assert!((30..70).contains(&first), "{first} of 100 go over one of two");
    assert_eq!(forwarder.cache_size().entries, 100);
    assert_eq!(ways(&mut forwarder), before);
    // Of one gateway that goes only its own destinations move.
    let alone = Table { kind: XidType::HID, answers: [(hid(2), (hops[1].1, vec![]))].into() };
    forwarder.add_principal(Box::new(alone));
    assert_eq!(forwarder.cache_size().entries, 100 - first, "the others were not asked about");
    assert!(ways(&mut forwarder).iter().all(|link| *link == hop(2).link));
    forwarder.set_spread(7);
    assert_eq!(forwarder.cache_size().entries, 0);
}
