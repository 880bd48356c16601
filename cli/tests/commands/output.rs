//! Standard output and standard error: errors go to the one, and a reader who leaves the other is no
//! error.

use std::path::Path;

use crate::support::{Done, finish, node_file, weft};

/// A lab without nodes that are part of weft, whose scenario fails in the simulator.
const FAILING: &str = r#"version 1;
lab failing {
    node a { kind weft; config { xia { principal xdp; } } }
    scenario default {
        run a "weft xia ping hid-0000000000000000000000000000000000000001 --count 1" as ping;
        wait-exit ping;
    }
}
"#;

fn lab_file(directory: &Path) -> String {
    let path = directory.join("failing.lab");
    std::fs::write(&path, FAILING).unwrap();
    path.display().to_string()
}

/// Runs a command whose standard output nobody reads.
fn unread(arguments: &[&str]) -> Done {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = weft(arguments);
    let child = command.stdout(writer).stderr(std::process::Stdio::piped()).spawn().unwrap();
    child.wait_with_output().unwrap().into()
}

#[test]
fn a_reader_who_leaves_is_no_error() {
    let directory = tempfile::tempdir().unwrap();
    let lab = lab_file(directory.path());
    let node = node_file(directory.path(), "host", "principal xdp;").display().to_string();
    let key = directory.path().join("key").display().to_string();
    let commands: &[&[&str]] = &[
        &["bench", "--list"],
        &["lab", "check", &lab],
        &["lab", "status"],
        &["lab", "tree"],
        &["run", "--check", &node],
        &["xia", "id", "new", &key],
    ];
    for command in commands {
        let done = unread(command);
        assert_eq!((done.status, done.stderr.as_str()), (Some(0), ""), "{command:?}");
    }
}

#[test]
fn a_scenario_that_fails_says_why_on_standard_error_alone() {
    let directory = tempfile::tempdir().unwrap();
    let lab = lab_file(directory.path());
    let output = directory.path().join("out").display().to_string();
    for (format, expected) in [(None, ""), (Some("--json"), "\"error\": \"")] {
        let arguments = ["lab", "run", &lab, "--engine", "sim", "--output", &output];
        let done = finish(weft(arguments.into_iter().chain(format)));
        let error = done.stderr.lines().last().unwrap();
        assert_eq!(done.status, Some(1), "{done:?}");
        assert!(error.starts_with("error: failing/default failed after "), "{done:?}");
        let why = error.split_once(": ").unwrap().1.split_once(": ").unwrap().1;
        assert!(format.is_some() || !done.stdout.contains(why), "{done:?}");
        assert!(done.stdout.contains(expected), "{done:?}");
    }
}
