//! Readers of what peers say: each hears of all sessions and of all paths that there are, and then of what happens.
//!
//! Reference: RFC 7854 §3 (monitoring stations), §5 (route monitoring). Who calls is the process that has connections to stations.
//!
//! What a peer says is passed on as it comes. Beside it the table is walked once, as far as readers can take it: a path that has come
//! meanwhile is told twice, which says the same. So nothing is kept for a reader but what it has not taken yet. If
//! that becomes too much it begins anew, and is told so; one that has not asked for long is forgotten.

use std::collections::BTreeMap;
use std::time::Duration;

use weft_base::Instant;
use weft_routing::ip::Version;
use weft_xrl::{Binary, Called, Output, XrlError};

use super::monitored::{Sessions, have_gone, walk};
use crate::bmp::cut;
use crate::interface::{Monitor, MonitorReply};
use crate::routes::{Routes, Swept};

/// The highest number of a reader.
const LAST_READER: u32 = 15;
/// The longest that a call waits, in milliseconds.
const LONGEST: u32 = 60_000;
/// How long a reader is kept that does not ask.
const KEPT: Duration = Duration::from_secs(60);
/// Bytes of an answer at most; at least one message, which has less than 128 KiB.
const MOST: u32 = 1 << 20;
/// What a reader may leave untaken, in bytes.
const UNTAKEN: usize = if cfg!(test) { 64 << 10 } else { 16 << 20 };
/// Steps of the walk over the table between two events: a millisecond or two.
const STEPS: usize = 4;

#[derive(Debug)]
struct Waiting {
    called: Called,
    at_most: usize,
    until: Instant,
}

impl Waiting {
    fn answer(&self, reply: MonitorReply) -> Output {
        self.called.answer(Ok(reply))
    }
}

/// How far a reader has come with what there was at its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Walk {
    /// It has everything before it, sessions, too: it begins, or has left too much untaken.
    Begins,
    /// The next destination of which it is told what is there.
    At(Version, u32),
    /// It was told everything, which is to be said.
    Ends,
    Over,
}

#[derive(Debug)]
struct Reader {
    /// What it has not taken yet, from a place on.
    messages: Vec<u8>,
    from: usize,
    walk: Walk,
    /// That this is a beginning was not told yet.
    again: bool,
    waiting: Option<Waiting>,
    /// When it has asked last, or was answered.
    heard: Instant,
}

impl Reader {
    fn new(now: Instant) -> Self {
        Self {
            messages: Vec::new(),
            from: 0,
            walk: Walk::Begins,
            again: true,
            waiting: None,
            heard: now,
        }
    }

    /// Forgets everything, and has everything before it.
    fn begin(&mut self) {
        (self.messages, self.from, self.walk, self.again) = (Vec::new(), 0, Walk::Begins, true);
    }

    fn untaken(&self) -> usize {
        self.messages.len() - self.from
    }

    fn is_full(&self) -> bool {
        self.waiting.as_ref().is_none_or(|waiting| self.untaken() >= waiting.at_most)
    }

    /// Whether it waits for the walk to go on.
    fn has_work(&self) -> bool {
        matches!(self.walk, Walk::Begins | Walk::At(..)) && !self.is_full()
    }

    /// Goes on with the walk, some steps, unless there is enough for an answer.
    fn go_on(&mut self, sessions: &Sessions, routes: &Routes) {
        for _ in 0..STEPS {
            if !self.has_work() {
                return;
            }
            self.walk = match self.walk {
                Walk::Begins => {
                    let all = sessions.values().flat_map(|one| &*one.introduction);
                    self.messages.extend(all);
                    Walk::At(Version::V4, 0)
                }
                Walk::At(version, from) => {
                    let next = walk(sessions, version, from, routes, &mut self.messages);
                    let next = next.map(|number| (version, number));
                    match next.or_else(|| version.next().map(|version| (version, 0))) {
                        Some((version, number)) => Walk::At(version, number),
                        None => {
                            sessions.values().for_each(|one| one.end(&mut self.messages));
                            Walk::Ends
                        }
                    }
                }
                walk => walk,
            };
        }
    }

    /// Answers the call that waits, if there is something to say, or it has waited long enough.
    fn answer(&mut self, now: Instant, out: &mut Vec<Output>) {
        let has_news = self.walk == Walk::Ends || self.untaken() > 0;
        let is_due = |waiting: &mut Waiting| has_news || waiting.until <= now;
        let Some(waiting) = self.waiting.take_if(is_due) else { return };
        self.heard = now;
        let rest = &self.messages[self.from..];
        let end = cut(rest, waiting.at_most);
        let messages = Binary(rest[..end].to_vec());
        self.from += end;
        let complete = self.walk == Walk::Ends && self.untaken() == 0;
        if complete {
            self.walk = Walk::Over;
        }
        // What is taken goes when it is more than what is not.
        if self.from > self.messages.len() / 2 {
            self.messages.drain(..std::mem::take(&mut self.from));
        }
        let again = std::mem::take(&mut self.again);
        out.push(waiting.answer(MonitorReply { again, messages, complete }));
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

    /// Somebody reads on, or begins. An earlier call of the same is answered, with nothing.
    pub(super) fn ask(
        &mut self,
        now: Instant,
        called: Called,
        request: &Monitor,
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
        let reader = self.0.entry(place).or_insert_with(|| Reader::new(now));
        if begin {
            reader.begin();
        }
        reader.heard = now;
        if let Some(earlier) = reader.waiting.replace(Waiting { called, at_most, until }) {
            let (again, messages) = (false, Binary(Vec::new()));
            out.push(earlier.answer(MonitorReply { again, messages, complete: false }));
        }
    }

    /// Whoever has called from there is gone.
    pub(super) fn left(&mut self, session: u64) {
        self.0.retain(|(of, _), _| *of != session);
    }

    /// Whether there is something to be told for which the sessions are needed.
    pub(super) fn has_work(&self) -> bool {
        self.0.values().any(Reader::has_work)
    }

    /// Tells those who wait; `sessions` are all that there are, if they are needed.
    pub(super) fn tell(
        &mut self,
        now: Instant,
        sessions: &Sessions,
        routes: &Routes,
        out: &mut Vec<Output>,
    ) {
        self.0.retain(|_, one| one.waiting.is_some() || one.heard + KEPT > now);
        for reader in self.0.values_mut().filter(|one| one.waiting.is_some()) {
            reader.go_on(sessions, routes);
            reader.answer(now, out);
        }
    }

    /// When something is to be done at the latest.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let of = |one: &Reader| one.waiting.as_ref().map_or(one.heard + KEPT, |one| one.until);
        self.0.values().map(of).min()
    }

    /// All hear this who have begun.
    pub(super) fn say(&mut self, say: impl FnOnce(&mut Vec<u8>)) {
        if self.0.values().all(|one| one.walk == Walk::Begins) {
            return;
        }
        let mut messages = Vec::new();
        say(&mut messages);
        for reader in self.0.values_mut().filter(|one| one.walk != Walk::Begins) {
            if reader.untaken() + messages.len() > UNTAKEN {
                reader.begin();
            } else {
                reader.messages.extend(&messages);
            }
        }
    }

    /// Paths have gone that peers with sessions have not withdrawn.
    pub(super) fn swept(&mut self, all: &[Swept], sessions: &Sessions, routes: &Routes) {
        self.say(|out| have_gone(all, sessions, routes, out));
    }
}
