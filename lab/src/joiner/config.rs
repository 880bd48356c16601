//! The file that tells the joining process what to do, and that is replaced to change it.

use std::fs;
use std::io;
use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weft_runtime::LinkConfig;

use crate::LabError;

/// The links that one process joins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Config {
    /// Counts the changes; the process reports which one it works by.
    pub(crate) generation: u64,
    pub(crate) links: Vec<JoinedLink>,
}

/// A link between two interfaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JoinedLink {
    /// The interfaces whose frames are moved, each with the seed of the faults that frames suffer
    /// which come in there.
    pub(crate) ends: [(String, u64); 2],
    pub(crate) rate: Option<NonZeroU64>,
    pub(crate) delay: Duration,
    pub(crate) jitter: Duration,
    /// These three in parts per billion.
    pub(crate) loss: u32,
    pub(crate) duplicate: u32,
    pub(crate) reorder: u32,
    /// The length of the queue.
    pub(crate) queue_packets: usize,
    pub(crate) queue_bytes: usize,
    /// Whether nothing passes.
    pub(crate) cut: bool,
}

impl JoinedLink {
    /// A link with these properties.
    pub(crate) fn new(ends: [(String, u64); 2], model: &LinkConfig) -> Self {
        Self {
            ends,
            rate: model.rate,
            delay: model.delay,
            jitter: model.jitter,
            loss: model.loss,
            duplicate: model.duplicate,
            reorder: model.reorder,
            queue_packets: model.queue_packets,
            queue_bytes: model.queue_bytes,
            cut: false,
        }
    }

    /// Its properties.
    pub(crate) fn model(&self) -> LinkConfig {
        LinkConfig {
            rate: self.rate,
            delay: self.delay,
            jitter: self.jitter,
            loss: self.loss,
            duplicate: self.duplicate,
            reorder: self.reorder,
            queue_packets: self.queue_packets,
            queue_bytes: self.queue_bytes,
            ..LinkConfig::default()
        }
    }
}

impl Config {
    /// Reads the file.
    pub(crate) fn read(path: &Path) -> Result<Self, LabError> {
        let read = || -> io::Result<Self> { Ok(serde_json::from_slice(&fs::read(path)?)?) };
        read().map_err(LabError::disk("read", path))
    }

    /// Writes the file, in one step as its reader sees it.
    pub(crate) fn write(&self, path: &Path) -> Result<(), LabError> {
        let new = path.with_extension("new");
        let write = || -> io::Result<()> {
            fs::write(&new, serde_json::to_vec(self)?)?;
            fs::rename(&new, path)
        };
        write().map_err(LabError::disk("write", path))
    }

    /// What the process writes when it works by this configuration.
    pub(crate) fn report(&self) -> String {
        format!("links joined, generation {}.", self.generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_comes_back_as_it_was() {
        let model = LinkConfig {
            rate: NonZeroU64::new(1000),
            delay: Duration::from_millis(1),
            jitter: Duration::from_millis(2),
            loss: 3,
            duplicate: 4,
            reorder: 5,
            queue_packets: 6,
            queue_bytes: 7,
            ..LinkConfig::default()
        };
        let link = JoinedLink::new([("a".into(), 1), ("b".into(), 2)], &model);
        let text = serde_json::to_vec(&link).unwrap();
        let read: JoinedLink = serde_json::from_slice(&text).unwrap();
        assert_eq!(read.model(), model);
    }
}
