//! What a call wants, checked.

use std::net::IpAddr;
use std::sync::Arc;

use weft_runtime::{InterfaceAddress, MOST_WAYS, RouteTarget, RouteWay};
use weft_xrl::{IpNet, XrlError, fib};

/// The numbers of sets that mean something by themselves.
const NOWHERE: [RouteTarget; 3] =
    [RouteTarget::Blackhole, RouteTarget::Unreachable, RouteTarget::Prohibit];

/// Changes of a table of one version of IP.
pub(crate) struct Wanted {
    /// Where to, what, and whether nothing of the caller's is there.
    pub(crate) routes: Vec<(InterfaceAddress, Arc<RouteTarget>, bool)>,
    pub(crate) gone: Vec<InterfaceAddress>,
    /// The interfaces of the ways; 0 for those that the kernel is to find.
    pub(crate) interfaces: Vec<u32>,
}

impl Wanted {
    /// # Errors
    /// What is wrong with it; then it is of no use as a whole.
    pub(crate) fn read(call: fib::Change) -> Result<Self, XrlError> {
        let fib::Change { is_ipv6, ways, routes, gone, .. } = call;
        let mut interfaces: Vec<_> = ways.iter().map(|way| way.interface).collect();
        interfaces.sort_unstable();
        interfaces.dedup();
        let targets = targets(ways, is_ipv6)?;
        let mut last: Option<&(u32, Arc<RouteTarget>)> = None;
        let mut read = Vec::with_capacity(routes.len());
        for fib::Route { net, set, fresh } in routes {
            let destination = destination(&net, is_ipv6)?;
            let target = match last {
                Some(last) if last.0 == set => last,
                _ => {
                    let place = targets.binary_search_by_key(&set, |target| target.0);
                    let place = place.map_err(|_| {
                        let note =
                            format!("the route to {net} leads to the set {set}, which has no way");
                        XrlError::bad_args(note)
                    })?;
                    let found = &targets[place];
                    last = Some(found);
                    found
                }
            };
            read.push((destination, Arc::clone(&target.1), fresh));
        }
        let gone = gone.iter().map(|net| destination(net, is_ipv6));
        Ok(Self { routes: read, gone: gone.collect::<Result<_, _>>()?, interfaces })
    }
}

/// What each set means, in the order of their numbers.
fn targets(
    mut ways: Vec<fib::Way>,
    is_ipv6: bool,
) -> Result<Vec<(u32, Arc<RouteTarget>)>, XrlError> {
    ways.sort_by_key(|way| way.set);
    let mut targets: Vec<_> = (0..).zip(NOWHERE.map(Arc::new)).collect();
    for set in ways.chunk_by(|one, other| one.set == other.set) {
        let number = set[0].set;
        let wrong = |what: &str| XrlError::bad_args(format!("the set {number} {what}"));
        if (number as usize) < NOWHERE.len() {
            return Err(wrong(
                "has a meaning already, and no ways: 3 is the first that can have some",
            ));
        }
        if set.len() > MOST_WAYS {
            return Err(wrong("has more than 256 ways"));
        }
        let ways = set.iter().map(|way| {
            let gateway = Some(way.gateway).filter(|gateway| !gateway.is_unspecified());
            match gateway {
                None if way.interface == 0 => {
                    Err(wrong("has a way with neither gateway nor interface"))
                }
                Some(IpAddr::V4(_)) if is_ipv6 => {
                    Err(wrong("has a gateway of IPv4, which no route of IPv6 can have"))
                }
                _ => match u16::try_from(way.weight.max(1)) {
                    Ok(weight @ ..=256) => {
                        Ok(RouteWay { gateway, interface: way.interface, weight })
                    }
                    _ => Err(wrong("has a weight above 256")),
                },
            }
        });
        let ways = ways.collect::<Result<Vec<_>, _>>()?;
        targets.push((number, Arc::new(RouteTarget::ways(ways))));
    }
    Ok(targets)
}

fn destination(net: &IpNet, is_ipv6: bool) -> Result<InterfaceAddress, XrlError> {
    let (ip, prefix_length) = (net.addr(), net.prefix_len());
    // Shifting by all bits is no shift to the processor, hence the question.
    let has_more = match ip {
        IpAddr::V4(ip) => ip.to_bits().checked_shl(prefix_length.into()).unwrap_or(0) != 0,
        IpAddr::V6(ip) => ip.to_bits().checked_shl(prefix_length.into()).unwrap_or(0) != 0,
    };
    if ip.is_ipv6() != is_ipv6 {
        let family = if is_ipv6 { "IPv6" } else { "IPv4" };
        return Err(XrlError::bad_args(format!("{net} is no prefix of {family}")));
    }
    if has_more {
        return Err(XrlError::bad_args(format!(
            "{net} has bits set behind the prefix: say {}",
            net.trunc()
        )));
    }
    Ok(InterfaceAddress { ip, prefix_length })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(set: u32, gateway: &str, interface: u32, weight: u32) -> fib::Way {
        fib::Way { set, gateway: gateway.parse().unwrap(), interface, weight }
    }

    fn call(
        is_ipv6: bool,
        ways: Vec<fib::Way>,
        routes: &[(&str, u32)],
        gone: &[&str],
    ) -> fib::Change {
        let route = |(net, set): &(&str, u32)| fib::Route {
            net: net.parse().unwrap(),
            set: *set,
            fresh: true,
        };
        fib::Change {
            table: 254,
            is_ipv6,
            ways,
            routes: routes.iter().map(route).collect(),
            gone: gone.iter().map(|net| net.parse().unwrap()).collect(),
        }
    }

    #[test]
    fn sets_become_what_routes_lead_to() {
        let ways =
            vec![way(9, "192.0.2.2", 3, 0), way(5, "0.0.0.0", 4, 1), way(9, "192.0.2.1", 0, 7)];
        let routes = [("10.0.0.0/8", 9), ("10.1.0.0/16", 5), ("10.2.0.0/16", 1), ("0.0.0.0/0", 9)];
        let wanted = Wanted::read(call(false, ways, &routes, &["10.3.0.0/16"])).unwrap();
        assert_eq!(wanted.interfaces, [0, 3, 4]);
        assert_eq!(wanted.gone.len(), 1);
        let way = |gateway: &str, interface, weight| RouteWay {
            gateway: gateway.parse().ok(),
            interface,
            weight,
        };
        let both = RouteTarget::ways(vec![way("192.0.2.2", 3, 1), way("192.0.2.1", 0, 7)]);
        let expected =
            [both.clone(), RouteTarget::ways(vec![way("", 4, 1)]), RouteTarget::Unreachable, both];
        let targets: Vec<_> =
            wanted.routes.iter().map(|(_, target, _)| RouteTarget::clone(target)).collect();
        assert_eq!(targets, expected);
        assert!(Arc::ptr_eq(&wanted.routes[0].1, &wanted.routes[3].1));
    }

    #[test]
    fn mistakes_are_named() {
        let good = || vec![way(3, "192.0.2.1", 0, 1)];
        for (call, part) in [
            (call(false, good(), &[("10.0.0.0/8", 4)], &[]), "the set 4, which has no way"),
            (call(false, good(), &[("10.0.0.1/8", 3)], &[]), "say 10.0.0.0/8"),
            (call(false, good(), &[], &["2001:db8::/32"]), "no prefix of IPv4"),
            (call(true, vec![], &[("10.0.0.0/8", 0)], &[]), "no prefix of IPv6"),
            (call(true, good(), &[], &[]), "gateway of IPv4"),
            (call(false, vec![way(2, "192.0.2.1", 0, 1)], &[], &[]), "3 is the first"),
            (call(false, vec![way(3, "::", 0, 1)], &[], &[]), "neither gateway nor interface"),
            (call(false, vec![way(3, "192.0.2.1", 0, 257)], &[], &[]), "above 256"),
            (
                call(
                    false,
                    (0..257).map(|index| way(3, "192.0.2.1", index, 1)).collect(),
                    &[],
                    &[],
                ),
                "more than 256 ways",
            ),
        ] {
            let error = Wanted::read(call).err().unwrap().to_string();
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}
