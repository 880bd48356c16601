//! Saving the state.
//!
//! The new state is written beside the old one and then takes its place. It says what the disk had
//! confirmed when it was composed: writes still under way are left out, so a kill at any moment
//! leaves a state that is true. (After a power failure the files may hold less than the disk had
//! confirmed. The digest over the whole file finds that out, and the object is received again; a
//! flush to the medium before each state would cost every reception more than that rare case.)

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use weft_base::Instant;
use weft_runtime::{DiskError, DiskErrorKind, DiskReply, DiskRequest, Level, OpenMode};

use super::{Outcome, Reception, Stage};
use crate::object::Extent;
use crate::receiver::bitmap::Bitmap;
use crate::receiver::blocks::Repair;
use crate::receiver::resume::Writer;
use crate::receiver::world::{Job, World};

/// New bytes after which the state is saved, at least; and at least this many times its own size, so
/// that saving never costs more than a few percent of the disk's work.
const SAVE_BYTES: u64 = 8 << 20;
const SAVE_FACTOR: u64 = 16;
/// How long to wait after a state could not be saved.
const SAVE_RETRY: Duration = Duration::from_secs(5);
/// Silence after which the state is saved however little is new.
const SAVE_SILENCE: Duration = Duration::from_secs(1);

impl Reception {
    pub(super) fn save_if_due(&mut self, world: &mut World<'_>) {
        if self.save_deadline().is_some_and(|due| due <= world.now) {
            self.save(world);
        }
    }

    pub(super) fn save_deadline(&self) -> Option<Instant> {
        let much = self.unsaved >= SAVE_BYTES.max(SAVE_FACTOR * self.state_len as u64);
        let wait = if much { Duration::ZERO } else { SAVE_SILENCE };
        (self.unsaved > 0 && !self.saving).then(|| (self.heard + wait).max(self.save_at))
    }

    fn save(&mut self, world: &mut World<'_>) {
        if self.saving || self.symbol_size.is_none() {
            return;
        }
        self.saving = true;
        self.flush(world);
        let request = DiskRequest::Open { path: self.path(".state.new"), mode: OpenMode::Replace };
        self.ask(world, Job::OpenSave, request);
    }

    pub(super) fn on_saving(
        &mut self,
        world: &mut World<'_>,
        job: Job,
        result: Result<DiskReply, DiskError>,
    ) {
        match (job, result) {
            (Job::OpenSave, Ok(DiskReply::Opened { file, .. })) => {
                let bytes = self.state(world);
                self.state_len = bytes.len();
                self.unsaved = 0;
                self.ask(
                    world,
                    Job::WriteSave(file),
                    DiskRequest::Write { file, offset: 0, bytes },
                );
            }
            (Job::WriteSave(file), result) => {
                world.tell(DiskRequest::Close { file });
                if let Err(error) = result {
                    return self.on_not_saved(world, Some(&error));
                }
                let (from, to) = (self.path(".state.new"), self.path(".state"));
                self.ask(world, Job::RenameSave, DiskRequest::Rename { from, to });
            }
            (Job::RenameSave, Ok(_)) => self.on_saved(world),
            (_, result) => self.on_not_saved(world, result.err().as_ref()),
        }
    }

    /// A state that could not be saved costs only reception after a kill; the next one may succeed.
    /// For the last state a full disk is given some room.
    fn on_not_saved(&mut self, world: &mut World<'_>, error: Option<&DiskError>) {
        world.tell(DiskRequest::Remove { path: self.path(".state.new") });
        self.saving = false;
        self.unsaved = self.unsaved.max(1);
        self.save_at = world.now + SAVE_RETRY;
        if !matches!(self.stage, Stage::Parking) {
            return self.verify(world);
        }
        let is_full = error.is_some_and(|error| error.kind == DiskErrorKind::Full);
        // An older state claims what would have to go: then that one is good enough.
        if is_full && !self.has_state && !self.made_room {
            self.made_room = true;
            self.make_room(world);
            if !self.blocks.is_empty() {
                return self.save(world);
            }
        }
        self.end_parked(world, false);
    }

    fn on_saved(&mut self, world: &mut World<'_>) {
        self.saving = false;
        self.has_state = true;
        if !matches!(self.stage, Stage::Parking) {
            return self.verify(world);
        }
        // The state may have been composed before the last writes were confirmed.
        if self.unsaved > 0 {
            self.save(world);
        } else {
            self.end_parked(world, true);
        }
    }

    /// Ends with what the disk holds, and says what a later run can go on with.
    fn end_parked(&mut self, world: &mut World<'_>, saved: bool) {
        let stays = if saved {
            "what was received stays for a later run"
        } else if self.has_state {
            "what was saved before stays for a later run"
        } else {
            // Without a state a later run cannot tell what the files hold.
            self.discard(world);
            "nothing of it stays for a later run"
        };
        if let Some(text) = self.giving_up.take() {
            return self.end(world, Outcome::Failed(format!("{text}; {stays}")));
        }
        if !saved {
            let line = format!("{}: its state could not be saved; {stays}", self.name());
            world.report(Level::Warning, line);
        }
        self.end(world, Outcome::Forgotten);
    }

    /// Gives up after its state is saved, if that is possible.
    pub(super) fn give_up(&mut self, world: &mut World<'_>, text: String) {
        self.giving_up = Some(text);
        self.park(world);
    }

    /// Saves its state for the last time and closes its files.
    pub(in crate::receiver) fn park(&mut self, world: &mut World<'_>) {
        match self.stage {
            Stage::Opening => self.end(world, Outcome::Forgotten),
            Stage::Receiving => {
                self.flush(world);
                self.stage = Stage::Parking;
                let nothing = self.blocks.is_empty() && self.description.is_none();
                if nothing || self.symbol_size.is_none() {
                    self.discard(world);
                    let outcome = self.giving_up.take().map_or(Outcome::Forgotten, Outcome::Failed);
                    self.end(world, outcome);
                } else {
                    self.save(world);
                }
            }
            Stage::Parking | Stage::Verified | Stage::Placing(_) | Stage::Ended => {}
        }
    }

    /// What the disk holds for certain.
    fn state(&mut self, world: &mut World<'_>) -> Vec<u8> {
        // What came since the flush is on its way now, and thereby left out.
        self.flush(world);
        let unconfirmed = self.unconfirmed(world);
        let size = self.symbol_size.unwrap_or(1);
        let mut writer = Writer::new(
            self.sender,
            self.object,
            self.kind,
            size,
            self.description.as_ref(),
            self.total.as_ref(),
        );
        writer.complete(self.blocks.complete.iter());
        let partial: Vec<_> = self
            .blocks
            .iter()
            .map(|(offset, partial)| {
                let block = Extent { offset, len: partial.len };
                let held = unconfirmed.confirmed_source(offset, &partial.held);
                (block, held, unconfirmed.confirmed_repairs(&partial.repairs))
            })
            .filter(|(_, held, repairs)| held.ones() > 0 || !repairs.is_empty())
            .collect();
        writer.partial(partial.into_iter())
    }

    fn unconfirmed(&self, world: &World<'_>) -> Unconfirmed {
        let mut unconfirmed = Unconfirmed::default();
        let mine = |purpose: &&crate::receiver::world::Purpose| {
            purpose.serial == self.serial && purpose.epoch == self.epoch
        };
        for purpose in world.shared.requests.pending().filter(mine) {
            match &purpose.job {
                Job::Source(write) => {
                    let writes = unconfirmed.source.entry(write.block).or_default();
                    writes.push((write.first, write.count));
                }
                Job::Repairs(symbols) => {
                    unconfirmed.slots.extend(symbols.iter().map(|(_, repair)| repair.slot));
                }
                _ => {}
            }
        }
        unconfirmed
    }
}

/// Writes that the disk has not confirmed.
#[derive(Default)]
struct Unconfirmed {
    /// First symbol and number of each write, by block.
    source: BTreeMap<u64, Vec<(u32, u32)>>,
    slots: BTreeSet<u32>,
}

impl Unconfirmed {
    fn confirmed_source(&self, offset: u64, held: &Bitmap) -> Bitmap {
        let mut held = held.clone();
        for (first, count) in self.source.get(&offset).into_iter().flatten() {
            held.set_range(*first, *count, false);
        }
        held
    }

    fn confirmed_repairs(&self, repairs: &[Repair]) -> Vec<Repair> {
        repairs.iter().copied().filter(|repair| !self.slots.contains(&repair.slot)).collect()
    }
}
