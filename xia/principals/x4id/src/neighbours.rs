//! The kernel's neighbours, and those that it is to look for.
//!
//! Only so many are looked for at a time. Who finds no room waits in a line, and as long as others wait, who does not answer is
//! left alone for longer and longer, though it is needed all the same: so hosts that are not there keep out no others.
//! What is remembered of them is bounded: the line is, and no more rest than can be looked for in the longest rest.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use arrayvec::ArrayVec;
use weft_base::Instant;

use crate::routes::Hop;

/// When a neighbour that has not answered may be looked for again: so long the kernel looks, too.
const AGAIN: Duration = Duration::from_secs(1);
/// The longest rest of a host that does not answer while others wait. The first one is what those take, then they double.
const LONGEST_REST: Duration = Duration::from_secs(64);
/// The most hosts on links that are looked for at a time: each takes a place in the kernel's table of neighbours,
/// which IP needs as well. Routers do not count, of which there are few.
const MOST_HOSTS: usize = 64;
/// The most hosts that wait for a place among them.
const MOST_WAITING: usize = 1024;
/// The most hosts that look-ups note before the node has its turn.
const MOST_NOTED_HOSTS: usize = 64;
/// The same, with routers.
const MOST_NOTED: usize = 2 * MOST_NOTED_HOSTS;

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    known: BTreeMap<Hop, Neighbour>,
    /// Those that look-ups have not found.
    noted: RefCell<ArrayVec<Hop, MOST_NOTED>>,
    /// There was no room to note one, or to let it wait.
    missed: Cell<bool>,
    searches: BTreeMap<Hop, Search>,
    /// When searches reach their next stage.
    agenda: BTreeSet<(Instant, Hop)>,
    /// Those that wait, in their order, and some that do not any more.
    line: VecDeque<Hop>,
    /// How many are looked for.
    sought: usize,
    /// Those that may be looked for again; they are forgotten unless a look-up notes them.
    over: Vec<Hop>,
}

/// How far the search for a neighbour has come.
#[derive(Clone, Copy, Debug)]
struct Search {
    stage: Stage,
    /// For how long it was left alone when it did not answer.
    rest: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// There is no room for it yet.
    Waiting,
    /// The kernel looks for it until then.
    Sought(Instant),
    /// It has not answered, and is left alone until then.
    Resting(Instant),
    /// It may be looked for again if it is needed.
    Over,
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
    /// The Ethernet address of a neighbour, which may be a router; if there is none, it is noted.
    #[inline]
    pub(crate) fn find(&self, hop: Hop, is_router: bool) -> Option<[u8; 6]> {
        match self.known.get(&hop) {
            Some(neighbour) => {
                neighbour.used.set(true);
                Some(neighbour.mac)
            }
            None => {
                self.note(hop, is_router);
                None
            }
        }
    }

    fn note(&self, hop: Hop, is_router: bool) {
        let mut noted = self.noted.borrow_mut();
        if self.is_under_way(&hop) || noted.contains(&hop) {
            return;
        }
        let room = if is_router { MOST_NOTED } else { MOST_NOTED_HOSTS };
        match noted.len() < room {
            true => noted.push(hop),
            false => self.missed.set(true),
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
        self.end_search(&hop);
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

    /// Whether a search need not be begun.
    fn is_under_way(&self, hop: &Hop) -> bool {
        self.searches.get(hop).is_some_and(|search| search.stage != Stage::Over)
    }

    fn set_stage(&mut self, hop: Hop, stage: Stage) {
        let rest = self.searches.get(&hop).map_or(Duration::ZERO, |search| search.rest);
        self.end_search(&hop);
        if let Stage::Sought(until) | Stage::Resting(until) = stage {
            self.agenda.insert((until, hop));
        }
        self.sought += usize::from(matches!(stage, Stage::Sought(_)));
        self.searches.insert(hop, Search { stage, rest });
    }

    fn end_search(&mut self, hop: &Hop) {
        let Some(Search { stage, .. }) = self.searches.remove(hop) else { return };
        if let Stage::Sought(until) | Stage::Resting(until) = stage {
            self.agenda.remove(&(until, *hop));
        }
        self.sought -= usize::from(matches!(stage, Stage::Sought(_)));
    }

    /// Of these routers, those that the kernel is to look for now, before anybody needs them.
    pub(crate) fn seek_routers(&mut self, now: Instant, routers: BTreeSet<Hop>) -> Vec<Hop> {
        let mut unknown: Vec<_> = routers.into_iter().collect();
        let is_sought = |hop: &Hop| {
            self.searches.get(hop).is_some_and(|search| matches!(search.stage, Stage::Sought(_)))
        };
        unknown.retain(|hop| !self.known.contains_key(hop) && !is_sought(hop));
        unknown.iter().for_each(|hop| self.set_stage(*hop, Stage::Sought(now + AGAIN)));
        unknown
    }

    /// Those that the kernel is to look for now. `is_router` says who counts as a router.
    pub(crate) fn seek(&mut self, now: Instant, is_router: impl Fn(&Hop) -> bool) -> Vec<Hop> {
        let mut found = Vec::new();
        for hop in std::mem::take(self.noted.get_mut()) {
            if self.known.contains_key(&hop) || self.is_under_way(&hop) {
                continue;
            }
            if is_router(&hop) {
                found.push(hop);
                self.set_stage(hop, Stage::Sought(now + AGAIN));
            } else if self.line.len() < MOST_WAITING {
                self.line.push_back(hop);
                self.set_stage(hop, Stage::Waiting);
            } else {
                self.missed.set(true);
            }
        }
        while self.sought < MOST_HOSTS
            && let Some(hop) = self.line.pop_front()
        {
            // It may have been found meanwhile.
            if self.searches.get(&hop).is_some_and(|search| search.stage == Stage::Waiting) {
                found.push(hop);
                self.set_stage(hop, Stage::Sought(now + AGAIN));
            }
        }
        found
    }

    /// Those that were looked for long enough, and left alone long enough: whoever needs them is to be asked again.
    pub(crate) fn give_up(&mut self, now: Instant, is_router: impl Fn(&Hop) -> bool) -> Vec<Hop> {
        for hop in std::mem::take(&mut self.over) {
            let is_needed = self.is_under_way(&hop) || self.noted.get_mut().contains(&hop);
            if !is_needed {
                self.end_search(&hop);
            }
        }
        while let Some((_, hop)) = self.agenda.first().copied().filter(|(at, _)| *at <= now) {
            let Some(search) = self.searches.get_mut(&hop) else { break };
            if let Stage::Sought(_) = search.stage {
                let gives_way = !self.line.is_empty() && !is_router(&hop);
                let others = AGAIN * self.line.len().div_ceil(MOST_HOSTS) as u32;
                search.rest = match gives_way {
                    true => (2 * search.rest).max(others).min(LONGEST_REST),
                    false => Duration::ZERO,
                };
                if gives_way {
                    let rest = search.rest;
                    self.set_stage(hop, Stage::Resting(now + rest));
                    continue;
                }
            }
            self.set_stage(hop, Stage::Over);
            self.over.push(hop);
        }
        self.over.clone()
    }

    /// Whether there were some that could not be noted, and now can; once.
    pub(crate) fn take_missed(&mut self) -> bool {
        // Everything is asked about again, which is worth it for many.
        self.line.len() <= MOST_WAITING / 2 && self.missed.take()
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        if !self.noted.borrow().is_empty() {
            return Some(Instant::ZERO);
        }
        self.agenda.first().map(|(at, _)| *at)
    }

    /// Those that are known, with their Ethernet addresses, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Hop, [u8; 6])> {
        self.known.iter().map(|(hop, neighbour)| (*hop, neighbour.mac))
    }

    /// Those that are looked for, in order.
    pub(crate) fn sought(&self) -> impl Iterator<Item = &Hop> {
        let sought = |search: &Search| matches!(search.stage, Stage::Sought(_));
        self.searches.iter().filter(move |(_, search)| sought(search)).map(|(hop, _)| hop)
    }
}
