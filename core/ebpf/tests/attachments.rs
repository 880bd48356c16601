//! Programs at real interfaces: that they live as long as somebody holds them, are taken over, and get
//! along with those of others.
//!
//! Needs root (network namespaces, packet sockets, BPF). Without it each test says so and returns.

#![allow(unsafe_code)]
// All of this file is tests, helpers too.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
mod support;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use support::{EXPERIMENTAL, LEFT, RIGHT, Receiver, Sender, in_namespace, ip, wait_until};
use weft_ebpf::testing::{Foreign, attach as attach_foreign};
use weft_ebpf::{
    Attachment, Direction, FoundProgram, HookKind, Kept, LossProbability, LossSequence, Program,
    ProgramError, Way, programs_of,
};
use weft_netlink::XdpMode;

/// The ways that this kernel has.
fn ways() -> Vec<Way> {
    match Way::available().unwrap() {
        Way::Link => vec![Way::Link, Way::Classifier],
        Way::Classifier => vec![Way::Classifier],
    }
}

fn loss(percent: f64, seed: u64) -> (Program, LossSequence) {
    let rate = LossProbability::from_fraction(percent / 100.0).unwrap();
    (Program::loss(rate, seed), LossSequence::new(seed, rate))
}

fn index(interface: &str) -> u32 {
    let name = std::ffi::CString::new(interface).unwrap();
    // SAFETY: the pointer is to a string that ends with zero and outlives the call.
    unsafe { libc::if_nametoindex(name.as_ptr()) }
}

fn copy(descriptor: BorrowedFd<'_>) -> OwnedFd {
    descriptor.try_clone_to_owned().unwrap()
}

/// What whoever keeps a program has of it.
fn kept(attachment: &Attachment) -> Kept {
    let (link, state) = attachment.descriptors();
    Kept {
        interface: attachment.interface(),
        direction: attachment.direction(),
        link: link.map(copy),
        state: copy(state),
    }
}

/// Sends the packets `from` to `to` of a sequence from left to right; exactly those that it keeps arrive.
fn pass(sequence: LossSequence, from: u64, to: u64) {
    let (sender, receiver) = (Sender::new(LEFT), Receiver::new(RIGHT, EXPERIMENTAL));
    for number in from..to {
        assert!(sender.send(number), "frame {number} was not sent");
        if !sequence.drops(number) {
            assert_eq!(receiver.receive(), number);
        }
    }
    assert_eq!(receiver.pending(), None);
}

fn ids(found: &[FoundProgram]) -> Vec<u32> {
    found.iter().map(|found| found.id).collect()
}

#[test]
fn a_program_goes_on_without_its_process_and_is_taken_over() {
    in_namespace(|| {
        for way in ways() {
            let (program, sequence) = loss(30.0, 7);
            let first = Attachment::attach(RIGHT, Direction::Ingress, &program, way).unwrap();
            pass(sequence, 0, 50);
            let (id, store) = (first.id(), kept(&first));
            drop(first);
            pass(sequence, 50, 100);
            let mut again = Attachment::adopt("loss", store).unwrap();
            assert_eq!((again.id(), again.program().unwrap()), (id, program));
            pass(sequence, 100, 150);
            let dropped = (0..150).filter(|n| sequence.drops(*n)).count() as u64;
            assert_eq!(again.counters().unwrap(), [("seen", 150), ("dropped", dropped)]);
            again.set(&loss(0.0, 7).0).unwrap();
            pass(loss(0.0, 7).1, 150, 160);
            assert_eq!(ids(&programs_of(index(RIGHT)).unwrap()), [id]);
            let copies = kept(&again);
            again.detach().unwrap();
            assert!(programs_of(index(RIGHT)).unwrap().is_empty(), "{way:?}");
            let gone = Attachment::adopt("loss", copies).unwrap_err();
            let expected =
                matches!(gone, ProgramError::NotOurs { .. } | ProgramError::NotAttached { .. });
            assert!(expected, "{gone:?}");
        }
    });
}

#[test]
fn a_link_ends_with_its_last_holder() {
    in_namespace(|| {
        if !ways().contains(&Way::Link) {
            return;
        }
        let (program, _) = loss(100.0, 1);
        let attached = Attachment::attach(LEFT, Direction::Egress, &program, Way::Link).unwrap();
        let copies = kept(&attached);
        drop(attached);
        assert_eq!(programs_of(index(LEFT)).unwrap().len(), 1);
        drop(copies);
        wait_until("the link is gone", || programs_of(index(LEFT)).unwrap().is_empty());
    });
}

#[test]
fn programs_of_others_stay_and_are_listed_by_name() {
    in_namespace(|| {
        let linked = ways().contains(&Way::Link);
        let mut expected = Vec::new();
        let mut held = Vec::new();
        let mut foreign = |at: Foreign, hook: HookKind, name: &str| {
            held.push(attach_foreign(RIGHT, at, name).unwrap());
            expected.push((hook, Some(name.to_owned())));
        };
        if linked {
            let direction = Direction::Ingress;
            foreign(Foreign::Tcx(direction), HookKind::Tcx(direction), "theirs_tcx");
        }
        let direction = Direction::Ingress;
        foreign(Foreign::Classifier(direction), HookKind::Classifier(direction), "theirs_tc");
        foreign(Foreign::Xdp, HookKind::Xdp(XdpMode::Generic), "theirs_xdp");
        let found = programs_of(index(RIGHT)).unwrap();
        let told: Vec<_> = found.iter().map(|one| (one.hook, one.name.clone())).collect();
        assert_eq!(told, expected);

        let (program, sequence) = loss(40.0, 3);
        // The place of a classifier is taken: by whom is said, and it stays.
        let refused = Attachment::attach(RIGHT, direction, &program, Way::Classifier).unwrap_err();
        assert!(matches!(refused, ProgramError::Occupied { .. }), "{refused:?}");
        let classifier = found.iter().find(|one| one.hook == HookKind::Classifier(direction));
        let named = format!("theirs_tc (id {})", classifier.unwrap().id);
        assert!(refused.to_string().contains(&named), "{refused}");
        assert_eq!(programs_of(index(RIGHT)).unwrap(), found);
        // At a hook for links there is room for both.
        if linked {
            let ours = Attachment::attach(RIGHT, direction, &program, Way::Link).unwrap();
            pass(sequence, 0, 50);
            let mut with_ours = found.clone();
            let name = Some("weft_loss".to_owned());
            let own =
                FoundProgram { hook: HookKind::Tcx(direction), id: ours.id(), name, steers: false };
            with_ours.insert(1, own);
            assert_eq!(programs_of(index(RIGHT)).unwrap(), with_ours);
            ours.detach().unwrap();
            assert_eq!(programs_of(index(RIGHT)).unwrap(), found);
        }
    });
}

#[test]
fn the_second_classifier_at_a_hook_is_refused() {
    in_namespace(|| {
        let (program, _) = loss(1.0, 1);
        let attach = || Attachment::attach(LEFT, Direction::Egress, &program, Way::Classifier);
        let first = attach().unwrap();
        let second = attach().unwrap_err();
        assert!(matches!(second, ProgramError::AlreadyAttached { .. }), "{second:?}");
        first.detach().unwrap();
        attach().unwrap().detach().unwrap();
    });
}

#[test]
fn what_was_kept_is_checked() {
    in_namespace(|| {
        if !ways().contains(&Way::Link) {
            return;
        }
        let (program, _) = loss(1.0, 1);
        let ours = Attachment::attach(LEFT, Direction::Egress, &program, Way::Link).unwrap();
        let refused = |name, kept| Attachment::adopt(name, kept).unwrap_err().to_string();
        assert!(refused("gain", kept(&ours)).contains("no program of this name"));
        let state = copy(ours.descriptors().0.unwrap());
        let text = refused("loss", Kept { state, ..kept(&ours) });
        assert!(text.contains("map"), "{text}");
        let elsewhere = Kept { direction: Direction::Ingress, ..kept(&ours) };
        assert!(refused("loss", elsewhere).contains("attached elsewhere"));
        let link = std::fs::File::open("/dev/null").unwrap();
        let other = Kept { link: Some(copy(link.as_fd())), ..kept(&ours) };
        assert!(!refused("loss", other).is_empty());
        let copies = kept(&ours);
        ip(&["link", "delete", LEFT]);
        assert!(refused("loss", copies).contains("interface is gone"));
        ours.detach().unwrap();
        let missing = Attachment::attach(LEFT, Direction::Egress, &program, Way::Link).unwrap_err();
        assert!(matches!(missing, ProgramError::NoInterface { .. }), "{missing:?}");
    });
}
