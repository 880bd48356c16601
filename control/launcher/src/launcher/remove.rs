//! Removing what an instance left, however deep it is.
//!
//! Directories are not entered one below the other, which would take a descriptor for each: those that are in one
//! are moved up to the top, until none has anything in it. No symbolic link is followed.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, chmod, openat, renameat, rmdir, unlinkat};
use rustix::io::{Errno, Result};
use rustix::path::Arg;

/// Removes a directory and all that is in it.
pub(super) fn remove_all(directory: &Path) -> Result<()> {
    empty(directory)?;
    rmdir(directory)
}

/// Removes all that is in a directory.
pub(super) fn empty(directory: &Path) -> Result<()> {
    let top = open(CWD, directory)?;
    let mut moved = 0;
    // What is moved to the top while that is being read may be found only when it is read again.
    while each(&top, |name| remove(&top, name, |inside| lift(inside, &top, &mut moved)))? {}
    Ok(())
}

/// Does something with all that is in a directory; whether there was anything.
fn each(directory: &OwnedFd, mut what: impl FnMut(&CStr) -> Result<()>) -> Result<bool> {
    let mut found = false;
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            found = true;
            what(name)?;
        }
    }
    Ok(found)
}

/// Removes something; a directory when a function has emptied it.
fn remove(parent: &OwnedFd, name: &CStr, empty: impl FnOnce(&OwnedFd) -> Result<()>) -> Result<()> {
    match unlinkat(parent, name, AtFlags::empty()) {
        // The latter is what POSIX wants for directories.
        Err(Errno::ISDIR | Errno::PERM) => {}
        done => return done,
    }
    match unlinkat(parent, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOTEMPTY | Errno::EXIST) => {}
        done => return done,
    }
    empty(&open(parent, name)?)?;
    unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// Empties a directory: what is no directory goes, and what is one is moved to the top.
fn lift(directory: &OwnedFd, top: &OwnedFd, moved: &mut u64) -> Result<()> {
    each(directory, |name| {
        match unlinkat(directory, name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => {}
            done => return done,
        }
        let mut allowed = false;
        loop {
            *moved += 1;
            match renameat(directory, name, top, format!("{moved}")) {
                // Something is called so already.
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
                // Its owner must be allowed to write to it.
                Err(Errno::ACCESS) if !allowed => {
                    allowed = true;
                    allow(directory, name)?;
                }
                done => return done,
            }
        }
    })?;
    Ok(())
}

/// Opens a directory to read it, whatever its owner has forbidden.
fn open(parent: impl AsFd, name: impl Arg + Copy) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = openat(&parent, name, flags, Mode::empty());
    let Err(Errno::ACCESS) = opened else { return opened };
    allow(&parent, name)?;
    openat(&parent, name, flags, Mode::empty())
}

/// Allows its owner everything in a directory. A symbolic link is no directory.
fn allow(parent: impl AsFd, name: impl Arg) -> Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = openat(parent, name, flags, Mode::empty())?;
    chmod(format!("/proc/self/fd/{}", place.as_raw_fd()), Mode::RWXU)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    use rustix::process::{Resource, getrlimit, setrlimit};

    use super::*;

    /// Set for the process of a test that has few descriptors.
    const FEW: &str = "WEFT_TEST_FEW_DESCRIPTORS";

    #[test]
    fn directories_are_removed_however_deep_they_are() {
        if std::env::var_os(FEW).is_none() {
            let test = "launcher::remove::tests::directories_are_removed_however_deep_they_are";
            let mut command = Command::new(std::env::current_exe().unwrap());
            let status = command.args(["--exact", test]).env(FEW, "1").status().unwrap();
            assert!(status.success());
            return;
        }
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = Some(32);
        setrlimit(Resource::Nofile, limit).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().join("state");
        // Some have the names that others get at the top.
        for (name, levels) in [("1", 3), ("2", 0), ("deep", 1_500)] {
            let deep = top.join(name).join("1/".repeat(levels));
            fs::create_dir_all(&deep).unwrap();
            fs::write(deep.join("file"), "x").unwrap();
        }
        remove_all(&top).unwrap();
        assert!(!top.exists());
    }

    #[test]
    fn what_links_lead_to_stays() {
        let directory = tempfile::tempdir().unwrap();
        let (top, other) = (directory.path().join("state"), directory.path().join("other"));
        fs::create_dir_all(top.join("a/b")).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("file"), "x").unwrap();
        for link in ["link", "a/link", "a/b/link"] {
            std::os::unix::fs::symlink(&other, top.join(link)).unwrap();
        }
        empty(&top).unwrap();
        assert_eq!(fs::read_dir(&top).unwrap().count(), 0);
        assert!(other.join("file").exists());
        std::os::unix::fs::symlink(&other, top.join("link")).unwrap();
        assert!(empty(&top.join("link")).is_err());
        assert!(other.join("file").exists());
    }

    #[test]
    fn what_its_owner_has_forbidden_is_removed_nevertheless() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().join("state");
        fs::create_dir_all(top.join("a/b/c")).unwrap();
        for path in ["a/b", "a"] {
            fs::set_permissions(top.join(path), PermissionsExt::from_mode(0o000)).unwrap();
        }
        remove_all(&top).unwrap();
        assert!(!top.exists());
    }
}
