//! `weft show routes`: `rib/1.0/show`.

use serde_json::Value;
use weft_rib::interface::Show;

use super::pages::{PAGE, items, parse, print, star, text};
use super::table::Align;
use super::{Asker, RoutesArgs};
use crate::output::{Outcome, json_lines, print_lines};

pub(super) fn run(args: &RoutesArgs) -> Outcome {
    let asker = Asker::new(&args.view.node)?;
    let ask = |what: &str, from| {
        let prefix = args.prefix.clone();
        let request = Show { what: what.to_owned(), prefix, from, at_most: Some(PAGE) };
        parse("rib", &asker.ask("rib", request)?.json)
    };
    if args.summary {
        let shown = ask("summary", None)?;
        print_lines(if args.view.json { json_lines(&shown) } else { summary(&shown) })?;
        return Ok(0);
    }
    let columns = [
        ("", Align::Left),
        ("prefix", Align::Left),
        ("protocol", Align::Left),
        ("distance", Align::Right),
        ("metric", Align::Right),
        ("way", Align::Left),
    ];
    print(args.view.json, &columns, rows, |from| ask("routes", from))
}

/// A line for each route: the one that is used has a star.
fn rows(prefix: &Value) -> Vec<Vec<String>> {
    let row = |one: &Value| {
        vec![
            star(&one["used"]),
            text(&prefix["prefix"]),
            text(&one["protocol"]),
            text(&one["distance"]),
            text(&one["metric"]),
            way(one),
        ]
    };
    items(&prefix["routes"]).iter().map(row).collect()
}

fn way(route: &Value) -> String {
    if route["kind"] != "unicast" {
        return text(&route["kind"]);
    }
    let way = |way: &Value| match way["gateway"].as_str() {
        Some(gateway) => format!("via {gateway} interface {}", way["interface"]),
        None => format!("interface {}", way["interface"]),
    };
    let ways: Vec<_> = items(&route["ways"]).iter().map(way).collect();
    if ways.is_empty() {
        let gateways: Vec<_> = items(&route["gateways"]).iter().map(text).collect();
        return format!("no way to {}", gateways.join(", "));
    }
    ways.join(", ")
}

fn summary(shown: &Value) -> Vec<String> {
    let line = |version: &str| {
        let one = &shown[version];
        format!(
            "{version}: {} destinations; {}: {} changes, {} refused",
            one["routes"],
            text(&one["fea"]),
            one["told"],
            one["refused"]
        )
    };
    ["ipv4", "ipv6"].map(line).to_vec()
}
