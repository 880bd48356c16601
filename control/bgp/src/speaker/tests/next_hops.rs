//! Where routes may lead.

use ipnet::{IpNet, Ipv4Net};

use super::*;
use crate::wire::Families;

fn net(number: u8) -> Ipv4Net {
    Ipv4Net::new([203, 0, number, 0].into(), 24).unwrap()
}

fn is_used(world: &World, number: u8) -> bool {
    world.rib.routes.contains(&IpNet::V4(net(number)))
}

/// RFC 4271 §6.3.
#[test]
fn a_neighbour_announces_what_is_on_a_link() {
    let far = Ipv4Addr::new(198, 51, 100, 9);
    for (words, expected) in
        [("", false), ("ttl-security 1;", false), ("multihop 3;", true), ("ttl-security 3;", true)]
    {
        let mut world = World::started("");
        world.rib.far.insert(far.into());
        world.born(false);
        world.configure([words, ""]);
        world.connect(1);
        world.announces(1, &net(1).prefix());
        world.announces_by(1, &net(2).prefix(), far);
        world.announces_by(1, &net(3).prefix(), address(2));
        assert_eq!(
            [1, 2, 3].map(|number| is_used(&world, number)),
            [true, expected, true],
            "{words}"
        );
    }
}

/// RFC 4271 §5.1.3.
#[test]
fn a_route_that_leads_to_this_router_is_not_used() {
    let mut world = World::new();
    let own = Ipv4Addr::new(10, 0, 2, 1);
    world.announces_by(1, &net(1).prefix(), own);
    assert!(is_used(&world, 1), "nobody has said that the address is here");
    let mut out = world.happens(link(2, true));
    assert!(!is_used(&world, 1));
    // Another peer's way is used and told instead.
    out.extend(world.announces(2, &net(1).prefix()));
    assert!(is_used(&world, 1));
    assert_eq!(told(1, &out).unwrap().as_path, AsPath::from_sequence(&[65000, 65002]));
    // The address need not carry packets.
    world.happens(link(1, true));
    world.happens(link(2, false));
    world.announces_by(1, &net(2).prefix(), own);
    assert!(!is_used(&world, 2));
}

/// RFC 4760 §3: whatever version of IP a session is of, a next hop is of its family's, unless RFC 8950 was agreed on.
#[test]
fn of_a_family_of_the_other_version_the_address_on_the_link_is_told() {
    let mut world = World::started("");
    world.born(false);
    world.configure(["family ipv4-unicast ipv6-unicast;"; 2]);
    world.happens(link(1, true));
    for number in [1, 2] {
        world.connect_with(number, &Family::ALL.map(Capability::Multiprotocol));
    }
    let mut context = Context::new(Neighbour::External);
    context.families = Families::from_iter(Family::ALL);
    let attributes = Attributes {
        as_path: AsPath::from_sequence(&[65002]),
        next_hop: Some(NextHop::V6 { global: "2001:db8:2::2".parse().unwrap(), link_local: None }),
        ..Attributes::default()
    };
    let six = ipnet::Ipv6Net::new([0x2001, 0xdb8, 9, 0, 0, 0, 0, 0].into(), 48).unwrap();
    let mut bytes = Vec::new();
    let encoder = UpdateEncoder::new(&attributes, Family::IPV6_UNICAST, &context).unwrap();
    encoder.all([(0, six.prefix())], &mut bytes);
    let out = world.says(2, &bytes);
    let told = |out: &[Output]| -> Vec<NextHop> {
        let bodies = messages(1, out).into_iter().filter(|one| one.0 == MessageType::Update);
        let hop = |(_, body): (MessageType, Vec<u8>)| {
            Update::new_checked(&body, &context).unwrap().reach().next()?.next_hop
        };
        bodies.filter_map(hop).collect()
    };
    let here = |text: &str| NextHop::V6 { global: text.parse().unwrap(), link_local: None };
    assert_eq!(told(&out), [here("2001:db8:1::1")]);
    // It is told again when that is another one.
    let Event::Interface { change: InterfaceChange::Changed(mut interface) } = link(1, true) else {
        panic!()
    };
    interface.addresses.retain(|one| one.ip.is_ipv4());
    let ip = "2001:db8:77::1".parse().unwrap();
    interface.addresses.insert(InterfaceAddress { ip, prefix_length: 64 });
    let change = InterfaceChange::Changed(interface);
    assert_eq!(told(&world.happens(Event::Interface { change })), [here("2001:db8:77::1")]);
}

#[test]
fn people_are_told_why_a_path_is_not_used() {
    let (far, nowhere) = (Ipv4Addr::new(198, 51, 100, 9), Ipv4Addr::new(198, 51, 100, 10));
    let mut world = World::started("");
    world.rib.far.insert(far.into());
    world.rib.unreached.insert(nowhere.into());
    world.born(false);
    world.configure(["", "import none;"]);
    world.happens(link(1, true));
    world.connect(1);
    world.connect(2);
    world.announces(1, &net(1).prefix());
    world.announces(2, &net(2).prefix());
    world.announces_by(1, &net(3).prefix(), far);
    world.announces_by(1, &net(4).prefix(), nowhere);
    world.announces_by(1, &net(5).prefix(), Ipv4Addr::new(10, 0, 1, 1));
    let why = |number: u8| {
        let prefix = Some(net(number).to_string());
        let request = interface::Show { prefix, ..show("routes") };
        world.bgp.show(world.now, &request).unwrap()[0]["paths"][0]["unused"].clone()
    };
    assert_eq!(why(1), serde_json::Value::Null);
    assert_eq!(why(2), "`import` of the peer takes nothing");
    assert_eq!(why(3), "198.51.100.9 is not on a link of this router, as its peer is");
    assert_eq!(why(4), "198.51.100.10 is not reached");
    assert_eq!(why(5), "10.0.1.1 is this router itself");
}
