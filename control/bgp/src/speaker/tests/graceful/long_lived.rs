//! Routes that live long (RFC 9494), to the nanosecond.

use weft_routing::ip::Version;

use super::super::told as told_last;
use super::*;
use crate::numbers::cease;
use crate::numbers::community::{LLGR_STALE, NO_LLGR};
use crate::wire::LongLived;

/// For how long routes live behind [`TIME`].
const LONG: u32 = 1000;
const CONFIG: &str = "graceful-restart { long-lived ipv4-unicast; }";

/// What a peer says whose routes live long, and that keeps forwarding, or not.
fn lives(forwarding: bool) -> [Capability; 2] {
    let (family, stale_time) = (Family::IPV4_UNICAST, LONG);
    let long = Capability::LongLived(vec![LongLived { family, forwarding, stale_time }]);
    [graceful(true, forwarding, false), long]
}

/// What a peer says that only knows of it.
fn knows() -> [Capability; 2] {
    let (restarted, notification, families) = (false, false, Vec::new());
    let graceful = GracefulRestart { restarted, notification, time: TIME, families };
    [Capability::GracefulRestart(graceful), Capability::LongLived(Vec::new())]
}

/// Two peers: the routes of the first, which it has announced, live long, the second is as this says.
fn two(config: &str, second: &[Capability], nets: &[u8]) -> World {
    let mut world = World::started(config);
    world.born(false);
    world.connect_with(1, &lives(true));
    world.connect_with(2, second);
    for number in nets {
        world.announces(1, &net(*number).prefix());
    }
    world
}

fn announces_marked(world: &mut World, number: u8, net: Ipv4Net, communities: &[u32]) {
    let attributes = Attributes {
        as_path: AsPath::from_sequence(&[65000 + u32::from(number), 7]),
        next_hop: Some(NextHop::V4(address(number))),
        communities: communities.into(),
        ..Attributes::default()
    };
    let context = Context::new(Neighbour::External);
    let encoder = UpdateEncoder::new(&attributes, Family::IPV4_UNICAST, &context).unwrap();
    let mut bytes = Vec::new();
    encoder.all([(0, net.prefix())], &mut bytes);
    world.says(number, &bytes);
}

/// Everything that happens until then, with both peers there or only the second.
fn pass_both(world: &mut World, until: Instant) -> Vec<Output> {
    let mut out = Vec::new();
    while let Some(deadline) = world.bgp.deadline().filter(|deadline| *deadline <= until) {
        world.now = deadline;
        out.extend(world.happens(Event::Tick));
        [1, 2].into_iter().for_each(|number| drop(world.says(number, &keepalive())));
    }
    world.now = until;
    out
}

fn seconds(count: u32) -> Duration {
    Duration::from_secs(count.into())
}

/// From which of both peers the best route is.
fn best(world: &World, number: u8) -> Option<u8> {
    let table = &world.bgp.routes.table;
    let place = table.number(Version::V4, &net(number).prefix())?;
    let best = table.best(Version::V4, place)?;
    [1, 2]
        .into_iter()
        .find(|peer| world.bgp.peers[&IpAddr::from(address(*peer))].origin == best.origin)
}

#[test]
fn behind_the_restart_time_routes_live_long_for_those_who_know() {
    let mut world = two(CONFIG, &knows(), &[1, 2]);
    let changes = world.rib.changes;
    let begin = world.now + seconds(TIME.into());
    let mut out = lose(&mut world);
    out.extend(pass(&mut world, begin - NANOSECOND));
    assert_eq!(told(2, &out), (nets(&[]), nets(&[])));
    let out = pass(&mut world, begin);
    assert_eq!(told(2, &out), (nets(&[1, 2]), nets(&[])));
    assert_eq!(*told_last(2, &out).unwrap().communities, [LLGR_STALE]);
    let end = begin + seconds(LONG);
    assert_eq!(told(2, &pass(&mut world, end - NANOSECOND)), (nets(&[]), nets(&[])));
    assert_eq!(world.rib.routes.len(), 2);
    let out = pass(&mut world, end);
    assert_eq!(told(2, &out).1, nets(&[1, 2]));
    assert!(world.rib.routes.is_empty() && world.rib.changes > changes);
}

#[test]
fn who_does_not_know_is_told_that_they_are_gone() {
    let mut world = two(CONFIG, &[], &[1, 2]);
    let begin = world.now + seconds(TIME.into());
    lose(&mut world);
    let out = pass(&mut world, begin);
    assert_eq!(told(2, &out), (nets(&[]), nets(&[1, 2])));
    assert_eq!(world.rib.routes.len(), 2, "packets go there all the same");
    // When it is back and announces them, they are routes like others.
    world.connect_with(1, &lives(true));
    let out = world.announces(1, &net(1).prefix());
    assert_eq!(told(2, &out), (nets(&[1]), nets(&[])));
    assert!(told_last(2, &out).unwrap().communities.is_empty());
    world.says(1, &end_of_rib(Family::IPV4_UNICAST));
    assert_eq!(world.rib.routes, BTreeSet::from([IpNet::from(net(1))]));
    assert_eq!(world.bgp.peers[&IpAddr::from(address(1))].stale.until(), None);
}

#[test]
fn others_come_before_them_and_what_shall_not_live_long_goes() {
    let mut world = two(CONFIG, &knows(), &[1]);
    announces_marked(&mut world, 2, net(1), &[]);
    announces_marked(&mut world, 1, net(2), &[NO_LLGR]);
    assert_eq!((best(&world, 1), best(&world, 2)), (Some(1), Some(1)), "its path is shorter");
    let begin = world.now + seconds(TIME.into());
    lose(&mut world);
    pass(&mut world, begin - NANOSECOND);
    assert_eq!((best(&world, 1), best(&world, 2)), (Some(1), Some(1)));
    pass(&mut world, begin);
    assert_eq!((best(&world, 1), best(&world, 2)), (Some(2), None));
    // What comes with the mark is as little preferred.
    announces_marked(&mut world, 2, net(3), &[LLGR_STALE]);
    world.connect_with(1, &lives(true));
    announces_marked(&mut world, 1, net(3), &[]);
    announces_marked(&mut world, 1, net(1), &[LLGR_STALE]);
    assert_eq!((best(&world, 1), best(&world, 3)), (Some(2), Some(1)));
}

/// RFC 9494 §4.2: it is back before its routes are marked, of which there are more than can be marked at once.
#[test]
fn what_is_not_marked_yet_when_the_peer_is_back_is_marked_then() {
    let mut world = two(CONFIG, &knows(), &[]);
    let many = |from: u32, count: u32| {
        let net = |number: u32| Ipv4Net::new((number << 8).into(), 24).unwrap();
        (from..from + count).map(net).collect::<BTreeSet<_>>()
    };
    let announce = |world: &mut World, all: &BTreeSet<Ipv4Net>, communities: &[u32]| {
        all.iter().for_each(|net| announces_marked(world, 1, *net, communities));
    };
    let (all, not_long) = (many(0x10_0000, 1500), many(0x20_0000, 2));
    announce(&mut world, &all, &[]);
    announce(&mut world, &not_long, &[NO_LLGR]);
    let begin = world.now + seconds(TIME.into());
    world.is_busy = true;
    lose(&mut world);
    assert_eq!(told(2, &pass(&mut world, begin)), (nets(&[]), nets(&[])), "it is busy");
    world.connect_with(1, &lives(true));
    // Some of them are announced again, and a new one.
    let again = all.iter().take(7).copied().chain(many(0x30_0000, 1)).collect();
    announce(&mut world, &again, &[]);
    world.is_busy = false;
    let out = world.happens(Event::Tick);
    assert_eq!(told(2, &out), (&all - &again, not_long));
    assert_eq!(*told_last(2, &out).unwrap().communities, [LLGR_STALE]);
    let protocol = |net: &Ipv4Net| world.rib.teller(&net.to_string()).unwrap().0.to_owned();
    for net in &(&all | &again) {
        let expected = if again.contains(net) { "ebgp" } else { "bgp-long-lived" };
        assert_eq!(protocol(net), expected, "{net}");
    }
    // When all is announced, there is nothing left to be marked.
    world.says(1, &end_of_rib(Family::IPV4_UNICAST));
    assert_eq!(world.rib.routes.len(), again.len());
    assert!(!world.bgp.has_background_work());
}

/// To the RIB they are the last, too, whatever other protocols know.
#[test]
fn the_rib_is_told_of_them_as_of_the_least_trusted_protocol() {
    let mut world = two(CONFIG, &knows(), &[1]);
    let teller = |world: &World| {
        let (protocol, distance) = world.rib.teller("203.0.1.0/24")?;
        Some((protocol.to_owned(), distance))
    };
    let (usual, least) = (("ebgp".to_owned(), 20), ("bgp-long-lived".to_owned(), 254));
    let begin = world.now + seconds(TIME.into());
    lose(&mut world);
    pass(&mut world, begin - NANOSECOND);
    assert_eq!(teller(&world), Some(usual.clone()), "it has not lost its time yet");
    pass(&mut world, begin);
    assert_eq!(teller(&world), Some(least));
    world.connect_with(1, &lives(true));
    world.announces(1, &net(1).prefix());
    assert_eq!(teller(&world), Some(usual));
    world.says(1, &end_of_rib(Family::IPV4_UNICAST));
    lose(&mut world);
    let end = begin + seconds(3 * LONG);
    pass(&mut world, end);
    assert_eq!(teller(&world), None);
}

/// A route of another protocol that the RIB uses before them is what peers are told.
#[test]
fn an_own_route_comes_before_them() {
    let mut world = two(&format!("{CONFIG} redistribute rip;"), &knows(), &[1]);
    let rip = rib::used("203.0.1.0/24", "rip", 120);
    let told = world.rib.uses("203.0.1.0/24", Some(rip));
    told.into_iter().for_each(|told| drop(world.input(told)));
    assert_eq!(best(&world, 1), Some(1), "the peer's distance is lower");
    let begin = world.now + seconds(TIME.into());
    lose(&mut world);
    let out = pass(&mut world, begin);
    assert_eq!((best(&world, 1), world.rib.routes.len()), (None, 0));
    assert_eq!(told_last(2, &out).unwrap().as_path, AsPath::from_sequence(&[65000]));
    world.connect_with(1, &lives(true));
    world.announces(1, &net(1).prefix());
    assert_eq!((best(&world, 1), world.rib.routes.len()), (Some(1), 1));
}

#[test]
fn without_a_statement_nothing_lives_long_and_the_limit_counts() {
    for (config, long) in [
        ("", 0),
        ("graceful-restart { long-lived ipv6-unicast; }", 0),
        ("graceful-restart { long-lived ipv4-unicast { limit 10s; } }", 10),
        ("graceful-restart { long-lived ipv4-unicast { limit 1h; } }", LONG),
    ] {
        let mut world = two(config, &knows(), &[1]);
        let end = world.now + seconds(TIME.into()) + seconds(long);
        lose(&mut world);
        pass(&mut world, end - NANOSECOND);
        assert_eq!(world.rib.routes.len(), 1, "{config}");
        pass(&mut world, end);
        assert_eq!(world.rib.routes.len(), 0, "{config}");
    }
}

/// RFC 9494 §4.2: if the restart time is zero, or the family is not kept for it, only the long time counts.
#[test]
fn routes_may_live_long_at_once() {
    let mut world = World::started(CONFIG);
    world.born(false);
    let [_, long] = lives(true);
    world.connect_with(1, &[knows()[0].clone(), long]);
    world.connect_with(2, &knows());
    world.announces(1, &net(1).prefix());
    let end = world.now + seconds(LONG);
    let out = lose(&mut world);
    assert_eq!(*told_last(2, &out).unwrap().communities, [LLGR_STALE]);
    pass(&mut world, end - NANOSECOND);
    assert_eq!(world.rib.routes.len(), 1);
    pass(&mut world, end);
    assert!(world.rib.routes.is_empty());
}

#[test]
fn a_peer_that_is_back_late_must_have_gone_on_forwarding() {
    let none = [graceful(true, true, false)];
    for (back, keeps) in [(&lives(true)[..], true), (&lives(false), false), (&none, false)] {
        let mut world = two(CONFIG, &knows(), &[1]);
        let later = world.now + seconds(TIME.into()) + seconds(1);
        lose(&mut world);
        pass(&mut world, later);
        let out = world.connect_with(1, back);
        assert_eq!(told(2, &out).1.is_empty(), keeps, "{back:?}");
    }
}

/// RFC 9494 §4.2: the time is neither stopped nor begun again until the peer has announced everything.
#[test]
fn a_peer_that_comes_and_goes_makes_it_no_longer() {
    let mut world = two(CONFIG, &knows(), &[1, 2]);
    let begin = world.now + seconds(TIME.into());
    let end = begin + seconds(LONG);
    lose(&mut world);
    pass(&mut world, begin + seconds(10));
    world.connect_with(1, &lives(true));
    world.announces(1, &net(1).prefix());
    let out = lose(&mut world);
    assert_eq!(told(2, &out), (nets(&[1]), nets(&[])), "it is stale again, at once");
    // And once more, before the restart time of the first loss would be over.
    pass(&mut world, end - NANOSECOND);
    assert_eq!(world.rib.routes.len(), 2);
    pass(&mut world, end);
    assert!(world.rib.routes.is_empty());
    // What was announced completely has a new time.
    world.connect_with(1, &lives(true));
    world.announces(1, &net(1).prefix());
    world.says(1, &end_of_rib(Family::IPV4_UNICAST));
    let end = world.now + seconds(TIME.into()) + seconds(LONG);
    lose(&mut world);
    pass(&mut world, end - NANOSECOND);
    assert_eq!(world.rib.routes.len(), 1);
}

#[test]
fn within_the_restart_time_a_second_loss_takes_nothing_and_adds_nothing() {
    let mut world = two(CONFIG, &knows(), &[1, 2]);
    let begin = world.now + seconds(TIME.into());
    lose(&mut world);
    pass(&mut world, begin - seconds(10));
    world.connect_with(1, &lives(true));
    world.announces(1, &net(1).prefix());
    let mut out = lose(&mut world);
    out.extend(pass(&mut world, begin - NANOSECOND));
    assert_eq!(told(2, &out), (nets(&[]), nets(&[])));
    assert_eq!(told(2, &pass(&mut world, begin)).0, nets(&[1, 2]));
}

#[test]
fn when_the_time_ends_while_the_peer_announces_the_stale_ones_go() {
    let mut world = two(CONFIG, &knows(), &[1, 2]);
    let end = world.now + seconds(TIME.into()) + seconds(LONG);
    lose(&mut world);
    pass(&mut world, end - seconds(5));
    world.connect_with(1, &lives(true));
    world.announces(1, &net(1).prefix());
    pass_both(&mut world, end - NANOSECOND);
    assert_eq!(world.rib.routes.len(), 2);
    let out = pass_both(&mut world, end);
    assert_eq!(told(2, &out).1, nets(&[2]));
    // It still has not announced everything: if it is lost now, nothing of it is kept.
    let out = lose(&mut world);
    assert_eq!(told(2, &out).1, nets(&[1]));
    // Unless it has had the time that peers have for that.
    world.connect_with(1, &lives(true));
    world.announces(1, &net(1).prefix());
    assert_eq!(told(2, &lose(&mut world)).1, nets(&[]));
}

#[test]
fn an_operator_can_end_it() {
    let mut world = two(CONFIG, &knows(), &[1]);
    let later = world.now + seconds(TIME.into()) + seconds(1);
    lose(&mut world);
    pass(&mut world, later);
    let shown = |world: &World| {
        let peer = &world.bgp.peers[&IpAddr::from(address(1))];
        (peer.stale.long_lived().count(), peer.stale.ends())
    };
    assert_eq!(shown(&world), (1, Some(later + seconds(LONG - 1))));
    let mut out = Vec::new();
    world.bgp.clear(world.now, &clear(1), &mut out).unwrap();
    out.extend(world.happens(Event::Slice));
    assert_eq!(told(2, &out).1, nets(&[1]));
    assert_eq!(shown(&world), (0, None));
}

/// Nobody waits until the time of a peer is over of which there is nothing.
#[test]
fn a_peer_without_routes_takes_no_place_in_a_range() {
    let range = "range 10.0.0.0/16 { as external; limit 1; import all; export all; }";
    let mut world = World::started("");
    world.born(false);
    world.configure_as(configured(&format!("{CONFIG} {range}"), ["-", "-"]));
    world.connect_with(1, &lives(true));
    lose(&mut world);
    assert!(world.bgp.peers.is_empty(), "it has announced nothing");
    // Of another one the last route goes when it would begin to live long.
    world.connect_with(1, &lives(true));
    announces_marked(&mut world, 1, net(1), &[NO_LLGR]);
    let begin = world.now + seconds(TIME.into());
    lose(&mut world);
    pass(&mut world, begin);
    assert!(world.rib.routes.is_empty());
    world.connect_with(2, &lives(true));
    world.announces(2, &net(1).prefix());
    assert_eq!(world.bgp.peers.len(), 1);
    // And one that has routes is waited for.
    world.happens(Event::Closed { channel: ChannelId(2) });
    assert_eq!((world.bgp.peers.len(), world.rib.routes.len()), (1, 1));
}

#[test]
fn a_hard_reset_leaves_nothing_to_live_long() {
    let mut world = two(CONFIG, &knows(), &[1]);
    let hard = Notification::cease(cease::ADMIN_RESET).into_hard_reset();
    let mut out = world.says(1, &hard.emit());
    let later = world.now + seconds(1);
    out.extend(pass(&mut world, later));
    assert_eq!(told(2, &out).1, nets(&[1]));
}

#[test]
fn another_statement_counts_from_the_next_session_on() {
    let mut world = two("", &knows(), &[1]);
    world.configure_as(configured(CONFIG, ["", ""]));
    let end = world.now + seconds(TIME.into());
    lose(&mut world);
    pass(&mut world, end);
    assert!(world.rib.routes.is_empty());
    let out = world.connect_with(1, &lives(true));
    assert!(said_long(1, &out).is_some());
    world.announces(1, &net(1).prefix());
    let end = world.now + seconds(TIME.into()) + seconds(LONG);
    lose(&mut world);
    pass(&mut world, end - NANOSECOND);
    assert_eq!(world.rib.routes.len(), 1);
}

/// What OPEN says of it.
fn said_long(number: u8, out: &[Output]) -> Option<Vec<LongLived>> {
    let (_, body) = messages(number, out).into_iter().find(|one| one.0 == MessageType::Open)?;
    let open = Open::parse(&body).unwrap();
    open.capabilities.into_iter().find_map(|capability| match capability {
        Capability::LongLived(families) => Some(families),
        _ => None,
    })
}

#[test]
fn peers_are_told_how_long_ours_live_and_whether_we_have_gone_on_forwarding() {
    for (kept, config, expected) in [
        (false, "", None),
        (false, CONFIG, Some(vec![(false, 24 * 3600)])),
        (true, CONFIG, Some(vec![(true, 24 * 3600)])),
        (false, "graceful-restart { mode helper; long-lived ipv4-unicast; }", Some(Vec::new())),
        (false, "graceful-restart { mode off; long-lived ipv4-unicast; }", None),
        (
            false,
            "graceful-restart { long-lived ipv4-unicast { stale-time 0s; } }",
            Some(Vec::new()),
        ),
    ] {
        let mut world = World::started(config);
        world.born(kept);
        let out = world.connect(1);
        let say = |all: Vec<LongLived>| {
            all.into_iter().map(|one| (one.forwarding, one.stale_time)).collect::<Vec<_>>()
        };
        assert_eq!(said_long(1, &out).map(say), expected, "{kept} {config}");
    }
}
