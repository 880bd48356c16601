//! Pages of file content, each different one stored once.

use std::collections::HashMap;
use std::rc::Rc;

use crate::sim::hash::xxh64;

/// Bytes of a page; what a file occupies is counted in pages.
pub(super) const PAGE: usize = 4096;

/// A page that nobody changes any more and many files may share.
pub(super) type Page = Rc<[u8; PAGE]>;

/// The shared pages by a hash of their content. Equal hashes decide nothing: pages are shared only
/// if all bytes are equal.
#[derive(Debug, Default)]
pub(super) struct PageStore {
    pages: HashMap<u64, Vec<Page>>,
    count: usize,
    /// At how many pages those that no file holds any more are thrown away.
    sweep_at: usize,
}

/// Fewer pages than this are not worth a sweep (16 MiB).
const MIN_SWEEP: usize = 4096;

impl PageStore {
    /// The shared page with this content.
    pub(super) fn intern(&mut self, content: &[u8; PAGE]) -> Page {
        self.sweep();
        let alike = self.pages.entry(xxh64(content, 0)).or_default();
        if let Some(page) = alike.iter().find(|page| ***page == *content) {
            return Rc::clone(page);
        }
        let page = Rc::new(*content);
        alike.push(Rc::clone(&page));
        self.count += 1;
        page
    }

    fn sweep(&mut self) {
        if self.count < self.sweep_at.max(MIN_SWEEP) {
            return;
        }
        self.pages.retain(|_, alike| {
            alike.retain(|page| Rc::strong_count(page) > 1);
            !alike.is_empty()
        });
        self.count = self.pages.values().map(Vec::len).sum();
        self.sweep_at = self.count * 2;
    }

    /// How many different pages are stored.
    pub(super) fn count(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_content_is_stored_once_and_different_content_apart() {
        let mut store = PageStore::default();
        let a = store.intern(&[1; PAGE]);
        let b = store.intern(&[2; PAGE]);
        let c = store.intern(&[1; PAGE]);
        assert!(Rc::ptr_eq(&a, &c));
        assert!(!Rc::ptr_eq(&a, &b));
        assert_eq!(store.count(), 2);
    }

    #[test]
    fn pages_that_nobody_holds_are_thrown_away() {
        let mut store = PageStore::default();
        let mut content = [0; PAGE];
        for number in 0..4 * MIN_SWEEP as u64 {
            content[..8].copy_from_slice(&number.to_le_bytes());
            drop(store.intern(&content));
        }
        assert!(store.count() <= MIN_SWEEP, "{} pages", store.count());
    }
}
