//! What the engine has names for: nodes, links to neighbours, destinations, and pieces of a node's
//! advertisement.

use std::fmt;
use std::sync::Arc;

use weft_keys::KeyHash;

/// A node, named by 20 bytes that mean nothing to the engine: as a rule the hash of its key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub [u8; NodeId::LEN]);

impl NodeId {
    /// The length in bytes.
    pub const LEN: usize = KeyHash::LEN;
}

impl From<KeyHash> for NodeId {
    fn from(hash: KeyHash) -> Self {
        Self(hash.to_bytes())
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeId({self})")
    }
}

/// A way to one neighbour, named by the carrier. Two ways to the same neighbour are two links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// Something that nodes advertise and routes lead to: bytes whose meaning is the architecture's.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination(Arc<[u8]>);

impl Destination {
    /// The longest name of a destination, in bytes.
    pub const MAX_LEN: usize = 64;

    /// The destination of this name; `None` unless it has 1 to [`Destination::MAX_LEN`] bytes.
    #[must_use]
    pub fn new(name: &[u8]) -> Option<Self> {
        (1..=Self::MAX_LEN).contains(&name.len()).then(|| Self(name.into()))
    }

    /// Its name.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Destination({self})")
    }
}

/// What it costs to cross a link (1 to [`MAX_METRIC`]), or to reach a destination from the node that
/// advertises it (from 0). Less is better.
///
/// A link that costs nothing could be part of a loop between paths of equal cost.
pub type Metric = u32;

/// The dearest link: 24 bits, as in RFC 5305 §3.
pub const MAX_METRIC: Metric = 0xff_ffff;

/// A piece of what a node advertises. A node with few neighbours has one piece, number 0; ISO 10589
/// §7.3.4 calls the same *LSP number*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LsaId {
    /// Whose.
    pub origin: NodeId,
    /// Which piece.
    pub fragment: u8,
}

impl fmt::Display for LsaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.origin, self.fragment)
    }
}

/// Which issue of an advertisement: the greater is the newer.
///
/// A node that was started again may issue a number that the network knows already, with other content;
/// the digest decides between them, the same everywhere (RFC 2328 §13.1 uses a checksum). With 64 bits,
/// numbers do not run out: a node that issues one a second has enough for 500 billion years (RFC 7474
/// §3 takes 64 bits for the same reason).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Counted up by the originator.
    pub sequence: u64,
    /// The first bytes of the SHA-256 of the advertisement as it is sent.
    pub digest: [u8; Version::DIGEST_LEN],
}

impl Version {
    /// Length of a digest in bytes.
    pub const DIGEST_LEN: usize = 16;
}

/// An advertisement without its content: what it is about, and how new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LsaHeader {
    /// What it is about.
    pub id: LsaId,
    /// How new.
    pub version: Version,
}
