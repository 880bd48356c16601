//! RIP version 2 and RIPng.
//!
//! Reference: RFC 2453 (RIP version 2), RFC 4822 (its authentication), RFC 2080 (RIPng); Handley et al. (XORP), §3 and §7
//! (it uses the network through the FEA, which relays its datagrams).
//!
//! Both are the same but for their messages ([`wire`]): the table and its timers (`table`), what is told on which link and
//! when (`speaker`), and the process around them (`process`), of which each version has one of its own.

#![forbid(unsafe_code)]

mod config;
mod process;
mod show;
mod speaker;
mod table;
#[cfg(test)]
mod tests;
pub mod wire;

use std::net::{IpAddr, SocketAddr};

pub use config::{SCHEMA, SCHEMA_NG, STATEMENT, STATEMENT_NG};
pub use process::{Rip, interfaces};

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
            Self::V2 => STATEMENT,
            Self::Ng => STATEMENT_NG,
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
