//! Maps of the kernel: what their operations do, above all those on many elements at once.
//!
//! Needs root (BPF). Without it each test says so and returns.

#![allow(unsafe_code)]
// All of this file is tests, helpers too.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
mod support;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use support::in_namespace;
use weft_ebpf::{Map, MapKind, MapShape};

const KEY: usize = 12;
const VALUE: usize = 8;

fn hash(elements: u32) -> Map {
    Map::create("weft_test", MapShape::hash(KEY as u32, VALUE as u32, elements)).unwrap()
}

fn key(number: u8) -> [u8; KEY] {
    [number; KEY]
}

fn keys(numbers: &[u8]) -> Vec<u8> {
    numbers.iter().flat_map(|number| key(*number)).collect()
}

fn values(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

fn value(map: &Map, number: u8) -> Option<u64> {
    let mut value = [0; VALUE];
    map.get(&key(number), &mut value).unwrap().then(|| u64::from_ne_bytes(value))
}

#[test]
fn many_are_removed_whether_they_are_there_or_not() {
    in_namespace(|| {
        let map = hash(8);
        assert_eq!(map.set_many(&keys(&[1, 2, 3, 4]), &values(&[10, 20, 30, 40])).unwrap(), 4);
        // The kernel ends at the first one that is missing; that is not told to anybody.
        assert_eq!(map.remove_many(&keys(&[9, 1, 8, 7, 3, 9])).unwrap(), 2);
        assert_eq!(
            [1, 2, 3, 4].map(|number| value(&map, number)),
            [None, Some(20), None, Some(40)]
        );
        assert_eq!(map.remove_many(&[]).unwrap(), 0);
    });
}

#[test]
fn what_does_not_fit_is_told() {
    in_namespace(|| {
        let map = hash(3);
        let numbers: Vec<u8> = (0..5).collect();
        let written = map.set_many(&keys(&numbers), &values(&[0, 1, 2, 3, 4])).unwrap();
        assert_eq!(written, 3);
        assert_eq!(map.keys().unwrap().len(), 3 * KEY);
        // Those that are there can be written again.
        assert_eq!(map.set_many(&keys(&[0, 1]), &values(&[7, 8])).unwrap(), 2);
        assert_eq!((value(&map, 0), value(&map, 1)), (Some(7), Some(8)));
    });
}

#[test]
fn sizes_that_are_not_the_maps_are_refused() {
    in_namespace(|| {
        let map = hash(3);
        assert!(map.set(&[1; KEY - 1], &[0; VALUE]).is_err());
        assert!(map.set_many(&[1; 2 * KEY], &[0; VALUE]).is_err());
        assert!(map.get(&key(1), &mut [0; VALUE + 1]).is_err());
        assert!(map.remove_many(&[1; KEY + 1]).is_err());
        assert!(map.memory().is_err());
        let descriptor = map.descriptor().try_clone_to_owned().unwrap();
        let other = MapShape::hash(KEY as u32, VALUE as u32, 4);
        assert!(Map::of_descriptor(descriptor.try_clone().unwrap(), other).is_err());
        assert_eq!(Map::of_descriptor(descriptor, map.shape()).unwrap().shape(), map.shape());
    });
}

#[test]
fn the_memory_of_an_array_is_what_its_elements_are() {
    in_namespace(|| {
        let shape = MapShape::numbered(MapKind::Array, 16, 3);
        let map = Map::create("weft_test", shape).unwrap();
        let memory = map.memory().unwrap();
        assert_eq!(memory.words().len(), 6);
        memory.words()[3].store(77, Ordering::Relaxed);
        let mut element = [0; 16];
        assert!(map.get(&1_u32.to_ne_bytes(), &mut element).unwrap());
        assert_eq!(element[8..], 77_u64.to_ne_bytes());
        map.set(&2_u32.to_ne_bytes(), &values(&[5, 6])).unwrap();
        assert_eq!(memory.words()[4].load(Ordering::Relaxed), 5);
    });
}

/// Random operations on a map and on a twin in this process.
#[test]
fn a_map_holds_what_a_twin_holds() {
    #[derive(Clone, Debug)]
    enum Operation {
        Set(Vec<(u8, u64)>),
        Remove(Vec<u8>),
        Clear,
    }
    let operation = prop_oneof![
        4 => prop::collection::vec((0..12_u8, any::<u64>()), 1..6).prop_map(Operation::Set),
        4 => prop::collection::vec(0..12_u8, 1..6).prop_map(Operation::Remove),
        1 => Just(Operation::Clear),
    ];
    in_namespace(move || {
        let mut runner = TestRunner::new(Config::with_cases(64));
        let operations = prop::collection::vec(operation, 1..40);
        let run = runner.run(&operations, |operations| {
            let map = hash(16);
            let mut twin = BTreeMap::new();
            for operation in operations {
                match operation {
                    Operation::Set(pairs) => {
                        let (numbers, new): (Vec<u8>, Vec<u64>) = pairs.iter().copied().unzip();
                        map.set_many(&keys(&numbers), &values(&new)).unwrap();
                        twin.extend(pairs);
                    }
                    Operation::Remove(numbers) => {
                        let before = twin.len();
                        twin.retain(|number, _| !numbers.contains(number));
                        let removed = map.remove_many(&keys(&numbers)).unwrap();
                        prop_assert_eq!(removed, before - twin.len());
                    }
                    Operation::Clear => {
                        map.remove_many(&map.keys().unwrap()).unwrap();
                        twin.clear();
                    }
                }
                let found = (0..12).filter_map(|number| Some((number, value(&map, number)?)));
                prop_assert_eq!(found.collect::<BTreeMap<_, _>>(), twin.clone());
            }
            Ok(())
        });
        run.unwrap();
    });
}
