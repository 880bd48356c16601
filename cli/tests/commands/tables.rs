//! Routes, neighbours and engines of a running node: shown, and changed while it runs.

use std::process::Command;

use serde_json::{Value, json};
use weft_port::testing::{Namespace, privileged};

use crate::processes::Node;

const HOST: &str = "hid-000000000000000000000000000000000000000b";
const OTHER: &str = "hid-000000000000000000000000000000000000000c";
const DOMAIN: &str = "ad-00000000000000000000000000000000000000ad";

fn node() -> Node {
    let ad = format!("principal ad {{ route {DOMAIN} via {HOST}; }}");
    Node::with(&format!("principal hid; principal xdp; principal lpm; principal zf; {ad}"))
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Something that must succeed and says nothing.
fn quietly(node: &Node, line: &str) {
    let done = node.run("xia", &words(line));
    assert!(done.status == Some(0) && done.stdout.is_empty(), "{line}: {done:?}");
}

fn refused(node: &Node, line: &str, why: &str) {
    let done = node.run("xia", &words(line));
    assert!(done.status == Some(1) && done.stderr.contains(why), "{line}: {done:?}");
}

fn shown(node: &Node, what: &str) -> Value {
    node.run("xia", &[what, "--json"]).json()
}

fn stated(principal: &str, destination: &str, via: &str) -> Value {
    json!({ "principal": principal, "origin": "stated", "xid": destination, "via": via })
}

#[test]
fn routes_are_listed_added_and_deleted_live() {
    if !privileged() {
        return;
    }
    let node = node();
    assert_eq!(shown(&node, "route"), json!({ "routes": [stated("ad", DOMAIN, HOST)] }));
    quietly(&node, "route add 10.0.0.0/8 via ad-00000000000000000000000000000000000000ad");
    quietly(&node, &format!("route add {DOMAIN} via {OTHER}"));
    quietly(&node, &format!("route add zf link east via {OTHER}"));
    let table = node.run("xia", &["route"]).stdout;
    let line = |destination: &str| -> Vec<&str> {
        let found = table.lines().find(|line| line.starts_with(destination)).unwrap();
        found.split_whitespace().collect()
    };
    assert_eq!(line(DOMAIN), [DOMAIN, OTHER, "ad", "stated"]);
    assert_eq!(line("10.0.0.0/8 "), ["10.0.0.0/8", DOMAIN, "lpm", "stated"]);
    assert_eq!(table.lines().count(), 4, "{table}");

    // The same by an XRL.
    let call = node.call(&["finder://xia/xia/1.0/show?what:txt=routes"]);
    assert!(call.stdout.contains("10.0.0.0/8"), "{call:?}");

    quietly(&node, "route delete 10.0.0.0/8");
    quietly(&node, "route del zf link east");
    // Several gateways are a row each.
    quietly(&node, &format!("route add {DOMAIN} via {OTHER} {HOST}"));
    let both = [HOST, OTHER].map(|via| stated("ad", DOMAIN, via));
    assert_eq!(shown(&node, "route"), json!({ "routes": both }));
    quietly(&node, &format!("route delete {DOMAIN} via {HOST}"));
    assert_eq!(shown(&node, "route"), json!({ "routes": [stated("ad", DOMAIN, OTHER)] }));
    quietly(&node, &format!("route add {DOMAIN} via {HOST}"));
    assert_eq!(shown(&node, "route"), json!({ "routes": [stated("ad", DOMAIN, HOST)] }));
    // What nothing is known of, and what leads nowhere.
    quietly(&node, &format!("route add hid default via {DOMAIN}"));
    quietly(&node, "route add 10.0.0.0/8 unreachable");
    let table = node.run("xia", &["route"]).stdout;
    let has =
        |line: &[&str]| table.lines().any(|one| one.split_whitespace().eq(line.iter().copied()));
    assert!(has(&["default", DOMAIN, "hid", "stated"]), "{table}");
    assert!(has(&["10.0.0.0/8", "nowhere", "lpm", "stated"]), "{table}");
    quietly(&node, "route delete hid default");
    quietly(&node, "route delete 10.0.0.0/8 unreachable");
    assert_eq!(shown(&node, "route"), json!({ "routes": [stated("ad", DOMAIN, HOST)] }));
}

#[test]
fn what_is_changed_live_is_not_configured_and_outlives_commits() {
    if !privileged() {
        return;
    }
    let node = node();
    let live = "xdp-0000000000000000000000000000000000000001";
    quietly(&node, &format!("route add {live} via {HOST}"));
    let configure = |lines: &[&str]| {
        let words: Vec<_> = lines.iter().flat_map(|line| ["-c", line]).collect();
        let done = node.run("configure", &words);
        assert_eq!(done.status, Some(0), "{done:?}");
        done.stdout
    };
    let configured = configure(&["run"]);
    assert!(configured.contains(DOMAIN) && !configured.contains(live), "{configured}");
    let other = DOMAIN.replace("ad-0", "ad-1");
    configure(&[&format!("set xia principal ad route {other} via {HOST}"), "commit"]);
    let all = [("ad", DOMAIN), ("ad", &other), ("xdp", live)];
    let all = all.map(|(principal, destination)| stated(principal, destination, HOST));
    assert_eq!(shown(&node, "route"), json!({ "routes": all }));
}

#[test]
fn mistakes_in_routes_and_neighbours_are_explained_and_change_nothing() {
    if !privileged() {
        return;
    }
    let node = node();
    let before = shown(&node, "route");
    for (line, why) in [
        ("route delete 10.0.0.0/8".to_owned(), "0x0a/8 has no such route"),
        ("route add nonsense via x".to_owned(), "`nonsense` is no destination"),
        (format!("route add {DOMAIN}"), "`via XID…` or `unreachable` is missing"),
        ("route add ad default unreachable".to_owned(), "is unreachable anyway"),
        ("route delete ad default".to_owned(), "there is no such default route"),
        (format!("route add {DOMAIN} via {DOMAIN}"), "leads nowhere"),
        (format!("route add {DOMAIN} via {HOST} {HOST}"), "is there twice"),
        (format!("route delete {DOMAIN} via {HOST} {OTHER}"), "has no such route"),
        (format!("route add u4id x via {HOST}"), "the node has no principal `u4id`"),
        (
            format!("route add {} via {HOST}", DOMAIN.replace("ad-", "serval-")),
            "a principal that weft does not have",
        ),
        (format!("neighbour add {HOST}"), "is missing"),
        (
            format!("neighbour add {HOST} link ff:ff:ff:ff:ff:ff interface eth0"),
            "not the address of one station",
        ),
        (format!("neighbour delete {HOST}"), "there is no such statement"),
        (format!("neighbour add {DOMAIN} link 02:00:00:00:00:01 interface eth0"), "ad"),
    ] {
        refused(&node, &line, why);
    }
    assert_eq!(shown(&node, "route"), before);
    assert_eq!(shown(&node, "neighbour"), json!({ "neighbours": [] }));
}

#[test]
fn neighbours_are_listed_added_and_deleted_live() {
    if !privileged() {
        return;
    }
    let node = node();
    let add = |mac: &str| {
        quietly(&node, &format!("neighbour add {HOST} link {mac} interface eth7"));
    };
    add("02:00:00:00:00:01");
    add("02:00:00:00:00:02");
    let place = |mac: &str| {
        json!({
            "principal": "hid", "xid": HOST, "link": mac, "interface": "eth7", "origin": "configured",
            "proven": false, "used": false, "state": "configured", "age_ms": null,
        })
    };
    let both = [place("02:00:00:00:00:01"), place("02:00:00:00:00:02")];
    assert_eq!(shown(&node, "neighbour"), json!({ "neighbours": both }));
    let table = node.run("xia", &["neighbor"]).stdout;
    assert!(table.starts_with("NEIGHBOUR "), "{table}");
    let last = table.lines().last().unwrap().split_whitespace().collect::<Vec<_>>();
    let mac = "02:00:00:00:00:02";
    assert_eq!(last, [HOST, mac, "eth7", "configured", "-", "configured", "no", "no"]);
    quietly(&node, &format!("neighbour delete {HOST} link {mac} interface eth7"));
    assert_eq!(shown(&node, "neighbour"), json!({ "neighbours": [place("02:00:00:00:00:01")] }));
    quietly(&node, &format!("neighbour del {HOST}"));
    assert_eq!(shown(&node, "neighbour"), json!({ "neighbours": [] }));
}

#[test]
fn an_interface_whose_driver_runs_no_programs_falls_back_and_says_why() {
    if !privileged() {
        return;
    }
    let namespace = Namespace::new();
    namespace.run(|| {
        for words in ["link add br0 type bridge", "link set br0 up"] {
            let status = Command::new("ip").args(words.split(' ')).status().unwrap();
            assert!(status.success(), "ip {words}");
        }
    });
    let node =
        namespace.run(|| Node::with("interface br0; engine auto; principal hid; principal xdp;"));
    let engine = || -> (String, String) {
        let shown = node.run("show", &["xia", "forwarding", "--json"]).json();
        let text =
            |name: &str| shown["interfaces"][0][name].as_str().unwrap_or_default().to_owned();
        (text("engine"), text("trouble"))
    };
    node.wait_until(|| engine().0 == "generic");
    let (_, why) = engine();
    assert!(why.contains("the driver of br0 runs no programs of xdp"), "{why}");
    let lines = node.run("show", &["xia", "forwarding"]).stdout;
    assert!(lines.contains(&format!("br0 generic: {why}\n")), "{lines}");
    assert!(lines.contains("\n           0 kernel forwarded\n"), "{lines}");
    // Where nothing else is wanted, the portable engine is left.
    quietly(&node, "engine driver");
    node.wait_until(|| engine().0 == "portable" && !engine().1.is_empty());
    assert_eq!(engine().1, why);
    quietly(&node, "engine generic");
    node.wait_until(|| engine().0 == "generic");
    assert_eq!(engine().1, "", "it is what was asked for");
}

#[test]
fn the_engine_is_shown_under_both_names_and_anchors_under_two() {
    if !privileged() {
        return;
    }
    let node = node();
    let forwarding = node.run("show", &["xia", "forwarding", "--json"]);
    assert_eq!(forwarding.json(), shown(&node, "engine"));
    let value = forwarding.json();
    let of = |name: &str| value[name].clone();
    assert_eq!((of("wanted"), of("kernel")), (json!("portable"), json!("off")), "{value}");
    assert_eq!((of("interfaces"), of("trouble")), (json!([]), Value::Null), "{value}");
    assert_eq!(value["portable"]["hits"], 0, "{value}");
    let lines = node.run("show", &["xia", "forwarding"]).stdout;
    assert!(lines.starts_with("engine portable; the kernel's is off"), "{lines}");
    assert!(lines.contains("0 portable misses\n"), "{lines}");
    assert_eq!(node.run("xia", &["anchor"]).stdout, "decisions rest on 0 XIDs\n");
    // Options of the node stand behind the verb, as the help says.
    let checked = node.run("xia", &["dst", "check"]).stdout;
    assert_eq!(checked, "0 decisions checked, 0 wrong\n");
}
