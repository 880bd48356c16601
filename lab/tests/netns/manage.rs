//! Labs that stay, and what is done with them.

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::process::Command;

use weft_lab::{Lab, Log, Options, Variables, down, exec, labs, start_trace, up, visits};

use crate::support::{ARGUMENTS, Bench, TestHost, assert_gone, is_root, namespaces};

const LAB: &str = "version 1;
lab stays {
    node a { kind linux; }
    node s { kind weft; config { } }
    node c { kind command; run \"sleep 1000\"; }
    link a:eth0 s:eth0 { address 10.0.0.1/24 10.0.0.2/24; delay 1ms; }
}";

#[test]
fn labs_stay_until_they_are_taken_down() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let lab = Lab::parse("stays.lab", LAB, &Variables::new()).unwrap();
    let options = Options { output: Some(bench.output()), ..Options::default() };
    let host = TestHost(bench.program());
    let name = up(&lab, &options, &host, &mut Log::new(std::io::sink())).unwrap();
    let lab = Some(name.as_str());

    let found = labs().unwrap().into_iter().find(|status| status.name == name).unwrap();
    let nodes: Vec<_> = found.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!((found.owner, nodes), (None, vec!["a", "s", "c"]));
    assert!(found.nodes[1].processes[0].running && found.nodes[2].processes[0].running);
    assert_eq!(found.nodes[0].interfaces, ["eth0"]);

    let said =
        child(&bench, &format!("exec\n{name}\ns\nsh\n-c\necho in $WEFT_RUN_DIR; ip -br addr"));
    assert!(said.contains(&format!("in /run/weft/labs/{name}/s")), "{said}");
    assert!(said.contains("10.0.0.2/24"), "{said}");
    let said = child(&bench, &format!("exec\n{name}\na\nweft\nrun-dir"));
    assert!(said.contains(&format!("run-dir /run/weft/labs/{name}/a")), "{said}");

    let words = [OsString::from("true")];
    let error = exec(lab, "t", &words, &host).unwrap_err().to_string();
    assert!(error.contains("has no node `t`: there are a, s, c"), "{error}");
    let error = exec(Some("staid"), "a", &words, &host).unwrap_err().to_string();
    assert!(error.contains("there is no lab `staid`: there are"), "{error}");
    // The test's stack cannot be asked; what it says is passed on.
    let error = start_trace(lab, NonZeroU64::MIN, &host).unwrap_err().to_string();
    assert!(
        error.contains("cannot ask node s: ") && error.contains("unknown arguments"),
        "{error}"
    );
    assert!(visits(lab, &host).is_err());

    // Nothing else may work in its directory.
    let error = bench.run("version 1; lab other { node a { kind linux; } scenario s { } }");
    let error = error.unwrap_err().to_string();
    assert!(error.contains(&name) && error.contains("--output"), "{error}");
    assert!(bench.stdout("s").contains("stack is ready"), "it was left alone");
    assert_gone("other");

    assert_eq!(namespaces("stays").len(), 4);
    assert_eq!(down(lab).unwrap(), name);
    assert_gone("stays");
    assert!(down(lab).unwrap_err().to_string().contains("there is no lab"));
}

/// What this binary writes when it does this.
fn child(bench: &Bench, arguments: &str) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["child::entry", "--exact", "--nocapture"])
        .env(ARGUMENTS, format!("{}\n{arguments}", bench.program().display()))
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn missing_programs_are_named_with_their_package() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let file = bench.directory.path().join("a.lab");
    std::fs::write(&file, "version 1; lab poor { node a { kind linux; } scenario s { } }").unwrap();
    let program = bench.program().display();
    let arguments = format!("lab\n{}\n{}\n{program}", file.display(), bench.output().display());
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["child::entry", "--exact", "--nocapture"])
        .env(ARGUMENTS, arguments)
        .env("PATH", "/does/not/exist")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("the program `ip` is missing: install it"), "{said}");
    assert!(said.contains("apt-get install iproute2"), "{said}");
    assert_gone("poor");
}
