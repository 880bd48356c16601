//! What neighbours have said, and the best of it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use weft_base::Instant;

use crate::config::{Config, Told};
use crate::wire::{Hello, INFINITY, MOST_NEIGHBOURS};

/// Routes of a neighbour at most.
const MOST_ROUTES: usize = 10_000;
/// How often a route that is gone is told as out of reach.
const FAREWELLS: u8 = 4;

/// A neighbour, by its link and its address there.
pub(crate) type Neighbour = (u32, Ipv4Addr);

/// What is known of a neighbour.
#[derive(Debug)]
pub(crate) struct Heard {
    /// Until when it is there if it says nothing more.
    pub(crate) until: Instant,
    /// Until when it counts as one that hears this router, if it has said so: only then packets may go there. What it said holds as
    /// long as a hello does, so that routes stay while a neighbour begins anew that has heard nobody yet.
    pub(crate) hears_us: Option<Instant>,
    /// How far it says that something is, and until when that holds.
    pub(crate) routes: BTreeMap<Ipv4Net, (u8, Instant)>,
}

/// Everything that is known.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) neighbours: BTreeMap<Neighbour, Heard>,
    /// The best route to each destination, and its neighbour.
    pub(crate) best: BTreeMap<Ipv4Net, (Neighbour, Told)>,
    /// What was told and is gone, and how often that is still to be told.
    gone: BTreeMap<Ipv4Net, u8>,
    /// What is different since this was taken last.
    pub(crate) changed: BTreeSet<Ipv4Net>,
}

impl Table {
    /// Believes a neighbour, whose link has `own` as address. Whether others should hear at once of what has
    /// changed; none if it says more than is listened to.
    pub(crate) fn hear(
        &mut self,
        now: Instant,
        neighbour: Neighbour,
        own: Ipv4Addr,
        hello: &Hello,
        config: &Config,
    ) -> Option<bool> {
        if hello.hold.is_zero() {
            self.lose(config, |one| *one == neighbour);
            return Some(true);
        }
        let on_link = self.neighbours.keys().filter(|one| one.0 == neighbour.0).count();
        if !self.neighbours.contains_key(&neighbour) && on_link >= MOST_NEIGHBOURS {
            return None;
        }
        let until = now + hello.hold;
        let says_so = hello.heard.contains(&own);
        let is_new = !self.neighbours.contains_key(&neighbour);
        let known = self.neighbours.entry(neighbour).or_insert_with(|| Heard {
            until,
            hears_us: None,
            routes: BTreeMap::new(),
        });
        known.until = until;
        let did = known.hears_us.filter(|until| *until > now);
        let does = if says_so { Some(until) } else { did };
        let is_other = is_new || known.hears_us.is_some() != does.is_some();
        known.hears_us = does;
        let mut nets: Vec<_> = hello.routes.iter().map(|(net, _)| *net).collect();
        let mut has_room = true;
        for (net, hops) in &hello.routes {
            match *hops < INFINITY {
                true if known.routes.len() < MOST_ROUTES || known.routes.contains_key(net) => {
                    known.routes.insert(*net, (*hops, until));
                }
                true => has_room = false,
                false => drop(known.routes.remove(net)),
            }
        }
        if is_other {
            nets.extend(known.routes.keys());
        }
        self.settle(nets, config);
        // Who does not hear this router may at its next word.
        has_room.then_some(is_other || !says_so)
    }

    /// Some neighbours are gone.
    pub(crate) fn lose(&mut self, config: &Config, is_gone: impl Fn(&Neighbour) -> bool) {
        let gone = self.neighbours.extract_if(.., |one, _| is_gone(one));
        let nets: Vec<_> = gone.flat_map(|(_, heard)| heard.routes.into_keys()).collect();
        self.settle(nets, config);
    }

    /// Forgets what was not said again in time.
    pub(crate) fn expire(&mut self, now: Instant, config: &Config) {
        let over = |table: &Self, one: &Neighbour| table.neighbours[one].until <= now;
        let gone: BTreeSet<_> =
            self.neighbours.keys().filter(|one| over(self, one)).copied().collect();
        self.lose(config, |one| gone.contains(one));
        let mut nets = Vec::new();
        for one in self.neighbours.values_mut() {
            let old = one.routes.extract_if(.., |_, (_, until)| *until <= now);
            nets.extend(old.map(|(net, _)| net));
            if one.hears_us.take_if(|until| *until <= now).is_some() {
                nets.extend(one.routes.keys());
            }
        }
        self.settle(nets, config);
    }

    /// Decides again about everything; these networks are not told any more as those of this router.
    pub(crate) fn settle_all(&mut self, gone: impl Iterator<Item = Ipv4Net>, config: &Config) {
        self.gone.extend(gone.map(|net| (net, FAREWELLS)));
        let heard = self.neighbours.values().flat_map(|one| one.routes.keys());
        let nets: Vec<_> = heard.chain(self.best.keys()).copied().collect();
        self.settle(nets, config);
    }

    /// Finds the best routes to these: the shortest, of several the one of the first neighbour.
    fn settle(&mut self, nets: Vec<Ipv4Net>, config: &Config) {
        for net in nets {
            let all = self.neighbours.iter().filter(|(_, heard)| heard.hears_us.is_some());
            let told = all.filter_map(|(neighbour, heard)| {
                let hops = heard.routes.get(&net)?.0 + 1;
                let told = Told { net, hops, tag: 0, neighbour: Some(neighbour.1) };
                (hops < INFINITY)
                    .then(|| told.pass(&config.import))
                    .flatten()
                    .map(|told| (*neighbour, told))
            });
            let best = match config.networks.contains(&net) {
                true => None,
                false => told.min_by_key(|(neighbour, told)| (told.hops, *neighbour)),
            };
            if self.best.get(&net) != best.as_ref() {
                self.changed.insert(net);
                match best {
                    Some(best) => drop(self.best.insert(net, best)),
                    None => drop(self.best.remove(&net)),
                }
                self.gone.insert(net, FAREWELLS);
            }
        }
    }

    /// What is told on a link: what leads there is out of reach for whoever is there, so that two routers do not
    /// believe one another what both do not know any more.
    pub(crate) fn told(&self, link: u32, config: &Config) -> Vec<(Ipv4Net, u8)> {
        let own = |net: &Ipv4Net| Told { net: *net, hops: 0, tag: 0, neighbour: None };
        let own = config.networks.iter().map(|net| (0, own(net)));
        let heard = self.best.values().map(|((link, _), told)| (*link, *told));
        let told = own.chain(heard).map(|(to, told)| {
            let hops = told.pass(&config.export).filter(|_| to != link).map(|told| told.hops);
            (told.net, hops.unwrap_or(INFINITY))
        });
        let gone = self.gone.keys().map(|net| (*net, INFINITY));
        // What is told otherwise is not gone.
        gone.chain(told).collect::<BTreeMap<_, _>>().into_iter().collect()
    }

    /// Everybody was told.
    pub(crate) fn have_told(&mut self) {
        self.gone.retain(|_, left| {
            *left -= 1;
            *left > 0
        });
    }
}
