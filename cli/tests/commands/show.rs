//! `weft show`: what a running node tells of itself, as tables and as JSON.

use std::io::{BufRead, BufReader};

use serde_json::Value;
use weft_port::testing::privileged;

use crate::processes::Node;
use crate::support::{finish, weft};

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
fn a_node_that_is_named_wins_over_the_environment() {
    for words in [
        &["show", "processes"][..],
        &["call", "finder://manager/manager/1.0/processes"],
        &["xia", "addr"],
    ] {
        let mut command = weft([words, &["--node", "nosuch"]].concat());
        command.env("WEFT_RUN_DIR", "/nowhere");
        finish(command).expect_failure(&["/nosuch"]);
    }
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
    assert_eq!(
        names(xia),
        ["xia/1.0", "prefixes/1.0", "component/1.0", "checked/1.0", "monitor/1.0"]
    );
    assert_eq!(
        (&xia["ready"], &xia["detail"]),
        (&Value::Bool(true), &Value::String(String::new()))
    );
    assert!(xia["address"].as_str().unwrap().starts_with("unix:"), "{xia}");
    let finder = named(&shown["components"], "instance", "finder");
    assert_eq!(names(finder), ["finder/1.0", "monitor/1.0"]);
    let table = node.run("show", &["components"]).stdout;
    assert!(
        table.contains(
            "xia        xia      yes    xia/1.0 prefixes/1.0 component/1.0 checked/1.0 monitor/1.0"
        ),
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
    assert_eq!(counter("xia", "xip-drops", "hop-limit"), 0);
    assert!(counter("finder", "finder-activity", "registrations").as_u64() >= Some(3));
    assert!(counter("fea", "fea-activity", "interface-changes").as_u64() >= Some(1));
    assert!(counter("manager", "calls", "made").as_u64() >= Some(1));

    let only = node.run("show", &["counters", "xia"]).stdout;
    assert!(only.lines().skip(1).all(|line| line.starts_with("xia ")), "{only}");
    assert!(!only.contains("hop-limit"), "{only}");
    assert!(node.run("show", &["counters", "xia", "--all"]).stdout.contains("hop-limit"));
    node.run("show", &["counters", "bgp"]).expect_failure(&["bgp", "there is no component `bgp`"]);
    // The same by an XRL.
    let call = node.call(&["finder://finder/monitor/1.0/counters"]);
    assert!(call.stdout.contains("(group=finder-activity;of=;reason=registrations;"), "{call:?}");
}

/// The level of a component's log, as it says itself.
fn level(node: &Node, component: &str) -> String {
    let done = node.call(&[&format!("finder://{component}/monitor/1.0/log?after:u64=0")]);
    let level = done.stdout.split('&').next().unwrap_or_default();
    level.trim_start_matches("level:txt=").to_owned()
}

#[test]
fn the_log_is_shown_in_order_of_time_and_as_far_as_it_is_wanted() {
    if !privileged() {
        return;
    }
    let node = Node::start();
    let done = node.run("show", &["log"]);
    assert_eq!(done.status, Some(0), "{done:?}");
    assert!(done.stdout.contains("Z  info     manager: xia runs\n"), "{done:?}");
    assert!(done.stdout.contains("Z  info     xia: node r1 is ready\n"), "{done:?}");
    let times: Vec<_> = done.stdout.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(times.is_sorted(), "{done:?}");
    let only = node.run("show", &["log", "xia", "--json"]).stdout;
    for line in only.lines() {
        let one: Value = serde_json::from_str(line).unwrap();
        assert_eq!((&one["component"], &one["level"]), (&"xia".into(), &"info".into()), "{one}");
    }
    assert_eq!(node.run("show", &["log", "--level", "error"]).stdout, "");
    node.run("show", &["log", "bgp"]).expect_failure(&["there is no component `bgp`"]);
    let wrong = node.run("show", &["log", "--level", "loud"]);
    assert!(wrong.status == Some(2) && wrong.stderr.contains("`loud` is no level"), "{wrong:?}");
}

#[test]
fn who_follows_the_log_hears_of_processes_that_come() {
    if !privileged() {
        return;
    }
    let node = Node::start();
    let mut command = node.command("show", &["log", "--follow"]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("manager: node r1: 3 processes run")));
    node.call(&["finder://manager/manager/1.0/signal?instance:txt=xia&number:u32=9"]);
    assert!(lines.any(|line| line.contains("warning  manager: xia (process")));
    // A new process, whose records are counted from 1 again.
    assert!(lines.any(|line| line.contains("xia: node r1 is ready")));
    node.call(&["finder://manager/manager/1.0/signal?instance:txt=xia&number:u32=9"]);
    assert!(lines.any(|line| line.contains("xia: node r1 is ready")));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn levels_of_logs_change_while_the_node_runs() {
    if !privileged() {
        return;
    }
    let node = Node::start();
    assert_eq!(level(&node, "xia"), "info");
    node.call(&["finder://fea/monitor/1.0/set_log_level?level:txt=debug"]);
    assert_eq!(level(&node, "fea"), "debug");
    node.call(&["finder://fea/monitor/1.0/set_log_level?level:txt=loud"])
        .expect_failure(&["101 BAD_ARGS", "`loud` is no level"]);

    let configure = |words: &[&str]| {
        let done =
            node.run("configure", &words.iter().flat_map(|word| ["-c", word]).collect::<Vec<_>>());
        assert_eq!(done.status, Some(0), "{done:?}");
    };
    configure(&["set log level warning", "set log component xia level debug", "commit"]);
    let levels = || ["finder", "manager", "xia"].map(|component| level(&node, component));
    node.wait_until(|| levels() == ["warning", "warning", "debug"]);
    // One that is started again is told again.
    node.call(&["finder://manager/manager/1.0/signal?instance:txt=xia&number:u32=9"]);
    node.wait_until(|| json(&node, &["processes"])["processes"][4]["restarts"] == 1);
    node.wait_until(|| levels() == ["warning", "warning", "debug"]);
    configure(&["delete log", "commit"]);
    node.wait_until(|| levels() == ["info", "info", "info"]);
}
