//! UDP over modelled IPv4 hosts and routers.

use std::net::{Ipv4Addr, SocketAddr};

use weft_base::LinkAddress;
use weft_wire::{EtherType, EthernetFrame, UdpIpv4Repr};

use super::*;

/// A line of nodes `h0 - r1 - r2 - ... - hN`: link `i` between node `i` and `i + 1` is
/// `10.0.i.0/24`, with .1 on the left and .2 on the right. Routes go both ways.
fn line(world: &mut World, routers: usize) -> Vec<NodeId> {
    let nodes: Vec<_> =
        (0..routers + 2).map(|i| world.add_node(&format!("n{i}")).unwrap()).collect();
    for (i, pair) in nodes.windows(2).enumerate() {
        let [left, right] =
            [(pair[0], "right", 1), (pair[1], "left", 2)].map(|(node, name, host)| {
                let id = world.add_interface(node, InterfaceConfig::new(name)).unwrap();
                world.add_address(id, Ipv4Addr::new(10, 0, i as u8, host), 24).unwrap();
                (id, LinkConfig { delay: millis(1), ..Default::default() })
            });
        world.connect(left, right).unwrap();
    }
    for (i, node) in nodes.iter().enumerate() {
        let (left, right) = (i.wrapping_sub(1), i);
        let ten = Ipv4Addr::new(10, 0, 0, 0);
        if i > 0 {
            for net in 0..left {
                let gateway = Ipv4Addr::new(10, 0, left as u8, 1);
                world.add_route(*node, Ipv4Addr::new(10, 0, net as u8, 0), 24, gateway).unwrap();
            }
        }
        if i < routers + 1 {
            world.add_route(*node, ten, 8, Ipv4Addr::new(10, 0, right as u8, 2)).unwrap();
        }
        world.set_forwarding(*node, i > 0 && i <= routers);
    }
    nodes
}

/// A process that binds `local`, sends `text` to each of `to`, and logs what it gets.
fn udp(local: &str, to: &[&str], text: &'static str, log: &Log) -> Spawn {
    let local: SocketAddr = local.parse().unwrap();
    let to: Vec<SocketAddr> = to.iter().map(|to| to.parse().unwrap()).collect();
    let log = Rc::clone(log);
    script("udp", move |turn, event| match event {
        Event::Start => {
            let spec = PortSpec::Udp { local };
            turn.act(Action::OpenPort { token: Token(0), spec });
        }
        Event::PortOpened { port, info, .. } => {
            let local = info.local.unwrap();
            log.borrow_mut().push(format!("{local} mtu {}", info.mtu));
            for to in &to {
                let mut packet = Packet::from_slice(text.as_bytes());
                packet.meta.link = LinkAddress::Udp(*to);
                turn.act(Action::Transmit { port, packet });
            }
        }
        Event::Packets { packets, .. } => {
            for packet in packets {
                let text = String::from_utf8_lossy(packet.bytes()).into_owned();
                let time = turn.now.as_nanos();
                log.borrow_mut().push(format!("{time} {text} {:?}", packet.meta.link));
            }
        }
        other => log.borrow_mut().push(describe(&other)),
    })
}

#[test]
fn a_datagram_crosses_two_routers() {
    let mut world = world(1);
    let nodes = line(&mut world, 2);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let ttls = Rc::clone(&seen);
    world.on_packet(move |sighting| {
        let frame = EthernetFrame::new_checked(sighting.bytes).unwrap();
        assert_eq!(frame.ethertype(), EtherType::IPV4);
        let (headers, payload) = UdpIpv4Repr::parse(frame.payload()).unwrap();
        assert_eq!(payload, b"hello");
        if sighting.direction == Direction::Received {
            ttls.borrow_mut().push((sighting.node, headers.ttl));
        }
    });
    let (client, server) = (Log::default(), Log::default());
    world.spawn(nodes[3], udp("0.0.0.0:7000", &[], "", &server));
    world.spawn(nodes[0], udp("0.0.0.0:0", &["10.0.2.2:7000"], "hello", &client));
    world.run_while(|_| true).unwrap();
    assert_eq!(*client.borrow(), ["0.0.0.0:32768 mtu 1472"]);
    let expected = ["0.0.0.0:7000 mtu 1472", "3000000 hello Udp(10.0.0.1:32768)"];
    assert_eq!(*server.borrow(), expected);
    assert_eq!(*seen.borrow(), [(nodes[1], 64), (nodes[2], 63), (nodes[3], 62)]);
    assert_eq!(world.total(NodeCount::Forwarded), 2);
}

/// A process that joins a group on an interface, sends `text` there, and logs what it gets.
fn member(interface: &'static str, group: &str, to: &str, text: &'static str, log: &Log) -> Spawn {
    let [group, to]: [SocketAddr; 2] = [group, to].map(|text| text.parse().unwrap());
    let log = Rc::clone(log);
    script("member", move |turn, event| match event {
        Event::Start => {
            let spec = PortSpec::Group { interface: interface.to_owned(), group };
            turn.act(Action::OpenPort { token: Token(0), spec });
        }
        Event::PortOpened { port, .. } if !text.is_empty() => {
            let mut packet = Packet::from_slice(text.as_bytes());
            packet.meta.link = LinkAddress::Udp(to);
            turn.act(Action::Transmit { port, packet });
        }
        Event::PortOpened { .. } => {}
        Event::Packets { packets, .. } => {
            let text = |packet: &Packet| String::from_utf8_lossy(packet.bytes()).into_owned();
            let line = |packet| format!("{} {:?}", text(packet), packet.meta.link);
            log.borrow_mut().extend(packets.iter().map(line));
        }
        other => log.borrow_mut().push(describe(&other)),
    })
}

#[test]
fn a_group_reaches_the_link_and_no_further() {
    let mut world = world(1);
    let nodes = line(&mut world, 2);
    let logs: [Log; 5] = Default::default();
    let group = "224.0.0.9:520";
    // The second node has a socket on each of its links.
    world.spawn(nodes[0], member("right", group, group, "", &logs[0]));
    world.spawn(nodes[1], member("left", group, group, "hello", &logs[1]));
    world.spawn(nodes[1], member("right", group, group, "", &logs[2]));
    world.spawn(nodes[2], member("left", group, "10.0.1.1:520", "you", &logs[3]));
    world.spawn(nodes[1], member("right", group, group, "", &logs[4]));
    world.run_while(|_| true).unwrap();
    assert_eq!(*logs[0].borrow(), ["hello Udp(10.0.0.2:520)"]);
    assert_eq!(*logs[2].borrow(), ["you Udp(10.0.1.2:520)"]);
    assert!(logs[1].borrow().is_empty() && logs[3].borrow().is_empty());
    assert!(logs[4].borrow()[0].contains("in use"), "{:?}", logs[4]);
}

#[test]
fn the_time_to_live_runs_out_in_a_routing_loop() {
    let mut world = world(1);
    let nodes = line(&mut world, 2);
    // n1 and n2 send 192.0.2.0/24 to each other.
    let net = Ipv4Addr::new(192, 0, 2, 0);
    for (node, gateway) in [(0, [10, 0, 0, 2]), (1, [10, 0, 1, 2]), (2, [10, 0, 1, 1])] {
        world.add_route(nodes[node], net, 24, gateway.into()).unwrap();
    }
    world.spawn(nodes[0], udp("0.0.0.0:0", &["192.0.2.1:9"], "around", &Log::default()));
    assert_eq!(world.run_while(|_| true).unwrap(), Ended::Idle);
    assert_eq!(world.total(NodeCount::TtlExpired), 1);
    assert_eq!(world.total(NodeCount::Forwarded), 63);
}

#[test]
fn loopback_and_own_addresses_stay_on_the_node() {
    let mut world = world(1);
    let nodes = line(&mut world, 0);
    let (a, b) = (Log::default(), Log::default());
    world.spawn(nodes[0], udp("127.0.0.1:5", &[], "", &a));
    world.spawn(nodes[0], udp("10.0.0.1:5", &[], "", &b));
    let both = ["127.0.0.1:5", "10.0.0.1:5"];
    world.spawn(nodes[0], udp("0.0.0.0:6", &both, "here", &Log::default()));
    world.run_while(|_| true).unwrap();
    let expected = ["127.0.0.1:5 mtu 65507", "0 here Udp(127.0.0.1:6)"];
    assert_eq!(*a.borrow(), expected);
    assert_eq!(*b.borrow(), ["10.0.0.1:5 mtu 1472", "0 here Udp(10.0.0.1:6)"]);
    assert_eq!(world.total(NodeCount::Sent), 0);
}

#[test]
fn sockets_that_cannot_be_bound_say_why() {
    let mut world = world(1);
    let nodes = line(&mut world, 0);
    let log = Log::default();
    for local in ["0.0.0.0:5", "10.0.0.1:5", "10.0.0.2:5", "[::1]:5"] {
        world.spawn(nodes[0], udp(local, &[], "", &log));
    }
    world.run_while(|_| true).unwrap();
    let log = log.borrow();
    assert_eq!(log[0], "0.0.0.0:5 mtu 1472");
    assert!(log[1].contains("the port is in use on node n0"), "{}", log[1]);
    assert!(log[2].contains("node n0 does not have this address"), "{}", log[2]);
    assert!(log[3].contains("IPv4 only"), "{}", log[3]);
}

#[test]
fn what_cannot_be_delivered_is_counted() {
    let mut world = world(1);
    let nodes = line(&mut world, 1);
    let to = ["10.0.1.2:9", "10.0.0.77:9", "10.0.1.77:9", "192.0.2.1:9", "[::1]:9"];
    world.spawn(nodes[0], udp("0.0.0.0:0", &to, "x", &Log::default()));
    let long: &'static str = Box::leak("x".repeat(1473).into_boxed_str());
    world.spawn(nodes[0], udp("0.0.0.0:0", &["10.0.1.2:9"], long, &Log::default()));
    world.run_while(|_| true).unwrap();
    let count = |node: usize, reason| world.node_counters(nodes[node]).get(reason);
    assert_eq!(count(2, NodeCount::NoSocket), 1, "to a port nobody has bound");
    assert_eq!(count(0, NodeCount::NoNeighbour), 1, "to nobody on the first link");
    assert_eq!(count(1, NodeCount::NoNeighbour), 1, "to nobody on the second link");
    assert_eq!(count(0, NodeCount::NoRoute), 1, "to no route");
    assert_eq!(count(0, NodeCount::NoDestination), 1, "to no IPv4 address");
    assert_eq!(count(0, NodeCount::PacketTooLong), 1, "longer than the MTU");
}

#[test]
fn a_host_does_not_forward() {
    let mut world = world(1);
    let nodes = line(&mut world, 1);
    world.set_forwarding(nodes[1], false);
    world.spawn(nodes[0], udp("0.0.0.0:0", &["10.0.1.2:9"], "x", &Log::default()));
    world.run_while(|_| true).unwrap();
    assert_eq!(world.node_counters(nodes[1]).get(NodeCount::NotForwarding), 1);
}

#[test]
fn damaged_datagrams_reach_no_socket() {
    let mut world = world(1);
    let nodes = line(&mut world, 0);
    let log = Log::default();
    world.spawn(nodes[1], udp("0.0.0.0:5", &[], "", &log));
    let right = world.find_interface(nodes[0], "right").unwrap();
    let left = world.find_interface(nodes[1], "left").unwrap();
    let headers = UdpIpv4Repr {
        source: "10.0.0.1:6".parse().unwrap(),
        destination: "10.0.0.2:5".parse().unwrap(),
        ttl: 1,
        traffic_class: 0,
        dont_fragment: true,
        payload_len: 4,
    };
    let mut good = vec![0; headers.buffer_len()];
    good[28..].copy_from_slice(b"good");
    headers.emit(&mut good).unwrap();
    let frame = |ip: &[u8]| {
        let mut frame = [world.mac(left).0, world.mac(right).0].concat();
        frame.extend([8, 0]);
        frame.extend(ip);
        frame
    };
    let damaged = |place: usize| {
        let mut bytes = frame(&good);
        bytes[14 + place] ^= 0x10;
        bytes
    };
    let padded = [frame(&good), vec![0; 20]].concat();
    let short = frame(&good[..good.len() - 1]);
    let frames = [damaged(8), damaged(30), damaged(0), short, padded];
    let spec = PortSpec::Ethernet { interface: "right".into(), ethertype: TYPE };
    world.spawn(
        nodes[0],
        script("raw", move |turn, event| match event {
            Event::Start => {
                turn.act(Action::OpenPort { token: Token(0), spec: spec.clone() });
            }
            Event::PortOpened { port, .. } => frames.iter().for_each(|f| turn.send(port, f)),
            _ => {}
        }),
    );
    world.run_while(|_| true).unwrap();
    let count = |reason| world.node_counters(nodes[1]).get(reason);
    assert_eq!((count(NodeCount::BadHeader), count(NodeCount::BadUdp)), (3, 1));
    assert_eq!(log.borrow()[1..], ["1000000 good Udp(10.0.0.1:6)"]);
}

#[test]
fn a_router_forwards_no_padding() {
    let mut world = world(1);
    let nodes = line(&mut world, 1);
    let lengths = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&lengths);
    world.on_packet(move |sighting| {
        if sighting.direction == Direction::Received {
            seen.borrow_mut().push(sighting.bytes.len());
        }
    });
    let to = world.mac(world.find_interface(nodes[1], "left").unwrap()).0;
    let headers = UdpIpv4Repr {
        source: "10.0.0.1:6".parse().unwrap(),
        destination: "10.0.1.2:5".parse().unwrap(),
        ttl: 9,
        traffic_class: 0,
        dont_fragment: true,
        payload_len: 0,
    };
    let mut frame = [to, [2; 6]].concat();
    frame.extend([8, 0]);
    frame.resize(60, 0); // The shortest frame of Ethernet.
    headers.emit(&mut frame[14..]).unwrap();
    let spec = PortSpec::Ethernet { interface: "right".into(), ethertype: TYPE };
    world.spawn(
        nodes[0],
        script("raw", move |turn, event| match event {
            Event::Start => turn.act(Action::OpenPort { token: Token(0), spec: spec.clone() }),
            Event::PortOpened { port, .. } => turn.send(port, &frame),
            _ => {}
        }),
    );
    world.run_while(|_| true).unwrap();
    assert_eq!(*lengths.borrow(), [60, 14 + 28]);
}

#[test]
fn traffic_takes_another_route_when_an_interface_goes_down() {
    let mut world = world(1);
    let (a, b) = (world.add_node("a").unwrap(), world.add_node("b").unwrap());
    let mut uplinks = Vec::new();
    for net in 0..2 {
        let [left, right] = [(a, 1), (b, 2)].map(|(node, host)| {
            let id = world.add_interface(node, InterfaceConfig::new(format!("eth{net}"))).unwrap();
            world.add_address(id, Ipv4Addr::new(10, 0, net, host), 24).unwrap();
            id
        });
        world.connect((left, LinkConfig::default()), (right, LinkConfig::default())).unwrap();
        world.add_route(a, Ipv4Addr::UNSPECIFIED, 0, Ipv4Addr::new(10, 0, net, 2)).unwrap();
        uplinks.push(left);
    }
    let service = world.add_interface(b, InterfaceConfig::new("service")).unwrap();
    world.add_address(service, Ipv4Addr::new(192, 0, 2, 1), 32).unwrap();
    let log = Log::default();
    world.spawn(b, udp("192.0.2.1:5", &[], "", &log));
    for _ in 0..2 {
        world.spawn(a, udp("0.0.0.0:0", &["192.0.2.1:5"], "x", &Log::default()));
        world.run_while(|_| true).unwrap();
        world.set_up(uplinks[0], false);
    }
    let expected = ["0 x Udp(10.0.0.1:32768)", "0 x Udp(10.0.1.1:32769)"];
    assert_eq!(log.borrow()[1..], expected);
}

#[test]
fn a_killed_process_frees_its_socket() {
    let mut world = world(1);
    let nodes = line(&mut world, 0);
    let log = Log::default();
    let first = world.spawn(nodes[0], udp("0.0.0.0:5", &[], "", &log));
    world.run_until(at(1)).unwrap();
    world.kill(first);
    world.spawn(nodes[0], udp("0.0.0.0:5", &[], "", &log));
    world.run_until(at(2)).unwrap();
    assert_eq!(*log.borrow(), ["0.0.0.0:5 mtu 1472"; 2]);
}
