//! The socket on which the kernel tells of routes and neighbours of IP.
//!
//! Reference: netlink(7), rtnetlink(7).

use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

use crate::IpChange;
use crate::feed::{Feed, Heard};
use crate::ip_watch::{IpWatch, find};

/// The groups `RTNLGRP_IPV4_RULE` and `RTNLGRP_IPV6_RULE`.
const RULES: libc::c_int = 1 << 7 | 1 << 18;

/// Where the kernel's IP leads, and what changes; see the crate's text.
///
/// Looked into are the tables `local`, `main` and `default`, as the kernel does without rules of policy; routes for
/// certain sources or types of service are left out. That there are rules is told ([`IpChange::Rules`]).
#[derive(Debug)]
pub struct IpMonitor {
    feed: Feed,
    watch: IpWatch,
}

impl IpMonitor {
    /// Begins to watch IP in the network namespace that the calling thread is in.
    ///
    /// # Errors
    /// Those of socket(2), bind(2) and send(2).
    pub fn open() -> io::Result<Self> {
        let groups = libc::RTMGRP_LINK
            | libc::RTMGRP_NEIGH
            | libc::RTMGRP_IPV4_IFADDR
            | libc::RTMGRP_IPV6_IFADDR
            | libc::RTMGRP_IPV4_ROUTE
            | libc::RTMGRP_IPV6_ROUTE
            | RULES;
        let mut monitor = Self { feed: Feed::open(groups)?, watch: IpWatch::default() };
        monitor.feed.send(monitor.watch.resynchronise())?;
        Ok(monitor)
    }

    /// Readable when there is something for [`IpMonitor::read`].
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.feed.fd()
    }

    /// Reads what is there, a limited number of messages at a time, and appends the changes.
    ///
    /// # Errors
    /// Those of recvfrom(2) and send(2) that last; the changes appended before are still good.
    pub fn read(&mut self, changes: &mut Vec<IpChange>) -> io::Result<()> {
        let watch = &mut self.watch;
        self.feed.read(|heard| match heard {
            Heard::Datagram(datagram) => watch.handle(datagram, changes),
            Heard::Lost => watch.resynchronise(),
        })
    }

    /// Appends everything that is known, for somebody who watches from now on.
    pub fn tell_again(&self, changes: &mut Vec<IpChange>) {
        self.watch.tell_again(changes);
    }

    /// Has the kernel use a neighbour, so that it asks for its Ethernet address if it does not know it, and looks
    /// whether it is still there if it has not heard of it for a while. What comes of it, it tells. Needs
    /// CAP_NET_ADMIN; without it nothing happens.
    ///
    /// # Errors
    /// Those of send(2).
    pub fn find_neighbour(&self, interface: u32, ip: IpAddr) -> io::Result<()> {
        self.feed.send(Some(find(interface, ip)))
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, poll};
    use weft_port::testing::{Namespace, privileged};

    use super::*;
    use crate::{InterfaceAddress, IpWay};

    /// Reads until `wanted` is told.
    fn read_until(monitor: &mut IpMonitor, wanted: impl Fn(&IpChange) -> bool) -> Vec<IpChange> {
        let mut all = Vec::new();
        loop {
            let before = all.len();
            monitor.read(&mut all).unwrap();
            if all[before..].iter().any(&wanted) {
                return all;
            }
            if all.len() == before {
                let minute = rustix::time::Timespec { tv_sec: 60, tv_nsec: 0 };
                let mut fds = [PollFd::from_borrowed_fd(monitor.fd(), PollFlags::IN)];
                assert_eq!(poll(&mut fds, Some(&minute)), Ok(1), "nothing for a minute: {all:?}");
            }
        }
    }

    fn prefix(text: &str) -> InterfaceAddress {
        let (ip, length) = text.split_once('/').unwrap();
        InterfaceAddress { ip: ip.parse().unwrap(), prefix_length: length.parse().unwrap() }
    }

    fn route(to: &str, way: Option<IpWay>) -> impl Fn(&IpChange) -> bool {
        let wanted = IpChange::Route { destination: prefix(to), way };
        move |change| *change == wanted
    }

    fn via(interface: u32, gateway: &str) -> Option<IpWay> {
        Some(IpWay::Out { interface, gateway: Some(gateway.parse().unwrap()) })
    }

    /// What is told first, and the index of the interface `one`.
    fn first(monitor: &mut IpMonitor) -> (Vec<IpChange>, u32) {
        let told = read_until(monitor, |change| *change == IpChange::Complete);
        let index = told.iter().find_map(|change| match change {
            IpChange::Route { destination, way: Some(IpWay::Out { interface, gateway: None }) } => {
                (*destination == prefix("192.0.2.0/24")).then_some(*interface)
            }
            _ => None,
        });
        let index = index.unwrap_or_else(|| panic!("no way to the link: {told:?}"));
        (told, index)
    }

    /// A namespace in which `one` hangs on `two`, which is in the other one.
    fn pair() -> (Namespace, Namespace) {
        let (here, there) = (Namespace::new(), Namespace::new());
        here.connect("one", &there, "two");
        here.ip("address add 192.0.2.1/24 dev one");
        there.ip("address add 192.0.2.2/24 dev two");
        there.ip("link set two address 02:00:00:00:00:02");
        (here, there)
    }

    #[test]
    fn routes_are_followed_as_they_come_are_replaced_and_go() {
        if !privileged() {
            return;
        }
        let (here, _there) = pair();
        here.ip("route add 198.51.100.0/24 via 192.0.2.2 metric 20");
        let mut monitor = here.run(|| IpMonitor::open().unwrap());
        let (first, one) = first(&mut monitor);
        let via = |gateway| via(one, gateway);
        assert_eq!(first[0], IpChange::Again);
        assert!(first.iter().any(route("198.51.100.0/24", via("192.0.2.2"))), "{first:?}");
        assert!(first.iter().any(route("192.0.2.1/32", Some(IpWay::Local))), "{first:?}");

        here.ip("route replace 198.51.100.0/24 via 192.0.2.3 metric 20");
        read_until(&mut monitor, route("198.51.100.0/24", via("192.0.2.3")));
        here.ip("route add 198.51.100.0/24 via 192.0.2.4 metric 10");
        read_until(&mut monitor, route("198.51.100.0/24", via("192.0.2.4")));
        here.ip("route append 198.51.100.0/24 via 192.0.2.5 metric 10");
        here.ip("route delete 198.51.100.0/24 via 192.0.2.4");
        read_until(&mut monitor, route("198.51.100.0/24", via("192.0.2.5")));
        here.ip("route add blackhole 198.51.100.0/25");
        read_until(&mut monitor, route("198.51.100.0/25", Some(IpWay::Nowhere)));
        here.ip("route delete 198.51.100.0/24 metric 10");
        read_until(&mut monitor, route("198.51.100.0/24", via("192.0.2.3")));
        // The kernel takes what goes with an interface away without a word.
        here.ip("link set one down");
        read_until(&mut monitor, route("198.51.100.0/24", None));
    }

    #[test]
    fn ipv6_is_told_too_with_several_ways() {
        if !privileged() {
            return;
        }
        let (here, _there) = pair();
        here.ip("address add 2001:db8::1/64 dev one nodad");
        let mut monitor = here.run(|| IpMonitor::open().unwrap());
        let (first, one) = first(&mut monitor);
        let via = |gateway| via(one, gateway);
        assert!(first.iter().any(route("2001:db8::1/128", Some(IpWay::Local))), "{first:?}");
        here.ip("route add 2001:db8:1::/48 via fe80::2 dev one");
        read_until(&mut monitor, route("2001:db8:1::/48", via("fe80::2")));
        here.ip(
            "route replace 2001:db8:1::/48 nexthop via fe80::3 dev one nexthop via fe80::4 dev one",
        );
        read_until(&mut monitor, route("2001:db8:1::/48", via("fe80::3")));
        here.ip("route delete 2001:db8:1::/48 via fe80::3 dev one");
        read_until(&mut monitor, route("2001:db8:1::/48", via("fe80::4")));
        here.ip("route delete 2001:db8:1::/48");
        read_until(&mut monitor, route("2001:db8:1::/48", None));
    }

    #[test]
    fn a_neighbour_is_found_when_it_is_asked_for_and_gone_when_it_is_deleted() {
        if !privileged() {
            return;
        }
        let (here, _there) = pair();
        let mut monitor = here.run(|| IpMonitor::open().unwrap());
        let (_, one) = first(&mut monitor);
        let ip: IpAddr = "192.0.2.2".parse().unwrap();
        let told = |wanted: Option<[u8; 6]>| {
            move |change: &IpChange| {
                matches!(change, IpChange::Neighbour { interface, ip: of, mac, .. }
                    if (*interface, *of, *mac) == (one, ip, wanted))
            }
        };
        monitor.find_neighbour(one, ip).unwrap();
        read_until(&mut monitor, told(Some([2, 0, 0, 0, 0, 2])));
        let mut again = Vec::new();
        monitor.tell_again(&mut again);
        assert!(again.iter().any(told(Some([2, 0, 0, 0, 0, 2]))), "{again:?}");
        here.ip("neighbour delete 192.0.2.2 dev one");
        read_until(&mut monitor, told(None));
    }

    #[test]
    fn rules_of_policy_are_told_of() {
        if !privileged() {
            return;
        }
        let (here, _there) = pair();
        let mut monitor = here.run(|| IpMonitor::open().unwrap());
        let (first, _) = first(&mut monitor);
        let rules =
            |count| move |change: &IpChange| *change == IpChange::Rules { is_ipv6: false, count };
        assert!(!first.iter().any(|change| matches!(change, IpChange::Rules { .. })), "{first:?}");
        here.ip("rule add from 192.0.2.0/24 table 100");
        read_until(&mut monitor, rules(1));
        let mut again = Vec::new();
        monitor.tell_again(&mut again);
        assert!(again.iter().any(rules(1)), "{again:?}");
        here.ip("rule delete from 192.0.2.0/24 table 100");
        read_until(&mut monitor, rules(0));
    }
}
