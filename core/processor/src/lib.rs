//! What the processor can do for a program that tells it more.
//!
//! * [`prefetch()`](crate::prefetch()): memory that will be read soon;
//! * [`places()`](crate::places()): a word among a few, without a branch;
//! * [`ones()`](crate::ones()): the places of one bits, without a branch for each;
//! * [`unmarked()`](crate::unmarked()): 64 look-ups at once in a table of 64 bytes;
//! * [`make_room()`](crate::make_room()), [`give_back()`](crate::give_back()): large tables in large pages, and their ends given back;
//! * [`widest()`](crate::widest()): work with the instructions of the processor that is there, instead of those that every processor has.
//!
//! Reference: Intel 64 and IA-32 Architectures Software Developer's Manual; System V Application Binary Interface, AMD64
//! Architecture Processor Supplement, §3.1.1 (levels of the instruction set); Arm Architecture Reference Manual for
//! A-profile.

#[cfg(target_arch = "x86_64")]
mod asked;
#[allow(unsafe_code, reason = "instructions that not every processor has")]
mod lookups;
#[allow(unsafe_code, reason = "instructions that not every processor has")]
mod ones;
#[allow(unsafe_code, reason = "instructions of one kind of processor")]
mod places;
#[allow(unsafe_code, reason = "an instruction of one kind of processor")]
mod prefetch;
#[allow(unsafe_code, reason = "the kernel is told how memory will be used")]
mod room;
#[allow(unsafe_code, reason = "instructions that not every processor has")]
mod widest;

pub use lookups::{Coded, Line, has_lookups, unmarked};
pub use ones::{ones, room_for_ones};
pub use places::places;
pub use prefetch::{prefetch, prefetch_element};
pub use room::{give_back, make_room};
pub use widest::{Work, widest};
