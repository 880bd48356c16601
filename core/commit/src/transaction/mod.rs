//! The running configuration, the candidate, and the way from one to the other.
//!
//! A commit checks the candidate against the schema, asks every component that is concerned whether it
//! would accept its part, then lets them change one after the other, and then has the history keep the new
//! revision. Only when that is durable does it succeed. Whoever refuses on the way, or does not answer
//! in time, makes all go back that have changed. A commit that has to be confirmed goes back by itself
//! when nobody does so in time, after a restart as well.
//!
//! ```text
//!            refused          refused, or no answer        not durable
//!   Checking ───────► reply   Applying ───► Undoing ◄─────── Storing ───► running = candidate
//!       └──── all agree ─────►   └──────── all changed ────────►
//! ```
//!
//! Reference: Handley et al., "Designing Extensible IP Router Software", NSDI 2005, §3 (router manager);
//! Junos OS CLI User Guide, "Commit the Configuration", for what operators see.

mod steps;

use std::sync::Arc;
use std::time::Duration;

use weft_base::{Instant, Token, WallTime};
use weft_config::{Diff, MAX_SIZE, Schema, Tree};

use crate::job::{Job, Phase, Purpose};
use crate::kept::{Kept, Stored};
use crate::messages::{Action, Done, Input, Lock, Output, Refusal, Who};
use crate::parts::Parts;
use crate::revision::Revision;

/// The longest time that a commit may wait to be confirmed.
const LONGEST_WAIT: Duration = Duration::from_secs(30 * 24 * 3600);

/// The configuration of a node, edited by one session at a time. From outside it can only be looked at;
/// [`Configuration`](crate::Configuration) changes it.
#[derive(Debug)]
pub struct Transaction {
    schema: Schema,
    parts: Parts,
    is_ready: bool,
    /// What passed the last check against this schema.
    good: Option<Tree>,
    running: Tree,
    /// The revision that runs; `None` before the first commit.
    revision: Option<Revision>,
    candidate: Tree,
    lock: Option<Lock>,
    /// Who was editing what before the start, until everything else is known.
    kept: Option<Kept>,
    job: Option<Job>,
    /// What a revision that is being read is for.
    loading: Option<Loading>,
    pending: Option<Pending>,
    /// The revision that was stored last, and its text.
    stored: Option<Stored>,
    /// What was printed last, and how.
    printed: Option<(Tree, Arc<str>)>,
    last_step: u64,
    /// What both clocks said at one time.
    clocks: (Instant, WallTime),
}

/// A commit that nobody has confirmed yet.
#[derive(Debug)]
struct Pending {
    deadline: Instant,
    until: WallTime,
    /// What everything falls back to: a revision, none if it is the empty configuration, and its tree.
    back_to: Option<Revision>,
    tree: Tree,
}

#[derive(Debug)]
enum Loading {
    /// The candidate of a session.
    Candidate { token: Token, session: u64 },
    /// What an unconfirmed revision falls back to, found after a restart: until when, and whether
    /// that has passed.
    Fallback { until: WallTime, left: Duration },
}

impl Transaction {
    /// A configuration that knows nothing yet; see [`Input::Restored`]. `schema` and `parts` as in
    /// [`Input::Described`].
    pub(crate) fn new(schema: Schema, parts: Parts) -> Self {
        Self {
            schema,
            parts,
            is_ready: false,
            good: None,
            running: Tree::empty(),
            revision: None,
            candidate: Tree::empty(),
            lock: None,
            kept: None,
            job: None,
            loading: None,
            pending: None,
            stored: None,
            printed: None,
            last_step: 0,
            clocks: (Instant::ZERO, WallTime::from_unix_nanos(0)),
        }
    }

    /// What runs.
    pub fn running(&self) -> &Tree {
        &self.running
    }

    /// The revision that runs; `None` before the first commit.
    pub fn revision(&self) -> Option<&Revision> {
        self.revision.as_ref()
    }

    /// What is being edited.
    pub fn candidate(&self) -> &Tree {
        &self.candidate
    }

    /// What may be configured.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Who edits.
    pub fn lock(&self) -> Option<&Lock> {
        self.lock.as_ref()
    }

    /// What a commit would change, without secrets.
    pub fn compare(&self) -> Diff {
        self.schema.mask_diff(&self.running.diff(&self.candidate))
    }

    /// Who edits what, for as long as somebody of the world outside does.
    pub(crate) fn kept(&self) -> Option<Kept> {
        if self.kept.is_some() {
            return self.kept.clone();
        }
        let lock = self.lock.clone().filter(|lock| lock.who.session != 0)?;
        let edited = (self.candidate != self.running).then(|| self.candidate.clone());
        Some(Kept { lock, edited })
    }

    /// The content of the file for that.
    pub(crate) fn encode(&mut self, kept: &Kept) -> Vec<u8> {
        let text = kept.edited.as_ref().map(|tree| self.text(tree));
        kept.encode(text.as_deref(), self.stored.as_ref())
    }

    /// The text of a tree. That of the candidate is needed for each edit, and for its commit.
    fn text(&mut self, tree: &Tree) -> Arc<str> {
        match &self.printed {
            Some((printed, text)) if printed.is_copy_of(tree) => Arc::clone(text),
            _ => {
                let text: Arc<str> = tree.text().into();
                self.printed = Some((tree.clone(), Arc::clone(&text)));
                text
            }
        }
    }

    /// When everything falls back unless somebody confirms.
    pub fn unconfirmed_until(&self) -> Option<WallTime> {
        self.pending.as_ref().map(|pending| pending.until)
    }

    /// When [`Input::Tick`] has to come at the latest.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match &self.job {
            Some(job) => job.deadline,
            None => self.pending.as_ref().map(|pending| pending.deadline),
        }
    }

    /// Takes an input at time `now` and pushes what is to be done.
    pub(crate) fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Restored { wall, newest, kept } => {
                self.clocks = (now, wall);
                self.kept = kept;
                self.restored(now, newest, out);
            }
            Input::Described { schema, parts } => {
                (self.schema, self.parts, self.good) = (schema, parts, None);
            }
            Input::Request { token, who, wall, action } => {
                self.clocks = (now, wall);
                match self.request(now, token, who, action, out) {
                    Ok(Some(done)) => out.push(Output::Reply { token, result: Ok(done) }),
                    Ok(None) => {}
                    Err(refusal) => out.push(Output::Reply { token, result: Err(refusal) }),
                }
            }
            Input::Answer { step, result } => self.answered(now, step, result, out),
            Input::Stored(result) => self.stored(now, result, out),
            Input::Loaded(result) => self.loaded(now, result, out),
            Input::Tick => {}
        }
        self.expire(now, out);
    }

    /// The time of day, as far as the two clocks go on together.
    fn wall(&self, now: Instant) -> WallTime {
        let nanos = u64::try_from(now.since(self.clocks.0).as_nanos()).unwrap_or(u64::MAX);
        WallTime::from_unix_nanos(self.clocks.1.as_unix_nanos().saturating_add(nanos))
    }
}

/// Requests of operators.
impl Transaction {
    /// Does what is asked for; `None` if the answer comes later.
    fn request(
        &mut self,
        now: Instant,
        token: Token,
        who: Who,
        action: Action,
        out: &mut Vec<Output>,
    ) -> Result<Option<Done>, Refusal> {
        if !self.is_ready {
            return Err(Refusal::NotReady);
        }
        match action {
            Action::Lock => return self.take_lock(now, who).map(Some),
            Action::Break => return self.break_lock(now, who).map(Some),
            _ => {}
        }
        match &self.lock {
            Some(lock) if lock.who.session == who.session => {}
            Some(lock) => return Err(Refusal::Locked(lock.clone())),
            None => return Err(Refusal::NotLocked),
        }
        if matches!(action, Action::Unlock) {
            self.lock = None;
            return Ok(Some(Done::Unlocked { discarded: self.discard() }));
        }
        if self.job.is_some() || self.loading.is_some() {
            return Err(Refusal::Busy);
        }
        match action {
            Action::Lock | Action::Unlock | Action::Break => {}
            Action::Edit(command) => {
                let edited = self.schema.edit(&self.candidate, &command);
                self.candidate = edited.map_err(Refusal::Mistakes)?;
            }
            Action::Load(tree, mode) => {
                let loaded = self.schema.load(&self.candidate, &tree, mode);
                self.candidate = loaded.map_err(Refusal::Mistakes)?;
            }
            Action::Revert => self.candidate = self.running.clone(),
            Action::Restore(number) => {
                self.loading = Some(Loading::Candidate { token, session: who.session });
                out.push(Output::Load { number });
                return Ok(None);
            }
            Action::Check => {
                let text = self.check_candidate()?;
                self.begin(now, Purpose::Check { token }, self.candidate.clone(), text, out);
                return Ok(None);
            }
            Action::Commit { comment, confirm_within } => {
                self.commit(now, token, who.user, comment, confirm_within, out)?;
                return Ok(None);
            }
        }
        Ok(Some(Done::Edited))
    }

    fn take_lock(&mut self, now: Instant, who: Who) -> Result<Done, Refusal> {
        match &self.lock {
            Some(lock) if lock.who.session != who.session => Err(Refusal::Locked(lock.clone())),
            Some(_) => Ok(Done::Locked),
            None => {
                self.lock = Some(Lock { who, since: self.wall(now) });
                Ok(Done::Locked)
            }
        }
    }

    fn break_lock(&mut self, now: Instant, who: Who) -> Result<Done, Refusal> {
        if who.uid != 0 {
            return Err(Refusal::NotRoot);
        }
        let other = self.lock.take_if(|lock| lock.who.session != who.session);
        let Some(lock) = other else { return Err(Refusal::NoLock) };
        let discarded = self.discard();
        self.lock = Some(Lock { who, since: self.wall(now) });
        Ok(Done::Broken { lock, discarded })
    }

    /// Throws the edits away; whether there were any.
    fn discard(&mut self) -> bool {
        let discarded = self.candidate != self.running;
        self.candidate = self.running.clone();
        discarded
    }

    /// Checks the candidate; its text.
    fn check_candidate(&mut self) -> Result<Arc<str>, Refusal> {
        let checked = self.schema.check(&self.candidate, self.good.as_ref());
        checked.map_err(Refusal::Mistakes)?;
        self.good = Some(self.candidate.clone());
        let text = self.text(&self.candidate.clone());
        if text.len() > MAX_SIZE {
            return Err(Refusal::TooLarge { size: text.len(), limit: MAX_SIZE });
        }
        Ok(text)
    }

    fn commit(
        &mut self,
        now: Instant,
        token: Token,
        user: String,
        comment: String,
        confirm_within: Option<Duration>,
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        if confirm_within.is_some_and(|time| time < Duration::from_secs(1) || time > LONGEST_WAIT) {
            return Err(Refusal::ConfirmTime);
        }
        if self.candidate != self.running {
            let text = self.check_candidate()?;
            let purpose = Purpose::Commit { token, user, comment, confirm_within };
            self.begin(now, purpose, self.candidate.clone(), text, out);
            return Ok(());
        }
        if self.pending.is_none() || confirm_within.is_some() {
            return Err(Refusal::NothingToCommit);
        }
        let text: Arc<str> = self.running.text().into();
        out.push(Output::Confirm { text: Arc::clone(&text) });
        self.job = Some(Job {
            purpose: Purpose::Confirm { token },
            target: self.running.clone(),
            text,
            changes: Vec::new(),
            phase: Phase::Storing,
            deadline: None,
        });
        Ok(())
    }
}
