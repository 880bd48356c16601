//! SHA-256 over a file that is read piece by piece, as background work.

use std::collections::VecDeque;

use sha2::{Digest, Sha256};

use crate::object::Sha256Digest;

/// Bytes read and hashed at a time: a fraction of a millisecond with or without SHA instructions.
pub(crate) const PIECE: usize = 256 * 1024;
/// Pieces that are read ahead of hashing.
const READ_AHEAD: usize = 2;

/// A pass over a file from its start. The owner reads what [`HashPass::next_read`] asks for and hands
/// the bytes back in order.
pub(crate) struct HashPass {
    hasher: Sha256,
    pieces: VecDeque<Vec<u8>>,
    asked: u64,
    answered: u64,
    hashed: u64,
}

impl HashPass {
    pub(crate) fn new() -> Self {
        Self { hasher: Sha256::new(), pieces: VecDeque::new(), asked: 0, answered: 0, hashed: 0 }
    }

    /// What to read next, as offset and length, if something below `limit` is worth reading now.
    /// Short pieces are read only at `end`, the end of the file if it is known.
    pub(crate) fn next_read(&mut self, limit: u64, end: Option<u64>) -> Option<(u64, usize)> {
        let ahead = self.pieces.len() + usize::from(self.asked > self.answered);
        let len = (limit.saturating_sub(self.asked)).min(PIECE as u64);
        let worth = len == PIECE as u64 || (len > 0 && end == Some(self.asked + len));
        (self.asked == self.answered && ahead < READ_AHEAD && worth).then(|| {
            let offset = self.asked;
            self.asked += len;
            (offset, len as usize)
        })
    }

    /// The answer to the last read. False if it has not the length that was asked for.
    #[must_use]
    pub(crate) fn read(&mut self, bytes: Vec<u8>) -> bool {
        self.answered += bytes.len() as u64;
        self.pieces.push_back(bytes);
        self.answered == self.asked
    }

    /// Whether [`HashPass::work`] has something to do.
    pub(crate) fn has_work(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// Hashes one piece.
    pub(crate) fn work(&mut self) {
        if let Some(piece) = self.pieces.pop_front() {
            self.hasher.update(&piece);
            self.hashed += piece.len() as u64;
        }
    }

    /// How many bytes are hashed.
    pub(crate) fn hashed(&self) -> u64 {
        self.hashed
    }

    /// Bytes held in memory.
    pub(crate) fn memory(&self) -> usize {
        self.pieces.iter().map(Vec::len).sum()
    }

    /// The digest, once `length` bytes are hashed.
    pub(crate) fn digest(&self, length: u64) -> Option<Sha256Digest> {
        (self.hashed == length && self.pieces.is_empty())
            .then(|| Sha256Digest(self.hasher.clone().finalize().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_hashed_in_order_and_only_as_far_as_it_is_there() {
        let file: Vec<u8> = (0..PIECE * 2 + 100).map(|byte| (byte / 7) as u8).collect();
        let length = file.len() as u64;
        let mut pass = HashPass::new();
        assert_eq!(pass.next_read(1000, None), None);
        let mut limit = PIECE as u64;
        while pass.digest(length).is_none() {
            if let Some((offset, len)) = pass.next_read(limit, Some(length)) {
                assert!(offset + len as u64 <= limit);
                assert!(pass.read(file[offset as usize..][..len].to_vec()));
            }
            pass.work();
            limit = length.min(limit + 1000);
        }
        assert_eq!(pass.digest(length), Some(Sha256Digest(Sha256::digest(&file).into())));
    }

    #[test]
    fn a_short_answer_is_noticed() {
        let mut pass = HashPass::new();
        assert_eq!(pass.next_read(10, Some(10)), Some((0, 10)));
        assert!(!pass.read(vec![0; 9]));
    }

    #[test]
    fn nothing_has_the_digest_of_nothing() {
        let expected = Sha256Digest(Sha256::digest([]).into());
        assert_eq!(HashPass::new().digest(0), Some(expected));
    }
}
