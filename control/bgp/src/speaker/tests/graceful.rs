//! Graceful restart in both roles, to the nanosecond.

mod long_lived;

use std::collections::BTreeSet;

use ipnet::{IpNet, Ipv4Net};

use super::*;
use crate::numbers::cease;
use crate::speaker::restart::ASKING;
use crate::wire::{GracefulRestart, Notification, Update, end_of_rib, withdraw};

const TIME: u16 = 60;
/// The protocols as which the RIB is told of routes.
const ALL: usize = crate::to_rib::PROTOCOLS.len();
const NANOSECOND: Duration = Duration::from_nanos(1);

fn net(number: u8) -> Ipv4Net {
    Ipv4Net::new([203, 0, number, 0].into(), 24).unwrap()
}

/// What a peer says that keeps forwarding, or not, while it restarts.
fn graceful(restarted: bool, forwards: bool, notification: bool) -> Capability {
    let families = vec![(Family::IPV4_UNICAST, forwards)];
    Capability::GracefulRestart(GracefulRestart { restarted, notification, time: TIME, families })
}

/// What a peer is told: prefixes announced, and withdrawn.
fn told(number: u8, out: &[Output]) -> (BTreeSet<Ipv4Net>, BTreeSet<Ipv4Net>) {
    let (mut announced, mut withdrawn) = (BTreeSet::new(), BTreeSet::new());
    let mut cutter = Cutter::new();
    for output in out {
        if let Output::World(Action::Send { channel, message }) = output
            && *channel == ChannelId(number.into())
        {
            cutter.push(message.bytes());
        }
    }
    let context = Context::new(Neighbour::External);
    while let Some(message) = cutter.take().unwrap() {
        if message.kind == MessageType::Update {
            let update = Update::new_checked(message.body(), &context).unwrap();
            let nets = |nlri: crate::wire::Nlri<'_>| {
                nlri.iter().map(|(_, prefix)| Ipv4Net::from_prefix(&prefix)).collect::<Vec<_>>()
            };
            update.reach().for_each(|reach| announced.extend(nets(reach.nlri)));
            update.withdrawn().for_each(|(_, nlri)| withdrawn.extend(nets(nlri)));
        }
    }
    (announced, withdrawn)
}

/// What OPEN says of graceful restart, of those that a peer was sent.
fn said(number: u8, out: &[Output]) -> Option<GracefulRestart> {
    let mut cutter = Cutter::new();
    for output in out {
        if let Output::World(Action::Send { channel, message }) = output
            && *channel == ChannelId(number.into())
        {
            cutter.push(message.bytes());
        }
    }
    let message = cutter.take().unwrap().filter(|message| message.kind == MessageType::Open)?;
    let open = Open::parse(message.body()).unwrap();
    open.capabilities.into_iter().find_map(|capability| match capability {
        Capability::GracefulRestart(graceful) => Some(graceful),
        _ => None,
    })
}

/// Two peers, of which the first is as this says and has announced these.
fn helped(capability: &Capability, nets: &[u8]) -> World {
    let mut world = World::started("");
    world.born(false);
    world.connect_with(1, std::slice::from_ref(capability));
    world.connect(2);
    for number in nets {
        world.announces(1, &net(*number).prefix());
    }
    world
}

/// Behind which routes go of a peer that is lost and has not asked for anything.
const MOMENT: Duration = Duration::from_millis(20);

fn lose(world: &mut World) -> Vec<Output> {
    world.happens(Event::Closed { channel: ChannelId(1) })
}

/// Everything that happens until then, which is not told by peers.
fn pass(world: &mut World, until: Instant) -> Vec<Output> {
    let mut out = Vec::new();
    while let Some(deadline) = world.bgp.deadline().filter(|deadline| *deadline <= until) {
        world.now = deadline;
        out.extend(world.happens(Event::Tick));
        world.says(2, &keepalive());
    }
    world.now = until;
    out
}

fn nets(numbers: &[u8]) -> BTreeSet<Ipv4Net> {
    numbers.iter().map(|number| net(*number)).collect()
}

#[test]
fn routes_of_a_peer_that_is_away_serve_for_the_time_that_it_told() {
    let mut world = helped(&graceful(false, true, false), &[1, 2]);
    let lost = world.now;
    let changes = world.rib.changes;
    let mut out = lose(&mut world);
    let gone = lost + Duration::from_secs(TIME.into());
    out.extend(pass(&mut world, gone - NANOSECOND));
    assert_eq!(told(2, &out).1, nets(&[]));
    assert_eq!((world.rib.changes, world.rib.routes.len()), (changes, 2));
    let out = pass(&mut world, gone);
    assert_eq!(told(2, &out).1, nets(&[1, 2]));
    assert!(world.rib.routes.is_empty());
}

#[test]
fn what_a_peer_announces_again_was_never_gone() {
    let mut world = helped(&graceful(false, false, false), &[1, 2]);
    let changes = world.rib.changes;
    let mut out = lose(&mut world);
    out.extend(world.connect_with(1, &[graceful(true, true, false)]));
    out.extend(world.announces(1, &net(1).prefix()));
    assert_eq!(told(2, &out), (nets(&[]), nets(&[])));
    assert_eq!(world.rib.changes, changes);
    let out = world.says(1, &end_of_rib(Family::IPV4_UNICAST));
    assert_eq!(told(2, &out).1, nets(&[2]));
    assert_eq!(world.rib.changes, changes + 1);
    assert_eq!(world.bgp.peers[&IpAddr::from(address(1))].stale.until(), None);
}

#[test]
fn a_peer_that_is_back_has_its_time_to_announce_again() {
    let mut world = helped(&graceful(false, true, false), &[1]);
    lose(&mut world);
    world.now += Duration::from_secs(30);
    world.connect_with(1, &[graceful(true, true, false)]);
    let due = world.now + Duration::from_secs(360);
    let mut out = Vec::new();
    for _ in 0..1000 {
        let deadline = world.bgp.deadline().unwrap();
        if deadline == due {
            break;
        }
        assert!(deadline < due);
        world.now = deadline;
        out.extend(world.happens(Event::Tick));
        world.says(1, &keepalive());
        world.says(2, &keepalive());
    }
    assert_eq!(told(2, &out).1, nets(&[]));
    world.now = due;
    assert_eq!(told(2, &world.happens(Event::Tick)).1, nets(&[1]));
    assert!(world.bgp.peers[&IpAddr::from(address(1))].up.is_some());
}

#[test]
fn what_a_peer_has_not_gone_on_forwarding_goes_when_it_is_back() {
    let not_listed = Capability::GracefulRestart(GracefulRestart {
        restarted: true,
        notification: false,
        time: TIME,
        families: Vec::new(),
    });
    for back in [vec![graceful(true, false, false)], vec![not_listed], Vec::new()] {
        let mut world = helped(&graceful(false, true, false), &[1]);
        assert_eq!(told(2, &lose(&mut world)).1, nets(&[]));
        let out = world.connect_with(1, &back);
        assert_eq!(told(2, &out).1, nets(&[1]), "{back:?}");
    }
}

#[test]
fn what_was_stale_goes_when_the_peer_is_lost_once_more() {
    let mut world = helped(&graceful(false, true, false), &[1, 2]);
    lose(&mut world);
    world.connect_with(1, &[graceful(true, true, false)]);
    world.announces(1, &net(1).prefix());
    let out = lose(&mut world);
    assert_eq!(told(2, &out).1, nets(&[2]), "RFC 4724, section 4.2");
    assert_eq!(world.rib.routes, BTreeSet::from([IpNet::from(net(1))]));
}

#[test]
fn how_a_session_ends_decides_whether_routes_are_kept() {
    let reset = Notification::cease(cease::ADMIN_RESET);
    let hard = reset.clone().into_hard_reset();
    for (capability, ending, keeps) in [
        (graceful(false, true, false), Some(&reset), false),
        (graceful(false, true, true), Some(&reset), true),
        (graceful(false, true, true), Some(&hard), false),
        (graceful(false, true, true), None, true),
    ] {
        let mut world = helped(&capability, &[1]);
        let mut out = match ending {
            Some(ending) => world.says(1, &ending.emit()),
            None => lose(&mut world),
        };
        let soon = world.now + MOMENT;
        out.extend(pass(&mut world, soon));
        assert_eq!(told(2, &out).1.is_empty(), keeps, "{capability:?} {ending:?}");
    }
    // Silence, which RFC 4724 alone does not forgive.
    for (notification, keeps) in [(true, true), (false, false)] {
        let mut world = helped(&graceful(false, true, notification), &[1]);
        let until = world.now + Duration::from_secs(u64::from(HOLD));
        let out = pass(&mut world, until);
        assert!(world.bgp.peers[&IpAddr::from(address(1))].up.is_none());
        assert_eq!(told(2, &out).1.is_empty(), keeps, "{notification}");
    }
}

#[test]
fn an_operator_has_routes_kept_or_not() {
    for (notifies, hard, keeps) in
        [(true, false, true), (true, true, false), (false, false, false), (false, true, false)]
    {
        let mut world = helped(&graceful(false, true, notifies), &[1]);
        let peer = address(1).into();
        let request = interface::Clear { hard: Some(hard), ..clear(1) };
        let mut out = Vec::new();
        world.bgp.clear(world.now, &request, &mut out).unwrap();
        let sent = notification(1, &out).unwrap();
        assert_eq!(sent.is_hard_reset(), hard && notifies, "who does not know it is told plainly");
        let reset = Notification::cease(cease::ADMIN_RESET);
        assert_eq!(sent.inner().unwrap_or(sent), reset);
        out.extend(world.happens(Event::Slice));
        let soon = world.now + MOMENT;
        out.extend(pass(&mut world, soon));
        assert_eq!(told(2, &out).1.is_empty(), keeps, "{notifies} {hard}");
        assert_ne!(world.bgp.peers[&peer].state().to_string(), "Idle", "it begins again");
    }
    let mut world = helped(&graceful(false, true, true), &[1]);
    let soft = Some("in".to_owned());
    let both = interface::Clear { soft, hard: Some(true), ..clear(1) };
    assert!(world.bgp.clear(world.now, &both, &mut Vec::new()).is_err());
}

#[test]
fn a_peer_that_is_not_configured_any_more_leaves_nothing() {
    let mut world = helped(&graceful(false, true, true), &[1]);
    lose(&mut world);
    let text = format!(
        "bgp {{ as 65000; router-id 192.0.2.1; peer {} {{ as 65002; passive on; hold-time {HOLD}s; import all; export all; }} }}",
        address(2)
    );
    let mut out = Vec::new();
    world.bgp.configure(world.now, config::read("t", &text).unwrap(), &mut out);
    out.extend(world.happens(Event::Slice));
    assert_eq!(told(2, &out).1, nets(&[1]));
}

/// RFC 7313 §4: until then its first telling goes on, and what is stale serves on.
#[test]
fn before_it_has_announced_everything_a_peer_refreshes_nothing() {
    let mut world = helped(&graceful(false, true, false), &[1, 2]);
    let refresh = |world: &mut World, kind| {
        world.says(1, &RouteRefresh { family: Family::IPV4_UNICAST, kind }.emit())
    };
    lose(&mut world);
    let mut out = world.connect_with(1, &[graceful(true, true, false)]);
    // Neither with a beginning nor without one.
    out.extend(refresh(&mut world, RefreshKind::End));
    out.extend(refresh(&mut world, RefreshKind::Begin));
    out.extend(refresh(&mut world, RefreshKind::End));
    assert_eq!(told(2, &out), (nets(&[]), nets(&[])));
    out.extend(world.announces(1, &net(1).prefix()));
    let out = world.says(1, &end_of_rib(Family::IPV4_UNICAST));
    assert_eq!(told(2, &out).1, nets(&[2]));
    // From then on it does.
    refresh(&mut world, RefreshKind::Begin);
    assert_eq!(told(2, &refresh(&mut world, RefreshKind::End)).1, nets(&[1]));
}

/// A process after whose forerunner these routes serve on, with both peers back.
fn restarted(first: &Capability, second: &[Capability]) -> (World, Vec<Output>) {
    let mut world = World::started("");
    world.rib.stale = [1, 2, 3].map(|number| IpNet::from(net(number))).into();
    world.born(true);
    let mut out = world.connect_with(1, std::slice::from_ref(first));
    out.extend(world.connect_with(2, second));
    (world, out)
}

#[test]
fn nothing_is_told_after_our_restart_until_peers_have_told_everything() {
    let keeps = graceful(false, true, false);
    let (mut world, mut out) = restarted(&keeps, std::slice::from_ref(&keeps));
    let families = vec![(Family::IPV4_UNICAST, true)];
    let expected = GracefulRestart { restarted: true, notification: true, time: 120, families };
    assert_eq!(said(1, &out), Some(expected.clone()));
    out.extend(world.announces(1, &net(1).prefix()));
    out.extend(world.says(1, &end_of_rib(Family::IPV4_UNICAST)));
    out.extend(world.announces(2, &net(2).prefix()));
    assert_eq!(told(1, &out), (nets(&[]), nets(&[])));
    assert!(!sent(1, &out).contains(&MessageType::Update), "no End-of-RIB either");
    assert_eq!((world.rib.changes, world.rib.ends), (0, 0));
    let out = world.says(2, &end_of_rib(Family::IPV4_UNICAST));
    assert_eq!(told(1, &out).0, nets(&[2]));
    assert_eq!(told(2, &out).0, nets(&[1]));
    assert_eq!(sent(1, &out), [MessageType::Update, MessageType::Update]);
    assert_eq!((world.rib.changes, world.rib.ends, world.rib.stale.len()), (2, ALL, 0));
    // The restart is over, and our forwarding is as good as before.
    lose(&mut world);
    let out = world.connect_with(1, &[keeps]);
    assert_eq!(said(1, &out), Some(GracefulRestart { restarted: false, ..expected }));
}

#[test]
fn a_peer_that_has_restarted_itself_or_cannot_say_it_is_done_is_not_waited_for_long() {
    let both = || restarted(&graceful(true, true, false), &[graceful(false, true, false)]);
    // FRR says so though it announces everything soon.
    let (mut world, _) = both();
    world.says(2, &end_of_rib(Family::IPV4_UNICAST));
    assert_eq!(world.rib.ends, 0);
    world.announces(1, &net(1).prefix());
    world.says(1, &end_of_rib(Family::IPV4_UNICAST));
    assert_eq!(world.rib.ends, ALL);
    assert!(!world.rib.stale.contains(&IpNet::from(net(2))), "it is gone");
    // Another one waits for us.
    let (mut world, _) = both();
    let up = world.now;
    world.says(2, &end_of_rib(Family::IPV4_UNICAST));
    let long = up + Duration::from_secs(5);
    while let Some(deadline) = world.bgp.deadline().filter(|deadline| *deadline < long) {
        world.now = deadline;
        world.happens(Event::Tick);
        world.says(2, &keepalive());
    }
    assert_eq!(world.rib.ends, 0);
    world.now = long;
    world.happens(Event::Tick);
    assert_eq!(world.rib.ends, ALL);
    let (mut world, _) = restarted(&graceful(false, true, false), &[]);
    let up = world.now;
    world.says(1, &end_of_rib(Family::IPV4_UNICAST));
    let quiet = up + Duration::from_secs(10);
    while let Some(deadline) = world.bgp.deadline().filter(|deadline| *deadline < quiet) {
        world.now = deadline;
        world.happens(Event::Tick);
        world.says(1, &keepalive());
        world.says(2, &keepalive());
    }
    assert_eq!(world.rib.ends, 0);
    world.now = quiet;
    world.happens(Event::Tick);
    assert_eq!(world.rib.ends, ALL);
}

#[test]
fn peers_that_do_not_come_are_waited_for_until_the_deferral_time() {
    let mut world = World::started("graceful-restart { deferral-time 40s; }");
    world.born(true);
    world.connect_with(2, &[graceful(false, true, false)]);
    let mut out = world.announces(2, &net(1).prefix());
    world.says(2, &end_of_rib(Family::IPV4_UNICAST));
    let due = Instant::ZERO + Duration::from_secs(40);
    out.extend(pass(&mut world, due - NANOSECOND));
    assert_eq!((world.rib.changes, world.rib.ends), (0, 0));
    pass(&mut world, due);
    assert_eq!((world.rib.changes, world.rib.ends), (1, ALL));
}

#[test]
fn sessions_wait_for_the_rib_but_not_for_ever() {
    let mut world = World::started("");
    let listens = |out: &[Output]| {
        out.iter().any(|output| {
            matches!(output, Output::World(Action::Stream { token, .. }) if *token == LISTENERS[0])
        })
    };
    assert_eq!(world.bgp.deadline(), Some(Instant::ZERO + ASKING));
    let out = pass(&mut world, Instant::ZERO + ASKING - NANOSECOND);
    assert!(!listens(&out));
    let until = Instant::ZERO + ASKING;
    assert!(listens(&pass(&mut world, until)));
    let out = world.connect(1);
    let said = said(1, &out).unwrap();
    assert!(!said.restarted && said.families == [(Family::IPV4_UNICAST, false)], "{said:?}");
    // At once if it answers.
    let mut world = World::started("");
    assert!(listens(&world.born(false)));
}

#[test]
fn a_helper_lists_no_families_and_who_takes_no_part_says_nothing() {
    for (mode, expected) in [("helper", Some(0)), ("off", None)] {
        let mut world = World::started(&format!("graceful-restart {{ mode {mode}; }}"));
        world.born(true);
        let out = world.connect_with(1, &[graceful(false, true, false)]);
        let said = said(1, &out);
        assert_eq!(said.map(|said| said.families.len()), expected);
        // Peers have forgotten us, and are told what there is as it comes.
        world.connect(2);
        assert_eq!(told(2, &world.announces(1, &net(1).prefix())).0, nets(&[1]));
    }
    let mut world = World::started("graceful-restart { mode off; }");
    world.born(false);
    world.connect_with(1, &[graceful(false, true, false)]);
    world.connect(2);
    world.announces(1, &net(1).prefix());
    lose(&mut world);
    let soon = world.now + MOMENT;
    assert_eq!(told(2, &pass(&mut world, soon)).1, nets(&[1]));
}

#[test]
fn a_route_that_is_withdrawn_while_others_are_stale_goes() {
    let mut world = helped(&graceful(false, true, false), &[1, 2]);
    lose(&mut world);
    world.connect_with(1, &[graceful(true, true, false)]);
    let mut bytes = Vec::new();
    let context = Context::new(Neighbour::External);
    withdraw(Family::IPV4_UNICAST, &context, [(0, net(1).prefix())], &mut bytes);
    assert_eq!(told(2, &world.says(1, &bytes)).1, nets(&[1]));
}

/// Handley et al. §8.1: a policy takes effect at once, also on what is kept of a peer that is away.
#[test]
fn another_policy_holds_for_what_is_kept_of_a_peer_that_is_away() {
    let mut world = helped(&graceful(false, true, false), &[1, 2]);
    lose(&mut world);
    let out = world.configure(["import none;", ""]);
    assert_eq!(told(2, &out).1, nets(&[1, 2]));
    assert!(world.rib.routes.is_empty());
    let out = world.configure(["import all;", ""]);
    assert_eq!(told(2, &out).0, nets(&[1, 2]));
    assert_eq!(world.rib.routes.len(), 2);
    // It is back before all was looked at.
    world.is_busy = true;
    world.configure(["import none;", ""]);
    world.connect_with(1, &[graceful(true, true, false)]);
    world.is_busy = false;
    let out = world.happens(Event::Tick);
    assert_eq!(told(2, &out).1, nets(&[1, 2]));
    let request = interface::Show { prefix: Some(net(1).to_string()), ..show("routes") };
    let path = world.bgp.show(world.now, &request).unwrap()[0]["paths"][0].clone();
    assert_eq!(path["unused"], "`import` of the peer takes nothing");
}

#[test]
fn a_peer_that_is_back_in_a_moment_changes_nothing() {
    let mut world = World::started("");
    world.born(false);
    world.connect(1);
    world.connect(2);
    (1..=3).for_each(|number| drop(world.announces(1, &net(number).prefix())));
    let changes = world.rib.changes;
    let mut out = lose(&mut world);
    let soon = world.now + MOMENT - NANOSECOND;
    out.extend(pass(&mut world, soon));
    out.extend(world.connect(1));
    out.extend(world.announces(1, &net(1).prefix()));
    out.extend(world.announces(1, &net(2).prefix()));
    assert_eq!((told(2, &out), world.rib.changes), ((nets(&[]), nets(&[])), changes));
    // It may say when it has announced everything; else a second is enough.
    let end = world.now + Duration::from_secs(1);
    assert_eq!(told(2, &pass(&mut world, end - NANOSECOND)).1, nets(&[]));
    assert_eq!(told(2, &pass(&mut world, end)).1, nets(&[3]));
    assert_eq!(world.rib.routes, [1, 2].map(|number| IpNet::from(net(number))).into());
    lose(&mut world);
    world.connect(1);
    world.announces(1, &net(1).prefix());
    let out = world.says(1, &end_of_rib(Family::IPV4_UNICAST));
    assert_eq!(told(2, &out).1, nets(&[2]));
}

#[test]
fn a_peer_that_is_back_in_a_moment_may_take_its_time_to_announce_much() {
    let second = Duration::from_secs(1);
    let mut world = World::started("");
    world.born(false);
    world.connect(1);
    world.connect(2);
    (1..=100).for_each(|number| drop(world.announces(1, &net(number).prefix())));
    let mut out = lose(&mut world);
    out.extend(world.connect(1));
    let back = world.now;
    for number in 1..=60 {
        out.extend(world.announces(1, &net(number).prefix()));
        let soon = world.now + second - NANOSECOND;
        out.extend(pass(&mut world, soon));
    }
    assert_eq!(told(2, &out), (nets(&[]), nets(&[])));
    // But not longer than a minute, whatever it says.
    out = world.announces(1, &net(61).prefix());
    out.extend(pass(&mut world, back + Duration::from_secs(60) - NANOSECOND));
    assert_eq!(told(2, &out), (nets(&[]), nets(&[])));
    let gone: Vec<_> = (62..=100).collect();
    assert_eq!(told(2, &pass(&mut world, back + Duration::from_secs(60))).1, nets(&gone));
}

#[test]
fn a_peer_that_is_not_back_in_a_moment_leaves_nothing() {
    let mut world = World::started("");
    world.born(false);
    world.connect(1);
    world.connect(2);
    world.announces(1, &net(1).prefix());
    assert_eq!(told(2, &lose(&mut world)).1, nets(&[]));
    let soon = world.now + MOMENT;
    assert_eq!(told(2, &pass(&mut world, soon)).1, nets(&[1]));
    assert!(world.rib.routes.is_empty());
    // One that has ended the session has nothing to come back for.
    world.connect(1);
    world.announces(1, &net(1).prefix());
    let reset = Notification::cease(crate::numbers::cease::ADMIN_RESET);
    assert_eq!(told(2, &world.says(1, &reset.emit())).1, nets(&[1]));
}

#[test]
fn who_may_have_no_session_is_not_waited_for() {
    let keeps = graceful(false, true, false);
    let mut world = World::started("");
    world.configure(["", "shutdown;"]);
    world.rib.stale = [1, 2].map(|number| IpNet::from(net(number))).into();
    world.born(true);
    world.connect_with(1, std::slice::from_ref(&keeps));
    world.announces(1, &net(1).prefix());
    assert_eq!((world.rib.changes, world.rib.ends), (0, 0));
    world.says(1, &end_of_rib(Family::IPV4_UNICAST));
    assert_eq!((world.rib.changes, world.rib.ends, world.rib.stale.len()), (1, ALL, 0));
}

#[test]
fn a_limit_is_for_what_is_announced_and_not_for_what_serves_on() {
    let mut world = helped(&graceful(false, true, false), &[1, 2]);
    world.configure(["prefix-limit { most 2; }", ""]);
    lose(&mut world);
    world.connect_with(1, &[graceful(true, true, false)]);
    let is_up = |world: &World| world.bgp.peers[&IpAddr::from(address(1))].up.is_some();
    for number in [3, 4] {
        world.announces(1, &net(number).prefix());
        assert!(is_up(&world), "of four two are of the session before");
    }
    // One of those is announced again, and is one too many.
    world.announces(1, &net(1).prefix());
    assert!(!is_up(&world));
}
