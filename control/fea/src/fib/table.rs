//! A table: who has it, what is done with it, and what waits.
//!
//! ```text
//! following ── begin ──► reading ── all is read ──► told ── end ──► ending ── all is made ──► following
//!                            ▲                        │                │
//!                            └──────── begin ─────────┴────────────────┘
//! ```
//!
//! Changes that are told while the kernel is read wait, as calls that are not answered.

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use weft_base::{Instant, KeyedHash};
use weft_runtime::{RouteSpace, RouteTarget};
use weft_xrl::{Called, IpNet, Output, XrlError, fib};

use super::RouteCount;
use super::amends::{Amends, Cause};
use super::claim::{Claim, Found};
use super::queue::{Key, Queue};
use super::wanted::Wanted;

/// While so many routes wait, no call is answered that brings routes; and while so many prefixes wait, none that takes
/// some back. It takes the kernel some 20 ms.
const ENOUGH: usize = 8 << 10;
/// Routes of the kernel that are looked at in one go for those that nobody has claimed.
const AT_A_TIME: usize = 4096;
/// The most refusals that are kept until they are told.
const MOST_REFUSALS: usize = 1000;
/// The most prefixes of which is kept that the kernel has refused them.
const MOST_REFUSED: usize = 64 << 10;

/// See the module's text.
pub(crate) struct Table {
    pub(crate) space: RouteSpace,
    pub(crate) owner: Option<Owner>,
    pub(crate) metric: u32,
    /// How long the routes stay without their owner.
    pub(crate) keep: Duration,
    /// When they go, if the owner is gone.
    pub(crate) until: Option<Instant>,
    /// The session that the owner had who is gone.
    pub(crate) gone: Option<u64>,
    phase: Phase,
    /// Counts beginnings, so that what the kernel answers to an earlier one is known.
    pub(crate) epoch: u64,
    pub(crate) queue: Queue,
    /// The changes that the kernel is making.
    pub(crate) in_flight: Option<Vec<(Key, RouteCount)>>,
    /// Calls that wait until fewer changes do: those that bring nothing but routes, and others.
    routes: VecDeque<Called>,
    others: VecDeque<Called>,
    /// Calls that wait until everything is made.
    ends: Vec<Called>,
    /// The interfaces that routes lead to, as far as that was told; 0 for those that the kernel finds.
    interfaces: BTreeSet<u32>,
    /// Prefixes whose latest route the kernel has not taken.
    pub(crate) refused: BTreeSet<Key>,
    news: News,
    /// When the owner is told to begin anew.
    pub(crate) amends: Amends,
}

/// Who has a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) session: u64,
    pub(crate) caller: Rc<str>,
}

/// What is done with a table.
enum Phase {
    /// The kernel tells what it has.
    Reading {
        claim: Claim,
        /// Who is answered when all is read; nobody if the routes of somebody who is gone are taken away.
        begin: Option<Called>,
        /// What was told meanwhile.
        held: VecDeque<Held>,
    },
    /// The owner tells everything.
    Told(Claim),
    /// What nobody has claimed goes.
    Ending(Claim),
    Following,
}

/// A call that waits until the kernel has told what it has.
pub(crate) enum Held {
    Change(Called, Wanted),
    End(Called),
}

/// What the owner has to know.
#[derive(Default)]
struct News {
    again: bool,
    refusals: VecDeque<(IpNet, String)>,
    omitted: u32,
    waiting: Option<(Called, Instant)>,
}

impl Owner {
    pub(crate) fn of(called: &Called) -> Self {
        Self { session: called.session, caller: Rc::clone(&called.caller) }
    }
}

impl Table {
    pub(crate) fn new(space: RouteSpace, metric: u32, keep: Duration, hash: KeyedHash) -> Self {
        Self {
            space,
            owner: None,
            metric,
            keep,
            until: None,
            gone: None,
            phase: Phase::Following,
            epoch: 0,
            queue: Queue::new(hash),
            in_flight: None,
            routes: VecDeque::new(),
            others: VecDeque::new(),
            ends: Vec::new(),
            interfaces: BTreeSet::new(),
            refused: BTreeSet::new(),
            news: News::default(),
            amends: Amends::default(),
        }
    }

    /// What is done with it, in a word.
    pub(crate) fn state(&self) -> &'static str {
        match (&self.phase, &self.owner) {
            (Phase::Reading { .. }, _) => "reading",
            (Phase::Told(_), _) => "told",
            (Phase::Ending(_), _) => "ending",
            (Phase::Following, Some(_)) => "following",
            (Phase::Following, None) => "left",
        }
    }

    /// Everything will be told anew, or nobody wants anything any more: the kernel must be read. What waits is part of
    /// what is told anew.
    pub(crate) fn begin(&mut self, begin: Option<Called>, out: &mut Vec<Output>) {
        self.give_up(&XrlError::failed("the table was begun anew before this was done"), out);
        self.epoch += 1;
        self.queue.clear();
        self.refused.clear();
        self.interfaces.clear();
        self.news.again = false;
        self.amends.over();
        let (claim, held) = (Claim::new(self.space.is_ipv6), VecDeque::new());
        self.phase = Phase::Reading { claim, begin, held };
    }

    /// Fails what is not answered, but for changes, which were taken.
    fn give_up(&mut self, error: &XrlError, out: &mut Vec<Output>) {
        let taken = self.routes.drain(..).chain(self.others.drain(..));
        out.extend(taken.map(|called| called.answer(Ok(()))));
        out.extend(self.ends.drain(..).map(|called| called.fail(error.clone())));
        if let Phase::Reading { begin, held, .. } =
            std::mem::replace(&mut self.phase, Phase::Following)
        {
            let held = held.into_iter().map(|held| match held {
                Held::Change(called, _) | Held::End(called) => called,
            });
            out.extend(begin.into_iter().chain(held).map(|called| called.fail(error.clone())));
        }
    }

    /// What the kernel has and is told now, if that is being read.
    pub(crate) fn reading(&mut self) -> Option<&mut Claim> {
        match &mut self.phase {
            Phase::Reading { claim, .. } => Some(claim),
            _ => None,
        }
    }

    /// The kernel does not tell what it has.
    pub(crate) fn unreadable(&mut self, error: String, out: &mut Vec<Output>) {
        self.give_up(&XrlError::failed(error), out);
    }

    /// The kernel has told what it has. Returns what the owner has told meanwhile.
    pub(crate) fn read(&mut self, out: &mut Vec<Output>) -> VecDeque<Held> {
        match std::mem::replace(&mut self.phase, Phase::Following) {
            Phase::Reading { mut claim, begin, held } => {
                claim.complete();
                self.phase = match begin {
                    Some(begin) => {
                        out.push(begin.answer(Ok(())));
                        Phase::Told(claim)
                    }
                    None => Phase::Ending(claim),
                };
                held
            }
            phase => {
                self.phase = phase;
                VecDeque::new()
            }
        }
    }

    /// Holds a call back while the kernel is read; gives it back otherwise.
    pub(crate) fn hold(&mut self, call: Held) -> Option<Held> {
        match &mut self.phase {
            Phase::Reading { held, .. } => {
                held.push_back(call);
                None
            }
            _ => Some(call),
        }
    }

    /// Takes changes in; returns how many routes the kernel had as they are wanted. The call is answered when fewer
    /// wait than are enough.
    pub(crate) fn take(&mut self, called: Called, wanted: Wanted) -> u64 {
        let mut same = 0;
        self.interfaces.extend(wanted.interfaces);
        let calls = if wanted.gone.is_empty() { &mut self.routes } else { &mut self.others };
        calls.push_back(called);
        for destination in wanted.gone {
            let key = Key { destination, metric: self.metric };
            if let Some(claim) = self.claim() {
                claim.release(&key);
            }
            self.queue.delete(key);
        }
        for (destination, target, fresh) in wanted.routes {
            let key = Key { destination, metric: self.metric };
            same += u64::from(!self.put(key, target, fresh));
        }
        same
    }

    /// Says whether the kernel must be told.
    fn put(&mut self, key: Key, target: Arc<RouteTarget>, fresh: bool) -> bool {
        let found = self.claim().map_or(Found::Nothing, |claim| claim.claim(&key, &target));
        // Where the kernel has refused a route of ours there is none of ours.
        let fresh = fresh || !self.refused.is_empty() && self.refused.contains(&key);
        match found {
            Found::Same => return false,
            Found::Other => self.queue.put(key, target, false),
            Found::Nothing => self.queue.put(key, target, fresh),
        }
        true
    }

    fn claim(&mut self) -> Option<&mut Claim> {
        match &mut self.phase {
            Phase::Told(claim) | Phase::Ending(claim) => Some(claim),
            Phase::Reading { .. } | Phase::Following => None,
        }
    }

    /// Everything is told.
    pub(crate) fn end(&mut self, called: Called) {
        self.ends.push(called);
        self.phase = match std::mem::replace(&mut self.phase, Phase::Following) {
            Phase::Told(claim) => Phase::Ending(claim),
            phase => phase,
        };
    }

    /// Lets routes go that nobody has claimed, as far as there is room for them, and answers who has waited long
    /// enough.
    pub(crate) fn advance(&mut self, out: &mut Vec<Output>) {
        while let Phase::Ending(claim) = &mut self.phase
            && self.queue.len() < ENOUGH
        {
            match claim.unclaimed(AT_A_TIME) {
                Some(keys) => keys.into_iter().for_each(|key| self.queue.delete(key)),
                None => self.phase = Phase::Following,
            }
        }
        // Routes do not wait for what goes.
        while self.queue.routes() < ENOUGH
            && let Some(called) = self.routes.pop_front()
        {
            out.push(called.answer(Ok(())));
        }
        while self.queue.len() < ENOUGH
            && let Some(called) = self.others.pop_front()
        {
            out.push(called.answer(Ok(())));
        }
        if self.is_settled() {
            out.extend(self.ends.drain(..).map(|called| called.answer(Ok(()))));
        }
    }

    /// Whether nothing is left to do.
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.phase, Phase::Following) && self.queue.is_empty() && self.in_flight.is_none()
    }

    /// The owner is gone: its routes stay for a while.
    pub(crate) fn left(&mut self, now: Instant) {
        self.gone = self.owner.take().map(|owner| owner.session);
        self.until = Some(now + self.keep);
        self.news = News::default();
        self.amends.over();
        self.routes.clear();
        self.others.clear();
        self.ends.clear();
        self.phase = Phase::Following;
        self.epoch += 1;
    }

    /// The kernel may have something else than what was told.
    pub(crate) fn lost_track(&mut self, out: &mut Vec<Output>) {
        self.news.again = true;
        self.tell(out);
    }

    /// The kernel has not taken a route.
    pub(crate) fn refuse(&mut self, key: Key, error: String, out: &mut Vec<Output>) {
        if self.refused.len() < MOST_REFUSED {
            self.refused.insert(key);
        }
        let net = IpNet::new(key.destination.ip, key.destination.prefix_length);
        match net {
            Ok(net) if self.news.refusals.len() < MOST_REFUSALS => {
                self.news.refusals.push_back((net, error));
            }
            _ => self.news.omitted = self.news.omitted.saturating_add(1),
        }
        self.tell(out);
    }

    /// A change was made.
    pub(crate) fn made(&mut self, key: &Key) {
        if !self.refused.is_empty() {
            self.refused.remove(key);
        }
    }

    /// An interface is gone, and routes that lead there may be, too.
    pub(crate) fn interface_lost(&mut self, index: u32, now: Instant) {
        // Until the owner has told everything, it is not known where its routes lead.
        let all_is_told = matches!(self.phase, Phase::Ending(_) | Phase::Following);
        if !all_is_told || self.interfaces.contains(&index) || self.interfaces.contains(&0) {
            self.amends.needed(Cause::Lost, now);
        }
    }

    /// An interface is there again: the kernel may take what it has refused.
    pub(crate) fn interface_found(&mut self, now: Instant) {
        if !self.refused.is_empty() {
            self.amends.needed(Cause::Found, now);
        }
    }

    /// Tells the owner to begin anew if it is time for that; says whether it is.
    pub(crate) fn make_amends(&mut self, now: Instant, out: &mut Vec<Output>) -> bool {
        let is_time = self.amends.take(now);
        if is_time {
            self.lost_track(out);
        }
        is_time
    }

    /// Answers with what there is to know, or later.
    pub(crate) fn wait(&mut self, called: Called, until: Option<Instant>, out: &mut Vec<Output>) {
        self.expire(None, out);
        self.news.waiting = Some((called, until.unwrap_or(Instant::ZERO)));
        match until {
            Some(_) => self.tell(out),
            None => self.expire(None, out),
        }
    }

    /// Tells the owner what there is, if it waits and there is something.
    fn tell(&mut self, out: &mut Vec<Output>) {
        let News { again, refusals, omitted, waiting } = &self.news;
        if waiting.is_some() && (*again || !refusals.is_empty() || *omitted > 0) {
            self.expire(None, out);
        }
    }

    /// When who waits for news has waited long enough.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let waiting = self.news.waiting.as_ref().map(|(_, until)| *until);
        waiting.into_iter().chain(self.until).chain(self.amends.deadline()).min()
    }

    /// Answers who waits for news: now, or if it has waited long enough.
    pub(crate) fn expire(&mut self, now: Option<Instant>, out: &mut Vec<Output>) {
        let News { again, refusals, omitted, waiting } = &mut self.news;
        let is_due = |(_, until): &mut (_, Instant)| now.is_none_or(|now| *until <= now);
        if let Some((called, _)) = waiting.take_if(is_due) {
            let refused = refusals.drain(..).map(|(net, error)| fib::Refusal { net, error });
            out.push(called.answer(Ok::<_, XrlError>(fib::EventsReply {
                again: std::mem::take(again),
                refused: refused.collect(),
                omitted: std::mem::take(omitted),
            })));
        }
    }
}
