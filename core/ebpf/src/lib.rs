//! eBPF programs that weft embeds, and their loading and attaching.
//!
//! There is one program so far: seeded packet loss for the links of a lab. [`LossLink`] attaches it
//! to an interface, [`LossSequence`] is the same decision in Rust, and [`probe()`] says whether it can
//! be used here. The program is restricted C (`bpf/loss.bpf.c`), compiled by the build script and
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

mod error;
mod loss;
mod probe;
mod tc;

pub use error::LossError;
pub use loss::{LossLink, LossProbability, LossSequence, LossStatistics, ProbabilityError};
pub use probe::probe;
pub use weft_netlink::Direction;
