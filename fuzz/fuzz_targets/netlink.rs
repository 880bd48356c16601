//! What the kernel tells by netlink: of its interfaces, of where its IP leads, of NAPIs, and of routes that somebody owns.
//!
//! Input: a byte that says of what, and then datagrams, each with its length in two octets in front, little-endian.
//! The kernel answers requests that have the numbers 1, 2 and so on. Whatever it tells, what was told on from change to
//! change is what is told to somebody who comes later.
#![no_main]

use std::collections::BTreeMap;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use weft_netlink::testing::{InterfaceReader, IpReader, read_napis, read_routes};
use weft_netlink::{InterfaceChange, IpChange, RouteBatch, RouteChange, RouteOperation, RouteSpace, RouteTarget};

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    match first % 4 {
        0 => ip(rest),
        1 => interfaces(rest),
        3 => routes(*first, rest),
        _ => {
            for datagram in datagrams(rest) {
                let (ids, _) = read_napis(datagram);
                assert!(ids.iter().all(|id| *id > 0));
            }
        }
    }
});

/// What is read of a route can be set, and means the same.
fn routes(first: u8, bytes: &[u8]) {
    let space = RouteSpace { is_ipv6: first & 4 != 0, table: 254, protocol: 119 };
    for datagram in datagrams(bytes) {
        for route in read_routes(space, datagram) {
            let longest = if space.is_ipv6 { 128 } else { 32 };
            assert!(route.destination.ip.is_ipv6() == space.is_ipv6 && route.destination.prefix_length <= longest);
            let Some(target) = route.target else { continue };
            if matches!(&*target, RouteTarget::Ways(ways) if ways.len() > weft_netlink::MOST_WAYS) {
                continue;
            }
            let mut batch = RouteBatch::default();
            let operation = RouteOperation::Replace(Arc::clone(&target));
            let change = RouteChange { destination: route.destination, metric: route.metric, operation };
            assert_eq!(batch.emit(1, &space, &[change]), 1);
            let again = read_routes(space, batch.bytes());
            let [again] = again.as_slice() else { panic!("{again:?}") };
            assert_eq!((again.destination, again.metric), (route.destination, route.metric));
            assert!(target.became(again.target.as_ref().unwrap()));
        }
    }
}

/// Cuts the input into datagrams; the last one may be shorter than it says.
fn datagrams(mut rest: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes(*length)).min(behind.len());
        let (datagram, behind) = behind.split_at(length);
        all.push(datagram);
        rest = behind;
    }
    all
}

/// What somebody knows who was told of all changes, by what each is about.
#[derive(Debug, Default, PartialEq, Eq)]
struct Known(BTreeMap<String, IpChange>);

impl Known {
    fn take(&mut self, change: IpChange) {
        let (key, is_gone) = match &change {
            IpChange::Again => return self.0.clear(),
            IpChange::Complete => return,
            IpChange::NoTable { is_ipv6, .. } => (format!("no table {is_ipv6}"), false),
            IpChange::Rules { is_ipv6, count } => (format!("rules {is_ipv6}"), *count == 0),
            IpChange::Interface { index, name } => (format!("interface {index}"), name.is_none()),
            IpChange::Route { destination, way } => (format!("route {destination}"), way.is_none()),
            IpChange::Neighbour { interface, ip, mac, .. } => {
                (format!("neighbour {interface} {ip}"), mac.is_none())
            }
        };
        if is_gone {
            self.0.remove(&key);
        } else {
            self.0.insert(key, change);
        }
    }
}

fn ip(bytes: &[u8]) {
    let mut reader = IpReader::asking();
    let (mut known, mut changes) = (Known::default(), Vec::new());
    for datagram in datagrams(bytes) {
        let request = reader.handle(datagram, &mut changes);
        assert!(request.is_none_or(|request| request.len() >= 16));
        changes.drain(..).for_each(|change| known.take(change));
        reader.tell_again(&mut changes);
        let mut late = Known::default();
        changes.drain(..).for_each(|change| late.take(change));
        assert_eq!(known, late);
    }
}

fn interfaces(bytes: &[u8]) {
    let mut reader = InterfaceReader::asking();
    let (mut known, mut changes) = (BTreeMap::new(), Vec::new());
    let mut complete = 0;
    for datagram in datagrams(bytes) {
        let request = reader.handle(datagram, &mut changes);
        assert!(request.is_none_or(|request| request.len() >= 16));
        for change in changes.drain(..) {
            match change {
                InterfaceChange::Added(one) => assert!(known.insert(one.index, one).is_none()),
                InterfaceChange::Changed(one) => {
                    let before = known.insert(one.index, one.clone());
                    assert!(before.is_some_and(|before| before != one));
                }
                InterfaceChange::Removed { index, name } => {
                    assert!(known.remove(&index).is_some_and(|one| one.name == name));
                }
                InterfaceChange::Complete => complete += 1,
            }
        }
        assert!(complete <= 1);
    }
}
