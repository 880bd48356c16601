//! `weft xia perf`: the command lines of its server and its client.

use std::path::Path;
use std::time::Duration;

use weft_base::Random;
use weft_config::{FromWord, Rate};
use weft_runtime::Process;
use weft_xia_tools::perf::wire::HEADER_LEN;
use weft_xia_tools::perf::{
    PERF_SINK, Pace, PerfClient, PerfOptions, PerfServer, PerfServerOptions,
};
use weft_xia_tools::{parse_address, parse_bind};
use weft_xip::Address;
use weft_xip::channel::BindRequest;

use super::apps::parse_seconds;
use crate::args::NodeArgs;

/// How long is sent if nothing else is said.
const DURATION: Duration = Duration::from_secs(10);

#[derive(Debug, clap::Subcommand)]
pub(crate) enum PerfCommand {
    /// Count what clients send, send it back if they want it, and tell them what arrived
    #[command(after_help = "Examples:\n  weft xia perf server\n  \
        weft xia perf server --bind xdp-<40 hex digits> --count 1 --json")]
    Server(ServerArgs),
    /// Send numbered datagrams to a server, and find out what was lost, doubled, reordered and how long it took
    #[command(after_help = "Examples:\n  weft xia perf client hid-<40 hex digits>\n  \
        weft xia perf client hid-<40 hex digits> --echo --rate 20000 --duration 30\n  \
        weft xia perf client hid-<40 hex digits> --rate 200Mbit/s --size 1200 --json\n  \
        weft xia perf client hid-<40 hex digits> --rate max")]
    Client(ClientArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ServerArgs {
    /// What to be reached by: an XDP XID, or a whole address [default: where clients look for it]
    #[arg(short, long, value_parser = parse_bind)]
    bind: Option<BindRequest>,
    /// End after this many measurements
    #[arg(short, long, value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print reports as JSON, one object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ClientArgs {
    /// Where the server is: an address, or one XID such as hid-<40 hex digits>
    #[arg(value_parser = parse_address)]
    to: Address,
    /// Datagrams a second; or bits of payload a second, such as 200Mbit/s; or max, as fast as the node
    /// takes them
    #[arg(short, long, default_value = "1000", value_parser = parse_pace)]
    rate: Pace,
    /// Seconds to send [default: 10, or as long as --count takes]
    #[arg(short, long, value_parser = parse_seconds)]
    duration: Option<Duration>,
    /// Stop after this many datagrams
    #[arg(short, long, value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Payload bytes of a datagram
    #[arg(short, long, default_value_t = 1024, value_parser = clap::value_parser!(u16).range(HEADER_LEN as i64..))]
    size: u16,
    /// Have each datagram sent back, and measure round trips
    #[arg(short, long)]
    echo: bool,
    /// Seconds to wait for what is missing at the end
    #[arg(short = 'W', long, default_value = "1", value_parser = parse_seconds)]
    timeout: Duration,
    /// Hop limit of datagrams
    #[arg(short = 't', long, default_value_t = 128)]
    hop_limit: u8,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeArgs,
}

impl PerfCommand {
    /// The process that these arguments ask for, on the node whose socket is at `socket`.
    pub(super) fn process(&self, socket: &Path, random: Random) -> Box<dyn Process> {
        match self {
            Self::Server(args) => Box::new(args.process(socket)),
            Self::Client(args) => Box::new(args.process(socket, random)),
        }
    }

    /// Which node it is for.
    pub(super) fn node(&self) -> &NodeArgs {
        match self {
            Self::Server(args) => &args.node,
            Self::Client(args) => &args.node,
        }
    }
}

impl ServerArgs {
    fn process(&self, socket: &Path) -> PerfServer {
        let bind = self.bind.unwrap_or(BindRequest::Sink(PERF_SINK));
        PerfServer::new(socket, PerfServerOptions { bind, count: self.count, json: self.json })
    }
}

impl ClientArgs {
    fn process(&self, socket: &Path, random: Random) -> PerfClient {
        let usual = self.count.is_none().then_some(DURATION);
        let options = PerfOptions {
            to: self.to,
            pace: self.rate,
            count: self.count,
            duration: self.duration.or(usual),
            size: usize::from(self.size),
            echo: self.echo,
            hop_limit: self.hop_limit,
            timeout: self.timeout,
            json: self.json,
        };
        PerfClient::new(socket, options, random)
    }
}

/// Reads a number of datagrams a second, a rate of bits, or `max`.
fn parse_pace(text: &str) -> Result<Pace, String> {
    if text == "max" {
        return Ok(Pace::Unlimited);
    }
    let pace = match text.parse() {
        Ok(datagrams) => Pace::Datagrams(datagrams),
        Err(_) => Rate::from_word(text).map(|rate| Pace::Bits(rate.bits_per_second())).map_err(
            |_| {
                format!(
                    "`{text}` is no rate: write datagrams a second such as 1000, bits a second such as \
                     200Mbit/s, or max"
                )
            },
        )?,
    };
    match pace {
        Pace::Datagrams(0) | Pace::Bits(0) => {
            Err("at a rate of nothing nothing is sent: write max for as fast as can be".to_owned())
        }
        pace => Ok(pace),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_datagrams_or_of_bits_or_unlimited() {
        assert_eq!(parse_pace("1500"), Ok(Pace::Datagrams(1500)));
        assert_eq!(parse_pace("2Mbit/s"), Ok(Pace::Bits(2_000_000)));
        assert_eq!(parse_pace("max"), Ok(Pace::Unlimited));
        assert!(parse_pace("0").unwrap_err().contains("max"));
        assert!(parse_pace("fast").unwrap_err().contains("200Mbit/s"));
    }
}
