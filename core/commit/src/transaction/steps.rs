//! The steps of a commit, and falling back when nobody confirms.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use weft_base::{Instant, WallTime};
use weft_config::{LoadMode, Tree};

use super::{Loading, Pending, Transaction};
use crate::changes::changes;
use crate::job::{Job, Phase, Purpose};
use crate::kept::{Kept, Stored};
use crate::messages::{BlockChange, Done, Objection, Output, Reason, Refusal};
use crate::revision::{Revision, Unconfirmed};

/// How long a component may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// Who falls back when nobody confirms.
const NOBODY: &str = "weft";

/// A commit, step by step.
impl Transaction {
    /// Begins to check or to put into effect what is to run.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        purpose: Purpose,
        target: Tree,
        text: Arc<str>,
        out: &mut Vec<Output>,
    ) {
        let changes = changes(&self.running, &target, &self.parts);
        let phase = Phase::Checking { waiting: BTreeMap::new(), objections: Vec::new() };
        let mut job = Job { purpose, target, text, changes, phase, deadline: None };
        if job.is_fallback() {
            return self.apply(now, job, 0, out);
        }
        let mut waiting = BTreeMap::new();
        // Who goes away has nothing to check.
        let staying = job.changes.iter().enumerate().filter(|(_, change)| !change.new.is_empty());
        for (index, change) in staying {
            self.last_step += 1;
            waiting.insert(self.last_step, index);
            out.push(Output::Check { step: self.last_step, change: change.clone() });
        }
        job.deadline = Some(now + ANSWER_TIME);
        self.checking(now, job, waiting, Vec::new(), out);
    }

    /// A component has answered.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        step: u64,
        result: Result<(), Reason>,
        out: &mut Vec<Output>,
    ) {
        let Some(job) = self.job.take_if(|job| job.waits_for(step)) else { return };
        self.go_on(now, job, step, result, out);
    }

    fn go_on(
        &mut self,
        now: Instant,
        mut job: Job,
        step: u64,
        result: Result<(), Reason>,
        out: &mut Vec<Output>,
    ) {
        let phase = std::mem::replace(&mut job.phase, Phase::Storing);
        match phase {
            Phase::Checking { mut waiting, mut objections } => {
                if let (Some(index), Err(reason)) = (waiting.remove(&step), result) {
                    objections.push(job.changes[index].objection(reason));
                }
                self.checking(now, job, waiting, objections, out);
            }
            Phase::Applying { at, .. } => match result {
                Ok(()) => self.apply(now, job, at + 1, out),
                Err(reason) => self.objected(now, job, at, reason, out),
            },
            Phase::Undoing { at, objection, mut stuck, .. } => {
                if let Err(reason) = result {
                    stuck.push(job.changes[at].objection(reason));
                }
                self.undo(now, job, at, objection, stuck, out);
            }
            Phase::Storing => self.job = Some(job),
        }
    }

    /// Waits for the answers that are missing, or goes on without any.
    fn checking(
        &mut self,
        now: Instant,
        mut job: Job,
        waiting: BTreeMap<u64, usize>,
        objections: Vec<Objection>,
        out: &mut Vec<Output>,
    ) {
        if !waiting.is_empty() {
            job.phase = Phase::Checking { waiting, objections };
            self.job = Some(job);
        } else if !objections.is_empty() {
            reply(&job, Err(Refusal::Refused(objections)), out);
        } else if let Purpose::Check { .. } = job.purpose {
            reply(&job, Ok(Done::Checked), out);
        } else {
            self.apply(now, job, 0, out);
        }
    }

    /// Lets component number `at` make its change; behind the last one, lets the history write.
    fn apply(&mut self, now: Instant, mut job: Job, at: usize, out: &mut Vec<Output>) {
        let Some(change) = job.changes.get(at).cloned() else {
            return self.store(now, job, out);
        };
        let step = self.ask(change, out);
        job.phase = Phase::Applying { at, step };
        job.deadline = Some(now + ANSWER_TIME);
        self.job = Some(job);
    }

    fn ask(&mut self, change: BlockChange, out: &mut Vec<Output>) -> u64 {
        self.last_step += 1;
        out.push(Output::Apply { step: self.last_step, change });
        self.last_step
    }

    /// Change number `at` was refused.
    fn objected(
        &mut self,
        now: Instant,
        mut job: Job,
        at: usize,
        reason: Reason,
        out: &mut Vec<Output>,
    ) {
        let objection = job.changes[at].objection(reason);
        if let Purpose::Fallback { objections, .. } = &mut job.purpose {
            objections.push(objection);
            return self.apply(now, job, at + 1, out);
        }
        self.undo(now, job, at, objection, Vec::new(), out);
    }

    /// Takes back the changes before number `at`, the last one first.
    fn undo(
        &mut self,
        now: Instant,
        mut job: Job,
        at: usize,
        objection: Objection,
        stuck: Vec<Objection>,
        out: &mut Vec<Output>,
    ) {
        let Some(at) = at.checked_sub(1) else {
            self.renew(&stuck, out);
            return reply(&job, Err(Refusal::RolledBack { objection, stuck }), out);
        };
        let step = self.ask(job.changes[at].reversed(), out);
        job.phase = Phase::Undoing { at, step, objection, stuck };
        job.deadline = Some(now + ANSWER_TIME);
        self.job = Some(job);
    }

    /// Has these components started again: who does not go back holds something that does not run.
    fn renew(&self, stuck: &[Objection], out: &mut Vec<Output>) {
        out.extend(stuck.iter().map(|Objection { name, .. }| Output::Renew {
            name: name.clone(),
            running: self.parts.of(&self.running, name),
        }));
    }

    fn store(&mut self, now: Instant, mut job: Job, out: &mut Vec<Output>) {
        let wall = self.wall(now);
        let (user, comment, confirm_within) = match &job.purpose {
            Purpose::Commit { user, comment, confirm_within, .. } => {
                (user.clone(), comment.clone(), *confirm_within)
            }
            Purpose::Fallback { number, .. } => {
                (NOBODY.to_owned(), format!("not confirmed: back to revision {number}"), None)
            }
            Purpose::Check { .. } | Purpose::Confirm { .. } => return,
        };
        let unconfirmed = confirm_within
            .map(|time| Unconfirmed { until: after(wall, time), back_to: self.last_confirmed() });
        let revision = Revision { number: 0, time: wall, user, comment, unconfirmed };
        out.push(Output::Store { revision, text: Arc::clone(&job.text) });
        (job.phase, job.deadline) = (Phase::Storing, None);
        self.job = Some(job);
    }

    /// The revision to fall back to.
    fn last_confirmed(&self) -> u64 {
        let confirmed = match &self.pending {
            Some(pending) => &pending.back_to,
            None => &self.revision,
        };
        number_of(confirmed.as_ref())
    }

    /// The history has written, or could not.
    pub(super) fn stored(
        &mut self,
        now: Instant,
        result: Result<Revision, String>,
        out: &mut Vec<Output>,
    ) {
        let storing = |job: &mut Job| matches!(job.phase, Phase::Storing);
        let Some(job) = self.job.take_if(storing) else { return };
        if let Ok(Revision { number, .. }) = result {
            self.stored = Some(Stored { number, text: Arc::clone(&job.text) });
        }
        match (result, &job.purpose) {
            (Ok(revision), Purpose::Confirm { .. }) => {
                self.pending = None;
                self.revision = Some(revision.clone());
                reply(&job, Ok(Done::Confirmed(revision)), out);
            }
            (Ok(revision), _) => self.committed(now, job, revision, out),
            (Err(reason), Purpose::Confirm { .. }) => reply(&job, Err(Refusal::Disk(reason)), out),
            (Err(reason), Purpose::Fallback { .. }) => {
                let text = format!("the history does not know of falling back: {reason}");
                out.push(Output::Notice(text));
                // What nobody confirmed does not run any more, whatever the history says.
                if let Some(pending) = &self.pending {
                    self.revision.clone_from(&pending.back_to);
                }
                self.fallen_back(job, out);
            }
            (Err(reason), _) => {
                let (at, name) = (job.changes.len(), "disk".to_owned());
                self.undo(now, job, at, Objection { name, reason: reason.into() }, Vec::new(), out);
            }
        }
    }

    fn committed(&mut self, now: Instant, job: Job, revision: Revision, out: &mut Vec<Output>) {
        if job.is_fallback() {
            self.revision = Some(revision);
            return self.fallen_back(job, out);
        }
        let before = self.run(&job.target);
        let confirmed = self.revision.replace(revision.clone());
        let earlier = self.pending.take();
        self.pending = revision.unconfirmed.map(|unconfirmed| {
            let left = between(revision.time, unconfirmed.until);
            let (back_to, tree) =
                earlier.map_or((confirmed, before), |earlier| (earlier.back_to, earlier.tree));
            // The time since the revision was handed to the disk has passed already.
            let passed = between(revision.time, self.wall(now));
            let deadline = now + left.saturating_sub(passed);
            Pending { deadline, until: unconfirmed.until, back_to, tree }
        });
        reply(&job, Ok(Done::Committed(revision)), out);
    }

    /// Everything is as before the commit that nobody confirmed.
    fn fallen_back(&mut self, job: Job, out: &mut Vec<Output>) {
        self.run(&job.target);
        self.pending = None;
        let Purpose::Fallback { number, objections } = job.purpose else { return };
        self.renew(&objections, out);
        let text = format!("nobody confirmed the last commit: revision {number} runs again");
        out.push(Output::Notice(text));
        let refused = objections.into_iter().map(|objection| {
            let text = format!("a component does not fall back, and is started again: {objection}");
            Output::Notice(text)
        });
        out.extend(refused);
        // The time had passed before the start.
        if !self.is_ready {
            self.ready(out);
        }
    }

    /// Makes a tree what runs, and what a session without edits sees; returns what ran before.
    fn run(&mut self, target: &Tree) -> Tree {
        if self.candidate == self.running {
            self.candidate = target.clone();
        }
        std::mem::replace(&mut self.running, target.clone())
    }

    /// Does what is due.
    pub(super) fn expire(&mut self, now: Instant, out: &mut Vec<Output>) {
        while self.job.as_ref().is_some_and(|job| job.deadline.is_some_and(|due| due <= now)) {
            let Some(job) = self.job.take() else { return };
            self.unanswered(now, job, out);
        }
        let is_due = self.pending.as_ref().is_some_and(|pending| pending.deadline <= now);
        if is_due
            && self.job.is_none()
            && let Some(pending) = &self.pending
        {
            let (number, tree) = (number_of(pending.back_to.as_ref()), pending.tree.clone());
            let purpose = Purpose::Fallback { number, objections: Vec::new() };
            let text = tree.text().into();
            self.begin(now, purpose, tree, text, out);
        }
    }

    /// Somebody did not answer in time, which counts as refusing.
    fn unanswered(&mut self, now: Instant, mut job: Job, out: &mut Vec<Output>) {
        let reason =
            || Reason::Words(format!("it did not answer within {} s", ANSWER_TIME.as_secs()));
        match job.phase {
            Phase::Checking { waiting, mut objections } => {
                let silent = waiting.values().map(|&index| job.changes[index].objection(reason()));
                objections.extend(silent);
                job.phase = Phase::Storing;
                self.checking(now, job, BTreeMap::new(), objections, out);
            }
            Phase::Applying { at, .. } if !job.is_fallback() => {
                let objection = job.changes[at].objection(reason());
                // It may have made the change nevertheless.
                job.phase = Phase::Storing;
                self.undo(now, job, at + 1, objection, Vec::new(), out);
            }
            Phase::Applying { step, .. } | Phase::Undoing { step, .. } => {
                self.go_on(now, job, step, Err(reason()), out);
            }
            Phase::Storing => self.job = Some(Job { deadline: None, ..job }),
        }
    }
}

/// Revisions that are read.
impl Transaction {
    pub(super) fn restored(
        &mut self,
        now: Instant,
        newest: Option<(Revision, String)>,
        out: &mut Vec<Output>,
    ) {
        let Some((revision, text)) = newest else {
            return self.ready(out);
        };
        match read(&revision, &text) {
            Ok(tree) => self.running = tree,
            Err(reason) => {
                let number = revision.number;
                let text = format!("revision {number} cannot be read, nothing runs: {reason}");
                out.push(Output::Notice(text));
            }
        }
        self.candidate = self.running.clone();
        self.stored = Some(Stored { number: revision.number, text: text.into() });
        let (unconfirmed, time) = (revision.unconfirmed, revision.time);
        self.revision = Some(revision);
        let Some(Unconfirmed { until, back_to }) = unconfirmed else {
            return self.ready(out);
        };
        // A clock that was set back does not prolong what was granted.
        let left = between(self.wall(now), until).min(between(time, until));
        if back_to == 0 {
            self.fall_back_later(now, until, left, None, Tree::empty(), out);
        } else {
            self.loading = Some(Loading::Fallback { until, left });
            out.push(Output::Load { number: back_to });
        }
    }

    /// Falls back after the time that is left, which may be none.
    fn fall_back_later(
        &mut self,
        now: Instant,
        until: WallTime,
        left: Duration,
        back_to: Option<Revision>,
        tree: Tree,
        out: &mut Vec<Output>,
    ) {
        if left.is_zero() {
            // Nothing has been started yet, so nobody has to be asked.
            self.running = tree.clone();
            self.candidate = tree.clone();
        }
        self.pending = Some(Pending { deadline: now + left, until, back_to, tree });
        // What falls back at once would only be busy with that for whoever asks: it is ready afterwards.
        if !left.is_zero() {
            self.ready(out);
        }
    }

    /// What runs is known, and who edits what.
    fn ready(&mut self, out: &mut Vec<Output>) {
        self.is_ready = true;
        if let Some(Kept { lock, edited }) = self.kept.take() {
            self.lock = Some(lock);
            self.candidate = edited.unwrap_or_else(|| self.running.clone());
        }
        out.push(Output::Ready);
    }

    pub(super) fn loaded(
        &mut self,
        now: Instant,
        result: Result<(Revision, String), String>,
        out: &mut Vec<Output>,
    ) {
        match self.loading.take() {
            None => {}
            Some(Loading::Candidate { token, session }) => {
                let result = self.restore(session, result).map(|()| Done::Edited);
                out.push(Output::Reply { token, result });
            }
            Some(Loading::Fallback { until, left }) => {
                let read = result.and_then(|(revision, text)| {
                    read(&revision, &text).map(|tree| (revision, tree))
                });
                match read {
                    Ok((revision, tree)) => {
                        self.fall_back_later(now, until, left, Some(revision), tree, out);
                    }
                    Err(reason) => {
                        out.push(Output::Notice(format!(
                            "the last commit was not confirmed, but what to fall back to cannot be \
                             read: {reason}"
                        )));
                        self.ready(out);
                    }
                }
            }
        }
    }

    fn restore(
        &mut self,
        session: u64,
        result: Result<(Revision, String), String>,
    ) -> Result<(), Refusal> {
        let (revision, text) = result.map_err(Refusal::Disk)?;
        if self.lock.as_ref().is_none_or(|lock| lock.who.session != session) {
            return Err(Refusal::NotLocked);
        }
        let tree = Tree::parse(&name(&revision), &text).map_err(Refusal::Mistakes)?;
        let loaded = self.schema.load(&self.candidate, &tree, LoadMode::Override);
        self.candidate = loaded.map_err(Refusal::Mistakes)?;
        Ok(())
    }
}

/// The number of a revision; 0 is the empty configuration.
fn number_of(revision: Option<&Revision>) -> u64 {
    revision.map_or(0, |revision| revision.number)
}

fn name(revision: &Revision) -> String {
    format!("revision {}", revision.number)
}

fn read(revision: &Revision, text: &str) -> Result<Tree, String> {
    Tree::parse(&name(revision), text).map_err(|errors| errors.to_string())
}

fn reply(job: &Job, result: Result<Done, Refusal>, out: &mut Vec<Output>) {
    out.extend(job.token().map(|token| Output::Reply { token, result }));
}

/// From an earlier to a later time of day; nothing if it is not later.
fn between(earlier: WallTime, later: WallTime) -> Duration {
    Duration::from_nanos(later.as_unix_nanos().saturating_sub(earlier.as_unix_nanos()))
}

fn after(time: WallTime, passed: Duration) -> WallTime {
    let nanos = u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX);
    WallTime::from_unix_nanos(time.as_unix_nanos().saturating_add(nanos))
}
