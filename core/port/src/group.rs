//! Ports of groups on links: UDP sockets of routing protocols.
//!
//! A socket is bound to its interface before it is bound to the port, so that each link can have one, and nobody
//! else's at the same port is disturbed. It does not hear itself.
//!
//! Reference: udp(7), ip(7), ipv6(7), socket(7); RFC 5082 (hop limits), RFC 4594 §3.2 (traffic class).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{bind, sockopt};

use crate::link::Link;
use crate::stream::NETWORK_CONTROL;
use crate::sys::{self, filter};
use crate::udp::{IPV4_OVERHEAD, IPV6_OVERHEAD, UdpPort, bind_error, new_socket};
use crate::{OpenError, Options, PortInfo, PortSpec, datagrams};

/// What is sent to a group of IPv4 goes no further than the link.
const TTL: u32 = 1;
/// What comes over IPv6 with less has been passed on (RFC 5082 §3).
const HOP_LIMIT: u8 = 255;

/// Opens the socket of a port and binds it.
pub(crate) fn open_descriptor(
    spec: &PortSpec,
    options: &Options,
) -> Result<(OwnedFd, PortInfo), OpenError> {
    let (name, group) = asked(spec);
    let link = Link::find_any(spec, name)?;
    let local = local(group);
    let socket = new_socket(local).map_err(OpenError::system(spec, "socket"))?;
    datagrams::set_receive_buffer(socket.as_fd(), options.receive_buffer)
        .map_err(OpenError::system(spec, "setsockopt"))?;
    sys::stream::bind_to_interface(socket.as_fd(), name)
        .map_err(OpenError::system(spec, "setsockopt"))?;
    bind(&socket, &local).map_err(|errno| bind_error(spec, local, errno))?;
    join(&socket, group.ip(), link.index).map_err(OpenError::system(spec, "setsockopt"))?;
    let overhead = if local.is_ipv4() { IPV4_OVERHEAD } else { IPV6_OVERHEAD };
    let mtu = link.info.mtu.saturating_sub(overhead);
    Ok((socket, PortInfo { mac: link.info.mac, mtu, local: Some(local) }))
}

/// Makes a port of a socket that is open, after a look at it.
pub(crate) fn adopt(
    spec: &PortSpec,
    socket: OwnedFd,
    info: PortInfo,
) -> Result<UdpPort, OpenError> {
    let (_, group) = asked(spec);
    UdpPort::adopt_bound(spec, local(group), socket, info)
}

fn asked(spec: &PortSpec) -> (&str, SocketAddr) {
    let PortSpec::Group { interface, group } = spec else {
        unreachable!("only ports of groups are opened here");
    };
    (interface, *group)
}

/// It takes what is sent to this host, too.
fn local(group: SocketAddr) -> SocketAddr {
    let any: IpAddr = match group {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    SocketAddr::new(any, group.port())
}

fn join(socket: &OwnedFd, group: IpAddr, index: i32) -> io::Result<()> {
    // Numbers of interfaces are positive.
    let index = index.unsigned_abs();
    match group {
        IpAddr::V4(group) => {
            let any = Ipv4Addr::UNSPECIFIED;
            sockopt::set_ip_add_membership_with_ifindex(socket, &group, &any, index)?;
            sockopt::set_ip_multicast_if_with_ifindex(socket, &any, &any, index)?;
            sockopt::set_ip_multicast_loop(socket, false)?;
            sockopt::set_ip_multicast_ttl(socket, TTL)?;
            sockopt::set_ip_tos(socket, NETWORK_CONTROL)?;
        }
        IpAddr::V6(group) => {
            sockopt::set_ipv6_add_membership(socket, &group, index)?;
            sockopt::set_ipv6_multicast_if(socket, index)?;
            sockopt::set_ipv6_multicast_loop(socket, false)?;
            sockopt::set_ipv6_multicast_hops(socket, HOP_LIMIT.into())?;
            sockopt::set_ipv6_unicast_hops(socket, Some(HOP_LIMIT))?;
            sockopt::set_ipv6_tclass(socket, NETWORK_CONTROL.into())?;
            filter::require_hop_limit(socket.as_fd(), HOP_LIMIT)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use weft_base::{LinkAddress, Packet};

    use super::*;
    use crate::Port;
    use crate::testing::{Namespace, privileged, receive_some, send_all};

    const SPEC: &str = "[ff02::9]:521";

    fn open(namespace: &Namespace, spec: &str) -> Result<UdpPort, OpenError> {
        let spec = spec.parse().unwrap();
        namespace.run(|| {
            let (socket, info) = open_descriptor(&spec, &Options::default())?;
            adopt(&spec, socket, info)
        })
    }

    fn to(address: &str, bytes: &[u8]) -> Packet {
        let mut packet = Packet::from_slice(bytes);
        packet.meta.link = LinkAddress::Udp(address.parse().unwrap());
        packet
    }

    /// Two interfaces with a wire between them, in one namespace.
    fn namespace() -> Namespace {
        let namespace = Namespace::new();
        for command in
            ["link add name one type veth peer name two", "link set one up", "link set two up"]
        {
            namespace.ip(command);
        }
        namespace.add_address6("fe80::1/64", "one");
        namespace.add_address6("fe80::2/64", "two");
        namespace
    }

    #[test]
    fn what_is_sent_to_the_group_arrives_on_the_link() {
        if !privileged() {
            return;
        }
        let namespace = namespace();
        let mut one = open(&namespace, &format!("group:one:{SPEC}")).unwrap();
        let mut two = open(&namespace, &format!("group:two:{SPEC}")).unwrap();
        // From another socket, which sends with a hop limit as if it were far away.
        let far = namespace.run(|| std::net::UdpSocket::bind("[::]:0").unwrap());
        let spec = format!("group:one:{SPEC}").parse().unwrap();
        let index = namespace.run(|| Link::find_any(&spec, "one").unwrap().index);
        sockopt::set_ipv6_multicast_if(&far, index.unsigned_abs()).unwrap();
        sockopt::set_ipv6_multicast_hops(&far, 64).unwrap();
        far.send_to(b"far", SPEC).unwrap();
        send_all([to(SPEC, b"hello")], &mut one);
        let received = receive_some(&mut two, 1);
        assert_eq!(received[0].bytes(), b"hello", "what came before it was dropped");
        let LinkAddress::Udp(from) = received[0].meta.link else { panic!() };
        assert_eq!(from.port(), 521);
        let mut batch = Vec::new();
        one.receive(&mut batch, 8).unwrap();
        assert!(batch.is_empty(), "it does not hear itself");
    }

    #[test]
    fn one_link_has_one_port_and_errors_say_what_to_do() {
        if !privileged() {
            return;
        }
        let namespace = namespace();
        let _one = open(&namespace, "group:one:224.0.0.9:520").unwrap();
        let _two = open(&namespace, "group:two:224.0.0.9:520").unwrap();
        let again = open(&namespace, "group:one:224.0.0.9:520").err().unwrap().to_string();
        assert!(again.contains("520") && again.contains("ss -ulpn"), "{again}");
        let missing = open(&namespace, "group:three:224.0.0.9:520").err().unwrap().to_string();
        assert!(missing.contains("three"), "{missing}");
    }
}
