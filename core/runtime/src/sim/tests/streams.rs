//! Connections of TCP between nodes.

use std::num::NonZeroU8;

use weft_base::{Buffer, ChannelId};

use super::*;
use crate::{
    PeerKey, PeerTtl, StreamEvent, StreamKey, StreamListenerSpec, StreamOptions, StreamRequest,
    StreamSpec,
};

const LISTENER: Token = Token(1);
const OPENED: Token = Token(2);
const PORT: u16 = 179;

/// Three nodes in a row; the one in the middle forwards. Each link has a delay of 10 ms.
struct Row {
    world: World,
    nodes: [NodeId; 3],
    links: [LinkId; 2],
    /// What happened to who listens at the end, and to who connects at the beginning.
    logs: [Log; 2],
}

/// The address of the end of the row.
const END: &str = "10.0.2.2:179";

impl Row {
    fn new(link: &LinkConfig) -> Self {
        let mut world = world(1);
        let (a, a0) = host(&mut world, "a");
        let (b, b0) = host(&mut world, "b");
        let b1 = world.add_interface(b, InterfaceConfig::new("eth1")).unwrap();
        let (c, c0) = host(&mut world, "c");
        let first = world.connect((a0, link.clone()), (b0, link.clone())).unwrap();
        let second = world.connect((b1, link.clone()), (c0, link.clone())).unwrap();
        for (interface, address) in
            [(a0, [10, 0, 1, 1]), (b0, [10, 0, 1, 2]), (b1, [10, 0, 2, 1]), (c0, [10, 0, 2, 2])]
        {
            world.add_address(interface, address.into(), 24).unwrap();
        }
        world.add_route(a, [10, 0, 2, 0].into(), 24, [10, 0, 1, 2].into()).unwrap();
        world.add_route(c, [10, 0, 1, 0].into(), 24, [10, 0, 2, 1].into()).unwrap();
        world.set_forwarding(b, true);
        Self { world, nodes: [a, b, c], links: [first, second], logs: Default::default() }
    }

    fn slow() -> Self {
        Self::new(&LinkConfig { delay: millis(10), ..LinkConfig::default() })
    }

    /// Starts who listens, and who connects and sends `texts`.
    fn start(
        &mut self,
        listener: StreamListenerSpec,
        spec: StreamSpec,
        texts: &'static [&'static str],
    ) {
        let [a, _, c] = self.nodes;
        self.world.spawn(c, server(&self.logs[0], listener));
        self.world.spawn(a, client(&self.logs[1], spec, texts));
    }

    fn run(&mut self) {
        self.world.run_while(|_| true).unwrap();
    }

    fn until(&mut self, time: u64) {
        self.world.run_until(at(time * 1_000_000)).unwrap();
    }

    fn served(&self) -> Vec<String> {
        self.logs[0].borrow().clone()
    }

    fn asked(&self) -> Vec<String> {
        self.logs[1].borrow().clone()
    }
}

fn listen() -> StreamListenerSpec {
    let local = std::net::SocketAddr::from(([0, 0, 0, 0], PORT));
    StreamListenerSpec {
        local,
        keys: Vec::new(),
        least_ttls: Vec::new(),
        options: StreamOptions::default(),
    }
}

fn to_end() -> StreamSpec {
    let options = StreamOptions::default();
    StreamSpec { peer: END.parse().unwrap(), local: None, key: None, options }
}

fn stream(token: Token, request: StreamRequest) -> Action {
    Action::Stream { token, request }
}

fn send(channel: ChannelId, text: &str) -> Action {
    Action::Send { channel, message: Buffer::from_slice(text.as_bytes()).into() }
}

/// An event in words, with its time in milliseconds.
fn note(log: &Log, turn: &Turn<'_>, event: &Event) {
    let what = match event {
        Event::Start => return,
        Event::Stream { event, .. } => match event {
            StreamEvent::Opened { local, peer, .. } => format!("opened {} {peer}", local.ip()),
            StreamEvent::Accepted { local, peer, .. } => format!("accepted {local} {}", peer.ip()),
            StreamEvent::Listening { local } => format!("listening {local}"),
            StreamEvent::Failed { error } => error.clone(),
            other => format!("{other:?}"),
        },
        Event::Closed { .. } => "closed".to_owned(),
        event => describe(event),
    };
    log.borrow_mut().push(format!("{} {what}", turn.now.as_nanos() / 1_000_000));
}

/// Listens, and answers in capitals.
fn server(log: &Log, spec: StreamListenerSpec) -> Spawn {
    let log = Rc::clone(log);
    script("server", move |turn, event| {
        note(&log, turn, &event);
        match event {
            Event::Start => turn.act(stream(LISTENER, StreamRequest::Listen(spec.clone()))),
            Event::Messages { channel, messages } => {
                for text in messages {
                    let text = String::from_utf8_lossy(text.bytes()).to_uppercase();
                    turn.act(send(channel, &text));
                }
            }
            _ => {}
        }
    })
}

/// Connects when the listener is there, and sends.
fn client(log: &Log, spec: StreamSpec, texts: &'static [&'static str]) -> Spawn {
    let log = Rc::clone(log);
    script("client", move |turn, event| {
        note(&log, turn, &event);
        match event {
            Event::Start => *turn.deadline = Some(turn.now + millis(1)),
            Event::Tick => {
                *turn.deadline = None;
                turn.act(stream(OPENED, StreamRequest::Open(spec.clone())));
            }
            Event::Stream { event: StreamEvent::Opened { channel, .. }, .. } => {
                texts.iter().for_each(|text| turn.act(send(channel, text)));
            }
            _ => {}
        }
    })
}

#[test]
fn a_connection_takes_a_round_trip_and_bytes_half_of_one() {
    let mut row = Row::slow();
    row.start(listen(), to_end(), &["one", "two"]);
    row.run();
    let server = [
        "0 listening 0.0.0.0:179",
        "61 accepted 10.0.2.2:179 10.0.1.1",
        "61 channel1 [\"one\", \"two\"]",
    ];
    assert_eq!(row.served(), server);
    let client = ["1 Tick", "41 opened 10.0.1.1 10.0.2.2:179", "81 channel1 [\"ONE\", \"TWO\"]"];
    assert_eq!(row.asked(), client);
}

#[test]
fn the_slowest_link_says_how_fast_bytes_come() {
    let rate = std::num::NonZeroU64::new(8_000);
    let mut row = Row::new(&LinkConfig { rate, ..LinkConfig::default() });
    row.start(listen(), to_end(), &["0123456789", "0123456789"]);
    row.run();
    // A byte takes a millisecond.
    assert_eq!(row.asked()[2..], ["21 channel1 [\"0123456789\"]", "31 channel1 [\"0123456789\"]"]);
}

#[test]
fn where_nobody_listens_and_where_no_route_leads_is_told() {
    let mut row = Row::slow();
    let elsewhere = StreamSpec { peer: "10.0.2.2:180".parse().unwrap(), ..to_end() };
    row.start(listen(), elsewhere, &[]);
    row.run();
    assert!(
        row.asked()[1].starts_with("41 nobody listens at TCP 10.0.2.2:180"),
        "{:?}",
        row.asked()
    );
    for (spec, part) in [
        (StreamSpec { peer: "10.9.9.9:179".parse().unwrap(), ..to_end() }, "no route leads there"),
        (
            StreamSpec { local: Some("10.0.2.2:0".parse().unwrap()), ..to_end() },
            "does not have the address",
        ),
        (StreamSpec { peer: "[2001:db8::1]:179".parse().unwrap(), ..to_end() }, "IPv4 alone"),
    ] {
        let mut row = Row::slow();
        row.start(listen(), spec, &[]);
        row.run();
        assert!(
            row.asked()[1].starts_with("1 ") && row.asked()[1].contains(part),
            "{:?}",
            row.asked()
        );
    }
}

#[test]
fn who_gets_no_answer_tries_again_and_gives_up_at_last() {
    let mut row = Row::slow();
    row.world.cut(row.links[1]);
    row.start(listen(), to_end(), &[]);
    row.until(5_000);
    row.world.mend(row.links[1]);
    row.run();
    assert_eq!(row.asked()[1..], ["7041 opened 10.0.1.1 10.0.2.2:179"]);
    let mut row = Row::slow();
    row.world.cut(row.links[1]);
    row.start(listen(), to_end(), &[]);
    row.run();
    assert!(row.asked()[1].starts_with("127001 cannot connect"), "{:?}", row.asked());
}

#[test]
fn keys_and_times_to_live_must_fit_on_both_sides() {
    let key = |text: &str| Some(StreamKey::new(text).unwrap());
    let hops = |ttl, least| StreamOptions {
        ttl: NonZeroU8::new(ttl),
        least_ttl: NonZeroU8::new(least),
        ..StreamOptions::default()
    };
    let any = || StreamOptions::default();
    let (keyed, plain) = (true, false);
    for (has_keys, listening, spec_key, connecting, fits) in [
        (plain, any(), None, any(), true),
        (keyed, any(), key("right"), any(), true),
        (keyed, any(), key("wrong"), any(), false),
        (keyed, any(), None, any(), false),
        (plain, any(), key("right"), any(), false),
        // There is one router in between.
        (plain, hops(255, 254), None, hops(255, 254), true),
        (plain, hops(255, 255), None, hops(255, 254), false),
        (plain, hops(255, 254), None, hops(255, 255), false),
        (plain, hops(255, 254), None, any(), false),
        (plain, any(), None, hops(1, 1), false),
        (plain, any(), None, hops(2, 1), true),
    ] {
        let mut row = Row::slow();
        let net = |length, text| PeerKey {
            network: "10.0.1.9".parse().unwrap(),
            prefix_length: length,
            key: key(text).unwrap(),
        };
        let keys = if has_keys {
            vec![net(8, "wrong"), net(24, "right"), net(32, "wrong")]
        } else {
            Vec::new()
        };
        let listener = StreamListenerSpec { keys, options: listening, ..listen() };
        row.start(listener, StreamSpec { key: spec_key, options: connecting, ..to_end() }, &[]);
        row.run();
        assert_eq!(row.asked()[1].contains("opened"), fits, "{:?}", row.asked());
    }
}

#[test]
fn a_peer_may_be_as_far_away_as_its_network_says() {
    let one = |length, least| PeerTtl {
        network: "10.0.1.1".parse().unwrap(),
        prefix_length: length,
        least: NonZeroU8::new(least).unwrap(),
    };
    // There is one router in between, and 64 is what is sent unless something else is asked for.
    for (least_ttls, fits) in [
        (vec![one(32, 64)], false),
        (vec![one(32, 63)], true),
        (vec![one(8, 64), one(32, 1)], true),
        (vec![one(8, 1), one(24, 64)], false),
    ] {
        let mut row = Row::slow();
        row.start(StreamListenerSpec { least_ttls, ..listen() }, to_end(), &[]);
        row.run();
        assert_eq!(row.asked()[1].contains("opened"), fits, "{:?}", row.asked());
    }
}

#[test]
fn what_is_on_its_way_waits_for_a_way_that_is_cut() {
    let mut row = Row::slow();
    row.start(listen(), to_end(), &["hello"]);
    row.until(50);
    // On its way: between 41 and 61 ms.
    row.world.cut(row.links[0]);
    row.until(500);
    row.world.mend(row.links[0]);
    row.run();
    // Tried again after 200, 400 and 800 ms.
    assert_eq!(
        row.served()[1..],
        ["661 accepted 10.0.2.2:179 10.0.1.1", "661 channel1 [\"hello\"]"]
    );
    assert_eq!(row.asked()[2..], ["681 channel1 [\"HELLO\"]"]);
}

#[test]
fn who_tries_in_vain_for_too_long_is_closed_and_the_other_side_when_it_sends() {
    let mut row = Row::slow();
    let user_timeout = Some(millis(3_000));
    let options = StreamOptions { user_timeout, ..StreamOptions::default() };
    let [a, _, c] = row.nodes;
    let log = Rc::clone(&row.logs[0]);
    row.world.spawn(
        c,
        script("server", move |turn, event| {
            note(&log, turn, &event);
            match event {
                Event::Start => turn.act(stream(LISTENER, StreamRequest::Listen(listen()))),
                // Long after the other side has given up.
                Event::Stream { event: StreamEvent::Accepted { .. }, .. } => {
                    *turn.deadline = Some(turn.now + millis(60_000));
                }
                Event::Tick => {
                    *turn.deadline = None;
                    turn.act(send(ChannelId(1), "are you there"));
                }
                _ => {}
            }
        }),
    );
    let log = Rc::clone(&row.logs[1]);
    row.world.spawn(
        a,
        script("client", move |turn, event| {
            note(&log, turn, &event);
            match event {
                Event::Start => *turn.deadline = Some(turn.now + millis(1)),
                Event::Tick => {
                    *turn.deadline = match *turn.deadline {
                        Some(at) if at.as_nanos() == 1_000_000 => {
                            let spec = StreamSpec { options: options.clone(), ..to_end() };
                            turn.act(stream(OPENED, StreamRequest::Open(spec)));
                            Some(turn.now + millis(999))
                        }
                        _ => {
                            turn.act(send(ChannelId(1), "hello"));
                            None
                        }
                    };
                }
                _ => {}
            }
        }),
    );
    row.until(500);
    row.world.cut(row.links[1]);
    row.until(30_000);
    row.world.mend(row.links[1]);
    row.run();
    // Sent at 1,000, when there is no way.
    assert_eq!(row.asked()[3..], ["4000 closed"]);
    // Sent at 60,061, answered a round trip later.
    assert_eq!(row.served()[2..], ["60061 Tick", "60101 closed"]);
}

#[test]
fn a_process_that_dies_closes_its_connections_behind_what_it_had_sent() {
    let mut row = Row::slow();
    row.start(listen(), to_end(), &["last words"]);
    row.until(45);
    let client = row.world.processes().last().unwrap();
    row.world.kill(client);
    row.run();
    assert_eq!(row.served()[2..], ["61 channel1 [\"last words\"]", "65 closed"]);
}

#[test]
fn connecting_is_given_up_before_and_after_the_answer_is_on_its_way() {
    for cut in [false, true] {
        let mut row = Row::slow();
        if cut {
            row.world.cut(row.links[0]);
        }
        let [a, _, c] = row.nodes;
        row.world.spawn(c, server(&row.logs[0], listen()));
        let log = Rc::clone(&row.logs[1]);
        row.world.spawn(
            a,
            script("client", move |turn, event| {
                note(&log, turn, &event);
                match event {
                    Event::Start => *turn.deadline = Some(turn.now + millis(1)),
                    Event::Tick if turn.now == at(1_000_000) => {
                        *turn.deadline = Some(turn.now + millis(10));
                        turn.act(stream(OPENED, StreamRequest::Open(to_end())));
                    }
                    Event::Tick => {
                        *turn.deadline = None;
                        turn.act(stream(OPENED, StreamRequest::Cancel));
                    }
                    _ => {}
                }
            }),
        );
        row.run();
        assert!(row.asked()[2].starts_with("11 connecting to TCP 10.0.2.2:179 was given up"));
        assert_eq!(row.asked().len(), 3);
        let served: Vec<_> = row.served().into_iter().skip(1).collect();
        let ends: &[&str] =
            if cut { &[] } else { &["61 accepted 10.0.2.2:179 10.0.1.1", "61 closed"] };
        assert_eq!(served, ends);
    }
}

#[test]
fn one_process_opens_what_another_uses() {
    let mut row = Row::slow();
    let [a, _, c] = row.nodes;
    // Here it is the same one; handles are numbers.
    let opener = |log: &Log, first: fn() -> StreamRequest, delay: u64| {
        let log = Rc::clone(log);
        script("opener", move |turn, event| {
            note(&log, turn, &event);
            match event {
                Event::Start => *turn.deadline = Some(turn.now + millis(delay)),
                Event::Tick => {
                    *turn.deadline = None;
                    turn.act(stream(LISTENER, first()));
                }
                Event::Stream { event, .. } => match event {
                    StreamEvent::ListenerOpened { handle, .. } => {
                        turn.act(stream(Token(3), StreamRequest::AdoptListener(handle)));
                    }
                    StreamEvent::HandleOpened { handle, .. } => {
                        turn.act(stream(Token(3), StreamRequest::Adopt(handle)));
                    }
                    StreamEvent::Opened { channel, .. } => turn.act(send(channel, "hello")),
                    StreamEvent::Accepted { .. } => {
                        let key = StreamKey::new("new").unwrap();
                        let network = "10.0.1.1".parse().unwrap();
                        let keys = vec![PeerKey { network, prefix_length: 32, key }];
                        turn.act(stream(LISTENER, StreamRequest::SetKeys(keys)));
                    }
                    _ => {}
                },
                _ => {}
            }
        })
    };
    let listener = opener(&row.logs[0], || StreamRequest::OpenListenerHandle(listen()), 0);
    let first = opener(&row.logs[1], || StreamRequest::OpenHandle(to_end()), 1);
    row.world.spawn(c, listener);
    row.world.spawn(a, first);
    row.until(1_000);
    assert_eq!(
        row.served()[2..],
        [
            "0 listening 0.0.0.0:179",
            "61 accepted 10.0.2.2:179 10.0.1.1",
            "61 channel1 [\"hello\"]",
            "61 KeysSet { result: Ok(()) }"
        ]
    );
    assert_eq!(row.asked()[2..], ["41 opened 10.0.1.1 10.0.2.2:179"]);
    // The key is asked for now.
    let log = Log::default();
    let second = opener(&log, || StreamRequest::OpenHandle(to_end()), 1);
    row.world.spawn(a, second);
    row.run();
    assert!(log.borrow()[1].contains("nobody answers there"), "{log:?}");
}

#[test]
fn a_connection_that_nobody_adopts_is_closed() {
    let mut row = Row::slow();
    let [a, _, c] = row.nodes;
    row.world.spawn(c, server(&row.logs[0], listen()));
    let opener = script("opener", |turn, event| match event {
        Event::Start => *turn.deadline = Some(turn.now + millis(1)),
        Event::Tick => {
            *turn.deadline = None;
            turn.act(stream(OPENED, StreamRequest::OpenHandle(to_end())));
        }
        _ => {}
    });
    row.world.spawn(a, opener);
    row.run();
    // There at 41; closed ten seconds later.
    assert_eq!(row.served()[1..], ["61 accepted 10.0.2.2:179 10.0.1.1", "10061 closed"]);
}

#[test]
fn the_same_seed_takes_the_same_course_and_other_bytes_another() {
    let hash = |texts: &'static [&'static str]| {
        let mut row = Row::slow();
        row.start(listen(), to_end(), texts);
        row.run();
        row.world.trace_hash()
    };
    assert_eq!(hash(&["one", "two"]), hash(&["one", "two"]));
    assert_ne!(hash(&["one", "two"]), hash(&["one", "to"]));
}
