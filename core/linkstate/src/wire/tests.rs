use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::ids::{MAX_METRIC, Metric};

fn node() -> impl Strategy<Value = NodeId> {
    any::<[u8; 20]>().prop_map(NodeId)
}

fn lsa() -> impl Strategy<Value = LsaRepr> {
    let name = vec(any::<u8>(), 1..=Destination::MAX_LEN)
        .prop_map(|name| Destination::new(&name).unwrap());
    let links = vec((node(), 1..=MAX_METRIC), 0..10);
    let destinations = vec((name, 0..=MAX_METRIC), 0..8);
    (node(), any::<u8>(), any::<u64>(), any::<u16>(), links, destinations).prop_map(
        |(origin, fragment, sequence, lifetime, links, destinations)| LsaRepr {
            id: LsaId { origin, fragment },
            sequence,
            lifetime,
            links: if lifetime == 0 { Vec::new() } else { links },
            destinations: if lifetime == 0 { Vec::new() } else { destinations },
        },
    )
}

fn header() -> impl Strategy<Value = LsaHeader> {
    (node(), any::<u8>(), any::<u64>(), any::<[u8; 16]>()).prop_map(
        |(origin, fragment, sequence, digest)| LsaHeader {
            id: LsaId { origin, fragment },
            version: Version { sequence, digest },
        },
    )
}

fn emit(repr: &LsaRepr) -> Vec<u8> {
    repr.emit(8, |_| b"evidence".to_vec()).to_vec()
}

fn message() -> impl Strategy<Value = (MessageRepr, Vec<u8>)> {
    let repr = prop_oneof![
        (any::<u64>(), any::<u32>()).prop_map(|(heard, hold)| MessageRepr::greeting(heard, hold)),
        any::<u32>().prop_map(MessageRepr::hello),
        (0..9u16, vec(header(), 0..20))
            .prop_map(|(index, headers)| MessageRepr::summary(index, 9, &headers)),
        vec(lsa(), 0..3).prop_map(|lsas| {
            let lsas: Vec<_> = lsas.iter().map(emit).collect();
            MessageRepr::update(lsas.iter().map(Vec::as_slice))
        }),
        vec(header(), 0..20).prop_map(|headers| MessageRepr::ack(&headers)),
    ];
    let rest = (node(), any::<u64>(), any::<u64>(), any::<u8>(), vec(any::<u8>(), 0..130));
    (repr, rest).prop_map(|(repr, (sender, session, counter, flags, seal))| {
        (repr.from(sender, session, counter, flags), seal)
    })
}

fn emit_message((repr, seal): &(MessageRepr, Vec<u8>)) -> Vec<u8> {
    repr.emit(seal.len() as u8, |_| seal.clone())
}

/// A message that was read, written again from what was read.
fn rewrite(message: &Message) -> Vec<u8> {
    let repr = match message.body {
        Body::Greeting { heard, hold } => MessageRepr::greeting(heard, hold),
        Body::Hello { hold } => MessageRepr::hello(hold),
        Body::Summary { index, count, headers } => {
            MessageRepr::summary(index, count, &headers.iter().collect::<Vec<_>>())
        }
        Body::Update(lsas) => MessageRepr::update(lsas.iter().map(|lsa| lsa.bytes())),
        Body::Ack(headers) => MessageRepr::ack(&headers.iter().collect::<Vec<_>>()),
    };
    let repr = repr.from(message.sender, message.session, message.counter, message.flags);
    repr.emit(message.seal.len() as u8, |sealed| {
        assert_eq!(sealed, message.sealed);
        message.seal.to_vec()
    })
}

/// The layout of the module's text, byte for byte.
#[test]
fn an_advertisement_is_laid_out_as_documented() {
    let repr = LsaRepr {
        id: LsaId { origin: NodeId([0xaa; 20]), fragment: 3 },
        sequence: 0x0102_0304_0506_0708,
        lifetime: 3600,
        links: vec![(NodeId([0xbb; 20]), 10)],
        destinations: vec![(Destination::new(b"hi").unwrap(), 0x01_0203)],
    };
    let expected = [
        &[0xaa; 20][..],
        &[3, 8, 0x0e, 0x10, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 0, 1],
        &[0xbb; 20],
        &[0, 0, 0, 10],
        &[2, 0, 1, 2, 3, b'h', b'i'],
        b"evidence",
    ]
    .concat();
    assert_eq!(emit(&repr), expected);
    let view = LsaView::new_checked(&expected).unwrap();
    assert_eq!((view.proven().len(), view.proof()), (expected.len() - 8, &b"evidence"[..]));
    assert_eq!(LsaRepr::parse(&view), repr);
}

#[test]
fn a_message_is_laid_out_as_documented() {
    let repr = MessageRepr::greeting(7, 4000).from(NodeId([0xaa; 20]), 5, 6, 1);
    let expected = [
        &[1, 1, 1, 4, 0, 58][..],
        &[0xaa; 20],
        &[0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 6],
        &[0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0x0f, 0xa0],
        b"seal",
    ]
    .concat();
    assert_eq!(repr.emit(4, |_| b"seal".to_vec()), expected);
    let padded = [&expected[..], &[0; 9]].concat();
    let view = Message::new_checked(&padded).unwrap();
    assert_eq!((view.body, view.seal), (Body::Greeting { heard: 7, hold: 4000 }, &b"seal"[..]));
}

#[test]
fn each_check_of_a_message_has_its_error() {
    let good = MessageRepr::summary(0, 1, &[]).emit(0, |_| Vec::new());
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        Message::new_checked(&bytes).unwrap_err()
    };
    assert_eq!(with(0, 2), WireError::Version(2));
    assert_eq!(with(1, 0), WireError::Type(0));
    assert_eq!(with(1, 6), WireError::Type(6));
    assert_eq!(with(3, 5), WireError::Truncated { needed: 47, available: 46 });
    assert_eq!(with(5, 47), WireError::Truncated { needed: 47, available: 46 });
    assert_eq!(with(43, 1), WireError::SummaryIndex { index: 1, count: 1 });
    assert_eq!(with(5, 45), WireError::Truncated { needed: 2, available: 1 });
    let long = MessageRepr::hello(1).emit(0, |_| Vec::new());
    let hello_as_ack = [&long[..1], &[5], &long[2..]].concat();
    assert_eq!(Message::new_checked(&hello_as_ack), Err(WireError::Surplus(4)));
}

#[test]
fn each_check_of_an_advertisement_has_its_error() {
    let repr = LsaRepr {
        id: LsaId { origin: NodeId([1; 20]), fragment: 0 },
        sequence: 1,
        lifetime: 60,
        links: vec![(NodeId([2; 20]), 1)],
        destinations: vec![(Destination::new(b"x").unwrap(), 0)],
    };
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = emit(&repr);
        change(&mut bytes);
        LsaView::new_checked(&bytes).unwrap_err()
    };
    let set = |at: usize, value: u8| with(&|bytes| bytes[at] = value);
    assert_eq!(set(59, 0), WireError::Metric(0));
    assert_eq!(set(56, 1), WireError::Metric(0x0100_0001));
    assert_eq!(set(60, 0), WireError::DestinationLength(0));
    assert_eq!(set(60, 65), WireError::DestinationLength(65));
    assert_eq!(set(61, 1), WireError::Metric(0x0100_0000));
    assert_eq!(set(23, 0), WireError::WithdrawnContent);
    assert_eq!(set(21, 7), WireError::Surplus(1));
    assert_eq!(set(21, 9), WireError::Truncated { needed: 9, available: 8 });
    let long = with(&|bytes| bytes.resize(MAX_LSA_LEN + 1, 0));
    assert_eq!(long, WireError::LsaTooLong(MAX_LSA_LEN + 1));
    assert_eq!(
        with(&|bytes| bytes.truncate(35)),
        WireError::Truncated { needed: 36, available: 35 }
    );
}

#[test]
fn a_destination_has_a_name_of_1_to_64_bytes() {
    assert_eq!(Destination::new(&[]), None);
    assert_eq!(Destination::new(&[0; 65]), None);
    assert_eq!(Destination::new(&[7; 64]).unwrap().bytes(), [7; 64]);
}

proptest! {
    #[test]
    fn advertisements_are_read_as_they_were_written(repr in lsa()) {
        let bytes = emit(&repr);
        let view = LsaView::new_checked(&bytes).unwrap();
        prop_assert_eq!(LsaRepr::parse(&view), repr);
        for len in 0..bytes.len() {
            prop_assert!(LsaView::new_checked(&bytes[..len]).is_err(), "{}", len);
        }
    }

    #[test]
    fn messages_are_read_as_they_were_written(message in message(), padding in 0usize..20) {
        let bytes = emit_message(&message);
        let padded = [&bytes[..], &vec![0; padding]].concat();
        let view = Message::new_checked(&padded).unwrap();
        prop_assert_eq!(rewrite(&view), &bytes[..]);
        for len in 0..bytes.len() {
            prop_assert!(Message::new_checked(&bytes[..len]).is_err(), "{}", len);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(mut bytes in vec(any::<u8>(), 0..300), kind in 0u8..7) {
        let _ = LsaView::new_checked(&bytes);
        if bytes.len() > 6 {
            let len = bytes.len() as u16;
            bytes[..2].copy_from_slice(&[VERSION, kind]);
            bytes[3] %= 40;
            bytes[4..6].copy_from_slice(&len.to_be_bytes());
        }
        if let Ok(message) = Message::new_checked(&bytes) {
            prop_assert_eq!(rewrite(&message), &bytes[..]);
        }
    }

    #[test]
    fn a_changed_bit_is_another_version(repr in lsa(), bit in 0usize..10_000) {
        let bytes = emit(&repr);
        let version = LsaView::new_checked(&bytes).unwrap().version();
        let mut other = bytes.clone();
        other[bit / 8 % bytes.len()] ^= 1 << (bit % 8);
        if let Ok(other) = LsaView::new_checked(&other) {
            prop_assert_ne!(other.version(), version);
        }
    }

    #[test]
    fn metrics_and_names_keep_to_their_ranges(repr in lsa()) {
        let bytes = emit(&repr);
        let view = LsaView::new_checked(&bytes).unwrap();
        let is_metric = |metric: Metric| metric <= MAX_METRIC;
        prop_assert!(view.links().all(|(_, metric)| metric > 0 && is_metric(metric)));
        prop_assert!(view.destinations().all(|(name, metric)| !name.is_empty() && is_metric(metric)));
    }
}

/// Found by fuzzing: a length of zero was taken for that of the header.
#[test]
fn a_message_that_says_it_is_shorter_than_its_header_is_refused() {
    let ack = MessageRepr::ack(&[]).from(NodeId([2; 20]), 1, 2, 0).emit(0, |_| Vec::new());
    for len in 0..ack.len() {
        let mut bytes = ack.clone();
        bytes[4..6].copy_from_slice(&(len as u16).to_be_bytes());
        let refused = Message::new_checked(&bytes).err();
        let expected = WireError::Truncated { needed: ack.len(), available: len };
        assert_eq!(refused, Some(expected));
    }
    assert!(Message::new_checked(&ack).is_ok());
}
