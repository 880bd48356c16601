//! The kernel's part of XIP forwarding: a program at XDP that carries out decisions of the portable engine.
//!
//! Reference: Machado et al., "Linux XIA", §4.2 (the routing cache); Linux XIA has it in the kernel, and so
//! has weft with this crate, beside a portable engine that can do without.
//!
//! [`Tables`] are the maps that all ports of a stack share: decisions by the XIDs that the edges of a
//! packet's last node lead to, neighbours, ports. [`PortProgram`] is the program (`bpf/xip.bpf.c`) for one
//! port; it forwards, drops and digs as the tables say, and passes every other packet on, unchanged, to the
//! packet port of the stack. So it may be attached and detached between any two packets, and a stack without
//! it does the same, only slower. [`Mirror`] writes into the tables what the cache of the portable engine
//! says, in its order.
//!
//! A packet's way: the driver of an interface → `weft_xip` in `bpf/xip.bpf.c` → out of another interface;
//! or on to the packet port of the stack → the portable engine → [`Mirror`] → the tables, for the next one.
//!
//! What takes privileges are [`Tables::create`] and [`PortProgram`]. The [`Mirror`] needs none but the
//! descriptors of the tables.

mod counters;
mod layout;
mod mirror;
mod program;
mod tables;

pub use counters::{COUNTERS, Counted};
pub use layout::Decision;
pub use mirror::{HopId, Mirror, MirrorStatistics, Neighbour, Slot};
pub use program::{PassLimit, PortProgram};
pub use tables::{TableSizes, Tables};
