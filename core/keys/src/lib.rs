//! Ed25519 identities: key files and 160-bit key hashes.
