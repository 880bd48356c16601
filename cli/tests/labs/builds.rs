//! The same seed gives the same packets in every build of the program.

use std::path::Path;

use weft_port::testing::{lacks, not_run};

use crate::demo::tree_hash;
use crate::support::WEFT;

/// Names the release build of the program; `scripts/test.sh` sets it.
const RELEASE: &str = "WEFT_RELEASE";

#[test]
fn a_debug_and_a_release_build_send_the_same_packets() {
    let Ok(release) = std::env::var(RELEASE) else {
        return lacks(&format!(
            "a release build that {RELEASE} names; `make test` makes one, or: cargo build --release \
             -p weft && {RELEASE}=$PWD/target/release/weft cargo test -p weft"
        ));
    };
    assert!(
        Path::new(&release).is_file(),
        "{RELEASE} names {release}, which is not there: `make test` builds it"
    );
    if !cfg!(debug_assertions) {
        return not_run("these tests were built for release, too");
    }
    assert_eq!(tree_hash(WEFT, "1"), tree_hash(&release, "1"), "{WEFT} and {release}");
}
