//! `weft looking-glass`: what everybody may read, with curl(1) as reader, served by a user whose access list can only
//! read.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use weft_port::testing::{Namespace, lacks, privileged, runnable_by_all};

use crate::processes::Node;
use crate::support::Running;

/// A user without any right: `nobody` of the group `nogroup` on Debian.
const NOBODY: u32 = 65_534;
const CONFIGURE: [&str; 8] = [
    "set rib",
    "set bgp as 65000",
    "set bgp router-id 192.0.2.1",
    "set policy policy-statement all then accept",
    "set static route 198.51.100.0/24 blackhole",
    "set static route 203.0.113.0/24 unreachable",
    "set operators user 65534 access finder/finder/1.0/targets rib/rib/1.4/show bgp/bgp/1.6/show \
     bgp/bgp/1.6/explain static/protocol/1.0",
    "commit",
];

/// The status and the body of what is answered in a namespace.
fn curl(namespace: &Namespace, arguments: &[&str]) -> (String, String) {
    let run = || {
        let mut command = Command::new("curl");
        command.args(["--silent", "--max-time", "60", "--write-out", "\n%{http_code}"]);
        command.args(arguments).output().unwrap()
    };
    let output = namespace.run(run);
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, status) = text.rsplit_once('\n').unwrap();
    (status.to_owned(), body.to_owned())
}

#[test]
fn everybody_reads_routes_and_nobody_changes_any() {
    if !privileged() {
        return;
    }
    if Command::new("curl").arg("--version").output().is_err() {
        return lacks("curl");
    }
    let namespace = Namespace::new();
    namespace.ip("link set lo up");
    let node = namespace.run(Node::start);
    let commands = CONFIGURE.iter().flat_map(|command| ["-c", command]);
    let done = node.run("configure", &commands.collect::<Vec<_>>());
    assert_eq!(done.status, Some(0), "{done:?}");
    node.wait_until(|| {
        let shown = node.run("show", &["routes", "198.51.100.7"]);
        shown.stdout.contains("blackhole")
    });

    let run = node.run_directory();
    let weft = runnable_by_all(Path::new(env!("CARGO_BIN_EXE_weft")), run.parent().unwrap());
    let mut command = Command::new(weft);
    command.args(["looking-glass", "--listen", "127.0.0.1:0", "--run-dir"]).arg(&run);
    command.uid(NOBODY).gid(NOBODY);
    let server = namespace.run(|| Running::start(command));
    let line = server.wait_for("looking glass at http://");
    let root = line.trim_start_matches("looking glass at ").trim_end_matches('/').to_owned();
    let get = |path: &str| -> Value {
        let (status, body) = curl(&namespace, &[&format!("{root}{path}")]);
        assert_eq!(status, "200", "{path}: {body}");
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{path}: {error}: {body}"))
    };

    assert!(get("/").as_array().is_some_and(|pages| pages.len() > 5));
    let found = get("/routes?prefix=198.51.100.7");
    assert_eq!(found[0]["prefix"], "198.51.100.0/24", "{found}");
    assert_eq!(found[0]["routes"][0]["protocol"], "static", "{found}");
    // Page by page.
    let (mut seen, mut from) = (Vec::new(), String::new());
    loop {
        let page = get(&format!("/routes?count=1{from}"));
        let prefix = |one: &Value| one["prefix"].as_str().unwrap().to_owned();
        let rows: Vec<_> = page["routes"].as_array().unwrap().iter().map(prefix).collect();
        assert!(rows.len() <= 1, "{page}");
        seen.extend(rows);
        let Some(next) = page["next"].as_str() else { break };
        from = format!("&from={}", next.replace('/', "%2F"));
    }
    assert_eq!(seen.iter().filter(|net| net.starts_with("198.51.100")).count(), 1, "{seen:?}");
    assert_eq!(seen.iter().filter(|net| net.starts_with("203.0.113")).count(), 1, "{seen:?}");
    assert!(get("/summary")["ipv4"]["routes"].as_u64() >= Some(2));
    assert_eq!(get("/bgp/peers"), serde_json::json!([]));
    assert_eq!(get("/bgp/routes")["routes"], serde_json::json!([]));
    assert_eq!(get("/bgp/explain?policies=all&prefix=192.0.2.0/24"), serde_json::json!([]));
    let views = get("/protocols");
    let path = views.as_array().unwrap().iter().find(|view| view["protocol"] == "static").unwrap();
    let table = get(path["path"].as_str().unwrap());
    assert_eq!(table["rows"].as_array().map(Vec::len), Some(2), "{table}");

    for (arguments, status) in [
        (&["/nothing"][..], "404"),
        (&["/protocols/nobody/routes"], "404"),
        (&["/routes?prefix=ten"], "400"),
        (&["/routes?count=0"], "400"),
        (&["/routes?prefix=%zz"], "400"),
        (&["/bgp/explain?prefix=192.0.2.0/24"], "400"),
        (&["/protocols/static/nothing"], "400"),
        (&["/routes", "--request", "DELETE"], "405"),
        (&["/routes", "--data", "x=1"], "405"),
        (&["/protocols/xia/routes"], "404"),
    ] {
        let url = format!("{root}{}", arguments[0]);
        let answer = curl(&namespace, &[&[url.as_str()], &arguments[1..]].concat());
        assert_eq!(answer.0, status, "{arguments:?}: {}", answer.1);
    }
    assert_eq!(curl(&namespace, &[&format!("{root}/routes"), "--head"]).0, "200");

    // What the access list does not name any more is not shown.
    let done = node.run("configure", &["-c", "delete operators", "-c", "commit"]);
    assert_eq!(done.status, Some(0), "{done:?}");
    node.wait_until(|| curl(&namespace, &[&format!("{root}/summary")]).0 == "503");
}
