//! A cohort is told the best route to each destination.
//!
//! Reference: RFC 4271 §9.2.

use std::collections::BTreeMap;

use weft_routing::OriginId;

use super::anew::{Next, Same};
use super::cohort::{Cohort, Prefixes, Runs, Told};
use super::{AT_ONCE, Sending};
use crate::incoming::family;
use crate::routes::Routes;
use crate::wire::withdraw;

impl Cohort {
    /// Whether it was told what is best, now and then, when it has heard everything.
    pub(super) fn agrees_on_best(&mut self, routes: &Routes) {
        let (version, size) = (self.kind.version, routes.table.len(self.kind.version));
        let Told::Best(said) = &self.told else { return };
        if !said.is_due(size) {
            return;
        }
        let mut runs = Runs::default();
        let told = routes.table.all_news(version).filter_map(|news| {
            let best = news.best?;
            let route = (best.route.accepted, best.origin);
            let run = self.run(route, news.number, &mut runs, routes);
            run.encoder.is_some().then_some((news.prefix, best.origin))
        });
        let told: Vec<_> = told.collect();
        if let Told::Best(said) = &mut self.told {
            said.compare(told);
        }
    }

    /// Tells it some of what it has not heard. Returns of how many destinations that was found.
    pub(super) fn tell_best(&mut self, routes: &mut Routes, sendings: &mut Vec<Sending>) -> usize {
        let mut found = 0;
        let mut runs = Runs::default();
        let mut same = Same::default();
        // By the source of the route that is withdrawn, which was not told of it.
        let mut gone: BTreeMap<OriginId, Prefixes> = BTreeMap::new();
        // By the source of the new route, which must forget the old one.
        let mut superseded: BTreeMap<OriginId, Prefixes> = BTreeMap::new();
        while found < AT_ONCE {
            let news = match self.next(&mut same, routes) {
                Next::Tell(news) => Some(news),
                Next::Nothing => None,
                Next::End => break,
            };
            found += 1;
            let Some(news) = news else { continue };
            let told = news.best.and_then(|best| {
                let route = (best.route.accepted, best.origin);
                let run = self.run(route, news.number, &mut runs, routes);
                run.encoder.is_some().then_some((best.origin, run))
            });
            let Told::Best(said) = &mut self.told else { break };
            let before =
                said.set((news.number, &news.prefix), told.as_ref().map(|(source, _)| *source));
            let entry = (0, news.prefix);
            match (told, before) {
                (Some((source, run)), before) => {
                    run.prefixes.push(entry);
                    if before.is_some_and(|before| before != source) {
                        superseded.entry(source).or_default().push(entry);
                    }
                }
                (None, Some(before)) => gone.entry(before).or_default().push(entry),
                (None, None) => {}
            }
        }
        self.announce(runs, &mut routes.profile, sendings);
        self.withdraw(gone, &mut routes.profile, sendings);
        for (source, prefixes) in
            superseded.into_iter().filter(|(source, _)| self.peers.contains(source))
        {
            let mut bytes = Vec::new();
            withdraw(family(self.kind.version), &self.kind.context, prefixes, &mut bytes);
            sendings.push(Sending { to: vec![source], bytes });
        }
        found
    }
}
