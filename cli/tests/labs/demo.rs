//! The demo and the tree, as a user runs them, in the simulator and on real interfaces.

use crate::support::{WEFT, is_root, run, succeeded, weft};

/// A file of `len` bytes that do not repeat, in a fresh directory.
fn payload(len: usize) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let mut random = weft_base::Random::from_seed(5);
    let mut bytes = vec![0; len];
    random.fill(&mut bytes);
    std::fs::write(directory.path().join("file.bin"), bytes).unwrap();
    directory
}

/// What must hold of the demo's table: four receivers, each with the file, twice.
fn check_tables(text: &str) {
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("client")).collect();
    assert_eq!(rows.len(), 8, "{text}");
    assert!(rows.iter().all(|row| row.ends_with(" equal")), "{text}");
    for row in rows {
        let numbers: Vec<u64> =
            row.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let (used, needed) = (numbers[2], numbers[3]);
        assert!(used >= needed && used * 100 <= needed * 102, "{row}");
    }
}

#[test]
fn the_demo_reaches_every_receiver_in_the_simulator() {
    let directory = payload(2_000_000);
    let output = weft(directory.path(), &["demo", "--sim", "--file", "file.bin"]);
    check_tables(&succeeded(&output));
}

#[test]
fn the_demo_reaches_every_receiver_on_real_interfaces() {
    if !is_root() {
        return;
    }
    let directory = payload(2_000_000);
    let output = weft(directory.path(), &["demo", "--file", "file.bin", "--rate", "20Mbit/s"]);
    check_tables(&succeeded(&output));
}

/// Lets a build of the program run a tree of 27 receivers; returns its trace hash.
pub(crate) fn tree_hash(program: &str, seed: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let shape =
        ["lab", "tree", "--fan-out", "3", "--depth", "3", "--size", "200KiB", "--seed", seed];
    let file = succeeded(&run(program, directory.path(), &shape));
    std::fs::write(directory.path().join("tree.lab"), file).unwrap();
    let arguments = ["lab", "run", "tree.lab", "--engine", "sim", "--json"];
    let output = run(program, directory.path(), &arguments);
    let outcome: serde_json::Value = serde_json::from_str(&succeeded(&output)).unwrap();
    outcome["trace_hash"].as_str().unwrap().to_owned()
}

#[test]
fn a_tree_is_reached_whole_and_its_packets_follow_from_the_seed() {
    let first = tree_hash(WEFT, "1");
    assert_eq!(first, tree_hash(WEFT, "1"), "two processes of one seed");
    assert_ne!(first, tree_hash(WEFT, "2"), "another seed");
}
