//! The same seed gives the same packets in every build of the program.

use std::path::Path;

use crate::demo::tree_hash;
use crate::support::WEFT;

/// Names the release build of the program; `scripts/test.sh` sets it.
const RELEASE: &str = "WEFT_RELEASE";

#[test]
fn a_debug_and_a_release_build_send_the_same_packets() {
    let Ok(release) = std::env::var(RELEASE) else {
        println!(
            "NOT RUN: {RELEASE} names no release build to compare with; `make test` builds one, or: \
             cargo build --release -p weft && {RELEASE}=$PWD/target/release/weft cargo test -p weft"
        );
        return;
    };
    assert!(
        Path::new(&release).is_file(),
        "{RELEASE} names {release}, which is not there: `make test` builds it"
    );
    if !cfg!(debug_assertions) {
        println!("NOT RUN: these tests were built for release, too");
        return;
    }
    assert_eq!(tree_hash(WEFT, "1"), tree_hash(&release, "1"), "{WEFT} and {release}");
}
