//! A network of engines in virtual time: links that lose, double, delay and reorder messages, that are
//! cut with or without anybody being told, and nodes that crash.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use weft_base::{Instant, Random};
use weft_keys::SharedSecret;
use weft_linkstate::{
    Authority, Destination, Input, LinkId, LinkState, Metric, NodeId, Output, Settings,
};
use weft_runtime::Component;

/// Vouches by a hash that anybody could make: what signatures cost is not what is tested here.
#[derive(Debug)]
pub(crate) struct Hashes(NodeId);

fn hash(parts: &[&[u8]]) -> u64 {
    parts.iter().flat_map(|part| part.iter()).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

impl Authority for Hashes {
    fn node(&self) -> NodeId {
        self.0
    }

    fn proof_len(&self) -> usize {
        8
    }

    fn prove(&self, message: &[u8]) -> Vec<u8> {
        hash(&[&self.0.0, message]).to_be_bytes().to_vec()
    }

    fn verify(&self, node: NodeId, message: &[u8], proof: &[u8]) -> bool {
        hash(&[&node.0, message]).to_be_bytes() == proof
    }

    fn agree(&self, _: &[u8], context: &[u8]) -> Option<SharedSecret> {
        Some(SharedSecret::from_bytes([0; 32]).derive(context))
    }
}

/// How a link behaves, in thousandths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    pub(crate) loss: u64,
    pub(crate) duplicates: u64,
    /// Up to so many microseconds more than a millisecond.
    pub(crate) jitter: u64,
}

impl Faults {
    pub(crate) const NONE: Self = Self { loss: 0, duplicates: 0, jitter: 0 };
}

/// A cable between two nodes.
#[derive(Clone, Debug)]
pub(crate) struct Cable {
    pub(crate) ends: [usize; 2],
    /// What each end charges for sending over it.
    pub(crate) metrics: [Metric; 2],
    pub(crate) whole: bool,
    /// What its ends believe of it.
    pub(crate) believed: bool,
}

enum Event {
    Message { to: usize, link: LinkId, bytes: Vec<u8> },
    Tick(usize),
}

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) random: Random,
    pub(crate) nodes: Vec<Option<LinkState<Hashes>>>,
    pub(crate) cables: Vec<Cable>,
    pub(crate) destinations: Vec<BTreeMap<Destination, Metric>>,
    pub(crate) faults: Faults,
    settings: Settings,
    agenda: BinaryHeap<Reverse<(Instant, u64)>>,
    events: BTreeMap<u64, Event>,
    last_event: u64,
    /// The tick that is on the agenda for each node.
    ticks: Vec<Instant>,
    /// How often each node was started.
    starts: Vec<u64>,
    pub(crate) delivered: u64,
    /// When a route was last changed.
    pub(crate) last_change: Instant,
}

pub(crate) fn name(node: usize) -> NodeId {
    let mut id = [0; 20];
    id[..8].copy_from_slice(&(node as u64 + 1).to_be_bytes());
    NodeId(id)
}

pub(crate) fn unicast(node: usize) -> Destination {
    Destination::new(&name(node).0).unwrap()
}

impl World {
    /// `nodes` nodes that are started at once, each of which advertises itself.
    pub(crate) fn new(seed: u64, nodes: usize, settings: &Settings) -> Self {
        let mut world = Self {
            now: Instant::ZERO,
            random: Random::from_seed(seed),
            nodes: (0..nodes).map(|_| None).collect(),
            cables: Vec::new(),
            destinations: (0..nodes).map(|node| BTreeMap::from([(unicast(node), 0)])).collect(),
            faults: Faults::NONE,
            settings: settings.clone(),
            agenda: BinaryHeap::new(),
            events: BTreeMap::new(),
            last_event: 0,
            ticks: vec![Instant::MAX; nodes],
            starts: vec![0; nodes],
            delivered: 0,
            last_change: Instant::ZERO,
        };
        (0..nodes).for_each(|node| world.start(node));
        world
    }

    /// Starts a node; all its cables are there, but those that are known to be cut.
    pub(crate) fn start(&mut self, node: usize) {
        self.starts[node] += 1;
        let random = self.random.fork(&format!("{node} {}", self.starts[node]));
        let engine = LinkState::new(Hashes(name(node)), self.settings.clone(), random).unwrap();
        self.nodes[node] = Some(engine);
        self.tell(node, Input::Advertise { destinations: self.destinations[node].clone() });
        for cable in 0..self.cables.len() {
            if self.cables[cable].believed {
                self.link_up(cable, node);
            }
        }
    }

    /// A node is gone from one moment to the next. What it has sent arrives.
    pub(crate) fn crash(&mut self, node: usize) {
        self.nodes[node] = None;
    }

    pub(crate) fn connect(&mut self, ends: [usize; 2], metrics: [Metric; 2]) -> usize {
        self.cables.push(Cable { ends, metrics, whole: true, believed: true });
        let cable = self.cables.len() - 1;
        ends.iter().for_each(|node| self.link_up(cable, *node));
        cable
    }

    fn link_up(&mut self, cable: usize, node: usize) {
        let Cable { ends, metrics, .. } = self.cables[cable].clone();
        if let Some(side) = ends.iter().position(|end| *end == node) {
            let neighbour = self.random.chance(1, 2).then(|| name(ends[1 - side]));
            let link = LinkId(cable as u32);
            self.tell(node, Input::LinkUp { link, metric: metrics[side], neighbour });
        }
    }

    /// Cuts a cable; both ends notice, or neither.
    pub(crate) fn cut(&mut self, cable: usize, noticed: bool) {
        self.cables[cable].whole = false;
        self.cables[cable].believed = !noticed;
        if noticed {
            for node in self.cables[cable].ends {
                self.tell(node, Input::LinkDown { link: LinkId(cable as u32) });
            }
        }
    }

    /// Mends a cable. Whoever noticed that it was cut notices this, too.
    pub(crate) fn mend(&mut self, cable: usize) {
        self.cables[cable].whole = true;
        if !std::mem::replace(&mut self.cables[cable].believed, true) {
            for node in self.cables[cable].ends {
                self.link_up(cable, node);
            }
        }
    }

    pub(crate) fn set_metric(&mut self, cable: usize, side: usize, metric: Metric) {
        self.cables[cable].metrics[side] = metric;
        let node = self.cables[cable].ends[side];
        self.tell(node, Input::Metric { link: LinkId(cable as u32), metric });
    }

    pub(crate) fn advertise(&mut self, node: usize, destination: Destination, metric: Metric) {
        self.destinations[node].insert(destination, metric);
        self.tell(node, Input::Advertise { destinations: self.destinations[node].clone() });
    }

    pub(crate) fn withdraw(&mut self, node: usize, destination: &Destination) {
        self.destinations[node].remove(destination);
        self.tell(node, Input::Advertise { destinations: self.destinations[node].clone() });
    }

    pub(crate) fn tell(&mut self, node: usize, input: Input) {
        let Some(engine) = &mut self.nodes[node] else { return };
        let mut out = Vec::new();
        engine.handle(self.now, input, &mut out);
        let deadline = engine.deadline().unwrap_or(Instant::MAX).max(self.now);
        for output in out {
            match output {
                Output::Send { link, message } => self.send(node, link, message),
                Output::Route { .. } => self.last_change = self.now,
                Output::NeighbourUp { .. } | Output::NeighbourDown { .. } => {}
            }
        }
        if deadline < self.ticks[node] {
            self.ticks[node] = deadline;
            self.at(deadline, Event::Tick(node));
        }
    }

    fn send(&mut self, node: usize, link: LinkId, message: Vec<u8>) {
        assert!(message.len() <= self.settings.message_size);
        let cable = &self.cables[link.0 as usize];
        if !cable.whole {
            return;
        }
        let to = cable.ends[usize::from(cable.ends[0] == node)];
        let faults = self.faults;
        let copies = 1 + u64::from(self.random.chance(faults.duplicates, 1000));
        for _ in 0..copies {
            if !self.random.chance(faults.loss, 1000) {
                let delay = 1000 + self.random.below(faults.jitter + 1);
                let event = Event::Message { to, link, bytes: message.clone() };
                self.at(self.now + Duration::from_micros(delay), event);
            }
        }
    }

    fn at(&mut self, time: Instant, event: Event) {
        self.last_event += 1;
        self.agenda.push(Reverse((time, self.last_event)));
        self.events.insert(self.last_event, event);
    }

    /// Lets the time go by.
    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(Reverse((at, number))) = self.agenda.peek().copied() {
            if at > end {
                break;
            }
            self.agenda.pop();
            self.now = at;
            match self.events.remove(&number) {
                // A cable that is cut loses what is on it.
                Some(Event::Message { link, .. }) if !self.cables[link.0 as usize].whole => {}
                Some(Event::Message { to, link, bytes }) => {
                    self.delivered += 1;
                    self.tell(to, Input::Received { link, message: bytes });
                }
                Some(Event::Tick(node)) if self.ticks[node] == at => {
                    self.ticks[node] = Instant::MAX;
                    self.tell(node, Input::Tick);
                }
                Some(Event::Tick(_)) | None => {}
            }
        }
        self.now = end;
    }
}
