//! Channels between processes of a node.

use std::path::PathBuf;

use weft_base::ChannelId;

use super::*;

const PATH: &str = "/run/socket";

fn message(channel: ChannelId, text: &str) -> Action {
    Action::Send { channel, message: Packet::from_slice(text.as_bytes()) }
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
                turn.act(Action::Listen { token: Token(1), path: PathBuf::from(PATH) });
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
                turn.act(Action::Connect { token: Token(2), path: PathBuf::from(PATH) });
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
    let peer = "Peer { pid: 2, uid: 0, gid: 0 }";
    let expected = [
        "0 Start".to_owned(),
        "0 Listening { token: Token(1) }".into(),
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
    assert_eq!(served.borrow()[1], "300 Listening { token: Token(1) }");
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
    let refusal = "cannot listen at /run/socket: server on a listens there already";
    assert!(second.borrow()[1].contains(refusal), "{:?}", second.borrow());
    assert_eq!(elsewhere.borrow()[1], "0 Listening { token: Token(1) }");
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
