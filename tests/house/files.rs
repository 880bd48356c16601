//! The files of the repository, without what is built or not ours.

use std::fs;
use std::path::{Path, PathBuf};

use crate::workspace;

/// Folders that hold nothing anybody wrote, as seen from the repository's root.
const SKIPPED: &[&str] =
    &[".git", "target", "docs/book", "fuzz/target", "fuzz/artifacts", "fuzz/corpus", "lab-out"];

/// A file of the repository.
pub(crate) struct SourceFile {
    /// Path as seen from the repository's root.
    pub(crate) path: String,
    /// Content; bytes that are not UTF-8 are replaced.
    pub(crate) text: String,
}

/// All files whose path ends in one of `endings`, in the order of their paths.
pub(crate) fn ending_in(endings: &[&str]) -> Vec<SourceFile> {
    let wanted = |path: &PathBuf| {
        let name = path.to_string_lossy();
        endings.iter().any(|ending| name.ends_with(ending))
    };
    let mut found = Vec::new();
    walk(&workspace::root(), &mut found);
    found.retain(wanted);
    found.sort();
    found.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> SourceFile {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    SourceFile {
        path: workspace::relative(path),
        text: String::from_utf8_lossy(&bytes).into_owned(),
    }
}

/// Collects the files below `folder`; symbolic links are not followed, so it comes to an end.
fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_file() {
            found.push(path);
        } else if kind.is_dir() && !is_skipped(&path) {
            walk(&path, found);
        }
    }
}

/// Whether a folder is in the list above, a cargo target directory under another name, or what Python
/// has compiled.
fn is_skipped(folder: &Path) -> bool {
    SKIPPED.contains(&workspace::relative(folder).as_str())
        || folder.join("CACHEDIR.TAG").exists()
        || folder.ends_with("__pycache__")
}
