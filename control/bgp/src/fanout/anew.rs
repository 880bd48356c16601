//! Another policy takes effect for peers that were told by the one before: they are told what it says otherwise, and
//! nothing else.
//!
//! Reference: Handley et al. (XORP), §8.1 (policies change while routes flow).
//!
//! What a cohort was told of a destination is what the earlier policy says of the route that it heard of last. So a cohort
//! first hears of all changes that wait for it, by the new policy. Then, for a destination of which it has heard nothing
//! since, the route is still the same, and both policies are asked what they say of it. When the policy changes once more
//! before all are compared, it is not known by which of both policies a destination was told, and all are told again; as
//! are those of a peer that asks for it (RFC 2918).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use weft_routing::OriginId;
use weft_routing::ip::{News, Version};

use super::Fanout;
use super::cohort::{Cohort, Kind, Told};
use super::telling::Telling;
use crate::routes::attribute_sets::AttributesId;
use crate::routes::export::Audience;
use crate::routes::{Path, Routes};

/// How far a cohort has come with that.
#[derive(Clone, Debug)]
pub(super) struct Anew {
    /// By which it was told before; none if by several.
    earlier: Option<Rc<Kind>>,
    /// The next destination.
    place: u32,
    /// Destinations behind it that were told by the new policy already.
    done: BTreeSet<u32>,
}

/// Whether both policies say the same of routes with these attributes from this source.
#[derive(Debug, Default)]
pub(super) struct Same(BTreeMap<(AttributesId, OriginId), bool>);

/// What comes next.
pub(super) enum Next {
    /// It is told of a destination.
    Tell(News<Path>),
    /// Of another one both policies say the same.
    Nothing,
    /// It has heard everything.
    End,
}

/// By which policy a cohort may have been told of a destination before.
pub(super) enum Before {
    /// By the one of now.
    Now,
    Earlier(Rc<Kind>),
    /// By one of several.
    Several,
}

impl Fanout {
    /// A peer is another audience now: it is told what that makes different.
    pub(crate) fn change(&mut self, peer: OriginId, audience: Audience) {
        self.changed.insert(peer, audience);
    }

    /// Peers are to hear everything of a family again, with marks around it (RFC 7313) or not. What they were told and would not
    /// be told now is withdrawn. Those that are told the same, and have asked together, stay together.
    pub(crate) fn tell_again(
        &mut self,
        peers: &BTreeSet<OriginId>,
        version: Version,
        is_marked: bool,
        routes: &mut Routes,
    ) {
        let mut more = Vec::new();
        for cohort in self.cohorts.iter_mut().filter(|cohort| cohort.kind.version == version) {
            let of_it: BTreeSet<_> = cohort.peers.intersection(peers).copied().collect();
            let telling = Telling::again(cohort.telling, is_marked);
            if of_it.len() == cohort.peers.len() {
                cohort.tell_all(telling);
            } else if !of_it.is_empty() {
                cohort.peers.retain(|peer| !of_it.contains(peer));
                let mut apart = cohort.fork(of_it, routes);
                apart.tell_all(telling);
                more.push(apart);
            }
        }
        self.cohorts.append(&mut more);
    }

    /// Peers that have become other audiences go on as such; those that are told the same stay together.
    pub(super) fn take_changes(&mut self, routes: &mut Routes) {
        let audiences = std::mem::take(&mut self.changed);
        if audiences.is_empty() {
            return;
        }
        let mut more = Vec::new();
        for cohort in &mut self.cohorts {
            // Peers that are told the same go together.
            let mut groups: Vec<(Audience, BTreeSet<OriginId>)> = Vec::new();
            for peer in &cohort.peers {
                let of =
                    |audience: &Audience| audience.of(cohort.kind.version, &cohort.kind.context);
                let audience = audiences.get(peer).map(of);
                let Some(audience) = audience.filter(|one| *one != cohort.kind.audience) else {
                    continue;
                };
                match groups.iter_mut().find(|(known, _)| *known == audience) {
                    Some((_, peers)) => drop(peers.insert(*peer)),
                    None => groups.push((audience, BTreeSet::from([*peer]))),
                }
            }
            for (audience, peers) in groups {
                if peers == cohort.peers {
                    cohort.become_audience(&audience);
                    continue;
                }
                cohort.peers.retain(|peer| !peers.contains(peer));
                let mut other = cohort.fork(peers, routes);
                other.become_audience(&audience);
                more.push(other);
            }
        }
        self.cohorts.append(&mut more);
        self.share_kinds(1);
    }
}

impl Cohort {
    /// It is told everything, as this says.
    fn tell_all(&mut self, telling: Telling) {
        // It has been asked for.
        self.rests = None;
        match telling.is_for_now() {
            true => self.begin_anew(telling),
            false => self.telling = Some(telling),
        }
    }

    /// It is told everything from now on.
    pub(super) fn begin_anew(&mut self, telling: Telling) {
        self.telling = Some(telling);
        self.anew = Some(Anew { earlier: None, place: 0, done: BTreeSet::new() });
    }

    fn become_audience(&mut self, audience: &Audience) {
        let Kind { version, context, .. } = *self.kind;
        let kind = Kind { version, audience: audience.clone(), context };
        let earlier = std::mem::replace(&mut self.kind, Rc::new(kind));
        if audience.interval != earlier.audience.interval {
            self.rests = None;
            // Another interval alone changes nothing of what it is told.
            let interval = audience.interval;
            if *audience == (Audience { interval, ..earlier.audience.clone() }) {
                return;
            }
        }
        let earlier = self.anew.is_none().then_some(earlier);
        self.anew = Some(Anew { earlier, place: 0, done: BTreeSet::new() });
    }

    /// What it is told next of what is best.
    pub(super) fn next(&mut self, same: &mut Same, routes: &mut Routes) -> Next {
        if let Some(news) = self.next_change(routes) {
            return Next::Tell(news);
        }
        let Some(news) = self.next_anew(routes) else { return Next::End };
        let says_the_same = match (&news.best, &self.told) {
            (None, Told::Best(said)) => said.get(news.number).is_none(),
            (None, Told::Paths(_)) => false,
            (Some(best), _) => {
                let route = (best.route.accepted, best.origin);
                self.earlier().is_some_and(|earlier| {
                    let asks = [earlier, &self.kind.audience]
                        .iter()
                        .any(|one| one.export.asks_for_prefix());
                    let agrees = || self.agrees(earlier, route, news.number, routes);
                    if asks { agrees() } else { *same.0.entry(route).or_insert_with(agrees) }
                })
            }
        };
        if says_the_same { Next::Nothing } else { Next::Tell(news) }
    }

    /// The next destination of which it is told all paths, and by which policy it may have been told of it.
    pub(super) fn next_paths(&mut self, routes: &mut Routes) -> Option<(News<Path>, Before)> {
        let earlier = self.anew.as_ref().map(|anew| anew.earlier.clone());
        let (news, is_first) = match routes.table.next(self.kind.version, self.reader) {
            Some(news) => {
                let is_first = self.is_to_come(news.number);
                self.mark(news.number);
                (news, is_first)
            }
            None => (self.next_anew(routes)?, true),
        };
        let before = match earlier.filter(|_| is_first) {
            None => Before::Now,
            Some(Some(kind)) => Before::Earlier(kind),
            Some(None) => Before::Several,
        };
        Some((news, before))
    }

    fn earlier(&self) -> Option<&Audience> {
        Some(&self.anew.as_ref()?.earlier.as_ref()?.audience)
    }

    /// The next change that waits for it.
    fn next_change(&mut self, routes: &mut Routes) -> Option<News<Path>> {
        let news = routes.table.next(self.kind.version, self.reader)?;
        self.mark(news.number);
        Some(news)
    }

    /// It is told of a destination by the new policy.
    fn mark(&mut self, number: u32) {
        if let Some(anew) = self.anew.as_mut().filter(|anew| number >= anew.place) {
            anew.done.insert(number);
        }
    }

    /// Whether it was told of a destination by the earlier policy only.
    fn is_to_come(&self, number: u32) -> bool {
        let anew = self.anew.as_ref();
        anew.is_some_and(|anew| number >= anew.place && !anew.done.contains(&number))
    }

    /// The next destination of which it has heard nothing since the policy is another one; when there is none any more,
    /// it has come to its end.
    fn next_anew(&mut self, routes: &Routes) -> Option<News<Path>> {
        let end = routes.table.end_of_numbers(self.kind.version);
        let anew = self.anew.as_mut()?;
        while anew.place < end {
            let number = anew.place;
            anew.place += 1;
            if !anew.done.remove(&number) {
                return Some(routes.table.news(self.kind.version, number));
            }
        }
        self.anew = None;
        None
    }

    /// Whether both policies say the same of a route.
    pub(super) fn agrees(
        &self,
        earlier: &Audience,
        route: (AttributesId, OriginId),
        number: u32,
        routes: &Routes,
    ) -> bool {
        self.says(earlier, route, number, routes)
            == self.says(&self.kind.audience, route, number, routes)
    }
}
