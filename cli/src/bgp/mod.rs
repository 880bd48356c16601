//! `weft bgp`: what is done with BGP besides configuring and showing it.

mod clear;
mod dump;
mod replay;
mod sample;
pub(crate) mod session;
mod table;

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use crate::args::NodeArgs;
use crate::output::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum BgpCommand {
    /// End the session with a peer, which begins again at once; or only have routes exchanged, or used, again
    #[command(
        after_help = "Examples:\n  weft bgp clear 192.0.2.2\n  weft bgp clear 192.0.2.2 --hard\n  weft bgp clear 192.0.2.2 --soft in\n  \
        weft bgp clear 2001:db8::2 --soft out --node r1\n  weft bgp clear 192.0.2.2 --damping\n  \
        weft bgp clear --as 65001 --soft in\n  weft bgp clear --group customers\n  weft bgp clear --all --soft out"
    )]
    Clear(ClearArgs),
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
    /// Open a session with a router, and announce what a file in the form of MRT holds
    #[command(after_help = "Examples:\n  weft bgp replay table.mrt --to 192.0.2.1 --as 65001\n  \
        weft bgp replay table.mrt --to 192.0.2.1 --as 65001 --from-peer 198.51.100.2 --hold 10min\n  \
        zcat rib.20261101.0000.gz | weft bgp replay - --to 2001:db8::1 --as 65001 --next-hop 192.0.2.7")]
    Replay(replay::ReplayArgs),
    /// Write a synthetic table, as routers and their tools read it, to standard output
    #[command(after_help = "Examples:\n  weft bgp sample 10000 --form bird > routes\n  \
        weft bgp sample 100000 --form mrt > table.mrt && weft bgp table table.mrt\n  \
        weft bgp sample 1000 --first 2001:db8::/48 --form exabgp --as 65001")]
    Sample(sample::SampleArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ClearArgs {
    /// The peer's address
    #[arg(required_unless_present_any = ["all", "remote_as", "group"])]
    peer: Option<IpAddr>,
    /// All peers; those with a session if it goes on
    #[arg(long, conflicts_with_all = ["peer", "remote_as", "group"])]
    all: bool,
    /// All peers of this autonomous system
    #[arg(long = "as", value_name = "AS", conflicts_with = "peer")]
    remote_as: Option<u32>,
    /// All peers that are configured as a group
    #[arg(long, value_name = "NAME", conflicts_with = "peer")]
    group: Option<String>,
    /// The session goes on: the peer is asked to announce everything again, or is told everything again
    #[arg(long)]
    soft: Option<Direction>,
    /// The session goes on: its routes that are damped are used again, and it is forgotten how they have come and gone
    #[arg(long, conflicts_with = "soft")]
    damping: bool,
    /// Routes go on both sides, although graceful restart would keep them: a hard reset (RFC 8538)
    #[arg(long, conflicts_with_all = ["soft", "damping"])]
    hard: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Direction {
    /// What the peer announces
    In,
    /// What the peer is told
    Out,
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
        BgpCommand::Clear(args) => clear::run(args),
        BgpCommand::Dump(args) => dump::run(args),
        BgpCommand::Table(args) => table::run(args),
        BgpCommand::Replay(args) => replay::run(args),
        BgpCommand::Sample(args) => sample::run(args),
    }
}
