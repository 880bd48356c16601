//! `weft show routes`: `rib/1.0/show`.

use serde_json::Value;
use weft_rib::interface::Show;

use super::pages::{PAGE, Page, items, parse, print_routes, star, text};
use super::table::{Align, lines};
use super::{Asker, RoutesArgs};
use crate::output::{Outcome, json_lines, print_lines};

pub(super) fn run(args: &RoutesArgs) -> Outcome {
    let asker = Asker::new(&args.view.node)?;
    let ask = |what: &str, from| {
        let prefix = args.prefix.clone();
        let (prefix, within) = if args.longer { (None, prefix) } else { (prefix, None) };
        let (at_most, multicast) = (Some(PAGE), args.multicast.then_some(true));
        let (what, protocol) = (what.to_owned(), args.protocol.clone());
        let request = Show { what, prefix, from, at_most, multicast, within, protocol };
        parse("rib", &asker.ask("rib", request)?.json)
    };
    if args.summary {
        let shown = ask("summary", None)?;
        print_lines(if args.view.json { json_lines(&shown) } else { summary(&shown) })?;
        return Ok(0);
    }
    if args.origins {
        let shown = ask("origins", None)?;
        print_lines(if args.view.json { json_lines(&shown) } else { origins(&shown) })?;
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
    print_routes(args.view.json, &columns, rows, |from| Ok(Page::of_routes(ask("routes", from)?)))
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
    let way = |way: &Value| {
        // One that has gone has no name any more.
        let interface = text(if way["name"].is_null() { &way["interface"] } else { &way["name"] });
        match way["gateway"].as_str() {
            Some(gateway) => format!("via {gateway} interface {interface}"),
            None => format!("interface {interface}"),
        }
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

/// A line for each protocol.
fn origins(shown: &Value) -> Vec<String> {
    let columns = [
        ("protocol", Align::Left),
        ("distance", Align::Right),
        ("present", Align::Left),
        ("ipv4", Align::Right),
        ("ipv6", Align::Right),
        ("allowed", Align::Left),
        ("refused", Align::Left),
    ];
    let row = |one: &Value| {
        let own = ["protocol", "distance", "present", "ipv4", "ipv6"].map(|name| text(&one[name]));
        let guard = &one["guard"];
        let (allowed, refused) = match guard.is_null() {
            true => ("anything".to_owned(), String::new()),
            false => (allowed(guard), refused(guard)),
        };
        own.into_iter().chain([allowed, refused]).collect()
    };
    lines(&columns, &items(shown).iter().map(row).collect::<Vec<_>>())
}

/// What a guard lets pass.
fn allowed(guard: &Value) -> String {
    let within: Vec<_> = items(&guard["within"]).iter().map(text).collect();
    let within = if within.is_empty() { "any prefix".to_owned() } else { within.join(" ") };
    format!("{within}; {} routes, {} a second", guard["most"], guard["rate"])
}

/// What it has refused, but for what is zero.
fn refused(guard: &Value) -> String {
    let all = guard["refused"].as_object().into_iter().flatten();
    let some = all.filter(|(_, count)| **count != 0);
    some.map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
}
