//! Advertisements: what a node says of itself to the whole network.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::{MAX_LSA_LEN, MAX_PROOF_LEN, Reader, WireError};
use crate::ids::{Destination, LsaHeader, LsaId, MAX_METRIC, Metric, NodeId, Version};

/// Length of the part that all advertisements begin with, in bytes.
const HEAD_LEN: usize = 36;
/// Length of one link, in bytes.
const LINK_LEN: usize = NodeId::LEN + 4;
/// What stands in front of a destination's name, in bytes.
const DESTINATION_HEAD_LEN: usize = 5;

mod field {
    use std::ops::Range;

    pub(super) const ORIGIN: Range<usize> = 0..20;
    pub(super) const FRAGMENT: usize = 20;
    pub(super) const PROOF_LEN: usize = 21;
    pub(super) const LIFETIME: Range<usize> = 22..24;
    pub(super) const SEQUENCE: Range<usize> = 24..32;
    pub(super) const LINKS: Range<usize> = 32..34;
}

/// An advertisement that was checked, as it stands in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LsaView<'a> {
    bytes: &'a [u8],
}

impl<'a> LsaView<'a> {
    /// Views all of `bytes` as an advertisement. Whether it is true is for the proof to say.
    ///
    /// # Errors
    /// The bytes are no advertisement; see [`WireError`].
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, WireError> {
        if bytes.len() > MAX_LSA_LEN {
            return Err(WireError::LsaTooLong(bytes.len()));
        }
        let mut reader = Reader(bytes);
        let head = reader.take(HEAD_LEN)?;
        let view = Self { bytes };
        let mut counts = Reader(&head[field::LINKS.start..]);
        let (links, destinations) = (counts.u16()?, counts.u16()?);
        if view.is_withdrawn() && (links, destinations) != (0, 0) {
            return Err(WireError::WithdrawnContent);
        }
        for _ in 0..links {
            reader.take(NodeId::LEN)?;
            let metric = reader.u32()?;
            if !(1..=MAX_METRIC).contains(&metric) {
                return Err(WireError::Metric(metric));
            }
        }
        for _ in 0..destinations {
            let len = usize::from(reader.u8()?);
            let metric = reader.u32()?;
            if !(1..=Destination::MAX_LEN).contains(&len) {
                return Err(WireError::DestinationLength(len));
            }
            if metric > MAX_METRIC {
                return Err(WireError::Metric(metric));
            }
            reader.take(len)?;
        }
        reader.take(usize::from(head[field::PROOF_LEN]))?;
        reader.end()?;
        Ok(view)
    }

    /// The bytes, for passing them on.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What it is about.
    #[must_use]
    pub fn id(&self) -> LsaId {
        let mut origin = [0; NodeId::LEN];
        origin.copy_from_slice(&self.bytes[field::ORIGIN]);
        LsaId { origin: NodeId(origin), fragment: self.bytes[field::FRAGMENT] }
    }

    /// Counted up by the originator.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.bytes[field::SEQUENCE].iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
    }

    /// How new it is; hashes the advertisement.
    #[must_use]
    pub fn version(&self) -> Version {
        let mut digest = [0; Version::DIGEST_LEN];
        digest.copy_from_slice(&Sha256::digest(self.bytes)[..Version::DIGEST_LEN]);
        Version { sequence: self.sequence(), digest }
    }

    /// What it is about and how new; hashes the advertisement.
    #[must_use]
    pub fn header(&self) -> LsaHeader {
        LsaHeader { id: self.id(), version: self.version() }
    }

    /// Seconds for which it holds after it was received; 0 if it is withdrawn.
    #[must_use]
    pub fn lifetime(&self) -> u16 {
        self.bytes[field::LIFETIME].iter().fold(0, |value, byte| value << 8 | u16::from(*byte))
    }

    /// Whether the originator takes back what it advertised under this name.
    #[must_use]
    pub fn is_withdrawn(&self) -> bool {
        self.lifetime() == 0
    }

    fn link_count(&self) -> usize {
        self.bytes[field::LINKS].iter().fold(0, |value, byte| value << 8 | usize::from(*byte))
    }

    /// The neighbours, and what it costs to go there.
    pub fn links(&self) -> impl Iterator<Item = (NodeId, Metric)> + use<'a> {
        let links = &self.bytes[HEAD_LEN..HEAD_LEN + self.link_count() * LINK_LEN];
        let (links, _) = links.as_chunks::<LINK_LEN>();
        links.iter().map(|link| {
            let (mut node, mut metric) = ([0; NodeId::LEN], [0; 4]);
            node.copy_from_slice(&link[..NodeId::LEN]);
            metric.copy_from_slice(&link[NodeId::LEN..]);
            (NodeId(node), Metric::from_be_bytes(metric))
        })
    }

    /// The bytes of all links, to see whether they are those of another advertisement.
    pub(crate) fn link_bytes(&self) -> &'a [u8] {
        &self.bytes[HEAD_LEN..HEAD_LEN + self.link_count() * LINK_LEN]
    }

    /// The names of the destinations, and what it costs to go there from the originator.
    pub fn destinations(&self) -> impl Iterator<Item = (&'a [u8], Metric)> + use<'a> {
        let mut rest = self.destination_bytes();
        std::iter::from_fn(move || {
            let (head, behind) = rest.split_first_chunk::<DESTINATION_HEAD_LEN>()?;
            let (name, behind) = behind.split_at_checked(usize::from(head[0]))?;
            rest = behind;
            Some((name, Metric::from_be_bytes([head[1], head[2], head[3], head[4]])))
        })
    }

    /// The bytes of all destinations, likewise.
    pub(crate) fn destination_bytes(&self) -> &'a [u8] {
        &self.proven()[HEAD_LEN + self.link_count() * LINK_LEN..]
    }

    /// What the proof is about.
    #[must_use]
    pub fn proven(&self) -> &'a [u8] {
        &self.bytes[..self.bytes.len() - usize::from(self.bytes[field::PROOF_LEN])]
    }

    /// That the originator said so.
    #[must_use]
    pub fn proof(&self) -> &'a [u8] {
        &self.bytes[self.bytes.len() - usize::from(self.bytes[field::PROOF_LEN])..]
    }
}

/// An advertisement as a value, without its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LsaRepr {
    /// What it is about.
    pub id: LsaId,
    /// Counted up by the originator.
    pub sequence: u64,
    /// Seconds for which it holds after it was received; 0 if it is withdrawn.
    pub lifetime: u16,
    /// The neighbours, and what it costs to go there.
    pub links: Vec<(NodeId, Metric)>,
    /// The destinations, and what it costs to go there from the originator.
    pub destinations: Vec<(Destination, Metric)>,
}

impl LsaRepr {
    /// What an advertisement without content has, with the longest proof, in bytes.
    pub const EMPTY_LEN: usize = HEAD_LEN + MAX_PROOF_LEN;

    /// Reads a checked advertisement.
    #[must_use]
    pub fn parse(view: &LsaView) -> Self {
        let destination = |(name, metric)| Some((Destination::new(name)?, metric));
        Self {
            id: view.id(),
            sequence: view.sequence(),
            lifetime: view.lifetime(),
            links: view.links().collect(),
            destinations: view.destinations().filter_map(destination).collect(),
        }
    }

    /// What a link takes, in bytes.
    #[must_use]
    pub fn link_len() -> usize {
        LINK_LEN
    }

    /// What a destination takes, in bytes.
    #[must_use]
    pub fn destination_len(destination: &Destination) -> usize {
        DESTINATION_HEAD_LEN + destination.bytes().len()
    }

    /// The advertisement as it is sent. `prove` makes the proof, of [`MAX_PROOF_LEN`] bytes at most,
    /// for the bytes it gets.
    ///
    /// # Panics
    /// The proof is longer, or there are more links or destinations than can be counted.
    #[must_use]
    pub fn emit(&self, proof_len: usize, prove: impl FnOnce(&[u8]) -> Vec<u8>) -> Arc<[u8]> {
        assert!(proof_len <= MAX_PROOF_LEN, "a proof has {MAX_PROOF_LEN} bytes at most");
        let count =
            |len: usize| u16::try_from(len).expect("the caller keeps to the length of messages");
        let mut bytes = Vec::with_capacity(Self::EMPTY_LEN);
        bytes.extend_from_slice(&self.id.origin.0);
        bytes.extend_from_slice(&[self.id.fragment, proof_len as u8]);
        bytes.extend_from_slice(&self.lifetime.to_be_bytes());
        bytes.extend_from_slice(&self.sequence.to_be_bytes());
        bytes.extend_from_slice(&count(self.links.len()).to_be_bytes());
        bytes.extend_from_slice(&count(self.destinations.len()).to_be_bytes());
        for (node, metric) in &self.links {
            bytes.extend_from_slice(&node.0);
            bytes.extend_from_slice(&metric.to_be_bytes());
        }
        for (destination, metric) in &self.destinations {
            // A destination has 64 bytes at most.
            bytes.push(destination.bytes().len() as u8);
            bytes.extend_from_slice(&metric.to_be_bytes());
            bytes.extend_from_slice(destination.bytes());
        }
        let proof = prove(&bytes);
        assert_eq!(proof.len(), proof_len, "the proof has the length that was announced");
        bytes.extend_from_slice(&proof);
        bytes.into()
    }
}
