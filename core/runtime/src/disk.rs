//! What a process can have done with files.

use std::path::PathBuf;

use weft_base::FileId;

/// How to open a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// For reading; it must exist.
    Read,
    /// For reading and writing; made if it does not exist, kept as it is if it does.
    Update,
    /// For reading and writing; emptied if it exists.
    Replace,
}

/// Something to do with files. Paths are relative to the process's working directory; the path `-`
/// is standard input for reading and standard output for writing, which are streams: offsets are
/// ignored.
#[derive(Debug)]
pub enum DiskRequest {
    /// Open a file; answered by [`DiskReply::Opened`].
    Open {
        /// Which.
        path: PathBuf,
        /// How.
        mode: OpenMode,
    },
    /// Read up to `len` bytes; answered by [`DiskReply::Data`]. A stream answers when there is
    /// something to read.
    Read {
        /// Which file.
        file: FileId,
        /// From where, in bytes.
        offset: u64,
        /// How much at most, in bytes.
        len: usize,
    },
    /// Write all of `bytes`; answered by [`DiskReply::Done`].
    Write {
        /// Which file.
        file: FileId,
        /// To where, in bytes.
        offset: u64,
        /// What.
        bytes: Vec<u8>,
    },
    /// Make the file `len` bytes long; answered by [`DiskReply::Done`].
    SetLen {
        /// Which file.
        file: FileId,
        /// How long, in bytes.
        len: u64,
    },
    /// Make what was written durable; answered by [`DiskReply::Done`].
    Sync {
        /// Which file.
        file: FileId,
    },
    /// Close a file; answered by [`DiskReply::Done`].
    Close {
        /// Which.
        file: FileId,
    },
    /// Rename within a file system, replacing the target in one step; [`DiskReply::Done`].
    Rename {
        /// Old path.
        from: PathBuf,
        /// New path.
        to: PathBuf,
    },
    /// Remove a file; answered by [`DiskReply::Done`].
    Remove {
        /// Which.
        path: PathBuf,
    },
    /// Make a directory and its parents; no error if it exists. [`DiskReply::Done`].
    MakeDirectory {
        /// Which.
        path: PathBuf,
    },
    /// Make durable which names a directory holds: files made, renamed and removed in it;
    /// answered by [`DiskReply::Done`].
    SyncDirectory {
        /// Which.
        path: PathBuf,
    },
    /// List a directory's entries in order of name; answered by [`DiskReply::Names`].
    List {
        /// Which.
        path: PathBuf,
    },
}

/// What came of a [`DiskRequest`].
#[derive(Debug, PartialEq, Eq)]
pub enum DiskReply {
    /// The file is open.
    Opened {
        /// Its handle, valid until it is closed.
        file: FileId,
        /// Its length in bytes; `None` for streams.
        len: Option<u64>,
    },
    /// What was read: fewer bytes than asked for, or none, only at the end (streams: whatever
    /// was there).
    Data {
        /// The bytes.
        bytes: Vec<u8>,
        /// Whether this is the end of the file or stream.
        end: bool,
    },
    /// Names without directories, in byte order.
    Names(Vec<String>),
    /// It was done.
    Done,
}

/// Why a [`DiskRequest`] failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct DiskError {
    /// What kind of failure, for programs.
    pub kind: DiskErrorKind,
    /// What, where and why, in one sentence.
    pub text: String,
}

/// The kinds of [`DiskError`] that programs treat differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiskErrorKind {
    /// There is no such file.
    NotFound,
    /// The disk, or the quota, is full.
    Full,
    /// Permission was refused.
    Denied,
    /// Anything else.
    Other,
}
