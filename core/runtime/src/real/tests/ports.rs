//! Packets between two processes, each with its own driver, thread and network namespace.

use std::sync::mpsc;

use weft_base::{Handle, LinkAddress, Packet, PortId, Token};
use weft_port::testing::{Namespace, privileged, receive_some, send_all};
use weft_port::{Options, PortInfo, PortSpec};

use super::{Turn, run_script};
use crate::{Action, Event};

const XIP: u16 = 0xc0de;
const ROUNDS: u16 = 500;

fn ethernet(interface: &str) -> PortSpec {
    PortSpec::Ethernet { interface: interface.to_owned(), ethertype: XIP }
}

fn xdp(interface: &str) -> PortSpec {
    PortSpec::Xdp { interface: interface.to_owned(), ethertype: XIP }
}

fn open(spec: PortSpec) -> Action {
    Action::OpenPort { token: Token(5), spec }
}

fn frame(to: [u8; 6], from: [u8; 6], round: u16) -> Packet {
    let mut packet = Packet::new();
    packet.extend(&to);
    packet.extend(&from);
    packet.extend(&XIP.to_be_bytes());
    packet.extend(&round.to_be_bytes());
    packet.extend(&[0; 44]);
    packet
}

/// Sends every frame back to where it came from, and ends with the last round.
fn echo(info: &Option<PortInfo>, turn: &mut Turn<'_>) {
    let Event::Packets { port, packets } = &turn.event else { return };
    for packet in packets {
        let LinkAddress::Mac(sender) = packet.meta.link else { panic!("no source: {packet:?}") };
        assert_eq!((packet.meta.port, packet.meta.time <= turn.now), (*port, true));
        let round = u16::from_be_bytes([packet.bytes()[14], packet.bytes()[15]]);
        let packet = frame(sender, info.unwrap().mac, round);
        turn.out.push(Action::Transmit { port: *port, packet });
        if round == ROUNDS {
            turn.out.push(Action::Exit { status: 0 });
        }
    }
}

#[test]
fn ping_and_pong_over_a_virtual_cable() {
    ping_and_pong(ethernet("west"), ethernet("east"));
}

#[test]
fn ping_and_pong_by_sockets_of_both_kinds() {
    ping_and_pong(xdp("west"), ethernet("east"));
    ping_and_pong(ethernet("west"), xdp("east"));
    ping_and_pong(xdp("west"), xdp("east"));
}

/// The first one asks and the second one answers.
fn ping_and_pong(asks: PortSpec, answers: PortSpec) {
    if !privileged() {
        return;
    }
    let (left, right) = (Namespace::new(), Namespace::new());
    left.connect("west", &right, "east");
    let (ready, wait_until_ready) = mpsc::channel();
    std::thread::scope(|scope| {
        let ponger = scope.spawn(|| {
            right.run(move || {
                let mut info = None;
                run_script(move |turn| match &turn.event {
                    Event::Start => turn.out.push(open(answers.clone())),
                    Event::PortOpened { info: opened, token, .. } => {
                        assert_eq!(*token, Token(5));
                        info = Some(*opened);
                        ready.send(()).unwrap();
                    }
                    _ => echo(&info, turn),
                })
            })
        });
        wait_until_ready.recv().unwrap();
        let status = left.run(|| {
            let (mut mac, mut expected) = ([0; 6], 0);
            run_script(move |turn| match &turn.event {
                Event::Start => turn.out.push(open(asks.clone())),
                Event::PortOpened { port, info, .. } => {
                    mac = info.mac;
                    let packet = frame([0xff; 6], mac, 0);
                    turn.out.push(Action::Transmit { port: *port, packet });
                }
                Event::Packets { port, packets } => {
                    assert_eq!(packets.len(), 1);
                    assert_eq!(packets[0].bytes()[14..16], u16::to_be_bytes(expected));
                    if expected == ROUNDS {
                        return turn.exit(0);
                    }
                    expected += 1;
                    let packet = frame([0xff; 6], mac, expected);
                    turn.out.push(Action::Transmit { port: *port, packet });
                }
                other => panic!("{other:?}"),
            })
        });
        // The last answer of the other side is sent after its exit.
        assert_eq!((status, ponger.join().unwrap()), (0, 0));
    });
}

#[test]
fn a_burst_longer_than_the_queue_leaves_whole_and_in_order_if_the_port_takes_it() {
    let mut received: Vec<u16> = Vec::new();
    let status = run_script(move |turn| match &turn.event {
        Event::Start => {
            let spec = PortSpec::Udp { local: "127.0.0.1:0".parse().unwrap() };
            turn.out.push(Action::OpenPort { token: Token(1), spec });
        }
        Event::PortOpened { port, info, .. } => {
            let to = LinkAddress::Udp(info.local.unwrap());
            turn.out.extend((0..1200_u16).map(|number| {
                let mut packet = Packet::from_slice(&number.to_be_bytes());
                packet.meta.link = to;
                Action::Transmit { port: *port, packet }
            }));
        }
        Event::Packets { packets, .. } => {
            assert!(packets.len() <= 64);
            received.extend(
                packets.iter().map(|packet| u16::from_be_bytes(packet.bytes().try_into().unwrap())),
            );
            if received.len() == 1200 {
                assert!(received.is_sorted());
                turn.exit(0);
            }
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(status, 0);
}

#[test]
fn packets_sent_before_a_close_or_an_exit_still_leave() {
    let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = LinkAddress::Udp(receiver.local_addr().unwrap());
    let status = run_script(move |turn| match &turn.event {
        Event::Start => {
            for token in [1, 2] {
                let spec = PortSpec::Udp { local: "127.0.0.1:0".parse().unwrap() };
                turn.out.push(Action::OpenPort { token: Token(token), spec });
            }
        }
        Event::PortOpened { port, token, .. } => {
            let mut packet = Packet::from_slice(&[token.0 as u8]);
            packet.meta.link = to;
            turn.out.push(Action::Transmit { port: *port, packet });
            match token {
                Token(1) => turn.out.push(Action::ClosePort { port: *port }),
                _ => turn.exit(0),
            }
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(status, 0);
    let mut byte = [0];
    for expected in [1, 2] {
        receiver.recv(&mut byte).unwrap();
        assert_eq!(byte, [expected]);
    }
}

#[test]
fn a_port_whose_interface_is_deleted_is_lost_once_and_can_be_opened_again() {
    if !privileged() {
        return;
    }
    let (left, right) = (Namespace::new(), Namespace::new());
    left.connect("west", &right, "east");
    let (to_test, from_script) = mpsc::channel();
    std::thread::scope(|scope| {
        let script = scope.spawn(|| {
            left.run(move || {
                let mut first: Option<PortId> = None;
                run_script(move |turn| match &turn.event {
                    Event::Start => turn.out.push(open(ethernet("west"))),
                    Event::PortOpened { port, .. } if first.is_none() => {
                        first = Some(*port);
                        to_test.send(()).unwrap();
                    }
                    Event::PortOpened { port, .. } => {
                        assert_ne!(Some(*port), first, "numbers are not used again");
                        turn.exit(0);
                    }
                    Event::PortLost { port, error } => {
                        assert_eq!(Some(*port), first);
                        assert!(error.contains("`west` was deleted"), "{error}");
                        turn.out.push(open(ethernet("west")));
                    }
                    Event::PortFailed { token, error } => {
                        assert_eq!(*token, Token(5));
                        // The new interface exists for a moment before it is up.
                        let missing = error.contains("no interface `west`");
                        assert!(missing || error.contains("`west` is down"), "{error}");
                        to_test.send(()).unwrap();
                        *turn.deadline = Some(turn.now + std::time::Duration::from_millis(20));
                    }
                    Event::Tick => {
                        *turn.deadline = None;
                        turn.out.push(open(ethernet("west")));
                    }
                    other => panic!("{other:?}"),
                })
            })
        });
        from_script.recv().unwrap();
        left.ip("link del west");
        from_script.recv().unwrap();
        left.connect("west", &right, "east");
        assert_eq!(script.join().unwrap(), 0);
    });
}

#[test]
fn a_port_that_one_process_opens_is_used_by_another() {
    let spec = PortSpec::Udp { local: "127.0.0.1:0".parse().unwrap() };
    let (token, mut handed_over) = (Token(6), None);
    let status = run_script(move |turn| match &mut turn.event {
        Event::Start => {
            turn.out.push(Action::OpenHandles { token, spec: spec.clone() });
        }
        Event::HandlesOpened { handles, info, .. } => {
            let handles = std::mem::take(handles);
            handed_over = Some(*info);
            turn.out.push(Action::AdoptPort { token, spec: spec.clone(), handles, info: *info });
        }
        Event::PortOpened { port, info, .. } => {
            assert_eq!(handed_over, Some(*info));
            let mut packet = Packet::from_slice(b"to myself");
            packet.meta.link = LinkAddress::Udp(info.local.unwrap());
            turn.out.push(Action::Transmit { port: *port, packet });
        }
        Event::Packets { packets, .. } => {
            assert_eq!(packets[0].bytes(), b"to myself");
            // A number means nothing in a real world.
            let (handles, info) = (vec![Handle::from_number(7)], handed_over.unwrap());
            turn.out.push(Action::AdoptPort { token, spec: spec.clone(), handles, info });
        }
        Event::PortFailed { error, .. } => {
            assert!(error.contains("no descriptor of this machine"), "{error}");
            turn.exit(0);
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(status, 0);
}

#[test]
fn an_xdp_port_that_one_process_opens_is_used_by_another_past_the_network_stack() {
    if !privileged() {
        return;
    }
    let (left, right) = (Namespace::new(), Namespace::new());
    left.connect("west", &right, "east");
    let port = |namespace: &Namespace, spec| {
        namespace.run(|| weft_port::open(&spec, &Options::default())).unwrap()
    };
    let (mut peer, mut recorder) = (port(&right, ethernet("east")), port(&left, ethernet("west")));
    let other = PortSpec::Ethernet { interface: "west".to_owned(), ethertype: 0x88b5 };
    let mut other = port(&left, other);
    let from = peer.info().mac;
    // One of another protocol, which goes on to the network stack, behind one of ours.
    let mut foreign = frame([0xff; 6], from, 2);
    foreign.bytes_mut()[12..14].copy_from_slice(&[0x88, 0xb5]);
    let (token, mut to_send) = (Token(6), vec![frame([0xff; 6], from, 1), foreign]);
    let status = left.run(move || {
        run_script(move |turn| match &mut turn.event {
            Event::Start => turn.out.push(Action::OpenHandles { token, spec: xdp("west") }),
            Event::HandlesOpened { handles, info, .. } => {
                let (handles, info) = (std::mem::take(handles), *info);
                turn.out.push(Action::AdoptPort { token, spec: xdp("west"), handles, info });
            }
            Event::PortOpened { .. } => send_all(to_send.drain(..), &mut *peer),
            Event::Packets { packets, .. } => {
                assert_eq!(packets[0].bytes(), frame([0xff; 6], from, 1).bytes());
                turn.exit(0);
            }
            other => panic!("{other:?}"),
        })
    });
    assert_eq!(status, 0);
    assert_eq!(receive_some(&mut *other, 1)[0].bytes()[15], 2);
    let mut recorded = Vec::new();
    recorder.receive(&mut recorded, 64).unwrap();
    assert!(recorded.is_empty(), "the network stack has seen {recorded:?}");
}
