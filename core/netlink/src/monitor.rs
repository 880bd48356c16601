//! The socket on which the kernel tells of interfaces.
//!
//! Reference: netlink(7), rtnetlink(7).

use std::io;
use std::os::fd::BorrowedFd;

use crate::InterfaceChange;
use crate::feed::{Feed, Heard};
use crate::watch::Watch;

/// Which interfaces there are, and what changes; see the crate's text.
#[derive(Debug)]
pub struct Monitor {
    feed: Feed,
    watch: Watch,
}

impl Monitor {
    /// Begins to watch the interfaces of the network namespace that the calling thread is in.
    ///
    /// # Errors
    /// Those of socket(2), bind(2) and send(2).
    pub fn open() -> io::Result<Self> {
        let groups = libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR;
        let mut monitor = Self { feed: Feed::open(groups)?, watch: Watch::default() };
        monitor.feed.send(monitor.watch.resynchronise())?;
        Ok(monitor)
    }

    /// Readable when there is something for [`Monitor::read`].
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.feed.fd()
    }

    /// Reads what is there, a limited number of messages at a time, and appends the changes.
    ///
    /// # Errors
    /// Those of recvfrom(2) and send(2) that last; the changes appended before are still good.
    pub fn read(&mut self, changes: &mut Vec<InterfaceChange>) -> io::Result<()> {
        let watch = &mut self.watch;
        self.feed.read(|heard| match heard {
            Heard::Datagram(datagram) => watch.handle(datagram, changes),
            Heard::Lost => watch.resynchronise(),
        })
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
