//! `weft lab …`: networks of nodes on this machine, or in the simulator.

mod host;
mod nodes;
pub(crate) mod push;
mod tree;

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::Value;
use weft_lab::{EngineKind, Lab, Log, Options, Outcome as LabOutcome, Variables, run as run_lab};

pub(crate) use host::WeftHost;

use crate::output::{Outcome, json_lines, plain_lines, print_lines, say};

/// Commands of the lab.
#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Build a lab, run one of its scenarios, and take the lab down
    #[command(after_help = "Examples:\n  weft lab run examples/push.lab --scenario three-node\n  \
        weft lab run examples/push.lab --scenario single-filter --engine sim --set FILE=/etc/services")]
    Run(RunArgs),
    /// Check a lab file and do nothing
    #[command(after_help = "Example:\n  weft lab check examples/push.lab")]
    Check(FileArgs),
    /// Build a lab, start its nodes, and leave it there
    #[command(
        after_help = "Example:\n  weft lab up examples/push.lab && weft lab exec client1 -- weft xia addr"
    )]
    Up(UpArgs),
    /// Take a lab down that `up` has built
    #[command(after_help = "Example:\n  weft lab down")]
    Down(LabArgs),
    /// List the labs that there are, with their nodes and processes
    #[command(after_help = "Example:\n  weft lab status --json")]
    Status(StatusArgs),
    /// Run a command on a node of a lab
    #[command(after_help = "Examples:\n  weft lab exec r1 -- weft xia show counters\n  \
        weft lab exec ip1 -- ip route")]
    Exec(ExecArgs),
    /// Write what passes a lab's interfaces into a pcapng file, until it is interrupted
    #[command(after_help = "Examples:\n  weft lab capture all.pcapng\n  \
        weft lab capture r1.pcapng r1 client1:eth0")]
    Capture(CaptureArgs),
    /// Record the life of packets on all nodes, or show the life of one
    #[command(after_help = "Examples:\n  weft lab trace --one-in 100     # begin to record\n  \
        weft lab trace                  # show one packet's life")]
    Trace(TraceArgs),
    /// Write the lab file of a multicast tree of any size to standard output
    #[command(
        after_help = "Example:\n  weft lab tree --fan-out 10 --depth 3 > tree.lab && weft lab run tree.lab --engine sim"
    )]
    Tree(tree::TreeArgs),
    /// Join interfaces by links of this process; started by the lab itself
    #[command(hide = true, after_help = "Example:\n  weft lab links links.json")]
    Links {
        /// Which interfaces, as the lab has written it down
        config: PathBuf,
    },
    /// Start a router of others and end it with this process; started by the lab itself
    #[command(hide = true, after_help = "Example:\n  weft lab router r1.json")]
    Router {
        /// Which one, as the lab has written it down
        config: PathBuf,
    },
}

/// Which lab.
#[derive(Debug, clap::Args)]
pub(crate) struct LabArgs {
    /// The lab, by the name that `weft lab status` shows [default: the only one]
    #[arg(long)]
    lab: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    file: FileArgs,
    /// Where files and logs go [default: lab-out/LAB]
    #[arg(long)]
    output: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExecArgs {
    #[command(flatten)]
    lab: LabArgs,
    /// The node
    node: String,
    /// The command; `weft` stands for this program
    #[arg(required = true, num_args = 1.., trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CaptureArgs {
    #[command(flatten)]
    lab: LabArgs,
    /// The file to write
    file: PathBuf,
    /// Which interfaces, as NODE or NODE:INTERFACE [default: all]
    interfaces: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TraceArgs {
    #[command(flatten)]
    lab: LabArgs,
    /// Begin to record one packet in this many, the same ones on every node
    #[arg(long)]
    one_in: Option<NonZeroU64>,
    /// Show this packet [default: the one that was seen most often]
    #[arg(long)]
    packet: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FileArgs {
    /// The lab file
    file: PathBuf,
    /// Give a variable of the lab file a value; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = parse_variable)]
    variables: Vec<(String, String)>,
    /// Take another seed than that of the file
    #[arg(long)]
    seed: Option<u64>,
}

impl FileArgs {
    fn lab(&self) -> Result<Lab, String> {
        load(&self.file, self.variables.iter().cloned().collect(), self.seed)
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    file: FileArgs,
    /// The scenario [default: the one called `default`, or the only one]
    #[arg(long)]
    scenario: Option<String>,
    /// In what the lab is built: network namespaces (real packets) or the simulator
    #[arg(long, default_value = "netns", value_parser = parse_engine)]
    engine: EngineKind,
    /// Where files and logs go [default: lab-out/LAB]
    #[arg(long)]
    output: Option<PathBuf>,
    /// Write all packets to this pcapng file
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

/// Runs a command of the lab.
pub(crate) fn run(command: &LabCommand) -> Outcome {
    match command {
        LabCommand::Run(args) => run_scenario(args),
        LabCommand::Check(args) => check(args),
        LabCommand::Up(args) => up(args),
        LabCommand::Down(args) => {
            let name = weft_lab::down(args.lab.as_deref()).map_err(|error| error.to_string())?;
            print_lines([format!("lab {name} is down")])?;
            Ok(0)
        }
        LabCommand::Status(args) => status(args),
        LabCommand::Exec(args) => {
            let host = WeftHost::new()?;
            let failed = weft_lab::exec(args.lab.lab.as_deref(), &args.node, &args.command, &host);
            match failed {
                Ok(never) => match never {},
                Err(error) => Err(error.to_string()),
            }
        }
        LabCommand::Capture(args) => capture(args),
        LabCommand::Trace(args) => trace(args),
        LabCommand::Tree(args) => {
            tree::print(args)?;
            Ok(0)
        }
        LabCommand::Links { config } => {
            weft_lab::run_links(config).map_err(|error| error.to_string())?;
            Ok(0)
        }
        LabCommand::Router { config } => {
            weft_lab::run_router(config).map_err(|error| error.to_string())
        }
    }
}

/// Becomes root of a user namespace, if this process is not root and needs to be.
pub(crate) fn become_root(engine: EngineKind) -> Result<(), String> {
    if engine == EngineKind::Sim || weft_lab::is_root() {
        return Ok(());
    }
    match weft_lab::enter_user_namespace() {
        Ok(never) => match never {},
        Err(error) => Err(error.to_string()),
    }
}

fn check(args: &FileArgs) -> Outcome {
    let lab = args.lab()?;
    weft_lab::check(&lab, &WeftHost::new()?).map_err(|errors| errors.to_string())?;
    print_lines([format!("{}: no mistakes found", args.file.display())])?;
    Ok(0)
}

fn up(args: &UpArgs) -> Outcome {
    if !weft_lab::is_root() {
        return Err("only root can build a lab that stays, as nobody else could enter it again; \
                    `weft lab run` works without root"
            .to_owned());
    }
    let lab = args.file.lab()?;
    let options = Options { output: args.output.clone(), ..Options::default() };
    let name = weft_lab::up(&lab, &options, &WeftHost::new()?, &mut Log::new(std::io::stderr()))
        .map_err(|error| error.to_string())?;
    print_lines([name])?;
    Ok(0)
}

fn status(args: &StatusArgs) -> Outcome {
    let labs = serde_json::to_value(weft_lab::labs().map_err(|error| error.to_string())?)
        .map_err(|error| format!("the status cannot be written as JSON: {error}"))?;
    let lines = match (args.json, labs.as_array().is_some_and(Vec::is_empty)) {
        (true, _) => json_lines(&labs),
        (false, true) => vec!["there are no labs".to_owned()],
        (false, false) => lab_lines(&labs),
    };
    print_lines(lines)?;
    Ok(0)
}

/// A heading for each lab, and its nodes and processes below.
fn lab_lines(labs: &Value) -> Vec<String> {
    labs.as_array().into_iter().flatten().flat_map(plain_lines).collect()
}

fn capture(args: &CaptureArgs) -> Outcome {
    let ready = || say("capturing; end with Ctrl-C");
    let packets = weft_lab::capture(args.lab.lab.as_deref(), &args.interfaces, &args.file, ready)
        .map_err(|error| error.to_string())?;
    print_lines([format!("{packets} packets written to {}", args.file.display())])?;
    Ok(0)
}

fn trace(args: &TraceArgs) -> Outcome {
    let host = WeftHost::new()?;
    let lab = args.lab.lab.as_deref();
    if let Some(one_in) = args.one_in {
        weft_lab::start_trace(lab, one_in, &host).map_err(|error| error.to_string())?;
        return Ok(0);
    }
    let visits = weft_lab::visits(lab, &host).map_err(|error| error.to_string())?;
    let life = match &args.packet {
        None => weft_lab::trace::longest_life(&visits),
        Some(packet) => weft_lab::trace::life(&visits, packet)
            .ok_or_else(|| format!("no node has recorded a packet {packet}"))?,
    };
    print_lines([life.to_string()])?;
    Ok(0)
}

fn run_scenario(args: &RunArgs) -> Outcome {
    become_root(args.engine)?;
    let lab = args.file.lab()?;
    let options = Options {
        engine: args.engine,
        scenario: args.scenario.clone(),
        output: args.output.clone(),
        capture: args.capture.clone(),
    };
    let outcome = run_lab(&lab, &options, &WeftHost::new()?, &mut Log::new(std::io::stderr()))
        .map_err(|error| error.to_string())?;
    if args.json {
        let text = serde_json::to_string_pretty(&outcome)
            .map_err(|error| format!("the outcome cannot be written as JSON: {error}"))?;
        print_lines([text])?;
    } else {
        print_lines(outcome_lines(&outcome))?;
    }
    match &outcome.error {
        None => Ok(0),
        Some(error) => {
            let (LabOutcome { lab, scenario, .. }, seconds) = (&outcome, seconds(&outcome));
            Err(format!("{lab}/{scenario} failed after {seconds:.3} s: {error}"))
        }
    }
}

fn seconds(outcome: &LabOutcome) -> f64 {
    outcome.time_ns as f64 / 1e9
}

/// What came of a scenario, except for why it failed.
fn outcome_lines(outcome: &LabOutcome) -> Vec<String> {
    let LabOutcome { lab, scenario, engine, seed, output, .. } = outcome;
    let mut lines = Vec::new();
    if outcome.succeeded() {
        let seconds = seconds(outcome);
        lines.push(format!("{lab}/{scenario} succeeded in {seconds:.3} s ({engine}, seed {seed})"));
    }
    lines.extend(outcome.trace_hash.as_ref().map(|hash| format!("trace hash {hash}")));
    lines.push(format!("files and logs are in {}", output.display()));
    lines
}

/// Reads a lab file.
pub(crate) fn load(file: &Path, variables: Variables, seed: Option<u64>) -> Result<Lab, String> {
    let bytes = std::fs::read(file)
        .map_err(|error| format!("cannot read the lab file {}: {error}", file.display()))?;
    parse(&file.display().to_string(), &bytes, variables, seed)
}

/// Reads the text of a lab file.
pub(crate) fn parse(
    source: &str,
    bytes: &[u8],
    variables: Variables,
    seed: Option<u64>,
) -> Result<Lab, String> {
    let mut lab =
        Lab::parse_bytes(source, bytes, &variables).map_err(|errors| errors.to_string())?;
    if let Some(seed) = seed {
        lab.set_seed(seed);
    }
    Ok(lab)
}

fn parse_variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err(format!("`{text}` has no `=`; write NAME=VALUE")),
    }
}

fn parse_engine(text: &str) -> Result<EngineKind, String> {
    match text {
        "netns" => Ok(EngineKind::Netns),
        "sim" => Ok(EngineKind::Sim),
        _ => Err(format!("`{text}` is no engine; there are netns and sim")),
    }
}
