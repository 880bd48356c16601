//! The peer: the same namespaces and cables, and the kernel's own IPv4 forwarding of the same prefixes.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType};
use weft_netlink::{
    InterfaceAddress, MAIN_TABLE, RouteChange, RouteOperation, RouteSpace, RouteTarget, RouteWay,
    RouteWriter,
};

use super::changes::Changes;
use super::network::{Network, Side, text_of};
use super::prefixes::Prefix;

/// Routes as somebody sets them by hand (`proto static`).
const SPACE: RouteSpace = RouteSpace { is_ipv6: false, table: MAIN_TABLE, protocol: 4 };

/// The kernel's routes.
pub(super) struct Linux {
    table: RouteWriter,
    prefixes: Vec<Prefix>,
    /// The way out of each port.
    ways: Vec<Arc<RouteTarget>>,
    changes: Changes,
}

impl Linux {
    /// Lets the kernel forward each prefix to the port that is given for it.
    pub(super) fn new(
        network: &Network,
        prefixes: &[Prefix],
        ports: &[usize],
    ) -> Result<Self, String> {
        prepare(network)?;
        let interfaces = (0..network.ports()).map(|port| network.interface(Side::Router, port));
        let interfaces: Vec<_> = interfaces.collect();
        let (table, interfaces): (_, Vec<u32>) = network.inside(Side::Router, || {
            let table = RouteWriter::open().map_err(|error| error.to_string())?;
            let indices = interfaces.iter().map(|name| index(name));
            Ok((table, indices.collect::<Result<_, _>>()?))
        })?;
        let changes = Changes::new(ports.to_vec(), network.ports());
        let ways = interfaces.into_iter().enumerate().map(|(port, interface)| {
            let gateway = Some(IpAddr::V4(gateway(port)));
            Arc::new(RouteTarget::ways(vec![RouteWay { gateway, interface, weight: 1 }]))
        });
        let ways = ways.collect();
        let mut linux = Self { table, prefixes: prefixes.to_vec(), ways, changes };
        let routes: Vec<_> =
            ports.iter().enumerate().map(|(prefix, port)| linux.route(prefix, *port)).collect();
        linux.set(&routes)?;
        Ok(linux)
    }

    fn route(&self, prefix: usize, port: usize) -> RouteChange {
        let Prefix { address, length } = self.prefixes[prefix];
        RouteChange {
            destination: InterfaceAddress { ip: IpAddr::V4(address), prefix_length: length },
            metric: 0,
            operation: RouteOperation::Replace(Arc::clone(&self.ways[port])),
        }
    }

    fn set(&mut self, routes: &[RouteChange]) -> Result<(), String> {
        let refused = self.table.change(&SPACE, routes);
        let refused =
            refused.map_err(|error| format!("the kernel cannot be told of routes: {error}"))?;
        match refused.first() {
            None => Ok(()),
            Some((place, refusal)) => {
                let to = routes[*place].destination;
                Err(format!("the kernel refuses the route to {to}: {refusal}"))
            }
        }
    }

    /// Makes so many changes.
    pub(super) fn change(&mut self, count: u64) -> Result<(), String> {
        let changes: Vec<_> = (0..count).map(|_| self.changes.next()).collect();
        let routes: Vec<_> =
            changes.iter().map(|(prefix, port)| self.route(*prefix, *port)).collect();
        self.set(&routes)
    }
}

/// Everything but the routes.
fn prepare(network: &Network) -> Result<(), String> {
    // The senders' addresses lead nowhere, and packets may leave where they came from, which the kernel shall
    // neither refuse nor report.
    let mut script = "cd /proc/sys/net/ipv4; echo 1 > ip_forward; \
        for of in all default; do echo 0 > conf/$of/rp_filter; echo 0 > conf/$of/send_redirects; done; "
        .to_owned();
    for port in 0..network.ports() {
        let (interface, host) =
            (network.interface(Side::Router, port), text_of(Side::Host.mac(port)));
        let gateway = gateway(port);
        push(
            &mut script,
            format_args!(
                "echo 0 > conf/{interface}/rp_filter; echo 0 > conf/{interface}/send_redirects; \
                 ip address add 169.254.1.{port}/32 dev {interface}; \
                 ip neighbour add {gateway} lladdr {host} dev {interface}; "
            ),
        );
    }
    network.shell(Side::Router, &script)
}

/// The index of an interface of the calling thread's network namespace.
fn index(interface: &str) -> Result<u32, String> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None);
    let found = socket.and_then(|socket| name_to_index(&socket, interface));
    found.map_err(|errno| format!("there is no interface {interface}: {errno}"))
}

fn gateway(port: usize) -> Ipv4Addr {
    Ipv4Addr::new(169, 254, 0, port as u8 + 1)
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    text.write_fmt(line).expect("writing to a string cannot fail");
}
