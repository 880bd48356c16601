//! Unix sockets at paths of the file system: listening at one, and connecting to one.
//!
//! This is the one place where a path becomes a socket: the runtime's channels and flows come from
//! here. Errors are sentences that name the path and the remedy.
//!
//! Reference: unix(7), accept4(2), connect(2).

use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, fchmod};
use rustix::io::Errno;
pub use rustix::net::SocketType;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, accept_with, bind, listen, socket_with,
};

/// Who may connect: the owner and the group of the socket.
const MODE: u32 = 0o660;
/// How many connections may wait to be accepted.
pub const BACKLOG: i32 = 128;

/// A socket that listens. A path that it has made is removed with it.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    /// Kept to be removed at the end.
    _own: Option<OwnPath>,
}

/// A path that this process has made.
#[derive(Debug)]
struct OwnPath {
    path: PathBuf,
    /// Device and inode, to recognise it as ours.
    identity: (u64, u64),
}

/// What [`Listener::accept`] found.
#[derive(Debug)]
pub enum Accepted {
    /// A connection, which never blocks.
    Connection(OwnedFd),
    /// Nobody waits (any more).
    Nobody,
    /// Somebody waits, and this process or system has no room for another descriptor.
    NoRoom,
}

impl Listener {
    /// Binds `path` for owner and group. A socket that a dead process left there is replaced.
    ///
    /// # Errors
    /// A sentence: the path is in use, too long, or may not be made.
    pub fn bind(path: &Path, kind: SocketType) -> Result<Self, String> {
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
        Ok(Self { socket, _own: Some(own) })
    }

    /// A socket that listens already, and whose path, if it has one, is somebody else's.
    #[must_use]
    pub fn of(socket: OwnedFd) -> Self {
        Self { socket, _own: None }
    }

    /// Accepts one connection. Never waits if the socket is non-blocking, as those are that it binds.
    #[must_use]
    pub fn accept(&self) -> Accepted {
        match accept_with(&self.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok(connection) => Accepted::Connection(connection),
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => Accepted::NoRoom,
            Err(_) => Accepted::Nobody,
        }
    }

    /// The descriptor to wait for (readable) before [`Listener::accept`].
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
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

/// Connects to the listener at `path`. Should many wait there already, waits for its turn no longer than
/// `patience`. The socket never blocks afterwards.
///
/// # Errors
/// A sentence: nobody listens there, this user may not connect, or the listener takes nobody in time.
pub fn connect(path: &Path, kind: SocketType, patience: Duration) -> Result<OwnedFd, String> {
    let address = address(path)?;
    let sentence = |errno| connect_error(path, errno);
    let socket = new_socket(kind).map_err(sentence)?;
    if patience.is_zero() {
        rustix::net::connect(&socket, &address).map_err(sentence)?;
        return Ok(socket);
    }
    rustix::io::ioctl_fionbio(&socket, false).map_err(sentence)?;
    connect_waiting(&socket, &address, patience).map_err(sentence)?;
    rustix::io::ioctl_fionbio(&socket, true).map_err(sentence)?;
    Ok(socket)
}

/// Connects a socket that blocks. Signals prolong nothing and end nothing: a connection of this family that
/// was interrupted has not begun.
fn connect_waiting(
    socket: &OwnedFd,
    address: &SocketAddrUnix,
    patience: Duration,
) -> rustix::io::Result<()> {
    let begin = Instant::now();
    let mut left = patience;
    loop {
        // Less than a microsecond would mean no limit.
        let timeout = left.max(Duration::from_millis(1));
        set_socket_timeout(socket, Timeout::Send, Some(timeout))?;
        match rustix::net::connect(socket, address) {
            Err(Errno::INTR) => left = patience.saturating_sub(begin.elapsed()),
            result => return result,
        }
        if left.is_zero() {
            return Err(Errno::AGAIN);
        }
    }
}

/// A Unix socket.
fn new_socket(kind: SocketType) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    socket_with(AddressFamily::UNIX, kind, flags, None)
}

fn address(path: &Path) -> Result<SocketAddrUnix, String> {
    SocketAddrUnix::new(path)
        .map_err(|_| format!("`{}` is too long for a socket: 107 bytes at most", path.display()))
}

/// Removes the socket at `path` if nobody answers there.
fn remove_stale(path: &Path, address: &SocketAddrUnix, kind: SocketType) -> Result<(), String> {
    let shown = path.display();
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if !is_socket {
        return Err(format!("`{shown}` exists and is not a socket: remove it or choose another"));
    }
    let probe = new_socket(kind).map_err(|errno| listen_error(path, &errno.into()))?;
    match rustix::net::connect(&probe, address) {
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
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::thread;

    use signal_hook::consts::SIGUSR2;

    use super::*;

    fn bind_at(path: &Path) -> Result<Listener, String> {
        Listener::bind(path, SocketType::SEQPACKET)
    }

    fn connect_to(path: &Path) -> Result<OwnedFd, String> {
        connect(path, SocketType::SEQPACKET, Duration::ZERO)
    }

    /// A listener at which as many wait as may, and they.
    fn crowded_at(path: &Path) -> (Listener, Vec<OwnedFd>) {
        let listener = bind_at(path).unwrap();
        let waiting: Vec<_> = std::iter::from_fn(|| connect_to(path).ok()).collect();
        assert!(waiting.len() >= BACKLOG as usize, "{}", waiting.len());
        (listener, waiting)
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
        let connect = |kind| connect(&path, kind, Duration::ZERO);
        let listener = bind_at(&path).unwrap();
        assert!(connect(SocketType::STREAM).unwrap_err().contains("of another kind"));
        let error = Listener::bind(&path, SocketType::STREAM).err().unwrap();
        assert!(error.contains("another process listens"), "{error}");
        drop(listener);
        let listener = Listener::bind(&path, SocketType::STREAM).unwrap();
        assert!(connect(SocketType::STREAM).is_ok());
        drop(listener);
        drop(UnixListener::bind(&path).unwrap());
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
    fn who_finds_too_many_waiting_waits_as_long_as_said_and_no_longer() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let (_listener, _waiting) = crowded_at(&path);
        for patience in [Duration::ZERO, Duration::from_millis(2)] {
            let error = connect(&path, SocketType::SEQPACKET, patience).unwrap_err();
            assert!(error.contains("does not accept connections now"), "{error}");
        }
    }

    /// Waits until `done`, and fails when what was to do it has ended.
    fn wait_until<T>(other: &thread::JoinHandle<T>, mut done: impl FnMut() -> bool) {
        while !done() {
            assert!(!other.is_finished(), "it did not wait");
            thread::yield_now();
        }
    }

    #[test]
    fn signals_do_not_end_the_waiting() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let (listener, _waiting) = crowded_at(&path);
        let came = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGUSR2, Arc::clone(&came)).unwrap();
        let (tell, told) = mpsc::channel();
        let other = thread::spawn(move || {
            tell.send(rustix::thread::gettid()).unwrap();
            connect(&path, SocketType::SEQPACKET, Duration::from_hours(1))
        });
        let number = told.recv().unwrap().as_raw_nonzero().get();
        let stat = format!("/proc/self/task/{number}/stat");
        for _ in 0..3 {
            // It sleeps nowhere but where it waits to be accepted.
            wait_until(&other, || {
                fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") S "))
            });
            came.store(false, Ordering::Relaxed);
            #[allow(unsafe_code, reason = "only libc has the call")]
            // SAFETY: the call takes numbers; a thread that is gone is an error.
            let result =
                unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), number, SIGUSR2) };
            assert_eq!(result, 0, "{}", io::Error::last_os_error());
            wait_until(&other, || came.load(Ordering::Relaxed));
        }
        assert!(matches!(listener.accept(), Accepted::Connection(_)));
        assert!(other.join().unwrap().is_ok());
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
