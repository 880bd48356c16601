//! A RIB as BGP sees it: it answers every call at once, and reaches all next hops.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use weft_xrl::{Calls, Decoder, Encoded, Input, Method, Output, Reply};

use weft_protocol::rib::{
    CLASS, Call, Change, OpenOriginReply, Redistribute, RedistributeReply, RegisterReply, Used, Way,
};

#[derive(Debug, Default)]
pub(super) struct Rib {
    /// What it says of routes of an earlier process.
    pub(super) kept: bool,
    /// What it was told and not told again.
    pub(super) stale: BTreeSet<IpNet>,
    pub(super) routes: BTreeSet<IpNet>,
    /// What is reached, but is not on a link.
    pub(super) far: BTreeSet<IpAddr>,
    /// And what is not.
    pub(super) unreached: BTreeSet<IpAddr>,
    /// Those for multicast, apart.
    pub(super) multicast: BTreeSet<IpNet>,
    /// The protocols that have told them, by their names and distances, and by their numbers less one.
    pub(super) origins: Vec<(String, u32)>,
    /// Who has told what, of multicast and of others.
    pub(super) told: BTreeSet<(bool, IpNet, u32)>,
    /// Those whose packets it is to drop.
    pub(super) blackholes: BTreeSet<IpNet>,
    /// The tags of those that have one.
    pub(super) tags: BTreeMap<IpNet, u32>,
    /// How many routes it was told, or told that they are gone.
    pub(super) changes: usize,
    /// For how many protocols it was said that everything is told.
    pub(super) ends: usize,
    /// The routes of other protocols that it uses.
    pub(super) used: BTreeMap<IpNet, Used>,
    /// Protocols have not told it everything yet.
    pub(super) is_young: bool,
    /// What BGP wants of these, and the calls with which it waits.
    pub(super) asked: Vec<(Redistribute, u64)>,
}

impl Rib {
    /// The reply to what BGP does, if that is a call.
    pub(super) fn answer(&mut self, output: &Output) -> Option<Input> {
        let Output::Call(call) = output else { return None };
        if call.target != CLASS {
            return None;
        }
        let Method::Known(_, method) = call.method else { panic!("not a method of the RIB") };
        let mut from = Decoder::new(call.arguments.args.bytes(), Vec::new());
        let encoded = match Call::decode(method, &mut from).unwrap() {
            Call::OpenOrigin(open) => {
                self.origins.push((open.protocol, open.distance));
                let origin = self.origins.len() as u32;
                Encoded::new(OpenOriginReply { origin, kept: Some(self.kept) })
            }
            Call::Change(change) => self.change(change),
            Call::End(_) => {
                self.stale.clear();
                self.ends += 1;
                Encoded::default()
            }
            Call::Register(request) => {
                let way = |address| Way {
                    block: IpNet::from(address),
                    found: !self.unreached.contains(&address),
                    metric: 0,
                    is_neighbour: !self.far.contains(&address),
                };
                Encoded::new(RegisterReply {
                    ways: request.addresses.into_iter().map(way).collect(),
                })
            }
            // It has nothing to tell.
            Call::Invalid(_) => return None,
            Call::Redistribute(request) => {
                let is_same = |(one, _): &(Redistribute, u64)| one.reader == request.reader;
                assert!(request.begin || !self.asked.iter().any(is_same), "that answers the other");
                self.asked.retain(|one| !is_same(one));
                match request.begin {
                    true => return Some(self.tell_all(&request, call.token)),
                    false => self.asked.push((request, call.token)),
                }
                return None;
            }
            _ => panic!("BGP does not call that"),
        };
        Some(Input::Replied { token: call.token, result: Ok(Reply::Arguments(encoded)) })
    }

    /// All that was asked for.
    fn tell_all(&self, request: &Redistribute, token: u64) -> Input {
        let routes = self.used.values().filter(|one| wants(request, one)).cloned().collect();
        let (gone, complete) = (Vec::new(), !self.is_young);
        reply(token, RedistributeReply { again: true, routes, gone, complete, ways: None })
    }

    /// It uses another route to a network, or none, and says so to whoever wants to know.
    pub(super) fn uses(&mut self, net: &str, route: Option<Used>) -> Vec<Input> {
        let net = net.parse().unwrap();
        let before = match route.clone() {
            Some(route) => self.used.insert(net, route),
            None => self.used.remove(&net),
        };
        let is_its = |(request, _): &mut (Redistribute, u64)| {
            [&before, &route].into_iter().flatten().any(|one| wants(request, one))
        };
        let told = self.asked.extract_if(.., is_its).collect::<Vec<_>>().into_iter();
        told.map(|(request, token)| {
            let routes: Vec<_> = route.iter().filter(|one| wants(&request, one)).cloned().collect();
            let gone = if routes.is_empty() { vec![net] } else { Vec::new() };
            let complete = !self.is_young;
            reply(token, RedistributeReply { again: false, routes, gone, complete, ways: None })
        })
        .collect()
    }

    fn change(&mut self, change: Change) -> Encoded {
        self.changes += change.routes.len() + change.gone.len();
        let (origin, is_multicast) = (change.origin, change.multicast == Some(true));
        self.told.extend(change.routes.iter().map(|route| (is_multicast, route.net, origin)));
        for net in &change.gone {
            let was = self.told.remove(&(is_multicast, *net, origin));
            assert!(was, "{origin} never told {net}, which it takes back");
        }
        // What one protocol takes back another may have told.
        let gone = change.gone.into_iter().filter(|net| !self.has(is_multicast, net));
        let gone: Vec<_> = gone.collect();
        if is_multicast {
            self.multicast.extend(change.routes.iter().map(|route| route.net));
            self.multicast.retain(|net| !gone.contains(net));
            return Encoded::default();
        }
        for route in change.routes {
            self.stale.remove(&route.net);
            self.routes.insert(route.net);
            self.tags.remove(&route.net);
            self.blackholes.remove(&route.net);
            self.blackholes.extend((route.set == 0).then_some(route.net));
            self.tags.extend((route.tag > 0).then_some((route.net, route.tag)));
        }
        for net in gone {
            self.routes.remove(&net);
            self.tags.remove(&net);
            self.blackholes.remove(&net);
        }
        Encoded::default()
    }
}

impl Rib {
    /// The numbers of those who have told a route.
    fn tellers(&self, multicast: bool, net: &IpNet) -> impl Iterator<Item = u32> + '_ {
        let all = (multicast, *net, 0)..=(multicast, *net, u32::MAX);
        self.told.range(all).map(|(_, _, origin)| *origin)
    }

    fn has(&self, multicast: bool, net: &IpNet) -> bool {
        self.tellers(multicast, net).next().is_some()
    }

    /// Who has told the route to a network, with which distance. It is one.
    pub(super) fn teller(&self, net: &str) -> Option<(&str, u32)> {
        let mut all = self.tellers(false, &net.parse().unwrap());
        let only = all.next()?;
        assert_eq!(all.next(), None, "two protocols have told {net}");
        let (protocol, distance) = &self.origins[only as usize - 1];
        Some((protocol.as_str(), *distance))
    }
}

fn wants(request: &Redistribute, one: &Used) -> bool {
    request.protocols.contains(&one.protocol) || request.nets.contains(&one.net)
}

fn reply(token: u64, reply: RedistributeReply) -> Input {
    Input::Replied { token, result: Ok(Reply::Arguments(Encoded::new(reply))) }
}

/// A route to a network, of a protocol with this administrative distance.
pub(super) fn used(net: &str, protocol: &str, distance: u32) -> Used {
    Used {
        net: net.parse().unwrap(),
        protocol: protocol.to_owned(),
        metric: 7,
        tag: 9,
        distance,
        gateway: [10, 0, 1, 9].into(),
        interface: 1,
    }
}
