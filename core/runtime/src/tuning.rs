//! What a process can ask about how packets are taken from an interface, and how threads that move them share the
//! processors.
//!
//! Whoever asks says all that is wanted at once. What is not wanted any more becomes again what it was before it
//! was wanted first; so asking for nothing puts everything back.

use std::time::Duration;

use weft_netlink::Napi;
use weft_port::Scheduling;

/// What is wanted of an interface; what is not said stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Whether packets are joined to longer ones (GRO). A veth with it takes frames that programs at XDP of other
    /// interfaces send to its other end.
    pub gro: Option<bool>,
    /// Whether each NAPI has a thread.
    pub threaded: Option<bool>,
    /// How these threads are scheduled.
    pub threads: Scheduling,
    /// How often a NAPI may find nothing before it switches its interrupt on again; at most `i32::MAX`.
    pub defer_interrupts: Option<u32>,
    /// How long it waits then, and how long packets may wait to be joined with later ones.
    pub flush_timeout: Option<Duration>,
}

/// How an interface is after a [`Tuning`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tuned {
    /// Whether it has GRO; nothing if the kernel does not say.
    pub gro: Option<bool>,
    /// Its NAPIs, and how their threads are scheduled.
    pub napis: Vec<(Napi, Option<Scheduling>)>,
    /// Sentences: what is wanted and cannot be, why, and how to mend it.
    pub refused: Vec<String>,
}
