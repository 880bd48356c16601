//! Where nodes run, and which do.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::check::{Check, Subject};
use crate::node::{base_directory, running_nodes};

const RUN_DIRECTORY: Subject = Subject {
    name: "run-directory",
    purpose: "the sockets and files of running nodes and labs",
    required: true,
};
const RUNNING: Subject = Subject {
    name: "running-nodes",
    purpose: "commands such as `weft xia ping`, which talk to a node",
    required: false,
};

pub(super) fn checks() -> Vec<Check> {
    let base = base_directory();
    vec![run_directory(&base), running(running_nodes())]
}

/// Whether nodes can make their directories in `base`, which nothing is changed to find out.
fn run_directory(base: &Path) -> Check {
    let there = nearest(base);
    let shown = base.display();
    if !there.is_dir() {
        let found = format!("{shown} cannot be made: {} is no directory", there.display());
        return RUN_DIRECTORY.missing(found, "remove that file");
    }
    match access(&there, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) if there == base => RUN_DIRECTORY.ok(format!("{shown}, writable")),
        Ok(()) => RUN_DIRECTORY.ok(format!("{shown}, can be made")),
        Err(errno) => RUN_DIRECTORY.missing(
            format!("{shown} cannot be written: {errno} at {}", there.display()),
            match errno {
                Errno::ROFS => "mount that file system writable, or choose with XDG_RUNTIME_DIR",
                _ => "set XDG_RUNTIME_DIR to a directory of your own, or run as its owner",
            },
        ),
    }
}

/// The longest beginning of `path` that exists.
fn nearest(path: &Path) -> PathBuf {
    let there = path.ancestors().find(|ancestor| ancestor.exists());
    there.unwrap_or(Path::new("/")).to_owned()
}

/// `names` are the running nodes.
fn running(names: Result<Vec<String>, String>) -> Check {
    match names {
        Ok(names) if names.is_empty() => RUNNING.ok("none"),
        Ok(names) => RUNNING.ok(names.join(", ")),
        Err(error) => RUNNING.degraded(error, "run as the user whose nodes they are"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;

    #[test]
    fn a_directory_that_can_be_made_is_well_and_not_made() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().join("run/weft");
        let check = run_directory(&base);
        assert_eq!(check.found, format!("{}, can be made", base.display()));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        std::fs::create_dir_all(&base).unwrap();
        assert_eq!(run_directory(&base).found, format!("{}, writable", base.display()));
    }

    #[test]
    fn a_file_in_the_way_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("run");
        std::fs::write(&file, "").unwrap();
        let check = run_directory(&file.join("weft"));
        assert_eq!(check.state, State::Missing);
        assert!(check.found.contains(&file.display().to_string()), "{check:?}");
    }

    #[test]
    fn running_nodes_are_named() {
        let names = |names: &[&str]| running(Ok(names.iter().map(|&n| n.to_owned()).collect()));
        assert_eq!(names(&[]).found, "none");
        assert_eq!(names(&["r1", "r2"]).found, "r1, r2");
        assert_eq!(running(Err("cannot read".to_owned())).state, State::Degraded);
    }
}
