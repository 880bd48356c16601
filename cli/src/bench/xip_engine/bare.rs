//! The limit: look-ups of the same keys in bare hash tables, and copies of the same bytes.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::hint::black_box;

use foldhash::fast::FixedState;
use weft_base::Packet;
use weft_processor::prefetch_element;
use weft_xip::Xid;

use super::stopwatch::Stopwatch;
use super::traffic::{Form, Traffic};
use super::world::{BareTable, Names};
use super::{BATCH, Mode, PEER_BATCH};

/// Keys that are asked for together.
const TOGETHER: usize = 32;

/// Tables of whole keys, by the number of their XIDs, with a value for each domain.
#[derive(Default)]
pub(super) struct WholeKeys {
    one: Tables<1>,
    two: Tables<2>,
    three: Tables<3>,
    four: Tables<4>,
}

impl WholeKeys {
    /// Nanoseconds per packet of looking up a decision's key in a table that has one for every domain, and of
    /// the look-ups that are the same for all packets.
    pub(super) fn look_up(
        &mut self,
        form: Form,
        names: &Names,
        traffic: &mut Traffic<'_>,
        mode: Mode,
        packets: usize,
    ) -> f64 {
        match form.edges(names, 0).len() {
            1 => self.one.measure(form, names, traffic, mode, packets),
            2 => self.two.measure(form, names, traffic, mode, packets),
            3 => self.three.measure(form, names, traffic, mode, packets),
            _ => self.four.measure(form, names, traffic, mode, packets),
        }
    }
}

/// The same keys for look-ups one after the other, and for batches.
#[derive(Default)]
struct Tables<const N: usize> {
    single: HashMap<[Xid; N], u32, FixedState>,
    batch: Prefetched<N>,
}

impl<const N: usize> Tables<N> {
    fn measure(
        &mut self,
        form: Form,
        names: &Names,
        traffic: &mut Traffic<'_>,
        mode: Mode,
        packets: usize,
    ) -> f64 {
        let key = |rank: usize| -> [Xid; N] {
            let edges = form.edges(names, rank);
            std::array::from_fn(|at| edges[at])
        };
        match mode {
            Mode::Single if self.single.is_empty() => self.single.extend(entries(names)),
            Mode::Batch if self.batch.slots.is_empty() => {
                self.batch = Prefetched::new(entries(names));
            }
            _ => {}
        }
        // What a packet passes through is looked up as well, with the same key for all.
        let more = form.last_nodes() - 1;
        let mut stopwatch = Stopwatch::new(PEER_BATCH);
        let mut keys = Vec::with_capacity(PEER_BATCH * (1 + more));
        for _ in 0..packets / PEER_BATCH {
            keys.clear();
            for _ in 0..PEER_BATCH {
                keys.extend((0..more).map(|_| key(0)));
                keys.push(key(traffic.rank()));
            }
            stopwatch.time(|| match mode {
                Mode::Single => look_up_in_turn(&keys, |key| value(&self.single, key)),
                Mode::Batch => self.batch.look_up(&keys),
            });
        }
        stopwatch.median()
    }
}

/// The keys of decisions with `N` edges, for all forms: unknown domains and then a known one; and if there is but
/// one edge, whatever else has a name.
fn entries<const N: usize>(names: &Names) -> Vec<([Xid; N], u32)> {
    let known = names.domains.iter().copied();
    let others = names.others().into_iter().filter(|_| N == 1);
    let keys = known
        .chain(others)
        .map(|last| std::array::from_fn(|at| if at + 1 == N { last } else { names.unknown[at] }));
    keys.zip(1..).collect()
}

/// A hash table made for batches: open addressing, slots of key and value, half of them empty or more; the slots of
/// a group of keys are prefetched before the first is read.
struct Prefetched<const N: usize> {
    hash: FixedState,
    /// Empty where the value is 0.
    slots: Vec<([Xid; N], u32)>,
}

impl<const N: usize> Default for Prefetched<N> {
    fn default() -> Self {
        Self { hash: FixedState::default(), slots: Vec::new() }
    }
}

impl<const N: usize> Prefetched<N> {
    fn new(entries: Vec<([Xid; N], u32)>) -> Self {
        let slots = vec![([Xid::NAT; N], 0); (2 * entries.len()).next_power_of_two()];
        let mut table = Self { hash: FixedState::default(), slots };
        for (key, value) in entries {
            let mut at = table.place(&key);
            while table.slots[at].1 != 0 && table.slots[at].0 != key {
                at = (at + 1) & (table.slots.len() - 1);
            }
            table.slots[at] = (key, value);
        }
        table
    }

    fn place(&self, key: &[Xid; N]) -> usize {
        self.hash.hash_one(key) as usize & (self.slots.len() - 1)
    }

    fn look_up(&self, keys: &[[Xid; N]]) {
        let mut sum = 0_u32;
        let mut places = [0; TOGETHER];
        for keys in keys.chunks(TOGETHER) {
            for (place, key) in places.iter_mut().zip(keys) {
                *place = self.place(key);
                prefetch_element(&self.slots, *place);
            }
            for (place, key) in places.iter().zip(keys) {
                let mut at = *place;
                while self.slots[at].1 != 0 && self.slots[at].0 != *key {
                    at = (at + 1) & (self.slots.len() - 1);
                }
                sum = sum.wrapping_add(self.slots[at].1);
            }
        }
        black_box(sum);
    }
}

/// Nanoseconds per packet of the look-ups of every edge and gateway.
pub(super) fn look_up_edges(
    table: &BareTable,
    traffic: &mut Traffic<'_>,
    mode: Mode,
    packets: usize,
) -> f64 {
    let mut keys = Vec::new();
    let mut stopwatch = Stopwatch::new(PEER_BATCH);
    for _ in 0..packets / PEER_BATCH {
        keys.clear();
        (0..PEER_BATCH).for_each(|_| traffic.keys(&mut keys));
        stopwatch.time(|| look_up(&keys, mode, |key| value(table, key)));
    }
    stopwatch.median()
}

/// Looks up every key, in the way that is the limit of how packets come.
pub(super) fn look_up<K>(keys: &[K], mode: Mode, find: impl Fn(&K) -> u32) {
    match mode {
        Mode::Single => look_up_in_turn(keys, find),
        Mode::Batch => look_up_at_once(keys, find),
    }
}

/// That of a key; something if it is not there.
fn value<K: Hash + Eq>(table: &HashMap<K, u32, FixedState>, key: &K) -> u32 {
    table.get(key).copied().unwrap_or(1)
}

/// Looks up every key; the processor may begin with the next before it has the result.
fn look_up_at_once<K>(keys: &[K], find: impl Fn(&K) -> u32) {
    black_box(keys.iter().map(find).fold(0, u32::wrapping_add));
}

/// Looks up every key, and lets each look-up wait for the result of the one before.
fn look_up_in_turn<K>(keys: &[K], find: impl Fn(&K) -> u32) {
    // Zero, but neither compiler nor processor know: the next index depends on the last result.
    let nothing = black_box(0);
    let mut last = 0;
    for index in 0..keys.len() {
        last = find(&keys[index + (last & nothing) as usize]);
    }
    black_box(last);
}

/// The time per packet of copying it `copies` times.
pub(super) fn copy(copies: usize, packets: usize) -> f64 {
    let packet = Packet::from_slice(&[7; 256]);
    let mut frames = vec![[0; weft_base::STANDARD_FRAME]; BATCH * copies];
    let mut stopwatch = Stopwatch::new(BATCH);
    for _ in 0..packets / BATCH {
        stopwatch.time(|| {
            for frame in &mut frames {
                frame[..packet.len()].copy_from_slice(black_box(packet.bytes()));
            }
        });
        black_box(&frames);
    }
    stopwatch.median()
}

#[cfg(test)]
mod tests {
    use weft_base::Random;
    use weft_xip::XidType;

    use super::super::world::name;
    use super::*;

    fn holds<const N: usize>(names: &Names, edges: &[Xid]) -> bool {
        let key: [Xid; N] = std::array::from_fn(|at| edges[at]);
        let table = Prefetched::new(entries::<N>(names));
        let mut at = table.place(&key);
        while table.slots[at].1 != 0 && table.slots[at].0 != key {
            at = (at + 1) & (table.slots.len() - 1);
        }
        table.slots[at].1 != 0 && entries::<N>(names).iter().any(|(other, _)| *other == key)
    }

    /// A look-up of what is not there would take less time than the one that it stands for.
    #[test]
    fn the_tables_hold_what_is_looked_up_in_them() {
        let mut random = Random::from_seed(1);
        let domains = (0..50).map(|_| name(XidType::AD, &mut random)).collect();
        let names = Names::new(domains, &mut random);
        let forms = [Form::Host, Form::Via, Form::TwoRedirects, Form::Socket];
        for form in forms.into_iter().chain((0..=3).map(Form::Fallback)) {
            for rank in [0, 7, 49] {
                let edges = form.edges(&names, rank);
                let found = match edges.len() {
                    1 => holds::<1>(&names, &edges),
                    2 => holds::<2>(&names, &edges),
                    3 => holds::<3>(&names, &edges),
                    _ => holds::<4>(&names, &edges),
                };
                assert!(found, "{form:?} {rank}");
            }
        }
    }
}
