//! Run directories: where a running node keeps its sockets, and how commands find it.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::Pid;

use crate::args::NodeArgs;

/// The socket for XIA applications in a node's run directory.
pub(crate) const XIA_SOCKET: &str = "xia.sock";

/// The folder that holds the run directories of root's nodes.
const OF_ROOT: &str = "/run/weft";

/// The folder that holds the run directories of this user's nodes.
pub(crate) fn base() -> PathBuf {
    if rustix::process::geteuid().is_root() {
        return PathBuf::from(OF_ROOT);
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

/// Says so if a node runs in a directory, which need not exist. `name` is that of the node to run there.
///
/// # Errors
/// A sentence that names the directory, the process if it is known, and the ways out.
pub(super) fn check_free(directory: &Path, name: &str) -> Result<(), String> {
    match holder(&directory.join(XIA_SOCKET)) {
        Some(holder) => Err(in_use(directory, name, holder)),
        None => Ok(()),
    }
}

/// Makes a run directory, if it is not there.
///
/// # Errors
/// It cannot be made or written.
pub(super) fn make(directory: &Path) -> Result<(), String> {
    let shown = directory.display();
    // Others have to pass it, too.
    weft_launcher::make_way(&directory.join(XIA_SOCKET)).map_err(|error| {
        format!("cannot make the run directory {shown}: {error}; choose another with --run-dir")
    })?;
    access(directory, Access::WRITE_OK | Access::EXEC_OK).map_err(|errno| {
        format!("cannot write to the run directory {shown}: {errno}; choose another with --run-dir")
    })
}

/// The sentence for a run directory in which a node runs, of which the process is known or not.
fn in_use(directory: &Path, name: &str, holder: Option<Pid>) -> String {
    let shown = directory.display();
    let process = holder.map_or(String::new(), |pid| format!(" (process {pid})"));
    if directory == of_node(name) {
        format!(
            "a node called {name} runs already{process}: end it, or give this one another name in \
             its node file or another run directory than {shown} with --run-dir"
        )
    } else {
        format!(
            "another node runs in {shown} already{process}: end it, or choose another run \
             directory with --run-dir"
        )
    }
}

/// Who listens at a node's socket: nobody, or somebody whose process may be known.
fn holder(socket: &Path) -> Option<Option<Pid>> {
    let address = SocketAddrUnix::new(socket).ok()?;
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let probe = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).ok()?;
    match connect(&probe, &address) {
        Ok(()) => Some(socket_peercred(&probe).ok().map(|peer| peer.pid)),
        // It listens, and has no room for another connection now.
        Err(Errno::AGAIN) => Some(None),
        Err(_) => None,
    }
}

/// The run directory of the node that a command is for.
pub(crate) fn find_run_directory(args: &NodeArgs) -> Result<PathBuf, String> {
    match (args.directory(), &args.node) {
        (Some(directory), _) => Ok(directory),
        (None, Some(name)) => Ok(named(name)),
        (None, None) => the_only_one(),
    }
}

/// The run directory of a node of this user, or else of root.
fn named(name: &str) -> PathBuf {
    let own = of_node(name);
    let of_root = Path::new(OF_ROOT).join(name);
    if !own.exists() && of_root.exists() { of_root } else { own }
}

/// The run directory of the node whose components a command calls.
///
/// # Errors
/// There is no such node, or this user may not call its components.
pub(crate) fn find_callable(args: &NodeArgs) -> Result<PathBuf, String> {
    let directory = find_run_directory(args)?;
    let shown = directory.display();
    match access(super::finder_socket(&directory), Access::WRITE_OK) {
        Ok(()) => Ok(directory),
        Err(Errno::NOENT) => Err(format!(
            "no node with components runs in {shown}; start one with `weft run FILE`, without --single"
        )),
        Err(Errno::ACCESS) => Err(format!(
            "this user may not call the components of the node in {shown}: start it anew with this \
             version of weft, whose statement `operators` says who may"
        )),
        Err(errno) => Err(format!("the node in {shown} cannot be called: {errno}")),
    }
}

/// The socket for XIA applications of the node that a command is for.
pub(crate) fn find_socket(args: &NodeArgs) -> Result<PathBuf, String> {
    let directory = find_run_directory(args)?;
    let socket = directory.join(XIA_SOCKET);
    if !socket.exists() && super::finder_socket(&directory).exists() {
        return Err(format!(
            "the node in {} has no XIA stack: add `xia {{ … }}` to its configuration",
            directory.display()
        ));
    }
    Ok(socket)
}

/// The run directory of the only node that runs.
fn the_only_one() -> Result<PathBuf, String> {
    let base = base();
    let mut running = running_below(&base)?;
    if running.is_empty() {
        running = running_below(Path::new(OF_ROOT)).unwrap_or_default();
    }
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

/// The run directories below `base` in which a socket answers, sorted.
fn running_below(base: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = match fs::read_dir(base) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("cannot read {}: {error}", base.display())),
    };
    let directories = entries.filter_map(|entry| Some(entry.ok()?.path()));
    // Nodes in one process have no Finder; others need not have XIA, nor let everybody use it.
    let sockets =
        |directory: &PathBuf| [super::finder_socket(directory), directory.join(XIA_SOCKET)];
    let mut running: Vec<_> = directories
        .filter(|directory| sockets(directory).iter().any(|socket| is_live(socket)))
        .collect();
    running.sort();
    Ok(running)
}

/// The names of this user's running nodes, sorted.
pub(crate) fn running() -> Result<Vec<String>, String> {
    let name = |directory: PathBuf| Some(directory.file_name()?.to_string_lossy().into_owned());
    Ok(running_below(&base())?.into_iter().filter_map(name).collect())
}

/// Whether somebody listens at a socket. A stream connection to a packet socket is refused with
/// another error than a connection to nobody.
fn is_live(socket: &Path) -> bool {
    match UnixStream::connect(socket) {
        Ok(_) => true,
        Err(error) => error.raw_os_error() == Some(Errno::PROTOTYPE.raw_os_error()),
    }
}
