//! Secrets that two holders of keys share without a message, and tags made with them.
//!
//! Reference: RFC 7748 §6.1 (X25519; Ed25519 keys become its keys by the birational map of §4.1), RFC
//! 2104 (HMAC), RFC 6234 (with SHA-256).
//!
//! The secret of two keys is the same for ever. Whoever needs one for a session hashes something of
//! the session into it: [`SharedSecret::derive`].

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::encoding::KEY_LEN;
use crate::{PrivateKey, PublicKey};

/// The block of SHA-256, in bytes.
const BLOCK: usize = 64;

/// A secret of 256 bits that two nodes share; overwritten in memory when dropped.
#[derive(Clone)]
pub struct SharedSecret(Zeroizing<[u8; SharedSecret::LEN]>);

impl SharedSecret {
    /// The length in bytes.
    pub const LEN: usize = KEY_LEN;

    /// A secret that was agreed on in another way.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// A secret for one purpose: HMAC-SHA-256 of `context` with this one.
    #[must_use]
    pub fn derive(&self, context: &[u8]) -> Self {
        Self(Zeroizing::new(self.tag(context)))
    }

    /// HMAC-SHA-256 of a message; may be cut short.
    #[must_use]
    pub fn tag(&self, message: &[u8]) -> [u8; 32] {
        let keyed = |pad: u8| {
            let mut block = Zeroizing::new([pad; BLOCK]);
            block.iter_mut().zip(self.0.iter()).for_each(|(block, key)| *block ^= key);
            Sha256::new_with_prefix(&block[..])
        };
        let inner = keyed(0x36).chain_update(message).finalize();
        keyed(0x5c).chain_update(inner).finalize().into()
    }

    /// Whether `tag` is the beginning of a message's tag, and not empty; takes the same time wherever
    /// the first difference is.
    #[must_use]
    pub fn verify(&self, message: &[u8], tag: &[u8]) -> bool {
        let own = self.tag(message);
        let difference = own.iter().zip(tag).fold(0, |sum, (one, other)| sum | (one ^ other));
        (1..=own.len()).contains(&tag.len()) && std::hint::black_box(difference) == 0
    }
}

impl std::fmt::Debug for SharedSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedSecret(…)")
    }
}

impl PrivateKey {
    /// The secret that this key's holder and that of `other` share, and nobody else.
    #[must_use]
    pub fn agree(&self, other: &PublicKey) -> SharedSecret {
        let scalar = Zeroizing::new(self.signing_key().to_scalar_bytes());
        // A public key is never of small order, so that the secret is not the same for all.
        SharedSecret(Zeroizing::new(other.verifying_key().to_montgomery().mul_clamped(*scalar).0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn tags_are_those_of_rfc_4231() {
        // RFC 4231 §4.2 and §4.3, whose keys are shorter than 32 bytes: HMAC fills them with zeros.
        let secret = |key: &[u8]| {
            let mut bytes = [0; 32];
            bytes[..key.len()].copy_from_slice(key);
            SharedSecret::from_bytes(bytes)
        };
        assert_eq!(
            hex(&secret(&[0x0b; 20]).tag(b"Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        );
        assert_eq!(
            hex(&secret(b"Jefe").tag(b"what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn a_tag_may_be_cut_short_and_not_changed() {
        let secret = SharedSecret::from_bytes([7; 32]);
        let tag = secret.tag(b"message");
        assert!(secret.verify(b"message", &tag) && secret.verify(b"message", &tag[..16]));
        assert!(!secret.verify(b"message", &[]) && !secret.verify(b"messagf", &tag));
        assert!(!secret.verify(b"message", &[&tag[..], &[0]].concat()));
        for bit in 0..128 {
            let mut other = tag;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!secret.verify(b"message", &other[..16]));
        }
    }

    #[test]
    fn debug_text_has_no_secret() {
        assert_eq!(format!("{:?}", SharedSecret::from_bytes([7; 32])), "SharedSecret(…)");
    }

    proptest! {
        #[test]
        fn two_share_what_a_third_does_not(one: [u8; 32], other: [u8; 32], third: [u8; 32]) {
            prop_assume!(one != other && other != third && one != third);
            let keys = [one, other, third].map(PrivateKey::from_seed);
            let public = keys.each_ref().map(PrivateKey::public_key);
            let shared = keys[0].agree(&public[1]);
            prop_assert_eq!(&shared.0, &keys[1].agree(&public[0]).0);
            prop_assert_ne!(&shared.0, &keys[2].agree(&public[0]).0);
            prop_assert_ne!(&shared.derive(b"one").0, &shared.derive(b"other").0);
        }
    }
}
