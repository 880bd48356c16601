//! `save FILE`: what runs as a file from which the node can be started.
//!
//! What the manager shows has its secrets masked. The file of the revision has them, and whoever may read that may have them:
//! root, and the user that runs the node.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::call::Reach;
use crate::node::history;

/// Writes a revision to a file, which its owner alone may read.
///
/// # Errors
/// The node is on another machine, or a file cannot be read or written.
pub(super) fn save(reach: &Reach, revision: u64, file: &Path) -> Result<String, String> {
    let Reach::Here(directory) = reach else {
        return Err(
            "secrets do not leave the node's machine: say `save` there, as root or as the user that runs the node"
                .to_owned(),
        );
    };
    let kept = history(directory).join(weft_commit::file_name(revision));
    let text = fs::read(&kept).map_err(|error| {
        format!(
            "cannot read the revision {}: {error}; root may, and the user that runs the node",
            kept.display()
        )
    })?;
    write(file, &text).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    Ok(format!("revision {revision} is in {}", file.display()))
}

/// Writes the whole file beside its place first, so that no crash leaves a node without a file to start from.
fn write(file: &Path, text: &[u8]) -> std::io::Result<()> {
    let mut name = file.as_os_str().to_owned();
    name.push(".unfinished");
    let unfinished = Path::new(&name);
    let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(unfinished)?;
    let done = to.write_all(text).and_then(|()| to.sync_all());
    let done = done.and_then(|()| fs::rename(unfinished, file));
    if done.is_err() {
        // What is not whole is of no use; why it is not is told.
        let _ = fs::remove_file(unfinished);
    }
    done
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_revision_is_saved_with_its_secrets_for_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let reach = Reach::directory(directory.path());
        let file = directory.path().join("r1.conf");
        let missing = save(&reach, 7, &file).unwrap_err();
        assert!(missing.contains("0000000007.conf") && !file.exists(), "{missing}");
        let kept = history(directory.path());
        fs::create_dir_all(&kept).unwrap();
        fs::write(kept.join("0000000007.conf"), "version 1; # secret\n").unwrap();
        fs::write(&file, "of before").unwrap();
        save(&reach, 7, &file).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "version 1; # secret\n");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "nothing is left beside it");
    }
}
