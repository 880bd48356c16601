//! Tests of the messages: vectors of Linux XIA, round trips, hostile bytes.

use proptest::prelude::*;
use weft_wire::{ETHERNET_HEADER_LEN, MacAddr};
use weft_xip::{Xid, XidType};

use super::*;

#[path = "../../../../../tests/vectors/read.rs"]
mod read;

const ANNOUNCEMENT: &str = include_str!("../../../../../tests/vectors/xia/nwp-announcement.hex");
const NEIGHBOUR_LIST: &str =
    include_str!("../../../../../tests/vectors/xia/nwp-neighbour-list.hex");

fn hid(text: &str) -> Xid {
    format!("hid-{text}").parse().unwrap()
}

fn mac(text: &str) -> MacAddr {
    text.parse().unwrap()
}

fn emit(repr: &NwpRepr) -> Vec<u8> {
    let mut bytes = vec![0; repr.buffer_len()];
    repr.emit(&mut bytes).unwrap();
    bytes
}

fn parse(bytes: &[u8]) -> Result<NwpRepr, NwpError> {
    NwpMessage::new_checked(bytes).map(|message| NwpRepr::parse(&message))
}

#[test]
fn an_announcement_of_linux_xia_is_read_and_written() {
    let frame = read::hex(ANNOUNCEMENT);
    let expected = NwpRepr::Announcement {
        hardware_address: mac("1a:1e:1e:7e:c8:29"),
        hids: vec![hid("3b479ba966e9553c11d453002f87076edbcfe3a8")],
    };
    let message = &frame[ETHERNET_HEADER_LEN..];
    assert_eq!(parse(message), Ok(expected.clone()));
    assert_eq!(emit(&expected), message);
}

#[test]
fn a_neighbour_list_of_linux_xia_is_read_and_written() {
    let frame = read::hex(NEIGHBOUR_LIST);
    let entry = |id, addresses: &[&str]| NeighbourRepr {
        hid: hid(id),
        addresses: addresses.iter().map(|text| mac(text)).collect(),
    };
    let expected = NwpRepr::NeighbourList {
        neighbours: vec![
            entry("75ad3b8cc86c9356224b83f18bdb4465aac0f6d8", &["ee:54:e4:8d:f1:56"]),
            entry("3b479ba966e9553c11d453002f87076edbcfe3a8", &["1a:1e:1e:7e:c8:29"]),
            entry(
                "7ac27f90663ef36da12cfcc37c9a6bb6b85dec96",
                &["96:06:82:ff:98:4e", "2e:45:b3:ac:30:37"],
            ),
        ],
    };
    let message = &frame[ETHERNET_HEADER_LEN..];
    assert_eq!(parse(message), Ok(expected.clone()));
    assert_eq!(emit(&expected), message);
}

/// Neighbour discovery between virtual hosts in 2012, and between two hosts years later.
const CAPTURES: [&[u8]; 2] = [
    include_bytes!("../../../../../tests/vectors/xia/xia-nwp-2012.pcap"),
    include_bytes!("../../../../../tests/vectors/xia/xia-two-hosts.pcap"),
];

#[test]
fn every_captured_message_is_read_and_written_to_the_same_bytes() {
    let (mut announced, mut lists) = (0, 0);
    for capture in CAPTURES {
        for frame in read::pcap(capture).iter().filter(|frame| frame.ethertype() == 0xc0df) {
            let message = parse(frame.payload()).unwrap();
            let written = emit(&message);
            assert_eq!(written, frame.payload()[..written.len()], "frame {}", frame.number);
            match message {
                NwpRepr::Announcement { hardware_address, .. } => {
                    assert_eq!(hardware_address.0, frame.bytes[6..12], "frame {}", frame.number);
                    announced += 1;
                }
                NwpRepr::NeighbourList { .. } => lists += 1,
                other => panic!("Linux XIA does not send {other:?}"),
            }
        }
    }
    assert_eq!((announced, lists), (80, 73));
}

#[test]
fn each_check_has_its_error() {
    let good = emit(&NwpRepr::Announcement {
        hardware_address: MacAddr([2, 0, 0, 0, 0, 1]),
        hids: vec![Xid::new(XidType::HID, [7; 20])],
    });
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        parse(&bytes)
    };
    assert_eq!(with(0, 2), Err(NwpError::Version(2)));
    assert_eq!(with(1, 0), Err(NwpError::Type(0)));
    assert_eq!(with(1, 3), Err(NwpError::Type(3)));
    assert_eq!(with(1, 0x7f), Err(NwpError::Type(0x7f)));
    assert_eq!(with(1, 0x85), Err(NwpError::Type(0x85)));
    assert_eq!(with(1, 0x80), Err(NwpError::Truncated { needed: 46, available: 30 }));
    assert_eq!(with(1, 0x83), Err(NwpError::Truncated { needed: 158, available: 30 }));
    assert_eq!(with(2, 0), Err(NwpError::NoHids));
    assert_eq!(with(3, 8), Err(NwpError::AddressLength(8)));
    assert_eq!(with(2, 2), Err(NwpError::Truncated { needed: 50, available: 30 }));
    assert_eq!(parse(&[]), Err(NwpError::Truncated { needed: 4, available: 0 }));
}

#[test]
fn messages_of_weft_have_the_bytes_that_are_documented() {
    let hid = Xid::new(XidType::HID, [0x77; 20]);
    let hardware_address = MacAddr([2, 0, 0, 0, 0, 1]);
    let probe = QuestionRepr { hardware_address, nonce: [0x11; 16], hids: vec![hid, hid] };
    let expected = [&[1, 0x80, 2, 6, 2, 0, 0, 0, 0, 1][..], &[0x11; 16], &[0x77; 40]].concat();
    assert_eq!(emit(&NwpRepr::Probe(probe)), expected);
    let seal = Seal { epoch: [0x22; 16], key: [0x33; 32], signature: [0x44; 64] };
    let proof = SealedRepr { hardware_address, nonce: [0x11; 16], hid, seal };
    let front = [1, 0x83, 1, 6, 2, 0, 0, 0, 0, 1];
    let unsigned = [&front[..], &[0x11; 16], &[0x77; 20], &[0x22; 16], &[0x33; 32]].concat();
    assert_eq!(emit(&NwpRepr::Proof(proof.clone())), [&unsigned[..], &[0x44; 64]].concat());
    let asker = MacAddr([2, 0, 0, 0, 0, 9]);
    let signed = [&b"weft NWP proof 1\0"[..], &asker.0, &unsigned].concat();
    assert_eq!(signed_proof(&proof, asker), signed);
    let two = [&emit(&NwpRepr::Proof(proof))[..2], &[2, 6][..]].concat();
    assert_eq!(parse(&two), Err(NwpError::NotOneHid(2)));
}

#[test]
fn what_cannot_be_counted_is_not_written() {
    let hid = Xid::new(XidType::HID, [7; 20]);
    let many = NwpRepr::Announcement { hardware_address: MacAddr([2; 6]), hids: vec![hid; 256] };
    let mut buffer = vec![0; 10_000];
    assert_eq!(many.emit(&mut buffer), Err(NwpError::TooMany { count: 256, limit: 255 }));
    let none = NwpRepr::NeighbourList { neighbours: Vec::new() };
    assert_eq!(none.emit(&mut buffer), Err(NwpError::NoHids));
    let addresses = vec![MacAddr([2; 6]); 256];
    let list = NwpRepr::NeighbourList { neighbours: vec![NeighbourRepr { hid, addresses }] };
    assert_eq!(list.emit(&mut buffer), Err(NwpError::TooMany { count: 256, limit: 255 }));
}

#[test]
fn an_announcement_is_split_at_the_mtu_and_at_255() {
    let hids: Vec<_> = (0..600u32).map(|n| Xid::new(XidType::HID, wide(n))).collect();
    let sizes = |mtu| -> Vec<usize> {
        announcements(MacAddr([2; 6]), &hids, mtu).map(|repr| repr.buffer_len()).collect()
    };
    let full = 10 + 74 * 20;
    let last = 10 + 8 * 20;
    assert_eq!(sizes(1500), [full, full, full, full, full, full, full, full, last]);
    assert_eq!(sizes(9000), [10 + 255 * 20, 10 + 255 * 20, 10 + 90 * 20]);
    assert_eq!(sizes(0).len(), 600, "a link that is too small still gets messages of one HID");
    assert_eq!(announcements(MacAddr([2; 6]), &[], 1500).count(), 0);
}

fn wide(n: u32) -> [u8; 20] {
    let mut id = [0; 20];
    id[..4].copy_from_slice(&n.to_be_bytes());
    id
}

fn neighbour() -> impl Strategy<Value = NeighbourRepr> {
    let address = any::<[u8; 6]>().prop_map(MacAddr);
    (any::<[u8; 20]>(), prop::collection::vec(address, 0..20))
        .prop_map(|(id, addresses)| NeighbourRepr { hid: Xid::new(XidType::HID, id), addresses })
}

fn question() -> impl Strategy<Value = QuestionRepr> {
    let hid = any::<[u8; 20]>().prop_map(|id| Xid::new(XidType::HID, id));
    (any::<[u8; 6]>(), any::<[u8; 16]>(), prop::collection::vec(hid, 1..30)).prop_map(
        |(address, nonce, hids)| QuestionRepr { hardware_address: MacAddr(address), nonce, hids },
    )
}

fn sealed() -> impl Strategy<Value = SealedRepr> {
    (
        any::<[u8; 6]>(),
        any::<[u8; 16]>(),
        any::<[u8; 20]>(),
        any::<[u8; 16]>(),
        any::<[[u8; 32]; 3]>(),
    )
        .prop_map(|(address, nonce, id, epoch, [key, low, high])| SealedRepr {
            hardware_address: MacAddr(address),
            nonce,
            hid: Xid::new(XidType::HID, id),
            seal: Seal {
                epoch,
                key,
                signature: std::array::from_fn(|i| [low, high][i / 32][i % 32]),
            },
        })
}

fn message() -> impl Strategy<Value = NwpRepr> {
    let hid = any::<[u8; 20]>().prop_map(|id| Xid::new(XidType::HID, id));
    let announcement =
        (any::<[u8; 6]>(), prop::collection::vec(hid, 1..30)).prop_map(|(address, hids)| {
            NwpRepr::Announcement { hardware_address: MacAddr(address), hids }
        });
    let list = prop::collection::vec(neighbour(), 1..30)
        .prop_map(|neighbours| NwpRepr::NeighbourList { neighbours });
    let questions = question().prop_flat_map(|question| {
        let all =
            [NwpRepr::Probe, NwpRepr::Challenge, NwpRepr::Here].map(|kind| kind(question.clone()));
        prop::sample::select(all.to_vec())
    });
    let sealed = sealed().prop_flat_map(|sealed| {
        prop::sample::select(vec![NwpRepr::Proof(sealed.clone()), NwpRepr::Withdrawal(sealed)])
    });
    prop_oneof![announcement, list, questions, sealed]
}

proptest! {
    #[test]
    fn parse_of_emit_is_the_value_and_padding_is_ignored(message in message(), padding in 0usize..50) {
        let mut bytes = emit(&message);
        bytes.resize(bytes.len() + padding, 0xee);
        prop_assert_eq!(parse(&bytes), Ok(message));
    }

    #[test]
    fn every_truncation_is_an_error(message in message()) {
        let bytes = emit(&message);
        for len in 0..bytes.len() {
            let truncated = matches!(parse(&bytes[..len]), Err(NwpError::Truncated { .. }));
            prop_assert!(truncated, "{} of {} bytes", len, bytes.len());
        }
    }

    #[test]
    fn a_short_buffer_is_an_error(message in message()) {
        let mut buffer = vec![0; message.buffer_len()];
        for available in 0..buffer.len() {
            let result = message.emit(&mut buffer[..available]);
            let needed = message.buffer_len();
            prop_assert_eq!(result, Err(NwpError::NoSpace { needed, available }));
        }
    }

    #[test]
    fn whatever_is_read_is_written_to_the_same_bytes(
        kind in prop::sample::select(vec![1u8, 2, 0x80, 0x81, 0x82, 0x83, 0x84]),
        count in any::<u8>(),
        rest in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let mut bytes = vec![1, kind, count, 6];
        bytes.extend(rest);
        if let Ok(message) = parse(&bytes) {
            let written = emit(&message);
            prop_assert_eq!(&bytes[..written.len()], &written[..]);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn lists_keep_all_neighbours_in_order_and_fit(
        neighbours in prop::collection::vec(neighbour(), 0..300),
        mtu in 141usize..3000,
    ) {
        let lists = neighbour_lists(neighbours.clone(), mtu);
        let mut seen = Vec::new();
        for list in lists {
            prop_assert!(list.buffer_len() <= mtu);
            list.emit(&mut vec![0; mtu]).unwrap();
            match list {
                NwpRepr::NeighbourList { neighbours } => seen.extend(neighbours),
                other => prop_assert!(false, "{:?}", other),
            }
        }
        prop_assert_eq!(seen, neighbours);
    }
}
