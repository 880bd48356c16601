//! Large tables in large pages.
//!
//! To read an address in a table of many megabytes the processor first needs the page's entry in the tables of the memory
//! management, which is in no cache either, and on a virtual machine those of two systems. Pages of 2 MiB need 512 times
//! fewer entries. The kernel gives them to whoever asks, where that is how it is set up
//! (`/sys/kernel/mm/transparent_hugepage/enabled`). The last page of a table is rarely full, so that a small one asks for none,
//! and a table of one such page and a part of a second for the first only. The kernel gives them
//! when memory is touched for the first time, and memory that the program has used before for something else is not; so the
//! part that nothing was written to yet is handed back first.
//!
//! A table that grows moves to where there is room for it. Its pages move along, but large ones only if they are as far from
//! the boundaries of such pages there as here; if not, they are broken up, and stay so. The kernel puts what is as long as a
//! number of large pages on such a boundary (from Linux 6.7 on; what is of another length not since 6.13). So a large table
//! takes so much that it is that long together with what the C library puts beside it.
//!
//! Reference: madvise(2), `MADV_HUGEPAGE`, `MADV_DONTNEED`; mremap(2); Linux, `Documentation/admin-guide/mm/transhuge.rst`.

use rustix::mm::{Advice, madvise};
use rustix::param::page_size;

/// The size of a large page.
const PAGE: usize = 2 << 20;
/// Bytes from which on large pages are asked for.
const LARGE: usize = PAGE;
/// Bytes from which on the last page, which may be empty for the most part, is a large one too.
const TO_THE_END: usize = 2 * PAGE;
/// What is given back at once of a table without large pages.
const STEP: usize = 64 << 10;
/// The C library takes less than this, and twice the alignment, besides what it is asked for.
const BESIDE: usize = 128;
/// What is aligned to no more than this may stay where it is, or move with its pages, when a vector grows; anything else is
/// copied by the standard library.
const MOVABLE: usize = 16;

/// Makes room for `more` items at least. A vector grows by an eighth, so that a large one does not take twice the memory that
/// it needs, and lies in large pages once it takes 2 MiB; from 4 MiB on the last one may be for the most part empty.
pub fn make_room<T>(items: &mut Vec<T>, more: usize) {
    if items.capacity() - items.len() >= more {
        return;
    }
    let needed = items.len().saturating_add(more.max(items.len() / 8));
    if !takes::<T>(needed, LARGE) {
        return items.reserve_exact(needed - items.len());
    }
    let capacity = whole_pages::<T>(needed);
    if takes::<T>(items.capacity(), TO_THE_END) && align_of::<T>() <= MOVABLE {
        items.reserve_exact(capacity - items.len());
        ask_for_large_pages(items, needed);
    } else {
        // What has its pages keeps them: all of it goes elsewhere.
        let mut large = Vec::with_capacity(capacity);
        ask_for_large_pages(&mut large, needed);
        large.append(items);
        *items = large;
    }
}

/// Gives memory behind the last item back to the system, where so many items were just removed from the end. It does so by steps of
/// 64 KiB, or of a large page where a vector may have these, so that most calls cost next to nothing; the vector
/// keeps its capacity.
pub fn give_back<T>(items: &mut Vec<T>, removed: usize) {
    let step = if takes::<T>(items.capacity(), LARGE) { PAGE } else { STEP };
    let first = items.as_ptr().addr();
    let at = |items: usize| first + items * size_of::<T>();
    let begin = at(items.len()).next_multiple_of(step);
    let end = at(items.capacity().min(items.len() + removed)).next_multiple_of(step);
    let end = end.min(at(items.capacity()) / page_size() * page_size());
    if begin < end {
        let address = items.as_mut_ptr().with_addr(begin).cast();
        // SAFETY: these pages lie within the vector's memory, behind its last item, and hold nothing.
        let _ = unsafe { madvise(address, end - begin, Advice::LinuxDontNeed) };
    }
}

/// As many items as this, or a few more, so that they take a number of large pages with what stands beside them.
fn whole_pages<T>(items: usize) -> usize {
    let beside = BESIDE + 2 * align_of::<T>();
    let bytes = items.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(beside));
    let pages = bytes.and_then(|bytes| bytes.checked_next_multiple_of(PAGE));
    pages.map_or(items, |pages| (pages - beside) / size_of::<T>())
}

/// Whether so many items take as many bytes as this.
fn takes<T>(items: usize, bytes: usize) -> bool {
    items.saturating_mul(size_of::<T>()) >= bytes
}

/// Asks for large pages for so many of a vector's items, or for all that it has room for.
fn ask_for_large_pages<T>(items: &mut Vec<T>, needed: usize) {
    let to_the_end = takes::<T>(items.capacity(), TO_THE_END);
    let needed = if to_the_end { items.capacity() } else { needed };
    let items_at = items.as_mut_ptr();
    let first = items_at.addr();
    let end = first + needed * size_of::<T>();
    let advise = |begin: usize, end: usize, advice| {
        if begin < end {
            let address = items_at.with_addr(begin).cast();
            // SAFETY: the first advice changes neither contents nor access, of whatever else is in the pages where the vector
            // begins and ends either. The second is given for pages that lie within its memory, behind the last item, and
            // hold nothing. Where the kernel does not know them, pages are small, as before.
            let _ = unsafe { madvise(address, end - begin, advice) };
        }
    };
    let small = page_size();
    advise(first / small * small, end.next_multiple_of(small), Advice::LinuxHugepage);
    let behind = first + items.len() * size_of::<T>();
    advise(behind.next_multiple_of(PAGE), end / PAGE * PAGE, Advice::LinuxDontNeed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_stay_as_they_are_while_a_vector_becomes_large() {
        let mut items = Vec::new();
        let count = 3 * LARGE / size_of::<u64>();
        for number in 0..count as u64 {
            make_room(&mut items, 1);
            items.push(number);
        }
        assert!((0..).zip(&items).all(|(number, item)| number == *item));
        assert!(items.capacity() <= items.len() + items.len() / 8 + PAGE / size_of::<u64>());
    }

    /// Whether the kernel puts what is as long as a number of large pages on such a boundary.
    fn kernel_aligns() -> bool {
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

        // The second cannot be where the first ends if that is no boundary.
        [3 * PAGE + page_size(), 3 * PAGE].into_iter().all(|len| {
            // SAFETY: it is memory of its own, which stays until the test ends.
            let address = unsafe {
                mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::READ, MapFlags::PRIVATE)
            };
            !len.is_multiple_of(PAGE) || address.unwrap().addr().is_multiple_of(PAGE)
        })
    }

    /// The C library makes a mapping for what is larger than 64 MiB, wherever it was asked before: its heaps keep no more
    /// than that, which is twice what it makes mappings for at the latest (mallopt(3), `M_MMAP_THRESHOLD`).
    #[test]
    fn large_pages_move_along_when_a_vector_grows() {
        if !kernel_aligns() {
            return eprintln!("skipped: this kernel breaks up large pages that move");
        }
        fn grow<T: Clone>(item: T) {
            let mut items = Vec::<T>::new();
            make_room(&mut items, (72 << 20) / size_of::<T>());
            while size_of_val(&items[..]) < 240 << 20 {
                let behind = items.as_ptr().addr() % PAGE;
                assert!(behind < page_size(), "{behind} bytes behind the boundary");
                items.resize(items.capacity(), item.clone());
                make_room(&mut items, 1);
            }
        }
        // Were it less, a heap would have room for it after this.
        let _ = Vec::<u8>::with_capacity(31 << 20);
        drop([28, 28].map(|mebibytes| Vec::<u8>::with_capacity(mebibytes << 20)));
        grow(7_u64);
        grow([7_u8; 24]);
        grow(Aligned(7));
    }

    /// Items that the standard library copies whenever a vector of them grows.
    #[derive(Clone)]
    #[repr(align(64))]
    struct Aligned(u64);

    #[test]
    fn items_that_cannot_move_with_their_pages_stay_as_they_are() {
        let mut items = Vec::new();
        for number in 0..3 * (LARGE / size_of::<Aligned>()) as u64 {
            make_room(&mut items, 1);
            items.push(Aligned(number));
        }
        assert!((0..).zip(&items).all(|(number, item)| number == item.0));
    }

    /// Gives advice that changes neither contents nor access for all the pages where a vector has room.
    fn advise<T>(items: &mut Vec<T>, advice: Advice) -> rustix::io::Result<()> {
        assert!(matches!(advice, Advice::LinuxHugepage | Advice::LinuxNoHugepage));
        let begin = items.as_ptr().addr() / page_size() * page_size();
        let end = items.as_ptr().addr() + items.capacity() * size_of::<T>();
        let address = items.as_mut_ptr().with_addr(begin).cast();
        // SAFETY: neither of these changes what is in the pages, nor who may read or write it.
        unsafe { madvise(address, end - begin, advice) }
    }

    /// Whether large pages were asked for what is at this address.
    ///
    /// Reference: proc_pid_smaps(5), `VmFlags`, `hg`.
    fn is_asked_for(address: usize) -> bool {
        let mut here = false;
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let flags = smaps.lines().find(|line| {
            if let Some((range, _)) = line.split_once(' ')
                && let Some((begin, end)) = range.split_once('-')
            {
                let number = |digits| usize::from_str_radix(digits, 16).unwrap();
                here = (number(begin)..number(end)).contains(&address);
            }
            here && line.starts_with("VmFlags:")
        });
        flags.unwrap().split_whitespace().any(|flag| flag == "hg")
    }

    #[test]
    fn a_table_of_one_large_page_does_not_ask_for_a_second_one() {
        if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            return eprintln!("skipped: this kernel has no large pages");
        }
        for (bytes, to_the_end) in [(LARGE, false), (LARGE + PAGE / 2, false), (TO_THE_END, true)] {
            let mut items = Vec::<u8>::with_capacity(whole_pages::<u8>(bytes));
            // Another table may have had this memory before.
            let _ = advise(&mut items, Advice::LinuxNoHugepage);
            ask_for_large_pages(&mut items, bytes);
            let at = items.as_ptr().addr();
            let last = at + items.capacity() - 1;
            assert!(is_asked_for(at), "the first of {bytes} bytes");
            assert_eq!(is_asked_for(last), to_the_end, "the last of {bytes} bytes");
        }
    }

    /// Whether the kernel has given memory to the page at this address.
    ///
    /// Reference: Linux, `Documentation/admin-guide/mm/pagemap.rst`, bit 63.
    fn is_present(pagemap: &std::fs::File, address: usize) -> bool {
        use std::os::unix::fs::FileExt;
        let mut entry = [0; 8];
        let at = address / page_size() * entry.len();
        pagemap.read_exact_at(&mut entry, at as u64).unwrap();
        u64::from_ne_bytes(entry) >> 63 == 1
    }

    /// The C library keeps what it has got in this size once the first was given back, and hands it out again.
    #[test]
    fn memory_that_was_in_use_before_has_no_pages_when_a_large_vector_gets_it() {
        drop(std::hint::black_box(vec![1_u8; 3 * LARGE]));
        drop(std::hint::black_box(vec![2_u8; 2 * LARGE + PAGE]));
        let mut items = Vec::<u8>::new();
        make_room(&mut items, 2 * LARGE);
        let pagemap = std::fs::File::open("/proc/self/pagemap").unwrap();
        let begin = items.as_ptr().addr().next_multiple_of(PAGE);
        let end = (items.as_ptr().addr() + items.capacity()) / PAGE * PAGE;
        assert!(end - begin >= LARGE);
        assert!((begin..end).step_by(page_size()).all(|address| !is_present(&pagemap, address)));
    }

    #[test]
    fn what_is_removed_from_the_end_goes_back_to_the_system() {
        let pagemap = std::fs::File::open("/proc/self/pagemap").unwrap();
        for (bytes, step) in [(LARGE / 2, STEP), (4 * LARGE, PAGE)] {
            let mut items = Vec::<u64>::new();
            make_room(&mut items, bytes / 8);
            items.resize(items.capacity(), 7);
            let (begin, end) = (items.as_ptr().addr(), items.as_ptr().addr() + items.len() * 8);
            // The kernel makes large pages of what is left of small ones, at any time, and what was given back is there again.
            // One that does not know this advice makes none.
            let _ = advise(&mut items, Advice::LinuxNoHugepage);
            let middle = items.len() / 2 + 5;
            while items.len() > middle {
                items.pop();
                give_back(&mut items, 1);
            }
            assert!(items.iter().all(|item| *item == 7));
            let mut behind =
                (begin + middle * 8).next_multiple_of(step)..end / page_size() * page_size();
            assert!(behind.len() > bytes / 4);
            assert!(behind.all(|at| !at.is_multiple_of(page_size()) || !is_present(&pagemap, at)));
            items.resize(items.capacity(), 8);
            assert!(
                items[..middle].iter().all(|item| *item == 7)
                    && items[middle..].iter().all(|item| *item == 8)
            );
        }
    }

    #[test]
    fn there_is_as_much_room_as_was_asked_for() {
        let mut items = vec![1u8; 10];
        make_room(&mut items, 100);
        assert!(items.capacity() >= 110);
        let mut large = Vec::<u8>::new();
        make_room(&mut large, 2 * LARGE);
        assert!(large.capacity() >= 2 * LARGE);
        let mut nothing = vec![(); 5];
        make_room(&mut nothing, 1 << 40);
        assert_eq!(nothing.len(), 5);
    }
}
