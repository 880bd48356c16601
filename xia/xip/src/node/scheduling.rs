//! How the node shares the processors of its machine with other processes.
//!
//! Reference: sched(7). Whoever has the right to change it is asked; what the system refuses is reported, and the
//! node works on as it is.

use serde_json::{Value, json};
use weft_base::Token;
use weft_runtime::{Action, Level, Scheduling};

use super::{Node, report};

/// What the node wants, and what came of it.
#[derive(Default)]
pub(super) struct Share {
    wanted: Scheduling,
    /// What was asked for last.
    asked: Option<Token>,
    /// What the system said last.
    now: Option<Scheduling>,
    refused: Vec<String>,
}

impl Node {
    /// Shares the processors in this way from now on. Before the node has started, this is what it starts with.
    pub(super) fn set_scheduling(&mut self, wanted: Scheduling, out: &mut Vec<Action>) {
        if self.share.wanted != wanted {
            self.share.wanted = wanted;
            if self.started {
                self.ask_for_share(out);
            }
        }
    }

    /// Asks for the share that the node starts with.
    pub(super) fn start_share(&mut self, out: &mut Vec<Action>) {
        if self.share.wanted != Scheduling::default() {
            self.ask_for_share(out);
        }
    }

    fn ask_for_share(&mut self, out: &mut Vec<Action>) {
        let token = self.next_token();
        self.share.asked = Some(token);
        let scheduling = self.share.wanted.clone();
        out.push(Action::Schedule { token, process: None, scheduling });
    }

    /// What came of the wish.
    pub(super) fn scheduled(
        &mut self,
        token: Token,
        result: Result<(Scheduling, Vec<String>), String>,
        out: &mut Vec<Action>,
    ) {
        if self.share.asked != Some(token) {
            return;
        }
        let (now, refused) = match result {
            Ok((now, refused)) => (Some(now), refused),
            Err(error) => (None, vec![error]),
        };
        for error in &refused {
            report(
                out,
                Level::Warning,
                format!("the stack shares the processors as before: {error}"),
            );
        }
        (self.share.now, self.share.refused) = (now, refused);
    }

    /// How the processors are shared, if the node was to share them in another way than usual.
    pub(super) fn show_share(&self) -> Option<Value> {
        self.share.asked?;
        let now = self.share.now.as_ref();
        let priority = now.and_then(|now| now.priority).map(|priority| priority.to_string());
        Some(json!({
            "priority": priority,
            "processors": now.map(|now| now.processors.iter().collect::<Vec<_>>()),
            "refused": self.share.refused,
        }))
    }
}
