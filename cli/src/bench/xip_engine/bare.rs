//! The limit: look-ups of the same keys in bare hash tables, and copies of the same bytes.

use std::collections::HashMap;
use std::hash::Hash;
use std::hint::black_box;

use foldhash::fast::FixedState;
use weft_base::Packet;
use weft_xip::Xid;

use super::stopwatch::Stopwatch;
use super::traffic::{Form, Traffic};
use super::world::{BareTable, Names};
use super::{BATCH, Mode, PEER_BATCH};

/// Tables of whole keys, by the number of their XIDs, with a value for each domain.
#[derive(Default)]
pub(super) struct WholeKeys {
    one: HashMap<[Xid; 1], u32, FixedState>,
    two: HashMap<[Xid; 2], u32, FixedState>,
    three: HashMap<[Xid; 3], u32, FixedState>,
    four: HashMap<[Xid; 4], u32, FixedState>,
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
            1 => measure(&mut self.one, form, names, traffic, mode, packets),
            2 => measure(&mut self.two, form, names, traffic, mode, packets),
            3 => measure(&mut self.three, form, names, traffic, mode, packets),
            _ => measure(&mut self.four, form, names, traffic, mode, packets),
        }
    }
}

fn measure<const N: usize>(
    table: &mut HashMap<[Xid; N], u32, FixedState>,
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
    if table.len() < names.domains.len() {
        table.extend((0..names.domains.len()).map(|rank| (key(rank), rank as u32)));
    }
    // What a packet passes through is looked up as well, with the same key for all.
    let more = form.last_nodes() - 1;
    let mut stopwatch = Stopwatch::new(PEER_BATCH);
    for _ in 0..packets / PEER_BATCH {
        let mut keys = Vec::with_capacity(PEER_BATCH * (1 + more));
        for _ in 0..PEER_BATCH {
            keys.extend((0..more).map(|_| key(0)));
            keys.push(key(traffic.rank()));
        }
        stopwatch.time(|| look_up(table, &keys, mode));
    }
    stopwatch.median()
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
        stopwatch.time(|| look_up(table, &keys, mode));
    }
    stopwatch.median()
}

fn look_up<K: Hash + Eq>(table: &HashMap<K, u32, FixedState>, keys: &[K], mode: Mode) {
    match mode {
        Mode::Single => look_up_in_turn(table, keys),
        Mode::Batch => look_up_at_once(table, keys),
    }
}

/// Looks up every key; the processor may begin with the next before it has the result.
fn look_up_at_once<K: Hash + Eq>(table: &HashMap<K, u32, FixedState>, keys: &[K]) {
    let found: u32 =
        keys.iter().map(|key| table.get(key).copied().unwrap_or(1)).fold(0, u32::wrapping_add);
    black_box(found);
}

/// Looks up every key, and lets each look-up wait for the result of the one before.
fn look_up_in_turn<K: Hash + Eq>(table: &HashMap<K, u32, FixedState>, keys: &[K]) {
    // Zero, but neither compiler nor processor know: the next index depends on the last result.
    let nothing = black_box(0);
    let mut last = 0;
    for index in 0..keys.len() {
        last = table.get(&keys[index + (last & nothing) as usize]).copied().unwrap_or(1);
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
