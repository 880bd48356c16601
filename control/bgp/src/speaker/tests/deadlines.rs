//! When something is to be done for which peer.

use super::*;

/// Whom something is to be done for by then, as each of them says.
fn told(world: &World, until: Instant) -> Vec<IpAddr> {
    let own = world.bgp.peers.values().filter_map(|peer| Some((peer.deadline()?, peer.address)));
    let mut due: Vec<_> = own.filter(|(deadline, _)| *deadline <= until).collect();
    due.sort();
    due.into_iter().map(|(_, address)| address).collect()
}

fn due_by(world: &World, seconds: u64) -> Vec<IpAddr> {
    let until = world.now + Duration::from_secs(seconds);
    let due = world.bgp.peers.due(until);
    assert_eq!(due, told(world, until));
    due
}

#[test]
fn it_is_known_for_whom_something_is_to_be_done() {
    let mut world = World::new();
    let [one, other] = [1, 2].map(|number| IpAddr::from(address(number)));
    // Keepalives go three times in the hold time.
    assert_eq!((due_by(&world, 0), due_by(&world, u64::from(HOLD)).len()), (vec![], 2));
    let next = world.bgp.peers.deadline().unwrap();
    assert!(next > world.now && next <= world.now + Duration::from_secs(u64::from(HOLD) / 3));
    // What is done is done, and comes again later.
    world.now = next;
    let due = due_by(&world, 0);
    assert!(!due.is_empty());
    world.happens(Event::Tick);
    assert!(due_by(&world, 0).is_empty());
    assert!(world.bgp.peers.deadline().unwrap() > next);
    // A connection is lost: the peer is asked again, but not by the other one's time.
    world.happens(Event::Closed { channel: ChannelId(1) });
    assert!(due_by(&world, 600).contains(&other));
    // Whoever is no peer any more has no time.
    world.configure(["", "-"]);
    assert!(!due_by(&world, 600).contains(&other));
    world.configure(["-", "-"]);
    assert_eq!((due_by(&world, 600), world.bgp.peers.deadline()), (vec![], None));
    world.configure(["", "-"]);
    assert!(!due_by(&world, 600).contains(&other));
    assert!(world.bgp.peers.contains_key(&one));
}
