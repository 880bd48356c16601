//! RIP and RIPng with FRR and BIRD on real interfaces, as `examples/rip/rip.lab` says.

use crate::support::{assert_gone, is_root, succeeded, text, weft};

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/rip");

#[test]
fn routers_of_three_kinds_exchange_routes_of_both_versions() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let lab = format!("{DIRECTORY}/rip.lab");
    let set = format!("DIRECTORY={DIRECTORY}");
    let output = weft(directory.path(), &["lab", "run", &lab, "--output", "out", "--set", &set]);
    // The steps that were done are on standard error.
    assert!(output.status.success(), "{}", text(&output.stderr));
    succeeded(&output);
    assert_gone("rip", directory.path());
}
