//! `weft show processes`: `manager/1.0/processes`.

use serde_json::json;
use weft_manager::interface::Process;

use super::table::{Align, bytes, duration, lines};
use super::{Asker, Shown};

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

pub(super) fn show(asker: &Asker) -> Result<Shown, String> {
    let reply = asker.processes()?;
    let now = monotonic();
    let age = |one: &Process| (one.pid != 0).then(|| now.saturating_sub(one.since));
    let processes: Vec<_> = reply
        .processes
        .iter()
        .map(|one| {
            json!({
                "instance": one.instance,
                "class": one.class,
                "pid": (one.pid != 0).then_some(one.pid),
                "uid": one.uid,
                "state": one.state,
                "age_seconds": age(one).map(seconds),
                "restarts": one.restarts,
                "last_end": some(&one.ended),
                "trouble": some(&one.trouble),
                "memory_bytes": one.memory,
                "processor_seconds": seconds(one.processor),
            })
        })
        .collect();
    let row = |one: &Process| {
        let running = one.pid != 0;
        let or_dash = |text: String| if running { text } else { "-".to_owned() };
        vec![
            one.instance.clone(),
            one.class.clone(),
            or_dash(one.pid.to_string()),
            one.uid.to_string(),
            one.state.clone(),
            age(one).map_or_else(|| "-".to_owned(), |age| duration(age / SECOND)),
            one.restarts.to_string(),
            or_dash(bytes(one.memory)),
            or_dash(format!("{:.2}s", seconds(one.processor))),
            if one.trouble.is_empty() { one.ended.clone() } else { first_line(&one.trouble) },
        ]
    };
    let columns = [
        ("process", Align::Left),
        ("class", Align::Left),
        ("pid", Align::Right),
        ("uid", Align::Right),
        ("state", Align::Left),
        ("age", Align::Right),
        ("restarts", Align::Right),
        ("memory", Align::Right),
        ("cpu", Align::Right),
        ("last end or trouble", Align::Left),
    ];
    let rows: Vec<_> = reply.processes.iter().map(row).collect();
    let missing = reply.missing.iter().map(|sentence| format!("isolation is missing: {sentence}"));
    Ok(Shown {
        json: json!({
            "node": reply.node,
            "processes": processes,
            "missing_isolation": reply.missing,
        }),
        lines: lines(&columns, &rows).into_iter().chain(missing).collect(),
    })
}

/// A time with fractions, exact enough to be shown.
pub(crate) fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / SECOND as f64
}

/// Nanoseconds of the clock that processes of this machine have.
pub(crate) fn monotonic() -> u64 {
    weft_runtime::real::now().as_nanos()
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
