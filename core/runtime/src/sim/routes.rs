//! IPv4 routes: longest prefix first.
//!
//! There are fixed ones, which come with addresses or were given to the node when it was built, and those that
//! processes have set, each by its prefix and metric. Of those to one prefix the fixed ones come first, then the metric
//! counts.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use weft_netlink::RouteTarget;

use super::ids::InterfaceId;

/// Where packets to a prefix go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) interface: InterfaceId,
    /// The router to send to; `None` if the destination is on the link itself.
    pub(super) gateway: Option<Ipv4Addr>,
}

/// A route that a process has set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SetRoute {
    /// Whose it is.
    pub(super) protocol: u8,
    /// What it is, with the interfaces that were found.
    pub(super) target: Arc<RouteTarget>,
    /// The ways of it, of which the first that is up is used; none if it leads nowhere.
    pub(super) ways: Vec<Route>,
}

/// By prefix length and network.
type ByPrefix<T> = BTreeMap<u8, BTreeMap<u32, T>>;

/// The routes of a node.
#[derive(Debug, Default)]
pub(super) struct Routes {
    fixed: ByPrefix<Vec<Route>>,
    /// By metric.
    set: ByPrefix<BTreeMap<u32, SetRoute>>,
}

impl Routes {
    /// Adds a fixed route. Of several to one prefix the one added first is used while its interface is up.
    pub(super) fn add(&mut self, network: Ipv4Addr, length: u8, route: Route) {
        let network = network.to_bits() & mask(length);
        self.fixed.entry(length).or_default().entry(network).or_default().push(route);
    }

    /// The route with the longest prefix that holds `destination` and whose interface `usable`
    /// accepts; `None` also if that leads nowhere.
    pub(super) fn lookup(
        &self,
        destination: Ipv4Addr,
        usable: impl Fn(InterfaceId) -> bool,
    ) -> Option<Route> {
        let found = |length: u8| self.best(destination.to_bits() & mask(length), length, &usable);
        (0..=32).rev().find_map(found).flatten()
    }

    /// Where a prefix leads: nothing if no route to it is usable, `Some(None)` if one leads nowhere.
    fn best(
        &self,
        network: u32,
        length: u8,
        usable: impl Fn(InterfaceId) -> bool,
    ) -> Option<Option<Route>> {
        let works = |route: &Route| usable(route.interface);
        let fixed = self.fixed.get(&length).and_then(|networks| networks.get(&network));
        if let Some(route) = fixed.and_then(|routes| routes.iter().copied().find(works)) {
            return Some(Some(route));
        }
        let set = self.set.get(&length).and_then(|networks| networks.get(&network))?;
        set.values().find_map(|route| match route.ways.is_empty() {
            true => Some(None),
            false => route.ways.iter().copied().find(works).map(Some),
        })
    }

    /// The network, the length and the route of every prefix to which there is one whose interface `usable`
    /// accepts; of several the one that is used, and `None` if it leads nowhere.
    pub(super) fn used(
        &self,
        usable: impl Fn(InterfaceId) -> bool,
    ) -> impl Iterator<Item = (Ipv4Addr, u8, Option<Route>)> {
        let fixed = prefixes(&self.fixed);
        let is_fixed = move |prefix: &(u32, u8)| {
            self.fixed.get(&prefix.1).is_some_and(|networks| networks.contains_key(&prefix.0))
        };
        let set = prefixes(&self.set).filter(move |prefix| !is_fixed(prefix));
        fixed.chain(set).filter_map(move |(network, length)| {
            let route = self.best(network, length, &usable)?;
            Some((Ipv4Addr::from_bits(network), length, route))
        })
    }

    /// Takes one fixed route away that was added like this.
    pub(super) fn remove(&mut self, network: Ipv4Addr, length: u8, route: Route) {
        let network = network.to_bits() & mask(length);
        let routes = self.fixed.get_mut(&length).and_then(|networks| networks.get_mut(&network));
        if let Some(routes) = routes
            && let Some(place) = routes.iter().position(|other| *other == route)
        {
            routes.remove(place);
        }
    }

    /// Forgets the fixed routes through `interface`.
    pub(super) fn remove_interface(&mut self, interface: InterfaceId) {
        for routes in self.fixed.values_mut().flat_map(BTreeMap::values_mut) {
            routes.retain(|route| route.interface != interface);
        }
    }

    /// An interface is down: what processes have set and leads there alone is gone, as it is in Linux.
    pub(super) fn interface_down(&mut self, interface: InterfaceId) {
        let stays = |route: &SetRoute| {
            route.ways.is_empty() || route.ways.iter().any(|way| way.interface != interface)
        };
        for networks in self.set.values_mut() {
            networks.retain(|_, routes| {
                routes.retain(|_, route| stays(route));
                !routes.is_empty()
            });
        }
    }

    /// The route to a prefix that has a metric, if a process has set it.
    pub(super) fn set_at(&self, network: Ipv4Addr, length: u8, metric: u32) -> Option<&SetRoute> {
        self.set.get(&length)?.get(&network.to_bits())?.get(&metric)
    }

    /// Whether there is a fixed route to a prefix; its metric is 0.
    pub(super) fn is_fixed(&self, network: Ipv4Addr, length: u8) -> bool {
        let networks = self.fixed.get(&length);
        let routes = networks.and_then(|networks| networks.get(&network.to_bits()));
        routes.is_some_and(|routes| !routes.is_empty())
    }

    /// Sets a route in the place of the one that there is.
    pub(super) fn set(&mut self, network: Ipv4Addr, length: u8, metric: u32, route: SetRoute) {
        let networks = self.set.entry(length).or_default();
        networks.entry(network.to_bits()).or_default().insert(metric, route);
    }

    /// Takes away what a process has set.
    pub(super) fn unset(&mut self, network: Ipv4Addr, length: u8, metric: u32) {
        let Some(networks) = self.set.get_mut(&length) else { return };
        if let Some(routes) = networks.get_mut(&network.to_bits()) {
            routes.remove(&metric);
            if routes.is_empty() {
                networks.remove(&network.to_bits());
            }
        }
    }

    /// All that processes have set: network, length and metric of each.
    pub(super) fn all_set(&self) -> impl Iterator<Item = (Ipv4Addr, u8, u32, &SetRoute)> {
        self.set.iter().flat_map(|(length, networks)| {
            networks.iter().flat_map(move |(network, routes)| {
                let network = Ipv4Addr::from_bits(*network);
                routes.iter().map(move |(metric, route)| (network, *length, *metric, route))
            })
        })
    }
}

fn prefixes<T>(routes: &ByPrefix<T>) -> impl Iterator<Item = (u32, u8)> {
    routes.iter().flat_map(|(length, networks)| networks.keys().map(|network| (*network, *length)))
}

fn mask(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length.min(32))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(interface: usize) -> Route {
        Route { interface: InterfaceId::at(interface), gateway: None }
    }

    fn set(ways: &[usize]) -> SetRoute {
        let ways: Vec<_> = ways.iter().map(|interface| route(*interface)).collect();
        SetRoute { protocol: 119, target: Arc::new(RouteTarget::Blackhole), ways }
    }

    #[test]
    fn the_longest_usable_prefix_wins() {
        let mut routes = Routes::default();
        routes.add(Ipv4Addr::UNSPECIFIED, 0, route(0));
        routes.add(Ipv4Addr::new(10, 1, 2, 3), 8, route(1));
        routes.add(Ipv4Addr::new(10, 1, 0, 0), 16, route(2));
        routes.add(Ipv4Addr::new(10, 1, 2, 3), 32, route(3));
        let get = |address: [u8; 4]| {
            routes.lookup(address.into(), |_| true).map(|route| route.interface.index())
        };
        assert_eq!(get([10, 1, 2, 3]), Some(3));
        assert_eq!(get([10, 1, 2, 4]), Some(2));
        assert_eq!(get([10, 2, 0, 0]), Some(1));
        assert_eq!(get([192, 0, 2, 1]), Some(0));
        let without_2 = routes.lookup([10, 1, 2, 4].into(), |i| i != InterfaceId::at(2));
        assert_eq!(without_2, Some(route(1)));
    }

    #[test]
    fn the_first_of_equal_routes_is_used_until_it_goes() {
        let mut routes = Routes::default();
        routes.add(Ipv4Addr::new(10, 0, 0, 0), 8, route(4));
        routes.add(Ipv4Addr::new(10, 0, 0, 0), 8, route(5));
        assert_eq!(routes.lookup([10, 0, 0, 1].into(), |_| true), Some(route(4)));
        routes.remove_interface(InterfaceId::at(4));
        assert_eq!(routes.lookup([10, 0, 0, 1].into(), |_| true), Some(route(5)));
        assert_eq!(routes.lookup([11, 0, 0, 1].into(), |_| true), None);
    }

    #[test]
    fn what_is_set_counts_by_its_metric_behind_what_is_fixed() {
        let (ten, eight) = (Ipv4Addr::new(10, 0, 0, 0), 8);
        let mut routes = Routes::default();
        routes.add(Ipv4Addr::UNSPECIFIED, 0, route(0));
        routes.set(ten, eight, 20, set(&[2, 3]));
        routes.set(ten, eight, 30, set(&[4]));
        routes.set(ten, 16, 20, set(&[]));
        let get = |routes: &Routes, address: [u8; 4]| {
            routes.lookup(address.into(), |id| id.index() != 9).map(|route| route.interface.index())
        };
        assert_eq!(get(&routes, [10, 1, 0, 0]), Some(2));
        assert_eq!(get(&routes, [10, 0, 0, 1]), None, "it leads nowhere, not to a shorter prefix");
        routes.set(ten, eight, 20, set(&[9, 3]));
        assert_eq!(get(&routes, [10, 1, 0, 0]), Some(3), "the first way is not usable");
        routes.set(ten, eight, 20, set(&[9]));
        assert_eq!(get(&routes, [10, 1, 0, 0]), Some(4), "the next metric is");
        routes.add(ten, eight, route(5));
        assert_eq!(get(&routes, [10, 1, 0, 0]), Some(5));
        assert_eq!(routes.used(|_| true).count(), 3);
        routes.interface_down(InterfaceId::at(9));
        assert_eq!(routes.set_at(ten, eight, 20), None);
        routes.unset(ten, eight, 30);
        routes.unset(ten, 16, 20);
        assert_eq!(routes.all_set().count(), 0);
        assert_eq!(get(&routes, [10, 0, 0, 1]), Some(5));
    }
}
