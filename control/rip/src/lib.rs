//! RIP version 2 and RIPng.
//!
//! Reference: RFC 2453 (RIP version 2), RFC 4822 (its authentication), RFC 2080 (RIPng); Handley et al. (XORP), §3 and §7
//! (it uses the network through the FEA, which relays its datagrams).
//!
//! Both are the same but for their messages ([`wire`]): the table and its timers (`table`), what is told on which link and
//! when (`speaker`), and the process around them (`process`), of which each version has one of its own.

#![forbid(unsafe_code)]

mod config;
mod policy;
mod process;
mod show;
mod speaker;
mod table;
#[cfg(test)]
mod tests;
pub mod wire;

use std::net::{IpAddr, SocketAddr};

pub use process::Rip;
use weft_protocol::{Beginning, Protocol};
use weft_runtime::Component;
use weft_xrl::{Input, Output};

/// RIP version 2, as the binary knows it.
pub const RIP: Protocol = Protocol {
    name: config::STATEMENT,
    schema: config::SCHEMA,
    reads: &[weft_policy::STATEMENT],
    group: Some("224.0.0.9:520"),
    variables: policy::VARIABLES,
    make: |beginning| process(Version::V2, beginning),
};

/// RIPng, as the binary knows it.
pub const RIPNG: Protocol = Protocol {
    name: config::STATEMENT_NG,
    schema: config::SCHEMA_NG,
    group: Some("%5Bff02::9%5D:521"),
    make: |beginning| process(Version::Ng, beginning),
    ..RIP
};

fn process(
    version: Version,
    beginning: Beginning,
) -> Box<dyn Component<Input = Input, Output = Output>> {
    // Digests are numbered by the seconds of the wall clock (RFC 4822).
    Box::new(Rip::new(version, beginning.random.fork("rip"), beginning.epoch))
}

/// Which of the two protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// RIP version 2, for IPv4.
    V2,
    /// RIPng, for IPv6.
    Ng,
}

impl Version {
    /// The statement of the configuration, which is the protocol's name, too.
    #[must_use]
    pub fn statement(self) -> &'static str {
        match self {
            Self::V2 => config::STATEMENT,
            Self::Ng => config::STATEMENT_NG,
        }
    }

    fn port(self) -> u16 {
        match self {
            Self::V2 => wire::v2::PORT,
            Self::Ng => wire::ng::PORT,
        }
    }

    /// Where all routers of a link listen.
    fn group(self) -> SocketAddr {
        let group: IpAddr = match self {
            Self::V2 => wire::v2::GROUP.into(),
            Self::Ng => wire::ng::GROUP.into(),
        };
        SocketAddr::new(group, self.port())
    }

    /// Whether an address is one of its version of IP.
    fn is_of(self, address: &IpAddr) -> bool {
        address.is_ipv4() == (self == Self::V2)
    }
}
