//! Sockets that applications on this machine connect to, at paths.
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
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect,
    getpeername, getsockname, listen, socket_with,
};
use weft_base::Token;
use weft_port::datagrams::{self, Credentials};

use super::tcp;
use crate::address::ChannelKind;
use crate::{ChannelAddress, Peer};

/// Who may connect: the owner and the group of the socket.
const MODE: u32 = 0o660;
/// How many connections may wait to be accepted.
const BACKLOG: i32 = 128;

/// A socket that listens. A path that it has made is removed with it.
pub(super) struct Listener {
    pub(super) token: Token,
    pub(super) kind: ChannelKind,
    socket: OwnedFd,
    /// Kept to be removed at the end.
    _own: Option<OwnPath>,
}

/// A path that this process has made.
struct OwnPath {
    path: PathBuf,
    /// Device and inode, to recognise it as ours.
    identity: (u64, u64),
}

/// What [`Listener::accept`] found.
pub(super) enum Accepted {
    Connection(OwnedFd),
    /// Nobody waits (any more).
    Nobody,
    /// Somebody waits, and this process or system has no room for another descriptor.
    NoRoom,
}

impl Listener {
    /// Binds `address`. A socket that a dead process left at a path is replaced.
    pub(super) fn bind(token: Token, address: &ChannelAddress) -> Result<Self, String> {
        match address {
            ChannelAddress::Packets(path) | ChannelAddress::Stream(path) => {
                Self::bind_path(token, path, ChannelKind::of(address))
            }
            ChannelAddress::Tcp(address) => {
                let socket = tcp::listen_at(*address, BACKLOG)?;
                Ok(Self { token, kind: ChannelKind::Tcp, socket, _own: None })
            }
        }
    }

    fn bind_path(token: Token, path: &Path, kind: ChannelKind) -> Result<Self, String> {
        let address = address(path)?;
        let sentence = |error: io::Error| listen_error(path, &error);
        let socket = new_socket(kind).map_err(|errno| sentence(errno.into()))?;
        // A new socket's path gets the mode of the socket, so that it is never open to others.
        let mode = Mode::from_raw_mode(MODE);
        fchmod(&socket, mode).map_err(|errno| sentence(errno.into()))?;
        match bind(&socket, &address) {
            Err(Errno::ADDRINUSE) => {
                remove_stale(path, &address, kind)?;
                bind(&socket, &address)
            }
            result => result,
        }
        .map_err(|errno| sentence(errno.into()))?;
        let identity = make_public(path).map_err(sentence)?;
        listen(&socket, BACKLOG).map_err(|errno| sentence(errno.into()))?;
        let own = OwnPath { path: path.to_owned(), identity };
        Ok(Self { token, kind, socket, _own: Some(own) })
    }

    /// A socket that listens already, and whose path is somebody else's.
    pub(super) fn inherited(token: Token, kind: ChannelKind, socket: OwnedFd) -> Self {
        Self { token, kind, socket, _own: None }
    }

    /// Where it listens, having been asked to do so at `asked`.
    pub(super) fn address(&self, asked: &ChannelAddress) -> ChannelAddress {
        let bound = getsockname(&self.socket).ok().and_then(|bound| bound.try_into().ok());
        match (asked, bound) {
            (ChannelAddress::Tcp(_), Some(bound)) => ChannelAddress::Tcp(bound),
            _ => asked.clone(),
        }
    }

    /// Accepts one connection.
    pub(super) fn accept(&self) -> Accepted {
        match accept_with(&self.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok(connection) => Accepted::Connection(connection),
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => Accepted::NoRoom,
            Err(_) => Accepted::Nobody,
        }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for OwnPath {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|found| identity(&found) == self.identity) {
            // If it cannot be removed, the next process replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Connects to the listener at `path`.
pub(super) fn connect_to(path: &Path, kind: ChannelKind) -> Result<OwnedFd, String> {
    let address = address(path)?;
    let socket = new_socket(kind).map_err(|errno| connect_error(path, errno))?;
    connect(&socket, &address).map_err(|errno| connect_error(path, errno))?;
    Ok(socket)
}

/// Who is at the other end of a connected socket.
pub(super) fn peer(socket: BorrowedFd<'_>, kind: ChannelKind) -> io::Result<Peer> {
    if kind == ChannelKind::Tcp {
        let address = getpeername(socket)?.ok_or(Errno::NOTCONN)?;
        return Ok(Peer::Address(address.try_into()?));
    }
    let Credentials { pid, uid, gid } = datagrams::peer_credentials(socket)?;
    Ok(Peer::Process { pid, uid, gid })
}

/// A Unix socket.
fn new_socket(kind: ChannelKind) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let kind =
        if kind == ChannelKind::Packets { SocketType::SEQPACKET } else { SocketType::STREAM };
    socket_with(AddressFamily::UNIX, kind, flags, None)
}

fn address(path: &Path) -> Result<SocketAddrUnix, String> {
    SocketAddrUnix::new(path)
        .map_err(|_| format!("`{}` is too long for a socket: 107 bytes at most", path.display()))
}

/// Removes the socket at `path` if nobody answers there.
fn remove_stale(path: &Path, address: &SocketAddrUnix, kind: ChannelKind) -> Result<(), String> {
    let shown = path.display();
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if !is_socket {
        return Err(format!("`{shown}` exists and is not a socket: remove it or choose another"));
    }
    let probe = new_socket(kind).map_err(|errno| listen_error(path, &errno.into()))?;
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

/// Gives the path its mode whatever the umask was, and returns its identity.
fn make_public(path: &Path) -> io::Result<(u64, u64)> {
    fs::set_permissions(path, fs::Permissions::from_mode(MODE))?;
    Ok(identity(&fs::symlink_metadata(path)?))
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

fn connect_error(path: &Path, errno: Errno) -> String {
    let shown = path.display();
    match errno {
        Errno::NOENT => format!("nobody listens at `{shown}`: is the node running?"),
        Errno::CONNREFUSED => {
            format!("the process that listened at `{shown}` is gone: start the node again")
        }
        Errno::ACCESS | Errno::PERM => {
            format!("this user may not connect to `{shown}`: join the socket's group, or be root")
        }
        Errno::AGAIN => {
            format!("the process at `{shown}` does not accept connections now: try again later")
        }
        Errno::PROTOTYPE => {
            format!(
                "`{shown}` is a socket of another kind: connect with the kind that listens there"
            )
        }
        errno => format!("cannot connect to `{shown}`: {errno}"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    fn bind_at(path: &Path) -> Result<Listener, String> {
        Listener::bind(Token(1), &ChannelAddress::Packets(path.to_owned()))
    }

    fn connect_to(path: &Path) -> Result<OwnedFd, String> {
        super::connect_to(path, ChannelKind::Packets)
    }

    #[test]
    fn the_socket_is_for_owner_and_group_and_vanishes_with_the_listener() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listener = bind_at(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, MODE);
        let _ = connect_to(&path).unwrap();
        assert!(matches!(listener.accept(), Accepted::Connection(_)));
        assert!(matches!(listener.accept(), Accepted::Nobody));
        drop(listener);
        assert!(!path.exists());
        assert!(connect_to(&path).unwrap_err().contains("is the node running?"));
    }

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        drop(UnixListener::bind(&path).unwrap());
        assert!(connect_to(&path).unwrap_err().contains("is gone"));
        let listener = bind_at(&path).unwrap();
        let error = bind_at(&path).err().unwrap();
        assert!(error.contains("another process listens") && error.contains("ss -xlp"), "{error}");
        assert!(connect_to(&path).is_ok());
        drop(listener);
    }

    #[test]
    fn a_socket_of_another_kind_is_stale_or_alive_as_any_other() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let stream = ChannelAddress::Stream(path.clone());
        let listener = bind_at(&path).unwrap();
        assert!(
            super::connect_to(&path, ChannelKind::Stream).unwrap_err().contains("of another kind")
        );
        let error = Listener::bind(Token(1), &stream).err().unwrap();
        assert!(error.contains("another process listens"), "{error}");
        drop(listener);
        let listener = Listener::bind(Token(1), &stream).unwrap();
        assert!(super::connect_to(&path, ChannelKind::Stream).is_ok());
        drop(listener);
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(bind_at(&path).is_ok());
    }

    #[test]
    fn a_path_that_belongs_to_another_listener_by_now_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let first = bind_at(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let second = bind_at(&path).unwrap();
        drop(first);
        assert!(path.exists());
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn errors_name_the_path_and_the_remedy() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "content").unwrap();
        assert!(bind_at(&file).err().unwrap().contains("not a socket"));
        assert_eq!(fs::read(&file).unwrap(), b"content");
        let missing = directory.path().join("missing/socket");
        assert!(bind_at(&missing).err().unwrap().contains("directory does not exist"));
        let long = directory.path().join("x".repeat(200));
        assert!(bind_at(&long).err().unwrap().contains("too long"));
    }
}
