//! The example protocol in Rust and in Python, programs that misbehave beside BGP, and RIP on another machine than its
//! FEA, as the labs in `examples/hearsay` and `examples/rip` say.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use weft_port::testing::lacks;

use crate::support::{assert_gone, is_root, run, succeeded, text, weft};

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// Copies what programs in Python need to where their users may read it, as it lies in the repository.
fn publish(to: &Path) {
    for folder in
        ["examples/hearsay", "bindings/python/weft", "bindings/python/weft/xrl", "interfaces"]
    {
        fs::create_dir_all(to.join(folder)).unwrap();
        for entry in fs::read_dir(here(folder)).unwrap().map(Result::unwrap) {
            if fs::metadata(entry.path()).unwrap().is_file() {
                // What a link leads to is copied.
                fs::copy(entry.path(), to.join(folder).join(entry.file_name())).unwrap();
            }
        }
    }
    let mut folders = vec![to.to_owned()];
    while let Some(folder) = folders.pop() {
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        folders.extend(entries.filter(|path| path.is_dir()));
    }
}

fn has_python() -> bool {
    let new_enough = "import sys; sys.exit(sys.version_info < (3, 11))";
    let has = run("python3", Path::new("/"), &["-c", new_enough]).status.success();
    if !has {
        lacks("python3 of version 3.11 or newer");
    }
    has
}

/// Runs a lab of `examples/hearsay`.
fn hearsay(lab: &str) {
    if !is_root() || !has_python() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    publish(directory.path());
    let folder = directory.path().join("examples/hearsay");
    let (file, set) =
        (folder.join(format!("{lab}.lab")), format!("DIRECTORY={}", folder.display()));
    let arguments = ["lab", "run", file.to_str().unwrap(), "--output", "out", "--set", &set];
    let output = weft(directory.path(), &arguments);
    // The steps that were done are on standard error.
    assert!(output.status.success(), "{}", text(&output.stderr));
    succeeded(&output);
    assert_gone(lab, directory.path());
}

#[test]
fn the_same_protocol_in_rust_and_in_python_exchanges_routes() {
    hearsay("hearsay");
}

#[test]
fn programs_that_misbehave_do_not_disturb_bgp() {
    hearsay("mischief");
}

#[test]
fn rip_runs_on_another_machine_than_its_fea() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let folder = here("examples/rip");
    let (lab, set) = (folder.join("away.lab"), format!("DIRECTORY={}", folder.display()));
    let arguments = ["lab", "run", lab.to_str().unwrap(), "--output", "out", "--set", &set];
    let output = weft(directory.path(), &arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    succeeded(&output);
    assert_gone("rip-away", directory.path());
}
