//! `weft show kernel`: `fib/1.0/tables`, how far the kernel has the routes that it was given.

use serde_json::json;
use weft_xrl::fib;

use super::table::{Align, lines};
use super::{Asker, Shown};

pub(super) fn show(asker: &Asker) -> Result<Shown, String> {
    let tables = asker.ask("fea", fib::Tables)?.tables;
    let columns = [
        ("table", Align::Right),
        ("version", Align::Left),
        ("owner", Align::Left),
        ("state", Align::Left),
        ("metric", Align::Right),
        ("waiting", Align::Right),
        ("refused", Align::Right),
    ];
    let rows: Vec<_> = tables.iter().map(row).collect();
    let json: Vec<_> = tables.iter().map(object).collect();
    Ok(Shown { json: json!({ "tables": json }), lines: lines(&columns, &rows) })
}

/// The version of IP, as views of routes call it.
pub(crate) fn version(table: &fib::Table) -> &'static str {
    if table.is_ipv6 { "ipv6" } else { "ipv4" }
}

/// Whether its owner tells it anew, so that what it does not tell will go.
fn is_told_anew(table: &fib::Table) -> bool {
    matches!(table.state.as_str(), "reading" | "told" | "ending")
}

fn row(one: &fib::Table) -> Vec<String> {
    let owner = if one.owner.is_empty() { "-" } else { &one.owner };
    let numbers = [one.metric, one.waiting, one.refused].map(|number| number.to_string());
    let words = [&one.table.to_string(), version(one), owner, &one.state].map(str::to_owned);
    words.into_iter().chain(numbers).collect()
}

fn object(one: &fib::Table) -> serde_json::Value {
    json!({
        "table": one.table,
        "version": version(one),
        "owner": (!one.owner.is_empty()).then_some(&one.owner),
        "state": one.state,
        "told-anew": is_told_anew(one),
        "metric": one.metric,
        "waiting": one.waiting,
        "refused": one.refused,
    })
}
