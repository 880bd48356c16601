//! Calls of those who want to know what the RPKI says, and wait for it.

use std::time::Duration;

use weft_base::Instant;
use weft_xrl::{Called, Output, XrlError};

use crate::interface::{Changes, ChangesReply, List, ListReply, Payload as Record};
use crate::payload::Payload;
use crate::payloads::Payloads;

/// How long a call waits at most, in milliseconds.
const LONGEST: u32 = 60_000;
/// Payloads in an answer at most.
const MOST: usize = 16_384;

/// What is asked for.
#[derive(Debug)]
enum Question {
    List(List),
    Changes(Changes),
}

/// Those that wait.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Vec<(Called, Question, Instant)>);

impl Waiting {
    /// A call for the list.
    pub(crate) fn list(&mut self, now: Instant, called: Called, list: List) {
        let until = until(now, list.wait);
        self.0.push((called, Question::List(list), until));
    }

    /// A call for changes.
    pub(crate) fn changes(&mut self, now: Instant, called: Called, changes: Changes) {
        let until = until(now, changes.wait);
        self.0.push((called, Question::Changes(changes), until));
    }

    /// Who has called from here is gone.
    pub(crate) fn forget(&mut self, session: u64) {
        self.0.retain(|(called, ..)| called.session != session);
    }

    /// When something is to be answered at the latest.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.0.iter().map(|(.., until)| *until).min()
    }

    /// Answers those that need not wait, or cannot wait any longer.
    pub(crate) fn answer(
        &mut self,
        now: Instant,
        is_ready: bool,
        payloads: &Payloads,
        out: &mut Vec<Output>,
    ) {
        self.0.retain(|(called, question, until)| {
            let is_over = *until <= now;
            let answer = match question {
                Question::List(asked) if is_ready || is_over => {
                    called.answer(list(asked, is_ready, payloads))
                }
                Question::Changes(asked) if is_over || asked.after != payloads.edition() => {
                    called.answer(Ok(changes(asked, payloads)))
                }
                _ => return true,
            };
            out.push(answer);
            false
        });
    }
}

fn until(now: Instant, wait: u32) -> Instant {
    now + Duration::from_millis(wait.min(LONGEST).into())
}

fn list(asked: &List, is_ready: bool, payloads: &Payloads) -> Result<ListReply, XrlError> {
    let wrong = |error| XrlError::bad_args(format!("`from` is none of the last answer: {error}"));
    let from: Option<Payload> = asked.from.as_deref().map(str::parse).transpose().map_err(wrong)?;
    let at_most = (asked.at_most as usize).clamp(1, MOST);
    let mut rest = payloads.behind(from).filter(|_| is_ready).peekable();
    let page: Vec<_> = rest.by_ref().take(at_most).copied().collect();
    let next = rest.peek().and(page.last()).map(ToString::to_string);
    let (edition, payloads) = (payloads.edition(), records(page));
    Ok(ListReply { ready: is_ready, edition, payloads, next })
}

fn changes(asked: &Changes, payloads: &Payloads) -> ChangesReply {
    let at_most = (asked.at_most as usize).clamp(1, MOST);
    let news = payloads.changes(asked.after, at_most);
    let again = news.is_none();
    let news = news.unwrap_or_default();
    let (announced, withdrawn) = (records(news.announced), records(news.withdrawn));
    ChangesReply { again, edition: news.edition, announced, withdrawn }
}

fn records(payloads: Vec<Payload>) -> Vec<Record> {
    let record = |one: Payload| Record {
        net: one.net(),
        max_length: one.max_length().into(),
        system: one.system(),
    };
    payloads.into_iter().map(record).collect()
}
