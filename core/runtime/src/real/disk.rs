//! Files: requests are carried out at once and in order.
//!
//! A request on a regular file takes as long as the file system needs, which is short with a page
//! cache; only [`DiskRequest::Sync`] waits for the device. Streams (see `streams`) are answered when
//! they are ready.
//!
//! Reference: pread(2), pwrite(2), rename(2), fsync(2).

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

use weft_base::{FileId, Token};

use super::poller::Poller;
use super::streams::{STDOUT, Streams};
use crate::{DiskError, DiskErrorKind, DiskReply, DiskRequest, Event, OpenMode};

/// The path of standard input and output.
const STANDARD: &str = "-";
/// How much memory a read takes before it knows that the file is that long, in bytes.
const READ_STEP: usize = 1 << 20;

pub(super) struct Disk {
    open: BTreeMap<FileId, Open>,
    last: u32,
    pub(super) streams: Streams,
}

/// What a handle stands for.
enum Open {
    Regular {
        file: File,
        name: String,
    },
    /// The stream with the same handle.
    Stream {
        name: String,
    },
    /// Standard output, which is there once for all handles.
    Output,
}

impl Disk {
    /// No open files; standard output can be written.
    pub(super) fn new() -> io::Result<Self> {
        let mut streams = Streams::default();
        let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        streams.add_writer(STDOUT, stdout, "standard output".to_owned());
        Ok(Self { open: BTreeMap::new(), last: STDOUT.0, streams })
    }

    /// Carries a request out; answers now or, for a stream, later.
    pub(super) fn carry_out(
        &mut self,
        token: Token,
        request: DiskRequest,
        poller: &Poller,
        events: &mut VecDeque<Event>,
    ) {
        let result = match request {
            DiskRequest::Read { file, len, .. } if self.streams.is_reader(file) => {
                events.extend(self.streams.read(file, token, len, poller));
                return;
            }
            DiskRequest::Write { file, bytes, .. } if self.output(file).is_some() => {
                let stream = self.output(file).unwrap_or(STDOUT);
                self.streams.write(stream, token, &bytes);
                return;
            }
            DiskRequest::Close { file } => self.close(file, poller, events),
            request => self.answer(request),
        };
        events.push_back(Event::Disk { token, result });
    }

    /// The stream that is written when `file` is.
    fn output(&self, file: FileId) -> Option<FileId> {
        match self.open.get(&file)? {
            Open::Output => Some(STDOUT),
            Open::Stream { .. } => Some(file).filter(|file| self.streams.is_writer(*file)),
            Open::Regular { .. } => None,
        }
    }

    fn answer(&mut self, request: DiskRequest) -> Result<DiskReply, DiskError> {
        match request {
            DiskRequest::Open { path, mode } => self.open(&path, mode),
            DiskRequest::Read { file, offset, len } => {
                let (file, name) = self.regular(file)?;
                read_at(file, offset, len).map_err(|error| sentence("read", name, &error))
            }
            DiskRequest::Write { file, offset, bytes } => {
                let (file, name) = self.regular(file)?;
                done(file.write_all_at(&bytes, offset), "write to", name)
            }
            DiskRequest::SetLen { file, len } => {
                let (file, name) = self.regular(file)?;
                done(file.set_len(len), "change the length of", name)
            }
            DiskRequest::Sync { file } => match self.open.get(&file) {
                Some(Open::Stream { .. } | Open::Output) => Ok(DiskReply::Done),
                _ => {
                    let (file, name) = self.regular(file)?;
                    done(file.sync_all(), "make durable", name)
                }
            },
            DiskRequest::Close { .. } => Err(unknown()),
            DiskRequest::Rename { from, to } => {
                let both = format!("{}` to `{}", from.display(), to.display());
                done(fs::rename(from, to), "rename", &both)
            }
            DiskRequest::Remove { path } => done(fs::remove_file(&path), "remove", &show(&path)),
            DiskRequest::MakeDirectory { path } => {
                done(fs::create_dir_all(&path), "make the directory", &show(&path))
            }
            DiskRequest::SyncDirectory { path } => {
                let synced = File::open(&path).and_then(|directory| directory.sync_all());
                done(synced, "make durable", &show(&path))
            }
            DiskRequest::List { path } => {
                list(&path).map_err(|error| sentence("list", &show(&path), &error))
            }
        }
    }

    fn open(&mut self, path: &Path, mode: OpenMode) -> Result<DiskReply, DiskError> {
        let id = FileId(self.last + 1);
        let name = show(path);
        let (open, len) = if path == Path::new(STANDARD) {
            self.open_standard(id, mode).map_err(|error| sentence("open", &name, &error))?
        } else {
            self.open_path(id, path, mode).map_err(|error| sentence("open", &name, &error))?
        };
        self.last = id.0;
        self.open.insert(id, open);
        Ok(DiskReply::Opened { file: id, len })
    }

    fn open_standard(&mut self, id: FileId, mode: OpenMode) -> io::Result<(Open, Option<u64>)> {
        if mode != OpenMode::Read {
            return Ok((Open::Output, None));
        }
        let stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let name = "standard input".to_owned();
        self.streams.add_reader(id, stdin, name.clone());
        Ok((Open::Stream { name }, None))
    }

    fn open_path(
        &mut self,
        id: FileId,
        path: &Path,
        mode: OpenMode,
    ) -> io::Result<(Open, Option<u64>)> {
        let file = OpenOptions::new()
            .read(true)
            .write(mode != OpenMode::Read)
            .create(mode != OpenMode::Read)
            .truncate(mode == OpenMode::Replace)
            // Opening a pipe must not wait for its other end; regular files do not care.
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
            .open(path)?;
        let (metadata, name) = (file.metadata()?, show(path));
        let kind = metadata.file_type();
        if kind.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        if !(kind.is_fifo() || kind.is_char_device() || kind.is_socket()) {
            return Ok((Open::Regular { file, name }, Some(metadata.len())));
        }
        match mode {
            OpenMode::Read => self.streams.add_reader(id, file, name.clone()),
            OpenMode::Update | OpenMode::Replace => {
                self.streams.add_writer(id, file, name.clone());
            }
        }
        Ok((Open::Stream { name }, None))
    }

    fn close(
        &mut self,
        file: FileId,
        poller: &Poller,
        events: &mut VecDeque<Event>,
    ) -> Result<DiskReply, DiskError> {
        let open = self.open.remove(&file).ok_or_else(unknown)?;
        if matches!(open, Open::Stream { .. }) {
            self.streams.close(file, poller, events);
        }
        Ok(DiskReply::Done)
    }

    /// A file with offsets, and its name.
    fn regular(&self, file: FileId) -> Result<(&File, &str), DiskError> {
        match self.open.get(&file).ok_or_else(unknown)? {
            Open::Regular { file, name } => Ok((file, name)),
            Open::Stream { name } => Err(unsuitable(name)),
            Open::Output => Err(unsuitable("standard output")),
        }
    }
}

/// Reads `len` bytes, fewer only at the end.
fn read_at(file: &File, offset: u64, len: usize) -> io::Result<DiskReply> {
    let mut bytes = Vec::new();
    while bytes.len() < len {
        let start = bytes.len();
        bytes.resize(len.min(start + READ_STEP), 0);
        let count = read_some(file, &mut bytes[start..], offset + start as u64)?;
        bytes.truncate(start + count);
        if count == 0 {
            return Ok(DiskReply::Data { bytes, end: true });
        }
    }
    let end = offset.saturating_add(len as u64) >= file.metadata()?.len();
    Ok(DiskReply::Data { bytes, end })
}

fn read_some(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    loop {
        match file.read_at(buffer, offset) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn list(path: &Path) -> io::Result<DiskReply> {
    let mut names = fs::read_dir(path)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<Vec<String>>>()?;
    names.sort();
    Ok(DiskReply::Names(names))
}

fn done(result: io::Result<()>, verb: &str, name: &str) -> Result<DiskReply, DiskError> {
    result.map(|()| DiskReply::Done).map_err(|error| sentence(verb, name, &error))
}

fn show(path: &Path) -> String {
    path.display().to_string()
}

fn unknown() -> DiskError {
    let text = "the file is not open (any more)".to_owned();
    DiskError { kind: DiskErrorKind::Other, text }
}

fn unsuitable(name: &str) -> DiskError {
    let text = format!("`{name}` can only be read or written in order, and not in this direction");
    DiskError { kind: DiskErrorKind::Other, text }
}

/// What it means that the program could not `verb` the file called `name`.
pub(super) fn sentence(verb: &str, name: &str, error: &io::Error) -> DiskError {
    let (kind, why) = match error.kind() {
        ErrorKind::NotFound => (DiskErrorKind::NotFound, "there is no such file or directory"),
        ErrorKind::StorageFull => (DiskErrorKind::Full, "the disk is full; free some space"),
        ErrorKind::QuotaExceeded => (DiskErrorKind::Full, "the user's quota is used up"),
        ErrorKind::PermissionDenied => (DiskErrorKind::Denied, "this user may not"),
        ErrorKind::ReadOnlyFilesystem => (DiskErrorKind::Denied, "the file system is read-only"),
        ErrorKind::IsADirectory => (DiskErrorKind::Other, "it is a directory"),
        ErrorKind::BrokenPipe => (DiskErrorKind::Other, "its reader is gone"),
        _ => return other(verb, name, error),
    };
    DiskError { kind, text: format!("cannot {verb} `{name}`: {why}") }
}

fn other(verb: &str, name: &str, error: &io::Error) -> DiskError {
    DiskError { kind: DiskErrorKind::Other, text: format!("cannot {verb} `{name}`: {error}") }
}
