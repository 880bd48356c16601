//! `weft bench xip-forward`: packets that a router forwards each second, beside Linux forwarding IPv4.
//!
//! Reference: Machado et al., "Linux XIA", §6.3: a router with four ports and 462,150 destinations, packets of
//! 256 bytes whose destinations follow Zipf's law, in the forms FB0 to FB3 (0 to 3 edges lead nowhere before
//! the one that is used) and VIA (through a domain that is the router's own).
//!
//! The router has one processor to itself, a source that sends as fast as it can has another. Both sides are
//! measured in the same network namespaces with the same prefixes, in turn. For IPv4 a prefix is a route;
//! for XIP a domain of its own, redirected to the same neighbour. What counts are packets that come out of
//! the router with one hop less.
//!
//! Each experiment has two figures. "arriving" is what arrives each second. "of the router" is that for each
//! second for which the router's threads had the processor: the same, as long as the router is what limits
//! the rate; more, if the source cannot keep up with it, or others use its processor meanwhile. It is what
//! the goals are about.
//!
//! The kernel engine holds what the cache of the portable one holds after a packet to every destination.

mod frames;
mod kernel;
mod linux;
mod network;
mod prefixes;
mod traffic;

use std::time::Duration;

use weft_base::Random;

use super::measure::{Bench, Experiment, Figure, Plan, Program, Session};
use super::report::{Bound, Goal, Row};
use super::xip_engine::world::{self, Names};
use super::xip_engine::zipf::Zipf;
use frames::{Form, Template};
use kernel::Kernel;
use network::Network;
use prefixes::Prefix;
use traffic::Traffic;

/// The destinations of the paper.
const PREFIXES: usize = 462_150;
/// Bytes of a frame, link header included.
const FRAME_LEN: usize = 256;
const QUICK_EXPONENTS: [f64; 2] = [0.5, 1.0];

/// The benchmark.
pub(super) struct XipForward;

/// Which engine is measured, and beside what.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Engine {
    /// The kernel's, beside Linux.
    Kernel,
    /// The kernel's with one look-up for each edge, beside the one that looks all edges up at once.
    EachEdge,
}

/// What one row of the report is about.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Case {
    engine: Engine,
    form: Form,
    exponent: f64,
    panel: &'static str,
}

const FORMS: &str = "Address forms";
const DISTRIBUTIONS: &str = "Distribution of destinations";
const EDGES: &str = "One look-up for each edge, beside one for all edges";
const ARRIVING: &str = "What arrives, all cases";

fn cases(quick: bool) -> Vec<Case> {
    let (mut cases, engine) = (Vec::new(), Engine::Kernel);
    if quick {
        for exponent in QUICK_EXPONENTS {
            for form in [Form::Fallback(0), Form::Fallback(3)] {
                cases.push(Case { engine, form, exponent, panel: DISTRIBUTIONS });
            }
        }
        return cases;
    }
    let exponents = (0..=8).map(|step| f64::from(step) * 0.25);
    for exponent in exponents {
        let form = Form::Fallback(0);
        cases.push(Case { engine, form, exponent, panel: DISTRIBUTIONS });
    }
    for form in [Form::Fallback(1), Form::Fallback(2), Form::Fallback(3), Form::Via] {
        for exponent in [0.5, 1.0] {
            cases.push(Case { engine, form, exponent, panel: FORMS });
        }
    }
    for form in [Form::Fallback(0), Form::Fallback(3)] {
        for exponent in [0.5, 1.0] {
            cases.push(Case { engine: Engine::EachEdge, form, exponent, panel: EDGES });
        }
    }
    cases
}

impl Case {
    fn name(&self) -> String {
        let form = match self.form {
            Form::Fallback(unknown) => format!("FB{unknown}"),
            Form::Via => "VIA".to_owned(),
            Form::Ip => "IP".to_owned(),
        };
        let engine = match self.engine {
            Engine::Kernel => "kernel",
            Engine::EachEdge => "kernel, each edge",
        };
        format!("{form}, Zipf {}, {engine}: of the router", self.exponent)
    }

    fn name_arriving(&self) -> String {
        self.name().replace("of the router", "arriving")
    }

    /// How many times as fast as Linux forwards IPv4 it shall be.
    fn goal(&self) -> Option<f64> {
        if self.engine != Engine::Kernel {
            return None;
        }
        match self.form {
            Form::Fallback(0) | Form::Via => Some(if self.exponent >= 1.0 { 4.0 } else { 3.5 }),
            Form::Fallback(3) => Some(2.5),
            _ => None,
        }
    }
}

impl Bench for XipForward {
    fn name(&self) -> &'static str {
        "xip-forward"
    }

    fn summary(&self) -> &'static str {
        "packets that a router forwards each second, beside Linux forwarding IPv4"
    }

    fn needs(&self) -> &'static [Program] {
        &[
            Program { name: "ip", package: "iproute2" },
            Program { name: "ethtool", package: "ethtool" },
            Program { name: "chrt", package: "util-linux" },
        ]
    }

    fn duration(&self, plan: &Plan) -> Duration {
        let sides = 2 * cases(plan.quick).len() * plan.runs;
        Duration::from_secs(12) + (time(plan.quick) + Duration::from_millis(600)) * sides as u32
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Session>, String> {
        let network = Network::new()?;
        let mut random = Random::from_seed(1);
        let prefixes = prefixes::prefixes(PREFIXES, &mut random);
        let domains = prefixes.iter().map(|prefix| prefix.domain()).collect();
        let names = Names::new(domains, &mut random);
        let port = |gateway| names.neighbours.iter().position(|host| *host == gateway);
        let ports = names.gateways.iter().map(|gateway| port(*gateway).unwrap_or_default());
        linux::set_up(&network, prefixes.iter().zip(ports))?;
        let mut router = world::router(&names).map_err(|error| error.to_string())?;
        let cases = cases(plan.quick);
        let mut kernel = Kernel::new(PREFIXES)?;
        let mut forms: Vec<_> = cases.iter().map(|case| case.form).collect();
        forms.sort_unstable();
        forms.dedup();
        kernel.learn(&mut router, &names, &forms)?;
        let each_edge = if cases.iter().any(|case| case.engine == Engine::EachEdge) {
            let mut engine = Kernel::of_each_edge(PREFIXES)?;
            engine.learn_each_edge(&mut router, &names)?;
            Some(engine)
        } else {
            None
        };
        let traffic = Traffic::new(&network)?;
        let local = names.local_domain;
        Ok(Box::new(Router {
            network,
            prefixes,
            local,
            kernel,
            each_edge,
            traffic,
            cases,
            drawn: None,
            time: time(plan.quick),
        }))
    }
}

/// How long packets are counted.
fn time(quick: bool) -> Duration {
    Duration::from_millis(if quick { 400 } else { 1000 })
}

/// Everything that lasts for all runs.
struct Router {
    kernel: Kernel,
    /// If any case is about it.
    each_edge: Option<Kernel>,
    traffic: Traffic,
    prefixes: Vec<Prefix>,
    local: weft_xip::Xid,
    cases: Vec<Case>,
    /// The exponent and the run for which destinations were drawn last.
    drawn: Option<(f64, usize)>,
    time: Duration,
    // Last: what hangs in it goes first.
    network: Network,
}

impl Router {
    /// Draws the destinations: the same for both sides of a run.
    fn draw(&mut self, exponent: f64, run: usize) {
        if self.drawn == Some((exponent, run)) {
            return;
        }
        let zipf = Zipf::new(self.prefixes.len(), exponent);
        let mut random = Random::from_seed(run as u64);
        let prefixes = &self.prefixes;
        self.traffic.set_samples(|| prefixes[zipf.draw(&mut random)].destination().octets());
        self.drawn = Some((exponent, run));
    }

    fn measure(&self, form: Form) -> Result<Vec<f64>, String> {
        let threads = self.network.place_threads()?;
        let template = Template::new(form, self.local, FRAME_LEN);
        let rate = self.traffic.measure(&self.network, &threads, &template, self.time)?;
        Ok(vec![rate.of_router, rate.arriving])
    }
}

impl Session for Router {
    fn experiments(&self) -> Vec<Experiment> {
        let peer = |case: &Case| match case.engine {
            Engine::Kernel => "Linux IPv4 forwarding",
            Engine::EachEdge => "all edges at once",
        };
        let experiment = |case: &Case| Experiment {
            peer_name: peer(case).to_owned(),
            figures: vec![
                Figure { case: case.name(), unit: "packets/s", panel: case.panel },
                Figure { case: case.name_arriving(), unit: "packets/s", panel: ARRIVING },
            ],
            most_runs: None,
        };
        self.cases.iter().map(experiment).collect()
    }

    fn weft(&mut self, experiment: usize, run: usize) -> Result<Vec<f64>, String> {
        let Case { engine, form, exponent, .. } = self.cases[experiment];
        self.draw(exponent, run);
        let engine = match (engine, &mut self.each_edge) {
            (Engine::EachEdge, Some(each_edge)) => each_edge,
            _ => &mut self.kernel,
        };
        let _attached = engine.attach(&self.network)?;
        self.measure(form)
    }

    fn peer(&mut self, experiment: usize, run: usize) -> Result<Vec<f64>, String> {
        let Case { engine, form, exponent, .. } = self.cases[experiment];
        self.draw(exponent, run);
        if engine == Engine::EachEdge {
            let _attached = self.kernel.attach(&self.network)?;
            return self.measure(form);
        }
        self.measure(Form::Ip)
    }

    fn goals(&self, rows: &[Row]) -> Vec<Goal> {
        let goal = |case: &Case| {
            let row = rows.iter().find(|row| row.figure.case == case.name());
            Some(Goal {
                name: format!("{}: times as many as Linux IPv4", case.name()),
                bound: Bound::AtLeast(case.goal()?),
                measured: row.map_or(f64::NAN, Row::ratio),
            })
        };
        self.cases.iter().filter_map(goal).collect()
    }
}
