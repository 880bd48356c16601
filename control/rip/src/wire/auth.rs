//! Authentication of RIP version 2.
//!
//! Reference: RFC 2453 §4.1 (passwords), RFC 4822 (keyed MD5 and HMAC-SHA). The entry in front says what is used, a
//! trailer behind the last entry has the digest, which covers everything in front of itself and the key.

use std::collections::BTreeMap;
use std::fmt;

use md5::Md5;
use sha1::Sha1;
use sha2::digest::Digest;
use sha2::{Sha256, Sha384, Sha512};

use super::WireError;
use super::v2::{AUTH, ENTRY};

const HEADER: usize = 4;
/// Of an entry with a password (RFC 2453 §4.1), and of one with a digest (RFC 4822 §2.1).
const PASSWORD: u16 = 2;
const DIGEST: u16 = 3;
/// In front of the digest (RFC 4822 §2.1).
const TRAILER: [u8; 4] = [0xff, 0xff, 0x00, 0x01];
/// How long a password is, and a key of MD5.
pub const PASSWORD_LENGTH: usize = 16;
/// What stands in place of a digest of HMAC while that is computed (RFC 4822 §2.5).
const APAD: [u8; 4] = [0x87, 0x8f, 0xe1, 0xf3];

/// How messages are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    /// Keyed MD5 (RFC 4822 §2.4, RFC 2082).
    Md5,
    /// HMAC with SHA-1.
    Sha1,
    /// HMAC with SHA-256.
    Sha256,
    /// HMAC with SHA-384.
    Sha384,
    /// HMAC with SHA-512.
    Sha512,
}

/// A secret, which is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// One of these bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The authentication of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    /// None: messages with authentication are refused, too (RFC 2453 §4.1).
    None,
    /// A password in each message.
    Password(Secret),
    /// Digests.
    Keys {
        /// The keys that are accepted, by their numbers.
        keys: BTreeMap<u8, (Algorithm, Secret)>,
        /// The one that signs.
        signs: u8,
    },
}

/// What has signed a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The number of the key.
    pub key: u8,
    /// The sequence number: a neighbour's never falls (RFC 4822 §3.2.2).
    pub sequence: u32,
}

impl Algorithm {
    /// How long its digests are, in bytes.
    fn length(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    /// The digest of a message without its trailer.
    fn digest(self, message: &[u8], Secret(secret): &Secret) -> Vec<u8> {
        match self {
            Self::Md5 => {
                let mut key = [0; PASSWORD_LENGTH];
                key.iter_mut().zip(secret).for_each(|(to, from)| *to = *from);
                Md5::new()
                    .chain_update(message)
                    .chain_update(TRAILER)
                    .chain_update(key)
                    .finalize()
                    .to_vec()
            }
            Self::Sha1 => self.hmac::<Sha1, 64>(message, secret),
            Self::Sha256 => self.hmac::<Sha256, 64>(message, secret),
            Self::Sha384 => self.hmac::<Sha384, 128>(message, secret),
            Self::Sha512 => self.hmac::<Sha512, 128>(message, secret),
        }
    }

    /// RFC 4822 §2.5: HMAC (RFC 2104), but that a key longer than a digest is hashed before. `BLOCK` is the block
    /// length of the hash.
    fn hmac<H: Digest, const BLOCK: usize>(self, message: &[u8], secret: &[u8]) -> Vec<u8> {
        let hashed = (secret.len() > self.length()).then(|| H::digest(secret).to_vec());
        let mut key = [0; BLOCK];
        let secret = hashed.as_deref().unwrap_or(secret);
        key.iter_mut().zip(secret).for_each(|(to, from)| *to = *from);
        let apad: Vec<u8> = APAD.iter().copied().cycle().take(self.length()).collect();
        let inner = H::new()
            .chain_update(key.map(|byte| byte ^ 0x36))
            .chain_update(message)
            .chain_update(TRAILER)
            .chain_update(apad)
            .finalize();
        H::new().chain_update(key.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().to_vec()
    }
}

/// Whether two digests are the same, in a time that does not depend on where they differ.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && differences == 0
}

/// Checks the authentication of a message; its entries without it.
pub(super) fn check<'a>(
    bytes: &'a [u8],
    auth: &Auth,
) -> Result<(&'a [u8], Option<Signed>), WireError> {
    let (_, body) = bytes.split_first_chunk::<HEADER>().ok_or(WireError::Length(bytes.len()))?;
    let first = body.first_chunk::<ENTRY>().filter(|entry| entry[..2] == AUTH.to_be_bytes());
    match (auth, first) {
        (Auth::None, None) => Ok((body, None)),
        (Auth::None, Some(_)) => Err(WireError::Auth("is not expected")),
        (_, None) => Err(WireError::Auth("is missing")),
        (Auth::Password(Secret(secret)), Some(entry)) => {
            let mut password = [0; PASSWORD_LENGTH];
            password.iter_mut().zip(secret).for_each(|(to, from)| *to = *from);
            if entry[2..4] != PASSWORD.to_be_bytes() {
                return Err(WireError::Auth("is of another kind"));
            }
            match is_same(&entry[4..], &password) {
                true => Ok((&body[ENTRY..], None)),
                false => Err(WireError::Auth("has another password")),
            }
        }
        (Auth::Keys { keys, .. }, Some(entry)) => check_digest(bytes, entry, keys),
    }
}

fn check_digest<'a>(
    bytes: &'a [u8],
    entry: &[u8; ENTRY],
    keys: &BTreeMap<u8, (Algorithm, Secret)>,
) -> Result<(&'a [u8], Option<Signed>), WireError> {
    let [_, _, k0, k1, l0, l1, key, length, s0, s1, s2, s3, ..] = *entry;
    if u16::from_be_bytes([k0, k1]) != DIGEST {
        return Err(WireError::Auth("is of another kind"));
    }
    let (algorithm, secret) = keys.get(&key).ok_or(WireError::Auth("has an unknown key"))?;
    // Old implementations count the four bytes in front of the digest, too.
    let expected = [algorithm.length(), algorithm.length() + TRAILER.len()];
    if !expected.contains(&usize::from(length)) {
        return Err(WireError::Auth("has a digest of another length"));
    }
    let end = usize::from(u16::from_be_bytes([l0, l1]));
    let trailer = bytes.get(end..).filter(|_| end >= HEADER + ENTRY);
    let digest = trailer.and_then(|trailer| trailer.strip_prefix(&TRAILER));
    let digest = digest.filter(|digest| digest.len() == algorithm.length());
    let digest = digest.ok_or(WireError::Auth("has no digest where it should be"))?;
    if !is_same(&algorithm.digest(&bytes[..end], secret), digest) {
        return Err(WireError::Auth("has a wrong digest"));
    }
    let signed = Signed { key, sequence: u32::from_be_bytes([s0, s1, s2, s3]) };
    Ok((&bytes[HEADER + ENTRY..end], Some(signed)))
}

/// Puts the entry with the authentication in front; where that has the length of the message.
pub(super) fn begin(bytes: &mut Vec<u8>, auth: &Auth, sequence: u32) -> usize {
    if *auth == Auth::None {
        return 0;
    }
    bytes.extend(AUTH.to_be_bytes());
    let place = bytes.len() + 2;
    match auth {
        Auth::None => {}
        Auth::Password(Secret(secret)) => {
            bytes.extend(PASSWORD.to_be_bytes());
            let mut password = [0; PASSWORD_LENGTH];
            password.iter_mut().zip(secret).for_each(|(to, from)| *to = *from);
            bytes.extend(password);
        }
        Auth::Keys { keys, signs } => {
            bytes.extend(DIGEST.to_be_bytes());
            // No digest is longer.
            let length = keys.get(signs).map_or(0, |(algorithm, _)| algorithm.length() as u8);
            bytes.extend([0, 0, *signs, length]);
            bytes.extend(sequence.to_be_bytes());
            bytes.extend([0; 8]);
        }
    }
    place
}

/// Puts the trailer behind a message that is finished otherwise.
pub(super) fn sign(bytes: &mut Vec<u8>, auth: &Auth, place: usize) {
    let Auth::Keys { keys, signs } = auth else { return };
    let Some((algorithm, secret)) = keys.get(signs) else { return };
    // No message is longer than 24 entries.
    let length = (bytes.len() as u16).to_be_bytes();
    bytes[place..place + 2].copy_from_slice(&length);
    let digest = algorithm.digest(bytes, secret);
    bytes.extend(TRAILER);
    bytes.extend(digest);
}
