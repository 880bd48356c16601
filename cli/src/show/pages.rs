//! State that comes in pages: `show` of `rib/1.0` and `bgp/1.0`, so that a full table stalls neither who is asked nor who
//! reads.

use serde_json::{Value, json};

use super::table::{Align, lines};
use crate::output::{Outcome, json_lines, print_lines};

/// Prefixes in a page.
pub(super) const PAGE: u32 = 1000;

/// Prints all pages of `ask`, which is told behind which prefix to go on: as one JSON document, or as rows under
/// `columns`, each page as it comes.
pub(super) fn print(
    is_json: bool,
    columns: &[(&str, Align)],
    rows: impl Fn(&Value) -> Vec<Vec<String>>,
    ask: impl Fn(Option<String>) -> Result<Value, String>,
) -> Outcome {
    let mut all = Vec::new();
    let mut from = None;
    let mut is_first = true;
    loop {
        let (prefixes, next) = match ask(from)? {
            Value::Array(prefixes) => (prefixes, None),
            mut page => (taken(page["routes"].take()), page["next"].as_str().map(str::to_owned)),
        };
        if is_json {
            all.extend(prefixes);
        } else {
            let rows: Vec<_> = prefixes.iter().flat_map(&rows).collect();
            // The names of the columns stand on top once.
            print_lines(lines(columns, &rows).iter().skip(usize::from(!is_first)))?;
        }
        (from, is_first) = (next, false);
        if from.is_none() {
            break;
        }
    }
    if is_json {
        print_lines(json_lines(&json!({ "routes": all })))?;
    }
    Ok(0)
}

/// The items of a list.
pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn taken(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}

/// A value as people write it.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The mark of what is used.
pub(super) fn star(is_used: &Value) -> String {
    if *is_used == Value::Bool(true) { "*" } else { "" }.to_owned()
}

/// What an answer in JSON says.
pub(super) fn parse(target: &str, json: &str) -> Result<Value, String> {
    serde_json::from_str(json).map_err(|error| format!("{target}: its answer is no JSON: {error}"))
}
