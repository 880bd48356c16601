//! XRLs from Python: the package in `bindings/python` and the example `component-python`, against this program.

use std::path::{Path, PathBuf};
use std::process::Command;

use weft_port::testing::lacks;

/// A path of the repository.
fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

#[test]
fn xrls_from_python() {
    let python = |arguments: &[&str]| {
        let mut command = Command::new("python3");
        command.args(arguments).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    };
    let new_enough = "import sys; sys.exit(sys.version_info < (3, 11))";
    if !python(&["-c", new_enough]).status().is_ok_and(|status| status.success()) {
        return lacks("python3 of version 3.11 or newer");
    }
    let output = python(&["-m", "unittest", "discover", "--start-directory", "tests/xrl"])
        .current_dir(here("bindings/python"))
        .env("PYTHONPATH", here("bindings/python"))
        .env("WEFT", env!("CARGO_BIN_EXE_weft"))
        .env_remove("WEFT_RUN_DIR")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("\nOK") && !said.contains("skipped"), "{said}");
}
