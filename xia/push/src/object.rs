//! What is pushed: objects, their names on the wire, and how they are cut into blocks and symbols.
//!
//! Reference: RFC 6330 §4.4.1 (source blocks and symbols), §5.6 (largest block). An object is cut
//! into blocks of at most `block_size` bytes, a block into K symbols of `symbol_size` bytes, the last
//! one padded with zeros. Differences from RFC 6330: a block is named by where it lies in the object
//! ([`Extent`]: byte offset and length) instead of an 8-bit source block number, so that an object may
//! have any number of blocks and a single datagram says where its symbol belongs; blocks are cut
//! greedily (all of equal length but the last) instead of evenly; there are no sub-blocks.

use std::fmt;

use sha2::{Digest, Sha256};

/// Most source symbols a block may have (RFC 6330 §5.6).
pub const MAX_BLOCK_SYMBOLS: u32 = 56_403;
/// Most bytes of a block that senders make and that receivers take unless told otherwise: a block is
/// held in memory as a whole, and decoding takes about four times as much.
pub const MAX_BLOCK_BYTES: u32 = 10 << 20;
/// Encoding symbol ids have 24 bits (RFC 6330 §3.2).
pub const ESI_END: u32 = 1 << 24;
/// Objects end before this offset: offsets have 48 bits on the wire.
pub const MAX_OBJECT_BYTES: u64 = 1 << 48;

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256Digest(pub [u8; 32]);

/// The name of an object on the wire: 128 bits.
///
/// For a file it is a digest over everything an announce says ([`Description::file_id`]), so a
/// sender that is started again with the same file and parameters continues the same object, and no
/// announce can lie about an object without changing its id. For a stream it is random.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub [u8; 16]);

/// Whether an object's length is known beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// A file: sent in rounds for as long as the sender likes.
    File,
    /// A live stream: each block is sent once with its repair symbols and then forgotten.
    Stream,
}

/// Who sends an object: opaque bytes given by the caller, such as the XID of the source.
///
/// Up to 31 bytes are kept as they are, longer ones as their digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SenderKey([u8; 32]);

impl SenderKey {
    /// The key for a sender that is known by `bytes`.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let mut key = [0; 32];
        match u8::try_from(bytes.len()) {
            Ok(len @ 0..=31) => {
                key[0] = len;
                key[1..=bytes.len()].copy_from_slice(bytes);
            }
            _ => {
                key = Sha256::digest(bytes).into();
                key[0] = u8::MAX;
            }
        }
        Self(key)
    }

    /// The bytes given to [`SenderKey::new`], or what stands for them if they were too long.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match usize::from(self.0[0]) {
            len @ 0..=31 => &self.0[1..=len],
            _ => &self.0[1..],
        }
    }

    /// The key that [`SenderKey::raw`] came from.
    pub(crate) fn from_raw(mut raw: [u8; 32]) -> Self {
        if (32..u8::MAX).contains(&raw[0]) {
            raw[0] = u8::MAX;
        }
        Self(raw)
    }

    /// All of the key, for files.
    pub(crate) fn raw(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Where a block lies in its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// Of its first byte.
    pub offset: u64,
    /// In bytes, without padding; at least one.
    pub len: u32,
}

impl Extent {
    /// The offset behind its last byte.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }

    /// K: how many source symbols of `symbol_size` bytes it has.
    #[must_use]
    pub fn symbols(&self, symbol_size: u16) -> u32 {
        self.len.div_ceil(u32::from(symbol_size.max(1)))
    }

    /// The bytes of source symbols `first..first + count` in the object, as offset and length: the
    /// padding of the last symbol does not count.
    pub(crate) fn bytes_of(&self, first: u32, count: u32, symbol_size: u16) -> (u64, usize) {
        let size = u64::from(symbol_size);
        let start = self.offset + u64::from(first) * size;
        let end = (start + u64::from(count) * size).min(self.end());
        (start, (end - start) as usize)
    }
}

/// Length and digest of a whole object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// In bytes.
    pub length: u64,
    /// Over all bytes.
    pub sha256: Sha256Digest,
}

/// How an object is cut, and what it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// What its sender calls it; not to be trusted as a file name.
    pub name: String,
    /// In bytes.
    pub symbol_size: u16,
    /// In bytes, a multiple of the symbol size.
    pub block_size: u32,
}

impl Description {
    /// The id of a file with this description and content.
    #[must_use]
    pub fn file_id(&self, total: &Total) -> ObjectId {
        let digest = Sha256::new()
            .chain_update(b"weft xia push file 1\0")
            .chain_update(self.symbol_size.to_be_bytes())
            .chain_update(self.block_size.to_be_bytes())
            .chain_update(total.length.to_be_bytes())
            .chain_update(total.sha256.0)
            .chain_update(self.name.as_bytes())
            .finalize();
        let mut id = [0; 16];
        id.copy_from_slice(&digest[..16]);
        ObjectId(id)
    }

    /// The block of a file of `length` bytes that begins at `offset`, if one does.
    #[must_use]
    pub fn file_block(&self, length: u64, offset: u64) -> Option<Extent> {
        let size = u64::from(self.block_size);
        (offset < length && offset.is_multiple_of(size))
            .then(|| Extent { offset, len: (length - offset).min(size) as u32 })
    }

    /// How many source symbols a file of `length` bytes has.
    #[must_use]
    pub fn file_symbols(&self, length: u64) -> u64 {
        // Every block but the last is a multiple of the symbol size, so block borders add none.
        length.div_ceil(u64::from(self.symbol_size))
    }
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

macro_rules! hex_text {
    ($type:ident, $bytes:expr) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let bytes: fn(&Self) -> &[u8] = $bytes;
                write_hex(f, bytes(self))
            }
        }
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}
hex_text!(Sha256Digest, |digest| &digest.0);
hex_text!(ObjectId, |id| &id.0);
hex_text!(SenderKey, SenderKey::bytes);

#[cfg(test)]
mod tests {
    use super::*;

    fn description() -> Description {
        Description { name: "a.bin".into(), symbol_size: 10, block_size: 100 }
    }

    #[test]
    fn a_file_is_cut_into_equal_blocks_and_a_rest() {
        let blocks: Vec<_> =
            (0..3).filter_map(|block| description().file_block(155, block * 100)).collect();
        assert_eq!(blocks, [Extent { offset: 0, len: 100 }, Extent { offset: 100, len: 55 }]);
        assert_eq!(blocks[1].symbols(10), 6);
        assert_eq!(blocks[1].bytes_of(5, 1, 10), (150, 5));
        assert_eq!(description().file_symbols(155), 16);
        assert_eq!(description().file_block(155, 50), None);
    }

    #[test]
    fn the_id_of_a_file_covers_everything_an_announce_says() {
        let total = Total { length: 155, sha256: Sha256Digest([1; 32]) };
        let id = description().file_id(&total);
        assert_eq!(id, description().file_id(&total));
        let others = [
            Description { name: "b.bin".into(), ..description() }.file_id(&total),
            Description { symbol_size: 20, ..description() }.file_id(&total),
            Description { block_size: 200, ..description() }.file_id(&total),
            description().file_id(&Total { length: 156, ..total }),
            description().file_id(&Total { sha256: Sha256Digest([2; 32]), ..total }),
        ];
        assert!(!others.contains(&id));
    }

    #[test]
    fn sender_keys_keep_short_bytes_and_tell_long_ones_apart() {
        assert_eq!(SenderKey::new(b"abc").bytes(), b"abc");
        assert_ne!(SenderKey::new(&[1; 40]), SenderKey::new(&[1; 41]));
        assert_ne!(SenderKey::new(&[]), SenderKey::new(&[0]));
        assert_eq!(SenderKey::new(&[0xab; 2]).to_string(), "abab");
    }
}
