//! Filters of sockets, in the classic language of Berkeley packet filters.
//!
//! Reference: socket(7) (`SO_ATTACH_FILTER`); Linux kernel, Documentation/networking/filter.rst.

use std::io;
use std::os::fd::BorrowedFd;

use crate::sys;

/// Gives a socket a filter, in the place of the one that it has. The program says how many bytes of a packet come in, 0 for none.
///
/// # Errors
/// Those of setsockopt(2): `EINVAL` if it is no program that the kernel takes.
pub fn attach(socket: BorrowedFd<'_>, program: &mut [libc::sock_filter]) -> io::Result<()> {
    sys::filter::attach(socket, program)
}
