mod vectors;

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use weft_routing::Prefix;

use super::*;

fn all(stream: &[u8], is_extended: bool) -> Vec<(MessageType, Vec<u8>)> {
    let mut cutter = Cutter::new();
    if is_extended {
        cutter.allow_extended();
    }
    cutter.push(stream);
    let mut messages = Vec::new();
    while let Some(message) = cutter.take().unwrap() {
        messages.push((message.kind, message.bytes.to_vec()));
    }
    assert_eq!(messages.iter().map(|(_, bytes)| bytes.len()).sum::<usize>(), stream.len());
    messages
}

fn bytes(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
        .collect()
}

/// RFC 4724 §2: 23 bytes for IPv4 unicast.
#[test]
fn the_end_of_a_table_is_an_empty_update() {
    let context =
        Context { families: Families::from_iter(Family::ALL), ..Context::new(Neighbour::External) };
    for family in Family::ALL {
        let message = end_of_rib(family);
        let update = Update::new_checked(&message[HEADER_LEN..], &context).unwrap();
        assert_eq!(update.end_of_rib(), Some(family));
        assert_eq!(update.judge(&context).disposition, Disposition::Use);
    }
    assert_eq!(end_of_rib(Family::IPV4_UNICAST).len(), 23);
    let plain = Context::new(Neighbour::External);
    let foreign = end_of_rib(Family::IPV6_UNICAST);
    assert_eq!(Update::new_checked(&foreign[HEADER_LEN..], &plain).unwrap().end_of_rib(), None);
}

#[test]
fn what_is_impossible_in_an_open_is_refused() {
    let good = Open::new(65001, 90, Ipv4Addr::new(192, 0, 2, 1)).emit();
    let good = &good[HEADER_LEN..];
    let with = |at: usize, new: &[u8]| {
        let mut bad = good.to_vec();
        bad[at..at + new.len()].copy_from_slice(new);
        let error = Open::parse(&bad).unwrap_err();
        let told = error.notification();
        (error, told.code, told.subcode)
    };
    assert_eq!(with(0, &[3]), (MessageError::Version(3), 2, 1));
    assert_eq!(MessageError::Version(3).notification().data, [0, 4]);
    assert_eq!(with(1, &[0, 0]), (MessageError::PeerAs(0), 2, 2));
    assert_eq!(with(14, &[0, 0, 0, 0]), (MessageError::PeerAs(0), 2, 2));
    assert_eq!(with(3, &[0, 2]), (MessageError::HoldTime(2), 2, 6));
    assert_eq!(with(5, &[0; 4]), (MessageError::Identifier, 2, 3));
    assert_eq!(with(10, &[1]), (MessageError::Parameter(1), 2, 4));
    assert_eq!(with(13, &[3]), (MessageError::Open, 2, 0));
    assert_eq!(with(9, &[7]), (MessageError::Open, 2, 0));
}

#[test]
fn the_extended_form_is_read_even_where_it_is_not_needed() {
    let long = bytes("04 fde9 005a c0000201 ff ff 0009 02 0006 4104 0000fde9");
    let short = bytes("04 fde9 005a c0000201 0c ff 0009 02 0006 4104 0000fde9");
    for body in [long, short] {
        assert_eq!(Open::parse(&body).unwrap(), Open::new(65001, 90, Ipv4Addr::new(192, 0, 2, 1)));
    }
    assert_eq!(
        Open::parse(&bytes("04 fde9 005a c0000201 ff ff 000a 02 0006 4104 0000fde9")),
        Err(MessageError::Open)
    );
}

fn family() -> impl Strategy<Value = Family> {
    prop_oneof![
        4 => prop::sample::select(Family::ALL.to_vec()),
        1 => (any::<u16>(), any::<u8>()).prop_map(|(afi, safi)| Family { afi, safi }),
    ]
}

fn capability() -> impl Strategy<Value = Capability> {
    let direction = prop::sample::select(vec![AddPath::Receive, AddPath::Send, AddPath::Both]);
    let name = || prop::collection::vec(any::<u8>(), 0..=126);
    let families = || prop::collection::vec((family(), any::<bool>()), 0..=63);
    prop_oneof![
        family().prop_map(Capability::Multiprotocol),
        Just(Capability::RouteRefresh),
        Just(Capability::ExtendedMessage),
        Just(Capability::EnhancedRefresh),
        any::<u8>().prop_map(|code| Capability::Role(Role::from_code(code))),
        (1u32..).prop_map(Capability::FourOctetAs),
        prop::collection::vec(any::<[u16; 3]>(), 0..=42).prop_map(|tuples| {
            let tuple =
                |[afi, safi, next_hop_afi]: [u16; 3]| ExtendedNextHop { afi, safi, next_hop_afi };
            Capability::ExtendedNextHop(tuples.into_iter().map(tuple).collect())
        }),
        (any::<bool>(), any::<bool>(), 0u16..4096, families()).prop_map(
            |(restarted, notification, time, families)| {
                Capability::GracefulRestart(GracefulRestart {
                    restarted,
                    notification,
                    time,
                    families,
                })
            }
        ),
        prop::collection::vec((family(), direction), 0..=63).prop_map(Capability::AddPath),
        prop::collection::vec((family(), any::<bool>(), 0u32..1 << 24), 0..=36).prop_map(
            |tuples| {
                let tuple =
                    |(family, forwarding, stale_time)| LongLived { family, forwarding, stale_time };
                Capability::LongLived(tuples.into_iter().map(tuple).collect())
            }
        ),
        (name(), name()).prop_map(|(host, domain)| Capability::Fqdn { host, domain }),
        (100u8.., prop::collection::vec(any::<u8>(), 0..=255))
            .prop_map(|(code, value)| Capability::Other { code, value }),
    ]
}

fn open() -> impl Strategy<Value = Open> {
    let hold_time =
        any::<u16>().prop_filter("1 and 2 are impossible", |time| !matches!(time, 1 | 2));
    let parts = (1u16.., hold_time, 1u32.., prop::collection::vec(capability(), 0..12));
    parts.prop_map(|(as_field, hold_time, identifier, capabilities)| Open {
        as_field,
        hold_time,
        identifier: Ipv4Addr::from_bits(identifier),
        capabilities,
    })
}

fn boxed<T: std::fmt::Debug, S: Strategy<Value = T>>(item: S) -> impl Strategy<Value = Box<[T]>> {
    prop::collection::vec(item, 0..6).prop_map(Vec::into_boxed_slice)
}

/// A path with or without segments of a confederation, which are at its front.
fn as_path(has_confederation: bool) -> impl Strategy<Value = AsPath> {
    let kind = prop_oneof![Just(SegmentKind::Set), Just(SegmentKind::Sequence)];
    let numbers = || prop::collection::vec(prop_oneof![1u32..1 << 16, 1u32..], 1..20);
    let front = prop::option::of(numbers());
    (front, prop::collection::vec((kind, numbers()), 0..4)).prop_map(move |(front, segments)| {
        let front = front.filter(|_| has_confederation);
        let front =
            front.iter().map(|numbers| Segment { kind: SegmentKind::ConfedSequence, numbers });
        let rest = segments.iter().map(|(kind, numbers)| Segment { kind: *kind, numbers });
        AsPath::from_segments(front.chain(rest))
    })
}

fn host4() -> impl Strategy<Value = NextHop> {
    any::<u32>()
        .prop_map(|bits| NextHop::V4(Ipv4Addr::from_bits(bits)))
        .prop_filter("a host", NextHop::is_host)
}

pub(crate) fn host6() -> impl Strategy<Value = NextHop> {
    (any::<u128>(), prop::option::of(any::<u128>()))
        .prop_map(|(global, link_local)| NextHop::V6 {
            global: Ipv6Addr::from_bits(global),
            link_local: link_local.map(Ipv6Addr::from_bits),
        })
        .prop_filter("a host", NextHop::is_host)
}

/// What a neighbour inside may say.
pub(crate) fn attributes(has_confederation: bool) -> impl Strategy<Value = Attributes> {
    let origin = prop::sample::select(vec![Origin::Igp, Origin::Egp, Origin::Incomplete]);
    let large = (any::<u32>(), any::<u32>(), any::<u32>())
        .prop_map(|(administrator, first, second)| LargeCommunity { administrator, first, second });
    let common = (
        as_path(has_confederation),
        origin,
        any::<bool>(),
        any::<Option<u32>>(),
        any::<Option<u32>>(),
        boxed(any::<u32>()),
        boxed(any::<u64>()),
        boxed(large),
    );
    let unknown =
        prop::collection::btree_map(41u8.., prop::collection::vec(any::<u8>(), 0..300), 0..4);
    let rare = (
        prop::option::of((prop_oneof![1u32..1 << 16, 1u32..], any::<u32>())),
        any::<Option<u32>>(),
        boxed(any::<u32>().prop_map(Ipv4Addr::from_bits)),
        prop::option::of(0..u64::MAX),
        any::<Option<u32>>(),
        any::<Option<[u8; 7]>>(),
        unknown,
        any::<u64>(),
    );
    (common, rare).prop_map(|(common, rare)| {
        let mut attributes = Attributes {
            as_path: common.0,
            origin: common.1,
            atomic_aggregate: common.2,
            med: common.3,
            local_pref: common.4,
            communities: common.5,
            extended_communities: common.6,
            large_communities: common.7,
            ..Attributes::default()
        };
        let mut present = 0;
        let mut note = |is_there: bool, code: u8| present |= u64::from(is_there) << code;
        note(!attributes.communities.is_empty(), 8);
        note(!attributes.extended_communities.is_empty(), 16);
        note(!attributes.large_communities.is_empty(), 32);
        note(rare.0.is_some(), 7);
        note(rare.4.is_some(), 35);
        note(rare.5.is_some(), 40);
        let unknown = rare.6.into_iter();
        attributes.change_rare(|to| {
            *to = Rare {
                aggregator: rare.0.map(|(autonomous_system, id)| Aggregator {
                    autonomous_system,
                    identifier: Ipv4Addr::from_bits(id),
                }),
                originator_id: rare.1.map(Ipv4Addr::from_bits),
                cluster_list: rare.2,
                aigp: rare.3,
                only_to_customer: rare.4,
                prefix_sid: rare.5.map(|index| [&[1, 0, 7][..], &index].concat().into()),
                unknown: unknown
                    .map(|(code, value)| UnknownAttribute { code, value: value.into() })
                    .collect(),
                partial: rare.7 & present,
                ..Rare::default()
            };
        });
        attributes
    })
}

fn prefixes(family: Family, seeds: &[(u32, u128, u8)], has_ids: bool) -> Vec<(u32, Prefix)> {
    let bits = family.address_bits();
    let whole = |bytes: u128| Prefix::of(&bytes.to_be_bytes()[..usize::from(bits / 8)]).unwrap();
    let prefix = |(id, bytes, length): &(u32, u128, u8)| {
        (if has_ids { *id } else { 0 }, whole(*bytes).truncate(length % (bits + 1)))
    };
    seeds.iter().map(prefix).collect()
}

/// Everything that a peer has announced and withdrawn in a stream, and the attributes.
type Told = (Vec<(u32, Prefix)>, Vec<(u32, Prefix)>, Vec<Attributes>);

fn told(stream: &[u8], family: Family, context: &Context) -> Told {
    let (mut announced, mut withdrawn, mut attributes) = (Vec::new(), Vec::new(), Vec::new());
    for (kind, message) in all(stream, context.send_limit > MAX_MESSAGE) {
        assert_eq!(kind, MessageType::Update);
        assert!(message.len() <= usize::from(context.send_limit));
        let update = Update::new_checked(&message[HEADER_LEN..], context).unwrap();
        let judgement = update.judge(context);
        assert_eq!((judgement.disposition, judgement.faults), (Disposition::Use, vec![]));
        for reach in update.reach() {
            assert_eq!(reach.family, family);
            announced.extend(reach.nlri);
            attributes.push(match reach.next_hop {
                Some(next_hop) => judgement.attributes.clone().with_next_hop(next_hop),
                None => judgement.attributes.clone(),
            });
        }
        for (one, nlri) in update.withdrawn() {
            assert_eq!(one, family);
            withdrawn.extend(nlri);
        }
    }
    (announced, withdrawn, attributes)
}

fn context(family: Family, four_octet_as: bool, has_ids: bool, is_extended: bool) -> Context {
    let families = Families::from_iter(Family::ALL);
    let ids = Families::from_iter([family].into_iter().filter(|_| has_ids));
    Context {
        neighbour: Neighbour::Internal,
        four_octet_as,
        families,
        add_path_receive: ids,
        add_path_send: ids,
        extended_next_hop: families,
        send_limit: if is_extended { MAX_EXTENDED_MESSAGE } else { MAX_MESSAGE },
        accept_as_sets: true,
    }
}

#[test]
fn messages_are_filled() {
    let family = Family::IPV4_UNICAST;
    let context = context(family, true, false, false);
    let attributes = Attributes {
        next_hop: Some(NextHop::V4(Ipv4Addr::new(192, 0, 2, 1))),
        ..Attributes::default()
    };
    let encoder = UpdateEncoder::new(&attributes, family, &context).unwrap();
    let prefixes =
        (0..10_000u32).map(|n| (0, Prefix::from(Ipv4Addr::from_bits(n << 8)).truncate(24)));
    let mut stream = Vec::new();
    // 19 + 4 + 4 + 3 + 7 bytes in front; then 4 for a prefix, of which one could have 5.
    assert_eq!(encoder.all(prefixes.clone(), &mut stream), 10_000_usize.div_ceil((4096 - 37) / 4));
    assert_eq!(told(&stream, family, &context).0, prefixes.collect::<Vec<_>>());
}

#[test]
fn what_cannot_be_told_to_a_peer_is_said() {
    let plain = Context::new(Neighbour::External);
    let mut attributes = Attributes::default();
    let encode = |attributes: &Attributes, family| {
        UpdateEncoder::new(attributes, family, &plain).unwrap_err()
    };
    let v4 = Family::IPV4_UNICAST;
    assert_eq!(encode(&attributes, v4), EncodeError::NextHop(v4));
    attributes.next_hop = Some(NextHop::V6 { global: Ipv6Addr::LOCALHOST, link_local: None });
    assert_eq!(encode(&attributes, v4), EncodeError::NextHop(v4));
    attributes.next_hop = Some(NextHop::V4(Ipv4Addr::LOCALHOST));
    assert_eq!(
        encode(&attributes, Family::IPV6_UNICAST),
        EncodeError::NextHop(Family::IPV6_UNICAST)
    );
    attributes.communities = (0..1100).collect();
    assert_eq!(encode(&attributes, v4), EncodeError::TooLong { length: 4418, limit: 4096 });
    let long = Context { send_limit: MAX_EXTENDED_MESSAGE, ..plain };
    assert!(UpdateEncoder::new(&attributes, v4, &long).is_ok());
}

proptest! {
    #[test]
    fn an_open_is_read_back(open in open()) {
        let message = open.emit();
        let messages = all(&message, false);
        prop_assert_eq!(messages.len(), 1);
        let read = Open::parse(&message[HEADER_LEN..]).unwrap();
        prop_assert_eq!(&read.emit(), &message);
        prop_assert_eq!(read, open);
        for cut in 0..message.len() - HEADER_LEN {
            prop_assert!(Open::parse(&message[HEADER_LEN..HEADER_LEN + cut]).is_err());
        }
    }

    #[test]
    fn routes_are_read_back(
        attributes in attributes(true),
        (v4, v6) in (host4(), host6()),
        seeds in prop::collection::vec(any::<(u32, u128, u8)>(), 1..2000),
        family in prop::sample::select(Family::ALL.to_vec()),
        (is_v6, has_ids, is_extended) in any::<(bool, bool, bool)>(),
    ) {
        let context = context(family, true, has_ids, is_extended);
        let next_hop = if is_v6 || family.is_ipv6() { v6 } else { v4 };
        let attributes = attributes.with_next_hop(next_hop);
        let prefixes = prefixes(family, &seeds, has_ids);
        let mut stream = Vec::new();
        let encoder = UpdateEncoder::new(&attributes, family, &context).unwrap();
        let count = encoder.all(prefixes.iter().copied(), &mut stream);
        let (announced, withdrawn, read) = told(&stream, family, &context);
        prop_assert_eq!(announced, &prefixes[..]);
        prop_assert!(withdrawn.is_empty());
        prop_assert_eq!(read, vec![attributes; count]);
        stream.clear();
        withdraw(family, &context, prefixes.iter().copied(), &mut stream);
        let (announced, withdrawn, _) = told(&stream, family, &context);
        prop_assert!(announced.is_empty());
        prop_assert_eq!(withdrawn, prefixes);
    }

    #[test]
    fn routes_are_read_back_through_two_octets(attributes in attributes(false), next_hop in host4(), bits: u32) {
        let family = Family::IPV4_UNICAST;
        let context = context(family, false, false, false);
        let attributes = attributes.with_next_hop(next_hop);
        let mut stream = Vec::new();
        let encoder = UpdateEncoder::new(&attributes, family, &context).unwrap();
        encoder.all([(0, Prefix::from(Ipv4Addr::from_bits(bits)))], &mut stream);
        prop_assert_eq!(told(&stream, family, &context).2, [attributes]);
    }

    #[test]
    fn what_was_written_is_written_again(attributes in attributes(true), next_hop in host4()) {
        let family = Family::IPV4_UNICAST;
        let context = context(family, true, false, false);
        let write = |attributes: &Attributes| {
            let mut stream = Vec::new();
            UpdateEncoder::new(attributes, family, &context).unwrap().all([(0, Prefix::ALL)], &mut stream);
            stream
        };
        let stream = write(&attributes.with_next_hop(next_hop));
        let update = Update::new_checked(&stream[HEADER_LEN..], &context).unwrap();
        let block = update.attributes().to_vec();
        prop_assert_eq!(&write(&update.judge(&context).attributes), &stream);
        // A block that is cut off anywhere but between two attributes is seen to be.
        let whole = Attributes::parse(&block, &context);
        prop_assert!(whole.faults.is_empty());
        let mut boundaries = vec![0];
        while let Some(rest) = block.get(*boundaries.last().unwrap()..).filter(|rest| !rest.is_empty()) {
            let length = if rest[0] & 0x10 == 0 { 3 + usize::from(rest[2]) } else { 4 + usize::from(rest[2]) * 256 + usize::from(rest[3]) };
            boundaries.push(boundaries.last().unwrap() + length);
        }
        for cut in 0..block.len() {
            let faults = Attributes::parse(&block[..cut], &context).faults;
            let is_cut = faults.iter().any(|fault| fault.rule == Rule::Overrun);
            prop_assert_eq!(is_cut, !boundaries.contains(&cut));
        }
        // A message that is cut off inside its attributes has no prefixes that can be found.
        let prefixes_at = stream.len() - 1;
        for cut in HEADER_LEN..prefixes_at {
            prop_assert!(Update::new_checked(&stream[HEADER_LEN..cut], &context).is_err());
        }
    }

    #[test]
    fn any_bytes_are_judged(
        attributes in prop::collection::vec((any::<u8>(), 0u8..42, prop::collection::vec(any::<u8>(), 0..40)), 0..8),
        noise in prop::collection::vec(any::<u8>(), 0..60),
        (four_octet_as, has_ids, is_internal) in any::<(bool, bool, bool)>(),
    ) {
        let mut block = Vec::new();
        for (flags, code, value) in attributes {
            block.extend([flags & !0x10, code, value.len() as u8]);
            block.extend(value);
        }
        let mut body = vec![0, 0];
        body.extend((block.len() as u16).to_be_bytes());
        body.extend(block);
        body.extend(&noise);
        let context = Context {
            neighbour: if is_internal { Neighbour::Internal } else { Neighbour::External },
            ..context(Family::IPV6_UNICAST, four_octet_as, has_ids, false)
        };
        for body in [body, noise] {
            let _ = (Open::parse(&body), RouteRefresh::parse(&body, has_ids), Notification::parse(&body).to_string());
            if let Ok(update) = Update::new_checked(&body, &context) {
                let judgement = update.judge(&context);
                let count: usize = update.reach().map(|reach| reach.nlri.iter().count()).sum();
                let gone: usize = update.withdrawn().map(|(_, nlri)| nlri.iter().count()).sum();
                prop_assert!(count + gone <= body.len());
                let is_fine = judgement.faults.is_empty();
                prop_assert_eq!(is_fine, judgement.disposition == Disposition::Use);
            }
        }
    }
}
