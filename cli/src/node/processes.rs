//! `weft run`: a node as a set of processes, each with its own user and rights.
//!
//! This process becomes the launcher; it starts the manager, and for the manager all others, each as
//! `weft component CLASS`. What they need to know of the node is in the environment that the launcher
//! gives them.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use weft_keys::PrivateKey;
use weft_launcher::protocol::{ListenerKind, ListenerSpec};
use weft_launcher::{Config, Name, Secret};
use weft_runtime::Level;

/// The node's name, for its processes.
pub(super) const NODE: &str = "WEFT_NODE";
/// The user that may do everything.
pub(super) const OPERATOR: &str = "WEFT_OPERATOR";
/// How much is reported.
pub(super) const LOG: &str = "WEFT_LOG";
/// The hash of the node's key.
pub(super) const IDENTITY: &str = "WEFT_IDENTITY";

/// The class and the instance of the manager, and its directory in the run directory.
pub(crate) const MANAGER: &str = "manager";
/// Its directory of revisions, in its own.
pub(super) const HISTORY: &str = "history";
/// The configuration that the node was started with, in the manager's directory.
const BOOT: &str = "boot.conf";

/// What a node is started with.
pub(super) struct Start<'a> {
    pub(super) name: &'a str,
    pub(super) directory: &'a Path,
    /// The node file: its name for errors, and its text.
    pub(super) source: &'a str,
    pub(super) text: &'a str,
    pub(super) identity: Option<PrivateKey>,
    pub(super) verbose: bool,
}

/// Runs a node until it is told to stop.
///
/// # Errors
/// The node cannot be set up, or its manager does not stay alive.
pub(super) fn run(start: &Start<'_>) -> Result<u8, String> {
    let name: Name = start.name.parse()?;
    let directory = std::path::absolute(start.directory)
        .map_err(|error| format!("the run directory: {error}"))?;
    check_way(&directory)?;
    let own = directory.join(MANAGER);
    let boot = own.join(BOOT);
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&own)
        .map_err(|error| format!("cannot make {}: {error}", own.display()))?;
    fs::write(&boot, start.text)
        .map_err(|error| format!("cannot write {}: {error}", boot.display()))?;
    let binary = std::env::current_exe()
        .map_err(|error| format!("this program's own file cannot be found: {error}"))?;
    let listeners = manager_listeners(&directory)?;
    let mut config = Config::new(name, directory, binary);
    config.manager_listeners = listeners;
    config.manager_directories = vec![own];
    config.manager_arguments =
        vec!["--source".into(), start.source.into(), "--file".into(), boot.into()];
    config.environment = environment(start);
    // The stack proves who the node is; no other process can.
    let stack = weft_xia_component::STATEMENT.to_owned();
    config.keys.extend(start.identity.as_ref().map(|key| (stack, Secret::new(*key.seed()))));
    config.level = if start.verbose { Level::Debug } else { Level::Info };
    weft_launcher::run(config).map_err(|error| error.to_string())?;
    Ok(0)
}

/// Where the manager takes calls.
pub(crate) fn manager_listeners(directory: &Path) -> Result<Vec<ListenerSpec>, String> {
    let path = calls_socket(directory, MANAGER);
    let path = path.to_str().ok_or("the run directory's name is not UTF-8")?.to_owned();
    Ok(vec![ListenerSpec { path, kind: ListenerKind::Stream, mode: 0o666, group: None }])
}

/// Where the manager of a node keeps the revisions of the configuration.
pub(crate) fn history(directory: &Path) -> PathBuf {
    directory.join(MANAGER).join(HISTORY)
}

/// Says which directory on the way to the run directory other users cannot pass. Root's nodes have
/// processes with users of their own.
fn check_way(directory: &Path) -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    for ancestor in directory.ancestors().skip(1) {
        let closed = fs::metadata(ancestor).is_ok_and(|found| found.mode() & 0o001 == 0);
        if closed {
            return Err(format!(
                "the node's processes, which have users of their own, cannot pass {0} to the run \
                 directory {1}: `chmod o+x {0}`, or choose another run directory with --run-dir",
                ancestor.display(),
                directory.display()
            ));
        }
    }
    Ok(())
}

fn environment(start: &Start<'_>) -> Vec<(OsString, OsString)> {
    let operator = rustix::process::geteuid().as_raw().to_string();
    let level = if start.verbose { "debug" } else { "info" };
    let mut environment: Vec<(OsString, OsString)> = vec![
        (NODE.into(), start.name.into()),
        (OPERATOR.into(), operator.into()),
        (LOG.into(), level.into()),
    ];
    if let Some(key) = &start.identity {
        environment.push((IDENTITY.into(), key.public_key().hash().to_string().into()));
    }
    // A backtrace is for whoever asked for it; and whether standard error is the journal they cannot know.
    let passed = ["RUST_BACKTRACE", "JOURNAL_STREAM"]
        .into_iter()
        .filter_map(|name| std::env::var_os(name).map(|value| (OsString::from(name), value)));
    environment.extend(passed);
    environment
}

/// The Finder's socket in a run directory.
pub(crate) fn finder_socket(directory: &Path) -> PathBuf {
    calls_socket(directory, weft_xrl::FINDER)
}

/// What the paths begin with where components of a node take calls.
pub(crate) fn calls_sockets(node: &super::component::Node) -> PathBuf {
    calls_socket(&node.directory, "")
}

/// Where a component of a node takes calls.
pub(super) fn calls_socket(directory: &Path, instance: &str) -> PathBuf {
    directory.join(format!("{}{instance}", weft_manager::CALLS))
}
