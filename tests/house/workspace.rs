//! Where the workspace is and what cargo knows about it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The repository's root directory.
pub(crate) fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the tests crate is a folder of the repository").to_path_buf()
}

/// `path` as seen from the repository's root, with `/` between its parts.
pub(crate) fn relative(path: &Path) -> String {
    let path = path.strip_prefix(root()).unwrap_or(path);
    path.to_string_lossy().into_owned()
}

/// What `cargo metadata` says of the workspace's own crates; needs no network.
pub(crate) fn members() -> Vec<Value> {
    packages(&["--no-deps", "--offline"])
}

/// What `cargo metadata` says of every crate that goes into weft on the platforms it supports.
pub(crate) fn dependencies() -> Vec<Value> {
    packages(&[
        "--filter-platform",
        "x86_64-unknown-linux-gnu",
        "--filter-platform",
        "aarch64-unknown-linux-gnu",
    ])
}

fn packages(arguments: &[&str]) -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("cargo runs, since it runs this test");
    assert!(
        output.status.success(),
        "cargo metadata failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut metadata: Value =
        serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    match metadata["packages"].take() {
        Value::Array(packages) => packages,
        other => panic!("cargo metadata has a list of packages, not {other}"),
    }
}
