//! Tests of batches: they fare as their packets do one after the other.

use std::time::Duration;

use proptest::sample::Index;
use weft_base::Buffer;

use super::*;

#[test]
fn packets_to_the_same_destination_keep_their_order_in_a_batch() {
    let answers = [
        (ad(1), Answer::Through),
        (ad(2), Answer::Redirect(hid(1))),
        (hid(1), Answer::Forward(HOP)),
    ];
    let mut forwarder = forwarder(&answers);
    let paths = [vec![ad(1), ad(2)], vec![hid(1)], vec![ad(9), ad(2)]];
    for _ in 0..2 {
        let numbered = |number: u8| {
            let mut packet = packet_to(&scoping(&paths[usize::from(number) % 3]));
            let len = packet.len();
            packet.bytes_mut()[len - 1] = number;
            packet
        };
        let (mut batch, mut verdicts) = ((0..30).map(numbered).collect(), Verdicts::new());
        forwarder.route_batch(Instant::ZERO, &mut batch, &mut verdicts);
        let verdicts: Vec<_> = verdicts.drain().collect();
        for path in [0, 1] {
            let numbers = verdicts.iter().filter_map(|verdict| match verdict {
                Verdict::Transmit { packet, .. } => packet.bytes().last().copied(),
                Verdict::Deliver { .. } => None,
            });
            let numbers: Vec<_> = numbers.filter(|number| number % 3 == path).collect();
            assert_eq!(numbers, (path..30).step_by(3).collect::<Vec<_>>());
        }
    }
    assert_eq!(forwarder.drops().get(DropReason::Unreachable), 20);
    let activity = forwarder.cache_activity();
    assert_eq!((activity.get(CacheActivity::Miss), activity.get(CacheActivity::Hit)), (4, 76));
}

/// A principal of each kind, with an answer of each kind.
fn any_forwarder() -> Forwarder {
    let ways = vec![Branch::To(hid(1)), Branch::To(ad(2)), Branch::To(ad(9))];
    forwarder_with_branches(&[
        (ad(1), Answer::Through, vec![]),
        (ad(2), Answer::Redirect(hid(1)), vec![]),
        (hid(1), Answer::Forward(HOP), vec![]),
        (xdp(1), Answer::Deliver(SocketId(1)), vec![]),
        (zf(1), Answer::Branches, ways),
    ])
}

/// Routes packets together and one after the other, and says what became of them.
fn route_both(alone: &mut Forwarder, together: &mut Forwarder, packets: Vec<Packet>) -> Verdicts {
    route_both_at(Instant::ZERO, alone, together, packets)
}

fn route_both_at(
    now: Instant,
    alone: &mut Forwarder,
    together: &mut Forwarder,
    mut packets: Vec<Packet>,
) -> Verdicts {
    let (mut expected, mut verdicts) = (Verdicts::new(), Verdicts::new());
    for packet in &packets {
        alone.route(now, packet.duplicate(), &mut expected);
    }
    together.route_batch(now, &mut packets, &mut verdicts);
    assert_eq!(packets, []);
    assert_eq!(verdicts, expected);
    let told = |of: &Forwarder| {
        let drops: Vec<_> = of.drops().nonzero().collect();
        (drops, of.activity().nonzero().collect::<Vec<_>>())
    };
    assert_eq!(told(together), told(alone));
    verdicts
}

#[test]
fn a_batch_fares_as_its_packets_do_one_after_the_other() {
    let paths = [vec![ad(2)], vec![ad(1), xdp(1)], vec![hid(7)], vec![zf(1)], vec![hid(1)]];
    let mut packets: Vec<_> = paths.iter().map(|path| packet_to(&scoping(path))).collect();
    packets.insert(2, Packet::from_slice(b"no packet"));
    let (mut alone, mut together) = (any_forwarder(), any_forwarder());
    let verdicts = route_both(&mut alone, &mut together, packets);
    assert_eq!(verdicts.len(), 5, "two of them by branches");
    assert_eq!(together.drops().nonzero().count(), 3);
}

#[test]
fn zeros_are_no_packet_in_a_batch_either() {
    let (mut alone, mut together) = (any_forwarder(), any_forwarder());
    for len in [8, 46, 1500] {
        let packets = (0..2).map(|_| Packet::from_slice(&vec![0; len])).collect();
        assert!(route_both(&mut alone, &mut together, packets).is_empty());
    }
    assert_eq!(together.drops().get(DropReason::Malformed), 6);
}

/// Anything, or something of which more is right.
fn any_bytes() -> impl Strategy<Value = Packet> {
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        prop::collection::vec(prop_oneof![4 => Just(0), 1 => 0..10_u8], 0..200),
    ];
    (bytes, any::<bool>()).prop_map(|(mut bytes, well_begun)| {
        if well_begun && bytes.len() > 8 {
            (bytes[0], bytes[5], bytes[6]) = (1, bytes[5] % 9 + 1, bytes[6] % 3);
        }
        Packet::from_slice(&bytes)
    })
}

/// A packet, mostly one that can be routed, and mostly in a frame that has room behind it.
fn some_packet() -> impl Strategy<Value = Packet> {
    let change = prop::option::weighted(0.2, (any::<Index>(), any::<u8>()));
    let frame = (prop::bool::weighted(0.8), 0_usize..3);
    (0_usize..8, any::<bool>(), change, frame).prop_map(|(path, received, change, frame)| {
        let (has_room, surplus) = frame;
        let paths: [&[Xid]; 7] = [
            &[ad(2)],
            &[hid(1)],
            &[ad(1), hid(1)],
            &[ad(1), xdp(1)],
            &[hid(7)],
            &[zf(1)],
            &[ad(1), ad(1), ad(2)],
        ];
        let mut packet = match paths.get(path) {
            Some(path) => packet_to(&scoping(path)),
            None => packet_to(&Address::fallback(&[ad(9), hid(7), ad(2)]).unwrap()),
        };
        packet.extend(&[0; 2][..surplus.min(2)]);
        if let Some((place, byte)) = change {
            let place = place.index(packet.len());
            packet.bytes_mut()[place] = byte;
        }
        if !has_room {
            packet = Buffer::compact(packet.bytes()).into();
        }
        packet.meta.port = if received { IN } else { PortId::NONE };
        packet
    })
}

proptest! {
    /// What the cache knows, and how the packet before looked, must not matter.
    #[test]
    fn any_batches_fare_as_their_packets_do(
        batches in prop::collection::vec(
            prop::collection::vec(prop_oneof![5 => some_packet(), 1 => any_bytes()], 1..80),
            1..4,
        ),
    ) {
        let (mut alone, mut together) = (any_forwarder(), any_forwarder());
        for batch in batches {
            route_both(&mut alone, &mut together, batch);
        }
    }
}

/// A packet to a domain that may be known by now, perhaps behind some that are known nowhere.
fn packet_to_a_domain() -> impl Strategy<Value = Packet> {
    (0_u8..40, 0_usize..4).prop_map(|(domain, unknown)| {
        let before = [ad(domain + 100), ad(domain + 150), ad(domain + 200)];
        let path: Vec<_> = before[..unknown].iter().copied().chain([ad(domain)]).collect();
        packet_to(&Address::fallback(&path).unwrap())
    })
}

proptest! {
    /// What a budget refuses does not depend on what comes together by a port, however far it is used up.
    #[test]
    fn any_batches_fare_as_their_packets_do_with_a_budget(
        burst in 1_u32..60,
        batches in prop::collection::vec(
            (0_u64..20, 0_usize..3, prop::collection::vec(packet_to_a_domain(), 2..80)),
            1..12,
        ),
    ) {
        let limit = SlowPathLimit { per_second: 1, burst };
        let limits = Limits { slow_path: Some(limit), ..Limits::default() };
        let (mut alone, mut together) = (any_forwarder(), any_forwarder());
        alone.set_limits(limits);
        together.set_limits(limits);
        let mut now = Instant::ZERO + Duration::from_secs(1000);
        for (seconds, port, mut batch) in batches {
            let port = [IN, OUT, PortId::NONE][port];
            batch.iter_mut().for_each(|packet| packet.meta.port = port);
            now += Duration::from_secs(seconds);
            route_both_at(now, &mut alone, &mut together, batch);
            let known = |of: &Forwarder| {
                let edges = of.cached().map(|entry| (entry.edges, entry.hits));
                edges.collect::<std::collections::BTreeMap<_, _>>()
            };
            prop_assert_eq!(known(&together), known(&alone));
            let looked = |of: &Forwarder| of.cache_activity().nonzero().collect::<Vec<_>>();
            prop_assert_eq!(looked(&together), looked(&alone));
        }
    }
}

#[test]
fn an_audit_of_the_cache_counts_nothing() {
    let redirect = Answer::Redirect(hid(1));
    let mut forwarder = forwarder(&[(ad(1), redirect), (hid(1), Answer::Through)]);
    let packet = packet_to(&Address::simple(ad(1)).unwrap());
    forwarder.route(Instant::ZERO, packet, &mut Verdicts::new());
    let counted = |of: &Forwarder| of.activity().nonzero().collect::<Vec<_>>();
    let before = counted(&forwarder);
    assert!(before.contains(&("redirected", 1)), "{before:?}");
    assert_eq!((forwarder.cache_size().entries, forwarder.audit_cache()), (1, Vec::new()));
    assert_eq!(counted(&forwarder), before);
}
