//! MRT: files with routing tables and messages, as route collectors write them.
//!
//! ```text
//!  0 time (4): seconds since 1970
//!  4 type (2), subtype (2)
//!  8 length (4) of what follows
//! ```
//!
//! [`Records`] cuts a file into records and reads those that are about BGP: the table of a moment ([`PeerTable`], [`Rib`], of types
//! TABLE_DUMP_V2) and messages as they came ([`Message`], of types BGP4MP). Others are passed over and counted. What is
//! written ([`emit_peers`], [`emit_rib`], [`emit_message`]) is read so again.
//!
//! Reference: RFC 6396 (MRT), RFC 8050 (several paths). Not read: the tables of before 2008 (TABLE_DUMP) and those that hold
//! prefixes of several families (RIB_GENERIC).

mod emit;
mod message;
mod table;
#[cfg(test)]
mod tests;

use std::io::{self, Read};

pub use emit::{emit_message, emit_peers, emit_rib};
pub use message::Message;
pub use table::{Peer, PeerTable, Rib, RibEntry};

/// Bytes in front of every record.
const HEADER_LEN: usize = 12;
/// The longest record that is read, in bytes: a prefix with thousands of paths, each as long as a message can be, does
/// not occur.
pub const MAX_RECORD: u32 = 16 << 20;

/// Types of records (RFC 6396 §4).
mod kind {
    pub(super) const TABLE_DUMP_V2: u16 = 13;
    pub(super) const BGP4MP: u16 = 16;
    /// As BGP4MP, with microseconds behind the header.
    pub(super) const BGP4MP_ET: u16 = 17;
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum MrtError {
    /// The file itself cannot be read.
    #[error("the file cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It ends within a record.
    #[error("the file ends within the record at byte {at}: it was cut off, or is no MRT file")]
    CutOff {
        /// Where the record begins.
        at: u64,
    },
    /// A record is longer than any can be.
    #[error(
        "the record at byte {at} is {length} bytes long, but {MAX_RECORD} are the most: this is no MRT file"
    )]
    TooLong {
        /// Where the record begins.
        at: u64,
        /// How long it says it is.
        length: u32,
    },
    /// A record cannot be read.
    #[error("the record at byte {at}, of type {kind} and subtype {subtype}, is malformed: {what}")]
    Malformed {
        /// Where the record begins.
        at: u64,
        /// Its type.
        kind: u16,
        /// Its subtype.
        subtype: u16,
        /// What is wrong.
        what: &'static str,
    },
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// Which peers the prefixes that follow are from.
    Peers(PeerTable),
    /// A prefix, and what peers say of it.
    Rib(Rib),
    /// A message as it came.
    Message(Message),
}

/// The records of a file, in order.
#[derive(Debug)]
pub struct Records<R> {
    file: R,
    /// Where the next record begins.
    at: u64,
    passed_over: u64,
    body: Vec<u8>,
    has_failed: bool,
}

impl<R: Read> Records<R> {
    /// Reads from here on; a buffered reader is faster.
    pub fn new(file: R) -> Self {
        Self { file, at: 0, passed_over: 0, body: Vec::new(), has_failed: false }
    }

    /// How many records were not about what is read here.
    #[must_use]
    pub fn passed_over(&self) -> u64 {
        self.passed_over
    }

    fn read(&mut self) -> Result<Option<(u32, Record)>, MrtError> {
        loop {
            let mut header = [0; HEADER_LEN];
            let at = self.at;
            match fill(&mut self.file, &mut header)? {
                0 => return Ok(None),
                HEADER_LEN => {}
                _ => return Err(MrtError::CutOff { at }),
            }
            let [seconds, kinds, length] = words(&header);
            let [kind, subtype] = [(kinds >> 16) as u16, kinds as u16];
            if length > MAX_RECORD {
                return Err(MrtError::TooLong { at, length });
            }
            self.body.resize(length as usize, 0);
            if fill(&mut self.file, &mut self.body)? < self.body.len() {
                return Err(MrtError::CutOff { at });
            }
            self.at += HEADER_LEN as u64 + u64::from(length);
            match parse(kind, subtype, &self.body) {
                Ok(Some(record)) => return Ok(Some((seconds, record))),
                Ok(None) => self.passed_over += 1,
                Err(what) => return Err(MrtError::Malformed { at, kind, subtype, what }),
            }
        }
    }
}

/// The records, each with its time in seconds since 1970. Nothing comes behind an error.
impl<R: Read> Iterator for Records<R> {
    type Item = Result<(u32, Record), MrtError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let read = self.read();
        self.has_failed = read.is_err();
        read.transpose()
    }
}

/// What a record says; none if it is about something else.
fn parse(kind: u16, subtype: u16, body: &[u8]) -> Result<Option<Record>, &'static str> {
    match kind {
        kind::TABLE_DUMP_V2 => table::parse(subtype, body),
        kind::BGP4MP => Ok(message::parse(subtype, body)?.map(Record::Message)),
        kind::BGP4MP_ET => {
            let (_, rest) = body.split_first_chunk::<4>().ok_or("it has no microseconds")?;
            Ok(message::parse(subtype, rest)?.map(Record::Message))
        }
        _ => Ok(None),
    }
}

/// Reads until the buffer is full or the file ends; returns how many bytes there are.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn words<const N: usize>(bytes: &[u8]) -> [u32; N] {
    let (chunks, _) = bytes.as_chunks::<4>();
    std::array::from_fn(|at| chunks.get(at).map_or(0, |chunk| u32::from_be_bytes(*chunk)))
}

/// Takes bytes off the front of a record.
struct Taker<'a>(&'a [u8]);

impl<'a> Taker<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or("it ends too early")?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        let (taken, rest) = self.0.split_first_chunk().ok_or("it ends too early")?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u8(&mut self) -> Result<u8, &'static str> {
        self.array().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Result<u16, &'static str> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, &'static str> {
        self.array().map(u32::from_be_bytes)
    }

    /// An address, of IPv6 or of IPv4.
    fn address(&mut self, is_ipv6: bool) -> Result<std::net::IpAddr, &'static str> {
        Ok(if is_ipv6 { self.array::<16>()?.into() } else { self.array::<4>()?.into() })
    }
}
