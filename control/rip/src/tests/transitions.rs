//! Every event for a route in every state, as text beside the RFC's sections.

use std::fmt::Write as _;
use std::time::Duration;

use weft_base::Instant;

use super::{net, seconds};
use crate::config::Timers;
use crate::table::{Outcome, Route, Source, Table};
use crate::wire::INFINITY;

const EXPECTED: &str = include_str!("transitions.txt");

/// The states of a route.
const STATES: [&str; 5] = ["Unknown", "Valid", "Late", "Gone", "Own"];
/// What can happen to it, and where the RFC says what becomes of it.
const EVENTS: [(&str, &str); 11] = [
    ("its router tells it as before", "§3.9.2"),
    ("its router tells it with a lower metric", "§3.9.2"),
    ("its router tells it with a higher metric", "§3.9.2"),
    ("its router tells it with metric 16", "§3.9.2"),
    ("another router tells it with a lower metric", "§3.9.2"),
    ("another router tells it with the same metric", "§3.9.2, heuristic"),
    ("another router tells it with a higher metric", "§3.9.2"),
    ("another router tells it with metric 16", "§3.9.2"),
    ("its link fails", "§3.8"),
    ("its timeout passes", "§3.8"),
    ("its garbage-collection time passes", "§3.8"),
];

const TO: &str = "198.51.100.0/24";

fn learned(router: u8, metric: u8) -> Route {
    let router = [10, 0, 1, router].into();
    let source = Source::Learned { router };
    Route { source, link: 1, gateway: Some(router), metric, tag: 0 }
}

/// A table whose only route is in a state, and the time.
fn in_state(state: &str, timers: &Timers) -> (Table, Instant) {
    let (mut table, mut now) = (Table::default(), Instant::ZERO);
    match state {
        "Unknown" => {}
        "Own" => table.know(net(TO), Route { source: Source::Connected, ..learned(1, 1) }),
        _ => drop(table.learn(now, net(TO), learned(1, 5), timers)),
    }
    match state {
        "Late" => now = seconds(100),
        "Gone" => drop(table.learn(now, net(TO), learned(1, INFINITY), timers)),
        _ => {}
    }
    table.told();
    table.take_untold();
    (table, now)
}

/// Lets it happen; when.
fn happens(event: usize, table: &mut Table, now: Instant, timers: &Timers) -> Instant {
    let to = net(TO);
    match event {
        0 => table.learn(now, to, learned(1, 5), timers),
        1 => table.learn(now, to, learned(1, 4), timers),
        2 => table.learn(now, to, learned(1, 6), timers),
        3 => table.learn(now, to, learned(1, INFINITY), timers),
        4 => table.learn(now, to, learned(2, 4), timers),
        5 => table.learn(now, to, learned(2, 5), timers),
        6 => table.learn(now, to, learned(2, 6), timers),
        7 => table.learn(now, to, learned(2, INFINITY), timers),
        8 => {
            table.lose_link(now, 1, timers);
            Outcome::Gone
        }
        _ => {
            let time = if event == 9 { timers.timeout } else { timers.garbage };
            table.tick(Instant::ZERO + time, timers);
            return Instant::ZERO + time;
        }
    };
    now
}

#[test]
fn every_event_in_every_state_is_as_written() {
    let timers = Timers::default();
    let mut text = String::from(
        "Each event for a route in each of its states: what comes of it. `Late` is a valid route of which nothing was heard for\n\
         more than half its timeout, `Own` one that this router knows itself. The sections are those of RFC 2453.\n",
    );
    for state in STATES {
        writeln!(text, "\n{state}").unwrap();
        for (place, (event, section)) in EVENTS.into_iter().enumerate() {
            let (mut table, now) = in_state(state, &timers);
            let before = table.get(&net(TO)).copied();
            let now = happens(place, &mut table, now, &timers);
            let after = table.get(&net(TO)).copied();
            let what = match (&before, &after) {
                (None, None) => "Unknown".to_owned(),
                (Some(_), None) => "Unknown; forgotten".to_owned(),
                (_, Some(after)) => {
                    let kind = if after.is_valid() { "Valid" } else { "Gone" };
                    let router = match after.route.source {
                        Source::Learned { router } => format!("by {router}"),
                        _ => "its own".to_owned(),
                    };
                    let timer = [("timeout", after.timeout), ("garbage", after.garbage)]
                        .into_iter()
                        .find_map(|(name, at)| Some(format!("; {name} {}", left(at?, now))))
                        .unwrap_or_default();
                    let trigger = if table.has_changed() { "; triggered update" } else { "" };
                    let told =
                        if table.take_untold().is_empty() { "" } else { "; the RIB is told" };
                    format!("{kind}, {router}, metric {}{timer}{trigger}{told}", after.route.metric)
                }
            };
            writeln!(text, "  {event} ({section})\n    {what}").unwrap();
        }
    }
    if std::env::var_os("WEFT_BLESS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tests/transitions.txt");
        std::fs::write(path, &text).unwrap();
        return;
    }
    assert_eq!(text, EXPECTED, "if it is meant, write it again with WEFT_BLESS=1");
}

fn left(at: Instant, now: Instant) -> String {
    let left = at.since(now.min(at));
    if left == Duration::ZERO { "over".to_owned() } else { format!("{}s", left.as_secs()) }
}
