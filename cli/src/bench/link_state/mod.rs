//! `weft bench link-state`: how long packets have no way after a link was cut.
//!
//! Twenty nodes in a grid, those of `examples/link-state.lab`, in network namespaces. One corner pings the
//! opposite one a hundred times a second. Of the two links of that corner one after the other is cut and
//! mended again: the interfaces stay up, so that only silence tells. For the cut that hits the pings it is
//! measured
//!
//! * *detection*: from the cut until a node at either end reports that its neighbour has fallen silent;
//! * *reroute*: from then until the first ping is answered, over nodes that all have new routes, there and
//!   back;
//! * *outage*: and the longest time between two answers meanwhile, which is what applications noticed.
//!
//! The peer is the limit: the longest time between answers while nothing is cut.

mod grid;

use std::time::{Duration, Instant};

use super::measure::{Bench, Experiment, Figure, Plan, Session};
use super::report::{Bound, Goal, Row};
use crate::lab::become_root;
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
        "how long packets have no way among twenty nodes after a link was cut"
    }

    fn duration(&self, plan: &Plan) -> Duration {
        Duration::from_secs(15) + 2 * grid::CYCLE * plan.runs as u32
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Session>, String> {
        become_root(weft_lab::EngineKind::Netns)?;
        Ok(Box::new(Cuts { grid: Grid::start(plan.runs)? }))
    }
}

/// The network.
struct Cuts {
    grid: Grid,
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
            peer_name: "nothing cut: longest time between answers".to_owned(),
            figures: figures.map(figure).into(),
            most_runs: None,
        }]
    }

    fn weft(&mut self, _: usize, _: usize) -> Result<Vec<f64>, String> {
        let mut worst = None;
        // One of the two is on the way, or both are: there and back.
        for _ in 0..2 {
            let cut = self.grid.cut()?;
            if worst.is_none_or(|(_, _, outage)| cut.2 > outage) {
                worst = Some(cut);
            }
        }
        let (detection, reroute, outage) = worst.ok_or("no link was cut")?;
        Ok([detection, reroute, outage].map(milliseconds).into())
    }

    fn peer(&mut self, _: usize, _: usize) -> Result<Vec<f64>, String> {
        let begin = Instant::now();
        let pause = milliseconds(self.grid.longest_pause(begin, begin + Duration::from_secs(1))?);
        Ok(vec![pause; 3])
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
