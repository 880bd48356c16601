//! Time, order, fairness and background work.

use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use weft_base::{ChannelId, Instant, LinkAddress, Packet, PortId, Token};
use weft_port::PortSpec;

use super::{Turn, run_script};
use crate::{Action, DiskRequest, Event};

/// The address of a UDP port on this machine that the system chooses.
fn udp() -> PortSpec {
    PortSpec::Udp { local: "127.0.0.1:0".parse().unwrap() }
}

fn open(token: u32) -> Action {
    Action::OpenPort { token: Token(token), spec: udp() }
}

fn datagram(to: SocketAddr, bytes: &[u8]) -> Packet {
    let mut packet = Packet::from_slice(bytes);
    packet.meta.link = LinkAddress::Udp(to);
    packet
}

#[test]
fn deadlines_come_in_time_and_never_early() {
    let mut expected: Option<Instant> = None;
    let mut spans = VecDeque::from([100, 0, 50_000, 900_000, 3_000_000]);
    let status = run_script(move |turn| {
        if let Some(expected) = expected {
            assert!(matches!(turn.event, Event::Tick));
            assert!(turn.now >= expected);
        }
        let Some(nanos) = spans.pop_front() else { return turn.exit(3) };
        expected = Some(turn.now + Duration::from_nanos(nanos));
        *turn.deadline = expected;
    });
    assert_eq!(status, 3);
}

#[test]
fn an_exit_is_the_last_thing_that_happens() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("made-after-the-exit");
    let path_there = path.clone();
    let status = run_script(move |turn| {
        assert!(matches!(turn.event, Event::Start));
        turn.exit(9);
        let request = DiskRequest::MakeDirectory { path: path_there.clone() };
        turn.out.push(Action::Disk { token: Token(1), request });
        turn.exit(10);
    });
    assert_eq!(status, 9);
    assert!(!path.exists());
}

#[test]
fn what_actions_cause_is_told_in_their_order_and_not_within_the_call() {
    let mut told = Vec::new();
    let status = run_script(move |turn| match &turn.event {
        Event::Start => {
            for token in 1..=3 {
                let request = DiskRequest::MakeDirectory { path: "/".into() };
                turn.out.push(Action::Disk { token: Token(token), request });
            }
        }
        Event::Disk { token, result } => {
            result.as_ref().unwrap();
            told.push(token.0);
            if told == [1, 2, 3] {
                turn.exit(0);
            }
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(status, 0);
}

#[test]
fn actions_on_what_is_not_open_are_ignored() {
    let status = run_script(|turn| match &turn.event {
        Event::Start => {
            let (port, channel) = (PortId(77), ChannelId(77));
            turn.out.extend([
                Action::Transmit { port, packet: Packet::from_slice(b"x") },
                Action::ClosePort { port },
                Action::Send { channel, message: Packet::from_slice(b"x").into() },
                Action::Close { channel },
                open(1),
            ]);
        }
        Event::PortOpened { port, .. } => {
            let port = *port;
            turn.out.extend([Action::ClosePort { port }, Action::ClosePort { port }]);
            turn.exit(0);
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(status, 0);
}

#[test]
fn a_flooded_port_does_not_keep_another_one_waiting() {
    const FLOOD: usize = 600;
    let mut ports: Vec<PortId> = Vec::new();
    let mut addresses: Vec<SocketAddr> = Vec::new();
    let mut flooded = 0;
    let status = run_script(move |turn| match &turn.event {
        Event::Start => turn.out.extend([open(1), open(2)]),
        Event::PortOpened { port, info, .. } => {
            ports.push(*port);
            addresses.push(info.local.unwrap());
            if let [busy, quiet] = addresses[..] {
                let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
                for _ in 0..FLOOD {
                    sender.send_to(b"flood", busy).unwrap();
                }
                sender.send_to(b"one", quiet).unwrap();
            }
        }
        Event::Packets { port, packets } if *port == ports[0] => flooded += packets.len(),
        Event::Packets { packets, .. } => {
            assert_eq!(packets[0].bytes(), b"one");
            assert!(flooded <= 64, "{flooded} packets went first");
            turn.exit(0);
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(status, 0);
}

/// A process that always has one datagram on the way to itself.
struct Loop {
    received: u32,
    port: PortId,
}

impl Loop {
    fn turn(&mut self, turn: &mut Turn<'_>) {
        match &turn.event {
            Event::Start => turn.out.push(open(1)),
            Event::PortOpened { port, info, .. } => {
                self.port = *port;
                let packet = datagram(info.local.unwrap(), b"round and round");
                turn.out.push(Action::Transmit { port: *port, packet });
            }
            Event::Packets { packets, .. } => {
                self.received += packets.len() as u32;
                let packet = packets[0].duplicate();
                turn.out.push(Action::Transmit { port: self.port, packet });
            }
            _ => {}
        }
    }
}

#[test]
fn background_work_gets_its_share_under_load_and_packets_theirs() {
    let mut traffic = Loop { received: 0, port: PortId::NONE };
    let (mut slices, mut received_before) = (0, 0);
    let status = run_script(move |turn| {
        traffic.turn(turn);
        *turn.background = true;
        if matches!(turn.event, Event::Slice) && traffic.received > 0 {
            slices += 1;
            // One packet is on the way, so that each turn moves one.
            assert!(traffic.received - received_before <= 8, "a slice is overdue");
            received_before = traffic.received;
        }
        if slices >= 100 && traffic.received >= 500 {
            turn.exit(0);
        }
    });
    assert_eq!(status, 0);
}

#[test]
fn background_work_runs_alone_until_it_is_done() {
    let mut slices = 0;
    let status = run_script(move |turn| match turn.event {
        Event::Start => *turn.background = true,
        Event::Slice => {
            slices += 1;
            *turn.background = slices < 1000;
            *turn.deadline = (slices == 1000).then_some(turn.now);
        }
        Event::Tick => turn.exit(slices.min(200) as u8),
        _ => {}
    });
    assert_eq!(status, 200);
}
