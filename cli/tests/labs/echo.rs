//! The echo pair of the examples, in C and in Python, on three nodes: to one server, and to both through a
//! zFilter.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use weft_c_border::testing;
use weft_port::testing::lacks;

use crate::support::{assert_gone, is_root, succeeded, text, weft};

/// A path of the repository.
fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path).canonicalize().unwrap()
}

/// Of what a lab leaves only its name is known.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs the lab with programs that are started like this.
fn run(directory: &Path, server: &str, client: &str) {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let lab = here("examples/echo/echo.lab");
    let (server, client) = (format!("SERVER={server}"), format!("CLIENT={client}"));
    let lab = lab.to_str().unwrap();
    let arguments = ["lab", "run", lab, "--output", "out", "--set", &server, "--set", &client];
    let output = weft(directory, &arguments);
    assert_gone("echo", directory);
    assert!(output.status.success(), "{}", text(&output.stderr));
    succeeded(&output);
}

/// Compiles one of the pair.
fn compile(directory: &Path, name: &str) -> String {
    let source = here(&format!("examples/echo/{name}.c"));
    let program =
        testing::compile(directory, &here("xia/c"), &source, &testing::shared("libweftxia.so"));
    program.to_str().unwrap().to_owned()
}

#[test]
fn programs_in_c_exchange_datagrams_across_a_network() {
    let directory = tempfile::tempdir().unwrap();
    let [server, client] = ["echo_server", "echo_client"].map(|it| compile(directory.path(), it));
    if is_root() {
        run(directory.path(), &server, &client);
    }
}

#[test]
fn programs_in_python_exchange_datagrams_across_a_network() {
    let new_enough = "import sys; sys.exit(sys.version_info < (3, 11))";
    let python = Command::new("python3").args(["-c", new_enough]).status();
    if !python.is_ok_and(|status| status.success()) {
        return lacks("python3 of version 3.11 or newer");
    }
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let program = |name: &str| {
        format!(
            "env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH={} WEFT_XIA_LIBRARY={} python3 {}",
            here("bindings/python").display(),
            testing::library("libweftxia.so").display(),
            here(&format!("examples/echo/{name}.py")).display()
        )
    };
    run(directory.path(), &program("echo_server"), &program("echo_client"));
}
