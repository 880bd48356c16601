//! U4ID: XIP in UDP over IPv4, tunnels made on the fly through networks that know only IP.
//!
//! Reference: Machado et al., "Linux XIA", §5.1; behaviour as in AltraMayor/XIA-for-Linux,
//! `net/xia/ppal_u4id`.
//!
//! A U4ID identifier is an IPv4 address and a UDP port ([`to_xid`], [`from_xid`]). A packet on its way
//! to one becomes the payload of a UDP datagram, with nothing in between; the host that has that
//! address takes it out and routes it again, and passes it through the U4ID, which is local there.
//! The conventional port is [`CONVENTIONAL_PORT`].
//!
//! | XID | answer |
//! |---|---|
//! | an endpoint of this node | this node: go on behind it; an error as a sink |
//! | any other, if this node has a tunnel source and its port is open | send a datagram there |
//! | any other, without a tunnel source | unknown, the next edge is tried |
//! | malformed, or the address of no single host | refused: the packet is dropped, no fallback |
//!
//! # The way of a packet
//! Out: [`Principal::lookup`](weft_xip::principal::Principal::lookup) names the port of the tunnel
//! source and the datagram's destination; the port puts the headers on. In: the port takes them off,
//! and each datagram comes back as [`Output::Route`](weft_xip::principal::Output::Route), received
//! on that port, so that sending it on costs a hop.
//!
//! # Statements
//! ```text
//! local IPV4:PORT|u4id-…       receive here
//! tunnel IPV4:PORT|u4id-…      receive here, and send from here; at most one
//! ```
//! A port that cannot be opened is reported and tried again, at longer and longer intervals.
//!
//! # Differences from Linux XIA
//! * Multicast and broadcast addresses are malformed: one packet must not become many.
//! * Loopback addresses are unknown unless the tunnel begins at one, so that nobody reaches
//!   services of this machine that listen on loopback only.
//! * The option to leave out UDP checksums does not exist; XIP has no checksum of its own.
//!
//! ```
//! use weft_base::Instant;
//! use weft_xia_u4id::{U4id, to_xid};
//! use weft_xip::principal::{Answer, Principal};
//!
//! let mut u4id = U4id::new();
//! let mut out = Vec::new();
//! u4id.set(Instant::ZERO, &["local", "192.0.2.1:13781"], &mut out)?;
//! let here = to_xid("192.0.2.1:13781".parse()?);
//! assert_eq!(u4id.lookup(&here, &mut Vec::new()), Answer::Through);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod name;
mod statement;
#[cfg(test)]
mod tests;
mod u4id;

pub use name::{NameError, from_xid, to_xid};
pub use u4id::{Activity, U4id};

/// The UDP port at which hosts receive XIP packets by convention (13781).
pub const CONVENTIONAL_PORT: u16 = 0x35d5;
