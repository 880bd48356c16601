//! `weft xia perf` between two nodes whose link loses one datagram in ten each way, in the simulator and on real
//! interfaces.

use std::fs;

use serde_json::Value;

use crate::support::{assert_gone, is_root, succeeded, text, weft};

const LAB: &str = r#"version 1;
lab perf {
    seed 1;
    node a { kind weft; config { xia { interface eth0; principal hid; principal xdp; } } }
    node b { kind weft; config { xia { interface eth0; principal hid; principal xdp; } } }
    link a:eth0 b:eth0 { loss 10%; }
    scenario default {
        run b "weft xia perf server --count 2 --json" as server;
        wait-output server "measuring at @b-1:";
        # Neighbours are known when one of these is answered.
        exec a "weft xia ping @b --count 50 --interval 0.1 --quiet";
        exec a "weft xia perf client @b --count 4000 --rate 2000 --echo --json" as echo timeout 2min;
        exec a "weft xia perf client @b --duration 1 --rate 4Mbit/s --size 500 --json" as one-way timeout 2min;
        wait-exit server;
    }
}
"#;

/// A lab that has run: what each of its commands printed.
fn run(engine: &str) -> [Value; 2] {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("perf.lab"), LAB).unwrap();
    let arguments = ["lab", "run", "perf.lab", "--output", "out", "--engine", engine];
    let output = weft(directory.path(), &arguments);
    if engine == "netns" {
        assert_gone("perf", directory.path());
    }
    assert!(output.status.success(), "{}", text(&output.stderr));
    succeeded(&output);
    let printed = |name: &str| {
        let path = directory.path().join("out/logs").join(format!("{name}.stdout"));
        let text = fs::read_to_string(path).unwrap();
        serde_json::from_str(text.lines().last().unwrap()).unwrap()
    };
    ["echo", "one-way"].map(printed)
}

/// Whether a ratio is near another one, as far as a thousand datagrams tell.
#[track_caller]
fn expect_near(found: &Value, expected: f64) {
    let found = found.as_f64().unwrap();
    assert!((found - expected).abs() < 0.05, "{found} instead of {expected}");
}

fn judge([echo, one_way]: [Value; 2]) {
    assert_eq!((&echo["sent"], &one_way["sent"]), (&4000.into(), &1000.into()));
    for found in [&echo, &one_way] {
        expect_near(&found["arrived"]["lost_ratio"], 0.1);
        assert_eq!(found["arrived"]["duplicates"], 0, "{found}");
    }
    expect_near(&echo["came_back"]["lost_ratio"], 0.19);
    assert_eq!(echo["round_trip_ns"]["samples"], echo["came_back"]["received"]);
    let times =
        ["min", "p50", "p90", "p99", "p99.9", "max"].map(|it| echo["round_trip_ns"][it].as_u64());
    assert!(times.is_sorted() && times[0] > Some(0), "{times:?}");
    assert!(one_way["came_back"].is_null() && one_way["round_trip_ns"].is_null(), "{one_way}");
}

#[test]
fn losses_of_a_simulated_link_are_measured() {
    judge(run("sim"));
}

#[test]
fn losses_of_a_real_link_are_measured() {
    if is_root() {
        judge(run("netns"));
    }
}
