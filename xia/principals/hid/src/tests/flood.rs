//! Neighbours and withdrawals that somebody has invented, and what real neighbours have to suffer from them.

use std::collections::BTreeMap;
use std::time::Duration;

use weft_base::Instant;
use weft_wire::MacAddr;
use weft_xip::principal::Answer;
use weft_xip::{Xid, XidType};

use super::exchange::frame;
use super::link::{Link, hid, mac, reached_at};
use crate::nwp::{NeighbourRepr, NwpRepr, Seal, SealedRepr};

const SECOND: Duration = Duration::from_secs(1);

/// As long as a neighbour may be silent, with the quarter by chance.
const SILENCE: Duration = Duration::from_millis(15_000 * 5 / 4);
/// Until one is gone that never spoke again: 120 questions, with the quarter by chance.
const INVENTED: Duration = Duration::from_millis(15_000 * 5 / 4 + 120 * 1_250 + 1_250);

fn invented(n: u32) -> Xid {
    let mut id = [0; 20];
    id[1..5].copy_from_slice(&n.to_be_bytes());
    Xid::new(XidType::HID, id)
}

fn station(n: u32) -> MacAddr {
    let [_, _, high, low] = n.to_be_bytes();
    MacAddr([2, 0, 0, 1, high, low])
}

/// Announcements of so many HIDs, as few frames as possible, each from an address of its own.
fn announcements(count: u32) -> Vec<Vec<u8>> {
    let all: Vec<_> = (0..count).map(invented).collect();
    let message = |(n, hids): (usize, &[Xid])| {
        let from = station(n as u32);
        let message = NwpRepr::Announcement { hardware_address: from, hids: hids.to_vec() };
        frame(&message, from, MacAddr::BROADCAST)
    };
    all.chunks(74).enumerate().map(message).collect()
}

/// Neighbour lists of so many HIDs, each at an address of its own.
fn lists(count: u32) -> Vec<Vec<u8>> {
    let all: Vec<_> = (0..count)
        .map(|n| NeighbourRepr { hid: invented(n), addresses: vec![station(n)] })
        .collect();
    let message = |some: &[NeighbourRepr]| {
        frame(&NwpRepr::NeighbourList { neighbours: some.to_vec() }, station(9999), mac(1))
    };
    all.chunks(55).map(message).collect()
}

/// Nodes 1 to 3 of weft and node 4 of Linux XIA, which have known each other for a minute.
fn link() -> Link {
    let mut link = Link::new(&[1, 2, 3, 4, 5]);
    for index in [3, 4] {
        link.plain.insert(index);
        link.nodes[index].set(Instant::ZERO, "neighbour-expiry off");
        link.nodes[index].set(Instant::ZERO, "proof off");
    }
    (0..4).for_each(|index| link.start(index));
    link.run(SECOND * 60);
    link
}

/// Has node 1 receive frames that nobody hears but it.
fn flood(link: &mut Link, frames: &[Vec<u8>]) {
    let now = link.now;
    frames.iter().for_each(|frame| link.nodes[0].receive(now, frame));
    link.carry();
}

fn learned(link: &Link) -> usize {
    link.nodes[0].hid.neighbours.count("eth0")
}

/// The most frames that node 1 has sent in one second.
fn busiest(link: &Link) -> usize {
    let mut seconds = BTreeMap::<u64, usize>::new();
    for line in link.log.iter().filter(|line| line.1 == 1) {
        *seconds.entry(line.0 / 1000).or_default() += 1;
    }
    seconds.into_values().max().unwrap_or(0)
}

#[test]
fn a_table_full_of_invented_neighbours_is_rid_of_them_soon_and_real_ones_do_not_notice() {
    for frames in [announcements(5000), lists(5000)] {
        let mut link = link();
        flood(&mut link, &frames);
        assert_eq!(learned(&link), 4096, "the table is full");
        link.run(SECOND);
        link.log.clear();
        // A node dies when the invented ones are asked already.
        link.run(SILENCE);
        link.dead.insert(1);
        let died = link.now;
        link.run(SILENCE + SECOND * 3);
        assert_eq!(link.nodes[0].ask(hid(2)), Answer::Unknown, "{} after {died}", link.now);
        for id in [3, 4] {
            assert_eq!(link.nodes[0].ask(hid(id)), reached_at(mac(id)));
        }
        link.run(INVENTED);
        assert_eq!(learned(&link), 2);
        assert!(busiest(&link) <= 300, "{} frames in a second", busiest(&link));
        for id in [3, 4] {
            assert_eq!(link.nodes[0].ask(hid(id)), reached_at(mac(id)));
        }
    }
}

#[test]
fn many_silent_neighbours_at_one_address_are_announced_to_once_a_second() {
    let mut link = link();
    flood(&mut link, &announcements(74));
    link.run(SILENCE);
    let before = link.nodes[0].count("announcements-to-silent");
    link.run(SECOND * 60);
    let sent = link.nodes[0].count("announcements-to-silent") - before;
    // A few more are for node 4.
    assert!((45..80).contains(&sent), "{sent}");
    link.run(INVENTED);
    assert_eq!(learned(&link), 3);
}

#[test]
fn a_new_node_of_linux_xia_stays_though_there_are_many_invented_neighbours() {
    for frames in [announcements(4000), lists(4000)] {
        let mut link = link();
        flood(&mut link, &frames);
        link.run(SECOND * 10);
        link.start(4);
        for _ in 0..600 {
            link.run(SECOND);
            assert_eq!(link.nodes[0].ask(hid(5)), reached_at(mac(5)), "{}", link.now);
        }
        assert_eq!(learned(&link), 4);
    }
}

#[test]
fn who_has_spoken_for_a_while_is_waited_for_no_longer_than_that() {
    let mut link = link();
    let frames = announcements(3000);
    for _ in 0..20 {
        flood(&mut link, &frames);
        link.run(SECOND * 10);
    }
    assert_eq!(learned(&link), 3003);
    link.log.clear();
    link.dead.insert(1);
    link.run(SILENCE + SECOND * 3);
    assert_eq!(link.nodes[0].ask(hid(2)), Answer::Unknown);
    // 200 seconds long.
    link.run(SECOND * 200 * 5 / 4);
    assert_eq!(learned(&link), 2);
    for id in [3, 4] {
        assert_eq!(link.nodes[0].ask(hid(id)), reached_at(mac(id)));
    }
}

#[test]
fn a_flood_of_withdrawals_without_proof_causes_one_question_a_second() {
    let mut link = Link::new(&[1, 2]);
    (0..2).for_each(|index| link.start(index));
    link.run(SECOND * 10);
    let before = link.nodes[0].count("probes-sent");
    let (hardware_address, nonce) = (mac(2), [0; 16]);
    let forged = SealedRepr { hardware_address, nonce, hid: hid(2), seal: Seal::NONE };
    let forged = frame(&NwpRepr::Withdrawal(forged), mac(2), MacAddr::BROADCAST);
    for _ in 0..10_000 {
        let now = link.now;
        link.nodes[0].receive(now, &forged);
        link.carry();
        link.run(Duration::from_millis(1));
    }
    assert_eq!(link.nodes[0].ask(hid(2)), reached_at(mac(2)));
    let probes = link.nodes[0].count("probes-sent") - before;
    assert!((1..=11).contains(&probes), "{probes}");
    // When it is gone, that is found a second later at most.
    link.dead.insert(1);
    let now = link.now;
    link.nodes[0].receive(now, &forged);
    link.run(SECOND * 4);
    assert_eq!(link.nodes[0].ask(hid(2)), Answer::Unknown);
}
