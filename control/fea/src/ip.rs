//! Where the kernel's IP leads, for those who forward by its tables and may not watch them themselves.
//!
//! Reference: Handley et al. (XORP), §3 (the FEA hides how packets are forwarded); Machado et al., "Linux XIA", §5.1
//! (routers that look XIDs up in the table of IP).
//!
//! The kernel is watched from the first call on.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use weft_base::Instant;
use weft_runtime::{Action, InterfaceAddress, IpChange, IpWay};
use weft_xrl::{Called, IpNet, Mac, Output, fea};

use crate::news::{Callers, News, Question, Watched};

#[derive(Default)]
pub(crate) struct Ip {
    is_watched: bool,
    known: Known,
    callers: Callers<Thing>,
}

/// What the kernel has told.
#[derive(Default)]
struct Known {
    interfaces: BTreeMap<u32, String>,
    routes: BTreeMap<InterfaceAddress, IpWay>,
    neighbours: BTreeMap<(u32, IpAddr), ([u8; 6], bool)>,
    missing: BTreeMap<bool, String>,
    /// Unusual rules of policy, of IPv6 or IPv4; only if there are any.
    rules: BTreeMap<bool, u32>,
    complete: bool,
}

/// Something that may be told. Interfaces come first, because the others name them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    Interface(u32),
    Missing(bool),
    Rules(bool),
    Route(InterfaceAddress),
    Neighbour(u32, IpAddr),
}

impl Ip {
    /// Answers with what is different, or later.
    pub(crate) fn watch(
        &mut self,
        now: Instant,
        called: Called,
        request: &fea::WatchIp,
        out: &mut Vec<Output>,
    ) {
        if !std::mem::replace(&mut self.is_watched, true) {
            out.push(Output::World(Action::WatchIp));
        }
        let fea::WatchIp { begin, at_most, wait } = *request;
        let question = Question { begin, at_most, wait };
        self.callers.ask(now, called, &question, &self.known, out);
    }

    /// The kernel has told something.
    pub(crate) fn changed(&mut self, changes: Vec<IpChange>, out: &mut Vec<Output>) {
        self.take(changes);
        self.callers.tell(&self.known, out);
    }

    fn take(&mut self, changes: Vec<IpChange>) {
        for change in changes {
            let thing = match change {
                IpChange::Again => {
                    let before = std::mem::take(&mut self.known);
                    self.callers.forget(&before);
                    continue;
                }
                IpChange::Complete => {
                    self.known.complete = true;
                    continue;
                }
                IpChange::NoTable { is_ipv6, error } => {
                    self.known.missing.insert(is_ipv6, error);
                    Thing::Missing(is_ipv6)
                }
                IpChange::Rules { is_ipv6, count } => {
                    match count {
                        0 => self.known.rules.remove(&is_ipv6),
                        _ => self.known.rules.insert(is_ipv6, count),
                    };
                    Thing::Rules(is_ipv6)
                }
                IpChange::Interface { index, name } => {
                    match name {
                        Some(name) => self.known.interfaces.insert(index, name),
                        None => self.known.interfaces.remove(&index),
                    };
                    Thing::Interface(index)
                }
                IpChange::Route { destination, way } => {
                    match way {
                        Some(way) => self.known.routes.insert(destination, way),
                        None => self.known.routes.remove(&destination),
                    };
                    Thing::Route(destination)
                }
                IpChange::Neighbour { interface, ip, mac, idle } => {
                    match mac {
                        Some(mac) => self.known.neighbours.insert((interface, ip), (mac, idle)),
                        None => self.known.neighbours.remove(&(interface, ip)),
                    };
                    Thing::Neighbour(interface, ip)
                }
            };
            self.callers.note(thing);
        }
    }

    /// A caller is gone.
    pub(crate) fn left(&mut self, session: u64) {
        self.callers.left(session);
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.callers.deadline()
    }

    /// Answers those who have waited long enough.
    pub(crate) fn expire(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.callers.expire(now, &self.known, out);
    }
}

impl Watched for Known {
    type Thing = Thing;
    type Reply = fea::WatchIpReply;
    const MOST: usize = 4096;

    fn things(&self) -> impl Iterator<Item = Thing> {
        let interfaces = self.interfaces.keys().map(|index| Thing::Interface(*index));
        let missing = self.missing.keys().map(|is_ipv6| Thing::Missing(*is_ipv6));
        let rules = self.rules.keys().map(|is_ipv6| Thing::Rules(*is_ipv6));
        let routes = self.routes.keys().map(|destination| Thing::Route(*destination));
        let neighbours = self.neighbours.keys().map(|(on, ip)| Thing::Neighbour(*on, *ip));
        interfaces.chain(missing).chain(rules).chain(routes).chain(neighbours)
    }

    fn is_complete(&self) -> bool {
        self.complete
    }

    fn tell(&self, news: News<Thing>) -> fea::WatchIpReply {
        let mut reply = fea::WatchIpReply {
            again: news.again,
            interfaces: Vec::new(),
            routes: Vec::new(),
            neighbours: Vec::new(),
            missing: Vec::new(),
            rules: Vec::new(),
            complete: news.complete,
        };
        news.things.into_iter().for_each(|thing| self.tell_of(thing, &mut reply));
        reply
    }
}

impl Known {
    /// Adds what there is to say of a thing now.
    fn tell_of(&self, thing: Thing, reply: &mut fea::WatchIpReply) {
        match thing {
            Thing::Interface(index) => {
                let name = self.interfaces.get(&index).cloned().unwrap_or_default();
                reply.interfaces.push(fea::IpInterface { index, name });
            }
            Thing::Missing(is_ipv6) => {
                if let Some(error) = self.missing.get(&is_ipv6).cloned() {
                    reply.missing.push(fea::IpMissing { is_ipv6, error });
                }
            }
            Thing::Rules(is_ipv6) => {
                let count = self.rules.get(&is_ipv6).copied().unwrap_or_default();
                reply.rules.push(fea::IpRules { is_ipv6, count });
            }
            Thing::Route(to) => reply.routes.extend(route(&to, self.routes.get(&to))),
            Thing::Neighbour(interface, ip) => {
                let (mac, idle) =
                    self.neighbours.get(&(interface, ip)).copied().unwrap_or_default();
                reply.neighbours.push(fea::IpNeighbour { interface, ip, mac: Mac(mac), idle });
            }
        }
    }
}

/// A route as it is told; the kernel's prefixes are not longer than its addresses.
fn route(destination: &InterfaceAddress, way: Option<&IpWay>) -> Option<fea::IpRoute> {
    let (word, interface, gateway) = match way {
        None => ("none", 0, None),
        Some(IpWay::Local) => ("local", 0, None),
        Some(IpWay::Nowhere) => ("nowhere", 0, None),
        Some(IpWay::Out { interface, gateway }) => ("out", *interface, *gateway),
    };
    Some(fea::IpRoute {
        destination: IpNet::new(destination.ip, destination.prefix_length).ok()?,
        way: word.to_owned(),
        interface,
        gateway: gateway.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn change() -> impl Strategy<Value = IpChange> {
        let address = |last: u8| IpAddr::from([10, 0, 0, last]);
        let way = prop::option::of(prop_oneof![
            Just(IpWay::Local),
            Just(IpWay::Nowhere),
            (0..2u32, prop::option::of(1..3u8)).prop_map(move |(interface, last)| IpWay::Out {
                interface,
                gateway: last.map(address),
            }),
        ]);
        prop_oneof![
            6 => (0..4u8, way).prop_map(move |(last, way)| IpChange::Route {
                destination: InterfaceAddress { ip: address(last), prefix_length: 32 },
                way,
            }),
            4 => (0..2u32, 0..3u8, prop::option::of(1..3u8), any::<bool>()).prop_map(
                move |(interface, last, mac, idle)| IpChange::Neighbour {
                    interface,
                    ip: address(last),
                    mac: mac.map(|mac| [mac; 6]),
                    idle: idle && mac.is_some(),
                }
            ),
            2 => (0..2u32, any::<bool>()).prop_map(|(index, up)| IpChange::Interface {
                index,
                name: up.then(|| format!("eth{index}")),
            }),
            1 => Just(IpChange::Again),
            1 => Just(IpChange::Complete),
        ]
    }

    /// What somebody knows who does what he is told.
    #[derive(Debug, Default, PartialEq)]
    struct Mirror {
        interfaces: BTreeMap<u32, String>,
        routes: BTreeMap<String, (String, u32, String)>,
        neighbours: BTreeMap<(u32, IpAddr), ([u8; 6], bool)>,
    }

    impl Mirror {
        fn take(&mut self, reply: fea::WatchIpReply) {
            if reply.again {
                *self = Self::default();
            }
            for one in reply.interfaces {
                self.interfaces.insert(one.index, one.name);
            }
            for one in reply.routes {
                let value = (one.way, one.interface, one.gateway.to_string());
                self.routes.insert(one.destination.to_string(), value);
            }
            for one in reply.neighbours {
                self.neighbours.insert((one.interface, one.ip), (one.mac.0, one.idle));
            }
            self.interfaces.retain(|_, name| !name.is_empty());
            self.routes.retain(|_, (way, ..)| way != "none");
            self.neighbours.retain(|_, (mac, _)| *mac != [0; 6]);
        }
    }

    proptest! {
        /// However little a caller is told at a time and however late, it knows at last what the kernel has told.
        #[test]
        fn a_slow_caller_knows_everything_at_last(
            steps in prop::collection::vec((prop::collection::vec(change(), 0..4), 0..3usize), 1..40),
        ) {
            let (mut ip, mut slow) = (Ip::default(), Mirror::default());
            ip.callers.begin(1, &ip.known);
            for (changes, at_most) in steps {
                ip.take(changes);
                let (reply, left) = ip.callers.news(1, &ip.known, at_most);
                slow.take(reply);
                prop_assert!(left <= 4 + 6 + 2, "no more than there is to tell");
            }
            let (reply, left) = ip.callers.news(1, &ip.known, Known::MOST);
            slow.take(reply);
            prop_assert_eq!(left, 0);
            let mut fresh = Mirror::default();
            ip.callers.begin(2, &ip.known);
            fresh.take(ip.callers.news(2, &ip.known, Known::MOST).0);
            prop_assert_eq!(slow, fresh);
        }
    }
}
