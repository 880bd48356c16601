//! What is told of one version does not wait for another.

use weft_protocol::rib::{Call, Change};
use weft_xrl::{Calls, Decoder, Method};

use super::*;
use crate::wire::Families;

/// The changes of which the RIB is told, with the outputs that say so.
fn changes(out: &[Output]) -> Vec<(usize, Change)> {
    let read = |(place, output): (usize, &Output)| {
        let Output::Call(call) = output else { return None };
        let Method::Known(_, method) = call.method else { return None };
        let mut from = Decoder::new(call.arguments.args.bytes(), Vec::new());
        match Call::decode(method, &mut from).ok()? {
            Call::Change(change) => Some((place, change)),
            _ => None,
        }
    };
    out.iter().enumerate().filter_map(read).collect()
}

/// An announcement.
fn update(family: Family, next_hop: NextHop, nets: impl Iterator<Item = Prefix>) -> Vec<u8> {
    let attributes = Attributes {
        as_path: AsPath::from_sequence(&[65001]),
        next_hop: Some(next_hop),
        ..Attributes::default()
    };
    let mut context = Context::new(Neighbour::External);
    context.families = Families::from_iter(Family::ALL);
    let encoder = UpdateEncoder::new(&attributes, family, &context).unwrap();
    let mut bytes = Vec::new();
    encoder.all(nets.map(|net| (0, net)), &mut bytes);
    bytes
}

/// A router to whose RIB as much is under way as may be, all of it of IPv4, and what it was told.
fn busy() -> (World, Vec<Output>) {
    let mut world = World::started("");
    world.born(false);
    world.configure(["family ipv4-unicast ipv6-unicast;", ""]);
    world.connect_with(1, &Family::ALL.map(Capability::Multiprotocol));
    // How the next hops are reached is known from then on.
    world.says(1, &of_v4(0..1));
    world.says(1, &of_v6(0..1));
    world.rib_waits = true;
    let out = world.says(1, &of_v4(1..4096));
    assert_eq!(changes(&out).len(), 3, "as many as may be under way");
    (world, out)
}

fn of_v4(numbers: std::ops::Range<u32>) -> Vec<u8> {
    let net = |n: u32| ipnet::Ipv4Net::new((0x1400_0000 + (n << 8)).into(), 24).unwrap().prefix();
    update(Family::IPV4_UNICAST, NextHop::V4(address(1)), numbers.map(net))
}

fn of_v6(numbers: std::ops::Range<u16>) -> Vec<u8> {
    let net = |number: u16| {
        let net = ipnet::Ipv6Net::new([0x2001, 0xdb8, number, 0, 0, 0, 0, 0].into(), 48);
        net.unwrap().prefix()
    };
    let global = "2001:db8::2".parse().unwrap();
    let next_hop = NextHop::V6 { global, link_local: None };
    update(Family::IPV6_UNICAST, next_hop, numbers.map(net))
}

/// The RIB answers everything from now on.
fn settle(world: &mut World, out: &[Output]) {
    world.rib_waits = false;
    for (place, _) in changes(out) {
        let answer = world.rib.answer(&out[place]).unwrap();
        world.input(answer);
    }
}

#[test]
fn a_new_route_does_not_wait_until_the_rib_has_taken_others() {
    let (mut world, mut out) = busy();
    out.extend(world.says(1, &of_v6(1..2)));
    let all = changes(&out);
    assert_eq!(all.len(), 4, "it goes beside those under way");
    assert_eq!(all[3].1.routes.len(), 1);
    // Those of the version of which many wait do not: they are no news for which others would have to wait.
    out.extend(world.says(1, &of_v4(5000..5001)));
    assert_eq!(changes(&out).len(), 4);
    settle(&mut world, &out);
    assert_eq!(world.rib.routes.len(), 4096 + 2 + 1, "and nothing is lost");
}

#[test]
fn routes_of_ipv6_do_not_wait_until_the_rib_has_all_of_ipv4() {
    let (mut world, mut out) = busy();
    // More than what goes beside those under way.
    out.extend(world.says(1, &of_v6(1..1000)));
    assert_eq!(changes(&out).len(), 3);
    // The RIB takes one of them: what is told next is the other version.
    let (place, _) = changes(&out).swap_remove(0);
    let answer = world.rib.answer(&out[place]).unwrap();
    let next = world.input(answer);
    let told = changes(&next);
    assert!(told[0].1.routes.iter().all(|route| route.net.addr().is_ipv6()), "{told:?}");
    out.remove(place);
    out.extend(next);
    settle(&mut world, &out);
}
