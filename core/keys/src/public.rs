//! Public keys and signatures.

use std::fmt;

use ed25519_dalek::VerifyingKey;

use crate::encoding::{self, KEY_LEN, SPKI_LEN};
use crate::{KeyError, KeyHash};

/// An Ed25519 public key, never one of small order (for those, anyone can sign).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// The length of the raw form in bytes.
    pub const LEN: usize = KEY_LEN;
    /// The length of the DER form in bytes.
    pub const SPKI_DER_LEN: usize = SPKI_LEN;

    /// From the raw form (RFC 8032 §5.1.5).
    ///
    /// # Errors
    /// [`KeyError::InvalidPoint`].
    pub fn from_bytes(bytes: &[u8; KEY_LEN]) -> Result<Self, KeyError> {
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| KeyError::InvalidPoint)?;
        if key.is_weak() { Err(KeyError::InvalidPoint) } else { Ok(Self(key)) }
    }

    /// The raw form.
    pub fn to_bytes(&self) -> [u8; KEY_LEN] {
        self.0.to_bytes()
    }

    /// From SubjectPublicKeyInfo in DER form (RFC 8410 §4).
    ///
    /// # Errors
    /// [`KeyError::NotEd25519Public`] or [`KeyError::InvalidPoint`].
    pub fn from_spki_der(der: &[u8]) -> Result<Self, KeyError> {
        Self::from_bytes(&encoding::public_from_spki_der(der)?)
    }

    /// SubjectPublicKeyInfo in DER form.
    pub fn to_spki_der(&self) -> [u8; SPKI_LEN] {
        encoding::spki_der(self.0.as_bytes())
    }

    /// From a `PUBLIC KEY` in PEM form (RFC 7468 §13).
    ///
    /// # Errors
    /// [`KeyError::Pem`], [`KeyError::Label`], and those of [`PublicKey::from_spki_der`].
    pub fn from_spki_pem(pem: impl AsRef<[u8]>) -> Result<Self, KeyError> {
        Self::from_bytes(&encoding::public_from_spki_pem(pem.as_ref())?)
    }

    /// A `PUBLIC KEY` in PEM form.
    pub fn to_spki_pem(&self) -> String {
        encoding::spki_pem(self.0.as_bytes())
    }

    /// The name of the key's holder: the hash of the DER form.
    pub fn hash(&self) -> KeyHash {
        KeyHash::of_spki_der(&self.to_spki_der())
    }

    /// Checks that the holder of the private key signed the message. Malleable forms of signatures
    /// (RFC 8032 §8.4) are refused.
    ///
    /// # Errors
    /// [`KeyError::BadSignature`].
    pub fn verify(&self, message: &[u8], signature: &Signature) -> Result<(), KeyError> {
        let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
        self.0.verify_strict(message, &signature).map_err(|_| KeyError::BadSignature)
    }

    /// The key of the library.
    pub(crate) fn verifying_key(&self) -> &VerifyingKey {
        &self.0
    }

    /// From the key of the library. Keys derived from a seed are never of small order.
    pub(crate) fn from_verifying_key(key: VerifyingKey) -> Self {
        Self(key)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.hash())
    }
}

/// An Ed25519 signature: 64 bytes, to be sent as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature([u8; Signature::LEN]);

impl Signature {
    /// The length in bytes.
    pub const LEN: usize = 64;

    /// From bytes received; any bytes are accepted and checked by [`PublicKey::verify`].
    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    pub const fn to_bytes(self) -> [u8; Self::LEN] {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PrivateKey;
    use proptest::prelude::*;

    /// RFC 8410 §10.1.
    const RFC_8410: &str = "-----BEGIN PUBLIC KEY-----\n\
        MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n\
        -----END PUBLIC KEY-----\n";

    #[test]
    fn pem_form_is_that_of_rfc_8410() {
        let key = PublicKey::from_spki_pem(RFC_8410).unwrap();
        assert_eq!(key.to_bytes()[..4], [0x19, 0xbf, 0x44, 0x09]);
        assert_eq!(key.to_spki_pem(), RFC_8410);
    }

    #[test]
    fn hash_covers_the_whole_der_form() {
        // `openssl pkey -pubin -outform DER | sha256sum` of the key of RFC 8410 §10.1.
        let key = PublicKey::from_spki_pem(RFC_8410).unwrap();
        assert_eq!(key.hash().to_string(), "a1e9156054e04fac899ae9f275132cdc07a5dbc4");
    }

    #[test]
    fn points_of_small_order_are_refused() {
        let mut identity = [0; 32];
        identity[0] = 1;
        for bytes in [identity, [0; 32]] {
            assert_eq!(PublicKey::from_bytes(&bytes), Err(KeyError::InvalidPoint));
        }
    }

    #[test]
    fn bytes_off_the_curve_are_refused() {
        let mut bytes = [0; 32];
        bytes[0] = 2;
        assert_eq!(PublicKey::from_bytes(&bytes), Err(KeyError::InvalidPoint));
    }

    #[test]
    fn other_pem_texts_are_refused_with_the_reason() {
        let parse = |text: &str| PublicKey::from_spki_pem(text).unwrap_err();
        let label = parse(&RFC_8410.replace("PUBLIC", "PRIVATE"));
        let found = "PRIVATE KEY".to_owned();
        assert_eq!(label, KeyError::Label { found, expected: "PUBLIC KEY" });
        assert!(matches!(parse(""), KeyError::Pem(..)));
        assert!(matches!(parse(&RFC_8410.replace("MCow", "MC!w")), KeyError::Pem(..)));
        assert_eq!(parse(&RFC_8410.replace("MCow", "MCox")), KeyError::NotEd25519Public);
    }

    proptest! {
        #[test]
        fn der_and_pem_forms_round_trip(seed: [u8; 32]) {
            let key = PrivateKey::from_seed(seed).public_key();
            prop_assert_eq!(PublicKey::from_spki_der(&key.to_spki_der()), Ok(key));
            prop_assert_eq!(PublicKey::from_spki_pem(key.to_spki_pem()), Ok(key));
            prop_assert_eq!(PublicKey::from_bytes(&key.to_bytes()), Ok(key));
        }

        #[test]
        fn truncated_pem_is_an_error(seed: [u8; 32]) {
            let pem = PrivateKey::from_seed(seed).public_key().to_spki_pem();
            for length in 0..pem.len() - 1 {
                prop_assert!(PublicKey::from_spki_pem(&pem[..length]).is_err(), "{}", length);
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), raw: [u8; 32]) {
            let _ = PublicKey::from_spki_der(&bytes);
            let _ = PublicKey::from_spki_pem(&bytes);
            let _ = PublicKey::from_bytes(&raw);
        }

        #[test]
        fn arbitrary_signatures_are_refused(seed: [u8; 32], low: [u8; 32], high: [u8; 32]) {
            let mut bytes = [0; 64];
            bytes[..32].copy_from_slice(&low);
            bytes[32..].copy_from_slice(&high);
            let key = PrivateKey::from_seed(seed).public_key();
            let result = key.verify(b"message", &Signature::from_bytes(bytes));
            prop_assert_eq!(result, Err(KeyError::BadSignature));
        }
    }
}
