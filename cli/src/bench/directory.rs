//! A directory for the files of a benchmark, which goes with it.

use std::path::PathBuf;

/// The directory; removed when this is dropped.
pub(super) struct Directory(pub(super) PathBuf);

impl Directory {
    /// A new one. Whoever finds it later sees by its name what it was.
    pub(super) fn new(bench: &str) -> Result<Self, String> {
        let name = format!("weft-bench-{bench}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).map_err(|error| super::cannot_write(&path, &error))?;
        Ok(Self(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
