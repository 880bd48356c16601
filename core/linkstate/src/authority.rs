//! Who vouches for what a node says: signatures for the whole network, secrets between neighbours.
//!
//! The engine knows only [`Authority`]. [`Keys`] is the one for nodes that are named by the hash of an
//! Ed25519 key: the key goes with each signature, so that nobody has to know it beforehand, and nobody
//! can speak for a node whose key he does not have. RFC 2154 proposed signatures for OSPF, with
//! certificates, which such names make needless.

use weft_keys::{KeyHash, PrivateKey, PublicKey, SharedSecret, Signature};

use crate::ids::{Destination, NodeId};
use crate::wire::MAX_PROOF_LEN;

/// Proves what this node says, and checks what others say. Pure: equal calls, equal answers.
pub trait Authority {
    /// This node.
    fn node(&self) -> NodeId;

    /// Length of all proofs in bytes, at most [`MAX_PROOF_LEN`].
    fn proof_len(&self) -> usize;

    /// A proof that this node says `message`.
    fn prove(&self, message: &[u8]) -> Vec<u8>;

    /// Whether `proof` shows that `node` says `message`.
    fn verify(&self, node: NodeId, message: &[u8], proof: &[u8]) -> bool;

    /// Whether `node` may say that `destination` is reached on it. What it may not say is ignored.
    fn allows(&self, node: NodeId, destination: &Destination) -> bool {
        let _ = (node, destination);
        true
    }

    /// The secret that this node shares with the one that made `proof`, which was verified. `context`
    /// is the same on both sides, and another one for each session.
    fn agree(&self, proof: &[u8], context: &[u8]) -> Option<SharedSecret>;
}

/// Nodes named by the hashes of their Ed25519 keys. A proof is the public key and a signature.
#[derive(Debug)]
pub struct Keys {
    key: PrivateKey,
    node: NodeId,
}

const PROOF_LEN: usize = PublicKey::LEN + Signature::LEN;
const _: () = assert!(PROOF_LEN <= MAX_PROOF_LEN);

impl Keys {
    /// The node that `key` belongs to.
    #[must_use]
    pub fn new(key: PrivateKey) -> Self {
        let node = NodeId::from(key.public_key().hash());
        Self { key, node }
    }
}

/// The parts of a proof.
fn split(proof: &[u8]) -> Option<(PublicKey, Signature)> {
    let (key, signature) = proof.split_first_chunk::<{ PublicKey::LEN }>()?;
    let signature = Signature::from_bytes(signature.try_into().ok()?);
    Some((PublicKey::from_bytes(key).ok()?, signature))
}

impl Authority for Keys {
    fn node(&self) -> NodeId {
        self.node
    }

    fn proof_len(&self) -> usize {
        PROOF_LEN
    }

    fn prove(&self, message: &[u8]) -> Vec<u8> {
        let signature = self.key.sign(message).to_bytes();
        [&self.key.public_key().to_bytes()[..], &signature].concat()
    }

    fn verify(&self, node: NodeId, message: &[u8], proof: &[u8]) -> bool {
        let name = KeyHash::from_bytes(node.0);
        // The name is compared first: a hash costs a thirtieth of a signature.
        split(proof).is_some_and(|(key, signature)| {
            key.hash() == name && key.verify(message, &signature).is_ok()
        })
    }

    fn agree(&self, proof: &[u8], context: &[u8]) -> Option<SharedSecret> {
        let (key, _) = split(proof)?;
        Some(self.key.agree(&key).derive(context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_speaks_for_another() {
        let [one, other] = [1, 2].map(|seed| Keys::new(PrivateKey::from_seed([seed; 32])));
        let proof = one.prove(b"message");
        assert_eq!(proof.len(), one.proof_len());
        assert!(other.verify(one.node(), b"message", &proof));
        assert!(!other.verify(one.node(), b"messagf", &proof));
        assert!(!other.verify(other.node(), b"message", &proof));
        assert!(!other.verify(one.node(), b"message", &other.prove(b"message")));
        for len in 0..proof.len() {
            assert!(!other.verify(one.node(), b"message", &proof[..len]));
        }
    }

    #[test]
    fn both_ends_of_a_session_have_the_same_secret() {
        let [one, other] = [1, 2].map(|seed| Keys::new(PrivateKey::from_seed([seed; 32])));
        let secret = one.agree(&other.prove(b""), b"session").unwrap();
        let tag = secret.tag(b"message");
        assert!(other.agree(&one.prove(b""), b"session").unwrap().verify(b"message", &tag));
        assert!(!other.agree(&one.prove(b""), b"another").unwrap().verify(b"message", &tag));
        assert!(one.agree(b"short", b"session").is_none());
    }
}
