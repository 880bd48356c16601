//! Starting the program, with less power if need be, and listening to it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

/// The program with `arguments`, not led astray by settings of whoever runs the tests.
pub(crate) fn weft<A: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.args(arguments).env_remove("WEFT_RUN_DIR").stdin(Stdio::null());
    command
}

/// What a finished program left.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Done {
    /// The program failed with status 1, and its error contains all of `parts`.
    pub(crate) fn expect_failure(&self, parts: &[&str]) {
        assert_eq!(self.status, Some(1), "{self:?}");
        assert!(self.stderr.starts_with("error: "), "{self:?}");
        for part in parts {
            assert!(self.stderr.contains(part), "`{part}` is missing: {}", self.stderr);
        }
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Waits for the program's end.
pub(crate) fn finish(mut command: Command) -> Done {
    command.output().unwrap().into()
}

/// As [`finish`], for a program that lacks a capability even if root runs the tests.
pub(crate) fn finish_without(capability: CapabilitySet, command: Command) -> Done {
    let work = move || {
        if is_root() {
            remove_capability_from_bounding_set(capability).unwrap();
        }
        finish(command)
    };
    // What a thread gives up, its children do not have, and other threads keep.
    thread::spawn(work).join().unwrap()
}

/// Whether the tests run as root.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A program that goes on running, ended when dropped.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    /// Starts it.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        thread::spawn(move || {
            stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    /// Waits for a line on standard error that contains `text`; a test that hangs fails after a
    /// minute.
    pub(crate) fn wait_for(&self, text: &str) -> String {
        let mut before = Vec::new();
        loop {
            match self.lines.recv_timeout(Duration::from_secs(60)) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => before.push(line),
                Err(error) => panic!("no line with `{text}` ({error}); there were: {before:?}"),
            }
        }
    }

    /// What it still says until it has ended.
    pub(crate) fn rest(&self) -> Vec<String> {
        let next = || self.lines.recv_timeout(Duration::from_secs(60));
        std::iter::from_fn(|| match next() {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("it does not end"),
        })
        .collect()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes a node file into `directory`: a node called `name` with `statements` in its `xia` block.
pub(crate) fn node_file(directory: &Path, name: &str, statements: &str) -> PathBuf {
    let path = directory.join(format!("{name}.conf"));
    let text = format!("version 1;\nnode {name};\nxia {{\n    {statements}\n}}\n");
    std::fs::write(&path, text).unwrap();
    path
}

/// A directory that the processes of a node can pass, which have users of their own.
pub(crate) fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    directory
}
