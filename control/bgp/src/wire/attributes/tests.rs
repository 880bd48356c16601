use super::super::malformed::{
    AS_PATH, Demand, GLOBAL, NEXT_HOP, NLRI, ORIGIN, PREFIX6, Sender, body, body_with, mp_reach,
    rows,
};
use super::super::{Context, Disposition, Families, Family, MessageError, Neighbour, Update};
use super::*;
use crate::numbers::attribute as code;

fn external() -> Context {
    Sender::External.context()
}

fn internal() -> Context {
    Sender::Internal.context()
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
fn is_used(attribute: &[u8], context: &Context) -> Attributes {
    let (disposition, faults, attributes) = judge(attribute, context);
    assert_eq!((disposition, faults), (Disposition::Use, vec![]), "{attribute:?}");
    attributes
}

/// What is done about a fault that is the only one, by what the message comes to.
fn action(disposition: &Disposition) -> Action {
    match disposition {
        Disposition::DiscardAttributes => Action::DiscardAttribute,
        Disposition::TreatAsWithdraw => Action::TreatAsWithdraw,
        Disposition::DisableFamily { family, .. } => Action::DisableFamily(*family),
        Disposition::ResetSession(_) => Action::ResetSession,
        Disposition::Use => panic!("there is no fault"),
    }
}

#[test]
fn each_row_comes_to_what_is_demanded() {
    for row in rows() {
        let (name, context) = (row.name, row.sender.context());
        let judged = Update::new_checked(&row.body, &context).map(|update| update.judge(&context));
        let (disposition, faults, attributes) = match judged {
            Ok(judgement) => (judgement.disposition, judgement.faults, judgement.attributes),
            Err(error) => (Disposition::ResetSession(error), Vec::new(), Attributes::default()),
        };
        match (&row.demand, &disposition) {
            (Demand::Discard(same), Disposition::DiscardAttributes) => {
                assert_eq!(attributes, judge_body(same, &context).2, "{name}");
            }
            (Demand::Withdraw(_), Disposition::TreatAsWithdraw) => {}
            (Demand::Disable { withdraw: wanted }, Disposition::DisableFamily { .. }) => {
                assert_eq!(disabled(&disposition), Some((Family::IPV6_UNICAST, *wanted)), "{name}");
            }
            (Demand::Reset { subcode, data }, Disposition::ResetSession(error)) => {
                let told = error.notification();
                assert_eq!(
                    (told.code, told.subcode, told.data),
                    (3, *subcode, data.clone()),
                    "{name}"
                );
            }
            (demand, _) => panic!("{name}: {demand:?} is demanded, and {disposition:?} is done"),
        }
        if let Some((attribute, rule)) = row.fault {
            let action = action(&disposition);
            assert_eq!(faults, [Fault { attribute, rule, action }], "{name}");
        }
    }
}

#[test]
fn row_1_origin() {
    assert_eq!(is_used(&[0x40, 1, 1, 2], &external()).origin, Origin::Incomplete);
}

#[test]
fn row_2_as_path() {
    assert_eq!(is_used(&[0x40, 2, 0], &external()).as_path, AsPath::default());
    // RFC 9774 does not want it.
    let set = [0x40, 2, 12, 2, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 2];
    let lenient = Context { accept_as_sets: true, ..external() };
    assert_eq!(is_used(&set, &lenient).as_path.to_string(), "1 {2}");
    // RFC 5065 §5: not from outside.
    let confederation = [0x40, 2, 6, 3, 1, 0, 0, 0, 1];
    let member = Context { neighbour: Neighbour::Confederation, ..external() };
    assert_eq!(is_used(&confederation, &member).as_path.to_string(), "(1)");
    for without in [&[0x40, 2, 0][..], &[0x40, 2, 6, 2, 1, 0, 0, 0, 1]] {
        let (disposition, faults, _) = judge(without, &member);
        assert_eq!((disposition, faults[0].rule), (Disposition::TreatAsWithdraw, Rule::Member));
    }
    // Two octets, where they were agreed on.
    let two = Context { four_octet_as: false, ..external() };
    assert_eq!(is_used(&[0x40, 2, 4, 2, 1, 0, 7], &two).as_path.to_string(), "7");
}

#[test]
fn row_3_next_hop() {
    let ip = Ipv4Addr::new(192, 0, 2, 9);
    let attributes = is_used(&[0x40, 3, 4, 192, 0, 2, 9], &external());
    assert_eq!(attributes.next_hop, Some(NextHop::V4(ip)));
}

#[test]
fn row_4_med() {
    assert_eq!(is_used(&[0x80, 4, 4, 0, 0, 1, 0], &external()).med, Some(256));
}

#[test]
fn row_5_local_pref() {
    assert_eq!(is_used(&[0x40, 5, 4, 0, 0, 0, 200], &internal()).local_pref, Some(200));
}

#[test]
fn row_6_atomic_aggregate() {
    assert!(is_used(&[0x40, 6, 0], &external()).atomic_aggregate);
}

#[test]
fn row_7_aggregator() {
    let attributes = is_used(&[0xC0, 7, 8, 0, 1, 0, 0, 192, 0, 2, 9], &external());
    let aggregator = attributes.rare().aggregator.unwrap();
    assert_eq!(aggregator.autonomous_system, 65536);
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
}

#[test]
fn row_9_originator_id() {
    let attributes = is_used(&[0x80, 9, 4, 192, 0, 2, 9], &internal());
    assert_eq!(attributes.rare().originator_id, Some(Ipv4Addr::new(192, 0, 2, 9)));
}

#[test]
fn row_10_cluster_list() {
    let attributes = is_used(&[0x80, 10, 8, 0, 0, 0, 1, 0, 0, 0, 2], &internal());
    assert_eq!(attributes.rare().cluster_list.len(), 2);
}

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
}

#[test]
fn row_15_mp_unreach_nlri() {
    let context = external();
    let good: &[u8] = &[0x80, 15, 8, 0, 2, 1, 32, 0x20, 1, 0x0D, 0xB8];
    assert_eq!(judge_mp(&[good], &context), Disposition::Use);
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
}

#[test]
fn row_17_as4_path() {
    let path: &[u8] = &[0xC0, 17, 6, 2, 1, 0, 1, 0x11, 0x70];
    let two = Context { four_octet_as: false, ..external() };
    let old: &[u8] = &[0x40, 2, 6, 2, 2, 0, 10, 0x5B, 0xA0];
    let judge = |as4: &[u8]| judge_body(&body(&[ORIGIN, old, NEXT_HOP, as4], NLRI), &two);
    let (disposition, _, attributes) = judge(path);
    assert_eq!(disposition, Disposition::Use);
    assert_eq!(attributes.as_path, AsPath::from_sequence(&[10, 70000]));
    // What is malformed leaves the old path as it is.
    let (disposition, _, attributes) = judge(&[0xC0, 17, 2, 2, 0]);
    assert_eq!(disposition, Disposition::DiscardAttributes);
    assert_eq!(attributes.as_path, AsPath::from_sequence(&[10, 23456]));
    // Members of a confederation are taken out of it.
    let (disposition, _, attributes) =
        judge(&[0xC0, 17, 12, 3, 1, 0, 0, 0, 9, 2, 1, 0, 1, 0x11, 0x70]);
    assert_eq!(disposition, Disposition::Use);
    assert_eq!(attributes.as_path, AsPath::from_sequence(&[10, 70000]));
}

#[test]
fn row_18_as4_aggregator() {
    let as4: &[u8] = &[0xC0, 18, 8, 0, 1, 0x11, 0x70, 192, 0, 2, 9];
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
}

#[test]
fn row_32_large_community() {
    let attributes = is_used(&[0xC0, 32, 12, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3], &external());
    let community = LargeCommunity { administrator: 1, first: 2, second: 3 };
    assert_eq!(attributes.large_communities[..], [community]);
}

#[test]
fn row_35_only_to_customer() {
    let attributes = is_used(&[0xC0, 35, 4, 0, 0, 0, 7], &external());
    assert_eq!(attributes.rare().only_to_customer, Some(7));
}

#[test]
fn row_40_prefix_sid() {
    let value = [0xC0, 40, 10, 1, 0, 7, 0, 0, 0, 0, 0, 0, 9];
    let attributes = is_used(&value, &external());
    assert_eq!(attributes.rare().prefix_sid.as_deref(), Some(&value[3..]));
}

/// Partial, extended length and the four bits below.
#[test]
fn other_flags_mean_nothing_for_whether_an_attribute_is_right() {
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
fn all_faults_are_told_whatever_is_done() {
    let all: &[&[u8]] = &[&[0x40, 1, 1, 9], AS_PATH, NEXT_HOP, &[0x40, 6, 1, 0]];
    let (disposition, faults, _) = judge_body(&body(all, NLRI), &external());
    assert_eq!((disposition, faults.len()), (Disposition::TreatAsWithdraw, 2));
}

#[test]
fn without_prefixes_that_come_a_withdrawal_alone_keeps_the_session() {
    // MP_UNREACH_NLRI alone cannot hide prefixes that come.
    let flags: &[u8] = &[0xC0, 15, 3, 0, 2, 1];
    assert_eq!(judge_mp(&[flags], &external()), Disposition::TreatAsWithdraw);
    assert!(matches!(judge_mp(&[flags, ORIGIN], &external()), Disposition::ResetSession(_)));
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
