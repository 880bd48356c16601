//! Random keys, from a seed of the kernel.
//!
//! The keys are the blocks of SHA-256 in counter mode over a secret seed: nobody who has seen some can
//! tell others. One seed gives the same keys again, so that a simulated Finder can be replayed.

use sha2::{Digest, Sha256};
use weft_xrl::frame::{KEY_LEN, Key};

pub(crate) struct Keys {
    seed: [u8; 32],
    counter: u64,
}

impl Keys {
    pub(crate) fn new(seed: [u8; 32]) -> Self {
        Self { seed, counter: 0 }
    }

    /// A key or ticket that there was not yet.
    pub(crate) fn key(&mut self) -> Key {
        self.counter += 1;
        let digest = Sha256::new()
            .chain_update(b"weft finder key")
            .chain_update(self.seed)
            .chain_update(self.counter.to_le_bytes())
            .finalize();
        let mut key = [0; KEY_LEN];
        key.copy_from_slice(&digest[..KEY_LEN]);
        key
    }

    /// A number for a session.
    pub(crate) fn session(&mut self) -> u64 {
        let key = self.key();
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&key[..8]);
        u64::from_le_bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_follow_from_the_seed() {
        let (mut one, mut same, mut other) =
            (Keys::new([1; 32]), Keys::new([1; 32]), Keys::new([2; 32]));
        let (first, second) = (one.key(), one.key());
        assert_ne!(first, second);
        assert_eq!((same.key(), same.key()), (first, second));
        assert_ne!(other.key(), first);
    }
}
