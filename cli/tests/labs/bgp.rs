//! BGP with BIRD and FRR on real interfaces, as `examples/bgp/bgp.lab` says.

use crate::support::{assert_gone, is_root, succeeded, text, weft};

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/bgp");

#[test]
fn three_systems_exchange_routes_while_processes_of_the_fourth_are_killed() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let lab = format!("{DIRECTORY}/bgp.lab");
    let set = format!("DIRECTORY={DIRECTORY}");
    let output = weft(directory.path(), &["lab", "run", &lab, "--output", "out", "--set", &set]);
    // The steps that were done are on standard error.
    assert!(output.status.success(), "{}", text(&output.stderr));
    succeeded(&output);
    assert_gone("bgp", directory.path());
}
