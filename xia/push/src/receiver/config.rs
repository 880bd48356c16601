//! What a receiver can be told.

use std::path::PathBuf;
use std::time::Duration;

use crate::object::MAX_BLOCK_BYTES;

/// Where objects go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Each object becomes a file in this directory, which is made if it does not exist.
    Directory(PathBuf),
    /// One live stream is written to standard output, in order.
    Stdout,
}

/// What to do when the disk is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullDisk {
    /// Drop symbols, try again every second, go on when there is space.
    Wait,
    /// End; what was received stays for a later run if its state finds room.
    Fail,
}

/// How much others may make a receiver keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Objects being received at a time.
    pub objects: usize,
    /// Objects being received at a time from one sender.
    pub objects_per_sender: usize,
    /// Unfinished objects on disk, those of earlier runs included. The one that waits longest for its
    /// sender is removed when there would be more.
    pub unfinished: usize,
    /// Bytes of one object.
    pub object_bytes: u64,
    /// Bytes on disk for the objects being received from one sender.
    pub disk_bytes_per_sender: u64,
    /// Bytes of a block: decoding takes about four times as much memory.
    pub block_bytes: u32,
    /// Source symbols of a block.
    pub block_symbols: u32,
    /// Bytes of repair symbols kept on disk for one object.
    pub repair_bytes: u64,
    /// Bytes of memory for lists of what was received, all objects together.
    pub index_bytes: usize,
    /// Bytes on their way to the disk; symbols that come while there are more are dropped.
    pub backlog_bytes: usize,
    /// Bytes of a stream held back for [`Destination::Stdout`] while an earlier block is missing.
    pub window_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            objects: 64,
            objects_per_sender: 16,
            unfinished: 256,
            object_bytes: 1 << 40,
            disk_bytes_per_sender: 1 << 40,
            block_bytes: MAX_BLOCK_BYTES,
            block_symbols: 8192,
            repair_bytes: 4 << 30,
            index_bytes: 48 << 20,
            backlog_bytes: 16 << 20,
            window_bytes: 16 << 20,
        }
    }
}

/// Options of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiverConfig {
    /// Where objects go.
    pub destination: Destination,
    /// End after this many objects; `None` goes on until stopped.
    pub count: Option<u64>,
    /// Replace a file of the same name instead of choosing another name.
    pub overwrite: bool,
    /// What to do when the disk is full.
    pub on_full: FullDisk,
    /// How long an object may be silent before it is put aside: closed, with its state on disk, if it
    /// is known what it is; removed if it was never announced or is a stream.
    pub idle: Duration,
    /// How long to wait for missing symbols after the end of a stream.
    pub stream_timeout: Duration,
    /// How much others may make it keep.
    pub limits: Limits,
}

impl ReceiverConfig {
    /// The defaults for receiving into `destination`.
    #[must_use]
    pub fn new(destination: Destination) -> Self {
        Self {
            destination,
            count: None,
            overwrite: false,
            on_full: FullDisk::Wait,
            idle: Duration::from_secs(600),
            stream_timeout: Duration::from_secs(5),
            limits: Limits::default(),
        }
    }
}
