//! Who says what when.

use std::time::Duration;

use weft_base::{Instant, Packet, PortId};
use weft_wire::{EthernetFrame, MacAddr};
use weft_xip::principal::{Answer, Input, Output, Principal};

use super::link::{Line, Link, NWP_PORT, Node, announcement, hid, info, mac, reached_at};
use crate::ANNOUNCEMENT_PERIOD;
use crate::nwp::{NeighbourRepr, NwpRepr};

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn is_announcement(line: &Line) -> bool {
    matches!(line.3, NwpRepr::Announcement { .. })
}

#[test]
fn two_nodes_know_each_other_as_soon_as_both_are_there() {
    let mut link = Link::new(&[1, 2]);
    link.start(0);
    link.run(Duration::from_millis(300));
    link.start(1);
    assert_eq!(link.nodes[0].ask(hid(2)), reached_at(mac(2)));
    assert_eq!(link.nodes[1].ask(hid(1)), reached_at(mac(1)));
    // Node 1 alone, twice; node 2 to all; node 1 to the newcomer. A list may follow.
    let announcements: Vec<_> = link.log.iter().filter(|line| is_announcement(line)).collect();
    assert_eq!(
        announcements,
        [
            &(0, 1, MacAddr::BROADCAST, announcement(1)),
            &(50, 1, MacAddr::BROADCAST, announcement(1)),
            &(300, 2, MacAddr::BROADCAST, announcement(2)),
            &(300, 1, mac(2), announcement(1)),
        ]
    );
}

#[test]
fn a_node_alone_announces_every_five_seconds() {
    let mut link = Link::new(&[1]);
    link.start(0);
    link.run(Duration::from_secs(16));
    let times: Vec<_> = link.log.iter().map(|line| (line.0, line.2)).collect();
    let all = MacAddr::BROADCAST;
    assert_eq!(times, [(0, all), (50, all), (5000, all), (10_000, all), (15_000, all)]);
}

#[test]
fn a_neighbour_that_was_started_again_is_told_who_is_there_at_once() {
    let mut link = Link::new(&[1, 2]);
    (0..2).for_each(|index| link.start(index));
    link.run(Duration::from_secs(62));
    link.restart(1);
    assert_eq!(link.nodes[1].ask(hid(1)), Answer::Unknown);
    link.run(Duration::from_millis(100));
    assert_eq!(link.nodes[1].ask(hid(1)), reached_at(mac(1)));
}

/// What it was told a moment before, the process heard that was there then.
#[test]
fn a_neighbour_that_is_started_twice_in_a_moment_is_told_again_when_the_pause_is_over() {
    let mut link = Link::new(&[1, 2]);
    (0..2).for_each(|index| link.start(index));
    link.run(Duration::from_secs(62));
    link.restart(1);
    link.run(Duration::from_millis(300));
    let introductions = link.nodes[0].count("introductions-sent");
    link.restart(1);
    link.run(Duration::from_millis(300));
    assert_eq!(link.nodes[1].ask(hid(1)), Answer::Unknown, "no more often than once a second");
    link.run(Duration::from_millis(800));
    assert_eq!(link.nodes[1].ask(hid(1)), reached_at(mac(1)));
    assert_eq!(link.nodes[0].count("introductions-sent"), introductions + 1);
}

#[test]
fn of_three_nodes_one_speaks_per_period_on_average() {
    let mut link = Link::new(&[1, 2, 3]);
    (0..3).for_each(|index| link.start(index));
    let now = link.now;
    link.nodes.iter_mut().for_each(|node| node.set(now, "neighbour-expiry off"));
    for id in 1..=3 {
        for (index, node) in link.nodes.iter().enumerate() {
            let own = index + 1 == usize::from(id);
            let expected = if own { Answer::Through } else { reached_at(mac(id)) };
            assert_eq!(node.ask(hid(id)), expected, "node {} asked for {id}", index + 1);
        }
    }
    link.log.clear();
    link.run(ANNOUNCEMENT_PERIOD * 300);
    let spoken = link.log.iter().filter(|line| is_announcement(line)).count();
    // 900 draws with probability 1/3; the seeds are fixed, so this is no gamble.
    assert!((240..360).contains(&spoken), "{spoken} announcements");
    // Each announcement reaches two nodes, which answer with probability 1/3.
    let lists = link.log.len() - spoken;
    assert!((150..260).contains(&lists), "{lists} lists");
}

#[test]
fn the_same_seeds_give_the_same_frames() {
    let run = || {
        let mut link = Link::new(&[1, 2, 3]);
        (0..3).for_each(|index| link.start(index));
        link.run(Duration::from_secs(120));
        link.log
    };
    assert_eq!(run(), run());
}

#[test]
fn a_list_names_the_neighbours_with_the_announcer_and_without_the_sender() {
    let mut link = Link::new(&[1, 2, 3]);
    (0..3).for_each(|index| link.start(index));
    link.log.clear();
    link.run(ANNOUNCEMENT_PERIOD * 20);
    let entry = |id| NeighbourRepr { hid: hid(id), addresses: vec![mac(id)] };
    let mut lists = 0;
    for (_, sender, to, message) in &link.log {
        let NwpRepr::NeighbourList { neighbours } = message else { continue };
        let others: Vec<_> = (1..=3).filter(|id| id != sender).map(entry).collect();
        assert_eq!(neighbours, &others);
        assert!(others.iter().any(|other| other.addresses == [*to]), "the announcer is in it");
        lists += 1;
    }
    assert!(lists > 0);
}

#[test]
fn a_list_teaches_neighbours_that_never_spoke() {
    let mut node = Node::new(1);
    node.set(at(0), &format!("local {}", hid(1)));
    node.up(at(0));
    node.grant(at(0));
    let addresses = vec![mac(7), mac(6)];
    let list = NwpRepr::NeighbourList {
        neighbours: vec![
            NeighbourRepr { hid: hid(1), addresses: vec![mac(1)] },
            NeighbourRepr { hid: hid(4), addresses: vec![mac(4)] },
            NeighbourRepr { hid: hid(5), addresses },
        ],
    };
    node.receive(at(0), &frame(&list, mac(2), mac(1)));
    assert_eq!(node.ask(hid(1)), Answer::Through);
    assert_eq!(node.ask(hid(4)), reached_at(mac(4)));
    assert_eq!(node.ask(hid(5)), reached_at(mac(6)), "the first address in byte order");
    assert_eq!((node.count("own-hid"), node.count("bad-address")), (0, 0));
}

pub(super) fn frame(message: &NwpRepr, from: MacAddr, to: MacAddr) -> Vec<u8> {
    let mut bytes = [&to.0[..], &from.0, &[0xc0, 0xdf]].concat();
    let mut body = vec![0; message.buffer_len()];
    message.emit(&mut body).unwrap();
    bytes.extend(body);
    bytes
}

#[test]
fn a_new_identity_is_announced_at_once_together_with_the_old_ones() {
    let mut link = Link::new(&[1, 2]);
    (0..2).for_each(|index| link.start(index));
    link.run(Duration::from_millis(700));
    link.log.clear();
    let now = link.now;
    link.nodes[0].set(now, &format!("local {}", hid(9)));
    link.carry();
    let hids = vec![hid(1), hid(9)];
    let expected = NwpRepr::Announcement { hardware_address: mac(1), hids };
    assert_eq!(link.log[0], (700, 1, MacAddr::BROADCAST, expected));
    assert_eq!(link.nodes[1].ask(hid(9)), reached_at(mac(1)));
}

#[test]
fn the_frame_of_an_announcement_is_that_of_linux_xia() {
    let mut node = Node::new(1);
    let local = "hid-3b479ba966e9553c11d453002f87076edbcfe3a8";
    node.set(at(0), &format!("local {local}"));
    let address: MacAddr = "1a:1e:1e:7e:c8:29".parse().unwrap();
    let port = super::link::XIP_PORT;
    node.handle(at(0), Input::InterfaceUp { name: "eth0".into(), port, info: info(address) });
    node.grant(at(0));
    let [Output::Transmit { port: NWP_PORT, packet }] = node.out.as_slice() else {
        panic!("one frame is expected: {:?}", node.out);
    };
    let expected = "ffffffffffff1a1e1e7ec829c0df010101061a1e1e7ec829\
                    3b479ba966e9553c11d453002f87076edbcfe3a8";
    let hex: String = packet.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, expected);
    assert!(EthernetFrame::new_checked(packet.bytes()).unwrap().destination().is_broadcast());
}

#[test]
fn without_an_identity_a_node_listens_and_says_nothing() {
    let mut node = Node::new(1);
    node.set(at(0), "proof off");
    node.up(at(0));
    node.grant(at(0));
    assert!(node.out.is_empty());
    assert_eq!(node.hid.deadline(), None);
    node.receive(at(0), &frame(&announcement(2), mac(2), MacAddr::BROADCAST));
    assert_eq!(node.ask(hid(2)), reached_at(mac(2)));
    assert!(node.out.is_empty());
    node.set(at(10), &format!("local {}", hid(1)));
    assert_eq!(node.out.len(), 1, "it announces as soon as it has one");
    assert_eq!(node.hid.deadline(), Some(at(5010)));
}

#[test]
fn a_late_tick_does_not_make_up_for_what_was_missed() {
    let mut node = Node::new(1);
    node.set(at(0), &format!("local {}", hid(1)));
    node.up(at(0));
    node.grant(at(0));
    node.handle(at(50), Input::Tick);
    assert_eq!(node.out.len(), 2, "it has announced itself twice");
    node.out.clear();
    node.handle(at(4999), Input::Tick);
    assert!(node.out.is_empty());
    node.handle(at(6000), Input::Tick);
    assert_eq!((node.out.len(), node.hid.deadline()), (1, Some(at(10_000))));
    node.handle(at(60_000), Input::Tick);
    assert_eq!((node.out.len(), node.hid.deadline()), (2, Some(at(65_000))));
}

/// Subinterfaces of one device (VLANs) have neighbours whose hardware address is the same.
#[test]
fn a_newcomer_on_two_interfaces_with_one_hardware_address_is_told_who_is_there_on_both() {
    let mut node = Node::new(1);
    node.set(at(0), &format!("local {}", hid(1)));
    node.up(at(0));
    node.grant(at(0));
    let (other, over_other) = (info(mac(1)), PortId(21));
    node.handle(at(0), Input::InterfaceUp { name: "eth1".into(), port: PortId(20), info: other });
    let asked = node.out.drain(..).find_map(|output| match output {
        Output::OpenPort { token, .. } => Some(token),
        _ => None,
    });
    let token = asked.expect("a port for NWP is asked for");
    node.handle(at(0), Input::PortOpened { token, port: over_other, info: other });
    // What is said on each interface, in order of the ports.
    let introduced = |node: &mut Node| {
        let mut ports: Vec<_> = node
            .out
            .drain(..)
            .filter_map(|output| match output {
                Output::Transmit { port, packet }
                    if packet.bytes()[..6] == mac(2).0 && packet.bytes()[15] == 1 =>
                {
                    Some(port)
                }
                _ => None,
            })
            .collect();
        ports.sort_unstable();
        ports
    };
    let newcomer = frame(&announcement(2), mac(2), MacAddr::BROADCAST);
    let hear = |node: &mut Node, millis: u64, port: PortId| {
        let packets = vec![Packet::from_slice(&newcomer)];
        node.handle(at(millis), Input::Packets { port, packets });
    };
    node.out.clear();
    hear(&mut node, 1000, NWP_PORT);
    hear(&mut node, 1001, over_other);
    assert_eq!(introduced(&mut node), [NWP_PORT, over_other]);
    // It is started again on both within the pause: what is owed is owed on both.
    hear(&mut node, 1500, NWP_PORT);
    hear(&mut node, 1501, over_other);
    node.handle(at(1999), Input::Tick);
    assert_eq!(introduced(&mut node), []);
    node.handle(at(2001), Input::Tick);
    assert_eq!(introduced(&mut node), [NWP_PORT, over_other]);
}
