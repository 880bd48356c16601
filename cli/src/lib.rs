//! The weft binary and the component registry.
//!
//! This is the one place that knows every architecture: `registry` lists the components that a node
//! can be made of, `node` turns a node file into a running node, and the other modules are the
//! commands, one each. Everything else is in the crates below.

mod args;
mod away;
mod bench;
mod bgp;
mod call;
mod configure;
mod demo;
mod doctor;
mod generate;
mod glass;
mod http;
mod lab;
mod metrics;
mod node;
mod output;
mod policy;
mod profile;
mod registry;
mod show;
mod xia;
mod xip;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

pub use node::{NodeFileError, node_schema, read_node_file};
pub use registry::principals;

use args::{Args, COMPONENT, Command, ComponentLine};
use output::Outcome;

/// Runs the command line `args` (with the program's name first) to its end.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<_> = args.into_iter().collect();
    let done = match args.get(1) {
        Some(verb) if verb == COMPONENT => {
            let line = ComponentLine::try_parse_from(&args[1..]);
            node::component::run(&line.unwrap_or_else(|error| error.exit()).args)
        }
        _ => run_command(Args::try_parse_from(args).unwrap_or_else(|error| error.exit()).command),
    };
    match done {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            output::say(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs what people can ask for.
fn run_command(command: Command) -> Outcome {
    match command {
        Command::Call(args) => call::run(&args),
        Command::Configure(args) => configure::run(&args),
        Command::Completion(args) => generate::completion(&args),
        Command::Man(args) => generate::man(&args),
        Command::LookingGlass(args) => glass::run(&args),
        Command::Metrics(args) => metrics::run(&args),
        Command::Away(args) => away::run(&args),
        Command::Policy(command) => policy::run(&command),
        Command::Profile(command) => profile::run(&command),
        Command::Bench(args) => bench::run(&args),
        Command::BenchFlowSource(args) => bench::run_source(&args),
        Command::BenchBgpEnd(args) => bench::run_end(&args),
        Command::Doctor(doctor) => doctor::run(&doctor),
        Command::Run(run) => node::run(&run),
        Command::Show(command) => show::run(&command),
        Command::Bgp(command) => bgp::run(&command),
        Command::Demo(args) => demo::run(&args),
        Command::Lab(command) => lab::run(&command),
        Command::Xia(command) => xia::run(&command),
        Command::Xip(args) => xip::run(&args),
    }
}
