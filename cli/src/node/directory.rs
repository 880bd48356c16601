//! Run directories: where a running node keeps its sockets, and how commands find it.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::args::NodeArgs;

/// The socket for XIA applications in a node's run directory.
pub(super) const XIA_SOCKET: &str = "xia.sock";

/// The folder that holds the run directories of this user's nodes.
fn base() -> PathBuf {
    if rustix::process::geteuid().is_root() {
        return PathBuf::from("/run/weft");
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(directory) => Path::new(&directory).join("weft"),
        None => std::env::temp_dir().join(format!("weft-{}", rustix::process::geteuid().as_raw())),
    }
}

/// The run directory of the node called `name`.
pub(super) fn of_node(name: &str) -> PathBuf {
    base().join(name)
}

/// Makes a run directory, if it is not there.
pub(super) fn create(directory: &Path) -> Result<(), String> {
    fs::DirBuilder::new().recursive(true).mode(0o755).create(directory).map_err(|error| {
        format!(
            "cannot make the run directory {}: {error}; choose another with --run-dir",
            directory.display()
        )
    })
}

/// The socket of the node that a command is for.
pub(crate) fn find_socket(args: &NodeArgs) -> Result<PathBuf, String> {
    let directory = match (&args.run_dir, &args.node) {
        (Some(directory), _) => directory.clone(),
        (None, Some(name)) => of_node(name),
        (None, None) => the_only_one()?,
    };
    Ok(directory.join(XIA_SOCKET))
}

/// The run directory of the only node that runs.
fn the_only_one() -> Result<PathBuf, String> {
    let base = base();
    let mut running = running_below(&base)?;
    match (running.pop(), running.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => Err(format!(
            "no node runs here (looked in {}); start one with `weft run FILE`, or name its run \
             directory with --run-dir",
            base.display()
        )),
        (Some(last), false) => {
            running.push(last);
            let names: Vec<_> =
                running.iter().filter_map(|directory| directory.file_name()?.to_str()).collect();
            Err(format!("several nodes run here: {}; choose with --node", names.join(", ")))
        }
    }
}

/// The run directories below `base` whose socket answers, sorted.
fn running_below(base: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = match fs::read_dir(base) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("cannot read {}: {error}", base.display())),
    };
    let directories = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut running: Vec<_> =
        directories.filter(|directory| is_live(&directory.join(XIA_SOCKET))).collect();
    running.sort();
    Ok(running)
}

/// Whether somebody listens at a socket. A stream connection to a packet socket is refused with
/// another error than a connection to nobody.
fn is_live(socket: &Path) -> bool {
    match UnixStream::connect(socket) {
        Ok(_) => true,
        Err(error) => error.raw_os_error() == Some(rustix::io::Errno::PROTOTYPE.raw_os_error()),
    }
}
