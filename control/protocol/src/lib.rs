//! What every routing protocol's process needs, once.
//!
//! Reference: Handley et al. (XORP), §3 and §5.2 (protocols tell the RIB), §7 (they use the network through the FEA),
//! §8.3 (what a new protocol has to bring along).
//!
//! * [`ToRib`] tells the RIB routes: a few at a time, again when the RIB comes back, and that all is told.
//! * [`Reach`] asks the RIB how next hops are reached, and hears when that changes.
//! * [`FromRib`] hears which routes of other protocols are used, for those who redistribute them.
//! * [`Links`] are the interfaces on which a protocol is spoken, and datagrams of its group there, by the FEA.
//! * [`Protocol`] is what a protocol says of itself to the binary that links it.
//! * [`Remote`] is a program elsewhere to which a process has connections, as the configuration describes it.
//! * [`Manage`] is what the manager asks of a component, [`Show`] what operators do; [`serve()`] answers both.
//! * [`Dialogue`] and [`Client`] are what the clients here have in common, and others can be made of: calls to one class
//!   of component, whatever becomes of it meanwhile. [`Origins`] and [`Resolver`] are `ToRib` and `Reach` for who keeps
//!   routes and next hops in tables of its own.
//!
//! A client gets each input of its component first. What is for it alone it keeps, all else comes back:
//!
//! ```no_run
//! # use weft_base::Instant;
//! # use weft_protocol::{Origin, ToRib};
//! # use weft_xrl::{Input, Output};
//! # let (now, input, out) = (Instant::ZERO, Input::Registered, &mut Vec::<Output>::new());
//! let mut to_rib = ToRib::new(1);
//! let origin = to_rib.open(Origin { protocol: "rip".to_owned(), external: false, distance: 120 }, out);
//! if let Some(input) = to_rib.hear(now, input, out) {
//!     // What the protocol does with it.
//! }
//! to_rib.tell(true, out);
//! ```

#![forbid(unsafe_code)]

mod dialogue;
mod from_rib;
mod links;
mod manage;
mod origins;
mod reach;
mod registration;
mod relays;
mod remote;
mod resolver;
mod route;
mod serve;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod to_rib;
mod views;

pub use dialogue::{Client, Dialogue};
pub use from_rib::{FromRib, Used};
pub use links::{Link, LinkNews, Links};
pub use manage::{Manage, manage};
pub use origins::{Batch, Origin, OriginNumber, Origins};
pub use reach::{Reach, Reached};
pub use registration::{Beginning, Protocol, interfaces};
pub use remote::{Remote, md5_key};
pub use resolver::{Resolve, Resolver};
pub use route::{Hop, Route, To};
pub use serve::serve;
pub use to_rib::ToRib;
pub use views::{Show, Table};

#[allow(missing_docs, unreachable_pub, dead_code, reason = "made from the interface file")]
pub mod interface {
    //! What a protocol shows of itself.
    include!(concat!(env!("OUT_DIR"), "/protocol.rs"));
}

#[allow(missing_docs, unreachable_pub, dead_code, reason = "made from the interface file")]
pub mod rib {
    //! The RIB's interface.
    include!(concat!(env!("OUT_DIR"), "/rib.rs"));

    /// The RIB's class.
    pub const CLASS: &str = "rib";
    /// The protocol of the routes that the RIB makes of others, to networks to parts of which there are routes.
    pub const AGGREGATE: &str = "aggregate";
}
