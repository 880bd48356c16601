//! `weft bench route-load`: how soon a table that one peer announces is with a second peer and in the kernel, and how
//! much memory that takes.
//!
//! Everything that is sent is encoded before; the clock runs from just before the first byte until the second peer has
//! read the last of all prefixes, and until the kernel says that it has the last of all routes. A third peer has a
//! session, too, and is told nothing.

use std::time::Duration;

use super::super::measure::{Bench, Experiment, Figure, Plan, Program, Session};
use super::super::report::{Bound, Goal, Row};
use super::memory::Share;
use super::network::Third;
use super::router::{Kind, needs};
use super::scene::{Loaded, milliseconds, with_router};

/// Routes of the table that XORP was measured with (Handley et al., §8.2), and of a full table.
pub(super) const TABLE: usize = 146_515;
pub(super) const FULL: usize = 1_000_000;

const TO_PEER: &str = "to the second peer";
const TO_KERNEL: &str = "into the kernel";
const MEMORY: &str = "peak memory";
/// Processes of weft whose shares are stated; what is left is the rest's.
const PROCESSES: [&str; 3] = ["bgp", "rib", "fea"];

const BIRD: Kind = Kind::Bird { has_kernel: true };
const BARE_BIRD: Kind = Kind::Bird { has_kernel: false };

/// The benchmark.
pub(in super::super) struct RouteLoad;

/// A table, and whom weft is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    count: usize,
    peer: Kind,
}

struct Cases(Vec<Case>);

impl Bench for RouteLoad {
    fn name(&self) -> &'static str {
        "route-load"
    }

    fn summary(&self) -> &'static str {
        "a table of BGP from one peer to another and into the kernel, beside BIRD, FRR and GoBGP"
    }

    fn needs(&self, plan: &Plan) -> Vec<Program> {
        let cases = cases(plan.quick);
        needs(plan, cases.iter().map(|case| (case.peer, case.experiment())))
    }

    fn duration(&self, plan: &Plan) -> Duration {
        Duration::from_secs(if plan.quick { 10 } else { 200 }) * plan.runs as u32
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Session>, String> {
        super::check_root()?;
        Ok(Box::new(Cases(cases(plan.quick))))
    }
}

fn cases(quick: bool) -> Vec<Case> {
    if quick {
        return vec![Case { count: TABLE, peer: BIRD }];
    }
    let peers = [BIRD, BARE_BIRD, Kind::Frr, Kind::GoBgp];
    [TABLE, FULL].iter().flat_map(|count| peers.map(|peer| Case { count: *count, peer })).collect()
}

impl Case {
    fn name(&self, what: &str) -> String {
        let beside = match self.peer {
            BIRD => String::new(),
            peer => format!(" beside {}", peer.name()),
        };
        format!("{} routes{beside}: {what}", self.count)
    }

    fn experiment(&self) -> Experiment {
        Experiment {
            peer_name: self.peer.name().to_owned(),
            figures: self.figures(),
            most_runs: None,
        }
    }

    fn figures(&self) -> Vec<Figure> {
        let figure = |what: &str, unit, panel| Figure { case: self.name(what), unit, panel };
        let mut figures = vec![figure(TO_PEER, "ms", "From one peer to another")];
        if self.peer.has_kernel() {
            figures.push(figure(TO_KERNEL, "ms", "From a peer into the kernel"));
        }
        figures.push(figure(MEMORY, "MiB", "Peak memory"));
        if self.peer == BIRD {
            let share = |process: &&str| figure(&format!("{MEMORY} of {process}"), "MiB", "Shares");
            figures.extend(PROCESSES.iter().chain(&["the rest"]).map(share));
        }
        figures
    }

    /// The values of the figures.
    fn values(&self, loaded: Loaded, memory: &[Share]) -> Vec<f64> {
        let all = peak(memory);
        let mut values = vec![milliseconds(loaded.to_peer)];
        if self.peer.has_kernel() {
            values.push(loaded.to_kernel.map_or(f64::NAN, milliseconds));
        }
        values.push(all);
        if self.peer == BIRD {
            let of = |process: &&str| {
                let is_it = |share: &&Share| share.name == **process;
                memory.iter().filter(is_it).map(|share| share.peak).sum::<f64>()
            };
            let shares = PROCESSES.each_ref().map(of);
            values.extend(shares);
            values.push(all - shares.iter().sum::<f64>());
        }
        values
    }

    fn measure(&self, kind: Kind) -> Result<Vec<f64>, String> {
        with_router(kind, self.count, Third::IsNotTold, |scene| {
            let loaded = scene.load()?;
            Ok(self.values(loaded, &scene.router.memory()))
        })
    }
}

impl Session for Cases {
    fn experiments(&self) -> Vec<Experiment> {
        self.0.iter().map(Case::experiment).collect()
    }

    fn weft(&mut self, experiment: usize, _: usize) -> Result<Vec<f64>, String> {
        let case = self.0[experiment];
        case.measure(Kind::Weft)
    }

    fn peer(&mut self, experiment: usize, _: usize) -> Result<Vec<f64>, String> {
        let case = self.0[experiment];
        let mut values = case.measure(case.peer)?;
        if case.peer == BIRD {
            // It has one process: weft's shares stand beside all of it.
            let (shares, all) = (PROCESSES.len() + 1, values[2]);
            let first = values.len() - shares;
            values[first..].fill(all);
        }
        Ok(values)
    }

    fn goals(&self, rows: &[Row]) -> Vec<Goal> {
        self.0.iter().flat_map(|case| case.goals(rows)).collect()
    }
}

impl Case {
    fn goals(&self, rows: &[Row]) -> Vec<Goal> {
        let goal = |what: &str, most: f64| {
            let name = self.name(what);
            let row = rows.iter().find(|row| row.figure.case == name);
            Goal {
                name: format!("{name}, share of {}'s", self.peer.name()),
                bound: Bound::AtMost(most),
                measured: row.map_or(f64::NAN, Row::ratio),
            }
        };
        match self.peer {
            BIRD => vec![goal(TO_PEER, 0.35), goal(TO_KERNEL, 0.5), goal(MEMORY, 1.7)],
            BARE_BIRD => vec![goal(TO_PEER, 1.5)],
            _ => Vec::new(),
        }
    }
}

/// Of all processes together, in MiB.
pub(super) fn peak(memory: &[Share]) -> f64 {
    memory.iter().map(|share| share.peak).sum()
}
