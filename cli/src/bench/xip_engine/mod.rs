//! `weft bench xip-engine`: nanoseconds per packet of the XIP forwarder, in memory, on one core.
//!
//! Reference: Machado et al., "Linux XIA", §6.3: 256-byte packets, 462,150 domains, four ports, forms
//! VIA and FB0 to FB3, destinations by Zipf's law. There the packets cross containers; here they stay
//! in memory, so that the forwarder itself is measured and nothing else.
//!
//! A batch of [`BATCH`] packets is made, as if it had just been received; then the clock runs while
//! the forwarder routes it; then the verdicts are thrown away. "single" calls the forwarder for one
//! packet after the other and lets each verdict go before the next, "batch" hands it all of them.
//!
//! Decisions are in the routing cache, unless the case says otherwise. Then the peer is a bare hash table with
//! the same keys, the XIDs of all edges, which prefetches the slots of batches; where there is no decision in the cache, one with every edge and gateway
//! as a key of its own. For "single" the place of the next key depends on the value that was found. The peer of
//! multicast is copying the packet's bytes as often as it leaves. LPM with a full table has peers of its own
//! (`full_table`).
//!
//! Last come changes: the time that an update takes, and how long it takes to forget what has become stale of a
//! million decisions.
//!
//! A value is the median over all batches of a run, so that other programs which interrupt the run
//! change it little.

mod bare;
mod cases;
mod change;
mod full_table;
pub(super) mod stopwatch;
pub(super) mod traffic;
pub(super) mod world;
pub(super) mod zipf;

use std::hint::black_box;
use std::time::Duration;

use weft_base::{Instant, Packet, Random};
use weft_xip::forward::{Forwarder, Verdicts};

use super::measure::{Bench, Experiment, Plan, Session};
use super::report::{Bound, Goal, Row};
use bare::WholeKeys;
use cases::{Cache, Case, Mode, cases, zipfs};
use change::Changes;
use full_table::FullTable;
use stopwatch::Stopwatch;
use traffic::{Form, Traffic};
use world::World;
use zipf::Zipf;

/// Domains in the table: the CIDR blocks that the evaluation of Linux XIA takes from Route Views.
const DOMAINS: usize = 462_150;
/// Packets that the forwarder gets at once.
const BATCH: usize = 64;
/// Packets whose look-ups are timed together: they are too short to be timed in small batches.
const PEER_BATCH: usize = 512;

/// The benchmark.
pub(super) struct XipEngine;

impl Bench for XipEngine {
    fn name(&self) -> &'static str {
        "xip-engine"
    }

    fn summary(&self) -> &'static str {
        "nanoseconds per packet of the XIP forwarder in memory, beside bare look-ups and copies"
    }

    fn duration(&self, plan: &Plan) -> Duration {
        // About 0.5 us per packet with its preparation, on both sides together 0.7.
        let packets = cases(plan.quick).len() * packets(plan) * plan.runs;
        Duration::from_secs(8) + Duration::from_nanos(700) * packets as u32
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Session>, String> {
        stay_on_one_core();
        let world = World::with_domains(DOMAINS, &mut Random::from_seed(1))
            .map_err(|error| error.to_string())?;
        let zipfs = zipfs(world.names.domains.len(), plan.quick);
        Ok(Box::new(Engine {
            world,
            cases: cases(plan.quick),
            zipfs,
            packets: packets(plan),
            whole: WholeKeys::default(),
            changes: None,
            full_table: None,
        }))
    }
}

fn packets(plan: &Plan) -> usize {
    if plan.quick { 16_384 } else { 131_072 }
}

/// Everything that lasts for all runs.
struct Engine {
    world: World,
    cases: Vec<Case>,
    zipfs: Vec<(f64, Zipf)>,
    packets: usize,
    whole: WholeKeys,
    /// Made when the first case needs it, as is what follows.
    changes: Option<Changes>,
    full_table: Option<FullTable>,
}

impl Session for Engine {
    fn experiments(&self) -> Vec<Experiment> {
        self.cases.iter().map(Case::experiment).collect()
    }

    fn weft(&mut self, experiment: usize, run: usize) -> Result<Vec<f64>, String> {
        Ok(vec![match self.cases[experiment] {
            Case::Packets { form, exponent, mode, cache, .. } => {
                self.route(form, cache, exponent, mode, run)?
            }
            Case::FullTable { mode, cache, .. } => {
                let packets = self.packets;
                self.full_table()?.route(cache, mode, packets, run)?
            }
            Case::Updates { is_used, .. } => self.changes()?.update(is_used),
            Case::Invalidation { entries, .. } => self.changes()?.invalidate(entries)?,
            Case::Memory => self.world.bytes_per_entry.0,
            Case::CacheMemory => self.changes()?.bytes_per_entry(),
        }])
    }

    fn peer(&mut self, experiment: usize, run: usize) -> Result<Vec<f64>, String> {
        Ok(vec![match self.cases[experiment] {
            Case::Packets { form: Form::Filter(copies), .. } => bare::copy(copies, self.packets),
            Case::Packets { form, exponent, mode, cache, .. } => {
                let (names, packets) = (&self.world.names, self.packets);
                let zipf = zipf_of(&self.zipfs, exponent);
                let mut traffic = Traffic::new(form, names, zipf, run as u64);
                match cache {
                    Cache::Warm => self.whole.look_up(form, names, &mut traffic, mode, packets),
                    _ => bare::look_up_edges(&self.world.bare, &mut traffic, mode, packets),
                }
            }
            Case::FullTable { mode, cache, .. } => {
                let packets = self.packets;
                self.full_table()?.look_up(cache, mode, packets, run)
            }
            Case::Updates { is_used, .. } => self.changes()?.update_bare(is_used),
            Case::Invalidation { entries, .. } => self.changes()?.remove_bare(entries),
            Case::Memory | Case::CacheMemory => self.world.bytes_per_entry.1,
        }])
    }

    fn goals(&self, rows: &[Row]) -> Vec<Goal> {
        goals(rows)
    }
}

impl Engine {
    fn changes(&mut self) -> Result<&mut Changes, String> {
        if self.changes.is_none() {
            let sizes: Vec<_> = self
                .cases
                .iter()
                .filter_map(|case| match case {
                    Case::Invalidation { entries, .. } => Some(*entries),
                    _ => None,
                })
                .collect();
            self.changes =
                Some(Changes::new(&sizes, change::ENTRIES).map_err(|error| error.to_string())?);
        }
        self.changes.as_mut().ok_or_else(|| "it was made just now".to_owned())
    }

    fn full_table(&mut self) -> Result<&mut FullTable, String> {
        if self.full_table.is_none() {
            let table = FullTable::new(self.world.names.domains.len());
            self.full_table = Some(table.map_err(|error| error.to_string())?);
        }
        self.full_table.as_mut().ok_or_else(|| "it was made just now".to_owned())
    }

    /// The forwarder's time per packet.
    fn route(
        &mut self,
        form: Form,
        cache: Cache,
        exponent: f64,
        mode: Mode,
        run: usize,
    ) -> Result<f64, String> {
        let zipf = zipf_of(&self.zipfs, exponent);
        let found = self.world.router(form, cache).map_err(|error| error.to_string())?;
        let (names, forwarder) = found;
        let mut traffic = Traffic::new(form, names, zipf, run as u64);
        time_packets(forwarder, mode, self.packets, || traffic.packet())
            .map_err(|error| format!("{form:?}: {error}"))
    }
}

/// The forwarder's time per packet, for so many of these.
///
/// # Errors
/// It drops one, and why.
fn time_packets(
    forwarder: &mut Forwarder,
    mode: Mode,
    packets: usize,
    mut next: impl FnMut() -> Packet,
) -> Result<f64, String> {
    let (mut batch, mut verdicts) = (Vec::with_capacity(BATCH), Verdicts::new());
    let mut stopwatch = Stopwatch::new(BATCH);
    for _ in 0..packets / BATCH {
        batch.extend((0..BATCH).map(|_| next()));
        match mode {
            Mode::Single => stopwatch.time(|| {
                for packet in batch.drain(..) {
                    forwarder.route(Instant::ZERO, packet, &mut verdicts);
                    black_box(&verdicts);
                    verdicts.clear();
                }
            }),
            Mode::Batch => {
                stopwatch.time(|| forwarder.route_batch(Instant::ZERO, &mut batch, &mut verdicts));
                black_box(&verdicts);
                verdicts.clear();
            }
        }
    }
    match forwarder.drops().nonzero().next() {
        None => Ok(stopwatch.median()),
        Some((reason, _)) => Err(format!("the forwarder drops packets: {reason}")),
    }
}

fn zipf_of(zipfs: &[(f64, Zipf)], exponent: f64) -> &Zipf {
    let (_, zipf) =
        zipfs.iter().find(|(of, _)| *of == exponent).expect("every case's exponent is in the list");
    zipf
}

/// Keeps this thread on the core it is on. Where that is not allowed it may move; the median over
/// batches bears it.
fn stay_on_one_core() {
    let mut cores = rustix::thread::CpuSet::new();
    cores.set(rustix::thread::sched_getcpu());
    let _ = rustix::thread::sched_setaffinity(None, &cores);
}

fn goals(rows: &[Row]) -> Vec<Goal> {
    let row = |case: &str| rows.iter().find(|row| row.figure.case == case);
    let median = |case| row(case).map_or(f64::NAN, |row| row.weft.median());
    let hit = |case: &str| Goal {
        name: format!("{case}: time over that of looking up the same key"),
        bound: Bound::AtMost(1.5),
        measured: row(case).map_or(f64::NAN, Row::ratio),
    };
    vec![
        hit("FB0, Zipf 1, batch"),
        hit("FB0, Zipf 0, batch"),
        hit("FB3: 3 unknown, then AD, batch"),
        Goal {
            name: "route updates per second, a decision resting on each, in millions".to_owned(),
            bound: Bound::AtLeast(1.0),
            measured: 1e3 / median("a decision rests on it"),
        },
        Goal {
            name: "100,000 decisions forgotten: time over that of 1,000, per decision".to_owned(),
            bound: Bound::AtMost(3.0),
            measured: median("100000 decisions stale") / median("1000 decisions stale") / 100.0,
        },
    ]
}

#[cfg(test)]
mod tests {
    use weft_xip::forward::{Activity, CacheActivity};

    use super::*;

    #[test]
    fn every_case_has_a_name_of_its_own_and_an_exponent() {
        for quick in [true, false] {
            let cases = cases(quick);
            let mut names: Vec<_> =
                cases.iter().map(|case| case.experiment().figures[0].case.clone()).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), cases.len());
            for case in cases {
                if let Case::Packets { exponent, .. } = case {
                    assert!(cases::exponents(quick).contains(&exponent));
                }
            }
        }
    }

    /// The whole benchmark in small: no case's packets are dropped, and each leaves as often as the
    /// case says.
    #[test]
    fn packets_of_every_case_go_where_they_should() {
        let world = World::with_domains(100, &mut Random::from_seed(1)).unwrap();
        let mut engine = Engine {
            world,
            cases: cases(true),
            zipfs: zipfs(100, true),
            packets: PEER_BATCH,
            whole: WholeKeys::default(),
            changes: None,
            full_table: None,
        };
        for experiment in 0..engine.cases.len() {
            let Case::Packets { form, cache, .. } = engine.cases[experiment] else { continue };
            let (_, router) = engine.world.router(form, cache).unwrap();
            let before = router.activity().clone();
            let misses = router.cache_activity().get(CacheActivity::Miss);
            let values = engine.weft(experiment, 0).unwrap();
            assert_eq!(values.len(), 1);
            assert!(engine.peer(experiment, 0).unwrap()[0] >= 0.0);
            let router = &engine.world.router(form, cache).unwrap().1;
            let left = |what| router.activity().get(what) - before.get(what);
            let (copies, delivered) = match form {
                Form::Filter(links) => (links as u64, 0),
                Form::Socket => (0, 1),
                _ => (1, 0),
            };
            let packets = PEER_BATCH as u64;
            assert_eq!(left(Activity::Forwarded), copies * packets, "{form:?}");
            assert_eq!(left(Activity::Delivered), delivered * packets, "{form:?}");
            let misses = router.cache_activity().get(CacheActivity::Miss) - misses;
            assert!((cache == Cache::Missing) == (misses >= packets), "{form:?} {misses}");
        }
    }

    #[test]
    fn both_sides_of_a_run_have_the_same_destinations() {
        let world = World::with_domains(100, &mut Random::from_seed(1)).unwrap();
        let zipf = Zipf::new(100, 1.0);
        let (names, form) = (&world.names, Form::Fallback(1));
        let (mut weft, mut peer) =
            (Traffic::new(form, names, &zipf, 7), Traffic::new(form, names, &zipf, 7));
        for _ in 0..50 {
            let packet = weft.packet();
            let mut keys = Vec::new();
            peer.keys(&mut keys);
            let view = weft_xip::XipPacket::new_checked(packet.bytes()).unwrap();
            let rows = [0, 1].map(|row| view.destination_xid(row).unwrap());
            assert_eq!(rows, keys[..2]);
            assert!(world.bare.contains_key(&keys[1]) && world.bare.contains_key(&keys[2]));
            assert!(!world.bare.contains_key(&keys[0]));
        }
    }
}
