//! What a child gets from the launcher, and how it takes it.
//!
//! The variable `WEFT_INHERITED` holds a JSON list with an entry for each descriptor that was passed on.
//! The child reads it once, before its first thread, checks that each is what it is said to be,
//! and owns them from then on.
//!
//! Reference: exec(3), fcntl(2), memfd_create(2); the idea is that of sd_listen_fds(3).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, memfd_create};
use rustix::net::SocketType;
use rustix::net::sockopt::{socket_acceptconn, socket_type};
use serde::{Deserialize, Serialize};

use crate::name::Secret;
use crate::sys;

/// The name of the environment variable.
pub const VARIABLE: &str = "WEFT_INHERITED";

/// The first number that is not one of the standard streams.
const FIRST: RawFd = 3;
/// What keeps a secret from being changed.
const SEALS: SealFlags =
    SealFlags::SEAL.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::WRITE);

/// One descriptor in the variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) fd: RawFd,
    pub(crate) kind: Kind,
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<PathBuf>,
}

/// What a descriptor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// A listening Unix socket.
    Listener,
    /// A connected `SOCK_SEQPACKET`.
    Channel,
    /// 32 sealed bytes.
    Secret,
    /// 32 sealed bytes.
    Key,
    /// One that the launcher keeps.
    Kept,
}

/// What this process got from the launcher.
#[derive(Debug, Default)]
pub struct Inherited {
    /// Listening sockets, by path.
    pub listeners: BTreeMap<PathBuf, OwnedFd>,
    /// Connections, by name; the manager's to the launcher is called `launcher`.
    pub channels: BTreeMap<String, OwnedFd>,
    /// Descriptors that the launcher keeps, by name.
    pub kept: BTreeMap<String, OwnedFd>,
    /// What this process proves itself with.
    pub secret: Option<Secret>,
    /// A private key of the node that this process may use.
    pub key: Option<Secret>,
}

/// Why a process cannot take what it was given.
#[derive(Debug, thiserror::Error)]
#[error("the variable {VARIABLE} is not what a launcher sets: {0}")]
pub struct InheritError(String);

/// Takes what the launcher passed on; nothing, if none did. The variable is gone afterwards, and what
/// was taken is closed by exec.
///
/// # Errors
/// This process has more than one thread already, or the variable does not describe the descriptors
/// that are there.
pub fn inherited() -> Result<Inherited, InheritError> {
    let Ok(text) = std::env::var(VARIABLE) else { return Ok(Inherited::default()) };
    if thread_count() != Some(1) {
        return Err(InheritError("it must be read before the first thread is started".to_owned()));
    }
    sys::remove_variable(VARIABLE);
    let entries: Vec<Entry> =
        serde_json::from_str(&text).map_err(|error| InheritError(error.to_string()))?;
    let mut numbers = BTreeSet::new();
    if entries.iter().any(|entry| entry.fd < FIRST || !numbers.insert(entry.fd)) {
        return Err(InheritError(format!("descriptors are different and {FIRST} or more")));
    }
    let numbers: Vec<_> = entries.iter().map(|entry| entry.fd).collect();
    let descriptors = sys::take_over(&numbers)
        .map_err(|(fd, error)| InheritError(format!("descriptor {fd} is not there: {error}")))?;
    let mut inherited = Inherited::default();
    for (entry, descriptor) in entries.into_iter().zip(descriptors) {
        inherited.add(entry, descriptor).map_err(InheritError)?;
    }
    Ok(inherited)
}

impl Inherited {
    fn add(&mut self, entry: Entry, descriptor: OwnedFd) -> Result<(), String> {
        let what = format!("`{}` (descriptor {})", entry.name, entry.fd);
        let wrong = |is: &str| format!("{what} is {is}");
        let twice = match entry.kind {
            Kind::Listener => {
                let path = entry.path.ok_or_else(|| wrong("a listener without a path"))?;
                if !socket_acceptconn(&descriptor).unwrap_or(false) {
                    return Err(wrong("no listening socket"));
                }
                self.listeners.insert(path, descriptor).is_some()
            }
            Kind::Channel => {
                if socket_type(&descriptor) != Ok(SocketType::SEQPACKET) {
                    return Err(wrong("no connection that keeps the borders of messages"));
                }
                self.channels.insert(entry.name, descriptor).is_some()
            }
            Kind::Kept => self.kept.insert(entry.name, descriptor).is_some(),
            Kind::Secret => {
                let secret = read_secret(descriptor.as_fd()).map_err(|error| wrong(&error))?;
                self.secret.replace(secret).is_some()
            }
            Kind::Key => {
                let key = read_secret(descriptor.as_fd()).map_err(|error| wrong(&error))?;
                self.key.replace(key).is_some()
            }
        };
        if twice { Err(wrong("there twice")) } else { Ok(()) }
    }
}

/// The number of threads of this process.
pub(crate) fn thread_count() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/task").ok()?.count())
}

/// A descriptor from which a child reads a secret, and nobody can change it.
pub(crate) fn secret_descriptor(secret: &Secret) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(memfd_create("weft-secret", flags)?);
    file.write_all_at(secret.bytes(), 0)?;
    fcntl_add_seals(&file, SEALS)?;
    Ok(file.into())
}

fn read_secret(descriptor: BorrowedFd<'_>) -> Result<Secret, String> {
    let sealed = fcntl_get_seals(descriptor).is_ok_and(|seals| seals.contains(SEALS));
    let whole = fstat(descriptor).is_ok_and(|stat| stat.st_size == 32);
    if !(sealed && whole) {
        return Err("no sealed file of 32 bytes".to_owned());
    }
    let mut bytes = [0; 32];
    let file = File::from(descriptor.try_clone_to_owned().map_err(|error| error.to_string())?);
    file.read_exact_at(&mut bytes, 0).map_err(|error| format!("unreadable: {error}"))?;
    Ok(Secret::new(bytes))
}

/// The value of the variable for these entries.
pub(crate) fn variable(entries: &[Entry]) -> Result<String, serde_json::Error> {
    serde_json::to_string(entries)
}

/// The entry for a listener.
pub(crate) fn listener(fd: RawFd, path: &Path) -> Entry {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    Entry { fd, kind: Kind::Listener, name: name.unwrap_or_default(), path: Some(path.to_owned()) }
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, listen, socket_with};

    use super::*;

    fn add(inherited: &mut Inherited, kind: Kind, descriptor: OwnedFd) -> Result<(), String> {
        let path = Some(PathBuf::from("/run/weft/n/x.sock"));
        inherited.add(Entry { fd: 9, kind, name: "x".to_owned(), path }, descriptor)
    }

    fn socket(listening: bool) -> OwnedFd {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        if listening {
            let name = format!("weft-inherit-{}", std::process::id());
            let address = rustix::net::SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
            rustix::net::bind(&socket, &address).unwrap();
            listen(&socket, 1).unwrap();
        }
        socket
    }

    fn file() -> OwnedFd {
        std::fs::File::open("/dev/null").unwrap().into()
    }

    #[test]
    fn the_variable_is_read_as_it_was_written() {
        let path = Path::new("/run/weft/n/x.sock");
        let secret = Entry { fd: 4, kind: Kind::Secret, name: "secret".to_owned(), path: None };
        let entries = vec![listener(3, path), secret];
        let text = variable(&entries).unwrap();
        assert_eq!(
            text,
            r#"[{"fd":3,"kind":"listener","name":"x.sock","path":"/run/weft/n/x.sock"},{"fd":4,"kind":"secret","name":"secret"}]"#
        );
        assert_eq!(serde_json::from_str::<Vec<Entry>>(&text).unwrap(), entries);
    }

    #[test]
    fn a_secret_is_read_from_sealed_memory_only() {
        let secret = Secret::new([3; 32]);
        let mut inherited = Inherited::default();
        add(&mut inherited, Kind::Secret, secret_descriptor(&secret).unwrap()).unwrap();
        assert_eq!(inherited.secret, Some(secret.clone()));
        let key = Secret::new([4; 32]);
        add(&mut inherited, Kind::Key, secret_descriptor(&key).unwrap()).unwrap();
        assert_eq!((&inherited.secret, &inherited.key), (&Some(secret.clone()), &Some(key)));
        let again = add(&mut inherited, Kind::Secret, secret_descriptor(&secret).unwrap());
        assert!(again.unwrap_err().contains("twice"));
        let open = memfd_create("x", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::io::write(&open, &[3; 32]).unwrap();
        let error = add(&mut Inherited::default(), Kind::Secret, open).unwrap_err();
        assert!(error.contains("`x` (descriptor 9) is no sealed file of 32 bytes"), "{error}");
    }

    #[test]
    fn a_descriptor_is_what_it_is_said_to_be() {
        let mut inherited = Inherited::default();
        let wrong = [
            (Kind::Listener, file(), "no listening socket"),
            (Kind::Listener, socket(false), "no listening socket"),
            (Kind::Channel, file(), "no connection"),
            (Kind::Secret, file(), "no sealed file"),
        ];
        for (kind, descriptor, words) in wrong {
            let error = add(&mut inherited, kind, descriptor).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        add(&mut inherited, Kind::Listener, socket(true)).unwrap();
        add(&mut inherited, Kind::Channel, socket(false)).unwrap();
        add(&mut inherited, Kind::Kept, file()).unwrap();
        assert!(add(&mut inherited, Kind::Kept, file()).unwrap_err().contains("twice"));
        assert!(inherited.listeners.contains_key(Path::new("/run/weft/n/x.sock")));
        assert!(inherited.channels.contains_key("x") && inherited.kept.contains_key("x"));
    }
}
