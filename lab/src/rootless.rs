//! Labs without root: the program starts itself anew in namespaces of its own, where it is root.
//!
//! In a user namespace the kernel grants everything that labs need, except eBPF: links with loss are
//! then user-space links. What `ip netns` keeps in `/run` goes to a private file system; the state of
//! the lab stays where later runs of the same user find it.
//!
//! Reference: user_namespaces(7), unshare(1).

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::geteuid;

use crate::LabError;
use crate::netns::STATE_VARIABLE;

/// The namespaces that are made: of users, mounts and networks.
const UNSHARE: [&str; 4] = ["--user", "--map-root-user", "--mount", "--net"];
/// Hides `/run` behind an empty file system, and goes on with the program.
const SCRIPT: &str = "mount -t tmpfs -o mode=0755 weft-lab /run && exec \"$0\" \"$@\"";

/// Whether this process may build labs in network namespaces, be it root of the machine or of its
/// own user namespace.
#[must_use]
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// Replaces this process by the same program with the same arguments, as root of a user namespace of
/// its own: [`is_root`] is true there. Call it before threads are started. Returns only if it fails.
///
/// # Errors
/// The kernel does not let this user make namespaces, or the program unshare is missing.
pub fn enter_user_namespace() -> Result<Infallible, LabError> {
    let state = state_directory_in(&std::env::temp_dir())?;
    probe()?;
    let program = std::env::current_exe().map_err(LabError::system("find this program"))?;
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let mut command = Command::new("unshare");
    command.args(UNSHARE).args(["--", "sh", "-c", SCRIPT]).arg(program).args(arguments);
    let error = command.env(STATE_VARIABLE, state).exec();
    Err(LabError::system("start unshare")(error))
}

/// Tries whether the kernel allows it.
fn probe() -> Result<(), LabError> {
    let mut command = Command::new("unshare");
    command.args(UNSHARE).args(["--", "true"]).stdin(Stdio::null());
    let output = command.output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => LabError::Missing { program: "unshare", package: "util-linux" },
        _ => LabError::system("start unshare")(error),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(LabError::NotPermitted(format!(
        "this system lets only root make namespaces ({}): run as root, or allow it with one of \
         `sysctl -w user.max_user_namespaces=10000`, `sysctl -w kernel.unprivileged_userns_clone=1` \
         and `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`; `--engine sim` needs \
         neither",
        said.trim()
    )))
}

/// The directory in `parent` for the state of this user's labs, which nobody else can write to.
pub(crate) fn state_directory_in(parent: &Path) -> Result<PathBuf, LabError> {
    let user = geteuid().as_raw();
    let path = parent.join(format!("weft-lab-{user}"));
    let make = || -> io::Result<bool> {
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let found = fs::symlink_metadata(&path)?;
        // Others may pass it: labs that are there have let them.
        Ok(found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0)
    };
    match make() {
        Ok(true) => Ok(path),
        Ok(false) => Err(LabError::NotPermitted(format!(
            "{} belongs to somebody else, or others can write to it: remove it",
            path.display()
        ))),
        Err(error) => Err(LabError::disk("make the directory", path)(error)),
    }
}
