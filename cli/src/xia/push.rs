//! `weft xia push` and `weft xia receive`: their command lines.

use std::path::{Path, PathBuf};
use std::time::Duration;

use weft_base::Random;
use weft_config::{ByteSize, FromWord, Rate};
use weft_xia_push::receiver::{Destination, FullDisk, ReceiverConfig};
use weft_xia_push::sender::{Limit, SenderConfig};
use weft_xia_tools::{Push, PushOptions, Receive, ReceiveOptions, parse_address, parse_bind};
use weft_xip::Address;
use weft_xip::channel::BindRequest;

use super::apps::parse_seconds;
use crate::args::NodeArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct PushArgs {
    /// The file; - is standard input, which may be a live stream
    file: PathBuf,
    /// Where to: an address that ends in a datagram sink or a zFilter
    #[arg(long, value_parser = parse_address)]
    to: Address,
    /// What receivers call the file [default: its name]
    #[arg(long)]
    name: Option<String>,
    /// End after the source symbols and this many rounds of repair symbols
    #[arg(long, value_name = "N", conflicts_with = "overhead")]
    rounds: Option<u32>,
    /// End after repair symbols worth this percentage of the file [default: go on until stopped]
    #[arg(long, value_name = "PERCENT")]
    overhead: Option<u32>,
    /// Datagrams per second in bits, such as 200Mbit/s; 0 for as fast as the node takes them
    #[arg(long, default_value = "100Mbit/s", value_parser = parse_rate)]
    rate: RateArg,
    /// Bytes of one symbol: with its headers it must fit the smallest MTU on the way
    #[arg(long, default_value_t = 1280)]
    symbol_size: u16,
    /// Bytes of one block, the unit of encoding, such as 640KiB
    #[arg(long, value_parser = parse_size)]
    block_size: Option<u32>,
    /// Pause between rounds, in seconds
    #[arg(long, default_value = "0", value_parser = parse_seconds)]
    round_pause: Duration,
    /// Hop limit of datagrams
    #[arg(short = 't', long, default_value_t = 128)]
    hop_limit: u8,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(super) node: NodeArgs,
}

/// A rate; zero means none.
#[derive(Debug, Clone, Copy)]
struct RateArg(Option<u64>);

impl PushArgs {
    fn options(&self) -> PushOptions {
        let defaults = SenderConfig::new(&self.file);
        let limit = match (self.rounds, self.overhead) {
            (Some(rounds), _) => Limit::Rounds(rounds),
            (None, Some(percent)) => Limit::Overhead(percent),
            (None, None) => Limit::UntilStopped,
        };
        let symbol_size = self.symbol_size;
        let sender = SenderConfig {
            name: self.name.clone(),
            symbol_size,
            block_size: self
                .block_size
                .unwrap_or_else(|| SenderConfig::default_block_size(symbol_size)),
            rate: self.rate.0,
            limit,
            round_spacing: self.round_pause,
            stream_percent: self.overhead.unwrap_or(defaults.stream_percent),
            ..defaults
        };
        PushOptions { to: self.to, sender, hop_limit: self.hop_limit, json: self.json }
    }

    /// How much longer than other commands it may take to end: what was read of a live stream is still
    /// sent, at the rate that was asked for.
    pub(super) fn stop_time(&self) -> Duration {
        self.options().sender.stop_time()
    }

    /// The process that these arguments ask for, on the node whose socket is at `socket`.
    pub(super) fn process(&self, socket: &Path, random: Random) -> Result<Push, String> {
        Push::new(socket, self.options(), random)
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReceiveArgs {
    /// The directory for received files; - writes one live stream to standard output
    directory: PathBuf,
    /// What to be reached by: an XDP XID, or a whole address
    #[arg(short, long, value_parser = parse_bind)]
    bind: BindRequest,
    /// End after this many files
    #[arg(short, long, value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Replace a file of the same name instead of choosing another name
    #[arg(long)]
    overwrite: bool,
    /// Give up when the disk is full instead of waiting for space
    #[arg(long)]
    fail_when_full: bool,
    /// Print reports as JSON, one object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(super) node: NodeArgs,
}

impl ReceiveArgs {
    /// The process that these arguments ask for, on the node whose socket is at `socket`.
    pub(super) fn process(&self, socket: &Path) -> Receive {
        let destination = match self.directory.as_os_str() == "-" {
            true => Destination::Stdout,
            false => Destination::Directory(self.directory.clone()),
        };
        let receiver = ReceiverConfig {
            count: self.count,
            overwrite: self.overwrite,
            on_full: if self.fail_when_full { FullDisk::Fail } else { FullDisk::Wait },
            ..ReceiverConfig::new(destination)
        };
        Receive::new(socket, ReceiveOptions { bind: self.bind, receiver, json: self.json })
    }
}

fn parse_rate(text: &str) -> Result<RateArg, String> {
    if text == "0" {
        return Ok(RateArg(None));
    }
    let rate = Rate::from_word(text).map_err(|error| error.to_string())?;
    Ok(RateArg(Some(rate.bits_per_second())))
}

fn parse_size(text: &str) -> Result<u32, String> {
    let size = ByteSize::from_word(text).map_err(|error| error.to_string())?;
    u32::try_from(size.bytes()).map_err(|_| format!("`{text}` is more than 4 GiB"))
}
