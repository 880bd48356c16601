//! `weft bench route-peers`: a thousand peers with a hundred routes each, all of which are told to all others.
//!
//! From an attempt to open the first session until all are open, with the start of the router; from the first route
//! until every peer has been told of those of all others; and the memory that takes.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::super::measure::{Bench, Experiment, Figure, Plan, Program, Session};
use super::super::program::Program as Running;
use super::super::report::{Goal, Row};
use super::crowd::CrowdArgs;
use super::load::peak;
use super::network::{PEERS, Peer, within_one};
use super::router::{BIRD, Kind, Router};

const OPEN: &str = "until all sessions are open";
const TOLD: &str = "until all are told of everything";
const MEMORY: &str = "peak memory";
/// Runs that make sense.
const MOST_RUNS: usize = 5;

/// The benchmark.
pub(in super::super) struct RoutePeers;

struct Crowd {
    args: CrowdArgs,
}

impl Bench for RoutePeers {
    fn name(&self) -> &'static str {
        "route-peers"
    }

    fn summary(&self) -> &'static str {
        "a thousand peers of BGP whose routes are told to all others, beside BIRD"
    }

    fn needs(&self, _: &Plan) -> Vec<Program> {
        vec![BIRD]
    }

    fn duration(&self, plan: &Plan) -> Duration {
        Duration::from_secs(if plan.quick { 15 } else { 120 }) * plan.runs.min(MOST_RUNS) as u32
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Session>, String> {
        super::check_root()?;
        let peers = if plan.quick { 200 } else { 1_000 };
        Ok(Box::new(Crowd { args: CrowdArgs { peers, routes: 100 } }))
    }
}

impl Crowd {
    fn case(&self, what: &str) -> String {
        format!("{} peers with {} routes each: {what}", self.args.peers, self.args.routes)
    }

    fn measure(&self, kind: Kind) -> Result<Vec<f64>, String> {
        let peers: Vec<_> = (0..self.args.peers).map(Peer::of_crowd).collect();
        within_one(&peers, || {
            let router = Router::start(kind, &peers)?;
            self.talk(&router).map_err(|error| match router.said() {
                said if said.is_empty() => format!("{}: {error}", kind.name()),
                said => format!("{}: {error}; it has said:\n{said}", kind.name()),
            })
        })
    }

    fn talk(&self, router: &Router) -> Result<Vec<f64>, String> {
        let weft = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new("ip");
        command.args(["netns", "exec", PEERS]).arg(weft).args(["bench-bgp-end", "crowd"]);
        command.arg("--peers").arg(self.args.peers.to_string());
        command.arg("--routes").arg(self.args.routes.to_string());
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let child = child.map_err(|error| format!("the peers cannot be started: {error}"))?;
        let mut crowd = Running(child);
        let output = crowd.0.stdout.take().ok_or("the peers report nothing")?;
        let mut lines = BufReader::new(output).lines();
        let mut next = |word: &str| {
            let line = lines.next().and_then(Result::ok);
            let number =
                line.as_ref().and_then(|line| line.strip_prefix(word)?.trim().parse().ok());
            number.ok_or_else(|| "the peers have ended before they were done".to_owned())
        };
        let values: [f64; 2] = [next("open")?, next("told")?];
        let memory = peak(&router.memory());
        // They read their input until it ends.
        drop(crowd.0.stdin.take());
        Ok([&values[..], &[memory]].concat())
    }
}

impl Session for Crowd {
    fn experiments(&self) -> Vec<Experiment> {
        let figures = [
            (OPEN, "ms", "Until all are told"),
            (TOLD, "ms", "Until all are told"),
            (MEMORY, "MiB", "Peak memory"),
        ];
        let figure = |(what, unit, panel)| Figure { case: self.case(what), unit, panel };
        vec![Experiment {
            peer_name: Kind::Bird { has_kernel: true }.name().to_owned(),
            figures: figures.map(figure).into(),
            most_runs: Some(MOST_RUNS),
        }]
    }

    fn weft(&mut self, _: usize, _: usize) -> Result<Vec<f64>, String> {
        self.measure(Kind::Weft)
    }

    fn peer(&mut self, _: usize, _: usize) -> Result<Vec<f64>, String> {
        self.measure(Kind::Bird { has_kernel: true })
    }

    /// It is stated, and held against nothing.
    fn goals(&self, _: &[Row]) -> Vec<Goal> {
        Vec::new()
    }
}
