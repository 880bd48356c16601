//! XRLs: how components call one another.
//!
//! Reference: Handley et al., "Designing Extensible IP Router Software" (XORP), §6 (inter-process
//! communication) and §7 (security framework).

mod access;
mod atom;
mod codec;
mod component;
mod error;
pub mod frame;
mod host;
mod interface;
mod limits;
mod outgoing;
mod secrets;
mod signature;
mod slab;
pub mod text;

pub use access::Access;
pub use atom::{Atom, Binary, Id, Mac, Record, put_layout, take_layout};
pub use codec::{Arguments, Decoder, Encoder, Malformed, tag};
pub use component::{Call, CallId, Called, DEFAULT_TIMEOUT, Encoded, Input, Method, Output, Reply};
pub use error::{ErrorCode, XrlError};
pub use host::{Host, Identity, Part, Settings};
pub use interface::{Calls, Interface, Request};
pub use ipnet::{IpNet, Ipv4Net, Ipv6Net};
pub use limits::Limits;
pub use outgoing::{Outgoing, Ready};
pub use secrets::Secrets;
pub use signature::{Signature, Signatures};
pub use weft_base::Handle;
pub use weft_xif::Version;

// Generated code names this crate from the outside.
extern crate self as weft_xrl;

/// The name of the Finder as a target.
pub const FINDER: &str = "finder";

/// The Finder's interface.
pub mod finder {
    include!(concat!(env!("OUT_DIR"), "/finder.rs"));
}

/// What the Finder tells processes.
pub mod finder_client {
    include!(concat!(env!("OUT_DIR"), "/finder_client.rs"));
}

/// The FEA's interface.
pub mod fea {
    include!(concat!(env!("OUT_DIR"), "/fea.rs"));
}

/// What the manager asks of every component.
pub mod configurable {
    include!(concat!(env!("OUT_DIR"), "/component.rs"));
}
