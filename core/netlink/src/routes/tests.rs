//! Routes against the kernel, in network namespaces, with ip(8) as witness; and what is said of them.

use std::process::Command;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use weft_port::testing::{Namespace, privileged};

use super::*;

/// A protocol of these tests.
const OWN: u8 = 119;
/// The index of the interface `one`.
const ONE: u32 = 77;

fn way(gateway: &str, interface: u32, weight: u16) -> RouteWay {
    let gateway = (!gateway.is_empty()).then(|| gateway.parse().unwrap());
    RouteWay { gateway, interface, weight }
}

fn via(gateway: &str) -> Arc<RouteTarget> {
    Arc::new(RouteTarget::ways(vec![way(gateway, ONE, 1)]))
}

fn prefix(text: &str) -> InterfaceAddress {
    let (ip, length) = text.split_once('/').unwrap();
    InterfaceAddress { ip: ip.parse().unwrap(), prefix_length: length.parse().unwrap() }
}

fn change(to: &str, operation: RouteOperation) -> RouteChange {
    RouteChange { destination: prefix(to), metric: 40, operation }
}

fn add(to: &str, target: &Arc<RouteTarget>) -> RouteChange {
    change(to, RouteOperation::Add(Arc::clone(target)))
}

fn replace(to: &str, target: &Arc<RouteTarget>) -> RouteChange {
    change(to, RouteOperation::Replace(Arc::clone(target)))
}

fn delete(to: &str) -> RouteChange {
    change(to, RouteOperation::Delete)
}

fn space(is_ipv6: bool, table: u32) -> RouteSpace {
    RouteSpace { is_ipv6, table, protocol: OWN }
}

/// A namespace with the interface `one`, which is up and has addresses.
fn namespace() -> Namespace {
    let namespace = Namespace::new();
    namespace.ip("link add name one index 77 type veth peer name two");
    namespace.ip("link set lo up");
    namespace.ip("link set one up");
    namespace.ip("link set two up");
    namespace.ip("address add 192.0.2.1/24 dev one");
    namespace.ip("address add 2001:db8::1/64 dev one nodad");
    namespace
}

fn shown(namespace: &Namespace, words: &str) -> Vec<String> {
    let output = namespace.run(|| Command::new("ip").args(words.split(' ')).output().unwrap());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Everything that the kernel has of a space.
fn read(namespace: &Namespace, space: RouteSpace) -> Vec<KernelRoute> {
    namespace.run(|| {
        let (mut dump, mut routes) = (RouteDump::open(space).unwrap(), Vec::new());
        loop {
            let mut fds = [PollFd::from_borrowed_fd(dump.fd(), PollFlags::IN)];
            poll(&mut fds, None).unwrap();
            match dump.read(&mut routes).unwrap() {
                RoutesTold::More => {}
                RoutesTold::Again => routes.clear(),
                RoutesTold::All => return routes,
            }
        }
    })
}

/// Everything in the order of prefixes: which, and its target.
fn told(namespace: &Namespace, space: RouteSpace) -> Vec<(String, RouteTarget)> {
    let mut routes: Vec<_> = read(namespace, space)
        .into_iter()
        .map(|route| {
            assert_eq!(route.metric, 40);
            (route.destination.to_string(), RouteTarget::clone(&route.target.unwrap()))
        })
        .collect();
    routes.sort();
    routes
}

#[test]
fn ways_are_compared_as_the_kernel_makes_them() {
    let told = RouteTarget::ways(vec![
        way("10.0.0.2", 0, 3),
        way("10.0.0.1", 0, 1),
        way("10.0.0.2", 0, 3),
    ]);
    assert_eq!(told, RouteTarget::Ways(vec![way("10.0.0.1", 0, 1), way("10.0.0.2", 0, 3)]));
    let there = |weight| RouteTarget::ways(vec![way("10.0.0.1", 7, 1), way("10.0.0.2", 8, weight)]);
    assert!(told.became(&there(3)));
    assert!(!there(3).became(&told), "the kernel has another interface");
    assert!(!told.became(&there(4)));
    let one = |interface, weight| RouteTarget::ways(vec![way("10.0.0.1", interface, weight)]);
    assert!(!told.became(&one(7, 1)));
    assert!(one(0, 9).became(&one(7, 1)));
    assert!(!told.became(&RouteTarget::Blackhole));
    assert!(RouteTarget::Prohibit.became(&RouteTarget::Prohibit));
    assert!(!RouteTarget::Prohibit.became(&RouteTarget::Unreachable));
}

#[test]
fn routes_of_every_kind_are_set_replaced_and_deleted() {
    if !privileged() {
        return;
    }
    let namespace = namespace();
    let mut writer = namespace.run(|| RouteWriter::open().unwrap());
    let space = space(false, 1000);
    let several = Arc::new(RouteTarget::ways(vec![
        way("192.0.2.3", ONE, 5),
        way("192.0.2.2", ONE, 1),
        way("2001:db8::9", ONE, 1),
    ]));
    let found = Arc::new(RouteTarget::ways(vec![way("192.0.2.7", 0, 1)]));
    let link = Arc::new(RouteTarget::ways(vec![way("", ONE, 1)]));
    let changes = [
        add("10.0.0.0/8", &via("192.0.2.2")),
        add("10.1.0.0/16", &via("203.0.113.1")),
        add("10.2.0.0/16", &several),
        add("10.3.0.0/16", &found),
        add("10.4.0.0/16", &link),
        add("10.5.0.0/16", &Arc::new(RouteTarget::Blackhole)),
        add("10.6.0.0/16", &Arc::new(RouteTarget::Unreachable)),
        add("10.7.0.0/16", &Arc::new(RouteTarget::Prohibit)),
        add("10.8.0.0/16", &via("2001:db8::9")),
        add("0.0.0.0/0", &via("192.0.2.2")),
    ];
    assert!(writer.change(&space, &changes).unwrap().is_empty());
    let shown_routes = shown(&namespace, "route show table 1000 proto 119");
    let expected = [
        "default via 192.0.2.2 dev one metric 40 onlink",
        "10.0.0.0/8 via 192.0.2.2 dev one metric 40 onlink",
        "10.1.0.0/16 via 203.0.113.1 dev one metric 40 onlink",
        "10.2.0.0/16 metric 40",
        "nexthop via 192.0.2.2 dev one weight 1 onlink",
        "nexthop via 192.0.2.3 dev one weight 5 onlink",
        "nexthop via inet6 2001:db8::9 dev one weight 1 onlink",
        "10.3.0.0/16 via 192.0.2.7 dev one metric 40",
        "10.4.0.0/16 dev one scope link metric 40",
        "blackhole 10.5.0.0/16 metric 40",
        "unreachable 10.6.0.0/16 metric 40",
        "prohibit 10.7.0.0/16 metric 40",
        "10.8.0.0/16 via inet6 2001:db8::9 dev one metric 40 onlink",
    ];
    assert_eq!(shown_routes, expected);
    // What was told is what the kernel says it has.
    let all = told(&namespace, space);
    assert_eq!(all.len(), changes.len());
    for change in &changes {
        let RouteOperation::Add(target) = &change.operation else { unreachable!() };
        let there = all.iter().find(|(to, _)| *to == change.destination.to_string());
        let (_, there) = there.unwrap();
        assert!(target.became(there), "{change:?}: {there:?}");
    }

    let changes = [
        replace("10.0.0.0/8", &Arc::new(RouteTarget::Blackhole)),
        replace("10.5.0.0/16", &several),
        replace("10.2.0.0/16", &via("192.0.2.9")),
        replace("10.99.0.0/16", &via("192.0.2.9")),
        delete("10.1.0.0/16"),
        delete("10.200.0.0/16"),
        delete("10.6.0.0/16"),
    ];
    assert!(writer.change(&space, &changes).unwrap().is_empty());
    let all = told(&namespace, space);
    assert_eq!(all.len(), 9);
    let of = |to: &str| all.iter().find(|(there, _)| there == to).map(|(_, target)| target);
    assert_eq!(of("10.0.0.0/8"), Some(&RouteTarget::Blackhole));
    assert!(several.became(of("10.5.0.0/16").unwrap()));
    assert_eq!(of("10.2.0.0/16"), of("10.99.0.0/16"));
    assert_eq!((of("10.1.0.0/16"), of("10.6.0.0/16")), (None, None));
}

#[test]
fn ipv6_is_the_same() {
    if !privileged() {
        return;
    }
    let namespace = namespace();
    let mut writer = namespace.run(|| RouteWriter::open().unwrap());
    for table in [MAIN_TABLE, 70_000] {
        let space = space(true, table);
        let several =
            Arc::new(RouteTarget::ways(vec![way("fe80::3", ONE, 5), way("fe80::2", ONE, 1)]));
        let changes = [
            add("2001:db8:1::/48", &via("fe80::1")),
            add("2001:db8:2::/48", &several),
            add("2001:db8:3::/48", &Arc::new(RouteTarget::Blackhole)),
            add("2001:db8:4::/48", &Arc::new(RouteTarget::ways(vec![way("", ONE, 1)]))),
            add("2001:db8:5::/48", &Arc::new(RouteTarget::ways(vec![way("2001:db8::7", 0, 1)]))),
            add("::/0", &via("fe80::1")),
        ];
        assert!(writer.change(&space, &changes).unwrap().is_empty());
        let all = told(&namespace, space);
        assert_eq!(all.len(), changes.len(), "{all:?}");
        for change in &changes {
            let RouteOperation::Add(target) = &change.operation else { unreachable!() };
            let there = all.iter().find(|(to, _)| *to == change.destination.to_string());
            let (_, there) = there.unwrap();
            assert!(target.became(there), "{change:?}: {there:?}");
        }
        let shown = shown(&namespace, &format!("-6 route show table {table} proto 119"));
        assert!(
            shown.contains(&"blackhole 2001:db8:3::/48 dev lo metric 40 pref medium".to_owned()),
            "{shown:?}"
        );

        let changes = [
            replace("2001:db8:1::/48", &several),
            replace("2001:db8:2::/48", &Arc::new(RouteTarget::Unreachable)),
            replace("2001:db8:3::/48", &via("fe80::9")),
            delete("2001:db8:4::/48"),
            delete("2001:db8:44::/48"),
        ];
        assert!(writer.change(&space, &changes).unwrap().is_empty());
        let all = told(&namespace, space);
        assert_eq!(all.len(), 5, "{all:?}");
        assert!(several.became(&all.iter().find(|(to, _)| to == "2001:db8:1::/48").unwrap().1));
        // A route with several ways goes as a whole.
        let all: Vec<_> = all.iter().map(|(to, _)| delete(to)).collect();
        assert!(writer.change(&space, &all).unwrap().is_empty());
        assert!(told(&namespace, space).is_empty());
    }
}

#[test]
fn refusals_are_of_their_changes_and_the_others_are_made() {
    if !privileged() {
        return;
    }
    let namespace = namespace();
    namespace.ip("route add 10.0.7.0/24 via 192.0.2.66 metric 40 proto static");
    let mut writer = namespace.run(|| RouteWriter::open().unwrap());
    let space = space(false, MAIN_TABLE);
    let nobody = Arc::new(RouteTarget::ways(vec![way("198.51.100.1", 0, 1)]));
    let lost = Arc::new(RouteTarget::ways(vec![way("192.0.2.2", 12_345, 1)]));
    let mut changes: Vec<_> = (0..5000)
        .map(|number| add(&format!("10.{}.{}.0/24", number / 250, number % 250), &via("192.0.2.2")))
        .collect();
    let gateway = "Nexthop has invalid gateway";
    // The numbers of errors, and what the kernel says besides.
    let wrong = [
        (1, libc::EINVAL, "prefix", add("10.0.1.7/24", &via("192.0.2.2"))),
        (7, libc::EEXIST, "", add("10.0.7.0/24", &via("192.0.2.2"))),
        (100, libc::ENETUNREACH, gateway, add("10.0.100.0/24", &nobody)),
        (4000, libc::ENODEV, "", add("10.16.0.0/24", &lost)),
        (4999, libc::ENETUNREACH, gateway, add("10.19.249.0/24", &nobody)),
    ];
    for (place, _, _, change) in &wrong {
        changes[*place] = change.clone();
    }
    let refused = writer.change(&space, &changes).unwrap();
    assert_eq!(refused.len(), wrong.len(), "{refused:?}");
    for ((place, refusal), (wanted, code, words, _)) in refused.iter().zip(&wrong) {
        assert_eq!((place, refusal.code()), (wanted, Some(*code)), "{refusal}");
        assert!(refusal.to_string().contains(words), "{refusal}");
    }
    assert_eq!(read(&namespace, space).len(), 5000 - wrong.len());
    assert_eq!(
        shown(&namespace, "route show 10.0.7.0/24"),
        ["10.0.7.0/24 via 192.0.2.66 dev one proto static metric 40"]
    );
    // Deleted is only what is of the own protocol.
    assert!(writer.change(&space, &[delete("10.0.7.0/24")]).unwrap().is_empty());
    assert_eq!(shown(&namespace, "route show 10.0.7.0/24").len(), 1);
    // All of them, so that as many answers wait as can.
    let all: Vec<_> = changes.iter().map(|_| add("10.0.0.0/24", &via("192.0.2.2"))).collect();
    let refused = writer.change(&space, &all).unwrap();
    assert_eq!(refused.len(), all.len());
    assert!(refused.iter().all(|(_, refusal)| refusal.code() == Some(libc::EEXIST)));
    assert!(refused.iter().enumerate().all(|(index, (place, _))| index == *place));
}

#[test]
fn a_dump_tells_of_its_space_alone() {
    if !privileged() {
        return;
    }
    let namespace = namespace();
    let mut writer = namespace.run(|| RouteWriter::open().unwrap());
    let other = RouteSpace { protocol: 120, ..space(false, 1000) };
    for (space, metric) in [(space(false, 1000), 40), (space(false, 1001), 41), (other, 42)] {
        let mut change = add("10.0.0.0/8", &via("192.0.2.2"));
        change.metric = metric;
        assert!(writer.change(&space, &[change]).unwrap().is_empty());
    }
    for (space, metric) in [(space(false, 1000), 40), (space(false, 1001), 41), (other, 42)] {
        let there = read(&namespace, space);
        assert_eq!(there.len(), 1);
        assert_eq!((there[0].destination, there[0].metric), (prefix("10.0.0.0/8"), metric));
    }
    assert!(read(&namespace, space(false, 1002)).is_empty());
    assert!(read(&namespace, space(true, 1002)).is_empty());
    assert!(read(&namespace, space(false, MAIN_TABLE)).is_empty());
    // What cannot be said here is told, so that it can be deleted.
    namespace.ip("route add throw 10.9.0.0/16 proto 120 metric 40 table 1000");
    let there = read(&namespace, other);
    assert!(there.iter().any(|route| route.target.is_none() && route.metric == 40), "{there:?}");
}

#[test]
fn a_big_table_is_told_in_order_and_in_pieces() {
    if !privileged() {
        return;
    }
    let namespace = namespace();
    let mut writer = namespace.run(|| RouteWriter::open().unwrap());
    for is_ipv6 in [false, true] {
        let text = |number: u32| match is_ipv6 {
            true => format!("2001:db8:{number:x}::/{}", 48 + number % 3),
            false => format!("10.{}.{}.0/{}", number / 256, number % 256, 24 + number % 3),
        };
        let gateway = via(if is_ipv6 { "fe80::2" } else { "192.0.2.2" });
        let changes: Vec<_> = (0..5000).map(|number| add(&text(number), &gateway)).collect();
        assert!(writer.change(&space(is_ipv6, 1000), &changes).unwrap().is_empty());
        let there = read(&namespace, space(is_ipv6, 1000));
        assert_eq!(there.len(), 5000);
        assert!(there.is_sorted_by_key(|route| route.destination.ip));
        // They share what they lead to.
        assert!(there.iter().all(|route| Arc::ptr_eq(
            route.target.as_ref().unwrap(),
            there[0].target.as_ref().unwrap()
        )));
    }
}

/// So many routes, each by the same way.
fn many(third: u8, count: u8, operation: impl Fn() -> RouteOperation) -> Vec<RouteChange> {
    (0..count).map(|last| change(&format!("10.{third}.{last}.0/24"), operation())).collect()
}

fn by_objects(namespace: &Namespace, words: &str) -> usize {
    shown(namespace, words).iter().filter(|line| line.contains(" nhid ")).count()
}

#[test]
fn many_routes_of_one_way_share_an_object_of_the_kernel() {
    if !privileged() {
        return;
    }
    let namespace = namespace();
    let mut writer = namespace.run(|| RouteWriter::open().unwrap());
    for is_ipv6 in [false, true] {
        let space = space(is_ipv6, 1000);
        let (gateway, rest) = if is_ipv6 { ("2001:db8::2", "64") } else { ("192.0.2.2", "24") };
        let target = via(gateway);
        let changes = |from: usize, count: usize, operation: RouteOperation| -> Vec<_> {
            let net = |number| match is_ipv6 {
                true => format!("2001:db8:{number:x}::/{rest}"),
                false => format!("10.0.{number}.0/{rest}"),
            };
            (from..from + count).map(|number| change(&net(number), operation.clone())).collect()
        };
        let list = if is_ipv6 { "-6 route show table 1000" } else { "route show table 1000" };
        let mut told =
            |changes: Vec<_>| assert!(writer.change(&space, &changes).unwrap().is_empty());
        told(changes(1, 31, RouteOperation::Add(Arc::clone(&target))));
        assert_eq!(by_objects(&namespace, list), 0, "a few look as people know them");
        told(changes(40, 32, RouteOperation::Add(Arc::clone(&target))));
        assert_eq!(by_objects(&namespace, list), 32);
        // A single one, too, from now on; and it takes the place of one that is told in full.
        told(changes(1, 1, RouteOperation::Replace(Arc::new(RouteTarget::clone(&target)))));
        assert_eq!(by_objects(&namespace, list), 33);
        // What is read does not tell the difference.
        let routes = read(&namespace, space);
        assert_eq!(routes.len(), 63);
        assert!(routes.iter().all(|route| target.became(route.target.as_ref().unwrap())));
        // Others are as they were.
        told(changes(2, 1, RouteOperation::Replace(Arc::new(RouteTarget::Blackhole))));
        told(changes(40, 31, RouteOperation::Delete));
        assert_eq!(by_objects(&namespace, list), 2);
    }
    assert_eq!(shown(&namespace, "nexthop").len(), 2);
    // Who comes later finds them.
    let mut later = namespace.run(|| RouteWriter::open().unwrap());
    let added = many(200, 40, || RouteOperation::Add(via("192.0.2.2")));
    assert!(later.change(&space(false, 1000), &added).unwrap().is_empty());
    assert_eq!(shown(&namespace, "nexthop").len(), 2);
    assert_eq!(by_objects(&namespace, "route show table 1000"), 42);
}

#[test]
fn an_object_that_the_kernel_has_thrown_away_is_made_again() {
    if !privileged() {
        return;
    }
    let namespace = namespace();
    let mut writer = namespace.run(|| RouteWriter::open().unwrap());
    let space = space(false, 1000);
    let add = |third| many(third, 40, || RouteOperation::Add(via("192.0.2.2")));
    assert!(writer.change(&space, &add(1)).unwrap().is_empty());
    // Somebody else has the number that would be next.
    let [object] = &shown(&namespace, "nexthop")[..] else { panic!() };
    let number: u32 = object.split(' ').nth(1).unwrap().parse().unwrap();
    namespace.ip(&format!("nexthop add id {} via 192.0.2.9 dev one", number + 1));
    namespace.ip("link set one down");
    let refused = writer.change(&space, &add(2)).unwrap();
    assert_eq!(refused.len(), 40, "no way leads over an interface that is down");
    namespace.ip("link set one up");
    namespace.ip(&format!("nexthop add id {} via 192.0.2.9 dev one", number + 1));
    assert!(writer.change(&space, &add(3)).unwrap().is_empty());
    assert_eq!(by_objects(&namespace, "route show table 1000"), 40);
    assert!(
        shown(&namespace, "route show table 1000").iter().all(|line| line.contains("192.0.2.2"))
    );
    namespace.ip("nexthop flush proto 119");
    assert_eq!(shown(&namespace, "route show table 1000").len(), 0);
    // The routes of this call are told in full, as one of a lost object is; then there is a new one.
    assert!(writer.change(&space, &add(4)).unwrap().is_empty());
    assert!(writer.change(&space, &add(5)).unwrap().is_empty());
    assert_eq!(shown(&namespace, "route show table 1000").len(), 80);
    assert_eq!(by_objects(&namespace, "route show table 1000"), 40);
}

/// Waits until something was deleted by others, and reads it.
fn deleted(watch: &mut DeletedRoutes) -> Deletions {
    let minute = rustix::time::Timespec { tv_sec: 60, tv_nsec: 0 };
    let mut fds = [PollFd::from_borrowed_fd(watch.fd(), PollFlags::IN)];
    assert_eq!(poll(&mut fds, Some(&minute)), Ok(1), "nothing is told for a minute");
    watch.read().unwrap()
}

fn watch(namespace: &Namespace, own: &RouteWriter) -> DeletedRoutes {
    let watch = namespace.run(|| DeletedRoutes::open(OWN).unwrap());
    weft_port::filter::attach(watch.fd(), &mut watch.filter(own.number())).unwrap();
    watch
}

#[test]
fn what_others_delete_of_a_protocol_is_told_and_nothing_else() {
    if !privileged() {
        return;
    }
    let namespace = namespace();
    let mut writer = namespace.run(|| RouteWriter::open().unwrap());
    let mut watch = watch(&namespace, &writer);
    let blackhole = Arc::new(RouteTarget::Blackhole);
    let (four, six) = (space(false, MAIN_TABLE), space(true, 70_000));
    let nets = ["10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16"].map(|net| add(net, &blackhole));
    assert!(writer.change(&four, &nets).unwrap().is_empty());
    assert!(writer.change(&six, &[add("2001:db8:1::/48", &via("fe80::1"))]).unwrap().is_empty());
    // Not told: what we change, what others add, and what they delete of others.
    writer
        .change(&four, &[delete("10.3.0.0/16"), replace("10.1.0.0/16", &via("192.0.2.2"))])
        .unwrap();
    namespace.ip("route add blackhole 10.9.0.0/16 proto static");
    namespace.ip("route del blackhole 10.9.0.0/16 proto static");
    namespace.ip("route del 10.1.0.0/16");
    assert_eq!(deleted(&mut watch), Deletions { routes: [(four, 1)].into(), omitted: false });
    namespace.ip("route flush proto 119");
    namespace.ip("-6 route flush table 70000 proto 119");
    let mut all = std::collections::BTreeMap::new();
    while all.len() < 2 {
        deleted(&mut watch).routes.into_iter().for_each(|(space, count)| {
            *all.entry(space).or_insert(0) += count;
        });
    }
    assert_eq!(all, [(four, 1), (six, 1)].into());
    assert!(watch.read().unwrap().is_empty());
}

#[test]
fn more_deletions_than_there_is_room_for_are_told_as_such() {
    if !privileged() {
        return;
    }
    let namespace = namespace();
    let mut writer = namespace.run(|| RouteWriter::open().unwrap());
    let mut watch = watch(&namespace, &writer);
    rustix::net::sockopt::set_socket_recv_buffer_size(watch.fd(), 4096).unwrap();
    let blackhole = Arc::new(RouteTarget::Blackhole);
    let nets: Vec<_> = (0..200).map(|n| add(&format!("10.1.{n}.0/24"), &blackhole)).collect();
    assert!(writer.change(&space(false, MAIN_TABLE), &nets).unwrap().is_empty());
    namespace.ip("route flush proto 119");
    assert!(std::iter::repeat_with(|| deleted(&mut watch)).any(|told| told.omitted));
}
