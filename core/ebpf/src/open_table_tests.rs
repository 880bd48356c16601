//! What a reader finds in a table: what was written, at any time.
//!
//! Reference: `super`.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::*;

type Table = OpenTable<Vec<AtomicU64>>;

fn table(key_words: usize, most: usize, seed: u64) -> Table {
    let (words, slots) = size(key_words, most);
    let memory = (0..words * slots).map(|_| AtomicU64::new(0)).collect();
    let mut random = numbers(seed);
    let Ok(table) = OpenTable::new(memory, key_words, || Ok::<_, Infallible>(random()));
    table
}

fn numbers(mut seed: u64) -> impl FnMut() -> u64 {
    move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed ^ seed >> 29
    }
}

/// As `open_table_find` in `bpf/open_table.h`.
fn read(table: &Table, key: &[u64]) -> u32 {
    let place = table.place(key.iter().copied());
    let (word, bit) = table.sieve(place);
    if word.load(Ordering::Acquire) & bit == 0 {
        return 0;
    }
    let home = home(place);
    for at in home..home + WINDOW {
        let value = table.value(at).load(Ordering::Acquire);
        if value == 0 {
            return 0;
        }
        let is_it = table.key(at).eq(key.iter().copied());
        fence(Ordering::Acquire);
        if is_it && table.value(at).load(Ordering::Relaxed) == value {
            return value as u32;
        }
    }
    0
}

#[derive(Clone, Debug)]
enum Operation {
    Set(u64, u32),
    Remove(u64),
    Clear,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let operation = prop_oneof![
        60 => (0..40_u64, 1..u32::MAX).prop_map(|(key, value)| Operation::Set(key, value)),
        40 => (0..40_u64).prop_map(Operation::Remove),
        1 => Just(Operation::Clear),
    ];
    prop::collection::vec(operation, 1..200)
}

proptest! {
    /// Tables that are much too small, so that keys are in each other's way.
    #[test]
    fn a_table_holds_what_was_written(
        seed: u64,
        most in 1..12_usize,
        key_words in 1..4_usize,
        operations in operations(),
    ) {
        let table = table(key_words, most, seed);
        let key = |number: u64| vec![number; key_words];
        let mut twin = BTreeMap::new();
        for operation in operations {
            match operation {
                Operation::Set(number, value) => {
                    let was_there = twin.contains_key(&number);
                    if table.set(&key(number), value) {
                        twin.insert(number, value);
                    } else {
                        prop_assert!(!was_there, "what is there can be changed");
                        prop_assert!(twin.len() > most, "there is room for as many as were asked for");
                    }
                }
                Operation::Remove(number) => {
                    table.remove(&key(number));
                    twin.remove(&number);
                }
                Operation::Clear => {
                    table.clear();
                    twin.clear();
                }
            }
            for number in 0..40 {
                prop_assert_eq!(read(&table, &key(number)), twin.get(&number).copied().unwrap_or(0));
            }
        }
    }
}

/// All but key 0 have the same home, two slots before its own. The last one finds no room, for which key 0 was to move a
/// second time.
#[test]
fn a_key_is_found_after_others_have_looked_for_room_in_vain() {
    let home = |table: &Table, number: u64| table.home([number; 3].into_iter());
    let mut tables = (0..).map(|secret| table(3, 2, secret));
    let table = tables.find(|table| home(table, 0) >= HEADER + 2).unwrap();
    let alike = |number: &u64| home(&table, *number) + 2 == home(&table, 0);
    let mut written: Vec<u64> = (1..).filter(alike).take(WINDOW + 1).collect();
    let last = written.pop().unwrap();
    written.insert(WINDOW - 4, 0);
    assert!(written.iter().all(|number| table.set(&[*number; 3], 1)));
    assert!(!table.set(&[last; 3], 1));
    for number in written {
        assert_eq!(read(&table, &[number; 3]), 1, "{number}");
    }
}

#[test]
fn as_many_keys_as_were_asked_for_find_room_and_few_others_pass_the_sieve() {
    const MOST: usize = 100_000;
    let mut random = numbers(7);
    let keys: Vec<[u64; 2]> = (0..2 * MOST).map(|_| [random(), random()]).collect();
    let (there, others) = keys.split_at(MOST);
    for seed in 1..=3 {
        let table = table(2, MOST, seed);
        assert!((1..).zip(there).all(|(value, key)| table.set(key, value)));
        assert!((1..).zip(there).all(|(value, key)| read(&table, key) == value));
        let passes = |key: &&[u64; 2]| {
            let (word, bit) = table.sieve(table.place(key.iter().copied()));
            word.load(Ordering::Relaxed) & bit != 0
        };
        // One of nine; chance makes a hundredth of a difference with so many.
        let passed = others.iter().filter(passes).count();
        assert!((11_000..12_500).contains(&passed), "{passed} of keys that are not there");
        there.iter().for_each(|key| table.remove(key));
        let left =
            (HEADER..table.slots()).filter(|at| table.value(*at).load(Ordering::Relaxed) != 0);
        assert_eq!(left.count(), 0);
        assert_eq!(keys.iter().filter(passes).count(), 0, "nothing is left of those that were");
    }
}

/// The names of networks often are their addresses, and zeros: such keys differ in one word, in which the sum is linear.
#[test]
fn keys_in_rows_find_room_whatever_the_secret() {
    const KEYS: u32 = 1 << 12;
    for seed in 0..500 {
        let table = table(3, KEYS as usize, seed);
        for number in 0..KEYS {
            // Rows of 64 networks of 256 addresses, in the order of the bytes on the wire.
            let address =
                (number / 64).wrapping_mul(0x9e37_79b9) & 0xffff_0000 | (number % 64) << 8;
            let key = [0x10 | u64::from(address.swap_bytes()) << 32, 0, 0];
            assert!(table.set(&key, 1), "secret {seed}, key {number}");
        }
    }
}

#[test]
fn how_much_fits_is_known_by_the_size() {
    for key_words in [1, 3, 6, 9, 12] {
        for most in [0, 1, 2, 100, 1023, 262_144] {
            assert_eq!(super::most(key_words, size(key_words, most).1), most, "{key_words} words");
        }
        let (slot_words, slots) = size(key_words, 100_000);
        let bits = sieve_words(slot_words) * 64 * (slots - HEADER - 200_000 - WINDOW);
        assert!(bits >= 200_000 * SIEVE_BITS, "all places have their bits");
    }
}

#[test]
fn a_table_is_taken_over_as_it_is() {
    let first = table(2, 10, 1);
    assert!(first.set(&[1, 2], 3));
    let Ok(second) = OpenTable::new(first.memory, 2, || Ok::<_, Infallible>(99));
    assert_eq!(read(&second, &[1, 2]), 3);
}

/// Long keys of two kinds of words, which take turns in one slot; all values are the same. A reader that took words of
/// both for one key would find one that is never written.
#[test]
fn readers_find_no_key_that_was_never_written() {
    const KEY: usize = 24;
    const READS: usize = 1_000_000;
    let table = table(KEY, 0, 5);
    let key = |first: u64, last: u64| -> Vec<u64> {
        (0..KEY).map(|at| if at < KEY / 2 { first } else { last }).collect()
    };
    let (written, never) = ([key(1, 2), key(3, 4)], [key(1, 4), key(3, 2)]);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for key in &written {
                    assert!(table.set(key, 1));
                    table.remove(key);
                }
            }
        });
        let (mut reads, mut found) = (0, 0);
        // Until the writer has begun, and then some.
        while reads < READS || found == 0 {
            found += written.iter().filter(|key| read(&table, key) != 0).count();
            if never.iter().any(|key| read(&table, key) != 0) {
                over.store(true, Ordering::Relaxed);
                panic!("a key was found that was never written");
            }
            reads += 1;
        }
        over.store(true, Ordering::Relaxed);
    });
}
