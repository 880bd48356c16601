//! Messages of RIPng.
//!
//! Reference: RFC 2080 §2.1. It has no authentication of its own.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::{IpNet, Ipv6Net};
use weft_routing::ip::is_destination;

use super::{Command, Entry, INFINITY, Message, WireError};

/// The port (RFC 2080 §2.1).
pub const PORT: u16 = 521;
/// The group of all routers that speak it (RFC 2080 §2.5).
pub const GROUP: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 9);
/// The version.
pub const VERSION: u8 = 1;

const HEADER: usize = 4;
const ENTRY: usize = 20;
/// The metric of an entry that is no route, but the next hop of those behind it (RFC 2080 §2.1.1).
const NEXT_HOP: u8 = 0xff;

/// Reads a message.
///
/// # Errors
/// What is wrong with all of it.
pub fn parse(bytes: &[u8]) -> Result<Message, WireError> {
    let (&[command, version, _, _], body) =
        bytes.split_first_chunk::<HEADER>().ok_or(WireError::Length(bytes.len()))?;
    if version != VERSION {
        return Err(WireError::Version(version));
    }
    let command = Command::read(command)?;
    let (entries, rest) = body.as_chunks::<ENTRY>();
    if !rest.is_empty() {
        return Err(WireError::Length(bytes.len()));
    }
    let mut message = Message { command, asks_for_all: false, entries: Vec::new(), bad_entries: 0 };
    if let ([only], Command::Request) = (entries, command)
        && only[..19] == [0; 19]
        && only[19] == INFINITY
    {
        message.asks_for_all = true;
        return Ok(message);
    }
    let mut next_hop = None;
    for entry in entries {
        let (address, [t0, t1, length, metric]) = split(entry);
        if *metric == NEXT_HOP {
            // One that is not on the link stands for the sender (RFC 2080 §2.1.1).
            next_hop = Some(IpAddr::from(address)).filter(|_| address.is_unicast_link_local());
            continue;
        }
        let metric = if command == Command::Request { INFINITY } else { *metric };
        let tag = u16::from_be_bytes([*t0, *t1]);
        let net = Ipv6Net::new(address, *length).ok();
        // RFC 2080 §2.4.2.
        let net = net.filter(|net| net.trunc() == *net && is_destination(&IpNet::V6(*net)));
        match net.filter(|_| (1..=INFINITY).contains(&metric)) {
            Some(net) => message.entries.push(Entry { net: net.into(), metric, tag, next_hop }),
            None => message.bad_entries += 1,
        }
    }
    Ok(message)
}

fn split(entry: &[u8; ENTRY]) -> (Ipv6Addr, &[u8; 4]) {
    let (address, rest) = entry.split_first_chunk::<16>().unwrap_or((&[0; 16], &[]));
    let rest = rest.first_chunk().unwrap_or(&[0; 4]);
    (Ipv6Addr::from(*address), rest)
}

/// Writes messages with these entries, as many as it takes, each no longer than `room`.
#[must_use]
pub fn write(command: Command, entries: &[Entry], room: usize) -> Vec<Vec<u8>> {
    // A next hop and a route always fit: no link carries less than 1,280 bytes.
    let room = room.max(HEADER + 2 * ENTRY);
    let begin = || vec![command.code(), VERSION, 0, 0];
    let (mut all, mut bytes, mut said) = (Vec::new(), begin(), None);
    for entry in entries {
        let needs = if entry.next_hop == said { ENTRY } else { 2 * ENTRY };
        if bytes.len() + needs > room {
            all.push(std::mem::replace(&mut bytes, begin()));
            said = None;
        }
        if entry.next_hop != said {
            let address = match entry.next_hop {
                Some(IpAddr::V6(address)) => address,
                _ => Ipv6Addr::UNSPECIFIED,
            };
            bytes.extend(address.octets());
            bytes.extend([0, 0, 0, NEXT_HOP]);
            said = entry.next_hop;
        }
        // Entries of IPv4 are never written here.
        let IpNet::V6(net) = entry.net else { continue };
        bytes.extend(net.addr().octets());
        bytes.extend(entry.tag.to_be_bytes());
        bytes.extend([net.prefix_len(), entry.metric]);
    }
    if bytes.len() > HEADER {
        all.push(bytes);
    }
    all
}

/// The request for all routes (RFC 2080 §2.4.1).
#[must_use]
pub fn ask_for_all() -> Vec<u8> {
    let mut bytes = vec![Command::Request.code(), VERSION, 0, 0];
    bytes.extend([0; 19]);
    bytes.push(INFINITY);
    bytes
}
