//! Routes of the machine's IP, changed and read by a process in a network namespace of its own.

use std::net::UdpSocket;
use std::process::Command;
use std::sync::Arc;

use weft_base::Token;
use weft_port::PortSpec;
use weft_port::testing::{Namespace, privileged};

use super::run_script;
use crate::{
    Action, Deletions, Event, InterfaceAddress, RouteChange, RouteOperation, RouteReply,
    RouteRequest, RouteSpace, RouteTarget, RoutesTold,
};

const SPACE: RouteSpace = RouteSpace { is_ipv6: false, table: 1000, protocol: 119 };
const COUNT: u32 = 3000;

fn change(number: u32, operation: RouteOperation) -> RouteChange {
    let ip = std::net::Ipv4Addr::from_bits((10 << 24) + (number << 8)).into();
    let destination = InterfaceAddress { ip, prefix_length: 24 };
    RouteChange { destination, metric: 40, operation }
}

fn add(number: u32) -> RouteChange {
    change(number, RouteOperation::Add(Arc::new(RouteTarget::Blackhole)))
}

fn changes(token: u32, changes: Vec<RouteChange>) -> Action {
    Action::Routes { token: Token(token), request: RouteRequest::Change { space: SPACE, changes } }
}

fn dump(token: u32, space: RouteSpace) -> Action {
    Action::Routes { token: Token(token), request: RouteRequest::Dump { space } }
}

#[test]
fn a_process_sets_reads_and_deletes_routes_in_pieces() {
    if !privileged() {
        return;
    }
    let namespace = Namespace::new();
    let status = namespace.run(|| {
        let (mut answers, mut told, mut over) = (0, 0, Vec::new());
        run_script(move |turn| match std::mem::replace(&mut turn.event, Event::Tick) {
            Event::Start => {
                let all: Vec<_> = (0..COUNT).map(add).collect();
                let pieces = all.chunks(256).enumerate();
                turn.out.extend(pieces.map(|(piece, some)| changes(piece as u32, some.to_vec())));
                // Some of which are there, or are not.
                turn.out.push(changes(100, vec![add(7), add(COUNT), add(8)]));
                turn.out.push(changes(101, vec![change(COUNT, RouteOperation::Delete); 2]));
                turn.out.push(dump(102, SPACE));
                turn.out.push(dump(103, RouteSpace { table: 1001, ..SPACE }));
            }
            Event::RoutesAnswered { token, result } => match result.unwrap() {
                RouteReply::Changed { refused } => {
                    answers += 1;
                    let places: Vec<_> = refused.iter().map(|(place, _)| *place).collect();
                    match token.0 {
                        100 => {
                            assert_eq!(places, [0, 2]);
                            assert!(refused[0].1.contains("File exists"), "{refused:?}");
                        }
                        _ => assert_eq!(places, [0; 0]),
                    }
                }
                RouteReply::Deleted(_) => panic!("nobody deletes any"),
                RouteReply::Told { routes, told: state } => {
                    assert_eq!(
                        answers,
                        COUNT.div_ceil(256) + 2,
                        "in the order in which it was asked"
                    );
                    assert!(token.0 == 102 || routes.is_empty());
                    assert!(routes.len() < 2000, "in pieces");
                    told += routes.len();
                    match state {
                        RoutesTold::More => {}
                        RoutesTold::Again => panic!("nothing changes"),
                        RoutesTold::All => over.push(token.0),
                    }
                    if over.len() == 2 {
                        assert_eq!(told, COUNT as usize);
                        turn.exit(0);
                    }
                }
            },
            other => panic!("{other:?}"),
        })
    });
    assert_eq!(status, 0);
}

#[test]
fn a_process_hears_what_has_come_before_it_asks_for_the_next_piece() {
    if !privileged() {
        return;
    }
    let namespace = Namespace::new();
    let status = namespace.run(|| {
        let words = "link set lo up";
        assert!(Command::new("ip").args(words.split(' ')).status().unwrap().success());
        let (sender, mut port) = (UdpSocket::bind("127.0.0.1:0").unwrap(), None);
        let (mut pieces, mut heard) = (0, 0);
        run_script(move |turn| match std::mem::replace(&mut turn.event, Event::Tick) {
            Event::Start => {
                let spec = PortSpec::Udp { local: "127.0.0.1:0".parse().unwrap() };
                turn.out.push(Action::OpenPort { token: Token(1), spec });
            }
            Event::PortOpened { info, .. } => {
                port = info.local;
                sender.send_to(b"urgent", port.unwrap()).unwrap();
                turn.out.push(changes(2, vec![add(pieces)]));
            }
            Event::Packets { packets, .. } => heard += packets.len(),
            Event::RoutesAnswered { .. } => {
                pieces += 1;
                assert_eq!(heard, pieces as usize);
                if pieces == 10 {
                    return turn.exit(0);
                }
                sender.send_to(b"urgent", port.unwrap()).unwrap();
                turn.out.push(changes(2, vec![add(pieces)]));
            }
            other => panic!("{other:?}"),
        })
    });
    assert_eq!(status, 0);
}

#[test]
fn a_process_hears_what_others_delete() {
    if !privileged() {
        return;
    }
    let namespace = Namespace::new();
    let status = namespace.run(|| {
        run_script(move |turn| match std::mem::replace(&mut turn.event, Event::Tick) {
            Event::Start => {
                let request = RouteRequest::Watch { protocol: SPACE.protocol };
                turn.out.push(Action::Routes { token: Token(7), request });
                turn.out.push(changes(8, vec![add(1), add(2)]));
                turn.out.push(changes(9, vec![change(2, RouteOperation::Delete)]));
            }
            Event::RoutesAnswered { token: Token(9), .. } => {
                let words = "route del blackhole 10.0.1.0/24 table 1000";
                let status = Command::new("ip").args(words.split(' ')).status();
                assert!(status.unwrap().success());
            }
            Event::RoutesAnswered { token: Token(7), result } => {
                let RouteReply::Deleted(deletions) = result.unwrap() else { panic!() };
                assert_eq!(deletions, Deletions { routes: [(SPACE, 1)].into(), omitted: false });
                turn.exit(0);
            }
            _ => {}
        })
    });
    assert_eq!(status, 0);
}
