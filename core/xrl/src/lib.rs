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
mod log;
mod outgoing;
pub mod profile;
mod secrets;
mod signature;
mod slab;
pub mod text;
mod window;

pub use access::Access;
pub use atom::{Atom, Binary, Id, Mac, Record, put_layout, take_layout};
pub use codec::{Arguments, Decoder, Encoder, Malformed, tag};
pub use component::{Call, CallId, Called, DEFAULT_TIMEOUT, Encoded, Input, Method, Output, Reply};
pub use error::{ErrorCode, XrlError};
pub use host::{Host, Identity, Part, Settings};
pub use interface::{Calls, Interface, Request};
pub use ipnet::{IpNet, Ipv4Net, Ipv6Net};
pub use limits::Limits;
pub use log::Log;
pub use outgoing::{Outgoing, Ready};
pub use secrets::Secrets;
pub use signature::{Signature, Signatures};
pub use weft_base::Handle;
pub use weft_xif::Version;
pub use window::{Lane, Window};

// Generated code names this crate from the outside.
extern crate self as weft_xrl;

/// The name of the Finder as a target.
pub const FINDER: &str = "finder";

/// The class and the instance of the process that lets remote operators in.
pub const GATEWAY: &str = "gateway";

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

/// The routes of the kernel, which the FEA sets.
pub mod fib {
    include!(concat!(env!("OUT_DIR"), "/fib.rs"));
}

/// What the manager asks of every component.
pub mod configurable {
    include!(concat!(env!("OUT_DIR"), "/component.rs"));
}

/// What a component offers that keeps what it found good.
pub mod checked {
    include!(concat!(env!("OUT_DIR"), "/checked.rs"));
}

/// What the manager tells the gateway.
pub mod gateway {
    include!(concat!(env!("OUT_DIR"), "/gateway.rs"));
}

/// What whoever watches a node asks of each component; [`Host`] answers for its components.
pub mod monitor {
    include!(concat!(env!("OUT_DIR"), "/monitor.rs"));

    use weft_base::CounterGroup;

    impl CountersReply {
        /// The reply that tells of these groups.
        #[must_use]
        pub fn of(all: Vec<CounterGroup>) -> Self {
            let mut reply = Self { groups: Vec::new(), counts: Vec::new() };
            for CounterGroup { name, help, label, counts } in all {
                reply.counts.extend(counts.into_iter().map(|count| Count {
                    group: name.to_owned(),
                    of: count.of,
                    reason: count.reason.to_owned(),
                    help: count.help.to_owned(),
                    value: count.value,
                }));
                let group =
                    Group { name: name.to_owned(), help: help.to_owned(), label: label.to_owned() };
                reply.groups.push(group);
            }
            reply
        }
    }
}
