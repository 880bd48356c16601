//! Listening sockets in the run directory, which outlive the processes that accept at them.
//!
//! While a process is started anew, connections to its sockets wait. A socket that a dead node left
//! is replaced; one at which somebody answers is an error.
//!
//! Reference: unix(7).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD, Gid, Mode, chmodat, chownat, fchmod};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

use crate::name::Name;
use crate::protocol::{ListenerKind, ListenerSpec};

/// How many connections may wait to be accepted.
const BACKLOG: i32 = 128;
/// The longest name of a socket in the run directory.
const LONGEST_NAME: usize = 64;

/// The group that a socket is given to; `None` where the launcher cannot give files away. The owner is the
/// launcher's user, so that no process can change who may connect to it.
pub(crate) type Group = Option<u32>;

/// All listening sockets of the node.
#[derive(Default)]
pub(crate) struct Listeners {
    bound: BTreeMap<PathBuf, Listener>,
}

struct Listener {
    instance: Name,
    kind: ListenerKind,
    socket: OwnedFd,
    /// Device and inode of the path, to recognise it as ours.
    identity: (u64, u64),
}

impl Listeners {
    /// Makes the sockets of an instance that are not there, gives all of them mode and group, and closes
    /// those that it had and needs no longer. If one cannot be made, those made now are removed.
    pub(crate) fn prepare(
        &mut self,
        instance: &Name,
        specs: &[ListenerSpec],
        group: impl Fn(&ListenerSpec) -> Group,
    ) -> Result<(), String> {
        self.check(instance, specs)?;
        let wanted: BTreeSet<&Path> = specs.iter().map(|spec| Path::new(&spec.path)).collect();
        let unfit = |path: &Path, listener: &Listener| {
            let same = specs
                .iter()
                .any(|spec| Path::new(&spec.path) == path && spec.kind == listener.kind);
            listener.instance == *instance && !(wanted.contains(path) && same && listener.works())
        };
        self.bound.retain(|path, listener| {
            let unfit = unfit(path, listener);
            if unfit {
                listener.unlink(path);
            }
            !unfit
        });
        let mut made: Vec<PathBuf> = Vec::new();
        for spec in specs {
            let path = PathBuf::from(&spec.path);
            if !self.bound.contains_key(&path) {
                match Listener::bind(instance, spec) {
                    Ok(listener) => self.bound.insert(path.clone(), listener),
                    Err(error) => {
                        made.iter().for_each(|path| self.remove(path));
                        return Err(error);
                    }
                };
                made.push(path.clone());
            }
            if let Err(errno) = set_access(&path, spec.mode, group(spec)) {
                made.iter().for_each(|path| self.remove(path));
                return Err(format!("cannot set the access to `{}`: {errno}", path.display()));
            }
        }
        Ok(())
    }

    /// Whether all sockets can be this instance's.
    fn check(&self, instance: &Name, specs: &[ListenerSpec]) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        for spec in specs {
            let path = Path::new(&spec.path);
            if !seen.insert(path) {
                return Err(format!("`{}` is named twice", spec.path));
            }
            if let Some(other) = self.bound.get(path).filter(|other| other.instance != *instance) {
                return Err(format!("`{}` belongs to {}", spec.path, other.instance));
            }
        }
        Ok(())
    }

    /// The sockets of an instance.
    pub(crate) fn of<'a>(
        &'a self,
        instance: &'a Name,
    ) -> impl Iterator<Item = (&'a Path, BorrowedFd<'a>)> {
        self.bound
            .iter()
            .filter(move |(_, listener)| listener.instance == *instance)
            .map(|(path, listener)| (path.as_path(), listener.socket.as_fd()))
    }

    /// Closes the sockets of an instance and removes their paths.
    pub(crate) fn close(&mut self, instance: &Name) {
        self.bound.retain(|path, listener| {
            let its = listener.instance == *instance;
            if its {
                listener.unlink(path);
            }
            !its
        });
    }

    fn remove(&mut self, path: &Path) {
        if let Some(listener) = self.bound.remove(path) {
            listener.unlink(path);
        }
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        self.bound.iter().for_each(|(path, listener)| listener.unlink(path));
    }
}

impl Listener {
    fn bind(instance: &Name, spec: &ListenerSpec) -> Result<Self, String> {
        let path = Path::new(&spec.path);
        let sentence = |errno: Errno| format!("cannot listen at `{}`: {errno}", path.display());
        let address = SocketAddrUnix::new(path).map_err(sentence)?;
        let socket = new_socket(spec.kind).map_err(sentence)?;
        // A new path gets the mode of the socket: it is never open to others, not for a moment.
        fchmod(&socket, Mode::empty()).map_err(sentence)?;
        match bind(&socket, &address) {
            Err(Errno::ADDRINUSE) => {
                remove_stale(path, &address, spec.kind)?;
                bind(&socket, &address)
            }
            result => result,
        }
        .map_err(sentence)?;
        listen(&socket, BACKLOG).map_err(sentence)?;
        let metadata = fs::symlink_metadata(path)
            .map_err(|error| format!("cannot listen at `{}`: {error}", path.display()))?;
        let identity = (metadata.dev(), metadata.ino());
        Ok(Self { instance: instance.clone(), kind: spec.kind, socket, identity })
    }

    /// Whether it still takes connections: whoever accepts at it can shut it down.
    fn works(&self) -> bool {
        let mut fds = [PollFd::new(&self.socket, PollFlags::RDHUP)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let shut = PollFlags::RDHUP | PollFlags::HUP;
        poll(&mut fds, Some(&at_once)).is_ok() && !fds[0].revents().intersects(shut)
    }

    /// Removes the path, if it is still that of this socket.
    fn unlink(&self, path: &Path) {
        let is_ours = |found: fs::Metadata| (found.dev(), found.ino()) == self.identity;
        if fs::symlink_metadata(path).is_ok_and(is_ours) {
            // If it cannot be removed, the next node replaces it.
            let _ = fs::remove_file(path);
        }
    }
}

/// Whether a path names a socket directly in the run directory.
pub(crate) fn check_path(path: &str, run_directory: &Path) -> Result<(), String> {
    let plain = |name: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(fits) && !name.starts_with('.')
    };
    let name = path
        .strip_prefix(run_directory.to_str().unwrap_or("\0"))
        .and_then(|rest| rest.strip_prefix('/'));
    if name.is_some_and(plain) {
        return Ok(());
    }
    Err(format!(
        "`{}` is not directly in the run directory {}, or its name has other characters than \
         letters, digits, `.`, `_` and `-`",
        path.escape_debug(),
        run_directory.display()
    ))
}

fn new_socket(kind: ListenerKind) -> rustix::io::Result<OwnedFd> {
    let kind = match kind {
        ListenerKind::Stream => SocketType::STREAM,
        ListenerKind::Seqpacket => SocketType::SEQPACKET,
    };
    socket_with(AddressFamily::UNIX, kind, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)
}

fn set_access(path: &Path, mode: u32, group: Group) -> rustix::io::Result<()> {
    if let Some(gid) = group.map(Gid::from_raw) {
        chownat(CWD, path, None, Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    // The run directory is the launcher's own, so the path is still that of the socket.
    chmodat(CWD, path, Mode::from_raw_mode(mode), AtFlags::empty())
}

/// Removes the socket at `path` if nobody answers there.
fn remove_stale(path: &Path, address: &SocketAddrUnix, kind: ListenerKind) -> Result<(), String> {
    let shown = path.display();
    let sentence = |error: std::io::Error| format!("cannot listen at `{shown}`: {error}");
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if !is_socket {
        return Err(format!("`{shown}` exists and is not a socket: remove it"));
    }
    let probe = new_socket(kind).map_err(|errno| sentence(errno.into()))?;
    match connect(&probe, address) {
        Err(Errno::CONNREFUSED) => fs::remove_file(path).map_err(sentence),
        // Somebody removed it meanwhile.
        Err(Errno::NOENT) => Ok(()),
        Err(_) | Ok(()) => Err(format!(
            "another process listens at `{shown}`: end it; `ss -xlp src {shown}` shows which"
        )),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RUN: &str = "/run/weft/n";

    #[test]
    fn a_path_is_a_plain_name_in_the_run_directory() {
        for good in ["/run/weft/n/xia.sock", "/run/weft/n/A_b-9"] {
            check_path(good, Path::new(RUN)).unwrap();
        }
        let bad = [
            "",
            "xia.sock",
            "/run/weft/n",
            "/run/weft/n/",
            "/run/weft/n/..",
            "/run/weft/n/.x",
            "/run/weft/n//x",
            "/run/weft/n/a/b",
            "/run/weft/nn/x",
            "/run/weft/n/x y",
            "/run/weft/n/\u{e9}",
            "/run/weft/m/x",
        ];
        for bad in bad {
            let error = check_path(bad, Path::new(RUN)).unwrap_err();
            assert!(error.contains("not directly in the run directory /run/weft/n"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn whatever_passes_lies_in_the_run_directory(path in "/run/weft/n/?[a-z./\\PC]{0,12}") {
            if check_path(&path, Path::new(RUN)).is_ok() {
                let path = Path::new(&path);
                prop_assert_eq!(path.parent(), Some(Path::new(RUN)));
                let plain = path.components().all(|part| part != std::path::Component::ParentDir);
                prop_assert!(plain);
            }
        }
    }

    #[test]
    fn a_socket_that_was_shut_down_does_not_work_and_paths_go_with_the_last_user() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.sock");
        let spec = ListenerSpec {
            path: path.to_str().unwrap().to_owned(),
            kind: ListenerKind::Stream,
            mode: 0o600,
            group: None,
        };
        let name: Name = "one".parse().unwrap();
        let mut listeners = Listeners::default();
        let specs = [spec];
        listeners.prepare(&name, &specs, |_| None).unwrap();
        let before = fs::metadata(&path).unwrap().ino();
        listeners.prepare(&name, &specs, |_| None).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().ino(), before);
        let (_, socket) = listeners.of(&name).next().unwrap();
        rustix::net::shutdown(socket, rustix::net::Shutdown::Read).unwrap();
        listeners.prepare(&name, &specs, |_| None).unwrap();
        assert!(std::os::unix::net::UnixStream::connect(&path).is_ok());
        // What an instance needs no longer is closed.
        listeners.prepare(&name, &[], |_| None).unwrap();
        assert!(!path.exists());
    }
}
