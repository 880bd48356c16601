//! Pages that another process can write at any moment, behind functions that only copy.
//!
//! This is the one module of the crate with `unsafe` in it. No reference into the pages leaves it: words
//! are loaded and stored by atomic operations, bytes are copied in and out. Every offset is checked
//! against the size of the mapping, whose file is sealed against shrinking (`segment`), so that no access
//! can raise SIGBUS.
//!
//! Reference: mmap(2), memfd_create(2).

use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence, fence};

use weft_mapping::Mapping;

use crate::layout::{CONTROL, DATA, LINE};
use crate::ring::{Flag, Index, Memory};

/// One ring in a mapping.
pub(crate) struct Region {
    /// The beginning of the ring's control part; its four words lie inside the mapping.
    control: NonNull<u8>,
    /// The beginning of the ring's bytes; `capacity` of them lie inside the mapping.
    data: NonNull<u8>,
    capacity: usize,
    /// Keeps the pages mapped.
    _mapping: Arc<Mapping>,
}

// SAFETY: the pointers point into the mapping, which is `Send` and kept.
unsafe impl Send for Region {}

impl Region {
    /// The ring with this number, 0 or 1, whose bytes begin `offset` bytes behind the control parts.
    ///
    /// # Panics
    /// If the ring does not lie inside the mapping, or its size is no power of two.
    pub(crate) fn new(mapping: &Arc<Mapping>, number: usize, offset: usize, size: u32) -> Self {
        let capacity = size as usize;
        let (control, data) = (number * CONTROL, DATA + offset);
        assert!(capacity.is_power_of_two() && number < 2 && data.is_multiple_of(LINE));
        assert!(data.checked_add(capacity).is_some_and(|end| end <= mapping.len()));
        // SAFETY: both offsets are inside the mapping, as was checked; 2 * CONTROL is below DATA.
        let (control, data) = unsafe { (mapping.start().add(control), mapping.start().add(data)) };
        Self { control, data, capacity, _mapping: Arc::clone(mapping) }
    }

    /// All of a mapping as if it were the bytes of a ring, for tests that write where they want.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn whole(mapping: &Arc<Mapping>) -> Self {
        let (control, data, capacity) = (mapping.start(), mapping.start(), mapping.len());
        Self { control, data, capacity, _mapping: Arc::clone(mapping) }
    }

    #[inline]
    fn index(&self, index: Index) -> &AtomicU64 {
        let line = match index {
            Index::Tail => 0,
            Index::Head => 1,
        };
        // SAFETY: the word lies inside the mapping, which outlives `self`, at a multiple of 128; every
        // bit pattern is a value, and whoever changes it meanwhile does so behind an atomic.
        unsafe { self.control.add(line * LINE).cast::<AtomicU64>().as_ref() }
    }

    #[inline]
    fn flag(&self, flag: Flag) -> &AtomicU32 {
        let line = match flag {
            Flag::Reader => 2,
            Flag::Writer => 3,
        };
        // SAFETY: as in `index`.
        unsafe { self.control.add(line * LINE).cast::<AtomicU32>().as_ref() }
    }

    #[inline]
    fn length(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at < self.capacity, "a length outside of the ring");
        // SAFETY: four bytes at a multiple of 4 below the capacity, itself a multiple of 4, lie inside
        // the ring; the rest as in `index`.
        unsafe { self.data.add(at).cast::<AtomicU32>().as_ref() }
    }

    #[inline]
    fn check(&self, at: usize, len: usize) {
        assert!(at <= self.capacity && len <= self.capacity - at, "bytes outside of the ring");
    }
}

impl Memory for Region {
    #[inline]
    fn capacity(&self) -> usize {
        self.capacity
    }

    #[inline]
    fn load(&self, index: Index) -> u64 {
        self.index(index).load(Ordering::Acquire)
    }

    #[inline]
    fn store(&self, index: Index, value: u64) {
        self.index(index).store(value, Ordering::Release);
    }

    fn raise(&self, flag: Flag) -> bool {
        self.flag(flag).swap(1, Ordering::SeqCst) == 0
    }

    fn lower(&self, flag: Flag) -> bool {
        self.flag(flag).swap(0, Ordering::SeqCst) != 0
    }

    #[inline]
    fn is_up(&self, flag: Flag) -> bool {
        self.flag(flag).load(Ordering::Relaxed) != 0
    }

    #[inline]
    fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    #[inline]
    fn store_length(&self, at: usize, len: u32) {
        self.length(at).store(len, Ordering::Relaxed);
    }

    #[inline]
    fn load_length(&self, at: usize) -> u32 {
        self.length(at).load(Ordering::Relaxed)
    }

    #[inline]
    fn write(&self, at: usize, bytes: &[u8]) {
        self.check(at, bytes.len());
        // SAFETY: the bytes lie inside the mapping, as was just checked, and do not overlap `bytes`: no
        // reference into the mapping exists. That another process reads them meanwhile concerns it alone.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.data.add(at).as_ptr(), bytes.len());
        }
    }

    #[inline]
    fn read(&self, at: usize, into: &mut [u8]) {
        self.check(at, into.len());
        // SAFETY: as in `write`. Another process may change the bytes meanwhile: the copy is then some
        // mixture of values, all of which are bytes.
        unsafe {
            ptr::copy_nonoverlapping(self.data.add(at).as_ptr(), into.as_mut_ptr(), into.len());
        }
        // Nobody may look at the pages again in the place of the copy.
        compiler_fence(Ordering::SeqCst);
    }
}
