//! The DER and PEM forms of keys. For Ed25519 all lengths are fixed, so that the DER forms are
//! constant prefixes before the key.
//!
//! ```text
//! SubjectPublicKeyInfo: 30 2a  30 05 06 03 2b 65 70             AlgorithmIdentifier { 1.3.101.112 }
//!                              03 21 00 <32 bytes>              public key
//! PKCS #8, version 1:   30 2e  02 01 00  30 05 06 03 2b 65 70  04 22 04 20 <32 bytes>
//! PKCS #8, version 2:   30 51  02 01 01  30 05 06 03 2b 65 70  04 22 04 20 <32 bytes>
//!                              81 21 00 <32 bytes>              public key
//! ```
//! Reference: RFC 8410 §4 and §7, RFC 5958 §2, RFC 7468 §10 and §13.

use pem_rfc7468::LineEnding;
use zeroize::Zeroizing;

use crate::KeyError;

/// Length of a seed and of a public key.
pub(crate) const KEY_LEN: usize = 32;
/// Length of a public key in DER form.
pub(crate) const SPKI_LEN: usize = SPKI_PREFIX.len() + KEY_LEN;
const PKCS8_LEN: usize = PKCS8_V1_PREFIX.len() + KEY_LEN;

const SPKI_PREFIX: [u8; 12] =
    [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
const PKCS8_V1_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
const PKCS8_V2_PREFIX: [u8; 16] = [
    0x30, 0x51, 0x02, 0x01, 0x01, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
const PKCS8_V2_PUBLIC_PREFIX: [u8; 3] = [0x81, 0x21, 0x00];

const PRIVATE_LABEL: &str = "PRIVATE KEY";
const PUBLIC_LABEL: &str = "PUBLIC KEY";

/// The largest content that is decoded: larger than any key of interest, so that a key of another
/// algorithm is recognised as such.
const MAX_CONTENT: usize = 8192;

/// What a PKCS #8 file holds.
pub(crate) struct PrivateContent {
    pub(crate) seed: Zeroizing<[u8; KEY_LEN]>,
    /// Only version 2 has it.
    pub(crate) public: Option<[u8; KEY_LEN]>,
}

pub(crate) fn spki_der(public: &[u8; KEY_LEN]) -> [u8; SPKI_LEN] {
    let mut der = [0; SPKI_LEN];
    let (prefix, key) = der.split_at_mut(SPKI_PREFIX.len());
    prefix.copy_from_slice(&SPKI_PREFIX);
    key.copy_from_slice(public);
    der
}

pub(crate) fn public_from_spki_der(der: &[u8]) -> Result<[u8; KEY_LEN], KeyError> {
    der.strip_prefix(&SPKI_PREFIX)
        .and_then(|key| key.try_into().ok())
        .ok_or(KeyError::NotEd25519Public)
}

pub(crate) fn spki_pem(public: &[u8; KEY_LEN]) -> String {
    encode_pem(PUBLIC_LABEL, &spki_der(public))
}

pub(crate) fn public_from_spki_pem(pem: &[u8]) -> Result<[u8; KEY_LEN], KeyError> {
    public_from_spki_der(&decode_pem(PUBLIC_LABEL, pem)?)
}

pub(crate) fn pkcs8_pem(seed: &[u8; KEY_LEN]) -> Zeroizing<String> {
    let mut der = Zeroizing::new([0; PKCS8_LEN]);
    let (prefix, key) = der.split_at_mut(PKCS8_V1_PREFIX.len());
    prefix.copy_from_slice(&PKCS8_V1_PREFIX);
    key.copy_from_slice(seed);
    Zeroizing::new(encode_pem(PRIVATE_LABEL, der.as_slice()))
}

pub(crate) fn private_from_pkcs8_pem(pem: &[u8]) -> Result<PrivateContent, KeyError> {
    private_from_pkcs8_der(&decode_pem(PRIVATE_LABEL, pem)?).ok_or(KeyError::NotEd25519Private)
}

fn private_from_pkcs8_der(der: &[u8]) -> Option<PrivateContent> {
    let (prefix, rest) = der.split_first_chunk()?;
    let (seed, rest) = rest.split_first_chunk()?;
    let public = match (*prefix, rest) {
        (PKCS8_V1_PREFIX, []) => None,
        (PKCS8_V2_PREFIX, rest) => {
            Some(rest.strip_prefix(&PKCS8_V2_PUBLIC_PREFIX)?.try_into().ok()?)
        }
        _ => return None,
    };
    Some(PrivateContent { seed: Zeroizing::new(*seed), public })
}

/// Keys are short, so that all of the text fits the buffer that the library makes at first, and no
/// copy of a secret stays behind.
fn encode_pem(label: &str, der: &[u8]) -> String {
    pem_rfc7468::encode_string(label, LineEnding::LF, der)
        .expect("the label is valid and the length is small")
}

/// The content of a PEM text with this label. Text before it is skipped (RFC 7468 §2).
fn decode_pem(label: &'static str, pem: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let mut buffer = Zeroizing::new(vec![0; MAX_CONTENT]);
    let (found, length) = match pem_rfc7468::decode(pem, &mut buffer) {
        Ok((found, content)) => (found, content.len()),
        Err(error) => return Err(KeyError::Pem(error, label)),
    };
    if found != label {
        return Err(KeyError::Label { found: found.to_owned(), expected: label });
    }
    buffer.truncate(length);
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_in_the_prefixes_are_those_of_the_content() {
        assert_eq!(usize::from(SPKI_PREFIX[1]), SPKI_LEN - 2);
        assert_eq!(usize::from(PKCS8_V1_PREFIX[1]), PKCS8_LEN - 2);
        let version_2 = PKCS8_LEN + PKCS8_V2_PUBLIC_PREFIX.len() + KEY_LEN;
        assert_eq!(usize::from(PKCS8_V2_PREFIX[1]), version_2 - 2);
    }

    #[test]
    fn private_der_of_any_other_length_is_refused() {
        let version_1 = [PKCS8_V1_PREFIX.as_slice(), &[7; KEY_LEN]].concat();
        let version_2 =
            [PKCS8_V2_PREFIX.as_slice(), &[7; KEY_LEN], &PKCS8_V2_PUBLIC_PREFIX, &[8; KEY_LEN]]
                .concat();
        for whole in [version_1, version_2] {
            assert_eq!(*private_from_pkcs8_der(&whole).unwrap().seed, [7; KEY_LEN]);
            for length in 0..whole.len() {
                assert!(private_from_pkcs8_der(&whole[..length]).is_none(), "{length}");
            }
            assert!(private_from_pkcs8_der(&[whole.as_slice(), &[0]].concat()).is_none());
        }
    }

    #[test]
    fn public_der_of_any_other_length_is_refused() {
        let der = spki_der(&[7; KEY_LEN]);
        assert_eq!(public_from_spki_der(&der), Ok([7; KEY_LEN]));
        for length in 0..der.len() {
            assert_eq!(public_from_spki_der(&der[..length]), Err(KeyError::NotEd25519Public));
        }
        let longer = [der.as_slice(), &[0]].concat();
        assert_eq!(public_from_spki_der(&longer), Err(KeyError::NotEd25519Public));
    }
}
