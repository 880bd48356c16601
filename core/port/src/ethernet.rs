//! Ethernet ports: whole frames of one EtherType on one interface.
//!
//! A packet socket that is bound to an EtherType: the kernel hands up only its frames, so that stacks
//! that share a NIC do not see one another's. `recvmmsg` of 64 frames is as fast as the memory-mapped
//! ring and needs far less code.
//!
//! Frames leave by `write`, one at a time. `sendmmsg` would spare some 40 of 560 ns of processor time for a
//! short frame, and nothing that can be measured for one of 1,514 bytes. But it takes addresses from
//! memory, where a system call filter does not see them, and with an address the holder of the socket can
//! send on every interface. Where a filter forbids `sendmsg`, `sendmmsg` and `sendto` with such an address, a
//! process can use no other interface than the one that its socket is bound to. `write` has no address at
//! all, so a filter lets it pass without a look at its arguments, which spares some 200 ns a frame there.
//! The memory-mapped ring for sending (`PACKET_TX_RING`) is no faster than either: it copies once more.
//!
//! Frames leave through the interface's queueing discipline unless
//! [`Options::qdisc_bypass`] is set. A frame with a VLAN tag other than the priority tag counts as
//! addressed to another host (the kernel says so).
//!
//! Reference: packet(7).

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, write};
use rustix::net::{AddressFamily, SocketType, sockopt};
use weft_base::{LinkAddress, Packet};

use crate::link::Link;
use crate::sys::address::Source;
use crate::sys::{mmsg, packet_socket};
use crate::{
    Lost, OpenError, Options, Port, PortDrop, PortInfo, PortSpec, PortStatistics, datagrams,
};

pub(crate) struct EthernetPort {
    socket: OwnedFd,
    interface: Bound,
    info: PortInfo,
    /// Takes frames for other hosts, too.
    promiscuous: bool,
    statistics: PortStatistics,
}

impl EthernetPort {
    /// Opens the port that `spec`, an Ethernet port, describes.
    #[cfg(test)]
    pub(crate) fn open(spec: &PortSpec, options: &Options) -> Result<Self, OpenError> {
        let (socket, info) = Self::open_descriptor(spec, options)?;
        Self::adopt(spec, socket, info, options)
    }

    /// Opens its socket and sets it up, for which privileges are needed.
    pub(crate) fn open_descriptor(
        spec: &PortSpec,
        options: &Options,
    ) -> Result<(OwnedFd, PortInfo), OpenError> {
        let (name, ethertype) = parts(spec);
        let socket = packet_socket::open().map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => {
                OpenError::NoPrivilege { spec: spec.clone(), capability: "CAP_NET_RAW" }
            }
            _ => OpenError::system(spec, "socket")(error),
        })?;
        let Link { index, info, .. } = Link::find(spec, name)?;
        configure(&socket, options).map_err(OpenError::system(spec, "setsockopt"))?;
        packet_socket::bind(socket.as_fd(), index, ethertype)
            .map_err(OpenError::system(spec, "bind"))?;
        if options.promiscuous {
            packet_socket::take_all(socket.as_fd(), index)
                .map_err(OpenError::system(spec, "setsockopt"))?;
        }
        Ok((socket, info))
    }

    /// Makes a port of a socket that is open, after a look at it.
    pub(crate) fn adopt(
        spec: &PortSpec,
        socket: OwnedFd,
        info: PortInfo,
        options: &Options,
    ) -> Result<Self, OpenError> {
        let (name, ethertype) = parts(spec);
        let wrong = |found: &str| OpenError::not_that(spec, found);
        let domain = sockopt::socket_domain(&socket).map_err(|_| wrong("it is no socket"))?;
        if domain != AddressFamily::PACKET || sockopt::socket_type(&socket) != Ok(SocketType::RAW) {
            return Err(wrong("it is a socket of another kind"));
        }
        let bound =
            packet_socket::bound(socket.as_fd()).map_err(OpenError::system(spec, "getsockname"))?;
        if bound.ethertype != ethertype {
            let found = format!("it is bound to EtherType {:#06x}", bound.ethertype);
            return Err(OpenError::not_that(spec, found));
        }
        if bound.index < 1 {
            return Err(wrong("it is bound to no interface, or that is gone"));
        }
        if bound.mac != Some(info.mac) {
            return Err(wrong("it is bound to an interface with another address"));
        }
        Ok(Self {
            socket,
            interface: Bound { name: name.to_owned(), index: bound.index },
            info,
            promiscuous: options.promiscuous,
            statistics: PortStatistics::default(),
        })
    }
}

/// Interface and EtherType.
fn parts(spec: &PortSpec) -> (&str, u16) {
    let PortSpec::Ethernet { interface, ethertype } = spec else {
        unreachable!("only Ethernet ports are opened here");
    };
    (interface, *ethertype)
}

/// The interface that a socket is bound to.
struct Bound {
    name: String,
    index: i32,
}

impl Bound {
    /// What it means that a call on `socket` failed with `errno`, if it means that this interface
    /// is gone. Of an interface that vanishes, the kernel first forgets the address (`packet_getname`),
    /// then it unbinds the socket.
    fn lost(&self, socket: BorrowedFd<'_>, errno: Errno) -> Option<Lost> {
        if !matches!(errno, Errno::NETDOWN | Errno::NXIO | Errno::NODEV) {
            return None;
        }
        let name = self.name.clone();
        Some(match packet_socket::bound(socket) {
            Ok(bound) if bound.index == self.index && bound.mac.is_some() => Lost::Down { name },
            _ => Lost::Deleted { name },
        })
    }
}

fn configure(socket: &OwnedFd, options: &Options) -> io::Result<()> {
    if !options.outgoing {
        packet_socket::ignore_outgoing(socket.as_fd())?;
    }
    if options.qdisc_bypass {
        packet_socket::bypass_qdisc(socket.as_fd())?;
    }
    datagrams::set_receive_buffer(socket.as_fd(), options.receive_buffer)
}

/// Why a frame that the kernel refused with `errno` is dropped.
fn reason(errno: Errno) -> PortDrop {
    match errno {
        Errno::MSGSIZE => PortDrop::TransmitTooLong,
        Errno::NOBUFS => PortDrop::TransmitQueueFull,
        _ => PortDrop::TransmitError,
    }
}

impl Port for EthernetPort {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn receive(&mut self, batch: &mut Vec<Packet>, max: usize) -> Result<(), Lost> {
        let Self { socket, statistics, promiscuous, .. } = self;
        let result = mmsg::receive(socket.as_fd(), max, false, |mut received| {
            let Source::Link { mac, kind } = received.source else { return };
            if kind == libc::PACKET_OTHERHOST && !*promiscuous {
                return statistics.drops.add(PortDrop::OtherHost, 1);
            }
            if received.truncated {
                return statistics.drops.add(PortDrop::ReceiveTooLong, 1);
            }
            statistics.received.add(received.packet.len());
            received.packet.meta.link = LinkAddress::Mac(mac);
            batch.push(received.packet);
        });
        let Err(error) = result else { return Ok(()) };
        match Errno::from_io_error(&error).unwrap_or(Errno::IO) {
            Errno::AGAIN | Errno::INTR => {}
            errno => match self.interface.lost(self.socket.as_fd(), errno) {
                Some(lost) => return Err(lost),
                None => self.statistics.drops.add(PortDrop::ReceiveError, 1),
            },
        }
        Ok(())
    }

    fn transmit(&mut self, queue: &mut VecDeque<Packet>) -> Result<(), Lost> {
        let Self { socket, interface, statistics: PortStatistics { sent, drops, .. }, .. } = self;
        while let Some(packet) = queue.front() {
            // The socket does not block.
            match write(&*socket, packet.bytes()) {
                Ok(_) => sent.add(packet.len()),
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => continue,
                Err(errno) => match interface.lost(socket.as_fd(), errno) {
                    Some(lost) => return Err(lost),
                    None => drops.add(reason(errno), 1),
                },
            }
            queue.pop_front();
        }
        Ok(())
    }

    fn statistics(&mut self) -> &PortStatistics {
        if let Ok(drops) = packet_socket::take_drops(self.socket.as_fd()) {
            self.statistics.drops.add(PortDrop::ReceiveQueueFull, drops.into());
        }
        &self.statistics
    }
}

#[cfg(test)]
#[path = "ethernet_tests.rs"]
mod tests;
