//! What all objects of a receiver share: options, outstanding requests, the state of the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use weft_base::{Counters, FileId, Instant, Reason};
use weft_runtime::{DiskError, DiskErrorKind, DiskRequest, Level};

use super::blocks::Repair;
use super::config::{FullDisk, ReceiverConfig};
use super::events::{DropReason, ReceiverOutput};
use super::store::SourceWrite;
use crate::disk::Requests;
use crate::host::HostOutput;
use crate::object::SenderKey;

/// How long to wait before a full disk is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// How long writes must have succeeded until a disk that was full counts as having room.
const ROOM_AFTER: Duration = Duration::from_secs(10);

/// A disk that was full, and perhaps still is.
///
/// A write that succeeds proves little: it may have gone to space that was taken before. So after a
/// failure nothing is written for a while, then one symbol, then two, then four, …; and the operator
/// is not told of room before nothing failed for some time.
struct Full {
    failed_at: Instant,
    retry_at: Instant,
    /// Symbols that may be written until one of the writes is confirmed, and how many were.
    granted: u32,
    used: u32,
    /// When they were granted.
    granted_at: Instant,
    /// Whether a write has succeeded since.
    wrote: bool,
}

impl Full {
    fn new(now: Instant) -> Self {
        Self {
            failed_at: now,
            retry_at: now + RETRY,
            granted: 0,
            used: 0,
            granted_at: now,
            wrote: false,
        }
    }

    fn is_blocked(&self, now: Instant) -> bool {
        self.granted == 0 && now < self.retry_at
    }

    /// Whether one more symbol may be written.
    ///
    /// What is taken may never be written: the symbol can still be dropped for another reason, or be
    /// discarded while it is being gathered. So a grant that is used up without a write being
    /// confirmed is given again after a while.
    fn take(&mut self, now: Instant) -> bool {
        if self.granted == 0 && now >= self.retry_at {
            self.grant(1, now);
        } else if self.granted > 0 && self.used >= self.granted && now >= self.granted_at + RETRY {
            self.grant(self.granted, now);
        }
        let may = self.used < self.granted;
        self.used += u32::from(may);
        may
    }

    fn grant(&mut self, symbols: u32, now: Instant) {
        (self.granted, self.used, self.granted_at) = (symbols, 0, now);
    }

    fn on_write(&mut self, now: Instant) {
        self.wrote = true;
        if self.used >= self.granted {
            self.grant(self.granted.saturating_mul(2), now);
        }
    }
}

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
    // Standard output.
    OpenOutput,
    WriteOutput,
    /// Nobody waits for the answer.
    Unattended,
}

/// See the [module](self).
pub(super) struct Shared {
    pub(super) config: ReceiverConfig,
    pub(super) directory: PathBuf,
    pub(super) requests: Requests<Purpose>,
    pub(super) drops: Counters<DropReason>,
    /// The limits that were said to be reached.
    pub(super) told: BTreeSet<DropReason>,
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
    full: Option<Full>,
    /// The disk is full, and that is to be the end.
    pub(super) gave_up: bool,
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
            told: BTreeSet::new(),
            backlog: 0,
            disk: BTreeMap::new(),
            index: 0,
            decoding: None,
            placing: None,
            full: None,
            gave_up: false,
        }
    }

    /// An answer came.
    pub(super) fn take(&mut self, token: weft_base::Token) -> Option<Purpose> {
        let purpose = self.requests.take(token)?;
        self.backlog -= purpose.bytes;
        Some(purpose)
    }

    /// Why no symbol can be written now, if so. A disk that was full is given few symbols at first.
    pub(super) fn write_hindrance(&mut self, now: Instant) -> Option<DropReason> {
        if self.backlog >= self.config.limits.backlog_bytes {
            return Some(DropReason::Backlog);
        }
        let full = self.full.as_mut()?;
        (!full.take(now)).then_some(DropReason::DiskFull)
    }

    /// Whether the disk is full and it is not yet time to try again.
    pub(super) fn is_blocked(&self, now: Instant) -> bool {
        self.full.as_ref().is_some_and(|full| full.is_blocked(now))
    }

    /// When a full disk may be tried again; `None` if it is not full.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.full.as_ref().map(|full| full.retry_at)
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
        self.out.push(ReceiverOutput::Host(HostOutput::Disk { token, request }));
    }

    /// A request nobody waits for.
    pub(super) fn tell(&mut self, request: DiskRequest) {
        self.ask(0, 0, Job::Unattended, request);
    }

    /// Counts a datagram that is not used. A limit that is reached is said, once.
    pub(super) fn drop(&mut self, reason: DropReason) {
        self.shared.drops.add(reason, 1);
        if reason.is_limit() && self.shared.told.insert(reason) {
            let why = reason.help();
            let line = format!("a datagram is dropped: {why}; further ones are counted only");
            self.report(Level::Warning, line);
        }
    }

    pub(super) fn report(&mut self, level: Level, line: String) {
        self.out.push(ReceiverOutput::Host(HostOutput::Report { level, line }));
    }

    /// A write failed. Says why once; returns whether the object must be given up.
    pub(super) fn on_write_error(&mut self, error: &DiskError) -> bool {
        if error.kind != DiskErrorKind::Full {
            return true;
        }
        let is_news = self.shared.full.is_none();
        self.shared.full = Some(Full::new(self.now));
        if is_news && self.shared.config.on_full == FullDisk::Wait {
            let line = format!("{}, and reception goes on", error.text);
            self.report(Level::Error, line);
        }
        self.shared.gave_up |= self.shared.config.on_full == FullDisk::Fail;
        self.shared.gave_up
    }

    /// A write succeeded.
    pub(super) fn on_write(&mut self) {
        let Some(full) = &mut self.shared.full else { return };
        full.on_write(self.now);
        if full.wrote && self.now >= full.failed_at + ROOM_AFTER {
            self.shared.full = None;
            self.report(Level::Info, "there is room on the disk again: reception goes on".into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_that_leads_to_no_write_is_given_again() {
        let start = Instant::ZERO;
        let mut full = Full::new(start);
        assert!(!full.take(start));
        let mut now = start + RETRY;
        for _ in 0..3 {
            // The symbol is admitted, and then dropped for another reason: nothing is written.
            assert!(full.take(now));
            assert!(!full.take(now), "one symbol at a time");
            now += RETRY;
        }
        assert!(full.take(now));
        full.on_write(now);
        assert!(full.take(now) && full.take(now), "a write was confirmed: two more");
        assert!(!full.take(now));
        assert!(full.take(now + RETRY));
    }
}
