use super::super::context::Neighbour;
use super::super::stream::{begin, end};
use super::super::{Context, Disposition, Families, Family, MessageError, MessageType, Update};
use super::*;
use crate::numbers::attribute as code;

pub(crate) const ORIGIN: &[u8] = &[0x40, 1, 1, 0];
pub(crate) const AS_PATH: &[u8] = &[0x40, 2, 6, 2, 1, 0, 0, 0xFD, 0xE9];
pub(crate) const NEXT_HOP: &[u8] = &[0x40, 3, 4, 192, 0, 2, 1];
pub(crate) const NLRI: &[u8] = &[24, 198, 51, 100];

fn external() -> Context {
    let families = Families::from_iter([Family::IPV4_UNICAST, Family::IPV6_UNICAST]);
    Context { families, ..Context::new(Neighbour::External) }
}

fn internal() -> Context {
    Context { neighbour: Neighbour::Internal, ..external() }
}

/// The body of an UPDATE with these attributes and prefixes.
pub(crate) fn body(attributes: &[&[u8]], nlri: &[u8]) -> Vec<u8> {
    let attributes = attributes.concat();
    let mut body = vec![0, 0];
    body.extend((attributes.len() as u16).to_be_bytes());
    body.extend(attributes);
    body.extend(nlri);
    body
}

/// The whole message with this body.
pub(crate) fn message(body: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    let start = begin(MessageType::Update, &mut message);
    message.extend(body);
    end(start, &mut message);
    message
}

/// The body of an UPDATE with the mandatory attributes and `attribute`, which replaces one of the same code.
pub(crate) fn body_with(attribute: &[u8]) -> Vec<u8> {
    let mandatory = [ORIGIN, AS_PATH, NEXT_HOP].into_iter();
    let mut all: Vec<_> = mandatory.filter(|one| one[1] != attribute[1]).collect();
    all.push(attribute);
    body(&all, NLRI)
}

fn judge_body(body: &[u8], context: &Context) -> (Disposition, Vec<Fault>, Attributes) {
    let judgement = Update::new_checked(body, context).unwrap().judge(context);
    (judgement.disposition, judgement.faults, judgement.attributes)
}

/// What an UPDATE comes to that has the mandatory attributes and `attribute`.
fn judge(attribute: &[u8], context: &Context) -> (Disposition, Vec<Fault>, Attributes) {
    judge_body(&body_with(attribute), context)
}

#[track_caller]
fn withdraws(attribute: &[u8], rule: Rule, context: &Context) {
    let (disposition, faults, _) = judge(attribute, context);
    assert_eq!(disposition, Disposition::TreatAsWithdraw, "{attribute:?}");
    let action = Action::TreatAsWithdraw;
    assert_eq!(faults, [Fault { attribute: attribute[1], rule, action }], "{attribute:?}");
}

#[track_caller]
fn discards(attribute: &[u8], rule: Rule, context: &Context) {
    let (disposition, faults, attributes) = judge(attribute, context);
    assert_eq!(disposition, Disposition::DiscardAttributes, "{attribute:?}");
    let action = Action::DiscardAttribute;
    assert_eq!(faults, [Fault { attribute: attribute[1], rule, action }], "{attribute:?}");
    let (_, _, without) = judge(NEXT_HOP, context);
    assert_eq!(attributes, without, "{attribute:?}");
}

#[track_caller]
fn is_used(attribute: &[u8], context: &Context) -> Attributes {
    let (disposition, faults, attributes) = judge(attribute, context);
    assert_eq!((disposition, faults), (Disposition::Use, vec![]), "{attribute:?}");
    attributes
}

#[test]
fn row_1_origin() {
    assert_eq!(is_used(&[0x40, 1, 1, 2], &external()).origin, Origin::Incomplete);
    withdraws(&[0x40, 1, 1, 3], Rule::Value, &external());
    withdraws(&[0x40, 1, 0], Rule::Length, &external());
    withdraws(&[0x40, 1, 2, 0, 0], Rule::Length, &external());
}

#[test]
fn row_2_as_path() {
    assert_eq!(is_used(&[0x40, 2, 0], &external()).as_path, AsPath::default());
    let bad_type = [0x40, 2, 6, 5, 1, 0, 0, 0, 1];
    let overrun = [0x40, 2, 6, 2, 2, 0, 0, 0, 1];
    let underrun = [0x40, 2, 7, 2, 1, 0, 0, 0, 1, 2];
    let no_numbers = [0x40, 2, 2, 2, 0];
    for attribute in [&bad_type[..], &overrun, &underrun, &no_numbers] {
        withdraws(attribute, Rule::Segment, &external());
    }
    // RFC 7607.
    withdraws(&[0x40, 2, 6, 2, 1, 0, 0, 0, 0], Rule::Zero, &external());
    // RFC 9774, unless it is switched off.
    let set = [0x40, 2, 12, 2, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 2];
    withdraws(&set, Rule::Set, &external());
    let lenient = Context { accept_as_sets: true, ..external() };
    assert_eq!(is_used(&set, &lenient).as_path.to_string(), "1 {2}");
    // RFC 5065 §5.
    let confederation = [0x40, 2, 6, 3, 1, 0, 0, 0, 1];
    withdraws(&confederation, Rule::Confederation, &external());
    let member = Context { neighbour: Neighbour::Confederation, ..external() };
    assert_eq!(is_used(&confederation, &member).as_path.to_string(), "(1)");
    // Two octets, where they were agreed on.
    let two = Context { four_octet_as: false, ..external() };
    assert_eq!(is_used(&[0x40, 2, 4, 2, 1, 0, 7], &two).as_path.to_string(), "7");
}

#[test]
fn row_3_next_hop() {
    let ip = Ipv4Addr::new(192, 0, 2, 9);
    let attributes = is_used(&[0x40, 3, 4, 192, 0, 2, 9], &external());
    assert_eq!(attributes.next_hop, Some(NextHop::V4(ip)));
    withdraws(&[0x40, 3, 3, 1, 2, 3], Rule::Length, &external());
    withdraws(&[0x40, 3, 5, 1, 2, 3, 4, 5], Rule::Length, &external());
    // RFC 4271 §6.3 with RFC 7606 §3 (e): no address of a host.
    withdraws(&[0x40, 3, 4, 0, 0, 0, 0], Rule::Value, &external());
    withdraws(&[0x40, 3, 4, 224, 0, 0, 5], Rule::Value, &external());
}

#[test]
fn row_4_med() {
    assert_eq!(is_used(&[0x80, 4, 4, 0, 0, 1, 0], &external()).med, Some(256));
    withdraws(&[0x80, 4, 3, 0, 0, 1], Rule::Length, &external());
}

#[test]
fn row_5_local_pref() {
    assert_eq!(is_used(&[0x40, 5, 4, 0, 0, 0, 200], &internal()).local_pref, Some(200));
    withdraws(&[0x40, 5, 5, 0, 0, 0, 0, 1], Rule::Length, &internal());
    discards(&[0x40, 5, 4, 0, 0, 0, 200], Rule::External, &external());
    discards(&[0x40, 5, 1, 0], Rule::External, &external());
}

#[test]
fn row_6_atomic_aggregate() {
    assert!(is_used(&[0x40, 6, 0], &external()).atomic_aggregate);
    discards(&[0x40, 6, 1, 0], Rule::Length, &external());
}

#[test]
fn row_7_aggregator() {
    let attributes = is_used(&[0xC0, 7, 8, 0, 1, 0, 0, 192, 0, 2, 9], &external());
    let aggregator = attributes.rare().aggregator.unwrap();
    assert_eq!(aggregator.autonomous_system, 65536);
    discards(&[0xC0, 7, 6, 0, 1, 192, 0, 2, 9], Rule::Length, &external());
    discards(&[0xC0, 7, 8, 0, 0, 0, 0, 192, 0, 2, 9], Rule::Zero, &external());
    let two = Context { four_octet_as: false, ..external() };
    let body = body(&[ORIGIN, &[0x40, 2, 0], NEXT_HOP, &[0xC0, 7, 6, 0, 1, 192, 0, 2, 9]], NLRI);
    let (disposition, _, attributes) = judge_body(&body, &two);
    assert_eq!(disposition, Disposition::Use);
    assert_eq!(attributes.rare().aggregator.unwrap().autonomous_system, 1);
}

#[test]
fn row_8_communities() {
    let attributes = is_used(&[0xC0, 8, 8, 0xFF, 0xFF, 0xFF, 1, 0, 1, 0, 2], &external());
    assert_eq!(attributes.communities[..], [0xFFFF_FF01, 0x0001_0002]);
    assert!(attributes.has_community(crate::numbers::community::NO_EXPORT));
    withdraws(&[0xC0, 8, 0], Rule::Length, &external());
    withdraws(&[0xC0, 8, 5, 0, 1, 0, 2, 0], Rule::Length, &external());
}

#[test]
fn row_9_originator_id() {
    let attributes = is_used(&[0x80, 9, 4, 192, 0, 2, 9], &internal());
    assert_eq!(attributes.rare().originator_id, Some(Ipv4Addr::new(192, 0, 2, 9)));
    withdraws(&[0x80, 9, 3, 192, 0, 2], Rule::Length, &internal());
    discards(&[0x80, 9, 4, 192, 0, 2, 9], Rule::External, &external());
}

#[test]
fn row_10_cluster_list() {
    let attributes = is_used(&[0x80, 10, 8, 0, 0, 0, 1, 0, 0, 0, 2], &internal());
    assert_eq!(attributes.rare().cluster_list.len(), 2);
    withdraws(&[0x80, 10, 0], Rule::Length, &internal());
    withdraws(&[0x80, 10, 6, 0, 0, 0, 1, 0, 0], Rule::Length, &internal());
    discards(&[0x80, 10, 4, 0, 0, 0, 1], Rule::External, &external());
}

/// MP_REACH_NLRI for 2001:db8::/32 of IPv6 unicast with the next hop `next_hop`.
fn mp_reach(next_hop: &[u8], prefixes: &[u8]) -> Vec<u8> {
    let mut value = vec![0, 2, 1, next_hop.len() as u8];
    value.extend(next_hop);
    value.push(0);
    value.extend(prefixes);
    let mut attribute = vec![0x80, 14, value.len() as u8];
    attribute.extend(value);
    attribute
}

const PREFIX6: &[u8] = &[32, 0x20, 1, 0x0D, 0xB8];
const GLOBAL: [u8; 16] = [0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

fn judge_mp(attributes: &[&[u8]], context: &Context) -> Disposition {
    judge_body(&body(attributes, &[]), context).0
}

fn disabled(disposition: &Disposition) -> Option<(Family, bool)> {
    match disposition {
        Disposition::DisableFamily { family, withdraw, error: MessageError::Multiprotocol(_) } => {
            Some((*family, *withdraw))
        }
        _ => None,
    }
}

#[test]
fn row_14_mp_reach_nlri() {
    let context = external();
    let good = mp_reach(&GLOBAL, PREFIX6);
    assert_eq!(judge_mp(&[&good, ORIGIN, AS_PATH], &context), Disposition::Use);
    let disable = Some((Family::IPV6_UNICAST, false));
    // The next hop has a length that no next hop of IPv6 has.
    let next_hop = judge_mp(&[&mp_reach(&GLOBAL[..15], PREFIX6), ORIGIN, AS_PATH], &context);
    assert_eq!(disabled(&next_hop), disable);
    let none = judge_mp(&[&mp_reach(&[], PREFIX6), ORIGIN, AS_PATH], &context);
    assert_eq!(disabled(&none), disable);
    // A prefix of 129 bits, and one that is not there to its end.
    for prefixes in [&[129; 18][..], &PREFIX6[..4]] {
        let broken = judge_mp(&[&mp_reach(&GLOBAL, prefixes), ORIGIN, AS_PATH], &context);
        assert_eq!(disabled(&broken), disable);
    }
    let cut = [0x80, 14, 3, 0, 2, 1];
    assert_eq!(
        disabled(&judge_body(&body(&[&cut, ORIGIN, AS_PATH, NEXT_HOP], NLRI), &context).0),
        disable
    );
    // No family can be read.
    let short: &[u8] = &[0x80, 14, 2, 0, 2];
    let (disposition, ..) = judge_body(&body(&[short, ORIGIN, AS_PATH, NEXT_HOP], NLRI), &context);
    let error = MessageError::Multiprotocol(short.to_vec());
    assert_eq!(disposition, Disposition::ResetSession(error.clone()));
    let told = error.notification();
    assert_eq!((told.code, told.subcode, &told.data[..]), (3, 9, short));
    // No address of a router.
    let nobody = judge_mp(&[&mp_reach(&[0; 16], PREFIX6), ORIGIN, AS_PATH], &context);
    assert_eq!(nobody, Disposition::TreatAsWithdraw);
    // Nobody has agreed on the family.
    let plain = Context::new(Neighbour::External);
    let foreign = judge_mp(&[&good, ORIGIN, AS_PATH], &plain);
    assert_eq!(foreign, Disposition::DiscardAttributes);
}

#[test]
fn a_family_is_disabled_and_the_other_withdrawn_where_both_is_due() {
    let broken = mp_reach(&GLOBAL[..15], PREFIX6);
    let both = body(&[&broken, &[0x40, 1, 1, 9], AS_PATH, NEXT_HOP], NLRI);
    let (disposition, ..) = judge_body(&both, &external());
    assert_eq!(disabled(&disposition), Some((Family::IPV6_UNICAST, true)));
}

#[test]
fn row_15_mp_unreach_nlri() {
    let context = external();
    let good: &[u8] = &[0x80, 15, 8, 0, 2, 1, 32, 0x20, 1, 0x0D, 0xB8];
    assert_eq!(judge_mp(&[good], &context), Disposition::Use);
    let broken: &[u8] = &[0x80, 15, 5, 0, 2, 1, 32, 0x20];
    let disable = Some((Family::IPV6_UNICAST, false));
    assert_eq!(disabled(&judge_mp(&[broken], &context)), disable);
    let short: &[u8] = &[0x80, 15, 2, 0, 2];
    let error = MessageError::Multiprotocol(short.to_vec());
    assert_eq!(judge_mp(&[short], &context), Disposition::ResetSession(error));
    // Two families at once leave hardly anything.
    let context = Context { families: Families::from_iter(Family::ALL), ..external() };
    let other: &[u8] = &[0x80, 15, 5, 0, 1, 2, 32, 10];
    let reach = mp_reach(&GLOBAL[..15], PREFIX6);
    let disposition = judge_mp(&[&reach, other, ORIGIN, AS_PATH], &context);
    assert!(matches!(disposition, Disposition::ResetSession(_)));
}

#[test]
fn row_16_extended_communities() {
    let attributes = is_used(&[0xC0, 16, 8, 0, 2, 0xFD, 0xE9, 0, 0, 0, 7], &external());
    assert_eq!(attributes.extended_communities[..], [0x0002_FDE9_0000_0007]);
    withdraws(&[0xC0, 16, 0], Rule::Length, &external());
    withdraws(&[0xC0, 16, 4, 0, 2, 0, 0], Rule::Length, &external());
}

#[test]
fn row_17_as4_path() {
    let path: &[u8] = &[0xC0, 17, 6, 2, 1, 0, 1, 0x11, 0x70];
    discards(path, Rule::FourOctetSpeaker, &external());
    let two = Context { four_octet_as: false, ..external() };
    let old: &[u8] = &[0x40, 2, 6, 2, 2, 0, 10, 0x5B, 0xA0];
    let judge = |as4: &[u8]| judge_body(&body(&[ORIGIN, old, NEXT_HOP, as4], NLRI), &two);
    let (disposition, _, attributes) = judge(path);
    assert_eq!(disposition, Disposition::Use);
    assert_eq!(attributes.as_path, AsPath::from_sequence(&[10, 70000]));
    for malformed in [&[0xC0, 17, 2, 2, 0][..], &[0xC0, 17, 6, 2, 1, 0, 0, 0, 0]] {
        let (disposition, _, attributes) = judge(malformed);
        assert_eq!(disposition, Disposition::DiscardAttributes);
        assert_eq!(attributes.as_path, AsPath::from_sequence(&[10, 23456]));
    }
    // Members of a confederation are taken out of it.
    let (disposition, _, attributes) =
        judge(&[0xC0, 17, 12, 3, 1, 0, 0, 0, 9, 2, 1, 0, 1, 0x11, 0x70]);
    assert_eq!(disposition, Disposition::Use);
    assert_eq!(attributes.as_path, AsPath::from_sequence(&[10, 70000]));
}

#[test]
fn row_18_as4_aggregator() {
    let as4: &[u8] = &[0xC0, 18, 8, 0, 1, 0x11, 0x70, 192, 0, 2, 9];
    discards(as4, Rule::FourOctetSpeaker, &external());
    let two = Context { four_octet_as: false, ..external() };
    let path: &[u8] = &[0x40, 2, 4, 2, 1, 0x5B, 0xA0];
    let as4_path: &[u8] = &[0xC0, 17, 6, 2, 1, 0, 1, 0x11, 0x70];
    let judge = |old: &[u8], as4: &[u8]| {
        let all = body(&[ORIGIN, path, NEXT_HOP, old, as4_path, as4], NLRI);
        let (disposition, _, attributes) = judge_body(&all, &two);
        let number = attributes.rare().aggregator.unwrap().autonomous_system;
        (disposition, number, attributes.as_path.to_string())
    };
    let trans: &[u8] = &[0xC0, 7, 6, 0x5B, 0xA0, 192, 0, 2, 9];
    assert_eq!(judge(trans, as4), (Disposition::Use, 70000, "70000".to_owned()));
    // Somebody who knows two octets has aggregated since: both attributes mean nothing.
    let newer: &[u8] = &[0xC0, 7, 6, 0, 5, 192, 0, 2, 8];
    assert_eq!(judge(newer, as4), (Disposition::Use, 5, "23456".to_owned()));
    let (disposition, number, _) =
        judge(trans, &as4[..10].iter().map(|b| if *b == 8 { 7 } else { *b }).collect::<Vec<_>>());
    assert_eq!((disposition, number), (Disposition::DiscardAttributes, 23456));
}

#[test]
fn row_26_aigp() {
    let attributes = is_used(&[0x80, 26, 11, 1, 0, 11, 0, 0, 0, 0, 0, 0, 1, 0], &external());
    assert_eq!(attributes.rare().aigp, Some(256));
    // Other contents are passed over.
    let other = is_used(&[0x80, 26, 4, 7, 0, 4, 9], &external());
    assert_eq!(other.rare().aigp, None);
    for malformed in [
        &[0x80, 26, 0][..],
        &[0x80, 26, 3, 1, 0, 2],
        &[0x80, 26, 4, 1, 0, 5, 0],
        &[0x80, 26, 10, 1, 0, 10, 0, 0, 0, 0, 0, 1, 0],
        &[0x80, 26, 11, 1, 0, 11, 255, 255, 255, 255, 255, 255, 255, 255],
    ] {
        discards(malformed, Rule::Content, &external());
    }
}

#[test]
fn row_32_large_community() {
    let attributes = is_used(&[0xC0, 32, 12, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3], &external());
    let community = LargeCommunity { administrator: 1, first: 2, second: 3 };
    assert_eq!(attributes.large_communities[..], [community]);
    withdraws(&[0xC0, 32, 0], Rule::Length, &external());
    withdraws(&[0xC0, 32, 4, 0, 0, 0, 1], Rule::Length, &external());
}

#[test]
fn row_35_only_to_customer() {
    let attributes = is_used(&[0xC0, 35, 4, 0, 0, 0, 7], &external());
    assert_eq!(attributes.rare().only_to_customer, Some(7));
    withdraws(&[0xC0, 35, 2, 0, 7], Rule::Length, &external());
}

#[test]
fn row_40_prefix_sid() {
    let value = [0xC0, 40, 10, 1, 0, 7, 0, 0, 0, 0, 0, 0, 9];
    let attributes = is_used(&value, &external());
    assert_eq!(attributes.rare().prefix_sid.as_deref(), Some(&value[3..]));
    for malformed in [&[0xC0, 40, 0][..], &[0xC0, 40, 3, 1, 0, 7], &[0xC0, 40, 4, 1, 0, 1, 0]] {
        discards(malformed, Rule::Content, &external());
    }
}

#[test]
fn flags_that_are_wrong_make_withdrawals() {
    let rows: &[&[u8]] = &[
        &[0x80, 1, 1, 0],
        &[0xC0, 2, 0],
        &[0xC0, 3, 4, 192, 0, 2, 1],
        &[0x40, 4, 4, 0, 0, 0, 1],
        &[0x80, 5, 4, 0, 0, 0, 1],
        &[0x80, 6, 0],
        &[0x80, 7, 8, 0, 1, 0, 0, 192, 0, 2, 9],
        &[0x40, 8, 4, 0, 0, 0, 1],
        &[0xC0, 9, 4, 0, 0, 0, 1],
        &[0xC0, 10, 4, 0, 0, 0, 1],
        &[0x80, 16, 8, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0x80, 17, 0],
        &[0x80, 18, 0],
        &[0xC0, 26, 0],
        &[0x80, 32, 0],
        &[0x80, 35, 4, 0, 0, 0, 1],
        &[0x80, 40, 0],
    ];
    for row in rows {
        withdraws(row, Rule::Flags, &internal());
    }
    let mut reach = mp_reach(&GLOBAL, PREFIX6);
    reach[0] = 0xC0;
    let (disposition, faults, _) = judge_body(&body(&[&reach, ORIGIN, AS_PATH], &[]), &external());
    assert_eq!((disposition, faults[0].rule), (Disposition::TreatAsWithdraw, Rule::Flags));
    // Partial, extended length and the four bits below mean nothing for this.
    assert_eq!(is_used(&[0x7F, 1, 0, 1, 2], &external()).origin, Origin::Incomplete);
}

#[test]
fn what_is_mandatory_must_be_there_with_prefixes_that_come() {
    for missing in [code::ORIGIN, code::AS_PATH, code::NEXT_HOP] {
        let rest: Vec<_> =
            [ORIGIN, AS_PATH, NEXT_HOP].into_iter().filter(|one| one[1] != missing).collect();
        let (disposition, faults, _) = judge_body(&body(&rest, NLRI), &external());
        assert_eq!(disposition, Disposition::TreatAsWithdraw);
        let fault =
            Fault { attribute: missing, rule: Rule::Missing, action: Action::TreatAsWithdraw };
        assert_eq!(faults, [fault]);
    }
    let reach = mp_reach(&GLOBAL, PREFIX6);
    assert_eq!(judge_mp(&[&reach, AS_PATH], &external()), Disposition::TreatAsWithdraw);
    assert_eq!(judge_mp(&[], &external()), Disposition::Use);
}

#[test]
fn a_second_list_of_prefixes_ends_the_session() {
    let reach = mp_reach(&GLOBAL, PREFIX6);
    let unreach: &[u8] = &[0x80, 15, 3, 0, 2, 1];
    for twice in [&reach[..], unreach] {
        let body = body(&[twice, twice, ORIGIN, AS_PATH], &[]);
        let error = Update::new_checked(&body, &external()).unwrap_err();
        assert_eq!(error, MessageError::AttributeList);
        assert_eq!((error.notification().code, error.notification().subcode), (3, 1));
    }
}

#[test]
fn of_other_attributes_the_first_one_counts() {
    let (disposition, faults, attributes) =
        judge_body(&body(&[ORIGIN, AS_PATH, NEXT_HOP, &[0x40, 1, 1, 2]], NLRI), &external());
    assert_eq!(disposition, Disposition::DiscardAttributes);
    assert_eq!((attributes.origin, faults[0].rule), (Origin::Igp, Rule::Duplicate));
    let unknown: &[u8] = &[0xC0, 99, 1, 7];
    let (_, faults, attributes) =
        judge_body(&body(&[ORIGIN, AS_PATH, NEXT_HOP, unknown, unknown], NLRI), &external());
    assert_eq!((attributes.rare().unknown.len(), faults[0].rule), (1, Rule::Duplicate));
}

#[test]
fn an_attribute_longer_than_all_of_them_makes_withdrawals() {
    for overrun in
        [&[0xC0][..], &[0xC0, 8], &[0xC0, 8, 4, 0, 0], &[0xD0, 8, 1], &[0xD0, 8, 0, 9, 1]]
    {
        let (disposition, faults, _) =
            judge_body(&body(&[ORIGIN, AS_PATH, NEXT_HOP, overrun], NLRI), &external());
        assert_eq!(disposition, Disposition::TreatAsWithdraw);
        assert_eq!(faults[0].rule, Rule::Overrun);
    }
}

#[test]
fn prefixes_that_cannot_be_read_end_the_session() {
    for nlri in [&[33, 1, 2, 3, 4, 5][..], &[24, 198, 51]] {
        let announced = body(&[ORIGIN, AS_PATH, NEXT_HOP], nlri);
        let mut withdrawn = (nlri.len() as u16).to_be_bytes().to_vec();
        withdrawn.extend(nlri);
        withdrawn.extend([0, 0]);
        for body in [announced, withdrawn] {
            let error = Update::new_checked(&body, &external()).unwrap_err();
            assert_eq!(error, MessageError::NetworkField);
            assert_eq!((error.notification().code, error.notification().subcode), (3, 10));
        }
    }
    for lengths in [&[0, 1, 0, 0][..], &[0, 0, 0, 1], &[0, 2, 24, 1]] {
        let error = Update::new_checked(lengths, &external()).unwrap_err();
        assert_eq!(error, MessageError::AttributeList);
    }
}

#[test]
fn of_several_actions_the_strongest_is_taken() {
    let all: &[&[u8]] = &[&[0x40, 1, 1, 9], AS_PATH, NEXT_HOP, &[0x40, 6, 1, 0]];
    let (disposition, faults, _) = judge_body(&body(all, NLRI), &external());
    assert_eq!((disposition, faults.len()), (Disposition::TreatAsWithdraw, 2));
    let unknown: &[u8] = &[0x40, 99, 1, 0];
    let all: &[&[u8]] = &[&[0x40, 1, 1, 9], AS_PATH, NEXT_HOP, unknown];
    let (disposition, ..) = judge_body(&body(all, NLRI), &external());
    let error = MessageError::UnknownWellKnown(unknown.to_vec());
    assert_eq!(disposition, Disposition::ResetSession(error.clone()));
    assert_eq!((error.notification().subcode, error.notification().data), (2, unknown.to_vec()));
}

#[test]
fn without_prefixes_that_come_only_discarding_keeps_the_session() {
    let wrong: &[&[u8]] = &[&[0x40, 1, 1, 9]];
    let (disposition, ..) = judge_body(&body(wrong, &[]), &external());
    assert_eq!(disposition, Disposition::ResetSession(MessageError::Attribute(1)));
    let discarded: &[&[u8]] = &[ORIGIN, &[0x40, 6, 1, 0]];
    let (disposition, ..) = judge_body(&body(discarded, &[]), &external());
    assert_eq!(disposition, Disposition::DiscardAttributes);
    // MP_UNREACH_NLRI alone cannot hide prefixes that come.
    let flags: &[u8] = &[0xC0, 15, 3, 0, 2, 1];
    assert_eq!(judge_mp(&[flags], &external()), Disposition::TreatAsWithdraw);
    assert!(matches!(judge_mp(&[flags, ORIGIN], &external()), Disposition::ResetSession(_)));
    // A list without prefixes is none.
    let empty = mp_reach(&GLOBAL, &[]);
    let wrong: &[&[u8]] = &[&empty, &[0x40, 1, 1, 9], AS_PATH];
    assert!(matches!(judge_mp(wrong, &external()), Disposition::ResetSession(_)));
    // A list of prefixes is lost behind what is too long.
    let overrun: &[&[u8]] = &[ORIGIN, AS_PATH, &[0xC0, 8, 99]];
    assert!(matches!(judge_mp(overrun, &external()), Disposition::ResetSession(_)));
}

#[test]
fn unknown_attributes_are_passed_on_if_they_are_transitive() {
    let transitive = is_used(&[0xC0, 99, 2, 1, 2], &external());
    let unknown = UnknownAttribute { code: 99, value: [1, 2].into() };
    assert_eq!(transitive.rare().unknown[..], [unknown]);
    let mut block = Vec::new();
    emit_block(&transitive, true, true, &mut block);
    assert!(block.ends_with(&[0xE0, 99, 2, 1, 2]));
    let local = is_used(&[0x80, 99, 2, 1, 2], &external());
    assert!(local.rare().unknown.is_empty());
}

#[test]
fn partial_stays_on_attributes_that_are_known() {
    let attributes = is_used(&[0xE0, 8, 4, 0, 0, 0, 1], &external());
    let mut block = Vec::new();
    emit_block(&attributes, true, true, &mut block);
    assert!(block.ends_with(&[0xE0, 8, 4, 0, 0, 0, 1]));
}

#[test]
fn what_few_routes_have_compares_equal_when_it_is_taken_away() {
    let plain = Attributes::default();
    let mut changed = plain.clone();
    changed.change_rare(|rare| rare.aigp = Some(7));
    assert_ne!(changed, plain);
    changed.change_rare(|rare| rare.aigp = None);
    assert_eq!(changed, plain);
}
