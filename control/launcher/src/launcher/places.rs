//! The directories of a node: its run directory, and in it one for the files of each instance.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FlockOperation, Gid, Uid, chownat, flock};
use rustix::io::Errno;

use super::remove::{empty, remove_all};
use crate::name::Name;

/// The folder of the instances' own folders.
const STATE: &str = "state";
/// Whose lock says that a node runs here.
const LOCK: &str = "launcher.lock";
/// How deep below a directory its files are given away.
const DEPTH: usize = 8;

/// Makes the run directory, if it is not there, and claims it for this launcher.
pub(super) fn claim(run_directory: &Path) -> Result<File, String> {
    let shown = run_directory.display();
    if !run_directory.is_absolute() || run_directory.to_str().is_none() {
        return Err(format!("the run directory {shown} must be an absolute path in UTF-8"));
    }
    let sentence = |error: io::Error| format!("cannot use the run directory {shown}: {error}");
    match DirBuilder::new().mode(0o755).create(run_directory) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(sentence(error)),
        _ => {}
    }
    let found = fs::symlink_metadata(run_directory).map_err(sentence)?;
    let ours = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
    if !ours || found.mode() & 0o022 != 0 {
        return Err(format!(
            "the run directory {shown} must belong to the user who runs the node, and nobody else \
             may write to it"
        ));
    }
    // Processes with users of their own reach their sockets and folders through it.
    if found.mode() & 0o011 != 0o011 {
        let mode = Permissions::from_mode(found.mode() & 0o777 | 0o011);
        fs::set_permissions(run_directory, mode).map_err(sentence)?;
    }
    let lock = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(run_directory.join(LOCK))
        .map_err(sentence)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        format!("another node runs in {shown}: end it, or choose another directory")
    })?;
    Ok(lock)
}

/// Removes what an earlier node left, and makes the folder for the instances' own anew.
pub(super) fn clear_state(run_directory: &Path) -> Result<(), String> {
    let state = run_directory.join(STATE);
    let sentence = |error: io::Error| format!("cannot make {} anew: {error}", state.display());
    match remove_all(&state) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(sentence(errno.into())),
    }
    DirBuilder::new().mode(0o711).create(&state).map_err(sentence)
}

/// The folder of an instance, which belongs to its user and to nobody else.
pub(super) fn state(
    run_directory: &Path,
    instance: &Name,
    user: Option<(u32, u32)>,
) -> Result<PathBuf, String> {
    let folder = run_directory.join(STATE).join(instance.as_str());
    let sentence = |error: io::Error| format!("cannot make {}: {error}", folder.display());
    match DirBuilder::new().mode(0o700).create(&folder) {
        Ok(()) => own(&folder, user).map_err(sentence)?,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            take_over(&folder, user).map_err(sentence)?;
        }
        Err(error) => return Err(sentence(error)),
    }
    Ok(folder)
}

/// Gives a folder that is there already to a user. What another one has left in it goes.
fn take_over(folder: &Path, user: Option<(u32, u32)>) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    if user.is_none_or(|(uid, _)| uid == found.uid()) {
        return Ok(());
    }
    empty(folder)?;
    own(folder, user)?;
    fs::set_permissions(folder, Permissions::from_mode(0o700))
}

/// Removes the folder of an instance.
pub(super) fn remove_state(run_directory: &Path, instance: &Name) {
    // What stays goes with the next node.
    let _ = remove_all(&run_directory.join(STATE).join(instance.as_str()));
}

/// Makes a directory, if it is not there, and gives it and what is inside to a user.
///
/// Nobody may change it meanwhile but users who are trusted: the manager is not started yet.
pub(super) fn give(directory: &Path, uid: u32, gid: u32) -> Result<(), String> {
    let sentence = |error| format!("cannot give {} to the manager: {error}", directory.display());
    DirBuilder::new().recursive(true).mode(0o750).create(directory).map_err(sentence)?;
    give_all(directory, uid, gid, DEPTH).map_err(sentence)
}

fn give_all(path: &Path, uid: u32, gid: u32, depth: usize) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    // A file with other names may be somebody else's file.
    if found.is_file() && found.nlink() > 1 {
        return Ok(());
    }
    if found.uid() != uid {
        own(path, Some((uid, gid)))?;
    }
    if found.is_dir() && depth > 0 {
        for entry in fs::read_dir(path)? {
            give_all(&entry?.path(), uid, gid, depth - 1)?;
        }
    }
    Ok(())
}

fn own(path: &Path, user: Option<(u32, u32)>) -> io::Result<()> {
    let Some((uid, gid)) = user else { return Ok(()) };
    let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
    Ok(chownat(CWD, path, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_directory_is_made_passable_and_claimed_once() {
        let directory = tempfile::tempdir().unwrap();
        let run = directory.path().join("n");
        DirBuilder::new().mode(0o700).create(&run).unwrap();
        let lock = claim(&run).unwrap();
        assert_eq!(fs::metadata(&run).unwrap().mode() & 0o777, 0o711);
        assert!(claim(&run).unwrap_err().contains("another node runs"));
        drop(lock);
        claim(&run).unwrap();
        fs::set_permissions(&run, Permissions::from_mode(0o777)).unwrap();
        assert!(claim(&run).unwrap_err().contains("nobody else may write"));
        assert!(claim(Path::new("n")).unwrap_err().contains("absolute"));
        let missing = directory.path().join("a/b");
        assert!(claim(&missing).unwrap_err().contains("cannot use the run directory"));
    }

    #[test]
    fn the_folder_of_another_user_is_emptied_and_given_to_the_new_one() {
        if !rustix::process::geteuid().is_root() {
            return weft_port::testing::lacks("root");
        }
        let directory = tempfile::tempdir().unwrap();
        clear_state(directory.path()).unwrap();
        let name: Name = "a".parse().unwrap();
        let of = |uid| state(directory.path(), &name, Some((uid, uid))).unwrap();
        let folder = of(4_242);
        fs::write(folder.join("file"), "x").unwrap();
        // It is started again.
        assert!(of(4_242).join("file").exists());
        fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
        let found = fs::metadata(of(4_243)).unwrap();
        assert_eq!((found.uid(), found.gid(), found.mode() & 0o777), (4_243, 4_243, 0o700));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    }

    #[test]
    fn what_is_given_away_is_given_whole_but_for_files_with_other_names() {
        if !rustix::process::geteuid().is_root() {
            return weft_port::testing::lacks("root");
        }
        let directory = tempfile::tempdir().unwrap();
        let conf = directory.path().join("conf");
        fs::create_dir_all(conf.join("history")).unwrap();
        for file in ["conf/node.conf", "conf/history/1", "foreign"] {
            fs::write(directory.path().join(file), "x").unwrap();
        }
        fs::hard_link(directory.path().join("foreign"), conf.join("link")).unwrap();
        std::os::unix::fs::symlink(directory.path().join("foreign"), conf.join("symlink")).unwrap();
        give(&conf, 4_242, 4_243).unwrap();
        let owner = |path: &str| {
            let found = fs::symlink_metadata(directory.path().join(path)).unwrap();
            (found.uid(), found.gid())
        };
        for path in ["conf", "conf/node.conf", "conf/history", "conf/history/1", "conf/symlink"] {
            assert_eq!(owner(path), (4_242, 4_243), "{path}");
        }
        assert_eq!(owner("foreign").0, 0);
    }
}
