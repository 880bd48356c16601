//! The packets: forms of addresses, and which XIDs stand in them.
//!
//! Reference: Machado et al., "Linux XIA", §6.3.1 (VIA, and FB0 to FB3 with 0 to 3 fallback edges
//! used); the graphs are those of AltraMayor/net-eval.

use weft_base::{Packet, Random};
use weft_xip::dag::ROW_LEN;
use weft_xip::header::FIXED_HEADER_LEN;
use weft_xip::xid::XID_LEN;
use weft_xip::{Address, Edge, Row, Xid, XidType, XipRepr};

use super::world::{IN, NEIGHBOURS, Names};
use super::zipf::Zipf;

/// Length of every packet, XIP header included.
const PACKET_LEN: usize = 256;

/// A form of address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// Entry → a neighbour.
    Host,
    /// Entry → this many domains that nobody knows, in order, and a known one at last.
    Fallback(usize),
    /// The same, with other unknown domains in every packet: no two packets need the same decision.
    Unique(usize),
    /// Entry → the router's own domain → a known domain.
    Via,
    /// Entry → a domain that is redirected to a domain that is redirected to a neighbour.
    TwoRedirects,
    /// Entry → the router itself → one of its sockets.
    Socket,
    /// Entry → a zFilter with this many of the router's links.
    Filter(usize),
}

/// A stream of packets of one form.
pub(super) struct Traffic<'a> {
    names: &'a Names,
    zipf: &'a Zipf,
    random: Random,
    /// A packet, complete but for the XIDs that vary.
    template: Vec<u8>,
    /// Rows whose XID is a new unknown domain in every packet.
    unknown: std::ops::Range<usize>,
    /// The row whose XID is a domain drawn from the distribution.
    known: Option<usize>,
    /// Unknown domains that are the same in every packet.
    fixed: Vec<Xid>,
    /// What else is looked up for each packet.
    others: Vec<Xid>,
}

impl<'a> Traffic<'a> {
    /// Packets of this form; which ones follows from `seed`.
    pub(super) fn new(form: Form, names: &'a Names, zipf: &'a Zipf, seed: u64) -> Self {
        let (unknown, known) = match form {
            Form::Fallback(count) => (0..0, Some(count)),
            Form::Unique(count) => (0..count, Some(count)),
            Form::Via => (0..0, Some(1)),
            _ => (0..0, None),
        };
        Self {
            names,
            zipf,
            random: Random::from_seed(seed),
            template: template(&form.address(names)),
            unknown,
            known,
            fixed: form.fixed(names).to_vec(),
            others: form.other_keys(names),
        }
    }

    /// The next packet, as it came in on a port.
    pub(super) fn packet(&mut self) -> Packet {
        for row in self.unknown.clone() {
            let xid = unknown_domain(&mut self.random);
            self.put(row, &xid);
        }
        if let Some(row) = self.known {
            let xid = self.names.domains[self.zipf.draw(&mut self.random)];
            self.put(row, &xid);
        }
        let mut packet = Packet::from_slice(&self.template);
        packet.meta.port = IN;
        packet
    }

    /// The packet to the domain of this rank, for a form that has domains.
    pub(super) fn packet_to(&mut self, domain: usize) -> Packet {
        if let Some(row) = self.known {
            let xid = self.names.domains[domain];
            self.put(row, &xid);
        }
        let mut packet = Packet::from_slice(&self.template);
        packet.meta.port = IN;
        packet
    }

    /// Appends the keys that a router without a cache has to look up for the next packet.
    pub(super) fn keys(&mut self, keys: &mut Vec<Xid>) {
        keys.extend(self.others.iter());
        keys.extend(&self.fixed);
        keys.extend(self.unknown.clone().map(|_| unknown_domain(&mut self.random)));
        if self.known.is_some() {
            let domain = self.zipf.draw(&mut self.random);
            keys.extend([self.names.domains[domain], self.names.gateways[domain]]);
        }
    }

    /// The rank of the next packet's domain; 0 if the form has none.
    pub(super) fn rank(&mut self) -> usize {
        if self.known.is_some() { self.zipf.draw(&mut self.random) } else { 0 }
    }

    fn put(&mut self, row: usize, xid: &Xid) {
        let at = FIXED_HEADER_LEN + row * ROW_LEN;
        self.template[at..at + XID_LEN].copy_from_slice(&xid.to_bytes());
    }
}

fn unknown_domain(random: &mut Random) -> Xid {
    let mut id = [0; 20];
    random.fill(&mut id);
    Xid::new(XidType::AD, id)
}

/// A packet to `address`, with the payload that makes it [`PACKET_LEN`] long.
pub(in crate::bench) fn template(address: &Address) -> Vec<u8> {
    let header_len = FIXED_HEADER_LEN + address.wire_len();
    let mut bytes = vec![0; PACKET_LEN];
    XipRepr::new(*address, None, (PACKET_LEN - header_len) as u16)
        .emit(&mut bytes)
        .expect("four rows are much shorter than a packet");
    bytes
}

impl Form {
    fn address(self, names: &Names) -> Address {
        let domain = names.domains[0];
        match self {
            Self::Host => scoping(&[names.neighbours[0]]),
            Self::Fallback(count) | Self::Unique(count) => {
                fallback(&names.unknown[..count], domain)
            }
            Self::Via => scoping(&[names.local_domain, domain]),
            Self::TwoRedirects => scoping(&[names.alias]),
            Self::Socket => scoping(&[names.local_host, names.socket]),
            Self::Filter(links) => {
                scoping(&[weft_xia_zf::union(&names.links[..links.min(NEIGHBOURS)])])
            }
        }
    }

    /// At how many nodes a router looks up where to go on.
    pub(super) fn last_nodes(self) -> usize {
        if matches!(self, Self::Via | Self::Socket) { 2 } else { 1 }
    }

    /// Unknown domains that are the same in every packet.
    fn fixed(self, names: &Names) -> &[Xid] {
        match self {
            Self::Fallback(count) => &names.unknown[..count],
            _ => &[],
        }
    }

    /// The XIDs of the last node whose decision depends on the domain of rank `rank`.
    pub(super) fn edges(self, names: &Names, rank: usize) -> Vec<Xid> {
        match self {
            Self::Fallback(_) | Self::Via => {
                self.fixed(names).iter().copied().chain([names.domains[rank]]).collect()
            }
            _ => self.other_keys(names)[..1].to_vec(),
        }
    }

    /// The keys of look-ups that are the same for all packets.
    fn other_keys(self, names: &Names) -> Vec<Xid> {
        match self {
            Self::Host => vec![names.neighbours[0]],
            Self::Fallback(_) | Self::Unique(_) => Vec::new(),
            Self::Via => vec![names.local_domain],
            Self::TwoRedirects => vec![names.alias, names.domains[0], names.gateways[0]],
            Self::Socket => vec![names.local_host, names.socket],
            Self::Filter(links) => names.neighbours[..links.min(NEIGHBOURS)].to_vec(),
        }
    }
}

fn scoping(path: &[Xid]) -> Address {
    Address::scoping(path).expect("one or two nodes in a line are an address")
}

/// Entry → `unknown` rows and then a known one, each a sink.
pub(in crate::bench) fn fallback(unknown: &[Xid], known: Xid) -> Address {
    let xids = unknown.iter().copied().chain([known]);
    let mut rows: Vec<_> = xids.map(|xid| Row { xid, edges: [Edge::EMPTY; 4] }).collect();
    for (target, edge) in (0u8..).zip(&mut rows[unknown.len()].edges).take(unknown.len() + 1) {
        *edge = Edge::to(target);
    }
    Address::from_rows(&rows).expect("there are at most four rows")
}
