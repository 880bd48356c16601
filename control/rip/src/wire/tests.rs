//! What is written is read back; what is cut off or changed is refused; no bytes make it panic.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::auth::{Algorithm, Auth, Secret};
use super::{Command, Entry, INFINITY, Message, WireError, ng, v2};

fn v4_entries() -> impl Strategy<Value = Vec<Entry>> {
    let entry = (1u8..224, any::<[u8; 3]>(), 8u8..=32, 1..=INFINITY, any::<u16>(), 0u8..3)
        .prop_map(|(first, rest, length, metric, tag, hop)| {
            let first = if first == 127 { 126 } else { first };
            let address = std::net::Ipv4Addr::new(first, rest[0], rest[1], rest[2]);
            let net = ipnet::Ipv4Net::new(address, length).unwrap().trunc().into();
            let next_hop = (hop > 0).then(|| [192, 0, 2, hop].into());
            Entry { net, metric, tag, next_hop }
        });
    prop::collection::vec(entry, 1..80)
}

fn v6_entries() -> impl Strategy<Value = Vec<Entry>> {
    let entry = (any::<[u8; 6]>(), 16u8..=128, 1..=INFINITY, any::<u16>(), 0u16..3).prop_map(
        |(bytes, length, metric, tag, hop)| {
            let mut octets = [0; 16];
            octets[..2].copy_from_slice(&[0x20, 0x01]);
            octets[2..8].copy_from_slice(&bytes);
            let net = ipnet::Ipv6Net::new(octets.into(), length).unwrap().trunc().into();
            let next_hop =
                (hop > 0).then(|| std::net::Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, hop).into());
            Entry { net, metric, tag, next_hop }
        },
    );
    prop::collection::vec(entry, 1..200)
}

const ALGORITHMS: [Algorithm; 5] =
    [Algorithm::Md5, Algorithm::Sha1, Algorithm::Sha256, Algorithm::Sha384, Algorithm::Sha512];

fn keys(algorithm: Algorithm, secret: &str) -> Auth {
    Auth::Keys { keys: BTreeMap::from([(7, (algorithm, Secret::new(secret)))]), signs: 7 }
}

fn auths() -> impl Strategy<Value = Auth> {
    prop_oneof![
        Just(Auth::None),
        "[a-z]{1,16}".prop_map(|text| Auth::Password(Secret::new(text))),
        (prop::sample::select(&ALGORITHMS[..]), "[a-z]{1,150}")
            .prop_map(|(algorithm, secret)| keys(algorithm, &secret)),
    ]
}

fn told(entries: Vec<Entry>) -> Message {
    Message { command: Command::Response, asks_for_all: false, entries, bad_entries: 0 }
}

proptest! {
    #[test]
    fn what_version_2_writes_it_reads(entries in v4_entries(), auth in auths(), sequence: u32) {
        let messages = v2::write(Command::Response, &entries, &auth, sequence);
        let mut read = Vec::new();
        for bytes in &messages {
            let (message, signed) = v2::parse(bytes, &auth).unwrap();
            prop_assert_eq!(message.bad_entries, 0);
            prop_assert!(message.entries.len() <= v2::MOST);
            prop_assert_eq!(signed.is_some(), matches!(auth, Auth::Keys { .. }));
            prop_assert!(signed.is_none_or(|signed| signed.sequence == sequence));
            read.extend(message.entries);
        }
        prop_assert_eq!(read, entries);
    }

    #[test]
    fn what_is_signed_cannot_be_changed(
        entries in v4_entries(), algorithm in prop::sample::select(&ALGORITHMS[..]), place: prop::sample::Index,
        bit in 0u8..8,
    ) {
        let auth = keys(algorithm, "secret");
        let mut bytes = v2::write(Command::Response, &entries, &auth, 1).remove(0);
        let place = place.index(bytes.len());
        bytes[place] ^= 1 << bit;
        prop_assert!(v2::parse(&bytes, &auth).is_err());
        bytes[place] ^= 1 << bit;
        prop_assert!(v2::parse(&bytes[..place], &auth).is_err());
        prop_assert!(v2::parse(&bytes, &keys(algorithm, "Secret")).is_err());
        prop_assert!(v2::parse(&bytes, &Auth::None).is_err());
    }

    #[test]
    fn what_ng_writes_it_reads(entries in v6_entries(), room in 0usize..2000) {
        let messages = ng::write(Command::Response, &entries, room);
        let read = messages.iter().flat_map(|bytes| {
            assert!(bytes.len() <= room.max(44));
            let message = ng::parse(bytes).unwrap();
            assert_eq!(message.bad_entries, 0);
            message.entries
        });
        prop_assert_eq!(read.collect::<Vec<_>>(), entries);
    }

    #[test]
    fn every_truncation_is_an_error_or_fewer_entries(entries in v4_entries(), cut in 0usize..504) {
        let bytes = v2::write(Command::Response, &entries, &Auth::None, 0).remove(0);
        let cut = cut.min(bytes.len() - 1);
        match v2::parse(&bytes[..cut], &Auth::None) {
            Ok((message, _)) => prop_assert_eq!(message.entries.len(), (cut - 4) / 20),
            Err(error) => prop_assert_eq!(error, WireError::Length(cut)),
        }
    }

    #[test]
    fn no_bytes_make_it_panic(mut bytes: Vec<u8>, auth in auths(), fits: bool) {
        if fits && bytes.len() > 1 {
            (bytes[0], bytes[1]) = (1 + bytes[0] % 2, 1 + bytes[1] % 2);
        }
        let _ = v2::parse(&bytes, &auth);
        let _ = ng::parse(&bytes);
    }
}

/// Bytes as RFC 2453 §4 and RFC 2080 §2.1 draw them.
#[test]
fn messages_have_the_form_of_the_rfcs() {
    let entry = |net: &str, next_hop: Option<&str>| Entry {
        net: net.parse().unwrap(),
        metric: 3,
        tag: 0x0102,
        next_hop: next_hop.map(|text| text.parse().unwrap()),
    };
    let entries = [entry("10.1.0.0/16", Some("192.0.2.9"))];
    let [bytes] = &v2::write(Command::Response, &entries, &Auth::None, 0)[..] else { panic!() };
    let expected = [2, 2, 0, 0, 0, 2, 1, 2, 10, 1, 0, 0, 255, 255, 0, 0, 192, 0, 2, 9, 0, 0, 0, 3];
    assert_eq!(bytes, &expected);
    let asked = v2::ask_for_all(&Auth::None, 0);
    assert_eq!((asked.len(), &asked[..4], asked[23]), (24, &[1, 2, 0, 0][..], 16));
    assert!(v2::parse(&asked, &Auth::None).unwrap().0.asks_for_all);

    let entries = [entry("2001:db8::/32", Some("fe80::9")), entry("2001:db8:1::/48", None)];
    let [bytes] = &ng::write(Command::Response, &entries, 1400)[..] else { panic!() };
    let rows: Vec<_> = bytes[4..].chunks(20).map(|row| (row[0], row[15], &row[16..])).collect();
    let expected = [
        (0xfe, 9, &[0, 0, 0, 0xff][..]),
        (0x20, 0, &[1, 2, 32, 3]),
        (0, 0, &[0, 0, 0, 0xff]),
        (0x20, 0, &[1, 2, 48, 3]),
    ];
    assert_eq!(rows, expected);
    assert!(ng::parse(&ng::ask_for_all()).unwrap().asks_for_all);
}

#[test]
fn entries_that_make_no_sense_are_left_out() {
    let row = |family: u8, net: [u8; 4], mask: [u8; 4], metric: u32| {
        let metric = metric.to_be_bytes();
        [&[0, family, 0, 0][..], &net, &mask, &[0; 4], &metric].concat()
    };
    let rows = [
        row(2, [10, 0, 0, 0], [255, 0, 0, 0], 1),
        row(2, [0, 0, 0, 0], [0, 0, 0, 0], 1),
        row(3, [10, 0, 0, 0], [255, 0, 0, 0], 1),
        row(2, [10, 0, 0, 0], [255, 0, 255, 0], 1),
        row(2, [10, 0, 0, 1], [255, 0, 0, 0], 1),
        row(2, [10, 0, 0, 0], [255, 0, 0, 0], 0),
        row(2, [10, 0, 0, 0], [255, 0, 0, 0], 17),
        row(2, [127, 0, 0, 0], [255, 0, 0, 0], 1),
        row(2, [224, 0, 0, 0], [240, 0, 0, 0], 1),
        row(2, [0, 1, 0, 0], [255, 255, 0, 0], 1),
    ];
    let bytes = [&[2, 2, 0, 0][..], &rows.concat()].concat();
    let (message, _) = v2::parse(&bytes, &Auth::None).unwrap();
    assert_eq!((message.entries.len(), message.bad_entries), (2, 8));

    let row = |first: u8, length: u8, metric: u8| {
        let mut row = [0; 20];
        (row[0], row[18], row[19]) = (first, length, metric);
        row
    };
    let rows =
        [row(0x20, 8, 1), row(0x20, 129, 1), row(0x20, 1, 1), row(0xff, 8, 1), row(0x20, 8, 0)];
    let bytes = [&[2, 1, 0, 0][..], &rows.concat()].concat();
    let message = ng::parse(&bytes).unwrap();
    assert_eq!((message.entries.len(), message.bad_entries), (1, 4));
}

#[test]
fn both_halves_of_a_default_route_are_read_and_networks_of_hosts_and_groups_are_not() {
    let entry =
        |text: &str| Entry { net: text.parse().unwrap(), metric: 1, tag: 0, next_hop: None };
    let right = ["0.0.0.0/1", "128.0.0.0/1", "10.0.0.0/8"].map(entry);
    let wrong = ["0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/4"].map(entry);
    let all: Vec<_> = right.iter().chain(&wrong).cloned().collect();
    let messages = v2::write(Command::Response, &all, &Auth::None, 1);
    let (message, _) = v2::parse(&messages[0], &Auth::None).unwrap();
    assert_eq!((&message.entries[..], message.bad_entries), (&right[..], 3));
}

#[test]
fn old_versions_and_commands_are_refused() {
    assert_eq!(v2::parse(&[2, 1, 0, 0], &Auth::None), Err(WireError::Version(1)));
    assert_eq!(v2::parse(&[2, 3, 0, 0], &Auth::None).map(|(message, _)| message), Ok(told(vec![])));
    assert_eq!(v2::parse(&[9, 2, 0, 0], &Auth::None), Err(WireError::Command(9)));
    assert_eq!(ng::parse(&[2, 2, 0, 0]), Err(WireError::Version(2)));
    assert_eq!(ng::parse(&[2, 1, 0]), Err(WireError::Length(3)));
}
