//! XIA across crates: whole nodes and applications in simulated networks.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod cache;
mod driven;
mod errors;
mod hosts;
mod kernel;
mod live;
mod loops;
mod network;
mod perf;
mod ping;
#[path = "../vectors/read.rs"]
mod read;
mod router;
