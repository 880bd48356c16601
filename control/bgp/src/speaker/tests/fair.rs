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

#[test]
fn a_route_of_ipv6_does_not_wait_until_the_rib_has_all_of_ipv4() {
    let mut world = World::started("");
    world.born(false);
    world.configure(["family ipv4-unicast ipv6-unicast;", ""]);
    world.connect_with(1, &Family::ALL.map(Capability::Multiprotocol));
    let global = "2001:db8::2".parse().unwrap();
    let (v4, v6) = (NextHop::V4(address(1)), NextHop::V6 { global, link_local: None });
    let of_v6 = |number: u16| {
        let net = ipnet::Ipv6Net::new([0x2001, 0xdb8, number, 0, 0, 0, 0, 0].into(), 48).unwrap();
        update(Family::IPV6_UNICAST, v6, [net.prefix()].into_iter())
    };
    let of_v4 = (0..4096u32)
        .map(|n| ipnet::Ipv4Net::new((0x1400_0000 + (n << 8)).into(), 24).unwrap().prefix());
    // How the next hops are reached is known from then on.
    world.says(1, &update(Family::IPV4_UNICAST, v4, of_v4.clone().take(1)));
    world.says(1, &of_v6(0));
    world.rib_waits = true;
    let mut out = world.says(1, &update(Family::IPV4_UNICAST, v4, of_v4.skip(1)));
    assert_eq!(changes(&out).len(), 3, "as many as may be under way");
    out.extend(world.says(1, &of_v6(1)));
    assert_eq!(changes(&out).len(), 3);
    // The RIB takes one of them: what is told next is the other version.
    let (place, _) = changes(&out).swap_remove(0);
    let answer = world.rib.answer(&out[place]).unwrap();
    let next = changes(&world.input(answer));
    assert!(next[0].1.routes.iter().all(|route| route.net.addr().is_ipv6()), "{next:?}");
    world.rib_waits = false;
    for (place, _) in changes(&out).split_off(1) {
        let answer = world.rib.answer(&out[place]).unwrap();
        world.input(answer);
    }
}
