//! The kernel's neighbours, and those that it is to look for.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use arrayvec::ArrayVec;
use weft_base::Instant;

use crate::routes::Hop;

/// When a neighbour that has not answered may be looked for again: so long the kernel looks, too.
const AGAIN: Duration = Duration::from_secs(1);
/// The most hosts on links that are looked for at a time: each takes a place in the kernel's table of neighbours,
/// which IP needs as well. Routers do not count, of which there are few.
const MOST_HOSTS: usize = 64;
/// The most that look-ups note before the node has its turn.
const MOST_NOTED: usize = 64;

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    known: BTreeMap<Hop, Neighbour>,
    /// Those that look-ups have not found.
    noted: RefCell<ArrayVec<Hop, MOST_NOTED>>,
    /// Those that are looked for, and until when.
    sought: BTreeMap<Hop, Instant>,
}

#[derive(Clone, Debug)]
struct Neighbour {
    mac: [u8; 6],
    /// A look-up has answered with it since it was probed last.
    used: Cell<bool>,
}

/// What a change of a neighbour asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    Nothing,
    /// What is sent to it goes elsewhere now.
    Moved,
    /// It was used and has fallen silent: it is to be probed.
    Idle,
}

impl Neighbours {
    /// The Ethernet address of a neighbour; if there is none, it is noted.
    #[inline]
    pub(crate) fn find(&self, hop: Hop) -> Option<[u8; 6]> {
        match self.known.get(&hop) {
            Some(neighbour) => {
                neighbour.used.set(true);
                Some(neighbour.mac)
            }
            None => {
                let mut noted = self.noted.borrow_mut();
                if !noted.is_full() && !noted.contains(&hop) && !self.sought.contains_key(&hop) {
                    noted.push(hop);
                }
                None
            }
        }
    }

    /// The kernel has told of a neighbour.
    pub(crate) fn set(&mut self, hop: Hop, mac: Option<[u8; 6]>, idle: bool) -> News {
        // A group is no neighbour.
        let Some(mac) = mac.filter(|[first, ..]| first & 1 == 0) else {
            return match self.known.remove(&hop) {
                Some(_) => News::Moved,
                None => News::Nothing,
            };
        };
        self.sought.remove(&hop);
        match self.known.get_mut(&hop) {
            Some(neighbour) if neighbour.mac == mac => {
                if idle && neighbour.used.replace(false) {
                    News::Idle
                } else {
                    News::Nothing
                }
            }
            _ => {
                self.known.insert(hop, Neighbour { mac, used: Cell::new(false) });
                News::Moved
            }
        }
    }

    /// Whether it is known, or looked for.
    fn is_settled(&self, hop: &Hop) -> bool {
        self.known.contains_key(hop) || self.sought.contains_key(hop)
    }

    /// Of these routers, those that the kernel is to look for now, before anybody needs them.
    pub(crate) fn seek_routers(&mut self, now: Instant, routers: BTreeSet<Hop>) -> Vec<Hop> {
        let mut unknown: Vec<_> = routers.into_iter().collect();
        unknown.retain(|hop| !self.is_settled(hop));
        self.sought.extend(unknown.iter().map(|hop| (*hop, now + AGAIN)));
        unknown
    }

    /// Those that the kernel is to look for now. `is_router` says who counts as a router.
    pub(crate) fn seek(&mut self, now: Instant, is_router: impl Fn(&Hop) -> bool) -> Vec<Hop> {
        let mut noted: Vec<_> = self.noted.get_mut().drain(..).collect();
        noted.retain(|hop| {
            let admitted =
                !self.is_settled(hop) && (is_router(hop) || self.sought.len() < MOST_HOSTS);
            if admitted {
                self.sought.insert(*hop, now + AGAIN);
            }
            admitted
        });
        noted
    }

    /// Those that were looked for long enough.
    pub(crate) fn give_up(&mut self, now: Instant) -> Vec<Hop> {
        let over: Vec<_> =
            self.sought.iter().filter(|(_, until)| **until <= now).map(|(hop, _)| *hop).collect();
        for hop in &over {
            self.sought.remove(hop);
        }
        over
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        if !self.noted.borrow().is_empty() {
            return Some(Instant::ZERO);
        }
        self.sought.values().min().copied()
    }

    /// Those that are known, with their Ethernet addresses, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Hop, [u8; 6])> {
        self.known.iter().map(|(hop, neighbour)| (*hop, neighbour.mac))
    }

    /// Those that are looked for, in order.
    pub(crate) fn sought(&self) -> impl Iterator<Item = &Hop> {
        self.sought.keys()
    }
}
