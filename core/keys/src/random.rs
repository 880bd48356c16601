//! New keys from the randomness of the operating system. An edge: nothing else here draws any.

use zeroize::Zeroizing;

use crate::PrivateKey;

/// The operating system gave no randomness.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no random bytes for a new key from the operating system ({0}): check that getrandom(2) is permitted"
)]
pub struct RandomError(getrandom::Error);

impl PrivateKey {
    /// A new key from a seed of the operating system.
    ///
    /// # Errors
    /// The operating system gave no randomness.
    pub fn generate() -> Result<Self, RandomError> {
        let mut seed = Zeroizing::new([0; Self::SEED_LEN]);
        getrandom::fill(seed.as_mut_slice()).map_err(RandomError)?;
        Ok(Self::from_seed(*seed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_keys_differ() {
        let key = || PrivateKey::generate().unwrap().public_key();
        assert_ne!(key(), key());
    }
}
