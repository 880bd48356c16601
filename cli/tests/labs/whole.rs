//! Whole nodes in the simulator: the processes of `weft run`, each of which may die.

use serde_json::Value;

use crate::network::{TO, lab, receive};
use crate::support::{succeeded, text, weft};

/// The steps that kill a process of a node with SIGKILL, and show 300 ms later which run. `round` makes
/// names of them.
fn kill(process: &str, round: usize) -> String {
    // Who kills the manager gets no answer from it.
    let status = if process == "manager" { "status 1 timeout 6s" } else { "" };
    format!(
        "exec r \"weft call 'finder://manager/manager/1.0/signal?instance:txt={process}&number:u32=9' \
            --timeout 200\" {status};
         after 300ms;
         {}",
        look("r", &format!("look-{round}"))
    )
}

/// The step that shows which processes run on a node.
fn look(node: &str, name: &str) -> String {
    format!("exec {node} \"weft call finder://manager/manager/1.0/processes\" as {name};\n")
}

/// The processes of a node as the manager tells them: name, process id, state, restarts.
fn processes(told: &str) -> Vec<(String, u32, String, u32)> {
    let field = |one: &str, name: &str| -> String {
        let rest = one.split(&format!("{name}=")).nth(1).unwrap_or_default();
        rest.split([';', ')']).next().unwrap_or_default().to_owned()
    };
    let told = told.split("processes:").nth(1).expect(told);
    let each = told.split("instance=").skip(1).map(|one| format!("instance={one}"));
    each.map(|one| {
        let number = |name: &str| field(&one, name).parse().unwrap_or_else(|_| panic!("{one}"));
        (field(&one, "instance"), number("pid"), field(&one, "state"), number("restarts"))
    })
    .collect()
}

struct Ran {
    directory: tempfile::TempDir,
    outcome: Value,
}

impl Ran {
    fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.directory.path().join(format!("out/logs/{name}"))).unwrap()
    }
}

fn simulate(lab: &str, seed: &str) -> Ran {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("test.lab"), lab).unwrap();
    let output = weft(
        directory.path(),
        &["lab", "run", "test.lab", "--engine", "sim", "--output", "out", "--json", "--seed", seed],
    );
    let outcome = serde_json::from_str(&succeeded(&output)).unwrap();
    Ran { directory, outcome }
}

#[test]
fn a_simulated_node_has_the_processes_of_a_real_one_which_can_be_called() {
    let steps = format!(
        "exec r \"weft xia ping @client1 --count 3\" as ping;
         {}
         exec r \"weft call --list xia\" as list;
         exec r \"weft call 'finder://xia/xia/1.0/show?what:txt=node'\" as show;
         exec r \"weft call finder://xia/xia/1.0/nothing\" as wrong status 1;",
        look("r", "look")
    );
    let ran = simulate(&lab("whole", &steps), "1");
    let found = processes(&ran.log("look.stdout"));
    let names: Vec<_> = found.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["fea", "finder", "manager", "xia"], "{found:?}");
    assert!(found.iter().all(|(_, pid, state, _)| *pid > 0 && state == "running"), "{found:?}");
    assert!(ran.log("ping.stdout").contains("3"), "{}", ran.log("ping.stdout"));
    assert!(ran.log("list.stdout").contains("finder://xia/xia/1.0/show"));
    assert!(ran.log("show.stdout").contains("json"), "{}", ran.log("show.stdout"));
    assert!(ran.log("wrong.stderr").contains("has no method"), "{}", ran.log("wrong.stderr"));
    // What all processes of a node say stands together, as on a terminal.
    for part in ["the manager runs as process", "xia runs", "is ready"] {
        assert!(ran.log("r.stderr").contains(part), "{}", ran.log("r.stderr"));
    }
}

#[test]
fn a_simulated_node_ends_with_all_its_processes_and_starts_again() {
    // A node that starts anew is heard of by its neighbours within a second.
    let ping =
        |name: &str| format!("after 2s; exec client1 \"weft xia ping @r --count 1\" as {name};\n");
    let steps = ping("first")
        + "restart r;\n"
        + &ping("second")
        + "kill r; exec r \"weft xia show\" status 1;
           exec r \"weft call finder://xia/xia/1.0/show --timeout 100\" status 1; start r;\n"
        + &ping("third")
        + &look("r", "look")
        + "stop r;";
    let ran = simulate(&lab("restarted", &steps), "1");
    assert_eq!(processes(&ran.log("look.stdout")).len(), 4);
    let said = ran.log("r.stderr");
    for part in ["the node ends", "xia (process", "the manager (process"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // When it is started again, and at the end; those that are killed say nothing.
    assert_eq!(said.matches("ended with status 0").count(), 8, "{said}");
}

#[test]
fn each_simulated_process_that_is_killed_comes_back_alone_and_the_transfer_goes_on() {
    const KILLED: [&str; 6] = ["fea", "finder", "manager", "xia", "manager", "xia"];
    let kills: String = KILLED.iter().enumerate().map(|(n, process)| kill(process, n)).collect();
    let steps = receive("client1", "first")
        + &receive("client2", "second")
        + &format!("run server \"weft xia push payload --to {TO} --rate 4Mbit/s\" as sender;\n")
        + "after 500ms;\n"
        + &look("r", "before")
        + &kills
        + "expect-running first;
           expect-running sender;
           wait-exit first timeout 10min;
           wait-exit second timeout 10min;
           stop sender;
           expect-files-equal payload client1/payload client2/payload;";
    let lab = lab("killed-simulated", &steps);
    let ran = simulate(&lab, "1");
    let mut before = processes(&ran.log("before.stdout"));
    for (round, killed) in KILLED.iter().enumerate() {
        let after = processes(&ran.log(&format!("look-{round}.stdout")));
        assert_eq!(after.len(), 4, "{killed}: {after:?}");
        for (old, new) in before.iter().zip(&after) {
            assert_eq!((&old.0, new.2.as_str()), (&new.0, "running"), "{killed}: {after:?}");
            assert_eq!(old.1 != new.1, new.0 == *killed, "{killed}: {before:?} {after:?}");
        }
        before = after;
    }
    let hash = |ran: &Ran| ran.outcome["trace_hash"].as_str().unwrap().to_owned();
    assert_eq!(hash(&ran), hash(&simulate(&lab, "1")), "two runs of one seed");
    assert_ne!(hash(&ran), hash(&simulate(&lab, "2")), "another seed");
}

#[test]
fn programs_of_others_are_refused_before_anything_is_built() {
    let lab = "version 1;
        lab foreign {
            node r {
                kind weft;
                config { xia { principal xdp; } program census { execute /usr/lib/census.py; } }
            }
            scenario default { after 1s; }
        }";
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("test.lab"), lab).unwrap();
    let output = weft(directory.path(), &["lab", "run", "test.lab", "--engine", "sim"]);
    let said = text(&output.stderr);
    assert!(!output.status.success());
    for part in ["test.lab:3:18:", "node `r`", "`census`", "netns"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}
