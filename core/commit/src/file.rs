//! Reading one file, and writing one so that it is there whole or not at all.

use std::path::{Path, PathBuf};

use weft_base::FileId;
use weft_runtime::{DiskError, DiskReply, DiskRequest, OpenMode};

/// The name of the file that is being written.
pub(crate) const UNFINISHED: &str = "unfinished";

/// What follows an answer of the disk.
#[derive(Debug)]
pub(crate) enum Progress<T> {
    /// One more request.
    Ask(DiskRequest),
    /// This came of it all.
    Done(Result<T, String>),
}

/// Reads the beginning of a file, or all of it.
#[derive(Debug)]
pub(crate) struct ReadFile {
    path: PathBuf,
    /// How much is read, in bytes.
    len: usize,
    step: ReadStep,
}

#[derive(Debug)]
enum ReadStep {
    Open,
    Read(FileId),
    Close(Result<Vec<u8>, String>),
}

impl ReadFile {
    pub(crate) fn begin(path: PathBuf, len: usize) -> (Self, DiskRequest) {
        let request = DiskRequest::Open { path: path.clone(), mode: OpenMode::Read };
        (Self { path, len, step: ReadStep::Open }, request)
    }

    pub(crate) fn answered(&mut self, result: Result<DiskReply, DiskError>) -> Progress<Vec<u8>> {
        match (std::mem::replace(&mut self.step, ReadStep::Open), result) {
            (ReadStep::Open, Ok(DiskReply::Opened { file, .. })) => {
                self.step = ReadStep::Read(file);
                Progress::Ask(DiskRequest::Read { file, offset: 0, len: self.len })
            }
            (ReadStep::Read(file), Ok(DiskReply::Data { bytes, .. })) => {
                self.step = ReadStep::Close(Ok(bytes));
                Progress::Ask(DiskRequest::Close { file })
            }
            (ReadStep::Read(file), other) => {
                self.step = ReadStep::Close(Err(why(other, &self.path)));
                Progress::Ask(DiskRequest::Close { file })
            }
            // What was read is right whether or not the file could be closed.
            (ReadStep::Close(read), _) => Progress::Done(read),
            (ReadStep::Open, other) => Progress::Done(Err(why(other, &self.path))),
        }
    }
}

/// Writes a file under another name, makes it durable, gives it its name and makes that durable.
#[derive(Debug)]
pub(crate) struct WriteFile {
    directory: PathBuf,
    path: PathBuf,
    /// Whether a file of that name is there, which stays if this fails.
    replaces: bool,
    bytes: Vec<u8>,
    step: WriteStep,
}

#[derive(Debug)]
enum WriteStep {
    Open,
    Write(FileId),
    Sync(FileId),
    Close,
    Rename,
    SyncDirectory,
    /// It failed, and what is there of it is taken away.
    Undo(Undo, String),
}

#[derive(Debug)]
enum Undo {
    Close,
    RemoveUnfinished,
    RemoveNew,
    SyncDirectory,
}

impl WriteFile {
    pub(crate) fn begin(
        directory: &Path,
        name: &str,
        replaces: bool,
        bytes: Vec<u8>,
    ) -> (Self, DiskRequest) {
        let (directory, path) = (directory.to_owned(), directory.join(name));
        let write = Self { directory, path, replaces, bytes, step: WriteStep::Open };
        let request = DiskRequest::Open { path: write.unfinished(), mode: OpenMode::Replace };
        (write, request)
    }

    fn unfinished(&self) -> PathBuf {
        self.directory.join(UNFINISHED)
    }

    fn sync_directory(&self) -> DiskRequest {
        DiskRequest::SyncDirectory { path: self.directory.clone() }
    }

    fn ask(&mut self, step: WriteStep, request: DiskRequest) -> Progress<()> {
        self.step = step;
        Progress::Ask(request)
    }

    pub(crate) fn answered(&mut self, result: Result<DiskReply, DiskError>) -> Progress<()> {
        let step = std::mem::replace(&mut self.step, WriteStep::Open);
        let unfinished = self.unfinished();
        match (step, result) {
            (WriteStep::Open, Ok(DiskReply::Opened { file, .. })) => {
                let bytes = std::mem::take(&mut self.bytes);
                let request = DiskRequest::Write { file, offset: 0, bytes };
                self.ask(WriteStep::Write(file), request)
            }
            (WriteStep::Write(file), Ok(_)) => {
                self.ask(WriteStep::Sync(file), DiskRequest::Sync { file })
            }
            (WriteStep::Sync(file), Ok(_)) => {
                self.ask(WriteStep::Close, DiskRequest::Close { file })
            }
            (WriteStep::Close, Ok(_)) => {
                let request = DiskRequest::Rename { from: unfinished, to: self.path.clone() };
                self.ask(WriteStep::Rename, request)
            }
            (WriteStep::Rename, Ok(_)) => {
                let request = self.sync_directory();
                self.ask(WriteStep::SyncDirectory, request)
            }
            (WriteStep::SyncDirectory, Ok(_)) => Progress::Done(Ok(())),
            (WriteStep::Undo(undo, reason), _) => self.undo(undo, reason),
            (WriteStep::Open, other) => Progress::Done(Err(why(other, &self.path))),
            (WriteStep::Write(file) | WriteStep::Sync(file), other) => {
                let reason = why(other, &self.path);
                self.ask(WriteStep::Undo(Undo::Close, reason), DiskRequest::Close { file })
            }
            (WriteStep::Close | WriteStep::Rename, other) => {
                let reason = why(other, &self.path);
                self.undo(Undo::Close, reason)
            }
            (WriteStep::SyncDirectory, other) => {
                let reason = why(other, &self.path);
                // The old content is gone by then, and the new one is at least as good.
                if self.replaces {
                    return Progress::Done(Err(reason));
                }
                let request = DiskRequest::Remove { path: self.path.clone() };
                self.ask(WriteStep::Undo(Undo::RemoveNew, reason), request)
            }
        }
    }

    /// What follows a step of taking things away, whether it succeeded or not.
    fn undo(&mut self, done: Undo, reason: String) -> Progress<()> {
        match done {
            Undo::Close => {
                let request = DiskRequest::Remove { path: self.unfinished() };
                self.ask(WriteStep::Undo(Undo::RemoveUnfinished, reason), request)
            }
            Undo::RemoveNew => {
                let request = self.sync_directory();
                self.ask(WriteStep::Undo(Undo::SyncDirectory, reason), request)
            }
            Undo::RemoveUnfinished | Undo::SyncDirectory => Progress::Done(Err(reason)),
        }
    }
}

/// Why a step failed, in one sentence.
fn why(result: Result<DiskReply, DiskError>, path: &Path) -> String {
    match result {
        Err(error) => error.text,
        Ok(_) => format!("the disk gave an answer about `{}` that fits no request", path.display()),
    }
}
