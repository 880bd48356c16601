//! Links, Ethernet ports and the trace hash.

use std::num::NonZeroU64;
use std::time::Duration;

use super::*;
use crate::BILLION;

#[test]
fn a_frame_arrives_when_its_last_bit_does() {
    let mut world = world(1);
    let link =
        LinkConfig { rate: NonZeroU64::new(1_000_000), delay: millis(3), ..LinkConfig::default() };
    let [(a, _), (b, _)] = pair(&mut world, &link);
    let log = Log::default();
    world.spawn(b, listener(&log));
    world.spawn(a, sender(vec![frame(&[0; 111]), frame(&[0; 111])]));
    world.run_until(at(1_000_000_000)).unwrap();
    let sent = 125 * 8 * 1000;
    let expected = [
        "0 port1 opened".to_owned(),
        format!("{} port1 [125]", sent + 3_000_000),
        format!("{} port1 [125]", 2 * sent + 3_000_000),
    ];
    assert_eq!(*log.borrow(), expected);
    assert_eq!(world.now(), at(1_000_000_000));
}

#[test]
fn frames_of_one_time_come_in_one_event() {
    let mut world = world(1);
    let [(a, _), (b, _)] = pair(&mut world, &LinkConfig { delay: millis(1), ..Default::default() });
    let log = Log::default();
    world.spawn(b, listener(&log));
    world.spawn(a, sender(vec![frame(b"1"), frame(b"22"), frame(b"333")]));
    assert_eq!(world.run_while(|_| true).unwrap(), Ended::Idle);
    assert_eq!(log.borrow()[1..], ["1000000 port1 [15, 16, 17]"]);
}

#[test]
fn a_port_sees_its_type_and_its_address_only() {
    let mut world = world(1);
    let [(a, _), (b, b_eth0)] = pair(&mut world, &LinkConfig::default());
    let log = Log::default();
    world.spawn(b, listener(&log));
    let to = |destination: [u8; 6], ethertype: u16, len| {
        let mut frame = frame(&vec![0; len]);
        frame[..6].copy_from_slice(&destination);
        frame[12..14].copy_from_slice(&ethertype.to_be_bytes());
        frame
    };
    let own = world.mac(b_eth0).0;
    world.spawn(
        a,
        sender(vec![
            to(own, TYPE, 1),
            to([2; 6], TYPE, 2),
            to(own, TYPE + 1, 3),
            to([0x33, 0x33, 0, 0, 0, 1], TYPE, 4),
            to([0xff; 6], TYPE, 5),
        ]),
    );
    world.run_while(|_| true).unwrap();
    assert_eq!(log.borrow()[1..], ["0 port1 [15, 18, 19]"]);
    let count = |reason| world.node_counters(b).get(reason);
    assert_eq!((count(NodeCount::OtherHost), count(NodeCount::NoListener)), (1, 1));
}

#[test]
fn a_hub_repeats_to_everybody_but_the_sender() {
    let mut world = world(1);
    let hosts: Vec<_> = ["a", "b", "c"].map(|name| host(&mut world, name)).into();
    let members: Vec<_> = hosts.iter().map(|(_, id)| (*id, LinkConfig::default())).collect();
    world.connect_all(&members).unwrap();
    let logs: Vec<_> = hosts
        .iter()
        .map(|(node, _)| {
            let log = Log::default();
            world.spawn(*node, listener(&log));
            log
        })
        .collect();
    world.spawn(hosts[1].0, sender(vec![frame(b"x")]));
    world.run_while(|_| true).unwrap();
    let received: Vec<_> = logs.iter().map(|log| log.borrow().len() - 1).collect();
    assert_eq!(received, [1, 0, 1]);
}

#[test]
fn two_ports_of_one_type_get_a_copy_each() {
    let mut world = world(1);
    let [(a, _), (b, _)] = pair(&mut world, &LinkConfig::default());
    let logs = [Log::default(), Log::default()];
    for log in &logs {
        world.spawn(b, listener(log));
    }
    world.spawn(a, sender(vec![frame(b"x")]));
    world.run_while(|_| true).unwrap();
    assert!(logs.iter().all(|log| log.borrow().len() == 2));
    assert_eq!(world.node_counters(b).get(NodeCount::Copied), 1);
}

/// Ten senders' worth of traffic over a link with all faults; returns the hash.
fn faulty_run(seed: u64) -> u64 {
    let mut world = world(seed);
    let link = LinkConfig {
        rate: NonZeroU64::new(10_000_000),
        delay: millis(5),
        jitter: millis(2),
        loss: BILLION / 10,
        duplicate: BILLION / 10,
        reorder: BILLION / 10,
        ..LinkConfig::default()
    };
    let [(a, _), (b, _)] = pair(&mut world, &link);
    world.spawn(b, listener(&Log::default()));
    for number in 0..10 {
        world.spawn(a, sender(vec![frame(&[number; 300]); 20]));
    }
    world.run_while(|_| true).unwrap();
    world.trace_hash()
}

#[test]
fn the_trace_hash_follows_from_the_seed() {
    assert_eq!(faulty_run(1), faulty_run(1));
    assert_ne!(faulty_run(1), faulty_run(2));
    // Pinned, so that builds, machines and versions are compared, not only runs of one build.
    assert_eq!(faulty_run(1), 4_124_081_539_249_898_619);
}

#[test]
fn ports_that_cannot_be_opened_say_why() {
    let mut world = world(1);
    let (a, _) = host(&mut world, "a");
    let log = Log::default();
    let shared = Rc::clone(&log);
    world.spawn(
        a,
        script("opener", move |turn, event| match event {
            Event::Start => {
                turn.act(open("eth7"));
                let spec = PortSpec::Tun { name: "tun0".into() };
                turn.act(Action::OpenPort { token: Token(2), spec });
            }
            event => shared.borrow_mut().push(describe(&event)),
        }),
    );
    world.run_while(|_| true).unwrap();
    let log = log.borrow();
    assert_eq!(log[0], "cannot open eth7: node a has no such interface; it has eth0");
    assert!(log[1].starts_with("cannot open tun:tun0: the simulator models no TUN"), "{}", log[1]);
}

#[test]
fn a_frame_beyond_the_mtu_or_without_a_header_is_dropped_and_counted() {
    let mut world = world(1);
    let [(a, _), (b, _)] = pair(&mut world, &LinkConfig::default());
    world.spawn(a, sender(vec![frame(&[0; 1500]), frame(&[0; 1501]), vec![0; 13]]));
    world.run_while(|_| true).unwrap();
    let count = |node, reason| world.node_counters(node).get(reason);
    assert_eq!(count(a, NodeCount::TooLong), 1);
    assert_eq!(count(a, NodeCount::PortMalformed), 1);
    assert_eq!(count(b, NodeCount::Received), 1);
}

#[test]
fn a_cut_link_loses_what_is_on_it_and_what_is_sent_to_it() {
    let mut world = world(1);
    let [(a, a_eth0), (b, _)] =
        pair(&mut world, &LinkConfig { delay: millis(10), ..Default::default() });
    let link = world.link_of(a_eth0).unwrap();
    let log = Log::default();
    world.spawn(b, listener(&log));
    world.spawn(a, sender(vec![frame(b"on the wire")]));
    world.run_until(at(5_000_000)).unwrap();
    assert_eq!(world.in_flight(a_eth0), 1);
    world.cut(link);
    world.spawn(a, sender(vec![frame(b"to a cut link")]));
    world.run_until(at(50_000_000)).unwrap();
    assert_eq!(log.borrow().len(), 1, "nothing came after the opening");
    world.mend(link);
    world.spawn(a, sender(vec![frame(b"after")]));
    world.run_while(|_| true).unwrap();
    assert_eq!(log.borrow()[1..], ["60000000 port1 [19]"]);
    let count = |reason| world.node_counters(a).get(reason);
    assert_eq!((count(NodeCount::LostInFlight), count(NodeCount::LinkCut)), (1, 1));
}

#[test]
fn deleting_or_downing_an_interface_loses_its_ports() {
    let mut world = world(1);
    let [(_, a_eth0), (b, b_eth0)] = pair(&mut world, &LinkConfig::default());
    let log = Log::default();
    world.spawn(b, listener(&log));
    world.run_until(at(1)).unwrap();
    world.set_up(b_eth0, false);
    world.run_until(at(2)).unwrap();
    assert!(log.borrow()[1].starts_with("1 port1 lost: interface eth0 was set down"));
    world.set_up(b_eth0, true);
    let again = Log::default();
    world.spawn(b, listener(&again));
    world.run_until(at(3)).unwrap();
    world.delete_interface(b_eth0);
    world.run_until(at(4)).unwrap();
    assert!(again.borrow()[1].starts_with("3 port1 lost: interface eth0 was deleted"));
    assert_eq!(world.find_interface(b, "eth0"), None);
    let new = world.add_interface(b, InterfaceConfig::new("eth0")).unwrap();
    assert!(matches!(
        world.connect((a_eth0, LinkConfig::default()), (new, LinkConfig::default())),
        Err(WorldError::NotConnectable { reason: "hangs on a link already", .. })
    ));
}

#[test]
fn observers_see_frames_on_both_sides() {
    let mut world = world(1);
    let [(a, a_eth0), (_, b_eth0)] =
        pair(&mut world, &LinkConfig { delay: Duration::from_nanos(5), ..Default::default() });
    let seen = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&seen);
    world.on_packet(move |s| {
        log.borrow_mut().push((s.time.as_nanos(), s.interface, s.direction, s.bytes.len()));
    });
    world.spawn(a, sender(vec![frame(b"x")]));
    world.run_while(|_| true).unwrap();
    let expected = [(0, a_eth0, Direction::Sent, 15), (5, b_eth0, Direction::Received, 15)];
    assert_eq!(*seen.borrow(), expected);
}
