//! LPM, longest prefix match: identifiers with a hierarchy in them.
//!
//! Reference: Machado et al., "Linux XIA", §5.1 (a principal that takes what BGP knows without a TCP/IP
//! stack) and §5.2.1; behaviour as in AltraMayor/XIA-for-Linux, `net/xia/ppal_lpm`.
//!
//! An LPM identifier is a string of bits, the highest bit first; an IPv4 address stands in its first four
//! bytes, an IPv6 address in its first sixteen. Routes are for prefixes of it, as those of IP, and the
//! longest that an identifier begins with decides, whether it is local or leads elsewhere. The prefix of
//! length 0 is the default route.
//!
//! | the longest prefix is | answer |
//! |---|---|
//! | `local PREFIX` | this node: go on behind it; an error as a sink |
//! | `route PREFIX unreachable` | unknown, the next edge is tried |
//! | `route PREFIX via XID…` | look the gateway up instead, or one of several |
//! | none | unknown, the next edge is tried |
//!
//! A routing protocol finds ways to whole identifiers, which are longer than any prefix but one of all 160 bits:
//! what is stated of that goes first.
//!
//! Somebody outside of the stack may find routes to prefixes, as BGP does ([`weft_xip::prefixes`]). They are kept apart, too:
//! the longest prefix decides, and of two that are as long what is stated.
//!
//! The principal sends nothing and has no timer; a packet goes its way by [`Principal::lookup`] alone,
//! which is one look-up in a [`weft_routing::PrefixTable`], or two. A full table of the Internet fits: a prefix takes
//! a few tens of bytes, and gateways are kept once.
//!
//! # Statements
//! ```text
//! local PREFIX                 go on behind these, here
//! route PREFIX via XID…        look that XID up instead, or one of several
//! route PREFIX unreachable     leads nowhere, whatever shorter prefixes say
//! ```
//! `PREFIX` is `10.0.0.0/8`, `2001:db8::/32`, `0x0a/8` (hexadecimal digits, zeros behind), an address
//! without a length, or `lpm-…`, which is all 160 bits. To the table they are bits: it does not know which
//! of them were written as IPv4, so a network should use one form.
//!
//! # Differences from Linux XIA
//! * A gateway may be of type lpm, too: a route learned from afar then leads over the route to its next
//!   hop. A circle is recognised when a packet meets it, as all loops of redirects are.
//!
//! ```
//! use weft_base::{Instant, Random};
//! use weft_xia_lpm::Lpm;
//! use weft_xip::principal::{Answer, Principal};
//! use weft_xip::{Xid, XidType};
//!
//! let mut lpm = Lpm::new(Random::from_seed(1));
//! let east = Xid::new(XidType::HID, [1; 20]);
//! lpm.set(Instant::ZERO, &["route", "10.0.0.0/8", "via", &east.to_string()], &mut Vec::new())?;
//! lpm.set(Instant::ZERO, &["local", "10.1.0.0/16"], &mut Vec::new())?;
//!
//! let ask = |xid: &str| lpm.lookup(&xid.parse().unwrap(), &mut Vec::new());
//! assert_eq!(ask("lpm-0a02000100000000000000000000000000000000"), Answer::Redirect(east));
//! assert_eq!(ask("lpm-0a01000100000000000000000000000000000000"), Answer::Through);
//! assert_eq!(ask("lpm-0b02000100000000000000000000000000000000"), Answer::Unknown);
//! # Ok::<(), weft_xip::words::WordError>(())
//! ```
//!
//! [`Principal::lookup`]: weft_xip::principal::Principal::lookup

mod found;
mod lpm;
mod statement;
#[cfg(test)]
mod tests;
mod text;

pub use lpm::Lpm;
