//! What is written is read again; what others have written is read; nothing makes the reader panic.

use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;
use weft_routing::Prefix;

use super::*;
use crate::wire::tests::{attributes, host6};
use crate::wire::{AsPath, Attributes, Family, LargeCommunity, NextHop, Origin};

/// A table of IPv4 that BIRD 2.0.12 has written (`mrt dump table`).
const BIRD_IPV4: &str = "6b04324d000d000100000028c000020100076d61737465723400010300000000000000000000000000000000\
    00000000000000006b04324d000d00020000004e0000000018c63364000100006b04324c003c000101000002\
    0a0202fa56ea010000fdea000304c000020700040400000032000504000000c8000804fde8006400200c0000\
    fde800000001000000026b04324d000d00020000002400000001080a000100006b04324c0014000101020002\
    0602010000fdeb000304c0000208";
/// And one of IPv6.
const BIRD_IPV6: &str = "6b04324d000d000100000028c000020100076d61737465723600010300000000000000000000000000000000\
    00000000000000006b04324d000d000400000036000000003020010db80001000100006b04324c0021000101\
    0000020602010000fde9800e111020010db8000000000000000000000007";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

fn read(bytes: &[u8]) -> Result<Vec<(u32, Record)>, MrtError> {
    Records::new(bytes).collect()
}

fn ribs(bytes: &[u8]) -> Vec<Rib> {
    let records = read(bytes).unwrap().into_iter();
    records
        .filter_map(|(_, record)| match record {
            Record::Rib(rib) => Some(rib),
            _ => None,
        })
        .collect()
}

#[test]
fn a_next_hop_that_is_no_address_of_a_router_is_none() {
    // The whole attribute, with a next hop of IPv4 that is 0.0.0.0.
    let whole = format!("1100006b04{}", "00".repeat(13));
    let text = BIRD_IPV6.replace("111020010db8000000000000000000000007", &whole);
    assert_ne!(text, BIRD_IPV6);
    let [rib] = ribs(&bytes(&text)).try_into().unwrap();
    assert_eq!(rib.entries[0].attributes.next_hop, None);
    let mut written = Vec::new();
    assert!(emit_rib(0, &rib, &mut written));
    assert_eq!(ribs(&written), [rib]);
}

#[test]
fn what_bird_has_written_is_read() {
    let v4 = bytes(BIRD_IPV4);
    let (seconds, Record::Peers(peers)) = read(&v4).unwrap().remove(0) else { panic!() };
    assert_eq!((seconds, &*peers.view, peers.peers.len()), (0x6b04_324d, "master4", 1));
    assert_eq!(peers.collector, Ipv4Addr::new(192, 0, 2, 1));
    let [first, second] = ribs(&v4).try_into().unwrap();
    assert_eq!((first.prefix, first.sequence), (Prefix::new(&[198, 51, 100], 24).unwrap(), 0));
    let expected = Attributes {
        as_path: AsPath::from_sequence(&[4_200_000_001, 65002]),
        origin: Origin::Igp,
        next_hop: Some(NextHop::V4([192, 0, 2, 7].into())),
        med: Some(50),
        local_pref: Some(200),
        communities: Box::new([65000 << 16 | 100]),
        large_communities: Box::new([LargeCommunity { administrator: 65000, first: 1, second: 2 }]),
        ..Attributes::default()
    };
    assert_eq!(first.entries[0].attributes, expected);
    assert_eq!(second.entries[0].attributes.origin, Origin::Incomplete);
    let [only] = ribs(&bytes(BIRD_IPV6)).try_into().unwrap();
    assert_eq!(only.family, Family::IPV6_UNICAST);
    let global = "2001:db8::7".parse().unwrap();
    assert_eq!(only.entries[0].attributes.next_hop, Some(NextHop::V6 { global, link_local: None }));
}

#[test]
fn a_file_that_was_cut_off_is_read_until_there_and_says_where() {
    let whole = bytes(BIRD_IPV4);
    let all = read(&whole).unwrap();
    assert_eq!(all.len(), 3);
    for length in 1..whole.len() {
        let results: Vec<_> = Records::new(&whole[..length]).collect();
        let good = results.iter().filter(|one| one.is_ok()).count();
        // It may end between two records.
        let ends_between = [52, 142].contains(&length);
        assert_eq!(results.len(), good + usize::from(!ends_between), "{length}");
        for (one, other) in results.iter().flatten().zip(&all) {
            assert_eq!(one, other);
        }
        if !ends_between {
            let error = results.last().unwrap().as_ref().unwrap_err().to_string();
            assert!(error.contains("cut off"), "{error}");
        }
    }
    let error = read(b"This is no table of anything at all.").unwrap_err().to_string();
    assert!(error.contains("no MRT file"), "{error}");
}

#[test]
fn the_whole_attribute_in_place_of_the_next_hop_is_read_too() {
    let mut file = bytes(BIRD_IPV6);
    let at = file.len() - 18;
    // Family, next hop, reserved, and a prefix.
    let whole = [&[0, 2, 1, 16][..], &file[at + 2..], &[0, 16, 0x20, 1]].concat();
    file.truncate(at - 1);
    file.push(14);
    file.push(whole.len() as u8);
    file.extend(&whole);
    // The lengths of the attributes and of the record.
    let more = (whole.len() - 17) as u8;
    let entry = 64 + 4 + 7 + 2 + 2 + 4;
    let attributes = entry + 1;
    file[attributes] += more;
    file[63] += more;
    let [only] = ribs(&file).try_into().unwrap();
    let global = "2001:db8::7".parse().unwrap();
    assert_eq!(only.entries[0].attributes.next_hop, Some(NextHop::V6 { global, link_local: None }));
}

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![any::<[u8; 4]>().prop_map(IpAddr::from), any::<[u8; 16]>().prop_map(IpAddr::from)]
}

fn peers() -> impl Strategy<Value = PeerTable> {
    let peer = (any::<[u8; 4]>(), address(), any::<u32>()).prop_map(|(id, address, number)| Peer {
        identifier: id.into(),
        address,
        autonomous_system: number,
    });
    (any::<[u8; 4]>(), "[a-z ]{0,8}", prop::collection::vec(peer, 0..5))
        .prop_map(|(id, view, peers)| PeerTable { collector: id.into(), view, peers })
}

fn rib() -> impl Strategy<Value = Rib> {
    let host4 = any::<[u8; 4]>().prop_map(|ip| NextHop::V4(ip.into()));
    let next_hop = prop_oneof![host4.prop_filter("a host", NextHop::is_host), host6()];
    let attributes = (attributes(false), next_hop)
        .prop_map(|(attributes, next_hop)| attributes.with_next_hop(next_hop));
    let entry = (any::<u16>(), any::<u32>(), any::<u32>(), attributes);
    let families = [
        Family::IPV4_UNICAST,
        Family::IPV4_MULTICAST,
        Family::IPV6_UNICAST,
        Family::IPV6_MULTICAST,
    ];
    let entries = prop::collection::vec(entry, 0..4);
    (
        any::<u32>(),
        prop::sample::select(families.to_vec()),
        any::<u128>(),
        0u8..=128,
        any::<bool>(),
        entries,
    )
        .prop_map(|(sequence, family, bits, length, has_ids, entries)| Rib {
            sequence,
            family,
            prefix: Prefix::from_high_bits(bits, length.min(family.address_bits())),
            entries: entries
                .into_iter()
                .map(|(peer, since, id, attributes)| RibEntry {
                    peer,
                    since,
                    path_id: has_ids.then_some(id),
                    attributes,
                })
                .collect(),
        })
}

fn message() -> impl Strategy<Value = Message> {
    let addresses = prop_oneof![
        any::<[[u8; 4]; 2]>().prop_map(|both| both.map(IpAddr::from)),
        any::<[[u8; 16]; 2]>().prop_map(|both| both.map(IpAddr::from)),
    ];
    let bytes = prop::collection::vec(any::<u8>(), 0..100);
    (any::<[u32; 2]>(), any::<[bool; 3]>(), addresses, bytes).prop_map(
        |(numbers, [four_octet_as, is_sent, has_path_ids], addresses, bytes)| Message {
            autonomous_systems: numbers.map(|one| if four_octet_as { one } else { one & 0xffff }),
            four_octet_as,
            is_sent,
            has_path_ids,
            addresses,
            bytes,
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(
        seconds: u32, peers in peers(), rib in rib(), message in message(),
    ) {
        let mut file = Vec::new();
        emit_peers(seconds, &peers, &mut file);
        prop_assert!(emit_rib(seconds, &rib, &mut file));
        emit_message(seconds, &message, &mut file);
        let all = [Record::Peers(peers), Record::Rib(rib), Record::Message(message)];
        let expected: Vec<_> = all.into_iter().map(|record| (seconds, record)).collect();
        prop_assert_eq!(read(&file).unwrap(), expected);
    }

    #[test]
    fn no_bytes_make_it_panic(
        kind in prop::sample::select(&[12u16, 13, 16, 17][..]),
        subtype in 0u16..14,
        body in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut file = Vec::new();
        file.extend([0; 4]);
        file.extend([kind, subtype].map(u16::to_be_bytes).concat());
        file.extend((body.len() as u32).to_be_bytes());
        file.extend(body);
        let mut records = Records::new(&file[..]);
        let read = records.next();
        prop_assert!(read.is_some() || records.passed_over() == 1);
    }
}
