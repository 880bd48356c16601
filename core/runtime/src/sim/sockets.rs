//! The UDP sockets of a node.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use weft_base::PortId;

use super::ids::ProcessId;

/// The ports the system chooses from when a process binds port 0, as Linux does by default.
const EPHEMERAL: std::ops::RangeInclusive<u16> = 32768..=60999;

/// A bound socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Socket {
    /// Unspecified if it takes datagrams to any of the node's addresses.
    pub(super) address: Ipv4Addr,
    pub(super) process: ProcessId,
    pub(super) port: PortId,
}

/// The bound sockets by UDP port.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    bound: BTreeMap<u16, Vec<Socket>>,
    /// How many ephemeral ports were given out.
    given: u16,
}

impl Sockets {
    /// Binds `socket` to `port`, or to a free one if it is zero, and returns the port. `None` if it
    /// is taken, or none is free.
    pub(super) fn bind(&mut self, port: u16, socket: Socket) -> Option<u16> {
        let port = if port == 0 { self.free_port()? } else { port };
        let sockets = self.bound.entry(port).or_default();
        let clashes = |other: &Socket| {
            other.address == socket.address
                || other.address.is_unspecified()
                || socket.address.is_unspecified()
        };
        if sockets.iter().any(clashes) {
            return None;
        }
        sockets.push(socket);
        Some(port)
    }

    fn free_port(&mut self) -> Option<u16> {
        let count = EPHEMERAL.end() - EPHEMERAL.start() + 1;
        let turn = self.given;
        self.given = (turn + 1) % count;
        (0..count)
            .map(|step| EPHEMERAL.start() + (turn + step) % count)
            .find(|port| !self.bound.contains_key(port))
    }

    /// Unbinds what `process` has bound as `port`.
    pub(super) fn unbind(&mut self, udp_port: u16, process: ProcessId, port: PortId) {
        if let Some(sockets) = self.bound.get_mut(&udp_port) {
            sockets.retain(|socket| (socket.process, socket.port) != (process, port));
            if sockets.is_empty() {
                self.bound.remove(&udp_port);
            }
        }
    }

    /// Who takes datagrams to `destination`.
    pub(super) fn lookup(&self, destination: SocketAddrV4) -> Option<Socket> {
        let takes = |socket: &&Socket| {
            socket.address.is_unspecified() || socket.address == *destination.ip()
        };
        self.bound.get(&destination.port())?.iter().find(takes).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(address: [u8; 4], port: u32) -> Socket {
        Socket { address: address.into(), process: ProcessId::at(0), port: PortId(port) }
    }

    #[test]
    fn a_wildcard_clashes_with_any_address_and_addresses_only_with_themselves() {
        let mut sockets = Sockets::default();
        assert_eq!(sockets.bind(9, socket([10, 0, 0, 1], 1)), Some(9));
        assert_eq!(sockets.bind(9, socket([10, 0, 0, 2], 2)), Some(9));
        assert_eq!(sockets.bind(9, socket([10, 0, 0, 2], 3)), None);
        assert_eq!(sockets.bind(9, socket([0, 0, 0, 0], 3)), None);
        sockets.unbind(9, ProcessId::at(0), PortId(1));
        sockets.unbind(9, ProcessId::at(0), PortId(2));
        assert_eq!(sockets.bind(9, socket([0, 0, 0, 0], 4)), Some(9));
        let found = sockets.lookup("192.0.2.1:9".parse().unwrap());
        assert_eq!(found.map(|socket| socket.port), Some(PortId(4)));
        assert_eq!(sockets.lookup("192.0.2.1:8".parse().unwrap()), None);
    }

    #[test]
    fn the_system_gives_each_ephemeral_port_once() {
        let mut sockets = Sockets::default();
        let count = EPHEMERAL.len() as u32;
        let mut given: Vec<_> =
            (0..count).filter_map(|port| sockets.bind(0, socket([0, 0, 0, 0], port))).collect();
        given.sort_unstable();
        assert_eq!(given, EPHEMERAL.collect::<Vec<_>>());
        assert_eq!(sockets.bind(0, socket([0, 0, 0, 0], count)), None);
    }
}
