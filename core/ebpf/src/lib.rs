//! eBPF programs that weft embeds, and their loading and attaching.
//!
//! Of any program: [`embedded!`] is its object file, [`LoadedProgram`] loads it with its [`Map`]s, and
//! [`XdpLink`] attaches it to XDP; [`LiveRun`] sends what a program makes. The rest is about programs at
//! the hooks of traffic control.
//!
//! [`PROGRAMS`] lists them. There is one so far: seeded packet loss. [`LossSequence`] is its decision in
//! Rust, and [`probe()`] says whether it can be used here. It is attached in two ways: by [`LossLink`],
//! for the links of a lab, it stays when its process ends; an [`Attachment`] lives as long as somebody
//! holds its descriptors. [`programs_of`] lists what anybody has attached to an interface.
//!
//! [`Steering`] brings frames past the network stack to AF_XDP sockets.
//!
//! The programs are restricted C (`bpf/`), compiled by the build script and
//! embedded in the binary; where clang was missing then, [`LossLink::attach`] says so.
//!
//! A packet's way: the kernel's traffic control hook of an interface → `weft_loss` in
//! `bpf/loss.bpf.c` → dropped, or on to the next classifier.
//!
//! ```
//! use weft_ebpf::{LossProbability, LossSequence};
//!
//! // Which of the first hundred packets does a link with seed 7 and 10 % loss drop?
//! let loss = LossSequence::new(7, LossProbability::from_fraction(0.1)?);
//! let dropped: Vec<u64> = (0..100).filter(|&n| loss.drops(n)).collect();
//! assert_eq!(dropped.len(), 11);
//! # Ok::<(), weft_ebpf::ProbabilityError>(())
//! ```

// An edge crate: network namespaces are reached by system calls. Each `unsafe`
// block is one such call.
#![allow(unsafe_code)]

mod attachment;
mod engine;
mod error;
mod filter;
mod found;
mod live;
mod loss;
mod map;
mod map_table;
mod object;
mod open_table;
mod probe;
mod steering;
mod sys;
mod table;
mod tc;
#[cfg(feature = "testing")]
pub mod testing;
mod xdp;

pub use attachment::{Attachment, Kept, Way};
pub use engine::{
    Egress, Engine, EngineMode, EnginePort, EngineProgram, EngineTables, MOST_PORTS, Slot, mac_word,
};
pub use error::ProgramError;
pub use filter::attach_filter;
pub use found::{FoundProgram, HookKind, name, programs_of};
pub use live::LiveRun;
pub use loss::{LossLink, LossProbability, LossSequence, LossStatistics, ProbabilityError};
pub use map::{Map, MapKind, MapShape, Memory};
pub use map_table::{MapTable, MapWrite};
pub use object::{Aligned, LoadedProgram, ProgramType};
pub use probe::probe;
pub use steering::{PortSocket, Steering};
pub use table::{PROGRAMS, Program, ProgramKind};
pub use tc::interface_name;
pub use weft_netlink::{Direction, XdpMode};
pub use xdp::{XdpLink, XdpVerdict};
