//! The principal as XIP sees it: statements in, answers out.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;
use weft_base::{Instant, Random};
use weft_routing::Prefix;
use weft_xip::changes::Change;
use weft_xip::principal::{Answer, BindError, Branch, GatewaySet, Principal, SocketId};
use weft_xip::words::WordError;
use weft_xip::{Xid, XidType};

use weft_xip::prefixes::{Lead, PrefixError, PrefixNews};

use crate::Lpm;

fn host(id: u8) -> Xid {
    Xid::new(XidType::HID, [id; 20])
}

/// The XID of an IPv4 address.
fn lpm(address: &str) -> Xid {
    let mut id = [0; 20];
    id[..4].copy_from_slice(&address.parse::<std::net::Ipv4Addr>().unwrap().octets());
    Xid::new(XidType::LPM, id)
}

fn set(lpm: &mut Lpm, line: &str) -> Result<(), WordError> {
    lpm.set(Instant::ZERO, &line.split(' ').collect::<Vec<_>>(), &mut Vec::new())
}

fn delete(lpm: &mut Lpm, line: &str) -> Result<(), WordError> {
    lpm.delete(Instant::ZERO, &line.split(' ').collect::<Vec<_>>(), &mut Vec::new())
}

fn with(lines: &[String]) -> Lpm {
    let mut lpm = Lpm::new(Random::from_seed(1));
    lines.iter().for_each(|line| set(&mut lpm, line).unwrap());
    lpm
}

fn changes(lpm: &mut Lpm) -> Vec<Change> {
    let mut changes = Vec::new();
    lpm.drain_changes(&mut changes);
    changes
}

fn ask(principal: &Lpm, address: &str) -> Answer {
    principal.lookup(&lpm(address), &mut Vec::new())
}

fn route(prefix: &str, via: Xid) -> String {
    format!("route {prefix} via {via}")
}

#[test]
fn a_prefix_can_be_unreachable_within_one_that_is_not() {
    let host = Xid::new(XidType::HID, [9; 20]);
    let mut lpm =
        with(&[format!("route 0x/0 via {host}"), "route 10.0.0.0/8 unreachable".to_owned()]);
    let ask = |lpm: &Lpm, xid: &str| lpm.lookup(&xid.parse().unwrap(), &mut Vec::new());
    let inside = "lpm-0a02000100000000000000000000000000000000";
    let outside = "lpm-0b02000100000000000000000000000000000000";
    assert_eq!(ask(&lpm, inside), Answer::Unknown);
    assert_eq!(ask(&lpm, outside), Answer::Redirect(host));
    assert_eq!(lpm.show()["routes"][1]["via"], serde_json::Value::Null);
    assert!(delete(&mut lpm, &format!("route 10.0.0.0/8 via {host}")).is_err());
    assert!(delete(&mut lpm, "route 0x/0 unreachable").is_err());
    delete(&mut lpm, "route 10.0.0.0/8 unreachable").unwrap();
    assert_eq!(ask(&lpm, inside), Answer::Redirect(host));
}

#[test]
fn a_protocol_redirects_whole_identifiers() {
    let (whole, other) = (lpm("10.1.2.3"), lpm("10.9.0.0"));
    let mut table = with(&["local 10.1.0.0/16".into(), route(&other.to_string(), host(1))]);
    changes(&mut table);
    table.learn(whole, &[host(2)]);
    table.learn(other, &[host(2)]);
    assert_eq!(changes(&mut table), [Change::Xid(whole), Change::Xid(other)]);
    assert_eq!(ask(&table, "10.1.2.3"), Answer::Redirect(host(2)));
    assert_eq!(ask(&table, "10.1.2.4"), Answer::Through);
    assert_eq!(ask(&table, "10.9.0.0"), Answer::Redirect(host(1)), "it was stated");
    let line = |xid: Xid| json!({ "xid": xid.to_string(), "via": host(2).to_string() });
    assert_eq!(table.show()["learned"], json!([line(whole), line(other)]));
    delete(&mut table, &format!("route {other}")).unwrap();
    assert_eq!(ask(&table, "10.9.0.0"), Answer::Redirect(host(2)));
    table.learn(whole, &[]);
    table.learn(other, &[]);
    assert_eq!(ask(&table, "10.1.2.3"), Answer::Through);
    assert_eq!(ask(&table, "10.9.0.0"), Answer::Unknown);
}

#[test]
fn a_prefix_can_have_several_gateways() {
    let mut table = with(&[format!("route 10.0.0.0/8 via {} {}", host(2), host(1))]);
    let any_of = |all: &[Xid]| Answer::AnyOf(GatewaySet::of(all));
    let both = [host(1), host(2)];
    let mut branches = Vec::new();
    assert_eq!(table.lookup(&lpm("10.1.2.3"), &mut branches), any_of(&both));
    assert_eq!(branches, both.map(Branch::To));
    let row = |via| json!({ "prefix": "0x0a/8", "ipv4": "10.0.0.0/8", "via": format!("{via}") });
    assert_eq!(table.show()["routes"], json!([row(host(1)), row(host(2))]));
    table.learn(lpm("10.1.2.3"), &[host(3), host(4)]);
    assert_eq!(ask(&table, "10.1.2.3"), any_of(&[host(3), host(4)]));
    table.learn(lpm("10.1.2.3"), &[]);
    assert!(delete(&mut table, &route("10.0.0.0/8", host(3))).is_err());
    assert_eq!(ask(&table, "10.1.2.3"), any_of(&both));
    delete(&mut table, &route("10.0.0.0/8", host(1))).unwrap();
    assert_eq!(ask(&table, "10.1.2.3"), Answer::Redirect(host(2)));
    delete(&mut table, &route("10.0.0.0/8", host(2))).unwrap();
    assert_eq!(ask(&table, "10.1.2.3"), Answer::Unknown);
}

#[test]
fn the_longest_prefix_of_either_kind_decides() {
    let lpm = with(&[
        route("10.0.0.0/8", host(1)),
        "local 10.1.0.0/16".into(),
        route("10.1.2.0/24", host(2)),
    ]);
    assert_eq!(ask(&lpm, "10.9.9.9"), Answer::Redirect(host(1)));
    assert_eq!(ask(&lpm, "10.1.9.9"), Answer::Through);
    assert_eq!(ask(&lpm, "10.1.2.9"), Answer::Redirect(host(2)));
    assert_eq!(ask(&lpm, "11.0.0.1"), Answer::Unknown);
}

#[test]
fn the_prefix_of_length_zero_is_the_default_route() {
    let mut lpm = with(&[route("0.0.0.0/0", host(9)), "local 10.0.0.0/8".into()]);
    assert_eq!(ask(&lpm, "11.0.0.1"), Answer::Redirect(host(9)));
    assert_eq!(ask(&lpm, "10.0.0.1"), Answer::Through);
    delete(&mut lpm, "route 0x/0").unwrap();
    assert_eq!(ask(&lpm, "11.0.0.1"), Answer::Unknown);
}

#[test]
fn a_route_is_replaced_and_a_local_prefix_is_not() {
    let mut lpm = with(&[route("10.0.0.0/8", host(1)), route("10.0.0.0/8", host(2))]);
    assert_eq!(ask(&lpm, "10.0.0.1"), Answer::Redirect(host(2)));
    let error = set(&mut lpm, "local 10.0.0.0/8").unwrap_err();
    assert_eq!((error.word, error.text.contains("has a route")), (Some(1), true));
    assert!(delete(&mut lpm, &route("10.0.0.0/8", host(1))).is_err());
    delete(&mut lpm, &route("10.0.0.0/8", host(2))).unwrap();
    set(&mut lpm, "local 10.0.0.0/8").unwrap();
    let error = set(&mut lpm, &route("10.0.0.0/8", host(1))).unwrap_err();
    assert_eq!((error.word, error.text.contains("is local here")), (Some(1), true));
    assert!(delete(&mut lpm, "route 10.0.0.0/8").is_err());
    delete(&mut lpm, "local 10.0.0.0/8").unwrap();
    assert!(delete(&mut lpm, "local 10.0.0.0/8").is_err());
    assert_eq!(lpm.show(), json!({ "locals": [], "routes": [], "learned": [] }));
}

#[test]
fn a_wrong_statement_changes_nothing() {
    let mut lpm = Lpm::new(Random::from_seed(1));
    for line in ["neighbour x", "local 10.0.0.1/8", "route 10.0.0.0/8", "route 10.0.0.0/8 via x"] {
        assert!(set(&mut lpm, line).is_err(), "{line}");
    }
    assert_eq!(changes(&mut lpm), []);
}

#[test]
fn shows_prefixes_in_order_and_has_no_sockets() {
    let all = format!("lpm-{}", "5a".repeat(20));
    let mut lpm = with(&[
        format!("local {all}"),
        "local 10.1.0.0/16".into(),
        route("2001:db8::/48", host(2)),
        route("10.0.0.0/8", host(1)),
    ]);
    let expected = json!({
        "locals": [
            { "prefix": "0x0a01/16", "ipv4": "10.1.0.0/16" },
            { "prefix": format!("0x{}/160", "5a".repeat(20)) },
        ],
        "routes": [
            { "prefix": "0x0a/8", "ipv4": "10.0.0.0/8", "via": host(1).to_string() },
            { "prefix": "0x20010db80000/48", "via": host(2).to_string() },
        ],
        "learned": [],
    });
    assert_eq!(lpm.show(), expected);
    assert_eq!(lpm.locals(), [all.parse().unwrap()]);
    assert_eq!(lpm.bind(host(1), SocketId(1)), Err(BindError::NoSockets));
}

#[test]
fn a_change_is_told_as_the_range_of_its_prefix() {
    let mut principal = with(&[route("10.0.0.0/8", host(1))]);
    let mut last = [255; 20];
    last[0] = 10;
    let range = Change::Range(lpm("10.0.0.0"), Xid::new(XidType::LPM, last));
    assert_eq!(changes(&mut principal), [range]);
    delete(&mut principal, "route 10.0.0.0/8").unwrap();
    assert_eq!(changes(&mut principal), [range]);
}

#[test]
fn the_same_statement_again_is_no_change() {
    let mut lpm = with(&[route("10.0.0.0/8", host(1)), "local 10.1.0.0/16".into()]);
    assert_eq!(changes(&mut lpm).len(), 2);
    set(&mut lpm, &route("10.0.0.0/8", host(1))).unwrap();
    set(&mut lpm, "local 10.1.0.0/16").unwrap();
    assert_eq!(changes(&mut lpm), []);
}

/// Prefixes that contain each other, and names that are in one or another.
fn prefixes() -> impl Strategy<Value = Prefix> {
    (0..4u8, 0..4u8, prop_oneof![0..=16u8, Just(160)])
        .prop_map(|(one, two, length)| Prefix::from([one << 6 | two; 20]).truncate(length))
}

proptest! {
    /// The model is a sorted map that is searched from one end to the other; and what answers otherwise
    /// than before is in a range that was told.
    #[test]
    fn agrees_with_a_sorted_map_and_tells_every_change(
        steps in prop::collection::vec((0..4u8, prefixes(), 0..3u8), 1..40),
        names in prop::collection::vec(prefixes(), 30),
    ) {
        let names: Vec<_> =
            names.iter().map(|name| Xid::new(XidType::LPM, *name.first().first_chunk().unwrap())).collect();
        let (mut lpm, mut model) = (Lpm::new(Random::from_seed(1)), BTreeMap::<Prefix, Option<Xid>>::new());
        let answers = |lpm: &Lpm| -> Vec<_> {
            names.iter().map(|name| lpm.lookup(name, &mut Vec::new())).collect()
        };
        for (step, prefix, id) in steps {
            let before = answers(&lpm);
            let via = host(id);
            let text = format!("{prefix:?}");
            let known = model.get(&prefix).copied();
            let (done, expected) = match step {
                0 => (set(&mut lpm, &format!("local {text}")), !matches!(known, Some(Some(_)))),
                1 => (set(&mut lpm, &route(&text, via)), known != Some(None)),
                2 => (delete(&mut lpm, &format!("local {text}")), known == Some(None)),
                _ => (delete(&mut lpm, &route(&text, via)), known == Some(Some(via))),
            };
            prop_assert_eq!(done.is_ok(), expected);
            match step {
                0 if expected => drop(model.insert(prefix, None)),
                1 if expected => drop(model.insert(prefix, Some(via))),
                2 | 3 if expected => drop(model.remove(&prefix)),
                _ => {}
            }
            let changes = changes(&mut lpm);
            for ((name, before), after) in names.iter().zip(before).zip(answers(&lpm)) {
                let containing = model.iter().filter(|(prefix, _)| prefix.contains(&name.id.into()));
                let longest = containing.max_by_key(|(prefix, _)| prefix.length());
                let expected = match longest {
                    None => Answer::Unknown,
                    Some((_, None)) => Answer::Through,
                    Some((_, Some(via))) => Answer::Redirect(*via),
                };
                prop_assert_eq!(after, expected);
                let told = changes.iter().any(|change| match change {
                    Change::Range(first, last) => (first..=last).contains(&name),
                    _ => false,
                });
                prop_assert!(told || before == after, "{} changed untold", name);
            }
        }
    }
}

/// Somebody outside of the stack has found this of a prefix.
fn found(lpm: &mut Lpm, prefix: &str, lead: Option<Lead<'_>>) {
    let (address, length) = prefix.split_once('/').unwrap();
    let bits = address.parse::<std::net::Ipv4Addr>().unwrap().octets();
    let length = length.parse().unwrap();
    lpm.learn_prefix(PrefixNews::Lead { bits: &bits, length, lead }).unwrap();
}

#[test]
fn of_what_was_stated_and_what_was_found_the_longest_prefix_decides() {
    let mut table = with(&[route("10.1.0.0/16", host(1)), "local 10.2.0.0/16".into()]);
    changes(&mut table);
    table.learn_prefix(PrefixNews::Begin).unwrap();
    for (prefix, lead) in [
        ("10.0.0.0/8", Lead::Via(&[host(2)])),
        ("10.1.0.0/16", Lead::Via(&[host(2)])),
        ("10.1.1.0/24", Lead::Via(&[host(2), host(3)])),
        ("10.2.1.0/24", Lead::Nowhere),
        ("10.3.0.0/16", Lead::Here),
    ] {
        found(&mut table, prefix, Some(lead));
    }
    assert_eq!(changes(&mut table).len(), 5);
    assert_eq!(ask(&table, "10.1.0.1"), Answer::Redirect(host(1)), "it was stated");
    let several = Answer::AnyOf(GatewaySet::of(&[host(2), host(3)]));
    assert_eq!(ask(&table, "10.1.1.1"), several);
    assert_eq!(ask(&table, "10.2.0.1"), Answer::Through);
    assert_eq!(ask(&table, "10.2.1.1"), Answer::Unknown, "no shorter one counts");
    assert_eq!(ask(&table, "10.3.0.1"), Answer::Through);
    assert_eq!(ask(&table, "10.4.0.1"), Answer::Redirect(host(2)));
    assert_eq!(ask(&table, "11.0.0.1"), Answer::Unknown);
    delete(&mut table, "route 10.1.0.0/16").unwrap();
    assert_eq!(ask(&table, "10.1.0.1"), Answer::Redirect(host(2)));
    assert_eq!(table.show()["learned"].as_array().map(Vec::len), Some(6));
}

#[test]
fn what_is_not_told_again_goes_and_what_is_the_same_changes_nothing() {
    let mut table = Lpm::new(Random::from_seed(1));
    let tell = |table: &mut Lpm, prefixes: &[(&str, u8)]| {
        table.learn_prefix(PrefixNews::Begin).unwrap();
        for (prefix, via) in prefixes {
            found(table, prefix, Some(Lead::Via(&[host(*via)])));
        }
    };
    tell(&mut table, &[("10.0.0.0/8", 1), ("10.1.0.0/16", 1), ("10.2.0.0/16", 1)]);
    table.learn_prefix(PrefixNews::Complete).unwrap();
    changes(&mut table);
    tell(&mut table, &[("10.0.0.0/8", 1), ("10.1.0.0/16", 2)]);
    assert_eq!(changes(&mut table).len(), 1, "one leads elsewhere");
    assert_eq!(ask(&table, "10.2.0.1"), Answer::Redirect(host(1)), "it serves until all is told");
    table.learn_prefix(PrefixNews::Complete).unwrap();
    assert_eq!(changes(&mut table).len(), 1, "one is gone");
    assert_eq!(ask(&table, "10.2.0.1"), Answer::Redirect(host(1)), "by the shorter one");
    assert_eq!(ask(&table, "10.1.0.1"), Answer::Redirect(host(2)));
    found(&mut table, "10.1.0.0/16", None);
    found(&mut table, "10.0.0.0/8", None);
    assert_eq!(ask(&table, "10.1.0.1"), Answer::Unknown);
    let wrong = PrefixNews::Lead { bits: &[1, 2], length: 8, lead: None };
    assert_eq!(table.learn_prefix(wrong), Err(PrefixError::NoPrefix));
}

proptest! {
    /// Rounds of news against a naive twin.
    #[test]
    fn what_was_found_is_what_was_told_last(
        rounds in prop::collection::vec(
            (prop::collection::vec((0u8..4, 7..=10u8, 0..4u8), 0..12), any::<bool>()), 1..6),
    ) {
        let mut table = Lpm::new(Random::from_seed(1));
        // By prefixes: where they lead, and whether that was told in this round.
        let mut twin: BTreeMap<(u32, u8), (u8, bool)> = BTreeMap::new();
        for (news, is_complete) in rounds {
            table.learn_prefix(PrefixNews::Begin).unwrap();
            twin.values_mut().for_each(|(_, is_told)| *is_told = false);
            for (first, length, to) in news {
                let bits = u32::from(first) << 23 >> (32 - u32::from(length)) << (32 - u32::from(length));
                let via = [host(9)];
                let lead = [None, Some(Lead::Nowhere), Some(Lead::Here), Some(Lead::Via(&via))];
                let lead = lead[usize::from(to)];
                table.learn_prefix(PrefixNews::Lead { bits: &bits.to_be_bytes(), length, lead }).unwrap();
                match to {
                    0 => drop(twin.remove(&(bits, length))),
                    to => drop(twin.insert((bits, length), (to, true))),
                }
            }
            if is_complete {
                table.learn_prefix(PrefixNews::Complete).unwrap();
                twin.retain(|_, (_, is_told)| *is_told);
            }
            for address in (0..32).map(|number: u32| number << 20) {
                let longest = twin
                    .iter()
                    .filter(|((bits, length), _)| (address ^ bits).leading_zeros() >= u32::from(*length))
                    .max_by_key(|((_, length), _)| *length);
                let expected = match longest {
                    None | Some((_, (1, _))) => Answer::Unknown,
                    Some((_, (2, _))) => Answer::Through,
                    Some(_) => Answer::Redirect(host(9)),
                };
                let text = std::net::Ipv4Addr::from(address).to_string();
                prop_assert_eq!(ask(&table, &text), expected, "{}", text);
            }
        }
    }
}
