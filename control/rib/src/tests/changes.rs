//! What protocols tell the RIB by calls, and what comes of it.

use weft_xrl::{Arguments as _, Decoder};

use super::*;
use crate::{Activity, Rib, interface};

/// Somebody speaks for a protocol that is trusted, or not.
fn open(rib: &mut Rib, protocol: &str, session: u64, is_own: bool) -> u32 {
    let request =
        interface::OpenOrigin { protocol: protocol.to_owned(), external: false, distance: 10 };
    let (config, tables) = (&rib.config, &mut rib.tables);
    let who = (session, is_own);
    u32::from(rib.origins.open(Instant::ZERO, who, request, config, tables).unwrap().id.0)
}

fn tell_all(rib: &mut Rib, session: u64, request: interface::Change) {
    rib.change(Instant::ZERO, session, request, &mut Vec::new()).unwrap();
}

/// What the FEA is told, of one version of IP.
fn told(rib: &mut Rib, version: Version) -> crate::fib_interface::Change {
    let mut fib = Fib::new(version);
    let mut out = Vec::new();
    settle(&mut rib.tables);
    fib.born(254, &mut rib.tables, &mut Vec::new());
    fib.tell(false, &mut rib.tables, &mut out);
    fib.away(&mut rib.tables);
    let calls = out.into_iter().filter_map(|output| match output {
        Output::Call(call) => Some(call.arguments),
        _ => None,
    });
    let arguments = calls.last().unwrap();
    let mut from = Decoder::new(arguments.args.bytes(), Vec::new());
    crate::fib_interface::Change::decode(&mut from).unwrap()
}

#[test]
fn what_the_fea_would_refuse_holds_up_no_other_route() {
    let mut rib = Rib::new();
    let origin = open(&mut rib, "test", 1, true);
    let good = ("2001:db8:1::/48", "2001:db8::1");
    tell_all(&mut rib, 1, change(origin, &[good, ("2001:db8:2::/48", "2001:db8::1")]));
    // IPv6 has no way by IPv4; IPv4 has one by IPv6 (RFC 8950).
    let bad = ("2001:db8:2::/48", "192.0.2.1");
    tell_all(&mut rib, 1, change(origin, &[bad, ("10.0.0.0/8", "2001:db8::1")]));
    let nets = |rib: &mut Rib, version| {
        told(rib, version).routes.iter().map(|route| route.net).collect::<Vec<_>>()
    };
    assert_eq!(nets(&mut rib, Version::V6), [net(good.0)]);
    assert_eq!(nets(&mut rib, Version::V4), [net("10.0.0.0/8")]);
    assert_eq!(rib.counters.get(Activity::BadHop), 1);
}

#[test]
fn a_set_has_as_many_ways_as_the_fea_takes() {
    let mut rib = Rib::new();
    let origin = open(&mut rib, "test", 1, true);
    let hop = |gateway: IpAddr, interface| interface::Hop {
        set: crate::FIRST_SET,
        gateway,
        interface,
        weight: 1,
    };
    let with = |hops, to| {
        let route = interface::Route { net: net(to), set: crate::FIRST_SET, metric: 0, tag: 0 };
        interface::Change { hops, routes: vec![route], ..change(origin, &[]) }
    };
    let many = (1..=300).map(|interface| hop(ip("0.0.0.0"), interface)).collect();
    tell_all(&mut rib, 1, with(many, "10.0.0.0/8"));
    assert_eq!(rib.counters.get(Activity::BadHop), 44);
    // Two gateways, each of which is reached by all of them.
    let far = ["10.0.0.1", "10.0.0.2"].map(|gateway| hop(ip(gateway), 0)).to_vec();
    tell_all(&mut rib, 1, with(far, "198.51.100.0/24"));
    for to in ["10.0.0.0/8", "198.51.100.0/24"] {
        assert_eq!(used(&mut rib.tables, to).map(|ways| ways.len()), Some(256), "{to}");
    }
}

#[test]
fn gateways_and_answers_are_found_anew_when_an_origin_is_trusted_otherwise() {
    let mut tables = Tables::new();
    let [a, b] =
        [INTERNAL, Standing { distance: 120, ..INTERNAL }].map(|one| tables.add_origin(one));
    let bgp = tables.add_origin(EXTERNAL);
    tell(&mut tables, a, "198.51.100.0/24", hop(None, 1), 0);
    tell(&mut tables, b, "198.51.100.0/24", hop(None, 2), 0);
    tell(&mut tables, bgp, "203.0.113.0/24", hop(Some("198.51.100.7"), 0), 0);
    let (block, _) = tables.register(1, ip("198.51.100.7"));
    assert_eq!(used(&mut tables, "203.0.113.0/24"), Some(way("198.51.100.7", 1)));
    for (distance, interface) in [(255, 2), (110, 1), (121, 2)] {
        tables.set_standing(a, Standing { distance, ..INTERNAL });
        assert_eq!(used(&mut tables, "203.0.113.0/24"), Some(way("198.51.100.7", interface)));
        assert_eq!(tables.take_invalid(), [(1, block)]);
        tables.register(1, ip("198.51.100.7"));
    }
}

#[test]
fn a_route_that_is_never_used_hides_no_shorter_one() {
    let mut tables = Tables::new();
    let good = tables.add_origin(INTERNAL);
    let never = tables.add_origin(Standing { distance: 255, ..INTERNAL });
    let bgp = tables.add_origin(EXTERNAL);
    tell(&mut tables, good, "10.0.0.0/8", hop(None, 1), 0);
    tell(&mut tables, never, "10.1.1.0/24", hop(None, 2), 0);
    tell(&mut tables, never, "10.1.0.0/16", hop(None, 2), 0);
    tell(&mut tables, bgp, "203.0.113.0/24", hop(Some("10.1.1.1"), 0), 0);
    assert_eq!(used(&mut tables, "203.0.113.0/24"), Some(way("10.1.1.1", 1)));
    let (block, answer) = tables.register(1, ip("10.1.1.1"));
    assert_eq!((block, answer.way.is_some()), (net("10.1.1.0/24"), true));
}

fn configure(rib: &mut Rib, text: &str) {
    rib.configure(Instant::ZERO, crate::config::read("t", text).unwrap(), &mut Vec::new());
}

fn has(rib: &Rib, to: &str, origin: u32) -> bool {
    rib.tables.has_route(place(to), OriginId(origin as u16))
}

const GUEST: [(&str, &str); 2] = [("10.1.0.0/16", "192.0.2.1"), ("10.2.0.0/16", "192.0.2.1")];

#[test]
fn what_was_refused_is_told_again_when_more_is_allowed() {
    for wider in ["rib { guard guest { most 2; } }", "rib;"] {
        let mut rib = Rib::trusting(["guest"]);
        configure(&mut rib, "rib { guard guest { most 1; } }");
        let guest = open(&mut rib, "guest", 1, true);
        tell_all(&mut rib, 1, change(guest, &GUEST));
        assert!(has(&rib, "10.1.0.0/16", guest) && !has(&rib, "10.2.0.0/16", guest));
        configure(&mut rib, wider);
        let error = rib.change(Instant::ZERO, 1, change(guest, &[]), &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("open the origin again"), "{error}");
        assert!(has(&rib, "10.1.0.0/16", guest), "what it has told serves on");
        assert_eq!(open(&mut rib, "guest", 1, true), guest);
        tell_all(&mut rib, 1, change(guest, &GUEST));
        assert!(has(&rib, "10.1.0.0/16", guest) && has(&rib, "10.2.0.0/16", guest));
        // Where nothing was refused, nothing has to be told again.
        configure(&mut rib, "rib { guard guest { most 9; } }");
        tell_all(&mut rib, 1, change(guest, &[]));
    }
}

#[test]
fn routes_from_before_a_restart_take_no_room_from_those_after_it() {
    let mut rib = Rib::trusting(["bgp"]);
    configure(&mut rib, "rib { guard guest { most 2; } }");
    let guest = open(&mut rib, "guest", 1, false);
    tell_all(&mut rib, 1, change(guest, &GUEST));
    let hop = "192.0.2.1";
    let other = [("10.3.0.0/16", hop), GUEST[0], ("10.4.0.0/16", hop), ("10.5.0.0/16", hop)];
    let all = ["10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16", "10.4.0.0/16", "10.5.0.0/16"];
    assert_eq!(open(&mut rib, "guest", 1, false), guest);
    tell_all(&mut rib, 1, change(guest, &other));
    assert_eq!(all.map(|to| has(&rib, to, guest)), [true, true, true, false, false]);
    rib.origins.end(1, guest, &mut rib.tables).unwrap();
    settle(&mut rib.tables);
    assert_eq!(all.map(|to| has(&rib, to, guest)), [true, false, true, false, false]);
    // Who begins again and again and never ends has twice as many at most.
    for number in 0..9 {
        open(&mut rib, "guest", 1, false);
        let to = [format!("10.1{number}.0.0/16"), format!("10.2{number}.0.0/16")];
        tell_all(&mut rib, 1, change(guest, &[(&to[0], hop), (&to[1], hop)]));
    }
    let id = OriginId(guest as u16);
    assert_eq!(rib.tables.routes.routes_of(Version::V4, id), 4);
}

#[test]
fn the_fea_keeps_what_it_has_until_protocols_had_the_time_to_come_back() {
    let mut rib = Rib::trusting(["static", "bgp"]);
    rib.origins.started(Instant::ZERO);
    let first = open(&mut rib, "static", 1, true);
    rib.origins.end(1, first, &mut rib.tables).unwrap();
    assert!(!rib.origins.have_told(), "others may come");
    let second = open(&mut rib, "bgp", 2, true);
    rib.origins.tick(rib.origins.deadline().unwrap(), &mut rib.tables);
    assert!(!rib.origins.have_told(), "one that has come is waited for");
    rib.origins.end(2, second, &mut rib.tables).unwrap();
    assert!(rib.origins.have_told());
}
