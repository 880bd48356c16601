//! `weft bench route-origins`: a cache of the RPKI says who may announce what, and routes that are invalid by that go.
//!
//! One peer has announced a table, another one was told of it. Then the cache has 600,000 payloads at once, of which some
//! make routes of the table invalid: the clock runs from just before it says that there is something new until the
//! other peer was told that all of these are gone. Then, with one payload at a time, until it was told that one route is. What the
//! router has taken of memory is with both.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use super::super::measure::{Bench, Experiment, Figure, Plan, Program, Session};
use super::super::program::Program as Running;
use super::super::report::{Goal, Row};
use super::super::samples::Samples;
use super::Time;
use super::cache::{Order, payloads};
use super::load::{FULL, TABLE, peak};
use super::network::{PEERS, Peer, within};
use super::remote::Speaker;
use super::router::{BIRD, Kind, Router};
use super::scene::{PATIENCE, milliseconds};
use super::speaker::Order as Say;

const ALL: &str = "all payloads, until the other peer knows what has gone";
const ONE: &str = "one payload, until the other peer knows, median";
const MEMORY: &str = "peak memory";

/// Payloads: the RPKI has some hundred thousand.
const PAYLOADS: usize = 600_000;
/// Routes that become invalid one by one, and how long it is quiet before.
const SINGLES: usize = 50;
const QUIET: Duration = Duration::from_millis(20);
const PEER: Kind = Kind::Bird { has_kernel: true };
/// Runs that make sense.
const MOST_RUNS: usize = 5;

/// The benchmark.
pub(in super::super) struct RouteOrigins;

/// Routes of the table, by experiment.
struct Tables(Vec<usize>);

impl Bench for RouteOrigins {
    fn name(&self) -> &'static str {
        "route-origins"
    }

    fn summary(&self) -> &'static str {
        "what a cache of the RPKI says, until routes that are invalid by it are gone, beside BIRD"
    }

    fn needs(&self, _: &Plan) -> Vec<Program> {
        vec![BIRD]
    }

    fn duration(&self, plan: &Plan) -> Duration {
        Duration::from_secs(if plan.quick { 25 } else { 90 }) * plan.runs.min(MOST_RUNS) as u32
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Session>, String> {
        super::check_root()?;
        Ok(Box::new(Tables(if plan.quick { vec![TABLE] } else { vec![TABLE, FULL] })))
    }
}

impl Session for Tables {
    fn experiments(&self) -> Vec<Experiment> {
        let figures =
            [(ALL, "ms", "All payloads"), (ONE, "ms", "One payload"), (MEMORY, "MiB", "Memory")];
        let experiment = |count: &usize| Experiment {
            peer_name: PEER.name().to_owned(),
            figures: figures
                .map(|(what, unit, panel)| {
                    let case = format!("{count} routes, {PAYLOADS} payloads: {what}");
                    Figure { case, unit, panel }
                })
                .into(),
            most_runs: Some(MOST_RUNS),
        };
        self.0.iter().map(experiment).collect()
    }

    fn weft(&mut self, experiment: usize, _: usize) -> Result<Vec<f64>, String> {
        measure(Kind::Weft, self.0[experiment])
    }

    fn peer(&mut self, experiment: usize, _: usize) -> Result<Vec<f64>, String> {
        measure(PEER, self.0[experiment])
    }

    /// It is stated, and held against nothing.
    fn goals(&self, _: &[Row]) -> Vec<Goal> {
        Vec::new()
    }
}

fn measure(kind: Kind, count: usize) -> Result<Vec<f64>, String> {
    let cache = Peer { tells_payloads: true, ..Peer::behind(3, false) };
    let peers = [Peer::behind(1, false), Peer::behind(2, true), cache];
    within(&peers, || {
        let mut cache = Cache::start(cache, count)?;
        let router = Router::start(kind, &peers)?;
        talk(&router, &peers, &mut cache, count).map_err(|error| match router.said() {
            said if said.is_empty() => format!("{}: {error}", kind.name()),
            said => format!("{}: {error}; it has said:\n{said}", kind.name()),
        })
    })
}

fn talk(
    router: &Router,
    peers: &[Peer; 3],
    cache: &mut Cache,
    count: usize,
) -> Result<Vec<f64>, String> {
    let (_, invalid) = payloads(count, PAYLOADS);
    let (mut injector, mut sink) = (Speaker::start(peers[0])?, Speaker::start(peers[1])?);
    injector.table(count)?;
    sink.connect()?;
    injector.connect()?;
    cache.next("asked")?;
    sink.order(&Say::Await(count))?;
    injector.order(&Say::Send)?;
    sink.reached(PATIENCE)?;
    for probe in 0..SINGLES {
        injector.announce(probe)?;
        sink.wait_for(probe, PATIENCE)?;
    }
    sink.order(&Say::Await(count - invalid))?;
    let said = cache.says(Order::Everything)?;
    let all = sink.reached(PATIENCE)?.since(said);
    let mut singles = Vec::new();
    for probe in 0..SINGLES {
        thread::sleep(QUIET);
        let said = cache.says(Order::Probe(probe))?;
        singles.push(milliseconds(sink.wait_for_withdrawal(probe, PATIENCE)?.since(said)));
    }
    let memory = peak(&router.memory());
    Ok(vec![milliseconds(all), Samples::new(singles).median(), memory])
}

/// The cache; it ends with this.
struct Cache {
    program: Running,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Cache {
    fn start(peer: Peer, routes: usize) -> Result<Self, String> {
        let weft = std::env::current_exe().map_err(|error| error.to_string())?;
        let listen = SocketAddr::new(peer.address.into(), Peer::CACHE_PORT);
        let mut command = Command::new("ip");
        command.args(["netns", "exec", PEERS]).arg(weft).args(["bench-bgp-end", "cache"]);
        command.arg("--listen").arg(listen.to_string());
        command.arg("--routes").arg(routes.to_string());
        command.arg("--payloads").arg(PAYLOADS.to_string());
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let child = child.map_err(|error| format!("the cache cannot be started: {error}"))?;
        let mut program = Running(child);
        let output = program.0.stdout.take().ok_or("the cache reports nothing")?;
        Ok(Self { program, lines: BufReader::new(output).lines() })
    }

    /// Has it say something; just before when.
    fn says(&mut self, order: Order) -> Result<Time, String> {
        let orders = self.program.0.stdin.as_mut().ok_or("the cache takes no orders")?;
        writeln!(orders, "{order}").map_err(|error| format!("the cache is gone: {error}"))?;
        self.next("said").map(Time)
    }

    /// The number of the next report of this kind.
    fn next(&mut self, word: &str) -> Result<u64, String> {
        loop {
            let line = self.lines.next().and_then(Result::ok).ok_or("the cache has ended")?;
            if let Some(number) = line.strip_prefix(word) {
                return number.trim().parse().map_err(|_| format!("the cache says `{line}`"));
            }
        }
    }
}
