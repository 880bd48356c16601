//! `weft show`: what a running node tells of itself, as tables and as JSON.

use serde_json::Value;
use weft_port::testing::privileged;

use crate::processes::Node;

fn json(node: &Node, words: &[&str]) -> Value {
    let done = node.run("show", &[words, &["--json"]].concat());
    assert_eq!(done.status, Some(0), "{done:?}");
    done.json()
}

fn named<'a>(list: &'a Value, key: &str, name: &str) -> &'a Value {
    let found = list.as_array().unwrap().iter().find(|one| one[key] == name);
    found.unwrap_or_else(|| panic!("there is no {name} in {list}"))
}

#[test]
fn processes_tell_what_they_do_and_use_and_how_they_ended() {
    if !privileged() {
        return;
    }
    let node = Node::start();
    let shown = json(&node, &["processes"]);
    assert_eq!(shown["node"], "r1");
    let names: Vec<_> =
        shown["processes"].as_array().unwrap().iter().map(|one| &one["instance"]).collect();
    assert_eq!(names, ["fea", "finder", "launcher", "manager", "xia"]);
    for one in shown["processes"].as_array().unwrap() {
        assert!(one["memory_bytes"].as_u64() > Some(1 << 20), "{one}");
        assert!(one["pid"].as_u64() > Some(1), "{one}");
        assert!(one["age_seconds"].as_f64() > Some(0.0), "{one}");
    }
    assert_eq!(named(&shown["processes"], "instance", "launcher")["uid"], 0);

    node.call(&["finder://manager/manager/1.0/signal?instance:txt=xia&number:u32=9"]);
    let xia = || named(&json(&node, &["processes"])["processes"], "instance", "xia").clone();
    node.wait_until(|| xia()["restarts"] == 1 && xia()["state"] == "running");
    assert_eq!(xia()["last_end"], "was ended by SIGKILL");
    assert_eq!(xia()["trouble"], Value::Null);
    let table = node.run("show", &["processes"]).stdout;
    assert!(table.starts_with("PROCESS   CLASS"), "{table}");
    let line = table.lines().find(|line| line.starts_with("xia ")).unwrap();
    assert!(line.ends_with("was ended by SIGKILL"), "{table}");
}

#[test]
fn components_and_their_interfaces_are_listed() {
    if !privileged() {
        return;
    }
    let node = Node::start();
    let shown = json(&node, &["components"]);
    let names = |one: &Value| -> Vec<String> {
        let all = one["interfaces"].as_array().unwrap().iter();
        all.map(|one| format!("{}/{}", one["name"], one["version"]).replace('"', "")).collect()
    };
    let xia = named(&shown["components"], "instance", "xia");
    assert_eq!(names(xia), ["xia/1.0", "component/1.0", "monitor/1.0"]);
    assert_eq!(
        (&xia["ready"], &xia["detail"]),
        (&Value::Bool(true), &Value::String(String::new()))
    );
    assert!(xia["address"].as_str().unwrap().starts_with("unix:"), "{xia}");
    let finder = named(&shown["components"], "instance", "finder");
    assert_eq!(names(finder), ["finder/1.0", "monitor/1.0"]);
    let table = node.run("show", &["components"]).stdout;
    assert!(
        table.contains("xia        xia      yes    xia/1.0 component/1.0 monitor/1.0"),
        "{table}"
    );
}

#[test]
fn interfaces_are_those_of_the_machine() {
    if !privileged() {
        return;
    }
    let node = Node::start();
    let shown = json(&node, &["interfaces"]);
    let lo = named(&shown["interfaces"], "name", "lo");
    assert_eq!((&lo["kind"], &lo["index"]), (&"loopback".into(), &1.into()));
    let addresses: Vec<_> = lo["addresses"].as_array().unwrap().iter().collect();
    // The machine's loopback interface may be down.
    assert!(lo["up"] == false || addresses.contains(&&"127.0.0.1/8".into()), "{lo}");
    let table = node.run("show", &["interfaces"]).stdout;
    assert!(table.lines().any(|line| line.starts_with("lo ")), "{table}");
}

#[test]
fn counters_are_told_by_component_and_reason() {
    if !privileged() {
        return;
    }
    let node = Node::start();
    let shown = json(&node, &["counters"]);
    let counter = |component: &str, group: &str, reason: &str| -> Value {
        let of = named(&shown["components"], "component", component);
        let group = named(&of["counters"], "name", group);
        assert!(group["help"].as_str().is_some_and(|help| !help.is_empty()), "{group}");
        named(&group["counts"], "reason", reason)["count"].clone()
    };
    assert_eq!(counter("xia", "drops", "hop-limit"), 0);
    assert!(counter("finder", "activity", "registrations").as_u64() >= Some(3));
    assert!(counter("fea", "activity", "interface-changes").as_u64() >= Some(1));
    assert!(counter("manager", "calls", "made").as_u64() >= Some(1));

    let only = node.run("show", &["counters", "xia"]).stdout;
    assert!(only.lines().skip(1).all(|line| line.starts_with("xia ")), "{only}");
    assert!(!only.contains("hop-limit"), "{only}");
    assert!(node.run("show", &["counters", "xia", "--all"]).stdout.contains("hop-limit"));
    node.run("show", &["counters", "bgp"]).expect_failure(&["bgp", "there is no component `bgp`"]);
    // The same by an XRL.
    let call = node.call(&["finder://finder/monitor/1.0/counters"]);
    assert!(call.stdout.contains("(group=activity;of=;reason=registrations;"), "{call:?}");
}
