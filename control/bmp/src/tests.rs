//! The process between BGP and stations: what is told on a connection is true as long as the connection lives.

use std::net::SocketAddr;
use std::time::Duration;

use weft_base::{ChannelId, Message};
use weft_protocol::Show;
use weft_runtime::{StreamRequest, StreamSpec};
use weft_xrl::{Binary, Calls, Decoder, Encoded, Method, Reply};

use super::*;
use crate::interface::{Call, Monitor, MonitorReply};
use crate::messages::{initiation, termination};

/// The process, and what it has done.
struct World {
    bmp: Bmp,
    now: Instant,
    /// Attempts to connect.
    attempts: Vec<(Token, SocketAddr)>,
    closed: Vec<ChannelId>,
    /// What stations were sent.
    sent: Vec<(ChannelId, Vec<u8>)>,
    /// What BGP is asked.
    calls: Vec<(u64, Monitor)>,
}

impl World {
    fn new(config: &str) -> Self {
        let mut world = Self {
            bmp: Bmp::new(),
            now: Instant::ZERO,
            attempts: Vec::new(),
            closed: Vec::new(),
            sent: Vec::new(),
            calls: Vec::new(),
        };
        world.configure(config);
        world
    }

    fn configure(&mut self, config: &str) {
        let config = config::read("t", &format!("bmp {{ {config} }}")).unwrap();
        let mut out = Vec::new();
        self.bmp.configure(self.now, config, &mut out);
        self.carry_out(out);
        self.input(Input::World(Event::Tick));
    }

    fn input(&mut self, input: Input) {
        let mut out = Vec::new();
        self.bmp.handle(self.now, input, &mut out);
        self.carry_out(out);
    }

    fn carry_out(&mut self, out: Vec<Output>) {
        for output in out {
            match output {
                Output::World(Action::Stream { token, request }) => match request {
                    StreamRequest::Open(StreamSpec { peer, .. }) => {
                        self.attempts.push((token, peer));
                    }
                    StreamRequest::Cancel => self.attempts.retain(|(one, _)| *one != token),
                    other => panic!("it wants {other:?}"),
                },
                Output::World(Action::Close { channel }) => self.closed.push(channel),
                Output::World(Action::Send { channel, message }) => {
                    self.sent.push((channel, bytes(&message)));
                }
                Output::Call(call) => {
                    let Method::Known(_, method) = call.method else { panic!("{call:?}") };
                    let mut from = Decoder::new(call.arguments.args.bytes(), Vec::new());
                    let Call::Monitor(request) = Call::decode(method, &mut from).unwrap() else {
                        panic!("it asks for something else");
                    };
                    self.calls.push((call.token, request));
                }
                _ => {}
            }
        }
    }

    fn born(&mut self) {
        self.input(Input::Born { class: BGP.to_owned(), instance: BGP.to_owned() });
    }

    fn died(&mut self) {
        self.input(Input::Died { class: BGP.to_owned(), instance: BGP.to_owned() });
    }

    /// The next attempt to connect succeeds, on this channel.
    fn connect(&mut self, channel: u32) {
        let (token, peer) = self.attempts.remove(0);
        let event = StreamEvent::Opened { channel: ChannelId(channel), local: peer, peer };
        self.input(Input::World(Event::Stream { token, event }));
    }

    /// BGP answers the first call.
    fn answers(&mut self, again: bool, messages: &[u8], complete: bool) {
        let (token, _) = self.calls.remove(0);
        let reply = MonitorReply { again, messages: Binary(messages.to_vec()), complete };
        let result = Ok(Reply::Arguments(Encoded::new(reply)));
        self.input(Input::Replied { token, result });
    }

    fn pass(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.input(Input::World(Event::Tick));
    }

    fn told(&mut self) -> Vec<(u32, Vec<u8>)> {
        std::mem::take(&mut self.sent)
            .into_iter()
            .map(|(channel, bytes)| (channel.0, bytes))
            .collect()
    }

    fn state(&self, name: &str) -> String {
        let table = self.bmp.table(self.now, "stations", None, 10).unwrap();
        let row = table.rows.iter().find(|row| row["station"] == name).unwrap();
        row["state"].as_str().unwrap().to_owned()
    }
}

fn bytes(message: &Message) -> Vec<u8> {
    message.bytes().to_vec()
}

const ONE: &str = "station one { address 192.0.2.1; port 5000; }";

#[test]
fn a_station_is_told_who_we_are_and_then_what_bgp_says_as_fast_as_it_takes_it() {
    let mut world = World::new(ONE);
    assert_eq!((world.attempts.len(), &*world.state("one")), (0, "waits for BGP"));
    world.born();
    assert_eq!(world.attempts[0].1, "192.0.2.1:5000".parse().unwrap());
    world.connect(7);
    assert_eq!(world.told(), [(7, initiation("weft"))]);
    let first = &world.calls[0].1;
    assert!(first.begin && first.reader == 0, "{first:?}");
    world.answers(true, b"abc", false);
    assert_eq!(world.told(), [(7, b"abc".to_vec())]);
    assert!(!world.calls[0].1.begin, "and what comes behind that");
    assert_eq!(world.state("one"), "hears what there is");
    world.input(Input::World(Event::Congested { channel: ChannelId(7) }));
    world.answers(false, b"def", true);
    assert_eq!(world.told(), [(7, b"def".to_vec())]);
    assert!(world.calls.is_empty(), "it takes no more");
    world.input(Input::World(Event::Drained { channel: ChannelId(7) }));
    assert_eq!((world.calls.len(), &*world.state("one")), (1, "up to date"));
    // Nothing new is no reason to stop.
    world.answers(false, b"", false);
    assert_eq!((world.told().len(), world.calls.len()), (0, 1));
}

#[test]
fn what_is_not_true_any_more_ends_with_its_connection() {
    let mut world = World::new(ONE);
    world.born();
    world.connect(7);
    world.answers(true, b"abc", true);
    world.told();
    // It was too slow.
    world.answers(true, b"xyz", false);
    assert_eq!((world.told(), world.closed.pop()), (vec![(7, termination())], Some(ChannelId(7))));
    assert!(world.attempts.is_empty(), "and may be so again");
    world.pass(30);
    world.connect(8);
    assert!(world.calls.pop().unwrap().1.begin);
    world.died();
    assert_eq!(world.closed.pop(), Some(ChannelId(8)));
    assert!(world.attempts.is_empty());
    world.calls.clear();
    world.born();
    world.connect(9);
    assert_eq!(world.calls.len(), 1);
    // What an earlier connection has asked for is not told on another one.
    let asked = world.calls[0].0;
    world.input(Input::World(Event::Closed { channel: ChannelId(9) }));
    world.pass(60);
    world.connect(10);
    world.told();
    let result = Ok(Reply::Arguments(Encoded::new(MonitorReply {
        again: true,
        messages: Binary(b"old".to_vec()),
        complete: true,
    })));
    world.input(Input::Replied { token: asked, result });
    assert_eq!((world.told(), world.calls.len()), (vec![], 2));
}

/// What one station has to do with it is no matter of the others.
#[test]
fn a_station_that_takes_nothing_or_is_refused_is_left() {
    let mut world = World::new(&format!("{ONE} station two {{ address 192.0.2.2; port 5000; }}"));
    world.born();
    (7..9).for_each(|channel| world.connect(channel));
    world.input(Input::World(Event::Congested { channel: ChannelId(7) }));
    assert_eq!(world.state("one"), "takes no more");
    world.pass(59);
    assert_eq!(world.closed, []);
    world.pass(1);
    assert_eq!((world.closed.pop(), &*world.state("one")), (Some(ChannelId(7)), "idle"));
    let of_two = world.calls.iter().find(|(_, request)| request.reader == 1).unwrap().0;
    world.pass(30);
    world.connect(9);
    let refused = Err(XrlError::failed("no"));
    world.input(Input::Replied { token: of_two, result: refused });
    assert_eq!((world.closed.pop(), world.state("one") != "idle"), (Some(ChannelId(8)), true));
    world.input(Input::World(Event::Stop));
    assert!(world.attempts.is_empty());
}

/// RFC 7854 §3.2.
#[test]
fn a_station_that_is_away_is_asked_less_and_less_often() {
    let mut world = World::new("station one { address 192.0.2.1; port 5000; connect-retry 100s; }");
    world.born();
    for seconds in [100, 200, 400, 720, 720] {
        let (token, _) = world.attempts.pop().unwrap();
        let event = StreamEvent::Failed { error: "nobody is there".to_owned() };
        world.input(Input::World(Event::Stream { token, event }));
        world.pass(seconds - 1);
        assert!(world.attempts.is_empty(), "{seconds}");
        world.pass(1);
    }
    world.connect(7);
    world.answers(true, b"", true);
    world.input(Input::World(Event::Closed { channel: ChannelId(7) }));
    world.pass(100);
    assert_eq!(world.attempts.len(), 1, "what has worked is tried soon");
}

#[test]
fn stations_come_and_go_with_the_configuration() {
    let mut world = World::new(ONE);
    world.born();
    world.connect(7);
    let two = "station two { address 192.0.2.2; port 5000; }";
    world.configure(&format!("{ONE} {two}"));
    assert_eq!(world.closed, []);
    world.connect(8);
    let readers: Vec<_> = world.calls.iter().map(|(_, request)| request.reader).collect();
    assert_eq!(readers, [0, 1]);
    world.told();
    world.configure(two);
    assert_eq!((world.told(), world.closed.pop()), (vec![(7, termination())], Some(ChannelId(7))));
    world.configure(&format!("name other; {two}"));
    assert_eq!(world.closed.pop(), Some(ChannelId(8)));
    world.connect(9);
    assert!(world.told().contains(&(9, initiation("other"))));
    world.input(Input::World(Event::Stop));
    assert_eq!(world.told(), [(9, termination())]);
}
