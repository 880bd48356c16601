//! Which interfaces there are, from the kernel's messages, without I/O.
//!
//! First everything is asked for: the interfaces, then the addresses. What the kernel tells by itself
//! meanwhile is taken in as it comes. When all is there, it is compared with what was told before, and
//! the differences are told. After that, each message is compared at once. When messages were lost
//! (`ENOBUFS`), or an answer does not fit together, everything is asked for again; who watches hears only
//! of what is different.
//!
//! Reference: RFC 3549 §2.3 (dumps), netlink(7) (`ENOBUFS`).

use std::collections::{BTreeMap, BTreeSet};

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::AddressMessage;
use netlink_packet_route::link::LinkMessage;

use crate::inquiry::{Inquiry, Next, Steps};
use crate::message::{self, Body, Link, Message};
use crate::{Interface, InterfaceAddress, InterfaceChange};

/// What is asked for.
const STEPS: Steps = &[
    || RouteNetlinkMessage::GetLink(LinkMessage::default()),
    || RouteNetlinkMessage::GetAddress(AddressMessage::default()),
];

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Watch {
    state: State,
    told: BTreeMap<u32, Interface>,
    inquiry: Inquiry,
    /// [`InterfaceChange::Complete`] was told.
    complete: bool,
}

/// What the kernel has told.
#[derive(Debug, Default)]
struct State {
    links: BTreeMap<u32, Link>,
    addresses: BTreeMap<u32, BTreeSet<InterfaceAddress>>,
}

impl Default for Watch {
    fn default() -> Self {
        let (state, inquiry) = (State::default(), Inquiry::new(STEPS));
        Self { state, told: BTreeMap::new(), inquiry, complete: false }
    }
}

impl Watch {
    /// Begins to ask for everything, or does so as soon as the kernel has answered what it is asked
    /// now. Returns a message to be sent, if there is one.
    pub(crate) fn resynchronise(&mut self) -> Option<Vec<u8>> {
        let request = self.inquiry.begin()?;
        self.state = State::default();
        Some(request)
    }

    /// Takes one datagram of the kernel and appends what is different now. Returns a message to be sent,
    /// if there is one.
    pub(crate) fn handle(
        &mut self,
        datagram: &[u8],
        changes: &mut Vec<InterfaceChange>,
    ) -> Option<Vec<u8>> {
        let mut next = None;
        message::read(datagram, |message| {
            if let Some(request) = self.message(message, changes) {
                next = Some(request);
            }
        });
        next
    }

    fn message(&mut self, message: Message, changes: &mut Vec<InterfaceChange>) -> Option<Vec<u8>> {
        let answers = self.inquiry.is_answer(&message);
        let index = match message.body {
            Body::Link(link) => {
                let index = link.index;
                self.state.links.insert(index, link);
                index
            }
            Body::LinkGone { index } => {
                self.state.links.remove(&index);
                self.state.addresses.remove(&index);
                index
            }
            Body::Address { index, address, usable } => {
                self.state.set_address(index, address, usable);
                index
            }
            Body::Done if answers => return self.answered(changes),
            Body::Answer { errno, .. } if answers && errno != 0 => {
                self.inquiry.refused();
                return self.answered(changes);
            }
            Body::Overrun => return self.resynchronise(),
            Body::Classifier(_)
            | Body::Route(_)
            | Body::Rule(_)
            | Body::Neighbour(_)
            | Body::Done
            | Body::Answer { .. }
            | Body::Other => return None,
        };
        if self.inquiry.is_idle() {
            self.tell(index, changes);
        }
        None
    }

    /// The kernel has answered what it was asked.
    fn answered(&mut self, changes: &mut Vec<InterfaceChange>) -> Option<Vec<u8>> {
        match self.inquiry.answered() {
            Next::Ask(request) => return Some(request),
            Next::AskAnew(request) => {
                self.state = State::default();
                return Some(request);
            }
            Next::Over => {}
        }
        let known = self.state.links.keys().chain(self.told.keys());
        let indexes: BTreeSet<u32> = known.copied().collect();
        for index in indexes {
            self.tell(index, changes);
        }
        if !std::mem::replace(&mut self.complete, true) {
            changes.push(InterfaceChange::Complete);
        }
        None
    }

    /// Tells what is different about one interface.
    fn tell(&mut self, index: u32, changes: &mut Vec<InterfaceChange>) {
        let now = self.state.interface(index);
        let before = self.told.get(&index);
        changes.push(match (before, &now) {
            (None, Some(now)) => InterfaceChange::Added(now.clone()),
            (Some(before), Some(now)) if before != now => InterfaceChange::Changed(now.clone()),
            (Some(before), None) => InterfaceChange::Removed { index, name: before.name.clone() },
            _ => return,
        });
        match now {
            Some(now) => self.told.insert(index, now),
            None => self.told.remove(&index),
        };
    }
}

impl State {
    fn set_address(&mut self, index: u32, address: InterfaceAddress, usable: bool) {
        if usable {
            self.addresses.entry(index).or_default().insert(address);
        } else if let Some(addresses) = self.addresses.get_mut(&index) {
            addresses.remove(&address);
        }
    }

    fn interface(&self, index: u32) -> Option<Interface> {
        let Link { index, name, kind, mac, mtu, up, running, master, xdp: _ } =
            self.links.get(&index)?.clone();
        let addresses = self.addresses.get(&index).cloned().unwrap_or_default();
        Some(Interface { index, name, kind, mac, mtu, up, running, master, addresses })
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
