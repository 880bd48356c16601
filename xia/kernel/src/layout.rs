//! The bytes in the maps, as `bpf/xip.bpf.c` has them.

use weft_xip::Xid;
use weft_xip::xid::XID_LEN;

use crate::mirror::{HopId, Slot};

/// Bytes of `struct entry`.
pub(crate) const ENTRY_LEN: usize = 24;
/// Bytes of an element of `hops`.
pub(crate) const HOP_LEN: usize = 8;
/// Bytes of `struct port_out`.
pub(crate) const PORT_LEN: usize = 16;
/// Bytes of the program's variables: four words.
pub(crate) const VARIABLES_LEN: usize = 32;

const THROUGH: u32 = 1;
const FORWARD: u32 = 2;
const DROP: u32 = 3;

/// What to do with packets whose last node has certain edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The target of this edge is this node: mark it and go on from there.
    Through {
        /// The edge, 0 to 3.
        edge: u8,
    },
    /// Send it to a neighbour, its address unchanged.
    Forward {
        /// The edge that leads there, 0 to 3.
        edge: u8,
        /// The neighbour.
        hop: HopId,
    },
    /// Drop it.
    Drop,
}

impl Decision {
    /// `struct entry`, nothing counted.
    pub(crate) fn entry(self) -> [u8; ENTRY_LEN] {
        let (decision, edge, argument) = match self {
            Self::Through { edge } => (THROUGH, edge, 0),
            Self::Forward { edge, hop } => (FORWARD, edge, hop.0),
            Self::Drop => (DROP, 0, 0),
        };
        let mut entry = [0; ENTRY_LEN];
        entry[..4].copy_from_slice(&decision.to_ne_bytes());
        entry[4..8].copy_from_slice(&u32::from(edge).to_ne_bytes());
        entry[8..12].copy_from_slice(&argument.to_ne_bytes());
        entry
    }
}

/// The key of a sequence of one to four edges: the XIDs that they lead to, as in packets.
pub(crate) fn push_key(edges: &[Xid], keys: &mut Vec<u8>) {
    edges.iter().for_each(|xid| keys.extend_from_slice(&xid.to_bytes()));
}

/// Bytes of the key of a sequence of this many edges.
pub(crate) const fn key_len(edges: usize) -> usize {
    edges * XID_LEN
}

/// The packets that `struct entry` has counted.
pub(crate) fn packets_of(entry: &[u8; ENTRY_LEN]) -> u64 {
    let word: [u8; 8] = std::array::from_fn(|index| entry[16 + index]);
    u64::from_ne_bytes(word)
}

/// A MAC address in a word, as the program reads it from a frame.
pub(crate) fn mac_word(mac: [u8; 6]) -> u64 {
    let [a, b, c, d, e, f] = mac;
    u64::from(u32::from_ne_bytes([a, b, c, d])) | u64::from(u16::from_ne_bytes([e, f])) << 32
}

/// An element of `hops`.
pub(crate) fn hop_word(mac: [u8; 6], slot: Slot) -> u64 {
    mac_word(mac) | u64::from(slot.0.get()) << 48
}
