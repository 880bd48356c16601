//! Standard input and output, pipes and devices: files that can only be read or written in order, and
//! that may have nothing to read or no room for a while.
//!
//! Their descriptors are shared with other processes (the shell), so they are not made
//! non-blocking. Instead a call is made only when the kernel says that it will not block, and a write
//! is then no longer than a pipe surely takes. A pending request waits; the loop does not.
//!
//! Reference: pipe(7), poll(2).

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Write};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use weft_base::{FileId, Token};

use super::disk::sentence;
use super::poller::{Interest, Poller, Source};
use crate::{DiskError, DiskErrorKind, DiskReply, Event};

/// Standard output, which exists without being opened.
pub(super) const STDOUT: FileId = FileId(0);
/// The most that one read of a stream returns, in bytes.
const LONGEST_READ: usize = 64 << 10;
/// What a pipe that is writable takes without blocking: `PIPE_BUF`, in bytes.
const PIPE_WRITE: usize = 4096;
/// How much output waits for its reader before printed lines are dropped, in bytes.
const PRINT_LIMIT: usize = 64 << 20;

/// Whether the poller waits for a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watch {
    No,
    Yes,
    /// It need not: the stream is a regular file, or a device that never blocks.
    AlwaysReady,
}

#[derive(Default)]
pub(super) struct Streams {
    readers: BTreeMap<FileId, Reader>,
    writers: BTreeMap<FileId, Writer>,
}

struct Reader {
    file: File,
    name: String,
    watch: Watch,
    waiting: VecDeque<(Token, usize)>,
}

struct Writer {
    file: File,
    name: String,
    watch: Watch,
    pending: VecDeque<u8>,
    /// Bytes written so far.
    written: u64,
    /// Requests to be answered when that many bytes are written.
    waiting: VecDeque<(u64, Token)>,
    failed: Option<DiskError>,
    /// It failed because its reader is gone.
    reader_is_gone: bool,
}

impl Streams {
    /// Adopts a file to be read.
    pub(super) fn add_reader(&mut self, id: FileId, file: File, name: String) {
        let waiting = VecDeque::new();
        self.readers.insert(id, Reader { file, name, watch: Watch::No, waiting });
    }

    /// Adopts a file to be written.
    pub(super) fn add_writer(&mut self, id: FileId, file: File, name: String) {
        let writer = Writer {
            file,
            name,
            watch: Watch::No,
            pending: VecDeque::new(),
            written: 0,
            waiting: VecDeque::new(),
            failed: None,
            reader_is_gone: false,
        };
        self.writers.insert(id, writer);
    }

    /// Asks for up to `len` bytes; the answer comes when there are some.
    pub(super) fn read(
        &mut self,
        id: FileId,
        token: Token,
        len: usize,
        poller: &Poller,
    ) -> Option<Event> {
        let reader = self.readers.get_mut(&id)?;
        reader.waiting.push_back((token, len));
        watch(&mut reader.watch, &reader.file, id, Interest::Read, poller);
        if reader.watch == Watch::AlwaysReady { reader.answer() } else { None }
    }

    /// Writes `bytes` after everything before them; the request `token` is answered when they are
    /// written. Call [`Streams::flush`] at the end of the turn.
    pub(super) fn write(&mut self, id: FileId, token: Token, bytes: &[u8]) {
        if let Some(writer) = self.writers.get_mut(&id) {
            writer.pending.extend(bytes);
            let end = writer.written + writer.pending.len() as u64;
            writer.waiting.push_back((end, token));
        }
    }

    /// Writes a line to standard output after everything before it. Returns false if it was
    /// dropped.
    pub(super) fn print(&mut self, line: &str) -> bool {
        let writer = self.writers.get_mut(&STDOUT);
        let Some(writer) = writer.filter(|writer| {
            writer.failed.is_none() && writer.pending.len() + line.len() < PRINT_LIMIT
        }) else {
            return false;
        };
        writer.pending.extend(line.as_bytes());
        writer.pending.push_back(b'\n');
        true
    }

    /// A stream that is waited for is ready.
    pub(super) fn ready(&mut self, id: FileId, poller: &Poller, events: &mut VecDeque<Event>) {
        if let Some(reader) = self.readers.get_mut(&id) {
            events.extend(reader.answer());
            if reader.waiting.is_empty() {
                unwatch(&mut reader.watch, &reader.file, poller);
            }
        }
        self.flush_one(id, poller, events);
    }

    /// Writes what the streams take.
    pub(super) fn flush(&mut self, poller: &Poller, events: &mut VecDeque<Event>) {
        let ids: Vec<FileId> = self
            .writers
            .iter()
            .filter(|(_, writer)| writer.watch != Watch::Yes && !writer.is_idle())
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            self.flush_one(id, poller, events);
        }
    }

    fn flush_one(&mut self, id: FileId, poller: &Poller, events: &mut VecDeque<Event>) {
        let Some(writer) = self.writers.get_mut(&id) else { return };
        writer.write_what_fits(events);
        if writer.pending.is_empty() {
            unwatch(&mut writer.watch, &writer.file, poller);
        } else {
            watch(&mut writer.watch, &writer.file, id, Interest::Write, poller);
        }
    }

    /// Forgets a stream. Requests that still wait are answered with an error.
    pub(super) fn close(&mut self, id: FileId, poller: &Poller, events: &mut VecDeque<Event>) {
        if let Some(mut reader) = self.readers.remove(&id) {
            unwatch(&mut reader.watch, &reader.file, poller);
            let error = closed(&reader.name);
            let waiting = reader.waiting.into_iter();
            events.extend(waiting.map(|(token, _)| failure(token, error.clone())));
        }
        if let Some(mut writer) = self.writers.remove(&id) {
            unwatch(&mut writer.watch, &writer.file, poller);
            let error = closed(&writer.name);
            let waiting = writer.waiting.into_iter();
            events.extend(waiting.map(|(_, token)| failure(token, error.clone())));
        }
    }

    /// Whether `id` is a stream to be read.
    pub(super) fn is_reader(&self, id: FileId) -> bool {
        self.readers.contains_key(&id)
    }

    /// Whether `id` is a stream to be written.
    pub(super) fn is_writer(&self, id: FileId) -> bool {
        self.writers.contains_key(&id)
    }

    /// Whether standard output has something to write.
    pub(super) fn has_output(&self) -> bool {
        self.writers.get(&STDOUT).is_some_and(|writer| !writer.is_idle())
    }

    /// How many bytes wait for the reader of standard output.
    pub(super) fn unwritten(&self) -> usize {
        self.writers.get(&STDOUT).map_or(0, |writer| writer.pending.len())
    }

    /// Why standard output cannot be written, unless its reader is gone.
    pub(super) fn output_error(&self) -> Option<&DiskError> {
        let writer = self.writers.get(&STDOUT).filter(|writer| !writer.reader_is_gone)?;
        writer.failed.as_ref()
    }

    /// Whether standard output cannot be written any more.
    pub(super) fn output_is_broken(&self) -> bool {
        self.writers.get(&STDOUT).is_some_and(|writer| writer.failed.is_some())
    }

    /// Whether everything is written.
    pub(super) fn is_flushed(&self) -> bool {
        self.writers.values().all(Writer::is_idle)
    }
}

impl Reader {
    /// Answers the first request that waits, with what there is.
    fn answer(&mut self) -> Option<Event> {
        let (token, len) = self.waiting.pop_front()?;
        let mut bytes = vec![0; len.min(LONGEST_READ)];
        let result = match retry(|| self.file.read(&mut bytes)) {
            Ok(count) => {
                bytes.truncate(count);
                Ok(DiskReply::Data { end: count == 0 && len > 0, bytes })
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // Somebody else read it first.
                self.waiting.push_front((token, len));
                return None;
            }
            Err(error) => Err(sentence("read", &self.name, &error)),
        };
        Some(Event::Disk { token, result })
    }
}

impl Writer {
    /// Whether there is nothing to write and nobody to answer.
    fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.waiting.is_empty()
    }

    /// Writes until the stream would block, and answers the requests that are done.
    fn write_what_fits(&mut self, events: &mut VecDeque<Event>) {
        while !self.pending.is_empty() && self.failed.is_none() && self.takes_more() {
            let (piece, _) = self.pending.as_slices();
            let piece = match self.watch {
                Watch::AlwaysReady => piece,
                Watch::No | Watch::Yes => &piece[..piece.len().min(PIPE_WRITE)],
            };
            match retry(|| (&self.file).write(piece)) {
                Ok(count) => {
                    self.pending.drain(..count);
                    self.written += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    self.reader_is_gone = error.kind() == io::ErrorKind::BrokenPipe;
                    self.failed = Some(sentence("write to", &self.name, &error));
                }
            }
        }
        self.answer(events);
    }

    fn answer(&mut self, events: &mut VecDeque<Event>) {
        while let Some((_, token)) = self.waiting.pop_front_if(|(end, _)| *end <= self.written) {
            events.push_back(Event::Disk { token, result: Ok(DiskReply::Done) });
        }
        if let Some(error) = &self.failed {
            self.pending.clear();
            let waiting = self.waiting.drain(..);
            events.extend(waiting.map(|(_, token)| failure(token, error.clone())));
        }
    }

    /// Whether a write will not block.
    fn takes_more(&self) -> bool {
        if self.watch == Watch::AlwaysReady {
            return true;
        }
        let mut fds = [PollFd::new(&self.file, PollFlags::OUT)];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
    }
}

fn watch(watch: &mut Watch, file: &File, id: FileId, interest: Interest, poller: &Poller) {
    if *watch == Watch::No {
        *watch = match poller.add(file, Source::Stream(id), interest) {
            Ok(()) => Watch::Yes,
            Err(Errno::PERM) => Watch::AlwaysReady,
            // Out of memory or watches: better to block than never to answer.
            Err(_) => Watch::AlwaysReady,
        };
    }
}

fn unwatch(watch: &mut Watch, file: &File, poller: &Poller) {
    if *watch == Watch::Yes {
        poller.remove(file);
        *watch = Watch::No;
    }
}

fn closed(name: &str) -> DiskError {
    DiskError { kind: DiskErrorKind::Other, text: format!("`{name}` was closed meanwhile") }
}

fn failure(token: Token, error: DiskError) -> Event {
    Event::Disk { token, result: Err(error) }
}

/// Calls again as long as signals interrupt the call.
fn retry(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
