//! Who may call a node's components: users besides root, as its configuration says.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use weft_port::testing::{privileged, runnable_by_all};

use crate::processes::Node;
use crate::support::{Done, finish};

/// A user without any right: `nobody` of the group `nogroup` on Debian.
const NOBODY: u32 = 65_534;
const SHOW: &str = "finder://xia/xia/1.0/show";
const PROCESSES: &str = "finder://manager/manager/1.0/processes";

/// What comes of a command that another user gives.
fn run_as(uid: u32, node: &Node, arguments: &[&str]) -> Done {
    let run = node.run_directory();
    let weft = runnable_by_all(Path::new(env!("CARGO_BIN_EXE_weft")), run.parent().unwrap());
    let mut command = Command::new(weft);
    command.args(arguments).arg("--run-dir").arg(run).uid(uid).gid(uid);
    finish(command)
}

fn call_as(uid: u32, node: &Node, call: &str) -> Done {
    run_as(uid, node, &["call", call])
}

fn configure(node: &Node, commands: &[&str]) {
    let commands = commands.iter().flat_map(|command| ["-c", command]);
    let done = node.run("configure", &commands.collect::<Vec<_>>());
    assert_eq!(done.status, Some(0), "{done:?}");
}

#[test]
fn users_call_what_the_configuration_lets_them() {
    if !privileged() {
        return;
    }
    let node = Node::start();
    let refused = |uid| {
        let parts = ["may not call this node's components", "`operators`"];
        call_as(uid, &node, SHOW).expect_failure(&parts);
    };
    refused(NOBODY);

    configure(&node, &["set operators user 65534 access manager/manager/1.0/processes", "commit"]);
    assert_eq!(call_as(NOBODY, &node, PROCESSES).status, Some(0));
    call_as(NOBODY, &node, SHOW)
        .expect_failure(&["operator (uid 65534) may not call xia/1.0/show"]);
    refused(NOBODY - 1);

    // By a name, of a group, and without a list.
    configure(&node, &["delete operators", "set operators group 65534", "commit"]);
    assert_eq!(call_as(NOBODY, &node, SHOW).status, Some(0));
    let done = run_as(NOBODY, &node, &["configure", "-c", "set xia principal zf", "-c", "commit"]);
    assert_eq!(done.status, Some(0), "{done:?}");

    configure(&node, &["rollback 3", "commit"]);
    refused(NOBODY);
}
