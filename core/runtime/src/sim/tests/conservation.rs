//! No packet is lost or made without a count, whatever happens in the world.

use std::net::Ipv4Addr;
use std::num::NonZeroU64;

use proptest::prelude::*;
use weft_base::LinkAddress;
use weft_wire::EtherType;

use super::*;
use crate::BILLION;

/// Something that is done to the world between two times.
#[derive(Clone, Debug)]
enum Step {
    Run(u64),
    Cut(usize),
    Mend(usize),
    Down(usize),
    Up(usize),
    Delete(usize),
    Kill(usize),
    Spawn(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u64..4_000_000).prop_map(Step::Run),
        1 => (0usize..3).prop_map(Step::Cut),
        1 => (0usize..3).prop_map(Step::Mend),
        1 => (0usize..6).prop_map(Step::Down),
        1 => (0usize..6).prop_map(Step::Up),
        1 => (0usize..6).prop_map(Step::Delete),
        1 => (0usize..20).prop_map(Step::Kill),
        3 => (0usize..4).prop_map(Step::Spawn),
    ];
    prop::collection::vec(step, 1..25)
}

prop_compose! {
    fn links()(
        rate in prop::option::of(100_000u64..100_000_000),
        delay in 0u64..3_000_000,
        loss in 0..BILLION / 2,
        duplicate in 0..BILLION / 2,
        reorder in 0..BILLION / 2,
        queue_packets in 1usize..10,
    ) -> LinkConfig {
        LinkConfig {
            rate: rate.and_then(NonZeroU64::new),
            delay: std::time::Duration::from_nanos(delay),
            loss,
            duplicate,
            reorder,
            queue_packets,
            ..LinkConfig::default()
        }
    }
}

/// A process that opens an Ethernet port for IPv4, one for an own type, and a UDP port, and sends
/// twenty times all kinds of packets from them, good and bad.
fn chatter(seed: u64, node: usize) -> Spawn {
    let mut random = weft_base::Random::from_seed(seed);
    let mut ports = Vec::new();
    let mut rounds = 20;
    script("chatter", move |turn, event| match event {
        Event::Start => {
            let interface = || "eth0".to_owned();
            let ethertypes = [TYPE, EtherType::IPV4.0];
            let ethernet = ethertypes
                .map(|ethertype| PortSpec::Ethernet { interface: interface(), ethertype });
            let local = "0.0.0.0:0".parse().unwrap();
            for spec in ethernet.into_iter().chain([PortSpec::Udp { local }]) {
                turn.act(Action::OpenPort { token: Token(0), spec });
            }
            *turn.deadline = Some(turn.now);
        }
        Event::PortOpened { port, .. } => ports.push(port),
        Event::Tick if rounds > 0 => {
            rounds -= 1;
            *turn.deadline = Some(turn.now + millis(1));
            for port in &ports {
                let mut packet = Packet::from_slice(&frame(&[node as u8; 40]));
                packet.truncate(random.below(100) as usize);
                let host = 32768 + random.below(3) as u16;
                let address = Ipv4Addr::new(10, random.below(2) as u8, 0, random.below(6) as u8);
                packet.meta.link = LinkAddress::Udp((address, host).into());
                turn.act(Action::Transmit { port: *port, packet });
            }
            if random.chance(1, 10) && !ports.is_empty() {
                // Later sends on the port are discarded.
                turn.act(Action::ClosePort { port: ports[0] });
            }
        }
        Event::Tick => *turn.deadline = None,
        _ => {}
    })
}

/// Two hosts on a hub with a router that has a cable to a third host.
fn build(world: &mut World, link: &LinkConfig) -> (Vec<NodeId>, Vec<InterfaceId>) {
    let nodes: Vec<_> = (0..4).map(|i| world.add_node(&format!("n{i}")).unwrap()).collect();
    let mut interfaces = Vec::new();
    for (node, name, address) in [
        (0, "eth0", [10, 0, 0, 1]),
        (1, "eth0", [10, 0, 0, 2]),
        (2, "eth0", [10, 0, 0, 3]),
        (2, "eth1", [10, 1, 0, 3]),
        (3, "eth0", [10, 1, 0, 4]),
    ] {
        let id = world.add_interface(nodes[node], InterfaceConfig::new(name)).unwrap();
        world.add_address(id, address.into(), 24).unwrap();
        interfaces.push(id);
    }
    let ends: Vec<_> = interfaces.iter().map(|id| (*id, link.clone())).collect();
    world.connect_all(&ends[..3]).unwrap();
    world.connect_all(&ends[3..]).unwrap();
    world.set_forwarding(nodes[2], true);
    for (node, gateway) in [(0, [10, 0, 0, 3]), (1, [10, 0, 0, 3]), (3, [10, 1, 0, 3])] {
        world.add_route(nodes[node], Ipv4Addr::UNSPECIFIED, 0, gateway.into()).unwrap();
    }
    (nodes, interfaces)
}

fn sum(world: &World, counts: &[NodeCount]) -> u64 {
    counts.iter().map(|count| world.total(*count)).sum()
}

fn check(world: &World, interfaces: &[InterfaceId]) -> Result<(), TestCaseError> {
    use NodeCount::*;
    let sum = |counts: &[NodeCount]| sum(world, counts);
    prop_assert_eq!(
        sum(&[Received, Copied]),
        sum(&[OtherHost, Malformed, NoListener, ToPorts, ToIp])
    );
    let ip_drops = [
        BadHeader,
        Fragment,
        NotForwarding,
        TtlExpired,
        NoRoute,
        NoNeighbour,
        PacketTooLong,
        NotUdp,
        BadUdp,
        NoSocket,
        NoDestination,
    ];
    prop_assert_eq!(sum(&[ToIp, UdpSent]), sum(&[ToSockets, Forwarded, UdpOut]) + sum(&ip_drops));
    prop_assert_eq!(
        sum(&[PortSent, Forwarded, UdpOut]),
        sum(&[Sent, PortMalformed, TooLong, InterfaceDown, NoLink, LinkCut])
    );
    let waiting: usize =
        (0..4).map(|i| world.waiting_packets(world.find_node(&format!("n{i}")).unwrap())).sum();
    prop_assert_eq!(sum(&[ToPorts, ToSockets]), sum(&[HandedOver, PortClosed]) + waiting as u64);
    // Links: what they deliver has arrived, was lost with the link, or is on its way.
    let count = |reason| -> u64 {
        interfaces.iter().filter_map(|i| world.link_counters(*i)).map(|c| c.get(reason)).sum()
    };
    let in_flight: usize = interfaces.iter().map(|i| world.in_flight(*i)).sum();
    prop_assert_eq!(count(crate::LinkCount::Offered), sum(&[Sent]));
    prop_assert_eq!(
        count(crate::LinkCount::Delivered),
        sum(&[Arrived, LostInFlight]) + in_flight as u64
    );
    prop_assert_eq!(sum(&[Arrived, Repeated]), sum(&[Received, ArrivedDown, NobodyThere]));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_packet_is_accounted_for(link in links(), seed: u64, steps in steps()) {
        let mut world = world(seed);
        let (nodes, interfaces) = build(&mut world, &link);
        let mut processes = Vec::new();
        for (number, node) in nodes.iter().enumerate() {
            processes.push(world.spawn(*node, chatter(seed, number)));
        }
        for step in steps {
            let interface = |i: usize| interfaces[i % interfaces.len()];
            let link_of = |world: &World, i: usize| world.link_of(interface(i)).unwrap();
            match step {
                Step::Run(nanos) => {
                    let until = world.now() + std::time::Duration::from_nanos(nanos);
                    world.run_until(until).unwrap();
                }
                Step::Cut(i) => { let link = link_of(&world, i); world.cut(link); }
                Step::Mend(i) => { let link = link_of(&world, i); world.mend(link); }
                Step::Down(i) => world.set_up(interface(i), false),
                Step::Up(i) => world.set_up(interface(i), true),
                Step::Delete(i) => world.delete_interface(interface(i)),
                Step::Kill(i) => world.kill(processes[i % processes.len()]),
                Step::Spawn(i) => {
                    let seed = seed.wrapping_add(processes.len() as u64);
                    processes.push(world.spawn(nodes[i], chatter(seed, i)));
                }
            }
            check(&world, &interfaces)?;
        }
        world.run_while(|_| true).unwrap();
        check(&world, &interfaces)?;
        prop_assert_eq!(interfaces.iter().map(|i| world.in_flight(*i)).sum::<usize>(), 0);
    }
}
