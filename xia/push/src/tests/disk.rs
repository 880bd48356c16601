//! A disk in memory that carries requests out in order, may be full, and can be pulled out.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use weft_base::{FileId, Random, Token};
use weft_runtime::{DiskError, DiskErrorKind, DiskReply, DiskRequest, OpenMode};

pub(super) type Answer = (Token, Result<DiskReply, DiskError>);

/// Files by path, and what is open.
#[derive(Default)]
pub(super) struct Disk {
    pub(super) files: BTreeMap<PathBuf, Vec<u8>>,
    open: BTreeMap<FileId, PathBuf>,
    next_file: u32,
    queue: VecDeque<(Token, DiskRequest)>,
    /// Bytes that fit on it.
    pub(super) capacity: Option<u64>,
    /// What standard input still has to give; `None` in the list is a pause.
    pub(super) stdin: VecDeque<Vec<u8>>,
    pub(super) stdin_open: bool,
    pub(super) stdout: Vec<u8>,
}

impl Disk {
    pub(super) fn with_file(path: &str, content: &[u8]) -> Self {
        let mut disk = Self::default();
        disk.files.insert(path.into(), content.to_vec());
        disk
    }

    pub(super) fn request(&mut self, token: Token, request: DiskRequest) {
        self.queue.push_back((token, request));
    }

    pub(super) fn is_busy(&self) -> bool {
        self.queue.front().is_some_and(|(_, request)| !self.must_wait(request))
    }

    /// A read of standard input waits until there is something.
    fn must_wait(&self, request: &DiskRequest) -> bool {
        let DiskRequest::Read { file, .. } = request else { return false };
        self.is_stream(*file) && self.stdin.is_empty() && self.stdin_open
    }

    fn is_stream(&self, file: FileId) -> bool {
        self.open.get(&file).is_some_and(|path| path == Path::new("-"))
    }

    /// Carries out the next request.
    pub(super) fn step(&mut self) -> Option<Answer> {
        if !self.is_busy() {
            return None;
        }
        let (token, request) = self.queue.pop_front()?;
        Some((token, self.carry_out(request)))
    }

    /// The process is killed: what was not carried out never is; a write may be torn.
    pub(super) fn kill(&mut self, random: &mut Random) {
        let done = random.below(self.queue.len() as u64 + 1);
        for _ in 0..done {
            self.step();
        }
        if let Some((_, DiskRequest::Write { file, offset, bytes })) = self.queue.pop_front() {
            let torn = bytes[..random.below(bytes.len() as u64 + 1) as usize].to_vec();
            let _ = self.carry_out(DiskRequest::Write { file, offset, bytes: torn });
        }
        self.queue.clear();
        self.open.clear();
    }

    /// Files that are open.
    pub(super) fn open_files(&self) -> usize {
        self.open.len()
    }

    pub(super) fn used(&self) -> u64 {
        self.files.values().map(|file| file.len() as u64).sum()
    }

    fn carry_out(&mut self, request: DiskRequest) -> Result<DiskReply, DiskError> {
        match request {
            DiskRequest::Open { path, mode } => self.open(path, mode),
            DiskRequest::Read { file, offset, len } => self.read(file, offset, len),
            DiskRequest::Write { file, offset, bytes } => self.write(file, offset, &bytes),
            DiskRequest::SetLen { file, len } => {
                self.content(file)?.resize(len as usize, 0);
                Ok(DiskReply::Done)
            }
            DiskRequest::Sync { file } => self.content(file).map(|_| DiskReply::Done),
            DiskRequest::Close { file } => match self.open.remove(&file) {
                Some(_) => Ok(DiskReply::Done),
                None => Err(error(DiskErrorKind::Other, "not open")),
            },
            DiskRequest::Rename { from, to } => {
                let file = self.files.remove(&from).ok_or_else(|| not_found(&from))?;
                for path in self.open.values_mut().filter(|path| **path == from) {
                    path.clone_from(&to);
                }
                self.files.insert(to, file);
                Ok(DiskReply::Done)
            }
            DiskRequest::Remove { path } => {
                self.files.remove(&path).ok_or_else(|| not_found(&path)).map(|_| DiskReply::Done)
            }
            DiskRequest::MakeDirectory { .. } => Ok(DiskReply::Done),
            DiskRequest::List { path } => Ok(DiskReply::Names(
                self.files
                    .keys()
                    .filter(|file| file.parent() == Some(&path))
                    .filter_map(|file| Some(file.file_name()?.to_str()?.to_owned()))
                    .collect(),
            )),
        }
    }

    fn open(&mut self, path: PathBuf, mode: OpenMode) -> Result<DiskReply, DiskError> {
        let is_stream = path == Path::new("-");
        match mode {
            _ if is_stream => {}
            OpenMode::Read if !self.files.contains_key(&path) => return Err(not_found(&path)),
            OpenMode::Read => {}
            OpenMode::Update => {
                self.files.entry(path.clone()).or_default();
            }
            OpenMode::Replace => {
                self.files.insert(path.clone(), Vec::new());
            }
        }
        let len = (!is_stream).then(|| self.files[&path].len() as u64);
        let file = FileId(self.next_file);
        self.next_file += 1;
        self.open.insert(file, path);
        Ok(DiskReply::Opened { file, len })
    }

    fn content(&mut self, file: FileId) -> Result<&mut Vec<u8>, DiskError> {
        let path = self.open.get(&file).ok_or_else(|| error(DiskErrorKind::Other, "not open"))?;
        self.files.get_mut(path).ok_or_else(|| error(DiskErrorKind::NotFound, "removed"))
    }

    fn read(&mut self, file: FileId, offset: u64, len: usize) -> Result<DiskReply, DiskError> {
        if self.is_stream(file) {
            let mut bytes = self.stdin.pop_front().unwrap_or_default();
            if bytes.len() > len {
                self.stdin.push_front(bytes.split_off(len));
            }
            let end = self.stdin.is_empty() && !self.stdin_open;
            return Ok(DiskReply::Data { bytes, end });
        }
        let content = self.content(file)?;
        let start = content.len().min(offset as usize);
        let end = content.len().min(start + len);
        let bytes = content[start..end].to_vec();
        Ok(DiskReply::Data { end: bytes.len() < len, bytes })
    }

    fn write(&mut self, file: FileId, offset: u64, bytes: &[u8]) -> Result<DiskReply, DiskError> {
        if self.is_stream(file) {
            self.stdout.extend_from_slice(bytes);
            return Ok(DiskReply::Done);
        }
        let (used, capacity) = (self.used(), self.capacity);
        let content = self.content(file)?;
        let end = offset as usize + bytes.len();
        let growth = end.saturating_sub(content.len()) as u64;
        if capacity.is_some_and(|capacity| used + growth > capacity) {
            return Err(error(DiskErrorKind::Full, "no space left on the fake disk"));
        }
        content.resize(content.len().max(end), 0);
        content[offset as usize..end].copy_from_slice(bytes);
        Ok(DiskReply::Done)
    }
}

fn error(kind: DiskErrorKind, text: &str) -> DiskError {
    DiskError { kind, text: text.to_owned() }
}

fn not_found(path: &Path) -> DiskError {
    error(DiskErrorKind::NotFound, &format!("{}: no such file", path.display()))
}
