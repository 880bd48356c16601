//! How the node shares the processors of its machine with other processes.
//!
//! Reference: sched(7). Whoever has the right to change it is asked; what the system refuses is reported, and the
//! node works on as it is.

use serde_json::{Value, json};
use weft_base::Token;
use weft_config::{Block, Entry, Error, Errors, gather};
use weft_runtime::{Action, Level, Priority, Scheduling};

use super::{Node, report};

/// The words of the statements.
pub(super) const STATEMENTS: [&str; 2] = ["priority", "processor"];
/// Numbers of processors that can be asked for (`CPU_SETSIZE`).
const PROCESSORS: std::ops::RangeInclusive<u16> = 0..=1023;

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

/// Reads the statements.
///
/// # Errors
/// Mistakes with their places.
pub(super) fn read(block: &mut Block<'_>) -> Result<Scheduling, Errors> {
    let priority = block.one(STATEMENTS[0])?.map(read_priority).transpose()?;
    let processors = gather(block.many(STATEMENTS[1]).into_iter().map(read_processors))?;
    Ok(Scheduling { priority, processors: processors.into_iter().flatten().collect() })
}

fn read_priority(mut entry: Entry<'_>) -> Result<Priority, Error> {
    let kind: String = entry.argument("`nice` or `fifo`")?;
    let number: String = entry.argument("the number of the priority")?;
    let read =
        Priority::of_words(&kind, &number).map_err(|sentence| entry.error_at(1, sentence))?;
    entry.end()?;
    Ok(read)
}

fn read_processors(mut entry: Entry<'_>) -> Result<Vec<u16>, Errors> {
    let mut numbers = vec![entry.argument::<u16>("the number of a processor")?];
    numbers.extend(entry.rest::<u16>()?);
    entry.end()?;
    match numbers.iter().all(|number| PROCESSORS.contains(number)) {
        true => Ok(numbers),
        false => Err(entry.error_at(1, "processors have numbers from 0 to 1023").into()),
    }
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
