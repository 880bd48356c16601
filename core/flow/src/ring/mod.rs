//! One ring: a single writer, a single reader, and memory that both can change at any moment.
//!
//! Neither side trusts the other. Each keeps its own index to itself and only stores it for the other to
//! see; the other's index is loaded once, when the value known before does not do, and checked: it moves
//! forwards, and by no more than there can be. A datagram's length is loaded once and checked before
//! anything is copied, and bytes are copied out before anybody looks at them. So whatever the other side
//! does with the memory, this side reports [`Hostile`] or hands out bytes that the other side chose, which
//! it may do anyway.
//!
//! Sleeping: who finds nothing (or no room) raises its flag, and looks once more; who has published
//! its index looks at the other's flag, and if it is raised takes it down and wakes the other. Between the
//! store and the load there is a sequentially consistent fence on both sides, so that at least one of
//! them sees what the other did (the algorithm of Dekker). A pair that is busy finds no flag raised and
//! makes no system call. Every flag taken down is one waking, so that a side knows how many to
//! expect and can tell when it is woken for no reason.
//!
//! The memory itself is behind the trait [`Memory`]: pages shared with another process in earnest
//! (`shared`), loom's model of memory in the tests of the order of loads and stores.

#[cfg(test)]
mod order;
#[cfg(test)]
mod tests;

use crate::layout::{ALIGN, HEADER, LONGEST, record};

/// What one ring lies in. Offsets and values are plain numbers: an implementation checks offsets itself.
pub trait Memory {
    /// How many bytes the ring holds; a power of two, always the same.
    fn capacity(&self) -> usize;
    /// Loads an index; what the other side did before it stored it is visible then (acquire).
    fn load(&self, index: Index) -> u64;
    /// Stores an index; who loads it sees what was done before (release).
    fn store(&self, index: Index, value: u64);
    /// Raises a flag; whether it was down.
    fn raise(&self, flag: Flag) -> bool;
    /// Takes a flag down; whether it was up.
    fn lower(&self, flag: Flag) -> bool;
    /// Whether a flag is up.
    fn is_up(&self, flag: Flag) -> bool;
    /// A sequentially consistent fence.
    fn fence(&self);
    /// Stores a datagram's length at an offset that is a multiple of 4.
    fn store_length(&self, at: usize, len: u32);
    /// Loads a datagram's length, once.
    fn load_length(&self, at: usize) -> u32;
    /// Copies bytes in at an offset; they end before the capacity.
    fn write(&self, at: usize, bytes: &[u8]);
    /// Copies bytes out.
    fn read(&self, at: usize, into: &mut [u8]);
}

/// Who has come how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// The writer.
    Tail,
    /// The reader.
    Head,
}

/// Who asks to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// The reader, when there is something to read.
    Reader,
    /// The writer, when there is room.
    Writer,
}

/// The other side broke the rules; what it did, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hostile(pub &'static str);

/// The end of a ring that writes.
pub struct Writer<M> {
    memory: M,
    /// Bytes written.
    tail: u64,
    /// Bytes that the reader has been told of.
    published: u64,
    /// Bytes read, as the reader said last.
    head: u64,
}

impl<M: Memory> Writer<M> {
    /// The writing end of a ring that nothing was written into.
    pub fn new(memory: M) -> Self {
        Self { memory, tail: 0, published: 0, head: 0 }
    }

    /// Before the ring is shared: its reader will be taken to sleep.
    pub fn prepare(&self) {
        self.memory.raise(Flag::Reader);
    }

    /// Puts a datagram of 1 to [`LONGEST`] bytes into the ring, not yet seen by the reader; false
    /// if there is no room.
    ///
    /// # Errors
    /// The reader broke the rules.
    #[inline]
    pub fn put(&mut self, message: &[u8]) -> Result<bool, Hostile> {
        debug_assert!(!message.is_empty() && message.len() <= LONGEST);
        let needed = record(message.len());
        if self.room(needed)? < needed {
            return Ok(false);
        }
        self.memory.store_length(place(&self.memory, self.tail), message.len() as u32);
        self.copy_in(self.tail + HEADER as u64, message);
        self.tail += needed as u64;
        Ok(true)
    }

    /// Puts as many of a stream's bytes as there is room for into the ring, not yet seen by the
    /// reader; returns how many.
    ///
    /// # Errors
    /// The reader broke the rules.
    pub fn append(&mut self, bytes: &[u8]) -> Result<usize, Hostile> {
        let count = bytes.len().min(self.room(bytes.len())?);
        self.copy_in(self.tail, &bytes[..count]);
        self.tail += count as u64;
        Ok(count)
    }

    /// Lets the reader see what was written; whether it has to be woken.
    #[must_use]
    #[inline]
    pub fn publish(&mut self) -> bool {
        if self.tail == self.published {
            return false;
        }
        self.published = self.tail;
        self.memory.store(Index::Tail, self.tail);
        self.memory.fence();
        self.memory.is_up(Flag::Reader) && self.memory.lower(Flag::Reader)
    }

    /// Asks to be woken when there is room for `needed` bytes. What was written has to be
    /// published.
    ///
    /// # Errors
    /// The reader broke the rules.
    pub fn ask(&mut self, needed: usize) -> Result<Asked, Hostile> {
        debug_assert_eq!(self.tail, self.published);
        let raised = self.memory.raise(Flag::Writer);
        self.memory.fence();
        let there_is = self.room(needed)? >= needed;
        Ok(asked(&self.memory, Flag::Writer, raised, there_is))
    }

    /// Bytes that are free; the reader is asked only if fewer than `needed` are known to be.
    #[inline]
    fn room(&mut self, needed: usize) -> Result<usize, Hostile> {
        let capacity = self.memory.capacity() as u64;
        if ((capacity - (self.tail - self.head)) as usize) < needed {
            let head = self.memory.load(Index::Head);
            // Going back makes the distance longer, going too far wraps it to something enormous.
            if self.published.wrapping_sub(head) > self.published - self.head {
                return Err(Hostile("its index of what it has read went back, or beyond the end"));
            }
            self.head = head;
        }
        Ok((capacity - (self.tail - self.head)) as usize)
    }

    #[inline]
    fn copy_in(&self, index: u64, bytes: &[u8]) {
        let at = place(&self.memory, index);
        let (first, second) = bytes.split_at(bytes.len().min(self.memory.capacity() - at));
        self.memory.write(at, first);
        if !second.is_empty() {
            self.memory.write(0, second);
        }
    }
}

/// The end of a ring that reads.
pub struct Reader<M> {
    memory: M,
    /// Bytes read.
    head: u64,
    /// Bytes that the writer has been told were read.
    released: u64,
    /// Bytes written, as the writer said last.
    tail: u64,
    /// The length of the datagram at `head`, once it was loaded and checked.
    next: Option<usize>,
}

impl<M: Memory> Reader<M> {
    /// The reading end of a ring that nothing was written into.
    pub fn new(memory: M) -> Self {
        Self { memory, head: 0, released: 0, tail: 0, next: None }
    }

    /// Before the ring is shared: this end will be taken to sleep, and be owed a waking.
    pub fn prepare(&self) {
        self.memory.raise(Flag::Reader);
    }

    /// The length of the next datagram, 1 to [`LONGEST`]; `None` if there is none.
    ///
    /// # Errors
    /// The writer broke the rules.
    #[inline]
    pub fn next_len(&mut self) -> Result<Option<usize>, Hostile> {
        if self.next.is_some() {
            return Ok(self.next);
        }
        let ready = self.ready()?;
        if ready == 0 {
            return Ok(None);
        }
        if !ready.is_multiple_of(ALIGN) {
            return Err(Hostile("its index of what it has written is no multiple of 8"));
        }
        let len = self.memory.load_length(place(&self.memory, self.head)) as usize;
        if len == 0 || len > LONGEST || record(len) > ready {
            return Err(Hostile("a datagram has a length that it cannot have"));
        }
        self.next = Some(len);
        Ok(self.next)
    }

    /// Copies the next datagram out, whose length [`Reader::next_len`] has just said; `into` has to
    /// be as long, or only the beginning is kept.
    #[inline]
    pub fn take(&mut self, into: &mut [u8]) {
        let Some(len) = self.next.take() else { return };
        let wanted = into.len().min(len);
        self.copy_out(self.head + HEADER as u64, &mut into[..wanted]);
        self.head += record(len) as u64;
    }

    /// How many bytes of a stream can be read.
    ///
    /// # Errors
    /// The writer broke the rules.
    #[inline]
    pub fn ready(&mut self) -> Result<usize, Hostile> {
        if self.tail == self.head {
            let tail = self.memory.load(Index::Tail);
            // Going back wraps the distance to something enormous.
            let known = self.tail - self.released;
            let now = tail.wrapping_sub(self.released);
            if now < known || now > self.memory.capacity() as u64 {
                return Err(Hostile("its index of what it has written went back, or too far"));
            }
            self.tail = tail;
        }
        Ok((self.tail - self.head) as usize)
    }

    /// Copies the next bytes of a stream out, at most as many as [`Reader::ready`] has just said;
    /// returns how many.
    #[inline]
    pub fn read(&mut self, into: &mut [u8]) -> usize {
        let count = into.len().min((self.tail - self.head) as usize);
        self.copy_out(self.head, &mut into[..count]);
        self.head += count as u64;
        count
    }

    /// Lets the writer use the room of what was read, if that is a quarter of the ring; whether the
    /// writer has to be woken.
    #[must_use]
    #[inline]
    pub fn release_by_quarters(&mut self) -> bool {
        // A writer that waits is not woken for room that one message fills again.
        (self.head - self.released) as usize >= self.memory.capacity() / 4 && self.release()
    }

    /// Lets the writer use the room of what was read; whether the writer has to be woken.
    #[must_use]
    pub fn release(&mut self) -> bool {
        if self.head == self.released {
            return false;
        }
        self.released = self.head;
        self.memory.store(Index::Head, self.head);
        self.memory.fence();
        self.memory.is_up(Flag::Writer) && self.memory.lower(Flag::Writer)
    }

    /// Asks to be woken when there is something to read. What was read has to be released.
    ///
    /// # Errors
    /// The writer broke the rules.
    pub fn ask(&mut self) -> Result<Asked, Hostile> {
        debug_assert_eq!(self.head, self.released);
        let raised = self.memory.raise(Flag::Reader);
        self.memory.fence();
        let there_is = self.ready()? > 0;
        Ok(asked(&self.memory, Flag::Reader, raised, there_is))
    }

    #[inline]
    fn copy_out(&self, index: u64, into: &mut [u8]) {
        let at = place(&self.memory, index);
        let (first, second) = {
            let len = into.len();
            into.split_at_mut(len.min(self.memory.capacity() - at))
        };
        self.memory.read(at, first);
        if !second.is_empty() {
            self.memory.read(0, second);
        }
    }
}

/// What came of asking to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// There is nothing: sleep. If not, there is something after all.
    pub sleep: bool,
    /// By how many the wakings have grown that the other side owes.
    pub owed: i8,
}

/// A flag that was up before is asked for already; one that comes down by our own hand is not.
fn asked(memory: &impl Memory, flag: Flag, raised: bool, there_is: bool) -> Asked {
    let withdrawn = there_is && memory.lower(flag);
    Asked { sleep: !there_is, owed: i8::from(raised) - i8::from(withdrawn) }
}

/// Where the byte with this number lies.
#[inline]
fn place(memory: &impl Memory, index: u64) -> usize {
    (index & (memory.capacity() as u64 - 1)) as usize
}
