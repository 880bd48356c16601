//! The links on which a protocol is spoken: wanted interfaces that can carry its datagrams, each with a port of the FEA.
//!
//! Reference: Handley et al. (XORP), §7 (protocols use the network through the FEA); RFC 2080 §2.5.1 (of IPv6, routers speak
//! from link-local addresses).
//!
//! A protocol says by which names it wants interfaces. A link is there as long as the interface is, carries packets, and has
//! an address of the group's version to speak from.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use weft_base::Instant;
use weft_runtime::{Action, Event, Interface, InterfaceChange, Level};
use weft_xrl::{Input, Output};

use crate::relays::{RelayNews, Relays};

#[cfg(test)]
mod tests;

/// A link on which the protocol is spoken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The name of its interface.
    pub name: String,
    /// This router's addresses there of the group's version, with the lengths of their networks; there is one at least.
    pub addresses: Vec<IpNet>,
    /// The longest datagram that is not cut into fragments, in bytes; none while its port is not open.
    pub mtu: Option<usize>,
}

/// What has happened on a link, which is named by the number of its interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkNews {
    /// The link is there, or has other addresses than before.
    There(u32),
    /// The link is not there any more.
    Gone(u32),
    /// Its port is open.
    Opened(u32),
    /// Its port is lost, and is opened again. People were told why.
    Closed(u32),
    /// A datagram came in.
    Packet {
        /// On which link.
        link: u32,
        /// Who sent it.
        from: SocketAddr,
        /// What it holds.
        bytes: Vec<u8>,
    },
}

/// The links of a protocol.
#[derive(Debug)]
pub struct Links {
    group: SocketAddr,
    relays: Relays,
    wanted: BTreeSet<String>,
    /// All interfaces that there are.
    known: BTreeMap<u32, Interface>,
    links: BTreeMap<u32, Link>,
    news: Vec<LinkNews>,
}

impl Links {
    /// No links, the group and port of whoever speaks the protocol, and the number of their [`Dialogue`](crate::Dialogue).
    #[must_use]
    pub fn new(number: u8, group: SocketAddr) -> Self {
        Self {
            group,
            relays: Relays::new(number),
            wanted: BTreeSet::new(),
            known: BTreeMap::new(),
            links: BTreeMap::new(),
            news: Vec::new(),
        }
    }

    /// The protocol is to be spoken on these interfaces, and on no others.
    pub fn want(&mut self, names: impl IntoIterator<Item = String>, out: &mut Vec<Output>) {
        self.wanted = names.into_iter().collect();
        self.settle(out);
    }

    /// The links that are there, by the numbers of their interfaces.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Link)> {
        self.links.iter().map(|(index, link)| (*index, link))
    }

    /// A link that is there.
    #[must_use]
    pub fn get(&self, link: u32) -> Option<&Link> {
        self.links.get(&link)
    }

    /// The name of an interface, whether or not the protocol is spoken there.
    #[must_use]
    pub fn name(&self, interface: u32) -> Option<&str> {
        self.known.get(&interface).map(|one| &*one.name)
    }

    /// Sends a datagram, if the port is open.
    pub fn send(&mut self, link: u32, to: SocketAddr, bytes: Vec<u8>, out: &mut Vec<Output>) {
        self.relays.send(link, to, bytes, out);
    }

    /// What has happened since this was asked last.
    pub fn take_news(&mut self) -> Vec<LinkNews> {
        std::mem::take(&mut self.news)
    }

    /// When something is to be done at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.relays.deadline()
    }

    /// Hears an input; gives it back if it is not for this alone.
    pub fn hear(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) -> Option<Input> {
        let input = match self.relays.hear(now, input, out) {
            Some(Input::World(Event::Interface { change })) => {
                match change {
                    InterfaceChange::Added(one) | InterfaceChange::Changed(one) => {
                        self.known.insert(one.index, one);
                    }
                    InterfaceChange::Removed { index, .. } => drop(self.known.remove(&index)),
                    InterfaceChange::Complete => {}
                }
                self.settle(out);
                None
            }
            Some(Input::World(Event::Start)) => {
                out.push(Output::World(Action::WatchInterfaces));
                Some(Input::World(Event::Start))
            }
            input => input,
        };
        self.relayed(out);
        input
    }

    /// What an interface is to the protocol; none if it is not spoken there now.
    fn link(&self, interface: &Interface) -> Option<Link> {
        let is_of_version = |address: &IpAddr| address.is_ipv4() == self.group.is_ipv4();
        let own = interface.addresses.iter().filter(|one| is_of_version(&one.ip));
        let addresses: Vec<_> =
            own.filter_map(|one| IpNet::new(one.ip, one.prefix_length).ok()).collect();
        let speaks = addresses.iter().any(|one| match one.addr() {
            IpAddr::V4(_) => true,
            IpAddr::V6(address) => address.is_unicast_link_local(),
        });
        let is_there = interface.running && speaks && self.wanted.contains(&interface.name);
        is_there.then(|| Link { name: interface.name.clone(), addresses, mtu: None })
    }

    fn settle(&mut self, out: &mut Vec<Output>) {
        let links = self.known.values().filter_map(|one| Some((one.index, self.link(one)?)));
        let there = links.collect();
        let before = std::mem::replace(&mut self.links, there);
        for (index, old) in &before {
            if self.links.get(index).is_none_or(|link| link.name != old.name) {
                self.relays.close(*index, out);
                self.news.push(LinkNews::Gone(*index));
            }
        }
        for (index, link) in &mut self.links {
            let old = before.get(index).filter(|old| old.name == link.name);
            link.mtu = old.and_then(|old| old.mtu);
            if old != Some(link) {
                self.news.push(LinkNews::There(*index));
            }
            // Of one that stays nothing is changed.
            self.relays.open(*index, &format!("group:{}:{}", link.name, self.group), out);
        }
    }

    /// What came by the relays.
    fn relayed(&mut self, out: &mut Vec<Output>) {
        for news in self.relays.take_news() {
            let (RelayNews::Opened { link, .. }
            | RelayNews::Closed { link, .. }
            | RelayNews::Packet { link, .. }) = news;
            let Some(known) = self.links.get_mut(&link) else { continue };
            self.news.push(match news {
                RelayNews::Opened { mtu, .. } => {
                    known.mtu = Some(mtu);
                    LinkNews::Opened(link)
                }
                RelayNews::Closed { error, .. } => {
                    known.mtu = None;
                    if let Some(error) = error {
                        let line = format!("{}: {error}; it will be tried again", known.name);
                        out.push(Output::World(Action::Report { level: Level::Warning, line }));
                    }
                    LinkNews::Closed(link)
                }
                RelayNews::Packet { from, bytes, .. } => LinkNews::Packet { link, from, bytes },
            });
        }
    }
}
