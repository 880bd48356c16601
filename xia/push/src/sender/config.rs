//! What a sender can be told.

use std::path::PathBuf;
use std::time::Duration;

use crate::object::{MAX_BLOCK_BYTES, MAX_BLOCK_SYMBOLS};
use crate::wire::{ANNOUNCE_HEADER, SYMBOL_HEADER};

/// Most source symbols of a block that a sender makes: larger blocks gain nothing and take tens of
/// milliseconds to encode.
pub const MAX_SENT_BLOCK_SYMBOLS: u32 = 8192;

/// Source symbols of a block unless told otherwise.
const BLOCK_SYMBOLS: u32 = 512;

/// Most seconds that a stop is said to take, however low the rate: a day.
const LONGEST_STOP: f64 = 86_400.0;

/// When a sender of a file ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Never: it is a carousel until it is stopped.
    UntilStopped,
    /// After the source round and this many repair rounds.
    Rounds(u32),
    /// After the source round and repair symbols worth this percentage of the source symbols.
    Overhead(u32),
}

/// Options of a sender.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// The file; `-` is standard input. What has no length (a pipe) is pushed as a live stream.
    pub path: PathBuf,
    /// What receivers shall call it; by default the last part of the path, `stream` for `-`.
    pub name: Option<String>,
    /// Bytes of a symbol, 16 to 65,000. The default, 1280, fits with the header of a symbol and an
    /// XIP header of five rows into a UDP/IPv4 tunnel at MTU 1500: 20 + 8 + 148 + 32 + 1280 = 1488.
    pub symbol_size: u16,
    /// Most bytes of a block, rounded down to whole symbols. Larger blocks need a little less
    /// redundancy and more memory and time at once; for the default see
    /// [`default_block_size`](Self::default_block_size).
    pub block_size: u32,
    /// Bits of datagrams per second, XIP headers not included; `None` for as fast as the socket takes.
    pub rate: Option<u64>,
    /// When to end.
    pub limit: Limit,
    /// Repair symbols of a block in one round, in percent of its source symbols; at least two are
    /// sent.
    pub round_percent: u32,
    /// Pause between rounds.
    pub round_spacing: Duration,
    /// Repair symbols of a stream's block in percent of its source symbols; at least two are sent.
    pub stream_percent: u32,
    /// How long a stream's block waits to be filled before it is sent as it is.
    pub flush_after: Duration,
    /// How often the object is announced.
    pub announce_every: Duration,
}

/// Why options cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The symbol size is out of range.
    #[error("a symbol size of {0} bytes is not possible: choose 16 to 65000")]
    SymbolSize(u16),
    /// The block size is out of range.
    #[error(
        "a block size of {block} bytes is not possible with symbols of {symbol} bytes: \
         a block has 1 to {MAX_SENT_BLOCK_SYMBOLS} symbols"
    )]
    BlockSize {
        /// The block size, in bytes.
        block: u32,
        /// The symbol size, in bytes.
        symbol: u16,
    },
    /// Receivers refuse such blocks.
    #[error(
        "a block size of {0} bytes is not possible: receivers take blocks of at most \
         {MAX_BLOCK_BYTES} bytes"
    )]
    BlockBytes(u32),
    /// A rate of zero.
    #[error("a rate of zero would never send anything: give a rate in bit/s, or none")]
    Rate,
}

impl SenderConfig {
    /// The defaults for pushing `path`.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            name: None,
            symbol_size: 1280,
            block_size: Self::default_block_size(1280),
            rate: Some(100_000_000),
            limit: Limit::UntilStopped,
            round_percent: 5,
            round_spacing: Duration::ZERO,
            stream_percent: 20,
            flush_after: Duration::from_millis(200),
            announce_every: Duration::from_millis(200),
        }
    }

    /// The block size for symbols of this size unless another one is asked for: 512 symbols, fewer
    /// if receivers would refuse such large blocks.
    #[must_use]
    pub fn default_block_size(symbol_size: u16) -> u32 {
        (BLOCK_SYMBOLS * u32::from(symbol_size)).min(MAX_BLOCK_BYTES)
    }

    /// How long a live stream may take to end after a stop, as long as its datagrams leave at the
    /// rate: three blocks may be there with their repair symbols, one being sent, one encoded and one
    /// filled, and then come the last announces.
    #[must_use]
    pub fn stop_time(&self) -> Duration {
        let symbols = self.block_size / u32::from(self.symbol_size.max(1));
        let datagrams = u64::from(symbols) + u64::from(share(symbols, self.stream_percent));
        let bytes = datagrams * (SYMBOL_HEADER as u64 + u64::from(self.symbol_size));
        let announces = super::LAST_ANNOUNCE_EVERY * super::LAST_ANNOUNCES;
        let Some(rate) = self.rate.filter(|rate| *rate > 0) else { return announces };
        let rate = rate as f64;
        // Announces go on meanwhile, and take their part of a low rate.
        let announce = 8.0 * (ANNOUNCE_HEADER + self.object_name().len()) as f64;
        let announced = (announce / self.announce_every.as_secs_f64().max(0.001)).min(0.9 * rate);
        let symbols = (3 * 8 * bytes) as f64 / (rate - announced);
        let last = f64::from(super::LAST_ANNOUNCES + 1) * announce / rate;
        announces + Duration::from_secs_f64((symbols + last).min(LONGEST_STOP))
    }

    /// Checks the options.
    ///
    /// # Errors
    /// Says which one cannot be used.
    pub fn check(&self) -> Result<(), ConfigError> {
        let (block, symbol) = (self.block_size, self.symbol_size);
        if !(16..=65_000).contains(&symbol) {
            return Err(ConfigError::SymbolSize(symbol));
        }
        if !(1..=MAX_SENT_BLOCK_SYMBOLS).contains(&(block / u32::from(symbol))) {
            return Err(ConfigError::BlockSize { block, symbol });
        }
        // What is not a whole symbol is rounded away.
        if block - block % u32::from(symbol) > MAX_BLOCK_BYTES {
            return Err(ConfigError::BlockBytes(block));
        }
        if self.rate == Some(0) {
            return Err(ConfigError::Rate);
        }
        Ok(())
    }

    pub(super) fn object_name(&self) -> String {
        let from_path = || match self.path.file_name() {
            Some(name) if name != "-" => name.to_string_lossy().into_owned(),
            _ => "stream".to_owned(),
        };
        let name = self.name.clone().unwrap_or_else(from_path);
        crate::wire::cut(&name, crate::wire::MAX_NAME).to_owned()
    }
}

/// `percent` of `symbols`, rounded up, but at least two: one may always be lost.
pub(super) fn share(symbols: u32, percent: u32) -> u32 {
    let share = (u64::from(symbols) * u64::from(percent)).div_ceil(100);
    u32::try_from(share).unwrap_or(u32::MAX).max(2)
}

const _: () = assert!(MAX_SENT_BLOCK_SYMBOLS <= MAX_BLOCK_SYMBOLS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_options_are_named() {
        let good = SenderConfig::new("x");
        assert_eq!(good.check(), Ok(()));
        let symbol = SenderConfig { symbol_size: 8, ..good.clone() };
        assert_eq!(symbol.check(), Err(ConfigError::SymbolSize(8)));
        for block in [1279, 8193 * 1280] {
            let config = SenderConfig { block_size: block, ..good.clone() };
            assert_eq!(config.check(), Err(ConfigError::BlockSize { block, symbol: 1280 }));
        }
        assert_eq!(SenderConfig { rate: Some(0), ..good }.check(), Err(ConfigError::Rate));
    }

    #[test]
    fn what_every_receiver_refuses_is_not_sent() {
        let most = crate::receiver::Limits::default().block_bytes;
        let config =
            |block_size| SenderConfig { symbol_size: 65_000, block_size, ..SenderConfig::new("x") };
        assert_eq!(config(most).check(), Ok(()), "what is over is rounded away");
        let block = 162 * 65_000;
        assert!(block > most);
        assert_eq!(config(block).check(), Err(ConfigError::BlockBytes(block)));
        for symbol_size in [16, 1280, 20_480, 20_481, 65_000] {
            let block_size = SenderConfig::default_block_size(symbol_size);
            let config = SenderConfig { symbol_size, block_size, ..SenderConfig::new("x") };
            assert_eq!(config.check(), Ok(()), "symbols of {symbol_size} bytes");
        }
    }

    #[test]
    fn names_come_from_the_path_unless_given() {
        assert_eq!(SenderConfig::new("/a/b.bin").object_name(), "b.bin");
        assert_eq!(SenderConfig::new("-").object_name(), "stream");
        let named = SenderConfig { name: Some("n".into()), ..SenderConfig::new("/a/b") };
        assert_eq!(named.object_name(), "n");
    }

    #[test]
    fn shares_round_up_and_are_at_least_two() {
        assert_eq!([share(512, 5), share(1, 5), share(512, 0), share(100, 200)], [26, 2, 2, 200]);
    }
}
