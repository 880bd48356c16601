//! What routers use in the end, computed without any of their code: each in turn takes the best of what its neighbours use,
//! until nothing changes.
//!
//! Reference: RFC 4271 §9.1 and §9.2; RFC 5065 §4.1 and §5.3; Griffin, Shepherd and Wilfong, "The Stable Paths Problem and Interdomain Routing", 2002.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use crate::plan::{Plan, ROUTERS, identifier, shared, stub};

/// What a router uses to get to a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Used {
    /// It is its own.
    Own,
    Learned(Learned),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Learned {
    pub(crate) path: Vec<u32>,
    /// The members that it has come through since it is in this confederation.
    pub(crate) inside: Vec<u32>,
    preference: u32,
    /// Whether it came from a customer.
    marked: bool,
    is_external: bool,
    /// The session.
    link: usize,
    identifier: Ipv4Addr,
    pub(crate) peer: Ipv4Addr,
}

impl Learned {
    /// The path as routers show it.
    pub(crate) fn path_text(&self) -> String {
        let words =
            |path: &[u32]| path.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        match (&self.inside[..], &self.path[..]) {
            ([], path) => words(path),
            (inside, []) => format!("({})", words(inside)),
            (inside, path) => format!("({}) {}", words(inside), words(path)),
        }
    }

    /// The lower the better.
    fn rank(&self) -> impl Ord + use<> {
        let first = (Reverse(self.preference), self.path.len(), !self.is_external);
        (first, self.identifier, self.peer)
    }
}

/// What works when nothing happens any more.
pub(crate) struct State<'a> {
    pub(crate) plan: &'a Plan,
    /// Links that are down.
    pub(crate) down: &'a BTreeSet<usize>,
    /// Routers whose link without another router is down.
    pub(crate) stubs_down: &'a BTreeSet<usize>,
}

impl State<'_> {
    fn is_own(&self, router: usize, network: &str) -> bool {
        (stub(router) == network && !self.stubs_down.contains(&router))
            || self.plan.shared[router].iter().any(|number| shared(*number) == network)
    }

    /// What each router uses to get to a network, by their numbers.
    pub(crate) fn solve(&self, network: &str) -> Vec<Option<Used>> {
        let mut used = vec![None; ROUTERS];
        // A path of n systems is known after n rounds.
        for _ in 0..4 * ROUTERS {
            let before = used.clone();
            for router in 0..ROUTERS {
                used[router] = self.best(router, network, &used);
            }
            if used == before {
                return used;
            }
        }
        panic!("there is no stable outcome for {network}");
    }

    fn best(&self, router: usize, network: &str, used: &[Option<Used>]) -> Option<Used> {
        if self.is_own(router, network) {
            return Some(Used::Own);
        }
        let links = self.plan.links_of(router).filter(|link| !self.down.contains(link));
        let learned = links.filter_map(|link| self.learn(router, link, used));
        learned.min_by_key(Learned::rank).map(Used::Learned)
    }

    /// What a router hears over a link, as it takes it.
    fn learn(&self, router: usize, link: usize, used: &[Option<Used>]) -> Option<Learned> {
        let plan = self.plan;
        let other = plan.links[link].other(router);
        let (own, system) = (plan.systems[router], plan.systems[other]);
        let source = used[other].as_ref()?;
        let (mut path, mut preference, mut marked, came) = match source {
            Used::Own => (Vec::new(), 100, false, None),
            Used::Learned(one) => (one.path.clone(), one.preference, one.marked, Some(one)),
        };
        let mut inside = came.map(|one| one.inside.clone()).unwrap_or_default();
        let is_external = system != own;
        // Nothing goes back; what one router of a system says another one does not pass on inside.
        if came.is_some_and(|one| one.link == link || !(is_external || one.is_external)) {
            return None;
        }
        if is_external {
            let goes_up = plan.has_hierarchy && own < system;
            if goes_up && came.is_some() && !marked {
                return None;
            }
            path.insert(0, system);
            inside.clear();
            (preference, marked) = match plan.has_hierarchy {
                true if own < system => (200, true),
                _ => (100, false),
            };
        }
        if let Some(member) = plan.members[other].filter(|_| !is_external) {
            inside.insert(0, member);
        }
        let (identifier, peer) = (identifier(other), plan.address(link, other));
        let learned =
            Learned { path, inside, preference, marked, is_external, link, identifier, peer };
        (!learned.path.contains(&own)).then_some(learned)
    }
}
