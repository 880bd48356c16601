//! Where the kernel's IP leads, from its messages, without I/O.
//!
//! First everything is asked for: the interfaces, the rules of policy, the routes, the neighbours. What the kernel
//! tells by itself meanwhile is taken in as it comes. When all is there, it is compared with what was told before.
//! After that each message is compared at once. Everything is asked for again
//!
//! * when messages were lost (`ENOBUFS`), or an answer does not fit together;
//! * when an interface comes, goes, or is set up or down, and when an address goes: the kernel then takes routes away
//!   of which it says nothing;
//! * when a rule of policy comes or goes;
//! * when a message does not fit what is known, and when a route of IPv6 with several ways changes, which the kernel
//!   tells in parts.
//!
//! Reference: RFC 3549 §2.3 (dumps), netlink(7) (`ENOBUFS`), net/ipv4/fib_trie.c and net/ipv6/ip6_fib.c (what the
//! kernel tells, and in which order it prefers routes to one prefix).

use std::collections::BTreeMap;
use std::net::IpAddr;

use netlink_packet_core::NLM_F_CREATE;
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::inquiry::{Inquiry, Next, Steps};
use crate::ip_message::{Entry, RouteEvent, RouteMessage};
use crate::message::{self, Body, Message};
use crate::{InterfaceAddress, IpChange, IpWay};

/// What is asked for.
const STEPS: Steps = &[
    || RouteNetlinkMessage::GetLink(<_>::default()),
    || RouteNetlinkMessage::GetRule(<_>::default()),
    || RouteNetlinkMessage::GetRoute(<_>::default()),
    || RouteNetlinkMessage::GetNeighbour(<_>::default()),
];
/// The number of requests whose answer does not matter.
const UNASKED: u32 = 0;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct IpWatch {
    /// What the kernel has told.
    state: State,
    /// While everything is asked for: what was told of before.
    told: State,
    inquiry: Inquiry,
    /// [`IpChange::Complete`] was told.
    complete: bool,
}

#[derive(Debug, Default)]
struct State {
    /// The names of the interfaces that are up.
    up: BTreeMap<u32, String>,
    /// The unusual rules of policy, of IPv4 and of IPv6.
    rules: [u32; 2],
    /// The routes to each prefix, the best first.
    routes: BTreeMap<InterfaceAddress, Vec<Entry>>,
    /// The neighbours whose Ethernet address is known, and whether they are idle.
    neighbours: BTreeMap<(u32, IpAddr), ([u8; 6], bool)>,
}

impl Default for IpWatch {
    fn default() -> Self {
        let (state, told) = (State::default(), State::default());
        Self { state, told, inquiry: Inquiry::new(STEPS), complete: false }
    }
}

impl IpWatch {
    /// Begins to ask for everything, or does so as soon as the kernel has answered what it is asked
    /// now. Returns a message to be sent, if there is one.
    pub(crate) fn resynchronise(&mut self) -> Option<Vec<u8>> {
        let request = self.inquiry.begin()?;
        self.told = std::mem::take(&mut self.state);
        Some(request)
    }

    /// Takes one datagram of the kernel and appends what is different now. Returns a message to be sent,
    /// if there is one.
    pub(crate) fn handle(
        &mut self,
        datagram: &[u8],
        changes: &mut Vec<IpChange>,
    ) -> Option<Vec<u8>> {
        let mut next = None;
        message::read(datagram, |message| {
            if let Some(request) = self.message(message, changes) {
                next = Some(request);
            }
        });
        next
    }

    /// Appends everything that was told.
    pub(crate) fn tell_again(&self, changes: &mut Vec<IpChange>) {
        let known = if self.inquiry.is_idle() { &self.state } else { &self.told };
        changes.push(IpChange::Again);
        known.tell_rules(&State::default(), changes);
        changes.extend(known.up.keys().map(|index| known.interface(*index)));
        changes.extend(known.routes.keys().filter_map(|destination| {
            let way = Some(known.way(destination)?);
            Some(IpChange::Route { destination: *destination, way })
        }));
        changes.extend(known.neighbours.keys().map(|key| known.neighbour(*key)));
        if self.complete {
            changes.push(IpChange::Complete);
        }
    }

    fn message(&mut self, message: Message, changes: &mut Vec<IpChange>) -> Option<Vec<u8>> {
        let answers = self.inquiry.is_answer(&message);
        match message.body {
            Body::Link(link) => self.link(link.index, link.up.then_some(link.name), answers),
            Body::LinkGone { index } => self.link(index, None, answers),
            Body::Address { usable: false, .. } => self.resynchronise(),
            Body::Route(route) => self.route(&route, answers, changes),
            Body::Rule(rule) if answers => {
                self.state.rules[usize::from(rule.is_ipv6)] += u32::from(!rule.usual);
                None
            }
            Body::Rule(_) => self.resynchronise(),
            Body::Neighbour(one) => {
                let key = (one.interface, one.ip);
                let before = match one.mac {
                    Some(mac) => self.state.neighbours.insert(key, (mac, one.idle)),
                    None => self.state.neighbours.remove(&key),
                };
                if self.inquiry.is_idle() && before != self.state.neighbours.get(&key).copied() {
                    changes.push(self.state.neighbour(key));
                }
                None
            }
            Body::Done if answers => self.answered(changes),
            Body::Answer { errno, .. } if answers && errno != 0 => {
                self.inquiry.refused();
                self.answered(changes)
            }
            Body::Overrun => self.resynchronise(),
            Body::Address { .. }
            | Body::Classifier(_)
            | Body::Done
            | Body::Answer { .. }
            | Body::Other => None,
        }
    }

    fn link(&mut self, index: u32, name: Option<String>, answers: bool) -> Option<Vec<u8>> {
        if self.state.up.get(&index) == name.as_ref() {
            return None;
        }
        // What was told before was of the interface as it was.
        let request = if answers { None } else { self.resynchronise() };
        match name {
            Some(name) => self.state.up.insert(index, name),
            None => self.state.up.remove(&index),
        };
        request
    }

    fn route(
        &mut self,
        route: &RouteMessage,
        answers: bool,
        changes: &mut Vec<IpChange>,
    ) -> Option<Vec<u8>> {
        let before = self.state.way(&route.destination);
        let entries = self.state.routes.entry(route.destination).or_default();
        let fits = if answers {
            put_last(entries, route.entry);
            true
        } else {
            apply(entries, route)
        };
        if entries.is_empty() {
            self.state.routes.remove(&route.destination);
        }
        if !self.inquiry.is_idle() {
            // What does not fit yet may be told later.
            return None;
        }
        let way = self.state.way(&route.destination);
        if before != way {
            changes.push(IpChange::Route { destination: route.destination, way });
        }
        if fits { None } else { self.resynchronise() }
    }

    /// The kernel has answered what it was asked.
    fn answered(&mut self, changes: &mut Vec<IpChange>) -> Option<Vec<u8>> {
        match self.inquiry.answered() {
            Next::Ask(request) => return Some(request),
            Next::AskAnew(request) => {
                self.state = State::default();
                return Some(request);
            }
            Next::Over => {}
        }
        let told = std::mem::take(&mut self.told);
        if !std::mem::replace(&mut self.complete, true) {
            self.tell_again(changes);
            return None;
        }
        self.state.tell_differences(&told, changes);
        None
    }
}

impl State {
    /// The way to a prefix, if there is one for it.
    fn way(&self, destination: &InterfaceAddress) -> Option<IpWay> {
        let works = |way: &IpWay| match way {
            IpWay::Out { interface, .. } => self.up.contains_key(interface),
            IpWay::Local | IpWay::Nowhere => true,
        };
        self.routes.get(destination)?.iter().map(|entry| entry.way).find(works)
    }

    fn interface(&self, index: u32) -> IpChange {
        IpChange::Interface { index, name: self.up.get(&index).cloned() }
    }

    fn neighbour(&self, key: (u32, IpAddr)) -> IpChange {
        let known = self.neighbours.get(&key);
        let (interface, ip) = key;
        let (mac, idle) = (known.map(|(mac, _)| *mac), known.is_some_and(|(_, idle)| *idle));
        IpChange::Neighbour { interface, ip, mac, idle }
    }

    fn tell_rules(&self, told: &Self, changes: &mut Vec<IpChange>) {
        for is_ipv6 in [false, true] {
            let count = self.rules[usize::from(is_ipv6)];
            if count != told.rules[usize::from(is_ipv6)] {
                changes.push(IpChange::Rules { is_ipv6, count });
            }
        }
    }

    fn tell_differences(&self, told: &Self, changes: &mut Vec<IpChange>) {
        self.tell_rules(told, changes);
        let gone = told.up.keys().filter(|index| !self.up.contains_key(index));
        changes.extend(gone.chain(self.up.keys()).filter_map(|index| {
            let differs = told.up.get(index) != self.up.get(index);
            differs.then(|| self.interface(*index))
        }));
        let gone = told.routes.keys().filter(|destination| !self.routes.contains_key(destination));
        changes.extend(gone.chain(self.routes.keys()).filter_map(|destination| {
            let way = self.way(destination);
            let differs = told.way(destination) != way;
            differs.then_some(IpChange::Route { destination: *destination, way })
        }));
        let gone = told.neighbours.keys().filter(|key| !self.neighbours.contains_key(key));
        changes.extend(gone.chain(self.neighbours.keys()).filter_map(|key| {
            let differs = told.neighbours.get(key) != self.neighbours.get(key);
            differs.then(|| self.neighbour(*key))
        }));
    }
}

/// Puts a route behind those that are as good, unless it is there.
fn put_last(entries: &mut Vec<Entry>, entry: Entry) {
    if !entries.contains(&entry) {
        let place = entries.partition_point(|other| other.rank() <= entry.rank());
        entries.insert(place, entry);
    }
}

/// Does with the routes to a prefix what the kernel says that it did. Returns whether what it said fits what is known,
/// so that they are now what the kernel has.
fn apply(entries: &mut Vec<Entry>, route: &RouteMessage) -> bool {
    let entry = route.entry;
    let first = entries.partition_point(|other| other.rank() < entry.rank());
    let end = entries.partition_point(|other| other.rank() <= entry.rank());
    let as_good = &entries[first..end];
    // The kernel tells of the parts of such a route, of which only the first is known.
    let in_parts = route.destination.ip.is_ipv6()
        && (as_good.iter().any(|other| other.several)
            || route.event == RouteEvent::Appended
            || route.event != RouteEvent::Removed && as_good.len() > 1
            || route.event == RouteEvent::Added && !as_good.is_empty());
    let found = as_good.iter().position(|other| *other == entry).map(|place| first + place);
    match route.event {
        RouteEvent::Removed => {
            if let Some(place) = found {
                entries.remove(place);
            }
            found.is_some() && !in_parts
        }
        RouteEvent::Replaced if first < end => {
            entries[first] = entry;
            !in_parts
        }
        RouteEvent::Replaced | RouteEvent::Added => {
            entries.insert(first, entry);
            !in_parts
        }
        RouteEvent::Appended => {
            put_last(entries, entry);
            !in_parts
        }
    }
}

/// A request that the kernel uses a neighbour.
pub(crate) fn find(interface: u32, ip: IpAddr) -> Vec<u8> {
    let mut message = NeighbourMessage::default();
    message.header.ifindex = interface;
    message.header.flags = NeighbourFlags::Use;
    let (family, address) = match ip {
        IpAddr::V4(ip) => (AddressFamily::Inet, NeighbourAddress::Inet(ip)),
        IpAddr::V6(ip) => (AddressFamily::Inet6, NeighbourAddress::Inet6(ip)),
    };
    message.header.family = family;
    message.attributes.push(NeighbourAttribute::Destination(address));
    message::request(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE, UNASKED)
}

#[cfg(test)]
#[path = "ip_watch_tests.rs"]
mod tests;
