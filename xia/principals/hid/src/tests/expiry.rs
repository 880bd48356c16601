//! Neighbours that fall silent, and those that only seem to.

use std::time::Duration;

use serde_json::{Value, json};
use weft_base::Instant;
use weft_wire::MacAddr;
use weft_xip::principal::{Answer, Input, Output, Principal};
use weft_xip::{Xid, XidType};

use super::exchange::frame;
use super::link::{Link, Node, announcement, hid, mac, reached_at};
use crate::DEFAULT_EXPIRY;
use crate::expiry::{PROBE_PERIOD, TRIES};
use crate::nwp::{NeighbourRepr, NwpRepr, QuestionRepr};

const SECOND: Duration = Duration::from_secs(1);

/// A quarter is by chance; the last probe is waited for, too.
const LONGEST: Duration = Duration::from_millis(15_000 * 5 / 4 + 3_000);

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// How long until node 1 has no way to a HID any more.
fn until_gone(link: &mut Link, gone: u8) -> Duration {
    let start = link.now;
    while link.nodes[0].ask(hid(gone)) != Answer::Unknown {
        assert!(link.now.since(start) < Duration::from_secs(3600), "it is there for ever");
        link.run(Duration::from_millis(100));
    }
    link.now.since(start)
}

fn ready() -> Node {
    let mut node = Node::new(1);
    node.set(at(0), &format!("local {}", hid(1)));
    node.up(at(0));
    node.grant(at(0));
    node.out.clear();
    node
}

#[test]
fn a_node_that_dies_is_gone_soon_and_one_that_lives_is_not() {
    let mut link = Link::new(&[1, 2, 3]);
    (0..3).for_each(|index| link.start(index));
    link.run(Duration::from_secs(600));
    for id in 2..=3 {
        assert_eq!(link.nodes[0].ask(hid(id)), reached_at(mac(id)));
    }
    assert_eq!(link.nodes[0].count("expired"), 0);
    link.dead.insert(1);
    let took = until_gone(&mut link, 2);
    assert!(took <= LONGEST, "{took:?}");
    assert_eq!(link.nodes[0].ask(hid(3)), reached_at(mac(3)));
    // A neighbour that lives again is there as soon as it speaks.
    link.dead.clear();
    link.restart(1);
    assert_eq!(link.nodes[0].ask(hid(2)), reached_at(mac(2)));
}

#[test]
fn probing_costs_each_node_about_one_announcement_for_each_time_of_silence() {
    let mut link = Link::new(&(1..=30).collect::<Vec<u8>>());
    (0..30).for_each(|index| link.start(index));
    link.run(Duration::from_secs(60));
    link.log.clear();
    link.run(DEFAULT_EXPIRY * 20);
    let count = |is: fn(&NwpRepr) -> bool| link.log.iter().filter(|line| is(&line.3)).count();
    let probes = count(|message| matches!(message, NwpRepr::Probe(_)));
    let answers = count(|message| matches!(message, NwpRepr::Here(_)));
    let spoken = link.log.iter().filter(|line| line.2 == MacAddr::BROADCAST).count();
    assert_eq!(probes, answers);
    // 30 nodes, 20 times: not 30 * 29 questions each time. The seeds are fixed.
    assert!((300..2400).contains(&probes), "{probes} probes");
    assert!((300..900).contains(&spoken), "{spoken} announcements");
}

#[test]
fn a_node_that_knows_no_probes_lives_as_long_as_it_answers_announcements() {
    for nodes in 2..=5 {
        let mut link = Link::new(&(1..=nodes).collect::<Vec<_>>());
        link.plain = (1..usize::from(nodes)).collect();
        (0..usize::from(nodes)).for_each(|index| link.start(index));
        let now = link.now;
        for index in link.plain.clone() {
            // Linux XIA forgets nobody, and does not ask.
            link.nodes[index].set(now, "neighbour-expiry off");
            link.nodes[index].set(now, "proof off");
        }
        link.log.clear();
        link.run(Duration::from_secs(3600));
        assert_eq!(link.nodes[0].count("expired"), 0, "{nodes} nodes");
        // All that such nodes are sent besides is what they know or drop.
        for (_, sender, to, message) in link.log.iter().filter(|line| line.1 == 1) {
            match message {
                NwpRepr::Announcement { .. } | NwpRepr::NeighbourList { .. } => {}
                NwpRepr::Probe(_) | NwpRepr::Challenge(_) => {
                    assert!(!to.is_multicast(), "{sender} to {to}")
                }
                other => panic!("{other:?}"),
            }
        }
        link.dead.insert(1);
        let took = until_gone(&mut link, 2);
        let most = LONGEST + PROBE_PERIOD * 10 * (u32::from(nodes) + 1);
        assert!(took > DEFAULT_EXPIRY && took < most, "{nodes} nodes: {took:?}");
    }
}

#[test]
fn what_others_say_keeps_nobody_alive_and_brings_nobody_back() {
    let mut node = ready();
    node.receive(at(0), &frame(&announcement(2), mac(2), MacAddr::BROADCAST));
    let neighbours = vec![NeighbourRepr { hid: hid(2), addresses: vec![mac(2)] }];
    let list = frame(&NwpRepr::NeighbourList { neighbours }, mac(3), mac(1));
    let mut gone = None;
    for second in 1..120 {
        node.receive(at(second), &list);
        node.handle(at(second), Input::Tick);
        if gone.is_none() && node.ask(hid(2)) == Answer::Unknown {
            gone = Some(second);
        }
    }
    assert!(gone.is_some_and(|second| second < 60), "{gone:?}");
    assert_eq!(node.ask(hid(2)), Answer::Unknown);
    assert!(node.count("gone") > 0);
    node.receive(at(120), &frame(&announcement(2), mac(2), MacAddr::BROADCAST));
    assert_eq!(node.ask(hid(2)), reached_at(mac(2)));
}

#[test]
fn a_hid_that_its_node_does_not_name_any_more_is_gone() {
    let mut node = ready();
    let both = NwpRepr::Announcement { hardware_address: mac(2), hids: vec![hid(2), hid(3)] };
    node.receive(at(0), &frame(&both, mac(2), MacAddr::BROADCAST));
    for second in 1..120 {
        node.receive(at(second), &frame(&announcement(2), mac(2), MacAddr::BROADCAST));
        node.handle(at(second), Input::Tick);
    }
    assert_eq!(node.ask(hid(2)), reached_at(mac(2)));
    assert_eq!(node.ask(hid(3)), Answer::Unknown);
}

#[test]
fn an_answer_that_was_asked_for_is_a_sign_of_life_and_no_other_is() {
    let mut node = ready();
    node.receive(at(0), &frame(&announcement(2), mac(2), MacAddr::BROADCAST));
    let (mut probed, mut good) = (0, 0);
    for second in 1..200 {
        node.handle(at(second), Input::Tick);
        let outputs: Vec<_> = node.out.drain(..).collect();
        for output in outputs {
            let Output::Transmit { packet, .. } = output else { panic!("{output:?}") };
            let message = &packet.bytes()[14..];
            if message[1] != 0x80 {
                continue;
            }
            probed += 1;
            let mut nonce: [u8; 16] = message[10..26].try_into().unwrap();
            // For a while the answers are right, then they are of somebody who has not seen the question.
            nonce[0] ^= u8::from(second > 100);
            good += u32::from(second <= 100);
            let hids = vec![hid(2)];
            let here = NwpRepr::Here(QuestionRepr { hardware_address: mac(2), nonce, hids });
            node.receive(at(second), &frame(&here, mac(2), mac(1)));
        }
        assert!(second > 100 || node.ask(hid(2)) == reached_at(mac(2)), "{second}");
    }
    assert_eq!((probed - good, node.count("bad-nonce")), (TRIES, u64::from(TRIES)));
    assert_eq!(node.ask(hid(2)), Answer::Unknown);
}

#[test]
fn an_answer_is_for_one_place_and_one_time() {
    let node = ready();
    let nonce = node.hid.watch.nonce(at(100), "eth0", mac(2));
    let knows = |seconds, name, mac| node.hid.watch.knows(at(seconds), name, mac, nonce);
    assert!(knows(100, "eth0", mac(2)) && knows(107, "eth0", mac(2)));
    assert!(!knows(100, "eth0", mac(3)) && !knows(100, "eth1", mac(2)));
    assert!(!knows(117, "eth0", mac(2)) && !knows(90, "eth0", mac(2)));
}

#[test]
fn who_is_configured_stays_and_expiry_can_be_switched_off_and_on() {
    let mut node = ready();
    node.set(at(0), &format!("neighbour {} link {} interface eth0", hid(2), mac(2)));
    node.set(at(0), "neighbour-expiry off");
    for id in 2..=3 {
        node.receive(at(0), &frame(&announcement(id), mac(id), MacAddr::BROADCAST));
    }
    let hours = |node: &mut Node, from: u64| {
        (from..from + 3600).for_each(|second| node.handle(at(second), Input::Tick));
    };
    hours(&mut node, 1);
    assert_eq!(node.ask(hid(3)), reached_at(mac(3)));
    assert_eq!(node.count("probes-sent"), 0);
    node.delete(at(4000), "neighbour-expiry off");
    hours(&mut node, 4000);
    assert_eq!(node.ask(hid(2)), reached_at(mac(2)), "it is configured");
    assert_eq!(node.ask(hid(3)), Answer::Unknown);
    assert_eq!(node.hid.show()["neighbours"].as_array().map(Vec::len), Some(1));
}

#[test]
fn how_a_neighbour_is_and_when_it_was_heard_is_shown() {
    let mut node = ready();
    let shown = |node: &Node| {
        let shown = node.hid.show()["neighbours"].clone();
        let all = shown.as_array().unwrap().iter();
        let state = |one: &Value| (one["state"].clone(), one["heard_ns"].clone());
        all.map(state).collect::<Vec<_>>()
    };
    let second = 1_000_000_000u64;
    node.receive(at(5), &frame(&announcement(2), mac(2), MacAddr::BROADCAST));
    let neighbours = vec![NeighbourRepr { hid: hid(3), addresses: vec![mac(3)] }];
    node.receive(at(7), &frame(&NwpRepr::NeighbourList { neighbours }, mac(2), mac(1)));
    // The list says nothing of its own sender but that it is there.
    let (reachable, reported) = (json!("reachable"), json!("reported"));
    assert_eq!(shown(&node), [(reachable, json!(7 * second)), (reported, Value::Null)]);
    (8..7 + 20).for_each(|second| node.handle(at(second), Input::Tick));
    let silent = json!("silent");
    assert_eq!(shown(&node), [(silent.clone(), json!(7 * second)), (silent, Value::Null)]);
}

#[test]
fn without_a_port_or_an_identity_nobody_is_given_up() {
    let mut node = Node::new(1);
    node.up(at(0));
    node.grant(at(0));
    node.receive(at(0), &frame(&announcement(2), mac(2), MacAddr::BROADCAST));
    (1..600).for_each(|second| node.handle(at(second), Input::Tick));
    assert_eq!(node.ask(hid(2)), reached_at(mac(2)));
    node.set(at(600), &format!("local {}", hid(1)));
    (600..700).for_each(|second| node.handle(at(second), Input::Tick));
    assert_eq!(node.ask(hid(2)), Answer::Unknown);
}

#[test]
fn a_flood_of_probes_and_of_strangers_has_its_limits() {
    let mut node = ready();
    let probe = QuestionRepr { hardware_address: mac(9), nonce: [7; 16], hids: vec![hid(1)] };
    let probe = frame(&NwpRepr::Probe(probe), mac(9), mac(1));
    (0..1000).for_each(|_| node.receive(at(10), &probe));
    assert_eq!((node.count("answers-sent"), node.count("over-budget")), (128, 872));
    // A probe for nobody, and one that is to be answered to somebody else.
    let other = QuestionRepr { hardware_address: mac(9), nonce: [7; 16], hids: vec![hid(5)] };
    node.receive(at(20), &frame(&NwpRepr::Probe(other.clone()), mac(9), mac(1)));
    let hids = vec![hid(1)];
    node.receive(at(20), &frame(&NwpRepr::Probe(QuestionRepr { hids, ..other }), mac(8), mac(1)));
    assert_eq!((node.count("answers-sent"), node.count("bad-address")), (128, 1));
    node.out.clear();
    for n in 0..4000u32 {
        let mut id = [9; 20];
        id[..4].copy_from_slice(&n.to_be_bytes());
        let hids = vec![Xid::new(XidType::HID, id)];
        let [_, _, high, low] = n.to_be_bytes();
        let hardware_address = MacAddr([2, 0, 0, 1, high, low]);
        let message = NwpRepr::Announcement { hardware_address, hids };
        node.receive(at(20), &frame(&message, hardware_address, MacAddr::BROADCAST));
    }
    for second in 21..80 {
        node.out.clear();
        node.handle(at(second), Input::Tick);
        let probes = node.out.iter().filter(
            |output| matches!(output, Output::Transmit { packet, .. } if packet.bytes()[15] == 0x80),
        );
        assert!(probes.count() <= 128, "in one second");
    }
    assert!(node.hid.deadline().is_some_and(|due| due > at(79) && due <= at(79) + SECOND));
}
