//! How next hops are reached: the RIB is asked, and says when an answer holds no longer.
//!
//! Reference: Handley et al. (XORP), §5.2.1 (interest registration). An answer holds for a block of addresses. While
//! the RIB is away, what it has said last is believed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use weft_base::Instant;
use weft_xrl::{Input, Output, Reply, XrlError};

use crate::dialogue::{Dialogue, Heard};
use crate::rib;

/// How long the RIB may have nothing to tell, in milliseconds.
const QUIET: u32 = 20_000;

/// How an address is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// How far it is.
    pub metric: u32,
    /// Whether it is on a link of this router.
    pub is_neighbour: bool,
}

/// What a call was about.
#[derive(Debug)]
enum About {
    Register(Vec<IpAddr>),
    Invalid,
}

/// The addresses of interest, and how each is reached.
#[derive(Debug)]
pub struct Reach {
    dialogue: Dialogue<About>,
    wanted: BTreeSet<IpAddr>,
    /// Of what the RIB is to be asked.
    unasked: BTreeSet<IpAddr>,
    known: BTreeMap<IpAddr, Option<Reached>>,
    has_changed: bool,
}

impl Reach {
    /// No addresses, and the number of its [`Dialogue`].
    #[must_use]
    pub fn new(number: u8) -> Self {
        Self {
            dialogue: Dialogue::new(rib::CLASS, number),
            wanted: BTreeSet::new(),
            unasked: BTreeSet::new(),
            known: BTreeMap::new(),
            has_changed: false,
        }
    }

    /// These addresses are of interest, and no others.
    pub fn want(&mut self, wanted: BTreeSet<IpAddr>) {
        self.known.retain(|address, _| wanted.contains(address));
        self.unasked.extend(wanted.difference(&self.wanted));
        self.unasked.retain(|address| wanted.contains(address));
        self.wanted = wanted;
    }

    /// How an address is reached; none if it is not, or that is not known yet.
    #[must_use]
    pub fn of(&self, address: &IpAddr) -> Option<Reached> {
        self.known.get(address).copied().flatten()
    }

    /// Whether the RIB has said of all addresses whether they are reached.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.known.len() == self.wanted.len()
    }

    /// Whether something is reached in another way since this was asked last.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    /// When something is to be done at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.dialogue.deadline()
    }

    /// Hears an input; gives it back if it is not for this alone.
    pub fn hear(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) -> Option<Input> {
        let (heard, input) = self.dialogue.hear(now, input, out);
        match heard {
            Some(Heard::Began) => {
                self.unasked = self.wanted.clone();
                self.dialogue.call(About::Invalid, rib::Invalid { wait: QUIET }, out);
            }
            Some(Heard::Answered(about, reply)) => {
                if let Err(error) = self.answered(about, reply, out) {
                    self.dialogue.failed(now, &error, out);
                }
            }
            Some(Heard::Refused(_, error)) => self.dialogue.failed(now, &error, out),
            Some(Heard::Ended) | None => {}
        }
        input
    }

    fn answered(
        &mut self,
        about: About,
        reply: Reply,
        out: &mut Vec<Output>,
    ) -> Result<(), XrlError> {
        match about {
            About::Register(addresses) => {
                let ways = reply.read::<rib::Register>()?.ways;
                for (address, way) in addresses.into_iter().zip(ways) {
                    let (metric, is_neighbour) = (way.metric, way.is_neighbour);
                    let reached = way.found.then_some(Reached { metric, is_neighbour });
                    if self.wanted.contains(&address) {
                        let before = self.known.insert(address, reached);
                        self.has_changed |= before != Some(reached);
                    }
                }
            }
            About::Invalid => {
                let blocks: Vec<IpNet> = reply.read::<rib::Invalid>()?.blocks;
                let within =
                    |address: &&IpAddr| blocks.iter().any(|block| block.contains(*address));
                self.unasked.extend(self.wanted.iter().filter(within));
                self.dialogue.call(About::Invalid, rib::Invalid { wait: QUIET }, out);
            }
        }
        Ok(())
    }

    /// Asks what is to be asked.
    pub fn ask(&mut self, out: &mut Vec<Output>) {
        if self.dialogue.is_there() && !self.unasked.is_empty() {
            let addresses: Vec<_> = std::mem::take(&mut self.unasked).into_iter().collect();
            let request = rib::Register { addresses: addresses.clone() };
            self.dialogue.call(About::Register(addresses), request, out);
        }
    }
}
