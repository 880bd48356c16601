//! Static routes on real interfaces, as `examples/static.lab` says.

use crate::support::{assert_gone, is_root, succeeded, text, weft};

const LAB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/static.lab");

#[test]
fn static_routes_follow_the_links_in_the_kernel() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let output = weft(directory.path(), &["lab", "run", LAB, "--output", "out"]);
    // The steps that were done are on standard error.
    assert!(output.status.success(), "{}", text(&output.stderr));
    succeeded(&output);
    assert_gone("static", directory.path());
}
