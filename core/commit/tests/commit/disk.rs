//! A disk that may lose power: what was not synced is there, is not, or is torn.
//!
//! Of a file, what counts after a power cut is what was there at its last sync, and of each later write
//! all, nothing, or a beginning; of a directory, the names at its last sync, and each later change of
//! names or not. A rename is there or is not. This is more than any file system of Linux loses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use weft_base::{FileId, Random};
use weft_runtime::{DiskError, DiskErrorKind, DiskReply, DiskRequest, OpenMode};

type Reply = Result<DiskReply, DiskError>;

#[derive(Debug, Clone, Default)]
struct Inode {
    /// What a process reads.
    seen: Vec<u8>,
    durable: Vec<u8>,
    /// What was done since.
    loose: Vec<Change>,
}

#[derive(Debug, Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Empty,
}

#[derive(Debug, Clone)]
enum NameChange {
    Make(PathBuf, usize),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

/// The disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disk {
    inodes: Vec<Inode>,
    seen: BTreeMap<PathBuf, usize>,
    durable: BTreeMap<PathBuf, usize>,
    loose: Vec<NameChange>,
    open: BTreeMap<FileId, usize>,
    last: u32,
    /// How many requests it has carried out.
    pub(crate) requests: usize,
    /// The request, by number, that fails, and the error.
    pub(crate) failing: Option<(usize, DiskErrorKind)>,
}

/// What a power cut does to what is loose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    All,
    Nothing,
    /// Each change is kept, lost or torn as the seed says.
    Some(u64),
}

impl Disk {
    /// Carries a request out.
    pub(crate) fn carry_out(&mut self, request: DiskRequest) -> Reply {
        self.requests += 1;
        if let Some((number, kind)) = self.failing
            && number == self.requests
        {
            let text = format!("request {number} was made to fail");
            return Err(DiskError { kind, text });
        }
        match request {
            DiskRequest::Open { path, mode } => self.open(path, mode),
            DiskRequest::Read { file, offset, len } => {
                let seen = &self.inodes[self.open[&file]].seen;
                let start = seen.len().min(usize::try_from(offset).unwrap());
                let bytes = seen[start..seen.len().min(start + len)].to_vec();
                Ok(DiskReply::Data { end: start + bytes.len() == seen.len(), bytes })
            }
            DiskRequest::Write { file, offset, bytes } => {
                let change = Change::Write(usize::try_from(offset).unwrap(), bytes);
                self.change(self.open[&file], change);
                Ok(DiskReply::Done)
            }
            DiskRequest::Sync { file } => {
                let inode = &mut self.inodes[self.open[&file]];
                inode.durable = inode.seen.clone();
                inode.loose.clear();
                Ok(DiskReply::Done)
            }
            DiskRequest::Close { file } => {
                self.open.remove(&file).expect("the file is open");
                Ok(DiskReply::Done)
            }
            DiskRequest::Rename { from, to } => {
                if !self.seen.contains_key(&from) {
                    return Err(not_found(&from));
                }
                self.rename(NameChange::Rename(from, to))
            }
            DiskRequest::Remove { path } if self.seen.contains_key(&path) => {
                self.rename(NameChange::Remove(path))
            }
            DiskRequest::Remove { path } => Err(not_found(&path)),
            DiskRequest::MakeDirectory { .. } => Ok(DiskReply::Done),
            DiskRequest::SyncDirectory { .. } => {
                self.durable = self.seen.clone();
                self.loose.clear();
                Ok(DiskReply::Done)
            }
            DiskRequest::List { path } => {
                let inside = self.seen.keys().filter(|name| name.parent() == Some(&path));
                let names = inside.map(|name| name.file_name().unwrap().to_str().unwrap().into());
                Ok(DiskReply::Names(names.collect()))
            }
            DiskRequest::SetLen { .. } => unreachable!("the history does not use it"),
        }
    }

    fn open(&mut self, path: PathBuf, mode: OpenMode) -> Reply {
        let inode = match self.seen.get(&path) {
            Some(inode) => *inode,
            None if mode == OpenMode::Read => return Err(not_found(&path)),
            None => {
                self.inodes.push(Inode::default());
                let inode = self.inodes.len() - 1;
                self.rename(NameChange::Make(path, inode))?;
                inode
            }
        };
        if mode == OpenMode::Replace {
            self.change(inode, Change::Empty);
        }
        self.last += 1;
        self.open.insert(FileId(self.last), inode);
        let len = Some(self.inodes[inode].seen.len() as u64);
        Ok(DiskReply::Opened { file: FileId(self.last), len })
    }

    fn change(&mut self, inode: usize, change: Change) {
        let inode = &mut self.inodes[inode];
        apply(&mut inode.seen, &change);
        inode.loose.push(change);
    }

    fn rename(&mut self, change: NameChange) -> Reply {
        apply_name(&mut self.seen, &change);
        self.loose.push(change);
        Ok(DiskReply::Done)
    }

    /// The disk after the power was off.
    pub(crate) fn after_power_cut(&self, loss: Loss) -> Self {
        let mut random = Random::from_seed(if let Loss::Some(seed) = loss { seed } else { 0 });
        let mut fate = move || match loss {
            Loss::All => 0,
            Loss::Nothing => 1,
            Loss::Some(_) => random.below(4),
        };
        let mut after = Self { requests: 0, failing: None, ..self.clone() };
        for inode in &mut after.inodes {
            let mut content = std::mem::take(&mut inode.durable);
            for change in std::mem::take(&mut inode.loose) {
                match (fate(), change) {
                    (0, _) => {}
                    (1, change) => apply(&mut content, &change),
                    // Torn: only its beginning, or zeros in its place.
                    (2, Change::Write(at, mut bytes)) => {
                        bytes.truncate(bytes.len() / 2);
                        apply(&mut content, &Change::Write(at, bytes));
                    }
                    (_, Change::Write(at, bytes)) => {
                        apply(&mut content, &Change::Write(at, vec![0; bytes.len()]));
                    }
                    (_, Change::Empty) => {}
                }
            }
            (inode.seen, inode.durable) = (content.clone(), content);
        }
        let mut names = std::mem::take(&mut after.durable);
        for change in std::mem::take(&mut after.loose) {
            if fate() % 2 == 1 {
                apply_name(&mut names, &change);
            }
        }
        (after.seen, after.durable) = (names.clone(), names);
        after.open.clear();
        after
    }

    /// The names of its files.
    pub(crate) fn names(&self) -> Vec<String> {
        self.seen.keys().map(|name| name.file_name().unwrap().to_string_lossy().into()).collect()
    }

    /// Those of them that are revisions.
    pub(crate) fn revisions(&self) -> Vec<String> {
        self.names().into_iter().filter(|name| name.ends_with(".conf")).collect()
    }

    /// Changes one byte of a file.
    pub(crate) fn spoil(&mut self, path: &Path, at: usize) {
        let inode = self.seen[path];
        self.inodes[inode].seen[at] ^= 1;
    }
}

fn apply(content: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Empty => content.clear(),
        Change::Write(at, bytes) => {
            content.resize(content.len().max(at + bytes.len()), 0);
            content[*at..at + bytes.len()].copy_from_slice(bytes);
        }
    }
}

fn apply_name(names: &mut BTreeMap<PathBuf, usize>, change: &NameChange) {
    match change {
        NameChange::Make(path, inode) => {
            names.insert(path.clone(), *inode);
        }
        NameChange::Rename(from, to) => {
            if let Some(inode) = names.remove(from) {
                names.insert(to.clone(), inode);
            }
        }
        NameChange::Remove(path) => {
            names.remove(path);
        }
    }
}

fn not_found(path: &Path) -> DiskError {
    let text = format!("there is no `{}`", path.display());
    DiskError { kind: DiskErrorKind::NotFound, text }
}
