//! BGP with BIRD, FRR, GoBGP and ExaBGP on real interfaces, as the labs in `examples/bgp` and in `interop` say.

use crate::support::{assert_gone, is_root, succeeded, text, weft};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/bgp");
const INTEROP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/labs/interop");

#[test]
fn three_systems_exchange_routes_while_processes_of_the_fourth_are_killed() {
    run(EXAMPLES, "bgp");
}

#[test]
fn routers_restart_and_no_packet_is_lost() {
    run(EXAMPLES, "restart");
}

#[test]
fn sessions_are_what_routers_of_others_agree_to() {
    run(EXAMPLES, "peers");
}

#[test]
fn networks_of_a_routers_own_are_told_as_long_as_they_are_there() {
    run(EXAMPLES, "own");
}

#[test]
fn xia_crosses_three_systems_whose_only_routing_protocol_is_bgp() {
    run(EXAMPLES, "xia");
}

#[test]
fn xia_crosses_three_systems_by_prefixes_that_only_bgp_has_spread() {
    run(EXAMPLES, "translator");
}

#[test]
fn two_systems_meet() {
    run(EXAMPLES, "two-systems");
}

#[test]
fn a_hundred_clients_of_a_route_server_hear_of_each_other() {
    run(EXAMPLES, "route-server");
}

#[test]
fn packets_leave_by_the_nearest_exit() {
    run(EXAMPLES, "hot-potato");
}

#[test]
fn a_reflector_stands_between_routers_of_a_system() {
    run(EXAMPLES, "reflection");
}

#[test]
fn parts_are_told_as_one() {
    run(EXAMPLES, "aggregates");
}

#[test]
fn a_station_hears_what_peers_say() {
    run(EXAMPLES, "monitoring");
}

#[test]
fn members_of_a_confederation_are_one_system_to_others() {
    run(EXAMPLES, "confederation");
}

#[test]
fn a_large_table_comes_goes_and_comes_back() {
    run(EXAMPLES, "full-table");
}

#[test]
fn what_may_not_be_announced_is_not_accepted() {
    run(EXAMPLES, "rpki");
}

#[test]
fn ten_thousand_routes_go_each_way_with_each_router() {
    run(INTEROP, "tables");
}

#[test]
fn several_paths_refresh_and_restarts_work_with_each_router() {
    run(INTEROP, "features");
}

#[test]
fn routes_live_long_here_and_with_others() {
    run(INTEROP, "long-lived");
}

#[test]
fn how_a_session_ends_decides_whether_others_keep_routes() {
    run(INTEROP, "hard-reset");
}

#[test]
fn a_route_that_comes_and_goes_is_not_passed_on() {
    run(INTEROP, "damping");
}

#[test]
fn packets_are_dropped_for_neighbours_that_ask_for_it() {
    run(INTEROP, "blackhole");
}

#[test]
fn what_some_routers_have_no_room_for_reaches_those_that_have() {
    run(INTEROP, "sizes");
}

#[test]
fn routes_for_multicast_go_their_own_way_with_others() {
    run(INTEROP, "multicast");
}

#[test]
fn routes_of_a_route_server_are_used_though_it_is_in_no_path() {
    run(INTEROP, "route-server-client");
}

#[test]
fn routers_may_speak_from_addresses_that_static_routes_lead_to() {
    run(INTEROP, "own-addresses");
}

#[test]
fn what_one_router_has_written_down_is_announced_to_another() {
    run(INTEROP, "replay");
}

/// Runs one of the labs of a directory, and sees that nothing is left of it.
fn run(directory: &str, name: &str) {
    if !is_root() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let lab = format!("{directory}/{name}.lab");
    let set = format!("DIRECTORY={directory}");
    let output = weft(place.path(), &["lab", "run", &lab, "--output", "out", "--set", &set]);
    // The steps that were done are on standard error.
    assert!(output.status.success(), "{}", text(&output.stderr));
    succeeded(&output);
    assert_gone(name, place.path());
}
