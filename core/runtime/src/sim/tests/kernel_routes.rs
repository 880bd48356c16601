//! Routes that processes set.

use std::net::IpAddr;
use std::sync::Arc;

use weft_netlink::{RouteChange, RouteOperation, RouteSpace, RouteTarget, RouteWay};

use super::*;
use crate::{InterfaceAddress, MAIN_TABLE, RouteReply, RouteRequest};

const SPACE: RouteSpace = RouteSpace { is_ipv6: false, table: MAIN_TABLE, protocol: 119 };

fn via(gateway: &str, interface: u32) -> Arc<RouteTarget> {
    let gateway = gateway.parse().ok();
    Arc::new(RouteTarget::ways(vec![RouteWay { gateway, interface, weight: 1 }]))
}

fn change(to: &str, operation: RouteOperation) -> RouteChange {
    let (ip, length) = to.split_once('/').unwrap();
    let destination =
        InterfaceAddress { ip: ip.parse().unwrap(), prefix_length: length.parse().unwrap() };
    RouteChange { destination, metric: 40, operation }
}

fn show(event: &Event) -> Vec<String> {
    let Event::RoutesAnswered { result, .. } = event else { return Vec::new() };
    match result {
        Ok(RouteReply::Changed { refused }) => {
            refused.iter().map(|(place, why)| format!("{place}: {why}")).collect()
        }
        Ok(RouteReply::Told { routes, .. }) => {
            let line = |route: &crate::KernelRoute| {
                let gateway = match &**route.target.as_ref().unwrap() {
                    RouteTarget::Ways(ways) => {
                        ways[0].gateway.unwrap_or(IpAddr::from([0; 4])).to_string()
                    }
                    other => format!("{other:?}"),
                };
                format!("{} {gateway}", route.destination)
            };
            routes.iter().map(line).collect()
        }
        Ok(RouteReply::Deleted(_)) => panic!("nobody else deletes any"),
        Err(error) => vec![error.clone()],
    }
}

/// A process that asks at the start, and notes what it is answered.
fn asking(mut requests: Vec<RouteRequest>, log: &Log) -> Spawn {
    let log = Rc::clone(log);
    script("router", move |turn, event| {
        if matches!(event, Event::Start) {
            for request in requests.drain(..) {
                turn.act(Action::Routes { token: Token(1), request });
            }
        }
        log.borrow_mut().extend(show(&event));
    })
}

#[test]
fn routes_are_set_replaced_refused_and_read() {
    let mut world = world(1);
    let [(a, eth0), (_, other)] = pair(&mut world, &LinkConfig::default());
    world.add_address(eth0, [10, 0, 0, 1].into(), 24).unwrap();
    world.add_address(other, [10, 0, 0, 2].into(), 24).unwrap();
    let add = |to: &str, target: Arc<RouteTarget>| change(to, RouteOperation::Add(target));
    let changes = vec![
        add("10.1.0.0/16", via("10.0.0.2", 0)),
        add("10.1.0.0/16", via("10.0.0.3", 0)),
        add("10.2.0.0/16", via("10.7.0.2", 0)),
        add("10.3.0.0/16", via("", 12)),
        add("10.4.0.0/16", Arc::new(RouteTarget::Blackhole)),
        add("10.5.0.1/16", via("10.0.0.2", 0)),
        change("10.1.0.0/16", RouteOperation::Replace(via("10.0.0.9", 1))),
        change("10.9.0.0/16", RouteOperation::Delete),
        add("10.6.0.0/16", via("fe80::1", 1)),
        add("10.7.0.0/16", via("10.0.0.2", 1)),
        change("10.7.0.0/16", RouteOperation::Delete),
    ];
    let foreign = RouteSpace { protocol: 4, ..SPACE };
    let requests = vec![
        RouteRequest::Change { space: SPACE, changes },
        RouteRequest::Change {
            space: foreign,
            changes: vec![change("10.1.0.0/16", RouteOperation::Delete)],
        },
        RouteRequest::Dump { space: SPACE },
        RouteRequest::Dump { space: foreign },
        RouteRequest::Dump { space: RouteSpace { is_ipv6: true, ..SPACE } },
        RouteRequest::Change { space: RouteSpace { table: 7, ..SPACE }, changes: Vec::new() },
    ];
    let log = Log::default();
    world.spawn(a, asking(requests, &log));
    world.run_while(|_| true).unwrap();
    let expected = [
        "1: there is a route to this prefix with this metric",
        "2: the gateway 10.7.0.2 is in no network of this node",
        "3: there is no interface number 12",
        "5: a bit behind the prefix is set",
        "8: the gateway fe80::1 is of IPv6, and the simulator models IPv4 only",
        "10.1.0.0/16 10.0.0.9",
        "10.4.0.0/16 Blackhole",
        "the simulator models IPv4 only; run the lab on network namespaces",
        "the simulator models the main table (254) only, not table 7; run the lab on network namespaces",
    ];
    assert_eq!(*log.borrow(), expected);

    // Who watches IP is told; and with the interface goes what leads there.
    let watched = Log::default();
    let told = Rc::clone(&watched);
    let watcher = script("watcher", move |turn, event| match event {
        Event::Start => turn.act(Action::WatchIp),
        Event::Ip { changes } => {
            let routes = changes.iter().filter_map(|change| match change {
                crate::IpChange::Route { destination, way } => {
                    Some(format!("{destination} {way:?}"))
                }
                _ => None,
            });
            told.borrow_mut().extend(routes);
        }
        _ => {}
    });
    world.spawn(a, watcher);
    world.run_while(|_| true).unwrap();
    assert!(watched.borrow().iter().any(|line| line == "10.4.0.0/16 Some(Nowhere)"), "{watched:?}");
    world.set_up(eth0, false);
    let log = Log::default();
    let again = vec![
        RouteRequest::Dump { space: SPACE },
        RouteRequest::Change { space: SPACE, changes: vec![add("10.8.0.0/16", via("", 1))] },
    ];
    world.spawn(a, asking(again, &log));
    world.run_while(|_| true).unwrap();
    assert_eq!(*log.borrow(), ["10.4.0.0/16 Blackhole", "0: the interface eth0 is down"]);
    assert!(watched.borrow().iter().any(|line| line == "10.1.0.0/16 None"), "{watched:?}");
}
