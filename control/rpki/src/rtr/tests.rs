//! The session beside what RFC 8210 §8 says follows what.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use weft_base::Instant;

use super::error::ErrorCode;
use super::pdu::{Pdu, Timing, Version};
use super::session::{Held, MOST, Outcome, Session};
use crate::payload::Payload;

const ONE: &str = "192.0.2.0/24-24 AS65001";
const TWO: &str = "2001:db8::/32-48 AS65002";

fn payload(text: &str) -> Payload {
    text.parse().unwrap()
}

/// A session, and what is known of its cache.
struct World {
    now: Instant,
    version: Version,
    session: Session,
    known: BTreeSet<Payload>,
    /// How many payloads are known besides.
    others: usize,
}

impl World {
    /// One that is connected, and has asked for everything.
    fn new() -> Self {
        let now = Instant::ZERO;
        let session = Session::new(now);
        let known = BTreeSet::new();
        let mut world = Self { now, version: Version::V1, session, known, others: 0 };
        assert_eq!(world.tick(), [Outcome::Connect]);
        assert_eq!(world.open(), [world.query(&Pdu::ResetQuery)]);
        world
    }

    /// The same, which was told one payload.
    fn settled() -> Self {
        let mut world = Self::new();
        let told = world.hear(&[response(7), comes(ONE), end(7, 1)]);
        assert_eq!(told, [Outcome::Everything(vec![payload(ONE)])]);
        world.known.insert(payload(ONE));
        world
    }

    fn query(&self, pdu: &Pdu<'_>) -> Outcome {
        let mut bytes = Vec::new();
        pdu.emit(self.version, &mut bytes);
        Outcome::Send(bytes)
    }

    fn asks_for_changes(&self, session: u16, serial: u32) -> Outcome {
        self.query(&Pdu::SerialQuery { session, serial })
    }

    fn tick(&mut self) -> Vec<Outcome> {
        let mut out = Vec::new();
        self.session.tick(self.now, &mut out);
        out
    }

    fn open(&mut self) -> Vec<Outcome> {
        let mut out = Vec::new();
        self.session.opened(self.now, &mut out);
        out
    }

    /// Waits until there is something to be done, and does it.
    fn wait(&mut self) -> (Duration, Vec<Outcome>) {
        let due = self.session.deadline().expect("something is to be done");
        let waited = due.since(self.now);
        self.now = due;
        (waited, self.tick())
    }

    /// The cache says all this at once.
    fn hear(&mut self, pdus: &[Pdu<'_>]) -> Vec<Outcome> {
        let mut bytes = Vec::new();
        pdus.iter().for_each(|pdu| pdu.emit(self.version, &mut bytes));
        self.hear_bytes(&bytes)
    }

    fn hear_bytes(&mut self, bytes: &[u8]) -> Vec<Outcome> {
        let mut out = Vec::new();
        let known = &self.known;
        let count = known.len() + self.others;
        let held = Held { count, holds: |payload: &Payload| known.contains(payload) };
        self.session.received(self.now, bytes, &held, &mut out);
        out
    }

    /// The session ended because of what the cache said, which was told why.
    fn assert_ended(&self, out: &[Outcome], expected: ErrorCode) {
        let [Outcome::Send(bytes), Outcome::Close, Outcome::Failed(why)] = out else {
            panic!("it goes on: {out:?}");
        };
        let Ok((_, Pdu::ErrorReport { code, pdu, text })) = Pdu::parse(bytes) else {
            panic!("it says something else: {bytes:?}");
        };
        assert_eq!(code, expected, "{why}");
        assert!(!pdu.is_empty() && !text.is_empty());
        assert_eq!((self.session.state(), self.session.known()), ("idle", None));
    }
}

fn response(session: u16) -> Pdu<'static> {
    Pdu::CacheResponse { session }
}

fn comes(text: &str) -> Pdu<'static> {
    Pdu::Payload { announced: true, payload: payload(text) }
}

fn goes(text: &str) -> Pdu<'static> {
    Pdu::Payload { announced: false, payload: payload(text) }
}

fn end(session: u16, serial: u32) -> Pdu<'static> {
    Pdu::EndOfData { session, serial, timing: Timing::default() }
}

fn notify(session: u16, serial: u32) -> Pdu<'static> {
    Pdu::SerialNotify { session, serial }
}

fn changes(all: &[(&str, bool)]) -> Outcome {
    let all = all.iter().map(|(text, announced)| (payload(text), *announced));
    Outcome::Changes(all.collect::<BTreeMap<_, _>>())
}

/// RFC 8210 §8.1 and §8.2.
#[test]
fn everything_is_told_once_and_then_what_changes() {
    let mut world = World::settled();
    assert_eq!(world.session.state(), "up to date");
    assert_eq!(world.hear(&[notify(7, 1)]), [], "that is known");
    assert_eq!(world.hear(&[notify(7, 2)]), [world.asks_for_changes(7, 1)]);
    assert_eq!(world.hear(&[notify(7, 3)]), [], "the answer is under way");
    let told = world.hear(&[response(7), goes(ONE), comes(TWO), end(7, 3)]);
    assert_eq!(told, [changes(&[(ONE, false), (TWO, true)])]);
    world.known = [payload(TWO)].into();
    let (waited, out) = world.wait();
    assert_eq!((waited, out), (Timing::default().refresh, vec![world.asks_for_changes(7, 3)]));
    // What comes and goes in one answer is no change.
    let told = world.hear(&[response(7), comes(ONE), goes(TWO), comes(TWO), goes(ONE), end(7, 4)]);
    assert_eq!(told, [changes(&[])]);
    assert_eq!(world.session.known(), Some((7, 4)));
}

/// RFC 8210 §6: a router may ask more often than a cache wants.
#[test]
fn a_cache_is_asked_at_least_as_often_as_is_said() {
    let mut world = World::settled();
    let soon = Duration::from_secs(60);
    world.session.refresh_within(world.now, Some(soon));
    for serial in 1..3 {
        let (waited, out) = world.wait();
        assert_eq!((waited, out), (soon, vec![world.asks_for_changes(7, serial)]));
        world.hear(&[response(7), end(7, serial + 1)]);
    }
    world.session.refresh_within(world.now, Some(Duration::from_secs(9999)));
    world.wait();
    world.hear(&[response(7), end(7, 4)]);
    assert_eq!(world.wait().0, Timing::default().refresh, "not less often than the cache says");
}

#[test]
fn nothing_counts_before_the_end_of_data() {
    let mut world = World::settled();
    assert_eq!(world.hear(&[notify(7, 2)]).len(), 1);
    assert_eq!(world.hear(&[response(7), goes(ONE), Pdu::RouterKey]), []);
    let mut out = Vec::new();
    world.session.lost(world.now, "it has closed the connection", &mut out);
    assert!(matches!(&out[..], [Outcome::Failed(_)]));
    let (waited, out) = world.wait();
    assert_eq!((waited.as_secs(), out), (5, vec![Outcome::Connect]));
    assert_eq!(world.open(), [world.asks_for_changes(7, 1)], "it goes on where it was");
}

/// RFC 8210 §8.3.
#[test]
fn a_cache_that_cannot_say_what_has_changed_says_everything() {
    let mut world = World::settled();
    world.hear(&[notify(8, 1)]);
    assert_eq!(world.hear(&[Pdu::CacheReset]), [world.query(&Pdu::ResetQuery)]);
    let told = world.hear(&[response(8), comes(TWO), end(8, 1)]);
    assert_eq!(told, [Outcome::Everything(vec![payload(TWO)])]);
    assert_eq!(world.session.known(), Some((8, 1)));
}

/// RFC 8210 §8.4.
#[test]
fn a_cache_without_data_is_asked_again() {
    let mut world = World::new();
    let nothing = Pdu::ErrorReport { code: ErrorCode::NoDataAvailable, pdu: b"", text: b"soon" };
    let mut waits = Vec::new();
    for _ in 0..9 {
        let out = world.hear(std::slice::from_ref(&nothing));
        assert_eq!(out, [Outcome::Failed("it says: no data available: soon".to_owned())]);
        assert_eq!(world.session.state(), "without data");
        let (waited, out) = world.wait();
        assert_eq!(out, [world.query(&Pdu::ResetQuery)], "on the same connection");
        waits.push(waited.as_secs());
    }
    assert_eq!(waits, [5, 10, 20, 40, 80, 160, 320, 600, 600]);
}

/// RFC 8210 §6: what was told counts for so long.
#[test]
fn what_is_old_does_not_count() {
    let mut world = World::settled();
    let mut out = Vec::new();
    world.session.lost(world.now, "it has closed the connection", &mut out);
    let told = world.now;
    let expired = loop {
        let (_, out) = world.wait();
        if out.contains(&Outcome::Expired) {
            break world.now;
        }
        let mut out = Vec::new();
        world.session.lost(world.now, "it cannot be connected to", &mut out);
    };
    assert_eq!(expired.since(told), Timing::default().expire);
    assert_eq!((world.session.known(), world.session.expires()), (None, None));
    assert_eq!(world.open(), [world.query(&Pdu::ResetQuery)]);
}

#[test]
fn who_does_not_answer_is_left() {
    let mut world = World::new();
    let (waited, out) = world.wait();
    assert_eq!(waited.as_secs(), 60);
    assert!(matches!(&out[..], [Outcome::Close, Outcome::Failed(_)]), "{out:?}");
    let mut world = World::new();
    world.now += Duration::from_secs(59);
    assert_eq!(world.hear(&[notify(7, 1)]), [], "that is no answer");
    assert_eq!(world.wait().0.as_secs(), 1);
    let mut world = World::new();
    assert_eq!(world.hear(&[response(7)]), []);
    for _ in 0..5 {
        world.now += Duration::from_secs(59);
        assert_eq!(world.hear(&[comes(ONE)]), [], "it goes on");
        assert_eq!(world.tick(), []);
    }
}

/// Some caches that begin anew do not say Cache Reset.
#[test]
fn who_cannot_say_what_has_changed_is_asked_for_everything_and_what_it_has_told_counts_on() {
    let asks = |world: &mut World| {
        let mut out = Vec::new();
        world.session.lost(world.now, "it has closed the connection", &mut out);
        world.wait();
        assert_eq!(world.open(), [world.asks_for_changes(7, 1)]);
    };
    let everything = |world: &mut World| {
        assert_eq!(world.wait().1, [Outcome::Connect]);
        assert_eq!(world.open(), [world.query(&Pdu::ResetQuery)]);
        assert!(world.session.expires().is_some());
    };
    let mut world = World::settled();
    asks(&mut world);
    let code = ErrorCode::CorruptData;
    let out = world.hear(&[Pdu::ErrorReport { code, pdu: b"", text: b"another session" }]);
    assert!(matches!(&out[..], [Outcome::Close, Outcome::Failed(_)]), "{out:?}");
    everything(&mut world);
    // Or close the connection.
    let mut world = World::settled();
    asks(&mut world);
    world.session.lost(world.now, "it has closed the connection", &mut Vec::new());
    everything(&mut world);
    // Or have become older.
    let mut world = World::settled();
    asks(&mut world);
    world.version = Version::V0;
    let out = world.hear(&[response(7)]);
    world.assert_ended(&out, ErrorCode::UnexpectedVersion);
    everything(&mut world);
}

#[test]
fn changes_of_what_is_too_old_are_not_taken() {
    let begins: [&[Pdu<'_>]; 2] = [&[], &[response(7)]];
    for begin in begins {
        let mut world = World::settled();
        world.now = world.session.expires().unwrap() - Duration::from_secs(1);
        assert_eq!(world.tick(), [world.asks_for_changes(7, 1)]);
        world.hear(begin);
        world.now += Duration::from_secs(1);
        let out = world.tick();
        assert!(
            matches!(&out[..], [Outcome::Expired, Outcome::Close, Outcome::Failed(_)]),
            "{out:?}"
        );
        world.wait();
        assert_eq!(world.open(), [world.query(&Pdu::ResetQuery)]);
    }
}

#[test]
fn what_a_cache_comes_to_while_it_answers_is_asked_for_behind_it() {
    let mut world = World::settled();
    world.hear(&[notify(7, 2)]);
    assert_eq!(world.hear(&[response(7), comes(TWO), notify(7, 3)]), []);
    let out = world.hear(&[end(7, 2)]);
    assert_eq!(out, [changes(&[(TWO, true)]), world.asks_for_changes(7, 2)]);
}

#[test]
fn a_cache_that_had_no_data_says_when_it_has() {
    let mut world = World::new();
    world.hear(&[Pdu::ErrorReport { code: ErrorCode::NoDataAvailable, pdu: b"", text: b"" }]);
    assert_eq!(world.hear(&[notify(7, 1)]), [world.query(&Pdu::ResetQuery)]);
}

#[test]
fn more_than_there_can_be_is_not_taken() {
    for (more, is_taken) in [(1, true), (0, false)] {
        let mut world = World::settled();
        world.others = MOST - 1 - more;
        world.hear(&[notify(7, 2)]);
        let out = world.hear(&[response(7), comes(TWO), end(7, 2)]);
        assert_eq!(matches!(&out[..], [Outcome::Changes(_)]), is_taken, "{out:?}");
    }
}

/// RFC 8210 §7.
#[test]
fn both_sides_agree_on_a_version() {
    // By an answer in the older version.
    let mut world = World::new();
    world.version = Version::V0;
    let told = world.hear(&[response(7), comes(ONE), end(7, 1)]);
    assert_eq!(told, [Outcome::Everything(vec![payload(ONE)])]);
    assert_eq!(world.session.version(), Version::V0);
    assert_eq!(world.hear(&[notify(7, 2)]), [world.asks_for_changes(7, 1)]);
    // By an error in it: the router comes back at once.
    let mut world = World::new();
    world.version = Version::V0;
    let code = ErrorCode::UnsupportedVersion;
    assert_eq!(world.hear(&[Pdu::ErrorReport { code, pdu: b"", text: b"" }]), [Outcome::Close]);
    assert_eq!(
        (world.wait(), world.open()),
        ((Duration::ZERO, vec![Outcome::Connect]), vec![world.query(&Pdu::ResetQuery)])
    );
    // What is said before the first answer is no part of it.
    let mut world = World::new();
    world.version = Version::V0;
    assert_eq!(world.hear(&[notify(7, 1)]), []);
    assert_eq!(world.session.version(), Version::V1);
    // Then it stays.
    let mut world = World::settled();
    world.version = Version::V0;
    let out = world.hear(&[notify(7, 2)]);
    world.assert_ended(&out, ErrorCode::UnexpectedVersion);
}

#[test]
fn what_makes_no_sense_ends_the_session_and_everything_is_asked_for() {
    let mut settled = World::settled();
    settled.hear(&[notify(7, 2)]);
    for (pdus, code) in [
        (vec![response(8)], ErrorCode::CorruptData),
        (vec![response(7), response(7)], ErrorCode::CorruptData),
        (vec![comes(TWO)], ErrorCode::CorruptData),
        (vec![response(7), end(8, 2)], ErrorCode::CorruptData),
        (vec![Pdu::ResetQuery], ErrorCode::CorruptData),
        (vec![response(7), comes(ONE), end(7, 2)], ErrorCode::DuplicateAnnouncement),
        (vec![response(7), comes(TWO), comes(TWO), end(7, 2)], ErrorCode::DuplicateAnnouncement),
        (vec![response(7), goes(TWO), end(7, 2)], ErrorCode::UnknownWithdrawal),
        (vec![response(7), goes(ONE), goes(ONE), end(7, 2)], ErrorCode::UnknownWithdrawal),
    ] {
        let mut world = World::settled();
        world.hear(&[notify(7, 2)]);
        let out = world.hear(&pdus);
        world.assert_ended(&out, code);
        assert_eq!(world.wait().1, [Outcome::Connect]);
        assert_eq!(world.open(), [world.query(&Pdu::ResetQuery)]);
    }
    let mut world = World::new();
    let out = world.hear(&[response(7), comes(ONE), comes(ONE), end(7, 1)]);
    world.assert_ended(&out, ErrorCode::DuplicateAnnouncement);
    let mut world = World::new();
    let out = world.hear(&[response(7), goes(ONE), end(7, 1)]);
    world.assert_ended(&out, ErrorCode::UnknownWithdrawal);
    let mut world = World::new();
    let out = world.hear_bytes(&[1, 200, 0, 0, 0, 0, 0, 8, 9, 9]);
    world.assert_ended(&out, ErrorCode::UnsupportedType);
    // A version that is not known is no answer to ours.
    let mut world = World::new();
    let out = world.hear_bytes(&[2, 3, 0, 0, 0, 0, 0, 8]);
    world.assert_ended(&out, ErrorCode::UnsupportedVersion);
}

/// RFC 8210 §5.11: no error is said about an error.
#[test]
fn who_is_told_of_an_error_says_nothing_about_it() {
    let mut world = World::settled();
    let code = ErrorCode::InternalError;
    let out = world.hear(&[Pdu::ErrorReport { code, pdu: b"", text: "bad\nday".as_bytes() }]);
    let why = "it says: internal error: bad\\nday".to_owned();
    assert_eq!(out, [Outcome::Close, Outcome::Failed(why)]);
    assert_eq!(world.session.known(), Some((7, 1)), "what was told was right");
    // Nor about one that makes no sense.
    let mut world = World::settled();
    let out = world.hear_bytes(&[1, 10, 0, 0, 0, 0, 0, 16, 0, 0, 0, 9, 0, 0, 0, 0]);
    assert!(matches!(&out[..], [Outcome::Close, Outcome::Failed(_)]), "{out:?}");
}
