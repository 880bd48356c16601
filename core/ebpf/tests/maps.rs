//! Maps of the kernel, and what may be written into them.
//!
//! Needs root (BPF). Without it each test says so and returns.

#![allow(unsafe_code)]
// All of this file is tests, helpers too.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
mod support;

use std::sync::atomic::Ordering;

use support::in_namespace;
use weft_ebpf::{Map, MapKind, MapShape, MapTable, MapWrite};

/// Two words.
const KEY: u32 = 16;

fn key(number: u64) -> Vec<u64> {
    vec![number, !number]
}

fn set(number: u64, value: u32) -> MapWrite {
    MapWrite::Set { key: key(number), value }
}

fn remove(number: u64) -> MapWrite {
    MapWrite::Remove { key: key(number) }
}

fn made(shape: MapShape) -> MapTable {
    MapTable::new(Map::create("weft_test", shape).unwrap()).unwrap()
}

#[test]
fn what_a_map_cannot_hold_is_refused() {
    in_namespace(|| {
        let shape = MapShape::open_table(KEY, 3);
        let table = made(shape);
        let store = MapWrite::Store { index: 0, word: 1 };
        assert!(table.write(&set(1, 1)).unwrap());
        for wrong in [
            MapWrite::Set { key: vec![1; 3], value: 1 },
            MapWrite::Remove { key: vec![1] },
            set(1, 0),
            store.clone(),
        ] {
            assert!(table.write(&wrong).is_err(), "{wrong:?}");
        }
        let descriptor = table.map().descriptor().try_clone_to_owned().unwrap();
        let other = MapShape::open_table(KEY, 4);
        assert!(Map::of_descriptor(descriptor.try_clone().unwrap(), other).is_err());
        assert_eq!(Map::of_descriptor(descriptor, shape).unwrap().shape(), shape);
        // By system calls nobody writes one.
        assert!(table.map().set(&[1; KEY as usize], &[0; 4]).is_err());

        let array = made(MapShape::numbered(MapKind::Array, 8, 2));
        assert!(array.write(&store).unwrap());
        let beyond = MapWrite::Store { index: 2, word: 1 };
        for wrong in [beyond, set(1, 1), remove(1)] {
            assert!(array.write(&wrong).is_err(), "{wrong:?}");
        }
        let counters = made(MapShape::numbered(MapKind::PerProcessor, 8, 2));
        assert!(counters.write(&MapWrite::Clear).is_err());
        assert!(counters.map().memory().is_err());
        assert!(counters.map().get(&[0; 4], &mut [0; 8]).is_err());
    });
}

/// What one process writes another takes over.
#[test]
fn a_table_is_taken_over_by_its_descriptor() {
    in_namespace(|| {
        let shape = MapShape::open_table(KEY, 100);
        let table = made(shape);
        (1..=100).for_each(|number| assert!(table.write(&set(number, number as u32)).unwrap()));
        let descriptor = table.map().descriptor().try_clone_to_owned().unwrap();
        let memory = table.map().memory().unwrap();
        let entries = || {
            // Two for each, and those behind the last place; the sieve behind them holds none.
            let words = memory.words().chunks_exact(4).skip(2).take(2 * 100 + 16);
            words.filter(|slot| slot[2].load(Ordering::Relaxed) as u32 != 0).count()
        };
        drop(table);
        let table = MapTable::new(Map::of_descriptor(descriptor, shape).unwrap()).unwrap();
        assert_eq!(entries(), 100);
        // It finds what is there: nothing gets a second slot.
        (1..=100).for_each(|number| assert!(table.write(&set(number, 7)).unwrap()));
        assert_eq!(entries(), 100);
        (1..=50).for_each(|number| assert!(table.write(&remove(number)).unwrap()));
        assert_eq!(entries(), 50);
        assert!(table.write(&MapWrite::Clear).unwrap());
        assert_eq!(entries(), 0);
        let mut sieve = memory.words().chunks_exact(4).skip(2 + 2 * 100 + 16);
        assert!(sieve.all(|words| words.iter().all(|word| word.load(Ordering::Relaxed) == 0)));
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
        map.set(&2_u32.to_ne_bytes(), &[5; 16]).unwrap();
        assert_eq!(memory.words()[4].load(Ordering::Relaxed), u64::from_ne_bytes([5; 8]));
    });
}
