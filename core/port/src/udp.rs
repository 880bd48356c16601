//! UDP ports: datagrams of one IPv4 or IPv6 socket.
//!
//! An IPv6 socket takes IPv6 only, so that both families can bind the same port number. What goes over IPv6 is sent by
//! another socket ([`connected`](mod@crate::connected)), which hears its peer, too. Datagrams
//! longer than the path's MTU are fragmented by the kernel, which also keeps the path's MTU up to
//! date. What the network says about single datagrams (nobody listens, no route) is counted; a UDP
//! port is never lost.
//!
//! Reference: udp(7), ip(7), ipv6(7).

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, getsockname, ipproto, socket_with, sockopt,
};
use weft_base::{LinkAddress, Packet};

use crate::connected::{self, Sender};
use crate::port::one_or_two;
use crate::sys::address::Source;
use crate::sys::{interface, mmsg, socket};
use crate::{
    Lost, OpenError, Options, Port, PortDrop, PortInfo, PortSpec, PortStatistics, datagrams,
};

/// The MTU that is assumed where the interface is not known: Ethernet's.
const USUAL_MTU: usize = 1500;
/// IPv4 header without options and UDP header (RFC 791, RFC 768).
pub(crate) const IPV4_OVERHEAD: usize = 20 + 8;
/// IPv6 header and UDP header (RFC 8200, RFC 768).
pub(crate) const IPV6_OVERHEAD: usize = 40 + 8;
/// The largest IP packet whose length fits the IPv4 header's length field.
const LARGEST_PACKET: usize = 65_535;

pub(crate) struct UdpPort {
    socket: OwnedFd,
    /// What sends, where that is another socket.
    sender: Option<Sender>,
    info: PortInfo,
    statistics: PortStatistics,
    /// The kernel's drops that are in the statistics already.
    counted_drops: u32,
}

impl UdpPort {
    /// Opens the port that `spec`, a UDP port, describes.
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
        let local = local(spec);
        let open = || {
            let socket = new_socket(local).map_err(OpenError::system(spec, "socket"))?;
            datagrams::set_receive_buffer(socket.as_fd(), options.receive_buffer)
                .map_err(OpenError::system(spec, "setsockopt"))?;
            Ok(socket)
        };
        let socket = open()?;
        bind(&socket, &local).map_err(|errno| bind_error(spec, local, errno))?;
        let local = bound_address(&socket).map_err(OpenError::system(spec, "getsockname"))?;
        let overhead = if local.is_ipv4() { IPV4_OVERHEAD } else { IPV6_OVERHEAD };
        let mtu = mtu(&socket, local.ip(), overhead);
        let info = PortInfo { mac: [0; 6], mtu, local: Some(local) };
        let mut sockets = vec![socket];
        if connected::is_needed(local.ip()) {
            let sender = open()?;
            connected::bind_beside(&sockets[0], &sender, local)
                .map_err(|errno| bind_error(spec, local, errno))?;
            sockets.push(sender);
        }
        Ok((sockets, info))
    }

    /// Makes a port of sockets that are open, after a look at them.
    pub(crate) fn adopt(
        spec: &PortSpec,
        sockets: Vec<OwnedFd>,
        info: PortInfo,
    ) -> Result<Self, OpenError> {
        let local = local(spec);
        let (socket, sender) = one_or_two(spec, sockets, connected::is_needed(local.ip()))?;
        if let Some(sender) = &sender {
            check(spec, local, sender, info)?;
        }
        let port = Self::adopt_bound(spec, local, socket, info)?;
        Ok(Self { sender: sender.map(Sender::new), ..port })
    }

    /// Makes a port of a socket that is to be bound to `asked`.
    pub(crate) fn adopt_bound(
        spec: &PortSpec,
        asked: SocketAddr,
        socket: OwnedFd,
        info: PortInfo,
    ) -> Result<Self, OpenError> {
        check(spec, asked, &socket, info)?;
        let statistics = PortStatistics::default();
        Ok(Self { socket, sender: None, info, statistics, counted_drops: 0 })
    }

    /// The sockets that receive.
    fn receivers(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sender.iter().map(Sender::fd).chain([self.socket.as_fd()])
    }
}

/// Whether a socket is one of UDP that is bound to `asked`.
fn check(
    spec: &PortSpec,
    asked: SocketAddr,
    socket: &OwnedFd,
    info: PortInfo,
) -> Result<(), OpenError> {
    let wrong = |found: &str| OpenError::not_that(spec, found);
    let protocol = sockopt::socket_protocol(socket).map_err(|_| wrong("it is no socket"))?;
    let kind = sockopt::socket_type(socket);
    if (kind, protocol) != (Ok(SocketType::DGRAM), Some(ipproto::UDP)) {
        return Err(wrong("it is a socket of another kind"));
    }
    let bound = bound_address(socket).map_err(OpenError::system(spec, "getsockname"))?;
    let port = asked.port() == 0 || asked.port() == bound.port();
    if bound.ip() != asked.ip() || !port || info.local != Some(bound) {
        return Err(OpenError::not_that(spec, format!("it is bound to {bound}")));
    }
    Ok(())
}

/// Receives from one socket.
fn receive(
    socket: BorrowedFd<'_>,
    statistics: &mut PortStatistics,
    batch: &mut Vec<Packet>,
    max: usize,
) -> io::Result<()> {
    mmsg::receive(socket, max, false, |mut received| {
        let Source::Ip(peer) = received.source else { return };
        if received.truncated {
            return statistics.drops.add(PortDrop::ReceiveTooLong, 1);
        }
        statistics.received.add(received.packet.len());
        received.packet.meta.link = LinkAddress::Udp(peer);
        batch.push(received.packet);
    })
    .map(|_| ())
}

fn local(spec: &PortSpec) -> SocketAddr {
    let PortSpec::Udp { local } = spec else {
        unreachable!("only UDP ports are opened here");
    };
    *local
}

pub(crate) fn new_socket(local: SocketAddr) -> rustix::io::Result<OwnedFd> {
    let family = if local.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::DGRAM, flags, None)?;
    if local.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    Ok(socket)
}

pub(crate) fn bind_error(spec: &PortSpec, address: SocketAddr, errno: Errno) -> OpenError {
    match errno {
        Errno::ADDRINUSE => OpenError::AddressInUse { address },
        Errno::ADDRNOTAVAIL => OpenError::NoAddress { address },
        Errno::ACCESS | Errno::PERM => {
            OpenError::NoPrivilege { spec: spec.clone(), capability: "CAP_NET_BIND_SERVICE" }
        }
        errno => OpenError::system(spec, "bind")(errno),
    }
}

fn bound_address(socket: &OwnedFd) -> io::Result<SocketAddr> {
    Ok(getsockname(socket)?.try_into()?)
}

/// The largest payload that the interface with the bound address sends in one piece.
/// `overhead` is what the headers take.
pub(crate) fn mtu(socket: &OwnedFd, local: IpAddr, overhead: usize) -> usize {
    let mtu = interface::with_address(local)
        .and_then(|name| interface::look_up(socket.as_fd(), &name).ok())
        .map_or(USUAL_MTU, |found| found.mtu.min(LARGEST_PACKET));
    mtu.saturating_sub(overhead)
}

/// Why a datagram that the kernel refused with `errno` is dropped.
pub(crate) fn reason(errno: Errno) -> PortDrop {
    match errno {
        Errno::MSGSIZE => PortDrop::TransmitTooLong,
        Errno::NOBUFS => PortDrop::TransmitQueueFull,
        Errno::DESTADDRREQ => PortDrop::NoDestination,
        Errno::AFNOSUPPORT => PortDrop::WrongFamily,
        Errno::CONNREFUSED => PortDrop::Refused,
        Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN | Errno::HOSTDOWN => {
            PortDrop::Unreachable
        }
        _ => PortDrop::TransmitError,
    }
}

/// Where a packet goes.
fn destination(packet: &Packet) -> Option<SocketAddr> {
    match packet.meta.link {
        LinkAddress::Udp(address) => Some(address),
        LinkAddress::None | LinkAddress::Mac(_) | LinkAddress::Ip(_) => None,
    }
}

impl Port for UdpPort {
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
        let before = batch.len();
        let Self { socket, sender, statistics, .. } = self;
        if let Some(sender) = sender {
            // Neither keeps the other's packets waiting.
            let half = max.min(datagrams::BATCH).div_ceil(2);
            // It says that nothing is waiting, or what the network says of a packet that was sent.
            let _ = receive(sender.fd(), statistics, batch, half);
        }
        let max = max.min(datagrams::BATCH) - (batch.len() - before);
        if max == 0 {
            return Ok(());
        }
        let result = receive(socket.as_fd(), statistics, batch, max);
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
        let drops: io::Result<Vec<_>> = self.receivers().map(socket::drops).collect();
        if let Ok(drops) = drops {
            let drops = drops.into_iter().fold(0, u32::wrapping_add);
            let new = drops.wrapping_sub(self.counted_drops);
            self.counted_drops = drops;
            self.statistics.drops.add(PortDrop::ReceiveQueueFull, new.into());
        }
        &self.statistics
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{receive_some, send_all};

    fn open(local: &str) -> Result<UdpPort, OpenError> {
        UdpPort::open(&PortSpec::Udp { local: local.parse().unwrap() }, &Options::default())
    }

    fn to(port: &UdpPort, bytes: &[u8]) -> Packet {
        let mut packet = Packet::from_slice(bytes);
        packet.meta.link = LinkAddress::Udp(port.info.local.unwrap());
        packet
    }

    fn exchange(local: &str) {
        let (mut a, mut b) = (open(local).unwrap(), open(local).unwrap());
        let payloads: Vec<Vec<u8>> =
            [0, 1, 1452, 1792, 1793, 9000, 60_000].iter().map(|len| vec![7; *len]).collect();
        send_all(payloads.iter().map(|bytes| to(&b, bytes)), &mut a);
        let received = receive_some(&mut b, payloads.len());
        for (packet, bytes) in received.iter().zip(&payloads) {
            assert_eq!(packet.bytes(), bytes);
            assert_eq!(packet.meta.link, LinkAddress::Udp(a.info.local.unwrap()));
        }
        assert_eq!(a.statistics().sent, b.statistics().received);
        assert_eq!(b.statistics().drops.total(), 0);
    }

    #[test]
    fn datagrams_of_every_length_arrive_in_order_with_their_sender() {
        exchange("127.0.0.1:0");
        exchange("[::1]:0");
    }

    #[test]
    fn more_than_one_batch_arrives() {
        let (mut a, mut b) = (open("127.0.0.1:0").unwrap(), open("127.0.0.1:0").unwrap());
        send_all((0..150_u8).map(|number| to(&b, &[number])), &mut a);
        let numbers: Vec<u8> =
            receive_some(&mut b, 150).iter().map(|packet| packet.bytes()[0]).collect();
        assert_eq!(numbers, (0..150).collect::<Vec<u8>>());
    }

    #[test]
    fn a_packet_that_cannot_go_is_counted_and_does_not_hold_up_the_others() {
        let (mut a, mut b) = (open("127.0.0.1:0").unwrap(), open("127.0.0.1:0").unwrap());
        let mut other_family = Packet::from_slice(b"x");
        other_family.meta.link = LinkAddress::Udp("[::1]:9".parse().unwrap());
        send_all(
            [
                to(&b, b"first"),
                Packet::from_slice(b"to nobody"),
                other_family,
                to(&b, &vec![0; 65_508]),
                to(&b, b"last"),
            ],
            &mut a,
        );
        let received = receive_some(&mut b, 2);
        assert_eq!((received[0].bytes(), received[1].bytes()), (&b"first"[..], &b"last"[..]));
        let drops = &a.statistics().drops;
        for reason in [PortDrop::NoDestination, PortDrop::WrongFamily, PortDrop::TransmitTooLong] {
            assert_eq!(drops.get(reason), 1, "{reason}");
        }
        assert_eq!(drops.total(), 3);
    }

    #[test]
    fn what_the_kernel_drops_for_lack_of_room_is_counted_once() {
        let options = Options { receive_buffer: 4096, ..Options::default() };
        let spec = PortSpec::Udp { local: "127.0.0.1:0".parse().unwrap() };
        let mut small = UdpPort::open(&spec, &options).unwrap();
        let mut sender = open("127.0.0.1:0").unwrap();
        send_all((0..200).map(|_| to(&small, &[0; 1000])), &mut sender);
        let mut batch = Vec::new();
        while small.receive(&mut batch, 64).is_ok_and(|()| !batch.is_empty()) {
            batch.clear();
        }
        let statistics = small.statistics().clone();
        let dropped = statistics.drops.get(PortDrop::ReceiveQueueFull);
        assert!(dropped > 0);
        assert_eq!(dropped + statistics.received.packets, 200);
        assert_eq!(small.statistics().drops.total(), dropped);
    }

    #[test]
    fn a_socket_that_was_opened_elsewhere_makes_a_port_if_it_is_bound_as_it_should_be() {
        let spec = |local: &str| PortSpec::Udp { local: local.parse().unwrap() };
        let any = spec("127.0.0.1:0");
        let opened = || UdpPort::open_descriptors(&any, &Options::default()).unwrap();
        let ((a, a_info), (b, b_info)) = (opened(), opened());
        let mut a = UdpPort::adopt(&any, a, a_info).unwrap();
        // The port that the system chose is as good as none.
        let mut b = UdpPort::adopt(&spec(&b_info.local.unwrap().to_string()), b, b_info).unwrap();
        send_all([to(&b, b"there")], &mut a);
        assert_eq!(receive_some(&mut b, 1)[0].bytes(), b"there");

        let refusal = |spec: PortSpec, socket: Vec<OwnedFd>, info| {
            UdpPort::adopt(&spec, socket, info).err().unwrap().to_string()
        };
        let (socket, info) = opened();
        assert!(refusal(spec("127.0.0.2:0"), socket, info).contains("bound to 127.0.0.1:"));
        let (socket, info) = opened();
        assert!(refusal(spec("127.0.0.1:1"), socket, info).contains("bound to 127.0.0.1:"));
        assert!(refusal(any.clone(), opened().0, info).contains("bound to 127.0.0.1:"));
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(refusal(any.clone(), vec![tcp.into()], info).contains("another kind"));
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(refusal(any.clone(), vec![file.into()], info).contains("no socket"));
    }

    #[test]
    fn the_mtu_leaves_room_for_the_headers() {
        assert_eq!(open("0.0.0.0:0").unwrap().info.mtu, 1472);
        assert_eq!(open("[::]:0").unwrap().info.mtu, 1452);
        assert_eq!(open("127.0.0.1:0").unwrap().info.mtu, 65_507);
    }

    #[test]
    fn opening_errors_name_the_address_and_the_remedy() {
        let taken = open("127.0.0.1:0").unwrap();
        let address = taken.info.local.unwrap();
        let text = open(&address.to_string()).err().unwrap().to_string();
        assert!(text.contains(&address.to_string()) && text.contains("ss -ulpn"), "{text}");
        let text = open("192.0.2.1:0").err().unwrap().to_string();
        assert!(text.contains("192.0.2.1") && text.contains("ip address"), "{text}");
    }
}
