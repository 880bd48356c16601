//! A RIB as BGP sees it: it answers every call at once, and reaches all next hops.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use weft_xrl::{Calls, Decoder, Encoded, Input, Method, Output, Reply};

use weft_protocol::rib::{
    Call, Change, OpenOriginReply, Redistribute, RedistributeReply, RegisterReply, Used, Way,
};

#[derive(Debug, Default)]
pub(super) struct Rib {
    /// What it says of routes of an earlier process.
    pub(super) kept: bool,
    /// What it was told and not told again.
    pub(super) stale: BTreeSet<IpNet>,
    pub(super) routes: BTreeSet<IpNet>,
    /// Those for multicast, apart.
    pub(super) multicast: BTreeSet<IpNet>,
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
        let Method::Known(_, method) = call.method else { panic!("not a method of the RIB") };
        let mut from = Decoder::new(call.arguments.args.bytes(), Vec::new());
        let encoded = match Call::decode(method, &mut from).unwrap() {
            Call::OpenOrigin(_) => {
                Encoded::new(OpenOriginReply { origin: 1, kept: Some(self.kept) })
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
                    found: true,
                    metric: 0,
                    is_neighbour: true,
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
        if change.multicast == Some(true) {
            self.multicast.extend(change.routes.iter().map(|route| route.net));
            self.multicast.retain(|net| !change.gone.contains(net));
            return Encoded::default();
        }
        for route in change.routes {
            self.stale.remove(&route.net);
            self.routes.insert(route.net);
            self.tags.remove(&route.net);
            self.tags.extend((route.tag > 0).then_some((route.net, route.tag)));
        }
        for net in change.gone {
            self.routes.remove(&net);
            self.tags.remove(&net);
        }
        Encoded::default()
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
