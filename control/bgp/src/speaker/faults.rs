//! What the log says of faults in UPDATEs: the first of a session at once, then a line a minute at most, however many there are.
//!
//! Reference: RFC 7606 §6 (operators are told of faults, and of the networks involved).

use std::time::Duration;

use weft_base::Instant;

use crate::incoming::Taken;

/// How long the log says nothing after a line.
const SILENCE: Duration = Duration::from_secs(60);

/// What the log has said of the faults of a session, and what it has not.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// When there was a line.
    said: Option<Instant>,
    /// How many there have been since then.
    since: u64,
}

impl Faults {
    /// An UPDATE has come, with faults or not: returns what the log is to say, if it is to say something.
    pub(super) fn come(&mut self, now: Instant, taken: &Taken) -> Option<String> {
        let line = describe(taken)?;
        self.since += taken.fault_count();
        if self.said.is_some_and(|said| now < said + SILENCE) {
            return None;
        }
        let since = std::mem::take(&mut self.since);
        Some(match self.said.replace(now) {
            None if since == 1 => line,
            None => format!("{line}; faults so far: {since}"),
            Some(_) => format!("{line}; faults since the last such line: {since}"),
        })
    }
}

/// What is wrong with an UPDATE, and what is done about it: of several faults the one with the strongest consequence.
fn describe(taken: &Taken) -> Option<String> {
    // Of several that are as strong the first one counts.
    let worst = taken.faults.iter().rev().max_by_key(|fault| fault.action);
    if let Some(worst) = worst {
        let with = taken.first.map_or_else(String::new, |net| format!(" with {net}"));
        return Some(format!("in an UPDATE{with}: {worst}: {}", worst.action));
    }
    let net = taken.misplaced.first()?;
    Some(format!("in an UPDATE with {net}: no packets from elsewhere go there: that is not taken"))
}
