//! Datagram sockets of XIA for applications.
//!
//! Reference: Machado et al., "Linux XIA", §4 (the socket interface) and §6.1; the calls follow the
//! XDP sockets of AltraMayor/XIA-for-Linux: bind before sending, send with a whole destination
//! address, receive with the source address of the packet.
//!
//! Two forms of the same thing:
//! * [`Client`] for components: events in, actions out, re-attaches by itself when the node returns.
//! * [`XdpSocket`] for ordinary programs: blocking calls over a flow to the node.
//!
//! The messages underneath are those of [`weft_xip::channel`].

mod blocking;
mod client;
mod text;
mod tree;

pub use blocking::{SocketError, XdpSocket};
pub use client::{Client, ClientEvent};
pub use text::{parse_address, parse_bind};
pub use tree::{TreeError, tree};
