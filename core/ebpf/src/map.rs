//! Maps: memory that programs in the kernel and their users share.
//!
//! To make one takes `CAP_BPF`; whoever has its descriptor reads and changes it without any capability,
//! but for the devices of a [`MapKind::Devices`], which are those of the network namespace of the caller.
//!
//! Reference: bpf(2); Linux kernel, Documentation/bpf/maps.rst.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;

use crate::sys::map as sys;

/// The forms of maps that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapKind {
    /// Keys of any size (`BPF_MAP_TYPE_HASH`). The memory of all elements is taken at once.
    Hash,
    /// Numbered elements (`BPF_MAP_TYPE_ARRAY`), whose memory can be had: see [`Map::memory`].
    Array,
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
    /// Bytes of a key; 4 but for [`MapKind::Hash`].
    pub key: u32,
    /// Bytes of a value; a multiple of 8 for [`MapKind::PerProcessor`].
    pub value: u32,
    /// The most elements.
    pub elements: u32,
}

impl MapShape {
    /// A hash map.
    #[must_use]
    pub const fn hash(key: u32, value: u32, elements: u32) -> Self {
        Self { kind: MapKind::Hash, key, value, elements }
    }

    /// A map of another kind, whose keys are numbers.
    #[must_use]
    pub const fn numbered(kind: MapKind, value: u32, elements: u32) -> Self {
        Self { kind, key: 4, value, elements }
    }

    fn form(&self) -> sys::Form {
        const BPF_F_MMAPABLE: u32 = 1 << 10;
        let (number, flags) = match self.kind {
            MapKind::Hash => (1, 0),
            MapKind::Array => (2, BPF_F_MMAPABLE),
            MapKind::PerProcessor => (6, 0),
            MapKind::Devices => (14, 0),
            MapKind::Sockets => (17, 0),
        };
        [number, self.key, self.value, self.elements, flags]
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
        self.check(key, 1, Some(value.len()))?;
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
        self.check(&key, 1, None)?;
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
        self.check(key, 1, Some(value.len()))?;
        // SAFETY: the sizes were compared.
        unsafe { sys::set(self.fd(), key, value) }
    }

    /// Removes a key; false if it was not there.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn remove(&self, key: &[u8]) -> io::Result<bool> {
        self.check(key, 1, None)?;
        // SAFETY: the size was compared.
        unsafe { sys::remove(self.fd(), key) }
    }

    /// Writes the values of many keys, one behind the other. Returns how many were written; fewer than
    /// given if the map is full.
    ///
    /// # Errors
    /// What the kernel says but for that.
    pub fn set_many(&self, keys: &[u8], values: &[u8]) -> io::Result<usize> {
        let count = self.count(keys)?;
        self.check(keys, count, Some(values.len()))?;
        if count == 0 {
            return Ok(0);
        }
        // SAFETY: the sizes were compared.
        let (done, result) = unsafe { sys::set_batch(self.fd(), keys, values, count as u32) };
        match result {
            Err(error) if error.raw_os_error() != Some(libc::E2BIG) => Err(error),
            _ => Ok(done as usize),
        }
    }

    /// Removes many keys, one behind the other. Returns how many of them were there.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn remove_many(&self, mut keys: &[u8]) -> io::Result<usize> {
        let mut removed = 0;
        let size = self.shape.key as usize;
        while !keys.is_empty() {
            let count = self.count(keys)?;
            // SAFETY: the size was compared.
            let (done, result) = unsafe { sys::remove_batch(self.fd(), keys, count as u32) };
            removed += done as usize;
            match result {
                Ok(()) => break,
                // The kernel ends at a key that is not there.
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
                    keys = keys.get((done as usize + 1) * size..).unwrap_or_default();
                }
                Err(error) => return Err(error),
            }
        }
        Ok(removed)
    }

    /// All keys, one behind the other, in no order; what changes meanwhile may be missing.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn keys(&self) -> io::Result<Vec<u8>> {
        let size = self.shape.key as usize;
        let (mut keys, mut next) = (Vec::new(), vec![0; size]);
        loop {
            let last = keys.len().checked_sub(size).map(|at| &keys[at..]);
            // SAFETY: both have the size of the map's keys.
            if !unsafe { sys::next_key(self.fd(), last, &mut next) }? {
                return Ok(keys);
            }
            // Where a key that vanishes makes the kernel begin again, the list shall end nevertheless.
            if keys.len() / size >= self.shape.elements as usize {
                return Ok(keys);
            }
            keys.extend_from_slice(&next);
        }
    }

    /// The memory of an array's values, as words. What is written is seen by programs at once, a word as a
    /// whole.
    ///
    /// # Errors
    /// `InvalidInput` if it is no [`MapKind::Array`] or its values are no words; what the kernel says.
    pub fn memory(&self) -> io::Result<Memory> {
        if self.shape.kind != MapKind::Array || !self.shape.value.is_multiple_of(8) {
            return Err(invalid("only arrays of words have memory that can be shared"));
        }
        let words = self.shape.value as usize / 8 * self.shape.elements as usize;
        sys::Memory::map(self.fd(), words).map(Memory)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    fn count(&self, keys: &[u8]) -> io::Result<usize> {
        let count = keys.len() / self.shape.key as usize;
        self.check(keys, count, None)?;
        Ok(count)
    }

    /// Checks the sizes of keys and values.
    fn check(&self, keys: &[u8], count: usize, values: Option<usize>) -> io::Result<()> {
        let fits = |len: usize, size: u32| len == count * size as usize;
        if !fits(keys.len(), self.shape.key)
            || values.is_some_and(|len| !fits(len, self.shape.value))
        {
            return Err(invalid("keys or values have another size than those of the map"));
        }
        Ok(())
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
