//! Hashing of keys that strangers choose.
//!
//! Whoever can send packets chooses what ends up in the tables of a router. With a hash that is known,
//! or keyed in one place only, he finds keys that all fall on the same place. [`KeyedHash`] multiplies
//! words to twice their width and folds the halves together, as wyhash and foldhash do, but every factor
//! is masked by a secret word of its own: those leave a constant as one of the factors, and a word equal
//! to that constant makes the product zero, whatever the other word is.
//!
//! It is no cryptographic hash. It holds against senders who do not see hashes; a table whose probes
//! grow long nevertheless can take another key.

use std::hash::{BuildHasher, Hasher};

use crate::Random;

/// A secret key, and the hash that it makes.
///
/// ```
/// use std::collections::HashMap;
/// use weft_base::{KeyedHash, Random};
///
/// let mut table = HashMap::with_hasher(KeyedHash::new(&mut Random::from_seed(1)));
/// table.insert([1_u64, 2, 3], "from a stranger");
/// assert!(table.contains_key(&[1, 2, 3]));
/// ```
#[derive(Clone, Copy)]
pub struct KeyedHash {
    words: [u64; 4],
}

impl KeyedHash {
    /// A key of random words.
    #[must_use]
    pub fn new(random: &mut Random) -> Self {
        Self { words: std::array::from_fn(|_| random.number()) }
    }

    /// The hash of nothing, to begin with.
    #[must_use]
    #[inline]
    pub fn start(&self) -> u64 {
        self.words[0]
    }

    /// Takes three words into a hash. Their product does not wait for the hash so far, so the hashes of
    /// long keys overlap.
    #[must_use]
    #[inline]
    pub fn mix(&self, hash: u64, [a, b, c]: [u64; 3]) -> u64 {
        fold(hash ^ fold(a ^ self.words[1], b ^ self.words[2]), c ^ self.words[3])
    }
}

impl std::fmt::Debug for KeyedHash {
    /// Without the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyedHash")
    }
}

/// The product of 128 bits, its halves folded together.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ (product >> 64) as u64
}

impl BuildHasher for KeyedHash {
    type Hasher = KeyedHasher;

    #[inline]
    fn build_hasher(&self) -> KeyedHasher {
        KeyedHasher { hash: self.words[0], key: self.words[1] }
    }
}

/// A hash in progress, for the collections of the standard library.
#[derive(Clone)]
pub struct KeyedHasher {
    hash: u64,
    key: u64,
}

impl Hasher for KeyedHasher {
    #[inline]
    fn write_u64(&mut self, word: u64) {
        // The hash so far is secret, and so is the key: neither factor is in the sender's hands.
        self.hash = fold(self.hash ^ word, self.key).rotate_left(23) ^ self.key;
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.write_u64(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        // The length tells zeros from nothing.
        self.write_u64(u64::from_le_bytes(last));
        self.write_u64(bytes.len() as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        fold(self.hash, self.key)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn hash(seed: u64) -> KeyedHash {
        KeyedHash::new(&mut Random::from_seed(seed))
    }

    /// Keys that differ in few bits, and keys made of words that other hashes have as constants.
    fn keys() -> Vec<[u64; 3]> {
        let mut keys: Vec<[u64; 3]> = (0..30_000).map(|n| [0x10 << 32, n, n << 7]).collect();
        let special = [0, u64::MAX, 0xa076_1d64_78bd_642f, 0x243f_6a88_85a3_08d3];
        keys.extend((1..10_000).flat_map(|n| special.map(|s| [n, s, s])));
        keys
    }

    #[test]
    fn low_and_high_bits_spread_evenly() {
        let key = hash(1);
        for shift in [0, 52] {
            let mut buckets = vec![0_u32; 4096];
            for words in keys() {
                buckets[(key.mix(key.start(), words) >> shift) as usize & 4095] += 1;
            }
            // 17 a bucket on average; a Poisson distribution has 45 once in 10^8 buckets.
            let most = buckets.iter().max().copied().unwrap_or(0);
            assert!(most < 45, "shift {shift}: {most}");
        }
    }

    #[test]
    fn the_key_and_the_order_of_words_matter() {
        let (one, two) = (hash(1), hash(2));
        let of = |key: &KeyedHash, words: &[[u64; 3]]| {
            words.iter().fold(key.start(), |hash, words| key.mix(hash, *words))
        };
        assert_ne!(of(&one, &[[1, 2, 3]]), of(&two, &[[1, 2, 3]]));
        assert_ne!(of(&one, &[[1, 2, 3], [4, 5, 6]]), of(&one, &[[4, 5, 6], [1, 2, 3]]));
        assert_ne!(of(&one, &[[0; 3]]), of(&one, &[[0; 3], [0; 3]]));
    }

    #[test]
    fn the_hasher_tells_contents_and_lengths_apart() {
        let key = hash(3);
        let hashes: HashSet<u64> = (0..40)
            .flat_map(|len| (0..2_u8).map(move |fill| vec![fill; len]))
            .map(|bytes| {
                let mut hasher = key.build_hasher();
                hasher.write(&bytes);
                hasher.finish()
            })
            .collect();
        // Of the two empty slices, one.
        assert_eq!(hashes.len(), 79);
    }

    #[test]
    fn the_secret_is_not_printed() {
        assert_eq!(format!("{:?}", hash(4)), "KeyedHash");
    }
}
