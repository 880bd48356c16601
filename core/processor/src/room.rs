//! Large tables in large pages.
//!
//! To read an address in a table of many megabytes the processor first needs the page's entry in the tables of the memory
//! management, which is in no cache either, and on a virtual machine those of two systems. Pages of 2 MiB need 512 times
//! fewer entries. The kernel gives them to whoever asks, where that is how it is set up
//! (`/sys/kernel/mm/transparent_hugepage/enabled`); small tables do not ask, for the last page is rarely full. It gives them
//! when memory is touched for the first time, and memory that the program has used before for something else is not; so the
//! part that nothing was written to yet is handed back first.
//!
//! Reference: madvise(2), `MADV_HUGEPAGE`, `MADV_DONTNEED`; Linux, `Documentation/admin-guide/mm/transhuge.rst`.

use rustix::mm::{Advice, madvise};

/// Bytes from which on large pages are asked for.
const LARGE: usize = 8 << 20;
/// The size of a large page.
const PAGE: usize = 2 << 20;
/// What is aligned to no more than this may stay where it is, or move with its pages, when a vector grows; anything else is
/// copied by the standard library.
const MOVABLE: usize = 16;

/// Makes room for `more` items at least. A vector grows by an eighth, so that a large one does not take twice the memory that
/// it needs, and lies in large pages once it takes 8 MiB.
pub fn make_room<T>(items: &mut Vec<T>, more: usize) {
    if items.capacity() - items.len() >= more {
        return;
    }
    let more = more.max(items.len() / 8);
    let was_large = is_large::<T>(items.capacity());
    let will_be_large = is_large::<T>(items.len().saturating_add(more));
    if !will_be_large || was_large && align_of::<T>() <= MOVABLE {
        items.reserve_exact(more);
    } else {
        // What has its pages keeps them: all of it goes elsewhere.
        let mut large = Vec::with_capacity(items.len().saturating_add(more));
        ask_for_large_pages(&mut large);
        large.append(items);
        *items = large;
        return;
    }
    if was_large {
        ask_for_large_pages(items);
    }
}

fn is_large<T>(items: usize) -> bool {
    items.saturating_mul(size_of::<T>()) >= LARGE
}

/// Asks for large pages for all that a vector has room for, and not for its neighbours.
fn ask_for_large_pages<T>(items: &mut Vec<T>) {
    let items_at = items.as_mut_ptr();
    let first = items_at.addr();
    let end = (first + items.capacity() * size_of::<T>()) / PAGE * PAGE;
    let advise = |from: usize, advice| {
        let begin = from.next_multiple_of(PAGE);
        if begin < end {
            let address = items_at.with_addr(begin).cast();
            // SAFETY: the range lies within memory that the vector owns. The first advice changes neither contents nor access;
            // the second is given for what lies behind the last item, which holds nothing. Where the kernel does not know
            // them, pages are small, as before.
            let _ = unsafe { madvise(address, end - begin, advice) };
        }
    };
    advise(first, Advice::LinuxHugepage);
    advise(first + items.len() * size_of::<T>(), Advice::LinuxDontNeed);
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
        assert!(items.capacity() <= items.len() + items.len() / 8 + 1);
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

    /// Whether the kernel has given memory to the page at this address.
    ///
    /// Reference: Linux, `Documentation/admin-guide/mm/pagemap.rst`, bit 63.
    fn is_present(pagemap: &std::fs::File, address: usize) -> bool {
        use std::os::unix::fs::FileExt;
        let mut entry = [0; 8];
        let at = address / rustix::param::page_size() * entry.len();
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
        assert!(
            (begin..end)
                .step_by(rustix::param::page_size())
                .all(|address| !is_present(&pagemap, address))
        );
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
