//! What a transaction is told, and what it says and asks.

use std::sync::Arc;
use std::time::Duration;

use weft_base::{Token, WallTime};
use weft_config::{Errors, LoadMode, Schema, Tree};

use crate::Revision;
use crate::kept::Kept;
use crate::parts::Parts;

/// Who edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// The session; two sessions of one user are two. 0 is that of the configuration's owner, whose edits
    /// are not kept.
    pub session: u64,
    /// The user's name, for messages and the history.
    pub user: String,
    /// The user's id; 0 may break locks.
    pub uid: u32,
}

/// The right to edit, which one session has at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// Who has it.
    pub who: Who,
    /// Since when.
    pub since: WallTime,
}

/// What an operator asks for. All but [`Action::Lock`] and [`Action::Break`] need the lock.
#[derive(Debug, Clone)]
pub enum Action {
    /// To be the one who edits.
    Lock,
    /// To edit no more. What was not committed is thrown away.
    Unlock,
    /// To take the lock from somebody else, whose edits are thrown away. For root alone.
    Break,
    /// A command that changes the candidate; see [`Schema::edit`].
    Edit(String),
    /// A text to be loaded into the candidate; see [`Schema::load`].
    Load(Tree, LoadMode),
    /// The candidate is to be what runs.
    Revert,
    /// The candidate is to be a revision of the history.
    Restore(u64),
    /// Whether the candidate could be committed, as far as one can tell before.
    Check,
    /// The candidate is to run; with nothing to commit, the last commit is confirmed.
    Commit {
        /// What for.
        comment: String,
        /// After this time everything is as before, unless it is confirmed by another commit.
        confirm_within: Option<Duration>,
    },
}

/// How an [`Action`] ended well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// The session has the lock. The candidate is what runs.
    Locked,
    /// It has the lock no more.
    Unlocked {
        /// Whether there were edits, now thrown away.
        discarded: bool,
    },
    /// It has the lock that somebody else had.
    Broken {
        /// Who had it.
        lock: Lock,
        /// Whether that one's edits were thrown away.
        discarded: bool,
    },
    /// The candidate is another one.
    Edited,
    /// Nothing speaks against it.
    Checked,
    /// It runs and is in the history.
    Committed(Revision),
    /// The last commit stays.
    Confirmed(Revision),
}

/// Why an [`Action`] was refused. `Display` is a sentence for the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The history has not been read yet.
    #[error("the configuration is still being read: try again in a moment")]
    NotReady,
    /// Somebody else edits.
    #[error("{} edits the configuration: wait, or let root break the lock", .0.who.user)]
    Locked(Lock),
    /// The session has no lock.
    #[error("this needs the lock: begin with `configure`")]
    NotLocked,
    /// Nobody has a lock that could be broken.
    #[error("nobody else edits the configuration")]
    NoLock,
    /// Only root may.
    #[error("only root may break the lock of somebody else")]
    NotRoot,
    /// A commit or a fallback is under way.
    #[error("a commit is under way: try again when it has ended")]
    Busy,
    /// The candidate is what runs.
    #[error("there is nothing to commit")]
    NothingToCommit,
    /// The time for the confirmation is none.
    #[error("a commit has to be confirmed within one second to 30 days")]
    ConfirmTime,
    /// Mistakes in a command, a text or the candidate.
    #[error("{0}")]
    Mistakes(Errors),
    /// The candidate is too large to be kept.
    #[error("the configuration would have {size} bytes, but may have at most {limit}")]
    TooLarge {
        /// Its length in bytes.
        size: usize,
        /// The greatest length in bytes.
        limit: usize,
    },
    /// Components refuse it. Nothing was changed.
    #[error("{}", reasons(.0))]
    Refused(Vec<Objection>),
    /// A component or the disk refused it while it was put into effect. Everything is as before;
    /// components that refused that as well are started again with it.
    #[error("{objection}{}", not_back(.stuck))]
    RolledBack {
        /// Who refused, and why.
        objection: Objection,
        /// Who did not take back the old configuration.
        stuck: Vec<Objection>,
    },
    /// The disk.
    #[error("{0}")]
    Disk(String),
}

/// What a component, or the disk, has against a change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", whose(.name, .reason))]
pub struct Objection {
    /// The first word of the statements in question; `disk` if it is the disk.
    pub name: String,
    /// Why.
    pub reason: Reason,
}

/// Why a component refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// In words.
    #[error("{0}")]
    Words(String),
    /// Mistakes with their places, the first of which says who found them.
    #[error("{0}")]
    Mistakes(Errors),
}

impl From<String> for Reason {
    fn from(words: String) -> Self {
        Self::Words(words)
    }
}

impl From<&str> for Reason {
    fn from(words: &str) -> Self {
        Self::Words(words.to_owned())
    }
}

impl From<Errors> for Reason {
    fn from(mistakes: Errors) -> Self {
        Self::Mistakes(mistakes)
    }
}

fn whose(name: &str, reason: &Reason) -> String {
    match reason {
        Reason::Words(_) => format!("{name}: "),
        // It begins with its place, as all mistakes do.
        Reason::Mistakes(_) => String::new(),
    }
}

fn reasons(objections: &[Objection]) -> String {
    objections.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn not_back(objections: &[Objection]) -> String {
    let each = |objection: &Objection| {
        format!(
            "\nand does not take back what was before, with which it is started again: {objection}"
        )
    };
    objections.iter().map(each).collect()
}

/// The statements that begin with one word, before and after: what concerns one component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockChange {
    /// The word.
    pub name: String,
    /// Before; empty if there was none.
    pub old: Tree,
    /// After; empty if there is none any more.
    pub new: Tree,
}

/// What a transaction is told.
#[derive(Debug)]
pub(crate) enum Input {
    /// What the history holds. The first input.
    Restored {
        /// The time of day.
        wall: WallTime,
        /// The newest revision and its text.
        newest: Option<(Revision, String)>,
        /// Who was editing what.
        kept: Option<Kept>,
    },
    /// What may be configured has changed: a component came or went.
    Described {
        /// What all components accept.
        schema: Schema,
        /// What each component is given.
        parts: Parts,
    },
    /// An operator wants something; answered by [`Output::Reply`].
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
    /// A component's answer to [`Output::Check`] or [`Output::Apply`]. If it refuses, nothing may have
    /// changed in it.
    Answer {
        /// The number of the question.
        step: u64,
        /// Why not, if it refuses.
        result: Result<(), Reason>,
    },
    /// The answer to [`Output::Store`] and [`Output::Confirm`].
    Stored(Result<Revision, String>),
    /// The answer to [`Output::Load`].
    Loaded(Result<(Revision, String), String>),
    /// The deadline has come, perhaps.
    Tick,
}

/// What a transaction says and asks.
#[derive(Debug)]
pub(crate) enum Output {
    /// What runs is known; the components may be started with it.
    Ready,
    /// Ask the component whether it would accept a change, which it does not make yet.
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
    /// What this component holds is not what runs, or not known: it has to be started again.
    Renew {
        /// Its word.
        name: String,
        /// What runs of it; empty if it is not to run.
        running: Tree,
    },
    /// Keep a revision.
    Store {
        /// What is to be known of it.
        revision: Revision,
        /// Its text.
        text: Arc<str>,
    },
    /// The newest revision stays.
    Confirm {
        /// Its text.
        text: Arc<str>,
    },
    /// Read a revision.
    Load {
        /// Its number.
        number: u64,
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
}
