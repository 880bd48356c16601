//! Hearsay, a small routing protocol: the pattern of how one is written.
//!
//! Reference: Handley et al. (XORP), §8.3 (what a protocol of others has to bring along); RFC 4727 §2.3 and §8 (the group
//! and the port, which are for experiments).
//!
//! A router says hello on its links: whom it hears there, and how far each destination is ([`wire`]). Whoever hears a
//! router that hears it believes what that says, one hop farther (`table`). The process brings together links, the FEA's
//! relays, the RIB and operators (`process`); `config` has the statement, and what its routes are to policies.
//!
//! A hello holds for four times the time between two. What goes is told as out of reach four times, so that whoever
//! missed all of these has lost the neighbour, too.

#![forbid(unsafe_code)]

mod config;
mod process;
mod table;
#[cfg(test)]
mod tests;
pub mod wire;

use weft_protocol::Protocol;

/// The protocol, as the binary knows it.
pub const PROTOCOL: Protocol = Protocol {
    name: config::STATEMENT,
    schema: config::SCHEMA,
    reads: &[weft_policy::STATEMENT],
    group: Some("224.0.0.254:1021"),
    variables: config::VARIABLES,
    make: |_| Box::<process::Hearsay>::default(),
};
