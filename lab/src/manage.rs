//! Labs that stay until they are taken down, and what can be done with labs that there are.
//!
//! They are found by the name of their lab file, with the id behind it where that is not enough;
//! `None` means the only lab that there is.

use std::convert::Infallible;
use std::ffi::OsString;
use std::num::NonZeroU64;
use std::path::Path;

use crate::capture::Capture;
use crate::file::Lab;
use crate::host::Host;
use crate::netns::{self, LabStatus, Watch};
use crate::outcome::Observer;
use crate::plan::Plan;
use crate::run::{EngineKind, Options};
use crate::{LabError, trace};

/// Builds a lab in network namespaces, starts its nodes, and leaves it there. Returns the name by
/// which it is found. No scenario is run.
///
/// # Errors
/// Mistakes in the lab, and whatever keeps it from being built; nothing is left then.
pub fn up(
    lab: &Lab,
    options: &Options,
    host: &dyn Host,
    observer: &mut dyn Observer,
) -> Result<String, LabError> {
    if options.engine == EngineKind::Sim {
        return Err(LabError::Usage(
            "a simulated lab lives only as long as its scenario: use `lab run`".into(),
        ));
    }
    netns::up(&Plan::new(lab, host)?, options, observer)
}

/// Takes a lab down and returns its name.
///
/// # Errors
/// There is no such lab, it belongs to a process that runs, or something of it cannot be removed.
pub fn down(lab: Option<&str>) -> Result<String, LabError> {
    netns::down(lab)
}

/// All labs that there are, sorted by name.
///
/// # Errors
/// This user may not see them.
pub fn labs() -> Result<Vec<LabStatus>, LabError> {
    netns::labs()
}

/// Replaces this process by a command on a node of a lab; the word `weft` at its beginning stands for
/// the host program.
///
/// # Errors
/// There is no such lab or node, or the command cannot be started.
pub fn exec(
    lab: Option<&str>,
    node: &str,
    words: &[OsString],
    host: &dyn Host,
) -> Result<Infallible, LabError> {
    netns::exec(lab, node, words, host.program())
}

/// Writes what passes the interfaces of a lab into a pcapng file, until `SIGINT`, `SIGTERM` or
/// `SIGHUP` comes; returns the number of packets. `interfaces` are of the form `NODE` or
/// `NODE:INTERFACE`; none of them means all. `ready` is called when no packet is missed any more.
///
/// # Errors
/// There is no such lab or interface, or the file cannot be written.
pub fn capture(
    lab: Option<&str>,
    interfaces: &[String],
    path: &Path,
    ready: impl FnOnce(),
) -> Result<u64, LabError> {
    let targets = netns::capture_targets(lab, interfaces)?;
    let mut watch = Watch::signals()?;
    let capture = Capture::start(path, &targets)?;
    ready();
    loop {
        match watch.wait(&[], None) {
            Ok(()) => {}
            Err(LabError::Interrupted(_)) => return capture.finish(),
            Err(error) => return Err(error),
        }
    }
}

/// Lets the stacks of all weft nodes of a lab record what they do with one packet in `one_in`.
///
/// # Errors
/// There is no such lab, or a node does not answer.
pub fn start_trace(lab: Option<&str>, one_in: NonZeroU64, host: &dyn Host) -> Result<(), LabError> {
    netns::ask_nodes(lab, &host.trace_arguments(one_in), host.program()).map(drop)
}

/// What the stacks of all weft nodes of a lab have recorded.
///
/// # Errors
/// There is no such lab, or a node does not answer.
pub fn visits(lab: Option<&str>, host: &dyn Host) -> Result<Vec<trace::Visit>, LabError> {
    let answers = netns::ask_nodes(lab, &host.visits_arguments(), host.program())?;
    let mut visits = Vec::new();
    for (node, json) in &answers {
        visits.append(&mut trace::read_visits(node, json)?);
    }
    Ok(visits)
}
