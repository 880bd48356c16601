//! `xip ad`, `xip lpm`, `xip xdp` and `xip zf`: principals whose tables are XIDs that are here, and redirects.
//!
//! The Linux tool adds exclusively: what is there already is refused, whatever its gateway. So the table is looked
//! at first; weft itself would replace a route, and add a gateway to a link of zFilter.

use std::collections::HashSet;

use serde_json::Value;
use weft_xip::XidType;

use super::context::{Context, Present, exists, rows};
use super::lines::{block, entry};
use super::prefix::{Prefix, expect_prefix};
use super::read::{exactly, expect, identifier, xid};
use super::{Command, Failure, Printed};

pub(super) const AD: &[Command] = &[
    ("addlocal", |context, words| add_local(context, XidType::AD, words)),
    ("dellocal", |context, words| delete_local(context, XidType::AD, words)),
    ("addroute", |context, words| add_route(context, XidType::AD, words)),
    ("delroute", |context, words| delete_route(context, XidType::AD, words)),
    ("show", |context, words| show(context, XidType::AD, words)),
];

pub(super) const AD_USAGE: &str = "\
Usage: xip ad { addlocal | dellocal } ID
       xip ad addroute ID gw XID
       xip ad delroute ID
       xip ad show { locals | routes }";

pub(super) const ZF: &[Command] = &[
    ("addlocal", |context, words| add_local(context, XidType::ZF, words)),
    ("dellocal", |context, words| delete_local(context, XidType::ZF, words)),
    ("addroute", |context, words| add_route(context, XidType::ZF, words)),
    ("delroute", |context, words| delete_route(context, XidType::ZF, words)),
    ("show", |context, words| show(context, XidType::ZF, words)),
];

pub(super) const ZF_USAGE: &str = "\
Usage: xip zf { addlocal | dellocal } ID
       xip zf addroute ID gw XID
       xip zf delroute ID
       xip zf show { locals | routes }";

pub(super) const XDP: &[Command] = &[
    ("showsockets", show_sockets),
    ("addroute", |context, words| add_route(context, XidType::XDP, words)),
    ("delroute", |context, words| delete_route(context, XidType::XDP, words)),
    ("showroutes", |context, words| {
        exactly::<0>(words)?;
        routes(context, XidType::XDP)
    }),
];

pub(super) const XDP_USAGE: &str = "\
Usage: xip xdp showsockets
       xip xdp addroute ID gw XID
       xip xdp delroute ID
       xip xdp showroutes";

pub(super) const LPM: &[Command] = &[
    ("addlocal", |context, words| add_local(context, XidType::LPM, words)),
    ("dellocal", |context, words| delete_local(context, XidType::LPM, words)),
    ("addroute", |context, words| add_route(context, XidType::LPM, words)),
    ("delroute", |context, words| delete_route(context, XidType::LPM, words)),
    ("show", |context, words| show(context, XidType::LPM, words)),
];

pub(super) const LPM_USAGE: &str = "\
Usage: xip lpm { addlocal | dellocal } ID LENGTH
       xip lpm addroute ID LENGTH gw XID
       xip lpm delroute ID LENGTH
       xip lpm show { locals | routes }
where ID is 0x and up to 40 hexadecimal digits, or an IPv4 address";

/// Reads what a row of a table is of from the words of a command: an XID or a prefix, as the principal reads it.
/// Returns the words behind it.
fn destination<'a, 'b>(
    kind: XidType,
    words: &'b [&'a str],
) -> Result<(String, &'b [&'a str]), Failure> {
    let short = || Failure::Usage("Wrong number of parameters".to_owned(), "");
    let (id, rest) = words.split_first().ok_or_else(short)?;
    if kind != XidType::LPM {
        return Ok((identifier(kind, id)?.to_string(), rest));
    }
    let (length, rest) = rest.split_first().ok_or_else(short)?;
    Ok((Prefix::read(id, length)?.to_stack(), rest))
}

/// It alone.
fn only(kind: XidType, words: &[&str]) -> Result<String, Failure> {
    let (destination, rest) = destination(kind, words)?;
    exactly::<0>(rest)?;
    Ok(destination)
}

/// What is in the tables of a principal that shows this. What a routing protocol has found is in nobody's way.
fn present(shown: &Value) -> Present {
    let tables = [("locals", "is local"), ("sockets", "is bound"), ("routes", "has a route")];
    let words =
        |(table, how)| rows(shown, table).filter_map(move |row| Some((destination_of(row)?, how)));
    tables.into_iter().flat_map(words).collect()
}

/// The destination that a row is of, as [`destination`] gives it.
fn destination_of(row: &Value) -> Option<String> {
    match row["prefix"].as_str() {
        Some(prefix) => Prefix::of_stack(prefix).map(Prefix::to_stack),
        None => row.as_str().or_else(|| row["xid"].as_str()).map(str::to_owned),
    }
}

/// Adds something to a principal's tables that is not there.
fn add(context: &Context, kind: XidType, word: String, how: &'static str, more: &str) -> Printed {
    let mut present = context.present(kind, present)?;
    if let Some(how) = present.get(&word) {
        return Err(exists(&format!("{word} {how} already")));
    }
    let table = if how == "is local" { "local" } else { "route" };
    let done = context.change(&format!("set {kind} {table} {word}{more}"))?;
    present.insert(word, how);
    Ok(done)
}

/// Deletes something from a principal's tables.
fn delete(context: &Context, kind: XidType, table: &str, words: &[&str]) -> Printed {
    let word = only(kind, words)?;
    let done = context.change(&format!("delete {kind} {table} {word}"))?;
    context.forget(kind, &word);
    Ok(done)
}

fn add_local(context: &Context, kind: XidType, words: &[&str]) -> Printed {
    add(context, kind, only(kind, words)?, "is local", "")
}

fn delete_local(context: &Context, kind: XidType, words: &[&str]) -> Printed {
    delete(context, kind, "local", words)
}

fn add_route(context: &Context, kind: XidType, words: &[&str]) -> Printed {
    let (destination, rest) = destination(kind, words)?;
    let [gw, gateway] = exactly(rest)?;
    expect(gw, "gw")?;
    let gateway = xid(&context.names, gateway)?;
    add(context, kind, destination, "has a route", &format!(" via {gateway}"))
}

fn delete_route(context: &Context, kind: XidType, words: &[&str]) -> Printed {
    delete(context, kind, "route", words)
}

fn show(context: &Context, kind: XidType, words: &[&str]) -> Printed {
    let [table] = exactly(words)?;
    if "locals".starts_with(table) {
        let shown = context.principal(&kind.to_string())?;
        let line = |row| Ok(entry(&name(context, row)?, None));
        rows(&shown, "locals").map(line).collect::<Result<Vec<_>, _>>().map(|all| all.concat())
    } else if "routes".starts_with(table) {
        routes(context, kind)
    } else {
        let text =
            format!("Unknown routing table '{table}', it must be either 'locals', or 'routes'");
        Err(Failure::Usage(text, ""))
    }
}

/// The main table: routes that were stated, and those that a routing protocol has found for what has none.
fn routes(context: &Context, kind: XidType) -> Printed {
    let shown = context.principal(&kind.to_string())?;
    let stated: HashSet<_> = rows(&shown, "routes").filter_map(|row| row["xid"].as_str()).collect();
    let is_stated = |row: &&Value| row["xid"].as_str().is_some_and(|xid| stated.contains(xid));
    let learned = rows(&shown, "learned").filter(|row| !is_stated(row));
    let mut lines = Vec::new();
    for row in rows(&shown, "routes").chain(learned) {
        // The tool has no routes that lead nowhere, so there is no line of its own for them.
        let via =
            if row["via"].is_null() { "unreachable".into() } else { context.text(&row["via"]) };
        lines.extend(entry(&name(context, row)?, Some(&via)));
    }
    Ok(lines)
}

/// How a row's destination is printed.
fn name(context: &Context, row: &Value) -> Result<String, Failure> {
    match row["prefix"].as_str() {
        Some(prefix) => {
            let prefix = expect_prefix(prefix)?;
            Ok(prefix.text(&prefix.xid.display(&context.names).to_string()))
        }
        None if row.is_string() => Ok(context.text(row)),
        None => Ok(context.text(&row["xid"])),
    }
}

fn show_sockets(context: &Context, words: &[&str]) -> Printed {
    exactly::<0>(words)?;
    let shown = context.principal("xdp")?;
    let line = |row: &Value| block(format!("local {}", context.text(&row["xid"])), [], "");
    Ok(rows(&shown, "sockets").flat_map(line).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "0123456789012345678901234567890123456789";

    #[test]
    fn a_destination_is_an_identifier_or_a_prefix() {
        let (ad, rest) = destination(XidType::AD, &[ID, "gw", "x"]).unwrap();
        assert_eq!((ad, rest), (format!("ad-{ID}"), &["gw", "x"][..]));
        let lpm = only(XidType::LPM, &["10.0.0.0", "8"]).unwrap();
        assert!(lpm.starts_with("0x0a00") && lpm.ends_with("/8"), "{lpm}");
        for words in [&[][..], &["10.0.0.0"], &["10.0.0.0", "8", "gw"], &["x", "8"]] {
            assert!(only(XidType::LPM, words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn what_is_stated_or_bound_is_present_and_what_is_learned_is_not() {
        let xid = |digit: &str| format!("ad-{}", digit.repeat(40));
        let shown = json!({
            "locals": [xid("1"), { "prefix": "0x0a/8" }],
            "sockets": [{ "xid": xid("2"), "socket": 7 }],
            "routes": [{ "xid": xid("3"), "via": xid("1") }],
            "learned": [{ "xid": xid("4"), "via": xid("1") }],
        });
        let ten = only(XidType::LPM, &["10.0.0.0", "8"]).unwrap();
        let expected = [
            (xid("1"), "is local"),
            (ten, "is local"),
            (xid("2"), "is bound"),
            (xid("3"), "has a route"),
        ];
        assert_eq!(present(&shown), Present::from(expected));
    }
}
