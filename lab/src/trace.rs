//! The life of one packet, joined from what the stacks of all nodes have recorded.
//!
//! The command of [`Host::visits_arguments`](crate::Host::visits_arguments) prints a JSON array with
//! one object per visit of a packet to the node. The lab knows these members and shows all others
//! of a step as they are:
//!
//! ```json
//! [{"packet": "00c0ffee", "time_ns": 1000, "from": "eth0",
//!   "steps": [{"step": "edge", "slot": 0}, {"step": "dropped", "reason": "no route"}]}]
//! ```
//!
//! `packet` is the identity of the packet, equal on all nodes; `time_ns` counts from the same origin
//! on all nodes (they share the machine's monotonic clock, or the simulator's).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::num::NonZeroU64;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::LabError;
use crate::engine::{Ended, Engine};
use crate::plan::{PROGRAM, Plan};

/// How long a node's stack may take to answer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Longer answers are refused: 4,096 visits with 100 steps of 160 bytes.
pub(crate) const LONGEST_ANSWER: u64 = 64 << 20;

/// One packet's visit to one node.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Visit {
    /// On which node.
    #[serde(skip_deserializing)]
    pub node: String,
    /// Which packet.
    pub packet: String,
    /// When, in nanoseconds on the clock that all nodes share.
    pub time_ns: u64,
    /// Where it came in.
    #[serde(default)]
    pub from: String,
    /// What happened, in order: `step` names it, other members tell more.
    #[serde(default)]
    pub steps: Vec<Map<String, Value>>,
}

/// Reads what the stack of `node` has recorded.
///
/// # Errors
/// The text is not of the form that this module describes.
pub fn read_visits(node: &str, json: &str) -> Result<Vec<Visit>, LabError> {
    let visits: Vec<Visit> = read(node, json)?;
    Ok(visits.into_iter().map(|visit| Visit { node: node.to_owned(), ..visit }).collect())
}

fn read<T: DeserializeOwned>(node: &str, json: &str) -> Result<Vec<T>, LabError> {
    serde_json::from_str(json).map_err(LabError::system(format!("read the trace of node {node}")))
}

/// A visit without what happened.
#[derive(Deserialize)]
struct Sighting {
    packet: String,
    time_ns: u64,
}

/// The visits of each packet in order of time, by packet.
fn by_packet(visits: &[Visit]) -> BTreeMap<&str, Vec<&Visit>> {
    let mut packets: BTreeMap<&str, Vec<&Visit>> = BTreeMap::new();
    for visit in visits {
        packets.entry(&visit.packet).or_default().push(visit);
    }
    for life in packets.values_mut() {
        life.sort_by_key(|visit| visit.time_ns);
    }
    packets
}

/// The life of the packet `packet` as text; `None` if no node has seen it.
#[must_use]
pub fn life(visits: &[Visit], packet: &str) -> Option<String> {
    by_packet(visits).get(packet).map(|visits| print(packet, visits))
}

/// The life of the packet that made the most visits, the earliest of them if there are several.
#[must_use]
pub fn longest_life(visits: &[Visit]) -> String {
    let packets = by_packet(visits);
    let first = |visits: &[&Visit]| visits.first().map_or(u64::MAX, |visit| visit.time_ns);
    let longest = packets.iter().max_by_key(|(_, visits)| (visits.len(), Reverse(first(visits))));
    match longest {
        Some((packet, visits)) => print(packet, visits),
        None => "no packet was recorded: begin with the step `trace;` before packets flow".into(),
    }
}

fn print(packet: &str, visits: &[&Visit]) -> String {
    let begin = visits.first().map_or(0, |visit| visit.time_ns);
    let mut out = format!("packet {packet}");
    let width = visits.iter().map(|visit| visit.node.len()).max().unwrap_or_default();
    for visit in visits {
        let millis = visit.time_ns.saturating_sub(begin) as f64 / 1e6;
        let from = if visit.from.is_empty() { "-" } else { &visit.from };
        // Writing to a string cannot fail.
        let _ = write!(out, "\n{millis:12.6} ms  {:width$}  from {from}", visit.node);
        for step in &visit.steps {
            let _ = write!(out, "\n{:17}{:width$}{}", "", "", step_text(step));
        }
    }
    out
}

/// Members of steps that people want to see first, in this order.
const FIRST: &[&str] = &["slot", "xid", "answer", "detail", "to", "port", "link", "reason"];

/// The name of a step, then its other members.
fn step_text(step: &Map<String, Value>) -> String {
    let mut text = step.get("step").and_then(Value::as_str).unwrap_or("?").to_owned();
    let shown = |name: &str, value: &Value| name != "step" && !value.is_null();
    let mut members: Vec<_> = step.iter().filter(|(name, value)| shown(name, value)).collect();
    members.sort_by_key(|(name, _)| {
        FIRST.iter().position(|first| first == name).unwrap_or(FIRST.len())
    });
    for (name, value) in members {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let _ = write!(text, "  {name} {value}");
    }
    text
}

/// Lets all weft nodes record what they do with one packet in `one_in`.
pub(crate) fn start(
    plan: &Plan<'_>,
    engine: &mut dyn Engine,
    one_in: NonZeroU64,
) -> Result<(), LabError> {
    let words = plan.host.trace_arguments(one_in);
    ask_all(plan, engine, "trace-start", &words).map(drop)
}

/// What all weft nodes have recorded of the packet that made the most visits.
pub(crate) fn collect_longest(
    plan: &Plan<'_>,
    engine: &mut dyn Engine,
) -> Result<Vec<Visit>, LabError> {
    longest(&ask_all(plan, engine, "trace", &plan.host.visits_arguments())?)
}

/// The visits of the packet that made the most of them, the earliest if there are several, from the
/// answers of nodes. All steps of all packets would take hundreds of megabytes.
fn longest(answers: &[(String, String)]) -> Result<Vec<Visit>, LabError> {
    let mut seen: BTreeMap<String, (usize, Reverse<u64>)> = BTreeMap::new();
    for (node, json) in answers {
        for sighting in read::<Sighting>(node, json)? {
            let (visits, first) = seen.entry(sighting.packet).or_insert((0, Reverse(u64::MAX)));
            *visits += 1;
            *first = (*first).max(Reverse(sighting.time_ns));
        }
    }
    let longest = seen.into_iter().max_by_key(|(_, rank)| *rank);
    let Some((packet, _)) = longest else { return Ok(Vec::new()) };
    let mut visits = Vec::new();
    for (node, json) in answers {
        visits.extend(read_visits(node, json)?.into_iter().filter(|visit| visit.packet == packet));
    }
    Ok(visits)
}

/// Runs a command of the host program on all weft nodes and returns what they print.
fn ask_all(
    plan: &Plan<'_>,
    engine: &mut dyn Engine,
    purpose: &str,
    words: &[String],
) -> Result<Vec<(String, String)>, LabError> {
    let words: Vec<_> = std::iter::once(PROGRAM.to_owned()).chain(words.iter().cloned()).collect();
    let nodes = || (0..plan.lab.nodes.len()).filter(|node| plan.lab.nodes[*node].is_weft());
    let process = |node| format!("{purpose}.{}", plan.node_name(node));
    for node in nodes() {
        engine.start(&process(node), node, &words)?;
    }
    let mut answer = |node| {
        let (process, name) = (process(node), plan.node_name(node));
        match engine.wait_exit(&process, TIMEOUT)? {
            Some(Ended::Exited(0)) => Ok((name.to_owned(), engine.stdout(&process)?)),
            ended => {
                engine.kill(&process);
                let how = ended.map_or("did not answer".to_owned(), |ended| ended.to_string());
                let said = engine.last_words(&process);
                Err(LabError::System {
                    action: format!("trace packets on node {name}"),
                    reason: format!("`{}` {how}: {said}", words.join(" ")),
                })
            }
        }
    };
    nodes().map(&mut answer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What two nodes have answered.
    fn answers() -> [(String, String); 2] {
        let a = r#"[{"packet": "1", "time_ns": 2000000, "from": "application",
            "steps": [{"step": "edge", "slot": 0, "xid": "hid-1"}, {"step": "sent", "port": "eth0"}]},
            {"packet": "2", "time_ns": 5, "from": "eth0", "steps": []}]"#;
        let b = r#"[{"packet": "1", "time_ns": 2500000, "from": "eth0", "unknown": [],
            "steps": [{"step": "dropped", "help": "it was too far", "reason": "hop-limit", "to": null}]}]"#;
        [("router", b), ("a", a)].map(|(node, json)| (node.to_owned(), json.to_owned()))
    }

    fn visits() -> Vec<Visit> {
        answers().map(|(node, json)| read_visits(&node, &json).unwrap()).concat()
    }

    #[test]
    fn only_the_packet_with_the_most_visits_is_taken_from_the_answers() {
        let longest = longest(&answers()).unwrap();
        assert_eq!(longest.len(), 2);
        assert_eq!(longest_life(&longest), longest_life(&visits()));
        assert_eq!(super::longest(&[]).unwrap(), []);
    }

    #[test]
    fn visits_of_one_packet_are_joined_in_order_of_time() {
        let expected = "packet 1
    0.000000 ms  a       from application
                       edge  slot 0  xid hid-1
                       sent  port eth0
    0.500000 ms  router  from eth0
                       dropped  reason hop-limit  help it was too far";
        assert_eq!(life(&visits(), "1").unwrap(), expected);
        assert_eq!(longest_life(&visits()), expected);
        assert_eq!(life(&visits(), "3"), None);
    }

    #[test]
    fn malformed_traces_are_refused_with_the_node() {
        for json in ["", "{}", "[{}]", r#"[{"packet": 1, "time_ns": 0}]"#, "[1]"] {
            let error = read_visits("r1", json).unwrap_err().to_string();
            assert!(error.contains("node r1"), "{error}");
        }
        assert!(longest_life(&[]).contains("no packet"));
    }
}
