//! One live stream onto standard output, in order.
//!
//! Nothing is kept on disk: blocks are held in memory until all before them are written. How far
//! ahead of the first missing block others may be is bounded by a window; what is further ahead is
//! dropped. A block that stays incomplete for the time limit is lost, because its sender has forgotten
//! it, and a stream with a hole is worth nothing to the next program in the pipe: then reception ends
//! with an error.

use std::collections::{BTreeMap, VecDeque};

use sha2::{Digest, Sha256};
use weft_base::{FileId, Instant};
use weft_runtime::{DiskError, DiskReply, DiskRequest, Level, OpenMode};

use super::bitmap::Bitmap;
use super::events::{DropReason, PROGRESS_EVERY, ReceiveReport, ReceiverOutput};
use super::world::{Job, World};
use crate::code;
use crate::host::HostOutput;
use crate::names;
use crate::object::{Description, Extent, ObjectId, ObjectKind, SenderKey, Sha256Digest, Total};
use crate::wire::{Announce, Datagram, Symbol};

/// A block that cannot be written yet.
struct Held {
    len: u32,
    /// Room for all source symbols.
    bytes: Vec<u8>,
    there: Bitmap,
    repairs: Vec<(u32, Vec<u8>)>,
    /// Symbols needed beyond K because decoding failed before.
    extra: u32,
    queued: bool,
    decoded: bool,
}

impl Held {
    fn symbols(&self) -> u32 {
        self.there.ones() + self.repairs.len() as u32
    }

    fn is_complete(&self) -> bool {
        self.there.ones() == self.there.len()
    }

    fn has(&self, esi: u32) -> bool {
        self.there.get(esi) || self.repairs.iter().any(|(other, _)| *other == esi)
    }

    fn memory(&self) -> usize {
        self.bytes.capacity() + self.repairs.iter().map(|(_, symbol)| symbol.len()).sum::<usize>()
    }
}

#[derive(Default)]
struct Stats {
    received: u64,
    needed: u64,
    used: u64,
    duplicates: u64,
    surplus: u64,
    decoded: u64,
    failures: u64,
}

/// What became of the stream.
pub(super) enum Ending {
    Received(Box<ReceiveReport>),
    Failed(String),
}

/// See the [module](self).
pub(super) struct Piped {
    output: Option<FileId>,
    stream: Option<(SenderKey, ObjectId)>,
    description: Option<Description>,
    total: Option<Total>,
    symbol_size: Option<u16>,
    blocks: BTreeMap<u64, Held>,
    ready: VecDeque<u64>,
    memory: usize,
    /// Everything before is written.
    next: u64,
    /// Since when the block at `next` is being waited for.
    stalled: Instant,
    heard: Instant,
    began: Instant,
    progress_at: Instant,
    hasher: Sha256,
    stats: Stats,
    told_of_files: bool,
    ending: Option<Ending>,
}

impl Piped {
    pub(super) fn new(world: &mut World<'_>) -> Self {
        let request = DiskRequest::Open { path: "-".into(), mode: OpenMode::Replace };
        world.ask(0, 0, Job::OpenOutput, request);
        Self {
            output: None,
            stream: None,
            description: None,
            total: None,
            symbol_size: None,
            blocks: BTreeMap::new(),
            ready: VecDeque::new(),
            memory: 0,
            next: 0,
            stalled: world.now,
            heard: world.now,
            began: world.now,
            progress_at: world.now,
            hasher: Sha256::new(),
            stats: Stats::default(),
            told_of_files: false,
            ending: None,
        }
    }

    /// Who is being received, and how it ended; once.
    pub(super) fn take_ending(&mut self) -> Option<Ending> {
        self.ending.take()
    }

    pub(super) fn stream(&self) -> Option<(SenderKey, ObjectId)> {
        self.stream
    }

    pub(super) fn name(&self) -> String {
        match &self.description {
            Some(description) => names::sanitised(&description.name),
            None => "stream".to_owned(),
        }
    }

    pub(super) fn on_datagram(
        &mut self,
        world: &mut World<'_>,
        datagram: &Datagram<'_>,
        from: SenderKey,
    ) {
        let (Datagram::Symbol(Symbol { object, kind, .. })
        | Datagram::Announce(Announce { object, kind, .. })) = datagram;
        if *kind == ObjectKind::File {
            self.refuse_file(world);
            return world.drop(DropReason::NotWanted);
        }
        if self.output.is_none() {
            return world.drop(DropReason::Opening);
        }
        if self.stream.is_none() {
            self.stream = Some((from, *object));
            (self.began, self.stalled) = (world.now, world.now);
        }
        if self.stream != Some((from, *object)) {
            return world.drop(DropReason::NotWanted);
        }
        self.heard = world.now;
        self.send_progress(world);
        match datagram {
            Datagram::Announce(announce) => self.on_announce(world, announce),
            Datagram::Symbol(symbol) => {
                if let Err(reason) = self.on_symbol(world, symbol) {
                    self.stats.duplicates += u64::from(reason == DropReason::Duplicate);
                    self.stats.surplus += u64::from(reason == DropReason::Surplus);
                    world.drop(reason);
                }
            }
        }
    }

    fn refuse_file(&mut self, world: &mut World<'_>) {
        if !self.told_of_files {
            self.told_of_files = true;
            let line = "somebody pushes a file; only live streams go to standard output: \
                        give a directory to receive files";
            world.report(Level::Warning, line.to_owned());
        }
    }

    fn on_announce(&mut self, world: &mut World<'_>, announce: &Announce) {
        let contradicts = self
            .symbol_size
            .is_some_and(|size| size != announce.description.symbol_size)
            || self.description.as_ref().is_some_and(|known| *known != announce.description)
            || (self.total.is_some() && announce.total.is_some() && self.total != announce.total);
        if contradicts {
            return world.drop(DropReason::Conflict);
        }
        self.symbol_size = Some(announce.description.symbol_size);
        self.description = Some(announce.description.clone());
        if self.total.is_none() && announce.total.is_some() {
            (self.total, self.stalled) = (announce.total, world.now);
        }
        self.finish_if_whole(world);
    }

    fn on_symbol(&mut self, world: &mut World<'_>, symbol: &Symbol<'_>) -> Result<(), DropReason> {
        let size = symbol.payload.len() as u16;
        if self.symbol_size.is_some_and(|known| known != size) {
            return Err(DropReason::Conflict);
        }
        self.make_room(world, symbol.block, size)?;
        self.symbol_size = Some(size);
        let offset = symbol.block.offset;
        let Some(held) = self.blocks.get_mut(&offset) else { return Err(DropReason::Conflict) };
        if held.len != symbol.block.len {
            return Err(DropReason::Conflict);
        }
        if held.is_complete() || held.queued {
            return Err(DropReason::Surplus);
        }
        if held.has(symbol.esi) {
            return Err(DropReason::Duplicate);
        }
        if symbol.esi < held.there.len() {
            let start = symbol.esi as usize * usize::from(size);
            held.bytes[start..start + usize::from(size)].copy_from_slice(symbol.payload);
            held.there.set(symbol.esi, true);
        } else {
            held.repairs.push((symbol.esi, symbol.payload.to_vec()));
            self.memory += symbol.payload.len();
        }
        self.stats.received += 1;
        self.settle(world, offset);
        Ok(())
    }

    /// Makes room for a block in the window.
    fn make_room(&mut self, world: &World<'_>, block: Extent, size: u16) -> Result<(), DropReason> {
        if self.blocks.contains_key(&block.offset) {
            return Ok(());
        }
        if block.offset < self.next {
            return Err(DropReason::Surplus);
        }
        let limits = &world.shared.config.limits;
        let symbols = block.symbols(size);
        if block.len > limits.block_bytes || symbols > limits.block_symbols {
            return Err(DropReason::TooLarge);
        }
        let before = self.blocks.range(..block.end()).next_back();
        if before.is_some_and(|(offset, held)| offset + u64::from(held.len) > block.offset) {
            return Err(DropReason::Conflict);
        }
        let bytes = symbols as usize * usize::from(size);
        // The block that everything waits for always finds room.
        if block.offset > self.next && self.memory + bytes > limits.window_bytes {
            return Err(DropReason::Window);
        }
        self.memory += bytes;
        if self.blocks.is_empty() {
            self.stalled = world.now;
        }
        let held = Held {
            len: block.len,
            bytes: vec![0; bytes],
            there: Bitmap::new(symbols),
            repairs: Vec::new(),
            extra: 0,
            queued: false,
            decoded: false,
        };
        self.blocks.insert(block.offset, held);
        Ok(())
    }

    /// Writes a block that is complete, or has it decoded if that is possible.
    fn settle(&mut self, world: &mut World<'_>, offset: u64) {
        let Some(held) = self.blocks.get_mut(&offset) else { return };
        if held.is_complete() {
            return self.write(world);
        }
        if !held.queued && held.symbols() >= held.there.len() + held.extra {
            held.queued = true;
            self.ready.push_back(offset);
        }
    }

    /// Writes all blocks that come next, as far as standard output keeps up.
    fn write(&mut self, world: &mut World<'_>) {
        let Some(file) = self.output else { return };
        while world.shared.backlog < world.shared.config.limits.backlog_bytes
            && let Some(entry) = self.blocks.first_entry()
            && *entry.key() == self.next
            && entry.get().is_complete()
        {
            let held = entry.remove();
            self.memory -= held.memory();
            if !held.decoded {
                self.stats.used += u64::from(held.there.len());
            }
            self.stats.needed += u64::from(held.there.len());
            let mut bytes = held.bytes;
            bytes.truncate(held.len as usize);
            self.hasher.update(&bytes);
            let offset = self.next;
            self.next += u64::from(held.len);
            self.stalled = world.now;
            world.ask(0, 0, Job::WriteOutput, DiskRequest::Write { file, offset, bytes });
        }
    }

    pub(super) fn on_disk(&mut self, world: &mut World<'_>, result: Result<DiskReply, DiskError>) {
        match result {
            Ok(DiskReply::Opened { file, .. }) => self.output = Some(file),
            Ok(_) => {
                self.write(world);
                self.finish_if_whole(world);
            }
            Err(error) => {
                let text = format!("standard output cannot be written: {}", error.text);
                self.ending.get_or_insert(Ending::Failed(text));
            }
        }
    }

    fn finish_if_whole(&mut self, world: &mut World<'_>) {
        let Some(total) = self.total.filter(|total| total.length <= self.next) else { return };
        if world.shared.backlog > 0 || self.ending.is_some() {
            return;
        }
        let digest = Sha256Digest(self.hasher.clone().finalize().into());
        self.ending = Some(if digest == total.sha256 && total.length == self.next {
            Ending::Received(Box::new(self.make_report(world, total)))
        } else {
            Ending::Failed(
                "what was written to standard output does not have the announced SHA-256".into(),
            )
        });
    }

    fn make_report(&self, world: &World<'_>, total: Total) -> ReceiveReport {
        let (sender, object) = self.stream.unwrap_or((SenderKey::new(&[]), ObjectId([0; 16])));
        let elapsed = world.now.since(self.began);
        ReceiveReport {
            sender,
            object,
            name: self.name(),
            path: None,
            bytes: total.length,
            sha256: total.sha256,
            symbols_needed: self.stats.needed,
            symbols_received: self.stats.received,
            symbols_used: self.stats.used,
            duplicates: self.stats.duplicates,
            surplus: self.stats.surplus,
            symbols_resumed: 0,
            blocks_decoded: self.stats.decoded,
            decode_failures: self.stats.failures,
            complete_after: elapsed,
            elapsed,
        }
    }

    /// Whether there is a block to decode.
    pub(super) fn has_work(&self) -> bool {
        !self.ready.is_empty() && self.ending.is_none()
    }

    /// One slice: decodes a block.
    pub(super) fn work(&mut self, world: &mut World<'_>) {
        let (Some(offset), Some(size)) = (self.ready.pop_front(), self.symbol_size) else { return };
        let Some(held) = self.blocks.get_mut(&offset) else { return };
        held.queued = false;
        let used = held.symbols();
        let size = usize::from(size);
        let source = (0..held.there.len())
            .filter(|esi| held.there.get(*esi))
            .map(|esi| (esi, held.bytes[esi as usize * size..][..size].to_vec()));
        let symbols = source.chain(held.repairs.iter().cloned());
        if let Some(bytes) = code::decode(held.there.len(), size as u16, symbols) {
            self.memory -= held.memory();
            held.bytes = bytes;
            held.repairs = Vec::new();
            held.decoded = true;
            self.memory += held.memory();
            held.there.set_range(0, held.there.len(), true);
            self.stats.decoded += 1;
            self.stats.used += u64::from(used);
        } else {
            self.stats.failures += 1;
            held.extra = (used + 1).saturating_sub(held.there.len());
        }
        self.settle(world, offset);
    }

    /// When a missing block is given up.
    pub(super) fn deadline(&self, world: &super::world::Shared) -> Option<Instant> {
        self.stream?;
        if self.ending.is_some() || !self.ready.is_empty() {
            return None;
        }
        let ends_early = self.total.is_some_and(|total| total.length > self.next);
        let waits = !self.blocks.is_empty() || ends_early;
        Some(if waits {
            self.stalled + world.config.stream_timeout
        } else {
            self.heard + world.config.idle
        })
    }

    pub(super) fn tick(&mut self, world: &mut World<'_>) {
        if self.deadline(world.shared).is_none_or(|due| due > world.now) {
            return;
        }
        if world.shared.backlog > 0 {
            // Not the network is slow, but whoever reads our output. Both waits begin anew: either
            // may be the one that is over.
            (self.stalled, self.heard) = (world.now, world.now);
            return;
        }
        let text = if self.blocks.is_empty() && self.total.is_none() {
            format!("the stream fell silent before its end, at byte {}", self.next)
        } else if self.next == 0 {
            "the start of the stream was missed: begin to receive before it is sent".to_owned()
        } else {
            format!(
                "the stream was interrupted at byte {}: push it with more redundancy or at a lower \
                 rate",
                self.next
            )
        };
        self.ending = Some(Ending::Failed(text));
    }

    fn send_progress(&mut self, world: &mut World<'_>) {
        if world.now.since(self.progress_at) >= PROGRESS_EVERY {
            self.progress_at = world.now;
            let total = self.total.map(|total| total.length);
            let (label, done, note) = (self.name(), self.next, String::new());
            world.out.push(ReceiverOutput::Host(HostOutput::Progress { label, done, total, note }));
        }
    }

    /// Bytes of content in memory.
    pub(super) fn memory(&self) -> usize {
        self.memory
    }
}
