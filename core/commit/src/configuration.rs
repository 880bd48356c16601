//! A node's configuration as one machine: the transaction with its history.

use weft_base::{Instant, Token, WallTime};
use weft_config::{Schema, Tree};
use weft_runtime::{Component, DiskError, DiskReply, DiskRequest};

use crate::history::{Found, History, HistoryInput, HistoryOutput, HistorySettings};
use crate::kept::Kept;
use crate::messages::{Action, BlockChange, Done, Input, Output, Reason, Refusal, Who};
use crate::parts::Parts;
use crate::revision::Revision;
use crate::transaction::Transaction;

/// What the owner of the configuration tells it.
#[derive(Debug)]
pub enum Event {
    /// The first one: read the history.
    Start {
        /// The time of day.
        wall: WallTime,
    },
    /// What may be configured has changed.
    Described {
        /// What all components accept.
        schema: Schema,
        /// Names of statements, those that others need before those that need them.
        parts: Parts,
    },
    /// An operator wants something; answered by [`Want::Reply`].
    Request {
        /// Comes back in the answer.
        token: Token,
        /// Who.
        who: Who,
        /// The time of day.
        wall: WallTime,
        /// What.
        action: Action,
    },
    /// A component's answer to [`Want::Check`] or [`Want::Apply`].
    Answer {
        /// The number of the question.
        step: u64,
        /// Why not, if it refuses; nothing may have changed in it then.
        result: Result<(), Reason>,
    },
    /// The answer to [`Want::Disk`].
    Disk {
        /// The token of the request.
        token: Token,
        /// What came of it.
        result: Result<DiskReply, DiskError>,
    },
    /// The deadline has come, perhaps.
    Tick,
}

/// What the configuration asks of its owner.
#[derive(Debug)]
pub enum Want {
    /// What runs is known: [`Configuration::transaction`] has it. Start the components with it.
    Ready,
    /// Ask the component of these statements whether it would accept a change.
    Check {
        /// Comes back in the answer.
        step: u64,
        /// What would change.
        change: BlockChange,
    },
    /// Let the component make a change, wholly or not at all.
    Apply {
        /// Comes back in the answer.
        step: u64,
        /// What changes.
        change: BlockChange,
    },
    /// Start the component of these statements again, with this: it did not answer, or refused to go
    /// back, so what it holds is not what runs, or not known.
    Renew {
        /// The word with which the statements begin.
        name: String,
        /// What runs of them; empty if the component is not to run.
        running: Tree,
    },
    /// Something to be done by the disk.
    Disk {
        /// Comes back in the answer.
        token: Token,
        /// What.
        request: DiskRequest,
    },
    /// The answer to a request.
    Reply {
        /// That of the request.
        token: Token,
        /// How it ended.
        result: Result<Done, Refusal>,
    },
    /// Something that all operators should know, in one sentence.
    Notice(String),
    /// The history cannot be read, for this reason; nothing can be configured.
    Failed(String),
}

/// The transaction of a node and its history.
#[derive(Debug)]
pub struct Configuration {
    transaction: Transaction,
    history: History,
    /// The time of day at the start, until the history has been read.
    started: WallTime,
    /// What the history was last told to keep, if it was told.
    kept: Option<Kept>,
    /// How many of these it has not answered yet.
    keeping: usize,
    /// Replies that wait for that: edits that are answered outlive this process.
    held: Vec<Want>,
}

impl Configuration {
    /// A configuration that knows nothing until [`Event::Start`] has led to [`Want::Ready`].
    pub fn new(schema: Schema, parts: Parts, settings: HistorySettings) -> Self {
        Self {
            transaction: Transaction::new(schema, parts),
            history: History::new(settings),
            started: WallTime::from_unix_nanos(0),
            kept: None,
            keeping: 0,
            held: Vec::new(),
        }
    }

    /// What runs, what is edited, by whom.
    pub fn transaction(&self) -> &Transaction {
        &self.transaction
    }

    /// The revisions that are kept, newest first: the first one runs, the next one is what
    /// `rollback 1` restores, and so on.
    pub fn revisions(&self) -> impl Iterator<Item = &Revision> {
        self.history.revisions().rev()
    }

    fn tell(&mut self, now: Instant, input: Input, out: &mut Vec<Want>) {
        let mut outputs = Vec::new();
        self.transaction.handle(now, input, &mut outputs);
        for output in outputs {
            match output {
                Output::Ready => out.push(Want::Ready),
                Output::Check { step, change } => out.push(Want::Check { step, change }),
                Output::Apply { step, change } => out.push(Want::Apply { step, change }),
                Output::Renew { name, running } => out.push(Want::Renew { name, running }),
                // What was committed is on disk, whatever is written of who edits.
                Output::Reply {
                    token,
                    result: result @ Ok(Done::Committed(_) | Done::Confirmed(_)),
                } => out.push(Want::Reply { token, result }),
                Output::Reply { token, result } => self.held.push(Want::Reply { token, result }),
                Output::Notice(text) => out.push(Want::Notice(text)),
                Output::Store { revision, text } => {
                    self.ask(now, HistoryInput::Store { revision, text }, out);
                }
                Output::Confirm { text } => self.ask(now, HistoryInput::Confirm { text }, out),
                Output::Load { number } => self.ask(now, HistoryInput::Load { number }, out),
            }
        }
        self.keep(now, out);
    }

    /// Has the history keep what is being edited, if that has changed.
    fn keep(&mut self, now: Instant, out: &mut Vec<Want>) {
        let kept = self.transaction.kept();
        if kept != self.kept {
            self.keeping += 1;
            let bytes = kept.as_ref().map(|kept| self.transaction.encode(kept));
            self.kept = kept;
            self.ask(now, HistoryInput::Keep(bytes), out);
        }
        if self.keeping == 0 {
            out.append(&mut self.held);
        }
    }

    fn ask(&mut self, now: Instant, input: HistoryInput, out: &mut Vec<Want>) {
        let mut outputs = Vec::new();
        self.history.handle(input, &mut outputs);
        for output in outputs {
            match output {
                HistoryOutput::Disk { token, request } => out.push(Want::Disk { token, request }),
                HistoryOutput::Notice(text) => out.push(Want::Notice(text)),
                HistoryOutput::Ready(Ok(Found { newest, kept })) => {
                    self.kept.clone_from(&kept);
                    self.tell(now, Input::Restored { wall: self.started, newest, kept }, out);
                }
                HistoryOutput::Kept(result) => {
                    self.keeping -= 1;
                    if let Err(reason) = result {
                        let text = format!("edits would not outlive a restart: {reason}");
                        out.push(Want::Notice(text));
                    }
                    self.keep(now, out);
                }
                HistoryOutput::Ready(Err(reason)) => out.push(Want::Failed(reason)),
                HistoryOutput::Stored(result) => self.tell(now, Input::Stored(result), out),
                HistoryOutput::Loaded(result) => self.tell(now, Input::Loaded(result), out),
            }
        }
    }
}

impl Component for Configuration {
    type Input = Event;
    type Output = Want;

    fn handle(&mut self, now: Instant, event: Event, out: &mut Vec<Want>) {
        match event {
            Event::Start { wall } => {
                self.started = wall;
                self.ask(now, HistoryInput::Start, out);
            }
            Event::Described { schema, parts } => {
                self.tell(now, Input::Described { schema, parts }, out);
            }
            Event::Request { token, who, wall, action } => {
                self.tell(now, Input::Request { token, who, wall, action }, out);
            }
            Event::Answer { step, result } => self.tell(now, Input::Answer { step, result }, out),
            Event::Disk { token, result } => {
                self.ask(now, HistoryInput::Disk { token, result }, out);
            }
            Event::Tick => self.tell(now, Input::Tick, out),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.transaction.deadline()
    }
}
