//! Secrets, keys and tickets, from a seed of the kernel.
//!
//! They are the blocks of SHA-256 in counter mode over a secret seed: nobody who has seen some can
//! tell others. One seed gives the same again, so that a simulated node can be replayed.

use sha2::{Digest, Sha256};

use crate::frame::{KEY_LEN, Key, Secret};

/// A source of secrets; see the module's text.
pub struct Secrets {
    seed: [u8; 32],
    counter: u64,
}

impl Secrets {
    /// The source that a seed of random bytes is.
    #[must_use]
    pub fn new(seed: [u8; 32]) -> Self {
        Self { seed, counter: 0 }
    }

    /// A secret that there was not yet.
    pub fn secret(&mut self) -> Secret {
        self.counter += 1;
        Sha256::new()
            .chain_update(b"weft secret")
            .chain_update(self.seed)
            .chain_update(self.counter.to_le_bytes())
            .finalize()
            .into()
    }

    /// A key or ticket that there was not yet.
    pub fn key(&mut self) -> Key {
        let mut key = [0; KEY_LEN];
        key.copy_from_slice(&self.secret()[..KEY_LEN]);
        key
    }

    /// A number that cannot be guessed.
    pub fn number(&mut self) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.secret()[..8]);
        u64::from_le_bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_follow_from_the_seed() {
        let (mut one, mut same, mut other) =
            (Secrets::new([1; 32]), Secrets::new([1; 32]), Secrets::new([2; 32]));
        let (first, second) = (one.key(), one.key());
        assert_ne!(first, second);
        assert_eq!((same.key(), same.key()), (first, second));
        assert_ne!(other.key(), first);
    }
}
