//! `weft show`: the state of a running node.
//!
//! Everything is asked by XRL of the processes themselves, so that `weft call` and Python get the same:
//! each view names the calls that it is made of; `weft show xia` asks the stack as `weft xia` does. What is shown is made as JSON first; `table` makes columns of
//! it for people.

pub(crate) mod bgp;
mod components;
mod counters;
mod interfaces;
mod kernel;
mod log;
mod pages;
mod processes;
pub(crate) mod profile;
mod programs;
mod protocol;
mod routes;
pub(crate) mod table;

use std::net::IpAddr;
use std::time::Duration;

pub(crate) use counters::Counted;
pub(crate) use kernel::version as kernel_version;
use log::LogArgs;
pub(crate) use processes::{monotonic, seconds};

use clap::Subcommand;
use serde_json::Value;
use weft_manager::interface::{Processes, ProcessesReply};
use weft_xrl::{ErrorCode, FINDER, Request, XrlError, fea, finder};

use crate::args::NodeArgs;
use crate::call::{Client, Reach};
use crate::output::{Outcome, json_lines, print_lines};
use crate::xia::AskArgs;

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
    /// The eBPF programs at network interfaces: those of weft, and those of others
    #[command(after_help = "Examples:\n  weft show programs\n  weft show programs eth0 --json")]
    Programs(ProgramsArgs),
    /// What components have counted
    #[command(after_help = "Examples:\n  weft show counters\n  weft show counters xia --all\n  \
        weft show counters --json\n  weft show counters --prometheus")]
    Counters(CountersArgs),
    /// What processes have reported, oldest first
    #[command(after_help = "Examples:\n  weft show log\n  weft show log xia --follow\n  \
        weft show log --level warning --json")]
    Log(LogArgs),
    /// The routes of IP that the RIB knows: used ones have a star
    #[command(after_help = "Examples:\n  weft show routes\n  weft show routes 192.0.2.1\n  \
        weft show routes 198.51.100.0/24 --json\n  weft show routes 198.51.100.0/24 --longer\n  \
        weft show routes --protocol static\n  weft show routes --summary\n  weft show routes --origins")]
    Routes(RoutesArgs),
    /// The kernel's tables that weft sets routes in: who has each, what waits, what the kernel refuses
    #[command(after_help = "Examples:\n  weft show kernel\n  weft show kernel --json")]
    Kernel(ViewArgs),
    /// The Border Gateway Protocol
    #[command(
        subcommand,
        after_help = "Examples:\n  weft show bgp peers\n  weft show bgp peers 192.0.2.7\n  weft show bgp routes 192.0.2.1\n  \
        weft show bgp routes 198.51.0.0/16 --longer --community no-export"
    )]
    Bgp(BgpView),
    /// What a routing protocol has to show, such as its routes and neighbours
    #[command(after_help = "Examples:\n  weft show protocol\n  weft show protocol static\n  \
        weft show protocol static routes --json")]
    Protocol(ProtocolArgs),
    /// How long routes take from one profile point to the next: `weft profile on` switches them on
    #[command(
        after_help = "Examples:\n  weft show profile\n  weft show profile 192.0.2.0/24 --marks\n  \
        weft show profile --json"
    )]
    Profile(ProfileArgs),
    /// How the XIA stack forwards
    #[command(subcommand, after_help = "Example:\n  weft show xia forwarding --node r1")]
    Xia(XiaView),
}

#[derive(Debug, Subcommand)]
pub(crate) enum XiaView {
    /// Which engine forwards at each interface, why not a better one, and what the engines have counted
    #[command(after_help = "Examples:\n  weft show xia forwarding\n  \
        weft show xia forwarding --node r1 --json")]
    Forwarding(AskArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ViewArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BgpView {
    /// The peers: the states of their sessions, how many routes each has announced, how the last session ended; or all of one
    #[command(after_help = "Examples:\n  weft show bgp peers\n  weft show bgp peers --json\n  \
        weft show bgp peers 192.0.2.7\n  weft show bgp peers 2001:db8::2 --json")]
    Peers(PeersArgs),
    /// The paths that peers have announced: the best have a star, those that may not be used a minus
    #[command(
        after_help = "Examples:\n  weft show bgp routes\n  weft show bgp routes 192.0.2.1\n  \
        weft show bgp routes 198.51.100.0/24 --json\n  weft show bgp routes --received-from 192.0.2.7\n  \
        weft show bgp routes --advertised-to 192.0.2.7"
    )]
    Routes(PathsArgs),
    /// Who this router is, how many sessions are in which state, how many routes there are
    #[command(after_help = "Examples:\n  weft show bgp summary\n  weft show bgp summary --json")]
    Summary(ViewArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct PeersArgs {
    /// All that is known of the session with this peer: addresses, times, capabilities, messages, routes, limits, policies
    address: Option<IpAddr>,
    #[command(flatten)]
    view: ViewArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PathsArgs {
    /// Only the paths that serve this address or prefix
    prefix: Option<String>,
    /// The paths to this prefix, and to all that are within it
    #[arg(long, requires = "prefix")]
    longer: bool,
    /// Only those with this community, such as 65000:7, no-export, rt:65000:100 or 65000:1:2
    #[arg(long, value_name = "COMMUNITY")]
    community: Option<String>,
    /// Those for multicast
    #[arg(long)]
    multicast: bool,
    /// Only what this peer has announced, as it came, before `import`
    #[arg(long, value_name = "PEER")]
    received_from: Option<IpAddr>,
    /// What this peer is told, as it sees it, behind `export`
    #[arg(long, value_name = "PEER", conflicts_with = "received_from")]
    advertised_to: Option<IpAddr>,
    #[command(flatten)]
    view: ViewArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RoutesArgs {
    /// Only the routes that serve this address or prefix
    prefix: Option<String>,
    /// The routes to this prefix, and to all that are within it
    #[arg(long, requires = "prefix")]
    longer: bool,
    /// Only the routes of this protocol, such as bgp or static
    #[arg(long, value_name = "NAME")]
    protocol: Option<String>,
    /// Only how many there are, and how far the FEA has them
    #[arg(long, conflicts_with_all = ["prefix", "protocol"])]
    summary: bool,
    /// Only who tells them, and what guards have refused
    #[arg(long, conflicts_with_all = ["prefix", "protocol", "summary"])]
    origins: bool,
    /// Those for multicast: on which way packets from a source have to come
    #[arg(long, conflicts_with_all = ["summary", "origins"])]
    multicast: bool,
    #[command(flatten)]
    view: ViewArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ProtocolArgs {
    /// The protocol, by its instance or class [default: list what there is]
    protocol: Option<String>,
    /// Which of its views [default: its first]
    view: Option<String>,
    #[command(flatten)]
    view_args: ViewArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ProfileArgs {
    /// Only this prefix
    prefix: Option<String>,
    /// Each mark instead of the table
    #[arg(long)]
    marks: bool,
    #[command(flatten)]
    view: ViewArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ProgramsArgs {
    /// The interface [default: all]
    interface: Option<String>,
    #[command(flatten)]
    view: ViewArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CountersArgs {
    /// The component, by its instance or class [default: all]
    component: Option<String>,
    /// Show those that are zero, too; JSON has them always
    #[arg(short, long)]
    all: bool,
    /// Print all of them, and processes and interfaces, as Prometheus reads it
    #[arg(long, conflicts_with_all = ["component", "all", "json"])]
    prometheus: bool,
    #[command(flatten)]
    view: ViewArgs,
}

pub(crate) fn run(command: &ShowCommand) -> Outcome {
    let (view, make): (_, &Make<'_>) = match command {
        ShowCommand::Log(args) => return log::run(args),
        ShowCommand::Routes(args) => return routes::run(args),
        ShowCommand::Bgp(view) => return bgp::run(view),
        ShowCommand::Protocol(args) => return protocol::run(args),
        ShowCommand::Xia(XiaView::Forwarding(ask)) => return crate::xia::show_forwarding(ask),
        ShowCommand::Processes(view) => (view, &processes::show),
        ShowCommand::Components(view) => (view, &components::show),
        ShowCommand::Kernel(view) => (view, &kernel::show),
        ShowCommand::Interfaces(view) => (view, &interfaces::show),
        ShowCommand::Programs(args) => {
            (&args.view, &|asker| programs::show(asker, args.interface.as_deref()))
        }
        ShowCommand::Profile(args) => (&args.view, &|asker| profile::show(asker, args)),
        ShowCommand::Counters(args) if args.prometheus => {
            let text = crate::metrics::text(&Asker::new(&args.view.node)?)?;
            print_lines(text.lines())?;
            return Ok(0);
        }
        ShowCommand::Counters(args) => {
            (&args.view, &|asker| counters::show(asker, args.component.as_deref(), args.all))
        }
    };
    let shown = make(&Asker::new(&view.node)?)?;
    print_lines(if view.json { json_lines(&shown.json) } else { shown.lines })?;
    Ok(0)
}

/// Makes a view.
type Make<'a> = dyn Fn(&Asker) -> Result<Shown, String> + 'a;

/// One state, for programs and for people.
struct Shown {
    json: Value,
    lines: Vec<String>,
}

/// Asks the components of a node.
pub(crate) struct Asker {
    client: Client,
}

impl Asker {
    /// Asks those of the node that a command is for.
    ///
    /// # Errors
    /// There is no such node, or this user may not call its components.
    pub(crate) fn new(node: &NodeArgs) -> Result<Self, String> {
        Ok(Self { client: Client::new(&Reach::here(node)?)? })
    }

    /// Asks a component.
    ///
    /// # Errors
    /// A sentence that says whom, and why there is no answer.
    pub(crate) fn ask<R: Request>(&self, target: &str, request: R) -> Result<R::Reply, String> {
        self.try_ask(target, request).map_err(|error| {
            let hint = hint(target, &error).map(|hint| format!(": {hint}")).unwrap_or_default();
            format!("{target}: {error}{hint}")
        })
    }

    /// Asks a component; the error is what it, or the Finder, has said.
    ///
    /// # Errors
    /// Those of the call.
    pub(crate) fn try_ask<R: Request>(
        &self,
        target: &str,
        request: R,
    ) -> Result<R::Reply, XrlError> {
        self.client.call(target, request, PATIENCE)
    }

    /// The processes of the node.
    pub(crate) fn processes(&self) -> Result<ProcessesReply, String> {
        self.ask("manager", Processes)
    }

    /// The network interfaces.
    pub(crate) fn interfaces(&self) -> Result<fea::InterfacesReply, String> {
        self.ask("fea", fea::Interfaces)
    }

    /// What one component has counted, or all.
    pub(crate) fn counters(&self, component: Option<&str>) -> Result<Vec<Counted>, String> {
        counters::ask(self, component)
    }

    /// The components that are registered, in order of their instances.
    ///
    /// # Errors
    /// The Finder does not answer.
    pub(crate) fn targets(&self) -> Result<Vec<finder::Target>, String> {
        Ok(self.ask(FINDER, finder::Targets)?.targets)
    }
}

/// What to do about an answer that says no more than that nobody is there who knows.
fn hint(target: &str, error: &XrlError) -> Option<String> {
    match (error.code, target) {
        (ErrorCode::ResolveFailed, "rib") => Some(
            "if the node has no RIB, add `rib;` to its configuration, which static routes and routing protocols need"
                .to_owned(),
        ),
        (ErrorCode::NoSuchMethod, weft_bgp::STATEMENT) => {
            Some("`weft show bgp` shows its peers and routes".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_where_nobody_answers_is_told_what_to_do() {
        let told = |target, code| hint(target, &XrlError::new(code, "note"));
        assert!(told("rib", ErrorCode::ResolveFailed).unwrap().contains("add `rib;`"));
        assert!(told("bgp", ErrorCode::NoSuchMethod).unwrap().contains("`weft show bgp`"));
        assert_eq!(told("fea", ErrorCode::ResolveFailed), None);
    }
}
