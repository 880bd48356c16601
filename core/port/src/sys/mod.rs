//! Every system call of this crate that has no safe wrapper, each in a small file.

pub(crate) mod address;
pub(crate) mod filter;
pub(crate) mod interface;
pub(crate) mod mmsg;
pub(crate) mod namespace;
pub(crate) mod packet_socket;
pub(crate) mod rights;
pub(crate) mod scheduling;
pub(crate) mod socket;
pub(crate) mod stream;
pub(crate) mod tun;
pub(crate) mod xdp;

use std::io;

/// The result of a C call that returns -1 for failure.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
