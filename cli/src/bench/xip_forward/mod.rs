//! `weft bench xip-forward`: packets that a router forwards each second, beside Linux forwarding IPv4.
//!
//! Reference: Machado et al., "Linux XIA", §6.3: a router with four ports and 462,150 destinations, packets of
//! 256 bytes whose destinations follow Zipf's law, in the forms FB0 to FB3 (0 to 3 edges lead nowhere before
//! the one that is used) and VIA (through a domain that is the router's own). Around that point one thing at a
//! time is varied: the distribution, the form, the length, the number of ports, and how many routes change
//! each second.
//!
//! The router has one processor to itself, a source that sends as fast as it can has another. All sides are
//! measured in the same network namespaces with the same prefixes, in turn: the kernel engine, the portable
//! engine, and Linux. For IPv4 a prefix is a route; for XIP a domain of its own, redirected to the same neighbour.
//! What counts are packets that come out of the router with one hop less.
//!
//! Each experiment has two figures. "arriving" is what arrives each second. "of the router" is that for each
//! second for which the router's threads had the processor: the same, as long as the router is what limits
//! the rate; more, if the source cannot keep up with it, or others use its processor meanwhile. It is what
//! the goals are about.
//!
//! How fast frames can be moved without any decision is measured, too: what an engine takes besides is its own.
//!
//! The caches of both engines hold a decision for every destination before anything is measured.

pub(super) mod cases;
mod changes;
pub(super) mod engine;
pub(super) mod frames;
mod handicap;
mod linux;
pub(super) mod network;
pub(super) mod portable;
pub(super) mod prefixes;
mod redirect;
pub(super) mod router;
pub(super) mod site;
pub(super) mod threads;
pub(super) mod traffic;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use weft_base::Random;

use super::measure::{Bench, Experiment, Figure, Plan, Program, Session};
use super::report::{Bound, Goal, Row};
use super::xip_engine::zipf::Zipf;
use cases::{Case, Contest, MANY_UPDATES, Place, cases};
use handicap::Handicap;
use portable::Sockets;
use prefixes::Prefix;
use site::{Measured, Site};
use threads::Processors;

/// The benchmark's name.
pub(super) const NAME: &str = "xip-forward";
/// The destinations of the paper.
const PREFIXES: usize = 462_150;
/// Loads of the overload's peer, as parts of what is forwarded at full speed.
const PACES: [f64; 6] = [0.5, 0.75, 1.0, 1.25, 1.5, 2.0];
/// How much of its best rate the portable engine shall keep, and under how many times that load.
const KEPT: f64 = 0.8;
const TIMES: f64 = 10.0;
/// How many of the changes of routes that a case is about shall have been made.
const MADE: f64 = 0.95;

const ARRIVING: &str = "What arrives, all cases";
const CHANGED: &str = "Changes of routes that were made";

/// The benchmark.
pub(super) struct XipForward;

impl Bench for XipForward {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "packets that a router forwards each second, beside Linux forwarding IPv4"
    }

    fn needs(&self, _: &Plan) -> Vec<Program> {
        vec![
            Program { name: "ip", package: "iproute2" },
            Program { name: "ethtool", package: "ethtool" },
            Program { name: "chrt", package: "util-linux" },
        ]
    }

    fn duration(&self, plan: &Plan) -> Duration {
        let cases: Vec<_> =
            cases(plan.quick).into_iter().filter(|case| is_in(plan, case)).collect();
        let sides = |case: &Case| match case.contest {
            Contest::Engines => 3,
            Contest::EachEdge | Contest::Sockets | Contest::Redirect => 2,
            Contest::Overload | Contest::OverloadOfQuarter => 2 + PACES.len(),
        };
        let sides: usize = cases.iter().map(sides).sum::<usize>() * plan.runs;
        let sites = if plan.quick { 1 } else { 4 };
        Duration::from_secs(20) * sites
            + (time(plan.quick) + Duration::from_millis(550)) * sides as u32
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Session>, String> {
        network::enter_namespace()?;
        let processors = Processors::new()?;
        let prefixes = match &plan.prefixes {
            Some(path) => prefixes::read(path)?,
            None => prefixes::prefixes(PREFIXES, &mut Random::from_seed(1)),
        };
        let cases = cases(plan.quick);
        let included: Vec<_> = cases.iter().filter(|case| is_in(plan, case)).copied().collect();
        let mut sites = BTreeMap::new();
        for case in &included {
            if let Entry::Vacant(entry) = sites.entry(case.place()) {
                let (forms, each_edge) = cases::needs(&included, case.place());
                entry.insert(Site::new(case.place(), &prefixes, &forms, each_edge, processors)?);
            }
        }
        let time = time(plan.quick);
        let full_speed = BTreeMap::new();
        Ok(Box::new(Router { sites, prefixes, cases, processors, drawn: None, full_speed, time }))
    }
}

/// How long packets are counted.
fn time(quick: bool) -> Duration {
    Duration::from_millis(if quick { 400 } else { 600 })
}

fn is_in(plan: &Plan, case: &Case) -> bool {
    plan.includes(&experiment(case))
}

/// Everything that lasts for all runs.
struct Router {
    sites: BTreeMap<Place, Site>,
    prefixes: Vec<Prefix>,
    cases: Vec<Case>,
    processors: Processors,
    /// The place, the exponent and the run for which destinations were drawn last.
    drawn: Option<(Place, f64, usize)>,
    /// What the portable engine forwarded last with as many packets as the source can send, in each contest of overload.
    full_speed: BTreeMap<Contest, f64>,
    time: Duration,
}

impl Router {
    /// The place where a case is measured; its destinations are drawn, the same for all sides of a run.
    fn site(&mut self, case: &Case, run: usize) -> Result<&mut Site, String> {
        let (place, exponent) = (case.place(), case.point.exponent);
        let site = self.sites.get_mut(&place);
        let site = site.ok_or_else(|| format!("nothing was prepared for {}", case.name()))?;
        if self.drawn != Some((place, exponent, run)) {
            let zipf = Zipf::new(self.prefixes.len(), exponent);
            let mut random = Random::from_seed(run as u64);
            site.set_samples(|| self.prefixes[zipf.draw(&mut random)].destination().octets());
            self.drawn = Some((place, exponent, run));
        }
        Ok(site)
    }

    /// The portable engine at this pace, or at full speed: what arrives, and what was offered.
    fn loaded(&mut self, case: &Case, run: usize, pace: Option<f64>) -> Result<[f64; 2], String> {
        let (time, processors) = (self.time, self.processors);
        let site = self.site(case, run)?;
        let _handicap = match case.contest {
            Contest::OverloadOfQuarter => Some(Handicap::new(processors)?),
            _ => None,
        };
        let rate = site.portable(&case.point, Sockets::Xdp, pace, time)?.rate;
        Ok([rate.arriving, rate.offered])
    }

    /// At full speed.
    fn overload(&mut self, case: &Case, run: usize) -> Result<Vec<f64>, String> {
        let [arriving, offered] = self.loaded(case, run, None)?;
        self.full_speed.insert(case.contest, arriving);
        Ok(vec![arriving, offered])
    }

    /// At the load that suits it best.
    fn best_load(&mut self, case: &Case, run: usize) -> Result<Vec<f64>, String> {
        let full_speed = match self.full_speed.get(&case.contest) {
            Some(speed) => *speed,
            None => self.overload(case, run)?[0],
        };
        let (mut most, mut best) = (0.0, 1.0);
        for pace in PACES.map(|pace| (pace * full_speed).max(1.0)) {
            let [arriving, _] = self.loaded(case, run, Some(pace))?;
            if arriving > most {
                (most, best) = (arriving, pace);
            }
        }
        // The best of several figures is better than what it is a figure of: the load is chosen by these, and measured again.
        Ok(self.loaded(case, run, Some(best))?.to_vec())
    }
}

const KERNEL: &str = "kernel";
const PORTABLE: &str = "portable";
const REDIRECT: &str = "moved and nothing more";
const LINUX: &str = "Linux IPv4 forwarding";
const EACH_EDGE: &str = "kernel, each edge";
const AF_XDP: &str = "portable, AF_XDP";
const OVERLOADED: &str = "portable, overload";
const OVERLOADED_QUARTER: &str = "portable with a quarter of its processor, overload";
const OF_ROUTER: &str = "of the router";
const RATE: &str = "arriving";
const OFFERED: &str = "offered";
const CHANGES: &str = "changes";

fn name(case: &Case, side: &str, figure: &str) -> String {
    format!("{}, {side}: {figure}", case.name())
}

fn experiment(case: &Case) -> Experiment {
    let figure = |side, what, unit, panel| Figure { case: name(case, side, what), unit, panel };
    let packets = |side| {
        [
            figure(side, OF_ROUTER, "packets/s", case.panel),
            figure(side, RATE, "packets/s", ARRIVING),
        ]
    };
    let (peer, figures) = match case.contest {
        Contest::Engines => {
            let mut figures = [packets(KERNEL), packets(PORTABLE)].concat();
            if case.point.updates > 0 {
                let changes = [KERNEL, PORTABLE];
                figures.extend(changes.map(|side| figure(side, CHANGES, "changes/s", CHANGED)));
            }
            (LINUX, figures)
        }
        Contest::Redirect => (LINUX, packets(REDIRECT).to_vec()),
        Contest::EachEdge => ("all edges at once", packets(EACH_EDGE).to_vec()),
        Contest::Sockets => ("packet sockets", packets(AF_XDP).to_vec()),
        Contest::Overload | Contest::OverloadOfQuarter => {
            let figure = |what| figure(overloaded(case), what, "packets/s", case.panel);
            ("the best load", vec![figure(RATE), figure(OFFERED)])
        }
    };
    Experiment { peer_name: peer.to_owned(), figures, most_runs: None }
}

/// What the overloaded side is called.
fn overloaded(case: &Case) -> &'static str {
    match case.contest {
        Contest::OverloadOfQuarter => OVERLOADED_QUARTER,
        _ => OVERLOADED,
    }
}

/// The figures of one side of [`Contest::Engines`]; changes come behind all packets.
fn packets(measured: &Measured) -> [f64; 2] {
    [measured.rate.of_router, measured.rate.arriving]
}

fn figures(case: &Case, sides: [Measured; 2]) -> Vec<f64> {
    let mut figures: Vec<_> = sides.iter().flat_map(packets).collect();
    if case.point.updates > 0 {
        figures.extend(sides.map(|side| side.updates));
    }
    figures
}

impl Session for Router {
    fn experiments(&self) -> Vec<Experiment> {
        self.cases.iter().map(experiment).collect()
    }

    fn weft(&mut self, index: usize, run: usize) -> Result<Vec<f64>, String> {
        let (case, time) = (self.cases[index], self.time);
        if case.is_overload() {
            return self.overload(&case, run);
        }
        let site = self.site(&case, run)?;
        let portable = |site: &mut Site| site.portable(&case.point, Sockets::Xdp, None, time);
        Ok(match case.contest {
            Contest::Redirect => packets(&site.redirect(&case.point, time)?).to_vec(),
            Contest::EachEdge => packets(&site.kernel(&case.point, true, time)?).to_vec(),
            Contest::Sockets => packets(&portable(site)?).to_vec(),
            _ => {
                let kernel = site.kernel(&case.point, false, time)?;
                figures(&case, [kernel, portable(site)?])
            }
        })
    }

    fn peer(&mut self, index: usize, run: usize) -> Result<Vec<f64>, String> {
        let (case, time) = (self.cases[index], self.time);
        match case.contest {
            Contest::Overload | Contest::OverloadOfQuarter => self.best_load(&case, run),
            Contest::Sockets => {
                let site = self.site(&case, run)?;
                let portable = site.portable(&case.point, Sockets::Packet, None, time)?;
                Ok(packets(&portable).to_vec())
            }
            Contest::EachEdge => {
                let kernel = self.site(&case, run)?.kernel(&case.point, false, time)?;
                Ok(packets(&kernel).to_vec())
            }
            Contest::Redirect => {
                let linux = self.site(&case, run)?.linux(&case.point, time)?;
                Ok(packets(&linux).to_vec())
            }
            Contest::Engines => {
                let linux = self.site(&case, run)?.linux(&case.point, time)?;
                Ok(figures(&case, [linux; 2]))
            }
        }
    }

    fn goals(&self, rows: &[Row]) -> Vec<Goal> {
        let goals = Goals(rows);
        let mut all = Vec::new();
        for case in &self.cases {
            all.extend(goals.beside_linux(case, KERNEL, case.kernel_goal()));
            all.extend(goals.beside_linux(case, PORTABLE, case.portable_goal()));
            if case.point.updates == MANY_UPDATES {
                all.extend([KERNEL, PORTABLE].map(|side| goals.made(case, side)));
                let calm = self.cases.iter().find(|calm| case.is_with_updates(calm));
                all.extend([KERNEL, PORTABLE].map(|side| goals.kept(case, calm, side)));
            }
            if case.is_overload() {
                all.extend(goals.under_load(case));
            }
        }
        all
    }
}

/// Goals, and the rows that they are about.
struct Goals<'a>(&'a [Row]);

impl Goals<'_> {
    fn row(&self, case: &str) -> Option<&Row> {
        self.0.iter().find(|row| row.figure.case == case)
    }

    fn beside_linux(&self, case: &Case, side: &str, times: Option<f64>) -> Option<Goal> {
        let name = name(case, side, OF_ROUTER);
        let measured = self.row(&name).map_or(f64::NAN, Row::ratio);
        let name = format!("{name}: times as many as Linux IPv4");
        Some(Goal { name, bound: Bound::AtLeast(times?), measured })
    }

    /// What is left of the rate while many routes change.
    fn kept(&self, case: &Case, calm: Option<&Case>, side: &str) -> Goal {
        let rate = |case: &Case| {
            let row = self.row(&name(case, side, OF_ROUTER));
            row.map_or(f64::NAN, |row| row.weft.median())
        };
        let measured = rate(case) / calm.map_or(f64::NAN, rate);
        let name = format!("{}: of the rate without updates", name(case, side, OF_ROUTER));
        Goal { name, bound: Bound::AtLeast(KEPT), measured }
    }

    /// Whether as many routes have changed as the case says.
    fn made(&self, case: &Case, side: &str) -> Goal {
        let name = name(case, side, CHANGES);
        let made = self.row(&name).map_or(f64::NAN, |row| row.weft.median());
        let measured = made / f64::from(case.point.updates);
        let name = format!("{name}: of those that are asked for");
        Goal { name, bound: Bound::AtLeast(MADE), measured }
    }

    /// What is left of the best rate under far too much load; and whether it was so much, where the source can send that.
    fn under_load(&self, case: &Case) -> Vec<Goal> {
        let [rate, offered] = [RATE, OFFERED].map(|figure| name(case, overloaded(case), figure));
        let row = self.row(&rate);
        let best = row.map_or(f64::NAN, |row| row.peer.median());
        let load = self.row(&offered).map_or(f64::NAN, |row| row.weft.median() / best);
        let mut goals = vec![Goal {
            name: format!("{rate}: of the rate at the best load"),
            bound: Bound::AtLeast(KEPT),
            measured: row.map_or(f64::NAN, Row::ratio),
        }];
        if case.contest == Contest::OverloadOfQuarter {
            goals.push(Goal {
                name: format!("{offered}: times the rate at the best load"),
                bound: Bound::AtLeast(TIMES),
                measured: load,
            });
        }
        goals
    }
}
