//! Opening an object's files, and going on where an earlier run stopped.

use weft_base::FileId;
use weft_runtime::{DiskError, DiskErrorKind, DiskReply, DiskRequest, Level, OpenMode};

use super::{Outcome, Reception, Stage};
use crate::object::ObjectKind;
use crate::receiver::blocks::Phase;
use crate::receiver::resume::{self, Saved};
use crate::receiver::store::{Store, slot_size};
use crate::receiver::world::{Job, World};
use crate::wire::Datagram;

/// Longest state file that is read.
const MAX_STATE: u64 = 256 << 20;

impl Reception {
    pub(super) fn open(&mut self, world: &mut World<'_>, resume: bool) {
        if resume {
            let request = DiskRequest::Open { path: self.path(".state"), mode: OpenMode::Read };
            self.ask(world, Job::OpenState, request);
        } else {
            self.open_files(world);
        }
    }

    /// Opens part and repair file: what is there counts only if a state says so.
    fn open_files(&self, world: &mut World<'_>) {
        let mode = if self.saved.is_some() { OpenMode::Update } else { OpenMode::Replace };
        let part = DiskRequest::Open { path: self.path(".part"), mode };
        self.ask(world, Job::OpenPart, part);
        let repair = DiskRequest::Open { path: self.path(".repair"), mode };
        self.ask(world, Job::OpenRepair, repair);
    }

    pub(super) fn on_opening(
        &mut self,
        world: &mut World<'_>,
        job: Job,
        result: Result<DiskReply, DiskError>,
    ) {
        match (job, result) {
            (Job::OpenState, Ok(DiskReply::Opened { file, len })) => {
                let len = len.unwrap_or(0).min(MAX_STATE) as usize;
                let request = DiskRequest::Read { file, offset: 0, len };
                self.ask(world, Job::ReadState(file), request);
            }
            (Job::ReadState(file), result) => {
                world.tell(DiskRequest::Close { file });
                let bytes = match result {
                    Ok(DiskReply::Data { bytes, .. }) => bytes,
                    _ => Vec::new(),
                };
                self.on_state(world, &bytes);
            }
            (Job::OpenState, _) => self.open_files(world),
            (Job::OpenPart, Ok(DiskReply::Opened { file, len })) => {
                self.on_part(world, file, len.unwrap_or(0));
            }
            (Job::OpenRepair, Ok(DiskReply::Opened { file, len })) => {
                self.on_repair(world, file, len.unwrap_or(0));
            }
            (_, Err(error)) => self.on_open_error(world, &error),
            _ => {}
        }
    }

    fn on_open_error(&mut self, world: &mut World<'_>, error: &DiskError) {
        if error.kind == DiskErrorKind::Full && !world.on_write_error(error) {
            return self.end(world, Outcome::Forgotten);
        }
        self.fail(world, format!("cannot be received: {}", error.text));
    }

    fn on_state(&mut self, world: &mut World<'_>, bytes: &[u8]) {
        let max_slots = u32::try_from(world.shared.config.limits.repair_bytes).unwrap_or(u32::MAX);
        let saved = resume::read(bytes, max_slots).filter(|saved| self.is_mine(saved));
        if saved.is_none() {
            let line = format!(
                "{}: the state an earlier run left is torn; what it received is received again",
                self.object
            );
            world.report(Level::Warning, line);
        }
        self.saved = saved;
        self.open_files(world);
    }

    /// Whether a state is about this object, and its description is the one the id stands for.
    fn is_mine(&self, saved: &Saved) -> bool {
        let right_id = match (&saved.description, &saved.total, saved.kind) {
            (Some(description), Some(total), ObjectKind::File) => {
                description.file_id(total) == saved.object
            }
            _ => true,
        };
        let same = saved.sender == self.sender && saved.object == self.object;
        same && saved.kind == self.kind && right_id
    }

    fn on_part(&mut self, world: &mut World<'_>, file: FileId, len: u64) {
        self.store = Some(Store::new(file, file));
        if self.saved.as_ref().is_some_and(|saved| len < saved.part_end()) {
            let line = format!(
                "{}: the part file an earlier run left is too short; it is received again",
                self.object
            );
            world.report(Level::Warning, line);
            self.saved = None;
        }
    }

    fn on_repair(&mut self, world: &mut World<'_>, file: FileId, len: u64) {
        let Some(store) = &mut self.store else { return };
        store.repair = file;
        if let Some(saved) = self.saved.take() {
            self.resume(world, saved, len);
        }
        self.stage = Stage::Receiving;
        for packet in std::mem::take(&mut self.waiting) {
            // It was parsed before it was kept.
            if let Ok(datagram) = Datagram::parse(packet.bytes()) {
                self.on_datagram(world, datagram);
            }
        }
        self.verify(world);
    }

    /// Takes over what an earlier run left.
    fn resume(&mut self, world: &mut World<'_>, mut saved: Saved, repair_len: u64) {
        let size = slot_size(saved.symbol_size) as u64;
        if saved.slots().last().is_some_and(|last| (u64::from(*last) + 1) * size > repair_len) {
            let offsets: Vec<u64> = saved.blocks.iter().map(|(offset, _)| offset).collect();
            for offset in offsets {
                drop(saved.blocks.take_repairs(offset));
            }
        }
        if let Some(store) = &mut self.store {
            store.use_slots(&saved.slots());
        }
        self.has_state = true;
        self.symbol_size = Some(saved.symbol_size);
        self.description = saved.description;
        self.total = saved.total;
        self.blocks = saved.blocks;
        let symbol_size = u64::from(saved.symbol_size);
        let complete: u64 = self
            .blocks
            .complete
            .iter()
            .map(|(start, end)| (end - start).div_ceil(symbol_size))
            .sum();
        let partial: u64 =
            self.blocks.iter().map(|(_, partial)| u64::from(partial.symbols())).sum();
        self.stats.resumed = complete + partial;
        self.stats.used += complete;
        self.stats.needed += complete;
        let line = format!(
            "{}: going on with {} symbols of an earlier run",
            self.name(),
            self.stats.resumed
        );
        world.report(Level::Info, line);
        if !self.blocks_fit() {
            return self.restart(world);
        }
        self.charge(world, self.stats.resumed * symbol_size);
        let offsets: Vec<u64> = self.blocks.iter().map(|(offset, _)| offset).collect();
        for offset in offsets {
            self.settle_block(world, offset);
        }
    }

    /// Counts bytes on disk for the sender.
    pub(super) fn charge(&mut self, world: &mut World<'_>, bytes: u64) {
        self.disk_bytes += bytes;
        *world.shared.disk.entry(self.sender).or_default() += bytes;
    }

    /// Sees whether a block is filled or can be decoded, and moves it on if so.
    pub(super) fn settle_block(&mut self, world: &mut World<'_>, offset: u64) {
        let gathers = self.store.as_ref().is_some_and(|store| store.gathers(offset));
        let Some(partial) = self.blocks.get_mut(offset) else { return };
        match partial.phase {
            Phase::Collecting | Phase::Filled if partial.is_filled() => {
                partial.phase = Phase::Filled;
                if gathers {
                    self.flush(world);
                } else if partial.writes == 0 {
                    self.complete_block(world, offset);
                }
            }
            Phase::Collecting if partial.is_decodable() => {
                partial.phase = Phase::Queued;
                self.ready.push_back(offset);
            }
            Phase::Filled => {
                // A write failed: something is missing again.
                partial.phase = Phase::Collecting;
                if partial.is_decodable() {
                    partial.phase = Phase::Queued;
                    self.ready.push_back(offset);
                }
            }
            Phase::Collecting | Phase::Queued | Phase::Decoding => {}
        }
    }
}
