//! What another engine is told, and what it would do meanwhile.

use super::*;
use crate::offload::Offloaded;

/// An engine that does what it is told.
#[derive(Default)]
struct Copy {
    hops: BTreeMap<u32, NextHop>,
    decisions: BTreeMap<Vec<Xid>, Offloaded>,
}

impl Copy {
    fn apply(&mut self, change: &Offload) {
        match change {
            Offload::Hop { id, hop: Some(hop) } => drop(self.hops.insert(*id, *hop)),
            Offload::Hop { id, hop: None } => drop(self.hops.remove(id)),
            Offload::Set { edges, decision, .. } => {
                self.decisions.insert(edges.to_vec(), *decision);
            }
            Offload::Remove { edges } => drop(self.decisions.remove(&edges[..])),
            Offload::Clear => *self = Self::default(),
            Offload::Limit(_) => {}
        }
    }

    /// The neighbour that packets to `xid` are sent to, if they are sent.
    fn neighbour(&self, xid: Xid) -> Option<NextHop> {
        match self.decisions.get(&vec![xid])? {
            Offloaded::Forward(hop) => self.hops.get(hop).copied(),
            _ => None,
        }
    }
}

fn hop(number: u8) -> NextHop {
    NextHop { port: OUT, link: LinkAddress::Mac([2, 0, 0, 0, 1, number]) }
}

fn hosts(hops: [Option<u8>; 3]) -> Vec<(Xid, Answer)> {
    let answer = |number: Option<u8>| number.map_or(Answer::Unknown, |n| Answer::Forward(hop(n)));
    (0..).map(hid).zip(hops.map(answer)).collect()
}

fn drained(forwarder: &mut Forwarder) -> Vec<Offload> {
    let mut told = Vec::new();
    forwarder.drain_offloads(usize::MAX, &mut told);
    told
}

/// A forwarder that has told another engine where three hosts are.
fn told_of(hops: [Option<u8>; 3]) -> (Forwarder, Copy) {
    let mut forwarder = forwarder(&hosts(hops));
    forwarder.set_offloading(Some(OffloadRoom { decisions: [8; 4], hops: 16 }));
    for id in 0..3 {
        // What comes once is no news.
        for _ in 0..2 {
            let packet = packet_to(&Address::simple(hid(id)).unwrap());
            forwarder.route(Instant::ZERO, packet, &mut Verdicts::new());
        }
    }
    let mut copy = Copy::default();
    drained(&mut forwarder).iter().for_each(|change| copy.apply(change));
    for (id, number) in (0..).zip(hops) {
        assert_eq!(copy.neighbour(hid(id)), number.map(hop));
    }
    (forwarder, copy)
}

#[test]
fn no_neighbour_gets_what_is_meant_for_another_while_hosts_move() {
    let (mut forwarder, mut copy) = told_of([Some(1), Some(2), Some(1)]);
    let mut before = [Some(1), Some(2), Some(1)];
    for after in
        [[Some(3), Some(4), Some(5)], [Some(4), Some(3), Some(6)], [Some(7), None, Some(8)]]
    {
        let answers = hosts(after).into_iter().map(|(xid, answer)| (xid, (answer, Vec::new())));
        let answers = answers.collect();
        forwarder.add_principal(Box::new(Table { kind: XidType::HID, answers }));
        for change in drained(&mut forwarder) {
            copy.apply(&change);
            for (id, way) in (0..).zip(before.into_iter().zip(after)) {
                let now = copy.neighbour(hid(id));
                let allowed = [None, way.0.map(hop), way.1.map(hop)];
                assert!(allowed.contains(&now), "{id} from {way:?} to {now:?} by {change:?}");
            }
        }
        for (id, number) in (0..).zip(after) {
            assert_eq!(copy.neighbour(hid(id)), number.map(hop));
        }
        assert_eq!(copy.hops.len(), forwarder.cache_size().hops, "no number is kept");
        before = after;
    }
}

#[test]
fn what_was_used_before_all_is_forgotten_is_not_told() {
    let (mut forwarder, mut copy) = told_of([Some(1), Some(2), Some(3)]);
    forwarder.set_offloading(Some(OffloadRoom { decisions: [8; 4], hops: 16 }));
    assert!(forwarder.flush_cache() > 0);
    drained(&mut forwarder).iter().for_each(|change| copy.apply(change));
    assert!(copy.decisions.is_empty());
    let packet = packet_to(&Address::simple(hid(1)).unwrap());
    (0..2).for_each(|_| forwarder.route(Instant::ZERO, packet.duplicate(), &mut Verdicts::new()));
    drained(&mut forwarder).iter().for_each(|change| copy.apply(change));
    assert_eq!(copy.neighbour(hid(1)), Some(hop(2)));
}

#[test]
fn a_limit_is_told_though_all_decisions_are_forgotten_just_then() {
    let limit = SlowPathLimit { per_second: 1000, burst: 8 };
    let limits = Limits { slow_path: Some(limit), ..Limits::default() };
    let mut forwarder = Forwarder::new(limits, Random::from_seed(1));
    forwarder.set_offloading(Some(OffloadRoom::default()));
    drained(&mut forwarder);
    for port in 1..=2 {
        let egress = Egress { framing: Framing::Ethernet { mac: MAC }, mtu: 1500 };
        forwarder.add_port(PortId(port), egress);
    }
    forwarder.flush_cache();
    let share = SlowPathLimit { per_second: 500, burst: 4 };
    let told = drained(&mut forwarder);
    let mut limits = told.iter().filter(|change| matches!(change, Offload::Limit(_)));
    assert_eq!(limits.next_back(), Some(&Offload::Limit(Some(share))));
    assert!(told.contains(&Offload::Clear));
}
