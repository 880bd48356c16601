//! The principal as XIP sees it: what the kernel tells in, answers and requests out.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use weft_base::{Instant, LinkAddress, PortId};
use weft_port::PortInfo;
use weft_routing::Prefix;
use weft_runtime::{InterfaceAddress, IpChange, IpWay, Level};
use weft_xip::Xid;
use weft_xip::changes::Change;
use weft_xip::forward::DropReason;
use weft_xip::principal::{Answer, Input, NextHop, Output, Principal};

use crate::{DualStack, Version, to_xid};

const NOW: Instant = Instant::ZERO;
const LATER: Instant = Instant::from_nanos(2_000_000_000);
const ROUTER: [u8; 6] = [2, 0, 0, 0, 0, 1];
const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 2];

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn xid(text: &str) -> Xid {
    to_xid(ip(text)).unwrap()
}

fn prefix(text: &str) -> InterfaceAddress {
    let (address, length) = text.split_once('/').unwrap();
    InterfaceAddress { ip: ip(address), prefix_length: length.parse().unwrap() }
}

fn route(to: &str, way: Option<IpWay>) -> IpChange {
    IpChange::Route { destination: prefix(to), way }
}

fn via(interface: u32, gateway: &str) -> Option<IpWay> {
    Some(IpWay::Out { interface, gateway: Some(ip(gateway)) })
}

fn link(interface: u32) -> Option<IpWay> {
    Some(IpWay::Out { interface, gateway: None })
}

fn neighbour(interface: u32, address: &str, mac: Option<[u8; 6]>, idle: bool) -> IpChange {
    IpChange::Neighbour { interface, ip: ip(address), mac, idle }
}

fn interface(index: u32, name: &str) -> IpChange {
    IpChange::Interface { index, name: Some(name.to_owned()) }
}

fn up(name: &str, port: u32) -> Input {
    let info = PortInfo { mac: [2; 6], mtu: 1500, local: None };
    Input::InterfaceUp { name: name.to_owned(), port: PortId(port), info }
}

fn tell_at(node: &mut DualStack, now: Instant, input: Input) -> Vec<String> {
    let mut out = Vec::new();
    node.handle(now, input, &mut out);
    let text = |output: Output| match output {
        Output::WatchIp => "watch".to_owned(),
        Output::FindNeighbour { interface, ip } => format!("find {interface} {ip}"),
        Output::Report { level: Level::Error | Level::Warning, line } => line,
        Output::Report { level: Level::Info, .. } => "well again".to_owned(),
        other => panic!("{other:?}"),
    };
    out.into_iter().map(text).collect()
}

fn told(node: &mut DualStack, changes: Vec<IpChange>) -> Vec<String> {
    tell_at(node, NOW, Input::Ip { changes })
}

fn ask(node: &DualStack, to: &str) -> Answer {
    node.lookup(&xid(to), &mut Vec::new())
}

fn changes(node: &mut DualStack) -> Vec<Change> {
    let mut changes = Vec::new();
    node.drain_changes(&mut changes);
    changes
}

fn to(port: u32, mac: [u8; 6]) -> Answer {
    Answer::Forward(NextHop { port: PortId(port), link: LinkAddress::Mac(mac) })
}

/// A router with two interfaces, a default route and a network behind another router.
fn router() -> DualStack {
    let mut node = DualStack::new(Version::V4);
    assert_eq!(node.deadline(), Some(NOW), "it has something to ask for");
    assert_eq!(tell_at(&mut node, NOW, up("left", 1)), ["watch"]);
    assert_eq!(tell_at(&mut node, NOW, up("right", 2)), [""; 0]);
    let sought = told(
        &mut node,
        vec![
            IpChange::Again,
            interface(11, "left"),
            interface(12, "right"),
            interface(13, "office"),
            route("10.0.1.1/32", Some(IpWay::Local)),
            route("127.0.0.0/8", Some(IpWay::Local)),
            route("127.0.0.1/32", Some(IpWay::Local)),
            route("10.0.1.0/24", link(11)),
            route("10.0.2.0/24", link(12)),
            route("0.0.0.0/0", via(11, "10.0.1.2")),
            route("10.9.0.0/16", via(12, "10.0.2.2")),
            route("10.8.0.0/16", via(13, "10.0.3.2")),
            route("10.9.9.0/24", Some(IpWay::Nowhere)),
            IpChange::Complete,
        ],
    );
    // Those that packets of XIP can be sent to.
    assert_eq!(sought, ["find 11 10.0.1.2", "find 12 10.0.2.2"]);
    let found = vec![neighbour(11, "10.0.1.2", Some(ROUTER), false)];
    assert_eq!(told(&mut node, found), [""; 0]);
    changes(&mut node);
    node
}

#[test]
fn the_kernels_table_decides() {
    let mut node = router();
    assert_eq!(ask(&node, "10.0.1.1"), Answer::Through);
    assert_eq!(ask(&node, "192.0.2.7"), to(1, ROUTER));
    assert_eq!(ask(&node, "10.0.1.2"), to(1, ROUTER));
    assert_eq!(ask(&node, "10.8.0.1"), Answer::Unknown, "no XIP out of there");
    assert_eq!(ask(&node, "10.9.9.1"), Answer::Unknown, "a route that leads nowhere");
    assert_eq!(ask(&node, "10.9.1.1"), Answer::Unknown, "the router has not answered");
    assert_eq!(node.locals(), [xid("10.0.1.1")]);
    told(&mut node, vec![route("10.0.1.1/32", link(11)), route("10.0.2.1/32", Some(IpWay::Local))]);
    assert_eq!(node.locals(), [xid("10.0.2.1")]);
    told(&mut node, vec![route("10.0.2.1/32", None)]);
    assert_eq!(node.locals(), []);
    let loopback = Xid::new(node.kind(), {
        let mut id = [0; 20];
        id[..4].copy_from_slice(&[127, 0, 0, 1]);
        id
    });
    let refused = Answer::Refuse(DropReason::MalformedXid);
    assert_eq!(node.lookup(&loopback, &mut Vec::new()), refused);
}

#[test]
fn a_host_on_the_link_is_looked_for_when_it_is_needed_and_again_if_it_still_is() {
    let mut node = router();
    assert_eq!(ask(&node, "10.0.1.9"), Answer::Unknown);
    assert_eq!(ask(&node, "10.0.1.9"), Answer::Unknown);
    assert_eq!(node.deadline(), Some(NOW));
    assert_eq!(tell_at(&mut node, NOW, Input::Tick), ["find 11 10.0.1.9"]);
    assert!(node.deadline() > Some(NOW), "now it is waited for");
    assert_eq!(ask(&node, "10.0.1.9"), Answer::Unknown);
    assert_eq!(tell_at(&mut node, NOW, Input::Tick), [""; 0], "once is enough");
    // Who rests on it is asked again, and asks for it again.
    changes(&mut node);
    assert_eq!(tell_at(&mut node, LATER, Input::Tick), [""; 0]);
    assert!(changes(&mut node).contains(&Change::Xid(xid("10.0.1.9"))));
    assert_eq!(node.deadline(), None, "nobody has asked");
    ask(&node, "10.0.1.9");
    assert_eq!(tell_at(&mut node, LATER, Input::Tick), ["find 11 10.0.1.9"]);
    let found = vec![neighbour(11, "10.0.1.9", Some(OTHER), false)];
    assert_eq!(told(&mut node, found), [""; 0]);
    assert_eq!(changes(&mut node), [Change::Xid(xid("10.0.1.9"))]);
    assert_eq!(ask(&node, "10.0.1.9"), to(1, OTHER));
    assert_eq!(node.deadline(), None);
}

#[test]
fn hosts_that_do_not_answer_take_few_places() {
    let mut node = router();
    let mut sought = 0;
    for last in 3..=254 {
        ask(&node, &format!("10.0.1.{last}"));
        sought += tell_at(&mut node, NOW, Input::Tick).len();
    }
    // The router that has not answered takes one.
    assert_eq!(sought, 63);
    // A router is looked for nevertheless.
    let change = vec![route("10.7.0.0/16", via(11, "10.0.1.254"))];
    assert_eq!(told(&mut node, change), ["find 11 10.0.1.254"]);
}

fn ask_all<'a>(node: &DualStack, addresses: impl IntoIterator<Item = &'a String>) {
    for address in addresses {
        ask(node, address);
    }
}

/// Asks as the routing cache does: about each of `kept` whose answer may be another one now. Then time is given, and what
/// follows from that is done, too. Returns who is looked for.
fn go_on(node: &mut DualStack, now: Instant, kept: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    loop {
        let changes = changes(node);
        let has_changed = |address: &&String| {
            let xid = xid(address);
            changes.iter().any(|change| match change {
                Change::Range(first, last) => (*first..=*last).contains(&xid),
                Change::Xid(changed) => *changed == xid,
                Change::All => true,
            })
        };
        ask_all(node, kept.iter().filter(has_changed));
        if node.deadline().is_none_or(|due| due > now) {
            return found;
        }
        found.extend(tell_at(node, now, Input::Tick));
    }
}

fn at(ms: u64) -> Instant {
    NOW + Duration::from_millis(ms)
}

fn hosts(count: u8) -> Vec<String> {
    (3..3 + count).map(|last| format!("10.0.1.{last}")).collect()
}

#[test]
fn a_host_for_which_there_was_no_room_is_looked_for_when_others_have_not_answered() {
    let mut node = router();
    let kept = hosts(70);
    // More than are noted at a time.
    ask_all(&node, &kept);
    let first = go_on(&mut node, at(0), &kept);
    let find = |address: &String| format!("find 11 {address}");
    assert_eq!(first, kept[..63].iter().map(find).collect::<Vec<_>>());
    let next = go_on(&mut node, at(1000), &kept);
    assert!(kept[63..].iter().all(|address| next.contains(&find(address))), "{next:?}");
}

#[test]
fn hosts_that_do_not_answer_keep_no_other_out() {
    let mut node = router();
    let mut kept = hosts(100);
    ask_all(&node, &kept);
    for ms in (0..60_000).step_by(100) {
        go_on(&mut node, at(ms), &kept);
    }
    kept.push("10.0.1.200".to_owned());
    ask(&node, "10.0.1.200");
    let mut found = Vec::new();
    for ms in (60_000..62_000).step_by(100) {
        found.extend(go_on(&mut node, at(ms), &kept));
    }
    assert!(found.contains(&"find 11 10.0.1.200".to_owned()), "{found:?}");
}

#[test]
fn what_very_many_look_ups_did_not_find_is_bounded_and_asked_about_again() {
    let mut node = router();
    told(&mut node, vec![route("10.4.0.0/16", link(11))]);
    let kept: Vec<_> = (0..3000).map(|n| format!("10.4.{}.{}", n / 250, 1 + n % 250)).collect();
    changes(&mut node);
    ask_all(&node, &kept);
    let (mut found, mut most) = (BTreeSet::new(), 0);
    for ms in (0..300_000).step_by(500) {
        found.extend(go_on(&mut node, at(ms), &kept));
        most = most.max(node.show()["sought"].as_array().unwrap().len());
    }
    assert_eq!((most, found.len()), (64, 3000));
}

#[test]
fn a_router_is_noted_though_hosts_have_taken_all_places() {
    let mut node = router();
    go_on(&mut node, at(1000), &[]);
    ask_all(&node, &hosts(70));
    ask(&node, "10.9.1.1");
    let found = tell_at(&mut node, at(1000), Input::Tick);
    assert!(found.contains(&"find 12 10.0.2.2".to_owned()), "{found:?}");
}

#[test]
fn a_silent_neighbour_is_probed_if_it_was_used_and_left_when_it_is_gone() {
    let mut node = router();
    let idle = || vec![neighbour(11, "10.0.1.2", Some(ROUTER), true)];
    assert_eq!(told(&mut node, idle()), [""; 0], "nobody used it");
    assert_eq!(changes(&mut node), []);
    ask(&node, "192.0.2.7");
    assert_eq!(told(&mut node, idle()), ["find 11 10.0.1.2"]);
    let all = Change::Range(range("0.0.0.0/0").0, range("0.0.0.0/0").1);
    assert_eq!(changes(&mut node), [all, Change::Xid(xid("10.0.1.2"))]);
    assert_eq!(told(&mut node, idle()), [""; 0], "nobody used it since");
    assert_eq!(ask(&node, "192.0.2.7"), to(1, ROUTER));
    assert_eq!(told(&mut node, vec![neighbour(11, "10.0.1.2", None, false)]), [""; 0]);
    assert_eq!(changes(&mut node), [all, Change::Xid(xid("10.0.1.2"))]);
    assert_eq!(ask(&node, "192.0.2.7"), Answer::Unknown);
}

fn range(text: &str) -> (Xid, Xid) {
    let InterfaceAddress { ip, prefix_length } = prefix(text);
    let IpAddr::V4(ip) = ip else { panic!("{ip}") };
    let prefix = Prefix::from(ip).truncate(prefix_length);
    let end = |bytes: [u8; 24]| Xid::new(Version::V4.kind(), *bytes.first_chunk().unwrap());
    (end(prefix.first()), end(prefix.last()))
}

#[test]
fn a_change_is_told_as_the_range_of_its_prefix_and_no_change_is_not() {
    let mut node = router();
    told(&mut node, vec![route("10.9.0.0/16", via(11, "10.0.1.2"))]);
    let (first, last) = range("10.9.0.0/16");
    assert_eq!(changes(&mut node), [Change::Range(first, last)]);
    assert_eq!(ask(&node, "10.9.1.1"), to(1, ROUTER));
    told(&mut node, vec![route("10.9.0.0/16", via(11, "10.0.1.2"))]);
    told(&mut node, vec![route("2001:db8::/32", via(11, "fe80::1"))]);
    assert_eq!(changes(&mut node), []);
}

#[test]
fn what_is_not_told_again_is_gone_and_until_then_it_counts() {
    let mut node = router();
    told(
        &mut node,
        vec![IpChange::Again, interface(11, "left"), route("0.0.0.0/0", via(11, "10.0.1.2"))],
    );
    assert_eq!(ask(&node, "10.0.1.1"), Answer::Through);
    assert_eq!(changes(&mut node), []);
    told(&mut node, vec![neighbour(11, "10.0.1.2", Some(ROUTER), false), IpChange::Complete]);
    assert!(!changes(&mut node).is_empty());
    assert_eq!(ask(&node, "10.0.1.1"), to(1, ROUTER), "it is not local any more");
    assert_eq!(node.show()["routes"].as_array().unwrap().len(), 1);
}

#[test]
fn an_interface_that_is_down_or_has_no_port_is_no_way() {
    let mut node = router();
    tell_at(&mut node, NOW, Input::InterfaceDown { port: PortId(1) });
    assert_eq!(changes(&mut node), [Change::All]);
    assert_eq!(ask(&node, "192.0.2.7"), Answer::Unknown);
    tell_at(&mut node, NOW, up("left", 5));
    assert_eq!(ask(&node, "192.0.2.7"), to(5, ROUTER));
    told(&mut node, vec![IpChange::Interface { index: 11, name: None }]);
    assert_eq!(ask(&node, "192.0.2.7"), Answer::Unknown);
}

#[test]
fn a_machine_without_a_table_is_told_of_loudly() {
    let mut node = DualStack::new(Version::V6);
    tell_at(&mut node, NOW, Input::Tick);
    let missing = |is_ipv6| IpChange::NoTable { is_ipv6, error: "none here".to_owned() };
    let lines =
        told(&mut node, vec![IpChange::Again, missing(false), missing(true), IpChange::Complete]);
    assert_eq!(lines, ["x6id forwards nothing: none here"]);
    assert_eq!(node.show()["error"], json!("none here"));
}

#[test]
fn rules_that_are_not_followed_are_told_of_once() {
    let mut node = router();
    let rules = |is_ipv6, count| IpChange::Rules { is_ipv6, count };
    assert_eq!(told(&mut node, vec![rules(true, 2)]), [""; 0], "of the other version");
    let lines = told(&mut node, vec![rules(false, 2), rules(false, 2)]);
    assert!(lines.len() == 1 && lines[0].contains("`ip rule`"), "{lines:?}");
    assert_eq!(node.show()["rules"], json!(2));
    // Told anew, without them.
    assert_eq!(
        told(&mut node, vec![IpChange::Again, rules(false, 2), IpChange::Complete]),
        [""; 0]
    );
    assert_eq!(told(&mut node, vec![IpChange::Again, IpChange::Complete]), ["well again"]);
}

#[test]
fn ipv6_goes_over_routers_that_have_addresses_on_their_link_alone() {
    let mut node = DualStack::new(Version::V6);
    tell_at(&mut node, NOW, up("left", 1));
    let changes = vec![
        interface(11, "left"),
        route("2001:db8:1::/48", via(11, "fe80::2")),
        neighbour(11, "fe80::2", Some(ROUTER), false),
    ];
    told(&mut node, changes);
    assert_eq!(ask(&node, "2001:db8:1::7"), to(1, ROUTER));
    assert_eq!(ask(&node, "2001:db8:2::7"), Answer::Unknown);
    let shown = node.show();
    let line = json!({ "prefix": "2001:db8:1::/48", "interface": "left", "gateway": "fe80::2", "origin": "kernel" });
    assert_eq!(shown["routes"], json!([line]));
    let line = json!({
        "interface": "left", "ip": "fe80::2", "link": "02:00:00:00:00:01", "xid": null, "origin": "kernel",
    });
    assert_eq!(shown["neighbours"], json!([line]));
}

#[test]
fn a_statement_is_refused_with_its_place() {
    let mut node = DualStack::new(Version::V4);
    let error = node.set(NOW, &["route", "x"], &mut Vec::new()).unwrap_err();
    assert_eq!(error.word, Some(0));
    assert!(error.text.contains("ip route"), "{error}");
    assert_eq!(node.delete(NOW, &[], &mut Vec::new()).unwrap_err().word, None);
}

/// Prefixes that contain each other, in 10.0.0.0/8.
fn prefixes() -> impl Strategy<Value = InterfaceAddress> {
    (0..3u8, 0..3u8, prop::sample::select(vec![0u8, 8, 16, 24, 32])).prop_map(
        |(two, last, length)| {
            let bits = u32::from_be_bytes([10, two, 0, last]);
            let kept = bits & u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            InterfaceAddress { ip: IpAddr::from(kept.to_be_bytes()), prefix_length: length }
        },
    )
}

fn ways() -> impl Strategy<Value = Option<IpWay>> {
    let out = (11..13u32, prop::option::of(0..3u8)).prop_map(|(interface, router)| {
        let gateway = router.map(|router| IpAddr::from([10, 0, 0, router]));
        Some(IpWay::Out { interface, gateway })
    });
    prop_oneof![Just(None), Just(Some(IpWay::Local)), Just(Some(IpWay::Nowhere)), out.clone(), out]
}

#[derive(Clone, Debug)]
enum Step {
    Route(InterfaceAddress, Option<IpWay>),
    Neighbour(u32, u8, Option<u8>, bool),
    Interface(u32, bool),
    Port(u32, bool),
    /// The kernel's tables are told anew, without some things.
    Again(u8),
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (prefixes(), ways()).prop_map(|(prefix, way)| Step::Route(prefix, way)),
        3 => (11..13u32, 0..3u8, prop::option::of(0..2u8), any::<bool>())
            .prop_map(|(on, last, mac, idle)| Step::Neighbour(on, last, mac, idle)),
        1 => (11..13u32, any::<bool>()).prop_map(|(index, is_up)| Step::Interface(index, is_up)),
        1 => (11..13u32, any::<bool>()).prop_map(|(index, is_up)| Step::Port(index, is_up)),
        1 => any::<u8>().prop_map(Step::Again),
    ]
}

#[derive(Default)]
struct Model {
    routes: BTreeMap<InterfaceAddress, IpWay>,
    neighbours: BTreeMap<(u32, IpAddr), [u8; 6]>,
    interfaces: BTreeMap<u32, bool>,
    ports: BTreeMap<u32, bool>,
}

impl Model {
    fn answer(&self, to: IpAddr) -> Answer {
        let covers = |destination: &InterfaceAddress| {
            let (IpAddr::V4(net), IpAddr::V4(to)) = (destination.ip, to) else { return false };
            let differs = net.to_bits() ^ to.to_bits();
            differs.leading_zeros() >= u32::from(destination.prefix_length)
        };
        let best = self.routes.iter().filter(|(destination, _)| covers(destination));
        match best.max_by_key(|(destination, _)| destination.prefix_length) {
            Some((_, IpWay::Local)) => Answer::Through,
            Some((_, IpWay::Out { interface, gateway })) => {
                let works = |of: &BTreeMap<u32, bool>| of.get(interface) == Some(&true);
                match self.neighbours.get(&(*interface, gateway.unwrap_or(to))) {
                    Some(mac) if works(&self.interfaces) && works(&self.ports) => {
                        self::to(*interface, *mac)
                    }
                    _ => Answer::Unknown,
                }
            }
            _ => Answer::Unknown,
        }
    }

    /// Tells everything anew, without what `without` chooses.
    fn again(&mut self, without: u8) -> Vec<IpChange> {
        let mut place = 0;
        let mut keep = || {
            place = (place + 1) % 8;
            without >> place & 1 == 0
        };
        self.routes.retain(|_, _| keep());
        self.neighbours.retain(|_, _| keep());
        self.interfaces.retain(|_, _| keep());
        let mut told = vec![IpChange::Again];
        let name = |index: u32| Some(format!("eth{index}"));
        let up = self.interfaces.iter().filter(|(_, up)| **up);
        told.extend(up.map(|(index, _)| IpChange::Interface { index: *index, name: name(*index) }));
        told.extend(
            self.routes
                .iter()
                .map(|(to, way)| IpChange::Route { destination: *to, way: Some(*way) }),
        );
        told.extend(self.neighbours.iter().map(|((interface, ip), mac)| IpChange::Neighbour {
            interface: *interface,
            ip: *ip,
            mac: Some(*mac),
            idle: false,
        }));
        told.push(IpChange::Complete);
        told
    }
}

proptest! {
    /// The model is a list that is searched from one end to the other; and what answers otherwise than before was told.
    #[test]
    fn agrees_with_a_list_and_tells_every_change(steps in prop::collection::vec(steps(), 1..50)) {
        let (mut node, mut model) = (DualStack::new(Version::V4), Model::default());
        let names: Vec<IpAddr> = (0..3u8)
            .flat_map(|two| (0..3u8).map(move |last| IpAddr::from([10, two, 0, last])))
            .chain([IpAddr::from([11, 0, 0, 1])])
            .collect();
        let answers = |node: &DualStack| -> Vec<_> {
            names.iter().map(|name| node.lookup(&to_xid(*name).unwrap(), &mut Vec::new())).collect()
        };
        for step in steps {
            let before = answers(&node);
            match step {
                Step::Route(destination, way) => {
                    match way {
                        Some(way) => model.routes.insert(destination, way),
                        None => model.routes.remove(&destination),
                    };
                    told(&mut node, vec![IpChange::Route { destination, way }]);
                }
                Step::Neighbour(interface, last, mac, idle) => {
                    let ip = IpAddr::from([10, 0, 0, last]);
                    let mac = mac.map(|mac| [2, 0, 0, 0, 0, mac]);
                    match mac {
                        Some(mac) => model.neighbours.insert((interface, ip), mac),
                        None => model.neighbours.remove(&(interface, ip)),
                    };
                    told(&mut node, vec![IpChange::Neighbour { interface, ip, mac, idle }]);
                }
                Step::Interface(index, is_up) => {
                    model.interfaces.insert(index, is_up);
                    let name = is_up.then(|| format!("eth{index}"));
                    told(&mut node, vec![IpChange::Interface { index, name }]);
                }
                Step::Port(index, is_up) => {
                    model.ports.insert(index, is_up);
                    let input = match is_up {
                        true => up(&format!("eth{index}"), index),
                        false => Input::InterfaceDown { port: PortId(index) },
                    };
                    tell_at(&mut node, NOW, input);
                }
                Step::Again(without) => {
                    let changes = model.again(without);
                    told(&mut node, changes);
                }
            }
            let changes = changes(&mut node);
            for ((name, before), after) in names.iter().zip(before).zip(answers(&node)) {
                prop_assert_eq!(after, model.answer(*name), "{}", name);
                let xid = to_xid(*name).unwrap();
                let told = changes.iter().any(|change| match change {
                    Change::Range(first, last) => (*first..=*last).contains(&xid),
                    Change::Xid(changed) => *changed == xid,
                    Change::All => true,
                });
                prop_assert!(told || before == after, "{} changed untold", name);
            }
        }
    }

    #[test]
    fn time_is_asked_for_only_while_something_is_sought(last in 3..250u8) {
        let mut node = router();
        tell_at(&mut node, NOW + Duration::from_secs(5), Input::Tick);
        prop_assert_eq!(node.deadline(), None);
        ask(&node, &format!("10.0.1.{last}"));
        prop_assert_eq!(node.deadline(), Some(NOW));
    }
}
