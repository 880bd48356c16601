//! Where IP leads, as processes watch it.

use crate::{IpChange, IpWay};

use super::*;

fn show(change: &IpChange) -> String {
    match change {
        IpChange::Again => "again".to_owned(),
        IpChange::Complete => "complete".to_owned(),
        IpChange::NoTable { is_ipv6, .. } => format!("no table, IPv6 {is_ipv6}"),
        IpChange::Rules { is_ipv6, count } => format!("{count} rules, IPv6 {is_ipv6}"),
        IpChange::Interface { name, .. } => format!("interface {name:?}"),
        IpChange::Route { destination, way } => {
            let way = match way {
                None => "none".to_owned(),
                Some(IpWay::Local) => "local".to_owned(),
                Some(IpWay::Nowhere) => "nowhere".to_owned(),
                Some(IpWay::Out { gateway: None, .. }) => "link".to_owned(),
                Some(IpWay::Out { gateway: Some(gateway), .. }) => gateway.to_string(),
            };
            format!("{destination} {way}")
        }
        IpChange::Neighbour { ip, mac, .. } => format!("neighbour {ip} {}", mac.is_some()),
    }
}

#[test]
fn the_modelled_table_is_told_first_and_then_each_change() {
    let mut world = world(1);
    let [(a, eth0), (_, other)] = pair(&mut world, &LinkConfig::default());
    world.add_address(eth0, [10, 0, 0, 1].into(), 24).unwrap();
    world.add_address(other, [10, 0, 0, 2].into(), 24).unwrap();
    world.add_route(a, [10, 9, 0, 0].into(), 16, [10, 0, 0, 2].into()).unwrap();
    let log = Log::default();
    let told = Rc::clone(&log);
    let watcher = script("watcher", move |turn, event| match event {
        Event::Start => turn.act(Action::WatchIp),
        Event::Ip { changes } => told.borrow_mut().extend(changes.iter().map(show)),
        _ => {}
    });
    world.spawn(a, watcher);
    world.run_while(|_| true).unwrap();
    let first = [
        "again",
        "no table, IPv6 true",
        "interface Some(\"eth0\")",
        "10.0.0.0/24 link",
        "10.0.0.1/32 local",
        "10.9.0.0/16 10.0.0.2",
        "neighbour 10.0.0.2 true",
        "complete",
    ];
    assert_eq!(*log.borrow(), first);
    log.borrow_mut().clear();

    world.add_address(other, [10, 0, 0, 3].into(), 24).unwrap();
    world.add_route(a, [10, 8, 0, 0].into(), 16, [10, 0, 0, 3].into()).unwrap();
    world.run_while(|_| true).unwrap();
    assert_eq!(*log.borrow(), ["neighbour 10.0.0.3 true", "10.8.0.0/16 10.0.0.3"]);
    log.borrow_mut().clear();

    world.set_up(eth0, false);
    world.run_while(|_| true).unwrap();
    let gone = [
        "interface None",
        "10.0.0.0/24 none",
        "10.8.0.0/16 none",
        "10.9.0.0/16 none",
        "neighbour 10.0.0.2 false",
        "neighbour 10.0.0.3 false",
    ];
    assert_eq!(*log.borrow(), gone);
}
