//! What commands share: their outcome, and JSON as text for people.

use std::io::{self, ErrorKind, Write};

use serde_json::Value;
use weft_base::WallTime;

/// The outcome of a command: its exit status, or a sentence for standard error.
pub(crate) type Outcome = Result<u8, String>;

/// Prints lines; says nothing if nobody reads them any more.
pub(crate) fn print_lines<T: AsRef<str>>(lines: impl IntoIterator<Item = T>) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match lines.into_iter().try_for_each(|line| writeln!(out, "{}", line.as_ref())) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(unwritten(&error)),
        _ => Ok(()),
    }
}

/// What to say if standard output takes no more.
pub(crate) fn unwritten(error: &io::Error) -> String {
    format!("cannot write to standard output: {error}")
}

/// Writes a line to standard error. If that fails there is nobody left to tell.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// A time in seconds since 1970 as people write it, in UTC: `2026-11-21 22:14:37Z`.
pub(crate) fn utc(seconds: u64) -> String {
    let time = WallTime::from_unix_nanos(seconds.saturating_mul(1_000_000_000)).to_string();
    // Without the milliseconds.
    let whole = time.split('.').next().unwrap_or(&time);
    format!("{}Z", whole.replace('T', " "))
}

/// The lines of `value` as indented JSON, for `--json`.
pub(crate) fn json_lines(value: &Value) -> Vec<String> {
    vec![format!("{value:#}")]
}

/// The lines of `value` for people: nested names indented, lists of plain values on lines.
pub(crate) fn plain_lines(value: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    push_plain(value, 0, &mut lines);
    lines
}

fn push_plain(value: &Value, depth: usize, lines: &mut Vec<String>) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match leaf_text(value) {
                    Some(text) => lines.push(format!("{indent}{name}: {text}")),
                    None => {
                        lines.push(format!("{indent}{name}:"));
                        push_plain(value, depth + 1, lines);
                    }
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                match leaf_text(item) {
                    Some(text) => lines.push(format!("{indent}{text}")),
                    None => lines.push(format!("{indent}{}", fields_on_one_line(item))),
                }
            }
        }
        leaf => lines.push(format!("{indent}{}", leaf_text(leaf).unwrap_or_default())),
    }
}

/// A value that fits on the line of its name; `None` for those that need lines of their own.
fn leaf_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some("-".to_owned()),
        Value::Bool(yes) => Some(if *yes { "yes" } else { "no" }.to_owned()),
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Array(items) if items.is_empty() => Some("none".to_owned()),
        Value::Object(fields) if fields.is_empty() => Some("none".to_owned()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// An object in a list: `name=value` pairs on one line.
fn fields_on_one_line(item: &Value) -> String {
    let Value::Object(fields) = item else { return item.to_string() };
    let pairs = fields.iter().map(|(name, value)| format!("{name}={}", on_one_line(value)));
    pairs.collect::<Vec<_>>().join(" ")
}

/// A value within a line: lists and objects in parentheses.
fn on_one_line(value: &Value) -> String {
    if let Some(text) = leaf_text(value) {
        return text;
    }
    match value {
        Value::Array(items) => {
            let items = items.iter().map(|item| match item {
                Value::Object(_) => fields_on_one_line(item),
                other => on_one_line(other),
            });
            format!("({})", items.collect::<Vec<_>>().join(", "))
        }
        other => format!("({})", fields_on_one_line(other)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_within_rows_are_words_too() {
        let lab = json!({ "nodes": [{
            "interfaces": ["eth0", "eth1"], "name": "r1",
            "processes": [{ "name": "r1", "pid": 7 }, { "name": "ping", "pid": 9 }],
            "uses": { "memory": 1 },
        }]});
        assert_eq!(
            plain_lines(&lab)[1],
            "  interfaces=(eth0, eth1) name=r1 processes=(name=r1 pid=7, name=ping pid=9) uses=(memory=1)"
        );
    }

    #[test]
    fn people_get_names_lists_and_rows() {
        let value = json!({
            "name": "r1", "empty": [], "locals": ["a", "b"],
            "interfaces": [{"name": "eth0", "up": true}],
        });
        assert_eq!(
            plain_lines(&value),
            [
                "empty: none",
                "interfaces:",
                "  name=eth0 up=yes",
                "locals:",
                "  a",
                "  b",
                "name: r1"
            ]
        );
    }
}
