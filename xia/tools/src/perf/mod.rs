//! `weft xia perf`: how much a network carries, what it loses, and how long it takes.
//!
//! Reference: RFC 4737 (packet reordering), RFC 5560 (duplicates); Gil Tene's "coordinated omission" for the
//! rule that a latency begins when a datagram *should* have left.
//!
//! A [`PerfClient`] sends numbered datagrams at a rate; a [`PerfServer`] counts them and, if it is asked to,
//! sends each back. At the end the client asks the server what arrived.
//!
//! * [`wire`] — the datagrams;
//! * [`arrivals`] — what arrived: losses, duplicates, reordering;
//! * [`latency`] — the distribution of times in a fixed amount of memory;
//! * [`schedule`] — when each datagram should leave;
//! * `client`, `server` — the two processes, and `report`, their words.
//!
//! # What is measured
//! Of one direction: what arrived at the server, of what the client sent. Of both: the time of a round trip,
//! by the client's clock alone. How long one direction takes cannot be told without clocks that agree, and is
//! not measured.

pub mod arrivals;
mod client;
pub mod latency;
mod report;
pub mod schedule;
mod server;
pub mod wire;

pub use client::{PerfClient, PerfOptions};
pub use schedule::Pace;
pub use server::{PerfServer, PerfServerOptions};

use weft_xip::{Xid, XidType};

/// What a server is bound to unless it is told otherwise: the ASCII text `weft xia perf server`.
pub const PERF_SINK: Xid = Xid::new(XidType::XDP, *b"weft xia perf server");
