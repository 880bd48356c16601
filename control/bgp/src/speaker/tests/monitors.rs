//! What those hear who monitor peers (RFC 7854): in the end what is there, whenever they begin and however much they take at once.

use super::*;
use crate::interface::{Monitor, MonitorReply};
use crate::wire::{HEADER_LEN, RefreshKind, RouteRefresh};

const READER: u32 = 3;
const MOST: u32 = 1 << 20;
const LONG: u32 = 60_000;

fn net(number: u8) -> Prefix {
    ipnet::Ipv4Net::new(Ipv4Addr::new(203, 0, number, 0), 24).unwrap().prefix()
}

/// A station: which peers have sessions, which paths they have announced, and of which all is known.
#[derive(Debug, Default, PartialEq, Eq)]
struct Station {
    peers: BTreeMap<Ipv4Addr, BTreeMap<Prefix, String>>,
    complete: Vec<Ipv4Addr>,
}

impl Station {
    /// Reads messages as RFC 7854 §4 has them.
    fn hear(&mut self, mut messages: &[u8]) {
        while !messages.is_empty() {
            let length = u32::from_be_bytes(messages[1..5].try_into().unwrap()) as usize;
            let (message, rest) = messages.split_at(length);
            messages = rest;
            assert_eq!(message[0], 3);
            let peer = Ipv4Addr::from(<[u8; 4]>::try_from(&message[28..32]).unwrap());
            match message[5] {
                3 => assert!(self.peers.insert(peer, BTreeMap::new()).is_none(), "it has one"),
                2 => assert!(self.peers.remove(&peer).is_some(), "it had none"),
                0 => self.route(peer, &message[48 + HEADER_LEN..]),
                other => panic!("a message of type {other}"),
            }
        }
    }

    fn route(&mut self, peer: Ipv4Addr, body: &[u8]) {
        let context = Context::new(Neighbour::External);
        let update = Update::new_checked(body, &context).unwrap();
        if update.end_of_rib().is_some() {
            return self.complete.push(peer);
        }
        let judgement = update.judge(&context);
        assert!(judgement.faults.is_empty(), "{judgement:?}");
        let paths = self.peers.get_mut(&peer).expect("it has a session");
        for (_, nlri) in update.withdrawn() {
            nlri.iter().for_each(|(_, prefix)| drop(paths.remove(&prefix)));
        }
        for reach in update.reach() {
            let path = judgement.attributes.as_path.to_string();
            paths.extend(reach.nlri.iter().map(|(_, prefix)| (prefix, path.clone())));
        }
    }

    fn paths(&self, peer: u8) -> Vec<(Prefix, &str)> {
        self.peers[&address(peer)].iter().map(|(net, path)| (*net, &**path)).collect()
    }
}

impl World {
    /// Reads on, or begins.
    fn reads(&mut self, begin: bool, at_most: u32) -> Option<MonitorReply> {
        let request = Monitor { reader: READER, begin, at_most, wait: LONG };
        let out = self.input(Input::Called(weft_xrl::Called::directly(request)));
        reply(out)
    }
}

/// The answer that a reader gets.
fn reply(out: Vec<Output>) -> Option<MonitorReply> {
    out.into_iter().find_map(|output| match output {
        Output::Answer { result: Ok(encoded), .. } => {
            weft_xrl::Reply::Arguments(encoded).read::<Monitor>().ok()
        }
        _ => None,
    })
}

#[test]
fn a_reader_hears_what_there_is_and_then_what_happens() {
    let mut world = World::new();
    (0..5).for_each(|number| drop(world.announces(1, &net(number))));
    let mut station = Station::default();
    let first = world.reads(true, MOST).unwrap();
    assert!(first.again && first.complete);
    station.hear(&first.messages.0);
    let all: Vec<_> = (0..5).map(|number| (net(number), "65001")).collect();
    assert_eq!((station.paths(1), station.paths(2).len()), (all, 0));
    // There is nothing to say until something happens.
    assert_eq!(world.reads(false, MOST), None);
    let told = reply(world.announces(2, &net(1))).unwrap();
    assert!(!told.again && !told.complete);
    station.hear(&told.messages.0);
    assert_eq!(station.paths(2), [(net(1), "65002")]);
    // What is taken back, in whatever way.
    world.reads(false, MOST);
    let mut gone = Vec::new();
    let context = Context::new(Neighbour::External);
    crate::wire::withdraw(Family::IPV4_UNICAST, &context, [(0, net(0))], &mut gone);
    station.hear(&reply(world.says(1, &gone)).unwrap().messages.0);
    assert_eq!(station.paths(1).len(), 4);
    world.reads(false, MOST);
    let out = world.happens(Event::Closed { channel: ChannelId(2) });
    station.hear(&reply(out).unwrap().messages.0);
    assert_eq!(station.peers.keys().copied().collect::<Vec<_>>(), [address(1)]);
    world.reads(false, MOST);
    station.hear(&reply(world.connect(2)).unwrap().messages.0);
    assert_eq!(station.paths(2), []);
}

/// RFC 7606 §2: what is taken for withdrawn is told as that, and not as it came.
#[test]
fn what_is_malformed_is_told_as_what_it_counts_for() {
    let mut world = World::new();
    world.announces(1, &net(1));
    let mut station = Station::default();
    station.hear(&world.reads(true, MOST).unwrap().messages.0);
    assert_eq!(station.paths(1).len(), 1);
    world.reads(false, MOST);
    // The origin of the route becomes one that there is not.
    let attributes = Attributes {
        as_path: AsPath::from_sequence(&[65001]),
        next_hop: Some(NextHop::V4(address(1))),
        ..Attributes::default()
    };
    let context = Context::new(Neighbour::External);
    let encoder = UpdateEncoder::new(&attributes, Family::IPV4_UNICAST, &context).unwrap();
    let mut bytes = Vec::new();
    encoder.all([(0, net(1))], &mut bytes);
    let origin = bytes.windows(3).position(|three| three == [0x40, 1, 1]).unwrap();
    bytes[origin + 3] = 9;
    station.hear(&reply(world.says(1, &bytes)).unwrap().messages.0);
    assert_eq!(station.paths(1), []);
}

/// RFC 7313 §4.
#[test]
fn what_is_not_announced_again_goes() {
    let mut world = World::new();
    [1, 2].into_iter().for_each(|number| drop(world.announces(1, &net(number))));
    let mut station = Station::default();
    station.hear(&world.reads(true, MOST).unwrap().messages.0);
    assert_eq!(station.paths(1).len(), 2);
    let mark = |kind| RouteRefresh { family: Family::IPV4_UNICAST, kind }.emit();
    world.says(1, &mark(RefreshKind::Begin));
    world.announces(1, &net(2));
    world.says(1, &mark(RefreshKind::End));
    while let Some(more) = world.reads(false, MOST) {
        station.hear(&more.messages.0);
    }
    assert_eq!(station.paths(1), [(net(2), "65001")]);
}

/// Whatever happens meanwhile.
#[test]
fn who_takes_little_at_once_hears_the_same_in_the_end() {
    let mut world = World::new();
    world.is_busy = false;
    (0..200).for_each(|number| drop(world.announces(1 + number % 2, &net(number))));
    let mut station = Station::default();
    let mut next = world.reads(true, 1);
    let (mut rounds, mut completes) = (0, 0);
    while let Some(reply) = next {
        station.hear(&reply.messages.0);
        completes += usize::from(reply.complete);
        rounds += 1;
        if rounds == 3 {
            // Told already, or not yet.
            (150..250).for_each(|number| drop(world.announces(1, &net(number))));
        }
        next = world.reads(false, 1);
    }
    assert!(rounds > 50 && completes == 1, "{rounds} {completes}");
    let of = |peer: u8| {
        let nets = (0..250).filter(move |number| match *number {
            0..150 => 1 + number % 2 == peer,
            150..200 => peer == 1 || number % 2 == 1,
            _ => peer == 1,
        });
        nets.map(net).collect::<std::collections::BTreeSet<_>>()
    };
    for peer in [1, 2] {
        let heard: std::collections::BTreeSet<_> =
            station.peers[&address(peer)].keys().copied().collect();
        assert_eq!(heard, of(peer), "{peer}");
    }
}

#[test]
fn who_takes_nothing_begins_anew() {
    let mut world = World::new();
    assert!(world.reads(true, MOST).unwrap().again);
    // A message has some kilobytes, of which some tens are kept in tests.
    let prefixes: Vec<_> = (0..1000u32)
        .map(|n| ipnet::Ipv4Net::new((0x4000_0000 + (n << 8)).into(), 24).unwrap().prefix())
        .collect();
    let attributes = |first: u32| Attributes {
        as_path: AsPath::from_sequence(&[65001, first]),
        next_hop: Some(NextHop::V4(address(1))),
        ..Attributes::default()
    };
    let context = Context::new(Neighbour::External);
    for round in 0..50 {
        let encoder =
            UpdateEncoder::new(&attributes(1 + round), Family::IPV4_UNICAST, &context).unwrap();
        let mut bytes = Vec::new();
        encoder.all(prefixes.iter().map(|net| (0, *net)), &mut bytes);
        world.says(1, &bytes);
    }
    let mut station = Station::default();
    let mut reply = world.reads(false, MOST).unwrap();
    assert!(reply.again);
    loop {
        station.hear(&reply.messages.0);
        match world.reads(false, MOST) {
            Some(next) => reply = next,
            None => break,
        }
        assert!(!reply.again);
    }
    let all = station.paths(1);
    assert_eq!(all.len(), 1000);
    assert!(all.iter().all(|(_, path)| *path == "65001 50"));
    // Nobody keeps anything for who is gone.
    world.input(Input::Left { session: 0, removed: false });
    assert!(!world.bgp.monitors.is_on());
}
