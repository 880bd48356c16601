//! The peer: the same namespaces and cables, and the kernel's own IPv4 forwarding of the same prefixes.

use std::fmt::Write;

use super::network::{Network, PORTS, Side, text_of};
use super::prefixes::Prefix;

/// Lets the kernel forward each prefix to the port that is given for it.
pub(super) fn set_up<'a>(
    network: &Network,
    prefixes: impl Iterator<Item = (&'a Prefix, usize)>,
) -> Result<(), String> {
    // The senders' addresses lead nowhere, and packets may leave where they came from, which the kernel shall
    // neither refuse nor report.
    let mut script = "cd /proc/sys/net/ipv4; echo 1 > ip_forward; \
        for of in all default; do echo 0 > conf/$of/rp_filter; echo 0 > conf/$of/send_redirects; done; "
        .to_owned();
    let mut commands = String::new();
    for port in 0..PORTS {
        let (interface, host) = (Side::Router.interface(port), text_of(Side::Host.mac(port)));
        push(&mut script, format_args!("echo 0 > conf/{interface}/rp_filter; "));
        push(&mut script, format_args!("echo 0 > conf/{interface}/send_redirects; "));
        push(&mut commands, format_args!("address add 169.254.1.{port}/32 dev {interface}\n"));
        let neighbour =
            format_args!("neighbour add {} lladdr {host} dev {interface}\n", gateway(port));
        push(&mut commands, neighbour);
    }
    network.shell(Side::Router, &script)?;
    for (prefix, port) in prefixes {
        let (address, length, gateway) = (prefix.address, prefix.length, gateway(port));
        let interface = Side::Router.interface(port);
        let route =
            format_args!("route add {address}/{length} via {gateway} dev {interface} onlink\n");
        push(&mut commands, route);
    }
    network.feed(Side::Router, &["ip", "-batch", "-"], &commands)
}

fn gateway(port: usize) -> String {
    format!("169.254.0.{}", port + 1)
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    text.write_fmt(line).expect("writing to a string cannot fail");
}
