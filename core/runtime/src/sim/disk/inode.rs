//! The content of one file.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;

use super::pages::{PAGE, Page, PageStore};

/// A page of a file.
#[derive(Debug)]
enum Slot {
    /// Complete, as far as one can tell, and shared.
    Shared(Page),
    /// Being written. The number says how many bytes were written since it was made private: with as
    /// many as a page has, it is taken to be complete.
    Private(Box<[u8; PAGE]>, usize),
}

/// Where a file's bytes are.
#[derive(Debug)]
pub(super) enum Content {
    /// In pages; what is in none is zero.
    Pages(Pages),
    /// In a real file, read where needed and never written. It must not change while the world runs.
    Real(std::fs::File),
}

/// Pages by number.
#[derive(Debug, Default)]
pub(super) struct Pages {
    slots: BTreeMap<u64, Slot>,
    private: usize,
}

/// A file: its content, and who needs it.
#[derive(Debug)]
pub(super) struct Inode {
    pub(super) content: Content,
    pub(super) len: u64,
    pub(super) read_only: bool,
    /// Whether it has a name.
    pub(super) linked: bool,
    /// How many open handles it has.
    pub(super) opens: usize,
}

impl Inode {
    /// An empty file with a name.
    pub(super) fn new() -> Self {
        let content = Content::Pages(Pages::default());
        Self { content, len: 0, read_only: false, linked: true, opens: 0 }
    }

    /// A real file as it is now.
    pub(super) fn real(file: std::fs::File, len: u64) -> Self {
        Self { content: Content::Real(file), len, ..Self::new() }
    }

    /// Up to `len` bytes from `offset`; fewer only at the end.
    pub(super) fn read(&self, offset: u64, len: usize) -> std::io::Result<Vec<u8>> {
        let rest = self.len.saturating_sub(offset);
        let len = usize::try_from(rest).unwrap_or(usize::MAX).min(len);
        let mut bytes = vec![0; len];
        match &self.content {
            Content::Pages(pages) => pages.read(offset, &mut bytes),
            Content::Real(file) => file.read_exact_at(&mut bytes, offset)?,
        }
        Ok(bytes)
    }

    /// How many pages it occupies.
    pub(super) fn pages(&self) -> u64 {
        match &self.content {
            Content::Pages(pages) => pages.slots.len() as u64,
            Content::Real(_) => 0,
        }
    }

    /// How many pages more it would occupy after writing `len` bytes at `offset`.
    pub(super) fn growth(&self, offset: u64, len: usize) -> u64 {
        let Content::Pages(pages) = &self.content else { return 0 };
        if len == 0 {
            return 0;
        }
        let range = offset / PAGE as u64..=offset.saturating_add(len as u64 - 1) / PAGE as u64;
        let count = range.end() - range.start() + 1;
        count - pages.slots.range(range).count() as u64
    }

    /// Writes `bytes` at `offset`.
    pub(super) fn write(&mut self, store: &mut PageStore, offset: u64, bytes: &[u8]) {
        let Content::Pages(pages) = &mut self.content else { return };
        pages.write(store, offset, bytes);
        self.len = self.len.max(offset.saturating_add(bytes.len() as u64));
    }

    /// Makes it `len` bytes long.
    pub(super) fn set_len(&mut self, len: u64) {
        if let Content::Pages(pages) = &mut self.content
            && len < self.len
        {
            pages.cut(len);
        }
        self.len = len;
    }

    /// Shares the pages that are being written: nobody is going to complete them soon.
    pub(super) fn settle(&mut self, store: &mut PageStore) {
        if let Content::Pages(pages) = &mut self.content {
            pages.settle(store);
        }
    }
}

impl Pages {
    fn read(&self, offset: u64, bytes: &mut [u8]) {
        for (page, start, part) in parts(offset, bytes.len()) {
            let content = match self.slots.get(&page) {
                Some(Slot::Shared(content)) => &content[..],
                Some(Slot::Private(content, _)) => &content[..],
                None => continue, // A hole: the buffer is zero already.
            };
            let len = part.len();
            bytes[part].copy_from_slice(&content[start..start + len]);
        }
    }

    fn write(&mut self, store: &mut PageStore, offset: u64, bytes: &[u8]) {
        for (page, start, part) in parts(offset, bytes.len()) {
            let bytes = &bytes[part];
            let slot = if let Ok(whole) = bytes.try_into() {
                Slot::Shared(store.intern(whole))
            } else {
                self.write_part(store, page, start, bytes)
            };
            self.private += usize::from(matches!(slot, Slot::Private(..)));
            let old = self.slots.insert(page, slot);
            self.private -= usize::from(matches!(old, Some(Slot::Private(..))));
        }
    }

    /// The slot of `page` after writing less than a page to it.
    fn write_part(&mut self, store: &mut PageStore, page: u64, start: usize, bytes: &[u8]) -> Slot {
        let (mut content, written) = match self.slots.remove(&page) {
            Some(Slot::Private(content, written)) => {
                self.private -= 1;
                (content, written)
            }
            Some(Slot::Shared(content)) => (Box::new(*content), 0),
            None => (Box::new([0; PAGE]), 0),
        };
        content[start..start + bytes.len()].copy_from_slice(bytes);
        let written = written + bytes.len();
        if written >= PAGE {
            Slot::Shared(store.intern(&content))
        } else {
            Slot::Private(content, written)
        }
    }

    /// Drops what lies at and after `len`.
    fn cut(&mut self, len: u64) {
        let first_gone = len.div_ceil(PAGE as u64);
        let gone = self.slots.split_off(&first_gone);
        self.private -= gone.values().filter(|slot| matches!(slot, Slot::Private(..))).count();
        let keep = (len % PAGE as u64) as usize;
        if keep == 0 {
            return;
        }
        let slot = self.slots.get_mut(&(first_gone - 1));
        match slot {
            Some(Slot::Private(content, _)) => content[keep..].fill(0),
            Some(slot @ Slot::Shared(_)) => {
                let Slot::Shared(content) = &*slot else { return };
                let mut content = Box::new(**content);
                content[keep..].fill(0);
                *slot = Slot::Private(content, keep);
                self.private += 1;
            }
            None => {}
        }
    }

    fn settle(&mut self, store: &mut PageStore) {
        if self.private == 0 {
            return;
        }
        for slot in self.slots.values_mut() {
            if let Slot::Private(content, _) = slot {
                *slot = Slot::Shared(store.intern(content));
            }
        }
        self.private = 0;
    }
}

/// Cuts `len` bytes at `offset` into pages: the page's number, where in the page the part starts,
/// and which of the bytes it is.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done >= len {
            return None;
        }
        let at = offset.saturating_add(done as u64);
        let start = (at % PAGE as u64) as usize;
        let part = done..len.min(done + PAGE - start);
        done = part.end;
        Some((at / PAGE as u64, start, part))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Write(u64, Vec<u8>),
        SetLen(u64),
        Settle,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let bytes = (any::<u8>(), 0usize..3 * PAGE).prop_map(|(byte, len)| vec![byte; len]);
        let step = prop_oneof![
            4 => (0u64..4 * PAGE as u64, bytes).prop_map(|(at, bytes)| Step::Write(at, bytes)),
            1 => (0u64..6 * PAGE as u64).prop_map(Step::SetLen),
            1 => Just(Step::Settle),
        ];
        prop::collection::vec(step, 0..12)
    }

    fn apply(model: &mut Vec<u8>, step: &Step) {
        match step {
            Step::Write(at, bytes) => {
                let end = *at as usize + bytes.len();
                if !bytes.is_empty() {
                    model.resize(model.len().max(end), 0);
                    model[*at as usize..end].copy_from_slice(bytes);
                }
            }
            Step::SetLen(len) => model.resize(*len as usize, 0),
            Step::Settle => {}
        }
    }

    proptest! {
        #[test]
        fn a_file_holds_what_a_plain_vector_holds(steps in steps()) {
            let (mut store, mut file, mut model) =
                (PageStore::default(), Inode::new(), Vec::new());
            for step in &steps {
                match step {
                    Step::Write(at, bytes) if !bytes.is_empty() => {
                        let expected = file.pages() + file.growth(*at, bytes.len());
                        file.write(&mut store, *at, bytes);
                        prop_assert_eq!(file.pages(), expected);
                    }
                    Step::Write(..) => {}
                    Step::SetLen(len) => file.set_len(*len),
                    Step::Settle => file.settle(&mut store),
                }
                apply(&mut model, step);
                prop_assert_eq!(file.read(0, usize::MAX).unwrap(), model.clone());
            }
            let middle = model.len() as u64 / 2;
            prop_assert_eq!(file.read(middle, 100).unwrap(), &model[middle as usize..][..100.min(model.len() - middle as usize)]);
        }
    }

    #[test]
    fn small_writes_that_complete_a_page_share_it() {
        let mut store = PageStore::default();
        let mut files = [Inode::new(), Inode::new()];
        for file in &mut files {
            for chunk in 0..8 {
                file.write(&mut store, chunk * 1024, &[7; 1024]);
            }
        }
        assert_eq!(store.count(), 1, "four pages of the same content");
    }
}
