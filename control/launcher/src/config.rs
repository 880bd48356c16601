//! What a launcher is told when it is started, and why it ends.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use weft_runtime::Level;

use crate::name::Secret;
use crate::protocol::ListenerSpec;

/// What a launcher is told when it is started. Everything in it is trusted.
#[derive(Clone, Debug)]
pub struct Config {
    /// The node's name; it decides which uids are tried first.
    pub node: String,
    /// The node's run directory; it is made if its parent exists. Absolute.
    pub run_directory: PathBuf,
    /// What all processes of the node execute. Absolute; opened at each start, so that a component that
    /// is started after an upgrade is a new one.
    pub binary: PathBuf,
    /// Arguments in front of `CLASS --instance NAME`.
    pub prefix: Vec<OsString>,
    /// The manager's arguments behind these.
    pub manager_arguments: Vec<OsString>,
    /// Directories of configuration and history: made if they are not there, given to the manager's user
    /// with what is directly inside. Absolute.
    pub manager_directories: Vec<PathBuf>,
    /// Where operators connect to the manager.
    pub manager_listeners: Vec<ListenerSpec>,
    /// The environment of all processes; nothing else of the launcher's own is passed on.
    pub environment: Vec<(OsString, OsString)>,
    /// Private keys of the node, by the class of those processes that may use them; each gets its own by a
    /// descriptor.
    pub keys: BTreeMap<String, Secret>,
    /// Groups that sockets may be given to, by the name that requests use.
    pub groups: BTreeMap<String, u32>,
    /// The first uid of all nodes' blocks: [`Config::UID_BASE`] if nothing speaks against it.
    pub uid_base: u32,
    /// Where nodes of this machine tell each other which uids are taken.
    pub lock_directory: PathBuf,
    /// How much the launcher reports.
    pub level: Level,
    /// How long processes have to end when the node ends.
    pub grace: Duration,
    /// So many times in a row the manager may die before it lived ten seconds.
    pub manager_failures: u32,
}

impl Config {
    /// The first uid of weft's blocks. From 1,879,048,192 to 2,147,352,575 no uids are in use by
    /// convention: below are those of containers, above are those of foreign file systems (systemd,
    /// docs/UIDS-GIDS.md).
    pub const UID_BASE: u32 = 1_900_000_000;

    /// How long the manager may usually take to end, and then whatever is left.
    pub const GRACE: Duration = Duration::from_secs(5);

    /// A configuration with the usual values.
    #[must_use]
    pub fn new(node: impl Into<String>, run_directory: PathBuf, binary: PathBuf) -> Self {
        Self {
            node: node.into(),
            run_directory,
            binary,
            prefix: vec!["component".into()],
            manager_arguments: Vec::new(),
            manager_directories: Vec::new(),
            manager_listeners: Vec::new(),
            environment: Vec::new(),
            keys: BTreeMap::new(),
            groups: BTreeMap::new(),
            uid_base: Self::UID_BASE,
            lock_directory: PathBuf::from("/run/weft/.uids"),
            level: Level::Info,
            grace: Self::GRACE,
            manager_failures: 10,
        }
    }
}

/// Why a launcher ended, other than because it was told to.
#[derive(Debug, thiserror::Error)]
pub enum LauncherError {
    /// It could not begin.
    #[error("{0}")]
    Setup(String),
    /// The manager does not stay alive.
    #[error(
        "the manager died {failures} times in a row within ten seconds of its start, so the node \
         ends; the last time it {last}"
    )]
    Manager {
        /// How many times.
        failures: u32,
        /// What happened to the last one.
        last: String,
    },
    /// The loop itself failed.
    #[error("the launcher cannot wait for events: {0}")]
    Wait(#[source] std::io::Error),
}
