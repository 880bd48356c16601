//! A disk in memory that carries requests out in order, may be full, and can be pulled out.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::path::{Path, PathBuf};

use weft_base::{FileId, Random, Token};
use weft_runtime::{DiskError, DiskErrorKind, DiskReply, DiskRequest, OpenMode};

pub(super) type Answer = (Token, Result<DiskReply, DiskError>);

const PAGE: usize = 4096;

/// A file with holes.
#[derive(Default)]
pub(super) struct Sparse {
    pages: BTreeMap<u64, Box<[u8; PAGE]>>,
    len: u64,
}

impl Sparse {
    pub(super) fn new(content: &[u8]) -> Self {
        let mut file = Self::default();
        file.write(0, content);
        file
    }

    /// All of a file that is not huge.
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.read(0, usize::try_from(self.len).unwrap())
    }

    /// Whether this is its content.
    pub(super) fn is(&self, content: &[u8]) -> bool {
        self.len == content.len() as u64 && self.bytes() == content
    }

    fn read(&self, offset: u64, len: usize) -> Vec<u8> {
        let end = self.len.min(offset + len as u64);
        let mut bytes = vec![0; end.saturating_sub(offset) as usize];
        for_pages(offset, bytes.len(), |page, inside, outside| {
            if let Some(page) = self.pages.get(&page) {
                bytes[outside].copy_from_slice(&page[inside]);
            }
        });
        bytes
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        self.len = self.len.max(offset + bytes.len() as u64);
        for_pages(offset, bytes.len(), |page, inside, outside| {
            let page = self.pages.entry(page).or_insert_with(|| Box::new([0; PAGE]));
            page[inside].copy_from_slice(&bytes[outside]);
        });
    }

    fn set_len(&mut self, len: u64) {
        self.pages.retain(|page, _| page * (PAGE as u64) < len);
        let tail = (len % PAGE as u64) as usize;
        if let Some(page) = self.pages.get_mut(&(len / PAGE as u64)) {
            page[tail..].fill(0);
        }
        self.len = len;
    }

    /// How many pages a write would take that are not there.
    fn growth(&self, offset: u64, len: usize) -> u64 {
        let mut pages = 0;
        for_pages(offset, len, |page, _, _| pages += u64::from(!self.pages.contains_key(&page)));
        pages * PAGE as u64
    }
}

/// Calls with each page of `offset..offset + len`: its number, the bytes in it, the bytes of the whole.
fn for_pages(offset: u64, len: usize, mut call: impl FnMut(u64, Range<usize>, Range<usize>)) {
    let mut done = 0;
    while done < len {
        let at = offset + done as u64;
        let start = (at % PAGE as u64) as usize;
        let count = (PAGE - start).min(len - done);
        call(at / PAGE as u64, start..start + count, done..done + count);
        done += count;
    }
}

/// Files by path, and what is open.
#[derive(Default)]
pub(super) struct Disk {
    pub(super) files: BTreeMap<PathBuf, Sparse>,
    pub(super) open: BTreeMap<FileId, PathBuf>,
    pub(super) next_file: u32,
    pub(super) queue: VecDeque<(Token, DiskRequest)>,
    /// Bytes that fit on it.
    pub(super) capacity: Option<u64>,
    /// What standard input still has to give, and whether more may come.
    pub(super) stdin: VecDeque<Vec<u8>>,
    pub(super) stdin_open: bool,
    pub(super) stdout: Vec<u8>,
}

impl Disk {
    pub(super) fn with_file(path: &str, content: &[u8]) -> Self {
        let mut disk = Self::default();
        disk.files.insert(path.into(), Sparse::new(content));
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
        self.files.values().map(|file| file.pages.len() as u64 * PAGE as u64).sum()
    }

    fn carry_out(&mut self, request: DiskRequest) -> Result<DiskReply, DiskError> {
        match request {
            DiskRequest::Open { path, mode } => self.open(path, mode),
            DiskRequest::Read { file, offset, len } => self.read(file, offset, len),
            DiskRequest::Write { file, offset, bytes } => self.write(file, offset, &bytes),
            DiskRequest::SetLen { file, len } => {
                self.content(file)?.set_len(len);
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
            DiskRequest::MakeDirectory { .. } | DiskRequest::SyncDirectory { .. } => {
                Ok(DiskReply::Done)
            }
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
                self.files.insert(path.clone(), Sparse::default());
            }
        }
        let len = (!is_stream).then(|| self.files[&path].len);
        let file = FileId(self.next_file);
        self.next_file += 1;
        self.open.insert(file, path);
        Ok(DiskReply::Opened { file, len })
    }

    fn content(&mut self, file: FileId) -> Result<&mut Sparse, DiskError> {
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
        let bytes = self.content(file)?.read(offset, len);
        Ok(DiskReply::Data { end: bytes.len() < len, bytes })
    }

    fn write(&mut self, file: FileId, offset: u64, bytes: &[u8]) -> Result<DiskReply, DiskError> {
        if self.is_stream(file) {
            self.stdout.extend_from_slice(bytes);
            return Ok(DiskReply::Done);
        }
        let (used, capacity) = (self.used(), self.capacity);
        let content = self.content(file)?;
        let growth = content.growth(offset, bytes.len());
        if capacity.is_some_and(|capacity| growth > 0 && used + growth > capacity) {
            return Err(error(
                DiskErrorKind::Full,
                "cannot write: the disk is full; free some space",
            ));
        }
        content.write(offset, bytes);
        Ok(DiskReply::Done)
    }
}

fn error(kind: DiskErrorKind, text: &str) -> DiskError {
    DiskError { kind, text: text.to_owned() }
}

fn not_found(path: &Path) -> DiskError {
    error(DiskErrorKind::NotFound, &format!("{}: no such file", path.display()))
}
