//! The table against a sorted map that is searched from one end to the other, and its shape.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::blocks::room;
use super::*;
use crate::MAX_BITS;

type Model = BTreeMap<Prefix, u32>;

/// What happens to a table.
#[derive(Clone, Debug)]
enum Step {
    Insert(Prefix, u32),
    Remove(Prefix),
    /// Removes some prefix that is there.
    RemoveOne(usize),
    Change(Prefix, u32),
}

/// Few bits that differ at many places, so that prefixes meet, contain each other and part anywhere.
fn prefixes() -> impl Strategy<Value = Prefix> {
    let length = prop_oneof![0..=12u8, 0..=MAX_BITS, Just(32), Just(128), Just(160)];
    let ones = prop::collection::vec(
        prop_oneof![0..12u8, 0..MAX_BITS, 55..70u8, Just(159), Just(191)],
        0..3,
    );
    (length, ones, any::<bool>()).prop_map(|(length, ones, inverted)| {
        let mut bytes = [if inverted { 255 } else { 0 }; 24];
        for one in ones {
            bytes[usize::from(one / 8)] ^= 128 >> (one % 8);
        }
        Prefix::of(&bytes).unwrap().truncate(length)
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (prefixes(), any::<u32>()).prop_map(|(prefix, value)| Step::Insert(prefix, value)),
        1 => prefixes().prop_map(Step::Remove),
        2 => any::<usize>().prop_map(Step::RemoveOne),
        1 => (prefixes(), any::<u32>()).prop_map(|(prefix, value)| Step::Change(prefix, value)),
    ];
    prop::collection::vec(step, 0..150)
}

fn carry_out(step: &Step, table: &mut PrefixTable<u32>, model: &mut Model) {
    // What will be looked up, what is there and what is not, all at once: nothing comes of it that could be seen.
    if let Step::Insert(prefix, _) | Step::Remove(prefix) | Step::Change(prefix, _) = step {
        let all: Vec<_> = model.keys().chain([prefix]).copied().collect();
        all.chunks(TOGETHER).for_each(|some| table.approach(some));
    }
    match step {
        Step::Insert(prefix, value) => {
            assert_eq!(table.insert(*prefix, *value), model.insert(*prefix, *value));
        }
        Step::Remove(prefix) => assert_eq!(table.remove(prefix), model.remove(prefix)),
        Step::RemoveOne(index) => {
            let Some(prefix) = model.keys().nth(index % model.len().max(1)).copied() else {
                return;
            };
            assert_eq!(table.remove(&prefix), model.remove(&prefix));
        }
        Step::Change(prefix, value) => {
            let (one, other) = (table.get_mut(prefix), model.get_mut(prefix));
            assert_eq!(one, other);
            if let (Some(one), Some(other)) = (one, other) {
                (*one, *other) = (*value, *value);
            }
        }
    }
}

fn longest(model: &Model, name: &Prefix) -> Option<(u8, u32)> {
    let containing = model.iter().filter(|(prefix, _)| prefix.contains(name));
    containing.map(|(prefix, value)| (prefix.length(), *value)).max()
}

fn within(model: &Model, prefix: &Prefix) -> Vec<(Prefix, u32)> {
    let inside = model.iter().filter(|(inner, _)| prefix.contains(inner));
    inside.map(|(prefix, value)| (*prefix, *value)).collect()
}

fn list<'a>(entries: impl Iterator<Item = (Prefix, &'a u32)>) -> Vec<(Prefix, u32)> {
    entries.map(|(prefix, value)| (prefix, *value)).collect()
}

/// Checks that nothing is there that nothing needs, and that all memory is accounted for.
fn check_shape(table: &PrefixTable<u32>) {
    let (mut nodes, mut values, mut count) = (room(1), 0, 0);
    let mut ahead = vec![ROOT];
    while let Some(at) = ahead.pop() {
        let node = table.nodes.get(at);
        assert_eq!(node.path & !front_mask(node.path_bits()), 0, "bits behind the path");
        assert!(at == ROOT || node.prefixes & 1 == 0, "the empty prefix lives at the root");
        if at != ROOT && node.prefixes == 0 {
            assert_ne!(node.branches, 0, "a node without anything");
            if node.child_count() == 1 {
                let skipped = node.skipped + 1 + table.nodes.get(node.children).skipped;
                assert!(skipped > MOST_SKIPPED, "a node that could be skipped");
            }
        }
        nodes += room(node.child_count());
        values += room(node.value_count());
        count += node.value_count();
        ahead.extend((0..node.child_count() as u32).map(|index| node.children + index));
    }
    assert_eq!(count, table.len());
    assert_eq!(nodes + table.nodes.free_places(), table.nodes.places());
    assert_eq!(values + table.values.free_places(), table.values.places());
}

proptest! {
    #[test]
    fn agrees_with_a_sorted_map(steps in steps(), names in prop::collection::vec(prefixes(), 20)) {
        let (mut table, mut model) = (PrefixTable::new(), Model::new());
        for step in &steps {
            carry_out(step, &mut table, &mut model);
            prop_assert_eq!(table.len(), model.len());
        }
        check_shape(&table);
        prop_assert_eq!(list(table.iter()), within(&model, &Prefix::ALL));
        for name in names.iter().chain(model.keys()) {
            let found = table.longest(name).map(|(length, value)| (length, *value));
            prop_assert_eq!(found, longest(&model, name), "{:?}", name);
            prop_assert_eq!(table.get(name), model.get(name));
            prop_assert_eq!(list(table.iter_within(*name)), within(&model, name), "{:?}", name);
        }
        for prefix in model.keys() {
            table.remove(prefix);
        }
        prop_assert!(table.is_empty() && table.longest(&Prefix::ALL).is_none());
        check_shape(&table);
        prop_assert_eq!(table.nodes.free_places() + 1, table.nodes.places());
    }

    /// What is there all the time comes once and in order, whatever else changes meanwhile.
    #[test]
    fn a_cursor_keeps_its_place_while_the_table_changes(
        lasting in prop::collection::btree_set(prefixes(), 0..40),
        steps in steps(),
        every in 1usize..5,
    ) {
        let (mut table, mut model) = (PrefixTable::new(), Model::new());
        for prefix in &lasting {
            carry_out(&Step::Insert(*prefix, 1), &mut table, &mut model);
        }
        let changes = |step: &&Step| match step {
            Step::Insert(prefix, _) | Step::Remove(prefix) => !lasting.contains(prefix),
            Step::RemoveOne(_) | Step::Change(..) => false,
        };
        let mut steps = steps.iter().filter(changes).peekable();
        let (mut cursor, mut seen) = (table.cursor(), Vec::new());
        while let Some((prefix, _)) = cursor.next(&table) {
            seen.push(prefix);
            for step in steps.by_ref().take(every) {
                carry_out(step, &mut table, &mut model);
            }
        }
        prop_assert!(seen.is_sorted_by(|one, next| one < next));
        let of_lasting: Vec<_> = seen.into_iter().filter(|one| lasting.contains(one)).collect();
        prop_assert_eq!(of_lasting, lasting.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn a_default_entry_is_found_by_everything_that_nothing_else_contains() {
    let mut table = PrefixTable::new();
    table.insert(Prefix::ALL, 1);
    table.insert(Prefix::new(&[10], 8).unwrap(), 2);
    assert_eq!(table.longest(&[10; 20].into()), Some((8, &2)));
    assert_eq!(table.longest(&[11; 20].into()), Some((0, &1)));
    assert_eq!(table.longest(&Prefix::ALL), Some((0, &1)));
    assert_eq!(table.longest(&Prefix::new(&[10], 7).unwrap()), Some((0, &1)));
}

#[test]
fn a_shorter_name_is_not_matched_by_longer_prefixes() {
    let mut table = PrefixTable::new();
    table.insert(Prefix::new(&[0], 3).unwrap(), 3);
    table.insert(Prefix::new(&[0], 4).unwrap(), 4);
    table.insert(Prefix::new(&[0; 20], 160).unwrap(), 160);
    for length in 0..=160u8 {
        let name = Prefix::new(&[], length).unwrap();
        let expected = [3, 4, 160].into_iter().filter(|known| *known <= length).max();
        let found = table.longest(&name).map(|(known, _)| known);
        assert_eq!(found, expected, "{length}");
    }
}

#[test]
fn long_ways_without_branches_take_few_nodes() {
    let mut table = PrefixTable::new();
    for id in 0..=255u8 {
        table.insert([id; 20].into(), u32::from(id));
    }
    check_shape(&table);
    let nodes = table.nodes.places() - table.nodes.free_places();
    assert!(nodes < 256 * 4, "{nodes} places for 256 identifiers");
}

#[test]
fn a_table_that_grew_and_shrank_often_takes_no_more_room() {
    let mut table = PrefixTable::new();
    let prefix = |index: u32| Prefix::new(&(index << 8).to_be_bytes(), 24).unwrap();
    let mut first = 0;
    for _ in 0..5 {
        (0..10_000).for_each(|index| assert_eq!(table.insert(prefix(index), index), None));
        first = if first == 0 { table.memory() } else { first };
        (0..10_000).rev().for_each(|index| assert_eq!(table.remove(&prefix(index)), Some(index)));
    }
    assert!(table.memory() <= first + first / 2, "{} after {first}", table.memory());
    check_shape(&table);
}
