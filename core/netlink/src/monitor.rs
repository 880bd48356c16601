//! The socket on which the kernel tells of interfaces.
//!
//! Reference: netlink(7), rtnetlink(7).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use crate::InterfaceChange;
use crate::watch::Watch;

/// Room for one datagram: the kernel's answers are at most 32 KiB long, what it tells by itself is far
/// shorter.
const DATAGRAM: usize = 64 << 10;
/// The kernel's receive buffer, in bytes, if we may have that much.
const RECEIVE_BUFFER: usize = 1 << 20;
/// How many datagrams are read at a time.
const BATCH: usize = 64;

/// Which interfaces there are, and what changes; see the crate's text.
#[derive(Debug)]
pub struct Monitor {
    socket: Socket,
    watch: Watch,
    datagram: Vec<u8>,
}

impl Monitor {
    /// Begins to watch the interfaces of the network namespace that the calling thread is in.
    ///
    /// # Errors
    /// Those of socket(2), bind(2) and send(2).
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.set_non_blocking(true)?;
        // With less, changes are asked for again more often.
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER)
            .or_else(|_| {
                rustix::net::sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER)
            });
        let groups = libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR;
        socket.bind(&SocketAddr::new(0, groups as u32))?;
        let mut monitor =
            Self { socket, watch: Watch::default(), datagram: Vec::with_capacity(DATAGRAM) };
        let request = monitor.watch.resynchronise();
        monitor.send(request)?;
        Ok(monitor)
    }

    /// Readable when there is something for [`Monitor::read`].
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Reads what is there, a limited number of messages at a time, and appends the changes.
    ///
    /// # Errors
    /// Those of recvfrom(2) and send(2) that last; the changes appended before are still good.
    pub fn read(&mut self, changes: &mut Vec<InterfaceChange>) -> io::Result<()> {
        for _ in 0..BATCH {
            self.datagram.clear();
            let request = match self.socket.recv_from(&mut self.datagram, libc::MSG_TRUNC) {
                Ok((_, from)) if from.port_number() != 0 => None,
                Ok((len, _)) if len > self.datagram.len() => self.watch.resynchronise(),
                Ok(_) => self.watch.handle(&self.datagram, changes),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(()),
                    Some(libc::EINTR) => None,
                    Some(libc::ENOBUFS) => self.watch.resynchronise(),
                    _ => return Err(error),
                },
            };
            self.send(request)?;
        }
        Ok(())
    }

    fn send(&self, request: Option<Vec<u8>>) -> io::Result<()> {
        if let Some(request) = request {
            self.socket.send_to(&request, &SocketAddr::new(0, 0), 0)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, poll};
    use weft_port::testing::{Namespace, privileged};

    use super::*;
    use crate::Interface;

    /// Reads until `wanted` finds something in what has come by then.
    pub(crate) fn read_until<T>(
        monitor: &mut Monitor,
        mut wanted: impl FnMut(&InterfaceChange) -> Option<T>,
    ) -> T {
        loop {
            let mut changes = Vec::new();
            monitor.read(&mut changes).unwrap();
            if let Some(found) = changes.iter().find_map(&mut wanted) {
                return found;
            }
            if changes.is_empty() {
                let minute = rustix::time::Timespec { tv_sec: 60, tv_nsec: 0 };
                let mut fds = [PollFd::from_borrowed_fd(monitor.fd(), PollFlags::IN)];
                assert_eq!(poll(&mut fds, Some(&minute)), Ok(1), "nothing happened for a minute");
            }
        }
    }

    fn named<'a>(change: &'a InterfaceChange, name: &str) -> Option<&'a Interface> {
        match change {
            InterfaceChange::Added(now) | InterfaceChange::Changed(now) => {
                (now.name == name).then_some(now)
            }
            _ => None,
        }
    }

    #[test]
    fn what_is_there_is_told_first_and_then_each_change() {
        if !privileged() {
            return;
        }
        let namespace = Namespace::new();
        namespace.ip("link add name one address 02:00:00:00:00:01 type veth peer name two");
        namespace.ip("address add 192.0.2.1/24 dev one");
        let mut monitor = namespace.run(|| Monitor::open().unwrap());
        let mut first = Vec::new();
        read_until(&mut monitor, |change| {
            first.push(change.clone());
            matches!(change, InterfaceChange::Complete).then_some(())
        });
        let one = first.iter().find_map(|change| named(change, "one")).unwrap();
        assert_eq!((one.kind.as_str(), one.mtu, one.up, one.running), ("veth", 1500, false, false));
        assert_eq!(one.mac, Some([2, 0, 0, 0, 0, 1]));
        let addresses: Vec<_> = one.addresses.iter().map(ToString::to_string).collect();
        assert_eq!(addresses, ["192.0.2.1/24"]);
        let lo = first.iter().find_map(|change| named(change, "lo")).unwrap();
        assert_eq!((lo.kind.as_str(), lo.up), ("loopback", true));
        let index = one.index;

        namespace.ip("link set one up");
        read_until(&mut monitor, |change| named(change, "one")?.up.then_some(()));
        namespace.ip("link set two up");
        read_until(&mut monitor, |change| named(change, "one")?.running.then_some(()));
        namespace.ip("link set one mtu 1400");
        read_until(&mut monitor, |change| (named(change, "one")?.mtu == 1400).then_some(()));
        namespace.ip("address add 2001:db8::1/64 dev one nodad");
        let added = "2001:db8::1".parse::<std::net::IpAddr>().unwrap();
        read_until(&mut monitor, |change| {
            named(change, "one")?.addresses.iter().find(|address| address.ip == added).copied()
        });
        namespace.ip("address del 192.0.2.1/24 dev one");
        read_until(&mut monitor, |change| {
            let mut left = named(change, "one")?.addresses.iter();
            left.all(|address| address.ip.is_ipv6()).then_some(())
        });
        // A bridge tells of its members with messages of the same kinds.
        namespace.ip("link add name bridge type bridge");
        let master = read_until(&mut monitor, |change| Some(named(change, "bridge")?.index));
        namespace.ip("link set one master bridge");
        read_until(&mut monitor, |change| {
            (named(change, "one")?.master == Some(master)).then_some(())
        });
        namespace.ip("link set one nomaster");
        read_until(&mut monitor, |change| named(change, "one")?.master.is_none().then_some(()));
        namespace.ip("link set one down");
        namespace.ip("link set one name renamed");
        let renamed = read_until(&mut monitor, |change| Some(named(change, "renamed")?.index));
        assert_eq!(renamed, index);
        namespace.ip("link del renamed");
        let name = read_until(&mut monitor, |change| match change {
            InterfaceChange::Removed { index: gone, name } if *gone == index => Some(name.clone()),
            _ => None,
        });
        assert_eq!(name, "renamed");
    }

    #[test]
    fn what_was_lost_for_lack_of_room_is_asked_for_again() {
        if !privileged() {
            return;
        }
        let namespace = Namespace::new();
        let mut monitor = namespace.run(|| Monitor::open().unwrap());
        let complete =
            |change: &InterfaceChange| matches!(change, InterfaceChange::Complete).then_some(());
        read_until(&mut monitor, complete);
        rustix::net::sockopt::set_socket_recv_buffer_size(monitor.fd(), 4096).unwrap();
        namespace.ip("link add name one type bridge");
        for number in 1..60 {
            namespace.ip(&format!("link set one mtu {}", 1000 + number));
        }
        namespace.ip("link add name last type bridge");
        // The messages about these do not fit; whoever reads now learns of them nevertheless.
        let mut mtu = 0;
        read_until(&mut monitor, |change| {
            if let Some(one) = named(change, "one") {
                mtu = one.mtu;
            }
            named(change, "last").map(|_| ())
        });
        if mtu != 1059 {
            mtu = read_until(&mut monitor, |change| {
                Some(named(change, "one")?.mtu).filter(|mtu| *mtu == 1059)
            });
        }
        assert_eq!(mtu, 1059);
    }
}
