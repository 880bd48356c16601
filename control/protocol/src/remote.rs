//! Programs elsewhere to which a process has connections of TCP, as the configuration describes them: where they are, and the key.
//!
//! Reference: RFC 2385 (the key); the processes that have such connections say which protocol is spoken on them.

use std::net::{IpAddr, SocketAddr};

use weft_config::{Block, Errors, Form};
use weft_runtime::{StreamKey, StreamOptions, StreamSpec};

const ADDRESS: Form = Form { what: "an address of IP", example: "192.0.2.10" };

/// The other side of a connection that this side opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Where it is.
    pub address: SocketAddr,
    /// The address from which it is connected to; without it the system chooses.
    pub local_address: Option<IpAddr>,
    /// The key by which both sides sign what they send (RFC 2385).
    pub key: Option<StreamKey>,
}

impl Remote {
    /// Reads the statements `address`, `port`, `local-address` and `md5-key` of a block. Without a usual port the second must be there.
    ///
    /// # Errors
    /// What is missing or makes no sense, with its place.
    pub fn read(block: &mut Block<'_>, usual_port: Option<u16>) -> Result<Self, Errors> {
        const PORTS: std::ops::RangeInclusive<u16> = 1..=u16::MAX;
        let address: IpAddr = block.required_with("address", ADDRESS, str::parse)?;
        let port = match usual_port {
            Some(usual) => block.leaf_in("port", PORTS)?.unwrap_or(usual),
            None => block.required_in("port", PORTS)?,
        };
        let local_address = block.leaf_with("local-address", ADDRESS, |word| {
            let local: IpAddr = word.parse().map_err(|_| "it is none".to_owned())?;
            let is_alike = local.is_ipv4() == address.is_ipv4();
            is_alike.then_some(local).ok_or(format!("{address} is of another version of IP"))
        })?;
        let key = md5_key(block)?;
        Ok(Self { address: SocketAddr::new(address, port), local_address, key })
    }

    /// How to connect to it.
    #[must_use]
    pub fn stream(&self, options: StreamOptions) -> StreamSpec {
        StreamSpec {
            peer: self.address,
            local: self.local_address.map(|local| SocketAddr::new(local, 0)),
            key: self.key.clone(),
            options,
        }
    }
}

/// Reads the statement `md5-key`, a key that no message shows.
///
/// # Errors
/// It is none, or too long.
pub fn md5_key(block: &mut Block<'_>) -> Result<Option<StreamKey>, Errors> {
    let Some(mut entry) = block.one("md5-key")? else { return Ok(None) };
    let text: String = entry.argument("a key")?;
    entry.end()?;
    StreamKey::new(text).map(Some).map_err(|error| entry.error_at(0, error).into())
}
