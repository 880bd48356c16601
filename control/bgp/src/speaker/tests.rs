//! The process between its peers: connections come in, bytes go out.

use std::time::Duration;

use ipnet::IpNet;
use weft_base::{Buffer, Message};
use weft_routing::{BitString, Prefix};

use super::*;
use crate::routes::next_hops::Reached;
use crate::wire::{
    AsPath, Attributes, Capability, Context, Cutter, Family, MessageType, Neighbour, NextHop, Open,
    RefreshKind, RouteRefresh, UpdateEncoder, keepalive,
};

const HOLD: u16 = 9;

/// Two external peers, at channels 1 and 2.
struct World {
    bgp: Bgp,
    now: Instant,
}

fn address(peer: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, peer, 2)
}

impl World {
    fn new() -> Self {
        let mut world = Self { bgp: Bgp::new(Random::from_seed(1)), now: Instant::ZERO };
        let peer = |number: u8| {
            let address = address(number);
            format!(
                "peer {address} {{ as 6500{number}; passive on; hold-time {HOLD}s; import all; export all; }}"
            )
        };
        let text = format!("bgp {{ as 65000; router-id 192.0.2.1; {} {} }}", peer(1), peer(2));
        let config = config::read("t", &text).unwrap();
        world.bgp.configure(world.now, config, &mut Vec::new());
        for number in [1, 2] {
            world.connect(number);
            let next_hop = IpNet::from(IpAddr::from(address(number)));
            let reached = Reached { metric: Some(0), is_neighbour: true };
            world.bgp.routes.next_hops.told(next_hop, reached);
        }
        world
    }

    fn happens(&mut self, event: Event) -> Vec<Output> {
        let mut out = Vec::new();
        self.bgp.handle(self.now, Input::World(event), &mut out);
        out
    }

    /// The peer connects, and routes can be exchanged.
    fn connect(&mut self, number: u8) {
        let event = StreamEvent::Accepted {
            channel: ChannelId(number.into()),
            local: SocketAddr::new([10, 0, number, 1].into(), PORT),
            peer: SocketAddr::new(address(number).into(), 40_000),
        };
        self.happens(Event::Stream { token: LISTENERS[0], event });
        let mut open = Open::new(65000 + u32::from(number), HOLD, address(number));
        open.capabilities.extend([Capability::RouteRefresh, Capability::EnhancedRefresh]);
        self.says(number, &open.emit());
        self.says(number, &keepalive());
        assert!(self.bgp.peers[&IpAddr::from(address(number))].up.is_some());
    }

    fn says(&mut self, number: u8, bytes: &[u8]) -> Vec<Output> {
        let messages = vec![Message::from(Buffer::from_slice(bytes))];
        self.happens(Event::Messages { channel: ChannelId(number.into()), messages })
    }

    fn announces(&mut self, number: u8, prefix: &Prefix) -> Vec<Output> {
        let attributes = Attributes {
            as_path: AsPath::from_sequence(&[65000 + u32::from(number)]),
            next_hop: Some(NextHop::V4(address(number))),
            ..Attributes::default()
        };
        let context = Context::new(Neighbour::External);
        let encoder = UpdateEncoder::new(&attributes, Family::IPV4_UNICAST, &context).unwrap();
        let mut bytes = Vec::new();
        encoder.all([(0, *prefix)], &mut bytes);
        self.says(number, &bytes)
    }
}

/// The types of the messages that a peer was sent.
fn sent(number: u8, out: &[Output]) -> Vec<MessageType> {
    let mut cutter = Cutter::new();
    for output in out {
        if let Output::World(Action::Send { channel, message }) = output
            && *channel == ChannelId(number.into())
        {
            cutter.push(message.bytes());
        }
    }
    std::iter::from_fn(|| cutter.take().unwrap().map(|message| message.kind)).collect()
}

#[test]
fn what_a_session_asks_for_while_its_peer_is_told_of_routes_is_done() {
    let mut world = World::new();
    for round in 0..5 {
        // The first peer's timer is due when something else comes.
        let first = &world.bgp.peers[&IpAddr::from(address(1))];
        world.now = first.session.deadline().unwrap();
        let net = ipnet::Ipv4Net::new([203, 0, round, 0].into(), 24).unwrap();
        let out = world.announces(2, &net.prefix());
        let sent = sent(1, &out);
        assert!(sent.contains(&MessageType::Update), "{sent:?}");
        assert!(sent.contains(&MessageType::Keepalive), "round {round}: {sent:?}");
        world.says(1, &keepalive());
    }
}

#[test]
fn routes_are_sent_again_between_begin_and_end() {
    let mut world = World::new();
    let net = ipnet::Ipv4Net::new([203, 0, 113, 0].into(), 24).unwrap();
    world.announces(2, &net.prefix());
    let request = |family| RouteRefresh { family, kind: RefreshKind::Request }.emit();
    let out = world.says(1, &request(Family::IPV4_UNICAST));
    let expected = [MessageType::RouteRefresh, MessageType::Update, MessageType::RouteRefresh];
    assert_eq!(sent(1, &out), expected);
    assert_eq!(sent(2, &out), []);
    // Only what was agreed on.
    assert_eq!(sent(1, &world.says(1, &request(Family::IPV6_UNICAST))), []);
}

#[test]
fn a_peer_that_is_silent_is_told_so_though_routes_come_at_that_moment() {
    let mut world = World::new();
    world.now += Duration::from_secs(HOLD.into());
    let net = ipnet::Ipv4Net::new([203, 0, 113, 0].into(), 24).unwrap();
    world.says(2, &keepalive());
    let out = world.announces(2, &net.prefix());
    assert!(world.bgp.peers[&IpAddr::from(address(1))].up.is_none());
    assert!(sent(1, &out).contains(&MessageType::Notification), "{out:?}");
}
