//! What all objects of a receiver share: options, outstanding requests, the state of the disk.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use weft_base::{Counters, FileId, Instant};
use weft_runtime::{DiskError, DiskErrorKind, DiskRequest, Level};

use super::blocks::Repair;
use super::config::{FullDisk, ReceiverConfig};
use super::events::{DropReason, ReceiverOutput};
use super::store::SourceWrite;
use crate::disk::Requests;
use crate::object::SenderKey;

/// How long to wait before a full disk is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// What a disk request was for.
#[derive(Debug)]
pub(super) struct Purpose {
    /// The object, by its serial number.
    pub(super) serial: u64,
    /// How often the object had been restarted: answers to requests from before are ignored.
    pub(super) epoch: u32,
    /// Bytes on their way to the disk.
    bytes: usize,
    pub(super) job: Job,
}

#[derive(Debug)]
pub(super) enum Job {
    /// The directory is being made or listed; the serial number means nothing.
    Directory,
    // Opening.
    OpenState,
    ReadState(FileId),
    OpenPart,
    OpenRepair,
    // Storing.
    Source(SourceWrite),
    Repairs(Vec<(u64, Repair)>),
    // Decoding.
    ReadBlock,
    ReadSlots(Vec<Repair>),
    // Verifying.
    Verify,
    // Saving the state.
    OpenSave,
    WriteSave(FileId),
    RenameSave,
    // Putting the finished file in its place.
    SetLength,
    Sync,
    Look,
    Compare(FileId),
    Rename,
    /// Nobody waits for the answer.
    Unattended,
}

/// See the [module](self).
pub(super) struct Shared {
    pub(super) config: ReceiverConfig,
    pub(super) directory: PathBuf,
    pub(super) requests: Requests<Purpose>,
    pub(super) drops: Counters<DropReason>,
    /// Bytes on their way to the disk.
    pub(super) backlog: usize,
    /// Bytes on disk for unfinished objects of each sender.
    pub(super) disk: BTreeMap<SenderKey, u64>,
    /// Bytes of memory for lists, all objects together.
    pub(super) index: usize,
    /// The object that is decoding a block: one at a time.
    pub(super) decoding: Option<u64>,
    /// The object that is being put in its place: one at a time, so that no two take one name.
    pub(super) placing: Option<u64>,
    /// Since when the disk is full, and when it may be tried again.
    full: Option<(Instant, Instant)>,
}

/// One call of the receiver: the time, what is shared, and where outputs go.
pub(super) struct World<'a> {
    pub(super) now: Instant,
    pub(super) shared: &'a mut Shared,
    pub(super) out: &'a mut Vec<ReceiverOutput>,
}

impl Shared {
    pub(super) fn new(config: ReceiverConfig, directory: PathBuf) -> Self {
        Self {
            config,
            directory,
            requests: Requests::new(),
            drops: Counters::new(),
            backlog: 0,
            disk: BTreeMap::new(),
            index: 0,
            decoding: None,
            placing: None,
            full: None,
        }
    }

    /// An answer came.
    pub(super) fn take(&mut self, token: weft_base::Token) -> Option<Purpose> {
        let purpose = self.requests.take(token)?;
        self.backlog -= purpose.bytes;
        Some(purpose)
    }

    /// Why nothing can be written now, if so. Lets one symbol a second through to a full disk.
    pub(super) fn write_hindrance(&mut self, now: Instant) -> Option<DropReason> {
        if self.backlog >= self.config.limits.backlog_bytes {
            return Some(DropReason::Backlog);
        }
        let (_, retry_at) = self.full.as_mut()?;
        if now < *retry_at {
            return Some(DropReason::DiskFull);
        }
        *retry_at = now + RETRY;
        None
    }

    pub(super) fn is_full(&self) -> bool {
        self.full.is_some()
    }

    /// When a full disk may be tried again; `None` if it is not full.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.full.map(|(_, retry_at)| retry_at)
    }
}

impl World<'_> {
    pub(super) fn ask(&mut self, serial: u64, epoch: u32, job: Job, request: DiskRequest) {
        let bytes = match &request {
            DiskRequest::Write { bytes, .. } => bytes.len(),
            _ => 0,
        };
        self.shared.backlog += bytes;
        let token = self.shared.requests.ask(Purpose { serial, epoch, bytes, job });
        self.out.push(ReceiverOutput::Disk { token, request });
    }

    /// A request nobody waits for.
    pub(super) fn tell(&mut self, request: DiskRequest) {
        self.ask(0, 0, Job::Unattended, request);
    }

    pub(super) fn drop(&mut self, reason: DropReason) {
        self.shared.drops.add(reason, 1);
    }

    pub(super) fn report(&mut self, level: Level, line: String) {
        self.out.push(ReceiverOutput::Report { level, line });
    }

    /// A write failed. Says why once; returns whether the object must be given up.
    pub(super) fn on_write_error(&mut self, error: &DiskError) -> bool {
        if error.kind != DiskErrorKind::Full {
            return true;
        }
        if let Some((_, retry_at)) = &mut self.shared.full {
            *retry_at = self.now + RETRY;
        } else {
            self.shared.full = Some((self.now, self.now + RETRY));
            let line = format!("the disk is full: {}; make room and reception goes on", error.text);
            if self.shared.config.on_full == FullDisk::Wait {
                self.report(Level::Error, line);
            }
        }
        self.shared.config.on_full == FullDisk::Fail
    }

    /// A write succeeded; if the disk was full it is no longer.
    pub(super) fn on_write(&mut self) {
        // Writes that were on their way when the disk filled up may still succeed; they say nothing.
        if let Some((since, _)) = self.shared.full
            && self.now >= since + RETRY
        {
            self.shared.full = None;
            self.report(Level::Info, "there is room on the disk again: reception goes on".into());
        }
    }
}
