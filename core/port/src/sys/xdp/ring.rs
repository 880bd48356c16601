//! The rings of an AF_XDP socket: one side puts items in, the other takes them out, each with a running number
//! that the other reads.

use std::io;
use std::marker::PhantomData;
use std::mem::size_of;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use weft_mapping::{Fill, Mapping};

/// A packet in a frame, as the rings for receiving and sending know it (`struct xdp_desc`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Descriptor {
    pub(crate) address: u64,
    pub(crate) len: u32,
    pub(crate) options: u32,
}

/// Where a ring's parts are: which ring, and what the kernel says about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Offset for mmap(2).
    pub(super) offset: u64,
    pub(super) producer: u64,
    pub(super) consumer: u64,
    pub(super) items: u64,
    /// A power of two.
    pub(super) size: u32,
}

/// What both sides are made of.
#[derive(Debug)]
struct Ring<T> {
    memory: Mapping,
    layout: Layout,
    /// The next number of ours.
    ours: u32,
    /// The other side's number, as it was last seen.
    theirs: u32,
    items: PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    fn map(socket: BorrowedFd<'_>, layout: Layout) -> io::Result<Self> {
        let end = layout.items + u64::from(layout.size) * size_of::<T>() as u64;
        let len = usize::try_from(end).map_err(|_| io::ErrorKind::InvalidData)?;
        let number = |at: u64| at.is_multiple_of(4) && at + 4 <= layout.items;
        if !number(layout.producer) || !number(layout.consumer) || !layout.items.is_multiple_of(8) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let memory = Mapping::new(socket, layout.offset, len, Fill::Now)?;
        Ok(Self { memory, layout, ours: 0, theirs: 0, items: PhantomData })
    }

    fn number(&self, at: u64) -> &AtomicU32 {
        // SAFETY: `map` has checked that it is aligned and inside; the kernel changes it atomically.
        unsafe { AtomicU32::from_ptr(self.memory.start().as_ptr().add(at as usize).cast()) }
    }

    fn item(&self, number: u32) -> *mut T {
        let index = (number & (self.layout.size - 1)) as usize;
        let items = self.memory.start().as_ptr().wrapping_add(self.layout.items as usize);
        items.cast::<T>().wrapping_add(index)
    }
}

/// The side that puts items in.
#[derive(Debug)]
pub(crate) struct Producer<T>(Ring<T>);

impl<T: Copy> Producer<T> {
    pub(super) fn map(socket: BorrowedFd<'_>, layout: Layout) -> io::Result<Self> {
        let mut ring = Ring::map(socket, layout)?;
        ring.ours = ring.number(layout.producer).load(Ordering::Relaxed);
        ring.theirs = ring.number(layout.consumer).load(Ordering::Acquire);
        Ok(Self(ring))
    }

    /// Puts an item in; false if there is no room. The kernel sees it after [`Producer::publish`].
    pub(crate) fn push(&mut self, item: T) -> bool {
        let ring = &mut self.0;
        if ring.ours.wrapping_sub(ring.theirs) >= ring.layout.size {
            ring.theirs = ring.number(ring.layout.consumer).load(Ordering::Acquire);
            if ring.ours.wrapping_sub(ring.theirs) >= ring.layout.size {
                return false;
            }
        }
        // SAFETY: inside the ring and aligned; the kernel does not read it before it is published.
        unsafe { ptr::write(ring.item(ring.ours), item) };
        ring.ours = ring.ours.wrapping_add(1);
        true
    }

    /// Lets the kernel see what was put in.
    pub(crate) fn publish(&mut self) {
        let ring = &self.0;
        ring.number(ring.layout.producer).store(ring.ours, Ordering::Release);
    }

    /// How many items the kernel has not taken.
    pub(crate) fn waiting(&mut self) -> usize {
        let ring = &mut self.0;
        ring.theirs = ring.number(ring.layout.consumer).load(Ordering::Acquire);
        ring.ours.wrapping_sub(ring.theirs) as usize
    }
}

/// The side that takes items out.
#[derive(Debug)]
pub(crate) struct Consumer<T>(Ring<T>);

impl<T: Copy> Consumer<T> {
    pub(super) fn map(socket: BorrowedFd<'_>, layout: Layout) -> io::Result<Self> {
        let mut ring = Ring::map(socket, layout)?;
        ring.ours = ring.number(layout.consumer).load(Ordering::Relaxed);
        ring.theirs = ring.number(layout.producer).load(Ordering::Acquire);
        Ok(Self(ring))
    }

    /// Takes an item out. The kernel may use its place again after [`Consumer::release`].
    pub(crate) fn pop(&mut self) -> Option<T> {
        let ring = &mut self.0;
        if ring.ours == ring.theirs {
            ring.theirs = ring.number(ring.layout.producer).load(Ordering::Acquire);
            if ring.ours == ring.theirs {
                return None;
            }
        }
        // SAFETY: inside the ring and aligned; all bits are a value of the types that rings have, and the kernel
        // does not write it before it is released.
        let item = unsafe { ptr::read(ring.item(ring.ours)) };
        ring.ours = ring.ours.wrapping_add(1);
        Some(item)
    }

    /// Lets the kernel use the places again of what was taken out.
    pub(crate) fn release(&mut self) {
        let ring = &self.0;
        ring.number(ring.layout.consumer).store(ring.ours, Ordering::Release);
    }
}
