//! `weft bench routing`: the table of prefixes, beside another of its kind.
//!
//! As many prefixes as in the evaluation of Linux XIA (Machado et al., §6.3.1), made at random, but as the
//! Internet's are: more than half of IPv4's are /24, of IPv6's /48, and they lie close together in blocks that
//! were allocated as a whole. The peer is the crate prefix-trie, a binary tree of prefixes.
//!
//! "in turn" lets each look-up wait for the result of the one before, "overlapping" does not. A change is a
//! prefix that is removed and inserted again. Memory is compared with what the prefixes, their lengths and
//! values are as a list.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use prefix_trie::PrefixMap;
use weft_base::Random;
use weft_routing::{Prefix, PrefixTable};

use super::measure::{Bench, Experiment, Figure, Plan, Session};
use super::report::{Bound, Goal, Row};

/// CIDR blocks in the snapshot of Route Views that the evaluation of Linux XIA takes.
const PREFIXES: usize = 462_150;
/// Prefixes of one allocated block, on average.
const IN_A_BLOCK: usize = 12;
/// Lengths and how many of a thousand prefixes have them.
const IPV4_LENGTHS: [(u8, u64); 11] = [
    (24, 560),
    (22, 110),
    (23, 90),
    (20, 60),
    (21, 60),
    (19, 50),
    (16, 25),
    (18, 25),
    (17, 15),
    (15, 3),
    (14, 2),
];
const IPV6_LENGTHS: [(u8, u64); 7] =
    [(48, 500), (32, 130), (40, 110), (44, 110), (36, 80), (47, 40), (46, 30)];

const LOOK_UPS: &str = "Look-ups";
const CHANGES: &str = "Changes";
const MEMORY: &str = "Memory";

/// The benchmark.
pub(super) struct Routing;

impl Bench for Routing {
    fn name(&self) -> &'static str {
        "routing"
    }

    fn summary(&self) -> &'static str {
        "look-ups and changes in the table of prefixes, beside another tree"
    }

    fn duration(&self, plan: &Plan) -> Duration {
        // Six cases of some 200 ns on both sides.
        let operations = 12 * operations(plan) * plan.runs;
        Duration::from_secs(2) + Duration::from_nanos(200) * operations as u32
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Session>, String> {
        Ok(Box::new(Tables::new(PREFIXES, operations(plan))))
    }
}

fn operations(plan: &Plan) -> usize {
    if plan.quick { 1 << 18 } else { 1 << 20 }
}

/// What is measured, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    LookUp(Version, Mode),
    Change(Version),
    Memory(Version),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Ipv4,
    Ipv6,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    InTurn,
    Overlapping,
}

const CASES: [Case; 8] = [
    Case::LookUp(Version::Ipv4, Mode::InTurn),
    Case::LookUp(Version::Ipv4, Mode::Overlapping),
    Case::LookUp(Version::Ipv6, Mode::InTurn),
    Case::LookUp(Version::Ipv6, Mode::Overlapping),
    Case::Change(Version::Ipv4),
    Case::Change(Version::Ipv6),
    Case::Memory(Version::Ipv4),
    Case::Memory(Version::Ipv6),
];

impl Case {
    fn experiment(self) -> Experiment {
        let (case, unit, panel) = match self {
            Self::LookUp(version, Mode::InTurn) => {
                (format!("{}, in turn", version.name()), "ns/look-up", LOOK_UPS)
            }
            Self::LookUp(version, Mode::Overlapping) => {
                (format!("{}, overlapping", version.name()), "ns/look-up", LOOK_UPS)
            }
            Self::Change(version) => (format!("{}, change", version.name()), "ns/change", CHANGES),
            Self::Memory(version) => {
                (format!("{}, memory", version.name()), "bytes/prefix", MEMORY)
            }
        };
        let memory = matches!(self, Self::Memory(_));
        Experiment {
            peer_name: if memory { "a list" } else { "prefix-trie" }.to_owned(),
            figures: vec![Figure { case, unit, panel }],
            most_runs: memory.then_some(1),
        }
    }
}

impl Version {
    fn name(self) -> &'static str {
        match self {
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
        }
    }
}

/// Both tables of one version of IP. The peer's keys are as wide as an address.
struct World<K> {
    weft: PrefixTable<u32>,
    peer: PrefixMap<(K, u8), u32>,
    prefixes: Vec<(K, u8)>,
    /// Their numbers, in random order.
    order: Vec<usize>,
}

struct Tables {
    ipv4: World<u32>,
    ipv6: World<u128>,
    operations: usize,
}

impl Tables {
    fn new(prefixes: usize, operations: usize) -> Self {
        let mut random = Random::from_seed(1);
        let mut ipv4 = BTreeMap::new();
        while ipv4.len() < prefixes {
            let length = draw(&mut random, &IPV4_LENGTHS);
            // Blocks of 2^15 addresses, below multicast.
            let block = (block(&mut random, prefixes) as u32 % 0xdf00_0000) & !0x7fff;
            let address = block | random.number() as u32 & 0x7fff;
            let count = ipv4.len() as u32;
            ipv4.entry((address & u32::MAX << (32 - length), length)).or_insert(count);
        }
        let mut ipv6 = BTreeMap::new();
        while ipv6.len() < prefixes {
            let length = draw(&mut random, &IPV6_LENGTHS);
            // Blocks of /28 in 2000::/3.
            let block = 0x2000_0000 | (block(&mut random, prefixes) as u32 & 0x1fff_fff0);
            let rest = u128::from(random.number() & 0xfff_ffff_ffff_ffff) << 40;
            let address = u128::from(block) << 96 | rest & ((1 << 100) - 1);
            let count = ipv6.len() as u32;
            ipv6.entry((address & u128::MAX << (128 - length), length)).or_insert(count);
        }
        Self {
            ipv4: World::new(ipv4, Self::ipv4, &mut random),
            ipv6: World::new(ipv6, Self::ipv6, &mut random),
            operations,
        }
    }

    fn ipv4((address, length): (u32, u8)) -> Prefix {
        Prefix::from(Ipv4Addr::from_bits(address)).truncate(length)
    }

    fn ipv6((address, length): (u128, u8)) -> Prefix {
        Prefix::from(Ipv6Addr::from_bits(address)).truncate(length)
    }
}

/// The place of an allocated block, one of few.
fn block(random: &mut Random, prefixes: usize) -> u64 {
    let number = random.below((prefixes / IN_A_BLOCK) as u64 + 1);
    // An odd number scatters them (that of Fibonacci hashing).
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

/// A length by its weight.
fn draw(random: &mut Random, lengths: &[(u8, u64)]) -> u8 {
    let mut left = random.below(lengths.iter().map(|(_, weight)| weight).sum());
    for (length, weight) in lengths {
        match left.checked_sub(*weight) {
            None => return *length,
            Some(less) => left = less,
        }
    }
    lengths[0].0
}

impl<K: Copy + Ord> World<K>
where
    (K, u8): prefix_trie::Prefix,
{
    fn new(
        entries: BTreeMap<(K, u8), u32>,
        prefix: fn((K, u8)) -> Prefix,
        random: &mut Random,
    ) -> Self {
        let mut world = Self {
            weft: PrefixTable::new(),
            peer: PrefixMap::new(),
            prefixes: entries.keys().copied().collect(),
            order: Vec::new(),
        };
        for (key, value) in entries {
            world.weft.insert(prefix(key), value);
            world.peer.insert(key, value);
        }
        let count = world.prefixes.len() as u64;
        world.order = (0..count).map(|_| random.below(count) as usize).collect();
        world
    }

    /// Runs `operation` with prefixes in random order, and the last one's result; nanoseconds for each.
    fn time(
        prefixes: &[(K, u8)],
        order: &[usize],
        count: usize,
        run: usize,
        mut operation: impl FnMut((K, u8), u32) -> u32,
    ) -> f64 {
        let begin = Instant::now();
        let mut last = 0;
        for index in (0..count).map(|index| order[(run * count + index) % order.len()]) {
            last = operation(prefixes[index], last);
        }
        black_box(last);
        begin.elapsed().as_secs_f64() * 1e9 / count as f64
    }

    fn change_weft(&mut self, count: usize, run: usize, prefix: fn((K, u8)) -> Prefix) -> f64 {
        let Self { weft, prefixes, order, .. } = self;
        Self::time(prefixes, order, count, run, |key, _| {
            let value = weft.remove(&prefix(key)).unwrap_or_default();
            weft.insert(prefix(key), value).unwrap_or_default()
        })
    }

    fn change_peer(&mut self, count: usize, run: usize) -> f64 {
        let Self { peer, prefixes, order, .. } = self;
        Self::time(prefixes, order, count, run, |key, _| {
            let value = peer.remove(&key).unwrap_or_default();
            peer.insert(key, value).unwrap_or_default()
        })
    }
}

impl Session for Tables {
    fn experiments(&self) -> Vec<Experiment> {
        CASES.iter().map(|case| case.experiment()).collect()
    }

    fn weft(&mut self, experiment: usize, run: usize) -> Result<Vec<f64>, String> {
        let count = self.operations;
        // Zero, but neither compiler nor processor know: the next look-up depends on the last result.
        let nothing = black_box(0);
        let Self { ipv4, ipv6, .. } = self;
        Ok(vec![match CASES[experiment] {
            Case::LookUp(Version::Ipv4, mode) => {
                World::time(&ipv4.prefixes, &ipv4.order, count, run, |(address, _), last| {
                    let wait = if mode == Mode::InTurn { last & nothing } else { 0 };
                    let found = ipv4.weft.longest(&Ipv4Addr::from_bits(address | wait).into());
                    found.map_or(0, |(_, value)| *value)
                })
            }
            Case::LookUp(Version::Ipv6, mode) => {
                World::time(&ipv6.prefixes, &ipv6.order, count, run, |(address, _), last| {
                    let wait = if mode == Mode::InTurn { last & nothing } else { 0 };
                    let name = Ipv6Addr::from_bits(address | u128::from(wait)).into();
                    ipv6.weft.longest(&name).map_or(0, |(_, value)| *value)
                })
            }
            Case::Change(Version::Ipv4) => ipv4.change_weft(count, run, Self::ipv4),
            Case::Change(Version::Ipv6) => ipv6.change_weft(count, run, Self::ipv6),
            Case::Memory(Version::Ipv4) => ipv4.weft.memory() as f64 / ipv4.prefixes.len() as f64,
            Case::Memory(Version::Ipv6) => ipv6.weft.memory() as f64 / ipv6.prefixes.len() as f64,
        }])
    }

    fn peer(&mut self, experiment: usize, run: usize) -> Result<Vec<f64>, String> {
        let count = self.operations;
        let nothing = black_box(0);
        let Self { ipv4, ipv6, .. } = self;
        Ok(vec![match CASES[experiment] {
            Case::LookUp(Version::Ipv4, mode) => {
                World::time(&ipv4.prefixes, &ipv4.order, count, run, |(address, _), last| {
                    let wait = if mode == Mode::InTurn { last & nothing } else { 0 };
                    ipv4.peer.get_lpm(&(address | wait, 32)).map_or(0, |(_, value)| *value)
                })
            }
            Case::LookUp(Version::Ipv6, mode) => {
                World::time(&ipv6.prefixes, &ipv6.order, count, run, |(address, _), last| {
                    let wait = if mode == Mode::InTurn { last & nothing } else { 0 };
                    let name = (address | u128::from(wait), 128);
                    ipv6.peer.get_lpm(&name).map_or(0, |(_, value)| *value)
                })
            }
            Case::Change(Version::Ipv4) => ipv4.change_peer(count, run),
            Case::Change(Version::Ipv6) => ipv6.change_peer(count, run),
            // An address, a length and a value.
            Case::Memory(Version::Ipv4) => 4.0 + 1.0 + 4.0,
            Case::Memory(Version::Ipv6) => 16.0 + 1.0 + 4.0,
        }])
    }

    fn goals(&self, rows: &[Row]) -> Vec<Goal> {
        let row = |case: &str| rows.iter().find(|row| row.figure.case == case);
        let goal = |case: &str, bound| Goal {
            name: format!("{case}: time over that of the peer"),
            bound,
            measured: row(case).map_or(f64::NAN, Row::ratio),
        };
        vec![
            goal("IPv4, overlapping", Bound::AtMost(1.5)),
            goal("IPv6, overlapping", Bound::AtMost(1.0)),
            Goal {
                name: "IPv4, memory: bytes for each prefix".to_owned(),
                bound: Bound::AtMost(48.0),
                measured: row("IPv4, memory").map_or(f64::NAN, |row| row.weft.median()),
            },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_tables_find_the_same() {
        let mut tables = Tables::new(3000, 64);
        for (key, value) in tables.ipv4.peer.iter() {
            assert_eq!(tables.ipv4.weft.get(&Tables::ipv4(key)), Some(value));
        }
        assert_eq!(tables.ipv4.weft.len(), 3000);
        assert_eq!(tables.ipv6.weft.len(), 3000);
        for (address, _) in &tables.ipv6.prefixes {
            let (found, value) = tables.ipv6.peer.get_lpm(&(*address, 128)).unwrap();
            let longest = tables.ipv6.weft.longest(&Ipv6Addr::from_bits(*address).into());
            assert_eq!(longest, Some((found.1, value)));
        }
        for experiment in 0..CASES.len() {
            assert!(tables.weft(experiment, 1).unwrap()[0] > 0.0);
            assert!(tables.peer(experiment, 1).unwrap()[0] > 0.0);
        }
        assert_eq!((tables.ipv4.weft.len(), tables.ipv4.peer.len()), (3000, 3000));
    }
}
