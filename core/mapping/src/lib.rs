//! Memory that is shared with the kernel or with other processes.
//!
//! Reference: mmap(2).
//!
//! Rings between processes, frames and rings of AF_XDP, and maps of eBPF all lie in such memory, and each has rules of its
//! own for who may touch what and when. Here is only what they have in common: the pages are there until the value is
//! dropped. Whoever makes references to them says why that is sound.

#![allow(unsafe_code, reason = "the calls themselves; each block says why it is sound")]

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Pages of what a descriptor stands for, readable, writable and shared with whoever maps them, too.
#[derive(Debug)]
pub struct Mapping {
    address: NonNull<u8>,
    len: usize,
}

/// When the pages are brought in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// All at once.
    Now,
    /// Each when it is used.
    Later,
}

// SAFETY: the pages belong to the process, not to a thread, and this value only knows where they are.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes from `offset` on, a multiple of the size of a page.
    ///
    /// # Errors
    /// Those of mmap(2): it cannot be mapped, or is too short where the kernel looks at that. A file that is or becomes shorter
    /// is mapped, and an access behind its end ends the process (SIGBUS): it should be sealed.
    pub fn new(
        descriptor: BorrowedFd<'_>,
        offset: u64,
        len: usize,
        fill: Fill,
    ) -> io::Result<Self> {
        let flags = match fill {
            Fill::Now => MapFlags::SHARED | MapFlags::POPULATE,
            Fill::Later => MapFlags::SHARED,
        };
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: no address is asked for, so that nothing that is mapped can be hit.
        let address = unsafe { mmap(ptr::null_mut(), len, access, flags, descriptor, offset) }?;
        let address = NonNull::new(address.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { address, len })
    }

    /// Where it begins: at a page.
    #[must_use]
    #[inline]
    pub fn start(&self) -> NonNull<u8> {
        self.address
    }

    /// Bytes.
    #[must_use]
    #[inline]
    #[allow(clippy::len_without_is_empty, reason = "the kernel maps no empty range")]
    pub fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and whoever has references keeps this value. Unmapping a whole mapping does not
        // fail.
        let _ = unsafe { munmap(self.address.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    const PAGE: usize = 65_536;

    #[test]
    fn two_mappings_of_a_file_are_the_same_memory() {
        let file = memfd_create("weft-mapping", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, 2 * PAGE as u64).unwrap();
        let all = Mapping::new(file.as_fd(), 0, 2 * PAGE, Fill::Now).unwrap();
        let end = Mapping::new(file.as_fd(), PAGE as u64, PAGE, Fill::Later).unwrap();
        assert_eq!((all.len(), end.len()), (2 * PAGE, PAGE));
        // SAFETY: both bytes lie in mappings that are there, and nobody else knows of them.
        let found = unsafe {
            end.start().add(7).write(42);
            drop(end);
            all.start().add(PAGE + 7).read()
        };
        assert_eq!(found, 42);
    }

    #[test]
    fn what_cannot_be_mapped_is_an_error() {
        let directory = File::open("/").unwrap();
        assert!(Mapping::new(directory.as_fd(), 0, PAGE, Fill::Later).is_err());
        let file = memfd_create("weft-mapping", MemfdFlags::CLOEXEC).unwrap();
        assert!(Mapping::new(file.as_fd(), 1, PAGE, Fill::Later).is_err(), "not at a page");
        assert!(Mapping::new(file.as_fd(), 0, 0, Fill::Later).is_err(), "nothing");
    }
}
