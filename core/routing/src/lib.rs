//! Routing tables for any architecture: which of the prefixes that are known begins this name, and which of the routes
//! that lead there is best?
//!
//! A destination is a string of bits, whatever it means to the architecture that routes by it: 32 of
//! an IPv4 address, 128 of an IPv6 address, 160 of an XIA identifier. A [`Prefix`] is such a string of up to
//! [`MAX_BITS`] bits; a [`PrefixTable`] maps prefixes to values and finds the longest that a destination
//! begins with. A [`RouteTable`] holds the routes that several origins tell of [`Destination`]s of any kind, best
//! first, and has readers hear of changes at their own pace. A [`Guard`] stands in front of an origin that is not trusted.
//!
//! ```
//! use std::net::Ipv4Addr;
//! use weft_routing::{Prefix, PrefixTable};
//!
//! let mut table = PrefixTable::new();
//! table.insert(Prefix::new(&[10], 8)?, "everything of ten");
//! table.insert(Prefix::new(&[10, 1], 16)?, "a part of it");
//!
//! let (length, value) = table.longest(&Ipv4Addr::new(10, 1, 2, 3).into()).unwrap();
//! assert_eq!((length, *value), (16, "a part of it"));
//! assert_eq!(table.longest(&Ipv4Addr::new(11, 1, 2, 3).into()), None);
//!
//! // A cursor keeps its place while the table changes.
//! let mut cursor = table.cursor_within(Prefix::new(&[10], 8)?);
//! assert_eq!(cursor.next(&table).unwrap().1, &"everything of ten");
//! table.remove(&Prefix::new(&[10, 1], 16)?);
//! assert_eq!(cursor.next(&table), None);
//! # Ok::<(), weft_routing::PrefixError>(())
//! ```

mod blocks;
mod check;
mod destination;
mod guard;
pub mod ip;
mod prefix;
mod routes;
mod said;
mod table;
mod turns;

pub use blocks::{Blocks, Shared};
pub use check::Check;
pub use destination::{BitString, Destination, Index, OrderedIndex, PrefixIndex};
pub use guard::{Allowance, Guard, Refusal};
pub use prefix::{MAX_BITS, Prefix, PrefixError};
pub use routes::{
    Candidate, Candidates, Decide, Hears, OriginId, ReaderId, RouteTable, sweep_order,
};
pub use said::{Origins, Said};
pub use table::{Cursor, PrefixTable, TOGETHER};
pub use turns::Turns;
