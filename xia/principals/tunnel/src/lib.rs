//! Tunnels: XIP over IP, made on the fly through networks that know nothing else.
//!
//! Reference: Machado et al., "Linux XIA", §5.1; behaviour as in AltraMayor/XIA-for-Linux,
//! `net/xia/ppal_u4id`.
//!
//! Four principals, one for each [`Way`]: U4ID and U6ID go in UDP, which middleboxes let through; I4ID and I6ID
//! go directly in IP, which spares the header and the checksum of UDP where nobody is in between. An
//! identifier is an address, for UDP with a port ([`to_xid`], [`from_xid`]). A packet on its way to one
//! becomes the payload, with nothing in between; the host that has that address takes it out and routes it
//! again, and passes it through the XID, which is local there.
//!
//! | XID | answer |
//! |---|---|
//! | an end on this node | this node: go on behind it; an error as a sink |
//! | any other, if this node has a tunnel source and its port is open | send a packet there |
//! | any other, without a tunnel source | unknown, the next edge is tried |
//! | malformed, or the address of no single host | refused: the packet is dropped, no fallback |
//!
//! # The way of a packet
//! Out: [`Principal::lookup`](weft_xip::principal::Principal::lookup) names the port of the tunnel
//! source and the other end; the port puts the headers on. In: the port takes them off, and each packet
//! comes back as [`Output::Route`](weft_xip::principal::Output::Route), received on that port, so that
//! sending it on costs a hop.
//!
//! # Statements
//! ```text
//! local ADDRESS       receive here
//! tunnel ADDRESS      receive here, and send from here; at most one
//! protocol NUMBER     the number in the header of IP, for I4ID and I6ID: 253 (if not set) or 254
//! ```
//! `ADDRESS` is `IPV4:PORT`, `[IPV6]:PORT`, `IPV4` or `IPV6`, or an XID of the type. The conventional UDP port is
//! [`CONVENTIONAL_PORT`]. A port that cannot be opened is reported and tried again, at longer and longer
//! intervals.
//!
//! # Differences from Linux XIA
//! * Multicast and broadcast addresses are malformed: one packet must not become many. So are link-local
//!   addresses of IPv6, which mean another host on each link.
//! * Loopback addresses are unknown unless the tunnel begins at one, so that nobody reaches
//!   services of this machine that listen on loopback only.
//! * The option to leave out UDP checksums does not exist; XIP has no checksum of its own.
//! * I4ID and I6ID exist. The number of I6ID is one for private use.
//!
//! ```
//! use weft_base::Instant;
//! use weft_xia_tunnel::{Tunnels, Way, to_xid};
//! use weft_xip::principal::{Answer, Principal};
//!
//! let mut u4id = Tunnels::new(Way::U4id);
//! let mut out = Vec::new();
//! u4id.set(Instant::ZERO, &["local", "192.0.2.1:13781"], &mut out)?;
//! let here = to_xid(Way::U4id, "192.0.2.1:13781".parse()?)?;
//! assert_eq!(u4id.lookup(&here, &mut Vec::new()), Answer::Through);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod name;
mod statement;
#[cfg(test)]
mod tests;
mod tunnels;
mod way;

pub use name::{NameError, from_xid, to_xid};
pub use tunnels::{Activity, Tunnels};
pub use way::{OTHER_PROTOCOL, USUAL_PROTOCOL, Way};

/// The UDP port at which hosts receive XIP packets by convention (13781).
pub const CONVENTIONAL_PORT: u16 = 0x35d5;
