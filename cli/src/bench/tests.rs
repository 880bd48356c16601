//! Tests of the framework, with a benchmark that measures nothing.

use std::time::Instant;

use serde_json::{Value, json};

use super::measure::{Experiment, Figure, Measured, Session, measure};
use super::report::{Bound, Goal, Row};
use super::samples::Samples;
use super::*;

/// Notes who was called; the values are numbers that tests know.
#[derive(Default)]
struct Fake {
    calls: Vec<(&'static str, usize, usize)>,
    /// In this run its peer fails.
    fails_in: Option<usize>,
}

impl Session for Fake {
    fn experiments(&self) -> Vec<Experiment> {
        let experiment = |figures: Vec<Figure>, most_runs| Experiment {
            peer_name: "the peer".to_owned(),
            figures,
            most_runs,
        };
        vec![
            experiment(vec![figure("a", "ns"), figure("b", "Mbit/s")], None),
            experiment(vec![figure("once", "bytes")], Some(1)),
        ]
    }

    fn weft(&mut self, experiment: usize, run: usize) -> Result<Vec<f64>, String> {
        self.calls.push(("weft", experiment, run));
        Ok(vec![run as f64, 100.0])
    }

    fn peer(&mut self, experiment: usize, run: usize) -> Result<Vec<f64>, String> {
        self.calls.push(("peer", experiment, run));
        if self.fails_in == Some(run) {
            return Err("it opens no session".to_owned());
        }
        Ok(vec![2.0, 200.0])
    }

    fn goals(&self, _: &[Row]) -> Vec<Goal> {
        Vec::new()
    }
}

fn figure(case: &str, unit: &'static str) -> Figure {
    Figure { case: case.to_owned(), unit, panel: "panel" }
}

fn plan(runs: usize, until: Option<Instant>) -> Plan {
    Plan { quick: false, runs, until, only: None, prefixes: None }
}

fn row(case: &str, weft: &[f64], peer: &[f64]) -> Row {
    Row {
        figure: figure(case, "ns/packet"),
        peer_name: "the peer".to_owned(),
        weft: Samples::new(weft.to_vec()),
        peer: Samples::new(peer.to_vec()),
    }
}

fn report() -> Report {
    Report {
        bench: "fake",
        machine: "a machine".to_owned(),
        rows: vec![row("a < b", &[10.0, 20.0, 30.0], &[40.0, 40.0, 40.0])],
        goals: vec![
            Goal { name: "low".to_owned(), bound: Bound::AtMost(1.0), measured: 0.5 },
            Goal { name: "high".to_owned(), bound: Bound::AtLeast(2.0), measured: 0.5 },
        ],
        details: Vec::new(),
    }
}

fn arguments(words: &[&str]) -> BenchArgs {
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        bench: BenchArgs,
    }
    let line = <Line as clap::Parser>::try_parse_from(std::iter::once(&"bench").chain(words));
    line.unwrap_or_else(|error| panic!("{error}")).bench
}

#[test]
fn weft_and_peer_take_turns_and_begin_in_turn() {
    let mut fake = Fake::default();
    measure(&mut fake, &plan(2, None)).unwrap();
    let expected = [
        ("weft", 0, 0),
        ("peer", 0, 0),
        ("weft", 1, 0),
        ("peer", 1, 0),
        ("peer", 0, 1),
        ("weft", 0, 1),
    ];
    assert_eq!(fake.calls, expected);
}

#[test]
fn each_figure_has_a_row_with_the_values_of_all_its_runs() {
    let Measured { rows, .. } = measure(&mut Fake::default(), &plan(5, None)).unwrap();
    let summary: Vec<_> = rows
        .iter()
        .map(|row| (row.figure.case.as_str(), row.weft.len(), row.weft.median(), row.ratio()))
        .collect();
    assert_eq!(summary, [("a", 5, 2.0, 1.0), ("b", 5, 100.0, 0.5), ("once", 1, 0.0, 0.0)]);
}

#[test]
fn measuring_ends_with_its_time_but_not_before_the_first_run() {
    let Measured { rows, .. } =
        measure(&mut Fake::default(), &plan(5, Some(Instant::now()))).unwrap();
    assert_eq!(rows[0].weft.len(), 1);
}

#[test]
fn a_peer_that_fails_costs_its_own_values_and_is_named() {
    let mut fake = Fake { fails_in: Some(1), ..Fake::default() };
    let Measured { rows, failures } = measure(&mut fake, &plan(3, None)).unwrap();
    let lengths: Vec<_> = rows.iter().map(|row| (row.weft.len(), row.peer.len())).collect();
    assert_eq!(lengths, [(3, 2), (3, 2), (1, 1)]);
    assert_eq!(failures, ["run 2: the peer (a): it opens no session"]);

    let mut fake = Fake { fails_in: Some(0), ..Fake::default() };
    let Measured { rows, .. } = measure(&mut fake, &plan(1, None)).unwrap();
    let report = Report { rows, ..report() };
    assert_eq!(report.json()["rows"][1]["peer"], Value::Null);
    assert!(report.table()[3].contains("100     -  Mbit/s"), "{:?}", report.table());
}

#[test]
fn what_is_not_asked_for_is_not_run() {
    let mut fake = Fake::default();
    let only = Plan { only: Some("on".to_owned()), ..plan(2, None) };
    let Measured { rows, .. } = measure(&mut fake, &only).unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(fake.calls, [("weft", 1, 0), ("peer", 1, 0)]);
}

#[test]
fn the_json_has_the_form_that_programs_rely_on() {
    let expected = json!({
        "bench": "fake",
        "machine": "a machine",
        "rows": [{
            "case": "a < b", "weft": 20.0, "peer": 40.0, "peer_name": "the peer",
            "unit": "ns/packet", "ratio": 0.5, "runs": 3, "spread": 0.5,
        }],
        "goals": [
            { "name": "low", "goal": 1.0, "measured": 0.5, "met": true },
            { "name": "high", "goal": 2.0, "measured": 0.5, "met": false },
        ],
    });
    assert_eq!(report().json(), expected);
}

#[test]
fn the_table_has_a_line_for_each_row_and_goal() {
    let lines = report().table();
    assert_eq!(lines[0], "fake on a machine");
    assert_eq!(lines[2], "a < b  20.0  40.0  ns/packet   0.50    50 %     3  the peer");
    assert_eq!(lines[4], "goal met: low: at most 1.00, measured 0.50");
    assert_eq!(lines[5], "goal MISSED: high: at least 2.00, measured 0.50");
}

#[test]
fn the_drawing_has_a_box_for_each_side_of_each_row() {
    let svg = plot::draw(&report());
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    // Background, legend, and one row of two boxes.
    assert_eq!(svg.matches("<rect ").count(), 1 + 2 + 2);
    assert!(svg.contains("a &lt; b") && !svg.contains("NaN"), "{svg}");
}

#[test]
fn rows_without_values_can_be_drawn_and_written() {
    let rows = vec![row("none", &[], &[]), row("zero", &[0.0], &[0.0])];
    let report = Report { rows, ..report() };
    assert!(!plot::draw(&report).contains("NaN"));
    assert_eq!(report.json()["rows"][0]["weft"], json!(null));
}

#[test]
fn an_unknown_benchmark_is_refused_with_the_names_of_all() {
    let error = run(&arguments(&["xip"])).unwrap_err();
    assert!(error.contains("no benchmark `xip`") && error.contains("xip-engine"), "{error}");
}

/// Debug assertions are what makes a build a debug build here; the long tests are built without.
#[test]
#[cfg(debug_assertions)]
fn a_debug_build_is_not_measured_unless_asked_for() {
    let error = run(&arguments(&["xip-engine", "--quick"])).unwrap_err();
    assert!(error.contains("--debug-build") && error.contains("make build"), "{error}");
}

#[test]
fn a_missing_peer_is_an_error_that_names_the_package() {
    let missing = Program { name: "no-such-program-anywhere", package: "some-package" };
    let error = check_programs(&[missing]).unwrap_err();
    assert!(error.contains("some-package"), "{error}");
    assert_eq!(check_programs(&[Program { name: "sh", package: "dash" }]), Ok(()));
}

#[test]
fn only_what_the_plan_includes_has_to_be_installed() {
    let needs = |words: &[&str]| {
        let args = arguments(words);
        let bench = find(args.name.as_deref().unwrap()).unwrap();
        let needs = bench.needs(&super::plan(&args));
        needs.into_iter().map(|one| one.package).collect::<std::collections::BTreeSet<_>>()
    };
    for bench in ["route-load", "route-latency", "route-storm"] {
        assert_eq!(needs(&[bench, "--quick"]), ["bird2"].into(), "{bench}");
        assert!(needs(&[bench]).is_superset(&["bird2", "frr"].into()), "{bench}");
    }
    assert_eq!(needs(&["route-load", "--only", "GoBGP"]), ["gobgpd"].into());
    assert_eq!(needs(&["restart", "--only", "finder: "]), [].into());
    assert_eq!(needs(&["xip-attack", "--quick", "--only", "same port"]), [].into());
}

#[test]
fn quick_means_fewer_runs_and_an_end() {
    let quick = super::plan(&arguments(&["xip-engine", "--quick"]));
    assert_eq!((quick.runs, quick.until.is_some()), (QUICK_RUNS, true));
    let full = super::plan(&arguments(&["xip-engine", "--runs", "3"]));
    assert_eq!((full.runs, full.until.is_some()), (3, false));
}

#[test]
fn names_and_figures_are_unique() {
    let mut names: Vec<_> = BENCHES.iter().map(|bench| bench.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), BENCHES.len());
}
