//! A directory for the files of a benchmark, which goes with it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// How many there were.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// The directory; removed when this is dropped.
pub(super) struct Directory(pub(super) PathBuf);

impl Directory {
    /// A new one. Whoever finds it later sees by its name what it was.
    pub(super) fn new(bench: &str) -> Result<Self, String> {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("weft-bench-{bench}-{}-{count}", std::process::id());
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
