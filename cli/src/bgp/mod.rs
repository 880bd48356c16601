//! `weft bgp`: what is done with BGP besides configuring and showing it.

mod dump;
mod table;

use std::path::PathBuf;

use clap::Subcommand;

use crate::args::NodeArgs;
use crate::output::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum BgpCommand {
    /// Write all paths that peers have announced to a file, in the form of MRT (RFC 6396)
    #[command(
        after_help = "Examples:\n  weft bgp dump table.mrt\n  weft bgp dump - | gzip > table.mrt.gz\n  \
        weft bgp dump table.mrt --node r1 --json"
    )]
    Dump(DumpArgs),
    /// Print a file in the form of MRT: tables, and messages as they came
    #[command(
        after_help = "Examples:\n  weft bgp table table.mrt\n  weft bgp table table.mrt --json\n  \
        zcat rib.20261101.0000.gz | weft bgp table -"
    )]
    Table(TableArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct DumpArgs {
    /// The file; `-` for standard output
    file: PathBuf,
    /// Print what was written as JSON, to standard error if the file is standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TableArgs {
    /// The file; `-` for standard input
    file: PathBuf,
    /// Print JSON, a line for each record
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: &BgpCommand) -> Outcome {
    match command {
        BgpCommand::Dump(args) => dump::run(args),
        BgpCommand::Table(args) => table::run(args),
    }
}
