//! A commit under way: its changes, and how far it has come.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use weft_base::{Instant, Token};
use weft_config::Tree;

use crate::messages::{BlockChange, Objection, Reason};

/// What is being put into effect, or only checked.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) purpose: Purpose,
    /// What is to run.
    pub(crate) target: Tree,
    /// Its text.
    pub(crate) text: Arc<str>,
    pub(crate) changes: Vec<BlockChange>,
    pub(crate) phase: Phase,
    /// When the answers must be there at the latest.
    pub(crate) deadline: Option<Instant>,
}

#[derive(Debug)]
pub(crate) enum Purpose {
    Check {
        token: Token,
    },
    Commit {
        token: Token,
        user: String,
        comment: String,
        confirm_within: Option<Duration>,
    },
    /// The last commit stays.
    Confirm {
        token: Token,
    },
    /// Nobody confirmed the last commit: back to this revision, whoever objects.
    Fallback {
        number: u64,
        objections: Vec<Objection>,
    },
}

#[derive(Debug)]
pub(crate) enum Phase {
    /// The questions that are not answered yet, with the numbers of their changes.
    Checking { waiting: BTreeMap<u64, usize>, objections: Vec<Objection> },
    /// Change number `at` is being made.
    Applying { at: usize, step: u64 },
    /// The history writes.
    Storing,
    /// Change number `at` is being taken back, those before it still have to be.
    Undoing { at: usize, step: u64, objection: Objection, stuck: Vec<Objection> },
}

impl BlockChange {
    /// The change that takes this one back.
    pub(crate) fn reversed(&self) -> Self {
        Self { name: self.name.clone(), old: self.new.clone(), new: self.old.clone() }
    }

    pub(crate) fn objection(&self, reason: Reason) -> Objection {
        Objection { name: self.name.clone(), reason }
    }
}

impl Job {
    pub(crate) fn is_fallback(&self) -> bool {
        matches!(self.purpose, Purpose::Fallback { .. })
    }

    /// Whether an answer to this question is still wanted.
    pub(crate) fn waits_for(&self, answered: u64) -> bool {
        match &self.phase {
            Phase::Checking { waiting, .. } => waiting.contains_key(&answered),
            Phase::Applying { step, .. } | Phase::Undoing { step, .. } => *step == answered,
            Phase::Storing => false,
        }
    }

    /// Who waits for it.
    pub(crate) fn token(&self) -> Option<Token> {
        match self.purpose {
            Purpose::Check { token }
            | Purpose::Commit { token, .. }
            | Purpose::Confirm { token } => Some(token),
            Purpose::Fallback { .. } => None,
        }
    }
}
