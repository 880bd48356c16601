//! What can be wrong with a key or a signature.

/// An encoded key that is unusable, or a signature that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// No PEM text (RFC 7468).
    #[error(
        "the text is not a key in PEM form ({0}): expected `-----BEGIN {1}-----` and base64 lines"
    )]
    Pem(pem_rfc7468::Error, &'static str),
    /// PEM of something else.
    #[error("the PEM text holds a `{found}`: a `{expected}` is needed here")]
    Label {
        /// The label found.
        found: String,
        /// The label needed.
        expected: &'static str,
    },
    /// Not the private key of Ed25519 in an accepted encoding.
    #[error(
        "the private key is not an unencrypted Ed25519 key in PKCS #8: make one with `openssl genpkey -algorithm ed25519`"
    )]
    NotEd25519Private,
    /// Not the public key of Ed25519 in its only encoding.
    #[error(
        "the public key is not an Ed25519 key in SubjectPublicKeyInfo form: extract it with `openssl pkey -pubout` from an Ed25519 private key"
    )]
    NotEd25519Public,
    /// The public key that accompanies the private key is the key of another one.
    #[error("the file's private key and public key do not belong together: restore it from a copy")]
    Mismatch,
    /// The bytes are no point of the curve, or one of small order, for which anyone can sign.
    #[error("the public key is no valid point of the curve: ask its owner for it again")]
    InvalidPoint,
    /// The signature is not of this message by this key.
    #[error("the signature does not fit the message and the public key: do not trust the message")]
    BadSignature,
}
