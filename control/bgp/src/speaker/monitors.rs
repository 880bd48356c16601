//! Readers of what peers say: each hears of all sessions and of all paths that there are, and then of what happens.
//!
//! Reference: RFC 7854 §3 (monitoring stations), §5 (route monitoring). Who calls is the process that has connections to stations.
//!
//! What a peer says is passed on as it comes. Beside it the table is walked once, as far as readers can take it: a path that has come
//! meanwhile is told twice, which says the same. So nothing is kept for a reader but what it has not taken yet. If
//! that becomes too much it begins anew, and is told so.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use weft_base::Instant;
use weft_routing::ip::Version;
use weft_routing::{Candidate, OriginId, Prefix};
use weft_xrl::{Binary, Called, Output, XrlError};

use super::peer::Peer;
use super::up::Up;
use crate::bmp::{Subject, cut};
use crate::incoming::{Announcer, family, version};
use crate::interface::{Monitor, MonitorReply};
use crate::routes::attribute_sets::AttributesId;
use crate::routes::{Path, Routes, Swept};
use crate::wire::{
    Attributes, Context, MAX_EXTENDED_MESSAGE, MAX_MESSAGE, Update, UpdateEncoder, end_of_rib,
    withdraw,
};

/// The highest number of a reader.
const LAST_READER: u32 = 15;
/// The longest that a call waits, in milliseconds.
const LONGEST: u32 = 60_000;
/// Bytes of an answer at most; at least one message, which has less than 128 KiB.
const MOST: u32 = 1 << 20;
/// What a reader may leave untaken, in bytes.
const UNTAKEN: usize = if cfg!(test) { 64 << 10 } else { 16 << 20 };
/// Destinations that are looked at together: paths with the same attributes are told together.
const SLICE: u32 = 512;

/// A peer with which there is a session.
pub(super) struct Monitored {
    pub(super) subject: Subject,
    /// Its Peer Up message.
    pub(super) is_up: Vec<u8>,
    /// Families of which it has announced all that it had.
    pub(super) complete: Vec<Version>,
}

/// All of them.
pub(super) type Sessions = BTreeMap<OriginId, Monitored>;

impl Up {
    /// The peer at this address, as messages say whom they are about.
    pub(super) fn subject(&self, address: IpAddr, routes: &Routes) -> Subject {
        let Announcer { origin, context, remote_as, .. } = self.announcer;
        let identifier = routes.source(origin).router_id;
        Subject { address, system: remote_as, identifier, context }
    }
}

impl Peer {
    /// Its session, if there is one.
    pub(super) fn monitored(&self, routes: &Routes) -> Option<Monitored> {
        let up = self.up.as_ref()?;
        let (own, its) = self.session.opens()?;
        let [local, peer] = self.connection()?;
        let subject = up.subject(self.address, routes);
        let mut is_up = Vec::new();
        subject.up(local, peer.port(), [own, its], &mut is_up);
        let complete = up.complete.iter().copied().collect();
        Some(Monitored { subject, is_up, complete })
    }
}

#[derive(Debug)]
struct Waiting {
    called: Called,
    at_most: usize,
    until: Instant,
}

#[derive(Debug)]
struct Reader {
    /// What it has not taken yet.
    messages: Vec<u8>,
    /// The next destination of which it is told what is there; none if it was told of all.
    place: Option<(Version, u32)>,
    /// It was not told yet that this is a beginning, or that it was told everything.
    again: bool,
    complete: bool,
    /// There was too much.
    is_lost: bool,
    waiting: Option<Waiting>,
}

impl Reader {
    /// One that has everything before it.
    fn new(sessions: &Sessions) -> Self {
        Self {
            messages: sessions.values().flat_map(|one| &one.is_up).copied().collect(),
            place: Some((Version::V4, 0)),
            again: true,
            complete: false,
            is_lost: false,
            waiting: None,
        }
    }

    fn is_full(&self) -> bool {
        self.waiting.as_ref().is_none_or(|waiting| self.messages.len() >= waiting.at_most)
    }

    /// Tells of what is there, until that is enough for an answer.
    fn walk(&mut self, sessions: &Sessions, routes: &Routes) {
        while let Some((version, from)) = self.place.filter(|_| !self.is_full()) {
            let end = routes.table.end_of_numbers(version);
            let until = end.min(from.saturating_add(SLICE));
            tell(sessions, (version, from..until), routes, &mut self.messages);
            self.place = match until < end {
                true => Some((version, until)),
                false => version.next().map(|version| (version, 0)),
            };
            if self.place.is_none() {
                for one in sessions.values() {
                    let ends = one.complete.iter().map(|version| end_of_rib(family(*version)));
                    ends.for_each(|end| one.subject.could_send(&end, &mut self.messages));
                }
                self.complete = true;
            }
        }
    }

    /// Answers the call that waits, if there is something to say, or it has waited long enough.
    fn answer(&mut self, now: Instant, out: &mut Vec<Output>) {
        let has_news = self.again || self.complete || !self.messages.is_empty();
        let is_due = |waiting: &mut Waiting| has_news || waiting.until <= now;
        let Some(Waiting { called, at_most, .. }) = self.waiting.take_if(is_due) else { return };
        let behind = self.messages.split_off(cut(&self.messages, at_most));
        let messages = Binary(std::mem::replace(&mut self.messages, behind));
        let complete = self.complete && self.messages.is_empty();
        self.complete &= !complete;
        let again = std::mem::take(&mut self.again);
        out.push(called.answer(Ok(MonitorReply { again, messages, complete })));
    }
}

/// All of them, by their sessions and their own numbers.
#[derive(Debug, Default)]
pub(super) struct Monitors(BTreeMap<(u64, u32), Reader>);

impl Monitors {
    /// Whether somebody reads.
    pub(super) fn is_on(&self) -> bool {
        !self.0.is_empty()
    }

    /// Somebody reads on, or begins.
    pub(super) fn ask(
        &mut self,
        now: Instant,
        called: Called,
        request: &Monitor,
        sessions: &Sessions,
        out: &mut Vec<Output>,
    ) {
        let Monitor { reader, begin, at_most, wait } = *request;
        if reader > LAST_READER {
            let note = format!("a reader has a number from 0 to {LAST_READER}, not {reader}");
            return out.push(called.fail(XrlError::bad_args(note)));
        }
        let place = (called.session, reader);
        let until = now + Duration::from_millis(wait.min(LONGEST).into());
        let at_most = at_most.clamp(1, MOST) as usize;
        if begin || !self.0.contains_key(&place) {
            self.0.insert(place, Reader::new(sessions));
        }
        if let Some(reader) = self.0.get_mut(&place) {
            reader.waiting = Some(Waiting { called, at_most, until });
        }
    }

    /// Whoever has called from there is gone.
    pub(super) fn left(&mut self, session: u64) {
        self.0.retain(|(of, _), _| *of != session);
    }

    /// Whether there is something to be told for which the sessions are needed.
    pub(super) fn needs_sessions(&self) -> bool {
        let needs = |one: &Reader| one.is_lost || (one.place.is_some() && !one.is_full());
        self.0.values().any(|one| one.waiting.is_some() && needs(one))
    }

    /// Tells those who wait; `sessions` are all that there are, if they are needed.
    pub(super) fn tell(
        &mut self,
        now: Instant,
        sessions: &Sessions,
        routes: &Routes,
        out: &mut Vec<Output>,
    ) {
        for reader in self.0.values_mut().filter(|one| one.waiting.is_some()) {
            if reader.is_lost {
                let waiting = reader.waiting.take();
                *reader = Reader { waiting, ..Reader::new(sessions) };
            }
            reader.walk(sessions, routes);
            reader.answer(now, out);
        }
    }

    /// When somebody is to be answered at the latest.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.0.values().filter_map(|one| one.waiting.as_ref()).map(|waiting| waiting.until).min()
    }

    /// All hear this.
    pub(super) fn say(&mut self, say: impl FnOnce(&mut Vec<u8>)) {
        if !self.is_on() {
            return;
        }
        let mut messages = Vec::new();
        say(&mut messages);
        for reader in self.0.values_mut().filter(|one| !one.is_lost) {
            if reader.messages.len() + messages.len() > UNTAKEN {
                (reader.messages, reader.is_lost) = (Vec::new(), true);
            } else {
                reader.messages.extend(&messages);
            }
        }
    }

    /// A peer has sent an UPDATE. If that is not what counts, since something is wrong with it, all hear what counts.
    pub(super) fn update(
        &mut self,
        (origin, subject): (OriginId, &Subject),
        body: &[u8],
        is_right: bool,
        routes: &Routes,
    ) {
        self.say(|out| match is_right {
            true => subject.has_sent(body, out),
            false => {
                let Ok(update) = Update::new_checked(body, &subject.context) else { return };
                let come = update.reach().map(|reach| (reach.family, reach.nlri));
                for (family, nlri) in update.withdrawn().chain(come) {
                    let Some(version) = version(family) else { continue };
                    for (path, prefix) in nlri {
                        let one = Swept { origin, version, prefix, path };
                        say_as_it_is(&one, subject, routes, out);
                    }
                }
            }
        });
    }

    /// Paths are gone that peers with sessions have not withdrawn.
    pub(super) fn swept(&mut self, all: &[Swept], sessions: &Sessions, routes: &Routes) {
        self.say(|out| {
            for one in all {
                if let Some(session) = sessions.get(&one.origin) {
                    say_as_it_is(one, &session.subject, routes, out);
                }
            }
        });
    }
}

/// How such a peer would send what it has announced.
fn sending(context: &Context, send_limit: u16) -> Context {
    Context { add_path_send: context.add_path_receive, send_limit, ..*context }
}

/// Messages with paths that are alike; none if there is no message that could have them.
fn announce(
    attributes: &Attributes,
    version: Version,
    subject: &Subject,
    prefixes: &[(u32, Prefix)],
    out: &mut Vec<u8>,
) {
    let encoder =
        |limit| UpdateEncoder::new(attributes, family(version), &sending(&subject.context, limit));
    let encoder = encoder(MAX_MESSAGE).or_else(|_| encoder(MAX_EXTENDED_MESSAGE));
    if let Ok(encoder) = encoder {
        let mut messages = Vec::new();
        encoder.all(prefixes.iter().copied(), &mut messages);
        subject.could_send(&messages, out);
    }
}

/// What is there of a path, or that it is not.
fn say_as_it_is(one: &Swept, subject: &Subject, routes: &Routes, out: &mut Vec<u8>) {
    let Swept { origin, version, prefix, path } = *one;
    let is_it = |one: &&Candidate<Path>| (one.origin, one.path) == (origin, path);
    let number = routes.table.number(version, &prefix);
    let found = number.and_then(|number| routes.table.candidates(version, number).find(is_it));
    match found.filter(|one| !routes.table.is_stale(version, one)) {
        Some(one) => {
            let attributes = routes.sets.get(one.route.received).unpack();
            announce(&attributes, version, subject, &[(path, prefix)], out);
        }
        None => {
            let context = sending(&subject.context, MAX_MESSAGE);
            let mut messages = Vec::new();
            withdraw(family(version), &context, [(path, prefix)], &mut messages);
            subject.could_send(&messages, out);
        }
    }
}

/// Tells of the paths to some destinations that peers with sessions have announced in these.
fn tell(
    sessions: &Sessions,
    (version, numbers): (Version, std::ops::Range<u32>),
    routes: &Routes,
    out: &mut Vec<u8>,
) {
    let mut alike: BTreeMap<(OriginId, AttributesId), Vec<(u32, Prefix)>> = BTreeMap::new();
    for number in numbers {
        let all = routes.table.candidates(version, number);
        for one in all.filter(|one| !routes.table.is_stale(version, one)) {
            let prefix = routes.table.news(version, number).prefix;
            alike.entry((one.origin, one.route.received)).or_default().push((one.path, prefix));
        }
    }
    for ((origin, received), prefixes) in alike {
        let of = sessions.get(&origin);
        let exchanges = |one: &&Monitored| one.subject.context.families.contains(family(version));
        if let Some(session) = of.filter(exchanges) {
            let attributes = routes.sets.get(received).unpack();
            announce(&attributes, version, &session.subject, &prefixes, out);
        }
    }
}
