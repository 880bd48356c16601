//! The shared memory of one flow: a sealed file in memory, and the two rings in it.
//!
//! The application makes the file, so that its memory is the application's own, gives it its size and
//! seals that. The stack maps it only if no access can ever fail or take memory of the stack's:
//!
//! * It is a file of tmpfs: not of a file system whose pages may fail to come (a disk, FUSE), nor of huge
//!   pages, which can run out.
//! * It is sealed against shrinking and growing and has the right size, so that no access lies beyond its
//!   end (SIGBUS).
//! * The stack seals it against new ways of writing once both sides have mapped it. From then on nobody
//!   can punch holes into it, either.
//! * After that, all of its pages are there. A page that is not would be made when the stack touches it:
//!   counted as the stack's, or, where there is no memory for it, SIGBUS.
//!
//! Reference: memfd_create(2); fcntl(2) "File sealing"; fallocate(2); statfs(2); fstat(2), `st_blocks`.

use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat,
    fstatfs, ftruncate, memfd_create,
};
use rustix::io::Errno;
use weft_mapping::{Fill, Mapping};

use crate::layout::Sizes;
use crate::ring::{Reader, Writer};
use crate::shared::Region;

/// The seals of an application: the size is for good.
const SIZE_SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);
/// `TMPFS_MAGIC` of linux/magic.h.
const TMPFS: u64 = 0x0102_1994;
/// The unit of `st_blocks`, in bytes.
const BLOCK: u64 = 512;

/// Which end of a flow this process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Application,
    Stack,
}

/// The ends of both rings that belong to one side.
pub(crate) type Ends = (Writer<Region>, Reader<Region>);

/// Why a file is not taken as the memory of a flow: a sentence without an end.
#[derive(Debug)]
pub(crate) struct Unfit(String);

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the shared memory {}", self.0)
    }
}

fn unfit<T>(why: &str) -> Result<T, Unfit> {
    Err(Unfit(why.to_owned()))
}

/// Makes the file of a flow with rings of these sizes: all zero, all there, its size sealed.
pub(crate) fn create(sizes: Sizes) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = match memfd_create("weft-flow", flags | MemfdFlags::NOEXEC_SEAL) {
        // Linux before 6.3 does not know that files can be sealed against execution.
        Err(Errno::INVAL) => memfd_create("weft-flow", flags)?,
        other => other?,
    };
    ftruncate(&file, sizes.total() as u64)?;
    fallocate(&file, FallocateFlags::empty(), 0, sizes.total() as u64)?;
    fcntl_add_seals(&file, SIZE_SEALS)?;
    Ok(file)
}

/// Maps a file that the other side made, and seals it against everything that could make an access fail.
pub(crate) fn take_over(file: BorrowedFd<'_>, sizes: Sizes) -> Result<Ends, Unfit> {
    // First what the kernel answers of itself: other calls on a file of FUSE wait for whoever serves it.
    let Ok(seals) = fcntl_get_seals(file) else { return unfit("is no file in memory") };
    if !fstatfs(file).is_ok_and(|found| u64::try_from(found.f_type) == Ok(TMPFS)) {
        return unfit("is in huge pages, or in no memory at all");
    }
    if !seals.contains(SIZE_SEALS) {
        return unfit("is not sealed against shrinking and growing");
    }
    if !fstat(file).is_ok_and(|found| u64::try_from(found.st_size) == Ok(sizes.total() as u64)) {
        return unfit("has another size than its rings need");
    }
    let ends = rings(file, sizes, Side::Stack)
        .map_err(|error| Unfit(format!("cannot be mapped for writing: {error}")))?;
    // Mappings for writing that there are stay; there will be no others, and no holes.
    if fcntl_add_seals(file, SealFlags::FUTURE_WRITE | SealFlags::SEAL).is_err() {
        return unfit("is sealed against further seals");
    }
    let there =
        |blocks| u64::try_from(blocks).is_ok_and(|n: u64| n * BLOCK >= sizes.total() as u64);
    if !fstat(file).is_ok_and(|found| there(found.st_blocks)) {
        return unfit("has holes: fallocate(2) fills them");
    }
    Ok(ends)
}

/// Maps a file and returns the ends of its rings that belong to one side. The application's side is the
/// first, and leaves the rings in the state that they begin in: both readers sleep.
pub(crate) fn rings(file: BorrowedFd<'_>, sizes: Sizes, side: Side) -> io::Result<Ends> {
    let mapping = Arc::new(Mapping::new(file, 0, sizes.total(), Fill::Later)?);
    let up = Region::new(&mapping, 0, 0, sizes.up);
    let down = Region::new(&mapping, 1, sizes.up as usize, sizes.down);
    Ok(match side {
        Side::Application => {
            let (writer, reader) = (Writer::new(up), Reader::new(down));
            writer.prepare();
            reader.prepare();
            (writer, reader)
        }
        Side::Stack => (Writer::new(down), Reader::new(up)),
    })
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, AsRawFd};

    use super::*;

    const SIZES: Sizes = Sizes { up: 4096, down: 4096 };

    fn refusal(file: &OwnedFd) -> String {
        take_over(file.as_fd(), SIZES).err().expect("the file is taken").to_string()
    }

    fn memory(seals: SealFlags) -> OwnedFd {
        let file = memfd_create("test", MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&file, SIZES.total() as u64).unwrap();
        fallocate(&file, FallocateFlags::empty(), 0, SIZES.total() as u64).unwrap();
        fcntl_add_seals(&file, seals).unwrap();
        file
    }

    #[test]
    fn nobody_can_change_the_size_punch_holes_or_take_seals_away() {
        let file = create(SIZES).unwrap();
        let _ends = rings(file.as_fd(), SIZES, Side::Application).unwrap();
        take_over(file.as_fd(), SIZES).unwrap();
        for size in [0, 4096, SIZES.total() as u64 + 4096] {
            assert_eq!(ftruncate(&file, size), Err(Errno::PERM));
        }
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        assert_eq!(fallocate(&file, hole, 0, 4096), Err(Errno::PERM));
        assert_eq!(fcntl_add_seals(&file, SealFlags::WRITE), Err(Errno::PERM));
    }

    #[test]
    fn a_file_that_is_not_sealed_against_every_change_of_size_is_refused() {
        for seals in [SealFlags::empty(), SealFlags::SHRINK, SealFlags::GROW] {
            assert!(refusal(&memory(seals)).contains("not sealed"), "{seals:?}");
        }
        take_over(memory(SIZE_SEALS).as_fd(), SIZES).unwrap();
    }

    #[test]
    fn a_file_of_another_size_is_refused() {
        let file = memory(SIZE_SEALS);
        for sizes in [Sizes { up: 8192, down: 4096 }, Sizes { up: 2048, down: 4096 }] {
            let error = take_over(file.as_fd(), sizes).err().unwrap().to_string();
            assert!(error.contains("another size"), "{error}");
        }
    }

    #[test]
    fn a_file_with_a_hole_is_refused() {
        let file = memory(SealFlags::empty());
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&file, hole, 4096, 4096).unwrap();
        fcntl_add_seals(&file, SIZE_SEALS).unwrap();
        assert!(refusal(&file).contains("has holes"));
    }

    #[test]
    fn a_file_that_cannot_be_written_or_sealed_further_is_refused() {
        let file = memory(SIZE_SEALS | SealFlags::WRITE);
        assert!(refusal(&file).contains("cannot be mapped"));
        let file = memory(SIZE_SEALS | SealFlags::FUTURE_WRITE);
        assert!(refusal(&file).contains("cannot be mapped"));
        let file = memory(SIZE_SEALS | SealFlags::SEAL);
        assert!(refusal(&file).contains("further seals"));
        let file = memory(SIZE_SEALS);
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let only_readable = std::fs::File::open(path).unwrap().into();
        assert!(refusal(&only_readable).contains("cannot be mapped"));
    }

    #[test]
    fn a_file_that_is_not_in_memory_is_refused() {
        let other: OwnedFd = tempfile::tempfile().unwrap().into();
        ftruncate(&other, SIZES.total() as u64).unwrap();
        // On a file system in memory it has no seals but the one against seals.
        let error = refusal(&other);
        assert!(error.contains("no file in memory") || error.contains("not sealed"), "{error}");
        let (pipe, _writer) = io::pipe().unwrap();
        assert!(refusal(&pipe.into()).contains("no file in memory"));
    }

    #[test]
    fn a_file_in_huge_pages_is_refused() {
        let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB;
        // Making one takes no page; a kernel without huge pages cannot.
        match memfd_create("huge", flags) {
            Ok(file) => {
                fcntl_add_seals(&file, SIZE_SEALS).unwrap();
                assert!(refusal(&file).contains("huge pages"));
            }
            Err(errno) => eprintln!("not run: huge pages cannot be had here: {errno}"),
        }
    }
}
