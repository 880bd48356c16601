//! The peer: the same work over gRPC, done by the program `weft-bench-grpc`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const NAME: &str = "weft-bench-grpc";

/// Where the peer is: beside this program, or on the path.
pub(super) fn find() -> Result<PathBuf, String> {
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(Path::to_owned);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = beside.into_iter().chain(std::env::split_paths(&path));
    places.find_map(|place| Some(place.join(NAME)).filter(|file| file.is_file())).ok_or_else(|| {
        format!(
            "the peer `{NAME}` is neither beside weft nor on the PATH; build it in weft's sources \
             with `cargo build --release -p {NAME}`, or use `make bench`"
        )
    })
}

/// Has the peer measure something; its arguments say what.
pub(super) fn measure(program: &Path, arguments: &[String]) -> Result<f64, String> {
    let name = program.display();
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("{name} cannot be run: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{name} {} failed: {}", arguments.join(" "), said.trim()));
    }
    let result: Option<Value> = serde_json::from_slice(&output.stdout).ok();
    result
        .and_then(|result| result["per_second"].as_f64())
        .ok_or_else(|| format!("{name} said something else than its result"))
}
