//! Frames that are shared with the kernel, which the rings pass to and fro.
//!
//! Reference: linux/if_xdp.h; Documentation/networking/af_xdp.rst.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fstat, ftruncate, memfd_create};
use weft_mapping::{Fill, Mapping};

/// Frames of one length that the kernel copies packets to and from (the kernel's word is UMEM). Each belongs
/// to the kernel or to us; the rings say when that changes.
#[derive(Debug)]
pub(crate) struct Frames {
    memory: Mapping,
    frame_len: usize,
}

impl Frames {
    /// Memory for `count` frames; their length is a power of two, at least 2,048 and at most a page. It cannot
    /// become shorter, so that no access fails.
    pub(crate) fn create(count: usize, frame_len: usize) -> io::Result<OwnedFd> {
        let memory = memfd_create("weft-frames", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&memory, (count * frame_len) as u64)?;
        fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok(memory)
    }

    /// Maps what was made by [`Frames::create`] with this count.
    ///
    /// # Errors
    /// `InvalidInput` if it is something else.
    pub(crate) fn map(memory: BorrowedFd<'_>, count: usize) -> io::Result<Self> {
        let len =
            usize::try_from(fstat(memory)?.st_size).map_err(|_| io::ErrorKind::InvalidInput)?;
        let frame_len = len / count;
        if frame_len * count != len || !frame_len.is_power_of_two() || frame_len < 2048 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Self { memory: Mapping::new(memory, 0, len, Fill::Now)?, frame_len })
    }

    pub(super) fn memory(&self) -> &Mapping {
        &self.memory
    }

    /// Bytes of a frame.
    pub(crate) fn frame_len(&self) -> usize {
        self.frame_len
    }

    /// Where the frame begins that `address` is in.
    pub(crate) fn frame_of(&self, address: u64) -> u64 {
        address & !(self.frame_len as u64 - 1)
    }

    /// What is at an address, if that is within one frame; the frame must be ours.
    pub(crate) fn bytes(&self, address: u64, len: usize) -> Option<&[u8]> {
        let start = self.offset(address, len)?;
        // SAFETY: within the memory; the kernel leaves frames alone that are ours, and the memory stays mapped as
        // long as `self` is borrowed.
        Some(unsafe { std::slice::from_raw_parts(self.memory.start().as_ptr().add(start), len) })
    }

    /// Copies bytes to an address; false if they are not within one frame, which must be ours.
    pub(crate) fn write(&mut self, address: u64, bytes: &[u8]) -> bool {
        let Some(start) = self.offset(address, bytes.len()) else { return false };
        // SAFETY: as above, and nobody else has a reference while `self` is borrowed exclusively.
        let place = unsafe {
            std::slice::from_raw_parts_mut(self.memory.start().as_ptr().add(start), bytes.len())
        };
        place.copy_from_slice(bytes);
        true
    }

    fn offset(&self, address: u64, len: usize) -> Option<usize> {
        let start = usize::try_from(address).ok()?;
        let end = start.checked_add(len)?;
        let next_frame = self.frame_of(address) as usize + self.frame_len;
        (end <= next_frame && end <= self.memory.len()).then_some(start)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn what_is_not_within_one_frame_is_refused() {
        let memory = Frames::create(2, 2048).unwrap();
        assert!(Frames::map(memory.as_fd(), 3).is_err(), "another count");
        let mut frames = Frames::map(memory.as_fd(), 2).unwrap();
        assert!(frames.write(2048 + 48, &[7; 2000]));
        assert_eq!(frames.bytes(2048 + 2047, 1), Some(&[7][..]));
        assert!(!frames.write(2048 + 49, &[7; 2000]));
        for (address, len) in [(2047, 2), (4096, 1), (u64::MAX, 1), (4095, usize::MAX)] {
            assert_eq!(frames.bytes(address, len), None, "{len} bytes at {address}");
        }
        assert_eq!((frames.frame_of(2047), frames.frame_of(2304)), (0, 2048));
    }
}
