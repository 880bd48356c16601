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

    fn withdraws(&mut self, number: u8, prefix: &Prefix) -> Vec<Output> {
        let mut bytes = Vec::new();
        let context = Context::new(Neighbour::External);
        crate::wire::withdraw(Family::IPV4_UNICAST, &context, [(0, *prefix)], &mut bytes);
        self.says(number, &bytes)
    }

    /// The peer connects, and says this in one piece with what makes a session of it.
    fn connect_and_say(&mut self, number: u8, open: &Open, more: &[u8]) -> Vec<Output> {
        let event = StreamEvent::Accepted {
            channel: ChannelId(number.into()),
            local: SocketAddr::new([10, 0, number, 1].into(), PORT),
            peer: SocketAddr::new(address(number).into(), 40_000),
        };
        self.happens(Event::Stream { token: LISTENERS[0], event });
        self.says(number, &open.emit());
        self.says(number, &[&keepalive()[..], more].concat())
    }
}

/// Reads until there is nothing more to be told; says how often that was a beginning, and all.
fn settle(world: &mut World, station: &mut Station, begin: bool, at_most: u32) -> [usize; 2] {
    let mut counts = [0; 2];
    let mut next = world.reads(begin, at_most);
    while let Some(reply) = next {
        station.hear(&reply.messages.0);
        counts[0] += usize::from(reply.again);
        counts[1] += usize::from(reply.complete);
        next = world.reads(false, at_most);
    }
    counts
}

/// All answers that readers get.
fn replies(out: Vec<Output>) -> impl Iterator<Item = MonitorReply> {
    out.into_iter().filter_map(|output| match output {
        Output::Answer { result: Ok(encoded), .. } => {
            weft_xrl::Reply::Arguments(encoded).read::<Monitor>().ok()
        }
        _ => None,
    })
}

/// The answer that says something, if there is one.
fn reply(out: Vec<Output>) -> Option<MonitorReply> {
    let says = |one: &MonitorReply| one.again || one.complete || !one.messages.0.is_empty();
    replies(out).find(says)
}

#[test]
fn a_reader_hears_what_there_is_and_then_what_happens() {
    let mut world = World::new();
    (0..5).for_each(|number| drop(world.announces(1, &net(number))));
    let mut station = Station::default();
    assert_eq!(settle(&mut world, &mut station, true, MOST), [1, 1]);
    // RFC 7854 §5: of each family of each peer, whatever the peer says itself.
    assert_eq!(station.complete, [address(1), address(2)]);
    let all: Vec<_> = (0..5).map(|number| (net(number), "65001")).collect();
    assert_eq!((station.paths(1), station.paths(2).len()), (all, 0));
    // There is nothing to say until something happens.
    let told = reply(world.announces(2, &net(1))).unwrap();
    assert!(!told.again && !told.complete);
    station.hear(&told.messages.0);
    assert_eq!(station.paths(2), [(net(1), "65002")]);
    // What is taken back, in whatever way.
    world.reads(false, MOST);
    station.hear(&reply(world.withdraws(1, &net(0))).unwrap().messages.0);
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
    settle(&mut world, &mut station, true, MOST);
    assert_eq!(station.paths(1).len(), 1);
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
    settle(&mut world, &mut station, true, MOST);
    assert_eq!(station.paths(1).len(), 2);
    let mark = |kind| RouteRefresh { family: Family::IPV4_UNICAST, kind }.emit();
    world.says(1, &mark(RefreshKind::Begin));
    let out = world.announces(1, &net(2));
    station.hear(&reply(out).unwrap().messages.0);
    // What was not sent again yet still counts, and whoever begins now hears of it.
    let mut late = Station::default();
    settle(&mut world, &mut late, true, MOST);
    assert_eq!((late.paths(1).len(), station.paths(1).len()), (2, 2));
    let out = world.says(1, &mark(RefreshKind::End));
    late.hear(&reply(out).unwrap().messages.0);
    settle(&mut world, &mut late, false, MOST);
    assert_eq!(late.paths(1), [(net(2), "65001")]);
}

/// Whatever happens meanwhile.
#[test]
fn who_takes_little_at_once_hears_the_same_in_the_end() {
    let mut world = World::new();
    (0..200).for_each(|number| drop(world.announces(1 + number % 2, &net(number))));
    let mut station = Station::default();
    let mut next = world.reads(true, 1);
    let (mut rounds, mut completes) = (0, 0);
    while let Some(reply) = next {
        station.hear(&reply.messages.0);
        completes += usize::from(reply.complete);
        rounds += 1;
        if rounds == 10 {
            // Of some it was told already, of others not yet, and some numbers are used again.
            assert!(completes == 0 && station.peers[&address(1)].len() < 100, "{station:?}");
            (0..20).for_each(|number| drop(world.withdraws(1 + number % 2, &net(number))));
            (150..250).for_each(|number| drop(world.announces(1, &net(number))));
        }
        next = world.reads(false, 1);
    }
    assert!(rounds > 50 && completes == 1, "{rounds} {completes}");
    let of = |peer: u8| {
        let nets = (0..250).filter(move |number| match *number {
            0..20 => false,
            20..150 => 1 + number % 2 == peer,
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
    settle(&mut world, &mut Station::default(), true, MOST);
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
    // The first answer is that to the call that waited meanwhile.
    let mut station = Station::default();
    assert_eq!(settle(&mut world, &mut station, false, MOST), [1, 1]);
    let all = station.paths(1);
    assert_eq!(all.len(), 1000);
    assert!(all.iter().all(|(_, path)| *path == "65001 50"));
    // Nobody keeps anything for who is gone.
    world.input(Input::Left { session: 0, removed: false });
    assert!(!world.bgp.monitors.is_on());
}

#[test]
fn who_asks_twice_or_not_for_long_leaves_nothing_behind() {
    let mut world = World::new();
    settle(&mut world, &mut Station::default(), true, MOST);
    // The call that waits is answered when there is another one.
    let request = Monitor { reader: READER, begin: false, at_most: MOST, wait: LONG };
    let out = world.input(Input::Called(weft_xrl::Called::directly(request)));
    let earlier = replies(out).next().expect("the earlier one is answered");
    assert!(!earlier.again && earlier.messages.0.is_empty());
    world.now += Duration::from_secs(60);
    world.says(1, &keepalive());
    world.says(2, &keepalive());
    world.happens(Event::Tick);
    assert!(world.bgp.monitors.is_on(), "it was answered now");
    world.now += Duration::from_secs(61);
    world.happens(Event::Tick);
    assert!(!world.bgp.monitors.is_on());
}

/// All in one read.
#[test]
fn a_session_that_ends_as_it_begins_was_there() {
    let mut world = World::new();
    let mut station = Station::default();
    settle(&mut world, &mut station, true, MOST);
    let out = world.happens(Event::Closed { channel: ChannelId(1) });
    station.hear(&reply(out).unwrap().messages.0);
    settle(&mut world, &mut station, false, MOST);
    let open = Open::new(65001, HOLD, address(1));
    let out = world.connect_and_say(1, &open, &Notification::cease(2).emit());
    station.hear(&reply(out).unwrap().messages.0);
    assert_eq!(station.peers.keys().copied().collect::<Vec<_>>(), [address(2)]);
}
