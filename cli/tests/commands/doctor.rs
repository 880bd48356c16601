//! `weft doctor`: what it says and what it leaves behind.

use std::collections::BTreeSet;
use std::fs;

use rustix::thread::CapabilitySet;
use serde_json::Value;
use weft_port::testing::privileged;

use crate::support::{Done, finish, finish_without, weft};

fn doctor() -> Done {
    finish(weft(["doctor", "--json"]))
}

fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).unwrap_or(&Value::Null)
}

#[test]
fn every_check_is_complete_and_the_status_follows_from_them() {
    let done = doctor();
    let report = done.json();
    let checks = report["checks"].as_array().unwrap();
    let text = |check: &Value, field: &str| check[field].as_str().unwrap().to_owned();
    for check in checks {
        for field in ["section", "name", "found", "needed_for"] {
            assert!(!text(check, field).is_empty(), "{check}");
        }
        let is_well = match text(check, "state").as_str() {
            "ok" => true,
            "degraded" | "missing" => false,
            other => panic!("no such state: {other}"),
        };
        assert_eq!(is_well, check["remedy"].is_null(), "{check}");
    }
    let names: BTreeSet<_> = checks.iter().map(|check| text(check, "name")).collect();
    assert_eq!(names.len(), checks.len(), "two checks have one name");
    let lacks = |check: &&Value| check["required"] == true && check["state"] == "missing";
    let is_ready = !checks.iter().any(|check| lacks(&check));
    assert_eq!(
        (report["ready"].as_bool(), done.status),
        (Some(is_ready), Some(i32::from(!is_ready)))
    );
}

#[test]
fn people_read_the_same_as_machines() {
    let (text, report) = (finish(weft(["doctor"])).stdout, doctor().json());
    for check in report["checks"].as_array().unwrap() {
        let name = check["name"].as_str().unwrap();
        let line = text.lines().find(|line| line.split_whitespace().nth(1) == Some(name));
        let line = line.unwrap_or_else(|| panic!("{name} is missing: {text}"));
        assert_eq!(line.split_whitespace().next(), check["state"].as_str(), "{line}");
    }
    let expected = if report["ready"] == true { "is ready" } else { "is not ready" };
    assert!(text.lines().last().unwrap().contains(expected), "{text}");
}

#[test]
fn without_iproute2_the_demo_cannot_run_and_the_remedy_is_the_package() {
    let empty = tempfile::tempdir().unwrap();
    let mut command = weft(["doctor", "--json"]);
    command.env("PATH", empty.path());
    let done = finish(command);
    let report = done.json();
    assert_eq!((done.status, &report["ready"]), (Some(1), &Value::Bool(false)));
    assert_eq!(check(&report, "ip")["state"], "missing");
    let veth = check(&report, "veth");
    // Where there are no namespaces, nothing is tried inside.
    if !veth.is_null() {
        assert_eq!(veth["remedy"], "install iproute2 (see tools)");
    }
}

#[test]
fn missing_capabilities_are_seen() {
    let done = finish_without(CapabilitySet::NET_RAW, weft(["doctor", "--json"]));
    let report = done.json();
    for name in ["cap_net_raw", "packet-sockets"] {
        let check = check(&report, name);
        assert_eq!(check["state"], "missing", "{check}");
        assert!(check["remedy"].as_str().unwrap().contains("setcap cap_net_raw"), "{check}");
    }
}

#[test]
fn root_without_the_power_to_make_namespaces_is_told_what_is_missing() {
    if !privileged() {
        return;
    }
    let done = finish_without(CapabilitySet::SYS_ADMIN, weft(["doctor", "--json"]));
    let report = done.json();
    let namespaces = check(&report, "namespaces");
    assert_eq!((&namespaces["state"], done.status), (&"missing".into(), Some(1)));
    assert!(namespaces["remedy"].as_str().unwrap().contains("CAP_SYS_ADMIN"), "{namespaces}");
    assert_eq!(check(&report, "veth"), &Value::Null);
}

/// Names of interfaces that this thread sees.
fn interfaces() -> BTreeSet<String> {
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
}

#[test]
fn nothing_is_left_behind() {
    if !privileged() {
        return;
    }
    // In a network and a /run where nobody else makes anything.
    let inside = || {
        weft_port::namespace::enter().unwrap();
        let before = interfaces();
        let forwarding = fs::read("/proc/sys/net/ipv4/ip_forward").unwrap();
        let report = doctor().json();
        assert_eq!(check(&report, "veth")["section"], "network", "nothing was tried: {report}");
        assert_eq!(interfaces(), before);
        assert_eq!(fs::read("/proc/sys/net/ipv4/ip_forward").unwrap(), forwarding);
        assert_eq!(fs::read_dir("/run").unwrap().count(), 0);
    };
    std::thread::spawn(inside).join().unwrap();
}
