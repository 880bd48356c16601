//! Programs that see what a socket is about to receive.
//!
//! Reference: socket(7), `SO_ATTACH_BPF`.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::LoadedProgram;

/// Lets a program of the type [`SocketFilter`](crate::ProgramType::SocketFilter) say how many bytes of each message a
/// socket receives: all of them if that is more than there are, and with 0 nothing, as if the message had never come.
///
/// # Errors
/// What the kernel says: `EINVAL` if the program has another type.
pub fn attach_filter(socket: impl AsFd, program: &LoadedProgram) -> io::Result<()> {
    let descriptor = program.descriptor().as_raw_fd();
    // SAFETY: the value is a descriptor of the size that is said.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_BPF,
            (&raw const descriptor).cast(),
            size_of_val(&descriptor) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
