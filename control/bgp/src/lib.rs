//! BGP-4: its messages, and the state machine of its sessions.
//!
//! Reference: RFC 4271 and its updates; each file names those that it implements. Nothing here does I/O.
//!
//! * [`wire`] reads and writes messages. [`wire::Update`] is where routes come in: it gives prefixes without
//!   storing them, the attributes as a value, and what RFC 7606 says is to be done with them.
//!   [`wire::UpdateEncoder`] is where routes go out.
//! * [`fsm`] is the life of a session, from the first connection on.
//! * [`mrt`] reads and writes files with tables and messages.
//! * [`numbers`] has the registries.
//!
//! ```
//! use std::net::Ipv4Addr;
//! use weft_bgp::wire::{
//!     AsPath, Attributes, Context, Cutter, Disposition, Family, Neighbour, NextHop, Origin, Update,
//!     UpdateEncoder,
//! };
//! use weft_routing::Prefix;
//!
//! let context = Context::new(Neighbour::External);
//! let attributes = Attributes {
//!     origin: Origin::Igp,
//!     as_path: AsPath::from_sequence(&[65001]),
//!     next_hop: Some(NextHop::V4(Ipv4Addr::new(192, 0, 2, 1))),
//!     ..Attributes::default()
//! };
//! let prefix = Prefix::new(&[198, 51, 100], 24)?;
//! let mut stream = Vec::new();
//! UpdateEncoder::new(&attributes, Family::IPV4_UNICAST, &context)?.all([(0, prefix)], &mut stream);
//!
//! let mut cutter = Cutter::new();
//! cutter.push(&stream);
//! let message = cutter.take()?.expect("it is whole");
//! let update = Update::new_checked(message.body(), &context)?;
//! let judgement = update.judge(&context);
//! assert_eq!(judgement.disposition, Disposition::Use);
//! assert_eq!(judgement.attributes, attributes);
//! let reach = update.reach().next().expect("it announces something");
//! assert_eq!(reach.nlri.iter().collect::<Vec<_>>(), [(0, prefix)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod bmp;
mod config;
mod damping;
mod fanout;
pub mod fsm;
mod home;
mod incoming;
pub mod mrt;
pub mod numbers;
mod own;
mod policy;
mod routes;
mod speaker;
#[cfg(test)]
mod tests;
mod to_rib;
mod validation;
pub mod wire;

pub use config::{RPKI, SCHEMA, STATEMENT};
pub use policy::VARIABLES;
pub use speaker::{Bgp, interfaces};

#[allow(missing_docs, unreachable_pub, dead_code, reason = "made from the interface file")]
pub mod interface {
    //! BGP's interface.
    include!(concat!(env!("OUT_DIR"), "/bgp.rs"));
}

#[allow(missing_docs, unreachable_pub, dead_code, reason = "made from the interface file")]
mod rpki {
    //! What the process of the RPKI answers.
    include!(concat!(env!("OUT_DIR"), "/rpki.rs"));

    /// Its class.
    pub const CLASS: &str = "rpki";
}
