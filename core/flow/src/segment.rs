//! The shared memory of one flow: a sealed file in memory, and the two rings in it.
//!
//! The stack makes the file, gives it its size and seals that: neither side can shrink it under the other,
//! whose next access would raise SIGBUS. The application checks the seals, as it need not trust the
//! stack either.
//!
//! Reference: memfd_create(2), fcntl(2) "File sealing".

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::io::Errno;

use crate::layout::Sizes;
use crate::ring::{Reader, Writer};
use crate::shared::{Mapping, Region};

/// Which end of a flow this process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Application,
    Stack,
}

/// Makes the file of a flow with rings of these sizes: all zero, sealed.
pub(crate) fn create(sizes: Sizes) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = match memfd_create("weft-flow", flags | MemfdFlags::NOEXEC_SEAL) {
        // Linux before 6.3 does not know that files can be sealed against execution.
        Err(Errno::INVAL) => memfd_create("weft-flow", flags)?,
        other => other?,
    };
    ftruncate(&file, sizes.total() as u64)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

/// Whether a file that the other side made has the size of these rings for good.
pub(crate) fn is_sound(file: BorrowedFd<'_>, sizes: Sizes) -> bool {
    // Only a file in memory has seals at all.
    let sealed = fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK));
    sealed && fstat(file).is_ok_and(|found| found.st_size == sizes.total() as i64)
}

/// Maps a sealed file and returns the ends of its rings that belong to one side. The stack's side is the
/// first, and leaves the rings in the state that they begin in: both readers sleep.
pub(crate) fn rings(
    file: &OwnedFd,
    sizes: Sizes,
    side: Side,
) -> io::Result<(Writer<Region>, Reader<Region>)> {
    let mapping = Arc::new(Mapping::new(file.as_fd(), sizes.total())?);
    let up = Region::new(&mapping, 0, 0, sizes.up);
    let down = Region::new(&mapping, 1, sizes.up as usize, sizes.down);
    Ok(match side {
        Side::Application => (Writer::new(up), Reader::new(down)),
        Side::Stack => {
            let (writer, reader) = (Writer::new(down), Reader::new(up));
            writer.prepare();
            reader.prepare();
            (writer, reader)
        }
    })
}

#[cfg(test)]
mod tests {
    use rustix::fs::MemfdFlags;

    use super::*;
    use crate::Kind;
    use crate::layout::Limits;

    #[test]
    fn nobody_can_change_the_size_or_take_the_seals_away() {
        let sizes = Limits::default().grant(Kind::Stream, Sizes { up: 0, down: 0 });
        let file = create(sizes).unwrap();
        assert!(is_sound(file.as_fd(), sizes));
        for size in [0, 4096, sizes.total() as u64 + 4096] {
            assert_eq!(ftruncate(&file, size), Err(Errno::PERM));
        }
        assert_eq!(fcntl_add_seals(&file, SealFlags::WRITE), Err(Errno::PERM));
    }

    #[test]
    fn a_file_that_could_shrink_or_is_short_is_refused() {
        let sizes = Sizes { up: 4096, down: 4096 };
        let file = memfd_create("unsealed", MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&file, sizes.total() as u64).unwrap();
        assert!(!is_sound(file.as_fd(), sizes));
        fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
        assert!(is_sound(file.as_fd(), sizes));
        assert!(!is_sound(file.as_fd(), Sizes { up: 8192, down: 4096 }));
        let other = tempfile::tempfile().unwrap();
        ftruncate(&other, sizes.total() as u64).unwrap();
        assert!(!is_sound(other.as_fd(), sizes));
    }
}
