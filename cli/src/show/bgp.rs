//! `weft show bgp`: `bgp/1.0/show`.

use serde_json::Value;
use weft_bgp::interface::Show;

use super::pages::{PAGE, items, parse, print, star, text};
use super::table::{Align, lines};
use super::{Asker, BgpView};
use crate::output::{Outcome, json_lines, print_lines};

pub(super) fn run(view: &BgpView) -> Outcome {
    match view {
        BgpView::Peers(args) => {
            let shown = ask(&Asker::new(&args.node)?, "peers", None, None, false)?;
            print_lines(if args.json { json_lines(&shown) } else { peers(&shown) })?;
            Ok(0)
        }
        BgpView::Routes(args) => {
            let asker = Asker::new(&args.view.node)?;
            let columns = [
                ("", Align::Left),
                ("prefix", Align::Left),
                ("next hop", Align::Left),
                ("metric", Align::Right),
                ("med", Align::Right),
                ("preference", Align::Right),
                ("path", Align::Left),
                ("from", Align::Left),
                ("why not used", Align::Left),
            ];
            // Of one destination there is room to say why a path is not used.
            let columns = &columns[..columns.len() - usize::from(args.prefix.is_none())];
            let has_prefix = args.prefix.is_some();
            let rows = |prefix: &Value| rows(prefix, has_prefix);
            print(args.view.json, columns, rows, |from| {
                ask(&asker, "routes", args.prefix.clone(), from, args.multicast)
            })
        }
    }
}

fn ask(
    asker: &Asker,
    what: &str,
    prefix: Option<String>,
    from: Option<String>,
    multicast: bool,
) -> Result<Value, String> {
    let (at_most, multicast) = (Some(PAGE), multicast.then_some(true));
    let request = Show { what: what.to_owned(), prefix, from, at_most, multicast };
    parse("bgp", &asker.ask("bgp", request)?.json)
}

/// A line for each path: the best has a star, one that may not be used a minus, one that is damped a d, one that lives long
/// (RFC 9494) an s. Of a network of the router's own its protocol is who announces it.
fn rows(prefix: &Value, says_why: bool) -> Vec<Vec<String>> {
    let row = |one: &Value| {
        let is = |name: &str| one[name] == Value::Bool(true);
        let mark =
            if one["accepted"] == Value::Bool(false) { "-".to_owned() } else { star(&one["best"]) };
        let mark =
            if one["damping"]["damped"] == Value::Bool(true) { "d".to_owned() } else { mark };
        let mark = if is("long-lived-stale") { mark + "s" } else { mark };
        let mut row = vec![
            mark,
            text(&prefix["prefix"]),
            text(&one["next-hop"]),
            text(&one["metric"]),
            text(&one["med"]),
            text(&one["local-pref"]),
            text(&one["as-path"]),
            text(if one["peer"].is_null() { &one["protocol"] } else { &one["peer"] }),
        ];
        row.extend(says_why.then(|| one["unused"].as_str().unwrap_or_default().to_owned()));
        row
    };
    items(&prefix["paths"]).iter().map(row).collect()
}

fn peers(shown: &Value) -> Vec<String> {
    let columns = [
        ("peer", Align::Left),
        ("as", Align::Right),
        ("state", Align::Left),
        ("ipv4", Align::Right),
        ("ipv6", Align::Right),
        ("updates", Align::Right),
        ("faults", Align::Right),
        ("damped", Align::Right),
        ("stale for", Align::Right),
        ("last ending", Align::Left),
    ];
    let row = |one: &Value| {
        let long = if items(&one["stale"]["long-lived"]).is_empty() { "" } else { ", long-lived" };
        let stale = one["stale"]["seconds"].as_u64().map(|seconds| format!("{seconds}s{long}"));
        let [before, behind] =
            [&["address", "as", "state", "ipv4", "ipv6", "updates", "faults"][..], &["ending"]]
                .map(|names| names.iter().map(|name| text(&one[*name])));
        let damped = text(&one["damping"]["damped"]);
        before.chain([damped, stale.unwrap_or_else(|| "-".to_owned())]).chain(behind).collect()
    };
    let rows: Vec<_> = items(shown).iter().map(row).collect();
    lines(&columns, &rows)
}
