//! For tests of protocols: interfaces, and a RIB that believes what it is told, and is asked how next hops are reached.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use weft_base::Instant;
use weft_runtime::{Component, Interface, InterfaceAddress};
use weft_xrl::{Calls, Decoder, Encoded, Input, Method, Output, Reply};

use crate::rib::{self, Call};
use crate::{Hop, Route, To};

/// An interface that can carry packets, or not, with these addresses and the lengths of their networks.
///
/// # Panics
/// An address is none.
#[must_use]
pub fn interface(index: u32, name: &str, running: bool, addresses: &[&str]) -> Interface {
    let address = |text: &&str| {
        let net: IpNet = text.parse().expect("an address with a length");
        InterfaceAddress { ip: net.addr(), prefix_length: net.prefix_len() }
    };
    Interface {
        index,
        name: name.to_owned(),
        kind: "veth".to_owned(),
        mac: None,
        mtu: 1500,
        up: true,
        running,
        master: None,
        addresses: addresses.iter().map(address).collect(),
    }
}

/// The RIB, and what it was told.
#[derive(Debug, Default)]
pub struct TestRib {
    /// Protocols, by their numbers less one, with their distances.
    pub origins: Vec<(String, u32)>,
    /// Of which protocol which routes are believed.
    pub routes: BTreeMap<(String, IpNet), Route>,
    /// Routes of an earlier life of their protocol.
    stale: BTreeSet<(String, IpNet)>,
    /// Networks that are reached, all others not.
    pub reached: BTreeSet<IpNet>,
    /// The addresses that were asked for.
    registered: BTreeSet<IpAddr>,
    /// Who waits to hear what is reached in another way.
    waiting: Option<u64>,
    /// Calls that were not carried out yet.
    calls: Vec<(u64, Call)>,
}

impl TestRib {
    /// Takes the calls to the RIB out of outputs; leaves all else.
    ///
    /// # Panics
    /// A call makes no sense.
    pub fn take(&mut self, out: &mut Vec<Output>) {
        for output in std::mem::take(out) {
            match output {
                Output::Call(call) if call.target == rib::CLASS => {
                    let Method::Known(_, method) = call.method else { panic!("by text") };
                    let Encoded { args, handles } = call.arguments;
                    let read = Call::decode(method, &mut Decoder::new(args.bytes(), handles));
                    self.calls.push((call.token, read.expect("its arguments are the RIB's")));
                }
                other => out.push(other),
            }
        }
    }

    /// Carries out the oldest call; the answer, if it has one at once.
    ///
    /// # Panics
    /// A call is wrong.
    pub fn answer(&mut self) -> Option<Input> {
        if self.calls.is_empty() {
            return None;
        }
        let (token, call) = self.calls.remove(0);
        let result = match call {
            Call::OpenOrigin(request) => Encoded::new(self.open(request)),
            Call::Change(change) => {
                self.change(change);
                Encoded::default()
            }
            Call::End(rib::End { origin }) => {
                let protocol = self.protocol(origin);
                for key in std::mem::take(&mut self.stale) {
                    if key.0 == protocol {
                        self.routes.remove(&key);
                    } else {
                        self.stale.insert(key);
                    }
                }
                Encoded::default()
            }
            Call::Register(rib::Register { addresses }) => {
                self.registered.extend(&addresses);
                let ways = addresses.into_iter().map(|address| self.way(address)).collect();
                Encoded::new(rib::RegisterReply { ways })
            }
            Call::Invalid(_) => {
                self.waiting = Some(token);
                return None;
            }
            other => panic!("no protocol says {other:?}"),
        };
        Some(Input::Replied { token, result: Ok(Reply::Arguments(result)) })
    }

    /// Whether calls wait to be answered.
    #[must_use]
    pub fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// The process is gone, and with it all that it was told.
    pub fn die(&mut self) {
        let reached = std::mem::take(&mut self.reached);
        *self = Self { reached, ..Self::default() };
    }

    /// A network is reached now, or not any more; what whoever waits is told.
    pub fn reach(&mut self, net: IpNet, is_reached: bool) -> Option<Input> {
        match is_reached {
            true => self.reached.insert(net),
            false => self.reached.remove(&net),
        };
        let asked = self.registered.extract_if(.., |address| net.contains(address));
        let blocks: Vec<_> = asked.map(IpNet::from).collect();
        let token = self.waiting.take_if(|_| !blocks.is_empty())?;
        let reply = Encoded::new(rib::InvalidReply { blocks });
        Some(Input::Replied { token, result: Ok(Reply::Arguments(reply)) })
    }

    /// Lets a component and this RIB talk until nothing is left to say; everything else that the component says.
    pub fn talk(
        &mut self,
        now: Instant,
        component: &mut impl Component<Input = Input, Output = Output>,
    ) -> Vec<Output> {
        let (mut all, mut out) = (Vec::new(), Vec::new());
        while let Some(input) = self.answer() {
            component.handle(now, input, &mut out);
            self.take(&mut out);
            all.append(&mut out);
        }
        all
    }

    fn open(&mut self, request: rib::OpenOrigin) -> rib::OpenOriginReply {
        let known = self.origins.iter().position(|(protocol, _)| *protocol == request.protocol);
        let place = known.unwrap_or(self.origins.len());
        match known {
            Some(_) => self.origins[place].1 = request.distance,
            None => self.origins.push((request.protocol.clone(), request.distance)),
        }
        let own = self.routes.keys().filter(|(protocol, _)| *protocol == request.protocol);
        self.stale.extend(own.cloned());
        rib::OpenOriginReply { origin: place as u32 + 1, kept: Some(known.is_some()) }
    }

    fn protocol(&self, origin: u32) -> String {
        self.origins[origin as usize - 1].0.clone()
    }

    fn change(&mut self, change: rib::Change) {
        assert_eq!(change.multicast, None, "these protocols have no routes for multicast");
        let protocol = self.protocol(change.origin);
        for rib::Route { net, set, metric, tag } in change.routes {
            let hop = |hop: &rib::Hop| Hop {
                gateway: Some(hop.gateway).filter(|gateway| !gateway.is_unspecified()),
                interface: Some(hop.interface).filter(|interface| *interface > 0),
                weight: hop.weight,
            };
            let to = match set {
                0 => To::Blackhole,
                1 => To::Unreachable,
                2 => To::Prohibit,
                set => To::Hops(change.hops.iter().filter(|one| one.set == set).map(hop).collect()),
            };
            assert_ne!(to, To::Hops(Vec::new()), "the set {set} of {net} was not told");
            self.stale.remove(&(protocol.clone(), net));
            self.routes.insert((protocol.clone(), net), Route { to, metric, tag });
        }
        for net in change.gone {
            let was = self.routes.remove(&(protocol.clone(), net));
            assert!(was.is_some(), "{protocol} never told {net}, which it takes back");
        }
    }

    fn way(&self, address: IpAddr) -> rib::Way {
        let found = self.reached.iter().any(|net| net.contains(&address));
        rib::Way { block: address.into(), found, metric: 0, is_neighbour: found }
    }
}
