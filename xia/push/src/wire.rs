//! The two datagrams of a push: symbols and announces.
//!
//! A format of our own, version 1, all numbers in network byte order. Both kinds are one datagram
//! each and share the first octet, the checksum and the object id. There is no other state between
//! sender and receiver: whichever datagrams arrive, in whatever order, are enough.
//!
//! A symbol says all that is needed to store it before any announce was heard: the object, where its
//! block lies, which symbol of the block it is. The size of a symbol is the rest of the datagram.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------+-------+-----------------------------------------------+
//! |Version| Kind  |        Encoding symbol id (24 bits)           |
//! +-------+-------+---------------+-------------------------------+
//! |           Checksum            |                               |
//! +-------------------------------+  Offset of the block (48)     +
//! |                                                               |
//! +---------------------------------------------------------------+
//! |                 Length of the block in bytes                  |
//! +---------------------------------------------------------------+
//! |                                                               |
//! +                     Object id (128 bits)                      +
//! |                              ...                              |
//! +---------------------------------------------------------------+
//! |                     One encoding symbol ...                   |
//! +---------------------------------------------------------------+
//! ```
//!
//! Kind is 1 for a symbol of a file and 2 for a symbol of a stream. The encoding symbol id is that of
//! RFC 6330 §3.2: below K a source symbol, from K on a repair symbol.
//!
//! An announce (kind 3) describes the object. It is repeated all the time.
//!
//! ```text
//! +-------+-------+---------------+-------------------------------+
//! |Version| Kind  |    Flags  |T|S|            Round              |
//! +-------+-------+---------------+-------------------------------+
//! |           Checksum            |      Symbol size in bytes     |
//! +-------------------------------+-------------------------------+
//! |                                                               |
//! +         Length of the object in bytes, zero unless T          +
//! |                                                               |
//! +---------------------------------------------------------------+
//! |                                                               |
//! +                     Object id (128 bits)                      +
//! |                              ...                              |
//! +---------------------------------------------------------------+
//! |              Largest length of a block in bytes               |
//! +---------------------------------------------------------------+
//! |                                                               |
//! +               SHA-256 of the object, zero unless T            +
//! |                              ...                              |
//! +---------------+-----------------------------------------------+
//! |  Name length  |  Name, UTF-8 ...                              |
//! +---------------+-----------------------------------------------+
//! ```
//!
//! S says that the object is a stream; T that length and SHA-256 are known: always for a file, at the
//! end for a stream. Other flags are sent as zero and ignored.
//!
//! The checksum is that of RFC 1071 over the whole datagram. XIP has none over its payload, and one
//! damaged symbol would spoil a whole block.

use weft_base::Packet;
use weft_wire::checksum;

use crate::object::{
    Description, Extent, MAX_BLOCK_SYMBOLS, MAX_OBJECT_BYTES, ObjectId, ObjectKind, Sha256Digest,
    Total,
};

/// Octets before the symbol in a symbol datagram.
pub const SYMBOL_HEADER: usize = 32;
/// Octets before the name in an announce.
pub const ANNOUNCE_HEADER: usize = 69;
/// Longest name, in octets.
pub const MAX_NAME: usize = 255;

const VERSION: u8 = 1;
const KIND_FILE_SYMBOL: u8 = 1;
const KIND_STREAM_SYMBOL: u8 = 2;
const KIND_ANNOUNCE: u8 = 3;
const FLAG_STREAM: u8 = 1;
const FLAG_TOTAL: u8 = 2;

mod field {
    use std::ops::Range;

    pub(super) const KIND: usize = 0;
    pub(super) const CHECKSUM: Range<usize> = 4..6;
    pub(super) const OBJECT: Range<usize> = 16..32;
    // Symbols.
    pub(super) const ESI: Range<usize> = 1..4;
    pub(super) const OFFSET: Range<usize> = 6..12;
    pub(super) const BLOCK_LEN: Range<usize> = 12..16;
    // Announces.
    pub(super) const FLAGS: usize = 1;
    pub(super) const ROUND: Range<usize> = 2..4;
    pub(super) const SYMBOL_SIZE: Range<usize> = 6..8;
    pub(super) const LENGTH: Range<usize> = 8..16;
    pub(super) const BLOCK_SIZE: Range<usize> = 32..36;
    pub(super) const SHA256: Range<usize> = 36..68;
    pub(super) const NAME_LEN: usize = 68;
}

/// Why bytes are no datagram of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// It ends too early, or is longer than its own fields say.
    #[error("a push datagram has {0} bytes, which does not fit its kind")]
    Length(usize),
    /// Another version.
    #[error("push version {0} is not spoken here, only version {VERSION}")]
    Version(u8),
    /// An unknown kind.
    #[error("push datagrams of kind {0} are unknown")]
    Kind(u8),
    /// It was damaged on the way.
    #[error("the checksum of a push datagram is wrong")]
    Checksum,
    /// A number is outside what the format allows.
    #[error("the {0} of a push datagram is out of range")]
    Range(&'static str),
    /// The name is not UTF-8.
    #[error("the name in a push announce is not UTF-8")]
    Name,
}

/// One datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Datagram<'a> {
    /// An encoding symbol.
    Symbol(Symbol<'a>),
    /// A description of an object.
    Announce(Announce),
}

/// A datagram with one encoding symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// Of which object.
    pub object: ObjectId,
    /// What kind of object that is.
    pub kind: ObjectKind,
    /// Of which block.
    pub block: Extent,
    /// Encoding symbol id, below 2^24.
    pub esi: u32,
    /// The symbol, as long as every symbol of the object.
    pub payload: &'a [u8],
}

/// A datagram that describes an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announce {
    /// Which object.
    pub object: ObjectId,
    /// What kind of object.
    pub kind: ObjectKind,
    /// Which round the sender is in, zero for the source round.
    pub round: u16,
    /// How it is cut and called.
    pub description: Description,
    /// Length and digest; always known for a file.
    pub total: Option<Total>,
}

impl<'a> Datagram<'a> {
    /// Reads a whole datagram.
    ///
    /// # Errors
    /// If it is none, or says something impossible.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let Some(&first) = bytes.first() else { return Err(DecodeError::Length(0)) };
        if first >> 4 != VERSION {
            return Err(DecodeError::Version(first >> 4));
        }
        let parse: fn(&'a [u8]) -> Result<Self, DecodeError> = match first & 0x0f {
            KIND_FILE_SYMBOL => |bytes| parse_symbol(bytes, ObjectKind::File).map(Self::Symbol),
            KIND_STREAM_SYMBOL => |bytes| parse_symbol(bytes, ObjectKind::Stream).map(Self::Symbol),
            KIND_ANNOUNCE => |bytes| parse_announce(bytes).map(Self::Announce),
            other => return Err(DecodeError::Kind(other)),
        };
        if bytes.len() < SYMBOL_HEADER {
            return Err(DecodeError::Length(bytes.len()));
        }
        if !checksum::is_valid(bytes) {
            return Err(DecodeError::Checksum);
        }
        parse(bytes)
    }
}

fn parse_symbol(bytes: &[u8], kind: ObjectKind) -> Result<Symbol<'_>, DecodeError> {
    let payload = &bytes[SYMBOL_HEADER..];
    let Ok(symbol_size @ 1..) = u16::try_from(payload.len()) else {
        return Err(DecodeError::Length(bytes.len()));
    };
    let block = Extent {
        offset: number(&bytes[field::OFFSET]),
        len: number(&bytes[field::BLOCK_LEN]) as u32,
    };
    if block.len == 0 || block.symbols(symbol_size) > MAX_BLOCK_SYMBOLS {
        return Err(DecodeError::Range("block length"));
    }
    if block.end() > MAX_OBJECT_BYTES {
        return Err(DecodeError::Range("block offset"));
    }
    let esi = number(&bytes[field::ESI]) as u32;
    Ok(Symbol { object: object(bytes), kind, block, esi, payload })
}

fn parse_announce(bytes: &[u8]) -> Result<Announce, DecodeError> {
    let name = bytes.get(ANNOUNCE_HEADER..).unwrap_or_default();
    if bytes.len() < ANNOUNCE_HEADER || name.len() != usize::from(bytes[field::NAME_LEN]) {
        return Err(DecodeError::Length(bytes.len()));
    }
    let name = str::from_utf8(name).map_err(|_| DecodeError::Name)?.to_owned();
    let symbol_size = number(&bytes[field::SYMBOL_SIZE]) as u16;
    let block_size = number(&bytes[field::BLOCK_SIZE]) as u32;
    if symbol_size == 0 {
        return Err(DecodeError::Range("symbol size"));
    }
    let symbols = block_size / u32::from(symbol_size);
    if !block_size.is_multiple_of(u32::from(symbol_size))
        || !(1..=MAX_BLOCK_SYMBOLS).contains(&symbols)
    {
        return Err(DecodeError::Range("block size"));
    }
    let flags = bytes[field::FLAGS];
    let kind = if flags & FLAG_STREAM == 0 { ObjectKind::File } else { ObjectKind::Stream };
    Ok(Announce {
        object: object(bytes),
        kind,
        round: number(&bytes[field::ROUND]) as u16,
        description: Description { name, symbol_size, block_size },
        total: parse_total(bytes, kind, flags)?,
    })
}

fn parse_total(bytes: &[u8], kind: ObjectKind, flags: u8) -> Result<Option<Total>, DecodeError> {
    if flags & FLAG_TOTAL == 0 {
        return if kind == ObjectKind::File { Err(DecodeError::Range("flags")) } else { Ok(None) };
    }
    let length = number(&bytes[field::LENGTH]);
    if length > MAX_OBJECT_BYTES {
        return Err(DecodeError::Range("object length"));
    }
    let mut sha256 = [0; 32];
    sha256.copy_from_slice(&bytes[field::SHA256]);
    Ok(Some(Total { length, sha256: Sha256Digest(sha256) }))
}

impl Symbol<'_> {
    /// Writes it into a new packet. A payload shorter than `symbol_size` is padded with zeros.
    #[must_use]
    pub fn emit(&self, symbol_size: u16) -> Packet {
        let kind = match self.kind {
            ObjectKind::File => KIND_FILE_SYMBOL,
            ObjectKind::Stream => KIND_STREAM_SYMBOL,
        };
        let mut header = [0; SYMBOL_HEADER];
        header[field::KIND] = VERSION << 4 | kind;
        header[field::ESI].copy_from_slice(&self.esi.to_be_bytes()[1..]);
        header[field::OFFSET].copy_from_slice(&self.block.offset.to_be_bytes()[2..]);
        header[field::BLOCK_LEN].copy_from_slice(&self.block.len.to_be_bytes());
        header[field::OBJECT].copy_from_slice(&self.object.0);

        let size = usize::from(symbol_size);
        let mut packet = Packet::with_capacity(SYMBOL_HEADER + size);
        packet.extend(&header);
        packet.extend(&self.payload[..self.payload.len().min(size)]);
        pad(&mut packet, SYMBOL_HEADER + size);
        seal(&mut packet);
        packet
    }
}

impl Announce {
    /// Writes it into a new packet. A name longer than [`MAX_NAME`] octets is cut.
    #[must_use]
    pub fn emit(&self) -> Packet {
        let description = &self.description;
        let name = cut(&description.name, MAX_NAME).as_bytes();
        let mut header = [0; ANNOUNCE_HEADER];
        header[field::KIND] = VERSION << 4 | KIND_ANNOUNCE;
        header[field::ROUND].copy_from_slice(&self.round.to_be_bytes());
        header[field::SYMBOL_SIZE].copy_from_slice(&description.symbol_size.to_be_bytes());
        header[field::OBJECT].copy_from_slice(&self.object.0);
        header[field::BLOCK_SIZE].copy_from_slice(&description.block_size.to_be_bytes());
        header[field::NAME_LEN] = name.len() as u8;
        if self.kind == ObjectKind::Stream {
            header[field::FLAGS] |= FLAG_STREAM;
        }
        if let Some(total) = &self.total {
            header[field::FLAGS] |= FLAG_TOTAL;
            header[field::LENGTH].copy_from_slice(&total.length.to_be_bytes());
            header[field::SHA256].copy_from_slice(&total.sha256.0);
        }
        let mut packet = Packet::from_slice(&header);
        packet.extend(name);
        seal(&mut packet);
        packet
    }
}

/// The longest start of `text` that has at most `max` octets and ends between characters.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// A big-endian number of up to 8 octets.
fn number(octets: &[u8]) -> u64 {
    octets.iter().fold(0, |number, octet| number << 8 | u64::from(*octet))
}

fn object(bytes: &[u8]) -> ObjectId {
    let mut id = [0; 16];
    id.copy_from_slice(&bytes[field::OBJECT]);
    ObjectId(id)
}

/// Appends zeros until the packet has `len` octets.
fn pad(packet: &mut Packet, len: usize) {
    while packet.len() < len {
        const ZEROS: [u8; 64] = [0; 64];
        let missing = len - packet.len();
        packet.extend(&ZEROS[..ZEROS.len().min(missing)]);
    }
}

/// Fills in the checksum.
fn seal(packet: &mut Packet) {
    let sum = checksum::checksum(packet.bytes());
    packet.bytes_mut()[field::CHECKSUM].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn symbol(payload: &[u8]) -> Symbol<'_> {
        Symbol {
            object: ObjectId([7; 16]),
            kind: ObjectKind::File,
            block: Extent { offset: 0x0102_0304_0506, len: 0x1_0000 },
            esi: 0x0a_0b0c,
            payload,
        }
    }

    fn announce() -> Announce {
        Announce {
            object: ObjectId([9; 16]),
            kind: ObjectKind::File,
            round: 3,
            description: Description {
                name: "a.bin".into(),
                symbol_size: 1280,
                block_size: 655_360,
            },
            total: Some(Total { length: 1 << 40, sha256: Sha256Digest([5; 32]) }),
        }
    }

    #[test]
    fn a_symbol_has_the_documented_octets() {
        let packet = symbol(&[0xee; 4]).emit(6);
        let mut expected = vec![0x11, 0x0a, 0x0b, 0x0c, 0, 0, 1, 2, 3, 4, 5, 6, 0, 1, 0, 0];
        expected.extend([7; 16]);
        expected.extend([0xee, 0xee, 0xee, 0xee, 0, 0]);
        let sum = checksum::checksum(&expected).to_be_bytes();
        expected[4..6].copy_from_slice(&sum);
        assert_eq!(packet.bytes(), expected);
    }

    #[test]
    fn an_announce_has_the_documented_octets() {
        let packet = announce().emit();
        let mut expected = vec![0x13, 2, 0, 3, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0, 0];
        expected.extend([9; 16]);
        expected.extend([0, 0x0a, 0, 0]);
        expected.extend([5; 32]);
        expected.extend(b"\x05a.bin");
        let sum = checksum::checksum(&expected).to_be_bytes();
        expected[4..6].copy_from_slice(&sum);
        assert_eq!(packet.bytes(), expected);
    }

    /// Changes octets of a good datagram, mends the checksum, and parses it.
    fn changed(packet: &Packet, at: usize, octets: &[u8]) -> Result<(), DecodeError> {
        let mut packet = packet.duplicate();
        packet.bytes_mut()[at..at + octets.len()].copy_from_slice(octets);
        packet.bytes_mut()[field::CHECKSUM].fill(0);
        seal(&mut packet);
        Datagram::parse(packet.bytes()).map(drop)
    }

    #[test]
    fn impossible_numbers_are_errors() {
        let symbol = symbol(&[1; 10]).emit(10);
        let range = |name| Err(DecodeError::Range(name));
        assert_eq!(changed(&symbol, 0, &[0x11]), Ok(()));
        assert_eq!(changed(&symbol, 0, &[0x21]), Err(DecodeError::Version(2)));
        assert_eq!(changed(&symbol, 0, &[0x14]), Err(DecodeError::Kind(4)));
        assert_eq!(changed(&symbol, 12, &[0; 4]), range("block length"));
        assert_eq!(changed(&symbol, 12, &[0xff; 4]), range("block length"));
        assert_eq!(changed(&symbol, 6, &[0xff; 6]), range("block offset"));

        let announce = announce().emit();
        assert_eq!(changed(&announce, 6, &[0; 2]), range("symbol size"));
        assert_eq!(changed(&announce, 32, &[0; 4]), range("block size"));
        assert_eq!(changed(&announce, 32, &[0xff; 4]), range("block size"));
        assert_eq!(changed(&announce, 32, &[0, 0, 0x0a, 1]), range("block size"));
        assert_eq!(changed(&announce, 8, &[0xff; 8]), range("object length"));
        assert_eq!(changed(&announce, 1, &[0]), range("flags"));
        assert_eq!(changed(&announce, 68, &[4]), Err(DecodeError::Length(74)));
        assert_eq!(changed(&announce, 69, &[0xff]), Err(DecodeError::Name));
    }

    #[test]
    fn one_flipped_bit_anywhere_is_noticed() {
        let packet = symbol(&[0x5a; 40]).emit(40);
        for bit in 0..packet.len() * 8 {
            let mut damaged = packet.duplicate();
            damaged.bytes_mut()[bit / 8] ^= 1 << (bit % 8);
            assert!(Datagram::parse(damaged.bytes()).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        let name = "ü".repeat(200);
        let announce =
            Announce { description: Description { name, ..announce().description }, ..announce() };
        let packet = announce.emit();
        let Ok(Datagram::Announce(parsed)) = Datagram::parse(packet.bytes()) else { panic!() };
        assert_eq!(parsed.description.name, "ü".repeat(127));
    }

    prop_compose! {
        fn any_symbol()(
            id in any::<[u8; 16]>(), stream in any::<bool>(), esi in 0..1u32 << 24,
            offset in 0..1u64 << 47, len in 1..56_403u32, payload in prop::collection::vec(any::<u8>(), 1..300),
        ) -> (ObjectId, ObjectKind, u32, Extent, Vec<u8>) {
            let kind = if stream { ObjectKind::Stream } else { ObjectKind::File };
            (ObjectId(id), kind, esi, Extent { offset, len }, payload)
        }
    }

    prop_compose! {
        fn any_announce()(
            id in any::<[u8; 16]>(), stream in any::<bool>(), round in any::<u16>(),
            symbol_size in 1u16.., symbols in 1..56_403u32,
            name in "\\PC{0,60}", known in any::<bool>(), length in 0..=1u64 << 48,
            digest in any::<[u8; 32]>(),
        ) -> Announce {
            let total = Total { length, sha256: Sha256Digest(digest) };
            Announce {
                object: ObjectId(id),
                kind: if stream { ObjectKind::Stream } else { ObjectKind::File },
                round,
                description: Description {
                    name, symbol_size, block_size: symbols * u32::from(symbol_size),
                },
                total: (known || !stream).then_some(total),
            }
        }
    }

    proptest! {
        #[test]
        fn symbols_come_back_and_truncation_is_an_error(
            (object, kind, esi, block, payload) in any_symbol()
        ) {
            let symbol = Symbol { object, kind, block, esi, payload: &payload };
            let packet = symbol.emit(payload.len() as u16);
            prop_assert_eq!(Datagram::parse(packet.bytes()), Ok(Datagram::Symbol(symbol)));
            // The checksum of a datagram cut by chance can be right only in one of 65,536 cases, and
            // never for a cut inside the header.
            for len in 0..SYMBOL_HEADER {
                prop_assert!(Datagram::parse(&packet.bytes()[..len]).is_err());
            }
        }

        #[test]
        fn announces_come_back_and_truncation_is_an_error(announce in any_announce()) {
            let packet = announce.emit();
            prop_assert_eq!(Datagram::parse(packet.bytes()), Ok(Datagram::Announce(announce)));
            for len in 0..packet.len() {
                prop_assert!(Datagram::parse(&packet.bytes()[..len]).is_err());
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Datagram::parse(&bytes);
        }

        #[test]
        fn arbitrary_bytes_behind_a_good_start_never_panic(
            mut bytes in prop::collection::vec(any::<u8>(), 6..200), kind in 1u8..4
        ) {
            bytes[0] = 0x10 | kind;
            let mut packet = Packet::from_slice(&bytes);
            packet.bytes_mut()[field::CHECKSUM].fill(0);
            seal(&mut packet);
            if let Ok(datagram) = Datagram::parse(packet.bytes()) {
                let again = match &datagram {
                    Datagram::Symbol(symbol) => symbol.emit(symbol.payload.len() as u16),
                    Datagram::Announce(announce) => announce.emit(),
                };
                prop_assert_eq!(Datagram::parse(again.bytes()), Ok(datagram));
            }
        }
    }
}
