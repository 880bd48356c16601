//! `weft bench route-peers`: a thousand peers with a hundred routes each, all of which are told to all others: by one policy,
//! by one for each peer, as a route server has them, and the same to peers that take all routes to a prefix (ADD-PATH).
//!
//! From an attempt to open the first session until all are open, with the start of the router; from the first route
//! until every peer has been told of those of all others; then, one route at a time, until all others are told of it; and
//! the memory that takes.

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
const ONE: &str = "one more, until all others are told of it, median";
const MEMORY: &str = "peak memory";

/// What peers are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Telling {
    /// All the same.
    Alike,
    /// Each what a policy of its own says.
    ByPolicy,
    /// Each what a policy of its own says, and all routes to a prefix.
    ByPolicyAllPaths,
}

/// By experiment.
const TELLINGS: [Telling; 3] = [Telling::Alike, Telling::ByPolicy, Telling::ByPolicyAllPaths];

/// Runs that make sense.
const MOST_RUNS: usize = 5;

/// The benchmark.
pub(in super::super) struct RoutePeers;

struct Crowd {
    /// But for what peers are told, which is an experiment's.
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
        Duration::from_secs(if plan.quick { 45 } else { 360 }) * plan.runs.min(MOST_RUNS) as u32
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Session>, String> {
        super::check_root()?;
        let peers = if plan.quick { 200 } else { 1_000 };
        Ok(Box::new(Crowd { args: CrowdArgs { peers, routes: 100, paths: false } }))
    }
}

impl Crowd {
    fn case(&self, telling: Telling, what: &str) -> String {
        let CrowdArgs { peers, routes, .. } = self.args;
        let how = match telling {
            Telling::Alike => "",
            Telling::ByPolicy => ", a policy for each",
            Telling::ByPolicyAllPaths => ", ADD-PATH and a policy for each",
        };
        format!("{peers} peers with {routes} routes each{how}: {what}")
    }

    fn measure(&self, kind: Kind, telling: Telling) -> Result<Vec<f64>, String> {
        let has_policy = telling != Telling::Alike;
        let hears_paths = telling == Telling::ByPolicyAllPaths;
        let peer = |number| Peer { has_policy, hears_paths, ..Peer::of_crowd(number) };
        let args = CrowdArgs { paths: hears_paths, ..self.args };
        let peers: Vec<_> = (0..args.peers).map(peer).collect();
        within_one(&peers, || {
            let router = Router::start(kind, &peers)?;
            talk(&router, args).map_err(|error| match router.said() {
                said if said.is_empty() => format!("{}: {error}", kind.name()),
                said => format!("{}: {error}; it has said:\n{said}", kind.name()),
            })
        })
    }
}

/// Starts the peers, and has them exchange their routes.
fn talk(router: &Router, args: CrowdArgs) -> Result<Vec<f64>, String> {
    let weft = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new("ip");
    command.args(["netns", "exec", PEERS]).arg(weft).args(["bench-bgp-end", "crowd"]);
    command.arg("--peers").arg(args.peers.to_string());
    command.arg("--routes").arg(args.routes.to_string());
    command.args(args.paths.then_some("--paths"));
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let child = child.map_err(|error| format!("the peers cannot be started: {error}"))?;
    let mut crowd = Running(child);
    let output = crowd.0.stdout.take().ok_or("the peers report nothing")?;
    let mut lines = BufReader::new(output).lines();
    let mut next = |word: &str| {
        let line = lines.next().and_then(Result::ok);
        let number = line.as_ref().and_then(|line| line.strip_prefix(word)?.trim().parse().ok());
        number.ok_or_else(|| "the peers have ended before they were done".to_owned())
    };
    let values: [f64; 3] = [next("open")?, next("told")?, next("one")?];
    let memory = peak(&router.memory());
    // They read their input until it ends.
    drop(crowd.0.stdin.take());
    Ok([&values[..], &[memory]].concat())
}

impl Session for Crowd {
    fn experiments(&self) -> Vec<Experiment> {
        let figures = [
            (OPEN, "ms", "Until all are told"),
            (TOLD, "ms", "Until all are told"),
            (ONE, "ms", "One route"),
            (MEMORY, "MiB", "Peak memory"),
        ];
        let experiment = |telling| {
            let figure = |(what, unit, panel)| {
                let case = self.case(telling, what);
                Figure { case, unit, panel }
            };
            Experiment {
                peer_name: Kind::Bird { has_kernel: true }.name().to_owned(),
                figures: figures.map(figure).into(),
                most_runs: Some(MOST_RUNS),
            }
        };
        TELLINGS.map(experiment).into()
    }

    fn weft(&mut self, experiment: usize, _: usize) -> Result<Vec<f64>, String> {
        self.measure(Kind::Weft, TELLINGS[experiment])
    }

    fn peer(&mut self, experiment: usize, _: usize) -> Result<Vec<f64>, String> {
        self.measure(Kind::Bird { has_kernel: true }, TELLINGS[experiment])
    }

    /// It is stated, and held against nothing.
    fn goals(&self, _: &[Row]) -> Vec<Goal> {
        Vec::new()
    }
}
