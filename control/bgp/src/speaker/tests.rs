//! The process between its peers: connections come in, bytes go out.

mod ahead;
mod blackhole;
mod confederation;
mod damped;
mod detail;
mod fair;
mod faults;
mod graceful;
mod malformed;
mod many;
mod monitors;
mod multicast;
mod next_hops;
mod own;
mod profile;
mod reflected;
mod rib;
mod sessions;
mod shown;
mod slow;
mod validation;

use std::net::Ipv4Addr;
use std::time::Duration;

use weft_base::{Buffer, Message};
use weft_protocol::rib::CLASS as RIB;
use weft_routing::{BitString, Prefix};
use weft_runtime::{Interface, InterfaceAddress, InterfaceChange, Level};

use super::*;
use crate::config::PORT;
use crate::wire::{
    AsPath, Attributes, Capability, Context, Cutter, Family, MessageType, Neighbour, NextHop,
    Notification, Open, RefreshKind, RouteRefresh, Update, UpdateEncoder, keepalive,
};

const HOLD: u16 = 9;

/// Two external peers, at channels 1 and 2, and the RIB.
struct World {
    bgp: Bgp,
    now: Instant,
    rib: rib::Rib,
    /// Nothing is done in the background.
    is_busy: bool,
    /// The RIB does not answer, and nothing is done in the background either.
    rib_waits: bool,
}

fn address(peer: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, peer, 2)
}

/// A session is to end, and to begin again.
fn clear(peer: u8) -> interface::Clear {
    interface::Clear { peer: address(peer).into(), soft: None, hard: None, others: None }
}

/// Two external peers, with this besides, and these of each of them.
fn configured(more: &str, of: [&str; 2]) -> Option<Config> {
    let peer = |number: u8| {
        let (address, of) = (address(number), of[usize::from(number) - 1]);
        if of == "-" {
            return String::new();
        }
        let passive = if of.contains("passive") { "" } else { "passive on;" };
        let import = if of.contains("import") { "" } else { "import all;" };
        format!(
            "peer {address} {{ as 6500{number}; {passive} hold-time {HOLD}s; {import} export all; {of} }}"
        )
    };
    let text = format!("bgp {{ as 65000; router-id 192.0.2.1; {more} {} {} }}", peer(1), peer(2));
    config::read("t", &text).unwrap()
}

impl World {
    /// Routes are exchanged.
    fn new() -> Self {
        let mut world = Self::started("");
        world.born(false);
        for number in [1, 2] {
            world.connect(number);
        }
        world
    }

    /// The process has started, and is configured, with this besides.
    fn started(more: &str) -> Self {
        Self::started_as(configured(more, ["", ""]))
    }

    /// The same with this configuration.
    fn started_as(config: Option<Config>) -> Self {
        let bgp = Bgp::new(Random::from_seed(1));
        let mut world = Self {
            bgp,
            now: Instant::ZERO,
            rib: rib::Rib::default(),
            is_busy: false,
            rib_waits: false,
        };
        world.happens(Event::Start);
        world.configure_as(config);
        world
    }

    /// Another configuration comes.
    fn configure(&mut self, of: [&str; 2]) -> Vec<Output> {
        self.configure_as(configured("", of))
    }

    fn configure_as(&mut self, config: Option<Config>) -> Vec<Output> {
        let mut out = Vec::new();
        self.bgp.configure(self.now, config, &mut out);
        self.answered(&mut out);
        out.extend(self.happens(Event::Tick));
        out
    }

    /// The RIB is there; whether it has kept routes of an earlier process.
    fn born(&mut self, kept: bool) -> Vec<Output> {
        self.rib.kept = kept;
        self.input(Input::Born { class: RIB.to_owned(), instance: RIB.to_owned() })
    }

    fn happens(&mut self, event: Event) -> Vec<Output> {
        self.input(Input::World(event))
    }

    /// Something happens, with all that follows at once: the RIB answers, what is done in the background is done.
    fn input(&mut self, input: Input) -> Vec<Output> {
        let mut out = Vec::new();
        self.bgp.handle(self.now, input, &mut out);
        self.answered(&mut out);
        out
    }

    /// All that follows from what the process has done.
    fn answered(&mut self, out: &mut Vec<Output>) {
        let mut done = 0;
        while !self.rib_waits {
            let replies: Vec<_> =
                out[done..].iter().filter_map(|output| self.rib.answer(output)).collect();
            done = out.len();
            let mut inputs = replies;
            if inputs.is_empty() && !self.is_busy && self.bgp.has_background_work() {
                inputs.push(Input::World(Event::Slice));
            }
            if inputs.is_empty() {
                return;
            }
            inputs.into_iter().for_each(|input| self.bgp.handle(self.now, input, out));
        }
    }

    /// The peer connects, and routes can be exchanged. Returns what it was sent.
    fn connect(&mut self, number: u8) -> Vec<Output> {
        self.connect_with(number, &[])
    }

    fn connect_with(&mut self, number: u8, more: &[Capability]) -> Vec<Output> {
        let open = Open::new(65000 + u32::from(number), HOLD, address(number));
        self.connect_as(number, open, more)
    }

    /// The same, as this says.
    fn connect_as(&mut self, number: u8, open: Open, more: &[Capability]) -> Vec<Output> {
        self.connect_to([10, 0, number, 1].into(), number, open, more)
    }

    /// The same, to this address.
    fn connect_to(
        &mut self,
        local: IpAddr,
        number: u8,
        mut open: Open,
        more: &[Capability],
    ) -> Vec<Output> {
        let event = StreamEvent::Accepted {
            channel: ChannelId(number.into()),
            local: SocketAddr::new(local, PORT),
            peer: SocketAddr::new(address(number).into(), 40_000),
        };
        let mut out = self.happens(Event::Stream { token: LISTENERS[0], event });
        open.capabilities.extend([Capability::RouteRefresh, Capability::EnhancedRefresh]);
        open.capabilities.extend_from_slice(more);
        out.extend(self.says(number, &open.emit()));
        out.extend(self.says(number, &keepalive()));
        assert!(self.bgp.peers[&IpAddr::from(address(number))].up.is_some());
        out
    }

    fn says(&mut self, number: u8, bytes: &[u8]) -> Vec<Output> {
        let messages = vec![Message::from(Buffer::from_slice(bytes))];
        self.happens(Event::Messages { channel: ChannelId(number.into()), messages })
    }

    fn announces(&mut self, number: u8, prefix: &Prefix) -> Vec<Output> {
        self.announces_by(number, prefix, address(number))
    }

    /// A peer announces a route that leads to this router.
    fn announces_by(&mut self, number: u8, prefix: &Prefix, next_hop: Ipv4Addr) -> Vec<Output> {
        self.announces_with(number, prefix, next_hop, &[])
    }

    /// The same with these communities.
    fn announces_with(
        &mut self,
        number: u8,
        prefix: &Prefix,
        next_hop: Ipv4Addr,
        communities: &[u32],
    ) -> Vec<Output> {
        let attributes = Attributes {
            as_path: AsPath::from_sequence(&[65000 + u32::from(number)]),
            next_hop: Some(NextHop::V4(next_hop)),
            communities: communities.into(),
            ..Attributes::default()
        };
        let context = Context::new(Neighbour::External);
        let encoder = UpdateEncoder::new(&attributes, Family::IPV4_UNICAST, &context).unwrap();
        let mut bytes = Vec::new();
        encoder.all([(0, *prefix)], &mut bytes);
        self.says(number, &bytes)
    }
}

/// A request for this, all of it.
fn show(what: &str) -> interface::Show {
    interface::Show { what: what.to_owned(), ..Default::default() }
}

/// The link to a peer carries packets, or does not.
fn link(number: u8, running: bool) -> Event {
    let six = [0x2001, 0xdb8, number.into(), 0, 0, 0, 0, 1];
    let addresses = [([10, 0, number, 1].into(), 24), (six.into(), 64)];
    let addresses = addresses.map(|(ip, prefix_length)| InterfaceAddress { ip, prefix_length });
    let addresses = addresses.into();
    let (index, name) = (u32::from(number), format!("eth{number}"));
    let (kind, mtu, up) = ("veth".to_owned(), 1500, true);
    let (mac, master) = (None, None);
    let interface = Interface { index, name, kind, mac, mtu, up, running, master, addresses };
    Event::Interface { change: InterfaceChange::Changed(interface) }
}

/// The messages that a peer was sent: their types and bodies.
fn messages(number: u8, out: &[Output]) -> Vec<(MessageType, Vec<u8>)> {
    let mut cutter = Cutter::new();
    for output in out {
        if let Output::World(Action::Send { channel, message }) = output
            && *channel == ChannelId(number.into())
        {
            cutter.push(message.bytes());
        }
    }
    let next = || cutter.take().unwrap().map(|message| (message.kind, message.body().to_vec()));
    std::iter::from_fn(next).collect()
}

/// The first error that a peer was told.
fn notification(number: u8, out: &[Output]) -> Option<Notification> {
    let told = messages(number, out).into_iter().find(|one| one.0 == MessageType::Notification)?;
    Some(Notification::parse(&told.1))
}

/// The attributes of the last route that a peer is told.
fn told(number: u8, out: &[Output]) -> Option<Attributes> {
    let context = Context::new(Neighbour::External);
    let updates = messages(number, out).into_iter().filter(|one| one.0 == MessageType::Update);
    let mut told = updates.filter_map(|(_, body)| {
        let update = Update::new_checked(&body, &context).unwrap();
        update.reach().next()?;
        Some(update.judge(&context).attributes)
    });
    told.next_back()
}

/// The types of the messages that a peer was sent.
fn sent(number: u8, out: &[Output]) -> Vec<MessageType> {
    messages(number, out).into_iter().map(|(kind, _)| kind).collect()
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

/// RFC 7313 §4: no beginning before the end of the first telling, which graceful restart waits for, and an end behind each.
#[test]
fn a_peer_that_asks_while_it_is_told_everything_hears_where_both_end() {
    let mut world = World::started("");
    world.born(false);
    world.connect(2);
    // More than are told at once.
    (0..2000u32).for_each(|number| {
        let net = ipnet::Ipv4Net::new((0x1400_0000 + (number << 8)).into(), 24).unwrap();
        world.announces(2, &net.prefix());
    });
    let marks = |out: &[Output]| -> Vec<&str> {
        let word = |(kind, body): (MessageType, Vec<u8>)| match (kind, &body[..]) {
            (MessageType::Update, [0, 0, 0, 0]) => Some("end of RIB"),
            (MessageType::Update, _) => Some("routes"),
            (MessageType::RouteRefresh, [_, _, 1, _]) => Some("begin"),
            (MessageType::RouteRefresh, [_, _, 2, _]) => Some("end"),
            _ => None,
        };
        let mut all: Vec<_> = messages(1, out).into_iter().filter_map(word).collect();
        all.dedup();
        all
    };
    let request = |family| RouteRefresh { family, kind: RefreshKind::Request }.emit();
    world.is_busy = true;
    let mut out = world.connect(1);
    out.extend(world.says(1, &request(Family::IPV4_UNICAST)));
    assert_eq!(marks(&out), ["routes"], "it was not told everything");
    world.is_busy = false;
    out.extend(world.happens(Event::Tick));
    assert_eq!(marks(&out), ["routes", "end of RIB", "begin", "routes", "end"]);
    // An operator has it told again while it is: that is between the same marks.
    world.is_busy = true;
    let mut out = world.says(1, &request(Family::IPV4_UNICAST));
    let again = interface::Clear { soft: Some("out".to_owned()), ..clear(1) };
    world.bgp.clear(world.now, &again, &mut out).unwrap();
    world.is_busy = false;
    out.extend(world.happens(Event::Tick));
    assert_eq!(marks(&out), ["begin", "routes", "end"]);
}

/// RFC 4271 §9.2.1.1: what changes again meanwhile is told once, as it is in the end.
#[test]
fn a_peer_with_an_interval_hears_of_changes_together_and_others_at_once() {
    const INTERVAL: Duration = Duration::from_secs(4);
    let mut world = World::started_as(configured("", ["", "advertisement-interval 4s;"]));
    world.born(false);
    (1..=2).for_each(|number| drop(world.connect(number)));
    let net = |number| ipnet::Ipv4Net::new([203, 0, number, 0].into(), 24).unwrap().prefix();
    let updates = |number, out: &[Output]| {
        sent(number, out).into_iter().filter(|kind| *kind == MessageType::Update).count()
    };
    // What it was told when it came is over.
    world.now += INTERVAL;
    assert_eq!(updates(2, &world.announces(1, &net(1))), 1, "it has been told nothing lately");
    let begin = world.now;
    let communities = [[65000 << 16 | 1], [65000 << 16 | 2]];
    for (milliseconds, community) in [(100, communities[0]), (200, communities[1])] {
        world.now = begin + Duration::from_millis(milliseconds);
        let out = world.announces_with(1, &net(2), address(1), &community);
        assert_eq!(updates(2, &out), 0, "{milliseconds}");
    }
    assert_eq!(updates(1, &world.announces(2, &net(3))), 1, "the other one has no interval");
    assert!(!world.bgp.has_background_work(), "it waits, and computes nothing");
    let until = world.bgp.fanout.deadline(&world.bgp.routes).unwrap();
    assert!((begin + INTERVAL * 3 / 4..=begin + INTERVAL).contains(&until), "{until:?}");
    assert!(world.bgp.deadline().unwrap() <= until);
    world.now = until;
    let out = world.happens(Event::Tick);
    assert_eq!(updates(2, &out), 1);
    assert_eq!(told(2, &out).unwrap().communities[..], communities[1]);
    assert_eq!(world.bgp.fanout.deadline(&world.bgp.routes), None, "there is nothing else to tell");
}
