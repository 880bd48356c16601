//! Routes for multicast: the same prefix leads one way for packets and another for checks of where multicast comes from.

use super::*;
use crate::wire::{Families, withdraw};

const MULTICAST: Family = Family::IPV4_MULTICAST;

/// Two peers, of which each exchanges these families.
fn world(of: [&str; 2]) -> World {
    let mut world = World::started("");
    world.born(false);
    world.configure(of);
    for number in [1, 2] {
        world.connect_with(number, &Family::ALL.map(Capability::Multiprotocol));
    }
    world
}

fn prefix() -> Prefix {
    ipnet::Ipv4Net::new([203, 0, 113, 0].into(), 24).unwrap().prefix()
}

/// What a peer is told of multicast: which prefixes it is told, or that they are gone.
fn heard(number: u8, out: &[Output]) -> Vec<(Prefix, bool)> {
    let mut context = Context::new(Neighbour::External);
    context.families = Families::from_iter(Family::ALL);
    let mut all = Vec::new();
    for (kind, body) in messages(number, out) {
        if kind != MessageType::Update {
            continue;
        }
        let update = Update::new_checked(&body, &context).unwrap();
        for reach in update.reach().filter(|reach| reach.family == MULTICAST) {
            all.extend(reach.nlri.iter().map(|(_, prefix)| (prefix, true)));
        }
        for (_, nlri) in update.withdrawn().filter(|(family, _)| *family == MULTICAST) {
            all.extend(nlri.iter().map(|(_, prefix)| (prefix, false)));
        }
    }
    all
}

/// What a peer says of the prefix for multicast.
fn says(world: &mut World, number: u8, announces: bool) -> Vec<Output> {
    let context = Context::new(Neighbour::External);
    let mut bytes = Vec::new();
    match announces {
        true => {
            let attributes = Attributes {
                as_path: AsPath::from_sequence(&[65000 + u32::from(number)]),
                next_hop: Some(NextHop::V4(address(number))),
                ..Attributes::default()
            };
            let encoder = UpdateEncoder::new(&attributes, MULTICAST, &context).unwrap();
            encoder.all([(0, prefix())], &mut bytes);
        }
        false => {
            withdraw(MULTICAST, &context, [(0, prefix())], &mut bytes);
        }
    }
    world.says(number, &bytes)
}

#[test]
fn routes_for_multicast_go_their_own_way_to_peers_and_to_the_rib() {
    let both = "family ipv4-unicast ipv4-multicast;";
    let mut world = world([both, both]);
    world.announces(1, &prefix());
    assert_eq!((world.rib.routes.len(), world.rib.multicast.len()), (1, 0));
    let out = says(&mut world, 2, true);
    assert_eq!((heard(1, &out), heard(2, &out)), (vec![(prefix(), true)], vec![]));
    assert_eq!((world.rib.routes.len(), world.rib.multicast.len()), (1, 1));
    // What is gone for one is there for the other.
    let out = says(&mut world, 2, false);
    assert_eq!(heard(1, &out), [(prefix(), false)]);
    assert_eq!((world.rib.routes.len(), world.rib.multicast.len()), (1, 0));
    says(&mut world, 2, true);
    // What a peer has announced goes with its session, if it is not back at once.
    world.happens(Event::Closed { channel: ChannelId(2) });
    world.now += Duration::from_secs(1);
    world.happens(Event::Tick);
    assert_eq!((world.rib.routes.len(), world.rib.multicast.len()), (1, 0));
}

#[test]
fn a_policy_that_changes_is_asked_about_multicast_too() {
    let both = "family ipv4-unicast ipv4-multicast;";
    let mut world = world([both, both]);
    says(&mut world, 2, true);
    assert_eq!(world.rib.multicast.len(), 1);
    let policies = |import: &str| {
        let text = format!(
            "policy {{ policy-statement none-of-it {{ then {{ reject; }} }} }}
             bgp {{ as 65000; router-id 192.0.2.1;
               peer 10.0.1.2 {{ as 65001; passive on; hold-time 9s; import all; export all; {both} }}
               peer 10.0.2.2 {{ as 65002; passive on; hold-time 9s; import {import}; export all; {both} }} }}"
        );
        config::read("t", &text).unwrap()
    };
    let out = world.configure_as(policies("none-of-it"));
    assert_eq!((heard(1, &out), world.rib.multicast.len()), (vec![(prefix(), false)], 0));
    let out = world.configure_as(policies("all"));
    assert_eq!((heard(1, &out), world.rib.multicast.len()), (vec![(prefix(), true)], 1));
}

#[test]
fn who_exchanges_no_routes_for_multicast_hears_of_none() {
    let mut world = world(["", "family ipv4-unicast ipv4-multicast ipv6-multicast;"]);
    assert_eq!(heard(1, &says(&mut world, 2, true)), []);
    assert_eq!(world.rib.multicast.len(), 1);
    let shown = |multicast| {
        let prefix = Some("203.0.113.7".to_owned());
        let request = interface::Show { prefix, multicast, ..show("routes") };
        let shown = world.bgp.show(world.now, &request).unwrap();
        shown.as_array().unwrap().len()
    };
    assert_eq!((shown(None), shown(Some(true))), (0, 1));
}
