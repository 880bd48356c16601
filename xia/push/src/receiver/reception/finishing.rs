//! The end of an object: verified while it comes in, made durable, put in its place.

use std::path::PathBuf;

use weft_base::FileId;
use weft_runtime::{DiskError, DiskReply, DiskRequest, Level, OpenMode};

use super::{MAX_MISMATCHES, Outcome, Reception, Stage};
use crate::digest::HashPass;
use crate::names;
use crate::object::Total;
use crate::receiver::events::ReceiveReport;
use crate::receiver::world::{Job, World};

/// Names tried before giving up.
const MAX_NAMES: u32 = 1000;

/// Where a finished file is on its way to its place.
pub(super) struct Placing {
    /// Which alternative of the name is tried.
    number: u32,
    /// A file that has this name already, being compared with ours.
    other: Option<(FileId, HashPass)>,
}

impl Reception {
    /// Hashes on as far as the object is complete from its start; finishes when all is hashed.
    pub(super) fn verify(&mut self, world: &mut World<'_>) {
        if !matches!(self.stage, Stage::Receiving) {
            return;
        }
        let limit = self.blocks.complete.prefix_end();
        let end = self.total.map(|total| total.length);
        if end == Some(limit) && self.complete_at.is_none() {
            self.complete_at = Some(world.now);
        }
        let Some(store) = &self.store else { return };
        let file = store.part;
        if let Some((offset, len)) = self.pass.next_read(limit, end) {
            self.ask(world, Job::Verify, DiskRequest::Read { file, offset, len });
        }
        let Some(total) = self.total else { return };
        if limit < total.length || self.saving {
            return;
        }
        match self.pass.digest(total.length) {
            None => {}
            Some(digest) if digest == total.sha256 => {
                self.stage = Stage::Verified;
            }
            Some(_) => self.on_mismatch(world),
        }
    }

    pub(super) fn on_verify_read(
        &mut self,
        world: &mut World<'_>,
        result: Result<DiskReply, DiskError>,
    ) {
        match result {
            Ok(DiskReply::Data { bytes, .. }) => {
                if !self.pass.read(bytes) {
                    self.on_mismatch(world);
                }
            }
            Ok(_) => {}
            Err(error) => {
                self.fail(world, format!("cannot be read back: {}", error.text));
            }
        }
    }

    /// Everything is there, and it is not what was announced.
    fn on_mismatch(&mut self, world: &mut World<'_>) {
        self.mismatches += 1;
        if self.mismatches >= MAX_MISMATCHES {
            self.discard(world);
            let text = format!(
                "the content does not have the announced SHA-256, {MAX_MISMATCHES} times in a row; \
                 somebody sends wrong symbols, or a disk or link damages data"
            );
            return self.end(world, Outcome::Failed(text));
        }
        let line = format!(
            "{}: the content does not have the announced SHA-256; it is received again",
            self.name()
        );
        world.report(Level::Error, line);
        self.restart(world);
    }

    /// Whether it waits to be put in its place.
    pub(in crate::receiver) fn wants_place(&self) -> bool {
        matches!(self.stage, Stage::Verified)
    }

    /// Makes the file durable, then looks for a name.
    pub(in crate::receiver) fn begin_placing(&mut self, world: &mut World<'_>) {
        let (Some(store), Some(total)) = (&self.store, self.total) else { return };
        let file = store.part;
        world.shared.placing = Some(self.serial);
        self.stage = Stage::Placing(Placing { number: 0, other: None });
        self.ask(world, Job::SetLength, DiskRequest::SetLen { file, len: total.length });
    }

    pub(super) fn on_placing(
        &mut self,
        world: &mut World<'_>,
        job: Job,
        result: Result<DiskReply, DiskError>,
    ) {
        match (job, result) {
            (Job::SetLength, Ok(_)) => {
                let Some(store) = &self.store else { return };
                let file = store.part;
                self.ask(world, Job::Sync, DiskRequest::Sync { file });
            }
            (Job::Sync, Ok(_)) => self.try_name(world),
            (Job::Look, Ok(DiskReply::Opened { file, len })) => self.on_other(world, file, len),
            // There is no such file, or none that can be read: only the former is a free name.
            (Job::Look, Err(error)) => {
                if error.kind == weft_runtime::DiskErrorKind::NotFound {
                    self.rename(world);
                } else {
                    self.next_name(world);
                }
            }
            (Job::Compare(file), result) => self.on_other_read(world, file, result),
            (Job::Rename, Ok(_)) => self.on_placed(world),
            (_, Err(error)) => {
                self.fail(world, format!("cannot be put in its place: {}", error.text));
            }
            _ => {}
        }
    }

    fn target(&self, world: &World<'_>) -> Option<PathBuf> {
        let Stage::Placing(placing) = &self.stage else { return None };
        Some(world.shared.directory.join(names::numbered(&self.name(), placing.number)))
    }

    fn try_name(&mut self, world: &mut World<'_>) {
        if world.shared.config.overwrite {
            return self.rename(world);
        }
        if let Some(path) = self.target(world) {
            self.ask(world, Job::Look, DiskRequest::Open { path, mode: OpenMode::Read });
        }
    }

    fn next_name(&mut self, world: &mut World<'_>) {
        let Stage::Placing(placing) = &mut self.stage else { return };
        if let Some((file, _)) = placing.other.take() {
            world.tell(DiskRequest::Close { file });
        }
        placing.number += 1;
        if placing.number < MAX_NAMES {
            return self.try_name(world);
        }
        self.fail(world, format!("{MAX_NAMES} files of this name are there already"));
    }

    /// A file has this name. If it is as long as ours it may be the same.
    fn on_other(&mut self, world: &mut World<'_>, file: FileId, len: Option<u64>) {
        let length = self.total.map(|total| total.length);
        let Stage::Placing(placing) = &mut self.stage else { return };
        placing.other = Some((file, HashPass::new()));
        if len.is_some() && len == length {
            self.compare(world);
        } else {
            self.next_name(world);
        }
    }

    /// Reads on in the other file; decides when all of it is hashed.
    fn compare(&mut self, world: &mut World<'_>) {
        let (Stage::Placing(placing), Some(total)) = (&mut self.stage, self.total) else { return };
        let Some((file, pass)) = &mut placing.other else { return };
        let file = *file;
        match pass.digest(total.length) {
            Some(digest) if digest == total.sha256 => self.on_same(world),
            Some(_) => self.next_name(world),
            None => {
                if let Some((offset, len)) = pass.next_read(total.length, Some(total.length)) {
                    self.ask(world, Job::Compare(file), DiskRequest::Read { file, offset, len });
                }
            }
        }
    }

    fn on_other_read(
        &mut self,
        world: &mut World<'_>,
        file: FileId,
        result: Result<DiskReply, DiskError>,
    ) {
        let Stage::Placing(placing) = &mut self.stage else { return };
        let Some((_, pass)) = placing.other.as_mut().filter(|other| other.0 == file) else {
            return;
        };
        let whole = match result {
            Ok(DiskReply::Data { bytes, .. }) => pass.read(bytes),
            _ => false,
        };
        if whole { self.compare(world) } else { self.next_name(world) }
    }

    pub(super) fn can_compare(&self) -> bool {
        match &self.stage {
            Stage::Placing(Placing { other: Some((_, pass)), .. }) => pass.has_work(),
            _ => false,
        }
    }

    /// One slice: hashes a piece of the other file.
    pub(super) fn compare_piece(&mut self, world: &mut World<'_>) {
        if let Stage::Placing(Placing { other: Some((_, pass)), .. }) = &mut self.stage {
            pass.work();
            self.compare(world);
        }
    }

    /// The file that is there already is the same: ours is not needed.
    fn on_same(&mut self, world: &mut World<'_>) {
        let line = format!("{}: a file with this content is there already", self.name());
        world.report(Level::Info, line);
        if let Stage::Placing(Placing { other: Some((file, _)), .. }) = &self.stage {
            world.tell(DiskRequest::Close { file: *file });
        }
        self.on_placed(world);
    }

    fn rename(&mut self, world: &mut World<'_>) {
        let from = self.path(".part");
        if let Some(to) = self.target(world) {
            self.ask(world, Job::Rename, DiskRequest::Rename { from, to });
        }
    }

    fn on_placed(&mut self, world: &mut World<'_>) {
        let (Some(path), Some(total)) = (self.target(world), self.total) else { return };
        let report = self.make_report(world, path, total);
        self.discard(world);
        self.end(world, Outcome::Received(Box::new(report)));
    }

    fn make_report(&self, world: &World<'_>, path: PathBuf, total: Total) -> ReceiveReport {
        ReceiveReport {
            sender: self.sender,
            object: self.object,
            name: self.name(),
            path: Some(path),
            bytes: total.length,
            sha256: total.sha256,
            symbols_needed: self.stats.needed,
            symbols_received: self.stats.received,
            symbols_used: self.stats.used,
            duplicates: self.stats.duplicates,
            surplus: self.stats.surplus,
            symbols_resumed: self.stats.resumed,
            blocks_decoded: self.stats.decoded,
            decode_failures: self.stats.failures,
            complete_after: self.complete_at.map_or(world.now, |at| at).since(self.began),
            elapsed: world.now.since(self.began),
        }
    }
}
