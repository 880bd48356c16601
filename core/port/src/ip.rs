//! IP ports: packets of one protocol number directly over IPv4 or IPv6, by a raw socket.
//!
//! The kernel writes the IP header and takes packets apart and together that are longer than the path's MTU;
//! a packet of this port is what stands behind that header. A socket of IPv4 hands over headers of what
//! it receives, which are taken off here; one of IPv6 does not. What goes over IPv6 is sent by another socket
//! ([`connected`](mod@crate::connected)), which hears nothing.
//!
//! Reference: raw(7), ip(7), ipv6(7); RFC 3692 for the numbers 253 and 254, which belong to nobody.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Protocol, RawProtocol, SocketFlags, SocketType, bind, getsockname, socket_with,
    sockopt,
};
use weft_base::{LinkAddress, Packet};

use crate::connected::{self, Sender};
use crate::port::one_or_two;
use crate::sys::address::Source;
use crate::sys::{filter, mmsg, socket};
use crate::udp::{mtu, reason};
use crate::{
    Lost, OpenError, Options, Port, PortDrop, PortInfo, PortSpec, PortStatistics, datagrams,
};

/// IPv4 header without options (RFC 791).
const IPV4_OVERHEAD: usize = 20;
/// IPv6 header (RFC 8200).
const IPV6_OVERHEAD: usize = 40;

pub(crate) struct IpPort {
    socket: OwnedFd,
    /// What sends, where that is another socket.
    sender: Option<Sender>,
    info: PortInfo,
    /// Whether what comes in begins with a header of IPv4.
    has_header: bool,
    statistics: PortStatistics,
    /// The kernel's drops that are in the statistics already.
    counted_drops: u32,
}

impl IpPort {
    /// Opens the port that `spec`, an IP port, describes.
    #[cfg(test)]
    pub(crate) fn open(spec: &PortSpec, options: &Options) -> Result<Self, OpenError> {
        let (sockets, info) = Self::open_descriptors(spec, options)?;
        Self::adopt(spec, sockets, info)
    }

    /// Opens its socket, or two, and binds them.
    pub(crate) fn open_descriptors(
        spec: &PortSpec,
        options: &Options,
    ) -> Result<(Vec<OwnedFd>, PortInfo), OpenError> {
        let (local, protocol) = asked(spec);
        let open = || {
            let socket = new_socket(local, protocol).map_err(|errno| match errno {
                Errno::ACCESS | Errno::PERM => {
                    OpenError::NoPrivilege { spec: spec.clone(), capability: "CAP_NET_RAW" }
                }
                errno => OpenError::system(spec, "socket")(errno),
            })?;
            bind(&socket, &local).map_err(|errno| match errno {
                Errno::ADDRNOTAVAIL => OpenError::NoAddress { address: local },
                errno => OpenError::system(spec, "bind")(errno),
            })?;
            Ok(socket)
        };
        let socket = open()?;
        datagrams::set_receive_buffer(socket.as_fd(), options.receive_buffer)
            .map_err(OpenError::system(spec, "setsockopt"))?;
        let overhead = if local.is_ipv4() { IPV4_OVERHEAD } else { IPV6_OVERHEAD };
        let mtu = mtu(&socket, local.ip(), overhead);
        let mut sockets = vec![socket];
        if connected::is_needed(local.ip()) {
            let sender = open()?;
            // Every raw socket gets a copy.
            filter::take_nothing(sender.as_fd()).map_err(OpenError::system(spec, "setsockopt"))?;
            sockets.push(sender);
        }
        Ok((sockets, PortInfo { mac: [0; 6], mtu, local: Some(local) }))
    }

    /// Makes a port of sockets that are open, after a look at them.
    pub(crate) fn adopt(
        spec: &PortSpec,
        sockets: Vec<OwnedFd>,
        info: PortInfo,
    ) -> Result<Self, OpenError> {
        let (local, protocol) = asked(spec);
        let (socket, sender) = one_or_two(spec, sockets, connected::is_needed(local.ip()))?;
        let wrong = |found: &str| OpenError::not_that(spec, found);
        for socket in sender.iter().chain([&socket]) {
            let found = sockopt::socket_protocol(socket).map_err(|_| wrong("it is no socket"))?;
            if sockopt::socket_type(socket) != Ok(SocketType::RAW) || found != Some(protocol) {
                return Err(wrong("it is a socket of another kind"));
            }
            let bound = bound_address(socket).map_err(OpenError::system(spec, "getsockname"))?;
            if bound != local.ip() || info.local != Some(local) {
                return Err(OpenError::not_that(spec, format!("it is bound to {bound}")));
            }
        }
        let (sender, has_header) = (sender.map(Sender::new), local.is_ipv4());
        let statistics = PortStatistics::default();
        Ok(Self { socket, sender, info, has_header, statistics, counted_drops: 0 })
    }
}

/// The address, without a port, and the protocol.
fn asked(spec: &PortSpec) -> (SocketAddr, Protocol) {
    let PortSpec::Ip { local, protocol } = spec else {
        unreachable!("only IP ports are opened here");
    };
    let protocol = RawProtocol::new(u32::from(protocol.get()))
        .expect("what is not zero stays so in a longer number");
    (SocketAddr::new(*local, 0), Protocol::from_raw(protocol))
}

fn new_socket(local: SocketAddr, protocol: Protocol) -> rustix::io::Result<OwnedFd> {
    let family = if local.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    socket_with(family, SocketType::RAW, flags, Some(protocol))
}

fn bound_address(socket: &OwnedFd) -> io::Result<IpAddr> {
    let address: SocketAddr = getsockname(socket)?.try_into()?;
    Ok(address.ip())
}

/// Where a packet goes.
fn destination(packet: &Packet) -> Option<SocketAddr> {
    match packet.meta.link {
        LinkAddress::Ip(address) => Some(SocketAddr::new(address, 0)),
        LinkAddress::None | LinkAddress::Mac(_) | LinkAddress::Udp(_) => None,
    }
}

/// Takes the header of IPv4 off; false if there is none.
fn take_header_off(packet: &mut Packet) -> bool {
    let Some(first) = packet.bytes().first() else { return false };
    let length = usize::from(first & 0xf) * 4;
    first >> 4 == 4 && length >= IPV4_OVERHEAD && packet.pull_front(length)
}

impl Port for IpPort {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.sender.as_ref().map_or(self.socket.as_fd(), Sender::fd)
    }

    fn second_fd(&self) -> Option<BorrowedFd<'_>> {
        self.sender.as_ref().map(|_| self.socket.as_fd())
    }

    fn receive(&mut self, batch: &mut Vec<Packet>, max: usize) -> Result<(), Lost> {
        let Self { socket, sender, statistics, has_header, .. } = self;
        sender.iter().for_each(Sender::forget_errors);
        let result = mmsg::receive(socket.as_fd(), max, false, |mut received| {
            let Source::Ip(peer) = received.source else { return };
            if received.truncated {
                return statistics.drops.add(PortDrop::ReceiveTooLong, 1);
            }
            if *has_header && !take_header_off(&mut received.packet) {
                return statistics.drops.add(PortDrop::ReceiveError, 1);
            }
            statistics.received.add(received.packet.len());
            received.packet.meta.link = LinkAddress::Ip(peer.ip());
            batch.push(received.packet);
        });
        if let Err(error) = result
            && !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
        {
            self.statistics.drops.add(PortDrop::ReceiveError, 1);
        }
        Ok(())
    }

    fn transmit(&mut self, queue: &mut VecDeque<Packet>) -> Result<(), Lost> {
        let Self { socket, sender, statistics: PortStatistics { sent, drops, .. }, .. } = self;
        let sent = |packet: &Packet| sent.add(packet.len());
        let refused = |errno| {
            drops.add(reason(errno), 1);
            Ok(())
        };
        match sender {
            Some(sender) => sender.send(queue, destination, sent, refused)?,
            None => datagrams::send(socket.as_fd(), queue, destination, sent, refused)?,
        };
        Ok(())
    }

    fn statistics(&mut self) -> &PortStatistics {
        if let Ok(drops) = socket::drops(self.socket.as_fd()) {
            let new = drops.wrapping_sub(self.counted_drops);
            self.counted_drops = drops;
            self.statistics.drops.add(PortDrop::ReceiveQueueFull, new.into());
        }
        &self.statistics
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use super::*;
    use crate::testing::{Namespace, privileged, receive_some, send_all};

    fn spec(local: &str, protocol: u8) -> PortSpec {
        let protocol = NonZero::new(protocol).unwrap();
        PortSpec::Ip { local: local.parse().unwrap(), protocol }
    }

    fn to(address: &str, bytes: &[u8]) -> Packet {
        let mut packet = Packet::from_slice(bytes);
        packet.meta.link = LinkAddress::Ip(address.parse().unwrap());
        packet
    }

    /// A namespace in which loopback has two addresses of each family.
    fn namespace() -> Namespace {
        let namespace = Namespace::new();
        namespace.add_address6("2001:db8::1/128", "lo");
        namespace
    }

    fn open(namespace: &Namespace, local: &str, protocol: u8) -> Result<IpPort, OpenError> {
        namespace.run(|| IpPort::open(&spec(local, protocol), &Options::default()))
    }

    fn exchange(one: &str, other: &str) {
        let namespace = namespace();
        let mut a = open(&namespace, one, 253).unwrap();
        let mut b = open(&namespace, other, 253).unwrap();
        let mut deaf = open(&namespace, other, 254).unwrap();
        let payloads: Vec<Vec<u8>> =
            [1, 40, 1452, 1793, 9000, 60_000].iter().map(|len| vec![7; *len]).collect();
        for bytes in &payloads {
            send_all([to(other, bytes)], &mut a);
            assert_eq!(a.statistics().drops.total(), 0, "{} octets to {other}", bytes.len());
            let packet = &receive_some(&mut b, 1)[0];
            assert_eq!(packet.bytes(), bytes);
            assert_eq!(packet.meta.link, LinkAddress::Ip(one.parse().unwrap()));
        }
        assert_eq!(a.statistics().sent, b.statistics().received);
        assert_eq!(b.statistics().drops.total(), 0);
        let mut none = Vec::new();
        deaf.receive(&mut none, 64).unwrap();
        assert!(none.is_empty(), "another protocol's");
    }

    #[test]
    fn packets_of_the_protocol_arrive_without_a_header_and_with_their_sender() {
        if !privileged() {
            return;
        }
        exchange("127.0.0.1", "127.0.0.2");
        exchange("::1", "2001:db8::1");
    }

    #[test]
    fn a_packet_that_cannot_go_is_counted_and_does_not_hold_up_the_others() {
        if !privileged() {
            return;
        }
        let namespace = namespace();
        let mut a = open(&namespace, "127.0.0.1", 253).unwrap();
        let mut b = open(&namespace, "127.0.0.2", 253).unwrap();
        let mut tunnelled = Packet::from_slice(b"x");
        tunnelled.meta.link = LinkAddress::Udp("127.0.0.2:9".parse().unwrap());
        let packets = [
            tunnelled,
            to("::1", b"x"),
            to("127.0.0.2", &vec![0; 65_516]),
            to("127.0.0.2", b"last"),
        ];
        send_all(packets, &mut a);
        assert_eq!(receive_some(&mut b, 1)[0].bytes(), b"last");
        let drops = &a.statistics().drops;
        for reason in [PortDrop::NoDestination, PortDrop::WrongFamily, PortDrop::TransmitTooLong] {
            assert_eq!(drops.get(reason), 1, "{reason}");
        }
        assert_eq!(drops.total(), 3);
    }

    #[test]
    fn a_socket_that_was_opened_elsewhere_makes_a_port_if_it_is_what_was_asked_for() {
        if !privileged() {
            return;
        }
        let namespace = namespace();
        let any = spec("127.0.0.1", 253);
        let opened =
            || namespace.run(|| IpPort::open_descriptors(&any, &Options::default()).unwrap());
        let (socket, info) = opened();
        assert_eq!(info.mtu, 65_515);
        assert!(IpPort::adopt(&any, socket, info).is_ok());
        let refusal = |spec: PortSpec, socket: Vec<OwnedFd>| {
            IpPort::adopt(&spec, socket, info).err().unwrap().to_string()
        };
        assert!(refusal(spec("127.0.0.2", 253), opened().0).contains("bound to 127.0.0.1"));
        assert!(refusal(spec("127.0.0.1", 254), opened().0).contains("another kind"));
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(refusal(any.clone(), vec![udp.into()]).contains("another kind"));
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(refusal(any.clone(), vec![file.into()]).contains("no socket"));
    }

    #[test]
    fn an_address_that_is_not_here_is_named() {
        if !privileged() {
            return;
        }
        let text = open(&namespace(), "192.0.2.1", 253).err().unwrap().to_string();
        assert!(text.contains("192.0.2.1") && text.contains("ip address"), "{text}");
    }

    #[test]
    fn only_a_header_of_ipv4_is_taken_off() {
        let taken = |bytes: &[u8]| {
            let mut packet = Packet::from_slice(bytes);
            take_header_off(&mut packet).then(|| packet.bytes().to_vec())
        };
        let mut bytes = vec![0x46; 24];
        bytes.extend(b"xip");
        assert_eq!(taken(&bytes), Some(b"xip".to_vec()));
        bytes[0] = 0x4f;
        assert_eq!(taken(&bytes), None, "longer than the packet");
        for first in [0x44, 0x65, 0x00] {
            bytes[0] = first;
            assert_eq!(taken(&bytes), None, "{first:#x}");
        }
        assert_eq!(taken(&[]), None);
    }
}
