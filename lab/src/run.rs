//! Running a lab, in the engine of choice.

use std::path::{Path, PathBuf};

use weft_config::{Errors, Keyword};

use crate::file::Lab;
use crate::host::Host;
use crate::outcome::{Observer, Outcome};
use crate::plan::Plan;
use crate::{LabError, netns, sim};

/// In what a lab is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EngineKind {
    /// Network namespaces of this machine: real packets in real time.
    #[default]
    Netns,
    /// The simulator: modelled links in virtual time.
    Sim,
}

impl Keyword for EngineKind {
    const WHAT: &'static str = "an engine";
    const ALL: &'static [(&'static str, Self)] = &[("netns", Self::Netns), ("sim", Self::Sim)];
}

/// How to run a lab.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// In what.
    pub engine: EngineKind,
    /// Which scenario; `None` for the one called `default`, or the only one.
    pub scenario: Option<String>,
    /// Where the commands work and leave their files; `None` for `lab-out/LAB`. A directory that an
    /// earlier lab has made is emptied.
    pub output: Option<PathBuf>,
    /// Where to write a capture of all packets; `None` for none.
    pub capture: Option<PathBuf>,
}

impl Options {
    /// The output directory for this lab.
    pub(crate) fn output_of(&self, lab: &Lab) -> PathBuf {
        self.output.clone().unwrap_or_else(|| Path::new("lab-out").join(lab.name()))
    }
}

/// Checks what only the host program can judge: aliases and the configurations of nodes.
///
/// # Errors
/// Every mistake that was found, with its place.
pub fn check(lab: &Lab, host: &dyn Host) -> Result<(), Errors> {
    Plan::new(lab, host).map(drop)
}

/// Builds a lab, runs one of its scenarios, and takes the lab down, whatever happens.
///
/// While it runs, `SIGINT`, `SIGTERM` and `SIGHUP` end the scenario instead of the program.
///
/// # Errors
/// Whatever keeps the scenario from beginning. From then on failures are part of the outcome.
pub fn run(
    lab: &Lab,
    options: &Options,
    host: &dyn Host,
    observer: &mut dyn Observer,
) -> Result<Outcome, LabError> {
    let plan = Plan::new(lab, host)?;
    let scenario = plan.scenario(options.scenario.as_deref()).map_err(LabError::Usage)?;
    match options.engine {
        EngineKind::Netns => netns::run(&plan, scenario, options, observer),
        EngineKind::Sim => sim::run(&plan, scenario, options, observer),
    }
}
