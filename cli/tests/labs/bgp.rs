//! BGP with BIRD and FRR on real interfaces, as the labs in `examples/bgp` say.

use crate::support::{assert_gone, is_root, succeeded, text, weft};

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/bgp");

#[test]
fn three_systems_exchange_routes_while_processes_of_the_fourth_are_killed() {
    run("bgp");
}

#[test]
fn routers_restart_and_no_packet_is_lost() {
    run("restart");
}

#[test]
fn sessions_are_what_routers_of_others_agree_to() {
    run("peers");
}

#[test]
fn networks_of_a_routers_own_are_told_as_long_as_they_are_there() {
    run("own");
}

#[test]
fn xia_crosses_three_systems_whose_only_routing_protocol_is_bgp() {
    run("xia");
}

#[test]
fn xia_crosses_three_systems_by_prefixes_that_only_bgp_has_spread() {
    run("translator");
}

/// Runs one of the labs, and sees that nothing is left of it.
fn run(name: &str) {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let lab = format!("{DIRECTORY}/{name}.lab");
    let set = format!("DIRECTORY={DIRECTORY}");
    let output = weft(directory.path(), &["lab", "run", &lab, "--output", "out", "--set", &set]);
    // The steps that were done are on standard error.
    assert!(output.status.success(), "{}", text(&output.stderr));
    succeeded(&output);
    assert_gone(name, directory.path());
}
