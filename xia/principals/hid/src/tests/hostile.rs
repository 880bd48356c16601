//! Neighbours that are wrong or mean.

use proptest::prelude::*;
use weft_base::Instant;
use weft_runtime::Level;
use weft_wire::MacAddr;
use weft_xip::principal::{Answer, Input, Output, Principal};
use weft_xip::{Xid, XidType};

use super::exchange::frame;
use super::link::{NWP_PORT, Node, announcement, hid, mac, reached_at};
use crate::nwp::{NeighbourRepr, NwpRepr};

const NOW: Instant = Instant::ZERO;

fn ready() -> Node {
    let mut node = Node::new(1);
    node.set(NOW, &format!("local {}", hid(1)));
    node.up(NOW);
    node.grant(NOW);
    node.out.clear();
    node
}

fn reports(node: &mut Node) -> Vec<String> {
    let warning = |output| match output {
        Output::Report { level: Level::Warning, line } => Some(line),
        _ => None,
    };
    node.out.drain(..).filter_map(warning).collect()
}

#[test]
fn an_own_hid_that_another_announces_is_refused_counted_and_reported_once() {
    let mut node = ready();
    let stolen = NwpRepr::Announcement { hardware_address: mac(6), hids: vec![hid(1), hid(6)] };
    for _ in 0..3 {
        node.receive(NOW, &frame(&stolen, mac(6), MacAddr::BROADCAST));
    }
    assert_eq!(node.ask(hid(1)), Answer::Through);
    assert_eq!(node.ask(hid(6)), reached_at(mac(6)), "the rest of the message counts");
    assert_eq!(node.count("own-hid"), 3);
    let reports = reports(&mut node);
    assert_eq!(reports.len(), 1);
    assert!(reports[0].contains("02:00:00:00:00:06 on eth0"), "{reports:?}");
}

#[test]
fn addresses_that_are_no_station_or_this_one_are_refused() {
    let mut node = ready();
    for bad in [MacAddr::UNSPECIFIED, MacAddr::BROADCAST, MacAddr([3, 0, 0, 0, 0, 1]), mac(1)] {
        let message = NwpRepr::Announcement { hardware_address: bad, hids: vec![hid(5)] };
        node.receive(NOW, &frame(&message, mac(5), MacAddr::BROADCAST));
        let neighbours = vec![NeighbourRepr { hid: hid(5), addresses: vec![bad] }];
        let message = NwpRepr::NeighbourList { neighbours };
        node.receive(NOW, &frame(&message, mac(5), mac(1)));
    }
    assert_eq!(node.ask(hid(5)), Answer::Unknown);
    assert_eq!(node.count("bad-address"), 8);
    assert!(node.out.is_empty(), "nothing is sent to such addresses: {:?}", node.out);
}

#[test]
fn frames_for_others_and_own_frames_are_not_read() {
    let mut node = ready();
    node.receive(NOW, &frame(&announcement(5), mac(5), mac(9)));
    node.receive(NOW, &frame(&announcement(5), mac(5), MacAddr([0x33, 0x33, 0, 0, 0, 1])));
    node.receive(NOW, &frame(&announcement(5), mac(1), MacAddr::BROADCAST));
    assert_eq!(node.ask(hid(5)), Answer::Unknown);
    assert_eq!(node.count("other-host"), 3);
}

#[test]
fn a_frame_of_another_ethertype_or_without_a_message_is_counted() {
    let mut node = ready();
    let mut other = frame(&announcement(5), mac(5), MacAddr::BROADCAST);
    other[13] = 0xde;
    node.receive(NOW, &other);
    node.receive(NOW, &other[..13]);
    node.receive(NOW, &frame(&announcement(5), mac(5), MacAddr::BROADCAST)[..30]);
    assert_eq!((node.count("malformed"), node.ask(hid(5))), (3, Answer::Unknown));
}

#[test]
fn a_full_table_keeps_what_it_has_and_says_so_once() {
    let mut node = ready();
    node.set(NOW, "neighbour-limit 3");
    for id in 2..=9 {
        node.receive(NOW, &frame(&announcement(id), mac(id), MacAddr::BROADCAST));
    }
    assert_eq!(node.ask(hid(4)), reached_at(mac(4)));
    assert_eq!(node.ask(hid(5)), Answer::Unknown);
    assert_eq!((node.count("learned"), node.count("table-full")), (3, 5));
    assert_eq!(node.count("introductions-sent"), 3, "strangers without room cause no answers");
    assert_eq!(reports(&mut node).len(), 1);
    node.set(NOW, "neighbour-limit 4");
    node.receive(NOW, &frame(&announcement(9), mac(9), MacAddr::BROADCAST));
    assert_eq!(node.ask(hid(9)), reached_at(mac(9)));
}

#[test]
fn one_hid_with_many_addresses_is_cut_short() {
    let mut node = ready();
    let addresses = (100..200).map(mac).collect();
    let neighbours = vec![NeighbourRepr { hid: hid(5), addresses }];
    node.receive(NOW, &frame(&NwpRepr::NeighbourList { neighbours }, mac(5), mac(1)));
    assert_eq!((node.count("learned"), node.count("too-many-addresses")), (16, 84));
    assert_eq!(node.ask(hid(5)), reached_at(mac(100)));
}

#[test]
fn an_introduction_is_sent_to_newcomers_only_and_never_answers_an_introduction() {
    let mut node = ready();
    node.receive(NOW, &frame(&announcement(5), mac(5), MacAddr::BROADCAST));
    node.receive(NOW, &frame(&announcement(5), mac(5), MacAddr::BROADCAST));
    assert_eq!(node.count("introductions-sent"), 1);
    node.receive(NOW, &frame(&announcement(6), mac(6), mac(1)));
    assert_eq!(node.ask(hid(6)), reached_at(mac(6)));
    assert_eq!(node.count("introductions-sent"), 1);
}

#[test]
fn what_is_sent_for_one_frame_stays_in_proportion() {
    let mut node = ready();
    let wide = |n: u32| {
        let mut id = [0; 20];
        id[..4].copy_from_slice(&n.to_be_bytes());
        Xid::new(XidType::HID, id)
    };
    let (mut received, mut sent) = (0, 0);
    for n in 0..4000u32 {
        let hids = vec![wide(n)];
        let message = NwpRepr::Announcement { hardware_address: mac(9), hids };
        let bytes = frame(&message, mac(9), MacAddr::BROADCAST);
        received += bytes.len();
        node.receive(NOW, &bytes);
        for output in node.out.drain(..) {
            if let Output::Transmit { packet, .. } = output {
                sent += packet.len();
            }
        }
    }
    assert_eq!(node.count("learned"), 4000);
    // Introductions cost as much as announcements; a list of n neighbours comes once in n times.
    assert!(sent < 3 * received, "{sent} bytes sent for {received}");
}

proptest! {
    #[test]
    fn any_frames_leave_the_node_sound(
        frames in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..120)), 0..40),
    ) {
        let mut node = ready();
        node.set(NOW, "neighbour-limit 20");
        for (well_headed, bytes) in frames {
            let mut bytes = bytes;
            if well_headed {
                let header = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 5, 0xc0, 0xdf, 1];
                bytes.splice(..0, header);
            }
            node.receive(NOW, &bytes);
        }
        for output in &node.out {
            match output {
                Output::Transmit { port, packet } => {
                    prop_assert_eq!(*port, NWP_PORT);
                    prop_assert!(packet.len() <= 1514);
                }
                Output::Report { .. } => {}
                other => prop_assert!(false, "{:?}", other),
            }
        }
        let learned = node.hid.show()["neighbours"].as_array().map_or(0, Vec::len);
        prop_assert!(learned <= 20);
        prop_assert_eq!(node.ask(hid(1)), Answer::Through);
        node.handle(NOW, Input::Tick);
    }
}
