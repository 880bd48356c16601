//! Link-state routing between XIA nodes: nobody states routes to hosts, domains and anycast names.
//!
//! Reference: Machado et al., "Linux XIA", §3 (HIDs and ADs are hashes of keys) and §4.2.1 (routing
//! redirects); the protocol itself is that of [`weft_linkstate`], which this crate carries.
//!
//! A node is named by its key, as its HID is: 20 bytes. It advertises
//! * its own HID, which nobody else can: other nodes ignore a HID, of either version, that its holder does not advertise;
//! * the ADs that it belongs to;
//! * XIDs that it was told to (`advertise`), as long as they are this node: a socket's name, for instance. If
//!   several nodes advertise one, the nearest is used.
//!
//! What comes out are redirects to the HID of the next node, or of all next nodes if several ways cost the same. Nothing proves that a node belongs to an AD, or
//! may have an anycast name: whoever takes part in the network can say so of himself.
//!
//! # The way of a message
//! On each interface that carries XIP there is a port of EtherType 0xC0E0. A *beacon*, two bytes broadcast
//! every two seconds and when the port opens, tells that somebody speaks link-state routing there. Who
//! hears one, or anything else, from a new hardware address makes that a link of the engine
//! (`neighbours`), which greets its neighbour; messages are unicast frames.
//!
//! ```text
//!  beacon   0 (1), version = 1 (1)
//!  message  as in [`weft_linkstate::wire`]: begins with 1
//! ```
//!
//! # Statements
//! ```text
//! hello DURATION                  how often neighbours are told that this node is there, 1 s if not set
//! hold DURATION                   how long they believe it, four times that if not set
//! interface NAME metric N         what it costs to send there, 10 if not set
//! interface NAME off              no link-state routing there
//! advertise XID                   while it is this node
//! neighbour-limit N               neighbours on one interface at most, 64 if not set
//! paths N                         ways of the same cost that are used beside each other at most, 8 if not set
//! ```
//!
//! A node without a key says so once, and takes no part.

mod activity;
mod gateways;
mod hosts;
mod neighbours;
mod protocol;
mod show;
mod statements;
#[cfg(test)]
mod tests;

pub use activity::Activity;
pub use protocol::{DEFAULT_METRIC, LinkState};
