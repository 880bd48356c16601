//! A hundred simulated nodes, or a thousand: a torus of ten by ten, or of 32 by 32, in which nobody states a route.
//!
//! ```text
//!    │     │     │
//! ─ 0-0 ─ 0-1 ─ 0-2 ─ …     Each has four neighbours; those at the edges have theirs at the opposite ones.
//!    │     │     │
//! ─ 1-0 ─ 1-1 ─ 1-2 ─ …
//!    ⋮     ⋮     ⋮
//! ```

use std::fs;

use serde_json::Value;

use crate::support::{text, weft};

/// From one to the node farthest from it: half the side east or west, and as much north or south.
const SCENARIO: &str = r#"
    exec n0-0 "weft xia ping @FAR --count 50 --interval 0.2 --quiet";
    exec n0-0 "weft xia show link-state --json" as before;
    say "two of the four links of n0-0 and two of FAR are cut, and a node on the way dies";
    run n0-0 "weft xia ping @FAR --count 200 --interval 0.05" as pings;
    wait-output pings "seq=20 ";
    cut n0-0:east;
    cut n0-0:south;
    cut FAR:west;
    cut FAR:north;
    kill n0-HALF;
    wait-exit pings;
    exec n0-0 "weft xia ping @FAR --count 20 --interval 0.05" as after;
    exec n9-4 "weft xia show link-state --json" as without;
"#;

fn lab(side: usize) -> String {
    let name = |row: usize, column: usize| format!("n{}-{}", row % side, column % side);
    let all = || (0..side).flat_map(|row| (0..side).map(move |column| (row, column)));
    let half = side / 2;
    let scenario = SCENARIO.replace("FAR", &name(half, half)).replace("HALF", &half.to_string());
    let node = |(row, column)| {
        format!(
            "node {} {{ kind weft; config {{ xia {{
                interface north east south west;
                principal hid;
                principal xdp;
                link-state {{ hello 500ms; hold 1750ms; }}
            }} }} }}\n",
            name(row, column)
        )
    };
    let links = |(row, column)| {
        let (here, east, south) = (name(row, column), name(row, column + 1), name(row + 1, column));
        format!("link {here}:east {east}:west;\nlink {here}:south {south}:north;\n")
    };
    let nodes: String = all().map(node).collect();
    let links: String = all().map(links).collect();
    format!(
        "version 1;\nlab large {{ seed 1;\n{nodes}{links}scenario default {{ {scenario} }}\n}}\n"
    )
}

#[test]
fn a_hundred_simulated_nodes_find_their_ways_and_others() {
    find_their_ways(10);
}

/// Takes minutes.
#[test]
#[ignore = "takes long; make soak runs it"]
fn soak_a_thousand_simulated_nodes() {
    find_their_ways(32);
}

fn find_their_ways(side: usize) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("large.lab"), lab(side)).unwrap();
    let arguments = ["lab", "run", "large.lab", "--engine", "sim", "--output", "out"];
    let output = weft(directory.path(), &arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let log = |name: &str| {
        fs::read_to_string(directory.path().join(format!("out/logs/{name}.stdout"))).unwrap()
    };
    let count = |shown: &str, what: &str| {
        let state: Value = serde_json::from_str(&log(shown)).unwrap();
        state[what].as_array().map(Vec::len)
    };
    let all = side * side;
    let known = (count("before", "database"), count("before", "routes"));
    assert_eq!(known, (Some(all), Some(all - 1)));
    // The dead node is in the databases until it is too old, but nobody has a way to it.
    assert_eq!(count("without", "routes"), Some(all - 2));
    assert!(log("after").contains("20 received"), "{}", log("after"));
    // Ten seconds of pings; what was cut is noticed within the time of holding.
    let received = log("pings").lines().filter(|line| line.contains("time=")).count();
    assert!((140..200).contains(&received), "{received} of 200");
}
