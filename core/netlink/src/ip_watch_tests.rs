//! Watching IP, with messages that are made up.

use netlink_packet_core::NetlinkPayload;
use netlink_packet_core::{NLM_F_APPEND, NLM_F_REPLACE, NetlinkHeader, NetlinkMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteType};
use proptest::prelude::*;

use super::*;

fn emit(message: RouteNetlinkMessage, sequence: u32, flags: u16) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    (header.sequence_number, header.flags) = (sequence, flags);
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

/// `NLMSG_DONE` for a request.
fn done(sequence: u32) -> Vec<u8> {
    let mut bytes = vec![0; 20];
    bytes[..4].copy_from_slice(&20_u32.to_ne_bytes());
    bytes[4..6].copy_from_slice(&3_u16.to_ne_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
    bytes
}

fn link(index: u32, up: bool, sequence: u32) -> Vec<u8> {
    let mut link = LinkMessage::default();
    link.header.index = index;
    link.header.flags = if up { LinkFlags::Up } else { LinkFlags::empty() };
    link.attributes = vec![LinkAttribute::IfName(format!("eth{index}"))];
    emit(RouteNetlinkMessage::NewLink(link), sequence, 0)
}

/// A route to 10.`net`.0.0/16 over 10.0.0.`gateway`, on the interface 1.
fn route(net: u8, gateway: u8, metric: u32) -> netlink_packet_route::route::RouteMessage {
    let mut message = netlink_packet_route::route::RouteMessage::default();
    message.header.address_family = AddressFamily::Inet;
    message.header.destination_prefix_length = 16;
    message.header.table = libc::RT_TABLE_MAIN;
    message.header.kind = RouteType::Unicast;
    message.attributes = vec![
        RouteAttribute::Destination(RouteAddress::Inet([10, net, 0, 0].into())),
        RouteAttribute::Gateway(RouteAddress::Inet([10, 0, 0, gateway].into())),
        RouteAttribute::Oif(1),
        RouteAttribute::Priority(metric),
    ];
    message
}

fn new(net: u8, gateway: u8, metric: u32, flags: u16) -> Vec<u8> {
    emit(RouteNetlinkMessage::NewRoute(route(net, gateway, metric)), 0, flags)
}

fn delete(net: u8, gateway: u8, metric: u32) -> Vec<u8> {
    emit(RouteNetlinkMessage::DelRoute(route(net, gateway, metric)), 0, 0)
}

/// Gives the watch a datagram; says which ways it told of and whether it asked something.
fn give(watch: &mut IpWatch, datagram: &[u8]) -> (Vec<String>, bool) {
    let mut changes = Vec::new();
    let asked = watch.handle(datagram, &mut changes).is_some();
    (changes.iter().map(show).collect(), asked)
}

fn show(change: &IpChange) -> String {
    match change {
        IpChange::Route { destination, way: Some(IpWay::Out { gateway: Some(gateway), .. }) } => {
            format!("{destination} {gateway}")
        }
        IpChange::Interface { index, name } => {
            format!("{index} {}", name.as_deref().unwrap_or("-"))
        }
        IpChange::Route { destination, way: None } => format!("{destination} -"),
        other => format!("{other:?}"),
    }
}

/// A watch that knows an interface and no route.
fn synchronised() -> IpWatch {
    let mut watch = IpWatch::default();
    assert!(watch.resynchronise().is_some());
    assert_eq!(give(&mut watch, &link(1, true, 1)), (vec![], false));
    assert_eq!(give(&mut watch, &done(1)), (vec![], true));
    assert_eq!(give(&mut watch, &done(2)), (vec![], true));
    assert_eq!(give(&mut watch, &done(3)), (vec![], true));
    let told = ["Again".to_owned(), "1 eth1".to_owned(), "Complete".to_owned()];
    assert_eq!(give(&mut watch, &done(4)), (told.to_vec(), false));
    watch
}

#[test]
fn the_best_route_to_a_prefix_is_told() {
    let mut watch = synchronised();
    assert_eq!(give(&mut watch, &new(1, 1, 10, 0)).0, ["10.1.0.0/16 10.0.0.1"]);
    assert_eq!(give(&mut watch, &new(1, 2, 20, 0)).0, [""; 0], "a worse one");
    assert_eq!(give(&mut watch, &new(1, 3, 5, 0)).0, ["10.1.0.0/16 10.0.0.3"]);
    assert_eq!(give(&mut watch, &new(1, 4, 5, NLM_F_APPEND)).0, [""; 0], "behind the other");
    assert_eq!(give(&mut watch, &delete(1, 3, 5)).0, ["10.1.0.0/16 10.0.0.4"]);
    assert_eq!(give(&mut watch, &new(1, 5, 5, NLM_F_REPLACE)).0, ["10.1.0.0/16 10.0.0.5"]);
    assert_eq!(give(&mut watch, &delete(1, 5, 5)).0, ["10.1.0.0/16 10.0.0.1"]);
    assert_eq!(give(&mut watch, &delete(1, 1, 10)).0, ["10.1.0.0/16 10.0.0.2"]);
    assert_eq!(give(&mut watch, &delete(1, 2, 20)), (vec!["10.1.0.0/16 -".to_owned()], false));
    assert!(give(&mut watch, &delete(1, 2, 20)).1, "what does not fit is asked for");
}

#[test]
fn what_an_interface_takes_along_is_asked_for() {
    let mut watch = synchronised();
    give(&mut watch, &new(1, 1, 10, 0));
    assert_eq!(give(&mut watch, &link(1, false, 0)), (vec![], true));
    assert_eq!(give(&mut watch, &link(1, false, 5)), (vec![], false));
    // Who asks meanwhile is told what was told before.
    let mut again = Vec::new();
    watch.tell_again(&mut again);
    assert_eq!(
        again.iter().map(show).collect::<Vec<_>>(),
        ["Again", "1 eth1", "10.1.0.0/16 10.0.0.1", "Complete"]
    );
    assert_eq!(give(&mut watch, &done(5)), (vec![], true));
    assert_eq!(give(&mut watch, &done(6)), (vec![], true));
    // The kernel was slow, and still has the route.
    let late = emit(RouteNetlinkMessage::NewRoute(route(1, 1, 10)), 7, 0);
    assert_eq!(give(&mut watch, &late), (vec![], false));
    assert_eq!(give(&mut watch, &done(7)), (vec![], true));
    let told = ["1 -".to_owned(), "10.1.0.0/16 -".to_owned()];
    assert_eq!(give(&mut watch, &done(8)), (told.to_vec(), false));
}

#[test]
fn routes_that_are_not_for_all_packets_are_left_out() {
    let mut watch = synchronised();
    let with = |change: &dyn Fn(&mut netlink_packet_route::route::RouteMessage)| {
        let mut message = route(1, 1, 0);
        change(&mut message);
        emit(RouteNetlinkMessage::NewRoute(message), 0, 0)
    };
    let others = [
        with(&|route| route.header.tos = 4),
        with(&|route| route.header.source_prefix_length = 8),
        with(&|route| route.header.table = 7),
        with(&|route| route.attributes.push(RouteAttribute::Table(700))),
        with(&|route| route.header.kind = RouteType::Throw),
        with(&|route| route.header.address_family = AddressFamily::Mpls),
    ];
    for message in others {
        assert_eq!(give(&mut watch, &message), (vec![], false));
    }
    let nowhere = with(&|route| route.header.kind = RouteType::BlackHole);
    assert!(give(&mut watch, &nowhere).0[0].contains("Nowhere"));
}

proptest! {
    /// Against a list of routes that is searched from its beginning.
    #[test]
    fn agrees_with_a_list(events in prop::collection::vec((0_u8..3, 1_u8..5, 0_u32..3, 0_u8..4), 1..60)) {
        let mut watch = synchronised();
        let mut list: Vec<(u8, u32, u8)> = Vec::new();
        let mut told = BTreeMap::new();
        for (net, gateway, metric, event) in events {
            let key = (net, metric, gateway);
            let first = list.iter().position(|one| (one.0, one.1) == (net, metric));
            let place = list.iter().position(|one| *one == key);
            let message = match (event, place, first) {
                (0, Some(place), _) => {
                    list.remove(place);
                    delete(net, gateway, metric)
                }
                (1, None, Some(first)) => {
                    list[first] = key;
                    new(net, gateway, metric, NLM_F_REPLACE)
                }
                (2, None, _) => {
                    list.push(key);
                    new(net, gateway, metric, NLM_F_APPEND)
                }
                (3, None, _) => {
                    list.insert(0, key);
                    new(net, gateway, metric, 0)
                }
                _ => continue,
            };
            let mut changes = Vec::new();
            prop_assert!(watch.handle(&message, &mut changes).is_none());
            for change in changes {
                let IpChange::Route { destination, way } = change else { panic!("{change:?}") };
                told.insert(destination.ip, way);
            }
            for net in 0..3 {
                // Of equal metrics the first in the list.
                let best = list.iter().filter(|one| one.0 == net).min_by_key(|one| one.1);
                let way = best.map(|one| IpWay::Out {
                    interface: 1,
                    gateway: Some([10, 0, 0, one.2].into()),
                });
                prop_assert_eq!(told.get(&IpAddr::from([10, net, 0, 0])).copied().flatten(), way);
            }
        }
    }

    #[test]
    fn any_bytes_are_harmless(datagrams in prop::collection::vec(
        prop::collection::vec(prop_oneof![0_u8..30, any::<u8>()], 0..80), 0..6
    )) {
        let mut watch = synchronised();
        for datagram in &datagrams {
            let _ = give(&mut watch, datagram);
        }
    }

    #[test]
    fn damaged_messages_are_harmless(place in 0_usize..300, octet in any::<u8>(), length in 0_usize..300) {
        let mut damaged = [new(1, 1, 5, 0), find(1, [10, 0, 0, 1].into()), delete(1, 1, 5)].concat();
        let place = place % damaged.len();
        damaged[place] = octet;
        damaged.truncate(length.max(place));
        let _ = give(&mut synchronised(), &damaged);
    }
}
