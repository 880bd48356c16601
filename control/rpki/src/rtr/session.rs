//! The life of a session with a cache.
//!
//! Reference: RFC 8210 §6 (times), §7 (versions), §8 (what follows what), §12 (errors).
//!
//! A router asks for everything once, and for what has changed when the cache says that there is something, or when it
//! has been still for a while. What it is told counts when all of it was told, and not before. A connection that ends takes
//! nothing with it: the router comes back with the number of what it was told, until that is too old to count. If the cache
//! cannot say what has changed since then, it is asked for everything.

use std::collections::BTreeMap;
use std::time::Duration;

use weft_base::Instant;

use super::cutter::Cutter;
use super::error::ErrorCode;
use super::pdu::{Pdu, Timing, Version, is_error_report};
use crate::payload::Payload;

/// After how long without a word an answer does not come any more.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long to wait after the first failure; twice as long after each other one, up to the cache's own time.
const FIRST_RETRY: Duration = Duration::from_secs(5);
/// The most payloads that are taken of a cache: there are less than a million.
pub(super) const MOST: usize = 2 << 20;

/// What a session wants to be done, or has found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Connect to the cache.
    Connect,
    /// Send it this.
    Send(Vec<u8>),
    /// Close the connection.
    Close,
    /// All that the cache has to say is this, in order.
    Everything(Vec<Payload>),
    /// These come (true) and go.
    Changes(BTreeMap<Payload, bool>),
    /// What was told is too old to count.
    Expired,
    /// For people: something went wrong.
    Failed(String),
}

/// How far a session is.
#[derive(Debug, PartialEq, Eq)]
enum State {
    /// Nothing is done until then.
    Idle(Instant),
    Connecting,
    /// The cache was asked, and answers until then.
    Asked(Question, Instant),
    /// It answers.
    Told(Question, Answer, Instant),
    /// It was told all; it is asked again then.
    Still(Instant),
}

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Everything,
    Changes,
}

/// What is known of a cache: how many payloads it has announced, and which.
pub(crate) struct Held<H> {
    pub(crate) count: usize,
    pub(crate) holds: H,
}

/// What was answered so far.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    session: u16,
    payloads: Vec<(bool, Payload)>,
}

/// Why a session ends.
struct Fault {
    code: ErrorCode,
    text: String,
}

fn fault(code: ErrorCode, text: impl Into<String>) -> Fault {
    Fault { code, text: text.into() }
}

/// A session with a cache.
#[derive(Debug)]
pub(crate) struct Session {
    state: State,
    version: Version,
    /// Whether the cache speaks this version, too.
    is_agreed: bool,
    /// What was told last: in which life of the cache, and what it had come to.
    known: Option<(u16, u32)>,
    /// What the cache has said that it has come to, while it was answering.
    notified: Option<(u16, u32)>,
    timing: Timing,
    /// It is asked at least so often, if the cache itself would be content with less.
    refresh: Option<Duration>,
    /// When that is too old to count.
    expires: Option<Instant>,
    /// Failures since it was told all.
    failures: u32,
    cutter: Cutter,
}

impl Session {
    /// One that begins at once.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            state: State::Idle(now),
            version: Version::V1,
            is_agreed: false,
            known: None,
            notified: None,
            timing: Timing::default(),
            refresh: None,
            expires: None,
            failures: 0,
            cutter: Cutter::default(),
        }
    }

    /// The cache is asked at least so often; without it as often as it says itself (RFC 8210 §6: a router may ask more often).
    pub(crate) fn refresh_within(&mut self, now: Instant, refresh: Option<Duration>) {
        self.refresh = refresh;
        if let (State::Still(until), Some(refresh)) = (&mut self.state, refresh) {
            *until = (*until).min(now + refresh);
        }
    }

    fn refresh_of(&self, timing: Timing) -> Duration {
        self.refresh.map_or(timing.refresh, |most| most.min(timing.refresh))
    }

    /// How far it is, in a word.
    pub(crate) fn state(&self) -> &'static str {
        match self.state {
            State::Idle(_) => "idle",
            State::Connecting => "connecting",
            State::Asked(..) => "asked",
            State::Told(..) => "told",
            State::Still(_) if self.known.is_some() => "up to date",
            State::Still(_) => "without data",
        }
    }

    /// The version that is spoken.
    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// What was told last: in which life of the cache, and what it had come to.
    pub(crate) fn known(&self) -> Option<(u16, u32)> {
        self.known
    }

    /// When what was told is too old to count.
    pub(crate) fn expires(&self) -> Option<Instant> {
        self.expires
    }

    /// When something is to be done at the latest.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let next = match self.state {
            State::Idle(then) | State::Still(then) => Some(then),
            State::Asked(_, then) | State::Told(_, _, then) => Some(then),
            State::Connecting => None,
        };
        next.into_iter().chain(self.expires).min()
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, now: Instant, out: &mut Vec<Outcome>) {
        if self.expires.is_some_and(|then| then <= now) {
            (self.expires, self.known) = (None, None);
            out.push(Outcome::Expired);
            // Changes of what is not known any more are no use.
            if self.is_about_changes() {
                out.push(Outcome::Close);
                return self.lost(now, "what it has told is too old to be changed", out);
            }
        }
        match self.state {
            State::Idle(then) if then <= now => {
                self.state = State::Connecting;
                out.push(Outcome::Connect);
            }
            State::Still(then) if then <= now => self.ask(now, out),
            State::Asked(_, then) | State::Told(_, _, then) if then <= now => {
                out.push(Outcome::Close);
                let silence = PATIENCE.as_secs();
                self.lost(now, &format!("it has not answered for {silence} seconds"), out);
            }
            _ => {}
        }
    }

    /// Whether what is asked, or answered, is what has changed.
    fn is_about_changes(&self) -> bool {
        matches!(
            self.state,
            State::Asked(Question::Changes, _) | State::Told(Question::Changes, ..)
        )
    }

    /// There is a connection.
    pub(crate) fn opened(&mut self, now: Instant, out: &mut Vec<Outcome>) {
        (self.cutter, self.is_agreed, self.notified) = (Cutter::default(), false, None);
        self.ask(now, out);
    }

    /// There is none, or not any more.
    pub(crate) fn lost(&mut self, now: Instant, why: &str, out: &mut Vec<Outcome>) {
        // Who does not answer what has changed since then may not know then any more: everything is asked for.
        if matches!(self.state, State::Asked(Question::Changes, _)) {
            self.known = None;
        }
        self.state = State::Idle(self.again(now));
        out.push(Outcome::Failed(why.to_owned()));
    }

    /// When to try again after another failure.
    fn again(&mut self, now: Instant) -> Instant {
        let doubled = FIRST_RETRY.saturating_mul(1 << self.failures.min(16));
        self.failures += 1;
        now + doubled.min(self.timing.retry.max(FIRST_RETRY))
    }

    fn ask(&mut self, now: Instant, out: &mut Vec<Outcome>) {
        let (question, pdu) = match self.known {
            Some((session, serial)) => (Question::Changes, Pdu::SerialQuery { session, serial }),
            None => (Question::Everything, Pdu::ResetQuery),
        };
        self.state = State::Asked(question, now + PATIENCE);
        self.send(&pdu, out);
    }

    fn send(&self, pdu: &Pdu<'_>, out: &mut Vec<Outcome>) {
        let mut bytes = Vec::new();
        pdu.emit(self.version, &mut bytes);
        out.push(Outcome::Send(bytes));
    }

    /// The cache has sent this.
    pub(crate) fn received(
        &mut self,
        now: Instant,
        bytes: &[u8],
        held: &Held<impl Fn(&Payload) -> bool>,
        out: &mut Vec<Outcome>,
    ) {
        if let State::Told(_, _, until) = &mut self.state {
            *until = now + PATIENCE;
        }
        let mut cutter = std::mem::take(&mut self.cutter);
        cutter.push(bytes);
        while let Some(bytes) = cutter.take() {
            if let Err(Fault { code, text }) = self.hear(now, bytes, held, out) {
                return self.end(now, bytes, (code, text), out);
            }
            if matches!(self.state, State::Idle(_)) {
                return;
            }
        }
        self.cutter = cutter;
    }

    /// The session ends: the cache is told why, unless it was it who said something.
    fn end(
        &mut self,
        now: Instant,
        bytes: &[u8],
        fault: (ErrorCode, String),
        out: &mut Vec<Outcome>,
    ) {
        let (code, text) = fault;
        if is_error_report(bytes) {
            out.push(Outcome::Close);
            return self.lost(now, &text, out);
        }
        self.send(&Pdu::ErrorReport { code, pdu: bytes, text: text.as_bytes() }, out);
        out.push(Outcome::Close);
        // What it says does not fit to what was told: everything is asked for.
        self.known = None;
        self.lost(now, &format!("{code}: {text}"), out);
    }

    fn hear(
        &mut self,
        now: Instant,
        bytes: &[u8],
        held: &Held<impl Fn(&Payload) -> bool>,
        out: &mut Vec<Outcome>,
    ) -> Result<(), Fault> {
        let (version, pdu) =
            Pdu::parse(bytes).map_err(|error| fault(error.code(), error.to_string()))?;
        // RFC 8210 §7: what comes before the answer to the first question is no part of the agreement.
        if let (Pdu::SerialNotify { .. }, false) = (&pdu, self.is_agreed) {
            return Ok(());
        }
        if let Pdu::ErrorReport { code, text, .. } = pdu {
            return self.refused(now, (version, code), text, out);
        }
        if version != self.version {
            if self.is_agreed || version > self.version {
                let text = format!("version {version} in a session of version {}", self.version);
                return Err(fault(ErrorCode::UnexpectedVersion, text));
            }
            // RFC 8210 §5.1: what was told in another version is no beginning for this one.
            if self.is_about_changes() {
                self.version = version;
                let text = "the answer is of another version than what it would change";
                return Err(fault(ErrorCode::UnexpectedVersion, text));
            }
            self.version = version;
        }
        self.is_agreed = true;
        match (&mut self.state, pdu) {
            (State::Asked(question, until), Pdu::CacheResponse { session }) => {
                let is_other = self.known.is_some_and(|(known, _)| known != session);
                if *question == Question::Changes && is_other {
                    let text = "the answer is of another session than the question";
                    return Err(fault(ErrorCode::CorruptData, text));
                }
                let answer = Answer { session, payloads: Vec::new() };
                self.state = State::Told(*question, answer, *until);
                Ok(())
            }
            (State::Asked(Question::Changes, _), Pdu::CacheReset) => {
                self.known = None;
                self.ask(now, out);
                Ok(())
            }
            (State::Told(_, answer, _), Pdu::Payload { announced, payload }) => {
                if answer.payloads.len() == MOST {
                    return Err(too_many());
                }
                answer.payloads.push((announced, payload));
                Ok(())
            }
            (State::Told(..), Pdu::RouterKey) => Ok(()),
            (State::Told(_, answer, _), Pdu::EndOfData { session, serial, timing })
                if answer.session == session =>
            {
                self.settle(now, (session, serial), timing, held, out)
            }
            (State::Still(_), Pdu::SerialNotify { session, serial }) => {
                if self.known != Some((session, serial)) {
                    self.ask(now, out);
                }
                Ok(())
            }
            // It may be in the answer that is under way, and is asked for behind it if it is not.
            (_, Pdu::SerialNotify { session, serial }) => {
                self.notified = Some((session, serial));
                Ok(())
            }
            (_, pdu) => {
                let name = format!("{pdu:?}");
                let name = name.split([' ', '(']).next().unwrap_or_default();
                let text = format!("a PDU of the kind {name} makes no sense now");
                Err(fault(ErrorCode::CorruptData, text))
            }
        }
    }

    /// The answer is complete.
    fn settle(
        &mut self,
        now: Instant,
        known: (u16, u32),
        timing: Timing,
        held: &Held<impl Fn(&Payload) -> bool>,
        out: &mut Vec<Outcome>,
    ) -> Result<(), Fault> {
        let still = State::Still(now + self.refresh_of(timing));
        let state = std::mem::replace(&mut self.state, still);
        let State::Told(question, answer, _) = state else { return Ok(()) };
        let told = match question {
            Question::Everything => everything(answer.payloads),
            Question::Changes => changes(answer.payloads, held),
        };
        out.push(told?);
        (self.known, self.timing, self.failures) = (Some(known), timing, 0);
        self.expires = Some(now + timing.expire);
        if self.notified.take().is_some_and(|notified| notified != known) {
            self.ask(now, out);
        }
        Ok(())
    }

    /// The cache says what is wrong.
    fn refused(
        &mut self,
        now: Instant,
        (version, code): (Version, ErrorCode),
        text: &[u8],
        out: &mut Vec<Outcome>,
    ) -> Result<(), Fault> {
        let text = String::from_utf8_lossy(text);
        let said = match text.trim() {
            "" => format!("it says: {code}"),
            text => format!("it says: {code}: {}", text.escape_debug()),
        };
        match code {
            ErrorCode::NoDataAvailable => {
                // It knows nothing of what it has told in an earlier life. It says so when it knows more.
                (self.known, self.is_agreed) = (None, true);
                self.version = self.version.min(version);
                self.state = State::Still(self.again(now));
                out.push(Outcome::Failed(said));
                Ok(())
            }
            ErrorCode::UnsupportedVersion if version < self.version && !self.is_agreed => {
                (self.version, self.known) = (version, None);
                // The next attempt is no other one.
                self.state = State::Idle(now);
                out.push(Outcome::Close);
                Ok(())
            }
            _ => {
                // It cannot say what has changed since then, as one that has begun anew: everything is asked for.
                if self.is_about_changes() {
                    self.known = None;
                }
                Err(fault(code, said))
            }
        }
    }
}

/// All payloads, if each is announced once.
fn everything(payloads: Vec<(bool, Payload)>) -> Result<Outcome, Fault> {
    let one = |(announced, payload)| match announced {
        true => Ok(payload),
        false => Err(unknown(&payload)),
    };
    let mut all = payloads.into_iter().map(one).collect::<Result<Vec<_>, _>>()?;
    all.sort_unstable();
    match all.windows(2).find(|two| two[0] == two[1]) {
        Some(two) => Err(duplicate(&two[0])),
        None => Ok(Outcome::Everything(all)),
    }
}

/// What is to be done, if each payload that comes was not there, and each that goes was.
fn changes(
    payloads: Vec<(bool, Payload)>,
    Held { count, holds }: &Held<impl Fn(&Payload) -> bool>,
) -> Result<Outcome, Fault> {
    let mut changes = BTreeMap::new();
    for (announced, payload) in payloads {
        let is_there = changes.get(&payload).copied().unwrap_or_else(|| holds(&payload));
        match (announced, is_there) {
            (true, true) => return Err(duplicate(&payload)),
            (false, false) => return Err(unknown(&payload)),
            _ => changes.insert(payload, announced),
        };
    }
    changes.retain(|payload, announced| *announced != holds(payload));
    let come = changes.values().filter(|announced| **announced).count();
    if count + come > MOST + (changes.len() - come) {
        return Err(too_many());
    }
    Ok(Outcome::Changes(changes))
}

fn too_many() -> Fault {
    fault(ErrorCode::InternalError, format!("more than {MOST} payloads are not taken"))
}

fn duplicate(payload: &Payload) -> Fault {
    fault(ErrorCode::DuplicateAnnouncement, format!("{payload} was announced before"))
}

fn unknown(payload: &Payload) -> Fault {
    fault(ErrorCode::UnknownWithdrawal, format!("{payload} was not announced"))
}
