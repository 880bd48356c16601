//! Ed25519 identities: key files and 160-bit key hashes.
//!
//! Reference: RFC 8032 (Ed25519), RFC 8410 (its keys in PKIX), RFC 5958 (PKCS #8), RFC 7468 (PEM);
//! for key hashes as identifiers of hosts and domains, Machado et al., "Linux XIA: An Interoperable
//! Meta Network Architecture to Crowdsource the Future Internet" (ANCS 2015), and Andersen et al.,
//! "Accountable Internet Protocol (AIP)" (SIGCOMM 2008).
//!
//! An identity is a [`PrivateKey`]. Its [`PublicKey`] can be given to everybody; the [`KeyHash`] of
//! that, 160 bits, is the name under which others know its holder. A name can thus be checked by
//! anyone who has the public key, without an authority.
//!
//! Everything is pure, except the two edges [`mod@file`] and [`PrivateKey::generate`].
//!
//! ```
//! use weft_keys::{KeyHash, PrivateKey, PublicKey};
//! let private = PrivateKey::from_seed([7; 32]);
//! let public = private.public_key();
//! let name: KeyHash = public.hash();
//!
//! // Somebody who knows the name alone gets the public key and a signed message.
//! let received = PublicKey::from_spki_pem(&public.to_spki_pem()).unwrap();
//! assert_eq!(received.hash(), name);
//! assert!(received.verify(b"message", &private.sign(b"message")).is_ok());
//! ```

pub mod file;

mod encoding;
mod error;
mod hash;
mod private;
mod public;
mod random;
mod shared;

pub use error::KeyError;
pub use file::FileError;
pub use hash::{KeyHash, ParseKeyHashError};
pub use private::PrivateKey;
pub use public::{PublicKey, Signature};
pub use random::RandomError;
pub use shared::SharedSecret;
