//! Symbols of a file: one block is read and encoded while another is being sent.

use sha2::{Digest, Sha256};
use weft_base::FileId;
use weft_runtime::DiskRequest;

use crate::code::Encoder;
use crate::object::{Sha256Digest, Total};
use crate::sender::batch::Batch;
use crate::sender::carousel::{Carousel, Visit};

/// The next block on its way from disk.
enum Next {
    /// Nothing is asked for.
    Idle,
    Reading(Visit),
    /// Read; to be encoded in a slice.
    Loaded(Visit, Vec<u8>),
    Ready(Batch),
    /// The carousel has ended.
    End,
}

/// Reads and encodes the blocks of a file in the order of a carousel.
pub(super) struct FileFeed {
    file: FileId,
    symbol_size: u16,
    total: Total,
    carousel: Carousel,
    next: Next,
    encoder: Encoder,
    /// A second digest over what the source round sends.
    source_round: Sha256,
    hashed: u64,
}

impl FileFeed {
    pub(super) fn new(file: FileId, symbol_size: u16, total: Total, carousel: Carousel) -> Self {
        Self {
            file,
            symbol_size,
            total,
            carousel,
            next: Next::Idle,
            encoder: Encoder::default(),
            source_round: Sha256::new(),
            hashed: 0,
        }
    }

    /// What to read now, if anything.
    pub(super) fn next_read(&mut self) -> Option<DiskRequest> {
        let Next::Idle = self.next else { return None };
        let Some(visit) = self.carousel.next() else {
            self.next = Next::End;
            return None;
        };
        self.next = Next::Reading(visit);
        let (offset, len) = (visit.block.offset, visit.block.len as usize);
        Some(DiskRequest::Read { file: self.file, offset, len })
    }

    /// The answer to the last read.
    pub(super) fn on_data(&mut self, bytes: Vec<u8>) -> Result<(), Changed> {
        if let Next::Reading(visit) = self.next {
            if bytes.len() != visit.block.len as usize {
                return Err(Changed);
            }
            self.next = Next::Loaded(visit, bytes);
        }
        Ok(())
    }

    pub(super) fn has_work(&self) -> bool {
        matches!(self.next, Next::Loaded(..))
    }

    /// One slice: makes the symbols of the block that was read.
    pub(super) fn work(&mut self) -> Result<(), Changed> {
        self.next = match std::mem::replace(&mut self.next, Next::Idle) {
            Next::Loaded(visit, bytes) => match visit.repair {
                None => {
                    self.check_source(&bytes)?;
                    Next::Ready(Batch::new(visit.round, visit.block, bytes, Vec::new()))
                }
                Some((first, count)) => {
                    let repair = self.encoder.repair(bytes, self.symbol_size, first, count);
                    Next::Ready(Batch::new(visit.round, visit.block, Vec::new(), repair))
                }
            },
            other => other,
        };
        Ok(())
    }

    /// The source round must send what was hashed before: otherwise the file was changed in between,
    /// and no receiver could ever finish it.
    fn check_source(&mut self, bytes: &[u8]) -> Result<(), Changed> {
        self.source_round.update(bytes);
        self.hashed += bytes.len() as u64;
        if self.hashed < self.total.length {
            return Ok(());
        }
        let digest = Sha256Digest(self.source_round.clone().finalize().into());
        if digest == self.total.sha256 { Ok(()) } else { Err(Changed) }
    }

    pub(super) fn is_ready(&self) -> bool {
        matches!(self.next, Next::Ready(_))
    }

    pub(super) fn take(&mut self) -> Option<Batch> {
        match std::mem::replace(&mut self.next, Next::Idle) {
            Next::Ready(batch) => Some(batch),
            other => {
                self.next = other;
                None
            }
        }
    }

    pub(super) fn is_at_end(&self) -> bool {
        matches!(self.next, Next::End)
    }

    /// Bytes held in memory, the encoder's transient ones not included.
    pub(super) fn memory(&self) -> usize {
        match &self.next {
            Next::Idle | Next::Reading(_) | Next::End => 0,
            Next::Loaded(_, bytes) => bytes.capacity(),
            Next::Ready(batch) => batch.memory(),
        }
    }
}

/// The file is not what it was when it was hashed.
pub(super) struct Changed;
