//! Private keys.

use std::fmt;

use ed25519_dalek::{Signer, SigningKey};
use zeroize::Zeroizing;

use crate::encoding::{self, KEY_LEN};
use crate::{KeyError, PublicKey, Signature};

/// An Ed25519 private key. Overwritten in memory when dropped; `Debug` shows the public part alone.
#[derive(Clone)]
pub struct PrivateKey(SigningKey);

impl PrivateKey {
    /// The length of the seed in bytes.
    pub const SEED_LEN: usize = KEY_LEN;

    /// The key that a seed of 32 random bytes determines (RFC 8032 §5.1.5).
    pub fn from_seed(seed: [u8; KEY_LEN]) -> Self {
        Self(SigningKey::from_bytes(&Zeroizing::new(seed)))
    }

    /// The seed that determines the key, for handing it to a process that may use it.
    pub fn seed(&self) -> Zeroizing<[u8; KEY_LEN]> {
        Zeroizing::new(self.0.to_bytes())
    }

    /// The public part.
    pub fn public_key(&self) -> PublicKey {
        PublicKey::from_verifying_key(self.0.verifying_key())
    }

    /// Signs a message. The same message gets the same signature (RFC 8032 §5.1.6).
    pub fn sign(&self, message: &[u8]) -> Signature {
        Signature::from_bytes(self.0.sign(message).to_bytes())
    }

    /// The key of the library.
    pub(crate) fn signing_key(&self) -> &SigningKey {
        &self.0
    }

    /// From an unencrypted `PRIVATE KEY` in PEM form: PKCS #8 (RFC 5958) of version 1, or of version
    /// 2 with the public key and without attributes.
    ///
    /// # Errors
    /// [`KeyError::Pem`], [`KeyError::Label`], [`KeyError::NotEd25519Private`], or
    /// [`KeyError::Mismatch`].
    pub fn from_pkcs8_pem(pem: impl AsRef<[u8]>) -> Result<Self, KeyError> {
        let content = encoding::private_from_pkcs8_pem(pem.as_ref())?;
        let key = Self(SigningKey::from_bytes(&content.seed));
        match content.public {
            Some(public) if public != key.public_key().to_bytes() => Err(KeyError::Mismatch),
            _ => Ok(key),
        }
    }

    /// A `PRIVATE KEY` in PEM form: PKCS #8 version 1, as OpenSSL writes it.
    pub fn to_pkcs8_pem(&self) -> Zeroizing<String> {
        encoding::pkcs8_pem(self.0.as_bytes())
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey(of {})", self.public_key().hash())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 8410 §10.3, first example.
    const RFC_8410: &str = "-----BEGIN PRIVATE KEY-----\n\
        MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
        -----END PRIVATE KEY-----\n";
    /// The public key that RFC 8410 §10.1 gives for it.
    const RFC_8410_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\n\
        MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n\
        -----END PUBLIC KEY-----\n";

    fn hex<const N: usize>(text: &str) -> [u8; N] {
        assert_eq!(text.len(), 2 * N);
        std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap())
    }

    #[test]
    fn keys_and_signatures_are_those_of_rfc_8032() {
        // RFC 8032 §7.1, TEST 1 and TEST 3.
        let vectors = [
            (
                "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
                "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
                &[][..],
                "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
            ),
            (
                "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
                "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
                &[0xaf, 0x82][..],
                "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
            ),
        ];
        for (seed, public, message, signature) in vectors {
            let key = PrivateKey::from_seed(hex(seed));
            let signature = Signature::from_bytes(hex(signature));
            assert_eq!(key.public_key().to_bytes(), hex(public));
            assert_eq!(key.sign(message), signature);
            assert_eq!(key.public_key().verify(message, &signature), Ok(()));
        }
    }

    #[test]
    fn pem_form_is_that_of_rfc_8410() {
        let key = PrivateKey::from_pkcs8_pem(RFC_8410).unwrap();
        assert_eq!(key.public_key().to_spki_pem(), RFC_8410_PUBLIC);
        assert_eq!(key.to_pkcs8_pem().as_str(), RFC_8410);
    }

    #[test]
    fn version_2_is_read_if_both_keys_belong_together() {
        let version_2 = |public: [u8; 32]| {
            let seed = PrivateKey::from_pkcs8_pem(RFC_8410).unwrap().0.to_bytes();
            let der = [
                &hex::<16>("3051020101300506032b657004220420")[..],
                &seed,
                &hex::<3>("812100"),
                &public,
            ]
            .concat();
            pem_rfc7468::encode_string("PRIVATE KEY", pem_rfc7468::LineEnding::LF, &der).unwrap()
        };
        let public = PublicKey::from_spki_pem(RFC_8410_PUBLIC).unwrap();
        let key = PrivateKey::from_pkcs8_pem(version_2(public.to_bytes())).unwrap();
        assert_eq!(key.public_key(), public);
        let mismatch = PrivateKey::from_pkcs8_pem(version_2([1; 32]));
        assert_eq!(mismatch.unwrap_err(), KeyError::Mismatch);
    }

    #[test]
    fn other_pem_texts_are_refused_with_the_reason() {
        let parse = |text: &str| PrivateKey::from_pkcs8_pem(text).unwrap_err();
        let label = parse(&RFC_8410.replace("PRIVATE", "ENCRYPTED PRIVATE"));
        let found = "ENCRYPTED PRIVATE KEY".to_owned();
        assert_eq!(label, KeyError::Label { found, expected: "PRIVATE KEY" });
        assert!(matches!(parse(""), KeyError::Pem(..)));
        // The object identifier of X25519, 1.3.101.110, instead of that of Ed25519.
        assert_eq!(parse(&RFC_8410.replace("K2Vw", "K2Vu")), KeyError::NotEd25519Private);
    }

    #[test]
    fn debug_text_has_no_secret() {
        let key = PrivateKey::from_seed([0xab; 32]);
        assert_eq!(format!("{key:?}"), format!("PrivateKey(of {})", key.public_key().hash()));
    }

    proptest! {
        #[test]
        fn pem_form_round_trips(seed: [u8; 32]) {
            let pem = PrivateKey::from_seed(seed).to_pkcs8_pem();
            prop_assert_eq!(PrivateKey::from_pkcs8_pem(pem.as_bytes()).unwrap().0.to_bytes(), seed);
        }

        #[test]
        fn truncated_pem_is_an_error(seed: [u8; 32]) {
            let pem = PrivateKey::from_seed(seed).to_pkcs8_pem();
            for length in 0..pem.len() - 1 {
                prop_assert!(PrivateKey::from_pkcs8_pem(&pem[..length]).is_err(), "{}", length);
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = PrivateKey::from_pkcs8_pem(&bytes);
        }

        #[test]
        fn signature_fits_its_message_and_key_alone(
            seed: [u8; 32], other: [u8; 32],
            message in prop::collection::vec(any::<u8>(), 1..100),
            bit in 0usize..800,
        ) {
            prop_assume!(seed != other);
            let key = PrivateKey::from_seed(seed);
            let signature = key.sign(&message);
            prop_assert_eq!(key.public_key().verify(&message, &signature), Ok(()));
            let mut changed = message.clone();
            let at = bit % (8 * message.len());
            changed[at / 8] ^= 1 << (at % 8);
            let bad = Err(KeyError::BadSignature);
            prop_assert_eq!(key.public_key().verify(&changed, &signature), bad.clone());
            let stranger = PrivateKey::from_seed(other).public_key();
            prop_assert_eq!(stranger.verify(&message, &signature), bad);
        }
    }
}
