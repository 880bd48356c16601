//! The kernel's part of XIP forwarding: a program at XDP that carries out decisions of the portable engine.
//!
//! Reference: Machado et al., "Linux XIA", §4.2 (the routing cache); Linux XIA has it in the kernel, and so
//! has weft with this crate, beside a portable engine that can do without.
//!
//! [`engine`] describes the packet engine ([`weft_ebpf::Engine`]): the program (`bpf/xip.bpf.c`), and the maps
//! that all ports share, which hold decisions by the XIDs that the edges of a packet's last node lead to, and
//! neighbours. The program forwards, drops and digs as they say, and passes every other packet on, unchanged,
//! to the packet port of the stack. So it may be attached and detached between any two packets, and a
//! stack without it does the same, only slower. [`Mirror`] knows what has to be written into the maps so that
//! they say what the cache of the portable engine says.
//!
//! A packet's way: the driver of an interface → `weft_xip` in `bpf/xip.bpf.c` → out of another interface;
//! or on to the packet port of the stack → the portable engine → [`Mirror`] → the tables, for the next one.

mod counters;
mod layout;
mod mirror;

use weft_ebpf::{Engine, MapKind, MapShape, ProgramError, embedded};
use weft_xip::forward::Limits;
use weft_xip::numbers::MAX_FAN_OUT;
use weft_xip::xid::XID_LEN;

pub use counters::COUNTERS;
pub use mirror::Mirror;

use layout::HOP_LEN;

/// The name of the engine.
pub const NAME: &str = "xip";
/// The number of the table of neighbours; those of decisions come before it, by the number of edges.
pub(crate) const HOPS: usize = MAX_FAN_OUT;
/// The number of the table of counters.
pub(crate) const COUNTED: usize = HOPS + 1;
/// Elements of the table of limits.
const LIMIT_WORDS: u32 = 3;
/// The number of the table that says how many packets may be passed on.
pub(crate) const LIMITS: usize = COUNTED + 1;
/// Bytes that each processor keeps of the packet that it works on: the XIDs of its edges, and the edges taken.
const NOTES_LEN: usize = MAX_FAN_OUT * XID_LEN + 16;

/// The most elements of each table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSizes {
    /// Decisions, by the number of edges. The memory of all of them is taken at once.
    pub decisions: [u32; MAX_FAN_OUT],
    /// Neighbours.
    pub hops: u16,
}

/// Bytes that an entry takes for each edge of its key: half of the places stay empty.
const BYTES_EACH: [usize; MAX_FAN_OUT] = [64, 128, 192, 256];
/// Decisions of each kind for which there is always room.
const LEAST: usize = 1024;
/// More than there is memory for.
const MOST: usize = 1 << 26;

impl TableSizes {
    /// Tables that take so much memory together, the same for each number of edges.
    #[must_use]
    pub fn of_memory(bytes: usize) -> Self {
        let of = |each: usize| (bytes / MAX_FAN_OUT / each).clamp(LEAST, MOST) as u32;
        Self { decisions: BYTES_EACH.map(of), hops: 4096 }
    }
}

impl Default for TableSizes {
    /// As for the routing cache that a node has unless it is told otherwise.
    fn default() -> Self {
        Self::of_memory(Limits::default().cache)
    }
}

/// The engine with tables of these sizes.
#[must_use]
pub fn engine(sizes: &TableSizes) -> Engine {
    const OBJECT: Result<&[u8], ProgramError> = embedded!("xip");
    let names = ["dst1", "dst2", "dst3", "dst4", "hops", "counters", "limits", "notes"];
    let tables = names.into_iter().zip(shapes(sizes)).collect();
    Engine { name: NAME, object: || OBJECT, program: "weft_xip", tables }
}

/// The shapes of the tables, in the order of their numbers.
pub(crate) fn shapes(sizes: &TableSizes) -> Vec<MapShape> {
    let keys = (1..).map(|edges| edges * XID_LEN as u32);
    let decisions = sizes.decisions.iter().zip(keys);
    let decisions = decisions.map(|(most, key)| MapShape::open_table(key, *most));
    let hops = MapShape::numbered(MapKind::Array, HOP_LEN as u32, u32::from(sizes.hops));
    let counted = MapShape::numbered(MapKind::PerProcessor, 8, counters::ALL as u32);
    let limits = MapShape::numbered(MapKind::Array, 8, LIMIT_WORDS);
    let notes = MapShape::numbered(MapKind::PerProcessor, NOTES_LEN as u32, 1);
    decisions.chain([hops, counted, limits, notes]).collect()
}
