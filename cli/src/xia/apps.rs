//! Applications: their command lines, turned into processes for the real driver.

use std::time::Duration;

use weft_runtime::{Level, Process, real};
use weft_xia_tools::{Cat, CatOptions, Ping, PingOptions, parse_address};
use weft_xip::channel::BindRequest;
use weft_xip::{Address, Xid, XidType};

use crate::args::NodeArgs;
use crate::node::find_socket;
use crate::output::Outcome;

#[derive(Debug, clap::Args)]
pub(crate) struct PingArgs {
    /// Where to: an address, or one XID such as hid-<40 hex digits>
    #[arg(value_parser = parse_address)]
    to: Address,
    /// Stop after this many requests
    #[arg(short, long)]
    count: Option<u64>,
    /// Seconds between requests
    #[arg(short, long, default_value = "1", value_parser = parse_seconds)]
    interval: Duration,
    /// Seconds to wait for the last answers
    #[arg(short = 'W', long, default_value = "2", value_parser = parse_seconds)]
    timeout: Duration,
    /// Payload bytes of a request
    #[arg(short, long, default_value_t = 56, value_parser = clap::value_parser!(u16).range(8..))]
    size: u16,
    /// Hop limit of requests
    #[arg(short = 't', long, default_value_t = 128)]
    hop_limit: u8,
    /// Print only the summary
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    node: NodeArgs,
}

pub(crate) fn ping(args: &PingArgs) -> Outcome {
    let options = PingOptions {
        to: args.to,
        count: args.count,
        interval: args.interval,
        timeout: args.timeout,
        size: usize::from(args.size),
        hop_limit: args.hop_limit,
        quiet: args.quiet,
    };
    let socket = find_socket(&args.node)?;
    run(Ping::new(&socket, options))
}

#[derive(Debug, clap::Args)]
pub(crate) struct CatArgs {
    /// Where standard input goes; without it, only listen
    #[arg(value_parser = parse_address)]
    to: Option<Address>,
    /// What to be reached by: an XDP XID, or a whole address [default: any]
    #[arg(short, long, value_parser = parse_bind)]
    bind: Option<BindRequest>,
    /// Most bytes per datagram
    #[arg(short, long, default_value_t = 1024, value_parser = clap::value_parser!(u16).range(1..))]
    size: u16,
    /// Seconds to wait for answers after the end of the input
    #[arg(short = 'w', long, default_value = "0.2", value_parser = parse_seconds)]
    linger: Duration,
    /// End after this many datagrams were received
    #[arg(short, long)]
    count: Option<u64>,
    #[command(flatten)]
    node: NodeArgs,
}

pub(crate) fn cat(args: &CatArgs) -> Outcome {
    let options = CatOptions {
        bind: args.bind.unwrap_or(BindRequest::Any(XidType::XDP)),
        to: args.to,
        size: usize::from(args.size),
        linger: args.linger,
        count: args.count,
    };
    let socket = find_socket(&args.node)?;
    run(Cat::new(&socket, options))
}

/// Runs an application on the real driver.
pub(super) fn run(process: impl Process + 'static) -> Outcome {
    let options = real::Options { level: Level::Info, ..real::Options::default() };
    Ok(real::run(Box::new(process), options))
}

/// Reads seconds with a fraction, such as `0.2`.
pub(super) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 =
        text.parse().map_err(|_| format!("`{text}` is not a number of seconds, such as 0.5"))?;
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("`{text}` seconds is out of range"))
}

/// Reads what to bind: a whole address, or the sink alone.
pub(super) fn parse_bind(text: &str) -> Result<BindRequest, String> {
    match text.parse::<Xid>() {
        Ok(sink) => Ok(BindRequest::Sink(sink)),
        Err(_) => parse_address(text).map(BindRequest::Address),
    }
}
