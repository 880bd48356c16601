//! What the configuration says of sessions, and what operators do with them.

use std::num::NonZeroU8;

use weft_runtime::StreamRequest;

use super::*;
use crate::interface::Clear;
use crate::numbers::community::GRACEFUL_SHUTDOWN;
use crate::numbers::{cease, error_code};
use crate::wire::Role;

fn prefix(number: u8) -> Prefix {
    ipnet::Ipv4Net::new([203, 0, number, 0].into(), 24).unwrap().prefix()
}

impl World {
    fn clear(&mut self, number: u8, soft: Option<&str>) -> Result<Vec<Output>, String> {
        let soft = soft.map(str::to_owned);
        let mut out = Vec::new();
        self.bgp
            .clear(self.now, &Clear { soft, ..clear(number) }, &mut out)
            .map_err(|error| error.note.to_string())?;
        out.extend(self.happens(Event::Tick));
        Ok(out)
    }

    fn is_up(&self, number: u8) -> bool {
        self.bgp.peers[&IpAddr::from(address(number))].up.is_some()
    }
}

#[test]
fn a_peer_that_announces_too_much_comes_back_when_it_may() {
    let mut world = World::new();
    world.configure(["prefix-limit { most 2; restart-after 60s; }", ""]);
    assert!(world.is_up(1), "a limit resets nothing");
    world.announces(1, &prefix(1));
    assert_eq!(notification(1, &world.announces(1, &prefix(2))), None);
    let out = world.announces(1, &prefix(3));
    let told = notification(1, &out).unwrap();
    assert_eq!((told.code, told.subcode), (error_code::CEASE, cease::MAX_PREFIXES));
    assert!(!world.is_up(1) && world.rib.routes.is_empty());
    let due = world.now + Duration::from_secs(60);
    while let Some(deadline) = world.bgp.deadline().filter(|deadline| *deadline < due) {
        world.now = deadline;
        world.happens(Event::Tick);
        world.says(2, &keepalive());
    }
    assert_eq!(world.bgp.peers[&IpAddr::from(address(1))].state().to_string(), "Idle");
    world.now = due;
    world.happens(Event::Tick);
    world.connect(1);
}

#[test]
fn an_operator_can_only_be_told_or_has_to_say_when_it_begins_again() {
    let mut world = World::new();
    world.configure(["prefix-limit { most 1; action warn; }", "prefix-limit { most 1; }"]);
    world.announces(1, &prefix(1));
    let warns = |out: &[Output]| {
        out.iter().any(|output| {
            matches!(output, Output::World(Action::Report { level: Level::Warning, .. }))
        })
    };
    assert!(warns(&world.announces(1, &prefix(2))));
    assert!(!warns(&world.announces(1, &prefix(3))), "once is enough");
    assert!(world.is_up(1));
    world.announces(2, &prefix(4));
    world.announces(2, &prefix(5));
    assert!(!world.is_up(2));
    world.now += Duration::from_secs(3600);
    world.happens(Event::Tick);
    assert_eq!(world.bgp.peers[&IpAddr::from(address(2))].state().to_string(), "Idle");
    world.clear(2, None).unwrap();
    world.connect(2);
}

#[test]
fn a_session_that_is_shut_down_says_why_and_comes_back_when_that_is_gone() {
    let mut world = World::new();
    let out = world.configure(["shutdown \"new fibre\";", ""]);
    let told = notification(1, &out).unwrap();
    assert_eq!(told.shutdown_text().as_deref(), Some("new fibre"));
    assert!(!world.is_up(1) && world.is_up(2));
    // What else is configured meanwhile does not open it.
    world.configure(["shutdown \"new fibre\"; description x;", ""]);
    assert_eq!(world.bgp.peers[&IpAddr::from(address(1))].state().to_string(), "Idle");
    world.configure(["", ""]);
    world.connect(1);
    // One that must end for something else says that.
    let told = notification(1, &world.configure(["local-role provider;", ""])).unwrap();
    assert_eq!(told.subcode, cease::CONFIGURATION_CHANGE);
}

#[test]
fn routes_of_a_way_that_will_be_closed_are_told_so_without_a_reset() {
    let mut world = World::new();
    world.announces(2, &prefix(1));
    let out = world.configure(["graceful-shutdown on;", ""]);
    assert!(world.is_up(1));
    assert!(told(1, &out).unwrap().has_community(GRACEFUL_SHUTDOWN));
    let out = world.configure(["", ""]);
    assert!(!told(1, &out).unwrap().has_community(GRACEFUL_SHUTDOWN));
}

#[test]
fn operators_end_sessions_or_have_routes_sent_again() {
    let mut world = World::new();
    world.announces(2, &prefix(1));
    let out = world.clear(1, Some("out")).unwrap();
    assert!(told(1, &out).is_some() && world.is_up(1));
    let out = world.clear(1, Some("in")).unwrap();
    let asked = messages(1, &out);
    assert_eq!(asked.first().map(|one| one.0), Some(MessageType::RouteRefresh));
    let told = notification(1, &world.clear(1, None).unwrap()).unwrap();
    assert_eq!((told.code, told.subcode), (error_code::CEASE, cease::ADMIN_RESET));
    assert!(!world.is_up(1));
    for (number, soft, part) in [
        (1, Some("in"), "no routes are exchanged"),
        (2, Some("up"), "in, out or damping"),
        (9, None, "no peer"),
    ] {
        let error = world.clear(number, soft).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
    world.connect(1);
}

/// With several peers it is done with all, or with none.
#[test]
fn operators_clear_several_peers_or_none() {
    let mut world = World::new();
    world.announces(2, &prefix(1));
    world.announces(1, &prefix(2));
    let all = |soft: Option<&str>, others: &[u8]| Clear {
        soft: soft.map(str::to_owned),
        others: Some(others.iter().map(|number| address(*number).into()).collect()),
        ..clear(1)
    };
    let mut out = Vec::new();
    world.bgp.clear(world.now, &all(Some("out"), &[2, 1]), &mut out).unwrap();
    out.extend(world.happens(Event::Tick));
    assert!(told(1, &out).is_some() && told(2, &out).is_some());
    for (soft, part) in [(None, "no peer"), (Some("in"), "no peer"), (Some("damping"), "damped")] {
        let mut out = Vec::new();
        let others: &[u8] = if soft == Some("damping") { &[2] } else { &[2, 9] };
        let error = world.bgp.clear(world.now, &all(soft, others), &mut out).unwrap_err();
        assert!(error.note.contains(part), "{error}");
        assert!(out.is_empty() && world.is_up(1) && world.is_up(2));
    }
    let mut out = Vec::new();
    world.bgp.clear(world.now, &all(Some("in"), &[2]), &mut out).unwrap();
    let asked = |number| messages(number, &out).first().map(|one| one.0);
    assert_eq!([asked(1), asked(2)], [Some(MessageType::RouteRefresh); 2]);
    world.bgp.clear(world.now, &all(None, &[2]), &mut out).unwrap();
    assert!(!world.is_up(1) && !world.is_up(2));
    world.connect(1);
    // One that is away cannot be told anything, so the other one is not either.
    let mut out = Vec::new();
    let error = world.bgp.clear(world.now, &all(Some("out"), &[2]), &mut out).unwrap_err();
    assert!(error.note.contains("no routes are exchanged with 10.0.2.2"), "{error}");
    assert!(out.is_empty() && messages(1, &world.happens(Event::Tick)).is_empty());
}

#[test]
fn the_other_side_is_told_the_role_and_routes_only_go_down() {
    let role = Capability::Role(Role::Provider);
    let mut world = World::started("");
    world.born(false);
    world.configure(["local-role customer;", "local-role customer;"]);
    world.connect_with(1, std::slice::from_ref(&role));
    world.connect_with(2, std::slice::from_ref(&role));
    // From one provider to the other: that would be a leak.
    assert_eq!(told(2, &world.announces(1, &prefix(1))), None);
    assert_eq!(world.rib.routes.len(), 1);
    world.configure(["local-role customer;", "local-role provider;"]);
    let out = world.connect_with(2, &[Capability::Role(Role::Customer)]);
    assert_eq!(told(2, &out).unwrap().rare().only_to_customer, Some(65001));
}

#[test]
fn a_route_that_a_customer_has_from_another_provider_is_not_used() {
    let mut world = World::started("");
    world.born(false);
    world.configure(["local-role provider;", ""]);
    world.connect_with(1, &[Capability::Role(Role::Customer)]);
    world.connect(2);
    let mut attributes = Attributes {
        as_path: AsPath::from_sequence(&[65001, 65009]),
        next_hop: Some(NextHop::V4(address(1))),
        ..Attributes::default()
    };
    let mut announce = |attributes: &Attributes| {
        let context = Context::new(Neighbour::External);
        let encoder = UpdateEncoder::new(attributes, Family::IPV4_UNICAST, &context).unwrap();
        let mut bytes = Vec::new();
        encoder.all([(0, prefix(1))], &mut bytes);
        world.says(1, &bytes);
        world.rib.routes.len()
    };
    assert_eq!(announce(&attributes), 1);
    attributes.change_rare(|rare| rare.only_to_customer = Some(65009));
    assert_eq!(announce(&attributes), 0);
}

#[test]
fn keys_go_to_the_socket_that_listens_without_closing_it() {
    let mut world = World::new();
    let requests = |out: Vec<Output>| {
        let of = |output| match output {
            Output::World(Action::Stream { token, request }) if token == LISTENERS[0] => {
                Some(request)
            }
            Output::World(Action::CloseListener { .. }) => panic!("it stays open"),
            _ => None,
        };
        out.into_iter().filter_map(of).collect::<Vec<_>>()
    };
    let asked = requests(world.configure(["md5-key hush;", ""]));
    let [StreamRequest::SetKeys(keys)] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((keys.len(), keys[0].network), (1, IpAddr::from(address(1))));
    // An FEA that does not know the socket has it opened once more.
    let event = StreamEvent::KeysSet { result: Err("not known".to_owned()) };
    world.happens(Event::Stream { token: LISTENERS[0], event });
    world.now += Duration::from_secs(1);
    let asked = requests(world.happens(Event::Tick));
    assert!(matches!(&asked[..], [StreamRequest::Listen(spec)] if spec.keys.len() == 1));
}

/// Whoever connects before the socket has the new key has signed with the one before.
#[test]
fn connections_by_a_key_that_was_changed_are_not_accepted() {
    let mut world = World::new();
    world.configure(["md5-key hush;", ""]);
    let connects = |world: &mut World, number: u8| {
        let event = StreamEvent::Accepted {
            channel: ChannelId(40 + u32::from(number)),
            local: SocketAddr::new([10, 0, number, 1].into(), PORT),
            peer: SocketAddr::new(address(number).into(), 40_001),
        };
        let out = world.happens(Event::Stream { token: LISTENERS[0], event });
        let is_closed = |one: &Output| matches!(one, Output::World(Action::Close { .. }));
        !out.iter().any(is_closed)
    };
    let set = |world: &mut World| {
        let event = StreamEvent::KeysSet { result: Ok(()) };
        world.happens(Event::Stream { token: LISTENERS[0], event });
    };
    set(&mut world);
    world.now += Duration::from_secs(1);
    assert!(connects(&mut world, 1));
    world.configure(["md5-key other;", ""]);
    assert!(!connects(&mut world, 1), "the socket may have the old one");
    set(&mut world);
    assert!(!connects(&mut world, 1), "it may have waited since then");
    world.configure(["md5-key other; description x;", ""]);
    world.now += Duration::from_secs(1);
    assert!(connects(&mut world, 1));
}

/// Before that nobody said why there was no session.
#[test]
fn people_are_told_once_why_there_is_no_session() {
    let mut world = World::started("");
    world.born(false);
    let said = |out: &[Output]| {
        out.iter().find_map(|output| match output {
            Output::World(Action::Report { level: Level::Warning, line }) => Some(line.clone()),
            _ => None,
        })
    };
    let opens = |world: &mut World, system: u32| {
        let event = StreamEvent::Accepted {
            channel: ChannelId(1),
            local: SocketAddr::new([10, 0, 1, 1].into(), PORT),
            peer: SocketAddr::new(address(1).into(), 40_000),
        };
        let mut out = world.happens(Event::Stream { token: LISTENERS[0], event });
        out.extend(world.says(1, &Open::new(system, HOLD, address(1)).emit()));
        out
    };
    let line = said(&opens(&mut world, 65009)).unwrap();
    assert!(line.starts_with("10.0.1.2: no session: sent: ") && line.contains("AS"), "{line}");
    let ending = |world: &World| world.bgp.peers[&IpAddr::from(address(1))].ending.clone();
    assert!(line.ends_with(&ending(&world).unwrap()));
    world.now += Duration::from_secs(3600);
    world.happens(Event::Tick);
    assert_eq!(said(&opens(&mut world, 65009)), None, "it is the same");
    // A connection that is only lost says nothing of it.
    world.now += Duration::from_secs(3600);
    world.happens(Event::Tick);
    opens(&mut world, 65001);
    assert_eq!(said(&world.happens(Event::Closed { channel: ChannelId(1) })), None);
    assert!(line.ends_with(&ending(&world).unwrap()));
    // What else is wrong is another matter.
    world.configure(["passive off;", ""]);
    world.now += Duration::from_secs(3600);
    let out = world.happens(Event::Tick);
    let token = out.iter().find_map(|output| match output {
        Output::World(Action::Stream { token, request: StreamRequest::Open(_) }) => Some(*token),
        _ => None,
    });
    let event = StreamEvent::Failed { error: "no way".to_owned() };
    let out = world.happens(Event::Stream { token: token.unwrap(), event });
    assert_eq!(said(&out).unwrap(), "10.0.1.2: no session: it cannot be connected to: no way");
}

/// From how far connections may come from each of these addresses, and with which time to live is sent.
fn checked(config: Option<Config>, addresses: &[[u8; 4]]) -> (Vec<Option<u8>>, Option<u8>) {
    let mut world = World::started("");
    world.born(false);
    let listened = world.configure_as(config).into_iter().find_map(|output| match output {
        Output::World(Action::Stream { request: StreamRequest::Listen(spec), .. }) => Some(spec),
        _ => None,
    });
    let spec = listened.unwrap();
    assert_eq!(spec.check(), Ok(()));
    // A peer of whom it is checked is taken.
    world.connect(1);
    let least =
        |address: &[u8; 4]| spec.options_for((*address).into()).least_ttl.map(NonZeroU8::get);
    (addresses.iter().map(least).collect(), spec.options.ttl.map(NonZeroU8::get))
}

#[test]
fn the_socket_that_listens_checks_how_far_each_peer_is_away() {
    let addresses = [address(1).octets(), address(2).octets(), [192, 0, 2, 9]];
    for (of, expected) in [
        // Who is no peer need not be near, unless all peers have to.
        (["ttl-security 1;", ""], [Some(255), None, None]),
        (["ttl-security 2;", ""], [Some(254), None, None]),
        (["ttl-security 1;", "ttl-security 2;"], [Some(255), Some(254), Some(254)]),
        (["ttl-security 1;", "ttl-security 1;"], [Some(255); 3]),
    ] {
        assert_eq!(
            checked(configured("", of), &addresses),
            (expected.to_vec(), Some(255)),
            "{of:?}"
        );
    }
}

#[test]
fn peers_in_a_range_of_near_ones_may_be_farther() {
    let more = "range 10.0.0.0/8 { as 65009; ttl-security 1; import all; export all; }";
    let addresses = [address(1).octets(), address(2).octets(), [10, 9, 9, 9], [192, 0, 2, 9]];
    let (least, _) = checked(configured(more, ["", "ttl-security 3;"]), &addresses);
    assert_eq!(least, [Some(1), Some(253), Some(255), None]);
}

#[test]
fn a_session_ends_with_the_link_that_it_uses_and_begins_with_it() {
    let mut world = World::started("");
    world.born(false);
    world.configure(["passive off;", "multihop 3;"]);
    for number in [1, 2] {
        world.happens(link(number, true));
        world.connect(number);
    }
    let closed = |out: &[Output], number| {
        out.iter().any(|output| {
            matches!(output, Output::World(Action::Close { channel }) if *channel == ChannelId(number))
        })
    };
    let out = world.happens(link(1, false));
    assert!(closed(&out, 1) && !world.is_up(1));
    // One that may be reached in another way notices it in its own time.
    let out = world.happens(link(2, false));
    assert!(!closed(&out, 2) && world.is_up(2));
    // What was tried meanwhile has failed.
    let opens = |out: &[Output]| {
        out.iter().find_map(|output| match output {
            Output::World(Action::Stream { token, request: StreamRequest::Open(_) }) => {
                Some(*token)
            }
            _ => None,
        })
    };
    world.now += Duration::from_secs(2);
    let token = opens(&world.happens(Event::Tick)).unwrap();
    let event = StreamEvent::Failed { error: "no way".to_owned() };
    assert_eq!(opens(&world.happens(Event::Stream { token, event })), None);
    assert!(opens(&world.happens(link(1, true))).is_some());
    assert_eq!(opens(&world.happens(link(1, true))), None, "nothing is different");
}

#[test]
fn whoever_connects_from_a_range_is_a_peer_until_nothing_of_him_is_left() {
    let range = |more: &str| {
        let text =
            format!("range 10.0.0.0/16 {{ as external; limit 1; import all; export all; {more} }}");
        configured(&text, ["-", "-"])
    };
    let mut world = World::started("");
    world.born(false);
    let configure = |world: &mut World, config| {
        let mut out = Vec::new();
        world.bgp.configure(world.now, config, &mut out);
        world.happens(Event::Tick);
        out
    };
    configure(&mut world, range(""));
    assert!(world.bgp.peers.is_empty());
    world.connect(1);
    world.announces(1, &prefix(1));
    assert_eq!(world.rib.routes.len(), 1);
    let accepted = |number: u8| {
        let event = StreamEvent::Accepted {
            channel: ChannelId(number.into()),
            local: SocketAddr::new([10, 0, number, 1].into(), PORT),
            peer: SocketAddr::new(address(number).into(), 40_000),
        };
        Event::Stream { token: LISTENERS[0], event }
    };
    let out = world.happens(accepted(2));
    assert!(
        matches!(&out[..], [Output::World(Action::Close { channel: ChannelId(2) })]),
        "one may"
    );
    // It may be back in a moment.
    let lose = |world: &mut World, number| {
        world.happens(Event::Closed { channel: ChannelId(number) });
        world.now += Duration::from_millis(20);
        world.happens(Event::Tick);
    };
    lose(&mut world, 1);
    assert!(world.bgp.peers.is_empty() && world.rib.routes.is_empty());
    world.connect(2);
    lose(&mut world, 2);
    world.connect(3);
    assert_eq!(world.bgp.routes.sources(), 2, "the place of one that is gone serves again");
    lose(&mut world, 3);
    world.connect(2);
    // A change that needs a reset ends it, and so does the end of the range.
    assert!(notification(2, &configure(&mut world, range("hold-time 30s;"))).is_some());
    world.connect(2);
    assert!(notification(2, &configure(&mut world, configured("", ["-", "-"]))).is_some());
    assert!(world.bgp.peers.is_empty());
}

/// RFC 9774.
#[test]
fn paths_with_sets_are_taken_where_that_is_said() {
    for (words, expected) in [("", false), ("accept-as-sets on;", true)] {
        let mut world = World::started("");
        world.born(false);
        world.configure([words, ""]);
        world.connect(1);
        let net = ipnet::Ipv4Net::new([203, 0, 113, 0].into(), 24).unwrap();
        let context = Context { accept_as_sets: true, ..Context::new(Neighbour::External) };
        // 65001 {65002}, with numbers of as many octets as were agreed on.
        let path = [&[2u8, 1][..], &number(65001, &context), &[1, 1], &number(65002, &context)];
        let attributes = Attributes {
            as_path: AsPath::parse(&path.concat(), context.four_octet_as).unwrap(),
            next_hop: Some(NextHop::V4(address(1))),
            ..Attributes::default()
        };
        let mut bytes = Vec::new();
        let encoder = UpdateEncoder::new(&attributes, Family::IPV4_UNICAST, &context).unwrap();
        encoder.all([(0, net.prefix())], &mut bytes);
        world.says(1, &bytes);
        assert_eq!(world.rib.routes.contains(&net.into()), expected, "{words}");
    }
}

/// A number of an autonomous system as paths have it.
fn number(number: u32, context: &Context) -> Vec<u8> {
    let skipped = if context.four_octet_as { 0 } else { 2 };
    number.to_be_bytes()[skipped..].to_vec()
}
