//! The lab of the demo, examples/push.lab, and what its programs report.

use std::path::Path;

use serde_json::Value;
use weft_lab::{Lab, Outcome, ProcessOutcome, Variables};

use super::parse;

/// examples/push.lab, which is part of this program.
const LAB: &[u8] = include_bytes!("../../../examples/push.lab");

/// The lab with its variables set.
pub(crate) fn lab(variables: Variables) -> Result<Lab, String> {
    parse("push.lab", LAB, variables, None)
}

/// The receivers of a run.
pub(crate) fn receivers(outcome: &Outcome) -> impl Iterator<Item = &ProcessOutcome> {
    outcome.processes.iter().filter(|process| process.name.starts_with("receiver"))
}

/// What a receiver has printed of the file it got; `None` if it got none.
pub(crate) fn received(outcome: &Outcome, receiver: &ProcessOutcome) -> Option<Value> {
    report(&outcome.output.join(&receiver.stdout), "received")
}

/// The digest that the sender states.
pub(crate) fn sent_digest(outcome: &Outcome) -> Option<String> {
    let sender = outcome.processes.iter().find(|process| process.name == "sender")?;
    let report = report(&outcome.output.join(&sender.stdout), "sent")?;
    report["sha256"].as_str().map(str::to_owned)
}

/// File bits per second, in millions, from the first datagram to the last block of a receiver's
/// report.
pub(crate) fn goodput(received: &Value) -> f64 {
    let bytes = received["bytes"].as_u64().unwrap_or(0);
    let seconds = received["seconds"].as_f64().unwrap_or(0.0);
    bytes as f64 * 8.0 / seconds.max(1e-9) / 1e6
}

/// The JSON line with the member `member` that a process has printed.
fn report(path: &Path, member: &str) -> Option<Value> {
    let text = std::fs::read_to_string(path).ok()?;
    let values = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    values.into_iter().find(|value| value.get(member).is_some())
}
