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
//! The peer is the limit of the same machine: of look-ups, a bare hash table with the same keys,
//! where for "single" the place of the next key depends on the value that was found; of multicast,
//! copying the packet's bytes as often as it leaves.
//!
//! A value is the median over all batches of a run, so that other programs which interrupt the run
//! change it little.

mod stopwatch;
mod traffic;
mod world;
mod zipf;

use std::hint::black_box;
use std::time::Duration;

use weft_base::{Instant, Packet, Random};
use weft_xip::Xid;

use super::measure::{Bench, Experiment, Figure, Plan, Session};
use super::report::{Bound, Goal, Row};
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
/// Exponents of the full run; the quick one has the ends of the range in which Linux XIA was slower
/// than IP, and 1.0.
const EXPONENTS: [f64; 6] = [0.0, 0.5, 0.8, 1.0, 1.2, 1.5];
const QUICK_EXPONENTS: [f64; 2] = [0.0, 1.0];

const FORMS: &str = "Address forms, Zipf exponent 1.0";
const DISTRIBUTIONS: &str = "Distribution of destinations";
const MULTICAST: &str = "Multicast, by number of copies";
const MEMORY: &str = "Memory of a table with 462,150 domains";

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
        Duration::from_secs(3) + Duration::from_nanos(700) * packets as u32
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Session>, String> {
        stay_on_one_core();
        let world = World::with_domains(DOMAINS, &mut Random::from_seed(1))
            .map_err(|error| error.to_string())?;
        let cases = cases(plan.quick);
        let zipfs = exponents(plan.quick)
            .iter()
            .map(|exponent| (*exponent, Zipf::new(world.names.domains.len(), *exponent)))
            .collect();
        Ok(Box::new(Engine { world, cases, zipfs, packets: packets(plan) }))
    }
}

fn packets(plan: &Plan) -> usize {
    if plan.quick { 16_384 } else { 131_072 }
}

fn exponents(quick: bool) -> &'static [f64] {
    if quick { &QUICK_EXPONENTS } else { &EXPONENTS }
}

/// How the forwarder is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Single,
    Batch,
}

/// What one row of the report is about.
#[derive(Clone, Debug)]
enum Case {
    /// Packets of this form are routed.
    Packets { form: Form, exponent: f64, mode: Mode, figure: Figure },
    /// The memory that a table takes.
    Memory,
}

fn cases(quick: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut both = |form, exponent, panel, name: &str| {
        for (mode, word) in [(Mode::Single, "single"), (Mode::Batch, "batch")] {
            let figure = Figure { case: format!("{name}, {word}"), unit: "ns/packet", panel };
            cases.push(Case::Packets { form, exponent, mode, figure });
        }
    };
    both(Form::Host, 1.0, FORMS, "HID, a neighbour");
    both(Form::Fallback(0), 1.0, FORMS, "FB0: AD redirected to HID");
    for unknown in 1..=3 {
        both(
            Form::Fallback(unknown),
            1.0,
            FORMS,
            &format!("FB{unknown}: {unknown} unknown, then AD"),
        );
    }
    both(Form::Via, 1.0, FORMS, "VIA: local AD, then AD");
    both(Form::TwoRedirects, 1.0, FORMS, "AD redirected to AD to HID");
    both(Form::Socket, 1.0, FORMS, "local HID, then XDP socket");
    for exponent in exponents(quick) {
        both(Form::Fallback(0), *exponent, DISTRIBUTIONS, &format!("FB0, Zipf {exponent}"));
    }
    for links in 1..=world::NEIGHBOURS {
        both(Form::Filter(links), 1.0, MULTICAST, &format!("zFilter, {links} of 4 links"));
    }
    cases.push(Case::Memory);
    cases
}

/// Everything that lasts for all runs.
struct Engine {
    world: World,
    cases: Vec<Case>,
    zipfs: Vec<(f64, Zipf)>,
    packets: usize,
}

impl Session for Engine {
    fn experiments(&self) -> Vec<Experiment> {
        self.cases.iter().map(Case::experiment).collect()
    }

    fn weft(&mut self, experiment: usize, run: usize) -> Result<Vec<f64>, String> {
        Ok(vec![match self.cases[experiment] {
            Case::Packets { form, exponent, mode, .. } => self.route(form, exponent, mode, run)?,
            Case::Memory => self.world.bytes_per_entry.0,
        }])
    }

    fn peer(&mut self, experiment: usize, run: usize) -> Result<Vec<f64>, String> {
        Ok(vec![match self.cases[experiment] {
            Case::Packets { form: Form::Filter(copies), .. } => self.copy(copies),
            Case::Packets { form, exponent, mode, .. } => self.look_up(form, exponent, mode, run),
            Case::Memory => self.world.bytes_per_entry.1,
        }])
    }

    fn goals(&self, rows: &[Row]) -> Vec<Goal> {
        goals(rows)
    }
}

impl Case {
    fn experiment(&self) -> Experiment {
        match self {
            Self::Packets { form, mode, figure, .. } => Experiment {
                peer_name: peer_name(*form, *mode).to_owned(),
                figures: vec![figure.clone()],
                most_runs: None,
            },
            Self::Memory => Experiment {
                peer_name: "hash table with 4-byte values".to_owned(),
                figures: vec![Figure {
                    case: "AD table".to_owned(),
                    unit: "bytes/entry",
                    panel: MEMORY,
                }],
                most_runs: Some(1),
            },
        }
    }
}

fn peer_name(form: Form, mode: Mode) -> &'static str {
    match (form, mode) {
        (Form::Filter(_), _) => "memcpy of the copies",
        (_, Mode::Single) => "hash look-ups, one after the other",
        (_, Mode::Batch) => "hash look-ups, overlapping",
    }
}

impl Engine {
    /// The forwarder's time per packet.
    fn route(&mut self, form: Form, exponent: f64, mode: Mode, run: usize) -> Result<f64, String> {
        let zipf = zipf_of(&self.zipfs, exponent);
        let mut traffic = Traffic::new(form, &self.world.names, zipf, run as u64);
        let forwarder = &mut self.world.forwarder;
        let (mut batch, mut verdicts) = (Vec::with_capacity(BATCH), Vec::new());
        let mut stopwatch = Stopwatch::new(BATCH);
        for _ in 0..self.packets / BATCH {
            batch.extend((0..BATCH).map(|_| traffic.packet()));
            match mode {
                Mode::Single => stopwatch.time(|| {
                    for packet in batch.drain(..) {
                        forwarder.route(Instant::ZERO, packet, &mut verdicts);
                        black_box(&verdicts);
                        verdicts.clear();
                    }
                }),
                Mode::Batch => {
                    stopwatch
                        .time(|| forwarder.route_batch(Instant::ZERO, &mut batch, &mut verdicts));
                    black_box(&verdicts);
                    verdicts.clear();
                }
            }
        }
        match forwarder.drops().nonzero().next() {
            None => Ok(stopwatch.median()),
            Some((reason, _)) => Err(format!("the forwarder drops packets of {form:?}: {reason}")),
        }
    }

    /// The time per packet of the look-ups alone.
    fn look_up(&self, form: Form, exponent: f64, mode: Mode, run: usize) -> f64 {
        let zipf = zipf_of(&self.zipfs, exponent);
        let mut traffic = Traffic::new(form, &self.world.names, zipf, run as u64);
        let mut keys = Vec::new();
        let mut stopwatch = Stopwatch::new(PEER_BATCH);
        for _ in 0..self.packets / PEER_BATCH {
            keys.clear();
            (0..PEER_BATCH).for_each(|_| traffic.keys(&mut keys));
            stopwatch.time(|| match mode {
                Mode::Single => look_up_in_turn(&self.world.bare, &keys),
                Mode::Batch => look_up_at_once(&self.world.bare, &keys),
            });
        }
        stopwatch.median()
    }

    /// The time per packet of copying it `copies` times.
    fn copy(&self, copies: usize) -> f64 {
        let packet = Packet::from_slice(&[7; 256]);
        let mut frames = vec![[0; weft_base::STANDARD_FRAME]; BATCH * copies];
        let mut stopwatch = Stopwatch::new(BATCH);
        for _ in 0..self.packets / BATCH {
            stopwatch.time(|| {
                for frame in &mut frames {
                    frame[..packet.len()].copy_from_slice(black_box(packet.bytes()));
                }
            });
            black_box(&frames);
        }
        stopwatch.median()
    }
}

fn zipf_of(zipfs: &[(f64, Zipf)], exponent: f64) -> &Zipf {
    let (_, zipf) =
        zipfs.iter().find(|(of, _)| *of == exponent).expect("every case's exponent is in the list");
    zipf
}

/// Looks up every key; the processor may begin with the next before it has the result.
fn look_up_at_once(table: &world::BareTable, keys: &[Xid]) {
    let found: u32 =
        keys.iter().map(|key| table.get(key).copied().unwrap_or(1)).fold(0, u32::wrapping_add);
    black_box(found);
}

/// Looks up every key, and lets each look-up wait for the result of the one before.
fn look_up_in_turn(table: &world::BareTable, keys: &[Xid]) {
    // Zero, but neither compiler nor processor know: the next index depends on the last result.
    let nothing = black_box(0);
    let mut last = 0;
    for index in 0..keys.len() {
        last = table.get(&keys[index + (last & nothing) as usize]).copied().unwrap_or(1);
    }
    black_box(last);
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
    let nanoseconds = |case| row(case).map_or(f64::NAN, |row| row.weft.median());
    vec![
        Goal {
            name: "FB0 at Zipf 1 in batches: time over that of the bare look-ups".to_owned(),
            bound: Bound::AtMost(3.0),
            measured: row("FB0, Zipf 1, batch").map_or(f64::NAN, Row::ratio),
        },
        Goal {
            name: "FB0 at Zipf 0: gain of a batch over single packets".to_owned(),
            bound: Bound::AtLeast(1.5),
            measured: nanoseconds("FB0, Zipf 0, single") / nanoseconds("FB0, Zipf 0, batch"),
        },
    ]
}

#[cfg(test)]
mod tests {
    use weft_xip::forward::Activity;

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
                    assert!(exponents(quick).contains(&exponent));
                }
            }
        }
    }

    /// The whole benchmark in small: no case's packets are dropped, and each leaves as often as the
    /// case says.
    #[test]
    fn packets_of_every_case_go_where_they_should() {
        let world = World::with_domains(100, &mut Random::from_seed(1)).unwrap();
        let zipfs = exponents(true).iter().map(|s| (*s, Zipf::new(100, *s))).collect();
        let mut engine = Engine { world, cases: cases(true), zipfs, packets: PEER_BATCH };
        for experiment in 0..engine.cases.len() {
            let before = engine.world.forwarder.activity().clone();
            let values = engine.weft(experiment, 0).unwrap();
            assert_eq!(values.len(), 1);
            assert!(engine.peer(experiment, 0).unwrap()[0] >= 0.0);
            let Case::Packets { form, .. } = engine.cases[experiment] else { continue };
            let after = engine.world.forwarder.activity();
            let left = |what| after.get(what) - before.get(what);
            let (copies, delivered) = match form {
                Form::Filter(links) => (links as u64, 0),
                Form::Socket => (0, 1),
                _ => (1, 0),
            };
            let packets = PEER_BATCH as u64;
            assert_eq!(left(Activity::Forwarded), copies * packets, "{form:?}");
            assert_eq!(left(Activity::Delivered), delivered * packets, "{form:?}");
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
