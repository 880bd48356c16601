//! Running the program in a directory of its own.

use std::path::Path;
use std::process::{Command, Output};

const WEFT: &str = env!("CARGO_BIN_EXE_weft");

pub(crate) fn weft(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(WEFT).args(arguments).current_dir(directory).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Fails with everything that was said, unless the command succeeded.
pub(crate) fn succeeded(output: &Output) -> String {
    let text = stdout(output);
    assert!(
        output.status.success(),
        "{}\n{text}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    text
}
