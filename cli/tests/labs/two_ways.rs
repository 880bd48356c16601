//! Two ways that cost the same: `examples/two-ways.lab`, and which way each destination goes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::support::{assert_gone, is_root, succeeded, text, weft};

const LAB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/two-ways.lab");

/// Runs a scenario; returns what its commands have written, by their names.
fn run(scenario: &str, engine: &str) -> impl Fn(&str) -> String + use<> {
    // Two at a time would find each other's namespaces.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["lab", "run", LAB, "--output", "out", "--scenario", scenario];
    let output = weft(directory.path(), &[&arguments, &["--engine", engine][..]].concat());
    // The steps that were done are on standard error.
    assert!(output.status.success(), "{}", text(&output.stderr));
    succeeded(&output);
    if engine == "netns" {
        assert_gone("two-ways", directory.path());
    }
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    move |name| read(&directory.path().join(format!("out/logs/{name}.stdout")))
}

/// The interface over which r1 sends what is for each domain.
fn ways(dst: &str) -> BTreeMap<String, String> {
    let shown: Value = serde_json::from_str(dst).unwrap();
    let decisions = shown["decisions"].as_array().unwrap().iter();
    let one = |decision: &Value| {
        let domain = decision["edges"][0].as_str().filter(|xid| xid.starts_with("ad-"))?;
        let way = decision["detail"].as_str()?.split(' ').next()?;
        Some((domain.to_owned(), way.to_owned()))
    };
    decisions.filter_map(one).collect()
}

/// Both ways are used, then one, then both again, and each destination has the way that it had.
fn check(log: impl Fn(&str) -> String, domains: usize) {
    let [before, during, after] = ["before", "during", "after"].map(|name| ways(&log(name)));
    let over =
        |ways: &BTreeMap<String, String>, way| ways.values().filter(|one| *one == way).count();
    let both = (over(&before, "n"), over(&before, "s"));
    assert!(both.0 > 0 && both.1 > 0 && both.0 + both.1 == domains, "{before:?}");
    assert_eq!((over(&during, "s"), during.len()), (domains, domains), "{during:?}");
    assert_eq!(after, before);
}

/// All pings of the real lab have arrived.
fn check_pings(log: impl Fn(&str) -> String) {
    for name in ["all", "without", "again"] {
        let pings = log(name);
        assert_eq!(pings.matches(" 5 received").count(), 24, "{name}: {pings}");
    }
}

#[test]
fn simulated_destinations_are_spread_over_two_ways_and_return_to_their_own() {
    check(run("simulated", "sim"), 8);
}

#[test]
fn destinations_are_spread_over_two_ways_and_return_to_their_own() {
    if is_root() {
        let log = run("default", "netns");
        check(&log, 24);
        check_pings(&log);
    }
}

#[test]
fn the_kernel_takes_the_same_ways() {
    if is_root() {
        let log = run("kernel", "netns");
        check(&log, 24);
        check_pings(&log);
        let engine: Value = serde_json::from_str(&log("engine")).unwrap();
        assert!(engine["counters"]["forwarded"].as_u64() > Some(0), "{engine}");
    }
}
