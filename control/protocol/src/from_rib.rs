//! Routes of other protocols, as the RIB uses them: what a protocol redistributes.
//!
//! Reference: Handley et al. (XORP), §3 and §5.2 (route redistribution).
//!
//! What was told is kept, so that a RIB that comes back changes nothing that is the same.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Bound;

use ipnet::IpNet;
use weft_base::Instant;
use weft_xrl::{Input, Output, Reply, XrlError};

use crate::dialogue::{Client, Dialogue};
use crate::{Hop, rib};

/// Of how many routes one answer tells, and how long there may be nothing to tell, in milliseconds.
const AT_MOST: u32 = 4096;
const QUIET: u32 = 20_000;

/// A route that the RIB uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    /// Its protocol.
    pub protocol: String,
    /// How far it is, to its protocol.
    pub metric: u32,
    /// Its mark.
    pub tag: u32,
    /// The administrative distance of its protocol.
    pub distance: u32,
    /// The next router; none if there is none, or are several.
    pub gateway: Option<IpAddr>,
    /// The number of the interface; none if there is none, or are several.
    pub interface: Option<u32>,
    /// Its ways, if there are several.
    pub ways: Vec<Hop>,
}

/// The routes of some protocols, and those to some networks.
#[derive(Debug)]
pub struct FromRib {
    dialogue: Dialogue<u64>,
    protocols: BTreeSet<String>,
    nets: BTreeSet<IpNet>,
    known: BTreeMap<IpNet, Used>,
    /// What was known before the RIB began to tell everything anew.
    untold: BTreeSet<IpNet>,
    changed: BTreeSet<IpNet>,
    /// Which of the questions counts.
    question: u64,
    /// Whether everything was told.
    is_complete: bool,
}

impl FromRib {
    /// No protocols, and the number of its [`Dialogue`].
    #[must_use]
    pub fn new(number: u8) -> Self {
        Self {
            dialogue: Dialogue::new(rib::CLASS, number),
            protocols: BTreeSet::new(),
            nets: BTreeSet::new(),
            known: BTreeMap::new(),
            untold: BTreeSet::new(),
            changed: BTreeSet::new(),
            question: 0,
            is_complete: false,
        }
    }

    /// The routes of these protocols are of interest, and those to these networks of any protocol whose next routers are
    /// neighbours, and aggregates, and no others.
    pub fn want(
        &mut self,
        protocols: BTreeSet<String>,
        nets: BTreeSet<IpNet>,
        out: &mut Vec<Output>,
    ) {
        if (&self.protocols, &self.nets) == (&protocols, &nets) {
            return;
        }
        (self.protocols, self.nets, self.is_complete) = (protocols, nets, false);
        let unwanted = self.known.extract_if(.., |net, used| {
            !self.protocols.contains(&used.protocol) && !self.nets.contains(net)
        });
        self.changed.extend(unwanted.map(|(net, _)| net));
        if self.dialogue.is_there() {
            self.ask(true, out);
        }
    }

    fn ask(&mut self, begin: bool, out: &mut Vec<Output>) {
        if begin {
            self.question += 1;
        }
        if self.wants_nothing() {
            return;
        }
        let (at_most, wait) = (AT_MOST, QUIET);
        let protocols = self.protocols.iter().cloned().collect();
        let nets = self.nets.iter().copied().collect();
        let reader = self.dialogue.number().into();
        let multicast = None;
        let request =
            rib::Redistribute { reader, protocols, nets, begin, at_most, wait, multicast };
        self.dialogue.call(self.question, request, out);
    }

    fn wants_nothing(&self) -> bool {
        self.protocols.is_empty() && self.nets.is_empty()
    }

    /// Whether the RIB, or an earlier one, has told everything that is of interest.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete || self.wants_nothing()
    }

    /// The route to a network, if a protocol of interest has the one that is used.
    #[must_use]
    pub fn get(&self, net: &IpNet) -> Option<&Used> {
        self.known.get(net)
    }

    /// All networks that have a route, in order.
    pub fn nets(&self) -> impl ExactSizeIterator<Item = &IpNet> {
        self.known.keys()
    }

    /// Those behind one, or all.
    pub fn nets_behind(&self, net: Option<IpNet>) -> impl Iterator<Item = &IpNet> {
        let from = net.map_or(Bound::Unbounded, Bound::Excluded);
        self.known.range((from, Bound::Unbounded)).map(|(net, _)| net)
    }

    /// The networks whose routes are others since this was asked last.
    pub fn take_changed(&mut self) -> BTreeSet<IpNet> {
        std::mem::take(&mut self.changed)
    }

    /// Has all of them told again by [`take_changed`](Self::take_changed), as if they were others.
    pub fn tell_again(&mut self) {
        self.changed.extend(self.known.keys());
    }

    /// When something is to be done at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.dialogue.deadline()
    }

    /// Hears an input; gives it back if it is not for this alone.
    pub fn hear(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) -> Option<Input> {
        Client::hear(self, now, input, out)
    }

    fn told(&mut self, reply: rib::RedistributeReply) {
        if reply.again {
            self.untold = self.known.keys().copied().collect();
        }
        let mut ways: BTreeMap<IpNet, Vec<Hop>> = BTreeMap::new();
        for way in reply.ways.into_iter().flatten() {
            ways.entry(way.net).or_default().push(Hop {
                gateway: Some(way.gateway).filter(|gateway| !gateway.is_unspecified()),
                interface: Some(way.interface).filter(|interface| *interface > 0),
                weight: way.weight,
            });
        }
        for one in reply.routes {
            let used = Used {
                ways: ways.remove(&one.net).unwrap_or_default(),
                protocol: one.protocol,
                metric: one.metric,
                tag: one.tag,
                distance: one.distance,
                gateway: Some(one.gateway).filter(|gateway| !gateway.is_unspecified()),
                interface: Some(one.interface).filter(|interface| *interface > 0),
            };
            self.untold.remove(&one.net);
            if self.known.get(&one.net) != Some(&used) {
                self.known.insert(one.net, used);
                self.changed.insert(one.net);
            }
        }
        self.is_complete |= reply.complete;
        let untold =
            if reply.complete { std::mem::take(&mut self.untold) } else { BTreeSet::new() };
        for net in reply.gone.into_iter().chain(untold) {
            if self.known.remove(&net).is_some() {
                self.changed.insert(net);
            }
        }
    }
}

impl Client<u64> for FromRib {
    fn dialogue(&mut self) -> &mut Dialogue<u64> {
        &mut self.dialogue
    }

    fn began(&mut self, out: &mut Vec<Output>) {
        self.ask(true, out);
    }

    fn answered(
        &mut self,
        question: &u64,
        reply: Reply,
        out: &mut Vec<Output>,
    ) -> Result<(), XrlError> {
        if *question == self.question {
            self.told(reply.read::<rib::Redistribute>()?);
            self.ask(false, out);
        }
        Ok(())
    }
}
