//! The command line: every command, option and help text.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::xia::XiaCommand;

/// One router and host stack for several Internet architectures.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a node in the foreground
    #[command(after_help = "Examples:\n  weft run node.conf\n  weft run --check node.conf")]
    Run(RunArgs),
    /// Commands of XIA: addresses, keys, applications, live changes
    #[command(subcommand)]
    Xia(XiaCommand),
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// The node file
    pub(crate) file: PathBuf,
    /// The node's run directory [default: /run/weft/NAME, or $XDG_RUNTIME_DIR/weft/NAME]
    #[arg(long, env = "WEFT_RUN_DIR")]
    pub(crate) run_dir: Option<PathBuf>,
    /// Check the node file and do nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// Report details for debugging
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// Which node a command talks to.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct NodeArgs {
    /// The node, by name [default: the only one that runs on this machine]
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// The node's run directory
    #[arg(long, env = "WEFT_RUN_DIR", conflicts_with = "node")]
    pub(crate) run_dir: Option<PathBuf>,
}
