//! `weft show`: the state of a running node.
//!
//! Everything is asked by XRL of the processes themselves, so that `weft call` and Python get the same:
//! each view names the calls that it is made of. What is shown is made as JSON first; `table` makes columns of
//! it for people.

mod components;
mod counters;
mod interfaces;
mod processes;
mod table;

use std::time::Duration;

use clap::Subcommand;
use serde_json::Value;
use weft_xrl::{FINDER, Request, XrlError, finder};

use crate::args::NodeArgs;
use crate::call::Client;
use crate::node::find_callable;
use crate::output::{Outcome, json_lines, print_lines};

/// How long one component may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Subcommand)]
pub(crate) enum ShowCommand {
    /// The processes: what each does, how long, and what it uses
    #[command(after_help = "Examples:\n  weft show processes\n  weft show processes --json")]
    Processes(ViewArgs),
    /// The components that can be called, and their interfaces
    #[command(after_help = "Examples:\n  weft show components\n  weft show components --json")]
    Components(ViewArgs),
    /// The network interfaces, as the FEA sees them
    #[command(after_help = "Examples:\n  weft show interfaces\n  weft show interfaces --json")]
    Interfaces(ViewArgs),
    /// What components have counted
    #[command(after_help = "Examples:\n  weft show counters\n  weft show counters xia --all\n  \
        weft show counters --json")]
    Counters(CountersArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ViewArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CountersArgs {
    /// The component, by its instance or class [default: all]
    component: Option<String>,
    /// Show those that are zero, too; JSON has them always
    #[arg(short, long)]
    all: bool,
    #[command(flatten)]
    view: ViewArgs,
}

pub(crate) fn run(command: &ShowCommand) -> Outcome {
    let (view, make): (_, &dyn Fn(&Asker) -> Result<Shown, String>) = match command {
        ShowCommand::Processes(view) => (view, &processes::show),
        ShowCommand::Components(view) => (view, &components::show),
        ShowCommand::Interfaces(view) => (view, &interfaces::show),
        ShowCommand::Counters(args) => {
            (&args.view, &|asker| counters::show(asker, args.component.as_deref(), args.all))
        }
    };
    let shown = make(&Asker::new(&view.node)?)?;
    print_lines(if view.json { json_lines(&shown.json) } else { shown.lines })?;
    Ok(0)
}

/// One state, for programs and for people.
struct Shown {
    json: Value,
    lines: Vec<String>,
}

/// Asks the components of a node.
struct Asker {
    client: Client,
}

impl Asker {
    fn new(node: &NodeArgs) -> Result<Self, String> {
        Ok(Self { client: Client::new(&find_callable(node)?)? })
    }

    /// Asks a component.
    ///
    /// # Errors
    /// A sentence that says whom, and why there is no answer.
    fn ask<R: Request>(&self, target: &str, request: R) -> Result<R::Reply, String> {
        self.try_ask(target, request).map_err(|error| format!("{target}: {error}"))
    }

    fn try_ask<R: Request>(&self, target: &str, request: R) -> Result<R::Reply, XrlError> {
        self.client.call(target, request, PATIENCE)
    }

    /// The components that are registered, in order of their instances.
    fn targets(&self) -> Result<Vec<finder::Target>, String> {
        Ok(self.ask(FINDER, finder::Targets)?.targets)
    }
}
