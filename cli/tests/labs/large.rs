//! A hundred simulated nodes: a torus of ten by ten, in which nobody states a route.
//!
//! ```text
//!    │     │     │
//! ─ 00 ── 01 ── 02 ─ …      Each has four neighbours; those at the edges have theirs at the opposite ones.
//!    │     │     │
//! ─ 10 ── 11 ── 12 ─ …
//!    ⋮     ⋮     ⋮
//! ```

use std::fs;

use serde_json::Value;

use crate::support::{text, weft};

const SIDE: usize = 10;

/// Farthest from `00`: five hops east or west, five north or south.
const SCENARIO: &str = r#"
    exec n00 "weft xia ping @n55 --count 50 --interval 0.2 --quiet";
    exec n00 "weft xia show link-state --json" as before;
    say "two of the four links of n00 and two of n55 are cut, and a node on the way dies";
    run n00 "weft xia ping @n55 --count 200 --interval 0.05" as pings;
    wait-output pings "seq=20 ";
    cut n00:east;
    cut n00:south;
    cut n55:west;
    cut n55:north;
    kill n05;
    wait-exit pings;
    exec n00 "weft xia ping @n55 --count 20 --interval 0.05" as after;
    exec n94 "weft xia show link-state --json" as without;
"#;

fn lab() -> String {
    let name = |row: usize, column: usize| format!("n{}{}", row % SIDE, column % SIDE);
    let all = || (0..SIDE).flat_map(|row| (0..SIDE).map(move |column| (row, column)));
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
        "version 1;\nlab large {{ seed 1;\n{nodes}{links}scenario default {{ {SCENARIO} }}\n}}\n"
    )
}

#[test]
fn a_hundred_simulated_nodes_find_their_ways_and_others() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("large.lab"), lab()).unwrap();
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
    assert_eq!((count("before", "database"), count("before", "routes")), (Some(100), Some(99)));
    // The dead node is in the databases until it is too old, but nobody has a way to it.
    assert_eq!(count("without", "routes"), Some(98));
    assert!(log("after").contains("20 received"), "{}", log("after"));
    // Ten seconds of pings; what was cut is noticed within the time of holding.
    let received = log("pings").lines().filter(|line| line.contains("time=")).count();
    assert!((140..200).contains(&received), "{received} of 200");
}
