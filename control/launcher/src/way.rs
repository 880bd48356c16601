//! The way to a directory that others have to pass: processes with users of their own, and users who reach
//! the sockets of nodes that admit them.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

/// The mode of the directories on the way.
const MODE: u32 = 0o755;

/// Makes the directories above `directory` that are not there, so that everybody may pass them whatever
/// the umask of this process is.
///
/// # Errors
/// One of them cannot be made.
pub fn make_way(directory: &Path) -> io::Result<()> {
    let Some(above) = directory.parent().filter(|above| !above.as_os_str().is_empty()) else {
        return Ok(());
    };
    if above.is_dir() {
        return Ok(());
    }
    make_way(above)?;
    match DirBuilder::new().mode(MODE).create(above) {
        Ok(()) => fs::set_permissions(above, Permissions::from_mode(MODE)),
        // Another process was faster, and gives it its mode.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_may_pass_what_was_made_and_nothing_else_is_changed() {
        let root = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let before = mode(root.path());
        let directory = root.path().join("run/weft/.uids");
        make_way(&directory).unwrap();
        assert!(!directory.exists());
        assert_eq!(mode(&root.path().join("run")), MODE);
        assert_eq!(mode(&root.path().join("run/weft")), MODE);
        assert_eq!(mode(root.path()), before);
        make_way(&directory).unwrap();
        make_way(Path::new("here")).unwrap();
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(make_way(&file.join("below/it")).is_err());
    }
}
