//! Namespaces of one's own: a network without interfaces, in which everything is allowed.
//!
//! It ends with the last process or thread inside, and everything that was made there with it.
//!
//! Reference: network_namespaces(7), mount_namespaces(7).

use std::io;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};

use crate::sys;

/// Why namespaces of one's own are not to be had.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// The kernel makes no namespaces for this process.
    #[error("the kernel refuses new namespaces: {0}")]
    Unshare(io::Error),
    /// The namespaces are there, but nothing can be mounted in them.
    #[error("the kernel refuses to mount in the new namespaces: {0}")]
    Mount(io::Error),
}

/// Moves the calling thread into a network namespace and a mount namespace of its own, with an empty
/// `/run` of its own, so that what is made there (`ip netns add` does) ends with the thread, too.
///
/// # Errors
/// [`NamespaceError`], without CAP_SYS_ADMIN in the user namespace of the process.
pub fn enter() -> Result<(), NamespaceError> {
    sys::namespace::unshare().map_err(NamespaceError::Unshare)?;
    empty_run()
}

/// Mounts an empty file system at `/run` that only this mount namespace sees.
fn empty_run() -> Result<(), NamespaceError> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount_change("/", private)
        .and_then(|()| mount("tmpfs", "/run", "tmpfs", flags, None))
        .map_err(|errno| NamespaceError::Mount(errno.into()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;

    fn interfaces() -> BTreeSet<String> {
        let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
        text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
    }

    #[test]
    fn a_thread_inside_sees_only_its_own_network_and_run_directory() {
        if !crate::testing::privileged() {
            return;
        }
        let marker = format!("weft-namespace-test-{}", std::process::id());
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                enter().unwrap();
                assert_eq!(interfaces(), BTreeSet::from(["lo".to_owned()]));
                assert_eq!(fs::read_dir("/run").unwrap().count(), 0);
                fs::write(format!("/run/{marker}"), "").unwrap();
            });
            inside.join().unwrap();
        });
        assert!(!std::path::Path::new("/run").join(marker).exists());
    }
}
