//! zFilter: multicast by Bloom filters in the address, with link identifiers mapped to any XID.
//!
//! Reference: Machado et al., "Linux XIA", §5.3; Jokela et al., "LIPSIN: Line Speed
//! Publish/Subscribe Inter-networking", SIGCOMM 2009; behaviour as in AltraMayor/XIA-for-Linux,
//! `net/xia/ppal_zf`.
//!
//! Each link of a network has an identifier with a few one bits. The XID of a multicast tree is the
//! union of the identifiers of its links, so routers keep no state for trees: a packet takes every
//! link whose identifier is in the packet's filter. A link leads to any XID of another type, most
//! often to the HID of a neighbour: the packet is copied and each copy is looked up as if the
//! gateway's XID stood in the address, which itself does not change.
//!
//! | filter | answer |
//! |---|---|
//! | more one bits than the limit | refused: the packet is dropped and counted |
//! | holds links of this node | a copy goes on to each gateway of these links |
//! | holds a link that is local | a copy goes on behind the filter; an error as a sink |
//! | holds no link | unknown, the next edge is tried |
//!
//! # The way of a packet
//! [`Principal::lookup`](weft_xip::principal::Principal::lookup) compares the filter with 64 links at once
//! (`index`), which takes less than a microsecond for ten thousand; every match that is found takes its time besides
//! (`weft bench zfilter`). Copies are made by the forwarder, which bounds their number, and ends the copies of
//! packets that come back.
//!
//! # Statements
//! ```text
//! local LINK               packets for this link go on behind the filter, here
//! route LINK via XID       packets for this link go to XID, of any type but zf
//! bits NUMBER              one bits of identifiers made from names, 1 to 16, 5 if not set
//! tags NUMBER              identifiers of each link that has a name, 1 to 8, 1 if not set
//! fill-limit NUMBER        most one bits of a filter, 1 to 160, 80 if not set
//! ```
//! `LINK` is an identifier (`zf-…`) or `link NAME`, whose identifier is [`link_identifier`] of that name.
//! A link may have several gateways and be local, too; each statement adds one. `route LINK` alone
//! deletes all gateways of a link.
//!
//! # Trees larger than a filter
//! A filter is half full with some 22 links. For a larger tree its links become one *virtual link*:
//! an identifier of its own, for which all routers of the tree have extra entries ([`link_identifier`]
//! of the tree's name). One identifier per tree is state in the routers, and in return the packet
//! needs five bits whatever the size of the tree. One filter can hold several such trees, and
//! single links besides.
//!
//! A tree can also be cut: an address whose entry leads to one filter and from there to another has the upper part of
//! the tree in the first, with links that are local to the routers where the lower parts begin, and these in
//! the second. From such a router on the packet carries no bits of the upper part to be matched by mistake.
//!
//! # Differences from Linux XIA
//! * A filter more than half full is dropped, so that one with all bits set is no amplifier.
//! * Several links with one gateway cause one copy, not several.
//! * A link may have several gateways; in Linux XIA a virtual link has one at each router.
//! * A link identifier without one bits, which would match everything, is refused.
//!
//! ```
//! use weft_base::Instant;
//! use weft_xia_zf::{ZFilter, link_identifier, union};
//! use weft_xip::principal::{Answer, Branch, Principal};
//! use weft_xip::{Xid, XidType};
//!
//! let mut zf = ZFilter::new();
//! let east = Xid::new(XidType::HID, [1; 20]);
//! let words = ["route", "link", "to-east", "via", &east.to_string()];
//! zf.set(Instant::ZERO, &words, &mut Vec::new())?;
//!
//! let tree = union(&[link_identifier("to-east", 5), link_identifier("elsewhere", 5)]);
//! let mut branches = Vec::new();
//! assert_eq!(zf.lookup(&tree, &mut branches), Answer::Branches);
//! assert_eq!(branches, [Branch::To(east)]);
//! # Ok::<(), weft_xip::words::WordError>(())
//! ```

mod adjacencies;
mod arrange;
mod codes;
mod filter;
mod index;
mod links;
mod list;
mod rows;
mod shape;
mod statement;
mod targets;
#[cfg(test)]
mod tests;
mod zf;

pub use filter::{
    DEFAULT_LINK_BITS, FILTER_BITS, MAX_LINK_BITS, MAX_TAGS, best_filter, expected_fill,
    false_positive_rate, fill, link_identifier, tagged_identifier, union,
};
pub use zf::{DEFAULT_FILL_LIMIT, ZFilter};
