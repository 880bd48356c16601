//! Sending over IPv6 from ports of UDP and IP: by a socket beside the one that receives, which is connected to where
//! each packet goes.
//!
//! A process with a system call filter names no address of IPv6 in sendto(2), as no filter can tell that from one of
//! a packet socket on another's interface (see the handbook, "Privileges"). It may connect(2), which packet sockets
//! do not know. A connected socket hears its peer alone, so what receives is another one, at the same address.
//!
//! Reference: connect(2), ipv6(7), udp(7), raw(7); `__ip6_datagram_connect` of net/ipv6/datagram.c.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{bind, connect, sockopt};
use weft_base::Packet;

use crate::datagrams::{self, Sent};

/// The socket that sends.
pub(crate) struct Sender {
    socket: OwnedFd,
    /// To where it is connected.
    peer: Option<SocketAddr>,
}

/// Whether a port at this address sends by a socket of its own. One at the unspecified address does not: the system
/// chooses the source of each packet, and connecting would settle it.
pub(crate) fn is_needed(local: IpAddr) -> bool {
    local.is_ipv6() && !local.is_unspecified()
}

/// Binds a second socket to the address of the first one, and leaves no room for a third one, whoever asks.
///
/// # Errors
/// Those of setsockopt(2) and bind(2).
pub(crate) fn bind_beside(
    first: &OwnedFd,
    second: &OwnedFd,
    local: SocketAddr,
) -> rustix::io::Result<()> {
    for socket in [first, second] {
        sockopt::set_socket_reuseaddr(socket, true)?;
    }
    bind(second, &local)?;
    for socket in [first, second] {
        sockopt::set_socket_reuseaddr(socket, false)?;
    }
    Ok(())
}

impl Sender {
    /// Sends by this socket, which is bound.
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { socket, peer: None }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Forgets what the network said of packets that have left, which a socket that is not connected is not told. Until then
    /// it would be readable, and refuse the next packet.
    pub(crate) fn forget_errors(&self) {
        let _ = sockopt::socket_error(&self.socket);
    }

    /// As [`datagrams::send`].
    ///
    /// # Errors
    /// Those of `refused`.
    pub(crate) fn send<E>(
        &mut self,
        queue: &mut VecDeque<Packet>,
        destination: impl Fn(&Packet) -> Option<SocketAddr>,
        sent: impl FnMut(&Packet),
        refused: impl FnMut(Errno) -> Result<(), E>,
    ) -> Result<Sent, E> {
        let send = |packet: &Packet| self.send_one(packet.bytes(), destination(packet));
        datagrams::send_each(queue, send, sent, refused)
    }

    fn send_one(
        &mut self,
        bytes: &[u8],
        destination: Option<SocketAddr>,
    ) -> rustix::io::Result<()> {
        let destination = destination.ok_or(Errno::DESTADDRREQ)?;
        if self.peer != Some(destination) {
            self.peer = None;
            connect(&self.socket, &destination)?;
            self.peer = Some(destination);
        }
        match datagrams::send_one(self.fd(), bytes, None) {
            Err(errno) if !matches!(errno, Errno::AGAIN | Errno::INTR) => {
                // It may have been said of an earlier packet, and is said once.
                datagrams::send_one(self.fd(), bytes, None)
            }
            result => result,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use rustix::event::PollFlags;
    use weft_base::LinkAddress;

    use super::*;
    use crate::testing::{receive_some, send_all, wait};
    use crate::{Options, Port, PortDrop, PortSpec};

    fn open() -> Box<dyn Port> {
        let spec: PortSpec = "udp:[::1]:0".parse().unwrap();
        crate::open(&spec, &Options::default()).unwrap()
    }

    fn to(peer: SocketAddr, number: u8) -> Packet {
        let mut packet = Packet::from_slice(&[number]);
        packet.meta.link = LinkAddress::Udp(peer);
        packet
    }

    #[test]
    fn packets_to_many_peers_and_from_many_peers_share_one_address() {
        let mut port = open();
        let own = port.info().local.unwrap();
        let peers: Vec<_> = (0..3).map(|_| UdpSocket::bind("[::1]:0").unwrap()).collect();
        // The one that it sends to, those that it has sent to, and those that it never does.
        let address = |number: usize| peers[number].local_addr().unwrap();
        send_all([0, 1, 0, 1].map(|number| to(address(number), number as u8)), &mut *port);
        let mut byte = [0];
        for number in [0, 1, 0, 1] {
            let (_, from) = peers[number].recv_from(&mut byte).unwrap();
            assert_eq!((usize::from(byte[0]), from), (number, own));
        }
        for _ in 0..40 {
            for (number, peer) in (0_u8..).zip(&peers) {
                peer.send_to(&[number], own).unwrap();
            }
        }
        let mut counts = [0; 3];
        for packet in receive_some(&mut *port, 120) {
            let number = usize::from(packet.bytes()[0]);
            assert_eq!(packet.meta.link, LinkAddress::Udp(address(number)));
            counts[number] += 1;
        }
        assert_eq!(counts, [40; 3]);
        assert_eq!(port.statistics().received.packets, 120);
        assert_eq!(port.statistics().drops.total(), 0);
    }

    #[test]
    fn what_the_network_says_of_one_packet_does_not_cost_the_next_one() {
        let mut port = open();
        let nobody = UdpSocket::bind("[::1]:0").unwrap().local_addr().unwrap();
        let peer = UdpSocket::bind("[::1]:0").unwrap();
        let there = peer.local_addr().unwrap();
        send_all([to(nobody, 1), to(there, 2), to(nobody, 3), to(nobody, 4)], &mut *port);
        let mut byte = [0];
        peer.recv_from(&mut byte).unwrap();
        assert_eq!(byte, [2]);
        assert_eq!(port.statistics().sent.packets, 4, "on loopback the answer is there at once");
        assert_eq!(port.statistics().drops.total(), 0);
        // What was said last is still there: it is readable, and then no more.
        wait(&*port, PollFlags::IN);
        let mut batch = Vec::new();
        port.receive(&mut batch, 64).unwrap();
        assert!(batch.is_empty());
        assert_eq!(sockopt::socket_error(port.fd()), Ok(Ok(())));
    }

    #[test]
    fn a_port_has_room_for_no_third_socket() {
        let port = open();
        let own = port.info().local.unwrap();
        let third = crate::udp::new_socket(own).unwrap();
        sockopt::set_socket_reuseaddr(&third, true).unwrap();
        assert_eq!(bind(&third, &own), Err(Errno::ADDRINUSE));
    }

    #[test]
    fn what_cannot_be_reached_is_counted_and_the_others_go() {
        let mut port = open();
        let peer = UdpSocket::bind("[::1]:0").unwrap();
        let there = peer.local_addr().unwrap();
        let elsewhere = "192.0.2.1:9".parse().unwrap();
        send_all(
            [to(there, 1), to(elsewhere, 2), Packet::from_slice(b"x"), to(there, 3)],
            &mut *port,
        );
        let mut byte = [0];
        for number in [1, 3] {
            peer.recv_from(&mut byte).unwrap();
            assert_eq!(byte, [number]);
        }
        let drops = &port.statistics().drops;
        for reason in [PortDrop::WrongFamily, PortDrop::NoDestination] {
            assert_eq!(drops.get(reason), 1, "{reason}");
        }
        assert_eq!(drops.total(), 2);
    }

    #[test]
    fn a_second_socket_of_another_address_is_refused() {
        let spec: PortSpec = "udp:[::1]:0".parse().unwrap();
        let opened = || crate::open_descriptors(&spec, &Options::default()).unwrap();
        let ((mut one, info), (mut other, _)) = (opened(), opened());
        one[1] = other.remove(1);
        let refused = crate::adopt(&spec, one, info, &Options::default()).err().unwrap();
        assert!(refused.to_string().contains("bound to [::1]:"), "{refused}");
        for count in [0, 1] {
            let (mut few, info) = opened();
            few.truncate(count);
            assert!(crate::adopt(&spec, few, info, &Options::default()).is_err());
        }
    }
}
