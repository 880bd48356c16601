use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::principal::GatewaySet;

fn ad(id: u8) -> Xid {
    Xid::new(XidType::AD, [id; 20])
}

fn hid(id: u8) -> Xid {
    Xid::new(XidType::HID, [id; 20])
}

fn table() -> XidTable {
    XidTable::new(XidType::AD, &mut Random::from_seed(1))
}

fn set(table: &mut XidTable, line: &str) -> Result<(), WordError> {
    table.set(&line.split(' ').collect::<Vec<_>>())
}

fn delete(table: &mut XidTable, line: &str) -> Result<(), WordError> {
    table.delete(&line.split(' ').collect::<Vec<_>>())
}

#[test]
fn statements_add_and_remove_entries() {
    let mut table = table();
    set(&mut table, &format!("local {}", ad(1))).unwrap();
    set(&mut table, &format!("route {} via {}", ad(2), hid(9))).unwrap();
    assert_eq!(table.get(&ad(1)), Some(Entry::Local(())));
    assert_eq!(table.get(&ad(2)), Some(Entry::Via(&[hid(9)])));
    assert_eq!(table.get(&ad(3)), None);
    delete(&mut table, &format!("local {}", ad(1))).unwrap();
    delete(&mut table, &format!("route {} via {}", ad(2), hid(9))).unwrap();
    assert_eq!((table.get(&ad(1)), table.get(&ad(2))), (None, None));
}

#[test]
fn a_second_route_of_an_xid_replaces_the_first() {
    let mut table = table();
    set(&mut table, &format!("route {} via {}", ad(2), hid(8))).unwrap();
    set(&mut table, &format!("route {} via {}", ad(2), hid(9))).unwrap();
    assert_eq!(table.routes(), [(ad(2), hid(9))]);
    assert!(delete(&mut table, &format!("route {} via {}", ad(2), hid(8))).is_err());
    delete(&mut table, &format!("route {}", ad(2))).unwrap();
    assert_eq!(table.routes(), []);
}

#[test]
fn an_xid_is_local_or_routed_but_never_both() {
    let mut table = table();
    set(&mut table, &format!("local {}", ad(1))).unwrap();
    set(&mut table, &format!("route {} via {}", ad(2), hid(9))).unwrap();
    let error = set(&mut table, &format!("route {} via {}", ad(1), hid(9))).unwrap_err();
    assert!(error.text.contains("is local here"), "{error}");
    let error = set(&mut table, &format!("local {}", ad(2))).unwrap_err();
    assert!(error.text.contains("has a route"), "{error}");
    assert_eq!(table.show()["locals"].as_array().map(Vec::len), Some(1));
    assert_eq!(table.show()["routes"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_gateway_of_the_same_type_is_allowed_and_the_xid_itself_is_not() {
    let mut table = table();
    set(&mut table, &format!("route {} via {}", ad(1), ad(2))).unwrap();
    let error = set(&mut table, &format!("route {} via {}", ad(3), ad(3))).unwrap_err();
    assert_eq!(error.word, Some(3));
    assert!(set(&mut table, &format!("route {} via nat-{}", ad(3), "00".repeat(20))).is_err());
    assert_eq!(table.get(&ad(3)), None);
}

#[test]
fn an_error_points_at_the_word_and_changes_nothing() {
    let (one, nine) = (ad(1).to_string(), hid(9).to_string());
    let cases: [(&[&str], Option<usize>); 8] = [
        (&["neighbour", &one], Some(0)),
        (&["local", &nine], Some(1)),
        (&["local", "ad-12"], Some(1)),
        (&["local", &one, "now"], Some(2)),
        (&["route", &one, "over", &nine], Some(2)),
        (&["route", &one, "via", "hid"], Some(3)),
        (&["route", &one, "via", &nine, "fast"], Some(4)),
        (&["route", &one, "via"], None),
    ];
    let mut table = table();
    for (words, word) in cases {
        assert_eq!(table.set(words).unwrap_err().word, word, "{words:?}");
        assert!(table.delete(words).is_err(), "{words:?}");
    }
    assert!(table.set(&[]).is_err());
    assert_eq!(table.show(), json!({ "locals": [], "routes": [] }));
}

#[test]
fn what_is_learned_holds_where_nothing_is_stated() {
    let mut table = table();
    table.learn_route(ad(1), &[hid(9)]);
    table.learn_route(ad(2), &[hid(9)]);
    assert_eq!(table.get(&ad(1)), Some(Entry::Via(&[hid(9)])));
    set(&mut table, &format!("route {} via {}", ad(1), hid(8))).unwrap();
    set(&mut table, &format!("local {}", ad(2))).unwrap();
    table.learn_route(ad(1), &[hid(7)]);
    assert_eq!(table.get(&ad(1)), Some(Entry::Via(&[hid(8)])));
    assert_eq!(table.get(&ad(2)), Some(Entry::Local(())));
    assert_eq!(
        (table.routes(), table.learned()),
        (vec![(ad(1), hid(8))], vec![(ad(1), hid(7)), (ad(2), hid(9))])
    );
    delete(&mut table, &format!("route {}", ad(1))).unwrap();
    delete(&mut table, &format!("local {}", ad(2))).unwrap();
    assert_eq!(table.get(&ad(1)), Some(Entry::Via(&[hid(7)])));
    assert_eq!(table.get(&ad(2)), Some(Entry::Via(&[hid(9)])));
    assert!(delete(&mut table, &format!("route {}", ad(1))).is_err(), "it was not stated");
    table.learn_route(ad(1), &[]);
    table.learn_route(ad(2), &[ad(2)]);
    assert_eq!((table.get(&ad(1)), table.get(&ad(2))), (None, None));
    assert_eq!(table.learned(), []);
}

#[test]
fn what_is_not_there_cannot_be_deleted() {
    let mut table = table();
    set(&mut table, &format!("local {}", ad(1))).unwrap();
    assert!(delete(&mut table, &format!("local {}", ad(2))).is_err());
    assert!(delete(&mut table, &format!("route {}", ad(1))).is_err());
    assert_eq!(table.locals(), [(ad(1), ())]);
}

#[test]
fn a_route_can_have_several_gateways() {
    let mut table = table();
    set(&mut table, &format!("route {} via {} {} {}", ad(1), hid(9), hid(7), hid(8))).unwrap();
    set(&mut table, &format!("route {} via {}", ad(2), hid(9))).unwrap();
    let all = [hid(7), hid(8), hid(9)];
    assert_eq!(table.get(&ad(1)), Some(Entry::Via(&all)));
    let mut branches = Vec::new();
    let answer = table.answer(&ad(1), &mut branches, |()| Answer::Through);
    assert_eq!(answer, Answer::AnyOf(GatewaySet::of(&all)));
    assert_eq!(branches, all.map(Branch::To));
    assert_eq!(
        table.routes(),
        [(ad(1), hid(7)), (ad(1), hid(8)), (ad(1), hid(9)), (ad(2), hid(9))]
    );
    let line = format!("route {} via {} {}", ad(1), hid(8), hid(6));
    assert!(delete(&mut table, &line).is_err(), "one of them is no gateway");
    assert_eq!(table.get(&ad(1)), Some(Entry::Via(&all)));
    delete(&mut table, &format!("route {} via {}", ad(1), hid(8))).unwrap();
    assert_eq!(table.get(&ad(1)), Some(Entry::Via(&[hid(7), hid(9)])));
    delete(&mut table, &format!("route {} via {} {}", ad(1), hid(9), hid(7))).unwrap();
    assert_eq!(table.get(&ad(1)), None);
    set(&mut table, &format!("route {} via {} {}", ad(2), hid(1), hid(2))).unwrap();
    assert_eq!(table.get(&ad(2)), Some(Entry::Via(&[hid(1), hid(2)])), "in place of the one");
    delete(&mut table, &format!("route {}", ad(2))).unwrap();
    assert_eq!(table.routes(), []);
}

#[test]
fn gateways_are_counted_and_checked() {
    let mut table = table();
    let many: Vec<_> = (1..=MAX_GATEWAYS as u8 + 1).map(hid).collect();
    let count = TableError::GatewayCount(ad(1), many.len());
    assert_eq!(table.add_route(ad(1), &many), Err(count));
    assert_eq!(table.add_route(ad(1), &[]), Err(TableError::GatewayCount(ad(1), 0)));
    assert_eq!(table.add_route(ad(1), &[hid(1), ad(1)]), Err(TableError::ToItself(ad(1))));
    assert_eq!(table.add_route(ad(1), &[hid(2), hid(1), hid(2)]), Ok(()));
    assert_eq!(table.get(&ad(1)), Some(Entry::Via(&[hid(1), hid(2)])));
    table.learn_route(ad(3), &[&many[..], &[ad(3)]].concat());
    assert_eq!(table.get(&ad(3)), Some(Entry::Via(&many[..MAX_GATEWAYS])));
}

#[test]
fn an_entry_takes_as_much_as_its_xid_and_a_number() {
    assert_eq!(size_of::<Stored<()>>(), size_of::<u32>());
}

#[test]
fn what_nothing_is_known_of_has_the_default() {
    let mut table = table();
    set(&mut table, &format!("route default via {}", hid(9))).unwrap();
    assert_eq!(table.get(&ad(1)), Some(Entry::Via(&[hid(9)])));
    table.learn_route(ad(1), &[hid(8)]);
    assert_eq!(table.get(&ad(1)), Some(Entry::Via(&[hid(8)])));
    set(&mut table, &format!("route {} unreachable", ad(1))).unwrap();
    let answer =
        |table: &XidTable, xid: Xid| table.answer(&xid, &mut Vec::new(), |()| Answer::Through);
    assert_eq!(answer(&table, ad(1)), Answer::Unknown, "whatever is learned of it");
    assert_eq!(answer(&table, ad(2)), Answer::Redirect(hid(9)));
    set(&mut table, &format!("route {} via {}", ad(1), hid(7))).unwrap();
    assert_eq!(answer(&table, ad(1)), Answer::Redirect(hid(7)));
    assert!(delete(&mut table, &format!("route {} unreachable", ad(1))).is_err());
    set(&mut table, &format!("route {} unreachable", ad(1))).unwrap();
    assert_eq!(table.unreachable(), [ad(1)]);
    assert_eq!(table.routes(), []);
    delete(&mut table, &format!("route {} unreachable", ad(1))).unwrap();
    assert_eq!(answer(&table, ad(1)), Answer::Redirect(hid(8)));
    set(&mut table, &format!("route default via {} {}", hid(6), hid(5))).unwrap();
    delete(&mut table, &format!("route default via {}", hid(6))).unwrap();
    assert_eq!(answer(&table, ad(2)), Answer::Redirect(hid(5)));
    assert!(delete(&mut table, &format!("route default via {}", hid(6))).is_err());
    delete(&mut table, "route default").unwrap();
    assert_eq!(table.get(&ad(2)), None);
    assert!(delete(&mut table, "route default").unwrap_err().is_absent);
}

#[test]
fn a_change_of_the_default_concerns_all_and_nothing_if_it_is_the_same() {
    let mut table = table();
    let changes = |table: &mut XidTable| {
        let mut out = Vec::new();
        table.drain_changes(&mut out);
        out
    };
    table.set_default(&[hid(1)]).unwrap();
    assert_eq!(changes(&mut table), [Change::All]);
    table.set_default(&[hid(1)]).unwrap();
    assert_eq!(changes(&mut table), []);
    table.remove_default(&[]).unwrap();
    assert_eq!(changes(&mut table), [Change::All]);
    assert_eq!(table.set_default(&[]), Err(TableError::DefaultCount(0)));
}

proptest! {
    /// The model is a sorted map with the same rules; lists and look-ups agree with it.
    #[test]
    fn agrees_with_a_sorted_map(steps in prop::collection::vec((0_u8..4, 0_u8..6, 1_u8..64), 0..60)) {
        let (mut table, mut model) = (table(), BTreeMap::<Xid, BTreeSet<Xid>>::new());
        for (step, xid, gateways) in steps {
            let xid = ad(xid);
            let via: Vec<Xid> = (0..6).filter(|bit| gateways >> bit & 1 == 1).map(hid).collect();
            let is_local = model.get(&xid).is_some_and(BTreeSet::is_empty);
            let is_routed = model.contains_key(&xid) && !is_local;
            match step {
                0 => {
                    prop_assert_eq!(table.add_local(xid, ()).is_ok(), !is_routed);
                    if !is_routed { model.insert(xid, BTreeSet::new()); }
                }
                1 => {
                    prop_assert_eq!(table.add_route(xid, &via).is_ok(), !is_local);
                    if !is_local { model.insert(xid, via.into_iter().collect()); }
                }
                2 => {
                    prop_assert_eq!(table.remove_local(&xid).is_ok(), is_local);
                    if is_local { model.remove(&xid); }
                }
                _ => {
                    // Any of six gateways, or whatever is there.
                    let via = if gateways == 63 { Vec::new() } else { via };
                    let there = is_routed && via.iter().all(|one| model[&xid].contains(one));
                    prop_assert_eq!(table.remove_route(&xid, &via).is_ok(), there);
                    if there {
                        let left = model.get_mut(&xid).unwrap();
                        left.retain(|one| !via.is_empty() && !via.contains(one));
                        if left.is_empty() { model.remove(&xid); }
                    }
                }
            }
        }
        let locals: Vec<_> = model.iter().filter(|e| e.1.is_empty()).map(|e| (*e.0, ())).collect();
        let routes: Vec<_> =
            model.iter().flat_map(|(xid, all)| all.iter().map(|via| (*xid, *via))).collect();
        prop_assert_eq!(table.locals(), locals);
        prop_assert_eq!(table.routes(), routes);
        for (xid, all) in &model {
            let all: Vec<_> = all.iter().copied().collect();
            let expected = if all.is_empty() { Entry::Local(()) } else { Entry::Via(&all) };
            prop_assert_eq!(table.get(xid), Some(expected));
        }
    }
}
