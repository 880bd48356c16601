//! `weft bench link-state`: how long packets have no way after a link was cut.
//!
//! Twenty routers in a grid, those of `examples/link-state.lab`, in network namespaces. One corner pings the
//! opposite one a hundred times a second. Of the two links of that corner one after the other is cut and
//! mended again: the interfaces stay up, so that only silence tells. For the cut that hits the pings it is
//! measured
//!
//! * *detection*: from the cut until a node at either end reports that its neighbour has fallen silent;
//! * *reroute*: from then until the first ping is answered: there and back, over nodes that all have new
//!   routes;
//! * *outage*: the longest time between two answers meanwhile, which is what applications noticed.
//!
//! The peer is OSPF (FRR's) on as many routers in the same grid, beside the other one all the time, with the
//! same timers: a hello every 200 ms, a neighbour is lost after one second, routes are computed after 10 ms.
//! Whatever else FRR waits for before it tells others is switched off.

mod grid;
mod ospf;
mod xia;

use std::thread;
use std::time::Duration;

use super::measure::{Bench, Experiment, Figure, Plan, Program, Session};
use super::report::{Bound, Goal, Row};
use grid::Grid;

/// What is measured.
const DETECTION: &str = "detection";
const REROUTE: &str = "reroute";
const OUTAGE: &str = "outage";
/// What the issue of routing is held against.
const GOAL: f64 = 200.0;

/// The benchmark.
pub(super) struct LinkState;

impl Bench for LinkState {
    fn name(&self) -> &'static str {
        "link-state"
    }

    fn summary(&self) -> &'static str {
        "how long packets have no way among twenty nodes after a link was cut, beside OSPF"
    }

    fn needs(&self, _: &Plan) -> Vec<Program> {
        vec![ospf::FRR, ospf::PING]
    }

    fn duration(&self, plan: &Plan) -> Duration {
        Duration::from_secs(15) + 4 * grid::CYCLE * plan.runs as u32
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Session>, String> {
        if !weft_lab::is_root() {
            return Err(
                "only root can measure this: FRR's daemons become a user of their own".into()
            );
        }
        let xia = Grid::start(Box::new(xia::Xia), 2 * plan.runs)?;
        let ospf = Grid::start(Box::new(ospf::Ospf), 2 * plan.runs)?;
        // All nodes know the whole network when nothing has changed for a while.
        thread::sleep(grid::MENDED);
        Ok(Box::new(Cuts { xia, ospf }))
    }
}

/// The two networks.
struct Cuts {
    xia: Grid,
    ospf: Grid,
}

/// Cuts both links of the corner; what came of the cut that hit the pings.
fn worst_of_two(grid: &mut Grid) -> Result<Vec<f64>, String> {
    // One of the two is on the way, or both are: there and back.
    let cuts = [grid.cut()?, grid.cut()?];
    let worst = cuts.iter().max_by_key(|cut| cut.outage).unwrap_or(&cuts[0]);
    Ok([worst.detection, worst.reroute, worst.outage].map(milliseconds).into())
}

impl Session for Cuts {
    fn experiments(&self) -> Vec<Experiment> {
        let figures = [
            (DETECTION, "From the cut until a neighbour counts as lost"),
            (REROUTE, "From then until packets go another way"),
            (OUTAGE, "Longest time between answers to pings"),
        ];
        let figure = |(case, panel): (&str, &'static str)| Figure {
            case: case.to_owned(),
            unit: "ms",
            panel,
        };
        vec![Experiment {
            peer_name: "FRR's OSPF with the same timers".to_owned(),
            figures: figures.map(figure).into(),
            most_runs: None,
        }]
    }

    fn weft(&mut self, _: usize, _: usize) -> Result<Vec<f64>, String> {
        worst_of_two(&mut self.xia)
    }

    fn peer(&mut self, _: usize, _: usize) -> Result<Vec<f64>, String> {
        worst_of_two(&mut self.ospf)
    }

    fn goals(&self, rows: &[Row]) -> Vec<Goal> {
        let row = rows.iter().find(|row| row.figure.case == REROUTE);
        vec![Goal {
            name: "packets go another way after a neighbour counts as lost, ms".to_owned(),
            bound: Bound::AtMost(GOAL),
            measured: row.map_or(f64::NAN, |row| row.weft.median()),
        }]
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
