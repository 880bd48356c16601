//! Messages of both versions.
//!
//! Reference: RFC 2453 §3.6 and §4 (version 2), RFC 2080 §2.1 (RIPng), RFC 4822 (authentication).
//!
//! A message is a command and entries. What is wrong with one entry costs that entry, what is wrong with the message all
//! of it (RFC 2453 §3.9.2).

pub mod auth;
pub mod ng;
#[cfg(test)]
mod tests;
pub mod v2;

use std::net::IpAddr;

use ipnet::IpNet;

/// A metric that stands for "cannot be reached" (RFC 2453 §3.6).
pub const INFINITY: u8 = 16;

/// What a message is for (RFC 2453 §3.6; others are obsolete).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Asks for routes.
    Request,
    /// Tells routes.
    Response,
}

impl Command {
    fn code(self) -> u8 {
        match self {
            Self::Request => 1,
            Self::Response => 2,
        }
    }

    fn read(code: u8) -> Result<Self, WireError> {
        match code {
            1 => Ok(Self::Request),
            2 => Ok(Self::Response),
            other => Err(WireError::Command(other)),
        }
    }
}

/// A route in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it leads.
    pub net: IpNet,
    /// How far that is: 1 to 15, or [`INFINITY`].
    pub metric: u8,
    /// A mark from outside of RIP.
    pub tag: u16,
    /// By which router; none if by the one that sends the message.
    pub next_hop: Option<IpAddr>,
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What it is for.
    pub command: Command,
    /// Whether it asks for all routes; then there are no entries.
    pub asks_for_all: bool,
    /// The routes that it tells, or asks for.
    pub entries: Vec<Entry>,
    /// Entries that make no sense, and were left out.
    pub bad_entries: usize,
}

/// Why a message cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// It ends within its header, or within an entry.
    #[error("its length of {0} bytes is not that of a header and whole entries")]
    Length(usize),
    /// It is neither a request nor a response.
    #[error("its command {0} is none")]
    Command(u8),
    /// It is of a version that is not spoken.
    #[error("its version is {0}")]
    Version(u8),
    /// Its authentication is not what is needed, or is wrong.
    #[error("its authentication {0}")]
    Auth(&'static str),
}
