//! `weft xia …`: the commands of XIA.

mod apps;
mod ask;
mod push;

use clap::Subcommand;

use crate::output::Outcome;

/// Commands of XIA.
#[derive(Debug, Subcommand)]
pub(crate) enum XiaCommand {
    /// Ask whether a node is there and how far away it is
    #[command(after_help = "Examples:\n  weft xia ping hid-<40 hex digits>\n  \
        weft xia ping --count 3 --interval 0.2 ad-<40 hex digits>-1:hid-<40 hex digits>-0")]
    Ping(apps::PingArgs),
    /// Send standard input as datagrams, write received ones to standard output
    #[command(after_help = "Examples:\n  weft xia cat --bind xdp-<40 hex digits>\n  \
        echo hello | weft xia cat hid-<40 hex digits>-1:xdp-<40 hex digits>-0")]
    Cat(apps::CatArgs),
    /// Push a file or a live stream to many receivers, without a back channel
    #[command(after_help = "Examples:\n  weft xia push film.mp4 --to u4id-<40 hex>-1:zf-<40 hex>-2:xdp-<40 hex>-0\n  \
        tar c photos | weft xia push - --name photos.tar --overhead 30 --to zf-<40 hex digits>")]
    Push(push::PushArgs),
    /// Receive pushed files and verify them
    #[command(after_help = "Examples:\n  weft xia receive inbox --bind xdp-<40 hex digits>\n  \
        weft xia receive - --bind xdp-<40 hex digits> | tar x")]
    Receive(push::ReceiveArgs),
    /// Show the addresses of this node
    Addr(ask::AskArgs),
    /// Show a node's state
    #[command(after_help = "Examples:\n  weft xia show\n  weft xia show counters --json")]
    Show(ask::ShowArgs),
    /// Add or remove a principal while packets flow
    #[command(
        after_help = "Examples:\n  weft xia principal add zf\n  weft xia principal remove zf"
    )]
    Principal(ask::PrincipalArgs),
    /// Set something of a principal: a statement as in the node file
    #[command(
        after_help = "Example:\n  weft xia set zf route zf-<40 hex digits> via hid-<40 hex digits>"
    )]
    Set(ask::ChangeArgs),
    /// Delete what the same words have set
    #[command(after_help = "Example:\n  weft xia delete ad local ad-<40 hex digits>")]
    Delete(ask::ChangeArgs),
}

/// Runs a command of XIA.
pub(crate) fn run(command: XiaCommand) -> Outcome {
    match command {
        XiaCommand::Ping(args) => apps::ping(&args),
        XiaCommand::Cat(args) => apps::cat(&args),
        XiaCommand::Push(args) => push::push(&args),
        XiaCommand::Receive(args) => push::receive(&args),
        XiaCommand::Addr(args) => ask::addr(&args),
        XiaCommand::Show(args) => ask::show(&args),
        XiaCommand::Principal(args) => ask::principal(&args),
        XiaCommand::Set(args) => ask::change("set", &args),
        XiaCommand::Delete(args) => ask::change("delete", &args),
    }
}
