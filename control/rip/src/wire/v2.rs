//! Messages of RIP version 2.
//!
//! Reference: RFC 2453 §3.6, §4; RFC 4822 §2 (authentication).

use std::net::{IpAddr, Ipv4Addr};

use ipnet::{IpNet, Ipv4Net};
use weft_routing::ip::is_destination;

use super::auth::{self, Auth, Signed};
use super::{Command, Entry, INFINITY, Message, WireError};

/// The port (RFC 2453 §3.6).
pub const PORT: u16 = 520;
/// The group of all routers that speak it (RFC 2453 §4.5).
pub const GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 9);
/// The version.
pub const VERSION: u8 = 2;
/// Entries in a message at most (RFC 2453 §3.6), of which authentication takes one.
pub const MOST: usize = 25;

const HEADER: usize = 4;
pub(super) const ENTRY: usize = 20;
/// The address family of IP.
const IP: u16 = 2;
/// That of an entry with authentication.
pub(super) const AUTH: u16 = 0xffff;

/// Reads a message, and checks its authentication; what signed it, if something did.
///
/// # Errors
/// What is wrong with all of it.
pub fn parse(bytes: &[u8], auth: &Auth) -> Result<(Message, Option<Signed>), WireError> {
    let (&[command, version, _, _], _) =
        bytes.split_first_chunk::<HEADER>().ok_or(WireError::Length(bytes.len()))?;
    // Version 1 knows no masks, which take part in every decision here; a later one is read as this one
    // (RFC 2453 §4.6 leaves it open, §3.6 wants what must be zero ignored).
    if version < VERSION {
        return Err(WireError::Version(version));
    }
    let command = Command::read(command)?;
    let (body, signed) = auth::check(bytes, auth)?;
    let (entries, rest) = body.as_chunks::<ENTRY>();
    if !rest.is_empty() || entries.len() > MOST {
        return Err(WireError::Length(bytes.len()));
    }
    let mut message = Message { command, asks_for_all: false, entries: Vec::new(), bad_entries: 0 };
    if let ([only], Command::Request) = (entries, command)
        && only[..2] == [0, 0]
        && only[16..] == u32::from(INFINITY).to_be_bytes()
    {
        message.asks_for_all = true;
        return Ok((message, signed));
    }
    for entry in entries {
        match read(entry, command) {
            Some(entry) => message.entries.push(entry),
            None => message.bad_entries += 1,
        }
    }
    Ok((message, signed))
}

fn read(entry: &[u8; ENTRY], command: Command) -> Option<Entry> {
    let [f0, f1, t0, t1, a0, a1, a2, a3, m0, m1, m2, m3, n0, n1, n2, n3, metric @ ..] = *entry;
    if u16::from_be_bytes([f0, f1]) != IP {
        return None;
    }
    let address = Ipv4Addr::new(a0, a1, a2, a3);
    let net = Ipv4Net::with_netmask(address, Ipv4Addr::new(m0, m1, m2, m3)).ok()?;
    let metric = u32::from_be_bytes(metric);
    // In a request it means nothing.
    let metric = match command {
        Command::Request => INFINITY,
        Command::Response => u8::try_from(metric).ok()?,
    };
    // RFC 2453 §3.9.2.
    let is_right =
        (1..=INFINITY).contains(&metric) && net.trunc() == net && is_destination(&net.into());
    let next_hop = Ipv4Addr::new(n0, n1, n2, n3);
    is_right.then(|| Entry {
        net: net.into(),
        metric,
        tag: u16::from_be_bytes([t0, t1]),
        next_hop: Some(IpAddr::from(next_hop)).filter(|hop| !hop.is_unspecified()),
    })
}

/// Writes messages with these entries, as many as it takes. Each is signed with a sequence number of `sequence`.
#[must_use]
pub fn write(command: Command, entries: &[Entry], auth: &Auth, sequence: u32) -> Vec<Vec<u8>> {
    let room = if *auth == Auth::None { MOST } else { MOST - 1 };
    let message = |entries: &[Entry]| {
        let mut bytes = vec![command.code(), VERSION, 0, 0];
        let place = auth::begin(&mut bytes, auth, sequence);
        entries.iter().for_each(|entry| put(entry, &mut bytes));
        auth::sign(&mut bytes, auth, place);
        bytes
    };
    entries.chunks(room).map(message).collect()
}

/// The request for all routes (RFC 2453 §3.9.1).
#[must_use]
pub fn ask_for_all(auth: &Auth, sequence: u32) -> Vec<u8> {
    let mut bytes = vec![Command::Request.code(), VERSION, 0, 0];
    let place = auth::begin(&mut bytes, auth, sequence);
    bytes.extend([0; 16]);
    bytes.extend(u32::from(INFINITY).to_be_bytes());
    auth::sign(&mut bytes, auth, place);
    bytes
}

fn put(entry: &Entry, bytes: &mut Vec<u8>) {
    // Entries of IPv6 are never written here.
    let IpNet::V4(net) = entry.net else { return };
    let next_hop = match entry.next_hop {
        Some(IpAddr::V4(next_hop)) => next_hop,
        _ => Ipv4Addr::UNSPECIFIED,
    };
    bytes.extend(IP.to_be_bytes());
    bytes.extend(entry.tag.to_be_bytes());
    bytes.extend(net.addr().octets());
    bytes.extend(net.netmask().octets());
    bytes.extend(next_hop.octets());
    bytes.extend(u32::from(entry.metric).to_be_bytes());
}
