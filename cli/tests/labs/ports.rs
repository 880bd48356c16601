//! Two nodes cannot have one tunnel address.

use crate::network::{lab, run};
use crate::support::is_root;

#[test]
fn a_node_whose_tunnel_address_is_taken_says_so_and_ends() {
    if !is_root() {
        return;
    }
    let second = "version 1;
node second;
xia { principal hid; principal u4id { tunnel 10.0.1.1:13781; } principal xdp; }
";
    let steps = "exec server \"weft run ../second.conf --run-dir second\" as second status 1;
                 expect-running server;
                 exec server \"weft xia show\";";
    let lab = lab("taken-port", steps);
    let ran = run("taken-port", &lab, &[("second.conf", second)], &[]);
    let said = ran.said("second");
    for part in ["error: ", "node second", "10.0.1.1:13781", "ss -ulpn sport = :13781"] {
        assert!(said.contains(part), "`{part}` is missing: {said}");
    }
    assert!(!ran.path("second").exists(), "{said}");
}
