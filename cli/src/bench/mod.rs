//! `weft bench`: what weft costs, measured beside a peer in the same run.
//!
//! A benchmark is a [`Bench`] in a file or folder of its own and a line in [`BENCHES`]. It prepares a
//! [`Session`](measure::Session), whose experiments [`measure::measure`] runs in turn: weft, peer,
//! the next experiment, and all of them again, so that a machine which becomes slower in between
//! becomes so for both. The [`Report`] is printed as a table, and written as JSON
//! (`--json`) and as a drawing (`--plot`).

mod bare_routes;
mod bgp;
mod config;
mod directory;
mod fib;
mod flow;
mod killed;
mod link_state;
mod machine;
mod measure;
mod pings;
mod plot;
mod program;
mod report;
mod restart;
mod routing;
mod samples;
#[cfg(test)]
mod tests;
mod xia_push;
mod xip_attack;
mod xip_engine;
mod xip_forward;
mod xrl;
mod zfilter;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::output::{Outcome, print_lines, say};
use measure::{Bench, Measured, Plan, Program};
use report::{Detail, Report};

pub(crate) use bgp::{BgpEndArgs, run_end};
pub(crate) use flow::{SourceArgs, run_source};

/// All benchmarks.
const BENCHES: &[&dyn Bench] = &[
    &config::Config,
    &fib::Fib,
    &flow::FlowBench,
    &link_state::LinkState,
    &restart::Restart,
    &bgp::RouteLatency,
    &bgp::RouteLoad,
    &bgp::RouteOrigins,
    &bgp::RoutePeers,
    &bgp::RouteStorm,
    &routing::Routing,
    &xia_push::XiaPush,
    &xip_attack::XipAttack,
    &xip_engine::XipEngine,
    &xip_forward::XipForward,
    &xrl::XrlBench,
    &zfilter::ZFilterBench,
];

/// How long `--quick` may take, with something left for the report.
const QUICK_TIME: Duration = Duration::from_secs(55);
/// Runs of the whole set, as in the evaluation of Linux XIA (Machado et al., §6.3.1).
const FULL_RUNS: usize = 20;
const QUICK_RUNS: usize = 5;

#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// The benchmark
    #[arg(required_unless_present = "list")]
    name: Option<String>,
    /// List the benchmarks
    #[arg(long, conflicts_with = "name")]
    list: bool,
    /// Measure less, and end within a minute
    #[arg(long)]
    quick: bool,
    /// How often everything is measured [default: 20, with --quick 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: Option<u16>,
    /// Measure only cases whose name contains TEXT
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// xip-forward: take the destinations from FILE, an MRT dump of a routing table or a list of prefixes
    #[arg(long, value_name = "FILE")]
    prefixes: Option<PathBuf>,
    /// Write the result to FILE as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw the result to FILE, an SVG picture
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Measure even though this binary was built without optimisation
    #[arg(long)]
    debug_build: bool,
}

/// `weft bench`: measures, prints, and writes the files that were asked for.
pub(crate) fn run(args: &BenchArgs) -> Outcome {
    if args.list {
        let line = |bench: &&dyn Bench| format!("{:<13} {}", bench.name(), bench.summary());
        print_lines(BENCHES.iter().map(line))?;
        return Ok(0);
    }
    let bench = find(args.name.as_deref().unwrap_or_default())?;
    if cfg!(debug_assertions) && !args.debug_build {
        return Err("this weft was built without optimisation, its figures would mean nothing; \
                    build it with `make build`, or add --debug-build to measure nevertheless"
            .to_owned());
    }
    if args.prefixes.is_some() && bench.name() != xip_forward::NAME {
        return Err(format!("--prefixes is for {}, not for {}", xip_forward::NAME, bench.name()));
    }
    let plan = plan(args);
    check_programs(&bench.needs(&plan))?;
    // Files that cannot be written shall not be found out after half an hour of measuring.
    [&args.json, &args.plot].into_iter().flatten().try_for_each(|path| check_writable(path))?;
    announce(bench, &plan);
    let report = conduct(bench, &plan)?;
    print_lines(report.table())?;
    if let Some(path) = &args.json {
        write(path, &format!("{:#}\n", report.json()))?;
    }
    if let Some(path) = &args.plot {
        write(path, &plot::draw(&report))?;
    }
    Ok(0)
}

fn find(name: &str) -> Result<&'static dyn Bench, String> {
    BENCHES.iter().copied().find(|bench| bench.name() == name).ok_or_else(|| {
        let names: Vec<_> = BENCHES.iter().map(|bench| bench.name()).collect();
        format!("there is no benchmark `{name}`; there are: {}", names.join(", "))
    })
}

fn plan(args: &BenchArgs) -> Plan {
    let default = if args.quick { QUICK_RUNS } else { FULL_RUNS };
    Plan {
        quick: args.quick,
        runs: args.runs.map_or(default, usize::from),
        until: args.quick.then(|| Instant::now() + QUICK_TIME),
        only: args.only.clone(),
        prefixes: args.prefixes.clone(),
    }
}

/// Says beforehand what will happen and how long it takes.
fn announce(bench: &dyn Bench, plan: &Plan) {
    let duration = bench.duration(plan);
    let limit = if plan.quick { ", at most a minute" } else { "" };
    say(&format!(
        "{}: {} runs, about {} on an idle machine{limit}",
        bench.name(),
        plan.runs,
        text_of(duration)
    ));
}

fn text_of(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..120 => format!("{} s", seconds.max(1)),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

/// Measures and gathers what is to be reported.
fn conduct(bench: &dyn Bench, plan: &Plan) -> Result<Report, String> {
    // Described first: a benchmark may confine itself to a part of the machine.
    let machine = machine::describe();
    let mut session = bench.prepare(plan)?;
    let Measured { rows, failures } = measure::measure(&mut *session, plan)?;
    let mut goals = session.goals(&rows);
    if plan.only.is_some() {
        // Some of them are about cases that were left out.
        goals.retain(|goal| goal.measured.is_finite());
    }
    let mut details = session.details();
    if !failures.is_empty() {
        let (title, json) = ("peers that have failed".to_owned(), json!(failures));
        details.push(Detail { title, lines: failures, json });
    }
    Ok(Report { bench: bench.name(), machine, rows, goals, details })
}

/// Checks that the programs of others are there.
fn check_programs(programs: &[Program]) -> Result<(), String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    for Program { name, package } in programs {
        if !std::env::split_paths(&path).any(|folder| folder.join(name).is_file()) {
            return Err(format!(
                "the peer `{name}` is not installed; install the package {package}, \
                 for example with `apt-get install {package}`"
            ));
        }
    }
    Ok(())
}

fn check_writable(path: &Path) -> Result<(), String> {
    let opened = std::fs::OpenOptions::new().create(true).append(true).open(path);
    opened.map(drop).map_err(|error| cannot_write(path, &error))
}

fn write(path: &Path, content: &str) -> Result<(), String> {
    std::fs::write(path, content).map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> String {
    format!("cannot write {}: {error}; name another file", path.display())
}
