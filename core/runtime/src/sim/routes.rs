//! IPv4 routes: longest prefix first.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use super::ids::InterfaceId;

/// Where packets to a prefix go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) interface: InterfaceId,
    /// The router to send to; `None` if the destination is on the link itself.
    pub(super) gateway: Option<Ipv4Addr>,
}

/// The routes of a node, by prefix length and network.
#[derive(Debug, Default)]
pub(super) struct Routes(BTreeMap<u8, BTreeMap<u32, Vec<Route>>>);

impl Routes {
    /// Adds a route. Of several to one prefix the one added first is used while its interface is up.
    pub(super) fn add(&mut self, network: Ipv4Addr, length: u8, route: Route) {
        let network = network.to_bits() & mask(length);
        self.0.entry(length).or_default().entry(network).or_default().push(route);
    }

    /// The route with the longest prefix that holds `destination` and whose interface `usable`
    /// accepts.
    pub(super) fn lookup(
        &self,
        destination: Ipv4Addr,
        usable: impl Fn(InterfaceId) -> bool,
    ) -> Option<Route> {
        self.0.iter().rev().find_map(|(length, networks)| {
            let routes = networks.get(&(destination.to_bits() & mask(*length)))?;
            routes.iter().copied().find(|route| usable(route.interface))
        })
    }

    /// The network, the length and the route of every prefix to which there is one whose interface `usable`
    /// accepts; of several the one that is used.
    pub(super) fn used(
        &self,
        usable: impl Fn(InterfaceId) -> bool,
    ) -> impl Iterator<Item = (Ipv4Addr, u8, Route)> {
        let prefixes = self.0.iter().flat_map(|(length, networks)| {
            networks
                .iter()
                .map(|(network, routes)| (Ipv4Addr::from_bits(*network), *length, routes))
        });
        prefixes.filter_map(move |(network, length, routes)| {
            let route = routes.iter().copied().find(|route| usable(route.interface))?;
            Some((network, length, route))
        })
    }

    /// Takes one route away that was added like this.
    pub(super) fn remove(&mut self, network: Ipv4Addr, length: u8, route: Route) {
        let network = network.to_bits() & mask(length);
        let routes = self.0.get_mut(&length).and_then(|networks| networks.get_mut(&network));
        if let Some(routes) = routes
            && let Some(place) = routes.iter().position(|other| *other == route)
        {
            routes.remove(place);
        }
    }

    /// Forgets the routes through `interface`.
    pub(super) fn remove_interface(&mut self, interface: InterfaceId) {
        for routes in self.0.values_mut().flat_map(BTreeMap::values_mut) {
            routes.retain(|route| route.interface != interface);
        }
    }
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
}
