//! `weft configure`: a running node is changed, as a whole or not at all.

use rustix::process::{Pid, Signal, kill_process};
use weft_port::testing::privileged;

use crate::processes::Node;
use crate::support::Done;

fn configure(node: &Node, commands: &[&str]) -> Done {
    let commands = commands.iter().flat_map(|command| ["-c", command]);
    node.run("configure", &commands.collect::<Vec<_>>())
}

/// A process of a node, if it runs.
fn pid(node: &Node, name: &str) -> Option<u32> {
    node.processes().into_iter().find(|(found, _)| found == name).map(|(_, pid)| pid)
}

/// Sends a signal to a process of a node.
fn send(node: &Node, name: &str, signal: Signal) {
    let pid = Pid::from_raw(pid(node, name).unwrap().cast_signed()).unwrap();
    kill_process(pid, signal).unwrap();
}

fn principals(node: &Node) -> Vec<String> {
    let done = node.run("xia", &["show", "principals", "--json"]);
    done.json().as_object().unwrap().keys().cloned().collect()
}

#[test]
fn a_commit_changes_what_differs_and_rollback_takes_it_back() {
    if !privileged() {
        return;
    }
    let node = Node::start();
    let before = node.processes();
    let done = configure(&node, &["show xia principal"]);
    assert_eq!(done.stdout, "principal hid;\nprincipal xdp;\n", "{done:?}");
    configure(&node, &["show xia principle"]).expect_failure(&["no statement `xia principle`"]);
    let done = configure(&node, &["run xia p?"]);
    assert!(done.stdout.starts_with("  principal "), "{done:?}");
    let done = configure(&node, &["set xia principal zf", "show | compare", "commit check"]);
    assert_eq!(done.status, Some(0), "{done:?}");
    assert_eq!(done.stdout, "[edit xia]\n+   principal zf;\nnothing speaks against it\n");
    // The session has ended without a commit.
    assert_eq!(principals(&node), ["hid", "xdp"]);
    let done = configure(&node, &["set xia principal zf", "commit comment \"multicast, too\""]);
    assert_eq!(done.stdout, "revision 2 runs\n", "{done:?}");
    assert_eq!(principals(&node), ["hid", "xdp", "zf"]);
    let done = configure(&node, &["history"]);
    assert!(done.stdout.contains("by root: multicast, too\nrollback 1: revision 1"), "{done:?}");
    let done = configure(&node, &["rollback 1", "commit"]);
    assert_eq!(done.stdout, "revision 3 runs\n", "{done:?}");
    assert_eq!(principals(&node), ["hid", "xdp"]);
    assert_eq!(node.processes(), before, "no process was started again");
}

#[test]
fn what_lacks_the_rib_is_told_and_what_runs_can_be_saved() {
    if !privileged() {
        return;
    }
    let node = Node::start();
    let warning = "warning: `static` needs the RIB: add `rib;`\n";
    let set = "set static route 10.99.0.0/16 blackhole";
    let done = configure(&node, &[set, "commit check", "commit"]);
    let expected = format!("nothing speaks against it\n{warning}revision 2 runs\n{warning}");
    assert_eq!(done.stdout, expected, "{done:?}");
    node.run("show", &["routes"]).expect_failure(&["add `rib;` to its configuration"]);
    let done = configure(&node, &["set rib", "commit"]);
    assert_eq!(done.stdout, "revision 3 runs\n", "{done:?}");
    let file = node.run_directory().join("../saved.conf");
    let done = configure(&node, &[&format!("save {}", file.display())]);
    assert!(done.stdout.starts_with("revision 3 is in "), "{done:?}");
    let saved = std::fs::read_to_string(&file).unwrap();
    assert!(saved.contains("version 1;") && saved.contains("\nrib "), "{saved}");
}

#[test]
fn a_loaded_file_may_include_others() {
    if !privileged() {
        return;
    }
    let node = Node::start();
    let directory = crate::support::directory();
    let file = directory.path().join("more.conf");
    std::fs::write(&file, "version 1; xia { include zf.conf; }").unwrap();
    let load = format!("load merge {}", file.display());
    configure(&node, &[&load]).expect_failure(&["more.conf:1:26", "zf.conf", "No such file"]);
    std::fs::write(directory.path().join("zf.conf"), "version 1; principal zf;").unwrap();
    let done = configure(&node, &[&load, "commit"]);
    assert_eq!(done.stdout, "revision 2 runs\n", "{done:?}");
    assert_eq!(principals(&node), ["hid", "xdp", "zf"]);
}

#[test]
fn a_configuration_of_megabytes_is_loaded_shown_committed_and_found_again() {
    if !privileged() {
        return;
    }
    let node = Node::with("principal hid; principal ad; principal xdp;");
    let route = |number: u32| format!("route ad-{number:040x} via hid-{number:040x};\n");
    let routes: String = (0..30_000).map(route).collect();
    assert!(routes.len() > 2 << 20, "longer than what strangers may send at a time");
    let take = || node.call(&["finder://xia/checked/1.0/take?number:u64=1"]);
    take().expect_failure(&["number 1 is not what was checked last"]);
    let file = node.run_directory().join("../routes.conf");
    std::fs::write(&file, format!("version 1;\nxia {{ principal ad {{\n{routes}}} }}\n")).unwrap();
    let load = format!("load merge {}", file.display());
    let done = configure(&node, &[&load, "commit"]);
    assert_eq!(done.stdout, "revision 2 runs\n", "{done:?}");
    let one = "delete xia principal ad route ad-0000000000000000000000000000000000000007 via \
               hid-0000000000000000000000000000000000000007";
    let done = configure(&node, &[one, "show | compare", "commit"]);
    assert!(done.stdout.ends_with("0007;\nrevision 3 runs\n"), "{done:?}");
    let shown = configure(&node, &["show"]).stdout;
    assert_eq!(shown.matches(" via ").count(), 29_999);
    // Whoever is started anew finds it all.
    let xia = pid(&node, "xia");
    node.call(&["finder://manager/manager/1.0/signal?instance:txt=xia&number:u32=9"]);
    node.wait_until(|| pid(&node, "xia").is_some_and(|new| Some(new) != xia));
    let routes = || {
        let done = node.run("xia", &["show", "principals", "--json"]);
        let shown: serde_json::Value = serde_json::from_str(&done.stdout).ok()?;
        shown["ad"]["routes"].as_array().map(Vec::len)
    };
    node.wait_until(|| routes() == Some(29_999));
}

#[test]
fn what_a_component_refuses_changes_nothing() {
    if !privileged() {
        return;
    }
    let node = Node::start();
    let done =
        configure(&node, &["set xia principal zf", "set xia principal hid local hid-02", "commit"]);
    let place = "command:1:29: xia refuses this: ";
    done.expect_failure(&[
        "`commit`",
        place,
        "hid-<40 hex digits>",
        "principal hid local hid-02",
        "^",
    ]);
    assert_eq!(principals(&node), ["hid", "xdp"]);
    // In the file that was loaded, at the line as it was written.
    let file = node.run_directory().join("../more.conf");
    std::fs::write(&file, "version 1;\nxia {\n  principal zf;\n  principal \"hid\" {\n    local\n      hid-02;\n  }\n}\n").unwrap();
    let load = format!("load merge {}", file.display());
    for last in ["commit check", "commit"] {
        let done = configure(&node, &[&load, last]);
        done.expect_failure(&[
            "more.conf:6:7: xia refuses this: ",
            "\n  6 |       hid-02;\n    |       ^^^^^^\n",
        ]);
        assert!(!done.stderr.contains("configuration:"), "{done:?}");
    }
    assert_eq!(principals(&node), ["hid", "xdp"]);
    configure(&node, &["set xia principle zf"]).expect_failure(&["`principle`", "principal", "^"]);
    configure(&node, &["commit"]).expect_failure(&["there is nothing to commit"]);
    configure(&node, &["delete node", "commit"]).expect_failure(&["node"]);
}

#[test]
fn components_come_and_go_with_their_statements() {
    if !privileged() {
        return;
    }
    let node = Node::start();
    let names = || node.processes().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(configure(&node, &["delete xia", "commit"]).stdout, "revision 2 runs\n");
    node.wait_until(|| names() == ["fea", "finder", "manager"]);
    let done = configure(&node, &["rollback 1", "commit"]);
    assert_eq!(done.stdout, "revision 3 runs\n", "{done:?}");
    assert_eq!(names(), ["fea", "finder", "manager", "xia"]);
    assert_eq!(principals(&node), ["hid", "xdp"]);
}

#[test]
fn the_example_component_is_configured_and_called() {
    if !privileged() {
        return;
    }
    let node = Node::start();
    let greet = || node.call(&["finder://greeter/greeter/1.0/greet?name:txt=ada"]);
    greet().expect_failure(&["there is no component `greeter`"]);
    let done = configure(&node, &["set greeter greeting \"good day,\"", "commit"]);
    assert_eq!(done.stdout, "revision 2 runs\n", "{done:?}");
    let all = "present:list<txt>=fea,greeter,manager,xia\n";
    node.wait_until(|| greet().stdout.ends_with(all));
    assert!(greet().stdout.starts_with("text:txt=good%20day%2C%20ada&"));
    configure(&node, &["set greeter salute x"]).expect_failure(&["`salute`", "greeting"]);
}

#[test]
fn a_manager_that_was_killed_goes_on_with_what_was_committed() {
    if !privileged() {
        return;
    }
    let node = Node::start();
    assert_eq!(configure(&node, &["set xia principal zf", "commit"]).status, Some(0));
    let (manager, xia) = (pid(&node, "manager"), pid(&node, "xia"));
    // Its own answer does not come.
    node.call(&["finder://manager/manager/1.0/signal?instance:txt=manager&number:u32=9"]);
    node.wait_until(|| pid(&node, "manager").is_some_and(|new| Some(new) != manager));
    // It is called as soon as the Finder knows it.
    node.wait_until(|| node.call(&["finder://manager/manager/1.0/processes"]).status == Some(0));
    let done = configure(&node, &["history", "run"]);
    assert!(done.stdout.starts_with("rollback 0: revision 2,"), "{done:?}");
    assert!(done.stdout.contains("principal zf;"), "{done:?}");
    assert_eq!(pid(&node, "xia"), xia);
}

#[test]
#[ignore = "waits for a minute and a half; make soak runs it"]
fn a_component_that_hangs_while_all_falls_back_is_started_again_with_what_runs() {
    if !privileged() {
        return;
    }
    let node = Node::start();
    let done = configure(&node, &["set greeter greeting before", "commit"]);
    assert_eq!(done.stdout, "revision 2 runs\n", "{done:?}");
    let done = configure(&node, &["set greeter greeting after", "commit confirmed 1"]);
    assert_eq!(done.status, Some(0), "{done:?}");
    let before = pid(&node, "greeter");
    send(&node, "greeter", Signal::STOP);
    node.wait_until(|| pid(&node, "greeter").is_some_and(|now| Some(now) != before));
    let greet = || node.call(&["finder://greeter/greeter/1.0/greet?name:txt=ada"]);
    node.wait_until(|| greet().stdout.starts_with("text:txt=before%20ada"));
    let done = configure(&node, &["show greeter"]);
    assert!(done.stdout.contains("greeting before;"), "{done:?}");
}

/// A session that is given commands one by one.
struct Operator {
    child: std::process::Child,
    commands: std::process::ChildStdin,
    said: std::io::Lines<std::io::BufReader<std::process::ChildStdout>>,
}

impl Operator {
    fn new(node: &Node) -> Self {
        use std::io::BufRead;
        let mut command = node.command("configure", &[]);
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
        Self { commands: child.stdin.take().unwrap(), child, said }
    }

    fn say(&mut self, command: &str) {
        std::io::Write::write_all(&mut self.commands, format!("{command}\n").as_bytes()).unwrap();
    }

    fn hears(&mut self, line: &str) {
        assert_eq!(self.said.next().unwrap().unwrap(), line);
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Kills the manager and waits until the next one can be called.
fn kill_manager(node: &Node) {
    let before = pid(node, "manager");
    send(node, "manager", Signal::KILL);
    node.wait_until(|| pid(node, "manager").is_some_and(|now| Some(now) != before));
    node.wait_until(|| node.call(&["finder://manager/manager/1.0/processes"]).status == Some(0));
}

#[test]
fn edits_outlive_the_manager_as_long_as_their_operator_is_there() {
    if !privileged() {
        return;
    }
    let node = Node::start();
    let mut operator = Operator::new(&node);
    operator.say("set xia principal zf\nshow | compare");
    operator.hears("[edit xia]");
    operator.hears("+   principal zf;");
    let file = node.run_directory().join("manager/history/candidate");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    let directory = std::fs::metadata(node.run_directory().join("manager")).unwrap().permissions();
    let directory = std::os::unix::fs::PermissionsExt::mode(&directory);
    assert!(mode & 0o077 == 0 || directory & 0o077 == 0, "{mode:o} in {directory:o}");
    kill_manager(&node);
    configure(&node, &["show"]).expect_failure(&["root edits the configuration"]);
    operator.say("set xia principal ad\nshow | compare");
    operator.hears("[edit xia]");
    operator.hears("+   principal zf;");
    operator.hears("+   principal ad;");
    // While there is no manager the session waits.
    send(&node, "manager", Signal::KILL);
    operator.say("commit");
    operator.hears("revision 2 runs");
    assert_eq!(principals(&node), ["ad", "hid", "xdp", "zf"]);
    // Nobody is there any more when the next manager comes.
    operator.say("set xia copies 5\nshow | compare");
    operator.hears("[edit xia]");
    operator.hears("+   copies 5;");
    drop(operator);
    kill_manager(&node);
    node.wait_until(|| configure(&node, &["show | compare"]).status == Some(0));
    assert_eq!(configure(&node, &["show | compare"]).stdout, "");
    assert!(!file.exists());
}

#[test]
fn an_operator_who_goes_with_the_manager_keeps_nobody_waiting() {
    if !privileged() {
        return;
    }
    let node = Node::start();
    let mut operator = Operator::new(&node);
    operator.say("set xia principal zf\nshow | compare");
    operator.hears("[edit xia]");
    send(&node, "manager", Signal::STOP);
    drop(operator);
    send(&node, "manager", Signal::KILL);
    node.wait_until(|| configure(&node, &["show | compare"]).status == Some(0));
    let done = configure(&node, &["show | compare"]);
    assert_eq!((done.status, done.stdout.as_str()), (Some(0), ""), "{done:?}");
}
