//! Small applications: their command lines, and the processes that these ask for.

use std::path::Path;
use std::time::Duration;

use weft_xia_tools::{Cat, CatOptions, Ping, PingOptions, parse_address, parse_bind};
use weft_xip::channel::BindRequest;
use weft_xip::{Address, XidType};

use crate::args::NodeArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct PingArgs {
    /// Where to: an address, or one XID such as hid-<40 hex digits>
    #[arg(value_parser = parse_address)]
    to: Address,
    /// Stop after this many requests
    #[arg(short, long, value_parser = clap::value_parser!(u64).range(1..))]
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
    pub(super) node: NodeArgs,
}

impl PingArgs {
    /// The process that these arguments ask for, on the node whose socket is at `socket`.
    pub(super) fn process(&self, socket: &Path) -> Ping {
        let options = PingOptions {
            to: self.to,
            count: self.count,
            interval: self.interval,
            timeout: self.timeout,
            size: usize::from(self.size),
            hop_limit: self.hop_limit,
            quiet: self.quiet,
        };
        Ping::new(socket, options)
    }
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
    #[arg(short, long, value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    #[command(flatten)]
    pub(super) node: NodeArgs,
}

impl CatArgs {
    /// The process that these arguments ask for, on the node whose socket is at `socket`.
    pub(super) fn process(&self, socket: &Path) -> Cat {
        let options = CatOptions {
            bind: self.bind.unwrap_or(BindRequest::Any(XidType::XDP)),
            to: self.to,
            size: usize::from(self.size),
            linger: self.linger,
            count: self.count,
        };
        Cat::new(socket, options)
    }
}

/// Reads seconds with a fraction, such as `0.2`.
pub(super) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 =
        text.parse().map_err(|_| format!("`{text}` is not a number of seconds, such as 0.5"))?;
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("`{text}` seconds is out of range"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::Args;

    #[test]
    fn nobody_ends_after_no_datagrams() {
        const ID: &str = "abababababababababababababababababababab";
        let [receive, ping] = [format!("receive . --bind xdp-{ID}"), format!("ping hid-{ID}")];
        for command in ["cat", &receive, &ping] {
            let parse = |count| {
                let line = format!("weft xia {command} --count {count}");
                Args::try_parse_from(line.split(' ')).map(drop)
            };
            let error = parse(0).unwrap_err().to_string();
            assert!(error.contains("0 is not in 1.."), "{command}: {error}");
            assert!(parse(1).is_ok(), "{command}");
        }
    }
}
