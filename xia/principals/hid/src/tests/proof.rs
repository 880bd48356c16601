//! Who proves what to whom, and what forgers achieve.

use std::time::Duration;

use weft_base::{Instant, Packet};
use weft_keys::PrivateKey;
use weft_wire::{EthernetFrame, MacAddr};
use weft_xip::principal::{Answer, Input, Output, Principal};
use weft_xip::{Xid, XidType};

use super::exchange::frame;
use super::link::{Link, Node, hid, mac, reached_at};
use crate::nwp::{
    NwpMessage, NwpRepr, QuestionRepr, Seal, SealedRepr, signed_proof, signed_withdrawal,
};
use crate::{DEFAULT_EXPIRY, DEFAULT_NEIGHBOUR_LIMIT};

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// Nodes with keys on one link, which know each other.
fn keyed(ids: &[u8], statement: &str) -> Link {
    let mut link = Link::of(ids.iter().map(|id| Node::keyed(*id)).collect());
    for index in 0..ids.len() {
        link.nodes[index].set(Instant::ZERO, statement);
        link.start(index);
    }
    link.run(Duration::from_secs(10));
    link
}

/// One node with a key that is ready; it was asked for nothing yet.
fn ready(statement: &str) -> Node {
    let mut node = Node::keyed(1);
    node.set(at(0), statement);
    node.set(at(0), &format!("local {}", node.own));
    node.up(at(0));
    node.grant(at(0));
    node.out.clear();
    node
}

fn announcement(of: &Node, from: u8) -> Vec<u8> {
    let message = NwpRepr::Announcement { hardware_address: mac(from), hids: vec![of.own] };
    frame(&message, mac(from), MacAddr::BROADCAST)
}

/// The frames that a node has sent.
fn transmitted(node: &mut Node) -> Vec<Packet> {
    let transmitted = node.out.drain(..).filter_map(|output| match output {
        Output::Transmit { packet, .. } => Some(packet),
        _ => None,
    });
    transmitted.collect()
}

/// The messages that a node has sent.
fn sent(node: &mut Node) -> Vec<NwpRepr> {
    transmitted(node)
        .iter()
        .map(|packet| {
            let frame = EthernetFrame::new_checked(packet.bytes()).unwrap();
            NwpRepr::parse(&NwpMessage::new_checked(frame.payload()).unwrap())
        })
        .collect()
}

/// Has `asked` announced to `asking` from a hardware address, and returns the challenge that follows.
fn challenge(asking: &mut Node, asked: &Node, from: u8, now: Instant) -> QuestionRepr {
    asking.out.clear();
    asking.receive(now, &announcement(asked, from));
    let mut challenges = sent(asking).into_iter().filter_map(|message| match message {
        NwpRepr::Challenge(question) => Some(question),
        _ => None,
    });
    challenges.next_back().expect("an announcement is a reason to challenge")
}

/// What `asked`, at `from`, answers to a challenge.
fn proof(asked: &mut Node, challenge: QuestionRepr, now: Instant) -> SealedRepr {
    let from = challenge.hardware_address;
    asked.out.clear();
    asked.receive(now, &frame(&NwpRepr::Challenge(challenge), from, mac(asked.id)));
    let mut proofs = sent(asked).into_iter().filter_map(|message| match message {
        NwpRepr::Proof(proof) => Some(proof),
        _ => None,
    });
    proofs.next_back().expect("a challenge is answered with a proof")
}

fn proven(node: &Node) -> Vec<bool> {
    let shown = node.hid.show();
    let lines = shown["neighbours"].as_array().unwrap();
    lines.iter().map(|line| line["proven"].as_bool().unwrap()).collect()
}

#[test]
fn nodes_with_keys_prove_who_they_are_and_others_are_believed_unless_proof_is_required() {
    for (statement, others) in [("proof preferred", true), ("proof required", false)] {
        let mut link = keyed(&[1, 2], statement);
        link.nodes.push(Node::new(3));
        link.nodes.push(Node::new(4));
        link.plain.insert(3);
        link.start(2);
        link.start(3);
        link.run(Duration::from_secs(300));
        let second = link.nodes[1].own;
        assert_eq!(link.nodes[0].ask(second), reached_at(mac(2)), "{statement}");
        for id in 3..=4 {
            let expected = if others { reached_at(mac(id)) } else { Answer::Unknown };
            assert_eq!(link.nodes[0].ask(hid(id)), expected, "{statement}");
        }
        let count = proven(&link.nodes[0]);
        assert_eq!(count.iter().filter(|proven| **proven).count(), 1, "{statement}");
        assert_eq!(count.len(), if others { 3 } else { 1 });
    }
}

#[test]
fn where_proof_is_required_it_is_given_again_and_again_and_the_dead_are_gone() {
    let mut link = keyed(&[1, 2, 3], "proof required");
    link.run(Duration::from_secs(1800));
    let (second, third) = (link.nodes[1].own, link.nodes[2].own);
    assert_eq!(link.nodes[0].count("expired"), 0);
    assert_eq!(link.nodes[0].ask(second), reached_at(mac(2)));
    let proofs = link.nodes[0].count("proofs-received");
    // Two neighbours, each 15 to 19 seconds.
    assert!((2 * 90..2 * 130).contains(&proofs), "{proofs}");
    link.dead.insert(1);
    // Somebody goes on saying that it is there.
    let dead = Node::keyed(2);
    for _ in 0..40 {
        link.run(Duration::from_secs(1));
        let now = link.now;
        link.nodes[0].receive(now, &announcement(&dead, 2));
        link.nodes[0].out.clear();
    }
    assert_eq!(link.nodes[0].ask(second), Answer::Unknown);
    assert_eq!(link.nodes[0].ask(third), reached_at(mac(3)));
}

#[test]
fn a_spoofed_hid_is_refused_where_proof_is_required_and_avoided_where_it_is_preferred() {
    for statement in ["proof required", "proof preferred"] {
        let mut link = keyed(&[5, 6], statement);
        let victim = link.nodes[1].own;
        // An address that would go first.
        let mut mallory = Node::new(1);
        mallory.own = victim;
        link.nodes.push(mallory);
        link.start(2);
        link.run(Duration::from_secs(120));
        assert_eq!(link.nodes[0].ask(victim), reached_at(mac(6)), "{statement}");
        let refused = link.nodes[0].count("unproven");
        assert_eq!(refused > 0, statement == "proof required");
        link.dead.insert(1);
        link.run(Duration::from_secs(60));
        let expected = match statement {
            "proof required" => Answer::Unknown,
            _ => reached_at(mac(1)),
        };
        assert_eq!(link.nodes[0].ask(victim), expected, "{statement}");
    }
}

/// A node that can prove its HID, at the hardware address 2.
fn prover() -> Node {
    let mut node = Node::keyed(2);
    node.set(at(0), &format!("local {}", node.own));
    node.up(at(0));
    node.grant(at(0));
    node
}

/// Has `asked` announce itself to `asking` and prove what it says.
fn prove(asking: &mut Node, asked: &mut Node, now: Instant) {
    let question = challenge(asking, asked, asked.id, now);
    let proof = proof(asked, question, now);
    asking.receive(now, &frame(&NwpRepr::Proof(proof), mac(asked.id), mac(1)));
}

#[test]
fn who_gets_another_address_is_reached_there_at_once() {
    for statement in ["proof required", "proof preferred"] {
        let (mut asking, mut moving) = (ready(statement), prover());
        prove(&mut asking, &mut moving, at(0));
        assert_eq!(asking.ask(moving.own), reached_at(mac(2)));
        moving.out.clear();
        // Between addresses that are as good, the lower one is taken.
        moving.id = 9;
        moving.up(at(1));
        asking.out.clear();
        for message in transmitted(&mut moving) {
            asking.receive(at(1), message.bytes());
        }
        assert_eq!(asking.count("withdrawn"), 1, "{statement}");
        // The announcement from there is a reason to ask there.
        for message in transmitted(&mut asking) {
            moving.receive(at(1), message.bytes());
        }
        for message in transmitted(&mut moving) {
            asking.receive(at(1), message.bytes());
        }
        assert_eq!(asking.ask(moving.own), reached_at(mac(9)), "{statement}");
        assert_eq!(proven(&asking), [true], "{statement}");
    }
}

#[test]
fn who_proves_a_hid_takes_the_place_of_those_who_merely_claim_it() {
    for (statement, claims) in [("neighbour-limit 4096", 16), ("neighbour-limit 1", 1)] {
        let (mut asking, mut victim) = (ready("proof preferred"), prover());
        asking.set(at(0), statement);
        for from in 100..100 + claims {
            asking.receive(at(100), &announcement(&victim, from));
        }
        assert_eq!(proven(&asking).len(), usize::from(claims), "{statement}");
        prove(&mut asking, &mut victim, at(100));
        assert_eq!(asking.ask(victim.own), reached_at(mac(2)), "{statement}");
        assert_eq!(proven(&asking).len(), usize::from(claims), "one for another");
        assert_eq!(asking.count("displaced"), 1);
    }
}

#[test]
fn who_never_spoke_again_gives_way_before_who_did() {
    let (mut asking, mut victim) = (ready("proof preferred"), prover());
    asking.set(at(0), "neighbour-limit 2");
    let claim = |id| NwpRepr::Announcement { hardware_address: mac(id), hids: vec![hid(id)] };
    for second in [0, 10] {
        asking.receive(at(second), &frame(&claim(8), mac(8), MacAddr::BROADCAST));
    }
    asking.receive(at(20), &frame(&claim(9), mac(9), MacAddr::BROADCAST));
    asking.handle(at(20), Input::Tick);
    prove(&mut asking, &mut victim, at(20));
    assert_eq!(asking.ask(victim.own), reached_at(mac(2)));
    assert_eq!(asking.ask(hid(8)), reached_at(mac(8)));
    assert_eq!(asking.ask(hid(9)), Answer::Unknown);
}

#[test]
fn neither_the_proven_nor_the_configured_give_way() {
    let (mut asking, mut victim) = (ready("proof preferred"), prover());
    asking.set(at(0), "neighbour-limit 1");
    asking.set(at(0), &format!("neighbour {} link {} interface eth0", hid(9), mac(9)));
    let claim = NwpRepr::Announcement { hardware_address: mac(8), hids: vec![hid(8)] };
    asking.receive(at(100), &frame(&claim, mac(8), MacAddr::BROADCAST));
    assert_eq!(asking.ask(hid(8)), reached_at(mac(8)));
    prove(&mut asking, &mut victim, at(100));
    assert_eq!(asking.ask(victim.own), reached_at(mac(2)));
    assert_eq!(asking.ask(hid(8)), Answer::Unknown, "it had proven nothing");
    let mut late = Node::keyed(3);
    late.set(at(0), &format!("local {}", late.own));
    late.up(at(0));
    late.grant(at(0));
    prove(&mut asking, &mut late, at(100));
    assert_eq!(asking.ask(late.own), Answer::Unknown);
    assert_eq!(asking.ask(victim.own), reached_at(mac(2)));
    assert_eq!(asking.ask(hid(9)), reached_at(mac(9)));
}

#[test]
fn without_proofs_nobody_is_challenged() {
    let link = keyed(&[1, 2], "proof off");
    assert_eq!(link.nodes[0].ask(link.nodes[1].own), reached_at(mac(2)));
    assert!(!link.log.iter().any(|line| matches!(line.3, NwpRepr::Challenge(_))));
}

#[test]
fn a_proof_is_good_for_one_asker_one_place_and_one_time() {
    let (mut asking, mut victim) = (ready("proof required"), Node::keyed(2));
    victim.set(at(0), &format!("local {}", victim.own));
    victim.up(at(0));
    victim.grant(at(0));
    let question = challenge(&mut asking, &victim, 2, at(100));
    let good = proof(&mut victim, question, at(100));
    // Who is at another address passes the question on, and the answer back.
    let relayed = challenge(&mut asking, &victim, 9, at(100));
    let relayed = proof(&mut victim, relayed, at(100));
    for (message, from, counter) in [
        (relayed.clone(), 9, "bad-address"),
        (SealedRepr { hardware_address: mac(9), ..relayed }, 9, "bad-proof"),
        (SealedRepr { hardware_address: mac(9), ..good.clone() }, 9, "bad-nonce"),
    ] {
        let before = asking.count(counter);
        asking.receive(at(100), &frame(&NwpRepr::Proof(message), mac(from), mac(1)));
        assert_eq!(asking.count(counter), before + 1, "{counter}");
    }
    // What was for another asker.
    let stolen =
        QuestionRepr { hardware_address: mac(7), nonce: good.nonce, hids: vec![victim.own] };
    let stolen = proof(&mut victim, stolen, at(100));
    asking.receive(at(100), &frame(&NwpRepr::Proof(stolen), mac(2), mac(1)));
    assert_eq!((asking.count("bad-proof"), asking.ask(victim.own)), (2, Answer::Unknown));
    asking.receive(at(120), &frame(&NwpRepr::Proof(good.clone()), mac(2), mac(1)));
    assert_eq!((asking.count("bad-nonce"), asking.ask(victim.own)), (2, Answer::Unknown));
    // In time it is good.
    asking.receive(at(107), &frame(&NwpRepr::Proof(good), mac(2), mac(1)));
    assert_eq!(asking.ask(victim.own), reached_at(mac(2)));
}

#[test]
fn no_byte_of_a_proof_can_be_changed_and_no_other_key_will_do() {
    let mut asking = ready("proof required");
    let mut asked = Node::keyed(2);
    asked.set(at(0), &format!("local {}", asked.own));
    asked.up(at(0));
    asked.grant(at(0));
    let question = challenge(&mut asking, &asked, 2, at(0));
    let good = proof(&mut asked, question, at(0));
    let bytes = frame(&NwpRepr::Proof(good.clone()), mac(2), mac(1));
    for changed in 14..bytes.len() {
        let mut node = ready("proof required");
        let mut bytes = bytes.clone();
        bytes[changed] ^= 1;
        node.receive(at(0), &bytes);
        assert!(proven(&node).is_empty(), "byte {changed}");
    }
    let mut forged = good.clone();
    let key = PrivateKey::from_seed([9; 32]);
    forged.seal.key = key.public_key().to_bytes();
    forged.seal.signature = key.sign(&signed_proof(&forged, mac(1))).to_bytes();
    asking.receive(at(0), &frame(&NwpRepr::Proof(forged), mac(2), mac(1)));
    assert_eq!(asking.count("bad-proof"), 1);
    asking.receive(at(0), &frame(&NwpRepr::Proof(good), mac(2), mac(1)));
    assert_eq!(proven(&asking), [true]);
}

#[test]
fn a_flood_of_strangers_costs_little_and_takes_nothing_from_neighbours() {
    let mut node = ready("proof required");
    let mut friend = Node::keyed(2);
    friend.set(at(0), &format!("local {}", friend.own));
    friend.up(at(0));
    friend.grant(at(0));
    let question = challenge(&mut node, &friend, 2, at(0));
    let good = proof(&mut friend, question, at(0));
    let good = frame(&NwpRepr::Proof(good), mac(2), mac(1));
    node.receive(at(0), &good);
    assert_eq!(proven(&node), [true]);
    // Challenges: each wants a signature.
    let question =
        |id| QuestionRepr { hardware_address: mac(id), nonce: [7; 16], hids: vec![node.own] };
    let (strange, friendly) = (question(9), question(2));
    let strange = frame(&NwpRepr::Challenge(strange), mac(9), mac(1));
    (0..1000).for_each(|_| node.receive(at(1), &strange));
    assert_eq!(node.count("proofs-sent"), 32);
    node.receive(at(1), &frame(&NwpRepr::Challenge(friendly), mac(2), mac(1)));
    assert_eq!(node.count("proofs-sent"), 33, "a neighbour has a budget of its own");
    // Proofs that are wrong: each wants a signature to be checked.
    let stranger = Node::keyed(9);
    let question = challenge(&mut node, &stranger, 9, at(1));
    let key = PrivateKey::from_seed([9; 32]).public_key().to_bytes();
    let seal = Seal { key, ..Seal::NONE };
    let (hardware_address, hid) = (mac(9), stranger.own);
    let bad = SealedRepr { hardware_address, nonce: question.nonce, hid, seal };
    let bad = frame(&NwpRepr::Proof(bad), mac(9), mac(1));
    (0..1000).for_each(|_| node.receive(at(1), &bad));
    assert_eq!(node.count("bad-proof"), 32);
    let before = node.count("over-budget");
    node.receive(at(1), &good);
    assert_eq!(node.count("over-budget"), before, "a neighbour has a budget of its own");
    // Announcements: each would be answered with a challenge.
    node.out.clear();
    for n in 0..4000u32 {
        let [_, _, high, low] = n.to_be_bytes();
        let hardware_address = MacAddr([2, 0, 0, 1, high, low]);
        let message = NwpRepr::Announcement { hardware_address, hids: vec![stranger.own] };
        node.receive(at(2), &frame(&message, hardware_address, MacAddr::BROADCAST));
    }
    let challenges = sent(&mut node).into_iter().filter(|m| matches!(m, NwpRepr::Challenge(_)));
    assert_eq!(challenges.count(), 128);
    assert_eq!(proven(&node), [true], "strangers take no room in the table");
}

/// Has node 1 receive so many frames each millisecond that no budget that these use has anything left.
fn flooded(link: &mut Link, frames: impl Fn(&Node, Instant) -> Vec<Vec<u8>>) {
    for (index, node) in link.nodes.iter_mut().enumerate() {
        node.set(link.now, "neighbour-expiry 1s");
        assert_eq!(node.count("expired"), 0, "node {index}");
    }
    for millis in 0..20_000 {
        let now = link.now;
        for frame in frames(&link.nodes[0], now) {
            (0..if millis == 0 { 200 } else { 2 }).for_each(|_| link.nodes[0].receive(now, &frame));
        }
        link.carry();
        link.run(Duration::from_millis(1));
    }
    assert!(link.nodes[0].count("over-budget") > 0);
}

#[test]
fn questions_in_the_name_of_one_neighbour_take_nothing_from_another() {
    let mut link = keyed(&[1, 2, 3], "proof required");
    let first = link.nodes[0].own;
    let question = QuestionRepr { hardware_address: mac(2), nonce: [7; 16], hids: vec![first] };
    let spoofed = frame(&NwpRepr::Challenge(question), mac(2), mac(1));
    flooded(&mut link, |_, _| vec![spoofed.clone()]);
    assert_eq!(link.nodes[2].ask(first), reached_at(mac(1)));
    assert_eq!(link.nodes[2].count("expired"), 0);
}

#[test]
fn wrong_withdrawals_and_proofs_take_nothing_from_other_neighbours() {
    let mut link = keyed(&[1, 2, 3, 4], "proof required");
    let [second, third] = [1, 2].map(|index| link.nodes[index].own);
    // Who has challenged node 2 knows its epoch and its key.
    let mut witness = ready("proof required");
    let question = challenge(&mut witness, &link.nodes[1], 2, link.now);
    let now = link.now;
    let seen = proof(&mut link.nodes[1], question, now);
    let withdrawal = SealedRepr { nonce: [0; 16], ..seen.clone() };
    let withdrawal = frame(&NwpRepr::Withdrawal(withdrawal), mac(2), MacAddr::BROADCAST);
    flooded(&mut link, |first, now| {
        // Node 3 itself is mean, and knows what it was asked.
        let nonce = first.hid.watch.nonce(now, "eth0", mac(3));
        let (hardware_address, hid) = (mac(3), third);
        let mut wrong = SealedRepr { hardware_address, nonce, hid, seal: seen.seal };
        wrong.seal.key = PrivateKey::from_seed([3; 32]).public_key().to_bytes();
        vec![withdrawal.clone(), frame(&NwpRepr::Proof(wrong), mac(3), mac(1))]
    });
    let fourth = link.nodes[3].own;
    for (hid, id) in [(second, 2), (fourth, 4)] {
        assert_eq!(link.nodes[0].ask(hid), reached_at(mac(id)));
    }
}

#[test]
fn each_of_as_many_neighbours_as_the_table_holds_gets_its_proof_in_time() {
    let mut node = ready("proof required");
    let all: Vec<_> = (0..DEFAULT_NEIGHBOUR_LIMIT as u32)
        .map(|n| {
            let [_, _, high, low] = n.to_be_bytes();
            let mut id = [9; 20];
            id[..4].copy_from_slice(&n.to_be_bytes());
            (Xid::new(XidType::HID, id), MacAddr([2, 0, 0, 1, high, low]))
        })
        .collect();
    for (hid, mac) in &all {
        node.hid.enter(at(0), "eth0", (*hid, *mac), true, &mut Vec::new());
        node.hid.neighbours.places_mut("eth0").prove(*hid, *mac, [1; 16], at(0));
    }
    let own = node.own;
    let pause = DEFAULT_EXPIRY / all.len() as u32;
    let mut now = at(1);
    for (_, from) in all.iter().chain(&all) {
        let question = QuestionRepr { hardware_address: *from, nonce: [7; 16], hids: vec![own] };
        node.receive(now, &frame(&NwpRepr::Challenge(question), *from, mac(1)));
        now += pause;
    }
    assert_eq!(node.count("proofs-sent"), 2 * all.len() as u64);
}

#[test]
fn who_stops_or_loses_its_identity_is_gone_at_once() {
    type End = fn(&mut Node, Instant);
    let ends: [(&str, End); 3] = [
        ("stop", |node, _| node.hid.stop(&mut node.out)),
        ("delete", |node, now| node.delete(now, &format!("local {}", node.own))),
        ("nwp off", |node, now| node.set(now, "nwp off")),
    ];
    for (what, end) in ends {
        let mut link = keyed(&[1, 2], "proof preferred");
        let (now, second) = (link.now, link.nodes[1].own);
        assert_eq!(link.nodes[0].ask(second), reached_at(mac(2)));
        end(&mut link.nodes[1], now);
        link.nodes[1].out.retain(|output| matches!(output, Output::Transmit { .. }));
        link.carry();
        assert_eq!(link.nodes[0].ask(second), Answer::Unknown, "{what}");
        assert_eq!(link.nodes[0].count("withdrawn"), 1, "{what}");
    }
}

#[test]
fn a_withdrawal_without_proof_is_a_reason_to_ask() {
    let mut link = Link::new(&[1, 2, 3]);
    link.plain.insert(2);
    (0..3).for_each(|index| link.start(index));
    link.run(Duration::from_secs(60));
    // Node 2 has no key. It goes, and is gone after three questions.
    let now = link.now;
    let leaving = &mut link.nodes[1];
    leaving.hid.stop(&mut leaving.out);
    link.dead.insert(1);
    link.carry();
    assert_eq!(link.nodes[0].ask(hid(2)), reached_at(mac(2)));
    assert_eq!(link.nodes[0].count("doubted"), 1);
    link.run(Duration::from_secs(4));
    assert_eq!(link.nodes[0].ask(hid(2)), Answer::Unknown, "{now}");
    // Somebody else says that node 3 goes, which does not know such questions.
    for _ in 0..20 {
        let now = link.now;
        let (hardware_address, nonce) = (mac(3), [0; 16]);
        let forged = SealedRepr { hardware_address, nonce, hid: hid(3), seal: Seal::NONE };
        let forged = frame(&NwpRepr::Withdrawal(forged), mac(3), MacAddr::BROADCAST);
        link.nodes[0].receive(now, &forged);
        link.carry();
        link.run(Duration::from_secs(60));
        assert_eq!(link.nodes[0].ask(hid(3)), reached_at(mac(3)));
    }
    assert!(link.nodes[0].count("doubted") > 10);
}

#[test]
fn a_forged_or_repeated_withdrawal_removes_nobody() {
    let mut link = keyed(&[1, 2], "proof preferred");
    let (now, second) = (link.now, link.nodes[1].own);
    // Its own withdrawal, recorded; then it comes back with the same key.
    link.nodes[1].delete(now, &format!("local {second}"));
    let recorded = link.nodes[1].out.iter().find_map(|output| match output {
        Output::Transmit { packet, .. } => Some(packet.bytes().to_vec()),
        _ => None,
    });
    let recorded = recorded.expect("it takes leave");
    link.carry();
    assert_eq!(link.nodes[0].ask(second), Answer::Unknown);
    link.nodes[1].set(now, &format!("local {second}"));
    link.carry();
    link.run(Duration::from_secs(20));
    let epoch = match NwpMessage::new_checked(&recorded[14..]) {
        Ok(NwpMessage::Withdrawal(withdrawal)) => withdrawal.seal().epoch,
        other => panic!("{other:?}"),
    };
    let key = PrivateKey::from_seed([9; 32]);
    let seal = Seal { epoch, key: key.public_key().to_bytes(), ..Seal::NONE };
    let mut forged = SealedRepr { hardware_address: mac(2), nonce: [0; 16], hid: second, seal };
    forged.seal.signature = key.sign(&signed_withdrawal(&forged)).to_bytes();
    let forged = frame(&NwpRepr::Withdrawal(forged), mac(2), MacAddr::BROADCAST);
    for bytes in [&recorded, &forged] {
        let now = link.now;
        link.nodes[0].receive(now, bytes);
        assert_eq!(link.nodes[0].ask(second), reached_at(mac(2)));
        link.carry();
        link.run(Duration::from_secs(30));
        assert_eq!(link.nodes[0].ask(second), reached_at(mac(2)));
    }
    assert_eq!((link.nodes[0].count("withdrawn"), link.nodes[0].count("doubted")), (1, 2));
    assert_eq!(link.nodes[0].count("expired"), 0);
}

#[test]
fn the_policy_can_change_while_neighbours_are_there() {
    let mut link = keyed(&[1, 2], "proof off");
    link.nodes.push(Node::new(3));
    link.start(2);
    let (now, second) = (link.now, link.nodes[1].own);
    assert_eq!(link.nodes[0].ask(hid(3)), reached_at(mac(3)));
    link.nodes[0].set(now, "proof required eth0");
    assert_eq!(link.nodes[0].ask(second), Answer::Unknown);
    link.carry();
    assert_eq!(link.nodes[0].ask(second), reached_at(mac(2)), "it was asked at once");
    assert_eq!(link.nodes[0].ask(hid(3)), Answer::Unknown);
    link.nodes[0].delete(now, "proof required eth0");
    assert!(link.nodes[0].hid.delete(now, &["proof", "required"], &mut Vec::new()).is_err());
    link.run(Duration::from_secs(60));
    assert_eq!(link.nodes[0].ask(hid(3)), reached_at(mac(3)));
}

#[test]
fn challenges_fit_the_link() {
    let mut node = ready("proof required");
    let hids: Vec<_> = (1..=74).map(hid).collect();
    let message = NwpRepr::Announcement { hardware_address: mac(9), hids: hids.clone() };
    node.receive(at(0), &frame(&message, mac(9), MacAddr::BROADCAST));
    let mut asked = Vec::new();
    for message in sent(&mut node) {
        assert!(message.buffer_len() <= 1500);
        if let NwpRepr::Challenge(question) = message {
            asked.extend(question.hids);
        }
    }
    assert_eq!(asked, hids);
    node.handle(at(0), Input::Tick);
}
