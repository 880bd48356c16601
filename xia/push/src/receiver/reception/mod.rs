//! One object that is being received into a directory.
//!
//! The way of a symbol: [`Reception::on_symbol`] checks it against what is known and hands it to the
//! store (`storing`), which writes it. When a block has as many symbols as it has source symbols it is
//! queued; one block at a time is read back, decoded and completed (`decoding`). The bytes that are
//! complete from the start of the object on are hashed while the rest arrives; when all are there and
//! the digest is right, the file is put in its place (`finishing`). Now and then the state is saved
//! (`saving`), so that a later run can go on from there (`opening`).

mod admission;
mod decoding;
mod finishing;
mod opening;
mod room;
mod saving;
mod storing;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use weft_base::{Instant, Packet};
use weft_runtime::{DiskError, DiskReply, DiskRequest, Level};

use self::decoding::Decode;
use self::finishing::Placing;
use super::blocks::Blocks;
use super::events::{DropReason, PROGRESS_EVERY, ReceiveReport, ReceiverOutput};
use super::resume::Saved;
use super::store::Store;
use super::world::{Job, World};
use crate::digest::HashPass;
use crate::host::HostOutput;
use crate::object::{Description, ObjectId, ObjectKind, SenderKey, Total};
use crate::wire::{Datagram, Symbol};

/// Datagrams kept while an object's files are being opened.
const MAX_WAITING: usize = 256;
/// How often content may fail to verify before an object is given up.
const MAX_MISMATCHES: u32 = 3;

/// Where an object is in its life.
enum Stage {
    /// Its files are being opened.
    Opening,
    Receiving,
    /// Its state is being saved for the last time.
    Parking,
    /// Complete and verified; it waits for its turn to be put in its place.
    Verified,
    Placing(Placing),
    /// See [`Reception::outcome`].
    Ended,
}

/// How an object's reception ended.
pub(super) enum Outcome {
    Received(Box<ReceiveReport>),
    /// Given up; symbols that still come are ignored for a while.
    Failed(String),
    /// Forgotten: it may begin again at any time.
    Forgotten,
}

/// What is counted and timed for the report.
#[derive(Default)]
struct Stats {
    received: u64,
    needed: u64,
    used: u64,
    duplicates: u64,
    surplus: u64,
    resumed: u64,
    decoded: u64,
    failures: u64,
}

/// See the [module](self).
pub(super) struct Reception {
    serial: u64,
    epoch: u32,
    pub(super) sender: SenderKey,
    pub(super) object: ObjectId,
    kind: ObjectKind,
    /// What the names of its files begin with, directory included.
    stem: PathBuf,
    stage: Stage,
    outcome: Option<Outcome>,
    symbol_size: Option<u16>,
    description: Option<Description>,
    total: Option<Total>,
    blocks: Blocks,
    store: Option<Store>,
    /// Datagrams that came while the files were being opened.
    waiting: VecDeque<Packet>,
    saved: Option<Saved>,
    /// Blocks that can be decoded.
    ready: VecDeque<u64>,
    decode: Option<Decode>,
    pass: HashPass,
    stats: Stats,
    began: Instant,
    heard: Instant,
    complete_at: Option<Instant>,
    progress_at: Instant,
    /// Bytes stored that no saved state knows of, and the length of the last state.
    unsaved: u64,
    state_len: usize,
    saving: bool,
    /// No state is saved before: the last attempt failed.
    save_at: Instant,
    /// Whether there is a state on disk.
    has_state: bool,
    /// Why it is given up as soon as its state is saved.
    giving_up: Option<String>,
    /// Whether some of what was received was given up so that the state finds room.
    made_room: bool,
    disk_bytes: u64,
    mismatches: u32,
    stream_timeout: Duration,
    /// Whether its files were removed.
    discarded: bool,
}

/// What the names of all files of unfinished objects begin with.
pub(super) const STEM: &str = ".weft-push-";

/// The start of the names of an object's files. The sender is part of it: two senders of one object
/// must not share files, or one of them could spoil what the other sends.
pub(super) fn stem(sender: SenderKey, object: ObjectId) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::new().chain_update(sender.raw()).chain_update(object.0).finalize();
    let mut id = [0; 16];
    id.copy_from_slice(&digest[..16]);
    format!("{STEM}{}", ObjectId(id))
}

/// The extensions of its files.
const EXTENSIONS: [&str; 4] = [".part", ".repair", ".state", ".state.new"];

/// Removes the files of an object that is not being received.
pub(super) fn remove_files(world: &mut World<'_>, stem: &str) {
    for extension in EXTENSIONS {
        let path = world.shared.directory.join(format!("{stem}{extension}"));
        world.tell(DiskRequest::Remove { path });
    }
}

impl Reception {
    /// Begins with an object, or goes on with it if `resume` says that its files may be there.
    pub(super) fn new(
        world: &mut World<'_>,
        serial: u64,
        sender: SenderKey,
        object: ObjectId,
        kind: ObjectKind,
        resume: bool,
    ) -> Self {
        let mut reception = Self {
            serial,
            epoch: 0,
            sender,
            object,
            kind,
            stem: world.shared.directory.join(stem(sender, object)),
            stage: Stage::Opening,
            outcome: None,
            symbol_size: None,
            description: None,
            total: None,
            blocks: Blocks::default(),
            store: None,
            waiting: VecDeque::new(),
            saved: None,
            ready: VecDeque::new(),
            decode: None,
            pass: HashPass::new(),
            stats: Stats::default(),
            began: world.now,
            heard: world.now,
            complete_at: None,
            progress_at: world.now,
            unsaved: 0,
            state_len: 0,
            saving: false,
            save_at: world.now,
            has_state: false,
            giving_up: None,
            made_room: false,
            disk_bytes: 0,
            mismatches: 0,
            stream_timeout: world.shared.config.stream_timeout,
            discarded: false,
        };
        reception.open(world, resume);
        reception
    }

    fn ask(&self, world: &mut World<'_>, job: Job, request: DiskRequest) {
        world.ask(self.serial, self.epoch, job, request);
    }

    /// The path of one of its files.
    fn path(&self, extension: &str) -> PathBuf {
        let mut path = self.stem.clone().into_os_string();
        path.push(extension);
        path.into()
    }

    /// What people call it.
    pub(super) fn name(&self) -> String {
        match &self.description {
            Some(description) => crate::names::sanitised(&description.name),
            None => self.object.to_string(),
        }
    }

    /// Whether it removed its files.
    pub(super) fn is_discarded(&self) -> bool {
        self.discarded
    }

    pub(super) fn take_outcome(&mut self) -> Option<Outcome> {
        self.outcome.take()
    }

    /// Whether its files are still being opened: datagrams are then handed over by
    /// [`Reception::keep`].
    pub(super) fn is_opening(&self) -> bool {
        matches!(self.stage, Stage::Opening)
    }

    /// Keeps a datagram until the files are open.
    pub(super) fn keep(&mut self, world: &mut World<'_>, packet: Packet) {
        self.heard = world.now;
        if self.waiting.len() < MAX_WAITING {
            self.waiting.push_back(packet);
        } else {
            world.drop(DropReason::Opening);
        }
    }

    /// A datagram of this object.
    pub(super) fn on_datagram(&mut self, world: &mut World<'_>, datagram: Datagram<'_>) {
        match datagram {
            Datagram::Symbol(symbol) => self.on_symbol(world, &symbol),
            Datagram::Announce(announce) => self.on_announce(world, announce),
        }
    }

    /// A symbol of this object.
    fn on_symbol(&mut self, world: &mut World<'_>, symbol: &Symbol<'_>) {
        self.heard = world.now;
        if !matches!(self.stage, Stage::Receiving) {
            return self.count_late(world);
        }
        match self.admit(world, symbol) {
            Ok(()) => self.store_symbol(world, symbol),
            Err(reason) => {
                self.stats.duplicates += u64::from(reason == DropReason::Duplicate);
                self.stats.surplus += u64::from(reason == DropReason::Surplus);
                world.drop(reason);
            }
        }
        self.send_progress(world);
    }

    fn count_late(&mut self, world: &mut World<'_>) {
        self.stats.surplus += 1;
        world.drop(DropReason::Surplus);
    }

    /// Begins again with nothing; what is known of the object stays known.
    fn restart(&mut self, world: &mut World<'_>) {
        self.release(world);
        self.epoch += 1;
        self.blocks = Blocks::default();
        self.symbol_size = self.description.as_ref().map(|description| description.symbol_size);
        self.ready.clear();
        self.pass = HashPass::new();
        self.complete_at = None;
        self.unsaved = 0;
        self.saving = false;
        self.stage = Stage::Receiving;
        if let Some(store) = &mut self.store {
            store.reset();
            let files = [store.part, store.repair];
            for file in files {
                world.tell(DiskRequest::SetLen { file, len: 0 });
            }
        }
        self.has_state = false;
        world.tell(DiskRequest::Remove { path: self.path(".state") });
    }

    /// Gives back what it takes of what is shared.
    pub(super) fn release(&mut self, world: &mut World<'_>) {
        let shared = &mut *world.shared;
        if let Some(bytes) = shared.disk.get_mut(&self.sender) {
            *bytes = bytes.saturating_sub(self.disk_bytes);
            if *bytes == 0 {
                shared.disk.remove(&self.sender);
            }
        }
        self.disk_bytes = 0;
        for place in [&mut shared.decoding, &mut shared.placing] {
            if *place == Some(self.serial) {
                *place = None;
            }
        }
        self.decode = None;
    }

    /// An answer from the disk.
    pub(super) fn on_disk(
        &mut self,
        world: &mut World<'_>,
        epoch: u32,
        job: Job,
        result: Result<DiskReply, DiskError>,
    ) {
        if epoch != self.epoch || matches!(self.stage, Stage::Ended) {
            if let Ok(DiskReply::Opened { file, .. }) = result {
                world.tell(DiskRequest::Close { file });
            }
            return;
        }
        match job {
            Job::OpenState | Job::ReadState(_) | Job::OpenPart | Job::OpenRepair => {
                self.on_opening(world, job, result);
            }
            Job::Source(write) => self.on_source_written(world, write, result),
            Job::Repairs(symbols) => self.on_repairs_written(world, &symbols, result),
            Job::ReadBlock | Job::ReadSlots(_) => self.on_decode_read(world, job, result),
            Job::Verify => self.on_verify_read(world, result),
            Job::OpenSave | Job::WriteSave(_) | Job::RenameSave => {
                self.on_saving(world, job, result);
            }
            Job::SetLength | Job::Sync | Job::Look | Job::Compare(_) | Job::Rename => {
                self.on_placing(world, job, result);
            }
            Job::Directory | Job::OpenOutput | Job::WriteOutput | Job::Unattended => {}
        }
    }

    /// Time passes.
    pub(super) fn tick(&mut self, world: &mut World<'_>) {
        if !matches!(self.stage, Stage::Receiving) {
            return;
        }
        if self.store.as_ref().and_then(Store::deadline).is_some_and(|due| due <= world.now) {
            self.flush(world);
        }
        if self.stream_deadline().is_some_and(|due| due <= world.now) {
            return self.lose_stream(world);
        }
        if self.idle_deadline(world.shared.config.idle) <= world.now {
            return self.put_aside(world);
        }
        self.save_if_due(world);
    }

    /// When [`Reception::tick`] must be called at the latest.
    pub(super) fn deadline(&self, idle: Duration) -> Option<Instant> {
        if !matches!(self.stage, Stage::Receiving) {
            return None;
        }
        let flush = self.store.as_ref().and_then(Store::deadline);
        [flush, self.stream_deadline(), self.save_deadline(), Some(self.idle_deadline(idle))]
            .into_iter()
            .flatten()
            .min()
    }

    fn idle_deadline(&self, idle: Duration) -> Instant {
        self.heard + idle
    }

    /// When a stream that has ended is given up if something is missing. The wait begins with the
    /// last datagram, and decoding may take its time.
    fn stream_deadline(&self) -> Option<Instant> {
        let waits = self.kind == ObjectKind::Stream
            && self.total.is_some()
            && self.complete_at.is_none()
            && self.ready.is_empty()
            && self.decode.is_none();
        waits.then(|| self.heard + self.stream_timeout)
    }

    fn lose_stream(&mut self, world: &mut World<'_>) {
        let length = self.total.map_or(0, |total| total.length);
        let missing = length.saturating_sub(self.blocks.complete.bytes());
        let first = self.blocks.complete.prefix_end();
        let text = format!(
            "{missing} of {length} bytes of the stream were lost, the first at {first}; push it \
             again with more redundancy or at a lower rate"
        );
        self.discard(world);
        self.end(world, Outcome::Failed(text));
    }

    /// An object that has been silent for long is closed; it can begin again later.
    fn put_aside(&mut self, world: &mut World<'_>) {
        if self.kind == ObjectKind::Stream || self.description.is_none() {
            let line = format!("{}: silent for too long, discarded", self.name());
            world.report(Level::Warning, line);
            self.discard(world);
            return self.end(world, Outcome::Forgotten);
        }
        let line = format!("{}: silent for too long, put aside unfinished", self.name());
        world.report(Level::Warning, line);
        self.park(world);
    }

    /// Gives up, keeping what is on disk.
    fn fail(&mut self, world: &mut World<'_>, text: String) {
        self.end(world, Outcome::Failed(text));
    }

    /// Removes its files.
    fn discard(&mut self, world: &mut World<'_>) {
        self.discarded = true;
        for extension in EXTENSIONS {
            world.tell(DiskRequest::Remove { path: self.path(extension) });
        }
    }

    fn end(&mut self, world: &mut World<'_>, outcome: Outcome) {
        self.release(world);
        self.blocks = Blocks::default();
        if let Some(store) = self.store.take() {
            // While only the part file is open it stands for both.
            world.tell(DiskRequest::Close { file: store.part });
            if store.repair != store.part {
                world.tell(DiskRequest::Close { file: store.repair });
            }
        }
        self.stage = Stage::Ended;
        self.outcome = Some(outcome);
    }

    fn send_progress(&mut self, world: &mut World<'_>) {
        if world.now.since(self.progress_at) < PROGRESS_EVERY {
            return;
        }
        self.progress_at = world.now;
        let total = self.total.map(|total| total.length);
        let symbols = self.stats.received + self.stats.resumed;
        let bytes = symbols.saturating_mul(u64::from(self.symbol_size.unwrap_or(0)));
        let done = total.map_or(bytes, |total| total.min(bytes));
        let note = format!("{} bytes complete", self.blocks.complete.bytes());
        world.out.push(ReceiverOutput::Host(HostOutput::Progress {
            label: self.name(),
            done,
            total,
            note,
        }));
    }

    /// Whether its slice has something to do.
    pub(super) fn has_work(&self) -> bool {
        self.can_decode_now() || self.pass.has_work() || self.can_compare()
    }

    /// One slice of background work.
    pub(super) fn work(&mut self, world: &mut World<'_>) {
        if self.can_decode_now() {
            self.decode_block(world);
        } else if self.can_compare() {
            self.compare_piece(world);
        } else {
            self.pass.work();
            self.verify(world);
        }
    }

    /// Bytes of memory for lists of what was received.
    pub(super) fn index_memory(&self) -> usize {
        self.blocks.memory()
    }

    /// Bytes of content and lists in memory.
    pub(super) fn memory(&self) -> usize {
        self.blocks.memory()
            + self.store.as_ref().map_or(0, Store::memory)
            + self.waiting.iter().map(|packet| packet.len()).sum::<usize>()
            + self.pass.memory()
            + self.decode.as_ref().map_or(0, Decode::memory)
    }
}
