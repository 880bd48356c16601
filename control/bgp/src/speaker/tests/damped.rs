//! Routes that come and go between two peers, in virtual time.

use ipnet::Ipv4Net;
use serde_json::Value;

use super::*;
use crate::policy::Filter;
use crate::wire::withdraw;

const DAMPING: &str = "damping;";

fn net() -> Ipv4Net {
    Ipv4Net::new([203, 0, 113, 0].into(), 24).unwrap()
}

/// Both peers are there, with this configuration; the first has announced the network.
fn two(config: &str) -> World {
    let mut world = World::started(config);
    world.born(false);
    world.connect(1);
    world.connect(2);
    world.announces(1, &net().prefix());
    world
}

fn withdraws(world: &mut World, number: u8) -> Vec<Output> {
    let mut bytes = Vec::new();
    let context = Context::new(Neighbour::External);
    withdraw(Family::IPV4_UNICAST, &context, [(0, net().prefix())], &mut bytes);
    world.says(number, &bytes)
}

/// It goes and comes so many times.
fn flap(world: &mut World, times: usize) {
    for _ in 0..times {
        withdraws(world, 1);
        world.announces(1, &net().prefix());
    }
}

/// Whether the RIB has the route.
fn is_used(world: &World) -> bool {
    world.rib.routes.contains(&net().into())
}

/// Everything that happens until then, with both peers there.
fn pass(world: &mut World, until: Instant) -> Vec<Output> {
    let mut out = Vec::new();
    while let Some(deadline) = world.bgp.deadline().filter(|deadline| *deadline <= until) {
        world.now = deadline;
        out.extend(world.happens(Event::Tick));
        [1, 2].into_iter().for_each(|number| drop(world.says(number, &keepalive())));
    }
    world.now = until;
    out
}

/// What operators see of the path, and of the peer.
fn shown(world: &World) -> (Value, Value) {
    let shown = |request| world.bgp.show(world.now, &request).unwrap();
    let prefix = Some(net().to_string());
    let routes = shown(interface::Show { prefix, ..show("routes") });
    (routes[0]["paths"][0]["damping"].clone(), shown(show("peers"))[0]["damping"].clone())
}

fn forget(world: &mut World) -> Result<Vec<Output>, String> {
    let soft = Some("damping".to_owned());
    let mut out = Vec::new();
    let request = interface::Clear { soft, ..clear(1) };
    world.bgp.clear(world.now, &request, &mut out).map_err(|error| error.to_string())?;
    world.answered(&mut out);
    out.extend(world.happens(Event::Slice));
    Ok(out)
}

#[test]
fn a_route_that_comes_and_goes_is_used_again_when_it_has_been_still() {
    let mut world = two(DAMPING);
    flap(&mut world, 6);
    assert!(is_used(&world));
    assert_eq!(shown(&world).0["damped"], false);
    flap(&mut world, 1);
    assert!(!is_used(&world));
    assert_eq!(told(2, &withdraws(&mut world, 1)), None);
    assert_eq!(told(2, &world.announces(1, &net().prefix())), None);
    let (path, peer) = shown(&world);
    assert_eq!((path["penalty"].as_u64(), path["damped"].as_bool()), (Some(8000), Some(true)));
    assert_eq!((peer["damped"].as_u64(), peer["known"].as_u64()), (Some(1), Some(1)));
    // 900 s * log2(8000 / 750) = 3073.6 s.
    assert_eq!(path["seconds"].as_u64(), Some(3074));
    pass(&mut world, Instant::ZERO + Duration::from_secs(3074));
    assert!(!is_used(&world));
    let out = pass(&mut world, Instant::ZERO + Duration::from_secs(3075));
    assert!(is_used(&world) && told(2, &out).is_some());
    assert_eq!(shown(&world).1["damped"], 0);
}

#[test]
fn without_a_statement_and_inside_the_system_nothing_is_damped() {
    for (config, of) in [("", ""), (DAMPING, "damping off;")] {
        let mut world = World::started(config);
        world.configure_as(configured(config, [of, ""]));
        world.born(false);
        world.connect(1);
        world.announces(1, &net().prefix());
        flap(&mut world, 20);
        assert!(is_used(&world), "{config} {of}");
        assert_eq!(shown(&world), (Value::Null, Value::Null));
        assert!(forget(&mut world).unwrap_err().contains("are not damped"));
    }
}

#[test]
fn the_loss_of_a_session_is_no_change_and_what_is_known_outlives_it() {
    let mut world = two(DAMPING);
    flap(&mut world, 6);
    for _ in 0..10 {
        world.happens(Event::Closed { channel: ChannelId(1) });
        let soon = world.now + Duration::from_secs(2);
        pass(&mut world, soon);
        assert!(!is_used(&world));
        world.connect(1);
        world.announces(1, &net().prefix());
        assert!(is_used(&world));
    }
    flap(&mut world, 2);
    assert!(!is_used(&world));
    world.happens(Event::Closed { channel: ChannelId(1) });
    world.connect(1);
    world.announces(1, &net().prefix());
    assert!(!is_used(&world), "it is damped still");
}

#[test]
fn a_change_of_policies_uses_no_damped_route() {
    let mut world = two(DAMPING);
    flap(&mut world, 7);
    let mut other = configured(DAMPING, ["", ""]).unwrap();
    other.peers.get_mut(&IpAddr::from(address(1))).unwrap().import = Filter::None;
    world.configure_as(Some(other));
    world.configure_as(configured(DAMPING, ["", ""]));
    assert!(!is_used(&world) && shown(&world).1["damped"] == 1);
    assert!(world.bgp.peers[&IpAddr::from(address(1))].up.is_some());
}

#[test]
fn an_operator_forgets_what_is_known_or_wants_no_damping() {
    let mut world = two(DAMPING);
    flap(&mut world, 7);
    assert!(told(2, &forget(&mut world).unwrap()).is_some());
    assert!(is_used(&world));
    assert_eq!(shown(&world).1["known"], 0);
    flap(&mut world, 7);
    assert!(!is_used(&world));
    // The session goes on.
    let out = world.configure_as(configured("", ["", ""]));
    assert!(told(2, &out).is_some() && is_used(&world));
    world.configure_as(configured("damping { suppress 999; reuse 10; }", ["", ""]));
    assert!(is_used(&world));
    flap(&mut world, 1);
    assert!(!is_used(&world));
    assert_eq!(world.bgp.peers[&IpAddr::from(address(1))].tally.sessions, 1);
}

#[test]
fn a_peer_that_is_gone_leaves_nothing_to_be_done() {
    let mut world = two(DAMPING);
    flap(&mut world, 7);
    world.configure_as(configured(DAMPING, ["-", ""]));
    assert_eq!(world.bgp.routes.damping_deadline(), None);
    assert!(!world.bgp.has_background_work());
}
