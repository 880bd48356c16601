//! Long runs, for `make soak`: nodes that stay up for many transfers, and many seeds of one network.
//!
//! `WEFT_SOAK_ROUNDS` says how many transfers and seeds there are.

use std::collections::BTreeMap;

use crate::network::{TO, lab, push, receive, run};
use crate::support::is_root;

/// Transfers and seeds unless the environment says how many.
const ROUNDS: u32 = 100;
/// Transfers after which a node has all the memory that it should ever need.
const WARM_UP: u32 = 10;
/// What a node may take more at the end than after the warm-up, in KiB: queues that were once longer
/// than during the warm-up leave their memory for the next packets. A leak of one packet in two hundred
/// is more, from 300 transfers on.
const GROWTH: u64 = 4096;

fn rounds() -> u32 {
    std::env::var("WEFT_SOAK_ROUNDS").map_or(ROUNDS, |text| {
        text.parse().unwrap_or_else(|_| panic!("WEFT_SOAK_ROUNDS: `{text}` is no number"))
    })
}

#[test]
#[ignore = "takes long; make soak runs it"]
fn soak_nodes_that_stay_take_no_more_memory_and_descriptors() {
    if !is_root() {
        return;
    }
    let last = WARM_UP + rounds();
    let mut steps = String::new();
    for round in 1..=last {
        steps += &transfer(round);
        if [WARM_UP, last].contains(&round) {
            steps += &["server", "r", "client1", "client2"].map(|node| look(node, round)).concat();
        }
    }
    let ran = run("soak-nodes", &lab("soak-nodes", &steps), &[], &[]);
    for node in ["server", "r", "client1", "client2"] {
        let at = |round: u32| {
            let path = ran.path(&format!("logs/look-{node}-{round}.stdout"));
            numbers(&std::fs::read_to_string(path).unwrap())
        };
        let (before, after) = (at(WARM_UP), at(last));
        println!("{node}: after {WARM_UP} transfers {before:?}, after {last} {after:?}");
        assert_eq!(before["descriptors"], after["descriptors"], "{node}");
        assert!(after["VmRSS:"] <= before["VmRSS:"] + GROWTH, "{node}: {before:?}, {after:?}");
    }
}

/// The steps that push the file to two clients.
fn transfer(round: u32) -> String {
    let clients = ["client1", "client2"];
    let start = clients.map(|client| receive(client, &format!("{client}-{round}")));
    let wait = clients.map(|client| format!("wait-exit {client}-{round} timeout 10min;\n"));
    format!(
        "{}run server \"weft xia push payload --to {TO} --rate 200Mbit/s --json\" as sender-{round};
         {}stop sender-{round};
         expect-files-equal payload client1/payload client2/payload;
         exec client1 \"rm -r client1 client2\";\n",
        start.concat(),
        wait.concat(),
    )
}

/// The step that notes the memory and the open descriptors of a node's stack.
fn look(node: &str, round: u32) -> String {
    format!(
        "exec {node} \"sh -c 'cd /proc/$(pgrep -f [/]{node}.conf) && grep VmRSS status && \
         echo descriptors $(ls fd | wc -l)'\" as look-{node}-{round};\n"
    )
}

/// The numbers of lines such as `VmRSS:    9000 kB`, by their names.
fn numbers(text: &str) -> BTreeMap<String, u64> {
    let words = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    words.map(|words| (words[0].to_owned(), words[1].parse().unwrap())).collect()
}

#[test]
#[ignore = "takes long; make soak runs it"]
fn soak_every_seed_of_a_bad_network_delivers_the_file() {
    let clients = ["client1", "client2", "client3"];
    let start = clients.map(|client| receive(client, &format!("{client}-receiver")));
    let wait = clients.map(|client| format!("wait-exit {client}-receiver timeout 10min;\n"));
    let steps = format!(
        "{}{}{}stop sender;
         expect-files-equal payload client1/payload client2/payload client3/payload;",
        start.concat(),
        push(),
        wait.concat(),
    );
    let bad = "{ loss 5%; duplicate 2%; reorder 5%; delay 5ms; jitter 3ms; }";
    let text = lab("soak-seeds", &steps).replace("{ loss 1%; }", bad);
    assert!(text.contains(bad));
    for seed in 1..=rounds() {
        println!("seed {seed}");
        run("soak-seeds", &text, &[], &["--engine", "sim", "--seed", &seed.to_string()]);
    }
}
