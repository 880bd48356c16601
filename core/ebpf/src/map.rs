//! Maps: memory that programs in the kernel and their users share.
//!
//! To make one takes `CAP_BPF`; whoever has its descriptor reads and changes it without any capability,
//! but for the devices of a [`MapKind::Devices`], which are those of the network namespace of the caller.
//!
//! Reference: bpf(2); Linux kernel, Documentation/bpf/maps.rst.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;

use crate::{open_table, sys::map as sys};

/// The forms of maps that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapKind {
    /// Numbered elements (`BPF_MAP_TYPE_ARRAY`), whose memory can be had: see [`Map::memory`].
    Array,
    /// Keys of one size, which one process writes, in the memory of an array: `OPEN_TABLE` in
    /// `bpf/open_table.h`. Written as a [`MapTable`](crate::MapTable).
    OpenTable,
    /// Numbered elements, of which each processor has its own (`BPF_MAP_TYPE_PERCPU_ARRAY`).
    PerProcessor,
    /// Numbered network devices, to which packets can be redirected (`BPF_MAP_TYPE_DEVMAP`).
    Devices,
    /// Numbered AF_XDP sockets, to which packets can be redirected (`BPF_MAP_TYPE_XSKMAP`).
    Sockets,
}

/// The sizes of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapShape {
    /// Its form.
    pub kind: MapKind,
    /// Bytes of a key; a multiple of 8 for [`MapKind::OpenTable`], else 4.
    pub key: u32,
    /// Bytes of a value; a multiple of 8 for [`MapKind::PerProcessor`], 4 for [`MapKind::OpenTable`].
    pub value: u32,
    /// The most elements.
    pub elements: u32,
}

impl MapShape {
    /// An open table, for keys of a multiple of 8 bytes, and values of 4 that are not 0.
    #[must_use]
    pub const fn open_table(key: u32, elements: u32) -> Self {
        Self { kind: MapKind::OpenTable, key, value: 4, elements }
    }

    /// A map of another kind, whose keys are numbers.
    #[must_use]
    pub const fn numbered(kind: MapKind, value: u32, elements: u32) -> Self {
        Self { kind, key: 4, value, elements }
    }

    /// The shape of the map that a descriptor stands for, which is like this one but for the number of elements.
    ///
    /// # Errors
    /// It is no map.
    pub(crate) fn sized_as(self, map: BorrowedFd<'_>) -> io::Result<Self> {
        let elements = sys::form(map)?[3];
        Ok(match self.kind {
            MapKind::OpenTable => {
                let most = open_table::most(self.key_words(), elements as usize);
                Self { elements: most as u32, ..self }
            }
            _ => Self { elements, ..self },
        })
    }

    /// The memory that it takes, without what the kernel needs besides.
    pub(crate) fn bytes(&self) -> usize {
        let (bytes, count) = self.array();
        bytes.saturating_mul(count)
    }

    fn form(&self) -> sys::Form {
        const BPF_F_MMAPABLE: u32 = 1 << 10;
        let (number, flags) = match self.kind {
            MapKind::OpenTable => {
                let (bytes, slots) = self.array();
                return [2, 4, bytes as u32, slots as u32, BPF_F_MMAPABLE];
            }
            MapKind::Array => (2, BPF_F_MMAPABLE),
            MapKind::PerProcessor => (6, 0),
            MapKind::Devices => (14, 0),
            MapKind::Sockets => (17, 0),
        };
        [number, self.key, self.value, self.elements, flags]
    }

    /// Bytes of an element of an array, and how many there are.
    fn array(&self) -> (usize, usize) {
        match self.kind {
            MapKind::OpenTable => {
                let (words, slots) = open_table::size(self.key_words(), self.elements as usize);
                (words * size_of::<u64>(), slots)
            }
            _ => (self.value as usize, self.elements as usize),
        }
    }

    pub(crate) fn key_words(&self) -> usize {
        self.key as usize / size_of::<u64>()
    }
}

/// A map, by a descriptor of it.
#[derive(Debug)]
pub struct Map {
    descriptor: OwnedFd,
    shape: MapShape,
}

/// As many processors as a kernel can be built for (`NR_CPUS`). How many this machine can have stands in files
/// that a confined process does not see.
const MOST_PROCESSORS: usize = 8192;

impl Map {
    /// Makes a map. Of the name up to 15 bytes are kept.
    ///
    /// # Errors
    /// `EPERM` without `CAP_BPF`, `ENOMEM`, `E2BIG` for sizes that the kernel does not take.
    pub fn create(name: &str, shape: MapShape) -> io::Result<Self> {
        let descriptor = sys::create(shape.form(), name)?;
        Ok(Self { descriptor, shape })
    }

    /// The map that a descriptor, which may come from elsewhere, stands for.
    ///
    /// # Errors
    /// `InvalidInput` if it is something else, or has another shape.
    pub fn of_descriptor(descriptor: OwnedFd, shape: MapShape) -> io::Result<Self> {
        let found = sys::form(descriptor.as_fd())?;
        // A map of devices may be read by programs only; the kernel says so in its flags.
        if found[..4] != shape.form()[..4] {
            return Err(invalid("the map has another shape"));
        }
        Ok(Self { descriptor, shape })
    }

    /// Its sizes.
    #[must_use]
    pub fn shape(&self) -> MapShape {
        self.shape
    }

    /// Its descriptor, for whoever shall use it, too.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Reads the value of a key into `value`; false if there is none.
    ///
    /// # Errors
    /// What the kernel says; `InvalidInput` for sizes that are not the map's.
    pub fn get(&self, key: &[u8], value: &mut [u8]) -> io::Result<bool> {
        self.check(key, Some(value.len()))?;
        if self.shape.kind == MapKind::PerProcessor {
            return Err(invalid("each processor has its own value: ask for their sum"));
        }
        // SAFETY: the sizes were compared.
        unsafe { sys::get(self.fd(), key, value) }
    }

    /// The sum of the first words of an element over all processors.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn sum(&self, index: u32) -> io::Result<u64> {
        let size = self.shape.value as usize;
        let mut values = vec![0; size.next_multiple_of(8) * MOST_PROCESSORS];
        let key = index.to_ne_bytes();
        self.check(&key, None)?;
        // What the kernel writes no value into stays zero.
        // SAFETY: the sizes are the map's, with room for as many processors as there can be.
        if !unsafe { sys::get(self.fd(), &key, &mut values) }? {
            return Ok(0);
        }
        let words = values.chunks_exact(size.next_multiple_of(8)).filter_map(<[u8]>::first_chunk);
        Ok(words.map(|word| u64::from_ne_bytes(*word)).fold(0, u64::wrapping_add))
    }

    /// Writes the value of a key.
    ///
    /// # Errors
    /// `E2BIG` if the map is full; what else the kernel says.
    pub fn set(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.check(key, Some(value.len()))?;
        // SAFETY: the sizes were compared.
        unsafe { sys::set(self.fd(), key, value) }
    }

    /// Removes a key; false if it was not there.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn remove(&self, key: &[u8]) -> io::Result<bool> {
        self.check(key, None)?;
        // SAFETY: the size was compared.
        unsafe { sys::remove(self.fd(), key) }
    }

    /// The memory of an array's values, as words. What is written is seen by programs at once, a word as a
    /// whole.
    ///
    /// # Errors
    /// `InvalidInput` if it is no [`MapKind::Array`] or its values are no words; what the kernel says.
    pub fn memory(&self) -> io::Result<Memory> {
        let (bytes, elements) = self.shape.array();
        let is_array = matches!(self.shape.kind, MapKind::Array | MapKind::OpenTable);
        if !is_array || !bytes.is_multiple_of(size_of::<u64>()) {
            return Err(invalid("only arrays of words have memory that can be shared"));
        }
        sys::Memory::map(self.fd(), bytes / size_of::<u64>() * elements).map(Memory)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Checks the sizes of a key and a value.
    fn check(&self, key: &[u8], value: Option<usize>) -> io::Result<()> {
        if self.shape.kind == MapKind::OpenTable {
            return Err(invalid("an open table is read and written in its memory"));
        }
        let fits = |len: usize, size: u32| len == size as usize;
        if !fits(key.len(), self.shape.key) || value.is_some_and(|len| !fits(len, self.shape.value))
        {
            return Err(invalid("the key or the value has another size than those of the map"));
        }
        Ok(())
    }
}

impl AsRef<[AtomicU64]> for Memory {
    fn as_ref(&self) -> &[AtomicU64] {
        self.words()
    }
}

/// The values of an array, as words.
#[derive(Debug)]
pub struct Memory(sys::Memory);

impl Memory {
    /// The words of all values, one value behind the other.
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        self.0.words()
    }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}
