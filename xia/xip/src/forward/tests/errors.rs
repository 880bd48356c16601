//! Whom the forwarder has told of drops.

use super::*;
use crate::error_message::ErrorKind;

#[test]
fn sources_are_told_of_what_is_dropped_whether_alone_or_in_a_batch() {
    let (source, reporter) = (
        Address::scoping(&[hid(7), xdp(7)]).unwrap(),
        Address::scoping(&[hid(7), crate::error_message::ERROR_SINK]).unwrap(),
    );
    let answers = [
        (hid(1), Answer::Forward(HOP), vec![]),
        (ad(1), Answer::Redirect(zf(1)), vec![]),
        (zf(1), Answer::Branches, vec![Branch::To(hid(1)), Branch::To(hid(9))]),
    ];
    // Destination, source, hop limit, payload and port, and the kind and the MTU that the source is told.
    let unreachable = Some((ErrorKind::Unreachable, 0));
    let cases = [
        (hid(9), Some(source), 9, 4, IN, unreachable),
        (hid(1), Some(source), 0, 4, IN, Some((ErrorKind::HopLimit, 0))),
        (hid(1), Some(source), 9, 1500, IN, Some((ErrorKind::TooBig, 1500))),
        (hid(1), Some(source), 9, 4, IN, None),
        (hid(9), None, 9, 4, IN, None),
        (hid(9), Some(reporter), 9, 4, IN, None),
        (zf(2), Some(source), 9, 4, IN, None),
        (ad(1), Some(source), 0, 4, IN, None),
        (hid(9), Some(source), 9, 4, PortId::NONE, None),
    ];
    let packets: Vec<_> = cases
        .iter()
        .map(|(to, source, hop_limit, len, port, _)| {
            let repr = XipRepr::new(Address::simple(*to).unwrap(), *source, *len);
            let mut packet = Packet::from_slice(&vec![0; usize::from(*len)]);
            let repr = XipRepr { hop_limit: *hop_limit, ..repr };
            repr.emit(packet.push_front(repr.buffer_len())).unwrap();
            packet.meta.port = *port;
            packet
        })
        .collect();
    let limit = SlowPathLimit { per_second: 1000, burst: 1000 };
    let mut forwarder = forwarder_with_branches(&answers);
    forwarder.errors = Errors::new(Some(limit));
    let expected: Vec<_> = cases.iter().filter_map(|case| Some((case.1?, case.5?))).collect();
    // The second batch finds everything in the cache.
    for in_batch in [false, true, true] {
        let copies = packets.iter().map(|packet| {
            let mut copy = Packet::from_slice(packet.bytes());
            copy.meta.port = packet.meta.port;
            copy
        });
        let (mut copies, mut out) = (copies.collect::<Vec<_>>(), Verdicts::new());
        match in_batch {
            true => forwarder.route_batch(Instant::ZERO, &mut copies, &mut out),
            false => {
                copies
                    .drain(..)
                    .for_each(|packet| forwarder.route(Instant::ZERO, packet, &mut out));
            }
        }
        let told = forwarder.errors().take();
        let mut told: Vec<_> = told.iter().map(|one| (one.source, (one.kind, one.mtu))).collect();
        let mut expected = expected.clone();
        told.sort_unstable();
        expected.sort_unstable();
        assert_eq!(told, expected, "in a batch: {in_batch}");
    }
}
