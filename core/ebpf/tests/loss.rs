//! Loss on real interfaces: which frames arrive, what is counted, what survives whom, what is said.
//!
//! Needs root (network namespaces, packet sockets, BPF). Without it each test says so and returns.

// Packet sockets and capabilities are reached by system calls.
#![allow(unsafe_code)]
// All of this file is tests, helpers too.
#![allow(clippy::unwrap_used)]

mod support;

use std::ops::Range;
use std::process::Command;
use std::thread;

use support::{
    ALL, EXPERIMENTAL, LEFT, RIGHT, Receiver, Sender, drop_capabilities, in_namespace, ip,
    wait_until,
};
use weft_ebpf::{
    Direction, LossLink, LossProbability, LossSequence, LossStatistics, ProgramError, probe,
};

fn percent(percent: f64) -> LossProbability {
    LossProbability::from_fraction(percent / 100.0).unwrap()
}

fn attach(interface: &str, direction: Direction, sequence: LossSequence) -> LossLink {
    LossLink::attach(interface, direction, sequence.probability(), sequence.seed()).unwrap()
}

fn send(sender: &Sender, numbers: Range<u64>) {
    for number in numbers {
        sender.send(number);
    }
}

/// How many of the first `count` packets get lost.
fn predicted(sequence: LossSequence, count: u64) -> LossStatistics {
    let dropped = (0..count).filter(|&n| sequence.drops(n)).count() as u64;
    LossStatistics { seen: count, dropped }
}

/// Sends `count` frames from left to right past `link`. Exactly those that the sequence keeps arrive.
fn check_arrivals(link: &LossLink, sequence: LossSequence, count: u64) {
    let sender = Sender::new(LEFT);
    let receiver = Receiver::new(RIGHT, EXPERIMENTAL);
    // In small batches, so that no queue overflows.
    for batch in 0..count.div_ceil(32) {
        let numbers = batch * 32..count.min(batch * 32 + 32);
        send(&sender, numbers.clone());
        let expected: Vec<u64> = numbers.filter(|&n| !sequence.drops(n)).collect();
        let mut arrived: Vec<u64> = expected.iter().map(|_| receiver.receive()).collect();
        arrived.sort_unstable(); // The sending thread may change CPU, and with it the queue.
        assert_eq!(arrived, expected, "{sequence:?}");
    }
    wait_until("all frames have passed", || link.statistics().unwrap().seen == count);
    assert_eq!(receiver.pending(), None, "a frame arrived that should be lost");
    assert_eq!(link.statistics().unwrap(), predicted(sequence, count));
}

#[test]
fn exactly_the_predicted_frames_are_lost_at_egress() {
    in_namespace(|| {
        for (seed, loss) in [(1, 1.0), (2, 30.0), (u64::MAX, 0.0)] {
            let sequence = LossSequence::new(seed, percent(loss));
            let link = attach(LEFT, Direction::Egress, sequence);
            check_arrivals(&link, sequence, 1_000);
            link.detach().unwrap();
        }
    });
}

#[test]
fn exactly_the_predicted_frames_are_lost_at_ingress() {
    in_namespace(|| {
        let sequence = LossSequence::new(5, percent(20.0));
        let link = attach(RIGHT, Direction::Ingress, sequence);
        check_arrivals(&link, sequence, 1_000);
    });
}

#[test]
fn two_senders_at_once_lose_what_one_would_lose() {
    in_namespace(|| {
        let sequence = LossSequence::new(9, percent(10.0));
        let link = attach(LEFT, Direction::Egress, sequence);
        let senders = [0, 1].map(|_| {
            thread::spawn(|| {
                let sender = Sender::new(LEFT);
                send(&sender, 0..20_000);
            })
        });
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        assert_eq!(link.statistics().unwrap(), predicted(sequence, 40_000));
    });
}

#[test]
fn both_directions_of_an_interface_are_independent() {
    in_namespace(|| {
        let out = attach(LEFT, Direction::Egress, LossSequence::new(1, percent(100.0)));
        let back = attach(LEFT, Direction::Ingress, LossSequence::new(1, percent(0.0)));
        Sender::new(LEFT).send(0);
        Sender::new(RIGHT).send(0);
        Sender::new(RIGHT).send(1);
        assert_eq!(out.statistics().unwrap(), LossStatistics { seen: 1, dropped: 1 });
        wait_until("both frames are back", || back.statistics().unwrap().seen == 2);
        assert_eq!(back.statistics().unwrap().dropped, 0);
    });
}

const CHILD: &str = "WEFT_TEST_ATTACH_AND_EXIT";

/// The test runs its own program again, in the same namespace: that process attaches and ends.
#[test]
fn an_attached_program_outlives_its_process() {
    let sequence = LossSequence::new(11, percent(25.0));
    if std::env::var_os(CHILD).is_some() {
        drop(attach(LEFT, Direction::Egress, sequence));
        return;
    }
    in_namespace(move || {
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "an_attached_program_outlives_its_process"])
            .env(CHILD, "1")
            .status()
            .unwrap();
        assert!(status.success());
        let link = LossLink::open(LEFT, Direction::Egress).unwrap();
        assert_eq!(link.sequence().unwrap(), sequence);
        assert_eq!(link.statistics().unwrap(), LossStatistics::default());
        check_arrivals(&link, sequence, 200);
        link.detach().unwrap();
        let gone = LossLink::open(LEFT, Direction::Egress);
        assert!(matches!(gone, Err(ProgramError::NotAttached { .. })), "{gone:?}");
    });
}

#[test]
fn the_probability_changes_without_a_new_beginning() {
    in_namespace(|| {
        let mut link = attach(LEFT, Direction::Egress, LossSequence::new(3, percent(0.0)));
        let sender = Sender::new(LEFT);
        send(&sender, 0..10);
        link.set_probability(LossProbability::ALWAYS).unwrap();
        send(&sender, 0..10);
        assert_eq!(link.statistics().unwrap(), LossStatistics { seen: 20, dropped: 10 });
        assert_eq!(link.sequence().unwrap(), LossSequence::new(3, LossProbability::ALWAYS));
    });
}

#[test]
fn attaching_again_begins_the_sequence_again() {
    in_namespace(|| {
        let sequence = LossSequence::new(4, percent(50.0));
        for _ in 0..2 {
            let link = attach(LEFT, Direction::Egress, sequence);
            check_arrivals(&link, sequence, 64);
            link.detach().unwrap();
        }
    });
}

#[test]
fn a_second_program_at_one_hook_is_refused() {
    in_namespace(|| {
        let sequence = LossSequence::new(1, percent(1.0));
        let first = attach(LEFT, Direction::Egress, sequence);
        let second = LossLink::attach(LEFT, Direction::Egress, percent(2.0), 2);
        let Err(error @ ProgramError::AlreadyAttached { .. }) = second else {
            panic!("{second:?}")
        };
        assert!(
            error.to_string().contains("interface weft-left has the program weft_loss at egress")
        );
        assert_eq!(first.sequence().unwrap(), sequence, "the first one is untouched");
    });
}

#[test]
fn a_hook_without_a_program_is_told_from_one_with() {
    in_namespace(|| {
        let without_clsact = LossLink::open(LEFT, Direction::Egress);
        assert!(
            matches!(without_clsact, Err(ProgramError::NotAttached { .. })),
            "{without_clsact:?}"
        );
        let link = attach(LEFT, Direction::Ingress, LossSequence::new(1, percent(1.0)));
        let other_hook = LossLink::open(LEFT, Direction::Egress);
        assert!(matches!(other_hook, Err(ProgramError::NotAttached { .. })), "{other_hook:?}");
        let same = LossLink::open(LEFT, Direction::Ingress).unwrap();
        link.detach().unwrap();
        let twice = same.detach();
        assert!(matches!(twice, Err(ProgramError::NotAttached { .. })), "{twice:?}");
    });
}

#[test]
fn a_deleted_interface_is_told() {
    in_namespace(|| {
        let link = attach(LEFT, Direction::Egress, LossSequence::new(1, percent(1.0)));
        ip(&["link", "delete", LEFT]);
        let gone = link.detach();
        assert!(matches!(gone, Err(ProgramError::NoInterface { .. })), "{gone:?}");
        let missing = LossLink::attach(LEFT, Direction::Egress, percent(1.0), 1);
        let Err(error @ ProgramError::NoInterface { .. }) = missing else { panic!("{missing:?}") };
        assert!(error.to_string().contains("no interface weft-left in this network namespace"));
    });
}

#[test]
fn missing_privileges_are_told() {
    in_namespace(|| {
        drop_capabilities();
        let denied = LossLink::attach(LEFT, Direction::Egress, percent(1.0), 1);
        let Err(error @ ProgramError::NotPermitted { .. }) = denied else { panic!("{denied:?}") };
        assert!(error.to_string().contains("cap_net_admin"), "{error}");
        assert!(matches!(probe(), Err(ProgramError::NotPermitted { .. })));
    });
}

// The next three: what the documentation of `Direction` says about packet sockets.
#[test]
fn a_packet_socket_is_told_of_drops_at_egress() {
    in_namespace(|| {
        let sequence = LossSequence::new(6, percent(50.0));
        let _link = attach(LEFT, Direction::Egress, sequence);
        let sender = Sender::new(LEFT);
        for n in 0..100 {
            assert_eq!(sender.send(n), !sequence.drops(n), "frame {n}");
        }
    });
}

#[test]
fn packet_sockets_can_go_past_egress() {
    in_namespace(|| {
        let link = attach(LEFT, Direction::Egress, LossSequence::new(1, LossProbability::ALWAYS));
        let receiver = Receiver::new(RIGHT, EXPERIMENTAL);
        assert!(Sender::bypassing(LEFT).send(7));
        assert_eq!(receiver.receive(), 7);
        assert_eq!(link.statistics().unwrap().seen, 0);
    });
}

#[test]
fn packet_sockets_for_all_protocols_look_before_ingress() {
    in_namespace(|| {
        let link = attach(RIGHT, Direction::Ingress, LossSequence::new(1, LossProbability::ALWAYS));
        let one_protocol = Receiver::new(RIGHT, EXPERIMENTAL);
        let all_protocols = Receiver::new(RIGHT, ALL);
        assert!(Sender::new(LEFT).send(7), "the sender does not learn of the loss");
        assert_eq!(all_protocols.receive(), 7);
        wait_until("the frame has come in", || link.statistics().unwrap().seen == 1);
        assert_eq!(one_protocol.pending(), None);
    });
}

#[test]
fn probing_leaves_nothing_behind() {
    in_namespace(|| {
        probe().unwrap();
        let untouched = LossLink::open("lo", Direction::Egress);
        assert!(matches!(untouched, Err(ProgramError::NotAttached { .. })), "{untouched:?}");
    });
}
