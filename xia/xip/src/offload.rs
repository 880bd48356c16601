//! Decisions of the routing cache for an engine elsewhere, such as the kernel's, to carry out.
//!
//! Reference: Machado et al., "Linux XIA", §4.2.2 (DST table and dependency forest): here the table is
//! beside the forest, and followed by a copy. The forwarder tells a sequence of [`Offload`]s; carried out in their
//! order, they leave the copy without any decision that the tables would not give now; and on the way there, packets go
//! where they went before, nowhere, or where they go afterwards.
//!
//! What is told are decisions for packets that came in on a port, after they were used for a second packet: an
//! address that occurs once is no news.

use arrayvec::ArrayVec;
use weft_base::PortId;
use weft_runtime::{MapShape, MapWrite, Slot};

use crate::Xid;
use crate::forward::{DropReason, SlowPathLimit};
use crate::numbers::MAX_FAN_OUT;
use crate::principal::NextHop;

/// The XIDs that the edges of a packet's last node lead to, in their order.
pub type Edges = ArrayVec<Xid, MAX_FAN_OUT>;

/// One change of what the other engine has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offload {
    /// Where a neighbour is; `None` if its number stands for none. It holds for all decisions that lead to it.
    Hop {
        /// Its number, below [`OffloadRoom::hops`].
        id: u32,
        /// Where it is.
        hop: Option<NextHop>,
    },
    /// What is to be done with packets whose last node has these edges, in place of what was said before.
    Set {
        /// The edges.
        edges: Edges,
        /// The edge that it is about, 0 to 3.
        edge: u8,
        /// What to do.
        decision: Offloaded,
    },
    /// There is no decision any more.
    Remove {
        /// The edges.
        edges: Edges,
    },
    /// There is no decision at all, and no neighbour.
    Clear,
    /// How many packets for which there is no decision, or [`Offloaded::Report`], may be passed on from each port;
    /// `None` is no limit. As here,
    /// a port whose limit was reached saves up [`SlowPathLimit::together`] of them before it goes on.
    Limit(Option<SlowPathLimit>),
}

/// What the other engine can do with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offloaded {
    /// The edge leads to this node: mark it and go on, unless its target is a sink.
    Through,
    /// Send the packet to the neighbour with this number, its address unchanged.
    Forward(u32),
    /// Drop it, and count it under this reason.
    Drop(DropReason),
    /// Pass it on so that it is dropped here and its source is told, as long as the port's limit allows; drop what
    /// comes beyond.
    Report,
    /// Pass it on: it is for a socket of this node, goes several ways at once, or to a neighbour that the other engine does
    /// not know. Such packets count towards no limit.
    Pass,
}

/// How much the other engine can hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OffloadRoom {
    /// Decisions, by the number of their edges.
    pub decisions: [usize; MAX_FAN_OUT],
    /// Neighbours.
    pub hops: usize,
}

/// An engine in the kernel that reads decisions in tables, and how they are written there.
pub trait Engine {
    /// Its name, by which the FEA knows it.
    fn name(&self) -> &'static str;

    /// Its tables of decisions are to take so much memory.
    fn set_memory(&mut self, bytes: usize);

    /// How many decisions each of them holds then, in the order of the tables.
    fn most(&self) -> Vec<u32>;

    /// The tables that it reads decisions in.
    fn tables(&self) -> Vec<MapShape>;

    /// How much it holds.
    fn room(&self) -> OffloadRoom;

    /// What is to be written into which table, by its number, for a change. `slot` knows the ports of the
    /// engine.
    fn write(
        &mut self,
        change: &Offload,
        slot: &dyn Fn(PortId) -> Option<Slot>,
        out: &mut Vec<(usize, MapWrite)>,
    );

    /// The edges of a decision, by the table that it was written into and its key there; `None` if that is none.
    fn edges(&self, table: usize, key: &[u64]) -> Option<Edges>;

    /// The table in which it counts, and the name and the meaning of each counter.
    fn counters(&self) -> (usize, &'static [(&'static str, &'static str)]);

    /// What the sums of that table mean in the counters of the forwarder.
    fn tally(&self, sums: &[u64]) -> Tally;
}

/// What another engine has done with packets that the forwarder here has not seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets that it has sent out of a port.
    pub forwarded: u64,
    /// Packets that it has dropped, by reasons that occurred.
    pub drops: Vec<(DropReason, u64)>,
}

impl Tally {
    /// Packets that it has received and not passed on.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.forwarded + self.drops.iter().map(|(_, count)| count).sum::<u64>()
    }
}
