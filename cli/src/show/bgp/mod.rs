//! `weft show bgp`: `show` of `interfaces/bgp.xif`.

mod peer;

use serde_json::Value;
use weft_bgp::interface::Show;

use super::pages::{PAGE, Page, items, parse, print_routes, star, text};
use super::table::{Align, duration, lines};
use super::{Asker, BgpView, PathsArgs, ViewArgs};
use crate::output::{Outcome, json_lines, print_lines};

pub(super) fn run(view: &BgpView) -> Outcome {
    match view {
        BgpView::Peers(args) => {
            let what = if args.address.is_some() { "peer" } else { "peers" };
            let shown = ask(&args.view, Show { peer: args.address, ..request(what) })?;
            let lines = match args.address {
                Some(_) => peer::shown(&shown),
                None => peers(&shown),
            };
            print_lines(if args.view.json { json_lines(&shown) } else { lines })?;
            Ok(0)
        }
        BgpView::Summary(args) => {
            let shown = ask(args, request("summary"))?;
            print_lines(if args.json { json_lines(&shown) } else { summary(&shown) })?;
            Ok(0)
        }
        BgpView::Routes(args) => {
            let asker = Asker::new(&args.view.node)?;
            let ask = |from| {
                let prefix = args.prefix.clone();
                let (prefix, within) = if args.longer { (None, prefix) } else { (prefix, None) };
                let request = Show {
                    prefix,
                    within,
                    community: args.community.clone(),
                    from,
                    at_most: Some(PAGE),
                    multicast: args.multicast.then_some(true),
                    received_from: args.received_from,
                    advertised_to: args.advertised_to,
                    ..request("routes")
                };
                Ok(Page::of_routes(answer(&asker, request)?))
            };
            let columns = columns(args);
            let heads: Vec<_> = columns.iter().map(|column| (column.name, column.align)).collect();
            print_routes(args.view.json, &heads, |prefix| rows(prefix, &columns), ask)
        }
    }
}

/// A request for this, all of it.
pub(crate) fn request(what: &str) -> Show {
    Show { what: what.to_owned(), ..Show::default() }
}

/// What BGP answers.
pub(crate) fn answer(asker: &Asker, request: Show) -> Result<Value, String> {
    parse("bgp", &asker.ask("bgp", request)?.json)
}

fn ask(view: &ViewArgs, request: Show) -> Result<Value, String> {
    answer(&Asker::new(&view.node)?, request)
}

/// A column of the table of paths.
struct Column {
    name: &'static str,
    align: Align,
    /// What stands in it, for a prefix and one of its paths.
    text: fn(&Value, &Value) -> String,
}

/// The columns that show what is asked for.
fn columns(args: &PathsArgs) -> Vec<Column> {
    let left = |name, text| Column { name, align: Align::Left, text };
    let right = |name, text| Column { name, align: Align::Right, text };
    let is_told = args.advertised_to.is_some();
    let is_of_one = args.received_from.is_some() || is_told;
    let mut columns = vec![
        left("prefix", |prefix, _| text(&prefix["prefix"])),
        left("next hop", |_, path| text(&path["next-hop"])),
        right("med", |_, path| text(&path["med"])),
        right("preference", |_, path| text(&path["local-pref"])),
        left("path", |_, path| text(&path["as-path"])),
    ];
    if !is_told {
        columns.insert(0, left("", |_, path| mark(path)));
        columns.insert(3, right("metric", |_, path| text(&path["metric"])));
    }
    if args.received_from.is_none() {
        columns.push(left("from", |_, path| source(path)));
    }
    // Of one peer or one destination there is room for more.
    if is_of_one || args.prefix.is_some() {
        columns.push(left("communities", |_, path| communities(path)));
    }
    if !is_told && (is_of_one || args.prefix.is_some()) {
        columns.push(left("why not the best", |_, path| {
            let why = path["unused"].as_str().or(path["lost-by"].as_str());
            why.unwrap_or_default().to_owned()
        }));
    }
    columns
}

/// A line for each path.
fn rows(prefix: &Value, columns: &[Column]) -> Vec<Vec<String>> {
    let row = |path| columns.iter().map(|column| (column.text)(prefix, path)).collect();
    items(&prefix["paths"]).iter().map(row).collect()
}

/// The best path has a star, one that may not be used a minus, one that is damped a d; and besides one that lives long (RFC 9494) an s,
/// one whose origin is invalid (RFC 6811) an i.
fn mark(path: &Value) -> String {
    let is = |value: &Value| *value == Value::Bool(true);
    let mark = match () {
        () if is(&path["damping"]["damped"]) => "d".to_owned(),
        () if path["accepted"] == Value::Bool(false) => "-".to_owned(),
        () => star(&path["best"]),
    };
    let long_lived = if is(&path["long-lived-stale"]) { "s" } else { "" };
    let invalid = if path["validity"] == "invalid" { "i" } else { "" };
    mark + long_lived + invalid
}

/// Who announces it: of a network of the router's own its protocol.
fn source(path: &Value) -> String {
    text(if path["peer"].is_null() { &path["protocol"] } else { &path["peer"] })
}

/// Those of all three kinds.
fn communities(path: &Value) -> String {
    let kinds = ["communities", "extended-communities", "large-communities"];
    let all = kinds.iter().flat_map(|kind| items(&path[*kind])).map(text);
    all.collect::<Vec<_>>().join(" ")
}

/// Lines of what there is, and a table of how many routes.
fn summary(shown: &Value) -> Vec<String> {
    let peers = shown["peers"].as_object();
    let states = peers.into_iter().flatten().map(|(state, count)| format!("{count} {state}"));
    let states: Vec<_> = states.collect();
    let states = if states.is_empty() { "none".to_owned() } else { states.join(", ") };
    let confederation = shown["confederation"].as_u64();
    let member_of = confederation.map(|id| format!(" of confederation {id}")).unwrap_or_default();
    let mut all = vec![
        format!("AS {}{member_of}, router {}", text(&shown["as"]), text(&shown["router-id"])),
        format!("peers: {states}"),
        format!("sets of attributes: {}", text(&shown["attributes"])),
    ];
    if shown["rpki-payloads"].as_u64().is_some_and(|payloads| payloads > 0) {
        all.push(format!("origins are validated by {} payloads", text(&shown["rpki-payloads"])));
    }
    if shown["rib"] == Value::Bool(false) {
        all.push("the RIB is away: what is decided waits for it".to_owned());
    }
    if shown["restarting"] == Value::Bool(true) {
        all.push("it has restarted, and waits until peers have announced everything".to_owned());
    }
    let columns =
        [("routes", Align::Left), ("destinations", Align::Right), ("paths", Align::Right)];
    let row = |name: &str| vec![name.to_owned(), text(&shown[name]), text(&shown["paths"][name])];
    let rows = ["ipv4", "ipv6", "ipv4-multicast", "ipv6-multicast"].map(row);
    all.extend(lines(&columns, &rows));
    all
}

fn peers(shown: &Value) -> Vec<String> {
    let columns = [
        ("peer", Align::Left),
        ("as", Align::Right),
        ("state", Align::Left),
        ("up for", Align::Right),
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
        let texts =
            |names: &[&str]| -> Vec<_> { names.iter().map(|name| text(&one[*name])).collect() };
        let up = one["up-for"].as_u64().map_or_else(|| "-".to_owned(), duration);
        let damped = text(&one["damping"]["damped"]);
        let parts = [
            texts(&["address", "as", "state"]),
            vec![up],
            texts(&["ipv4", "ipv6", "updates", "faults"]),
            vec![damped, stale.unwrap_or_else(|| "-".to_owned())],
            texts(&["ending"]),
        ];
        parts.concat()
    };
    let rows: Vec<_> = items(shown).iter().map(row).collect();
    lines(&columns, &rows)
}
