//! Channels between processes of a node.

use std::path::PathBuf;

use weft_base::{Buffer, ChannelId, Handle, Message};

use super::*;
use crate::frames::{FIRST_FRAME, LONGEST_FRAME};

const PATH: &str = "/run/socket";
/// A listener at it is ready.
const LISTENING: &str = "0 Listening { token: Token(1), address: Packets(\"/run/socket\") }";

fn address() -> ChannelAddress {
    ChannelAddress::Packets(PathBuf::from(PATH))
}

fn message(channel: ChannelId, text: &str) -> Action {
    Action::Send { channel, message: Packet::from_slice(text.as_bytes()).into() }
}

fn note(log: &Log, turn: &Turn<'_>, event: &Event) {
    log.borrow_mut().push(format!("{} {}", turn.now.as_nanos(), describe(event)));
}

/// Listens, logs, and answers each message in capitals.
fn server(log: &Log) -> Spawn {
    let log = Rc::clone(log);
    script("server", move |turn, event| {
        note(&log, turn, &event);
        match event {
            Event::Start => {
                turn.act(Action::Listen { token: Token(1), address: address() });
            }
            Event::Messages { channel, messages } => {
                for text in &messages {
                    let text = String::from_utf8_lossy(text.bytes()).to_uppercase();
                    turn.act(message(channel, &text));
                }
            }
            _ => {}
        }
    })
}

/// Connects and, once connected, sends `texts`; then closes if told so. Logs everything.
fn client(log: &Log, texts: &'static [&'static str], close: bool) -> Spawn {
    let log = Rc::clone(log);
    script("client", move |turn, event| {
        note(&log, turn, &event);
        match event {
            Event::Start => {
                turn.act(Action::Connect { token: Token(2), address: address() });
            }
            Event::Connected { channel, .. } => {
                texts.iter().for_each(|text| turn.act(message(channel, text)));
                if close {
                    turn.act(Action::Close { channel });
                }
            }
            _ => {}
        }
    })
}

fn one_node(latency_nanos: u64) -> (World, NodeId) {
    let channels = ChannelConfig {
        latency: std::time::Duration::from_nanos(latency_nanos),
        congested_at: 4,
        limit: 6,
        ..ChannelConfig::default()
    };
    let mut world = World::new(WorldConfig { channels, ..WorldConfig::default() });
    let node = world.add_node("a").unwrap();
    (world, node)
}

#[test]
fn messages_keep_their_borders_and_order() {
    let (mut world, node) = one_node(10);
    let (served, asked) = (Log::default(), Log::default());
    world.spawn(node, server(&served));
    world.spawn(node, client(&asked, &["one", "two"], false));
    world.run_while(|_| true).unwrap();
    let peer = "Process { pid: 2, uid: 0, gid: 0 }";
    let expected = [
        "0 Start".to_owned(),
        LISTENING.into(),
        format!("10 Accepted {{ token: Token(1), channel: ChannelId(1), peer: {peer} }}"),
        "20 channel1 [\"one\", \"two\"]".into(),
    ];
    assert_eq!(*served.borrow(), expected);
    let expected = [
        "0 Start",
        "10 Connected { token: Token(2), channel: ChannelId(1) }",
        "30 channel1 [\"ONE\", \"TWO\"]",
    ];
    assert_eq!(*asked.borrow(), expected);
}

#[test]
fn a_channel_without_latency_works_the_same() {
    let (mut world, node) = one_node(0);
    let asked = Log::default();
    world.spawn(node, server(&Log::default()));
    world.spawn(node, client(&asked, &["one", "two"], false));
    world.run_while(|_| true).unwrap();
    assert_eq!(asked.borrow()[2], "0 channel1 [\"ONE\", \"TWO\"]");
}

#[test]
fn what_was_sent_before_a_close_arrives_before_it() {
    let (mut world, node) = one_node(10);
    let (served, asked) = (Log::default(), Log::default());
    world.spawn(node, server(&served));
    world.spawn(node, client(&asked, &["last words"], true));
    world.run_while(|_| true).unwrap();
    let expected = ["20 channel1 [\"last words\"]", "20 Closed { channel: ChannelId(1) }"];
    assert_eq!(served.borrow()[3..], expected);
    assert_eq!(asked.borrow().len(), 2, "no answer comes through a closed channel");
    let counters = world.channel_counters();
    assert_eq!(counters.get(ChannelCount::Delivered), 1);
    assert_eq!(counters.get(ChannelCount::Closed), 1, "the answer");
}

#[test]
fn death_closes_channels_and_frees_the_path() {
    let (mut world, node) = one_node(10);
    let asked = Log::default();
    let victim = world.spawn(node, server(&Log::default()));
    world.spawn(node, client(&asked, &[], false));
    world.run_until(at(100)).unwrap();
    world.kill(victim);
    world.run_until(at(200)).unwrap();
    assert_eq!(asked.borrow()[2..], ["110 Closed { channel: ChannelId(1) }"]);
    let (served, orphan) = (Log::default(), Log::default());
    world.spawn(node, client(&orphan, &[], false));
    world.run_until(at(300)).unwrap();
    assert!(orphan.borrow()[1].contains("nobody listens there"), "{:?}", orphan.borrow());
    world.spawn(node, server(&served));
    world.run_while(|_| true).unwrap();
    assert_eq!(served.borrow()[1], LISTENING.replacen('0', "300", 1));
}

#[test]
fn a_path_is_one_listeners_and_one_nodes() {
    let (mut world, node) = one_node(10);
    let other = world.add_node("b").unwrap();
    let (second, elsewhere) = (Log::default(), Log::default());
    world.spawn(node, server(&Log::default()));
    world.spawn(node, server(&second));
    world.spawn(other, server(&elsewhere));
    world.run_while(|_| true).unwrap();
    let refusal = "cannot listen at `/run/socket`: server on a listens there already";
    assert!(second.borrow()[1].contains(refusal), "{:?}", second.borrow());
    assert_eq!(elsewhere.borrow()[1], LISTENING);
}

#[test]
fn a_sender_learns_of_congestion_and_loses_what_exceeds_the_limit() {
    let (mut world, node) = one_node(10);
    let (served, asked) = (Log::default(), Log::default());
    world.spawn(node, server(&served));
    world.spawn(node, client(&asked, &["1", "2", "3", "4", "5", "6", "7", "", "8"], false));
    world.run_while(|_| true).unwrap();
    assert_eq!(served.borrow()[3], "20 channel1 [\"1\", \"2\", \"3\", \"4\", \"5\", \"6\"]");
    let expected =
        ["10 Congested { channel: ChannelId(1) }", "20 Drained { channel: ChannelId(1) }"];
    assert_eq!(asked.borrow()[2..4], expected);
    let counters = world.channel_counters();
    assert_eq!(counters.get(ChannelCount::Overflow), 2);
    assert_eq!(counters.get(ChannelCount::Unsuitable), 1);
    assert_eq!(counters.get(ChannelCount::Sent), 9 + 6);
    assert_eq!(counters.get(ChannelCount::Delivered), 6 + 6);
}

/// A world with a listener at `address` that logs, and a client that sends `messages` once connected.
fn stream_world(
    address: &ChannelAddress,
    messages: impl Fn() -> Vec<Message> + 'static,
) -> (World, Log, Log) {
    let (mut world, node) = one_node(10);
    let (served, asked) = (Log::default(), Log::default());
    let (log, to) = (Rc::clone(&served), address.clone());
    world.spawn(
        node,
        script("server", move |turn, event| {
            note(&log, turn, &event);
            match event {
                Event::Start => {
                    turn.act(Action::Listen { token: Token(1), address: to.clone() });
                }
                Event::Messages { messages, .. } => {
                    let numbers =
                        messages.iter().flat_map(|message| &message.handles).map(Handle::number);
                    log.borrow_mut().push(format!("{:?}", numbers.collect::<Vec<_>>()));
                }
                _ => {}
            }
        }),
    );
    let (log, to) = (Rc::clone(&asked), address.clone());
    world.spawn(
        node,
        script("client", move |turn, event| {
            note(&log, turn, &event);
            match event {
                Event::Start => {
                    turn.act(Action::Connect { token: Token(2), address: to.clone() });
                }
                Event::Connected { channel, .. } => {
                    for message in messages() {
                        turn.act(Action::Send { channel, message });
                    }
                }
                _ => {}
            }
        }),
    );
    world.run_while(|_| true).unwrap();
    (world, served, asked)
}

fn with_handles(numbers: impl IntoIterator<Item = u64>) -> Message {
    let handles = numbers.into_iter().map(Handle::from_number).collect();
    Message { buffer: Buffer::from_slice(b"x"), handles }
}

#[test]
fn handles_travel_with_their_message() {
    let stream = ChannelAddress::Stream(PathBuf::from(PATH));
    for address in [address(), stream] {
        let (_, served, _) = stream_world(&address, || {
            vec![with_handles([]), with_handles([7, 8]), with_handles([9])]
        });
        assert_eq!(served.borrow()[4], "[Some(7), Some(8), Some(9)]");
    }
}

#[test]
fn a_stream_is_closed_where_packets_would_be_dropped() {
    type Bad = fn() -> Message;
    let tcp = ChannelAddress::Tcp("127.0.0.1:80".parse().unwrap());
    let stream = ChannelAddress::Stream(PathBuf::from(PATH));
    let cases: [(_, Bad); 5] = [
        (&stream, || Packet::new().into()),
        (&stream, || with_handles(0..17)),
        (&tcp, || with_handles([1])),
        (&tcp, || Packet::from_slice(&vec![0; LONGEST_FRAME + 1]).into()),
        // Of somebody whom nobody knows.
        (&stream, || Packet::from_slice(&vec![0; FIRST_FRAME + 1]).into()),
    ];
    for (address, bad) in cases {
        let (world, served, asked) =
            stream_world(address, move || vec![Packet::from_slice(b"good").into(), bad()]);
        assert_eq!(asked.borrow()[2], "10 Closed { channel: ChannelId(1) }");
        let served = served.borrow();
        assert!(served[3].contains("[\"good\"]"), "{served:?}");
        assert_eq!(served.last().unwrap(), "20 Closed { channel: ChannelId(1) }");
        assert_eq!(world.channel_counters().get(ChannelCount::Unsuitable), 1);
    }
}

#[test]
fn a_flow_drops_what_it_does_not_carry_and_goes_on() {
    let flow = ChannelAddress::Flow(PathBuf::from(PATH));
    let (world, served, asked) = stream_world(&flow, || {
        let long = Packet::from_slice(&vec![0; 65_537]);
        let good = |text: &[u8]| Packet::from_slice(text).into();
        vec![good(b"good"), with_handles([1]), Packet::new().into(), long.into(), good(b"more")]
    });
    assert!(served.borrow()[3].contains("[\"good\", \"more\"]"), "{:?}", served.borrow());
    assert_eq!(asked.borrow().len(), 2, "it is not closed: {:?}", asked.borrow());
    assert_eq!(world.channel_counters().get(ChannelCount::Unsuitable), 3);
}

#[test]
fn more_than_a_stream_holds_closes_it() {
    let stream = ChannelAddress::Stream(PathBuf::from(PATH));
    let (world, _, asked) = stream_world(&stream, || {
        (0..17).map(|_| Packet::from_slice(&vec![0; FIRST_FRAME]).into()).collect()
    });
    let expected =
        ["10 Congested { channel: ChannelId(1) }", "10 Closed { channel: ChannelId(1) }"];
    assert_eq!(asked.borrow()[2..], expected);
    assert_eq!(world.channel_counters().get(ChannelCount::Overflow), 1);
}

#[test]
fn the_system_chooses_tcp_ports_and_only_of_the_loopback_interface() {
    let local = ChannelAddress::Tcp("127.0.0.1:0".parse().unwrap());
    let (_, served, _) = stream_world(&local, Vec::new);
    assert!(served.borrow()[1].contains("Tcp(127.0.0.1:32768)"), "{:?}", served.borrow());
    let far = ChannelAddress::Tcp("192.0.2.1:80".parse().unwrap());
    let (_, served, asked) = stream_world(&far, Vec::new);
    for log in [served, asked] {
        assert!(log.borrow()[1].contains("not encrypted"), "{:?}", log.borrow());
    }
}

#[test]
fn connecting_with_another_kind_is_a_sentence() {
    let (mut world, node) = one_node(10);
    let asked = Log::default();
    world.spawn(node, server(&Log::default()));
    let log = Rc::clone(&asked);
    world.spawn(
        node,
        script("client", move |turn, event| {
            note(&log, turn, &event);
            if let Event::Start = event {
                let address = ChannelAddress::Stream(PathBuf::from(PATH));
                turn.act(Action::Connect { token: Token(2), address });
            }
        }),
    );
    world.run_while(|_| true).unwrap();
    assert!(asked.borrow()[1].contains("is SOCK_SEQPACKET, and SOCK_STREAM is asked for"));
}
