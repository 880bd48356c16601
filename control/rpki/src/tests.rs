//! The process between caches and who asks: what is told in the end is what the caches that count say.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use weft_protocol::Show;
use weft_runtime::StreamSpec;
use weft_xrl::{Encoded, Request, XrlError};

use super::*;
use crate::interface::{Changes, ChangesReply, List, ListReply};
use crate::rtr::pdu::{Pdu, Timing, Version};

const ONE: &str = "192.0.2.0/24-24 AS65001";
const TWO: &str = "2001:db8::/32-48 AS65002";
const THREE: &str = "198.51.100.0/24-24 AS65003";
const LONG: u32 = 20_000;

/// The process, and what it has done.
struct World {
    rpki: Rpki,
    now: Instant,
    /// Attempts to connect.
    attempts: Vec<(Token, SocketAddr)>,
    closed: Vec<ChannelId>,
    answers: Vec<Result<Encoded, XrlError>>,
}

impl World {
    fn new(config: &str) -> Self {
        let mut world = Self {
            rpki: Rpki::new(),
            now: Instant::ZERO,
            attempts: Vec::new(),
            closed: Vec::new(),
            answers: Vec::new(),
        };
        world.configure(config);
        world
    }

    fn configure(&mut self, config: &str) {
        let config = config::read("t", &format!("rpki {{ {config} }}")).unwrap();
        let mut out = Vec::new();
        self.rpki.configure(self.now, config, &mut out);
        self.carry_out(out);
        self.input(Input::World(Event::Tick));
    }

    fn input(&mut self, input: Input) {
        let mut out = Vec::new();
        self.rpki.handle(self.now, input, &mut out);
        self.carry_out(out);
    }

    fn carry_out(&mut self, out: Vec<Output>) {
        for output in out {
            match output {
                Output::World(Action::Stream { token, request }) => match request {
                    StreamRequest::Open(StreamSpec { peer, .. }) => {
                        self.attempts.push((token, peer))
                    }
                    StreamRequest::Cancel => self.attempts.retain(|(one, _)| *one != token),
                    other => panic!("it wants {other:?}"),
                },
                Output::World(Action::Close { channel }) => self.closed.push(channel),
                Output::Answer { result, .. } => self.answers.push(result),
                _ => {}
            }
        }
    }

    fn world(&mut self, event: Event) {
        self.input(Input::World(event));
    }

    /// The cache at an address takes the connection, which is this channel.
    fn connect(&mut self, address: &str, channel: u32) {
        let place = self.attempts.iter().position(|(_, peer)| peer.to_string() == address);
        let (token, peer) = self.attempts.remove(place.expect("it connects"));
        let opened = StreamEvent::Opened { channel: ChannelId(channel), local: peer, peer };
        self.world(Event::Stream { token, event: opened });
    }

    fn says(&mut self, channel: u32, pdus: &[Pdu<'_>]) {
        let mut bytes = Vec::new();
        pdus.iter().for_each(|pdu| pdu.emit(Version::V1, &mut bytes));
        let messages = vec![Message::from(Buffer::from_slice(&bytes))];
        self.world(Event::Messages { channel: ChannelId(channel), messages });
    }

    /// A cache says everything.
    fn tells(&mut self, channel: u32, payloads: &[&str]) {
        let comes = |text: &&str| Pdu::Payload { announced: true, payload: text.parse().unwrap() };
        let mut pdus = vec![Pdu::CacheResponse { session: 1 }];
        pdus.extend(payloads.iter().map(comes));
        pdus.push(Pdu::EndOfData { session: 1, serial: 1, timing: Timing::default() });
        self.says(channel, &pdus);
    }

    fn call<R: Request>(&mut self, request: R) {
        self.input(Input::Called(Called::directly(request)));
    }

    /// The answer to a call, if it has one.
    fn answer<R: Request>(&mut self) -> Option<R::Reply> {
        let answer = self.answers.pop()?.expect("it is answered well");
        Some(weft_xrl::Reply::Arguments(answer).read::<R>().expect("it is the reply"))
    }

    fn list(&mut self) -> Option<ListReply> {
        self.call(List { from: None, at_most: 100, wait: LONG });
        self.answer::<List>()
    }

    /// What is there, read in pages of one.
    fn there(&mut self) -> BTreeSet<String> {
        let (mut all, mut from) = (BTreeSet::new(), None);
        loop {
            self.call(List { from, at_most: 1, wait: 0 });
            let page = self.answer::<List>().expect("it need not wait");
            assert!(page.ready && page.payloads.len() <= 1);
            all.extend(page.payloads.iter().map(name));
            from = match page.next {
                Some(next) => Some(next),
                None => return all,
            };
        }
    }

    fn changes(&mut self, after: u64) -> Option<ChangesReply> {
        self.call(Changes { after, at_most: 100, wait: LONG });
        self.answer::<Changes>()
    }

    fn pass(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.world(Event::Tick);
    }
}

fn name(one: &interface::Payload) -> String {
    Payload::new(one.net, one.max_length, one.system).unwrap().to_string()
}

fn set(all: &[&str]) -> BTreeSet<String> {
    all.iter().map(|one| (*one).to_owned()).collect()
}

const NEAR: &str = "cache near { address 192.0.2.10; }";
const BOTH: &str =
    "cache near { address 192.0.2.10; } cache far { address 192.0.2.11; preference 2; }";

#[test]
fn who_asks_waits_until_a_cache_has_told_everything() {
    let mut world = World::new(NEAR);
    assert_eq!(world.list(), None);
    world.connect("192.0.2.10:323", 1);
    world.tells(1, &[ONE, TWO]);
    let list = world.answer::<List>().expect("now it is known");
    assert_eq!((list.ready, list.edition, list.next), (true, 2, None));
    assert_eq!(list.payloads.iter().map(name).collect::<Vec<_>>(), [ONE, TWO]);
    assert_eq!(world.there(), set(&[ONE, TWO]));
    // Nobody waits for ever.
    let mut world = World::new(NEAR);
    assert_eq!(world.list(), None);
    world.pass(20);
    assert!(!world.answer::<List>().expect("it has waited").ready);
}

#[test]
fn changes_are_told_when_they_come() {
    let mut world = World::new(NEAR);
    world.connect("192.0.2.10:323", 1);
    world.tells(1, &[ONE]);
    let edition = world.list().unwrap().edition;
    assert_eq!(world.changes(edition), None);
    world.says(1, &[Pdu::SerialNotify { session: 1, serial: 2 }]);
    let payload = |text: &str| text.parse().unwrap();
    world.says(
        1,
        &[
            Pdu::CacheResponse { session: 1 },
            Pdu::Payload { announced: false, payload: payload(ONE) },
            Pdu::Payload { announced: true, payload: payload(THREE) },
            Pdu::EndOfData { session: 1, serial: 2, timing: Timing::default() },
        ],
    );
    let news = world.answer::<Changes>().unwrap();
    assert_eq!((news.again, news.edition), (false, edition + 2));
    assert_eq!(news.announced.iter().map(name).collect::<BTreeSet<_>>(), set(&[THREE]));
    assert_eq!(news.withdrawn.iter().map(name).collect::<BTreeSet<_>>(), set(&[ONE]));
    assert!(world.changes(edition + 9).expect("it was never there").again);
    // Who is gone is told nothing.
    assert_eq!(world.changes(news.edition), None);
    world.input(Input::Left { session: 0, removed: false });
    world.pass(30);
    assert!(world.answers.is_empty());
}

#[test]
fn caches_with_the_least_preference_count_while_they_have_data() {
    let mut world = World::new(BOTH);
    world.connect("192.0.2.10:323", 1);
    world.connect("192.0.2.11:323", 2);
    world.tells(2, &[ONE, TWO]);
    assert_eq!(world.there(), set(&[ONE, TWO]));
    let edition = world.list().unwrap().edition;
    world.tells(1, &[TWO, THREE]);
    assert_eq!(world.there(), set(&[TWO, THREE]));
    let news = world.changes(edition).unwrap();
    assert_eq!((news.announced.len(), news.withdrawn.len()), (1, 1), "what both say is no change");
    // A connection that ends changes nothing, until what was told is too old.
    world.world(Event::Closed { channel: ChannelId(1) });
    assert_eq!(world.there(), set(&[TWO, THREE]));
    world.configure(&BOTH.replace("preference 2", "preference 1"));
    assert_eq!(world.there(), set(&[ONE, TWO, THREE]), "now they say it together");
    assert!(world.closed.is_empty());
    world.configure(BOTH);
    assert_eq!(world.there(), set(&[TWO, THREE]));
    world.configure("cache far { address 192.0.2.11; preference 2; }");
    assert_eq!(world.there(), set(&[ONE, TWO]));
    world.configure("cache far { address 192.0.2.12; preference 2; }");
    assert_eq!(world.closed, [ChannelId(2)]);
    assert_eq!(
        world.attempts.iter().map(|(_, peer)| peer.to_string()).collect::<Vec<_>>(),
        ["192.0.2.12:323"]
    );
    world.configure("");
    assert_eq!((world.there(), world.attempts.len()), (set(&[]), 0));
}

/// What both say is there all the time.
#[test]
fn what_another_cache_says_too_does_not_go_and_come() {
    let mut world = World::new(BOTH);
    world.connect("192.0.2.10:323", 1);
    world.connect("192.0.2.11:323", 2);
    world.tells(1, &[ONE, TWO]);
    world.tells(2, &[TWO, THREE]);
    let edition = world.list().unwrap().edition;
    world.configure("cache far { address 192.0.2.11; preference 2; }");
    let news = world.changes(edition).unwrap();
    assert_eq!(news.edition, edition + 2, "one goes, and one comes");
    // The same when what the first has said is too old.
    let mut world = World::new(BOTH);
    world.connect("192.0.2.10:323", 1);
    world.tells(1, &[ONE, TWO]);
    world.pass(3000);
    world.connect("192.0.2.11:323", 2);
    world.tells(2, &[TWO, THREE]);
    world.world(Event::Closed { channel: ChannelId(1) });
    let edition = world.list().unwrap().edition;
    world.pass(4200);
    let news = world.changes(edition).unwrap();
    assert_eq!((news.edition, world.there()), (edition + 2, set(&[TWO, THREE])));
}

#[test]
fn what_expires_is_gone() {
    let mut world = World::new(NEAR);
    world.connect("192.0.2.10:323", 1);
    world.tells(1, &[ONE]);
    let edition = world.list().unwrap().edition;
    world.world(Event::Closed { channel: ChannelId(1) });
    world.pass(7199);
    assert_eq!(world.there(), set(&[ONE]));
    world.pass(1);
    assert_eq!(
        world.changes(edition).unwrap().withdrawn.iter().map(name).collect::<Vec<_>>(),
        [ONE]
    );
    let list = world.list().expect("it is known that nothing counts");
    assert!(list.ready && list.payloads.is_empty());
}

#[test]
fn a_cache_that_makes_no_sense_takes_nothing_with_it() {
    let mut world = World::new(NEAR);
    world.connect("192.0.2.10:323", 1);
    world.tells(1, &[ONE]);
    world.says(1, &[Pdu::ResetQuery, Pdu::CacheReset]);
    assert_eq!(world.closed, [ChannelId(1)]);
    assert_eq!(world.there(), set(&[ONE]));
    let table = world.rpki.table(world.now, "caches", None, 9).unwrap();
    assert_eq!(table.rows[0]["state"], "idle");
    assert!(
        table.rows[0]["failure"].as_str().unwrap().contains("corrupt data"),
        "{:?}",
        table.rows
    );
    world.pass(5);
    world.connect("192.0.2.10:323", 2);
    world.tells(2, &[TWO]);
    assert_eq!(world.there(), set(&[TWO]));
    let table = world.rpki.table(world.now, "payloads", None, 9).unwrap();
    assert_eq!(table.rows[0]["caches"], "near");
}
