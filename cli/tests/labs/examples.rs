//! The labs in `examples/`, as their READMEs say to run them; `push.lab` is that of `demo`.

use std::path::Path;

use crate::support::{assert_gone, is_root, succeeded, text, weft};

fn run(name: &str, arguments: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let lab = format!("{}/../examples/{name}.lab", env!("CARGO_MANIFEST_DIR"));
    let mut command = vec!["lab", "run", &lab, "--output", "out"];
    command.extend(arguments);
    let output = weft(directory.path(), &command);
    // The steps that were done are on standard error.
    assert!(output.status.success(), "{}", text(&output.stderr));
    succeeded(&output);
    let is_simulated = arguments.contains(&"sim");
    if !is_simulated {
        // The simulator makes nothing, and another test may be running the same lab for real.
        assert_gone(name, directory.path());
    }
    let log = |name: &str| log(&directory.path().join("out/logs").join(name));
    if name == "over-ipv6" {
        for node in ["a", "b"] {
            assert_eq!(log(&format!("ipv4-{node}.stdout")), "", "{node} has an address of IPv4");
        }
    }
    if name == "away-from-ip" && !is_simulated {
        for node in ["a", "ra", "ip1", "ip2", "x1", "x2", "rb", "b"] {
            let shown = log(&format!("left-{node}.stdout"));
            let (loopback, others): (Vec<_>, Vec<_>) =
                shown.lines().partition(|line| line.contains(": lo "));
            assert!(!loopback.is_empty(), "`ip` has shown nothing of {node}: {shown}");
            assert!(others.is_empty(), "{node} has an address of IP: {others:?}");
        }
        assert!(log("alone.stdout").contains("5 received"));
    }
}

/// What a command of a lab has said. That there is no such log is no proof that it said nothing.
fn log(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
#[should_panic(expected = "No such file")]
fn a_log_that_is_missing_is_not_an_empty_one() {
    log(&tempfile::tempdir().unwrap().path().join("left-a.stdout"));
}

#[test]
fn a_network_leaves_ip_in_steps() {
    if is_root() {
        run("away-from-ip", &["--scenario", "default"]);
    }
}

#[test]
fn stacks_in_processes_of_their_own_send_over_ipv6() {
    if is_root() {
        run("over-ipv6", &[]);
    }
}

#[test]
fn a_simulated_network_leaves_ip() {
    run("away-from-ip", &["--scenario", "simulated", "--engine", "sim"]);
}

#[test]
fn one_version_of_hid_replaces_another_and_no_packet_is_lost() {
    if is_root() {
        run("two-versions", &[]);
    }
    run("two-versions", &["--engine", "sim"]);
}

#[test]
fn one_version_of_hid_replaces_another_where_routes_are_found() {
    if is_root() {
        run("two-versions-routed", &[]);
        run("two-versions-routed", &["--scenario", "trees"]);
    }
    run("two-versions-routed", &["--engine", "sim"]);
}

#[test]
fn a_key_belongs_to_the_nearest_node() {
    if is_root() {
        run("nearest", &[]);
    }
    run("nearest", &["--engine", "sim"]);
}

#[test]
fn who_has_not_the_key_is_refused_where_proof_is_required() {
    if is_root() {
        run("spoofed-host", &[]);
    }
    run("spoofed-host", &["--engine", "sim"]);
}

#[test]
fn files_go_over_trees_that_nobody_stated() {
    if is_root() {
        run("multicast-tree", &[]);
    }
}

#[test]
fn the_kernel_forwards() {
    if is_root() {
        run("kernel-engine", &[]);
    }
}

#[test]
fn packets_arrive_though_half_of_the_routers_lack_a_principal() {
    if is_root() {
        run("half-the-routers", &[]);
    }
    run("half-the-routers", &["--engine", "sim"]);
}

#[test]
fn routers_forward_by_the_kernels_table_of_ip_and_follow_it() {
    if is_root() {
        run("dual-stack", &[]);
        run("dual-stack", &["--scenario", "ipv6"]);
    }
    run("dual-stack", &["--scenario", "simulated", "--engine", "sim"]);
}

#[test]
fn routes_lead_out_of_interfaces_to_ethernet_addresses() {
    if is_root() {
        run("interface-routes", &["--scenario", "default"]);
    }
    run("interface-routes", &["--scenario", "simulated", "--engine", "sim"]);
}
