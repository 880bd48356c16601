//! What every socket says of itself: `socket(7)`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// How many datagrams were dropped because the receive buffer was full, since the socket was made
/// (`SO_MEMINFO`).
pub(crate) fn drops(socket: BorrowedFd<'_>) -> io::Result<u32> {
    /// `SK_MEMINFO_DROPS` of linux/sock_diag.h.
    const DROPS: usize = 8;
    let mut values = [0_u32; 16];
    let mut len = size_of_val(&values) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes into the array.
    super::check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            values.as_mut_ptr().cast(),
            &raw mut len,
        )
    })?;
    Ok(values[DROPS])
}

/// Who made the other end of a connected Unix socket (`SO_PEERCRED`).
pub(crate) fn peer(socket: BorrowedFd<'_>) -> io::Result<libc::ucred> {
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes into the structure.
    super::check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut len,
        )
    })?;
    Ok(credentials)
}
