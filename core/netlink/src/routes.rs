//! Routes of the kernel's IP tables: setting many at once.
//!
//! Reference: rtnetlink(7) (`RTM_NEWROUTE`), netlink(7) (`NLM_F_ACK`, errors that come unasked).
//!
//! One datagram carries up to a hundred requests, of which only the last asks for an answer: the kernel carries
//! them out in order, and says unasked which ones it refuses. That is what makes the difference between some ten
//! thousand routes a second and hundreds of thousands.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteProtocol, RouteScope,
    RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use crate::message::{self, Body};
use crate::{InterfaceAddress, Refusal};

/// Requests in one datagram: the kernel copies each datagram as a whole, and more are no faster.
const TOGETHER: usize = 100;
/// Room for answers to all of them.
const DATAGRAM: usize = 32 << 10;

/// A route of the main table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Where it leads: a prefix, whose bits beyond its length are zero.
    pub destination: InterfaceAddress,
    /// The next router, of the same family. Taken for a neighbour on the interface whatever the addresses say
    /// (`onlink`).
    pub gateway: IpAddr,
    /// The index of the interface.
    pub interface: u32,
}

/// A socket that sets routes, for the network namespace in which it was opened. Needs CAP_NET_ADMIN.
#[derive(Debug)]
pub struct RouteTable {
    socket: Socket,
    sequence: u32,
    datagram: Vec<u8>,
}

impl RouteTable {
    /// For the network namespace that the calling thread is in.
    ///
    /// # Errors
    /// Those of socket(2) and setsockopt(2).
    pub fn open() -> io::Result<Self> {
        let socket = Socket::new(NETLINK_ROUTE)?;
        socket.set_cap_ack(true)?;
        socket.set_ext_ack(true)?;
        Ok(Self { socket, sequence: 0, datagram: Vec::with_capacity(DATAGRAM) })
    }

    /// Sets routes, each in the place of the one to the same destination, if there is one.
    ///
    /// # Errors
    /// What the kernel says of the first route that it refuses, and which one that is. Others may have been set.
    pub fn replace(&mut self, routes: &[Route]) -> Result<(), (usize, Refusal)> {
        for (chunk, first) in routes.chunks(TOGETHER).zip((0..).step_by(TOGETHER)) {
            self.replace_together(chunk).map_err(|(place, refusal)| (first + place, refusal))?;
        }
        Ok(())
    }

    fn replace_together(&mut self, routes: &[Route]) -> Result<(), (usize, Refusal)> {
        let first = self.sequence.wrapping_add(1);
        let mut bytes = Vec::with_capacity(routes.len() * 64);
        for (place, route) in routes.iter().enumerate() {
            self.sequence = self.sequence.wrapping_add(1);
            let ack = if place + 1 == routes.len() { NLM_F_ACK } else { 0 };
            let flags = NLM_F_CREATE | NLM_F_REPLACE | ack;
            bytes.extend(message::request(route.message(), flags, self.sequence));
        }
        let sent = self.socket.send_to(&bytes, &SocketAddr::new(0, 0), 0);
        sent.map_err(|error| (0, error.into()))?;
        self.await_answer(first, self.sequence)
    }

    /// Waits for the answer to the last of these requests; those before it are told of only if they were refused.
    fn await_answer(&mut self, first: u32, last: u32) -> Result<(), (usize, Refusal)> {
        let (mut result, mut is_over) = (Ok(()), false);
        while !is_over {
            self.datagram.clear();
            match self.socket.recv_from(&mut self.datagram, 0) {
                Ok((_, from)) if from.port_number() != 0 => continue,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err((0, error.into())),
            }
            message::read(&self.datagram, |message| {
                let Body::Answer { errno, text } = message.body else { return };
                let place = message.sequence.wrapping_sub(first);
                if place > last.wrapping_sub(first) {
                    // What was left unread after an error.
                    return;
                }
                is_over |= message.sequence == last;
                if errno != 0 && result.is_ok() {
                    result = Err((place as usize, Refusal::new(errno, text)));
                }
            });
        }
        result
    }
}

impl Route {
    fn message(&self) -> RouteNetlinkMessage {
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: match self.gateway {
                IpAddr::V4(_) => AddressFamily::Inet,
                IpAddr::V6(_) => AddressFamily::Inet6,
            },
            destination_prefix_length: self.destination.prefix_length,
            table: RouteHeader::RT_TABLE_MAIN,
            protocol: RouteProtocol::Static,
            scope: RouteScope::Universe,
            kind: RouteType::Unicast,
            flags: RouteFlags::Onlink,
            ..RouteHeader::default()
        };
        message.attributes = vec![
            RouteAttribute::Destination(address(self.destination.ip)),
            RouteAttribute::Gateway(address(self.gateway)),
            RouteAttribute::Oif(self.interface),
        ];
        RouteNetlinkMessage::NewRoute(message)
    }
}

fn address(ip: IpAddr) -> RouteAddress {
    match ip {
        IpAddr::V4(ip) => RouteAddress::Inet(ip),
        IpAddr::V6(ip) => RouteAddress::Inet6(ip),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use weft_port::testing::{Namespace, privileged};

    use super::*;

    fn route(number: u32, gateway: [u8; 4], prefix_length: u8) -> Route {
        let ip = std::net::Ipv4Addr::from_bits((20 << 24) + (number << 8)).into();
        let destination = InterfaceAddress { ip, prefix_length };
        Route { destination, gateway: IpAddr::from(gateway), interface: 77 }
    }

    fn shown(namespace: &Namespace, words: &str) -> String {
        namespace.run(|| {
            let output = Command::new("ip").args(words.split(' ')).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        })
    }

    #[test]
    fn routes_are_set_and_replaced_and_the_first_that_is_refused_is_named() {
        if !privileged() {
            return;
        }
        let namespace = Namespace::new();
        namespace.ip("link add name one index 77 type veth peer name two");
        namespace.ip("link set one up");
        namespace.ip("link set two up");
        let mut table = namespace.run(|| RouteTable::open().unwrap());
        let routes: Vec<_> = (0..250).map(|number| route(number, [10, 0, 0, 1], 24)).collect();
        table.replace(&routes).unwrap();
        let count = |text: String| text.lines().count();
        assert_eq!(count(shown(&namespace, "route show via 10.0.0.1")), 250);
        let replaced: Vec<_> = (0..30).map(|number| route(number, [10, 0, 0, 2], 24)).collect();
        table.replace(&replaced).unwrap();
        assert_eq!(count(shown(&namespace, "route show via 10.0.0.1")), 220);
        assert_eq!(count(shown(&namespace, "route show via 10.0.0.2")), 30);
        // A bit behind the prefix is set.
        let mut wrong: Vec<_> = (0..250).map(|number| route(number, [10, 0, 0, 3], 24)).collect();
        wrong[120] = route(7, [10, 0, 0, 3], 20);
        wrong[130] = route(9, [10, 0, 0, 3], 20);
        let (place, refusal) = table.replace(&wrong).unwrap_err();
        assert_eq!((place, refusal.code()), (120, Some(libc::EINVAL)));
        // The socket goes on to work.
        table.replace(&routes).unwrap();
        assert_eq!(count(shown(&namespace, "route show via 10.0.0.1")), 250);
    }

    #[test]
    fn a_route_of_ipv6_is_set() {
        if !privileged() {
            return;
        }
        let namespace = Namespace::new();
        namespace.ip("link add name one index 77 type veth peer name two");
        namespace.ip("link set one up");
        let mut table = namespace.run(|| RouteTable::open().unwrap());
        let destination = InterfaceAddress { ip: "2001:db8::".parse().unwrap(), prefix_length: 32 };
        let gateway = "fe80::1".parse().unwrap();
        table.replace(&[Route { destination, gateway, interface: 77 }]).unwrap();
        let text = shown(&namespace, "-6 route show 2001:db8::/32");
        assert!(text.contains("via fe80::1 dev one"), "{text}");
    }
}
