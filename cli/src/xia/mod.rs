//! `weft xia …`: the commands of XIA.

mod apps;
mod ask;
mod dst;
mod engine;
mod id;
mod neighbour;
mod perf;
mod push;
mod route;
mod tree;

use std::path::Path;

pub(crate) use ask::AskArgs;
use clap::Subcommand;
use weft_base::Random;
use weft_runtime::{Process, real};

use crate::args::NodeArgs;
use crate::node::{find_socket, seed};
use crate::output::Outcome;

/// Commands of XIA.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "a process has one")]
pub(crate) enum XiaCommand {
    /// Keys, and the names of hosts and domains that are their hashes
    #[command(
        subcommand,
        after_help = "Examples:\n  weft xia id new r1.key\n  weft xia id show r1.key\n  \
        weft xia id verify hid-<40 hex digits> r1.key.pub"
    )]
    Id(id::IdCommand),
    #[command(flatten)]
    OnNode(NodeCommand),
}

/// Commands of XIA that talk to a node.
#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// Ask whether a node is there and how far away it is
    #[command(after_help = "Examples:\n  weft xia ping hid-<40 hex digits>\n  \
        weft xia ping --count 3 --interval 0.2 ad-<40 hex digits>-1:hid-<40 hex digits>-0")]
    Ping(apps::PingArgs),
    /// Measure throughput, loss, duplicates, reordering and round trips between two nodes
    #[command(
        subcommand,
        after_help = "Examples:\n  weft xia perf server --node r2\n  \
        weft xia perf client hid-<40 hex digits> --node r1"
    )]
    Perf(perf::PerfCommand),
    /// Send standard input as datagrams, write received ones to standard output
    #[command(after_help = "Examples:\n  weft xia cat --bind xdp-<40 hex digits>\n  \
        echo hello | weft xia cat hid-<40 hex digits>-1:xdp-<40 hex digits>-0")]
    Cat(apps::CatArgs),
    /// Push a file or a live stream to many receivers, without a back channel
    #[command(
        after_help = "Examples:\n  weft xia push film.mp4 --to u4id-<40 hex>-1:zf-<40 hex>-2:xdp-<40 hex>-0\n  \
        tar c photos | weft xia push - --name photos.tar --overhead 30 --to zf-<40 hex digits>"
    )]
    Push(push::PushArgs),
    /// Receive pushed files and verify them
    #[command(after_help = "Examples:\n  weft xia receive inbox --bind xdp-<40 hex digits>\n  \
        weft xia receive - --bind xdp-<40 hex digits> | tar x")]
    Receive(push::ReceiveArgs),
    /// Show the addresses of this node
    #[command(after_help = "Example:\n  weft xia addr --node r1")]
    Addr(ask::AskArgs),
    /// Show a node's state
    #[command(after_help = "Examples:\n  weft xia show\n  weft xia show counters --json")]
    Show(ask::ShowArgs),
    /// Record the life of packets on a node, or show what was recorded
    #[command(
        after_help = "Examples:\n  weft xia trace 1     # record every packet\n  weft xia trace"
    )]
    Trace(ask::TraceArgs),
    /// Show the routing cache's decisions, forget them, check them, or say how much memory they may use
    #[command(
        after_help = "Examples:\n  weft xia dst            # the decisions that are used most\n  \
        weft xia dst check      # compare every decision with the tables\n  \
        weft xia dst limit 64MiB"
    )]
    Dst(dst::DstArgs),
    /// Show what the routing cache's decisions rest on
    #[command(visible_alias = "anchor")]
    #[command(after_help = "Examples:\n  weft xia anchors --all\n  weft xia anchors --json")]
    Anchors(dst::AnchorsArgs),
    /// Show the routes of all principals, add one, or delete one
    #[command(after_help = "Examples:\n  weft xia route\n  \
        weft xia route add ad-<40 hex digits> via hid-<40 hex digits>\n  \
        weft xia route delete 10.0.0.0/8")]
    Route(route::RouteArgs),
    /// Show the neighbours, add one, or delete one
    #[command(alias = "neighbor")]
    #[command(after_help = "Examples:\n  weft xia neighbour\n  \
        weft xia neighbour add hid-<40 hex digits> link 02:00:00:00:00:01 interface eth0\n  \
        weft xia neighbour delete hid-<40 hex digits>")]
    Neighbour(neighbour::NeighbourArgs),
    /// Show the XID that leads packets to several hosts, over a tree of shortest paths
    #[command(
        after_help = "Examples:\n  weft xia tree hid-<40 hex digits> hid-<40 hex digits>\n  \
        weft xia push film.mp4 --to \"$(weft xia tree --xid hid-<40 hex digits>)\"-1:xdp-<40 hex digits>-0"
    )]
    Tree(tree::TreeArgs),
    /// Show which engines forward, the portable one or the kernel's, or say which shall
    #[command(
        after_help = "Examples:\n  weft xia engine            # which engine forwards where, and counters\n  \
        weft xia engine auto\n  weft xia engine portable --node r1"
    )]
    Engine(engine::EngineArgs),
    /// Add or remove a principal while packets flow
    #[command(
        after_help = "Examples:\n  weft xia principal add zf\n  weft xia principal remove zf"
    )]
    Principal(ask::PrincipalArgs),
    /// Add or remove an interface while packets flow
    #[command(
        after_help = "Examples:\n  weft xia interface add eth1\n  weft xia interface remove eth1"
    )]
    Interface(ask::InterfaceArgs),
    /// Set something of a principal: a statement as in the node file
    #[command(
        after_help = "Example:\n  weft xia set zf route zf-<40 hex digits> via hid-<40 hex digits>"
    )]
    Set(ask::ChangeArgs),
    /// Delete what the same words have set
    #[command(after_help = "Example:\n  weft xia delete ad local ad-<40 hex digits>")]
    Delete(ask::ChangeArgs),
}

impl XiaCommand {
    /// The process that does it, on the node whose socket is at `socket`: for the simulator.
    pub(crate) fn process(
        &self,
        socket: &Path,
        random: Random,
    ) -> Result<Box<dyn Process>, String> {
        match self {
            Self::Id(_) => Err("`weft xia id` is not for nodes: run it outside".to_owned()),
            Self::OnNode(command) => command.process(socket, random),
        }
    }
}

impl NodeCommand {
    /// The process that does it, on the node whose socket is at `socket`.
    fn process(&self, socket: &Path, random: Random) -> Result<Box<dyn Process>, String> {
        Ok(match self {
            Self::Ping(args) => Box::new(args.process(socket)),
            Self::Perf(command) => command.process(socket, random),
            Self::Cat(args) => Box::new(args.process(socket)),
            Self::Push(args) => Box::new(args.process(socket, random)?),
            Self::Receive(args) => Box::new(args.process(socket)),
            Self::Addr(args) => Box::new(args.addresses(socket)),
            Self::Show(args) => Box::new(args.process(socket)),
            Self::Trace(args) => Box::new(args.process(socket)),
            Self::Dst(args) => Box::new(args.process(socket)),
            Self::Anchors(args) => Box::new(args.process(socket)),
            Self::Route(args) => Box::new(args.process(socket)?),
            Self::Neighbour(args) => Box::new(args.process(socket)?),
            Self::Tree(args) => Box::new(args.process(socket)),
            Self::Engine(args) => Box::new(args.process(socket)),
            Self::Principal(args) => Box::new(args.process(socket)),
            Self::Interface(args) => Box::new(args.process(socket)),
            Self::Set(args) => Box::new(args.process(socket, "set")),
            Self::Delete(args) => Box::new(args.process(socket, "delete")),
        })
    }

    /// Which node it is for.
    fn node(&self) -> &NodeArgs {
        match self {
            Self::Ping(args) => &args.node,
            Self::Perf(command) => command.node(),
            Self::Cat(args) => &args.node,
            Self::Push(args) => &args.node,
            Self::Receive(args) => &args.node,
            Self::Addr(args) => &args.node,
            Self::Show(args) => &args.ask.node,
            Self::Trace(args) => &args.ask.node,
            Self::Dst(args) => &args.ask().node,
            Self::Anchors(args) => &args.ask.node,
            Self::Route(args) => &args.ask().node,
            Self::Neighbour(args) => &args.ask().node,
            Self::Tree(args) => &args.ask.node,
            Self::Engine(args) => &args.ask.node,
            Self::Principal(args) => &args.ask.node,
            Self::Interface(args) => &args.ask.node,
            Self::Set(args) | Self::Delete(args) => &args.ask.node,
        }
    }

    /// Runs it with the real driver.
    fn run(&self) -> Outcome {
        let random = Random::from_seed(seed()?);
        let process = self.process(&find_socket(self.node())?, random)?;
        Ok(real::run(process, self.driver_options()))
    }

    /// The grace after a signal is meant for processes that end at once. A live stream that is stopped
    /// still sends what was read of it, at its rate, and must not be cut off in the middle of a block.
    fn driver_options(&self) -> real::Options {
        let mut options = real::Options::default();
        if let Self::Push(args) = self {
            options.grace += args.stop_time();
        }
        options
    }
}

/// `weft show xia forwarding`.
pub(crate) fn show_forwarding(ask: &AskArgs) -> Outcome {
    let process = engine::shown(ask, &find_socket(&ask.node)?);
    Ok(real::run(Box::new(process), real::Options::default()))
}

/// Runs a command of XIA.
pub(crate) fn run(command: &XiaCommand) -> Outcome {
    match command {
        XiaCommand::Id(command) => id::run(command),
        XiaCommand::OnNode(command) => command.run(),
    }
}
