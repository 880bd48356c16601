//! A running node whose configuration is loaded and committed as an operator does it: by calls to the
//! manager, which asks and tells the stack of XIA.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use weft_manager::interface::{Commit, Compare, Edit, Load, Lock, Processes, Revert};
use weft_xrl::Request;

use super::super::program::Program;
use super::milliseconds;
use crate::call::{Client, Reach};

/// Whatever has not happened by then will not.
const PATIENCE: Duration = Duration::from_secs(60);
const GLANCE: Duration = Duration::from_millis(10);
const MANAGER: &str = "manager";

/// The node, which ends with this.
pub(super) struct Running {
    client: Client,
    // Ends before its directory goes, which is the owner's.
    _node: Program,
    text: String,
    /// Whether the line that comes and goes is there.
    changed: bool,
}

impl Running {
    /// Starts a node without interfaces, whose configuration will have so many lines.
    pub(super) fn start(directory: &Path, lines: usize) -> Result<Self, String> {
        let file = directory.join("node.conf");
        let empty = "version 1;\nnode bench;\nxia {\n    principal hid;\n}\n";
        fs::write(&file, empty).map_err(|error| super::super::cannot_write(&file, &error))?;
        let run = directory.join("run");
        let node = start(&file, &run, &directory.join("log"))?;
        let client = Client::new(&Reach::directory(&run))?;
        let running = Self { client, _node: node, text: text(lines), changed: false };
        let begin = Instant::now();
        while !running.is_ready() {
            if begin.elapsed() > PATIENCE {
                let log = fs::read_to_string(directory.join("log")).unwrap_or_default();
                return Err(format!("the node does not start:\n{}", log.trim_end()));
            }
            thread::sleep(GLANCE);
        }
        running.ask(Lock { steal: None })?;
        running.load()?;
        running.commit()?;
        running.ask(Lock { steal: None })?;
        Ok(running)
    }

    fn is_ready(&self) -> bool {
        let processes = self.client.call(MANAGER, Processes, Duration::from_secs(1));
        processes.is_ok_and(|reply| {
            reply.processes.iter().any(|one| one.instance == "xia" && one.state == "running")
        })
    }

    /// What is loaded.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Makes the text the candidate, from the call with the text to the answer; in milliseconds.
    /// The line that comes and goes is not in it.
    pub(super) fn load(&self) -> Result<f64, String> {
        let begin = Instant::now();
        self.ask(Load {
            source: "file".to_owned(),
            text: self.text.clone(),
            mode: "override".to_owned(),
        })?;
        Ok(milliseconds(begin))
    }

    /// Throws away what was loaded and not committed.
    pub(super) fn revert(&self) -> Result<(), String> {
        self.ask(Revert { revision: None }).map(drop)
    }

    /// Adds a line or takes it away again, looks at the difference and commits; in milliseconds.
    pub(super) fn change(&mut self) -> Result<f64, String> {
        let verb = if self.changed { "delete" } else { "set" };
        let command = format!("{verb} xia principal ad route ad-{:040x} via hid-{:040x}", 0, 1);
        let begin = Instant::now();
        self.ask(Edit { command })?;
        let difference = self.ask(Compare)?.text;
        self.commit()?;
        let time = milliseconds(begin);
        self.ask(Lock { steal: None })?;
        self.changed = !self.changed;
        match difference.starts_with("[edit ") {
            true => Ok(time),
            false => Err("the change was not seen".to_owned()),
        }
    }

    fn commit(&self) -> Result<(), String> {
        self.ask(Commit { comment: String::new(), confirm_within: None }).map(drop)
    }

    fn ask<R: Request>(&self, request: R) -> Result<R::Reply, String> {
        self.client.call(MANAGER, request, PATIENCE).map_err(|error| error.to_string())
    }
}

fn start(file: &Path, run: &Path, log: &PathBuf) -> Result<Program, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let errors = fs::File::create(log).map_err(|error| super::super::cannot_write(log, &error))?;
    let mut command = Command::new(program);
    command.arg("run").arg(file).arg("--run-dir").arg(run);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
    let child = command.spawn();
    child.map(Program).map_err(|error| format!("this program cannot be started: {error}"))
}

/// A file of so many lines, and a few more.
fn text(lines: usize) -> String {
    let mut text =
        String::from("version 1;\nnode bench;\nxia {\n    principal hid;\n    principal ad {\n");
    for index in 0..lines {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "        route ad-{} via hid-{:040x};",
            identifier(index),
            1 + index % 16
        );
    }
    text.push_str("    }\n}\n");
    text
}

fn identifier(index: usize) -> String {
    format!("{:040x}", (index + 1) * 0x9e37_79b9)
}
