//! Leaving the namespaces of the parent: `unshare(2)`.

use std::io;

use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Moves the calling thread into a network namespace and a mount namespace of its own, and first
/// into a user namespace of its own if `user` is set.
pub(crate) fn unshare(user: bool) -> io::Result<()> {
    let mut flags = UnshareFlags::NEWNET | UnshareFlags::NEWNS;
    flags.set(UnshareFlags::NEWUSER, user);
    // SAFETY: the table of file descriptors, on which other threads rely, stays shared.
    Ok(unsafe { unshare_unsafe(flags) }?)
}
