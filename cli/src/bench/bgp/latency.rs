//! `weft bench route-latency`: how long one new route takes to the kernel and to another peer.
//!
//! 255 routes are announced, one after the other, while there is no table, or one of 146,515 or 1,000,000 routes, which
//! the same peer has announced or another one; then they are withdrawn. One more route is there all the time, so that
//! the next hop is known. *One a second*: 255 routes with a second between them, and the longest time that one took to
//! the other peer, which shows whether a router gathers or scans.
//!
//! In weft's first run 255 more routes pass the paper's profile points, which are off for all the others: the table says
//! where the time goes.
//!
//! The *reflector* is the floor of all of this: a program that tells the other peers the bytes that it has read, and the
//! kernel the one route in them, and does nothing else.
//!
//! Reference: Handley et al., "Designing Extensible IP Router Software", §8.2 (Figures 10 to 12), §8.3 (Figure 13).

use std::time::Duration;

use super::super::measure::{Bench, Experiment, Figure, Plan, Program, Session};
use super::super::report::{Bound, Detail, Goal, Row};
use super::load::{FULL, TABLE};
use super::network::Third;
use super::router::{Kind, needs};
use super::scene::{Delays, Scene, Source, with_router};
use crate::profile::{Gathered, rows};
use crate::show::profile::COLUMNS;
use crate::show::table;

/// Probes, as in the paper.
const PROBES: usize = 255;
/// Between two of them; with `--quick` there is less time.
const INTERVAL: Duration = Duration::from_millis(50);
const QUICK_INTERVAL: Duration = Duration::from_millis(10);
const SECOND: Duration = Duration::from_secs(1);
/// Runs that make sense of what takes minutes.
const MOST_RUNS: usize = 5;
/// How far the median may rise from no table to a full one.
const INDEPENDENT: f64 = 1.2;

/// What is read off: where to, and which part of all takes no longer.
const FIGURES: [(&str, &str); 6] = [
    ("to the kernel, median", "New routes into the kernel"),
    ("to the kernel, 99 %", "New routes into the kernel"),
    ("to the other peer, median", "New routes to another peer"),
    ("to the other peer, 99 %", "New routes to another peer"),
    ("withdrawn from the kernel, median", "Routes that go"),
    ("withdrawn from the other peer, median", "Routes that go"),
];
const ONE_A_SECOND: &str = "one a second, the slowest to the other peer";

/// The benchmark.
pub(in super::super) struct RouteLatency;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    count: usize,
    source: Source,
    peer: Kind,
    interval: Duration,
}

struct Cases {
    all: Vec<Case>,
    /// What the profile points of weft have recorded, once in each case.
    profiles: Vec<(usize, Gathered)>,
}

impl Bench for RouteLatency {
    fn name(&self) -> &'static str {
        "route-latency"
    }

    fn summary(&self) -> &'static str {
        "one new route of BGP into the kernel and to another peer, beside BIRD and FRR"
    }

    fn needs(&self, plan: &Plan) -> Vec<Program> {
        let cases = cases(plan.quick);
        needs(plan, cases.iter().map(|case| (case.peer, case.experiment())))
    }

    fn duration(&self, plan: &Plan) -> Duration {
        let all = cases(plan.quick).into_iter();
        let (slow, usual): (Vec<_>, Vec<_>) =
            all.filter(|case| plan.includes(&case.experiment())).partition(Case::is_slow);
        let announced = |case: &Case| case.interval * PROBES as u32;
        let settled = Duration::from_secs(5);
        let profiles: Duration = usual.iter().map(|case| 2 * announced(case)).sum();
        let usual: Duration = usual.iter().map(|case| 2 * (2 * announced(case) + settled)).sum();
        // Once, and nothing is withdrawn.
        let slow: Duration = slow.iter().map(|case| 2 * (announced(case) + settled)).sum();
        usual * plan.runs.min(MOST_RUNS) as u32 + slow + profiles
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Session>, String> {
        super::check_root()?;
        Ok(Box::new(Cases { all: cases(plan.quick), profiles: Vec::new() }))
    }
}

fn cases(quick: bool) -> Vec<Case> {
    let bird = Kind::Bird { has_kernel: true };
    let interval = if quick { QUICK_INTERVAL } else { INTERVAL };
    let case = |count, source, peer| Case { count, source, peer, interval };
    let mut cases = vec![case(0, Source::Injector, Kind::Reflector)];
    if quick {
        cases.push(case(TABLE, Source::Injector, bird));
        return cases;
    }
    for peer in [bird, Kind::Frr] {
        cases.push(case(0, Source::Injector, peer));
        for count in [TABLE, FULL] {
            cases.push(case(count, Source::Injector, peer));
            cases.push(case(count, Source::Prober, peer));
        }
        cases.push(Case { interval: SECOND, ..case(0, Source::Injector, peer) });
    }
    cases
}

impl Case {
    /// Whether it is Figure 13.
    fn is_slow(&self) -> bool {
        self.interval == SECOND
    }

    fn name(&self, what: &str) -> String {
        let beside = match self.peer {
            Kind::Bird { .. } => String::new(),
            peer => format!(" beside {}", peer.name()),
        };
        let table = match (self.count, self.source) {
            (0, _) => "no table".to_owned(),
            (count, Source::Injector) => format!("{count} routes of the same peer"),
            (count, Source::Prober) => format!("{count} routes of another peer"),
        };
        format!("{table}{beside}: {what}")
    }

    fn experiment(&self) -> Experiment {
        Experiment {
            peer_name: self.peer.name().to_owned(),
            figures: self.figures(),
            most_runs: Some(if self.is_slow() { 1 } else { MOST_RUNS }),
        }
    }

    fn figures(&self) -> Vec<Figure> {
        let figure =
            |what: &str, panel: &'static str| Figure { case: self.name(what), unit: "ms", panel };
        if self.is_slow() {
            return vec![figure(ONE_A_SECOND, "One route a second")];
        }
        FIGURES.map(|(what, panel)| figure(what, panel)).into()
    }

    /// The figures; and what profile points have recorded, if that is asked for.
    fn measure(
        &self,
        kind: Kind,
        with_profile: bool,
    ) -> Result<(Vec<f64>, Option<Gathered>), String> {
        with_router(kind, self.count, Third::IsNotTold, |scene| {
            if self.count > 0 {
                scene.load()?;
            }
            let (anchor, time) = scene.announce(self.source)?;
            scene.delays(&[(anchor, time)].into())?;
            let sent =
                scene.announce_while(self.source, self.interval, |_, sent| Ok(sent == PROBES))?;
            let new = scene.delays(&sent)?;
            if self.is_slow() {
                return Ok((vec![new.to_peer.quantile(1.0)], None));
            }
            let sent = scene.withdraw(self.source, self.interval, &sent)?;
            let gone = scene.delays_of_withdrawn(&sent)?;
            let profile = with_profile.then(|| self.profile(scene)).transpose()?;
            Ok((values(&new, &gone), profile))
        })
    }

    /// The same again, with all profile points.
    fn profile(&self, scene: &mut Scene<'_>) -> Result<Gathered, String> {
        let asker = scene.router.asker()?;
        crate::profile::switch_on(&asker, &[], None)?;
        let sent =
            scene.announce_while(self.source, self.interval, |_, sent| Ok(sent == PROBES))?;
        scene.delays(&sent)?;
        let sent = scene.withdraw(self.source, self.interval, &sent)?;
        scene.delays_of_withdrawn(&sent)?;
        crate::profile::gather(&asker)
    }
}

fn values(new: &Delays, gone: &Delays) -> Vec<f64> {
    vec![
        new.to_kernel.median(),
        new.to_kernel.quantile(0.99),
        new.to_peer.median(),
        new.to_peer.quantile(0.99),
        gone.to_kernel.median(),
        gone.to_peer.median(),
    ]
}

impl Session for Cases {
    fn experiments(&self) -> Vec<Experiment> {
        self.all.iter().map(Case::experiment).collect()
    }

    fn weft(&mut self, experiment: usize, run: usize) -> Result<Vec<f64>, String> {
        let (values, profile) = self.all[experiment].measure(Kind::Weft, run == 0)?;
        self.profiles.extend(profile.map(|profile| (experiment, profile)));
        Ok(values)
    }

    fn peer(&mut self, experiment: usize, _: usize) -> Result<Vec<f64>, String> {
        let case = self.all[experiment];
        Ok(case.measure(case.peer, false)?.0)
    }

    fn details(&mut self) -> Vec<Detail> {
        let detail = |(experiment, gathered): &(usize, Gathered)| {
            let (rows, places) = (rows(gathered), &gathered.places);
            let cells: Vec<_> = rows.iter().map(|row| row.cells(&places[row.place])).collect();
            let json = rows.iter().map(|row| row.json(&places[row.place])).collect();
            let title = self.all[*experiment].name("profile points, ms since the first");
            Detail { title, lines: table::lines(&COLUMNS, &cells), json }
        };
        self.profiles.iter().map(detail).collect()
    }

    fn goals(&self, rows: &[Row]) -> Vec<Goal> {
        let value = |case: &Case, what: &str| {
            let name = case.name(what);
            let row = rows.iter().find(|row| row.figure.case == name);
            row.map_or(f64::NAN, |row| row.weft.median())
        };
        let goal = |case: &Case, what: &str, most: f64| Goal {
            name: format!("{}, ms", case.name(what)),
            bound: Bound::AtMost(most),
            measured: value(case, what),
        };
        let beside_bird = self.all.iter().filter(|case| matches!(case.peer, Kind::Bird { .. }));
        let mut goals = Vec::new();
        for case in beside_bird.clone() {
            if case.is_slow() {
                goals.push(goal(case, ONE_A_SECOND, 20.0));
            } else {
                goals.push(goal(case, FIGURES[0].0, 0.5));
                goals.push(goal(case, FIGURES[1].0, 2.0));
            }
        }
        let usual = || beside_bird.clone().filter(|case| !case.is_slow());
        if let Some(none) = usual().find(|case| case.count == 0) {
            for case in usual().filter(|case| case.count == FULL) {
                let (full, none) = (value(case, FIGURES[0].0), value(none, FIGURES[0].0));
                goals.push(Goal {
                    name: format!("{}, share of that without a table", case.name(FIGURES[0].0)),
                    bound: Bound::AtMost(INDEPENDENT),
                    measured: full / none,
                });
            }
        }
        goals
    }
}
