//! Leaving the namespaces of the parent: `unshare(2)`.

use std::io;

use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Moves the calling thread into a network namespace and a mount namespace of its own.
pub(crate) fn unshare() -> io::Result<()> {
    let flags = UnshareFlags::NEWNET | UnshareFlags::NEWNS;
    // SAFETY: the table of file descriptors, on which other threads rely, stays shared.
    Ok(unsafe { unshare_unsafe(flags) }?)
}
