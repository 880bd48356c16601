//! The state file: what of an object is on disk, so that a killed receiver can go on.
//!
//! It is written beside the object's files from time to time, first under another name, then renamed.
//! It claims only what the disk had confirmed when it was written, so whatever happens afterwards, it
//! claims too little and never too much. A digest at its end makes a torn or damaged file worthless
//! instead of dangerous; then the object is simply received again. What it says is checked like
//! anything that comes from outside.
//!
//! ```text
//! "weftpush" 1 | kind | sender (32) | object (16) | symbol size (2)
//! described (1) [ block size (4) name length (1) name ]
//! known (1)     [ length (8) SHA-256 (32) ]
//! complete: count (4) { start (8) end (8) }
//! partial:  count (4) { offset (8) length (4) bits (K / 8) repairs (4) { esi (4) slot (4) } }
//! SHA-256 of all before (32)
//! ```

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use super::bitmap::{self, Bitmap};
use super::blocks::{Blocks, Partial, Repair, Standing};
use crate::object::{
    Description, ESI_END, Extent, MAX_BLOCK_SYMBOLS, MAX_OBJECT_BYTES, ObjectId, ObjectKind,
    SenderKey, Sha256Digest, Total,
};

const MAGIC: &[u8; 9] = b"weftpush\x01";

/// Everything a state file says.
#[derive(Debug)]
pub(super) struct Saved {
    pub(super) sender: SenderKey,
    pub(super) object: ObjectId,
    pub(super) kind: ObjectKind,
    pub(super) symbol_size: u16,
    pub(super) description: Option<Description>,
    pub(super) total: Option<Total>,
    pub(super) blocks: Blocks,
}

impl Saved {
    /// The end of the last byte that is claimed to be in the part file.
    pub(super) fn part_end(&self) -> u64 {
        self.blocks.stored_end(self.symbol_size)
    }

    /// The slots that are claimed to hold repair symbols.
    pub(super) fn slots(&self) -> BTreeSet<u32> {
        self.blocks
            .iter()
            .flat_map(|(_, partial)| &partial.repairs)
            .map(|repair| repair.slot)
            .collect()
    }
}

/// Writes a state file.
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn new(
        sender: SenderKey,
        object: ObjectId,
        kind: ObjectKind,
        symbol_size: u16,
        description: Option<&Description>,
        total: Option<&Total>,
    ) -> Self {
        let mut bytes = MAGIC.to_vec();
        bytes.push(u8::from(kind == ObjectKind::Stream));
        bytes.extend(sender.raw());
        bytes.extend(object.0);
        bytes.extend(symbol_size.to_be_bytes());
        bytes.push(u8::from(description.is_some()));
        if let Some(description) = description {
            bytes.extend(description.block_size.to_be_bytes());
            bytes.push(description.name.len() as u8);
            bytes.extend(description.name.as_bytes());
        }
        bytes.push(u8::from(total.is_some()));
        if let Some(total) = total {
            bytes.extend(total.length.to_be_bytes());
            bytes.extend(total.sha256.0);
        }
        Self(bytes)
    }

    fn number(&mut self, number: u32) {
        self.0.extend(number.to_be_bytes());
    }

    /// The ranges that are complete; to be called once, first.
    pub(super) fn complete(&mut self, ranges: impl ExactSizeIterator<Item = (u64, u64)>) {
        self.number(ranges.len() as u32);
        for (start, end) in ranges {
            self.0.extend(start.to_be_bytes());
            self.0.extend(end.to_be_bytes());
        }
    }

    /// The partial blocks; to be called once, after that. Gives the whole file.
    pub(super) fn partial(
        mut self,
        blocks: impl ExactSizeIterator<Item = (Extent, Bitmap, Vec<Repair>)>,
    ) -> Vec<u8> {
        self.number(blocks.len() as u32);
        for (block, held, repairs) in blocks {
            self.0.extend(block.offset.to_be_bytes());
            self.number(block.len);
            self.0.extend(held.to_octets());
            self.number(repairs.len() as u32);
            for repair in repairs {
                self.number(repair.esi);
                self.number(repair.slot);
            }
        }
        let digest = Sha256::digest(&self.0);
        self.0.extend(digest);
        self.0
    }
}

/// Reads a state file; `None` if it is torn, damaged or says something impossible. `max_slots` bounds
/// the slots it may name.
pub(super) fn read(bytes: &[u8], max_slots: u32) -> Option<Saved> {
    let (content, digest) = bytes.split_at_checked(bytes.len().checked_sub(32)?)?;
    if *digest != *Sha256::digest(content) {
        return None;
    }
    let mut reader = Reader(content);
    let saved = reader.saved(max_slots)?;
    reader.0.is_empty().then_some(saved)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn flag(&mut self) -> Option<bool> {
        match self.array()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn long(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn saved(&mut self, max_slots: u32) -> Option<Saved> {
        if self.array()? != *MAGIC {
            return None;
        }
        let kind = if self.flag()? { ObjectKind::Stream } else { ObjectKind::File };
        let sender = SenderKey::from_raw(self.array()?);
        let object = ObjectId(self.array()?);
        let symbol_size = u16::from_be_bytes(self.array()?);
        if symbol_size == 0 {
            return None;
        }
        let description = if self.flag()? { Some(self.description(symbol_size)?) } else { None };
        let total = if self.flag()? { Some(self.total()?) } else { None };
        let blocks = self.blocks(symbol_size, max_slots)?;
        Some(Saved { sender, object, kind, symbol_size, description, total, blocks })
    }

    fn description(&mut self, symbol_size: u16) -> Option<Description> {
        let block_size = self.number()?;
        let [len] = self.array()?;
        let name = str::from_utf8(self.bytes(usize::from(len))?).ok()?.to_owned();
        let whole = block_size > 0 && block_size.is_multiple_of(u32::from(symbol_size));
        whole.then_some(Description { name, symbol_size, block_size })
    }

    fn total(&mut self) -> Option<Total> {
        let length = self.long()?;
        let sha256 = Sha256Digest(self.array()?);
        (length <= MAX_OBJECT_BYTES).then_some(Total { length, sha256 })
    }

    fn blocks(&mut self, symbol_size: u16, max_slots: u32) -> Option<Blocks> {
        let mut blocks = Blocks::default();
        for _ in 0..self.number()? {
            let (start, end) = (self.long()?, self.long()?);
            if start >= end || end > MAX_OBJECT_BYTES || blocks.complete.overlaps(start, end) {
                return None;
            }
            blocks.complete.insert(start, end);
        }
        let mut slots = BTreeSet::new();
        for _ in 0..self.number()? {
            let (block, partial) = self.partial(symbol_size)?;
            let fresh = partial
                .repairs
                .iter()
                .all(|repair| repair.slot < max_slots && slots.insert(repair.slot));
            if !fresh || blocks.standing(block) != Standing::Unknown {
                return None;
            }
            blocks.insert(block.offset, partial);
        }
        Some(blocks)
    }

    fn partial(&mut self, symbol_size: u16) -> Option<(Extent, Partial)> {
        let block = Extent { offset: self.long()?, len: self.number()? };
        let symbols = block.symbols(symbol_size);
        let possible = (1..=MAX_BLOCK_SYMBOLS).contains(&symbols)
            && block.offset <= MAX_OBJECT_BYTES
            && block.end() <= MAX_OBJECT_BYTES;
        if !possible {
            return None;
        }
        let mut partial = Partial::new(block.len, symbols);
        partial.held = Bitmap::from_octets(symbols, self.bytes(bitmap::octets(symbols))?)?;
        for _ in 0..self.number()? {
            let (esi, slot) = (self.number()?, self.number()?);
            if !(symbols..ESI_END).contains(&esi) || partial.has(esi) {
                return None;
            }
            partial.add_repair(Repair { esi, slot });
        }
        Some((block, partial))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn state(description: Option<&Description>) -> Vec<u8> {
        let sender = SenderKey::new(b"sender");
        let total = Total { length: 5000, sha256: Sha256Digest([3; 32]) };
        let total = description.map(|_| &total);
        let id = ObjectId([1; 16]);
        let mut writer = Writer::new(sender, id, ObjectKind::File, 10, description, total);
        writer.complete([(0, 1000), (2000, 3000)].into_iter());
        let mut held = Bitmap::new(100);
        held.set_range(0, 50, true);
        let repairs = vec![Repair { esi: 100, slot: 2 }, Repair { esi: 107, slot: 0 }];
        let block = Extent { offset: 1000, len: 1000 };
        writer.partial([(block, held, repairs)].into_iter())
    }

    fn description() -> Description {
        Description { name: "ä.bin".into(), symbol_size: 10, block_size: 1000 }
    }

    #[test]
    fn a_state_comes_back() {
        let saved = read(&state(Some(&description())), 3).unwrap();
        assert_eq!((saved.sender, saved.symbol_size), (SenderKey::new(b"sender"), 10));
        assert_eq!(saved.description, Some(description()));
        assert_eq!(saved.total.map(|total| total.length), Some(5000));
        assert_eq!(saved.blocks.complete.bytes(), 2000);
        assert_eq!(saved.blocks.get(1000).unwrap().symbols(), 52);
        assert_eq!((saved.part_end(), saved.slots()), (3000, BTreeSet::from([0, 2])));
        assert!(read(&state(None), 3).unwrap().description.is_none());
    }

    #[test]
    fn torn_and_damaged_states_are_worthless() {
        let state = state(Some(&description()));
        for len in 0..state.len() {
            assert!(read(&state[..len], 3).is_none(), "cut at {len}");
        }
        for bit in 0..state.len() * 8 {
            let mut damaged = state.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&damaged, 3).is_none(), "bit {bit}");
        }
    }

    #[test]
    fn slots_beyond_the_limit_are_refused() {
        assert!(read(&state(None), 2).is_none());
    }

    proptest! {
        #[test]
        fn wrong_content_under_a_right_digest_never_panics(
            changes in prop::collection::vec((0usize..1000, any::<u8>()), 1..6)
        ) {
            let mut state = state(Some(&description()));
            let content = state.len() - 32;
            for (at, byte) in changes {
                state[9 + at % (content - 9)] = byte;
            }
            let digest = Sha256::digest(&state[..content]);
            state[content..].copy_from_slice(&digest);
            if let Some(saved) = read(&state, 100) {
                prop_assert!(saved.part_end() <= MAX_OBJECT_BYTES);
            }
        }
    }
}
