//! Callers who watch something: each is told what is different from what it was told before, when something is.
//!
//! Of each caller is kept what has changed since it was told, by the names of the things and not by their values: so
//! whoever is slow misses states in between and nothing else, and what is kept is never more than there is to tell.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use weft_base::Instant;
use weft_xrl::{Arguments, Called, Output, XrlError};

/// The longest that an answer is kept back.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// What is watched.
pub(crate) trait Watched {
    /// The name of something that is told.
    type Thing: Copy + Ord;
    /// An answer to a caller.
    type Reply: Arguments;
    /// The most things that one answer tells of.
    const MOST: usize;

    /// All that there is.
    fn things(&self) -> impl Iterator<Item = Self::Thing>;

    /// Whether that is all that there will be at the beginning.
    fn is_complete(&self) -> bool;

    /// What there is to say of some things now.
    fn tell(&self, news: News<Self::Thing>) -> Self::Reply;
}

/// What a caller was not told yet.
pub(crate) struct News<T> {
    /// This is the beginning.
    pub(crate) again: bool,
    /// What is different, in order.
    pub(crate) things: Vec<T>,
    /// All that there is was told. Said once.
    pub(crate) complete: bool,
}

/// Those who watch, by their sessions.
pub(crate) struct Callers<T>(BTreeMap<u64, Caller<T>>);

struct Caller<T> {
    changed: BTreeSet<T>,
    /// The beginning was not told yet.
    again: bool,
    /// That all was told was told.
    complete: bool,
    waiting: Option<Waiting>,
}

/// A call for which there was nothing yet.
struct Waiting {
    called: Called,
    at_most: usize,
    until: Instant,
}

/// How a caller asks.
pub(crate) struct Question {
    /// Whether to tell everything from the beginning.
    pub(crate) begin: bool,
    /// Of how many things.
    pub(crate) at_most: u32,
    /// How long the answer may take, in milliseconds.
    pub(crate) wait: u32,
}

impl<T> Default for Callers<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Copy + Ord> Callers<T> {
    /// Answers with what is different, or later.
    pub(crate) fn ask<W: Watched<Thing = T>>(
        &mut self,
        now: Instant,
        called: Called,
        question: &Question,
        known: &W,
        out: &mut Vec<Output>,
    ) {
        let session = called.session;
        if let Some(caller) = self.0.get_mut(&session) {
            out.extend(caller.answer(known));
        }
        if question.begin || !self.0.contains_key(&session) {
            self.begin(session, known);
        }
        let Some(caller) = self.0.get_mut(&session) else { return };
        let wait = Duration::from_millis(question.wait.into()).min(LONGEST_WAIT);
        let at_most = (question.at_most.max(1) as usize).min(W::MOST);
        caller.waiting = Some(Waiting { called, at_most, until: now + wait });
        if caller.has_news(known) || wait.is_zero() {
            out.extend(caller.answer(known));
        }
    }

    /// One who is to be told everything.
    pub(crate) fn begin<W: Watched<Thing = T>>(&mut self, session: u64, known: &W) {
        let changed = known.things().collect();
        let caller = Caller { changed, again: true, complete: false, waiting: None };
        self.0.insert(session, caller);
    }

    /// Something is different.
    pub(crate) fn note(&mut self, thing: T) {
        for caller in self.0.values_mut() {
            caller.changed.insert(thing);
        }
    }

    /// All of this is no more, and what there is instead is to be told completely.
    pub(crate) fn forget<W: Watched<Thing = T>>(&mut self, before: &W) {
        for caller in self.0.values_mut() {
            caller.changed.extend(before.things());
            caller.complete = false;
        }
    }

    /// Answers those for whom there is something.
    pub(crate) fn tell<W: Watched<Thing = T>>(&mut self, known: &W, out: &mut Vec<Output>) {
        for caller in self.0.values_mut().filter(|caller| caller.has_news(known)) {
            out.extend(caller.answer(known));
        }
    }

    /// A caller is gone.
    pub(crate) fn left(&mut self, session: u64) {
        self.0.remove(&session);
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.0.values().filter_map(|caller| Some(caller.waiting.as_ref()?.until)).min()
    }

    /// Answers those who have waited long enough.
    pub(crate) fn expire<W: Watched<Thing = T>>(
        &mut self,
        now: Instant,
        known: &W,
        out: &mut Vec<Output>,
    ) {
        for caller in self.0.values_mut() {
            if caller.waiting.as_ref().is_some_and(|waiting| waiting.until <= now) {
                out.extend(caller.answer(known));
            }
        }
    }

    /// What a caller would be told of so many things; and how many it has not been told then.
    #[cfg(test)]
    pub(crate) fn news<W: Watched<Thing = T>>(
        &mut self,
        session: u64,
        known: &W,
        at_most: usize,
    ) -> (W::Reply, usize) {
        let caller = self.0.get_mut(&session).expect("a test asks for somebody who watches");
        let reply = known.tell(caller.news(known, at_most));
        (reply, caller.changed.len())
    }
}

impl<T: Copy + Ord> Caller<T> {
    fn has_news<W: Watched<Thing = T>>(&self, known: &W) -> bool {
        !self.changed.is_empty() || self.again || known.is_complete() && !self.complete
    }

    /// The answer to who waits, with what there is.
    fn answer<W: Watched<Thing = T>>(&mut self, known: &W) -> Option<Output> {
        let Waiting { called, at_most, .. } = self.waiting.take()?;
        let reply = known.tell(self.news(known, at_most));
        Some(called.answer(Ok::<_, XrlError>(reply)))
    }

    /// What the caller was not told yet, of so many things.
    fn news<W: Watched<Thing = T>>(&mut self, known: &W, at_most: usize) -> News<T> {
        let again = std::mem::take(&mut self.again);
        let things = std::iter::from_fn(|| self.changed.pop_first()).take(at_most).collect();
        let is_all = self.changed.is_empty() && known.is_complete();
        let complete = is_all && !std::mem::replace(&mut self.complete, true);
        News { again, things, complete }
    }
}
