//! What is left of a lab: nothing.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{ARGUMENTS, Bench, assert_gone, is_root, namespaces};

/// A lab whose scenario goes on for a long time, on a node with a process that does not want to end.
fn endless(name: &str) -> String {
    format!(
        "version 1;
lab {name} {{
    node a {{ kind linux; }}
    node b {{ kind weft; config {{ }} }}
    link a:eth0 b:eth0 {{ address 10.0.0.1/24 10.0.0.2/24; delay 1ms; }}
    scenario default {{
        run a \"weft fork-and-stay\" as stubborn;
        wait-output stubborn \"grandchild is there\";
        say \"the scenario goes on\";
        after 1h;
    }}
}}"
    )
}

/// Starts a process that runs a lab, and waits until the scenario goes on.
fn start(bench: &Bench, name: &str) -> (Child, impl Iterator<Item = String> + use<>) {
    let (child, mut lines) = start_lab(bench, name, &endless(name));
    assert!(lines.any(|line| line.contains("the scenario goes on")), "it ended early");
    (child, lines)
}

/// Starts a process that runs this lab.
fn start_lab(
    bench: &Bench,
    name: &str,
    text: &str,
) -> (Child, impl Iterator<Item = String> + use<>) {
    let file = bench.directory.path().join(format!("{name}.lab"));
    fs::write(&file, text).unwrap();
    let output = bench.directory.path().join(format!("{name}-out"));
    let arguments =
        format!("lab\n{}\n{}\n{}", file.display(), output.display(), bench.program().display());
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child::entry", "--exact", "--nocapture"])
        .env(ARGUMENTS, arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    (child, lines)
}

/// The processes in the namespaces of the lab, and those started for it.
fn processes(bench: &Bench) -> Vec<String> {
    let marker = bench.directory.path().display().to_string();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let commands = entries.filter_map(|entry| fs::read(entry.path().join("environ")).ok());
    let commands = commands.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    commands.filter(|text| text.contains(&marker) || text.contains("WEFT_RUN_DIR")).collect()
}

#[test]
fn signals_end_a_lab_without_leaving_anything() {
    if !is_root() {
        return;
    }
    for signal in [Signal::INT, Signal::TERM] {
        let bench = Bench::new();
        let name = if signal == Signal::INT { "interrupted" } else { "terminated" };
        let (mut child, mut lines) = start(&bench, name);
        assert_eq!(namespaces(name).len(), 3, "two nodes, and the links");
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert!(lines.any(|line| line.contains("ended by SIG")));
        assert_eq!(child.wait().unwrap().code(), Some(1));
        assert_gone(name);
        let own = format!("{name}-out");
        assert!(!processes(&bench).iter().any(|text| text.contains(&own)));
    }
}

#[test]
fn what_a_killed_lab_leaves_is_removed_by_the_next_one() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let (mut child, _lines) = start(&bench, "killed");
    child.kill().unwrap();
    child.wait().unwrap();
    // Any other lab of this machine that begins now may be the one that removes it.
    bench.succeed("version 1; lab next { node a { kind linux; } scenario default { after 0s; } }");
    assert_gone("killed");
    assert_gone("next");
}

#[test]
fn labs_of_one_name_live_side_by_side() {
    if !is_root() {
        return;
    }
    let (one, other) = (Bench::new(), Bench::new());
    let (mut first, mut first_lines) = start(&one, "twin");
    let (mut second, mut second_lines) = start(&other, "twin");
    assert_eq!(namespaces("twin").len(), 6);
    kill_process(Pid::from_child(&first), Signal::TERM).unwrap();
    assert!(first_lines.any(|line| line.contains("ended by SIGTERM")));
    first.wait().unwrap();
    assert_eq!(namespaces("twin").len(), 3, "the other one stays");
    kill_process(Pid::from_child(&second), Signal::TERM).unwrap();
    assert!(second_lines.any(|line| line.contains("ended by SIGTERM")));
    second.wait().unwrap();
    assert_gone("twin");
}

#[test]
fn failures_while_building_leave_nothing() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let cases = [
        ("node a { kind command; run \"/does/not/exist\"; }", "there is no such program"),
        ("node a { kind command; run \"false\"; ready \"here\"; }", "exited with status 1"),
        ("node a { kind linux; } file f from /does/not/exist;", "/does/not/exist"),
    ];
    for (statements, reason) in cases {
        let text =
            format!("version 1; lab broken {{ {statements} scenario default {{ after 0s; }} }}");
        let error = bench.run(&text).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert_gone("broken");
    }
}

#[test]
fn signals_while_a_lab_is_taken_down_count() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    // When it is asked to end, the lab is being taken down: its parent is the process of the lab.
    let late =
        "trap \\\"kill -INT $PPID; exit 0\\\" TERM; echo trapped; while :; do sleep 0.1; done";
    let text = format!(
        "version 1;
lab late {{
    node a {{ kind linux; }}
    scenario default {{ run a \"sh -c '{late}'\" as late; wait-output late trapped; }}
}}"
    );
    let (mut child, mut lines) = start_lab(&bench, "late", &text);
    assert!(lines.any(|line| line == "error Some(\"ended by SIGINT\")"));
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_gone("late");
}

#[test]
fn signals_between_two_labs_end_the_program() {
    if !is_root() {
        return;
    }
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let bench = Bench::new();
        let number = signal.as_raw();
        let text = format!(
            "version 1; lab between {{ node a {{ kind linux; }} scenario then-{number} {{ }} }}"
        );
        let (mut child, lines) = start_lab(&bench, "between", &text);
        let said: Vec<String> = lines.collect();
        assert!(said.iter().any(|line| line == "error None"), "{said:?}");
        assert_eq!(child.wait().unwrap().signal(), Some(number), "{said:?}");
        assert_gone("between");
    }
}
