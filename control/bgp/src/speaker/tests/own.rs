//! Networks of this router's own: told while the RIB has them, whatever comes and goes meanwhile.

use super::rib::used;
use super::*;
use crate::wire::Origin;

const NET: &str = "203.0.113.0/24";

fn prefix() -> Prefix {
    NET.parse::<ipnet::Ipv4Net>().unwrap().prefix()
}

impl World {
    /// Two peers exchange routes, with this besides.
    fn with_networks(more: &str) -> Self {
        let mut world = Self::started(more);
        world.born(false);
        for number in [1, 2] {
            world.connect(number);
        }
        world
    }

    /// The RIB uses another route, or none any more.
    fn uses(&mut self, net: &str, route: Option<(&str, u32)>) -> Vec<Output> {
        let route = route.map(|(protocol, distance)| used(net, protocol, distance));
        let told = self.rib.uses(net, route);
        assert!(!told.is_empty(), "BGP asks what it uses");
        told.into_iter().flat_map(|told| self.input(told)).collect()
    }

    /// The protocol of the best path to the network, if it is used.
    fn best(&self) -> Option<String> {
        let number = self.bgp.routes.table.number(weft_routing::ip::Version::V4, &prefix())?;
        let best = self.bgp.routes.table.best(weft_routing::ip::Version::V4, number)?;
        Some(self.bgp.routes.source(best.origin).protocol().0.to_owned())
    }
}

/// Whether a peer is told that the network is gone.
fn is_withdrawn(number: u8, out: &[Output]) -> bool {
    let context = Context::new(Neighbour::External);
    let updates = messages(number, out).into_iter().filter(|one| one.0 == MessageType::Update);
    updates.into_iter().any(|(_, body)| {
        let update = Update::new_checked(&body, &context).unwrap();
        update.withdrawn().any(|(_, nlri)| nlri.iter().any(|(_, gone)| gone == prefix()))
    })
}

#[test]
fn peers_are_told_while_the_rib_uses_a_route() {
    for (statement, origin) in [
        (format!("network {NET};"), Origin::Igp),
        ("redistribute static;".to_owned(), Origin::Incomplete),
        (format!("network {NET}; redistribute static;"), Origin::Igp),
    ] {
        let mut world = World::with_networks(&statement);
        let out = world.uses(NET, Some(("static", 1)));
        for number in [1, 2] {
            let told = told(number, &out).unwrap();
            assert_eq!((told.origin, told.med), (origin, Some(7)), "{statement}");
            assert_eq!(told.as_path, AsPath::from_sequence(&[65000]));
            let here = Ipv4Addr::new(10, 0, number, 1);
            assert_eq!(told.next_hop, Some(NextHop::V4(here)));
        }
        assert_eq!(world.rib.changes, 0, "the RIB knows it");
        // Whose it is makes no difference, if that is one of them; and if nothing is different nothing is said.
        let out = world.uses(NET, Some(("static", 1)));
        assert_eq!((told(1, &out), sent(1, &out)), (None, vec![]));
        let out = world.uses(NET, None);
        assert!(is_withdrawn(1, &out) && is_withdrawn(2, &out), "{statement}");
        assert_eq!(world.best(), None);
    }
}

/// RFC 4271 §5.1.6, §5.1.7: who has left out the systems that its parts have come through.
#[test]
fn an_aggregate_says_who_has_made_it() {
    let text = |confederation: &str| format!("{confederation} network {NET};");
    for (statement, system) in [
        (text(""), 65000),
        (text("confederation { id 100; }"), 100),
        ("redistribute aggregate;".to_owned(), 65000),
    ] {
        let mut world = World::with_networks(&statement);
        let out = world.uses(NET, Some(("aggregate", 5)));
        let aggregate = told(1, &out).unwrap();
        let by = aggregate.rare().aggregator.unwrap();
        assert_eq!((by.autonomous_system, by.identifier), (system, Ipv4Addr::new(192, 0, 2, 1)));
        assert!(aggregate.atomic_aggregate);
        assert_eq!(aggregate.as_path, AsPath::from_sequence(&[system]));
        let out = world.uses(NET, None);
        assert!(is_withdrawn(1, &out));
    }
    // One that was written down is none.
    let mut world = World::with_networks(&text(""));
    let network = told(1, &world.uses(NET, Some(("static", 1)))).unwrap();
    assert_eq!((network.atomic_aggregate, network.rare().aggregator), (false, None));
}

#[test]
fn a_network_that_is_always_there_needs_no_route_and_others_are_not_told() {
    let mut world = World::with_networks(&format!("network {NET} {{ always on; }}"));
    let asked = world.rib.asked.iter().map(|(one, _)| (one.protocols.len(), one.nets.len()));
    assert_eq!(asked.collect::<Vec<_>>(), [(0, 1)], "and for nothing else");
    assert_eq!(world.best().as_deref(), Some("network"));
    let out = world.uses(NET, Some(("rip", 120)));
    assert_eq!(told(1, &out).unwrap().med, Some(7));
    assert_eq!(world.best().as_deref(), Some("rip"));
    let out = world.uses(NET, None);
    assert!(!is_withdrawn(1, &out));
    assert_eq!(told(1, &out).unwrap().med, None);
    let out = world.configure(["", ""]);
    assert!(is_withdrawn(1, &out) && world.best().is_none());
}

#[test]
fn between_a_peers_route_and_an_own_one_distance_decides_in_whatever_order_they_come() {
    for own_first in [true, false] {
        for (distance, wins) in [(1, true), (20, true), (120, false)] {
            let mut world = World::with_networks("redistribute other;");
            if own_first {
                world.uses(NET, Some(("other", distance)));
            }
            world.announces(1, &prefix());
            if !own_first {
                world.uses(NET, Some(("other", distance)));
            }
            let best = if wins { "other" } else { "ebgp" };
            assert_eq!(world.best().as_deref(), Some(best), "{distance} {own_first}");
            assert_eq!(world.rib.routes.is_empty(), wins, "{distance} {own_first}");
            // The configuration of the RIB can change it.
            world.uses(NET, Some(("other", if wins { 254 } else { 0 })));
            assert_eq!(world.rib.routes.is_empty(), !wins);
        }
    }
}

#[test]
fn a_network_goes_from_one_protocol_to_another_without_being_missed() {
    let mut world = World::with_networks("redistribute static; redistribute rip;");
    world.uses(NET, Some(("static", 1)));
    let out = world.uses(NET, Some(("rip", 120)));
    assert!(!is_withdrawn(1, &out), "to peers it is the same");
    assert_eq!(world.best().as_deref(), Some("rip"));
    let candidates = world.bgp.routes.table.routes_of(weft_routing::ip::Version::V4, OriginId(2));
    assert_eq!(candidates, 0, "of the first one nothing is left");
}

#[test]
fn policies_see_whose_it_is_and_change_without_a_reset() {
    let policy = |tag: u32, community: u32| {
        format!(
            "policy {{
                policy-statement own {{
                    from {{ protocol static; tag {tag}; metric 7; prefix {NET} exact; neighbor absent; }}
                    then {{ community add 65000:{community}; med add 1; accept; }}
                }}
                policy-statement out {{
                    from {{ protocol static; peer-type absent; }}
                    then {{ local-pref 7; accept; }}
                }}
            }}
            bgp {{ as 65000; router-id 192.0.2.1; redistribute static {{ policy own; }}
                peer 10.0.1.2 {{ as 65001; passive on; hold-time {HOLD}s; import all; export out; }}
                peer 10.0.2.2 {{ as 65002; passive on; hold-time {HOLD}s; import all; export all; }} }}"
        )
    };
    let config = |tag, community| config::read("t", &policy(tag, community)).unwrap();
    let mut world = World::with_networks("");
    world.configure_as(config(9, 1));
    let out = world.uses(NET, Some(("static", 1)));
    for number in [1, 2] {
        let told = told(number, &out).unwrap();
        assert_eq!((&*told.communities, told.med), (&[65000 << 16 | 1][..], Some(8)));
    }
    let out = world.configure_as(config(9, 2));
    assert_eq!(*told(1, &out).unwrap().communities, [65000 << 16 | 2]);
    assert!(!sent(1, &out).contains(&MessageType::Notification));
    let out = world.configure_as(config(8, 2));
    assert!(is_withdrawn(1, &out) && is_withdrawn(2, &out), "it has another tag");
    let request = interface::Show { prefix: Some(NET.to_owned()), ..show("routes") };
    let shown = world.bgp.show(world.now, &request);
    let path = &shown.unwrap()[0]["paths"][0];
    assert_eq!((&path["protocol"], &path["accepted"]), (&"static".into(), &false.into()));
    assert!(path["peer"].is_null() && path["next-hop"].is_null());
}

#[test]
fn a_rib_that_restarts_changes_nothing_until_it_knows_everything() {
    let mut world = World::with_networks("redistribute static;");
    world.uses(NET, Some(("static", 1)));
    world.input(Input::Died { class: RIB.to_owned(), instance: RIB.to_owned() });
    world.rib = rib::Rib { is_young: true, ..rib::Rib::default() };
    let out = world.born(false);
    assert!(!is_withdrawn(1, &out));
    assert_eq!(world.best().as_deref(), Some("static"));
    world.rib.is_young = false;
    let out = world.uses("198.51.100.0/24", Some(("static", 1)));
    assert!(is_withdrawn(1, &out), "nobody has told it again");
}

#[test]
fn after_its_own_restart_peers_are_told_nothing_before_the_own_networks_are_known() {
    for statement in ["redistribute static;".to_owned(), format!("network {NET};")] {
        after_a_restart(&statement);
    }
}

fn after_a_restart(statement: &str) {
    let mut world = World::started(statement);
    world.rib.is_young = true;
    world.born(true);
    let end = crate::wire::end_of_rib(Family::IPV4_UNICAST);
    for number in [1, 2] {
        let capability = crate::wire::GracefulRestart {
            restarted: false,
            notification: true,
            time: 60,
            families: vec![(Family::IPV4_UNICAST, true)],
        };
        world.connect_with(number, &[Capability::GracefulRestart(capability)]);
    }
    let mut out = world.says(1, &end);
    out.extend(world.says(2, &end));
    assert!(!sent(1, &out).contains(&MessageType::Update), "no End-of-RIB either");
    let needs_more = statement.starts_with("redistribute");
    world.rib.is_young = !needs_more;
    let out = world.uses(NET, Some(("static", 1)));
    assert!(told(1, &out).is_some());
}

/// What the first peer announces is tagged by this policy, and the second is told what that one accepts.
fn tagged(import: &str, export: &str) -> Option<Config> {
    let text = format!(
        "policy {{
            policy-statement mark {{ {import} then {{ accept; }} }}
            policy-statement marked {{ from {{ tag {export}; }} then {{ accept; }} }}
        }}
        bgp {{ as 65000; router-id 192.0.2.1; redistribute static;
            peer 10.0.1.2 {{ as 65001; passive on; hold-time 9s; import mark; export none; }}
            peer 10.0.2.2 {{ as 65002; passive on; hold-time 9s; import none; export marked; }} }}"
    );
    config::read("t", &text).unwrap()
}

#[test]
fn tags_go_to_the_rib_and_to_policies_but_to_no_peer() {
    let mut world = World::started("");
    world.born(false);
    let some = format!("term some {{ from {{ prefix {NET}; }} then {{ tag 7; accept; }} }}");
    world.configure_as(tagged(&some, "7"));
    [1, 2].into_iter().for_each(|number| drop(world.connect(number)));
    let out = world.announces(1, &prefix());
    assert_eq!(told(2, &out).unwrap().rare().tag, 0);
    let other: ipnet::Ipv4Net = "198.51.100.0/24".parse().unwrap();
    assert_eq!(told(2, &world.announces(1, &other.prefix())), None, "it has no tag");
    assert_eq!(world.rib.tags, [(NET.parse().unwrap(), 7)].into());
    assert_eq!(world.rib.routes.len(), 2);
    // The RIB hears of another policy at once; who is told what has the tag, of another tag.
    let out =
        world.configure_as(tagged("term all { from { tag 0; } then { tag 8; accept; } }", "7"));
    assert!(is_withdrawn(2, &out));
    let nets = [NET.parse().unwrap(), ipnet::IpNet::from(other)];
    assert_eq!(world.rib.tags, nets.map(|net| (net, 8)).into());
    // Without a policy that says so nothing is tagged.
    let changes = world.rib.changes;
    let out = world.configure_as(tagged("", "0"));
    assert_eq!((world.rib.tags.len(), world.rib.changes), (0, changes + 2));
    assert!(told(2, &out).is_some());
}

#[test]
fn own_networks_have_the_tags_of_their_routes() {
    let mut world = World::started("");
    world.born(false);
    world.configure_as(tagged("", "9"));
    [1, 2].into_iter().for_each(|number| drop(world.connect(number)));
    // All routes of this RIB have the tag 9.
    assert!(told(2, &world.uses(NET, Some(("static", 1)))).is_some());
    assert!(is_withdrawn(2, &world.configure_as(tagged("", "7"))));
}
