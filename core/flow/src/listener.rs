//! The control socket of a stack, at a path.
//!
//! Reference: unix(7).

use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, fchmod};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen,
    socket_with,
};

use crate::attach::Attaching;
use crate::error::Error;

/// Who may connect: the owner and the group of the socket.
const MODE: u32 = 0o660;
/// How many connections may wait to be accepted.
const BACKLOG: i32 = 128;

/// A bound control socket. Its path is removed with it.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    path: PathBuf,
    /// Device and inode of the path, to recognise it as ours.
    identity: (u64, u64),
}

impl Listener {
    /// Binds `path` for owner and group. A socket that a dead process left there is replaced.
    ///
    /// # Errors
    /// [`Error::NoStack`] with a sentence: the path is in use, too long, or may not be made.
    pub fn bind(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        bind_at(path).map_err(|text| Error::NoStack { text })
    }

    /// Accepts one connection; `None` if nobody waits. Never waits itself.
    ///
    /// # Errors
    /// [`Error::System`]: there are no descriptors left, for example. The connection still waits then.
    pub fn accept(&self) -> Result<Option<Attaching>, Error> {
        match accept_with(&self.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok(socket) => Attaching::new(socket).map(Some),
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
            Err(errno) => Err(Error::system("accept4(2)")(errno)),
        }
    }

    /// The descriptor to wait for (readable) before [`Listener::accept`].
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|found| identity(&found) == self.identity) {
            // If it cannot be removed, the next process replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn bind_at(path: &Path) -> Result<Listener, String> {
    let address = SocketAddrUnix::new(path)
        .map_err(|_| format!("`{}` is too long for a socket: 107 bytes at most", path.display()))?;
    let sentence = |error: io::Error| listen_error(path, &error);
    let socket = new_socket().map_err(|errno| sentence(errno.into()))?;
    // A new socket's path gets the mode of the socket, so that it is never open to others.
    fchmod(&socket, Mode::from_raw_mode(MODE)).map_err(|errno| sentence(errno.into()))?;
    match bind(&socket, &address) {
        Err(Errno::ADDRINUSE) => {
            remove_stale(path, &address)?;
            bind(&socket, &address)
        }
        result => result,
    }
    .map_err(|errno| sentence(errno.into()))?;
    // Whatever the umask was.
    fs::set_permissions(path, fs::Permissions::from_mode(MODE)).map_err(sentence)?;
    let identity = identity(&fs::symlink_metadata(path).map_err(sentence)?);
    listen(&socket, BACKLOG).map_err(|errno| sentence(errno.into()))?;
    Ok(Listener { socket, path: path.to_owned(), identity })
}

fn new_socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// Removes the socket at `path` if nobody answers there.
fn remove_stale(path: &Path, address: &SocketAddrUnix) -> Result<(), String> {
    let shown = path.display();
    if !fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        return Err(format!("`{shown}` exists and is not a socket: remove it or choose another"));
    }
    let probe = new_socket().map_err(|errno| listen_error(path, &errno.into()))?;
    match connect(&probe, address) {
        Err(Errno::CONNREFUSED) => {
            fs::remove_file(path).map_err(|error| listen_error(path, &error))
        }
        // Somebody removed it meanwhile.
        Err(Errno::NOENT) => Ok(()),
        Err(Errno::ACCESS) => Err(listen_error(path, &Errno::ACCESS.into())),
        Ok(()) | Err(_) => Err(format!(
            "another process listens at `{shown}`: end it or choose another path; \
             `ss -xlp src {shown}` shows which"
        )),
    }
}

fn identity(metadata: &fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

fn listen_error(path: &Path, error: &io::Error) -> String {
    let shown = path.display();
    match error.kind() {
        ErrorKind::NotFound => {
            format!("cannot listen at `{shown}`: its directory does not exist; make it first")
        }
        ErrorKind::PermissionDenied => {
            format!("cannot listen at `{shown}`: this user may not write to its directory")
        }
        _ => format!("cannot listen at `{shown}`: {error}"),
    }
}
