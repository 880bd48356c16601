//! Ether: stations on the links of this node, each named by the interface that leads to it and its Ethernet address.
//!
//! Reference: behaviour as in AltraMayor/XIA-for-Linux, `net/xia/ppal_ether`; AltraMayor/xiaconf, `xip/xipether.c`
//! (what of an interface its XID is made of).
//!
//! An identifier is the index of an interface of *this* node, an Ethernet address, and zeros ([`to_xid`]). With the
//! address of the interface itself it names the interface, with another one a station on its link. On the next node the
//! same identifier means something else or nothing, so it seldom stands in an address. It is what other principals
//! redirect to: `route ad-… via ether-…` sends packets for a domain to that station out of that interface, and neither of
//! them needs a HID, neighbour discovery or an address of IP.
//!
//! | XID | answer |
//! |---|---|
//! | an interface of this node that was stated | this node: go on behind it; an error as a sink |
//! | a station that was stated, on an interface that is up | send to its Ethernet address out of that interface |
//! | anything else | unknown, the next edge is tried |
//! | malformed, or the Ethernet address of no single station | refused: the packet is dropped, no fallback |
//!
//! # Following the interfaces
//! Statements name interfaces by their names, XIDs by their indexes. Which index has which name the principal is told with
//! what is told of IP ([`Output::WatchIp`]), for which it asks when the first statement comes; the port and the address
//! come with [`Input::InterfaceUp`]. An interface that goes takes the answers of its XIDs along; when it is back, under
//! another index or with another address, its XIDs are others. So a redirect to one of them ends where it did before, or
//! nowhere, and never at another station. [`Principal::lookup`] is one probe of a hash table of finished answers, and a
//! change is told for exactly those XIDs whose answers are others.
//!
//! # Statements
//! ```text
//! interface NAME                  this interface is a local XID
//! neighbour MAC interface NAME    a station on its link (also spelt `neighbor`)
//! ```
//! An interface need not be stated for its neighbours to be reached.
//!
//! # Differences from Linux XIA
//! * Statements stay when an interface goes, and hold again when it comes back; Linux XIA forgets its neighbours.
//! * The XID of an interface follows its index and its address; in Linux XIA it stays what it was when it was added.
//! * Malformed identifiers are refused; in Linux XIA they are unknown.
//! * This node's own address is no neighbour, even if that is stated.
//!
//! # Limits
//! Who watches IP is told of all its routes and neighbours, too, which are of no use here. On a node with a large table
//! that nobody else in the stack watches it takes time and memory in the FEA.
//!
//! ```
//! use weft_wire::MacAddr;
//! use weft_xia_ether::{from_xid, to_xid};
//!
//! let station = MacAddr([2, 0, 0, 0, 0, 1]);
//! let xid = to_xid(3, station)?;
//! assert_eq!(xid.to_string(), "ether-0000000302000000000100000000000000000000");
//! assert_eq!(from_xid(&xid), Ok((3, station)));
//! # Ok::<(), weft_xia_ether::NameError>(())
//! ```
//!
//! [`Input::InterfaceUp`]: weft_xip::principal::Input::InterfaceUp
//! [`Output::WatchIp`]: weft_xip::principal::Output::WatchIp
//! [`Principal::lookup`]: weft_xip::principal::Principal::lookup

mod ether;
mod interfaces;
mod name;
mod show;
mod statements;
#[cfg(test)]
mod tests;

pub use ether::Ether;
pub use name::{NameError, from_xid, to_xid};
pub use statements::STATEMENTS;
