//! The control socket of a stack, at a path, for stacks that have no other way to accept connections.
//!
//! Reference: unix(7).

use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::io::Errno;
use weft_port::unix::{self, Accepted, SocketType};

use crate::attach::Attaching;
use crate::error::Error;

/// A bound control socket. Its path is removed with it.
#[derive(Debug)]
pub struct Listener(unix::Listener);

impl Listener {
    /// Binds `path` for owner and group. A socket that a dead process left there is replaced.
    ///
    /// # Errors
    /// [`Error::NoStack`] with a sentence: the path is in use, too long, or may not be made.
    pub fn bind(path: impl AsRef<Path>) -> Result<Self, Error> {
        let bound = unix::Listener::bind(path.as_ref(), SocketType::SEQPACKET);
        bound.map(Self).map_err(|text| Error::NoStack { text })
    }

    /// Accepts one connection; `None` if nobody waits. Never waits itself.
    ///
    /// # Errors
    /// [`Error::System`]: there are no descriptors left. The connection still waits then.
    pub fn accept(&self) -> Result<Option<Attaching>, Error> {
        match self.0.accept() {
            Accepted::Connection(socket) => Attaching::new(socket).map(Some),
            Accepted::Nobody => Ok(None),
            Accepted::NoRoom => Err(Error::system("accept4(2)")(Errno::MFILE)),
        }
    }

    /// The descriptor to wait for (readable) before [`Listener::accept`].
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.fd()
    }
}
