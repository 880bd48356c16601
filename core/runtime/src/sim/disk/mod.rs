//! The disk: one in-memory file system for a whole world.
//!
//! Content is stored in pages, each different one once, so that a thousand receivers of one file
//! cost little more than one. A page that is being written in pieces is its file's own until as many
//! bytes were written as it has, or the file is synced or closed: files that are full of gaps for
//! long are not shared. Directories can have quotas. Files of the real file system can be
//! imported read-only. Nothing that happens here outlives the world.

mod inode;
mod pages;

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use weft_base::FileId;

use self::inode::Inode;
use self::pages::{PAGE, PageStore};
use super::error::WorldError;
use crate::{DiskError, DiskErrorKind, DiskReply, DiskRequest, OpenMode};

type Reply = Result<DiskReply, DiskError>;

/// The largest file, in bytes.
const MAX_LEN: u64 = 1 << 62;

/// Where an open handle leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handle {
    File { inode: usize, writable: bool },
    Input,
    Output,
}

/// The open files of a process, its working directory and its standard streams.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    directory: PathBuf,
    handles: BTreeMap<FileId, Handle>,
    last: u32,
    input: Vec<u8>,
    input_at: usize,
    /// What was written to standard output.
    output: Option<usize>,
}

impl OpenFiles {
    pub(super) fn new(directory: &Path, input: Vec<u8>) -> Self {
        Self { directory: normalise(Path::new("/"), directory), input, ..Self::default() }
    }

    /// The absolute form of a path that the process uses.
    pub(super) fn resolve(&self, path: &Path) -> PathBuf {
        normalise(&self.directory, path)
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    fn add(&mut self, handle: Handle) -> FileId {
        self.last += 1;
        self.handles.insert(FileId(self.last), handle);
        FileId(self.last)
    }

    fn get(&self, file: FileId) -> Result<Handle, DiskError> {
        let missing = || other(format!("{file} is not open; open it first"));
        self.handles.get(&file).copied().ok_or_else(missing)
    }
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Directory,
    File(usize),
}

/// The file system.
#[derive(Debug)]
pub(super) struct Disk {
    /// Everything that has a name; a directory comes right before what is in it.
    entries: BTreeMap<PathBuf, Entry>,
    /// Deleted files leave their place empty.
    inodes: Vec<Option<Inode>>,
    store: PageStore,
    /// The most bytes below a directory.
    quotas: BTreeMap<PathBuf, u64>,
}

impl Disk {
    pub(super) fn new() -> Self {
        Self {
            entries: BTreeMap::from([(PathBuf::from("/"), Entry::Directory)]),
            inodes: Vec::new(),
            store: PageStore::default(),
            quotas: BTreeMap::new(),
        }
    }

    /// Does what a process asks for.
    pub(super) fn handle(&mut self, files: &mut OpenFiles, request: DiskRequest) -> Reply {
        match request {
            DiskRequest::Open { path, mode } => self.open(files, &path, mode),
            DiskRequest::Read { file, offset, len } => self.read(files, file, offset, len),
            DiskRequest::Write { file, offset, bytes } => self.write(files, file, offset, &bytes),
            DiskRequest::SetLen { file, len } => self.set_len(files, file, len),
            DiskRequest::Sync { file } => self.sync(files, file),
            DiskRequest::Close { file } => self.close(files, file),
            DiskRequest::Rename { from, to } => {
                self.rename(&files.resolve(&from), &files.resolve(&to))
            }
            DiskRequest::Remove { path } => self.remove(&files.resolve(&path)),
            DiskRequest::MakeDirectory { path } => self.make_directory(&files.resolve(&path)),
            DiskRequest::SyncDirectory { path } => {
                self.list(&files.resolve(&path)).map(|_| DiskReply::Done)
            }
            DiskRequest::List { path } => self.list(&files.resolve(&path)),
        }
    }

    fn open(&mut self, files: &mut OpenFiles, path: &Path, mode: OpenMode) -> Reply {
        if path == Path::new("-") {
            let handle = if mode == OpenMode::Read { Handle::Input } else { Handle::Output };
            return Ok(DiskReply::Opened { file: files.add(handle), len: None });
        }
        let path = files.resolve(path);
        let inode = match (self.entries.get(&path), mode) {
            (Some(Entry::File(inode)), _) => *inode,
            (Some(Entry::Directory), _) => return Err(failed("open", &path, "is a directory")),
            (None, OpenMode::Read) => return Err(not_found("open", &path)),
            (None, OpenMode::Update | OpenMode::Replace) => self.create(&path)?,
        };
        let file = self.inode(inode);
        let writable = mode != OpenMode::Read;
        if writable && file.read_only {
            return Err(denied("open", &path));
        }
        if mode == OpenMode::Replace {
            file.set_len(0);
        }
        file.opens += 1;
        let len = Some(file.len);
        Ok(DiskReply::Opened { file: files.add(Handle::File { inode, writable }), len })
    }

    /// Makes an empty file in an existing directory.
    fn create(&mut self, path: &Path) -> Result<usize, DiskError> {
        self.require_parent("create", path)?;
        Ok(self.insert(path, Inode::new()))
    }

    /// Gives a new file a name.
    fn insert(&mut self, path: &Path, file: Inode) -> usize {
        self.inodes.push(Some(file));
        let inode = self.inodes.len() - 1;
        self.entries.insert(path.to_owned(), Entry::File(inode));
        inode
    }

    fn inode(&mut self, inode: usize) -> &mut Inode {
        self.inodes[inode].as_mut().expect("an inode lives while it has a name or a handle")
    }

    fn read(&mut self, files: &mut OpenFiles, file: FileId, offset: u64, len: usize) -> Reply {
        match files.get(file)? {
            Handle::File { inode, .. } => {
                let file = self.inode(inode);
                let bytes = file.read(offset, len);
                let bytes = bytes
                    .map_err(|error| other(format!("cannot read an imported file: {error}")))?;
                let end = offset.saturating_add(bytes.len() as u64) >= file.len;
                Ok(DiskReply::Data { bytes, end })
            }
            Handle::Input => {
                let rest = &files.input[files.input_at..];
                let bytes = rest[..len.min(rest.len())].to_vec();
                files.input_at += bytes.len();
                Ok(DiskReply::Data { bytes, end: files.input_at == files.input.len() })
            }
            Handle::Output => Err(other("cannot read standard output".into())),
        }
    }

    fn write(&mut self, files: &mut OpenFiles, file: FileId, offset: u64, bytes: &[u8]) -> Reply {
        let (inode, offset) = match files.get(file)? {
            Handle::File { inode, writable: true } => (inode, offset),
            Handle::File { .. } | Handle::Input => {
                return Err(other("cannot write a file that is open for reading only".into()));
            }
            Handle::Output => {
                let inode = self.output(files);
                (inode, self.inode(inode).len)
            }
        };
        if offset.saturating_add(bytes.len() as u64) > MAX_LEN {
            return Err(full(format!("cannot write beyond {MAX_LEN} bytes: no file is so long")));
        }
        self.check_quota(inode, offset, bytes.len())?;
        let Self { inodes, store, .. } = self;
        if let Some(Some(file)) = inodes.get_mut(inode)
            && !bytes.is_empty()
        {
            file.write(store, offset, bytes);
        }
        Ok(DiskReply::Done)
    }

    /// The file that stands for a process's standard output.
    fn output(&mut self, files: &mut OpenFiles) -> usize {
        *files.output.get_or_insert_with(|| {
            self.inodes.push(Some(Inode::new()));
            self.inodes.len() - 1
        })
    }

    /// What a process wrote to standard output, from the byte `offset` on.
    pub(super) fn written_output(&self, files: &OpenFiles, offset: u64) -> Vec<u8> {
        let file = files.output.and_then(|inode| self.inodes.get(inode)?.as_ref());
        file.and_then(|file| file.read(offset, usize::MAX).ok()).unwrap_or_default()
    }

    fn set_len(&mut self, files: &OpenFiles, file: FileId, len: u64) -> Reply {
        match files.get(file)? {
            Handle::File { inode, writable: true } if len <= MAX_LEN => {
                self.inode(inode).set_len(len);
                Ok(DiskReply::Done)
            }
            Handle::File { writable: true, .. } => {
                Err(full(format!("cannot make a file {len} bytes long: no file is so long")))
            }
            Handle::File { .. } | Handle::Input => Err(other(
                "cannot change the length of a file that is open for reading only".into(),
            )),
            Handle::Output => Err(other("cannot change the length of standard output".into())),
        }
    }

    fn sync(&mut self, files: &OpenFiles, file: FileId) -> Reply {
        if let Handle::File { inode, .. } = files.get(file)? {
            self.settle(inode);
        }
        Ok(DiskReply::Done)
    }

    fn settle(&mut self, inode: usize) {
        let Self { inodes, store, .. } = self;
        if let Some(Some(file)) = inodes.get_mut(inode) {
            file.settle(store);
        }
    }

    fn close(&mut self, files: &mut OpenFiles, file: FileId) -> Reply {
        let handle = files.get(file)?;
        files.handles.remove(&file);
        if let Handle::File { inode, .. } = handle {
            self.settle(inode);
            self.inode(inode).opens -= 1;
            self.free_if_unused(inode);
        }
        Ok(DiskReply::Done)
    }

    /// Closes what a process that has ended has open.
    pub(super) fn close_all(&mut self, files: &mut OpenFiles) {
        while let Some((file, _)) = files.handles.first_key_value() {
            let file = *file;
            self.close(files, file).expect("the handle was found open");
        }
    }

    fn free_if_unused(&mut self, inode: usize) {
        let file = self.inode(inode);
        if !file.linked && file.opens == 0 {
            self.inodes[inode] = None;
        }
    }

    fn rename(&mut self, from: &Path, to: &Path) -> Reply {
        let inode = match self.entries.get(from) {
            Some(Entry::File(inode)) => *inode,
            Some(Entry::Directory) => {
                return Err(failed("rename", from, "is a directory; only files can be renamed"));
            }
            None => return Err(not_found("rename", from)),
        };
        if from == to {
            return Ok(DiskReply::Done);
        }
        self.require_parent("rename to", to)?;
        if self.entries.get(to) == Some(&Entry::Directory) {
            return Err(failed("rename to", to, "is a directory"));
        }
        self.unlink(to);
        self.entries.remove(from);
        self.entries.insert(to.to_owned(), Entry::File(inode));
        self.settle(inode);
        Ok(DiskReply::Done)
    }

    /// Takes the name of a file away, if there is one.
    fn unlink(&mut self, path: &Path) {
        if let Some(Entry::File(inode)) = self.entries.get(path).copied() {
            self.entries.remove(path);
            self.inode(inode).linked = false;
            self.free_if_unused(inode);
        }
    }

    fn remove(&mut self, path: &Path) -> Reply {
        match self.entries.get(path) {
            Some(Entry::File(_)) => {
                self.unlink(path);
                Ok(DiskReply::Done)
            }
            Some(Entry::Directory) => Err(failed("remove", path, "is a directory")),
            None => Err(not_found("remove", path)),
        }
    }

    pub(super) fn make_directory(&mut self, path: &Path) -> Reply {
        for directory in path.ancestors() {
            match self.entries.get(directory) {
                Some(Entry::Directory) => break,
                Some(Entry::File(_)) => {
                    return Err(failed("make directory", path, "has a file in its path"));
                }
                None => {}
            }
        }
        for directory in path.ancestors() {
            self.entries.entry(directory.to_owned()).or_insert(Entry::Directory);
        }
        Ok(DiskReply::Done)
    }

    fn list(&self, path: &Path) -> Reply {
        match self.entries.get(path) {
            Some(Entry::Directory) => Ok(DiskReply::Names(self.names(path))),
            Some(Entry::File(_)) => Err(failed("list", path, "is a file")),
            None => Err(not_found("list", path)),
        }
    }

    fn names(&self, directory: &Path) -> Vec<String> {
        let children = self.below(directory).filter(|(path, _)| path.parent() == Some(directory));
        let mut names: Vec<_> = children
            .filter_map(|(path, _)| Some(path.file_name()?.to_string_lossy().into_owned()))
            .collect();
        names.sort();
        names
    }

    /// A directory and everything below it.
    fn below(&self, directory: &Path) -> impl Iterator<Item = (&PathBuf, Entry)> {
        let from = directory.to_owned();
        let entries = self.entries.range(from..).map(|(path, entry)| (path, *entry));
        entries.take_while(move |(path, _)| path.starts_with(directory))
    }

    fn require_parent(&self, what: &str, path: &Path) -> Result<(), DiskError> {
        match path.parent().and_then(|parent| self.entries.get(parent)) {
            Some(Entry::Directory) => Ok(()),
            Some(Entry::File(_)) => Err(failed(what, path, "has a file in its path")),
            None => Err(DiskError {
                kind: DiskErrorKind::NotFound,
                text: format!(
                    "cannot {what} {}: its directory does not exist; make it first",
                    path.display()
                ),
            }),
        }
    }
}

/// Quotas, and the view from outside of the world.
impl Disk {
    /// Sets how many bytes the files below `directory` may occupy, in whole pages of 4 KiB; `None`
    /// takes the quota away.
    pub(super) fn set_quota(&mut self, directory: &Path, bytes: Option<u64>) {
        let directory = normalise(Path::new("/"), directory);
        match bytes {
            Some(bytes) => self.quotas.insert(directory, bytes),
            None => self.quotas.remove(&directory),
        };
    }

    /// Checks that a write fits the quotas above a file. A file without a name counts nowhere.
    fn check_quota(&self, inode: usize, offset: u64, len: usize) -> Result<(), DiskError> {
        if self.quotas.is_empty() {
            return Ok(());
        }
        let growth = self.inodes[inode].as_ref().map_or(0, |file| file.growth(offset, len));
        if growth == 0 {
            return Ok(());
        }
        for (directory, limit) in &self.quotas {
            let mut occupied = 0;
            let mut inside = false;
            for (_, entry) in self.below(directory) {
                let Entry::File(other) = entry else { continue };
                inside |= other == inode;
                occupied += self.inodes[other].as_ref().map_or(0, Inode::pages);
            }
            if inside && (occupied + growth).saturating_mul(PAGE as u64) > *limit {
                return Err(full(format!(
                    "cannot write {len} bytes: the disk is full: {} has a quota of {limit} bytes; \
                     free some space",
                    directory.display()
                )));
            }
        }
        Ok(())
    }

    /// Puts a file with this content at `path`, making its directories and replacing what is there.
    pub(super) fn import(
        &mut self,
        path: &Path,
        bytes: &[u8],
        read_only: bool,
    ) -> Result<(), DiskError> {
        let mut file = Inode::new();
        if !bytes.is_empty() {
            file.write(&mut self.store, 0, bytes);
        }
        file.settle(&mut self.store);
        file.read_only = read_only;
        self.place(path, file)
    }

    /// Puts a real file at `path`, read-only.
    pub(super) fn import_file(&mut self, path: &Path, real: &Path) -> Result<(), WorldError> {
        let failed = |error| WorldError::Import { path: real.to_owned(), error };
        let file = std::fs::File::open(real).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        let mut inode = Inode::real(file, len);
        inode.read_only = true;
        self.place(path, inode).map_err(|error| failed(std::io::Error::other(error)))
    }

    fn place(&mut self, path: &Path, file: Inode) -> Result<(), DiskError> {
        let path = normalise(Path::new("/"), path);
        if self.entries.get(&path) == Some(&Entry::Directory) {
            return Err(failed("put a file at", &path, "is a directory"));
        }
        if let Some(parent) = path.parent() {
            self.make_directory(parent)?;
        }
        self.unlink(&path);
        self.insert(&path, file);
        Ok(())
    }

    /// The whole content of a file.
    pub(super) fn content(&self, path: &Path) -> Result<Vec<u8>, DiskError> {
        let path = normalise(Path::new("/"), path);
        let Some(Entry::File(inode)) = self.entries.get(&path) else {
            return Err(not_found("read", &path));
        };
        let file = self.inodes[*inode].as_ref().ok_or_else(|| not_found("read", &path))?;
        file.read(0, usize::MAX).map_err(|error| failed("read", &path, &error.to_string()))
    }

    /// The paths of all files below a directory.
    pub(super) fn files_below(&self, directory: &Path) -> Vec<PathBuf> {
        let directory = normalise(Path::new("/"), directory);
        let files = self.below(&directory).filter(|(_, entry)| *entry != Entry::Directory);
        files.map(|(path, _)| path.clone()).collect()
    }

    /// How many bytes of memory the contents take: different pages only.
    pub(super) fn memory(&self) -> usize {
        self.store.count() * PAGE
    }
}

/// `path` seen from `directory`, without `.` and `..`. There are no symbolic links.
fn normalise(directory: &Path, path: &Path) -> PathBuf {
    let mut absolute = PathBuf::from("/");
    for component in directory.components().chain(path.components()) {
        match component {
            Component::RootDir | Component::Prefix(_) => absolute = PathBuf::from("/"),
            Component::CurDir => {}
            Component::ParentDir => {
                absolute.pop();
            }
            Component::Normal(name) => absolute.push(name),
        }
    }
    absolute
}

fn failed(what: &str, path: &Path, why: &str) -> DiskError {
    other(format!("cannot {what} {}: it {why}", path.display()))
}

fn not_found(what: &str, path: &Path) -> DiskError {
    let text = format!("cannot {what} {}: there is no such file", path.display());
    DiskError { kind: DiskErrorKind::NotFound, text }
}

fn denied(what: &str, path: &Path) -> DiskError {
    let text = format!("cannot {what} {} for writing: it is read-only", path.display());
    DiskError { kind: DiskErrorKind::Denied, text }
}

fn full(text: String) -> DiskError {
    DiskError { kind: DiskErrorKind::Full, text }
}

fn other(text: String) -> DiskError {
    DiskError { kind: DiskErrorKind::Other, text }
}

#[cfg(test)]
mod tests;
