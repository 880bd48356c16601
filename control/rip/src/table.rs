//! The routes, and their timers.
//!
//! Reference: RFC 2453 §3.6 (what is stored), §3.8 (timers), §3.9.2 (how a response changes the table); RFC 2080 §2.3,
//! §2.4.2, which is the same.
//!
//! The life of a route: it is *valid* until its timeout, or until its router says that it cannot reach the destination.
//! Then it is *gone*: it is told with the metric 16 until its garbage-collection time is over. Routes that are not
//! learned by RIP have no timeout.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use weft_base::Instant;

use crate::config::Timers;
use crate::wire::INFINITY;

/// Routes that routers tell at most; those that are gone and not forgotten are among them.
pub(crate) const MOST_ROUTES: usize = 65_536;

/// Who knows a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A router on a link told it.
    Learned {
        /// Which.
        router: IpAddr,
    },
    /// It is a network on one of this router's links.
    Connected,
    /// Another protocol knows it.
    Redistributed,
}

/// A route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) source: Source,
    /// The link that it leads to; 0 of redistributed routes whose link is not known.
    pub(crate) link: u32,
    /// The next router; none if the destination is on the link.
    pub(crate) gateway: Option<IpAddr>,
    pub(crate) metric: u8,
    pub(crate) tag: u16,
}

/// A route in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) route: Route,
    /// Whether neighbours are to be told in a triggered update.
    pub(crate) has_changed: bool,
    /// When it is gone if nothing is heard of it.
    pub(crate) timeout: Option<Instant>,
    /// When it is forgotten. It is gone then already.
    pub(crate) garbage: Option<Instant>,
}

impl Stored {
    /// Whether packets may follow it.
    pub(crate) fn is_valid(&self) -> bool {
        self.garbage.is_none()
    }

    fn is_learned(&self) -> bool {
        matches!(self.route.source, Source::Learned { .. })
    }

    /// When its state changes if nothing happens.
    fn deadline(&self) -> Option<Instant> {
        self.garbage.or(self.timeout)
    }
}

/// What came of something for a route: rows of the table in `transitions.txt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// Nothing.
    Ignored,
    /// It is the same, and its timeout begins anew.
    Refreshed,
    /// It is new.
    Added,
    /// It is another one now.
    Replaced,
    /// It is gone.
    Gone,
    /// There are as many as may be.
    TooMany,
}

/// All routes.
#[derive(Debug, Default)]
pub(crate) struct Table {
    routes: BTreeMap<IpNet, Stored>,
    /// When the states of routes change.
    deadlines: BTreeSet<(Instant, IpNet)>,
    /// Of what the RIB was not told how it is now.
    untold: BTreeSet<IpNet>,
    /// Whether a triggered update is due.
    has_changed: bool,
    /// How many routes are learned.
    learned: usize,
}

impl Table {
    pub(crate) fn get(&self, net: &IpNet) -> Option<&Stored> {
        self.routes.get(net)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&IpNet, &Stored)> {
        self.routes.iter()
    }

    /// Of what the RIB is to be told.
    pub(crate) fn take_untold(&mut self) -> BTreeSet<IpNet> {
        std::mem::take(&mut self.untold)
    }

    /// Whether neighbours are to be told something before the next update.
    pub(crate) fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// Neighbours were told everything that has changed.
    pub(crate) fn told(&mut self) {
        self.has_changed = false;
        self.routes.values_mut().for_each(|stored| stored.has_changed = false);
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    fn put(&mut self, net: IpNet, stored: Stored) {
        let before = self.routes.insert(net, stored);
        self.learned += usize::from(stored.is_learned());
        self.learned -= usize::from(before.is_some_and(|before| before.is_learned()));
        if let Some(deadline) = before.and_then(|before| before.deadline()) {
            self.deadlines.remove(&(deadline, net));
        }
        if let Some(deadline) = stored.deadline() {
            self.deadlines.insert((deadline, net));
        }
        let now = (stored.route, stored.is_valid());
        if before.is_none_or(|before| (before.route, before.is_valid()) != now) {
            self.untold.insert(net);
        }
        self.has_changed |= stored.has_changed;
    }

    /// A router tells a route; its metric has that of the link in it (RFC 2453 §3.9.2).
    pub(crate) fn learn(
        &mut self,
        now: Instant,
        net: IpNet,
        route: Route,
        timers: &Timers,
    ) -> Outcome {
        let is_reached = route.metric < INFINITY;
        let timeout = Some(now + timers.timeout);
        let valid = Stored { route, has_changed: true, timeout, garbage: None };
        let Some(known) = self.routes.get(&net).copied() else {
            if !is_reached {
                return Outcome::Ignored;
            }
            if self.learned >= MOST_ROUTES {
                return Outcome::TooMany;
            }
            self.put(net, valid);
            return Outcome::Added;
        };
        let Source::Learned { .. } = known.route.source else {
            // What this router knows itself is better than what it is told; when that is gone, it is not.
            if known.is_valid() || !is_reached {
                return Outcome::Ignored;
            }
            self.put(net, valid);
            return Outcome::Replaced;
        };
        let is_same_router = (known.route.source, known.route.link) == (route.source, route.link);
        match (is_same_router, is_reached) {
            (true, false) => self.end(now, net, timers),
            (true, true) if known.is_valid() && known.route == route => {
                self.put(net, Stored { timeout, ..known });
                Outcome::Refreshed
            }
            (_, true) if is_same_router || self.is_better(now, &known, &route, timers) => {
                self.put(net, valid);
                if known.is_valid() { Outcome::Replaced } else { Outcome::Added }
            }
            _ => Outcome::Ignored,
        }
    }

    /// Whether a route of another router takes the place of the known one: if it is shorter, and of those that are
    /// equally long if the known one has not been heard of for half its timeout (the heuristic of RFC 2453 §3.9.2).
    fn is_better(&self, now: Instant, known: &Stored, route: &Route, timers: &Timers) -> bool {
        if !known.is_valid() {
            return true;
        }
        let is_late = known.timeout.is_some_and(|timeout| now + timers.timeout / 2 >= timeout);
        route.metric < known.route.metric || route.metric == known.route.metric && is_late
    }

    /// A route is gone: neighbours are told so for a while (RFC 2453 §3.8).
    fn end(&mut self, now: Instant, net: IpNet, timers: &Timers) -> Outcome {
        let Some(known) = self.routes.get(&net).copied().filter(Stored::is_valid) else {
            return Outcome::Ignored;
        };
        let garbage = Some(now + timers.garbage);
        let route = Route { metric: INFINITY, ..known.route };
        self.put(net, Stored { route, has_changed: true, timeout: None, garbage });
        Outcome::Gone
    }

    /// This router knows a route itself. A connected one is better than one of another protocol, and both are
    /// better than what routers tell.
    pub(crate) fn know(&mut self, net: IpNet, route: Route) {
        let known = self.routes.get(&net);
        let is_worse = known.is_some_and(|known| {
            known.is_valid()
                && known.route.source == Source::Connected
                && route.source == Source::Redistributed
        });
        let is_same = known.is_some_and(|known| known.is_valid() && known.route == route);
        if !is_worse && !is_same {
            self.put(net, Stored { route, has_changed: true, timeout: None, garbage: None });
        }
    }

    /// This router does not know a route itself any more.
    pub(crate) fn forget(&mut self, now: Instant, net: &IpNet, source: Source, timers: &Timers) {
        if self.routes.get(net).is_some_and(|known| known.route.source == source) {
            self.end(now, *net, timers);
        }
    }

    /// A link carries no packets any more: what was learned there is gone at once, and what is connected, too. Returns what
    /// that was.
    pub(crate) fn lose_link(&mut self, now: Instant, link: u32, timers: &Timers) -> Vec<IpNet> {
        let is_there = |stored: &Stored| {
            stored.route.link == link && stored.route.source != Source::Redistributed
        };
        let nets: Vec<_> =
            self.routes.iter().filter(|(_, one)| is_there(one)).map(|(net, _)| *net).collect();
        for net in &nets {
            self.end(now, *net, timers);
        }
        nets
    }

    /// Lets time pass: routes time out, and are forgotten.
    pub(crate) fn tick(&mut self, now: Instant, timers: &Timers) -> Vec<(IpNet, Outcome)> {
        let mut outcomes = Vec::new();
        while let Some((deadline, net)) = self.deadlines.first().copied().filter(|one| one.0 <= now)
        {
            self.deadlines.remove(&(deadline, net));
            if self.routes.get(&net).is_some_and(Stored::is_valid) {
                outcomes.push((net, self.end(now, net, timers)));
            } else {
                let gone = self.routes.remove(&net);
                self.learned -= usize::from(gone.is_some_and(|gone| gone.is_learned()));
                outcomes.push((net, Outcome::Ignored));
            }
        }
        outcomes
    }
}
