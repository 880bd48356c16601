//! The network of the benchmark: a lab with a host on either side of a router, and a ping across.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use weft_manager::interface::Processes;
use weft_xrl::fea::OpenPort;
use weft_xrl::{Request, XrlError};

use super::super::directory::Directory;
use super::super::killed::Process;
use super::super::pings::Pings;
use super::super::program::Program;
use crate::call::{Client, Reach};

const LAB: &str = include_str!("line.lab");
/// Seconds between pings.
const INTERVAL: &str = "0.01";
/// How often one looks whether something has happened.
const GLANCE: Duration = Duration::from_millis(1);
/// Whatever has not happened by then will not.
const PATIENCE: Duration = Duration::from_secs(60);

/// The lab, which ends with this.
pub(super) struct Line {
    // In the order in which they end.
    pings: Pings,
    /// `weft lab run`.
    _lab: Program,
    _directory: Directory,
    /// The router's run directory, and its launcher.
    router: PathBuf,
    launcher: u32,
}

impl Line {
    /// Builds the lab and waits until pings get across.
    pub(super) fn start() -> Result<Self, String> {
        let directory = Directory::new("restart")?;
        let file = directory.0.join("line.lab");
        fs::write(&file, LAB).map_err(|error| super::super::cannot_write(&file, &error))?;
        let output = directory.0.join("output");
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(&program);
        command.args(["lab", "run"]).arg(&file).arg("--output").arg(&output);
        let log = directory.0.join("log");
        let errors =
            fs::File::create(&log).map_err(|error| super::super::cannot_write(&log, &error))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let mut lab = Program(start(&mut command)?);
        wait_until("the lab", || output.join("ready").exists() || has_ended(&mut lab.0))?;
        let text = |name| fs::read_to_string(output.join(name));
        let (Ok(router), Ok(host)) = (text("router"), text("ready")) else {
            let said = fs::read_to_string(&log).unwrap_or_default();
            return Err(format!("the lab does not start:\n{}", said.trim_end()));
        };
        let (run_directory, to) = host.trim().split_once(' ').ok_or("the lab names no address")?;
        let pings = Pings::start(to, INTERVAL, run_directory)?;
        Ok(Self {
            launcher: launcher(&output)?,
            router: PathBuf::from(router.trim()),
            pings,
            _lab: lab,
            _directory: directory,
        })
    }

    /// A process of the router.
    pub(super) fn process(&self, class: &str) -> Result<Process, String> {
        self.find(class).ok_or_else(|| format!("the router has no process of the class {class}"))
    }

    fn find(&self, class: &str) -> Option<Process> {
        Process::find(self.launcher, class)
    }

    /// Waits until another process of the class executes than `before`; when that was seen.
    pub(super) fn wait_until_runs(&self, class: &str, before: Process) -> Result<Instant, String> {
        wait_until(class, || self.find(class).is_some_and(|now| now != before))
    }

    /// Waits until the manager says which processes there are.
    pub(super) fn wait_until_lists(&self) -> Result<Instant, String> {
        let client = Client::new(&Reach::directory(&self.router))?;
        wait_until("the manager", || call(&client, "manager", Processes).is_ok())
    }

    /// Waits until somebody who is new finds and calls another component.
    pub(super) fn wait_until_resolves(&self) -> Result<Instant, String> {
        let status = || {
            let client = Client::new(&Reach::directory(&self.router))?;
            call(&client, "fea", weft_xrl::configurable::Status).map_err(|error| error.to_string())
        };
        wait_until("the Finder", || status().is_ok())
    }

    /// Waits until the FEA opens a port.
    pub(super) fn wait_until_opens(&self) -> Result<Instant, String> {
        let client = Client::new(&Reach::directory(&self.router))?;
        let port = || OpenPort { spec: "udp:127.0.0.1:0".to_owned() };
        wait_until("the FEA", || call(&client, "fea", port()).is_ok())
    }

    /// Waits for the first answer to a ping after `time`; when it came.
    pub(super) fn wait_until_answered(&self, time: Instant) -> Result<Instant, String> {
        self.pings.wait_for(time)
    }

    /// Waits until `end`, and says how long no ping was answered between `begin` and the first answer after
    /// `end`.
    pub(super) fn longest_pause(&self, begin: Instant, end: Instant) -> Result<Duration, String> {
        self.pings.longest_pause(begin, end)
    }
}

fn start(command: &mut Command) -> Result<Child, String> {
    command.spawn().map_err(|error| format!("this program cannot be started from itself: {error}"))
}

fn has_ended(process: &mut Child) -> bool {
    process.try_wait().is_ok_and(|status| status.is_some())
}

/// The launcher of the router of the lab that works in a directory.
fn launcher(output: &Path) -> Result<u32, String> {
    let labs = weft_lab::labs().map_err(|error| error.to_string())?;
    let output = output.canonicalize().map_err(|error| error.to_string())?;
    let lab = labs.iter().find(|lab| lab.output == output);
    let router = lab.and_then(|lab| lab.nodes.iter().find(|node| node.name == "r"));
    let process = router.and_then(|router| router.processes.first());
    process.map(|process| process.pid).ok_or_else(|| "the lab has no router".to_owned())
}

fn call<R: Request>(client: &Client, target: &str, request: R) -> Result<R::Reply, XrlError> {
    client.call(target, request, Duration::from_secs(1))
}

/// Waits until something has happened; when that was seen.
fn wait_until(what: &str, mut happened: impl FnMut() -> bool) -> Result<Instant, String> {
    let until = Instant::now() + PATIENCE;
    while !happened() {
        if Instant::now() > until {
            return Err(format!("{what} is not there after a minute"));
        }
        thread::sleep(GLANCE);
    }
    Ok(Instant::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lab_is_a_lab() {
        let lab = weft_lab::Lab::parse("line.lab", LAB, &weft_lab::Variables::new()).unwrap();
        weft_lab::check(&lab, &crate::lab::WeftHost::new().unwrap()).unwrap();
    }
}
