//! Maps as tables that somebody fills by what he is told to write: for processes that have descriptors of maps
//! and make no system calls of their own.
//!
//! Reference: bpf(2); Linux kernel, Documentation/bpf/maps.rst; `crate::open_table`.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::open_table::OpenTable;
use crate::{Map, MapKind, Memory};

/// What is to be written into a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapWrite {
    /// The value of a key of a [`MapKind::OpenTable`]. Where there is no room, it is left out.
    Set {
        /// The key.
        key: Vec<u64>,
        /// Its value, which is not 0.
        value: u32,
    },
    /// No value for a key of a [`MapKind::OpenTable`]; one that has none is no error.
    Remove {
        /// The key.
        key: Vec<u64>,
    },
    /// A word of a [`MapKind::Array`].
    Store {
        /// Which, over all its values.
        index: u32,
        /// What.
        word: u64,
    },
    /// No values at all; zeros in an array.
    Clear,
}

/// A map, and what is needed to write it.
#[derive(Debug)]
pub struct MapTable {
    map: Map,
    contents: Contents,
}

#[derive(Debug)]
enum Contents {
    Open(OpenTable<Memory>),
    Words(Memory),
    /// Only read, or written by system calls.
    Other,
}

impl MapTable {
    /// Makes a table of a map.
    ///
    /// # Errors
    /// What the kernel says when it is asked for an array's memory, or for random numbers.
    pub fn new(map: Map) -> io::Result<Self> {
        let contents = match map.shape().kind {
            MapKind::OpenTable => {
                let (memory, words) = (map.memory()?, map.shape().key_words());
                let random = || getrandom::u64().map_err(io::Error::other);
                Contents::Open(OpenTable::new(memory, words, random)?)
            }
            MapKind::Array => Contents::Words(map.memory()?),
            _ => Contents::Other,
        };
        Ok(Self { map, contents })
    }

    /// The map.
    #[must_use]
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// The words of an array; none of another map.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        match &self.contents {
            Contents::Words(memory) => memory.words(),
            _ => &[],
        }
    }

    /// Writes; what is written holds when this returns. Only one process writes a [`MapKind::OpenTable`]. False if a
    /// value did not fit.
    ///
    /// # Errors
    /// `InvalidInput` for what this map cannot hold.
    pub fn write(&self, write: &MapWrite) -> io::Result<bool> {
        match (&self.contents, write) {
            (Contents::Open(table), MapWrite::Set { key, value })
                if key.len() == table.key_words() && *value != 0 =>
            {
                return Ok(table.set(key, *value));
            }
            (Contents::Open(table), MapWrite::Remove { key }) if key.len() == table.key_words() => {
                table.remove(key);
            }
            (Contents::Open(table), MapWrite::Clear) => table.clear(),
            (Contents::Words(memory), MapWrite::Store { index, word }) => {
                let place = memory.words().get(*index as usize);
                let place = place.ok_or_else(|| cannot_hold(self, write))?;
                place.store(*word, Ordering::Release);
            }
            (Contents::Words(memory), MapWrite::Clear) => {
                memory.words().iter().for_each(|word| word.store(0, Ordering::Release));
            }
            _ => return Err(cannot_hold(self, write)),
        }
        Ok(true)
    }

    /// What programs have counted in a [`MapKind::PerProcessor`] map: the sum of the first word of each value over
    /// all processors. Empty of another map.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn sums(&self) -> io::Result<Vec<u64>> {
        match self.map.shape().kind {
            MapKind::PerProcessor => {
                (0..self.map.shape().elements).map(|index| self.map.sum(index)).collect()
            }
            _ => Ok(Vec::new()),
        }
    }
}

fn cannot_hold(table: &MapTable, write: &MapWrite) -> io::Error {
    let text = format!("a map of shape {:?} cannot hold {write:?}", table.map.shape());
    io::Error::new(io::ErrorKind::InvalidInput, text)
}
