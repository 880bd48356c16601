//! The life of packets: what the forwarder did with each, step by step.
//!
//! Recording is off unless somebody asks for it. A packet's [`PacketId`] is a hash over what no
//! forwarder changes — the XIDs of both addresses and the payload — so that the records of several
//! nodes can be joined to the way of one packet through the network, and "one packet in n" means the
//! same packets everywhere.

use std::collections::VecDeque;

use weft_base::{Instant, LinkAddress, Packet, PortId};

use super::DropReason;
use crate::dag::ROW_LEN;
use crate::header::XipPacket;
use crate::principal::{Answer, SocketId};
use crate::xid::XID_LEN;
use crate::{LastNode, Xid};

/// Visits kept before the oldest is forgotten.
const KEPT_VISITS: usize = 4096;

/// The identity of a packet across nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId(pub u64);

/// One packet's visit to this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Which packet.
    pub packet: PacketId,
    /// When it was routed.
    pub time: Instant,
    /// Where it came in; [`PortId::NONE`] if an application of this node sent it.
    pub from: PortId,
    /// What happened, in order.
    pub steps: Vec<Step>,
}

/// One step of the forwarder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The walk stands at this node of the address.
    At(LastNode),
    /// An edge was considered: its slot (0 is the first choice) and where it leads.
    Edge {
        /// Which of the node's edges.
        slot: u8,
        /// The XID that it leads to.
        xid: Xid,
    },
    /// No principal is loaded for the type of this XID.
    NoPrincipal(Xid),
    /// A principal was asked about an XID and answered.
    Asked {
        /// About which.
        xid: Xid,
        /// What it said.
        answer: Answer,
    },
    /// A copy was made for one of several ways.
    Copied {
        /// The XID that this copy is routed to; `None` if it goes on through the node.
        to: Option<Xid>,
    },
    /// It was sent.
    Sent {
        /// Out of which port.
        port: PortId,
        /// To which neighbour.
        link: LinkAddress,
    },
    /// It was handed to an application.
    Delivered(SocketId),
    /// It was dropped.
    Dropped(DropReason),
}

/// Keeps the last visits of the packets that are traced.
#[derive(Debug, Default)]
pub struct Tracer {
    /// Trace packets whose id is a multiple of this; zero: none.
    one_in: u64,
    visits: VecDeque<Visit>,
    recording: bool,
}

impl Tracer {
    /// Traces one packet in `one_in` from now on (1: all, 0: none) and forgets earlier visits.
    pub fn start(&mut self, one_in: u64) {
        self.one_in = one_in;
        self.visits.clear();
    }

    /// The visits recorded, oldest first.
    pub fn visits(&self) -> impl Iterator<Item = &Visit> {
        self.visits.iter()
    }

    /// Begins a visit, if this packet is one to trace.
    pub(super) fn begin(&mut self, time: Instant, from: PortId, packet: &XipPacket<Packet>) {
        self.recording = false;
        if self.one_in == 0 {
            return;
        }
        let id = packet_id(packet);
        if !id.0.is_multiple_of(self.one_in) {
            return;
        }
        if self.visits.len() == KEPT_VISITS {
            self.visits.pop_front();
        }
        self.visits.push_back(Visit { packet: id, time, from, steps: Vec::new() });
        self.recording = true;
    }

    /// Whether any packets are traced.
    pub(super) fn is_on(&self) -> bool {
        self.one_in > 0
    }

    /// Whether the packet of the latest [`Tracer::begin`] is traced.
    pub(super) fn is_recording(&self) -> bool {
        self.recording
    }

    /// Records a step of the visit that [`Tracer::begin`] began, if it is traced.
    #[inline]
    pub(super) fn step(&mut self, step: impl FnOnce() -> Step) {
        if self.recording {
            self.record(step());
        }
    }

    /// Out of the way of the packets that are not traced.
    #[cold]
    fn record(&mut self, step: Step) {
        if let Some(visit) = self.visits.back_mut() {
            visit.steps.push(step);
        }
    }
}

/// Hashes what stays the same while a packet travels.
///
/// Packets are hashed wherever they branch, and at every node while tracing is on, so it is done a
/// word at a time: a
/// multiplication and a rotation for each eight bytes, as FNV-1a does for each byte. The lengths are
/// part of it, because words are padded with zeros. Nobody's choice of packets is worth defending
/// against here; equal packets on all nodes are all that matters.
pub(super) fn packet_id(packet: &XipPacket<Packet>) -> PacketId {
    let [destination, source, payload] =
        [packet.destination_bytes(), packet.source_bytes(), packet.payload()];
    let mut hash = [destination, source, payload]
        .iter()
        .fold(HASH_START, |hash, part| mix(hash, part.len() as u64));
    for row in destination.chunks_exact(ROW_LEN).chain(source.chunks_exact(ROW_LEN)) {
        hash = mix_bytes(hash, &row[..XID_LEN]);
    }
    hash = mix_bytes(hash, payload);
    // The low bits decide whether a packet is traced: the better mixed high half goes into them.
    PacketId(hash ^ (hash >> 32))
}

/// The offset basis and the prime of FNV over 64 bits.
const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;
const HASH_FACTOR: u64 = 0x0000_0100_0000_01b3;

fn mix(hash: u64, word: u64) -> u64 {
    // Products carry differences upwards only; the rotation brings them down again.
    (hash ^ word).wrapping_mul(HASH_FACTOR).rotate_left(29)
}

fn mix_bytes(hash: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(hash, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(hash, u64::from_le_bytes(last))
}
