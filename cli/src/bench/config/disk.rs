//! Carries out the disk requests of a configuration's history, on real files.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use weft_base::FileId;
use weft_runtime::{DiskError, DiskErrorKind, DiskReply, DiskRequest, OpenMode};

/// The open files.
#[derive(Debug, Default)]
pub(super) struct Disk {
    open: BTreeMap<FileId, File>,
    last: u32,
}

impl Disk {
    pub(super) fn carry_out(&mut self, request: DiskRequest) -> Result<DiskReply, DiskError> {
        self.answer(request).map_err(|error| {
            let kind = match error.kind() {
                io::ErrorKind::NotFound => DiskErrorKind::NotFound,
                io::ErrorKind::StorageFull => DiskErrorKind::Full,
                _ => DiskErrorKind::Other,
            };
            DiskError { kind, text: error.to_string() }
        })
    }

    fn answer(&mut self, request: DiskRequest) -> io::Result<DiskReply> {
        match request {
            DiskRequest::Open { path, mode } => {
                let writes = mode != OpenMode::Read;
                let file = OpenOptions::new()
                    .read(true)
                    .write(writes)
                    .create(writes)
                    .truncate(mode == OpenMode::Replace)
                    .open(path)?;
                self.last += 1;
                let len = Some(file.metadata()?.len());
                self.open.insert(FileId(self.last), file);
                return Ok(DiskReply::Opened { file: FileId(self.last), len });
            }
            DiskRequest::Read { file, len, .. } => {
                let mut bytes = Vec::new();
                let read = self.file(file)?.take(len as u64).read_to_end(&mut bytes)?;
                return Ok(DiskReply::Data { bytes, end: read < len });
            }
            DiskRequest::Write { file, offset, bytes } => {
                self.file(file)?.write_all_at(&bytes, offset)?;
            }
            DiskRequest::SetLen { file, len } => self.file(file)?.set_len(len)?,
            DiskRequest::Sync { file } => self.file(file)?.sync_all()?,
            DiskRequest::Close { file } => drop(self.open.remove(&file)),
            DiskRequest::Rename { from, to } => fs::rename(from, to)?,
            DiskRequest::Remove { path } => fs::remove_file(path)?,
            DiskRequest::MakeDirectory { path } => fs::create_dir_all(path)?,
            DiskRequest::SyncDirectory { path } => File::open(path)?.sync_all()?,
            DiskRequest::List { path } => {
                let names = fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.file_name()));
                let names = names.collect::<io::Result<Vec<_>>>()?;
                let names = names.into_iter().map(|name| name.to_string_lossy().into_owned());
                return Ok(DiskReply::Names(names.collect()));
            }
        }
        Ok(DiskReply::Done)
    }

    fn file(&self, file: FileId) -> io::Result<&File> {
        self.open.get(&file).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Writes a file as the history does, and nothing else.
pub(super) fn write_durably(directory: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = directory.join("unfinished");
    let mut file = File::create(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&unfinished, directory.join("revision"))?;
    File::open(directory)?.sync_all()
}
