//! The packets: legitimate ones, and those of floods.

use weft_base::{KeyedHash, Packet, PortId, Random};
use weft_xip::dag::ROW_LEN;
use weft_xip::header::FIXED_HEADER_LEN;
use weft_xip::xid::XID_LEN;
use weft_xip::{Xid, XidType};

use super::super::xip_engine::traffic::{fallback, template};
use super::super::xip_engine::world::{IN, Names, name};
use super::super::xip_engine::zipf::Zipf;

/// Bits of a hash that are equal in all addresses of [`Kind::Colliding`].
const COLLIDING_BITS: u32 = 6;

/// What a flood consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// New addresses that lead nowhere.
    Undeliverable,
    /// New domains that nobody knows, and then a known one.
    Deliverable,
    /// The same with three of them.
    Long,
    /// New addresses that lead nowhere, chosen by somebody who takes the key of the hash for another one: there they
    /// all fall on few places.
    Colliding,
}

impl Kind {
    /// All of them.
    pub(super) const ALL: [Self; 4] =
        [Self::Undeliverable, Self::Deliverable, Self::Long, Self::Colliding];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Undeliverable => "undeliverable",
            Self::Deliverable => "deliverable",
            Self::Long => "deliverable, 4 edges",
            Self::Colliding => "chosen to collide",
        }
    }

    /// Domains that nobody knows, and whether a known one follows.
    pub(super) fn edges(self) -> (usize, bool) {
        match self {
            Self::Undeliverable | Self::Colliding => (1, false),
            Self::Deliverable => (1, true),
            Self::Long => (3, true),
        }
    }
}

/// Legitimate packets.
pub(super) struct Packets<'a> {
    names: &'a Names,
    zipf: &'a Zipf,
    random: Random,
    template: Vec<u8>,
    /// How many have been made for each domain.
    made: Vec<u64>,
}

impl<'a> Packets<'a> {
    pub(super) fn new(names: &'a Names, zipf: &'a Zipf, seed: u64) -> Self {
        let template = template(&fallback(&[], names.domains[0]));
        let made = vec![0; names.domains.len()];
        Self { names, zipf, random: Random::from_seed(seed), template, made }
    }

    /// How many have been made for each domain.
    pub(super) fn made(&self) -> impl Iterator<Item = (Xid, u64)> + '_ {
        self.names.domains.iter().copied().zip(self.made.iter().copied())
    }

    pub(super) fn packet(&mut self) -> Packet {
        let domain = self.zipf.draw(&mut self.random);
        self.packet_to(domain)
    }

    pub(super) fn packet_to(&mut self, domain: usize) -> Packet {
        self.made[domain] += 1;
        put(&mut self.template, 0, &self.names.domains[domain]);
        from(&self.template, IN)
    }
}

/// Which addresses the packets of a flood have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addresses {
    /// Each a new one.
    New,
    /// All the same, with as many edges, none of which leads anywhere.
    One,
}

/// The packets of a flood.
pub(super) struct Flood<'a> {
    kind: Kind,
    addresses: Addresses,
    names: &'a Names,
    zipf: &'a Zipf,
    random: Random,
    template: Vec<u8>,
    /// Domains that nobody knows, drawn beforehand: what it takes to choose them shall not be in the way of what is
    /// measured.
    unknown: std::vec::IntoIter<Xid>,
}

impl<'a> Flood<'a> {
    /// A flood of at most this many packets.
    pub(super) fn new(
        (kind, addresses): (Kind, Addresses),
        names: &'a Names,
        zipf: &'a Zipf,
        seed: u64,
        packets: usize,
    ) -> Self {
        let mut random = Random::from_seed(seed ^ 0xf100d);
        let (unknown, is_known) = kind.edges();
        let nowhere: [Xid; 4] = {
            let mut names_of = random.fork("nowhere");
            std::array::from_fn(|_| name(XidType::AD, &mut names_of))
        };
        // What stands in it is written over where addresses are new.
        let edges = unknown + usize::from(is_known);
        let address = fallback(&nowhere[..edges - 1], nowhere[edges - 1]);
        let guessed = KeyedHash::new(&mut random);
        let chosen = |xid: &Xid| kind != Kind::Colliding || collides(&guessed, xid);
        let mut names_of = random.fork("unknown");
        let drawn = std::iter::repeat_with(|| name(XidType::AD, &mut names_of)).filter(chosen);
        let needed = if addresses == Addresses::New { packets * unknown } else { 0 };
        let unknown = drawn.take(needed).collect::<Vec<_>>().into_iter();
        let template = template(&address);
        Self { kind, addresses, names, zipf, random, template, unknown }
    }

    pub(super) fn packet(&mut self, port: PortId) -> Packet {
        if self.addresses == Addresses::One {
            return from(&self.template, port);
        }
        let (unknown, is_known) = self.kind.edges();
        for (row, xid) in (0..unknown).zip(&mut self.unknown) {
            put(&mut self.template, row, &xid);
        }
        if is_known {
            let domain = self.names.domains[self.zipf.draw(&mut self.random)];
            put(&mut self.template, unknown, &domain);
        }
        from(&self.template, port)
    }
}

/// Whether an address falls on the first places of a table, as somebody thinks who guesses the key.
fn collides(guessed: &KeyedHash, xid: &Xid) -> bool {
    let bytes = xid.to_bytes();
    let (words, _) = bytes.as_chunks::<8>();
    let words = std::array::from_fn(|at| u64::from_ne_bytes(words[at]));
    (guessed.mix(guessed.start(), words) >> 32).trailing_zeros() >= COLLIDING_BITS
}

fn put(template: &mut [u8], row: usize, xid: &Xid) {
    let at = FIXED_HEADER_LEN + row * ROW_LEN;
    template[at..at + XID_LEN].copy_from_slice(&xid.to_bytes());
}

fn from(template: &[u8], port: PortId) -> Packet {
    let mut packet = Packet::from_slice(template);
    packet.meta.port = port;
    packet
}
