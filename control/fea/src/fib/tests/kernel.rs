//! A kernel that is made up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weft_runtime::{
    InterfaceAddress, KernelRoute, RouteChange, RouteOperation, RouteReply, RouteRequest,
    RouteSpace, RouteTarget, RoutesTold,
};

/// What the kernel knows a route by, and whose it is and what.
pub(super) type Routes = BTreeMap<(RouteSpaceOf, InterfaceAddress, u32), (u8, RouteTarget)>;
/// Version of IP and table.
pub(super) type RouteSpaceOf = (bool, u32);

/// A kernel: what it has, and how often it was told something.
#[derive(Default)]
pub(super) struct Kernel {
    pub(super) routes: Routes,
    pub(super) changes: u64,
    pub(super) most_at_a_time: usize,
    /// Prefixes that it refuses.
    pub(super) bad: BTreeSet<InterfaceAddress>,
    /// It tells what it has twice: something changed.
    pub(super) interrupted: bool,
    /// It cannot be reached.
    pub(super) broken: bool,
}

impl Kernel {
    pub(super) fn carry_out(&mut self, request: RouteRequest) -> Vec<Result<RouteReply, String>> {
        if self.broken {
            return vec![Err("no buffer space".to_owned())];
        }
        match request {
            RouteRequest::Change { space, changes } => {
                self.most_at_a_time = self.most_at_a_time.max(changes.len());
                let results = changes.iter().map(|change| self.change(&space, change));
                let results: Vec<_> = results.collect();
                let refused = results.into_iter().enumerate();
                let refused = refused.filter_map(|(place, result)| Some((place, result.err()?)));
                vec![Ok(RouteReply::Changed { refused: refused.collect() })]
            }
            RouteRequest::Dump { space } => {
                let own = self.routes.iter().filter(|((of, ..), (protocol, _))| {
                    *of == (space.is_ipv6, space.table) && *protocol == space.protocol
                });
                let routes = own.map(|((_, destination, metric), (_, target))| KernelRoute {
                    destination: *destination,
                    metric: *metric,
                    target: Some(Arc::new(target.clone())),
                });
                let routes: Vec<_> = routes.collect();
                let told = |routes: &[KernelRoute], told| {
                    Ok(RouteReply::Told { routes: routes.to_vec(), told })
                };
                let mut answers = Vec::new();
                if self.interrupted {
                    answers.push(told(&routes, RoutesTold::More));
                    answers.push(told(&[], RoutesTold::Again));
                }
                answers.extend(routes.chunks(3).map(|some| told(some, RoutesTold::More)));
                answers.push(told(&[], RoutesTold::All));
                answers
            }
            RouteRequest::Watch { .. } => Vec::new(),
        }
    }

    fn change(&mut self, space: &RouteSpace, change: &RouteChange) -> Result<(), String> {
        self.changes += 1;
        let RouteChange { destination, metric, operation } = change;
        // Of IPv6, as the kernel does (IP6_RT_PRIO_USER).
        let metric = if space.is_ipv6 && *metric == 0 { 1024 } else { *metric };
        let key = ((space.is_ipv6, space.table), *destination, metric);
        let there = self.routes.get(&key).map(|(protocol, _)| *protocol);
        let target = match operation {
            RouteOperation::Delete => {
                if there == Some(space.protocol) {
                    self.routes.remove(&key);
                }
                return Ok(());
            }
            RouteOperation::Add(_) if there.is_some() => return Err("File exists".to_owned()),
            RouteOperation::Add(target) | RouteOperation::Replace(target) => target,
        };
        if self.bad.contains(destination) {
            return Err("Nexthop has invalid gateway".to_owned());
        }
        self.routes.insert(key, (space.protocol, RouteTarget::clone(target)));
        Ok(())
    }
}
