//! A member of a confederation (RFC 5065) between another member and a system outside.

use super::*;
use crate::numbers::community::{NO_EXPORT, NO_EXPORT_SUBCONFED};
use crate::wire::Disposition;

/// The first peer is another member, the second one outside.
const TEXT: &str = "bgp { as 65000; router-id 192.0.2.1; confederation { id 100; members 65001; }
    peer 10.0.1.2 { as 65001; passive on; hold-time 9s; }
    peer 10.0.2.2 { as 65002; passive on; hold-time 9s; import all; export all; } }";

fn net(number: u8) -> Prefix {
    ipnet::Ipv4Net::new(Ipv4Addr::new(203, 0, number, 0), 24).unwrap().prefix()
}

fn neighbour(peer: u8) -> Context {
    Context::new(if peer == 1 { Neighbour::Confederation } else { Neighbour::External })
}

/// What a peer announces.
fn update(peer: u8, number: u8, as_path: AsPath, communities: &[u32]) -> Vec<u8> {
    let attributes = Attributes {
        as_path,
        next_hop: Some(NextHop::V4(address(peer))),
        local_pref: (peer == 1).then_some(70),
        communities: communities.into(),
        ..Attributes::default()
    };
    let encoder = UpdateEncoder::new(&attributes, Family::IPV4_UNICAST, &neighbour(peer)).unwrap();
    let mut bytes = Vec::new();
    encoder.all([(0, net(number))], &mut bytes);
    bytes
}

/// The prefixes that a peer is told, with their paths, preferences and next hops.
fn told(peer: u8, out: &[Output]) -> Vec<(Prefix, String, Option<u32>, Option<NextHop>)> {
    let mut all = Vec::new();
    // As a router there reads it.
    let context = neighbour(peer);
    for (_, body) in messages(peer, out).iter().filter(|(kind, _)| *kind == MessageType::Update) {
        let update = Update::new_checked(body, &context).unwrap();
        let judgement = update.judge(&context);
        assert_eq!(judgement.disposition, Disposition::Use);
        let attributes = judgement.attributes;
        for reach in update.reach() {
            let path = attributes.as_path.to_string();
            let of = |prefix| (prefix, path.clone(), attributes.local_pref, attributes.next_hop);
            all.extend(reach.nlri.iter().map(|(_, prefix)| of(prefix)));
        }
    }
    all
}

fn world() -> World {
    let mut world = World::started("");
    world.born(false);
    world.configure_as(config::read("t", TEXT).unwrap());
    world
}

fn open(number: u8) -> Open {
    Open::new(65000 + u32::from(number), HOLD, address(number))
}

#[test]
fn each_side_sees_this_system_by_its_own_number() {
    let mut world = world();
    for (number, seen) in [(1, 65000), (2, 100)] {
        let out = world.connect_as(number, open(number), &[]);
        let opens: Vec<_> = messages(number, &out)
            .into_iter()
            .filter(|(kind, _)| *kind == MessageType::Open)
            .map(|(_, body)| Open::parse(&body).unwrap().autonomous_system())
            .collect();
        assert_eq!(opens, [seen]);
    }
}

#[test]
fn what_crosses_the_border_leaves_the_members_behind() {
    let mut world = world();
    world.connect_as(1, open(1), &[]);
    world.connect_as(2, open(2), &[]);
    let inside = AsPath::from_sequence(&[7]).prepend_confederation(65001);
    let out = world.says(1, &update(1, 1, inside.clone(), &[]));
    // This router is the next hop outside.
    let here = Some(NextHop::V4(Ipv4Addr::new(10, 0, 2, 1)));
    assert_eq!(told(2, &out), [(net(1), "100 7".to_owned(), None, here)]);
    let out = world.says(2, &update(2, 2, AsPath::from_sequence(&[65002, 8]), &[]));
    let there = Some(NextHop::V4(address(2)));
    assert_eq!(told(1, &out), [(net(2), "(65000) 65002 8".to_owned(), Some(100), there)]);
    // RFC 1997: to members, and not outside; RFC 5065 §5: what has not come from a member is no path of one.
    let out = world.says(1, &update(1, 3, inside.clone(), &[NO_EXPORT]));
    assert_eq!(told(2, &out), []);
    for (community, hears) in [(NO_EXPORT, true), (NO_EXPORT_SUBCONFED, false)] {
        let out = world.says(2, &update(2, 4, AsPath::from_sequence(&[65002]), &[community]));
        assert_eq!(!told(1, &out).is_empty(), hears, "{community:x}");
    }
    let out = world.says(1, &update(1, 5, AsPath::from_sequence(&[65001, 7]), &[]));
    assert_eq!(told(2, &out), []);
    // Nor is one that is another member's in front.
    let other = AsPath::from_sequence(&[7]).prepend_confederation(65009);
    assert_eq!(told(2, &world.says(1, &update(1, 8, other, &[]))), []);
    // RFC 5065 §4: by the number of this member inside, by that of the confederation outside.
    let loops = inside.prepend_confederation(65000).prepend_confederation(65001);
    assert_eq!(told(2, &world.says(1, &update(1, 6, loops, &[]))), []);
    let loops = AsPath::from_sequence(&[65002, 100, 8]);
    assert_eq!(told(1, &world.says(2, &update(2, 7, loops, &[]))), []);
}

/// RFC 4456 §8: identifiers of routers and clusters are those of one system, and the same number may be a router of this member.
#[test]
fn where_another_member_has_reflected_a_route_nobody_hears() {
    let mut world = world();
    let text = TEXT.replace("peer 10.0.2.2 { as 65002;", "peer 10.0.2.2 { as 65000;");
    world.configure_as(config::read("t", &text).unwrap());
    world.connect_as(1, open(1), &[]);
    world.connect_as(2, Open::new(65000, HOLD, address(2)), &[]);
    let mut attributes = Attributes {
        as_path: AsPath::from_sequence(&[7]).prepend_confederation(65001),
        next_hop: Some(NextHop::V4(address(1))),
        local_pref: Some(100),
        ..Attributes::default()
    };
    attributes.change_rare(|rare| {
        rare.originator_id = Some(Ipv4Addr::new(192, 0, 2, 1));
        rare.cluster_list = [Ipv4Addr::new(192, 0, 2, 1)].into();
    });
    let encoder = UpdateEncoder::new(&attributes, Family::IPV4_UNICAST, &neighbour(1)).unwrap();
    let mut bytes = Vec::new();
    encoder.all([(0, net(1))], &mut bytes);
    // It is taken, though the identifier is this router's.
    let out = world.says(1, &bytes);
    let (_, body) = messages(2, &out).into_iter().find(|one| one.0 == MessageType::Update).unwrap();
    let context = Context::new(Neighbour::Internal);
    let heard = Update::new_checked(&body, &context).unwrap().judge(&context).attributes;
    assert_eq!(heard.as_path.to_string(), "(65001) 7");
    assert_eq!((heard.rare().originator_id, heard.rare().cluster_list.len()), (None, 0));
}

/// RFC 5065 §5.3: what another member says comes behind what is said outside, all else being equal, though nobody there is
/// counted.
#[test]
fn a_way_out_of_here_is_better_than_one_through_another_member() {
    let mut world = world();
    world.connect_as(1, open(1), &[]);
    world.connect_as(2, open(2), &[]);
    // As which protocol the RIB is told.
    let best = |world: &World| {
        let told = world.rib.told.iter().map(|(_, _, origin)| *origin as usize - 1);
        told.map(|origin| world.rib.origins[origin].0.clone()).collect::<Vec<_>>()
    };
    let with =
        |number| update(1, 1, AsPath::from_sequence(&[number]).prepend_confederation(65001), &[]);
    let preferred = |bytes: Vec<u8>| {
        // With the preference that all have who say nothing.
        let at = bytes.windows(7).position(|seven| seven == [0x40, 5, 4, 0, 0, 0, 70]).unwrap();
        let mut bytes = bytes;
        bytes[at + 6] = 100;
        bytes
    };
    world.says(1, &preferred(with(7)));
    assert_eq!(best(&world), ["ibgp"]);
    world.says(2, &update(2, 1, AsPath::from_sequence(&[65002]), &[]));
    assert_eq!(best(&world), ["ebgp"]);
    // A longer path loses, and the member in it is no part of that.
    world.says(2, &update(2, 1, AsPath::from_sequence(&[65002, 9]), &[]));
    assert_eq!(best(&world), ["ibgp"]);
}
