//! Link-state routing between nodes: nobody states a route, ways are found, and others when something
//! breaks.
//!
//! The labs are `examples/link-state.lab` and a small one:
//!
//! ```text
//! thief ── a ── x ── y ── b
//!          └─ keyless ────┘
//! ```

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::network::{Ran, run, wait_until};
use crate::support::{assert_gone, is_root, succeeded, text, weft};

/// The network of twenty nodes.
const GRID: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/link-state.lab");

/// Runs a scenario of the network of twenty nodes; what it left is in `out`.
fn run_grid(directory: &Path, scenario: &str, engine: &str) {
    // Two at a time would find each other's namespaces, and the processors busy.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let arguments = ["lab", "run", GRID, "--output", "out", "--scenario", scenario];
    let output = weft(directory, &[&arguments, &["--engine", engine][..]].concat());
    // The steps that were done are on standard error.
    assert!(output.status.success(), "{}", text(&output.stderr));
    succeeded(&output);
    if engine == "netns" {
        assert_gone("link-state", directory);
    }
}

/// What happens in both engines when links are cut and a node dies.
fn check_breakage(engine: &str) {
    let directory = tempfile::tempdir().unwrap();
    run_grid(directory.path(), "default", engine);
    let log = |name: &str| {
        std::fs::read_to_string(directory.path().join(format!("out/logs/{name}.stdout"))).unwrap()
    };
    let state: Value = serde_json::from_str(&log("state")).unwrap();
    assert_eq!(state["database"].as_array().map(Vec::len), Some(20));
    assert_eq!(state["routes"].as_array().map(Vec::len), Some(19));
    // Five seconds of pings, twice at most about a second without a way.
    let pings = log("pings");
    let received = pings.lines().filter(|line| line.contains("time=")).count();
    assert!(received >= 40, "{pings}");
}

#[test]
fn twenty_simulated_nodes_route_around_what_breaks() {
    check_breakage("sim");
}

#[test]
fn twenty_nodes_route_around_what_breaks() {
    if is_root() {
        check_breakage("netns");
    }
}

/// The scenario compares what the nodes have got. What it cannot say: the far one got nothing while the
/// near one was there.
fn check_anycast(engine: &str) {
    let directory = tempfile::tempdir().unwrap();
    run_grid(directory.path(), "anycast", engine);
    let west = std::fs::read_to_string(directory.path().join("out/logs/west.stderr")).unwrap();
    let begun = west.lines().filter_map(|line| line.strip_prefix("receiving "));
    let begun: Vec<_> = begun.filter_map(|line| line.split(':').next()).collect();
    assert_eq!(begun, ["third"], "{west}");
}

#[test]
fn a_simulated_service_is_reached_where_it_is_near() {
    check_anycast("sim");
}

#[test]
fn a_service_is_reached_where_it_is_near_and_elsewhere_when_that_node_dies() {
    if is_root() {
        check_anycast("netns");
    }
}

/// The small network, with statements of `thief`. `keyless` has no key, all others have one.
fn small(name: &str, thief: &str, scenario: &str) -> String {
    let node = |name: &str, interfaces: &str, statements: &str| {
        let here = if name == "b" { "local @place;" } else { "" };
        format!(
            "node {name} {{ kind weft; config {{ xia {{
                interface {interfaces};
                principal ad {{ route @domain via @x; }}
                principal lpm {{ {here} }}
                principal xdp;
                {statements}
            }} }} }}\n"
        )
    };
    let nodes = [
        node("thief", "a", thief),
        node(
            "a",
            "thief x keyless",
            "principal hid { route @y via @x; } link-state { hello 100ms; hold 400ms; }",
        ),
        node("x", "a y", PLAIN),
        node(
            "y",
            "x b",
            "principal hid { route @a via @x; } link-state { hello 100ms; hold 400ms; }",
        ),
        node(
            "b",
            "y keyless",
            "principal hid; link-state { hello 100ms; hold 400ms; advertise @place; }",
        ),
    ];
    format!(
        "version 1;
         lab {name} {{
             seed 1;
             alias service xdp service;
             alias domain ad domain;
             alias place lpm 10.0.0.7;
             {}
             node keyless {{
                 kind command;
                 run \"weft run ../keyless.conf --run-dir run\";
                 ready \"is ready\";
             }}
             link thief:a a:thief; link a:x x:a; link x:y y:x; link y:b b:y;
             link a:keyless keyless:a; link keyless:b b:keyless;
             scenario default {{ {scenario} }}
         }}\n",
        nodes.concat()
    )
}

/// The statements of a node that knows nothing beforehand.
const PLAIN: &str = "principal hid; link-state { hello 100ms; hold 400ms; }";

/// Those of one that says that it is `b`.
const CLAIM: &str =
    "principal hid { local @b; } link-state { hello 100ms; hold 400ms; advertise @b; }";

/// The node without a key, which would be the shortest way from `a` to `b`.
const KEYLESS: &str = "version 1;
    node keyless;
    xia {
        interface a b;
        principal hid { local hid-00000000000000000000000000000000000000aa; }
        principal xdp;
        link-state { hello 100ms; hold 400ms; }
    }";

/// The step that keeps what a node shows.
fn keep(node: &str, what: &str, name: &str) -> String {
    format!("exec {node} \"weft xia show {what} --json\" as {name};\n")
}

fn shown(ran: &Ran, name: &str) -> Value {
    let printed = std::fs::read_to_string(ran.path(&format!("logs/{name}.stdout"))).unwrap();
    serde_json::from_str(&printed).unwrap()
}

/// How many there are of what a node shows, a list.
fn count(shown: &Value, list: &str) -> usize {
    shown[list].as_array().unwrap().len()
}

/// The XIDs of a list.
fn xids(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one["xid"].as_str().unwrap()).collect()
}

#[test]
fn who_has_no_key_takes_no_part_and_who_has_another_is_not_believed() {
    if !is_root() {
        return;
    }
    let steps = "run b \"weft xia cat --bind @service\" as owner;
         wait-output owner \"reachable at\";
         run thief \"weft xia cat --bind @service\" as claimant;
         wait-output claimant \"reachable at\";\n"
        .to_owned()
        // Neighbour discovery believes the thief, as long as nothing better is known.
        + &wait_until("a", "weft xia show link-state --json | grep -q distance.*30")
        // Two neighbours, the thief may be the later one, and what five nodes have advertised.
        + &wait_until(
            "a",
            "weft xia show link-state --json | grep -oe fragment.: -e outstanding.: | wc -l | grep -qx 7",
        )
        // Of the routers on the way nobody has asked how far they are, and what they have no route for is lost.
        + &wait_until("a", "weft xia ping @b --count 1 --timeout 0.2 --quiet")
        + "exec a \"sh -c 'for time in 1 2 3; do echo for-b | weft xia cat @b-1:@service-0; sleep 0.2; done'\";
         wait-output owner \"for-b\";\n"
        + &keep("a", "link-state", "state")
        + "exec keyless \"weft xia show link-state --json --run-dir run\" as outsider;
         exec a \"sh -c 'echo @a @b @x @thief'\" as names;\n";
    let ran = run("keys", &small("keys", CLAIM, &steps), &[("keyless.conf", KEYLESS)], &[]);
    let names = std::fs::read_to_string(ran.path("logs/names.stdout")).unwrap();
    let [_, b, x, thief] = names.split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("{names}");
    };
    let state = shown(&ran, "state");
    // The thief is a neighbour under its own name, which its key proves.
    let mut neighbours = xids(&state["neighbours"]);
    neighbours.sort_unstable();
    let mut expected = [x, thief];
    expected.sort_unstable();
    assert_eq!(neighbours, expected, "{state:#}");
    assert_eq!(count(&state, "database"), 5, "{state:#}");
    let holders = state["database"].as_array().unwrap().iter();
    let of_b = holders.filter(|one| one["destinations"].as_array().unwrap().contains(&b.into()));
    assert_eq!(of_b.map(|one| one["node"].as_str().unwrap()).collect::<Vec<_>>(), [b]);
    let routes = state["routes"].as_array().unwrap();
    let route = routes.iter().find(|route| route["xid"] == b).unwrap();
    assert_eq!(route["distance"], 30, "over x and y: {route:#}");
    assert_eq!(xids(&route["via"]), [x]);
    assert_eq!(std::fs::read_to_string(ran.path("logs/claimant.stdout")).unwrap(), "");
    let outsider = shown(&ran, "outsider");
    assert_eq!(outsider["node"], Value::Null);
    for list in ["neighbours", "database", "routes"] {
        assert_eq!(count(&outsider, list), 0, "{outsider:#}");
    }
    let said = ran.said("keyless");
    assert!(said.contains("no link-state routing: the node has no key"), "{said}");
}

#[test]
fn a_commit_that_removes_the_protocol_leaves_the_stated_routes() {
    if !is_root() {
        return;
    }
    let ping = |to: &str| format!("weft xia ping @{to} --count 1 --timeout 0.2 --quiet");
    let commit = |change: &str| {
        format!("exec a \"weft configure -c '{change} xia link-state' -c commit\";\n")
    };
    let steps = wait_until("a", &ping("b"))
        // LPM learns routes, too.
        + &wait_until("a", &ping("place-1:@b-0"))
        + &keep("a", "principals", "before")
        + &commit("delete")
        // The others are told at once, not after the hold time; the last one finds out by itself.
        + "wait-output x \"took leave\";\n"
        + &keep("a", "principals", "without")
        + "exec a \"weft xia ping @b --count 1\" status 1;\n"
        + &wait_until("a", &ping("y"))
        + &wait_until("b", "! weft xia show principals --json | grep -qF @a")
        + "exec a \"weft configure -c 'rollback 1' -c commit\";\n"
        + &wait_until("a", &ping("b"))
        + &keep("a", "principals", "again");
    let ran = run("live", &small("live", PLAIN, &steps), &[("keyless.conf", KEYLESS)], &[]);
    let [before, without, again] = ["before", "without", "again"].map(|name| shown(&ran, name));
    assert!(count(&before["hid"], "learned") >= 2, "{before:#}");
    assert_eq!(count(&before["lpm"], "learned"), 1, "{before:#}");
    for principal in ["hid", "lpm"] {
        assert_eq!(count(&without[principal], "learned"), 0, "{without:#}");
    }
    assert!(count(&again["hid"], "learned") >= 2, "{again:#}");
    for principal in ["hid", "ad"] {
        assert_eq!(count(&before[principal], "routes"), 1, "{before:#}");
        assert_eq!(before[principal]["routes"], without[principal]["routes"]);
        assert_eq!(before[principal]["routes"], again[principal]["routes"]);
    }
}
