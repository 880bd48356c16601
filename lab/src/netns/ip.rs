//! The programs `ip` and `tc` of iproute2, fed with many commands at once.

use std::io::{ErrorKind, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use super::namespace::Namespace;
use crate::LabError;

/// Commands for one run of `ip`, in order.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    lines: Vec<String>,
}

impl Batch {
    /// Adds a command; its words must not contain spaces.
    pub(crate) fn add(&mut self, words: &[&str]) {
        self.lines.push(words.join(" "));
    }

    /// Runs all commands, in a namespace or in that of this process, and stops at the first that
    /// fails.
    pub(crate) fn run(&self, namespace: Option<&Namespace>) -> Result<(), LabError> {
        self.run_with(namespace, &[])
    }

    /// Runs all commands and goes on after those that fail.
    pub(crate) fn run_all(&self, namespace: Option<&Namespace>) -> Result<(), LabError> {
        self.run_with(namespace, &["-force"])
    }

    fn run_with(&self, namespace: Option<&Namespace>, options: &[&str]) -> Result<(), LabError> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let mut command = iproute2("ip", namespace);
        command.args(options).args(["-batch", "-"]);
        let output = feed(command, &self.lines.join("\n"))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(LabError::System {
            action: format!("set the network up with `{}`", self.failed(&said)),
            reason: said.lines().next().unwrap_or("ip gives no reason").to_owned(),
        })
    }

    /// The line that the message of `ip -batch` names (`Command failed -:3`).
    fn failed(&self, said: &str) -> String {
        let number = said.lines().find_map(|line| line.strip_prefix("Command failed -:"));
        let number = number.and_then(|number| number.trim().parse::<usize>().ok());
        let line = number.and_then(|number| self.lines.get(number.checked_sub(1)?));
        format!("ip {}", line.map_or("-batch", String::as_str))
    }
}

/// Runs one `tc` command in a namespace.
pub(crate) fn tc(namespace: &Namespace, words: &[&str]) -> Result<(), LabError> {
    let mut command = iproute2("tc", Some(namespace));
    command.args(words);
    let output = feed(command, "")?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(LabError::System {
        action: format!("set a rate with `tc {}`", words.join(" ")),
        reason: said.lines().next().unwrap_or("tc gives no reason").to_owned(),
    })
}

fn iproute2(program: &'static str, namespace: Option<&Namespace>) -> Command {
    let mut command = Command::new(program);
    if let Some(namespace) = namespace {
        command.args(["-n", namespace.name()]);
    }
    command
}

fn feed(mut command: Command, input: &str) -> Result<Output, LabError> {
    let program = if command.get_program() == "tc" { "tc" } else { "ip" };
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    // A Ctrl-C on the terminal is for the lab, which needs this program to clean up.
    command.process_group(0);
    let mut child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => LabError::Missing { program, package: "iproute2" },
        _ => LabError::System { action: format!("run {program}"), reason: error.to_string() },
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that stops reading says why on standard error.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output().map_err(LabError::system(format!("wait for {program}")))
}
