//! Maps as tables that somebody fills by what he is told to write: for processes that have descriptors of maps
//! and make no system calls of their own.
//!
//! Reference: bpf(2); Linux kernel, Documentation/bpf/maps.rst.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Map, MapKind, Memory};

/// What is to be written into a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapWrite {
    /// The values of keys, both one behind the other. Where the map is full, the rest is left out.
    Set {
        /// The keys.
        keys: Vec<u8>,
        /// As many values.
        values: Vec<u8>,
    },
    /// No value for these keys, one behind the other; those that have none are no error.
    Remove {
        /// The keys.
        keys: Vec<u8>,
    },
    /// A word of an array's memory.
    Store {
        /// Which, over all its values.
        index: u32,
        /// What.
        word: u64,
    },
    /// No values at all; zeros in an array.
    Clear,
}

/// A map, and its memory if it is an array.
#[derive(Debug)]
pub struct MapTable {
    map: Map,
    memory: Option<Memory>,
}

impl MapTable {
    /// Makes a table of a map.
    ///
    /// # Errors
    /// What the kernel says when it is asked for an array's memory.
    pub fn new(map: Map) -> io::Result<Self> {
        let memory = match map.shape().kind {
            MapKind::Array => Some(map.memory()?),
            _ => None,
        };
        Ok(Self { map, memory })
    }

    /// The map.
    #[must_use]
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// The words of an array; none of another map.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        self.memory.as_ref().map(Memory::words).unwrap_or_default()
    }

    /// Writes; what is written holds when this returns. Returns how many values did not fit.
    ///
    /// # Errors
    /// What the kernel says; `InvalidInput` for sizes or words that are not the map's.
    pub fn write(&self, write: &MapWrite) -> io::Result<usize> {
        match write {
            MapWrite::Set { keys, values } => {
                let written = self.map.set_many(keys, values)?;
                return Ok(keys.len() / self.map.shape().key as usize - written);
            }
            MapWrite::Remove { keys } => drop(self.map.remove_many(keys)?),
            MapWrite::Store { index, word } => match self.words().get(*index as usize) {
                Some(place) => place.store(*word, Ordering::Release),
                None => {
                    let text = format!("the map has no word {index}");
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
                }
            },
            MapWrite::Clear if self.memory.is_some() => {
                self.words().iter().for_each(|word| word.store(0, Ordering::Release));
            }
            MapWrite::Clear => drop(self.map.remove_many(&self.map.keys()?)?),
        }
        Ok(0)
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
