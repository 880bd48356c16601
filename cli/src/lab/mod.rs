//! `weft lab …`: networks of nodes on this machine, or in the simulator.

mod host;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use weft_lab::{EngineKind, Lab, Log, Options, Outcome as LabOutcome, Variables, run as run_lab};

pub(crate) use host::WeftHost;

use crate::output::Outcome;

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
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

/// Runs a command of the lab.
pub(crate) fn run(command: &LabCommand) -> Outcome {
    match command {
        LabCommand::Run(args) => run_scenario(args),
        LabCommand::Check(args) => {
            args.lab()?;
            println!("{}: no mistakes found", args.file.display());
            Ok(0)
        }
    }
}

fn run_scenario(args: &RunArgs) -> Outcome {
    let lab = args.file.lab()?;
    let options = Options {
        engine: args.engine,
        scenario: args.scenario.clone(),
        output: args.output.clone(),
    };
    let outcome = run_lab(&lab, &options, &WeftHost::new()?, &mut Log::new(std::io::stderr()))
        .map_err(|error| error.to_string())?;
    if args.json {
        let text = serde_json::to_string_pretty(&outcome)
            .map_err(|error| format!("the outcome cannot be written as JSON: {error}"))?;
        println!("{text}");
    } else {
        print_outcome(&outcome);
    }
    Ok(u8::from(!outcome.succeeded()))
}

fn print_outcome(outcome: &LabOutcome) {
    let seconds = outcome.time_ns as f64 / 1e9;
    let LabOutcome { lab, scenario, engine, seed, output, .. } = outcome;
    match &outcome.error {
        None => println!("{lab}/{scenario} succeeded in {seconds:.3} s ({engine}, seed {seed})"),
        Some(error) => println!("{lab}/{scenario} failed after {seconds:.3} s: {error}"),
    }
    if let Some(hash) = &outcome.trace_hash {
        println!("trace hash {hash}");
    }
    println!("files and logs are in {}", output.display());
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
