//! Network namespaces by name, and work inside of them.
//!
//! Reference: network_namespaces(7), setns(2), ip-netns(8).

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::LabError;

/// Where `ip netns` keeps its namespaces.
const DIRECTORY: &str = "/run/netns";

/// A network namespace that `ip netns` knows by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Namespace(String);

impl Namespace {
    /// The namespace called `name`, which need not exist yet.
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    fn path(&self) -> PathBuf {
        Path::new(DIRECTORY).join(&self.0)
    }

    /// Whether it exists.
    pub(crate) fn exists(&self) -> bool {
        self.path().exists()
    }

    /// What [`process_namespace`] says for the processes inside.
    pub(crate) fn id(&self) -> io::Result<(u64, u64)> {
        fs::metadata(self.path()).map(|file| (file.dev(), file.ino()))
    }

    /// Does `work` in this namespace, on a thread of its own: processes started by it and sockets
    /// opened by it stay there.
    pub(crate) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        let enter = || -> io::Result<T> {
            let file = File::open(self.path())?;
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(work())
        };
        let result = thread::scope(|scope| {
            scope.spawn(enter).join().map_err(|_| io::Error::other("the thread inside panicked"))
        });
        result
            .and_then(|inner| inner)
            .map_err(LabError::system(format!("enter the network namespace {}", self.0)))
    }
}

/// The network namespace of a process, as device and inode.
pub(crate) fn process_namespace(pid: u32) -> io::Result<(u64, u64)> {
    fs::metadata(format!("/proc/{pid}/ns/net")).map(|file| (file.dev(), file.ino()))
}
