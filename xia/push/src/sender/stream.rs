//! Symbols of a live stream: each block is sent with its repair symbols and forgotten.

use std::time::Duration;

use sha2::{Digest, Sha256};
use weft_base::{FileId, Instant};
use weft_runtime::DiskRequest;

use crate::code::{self, Encoder};
use crate::object::{Extent, MAX_OBJECT_BYTES, Sha256Digest, Total};
use crate::sender::batch::Batch;
use crate::sender::config::share;

/// Most bytes read at a time.
const READ: usize = 64 * 1024;

/// Cuts what arrives into blocks.
pub(super) struct StreamFeed {
    file: FileId,
    symbol_size: u16,
    block_size: usize,
    percent: u32,
    flush_after: Duration,
    /// Where repair ids begin, counted from K.
    base: u32,
    /// The block that is being filled, and since when it holds something.
    filling: Vec<u8>,
    since: Option<Instant>,
    reading: bool,
    ended: bool,
    /// Offset of the block that is being filled.
    offset: u64,
    hasher: Sha256,
    /// A block to be encoded in a slice.
    loaded: Option<(Extent, Vec<u8>)>,
    ready: Option<Batch>,
    encoder: Encoder,
}

impl StreamFeed {
    pub(super) fn new(
        file: FileId,
        symbol_size: u16,
        block_size: u32,
        percent: u32,
        flush_after: Duration,
        base: u32,
    ) -> Self {
        Self {
            file,
            symbol_size,
            block_size: block_size as usize,
            percent,
            flush_after,
            base,
            filling: Vec::new(),
            since: None,
            reading: false,
            ended: false,
            offset: 0,
            hasher: Sha256::new(),
            loaded: None,
            ready: None,
            encoder: Encoder::default(),
        }
    }

    /// Moves a block that is due towards the encoder, and says what to read now.
    pub(super) fn next_read(&mut self, now: Instant) -> Option<DiskRequest> {
        self.close_block(now);
        let room = self.block_size - self.filling.len();
        (!self.reading && !self.ended && room > 0).then(|| {
            self.reading = true;
            let offset = self.offset + self.filling.len() as u64;
            DiskRequest::Read { file: self.file, offset, len: room.min(READ) }
        })
    }

    /// The answer to the last read. False if the stream has become too long to go on.
    #[must_use]
    pub(super) fn on_data(&mut self, now: Instant, bytes: &[u8], end: bool) -> bool {
        self.reading = false;
        if self.ended {
            return true;
        }
        if !bytes.is_empty() {
            self.since.get_or_insert(now);
            self.hasher.update(bytes);
            self.filling.extend_from_slice(bytes);
        }
        self.ended = end;
        self.offset + self.filling.len() as u64 <= MAX_OBJECT_BYTES
    }

    /// Ends the stream here, whatever is still to come.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// Whether nothing more is read.
    pub(super) fn is_ended(&self) -> bool {
        self.ended
    }

    fn close_block(&mut self, now: Instant) {
        let full = self.filling.len() >= self.block_size;
        let due = self.flush_time().is_some_and(|time| time <= now);
        let last = self.ended && !self.filling.is_empty();
        if self.loaded.is_none() && self.ready.is_none() && (full || due || last) {
            let bytes = std::mem::take(&mut self.filling);
            let extent = Extent { offset: self.offset, len: bytes.len() as u32 };
            self.offset = extent.end();
            self.since = None;
            self.loaded = Some((extent, bytes));
        }
    }

    /// When the block that is being filled has waited long enough.
    fn flush_time(&self) -> Option<Instant> {
        self.since.map(|since| since + self.flush_after)
    }

    /// When to call [`StreamFeed::next_read`] though nothing else happens.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.flush_time().filter(|_| self.loaded.is_none() && self.ready.is_none())
    }

    pub(super) fn has_work(&self) -> bool {
        self.loaded.is_some() && self.ready.is_none()
    }

    /// One slice: encodes a block.
    pub(super) fn work(&mut self) {
        if self.ready.is_some() {
            return;
        }
        if let Some((block, bytes)) = self.loaded.take() {
            let symbols = block.symbols(self.symbol_size);
            let first = code::advance(symbols, symbols, self.base);
            let count = share(symbols, self.percent);
            let repair = self.encoder.repair(bytes.clone(), self.symbol_size, first, count);
            self.ready = Some(Batch::new(0, block, bytes, repair));
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        self.ready.is_some()
    }

    pub(super) fn take(&mut self) -> Option<Batch> {
        self.ready.take()
    }

    /// Length and digest, once everything was handed out.
    pub(super) fn total(&self) -> Option<Total> {
        let done =
            self.ended && self.filling.is_empty() && self.loaded.is_none() && self.ready.is_none();
        done.then(|| Total {
            length: self.offset,
            sha256: Sha256Digest(self.hasher.clone().finalize().into()),
        })
    }

    /// Bytes read so far.
    pub(super) fn length(&self) -> u64 {
        self.offset + self.filling.len() as u64
    }

    /// Bytes held in memory, the encoder's transient ones not included.
    pub(super) fn memory(&self) -> usize {
        self.filling.capacity()
            + self.loaded.as_ref().map_or(0, |(_, bytes)| bytes.capacity())
            + self.ready.as_ref().map_or(0, Batch::memory)
    }
}
