//! `weft component program` and `application`: a program of others, in the sandbox of a component.
//!
//! The program takes over this process with all that the launcher gave it: the sandbox, which nothing
//! can leave, the listening socket and the secret, whose descriptors the variable `WEFT_INHERITED` names.
//!
//! Reference: execve(2), environ(7).

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use super::component;
use crate::output::Outcome;

/// Where a program finds others, such as the interpreter in its first line.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Executes a program; returns only if that fails.
pub(super) fn run(instance: &str, command: &[OsString]) -> Outcome {
    let (path, arguments) = command
        .split_first()
        .ok_or_else(|| format!("{instance}: it is not said which program to execute"))?;
    let sandbox = component::sandbox()?;
    component::enter(&sandbox)?;
    // Its own folder, which lasts as long as the node runs.
    let own = sandbox.write.first().map_or(Path::new("/"), |folder| folder.as_path());
    let mut command = Command::new(path);
    command.args(arguments).env("PATH", PATH).env("LANG", "C.UTF-8").env("HOME", own);
    let error = command.exec();
    Err(format!(
        "{instance}: cannot execute {}: {error}; its own user must be able to read and execute it",
        Path::new(path).display()
    ))
}
