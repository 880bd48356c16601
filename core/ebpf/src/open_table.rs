//! Hash tables in the memory of an array, which one process writes by plain stores and programs read.
//!
//! The kernel's own map for keys of any size (`BPF_MAP_TYPE_HASH`) is written by a system call, and to find a key a
//! processor waits for memory twice, for the bucket and for the element. Here a key and its value are in one slot,
//! most often of one cache line. `bpf/open_table.h` reads it.
//!
//! | slot | words |
//! |---|---|
//! | 0, 1 | how many places there are, and the secret key of the hash |
//! | 2… | a key; its value in the lower half of a word, a *generation* in the upper; zeros up to half a line |
//! | behind them | the *sieve*: bits, [`SIEVE_BITS`] for each place |
//!
//! A key is in one of [`WINDOW`] slots from the place that its hash says (linear probing), with no empty one in
//! between. Where these are taken, others move on, each within its own window (hopscotch hashing); as no more than
//! half of the slots are in use, there is room for all keys in practice. The hash is multilinear, HM variant: the
//! product of the halves of each word, each half added to a secret word of its own; the upper half of the sum is
//! strongly universal, so that two keys that somebody has chosen without the secret have a common hash with a chance
//! of 2⁻³². Of many keys that says too little: those that differ in one half of a word only, such as the addresses of networks, have
//! sums in rows, which with one secret in some hundreds are so close together that a window is full. So the sum is
//! stirred (`stir`): each goes to a place of its own still, but rows are none any more.
//!
//! The sieve spares look-ups in vain the way to a slot, which as a rule is in no cache of the processor: a key's hash
//! names one of the bits of its place, which is set while there is any key with that bit. It is a 64th of the size of
//! slots of 4 words, a 256th of those of 16, and with the table as full as it may be it lets one of eight to nine keys pass that are
//! not there. So a flood of keys that are nowhere costs no more than what is in the caches, and takes nobody else's lines
//! from them (B. H. Bloom, "Space/time trade-offs in hash coding with allowable errors", 1970, with one hash).
//!
//! Programs read while the writer writes, and nobody waits. A slot gets its value after its key, and before it gets
//! another key its value is taken from it; values that come with a key get another generation each. So a program
//! that finds the same word behind the key that it found before the key has read key and value of one entry. A key
//! that the writer moves to another slot may be missed for an instant, which is no harm: what is not there is asked
//! for. What a writer that was killed leaves half done is not found either.
//!
//! Reference: D. Lemire, O. Kaser, "Strongly universal string hashing is fast" (2014), §3; Knuth, The Art of
//! Computer Programming, volume 3, §6.4, algorithm R (removal); M. Herlihy, N. Shavit, M. Tzafrir, "Hopscotch
//! hashing" (2008); A. Appleby, MurmurHash3, `fmix32` (2011; what stirs); H.-J. Boehm, "Can seqlocks get along with programming language memory models?" (2012).

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// In how many slots a key may be: `OPEN_TABLE_WINDOW`.
pub(crate) const WINDOW: usize = 16;
/// How far a slot is looked for from which room can be brought near.
const MOST_LOOKS: usize = 32 * WINDOW;
/// Slots in front of the first one that holds an entry.
const HEADER: usize = 2;
/// Bits of the sieve for each place: `OPEN_TABLE_SIEVE_BITS`.
const SIEVE_BITS: usize = 4;

/// Words of a slot for keys of so many words.
const fn slot_words(key_words: usize) -> usize {
    (key_words + 1).next_multiple_of(4)
}

/// Words of the sieve in a slot of so many: `OPEN_TABLE_SIEVE_WORDS`.
const fn sieve_words(slot_words: usize) -> usize {
    match slot_words {
        16.. => 16,
        8.. => 8,
        _ => 4,
    }
}

/// Words of the array for `most` entries with keys of so many words: a slot's, and how many slots.
pub(crate) const fn size(key_words: usize, most: usize) -> (usize, usize) {
    let slot_words = slot_words(key_words);
    // No more than half of the places is in use; keys of the last place may be in slots behind it.
    let places = 2 * most;
    let sieve = places * SIEVE_BITS / (64 * sieve_words(slot_words)) + 1;
    (slot_words, HEADER + places + WINDOW + sieve)
}

/// How many entries a table has room for whose array has so many slots.
pub(crate) const fn most(key_words: usize, slots: usize) -> usize {
    let (mut most, mut too_many) = (0, slots);
    while most + 1 < too_many {
        let between = most + (too_many - most) / 2;
        if size(key_words, between).1 <= slots { most = between } else { too_many = between }
    }
    most
}

/// What stands behind the key of a slot that an entry was taken from, as long as there may be others behind it.
const VACANT: u64 = 1 << 32;

/// Whether a slot that has this word behind its key holds an entry.
const fn is_entry(word: u64) -> bool {
    word as u32 != 0
}

/// A table, for the one who writes it.
#[derive(Debug)]
pub(crate) struct OpenTable<M> {
    memory: M,
    key_words: usize,
    /// How many homes there are.
    places: usize,
    /// The generation that a value got last; any number to begin with, since programs may still read what another
    /// writer has left.
    generation: AtomicU32,
}

impl<M: AsRef<[AtomicU64]>> OpenTable<M> {
    /// The table in this memory, of a [`size`] for keys of so many words. If the memory is new, the table is made
    /// in it. `random` gives numbers that nobody can guess.
    ///
    /// # Errors
    /// Those of `random`.
    pub(crate) fn new<E>(
        memory: M,
        key_words: usize,
        mut random: impl FnMut() -> Result<u64, E>,
    ) -> Result<Self, E> {
        let generation = AtomicU32::new(random()? as u32);
        let places = 2 * most(key_words, memory.as_ref().len() / slot_words(key_words));
        let table = Self { memory, key_words, places, generation };
        if table.word(0).load(Ordering::Acquire) == 0 {
            for at in 1..=1 + 2 * key_words {
                table.word(at).store(random()?, Ordering::Relaxed);
            }
            table.word(0).store(places as u64, Ordering::Release);
        }
        Ok(table)
    }

    /// Words of a key.
    pub(crate) fn key_words(&self) -> usize {
        self.key_words
    }

    /// Writes the value of a key, which is not 0. False if there is no place for the key.
    pub(crate) fn set(&self, key: &[u64], new: u32) -> bool {
        if let Some((at, word)) = self.find(key) {
            self.value(at).store(word >> 32 << 32 | u64::from(new), Ordering::Release);
            return true;
        }
        let place = self.place(key.iter().copied());
        let free = self.make_room(home(place));
        if let Some(at) = free {
            // Before the key is there: who finds it here has to find it there.
            let (word, bit) = self.sieve(place);
            word.fetch_or(bit, Ordering::Release);
            self.fill(at, key.iter().copied(), new);
        }
        free.is_some()
    }

    /// Removes a key, if it is there.
    pub(crate) fn remove(&self, key: &[u64]) {
        let Some((mut hole, _)) = self.find(key) else { return };
        let place = self.place(key.iter().copied());
        self.vacate(hole);
        // Those behind it that were kept from their places move up.
        for at in hole + 1..self.slots() {
            let word = self.value(at).load(Ordering::Relaxed);
            if word == 0 {
                break;
            }
            if is_entry(word) && self.home(self.key(at)) <= hole {
                self.fill(hole, self.key(at), word as u32);
                self.vacate(at);
                hole = at;
            }
        }
        self.value(hole).store(0, Ordering::Release);
        let mut others = self.entries_of(home(place));
        if !others.any(|at| self.place(self.key(at)) == place) {
            let (word, bit) = self.sieve(place);
            word.fetch_and(!bit, Ordering::Release);
        }
    }

    /// Removes all keys.
    pub(crate) fn clear(&self) {
        (HEADER..self.slots()).for_each(|at| self.value(at).store(0, Ordering::Release));
        let sieve = self.slots() * slot_words(self.key_words)..self.memory.as_ref().len();
        sieve.for_each(|at| self.word(at).store(0, Ordering::Release));
    }

    /// The slot of a key, and the word behind the key.
    fn find(&self, key: &[u64]) -> Option<(usize, u64)> {
        let mut slots = self.entries_of(home(self.place(key.iter().copied())));
        let found = slots.find(|at| self.key(*at).eq(key.iter().copied()))?;
        Some((found, self.value(found).load(Ordering::Relaxed)))
    }

    /// The slots of all entries that keys with this home may be among.
    fn entries_of(&self, home: usize) -> impl Iterator<Item = usize> {
        let slots = (home..home + WINDOW).map(|at| (at, self.value(at).load(Ordering::Relaxed)));
        let slots = slots.take_while(|(_, word)| *word != 0);
        slots.filter(|(_, word)| is_entry(*word)).map(|(at, _)| at)
    }

    /// A slot without an entry where a key with this home may be. If there is none near enough, others make room,
    /// as far as they may be elsewhere.
    fn make_room(&self, home: usize) -> Option<usize> {
        let load = |at: usize| self.value(at).load(Ordering::Relaxed);
        let mut free = (home..self.slots()).take(MOST_LOOKS).find(|at| !is_entry(load(*at)))?;
        let mut moves = Vec::new();
        while free >= home + WINDOW {
            let mut nearer = free + 1 - WINDOW..free;
            let moved = nearer.find(|at| self.home(self.key(*at)) + WINDOW > free)?;
            moves.push((moved, free));
            free = moved;
        }
        // Not before it is known that there is room: a slot that is left and gets no other entry still has the key, and
        // programs that find it there do not look where the key is now.
        for (from, to) in moves {
            self.fill(to, self.key(from), load(from) as u32);
            self.vacate(from);
        }
        Some(free)
    }

    /// Writes an entry into a slot that has none.
    fn fill(&self, at: usize, key: impl Iterator<Item = u64>, new: u32) {
        let generation = self.generation.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        // The slot lost its value before it gets another key.
        fence(Ordering::Release);
        let first = at * slot_words(self.key_words);
        (first..).zip(key).for_each(|(at, word)| self.word(at).store(word, Ordering::Relaxed));
        let word = u64::from(generation) << 32 | u64::from(new);
        self.value(at).store(word, Ordering::Release);
    }

    /// Takes the value from a slot; what is behind it is still found.
    fn vacate(&self, at: usize) {
        self.value(at).store(VACANT, Ordering::Release);
    }

    /// The first slot where a key may be.
    fn home(&self, key: impl Iterator<Item = u64>) -> usize {
        home(self.place(key))
    }

    /// The bit of a key in the sieve.
    fn place(&self, key: impl Iterator<Item = u64>) -> usize {
        let secret = |at: usize| self.word(at).load(Ordering::Relaxed);
        let product = |(at, word): (usize, u64)| {
            let low = secret(at).wrapping_add(word & u64::from(u32::MAX));
            let high = secret(at + 1).wrapping_add(word >> 32);
            low.wrapping_mul(high)
        };
        let hash = (2..).step_by(2).zip(key).map(product).fold(secret(1), u64::wrapping_add);
        let hash = u64::from(stir((hash >> 32) as u32));
        ((hash * (self.places * SIEVE_BITS) as u64) >> 32) as usize
    }

    /// The word of the sieve that has this bit, and the bit.
    fn sieve(&self, place: usize) -> (&AtomicU64, u64) {
        let slot_words = slot_words(self.key_words);
        let (word, words) = (place / 64, sieve_words(slot_words));
        let at = (self.slots() + word / words) * slot_words + word % words;
        (self.word(at), 1 << (place % 64))
    }

    /// One behind the last slot that may hold an entry.
    fn slots(&self) -> usize {
        HEADER + self.places + WINDOW
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        &self.memory.as_ref()[at]
    }

    /// The word behind the key of a slot.
    fn value(&self, at: usize) -> &AtomicU64 {
        self.word(at * slot_words(self.key_words) + self.key_words)
    }

    /// The key in a slot.
    fn key(&self, at: usize) -> impl Iterator<Item = u64> {
        let first = at * slot_words(self.key_words);
        (first..first + self.key_words).map(|at| self.word(at).load(Ordering::Relaxed))
    }
}

/// Another number for each, neighbours far from each other: `open_table_stir`. What the highest bits become is what counts.
const fn stir(hash: u32) -> u32 {
    let hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35)
}

/// The first slot where a key with this bit in the sieve may be.
const fn home(place: usize) -> usize {
    HEADER + place / SIEVE_BITS
}

#[cfg(test)]
#[path = "open_table_tests.rs"]
mod tests;
