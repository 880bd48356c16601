//! Routers of others on a lab's nodes: BIRD, FRR, GoBGP and ExaBGP.
//!
//! For each such node the lab starts this program once more, as a process that starts the router, waits until it
//! answers, says so, and ends with it. Beside the router's sockets it leaves scripts with the names of the programs
//! that talk to it, which find these sockets; commands on the node have them in front of their path.
//!
//! Reference: bird(8), birdc(8); zebra(8), bgpd(8), vtysh(1); gobgpd's and exabgp's `--help`.

mod kinds;
mod process;

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::file::{Router, RouterKind};
use crate::netns::Watch;
use process::Processes;

/// What the process writes when its router can be used.
pub(crate) const READY: &str = "router is ready";
/// Where the programs are that talk to the router, in the run directory of its node.
pub(crate) const TOOLS: &str = "bin";
/// There while the router runs, and after it was killed.
const MARK: &str = "runs";

/// What the process has to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Config {
    kind: RouterKind,
    /// What the router reads.
    config: PathBuf,
    run_dir: PathBuf,
    /// The processes of FRR.
    daemons: Vec<String>,
}

impl Config {
    /// A router that reads `config` and has its sockets below `run_dir`.
    pub(crate) fn new(router: &Router, config: PathBuf, run_dir: PathBuf) -> Self {
        let daemons = router.daemons.iter().map(|&name| name.to_owned()).collect();
        Self { kind: router.kind, config, run_dir, daemons }
    }

    /// Writes it for [`run_router`].
    pub(crate) fn write(&self, path: &Path) -> Result<(), LabError> {
        let text = serde_json::to_vec_pretty(self).map_err(LabError::disk("write", path))?;
        fs::write(path, text).map_err(LabError::disk("write", path))
    }

    fn read(path: &Path) -> Result<Self, LabError> {
        let text = fs::read(path).map_err(LabError::disk("read", path))?;
        serde_json::from_slice(&text).map_err(LabError::disk("read", path))
    }

    fn mark(&self) -> PathBuf {
        self.run_dir.join(MARK)
    }
}

/// Starts the router that the file `config` describes, and waits until it or this process is ended. Returns its exit
/// status; 0 if this process was asked to end.
///
/// A program that embeds the lab calls this for the arguments of
/// [`Host::router_arguments`](crate::Host::router_arguments) followed by the file.
///
/// # Errors
/// The router is not installed, cannot be started, or refuses its configuration in a way that it does not say itself.
pub fn run_router(config: &Path) -> Result<u8, LabError> {
    let config = Config::read(config)?;
    // From here on a signal ends the router before it ends this process.
    let mut watch = Watch::signals()?;
    let mark = config.mark();
    let was_killed = mark.exists();
    File::create(&mark).map_err(LabError::disk("write", &mark))?;
    let mut processes = Processes::default();
    let started = kinds::start(&config, was_killed, &mut processes, &mut watch);
    let ended = match started {
        Ok(None) => {
            println!("{READY}");
            processes.wait(&mut watch)
        }
        Ok(Some(status)) => Ok(status),
        Err(error) => Err(error),
    };
    processes.end();
    match fs::remove_file(&mark) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(LabError::disk("remove", mark)(error));
        }
        _ => {}
    }
    match ended {
        Err(LabError::Interrupted(_)) => Ok(0),
        ended => ended,
    }
}
