//! Whole pushes over a bad network, in virtual time.

mod disk;
mod failures;
mod files;
mod full;
mod hostile;
mod limits;
mod network;
mod streams;

use std::path::Path;

use weft_base::Random;

use self::disk::Disk;
use self::network::{Link, Network};
use crate::receiver::{Destination, ReceiverConfig};
use crate::sender::{Limit, SenderConfig};

/// Random content of a file.
fn content(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Random::from_seed(seed).fill(&mut bytes);
    bytes
}

/// A sender of small symbols in small blocks.
fn small_sender(limit: Limit) -> SenderConfig {
    SenderConfig {
        symbol_size: 64,
        block_size: 64 * 50,
        rate: Some(10_000_000),
        limit,
        ..SenderConfig::new("/src/file.bin")
    }
}

fn source(content: &[u8]) -> Disk {
    Disk::with_file("/src/file.bin", content)
}

fn to_directory() -> ReceiverConfig {
    ReceiverConfig::new(Destination::Directory("/dst".into()))
}

fn lossy(loss: u64) -> Link {
    Link { loss, ..Link::default() }
}

/// A sender of standard input in small blocks.
fn stream_sender() -> SenderConfig {
    SenderConfig { path: "-".into(), stream_percent: 60, ..small_sender(Limit::UntilStopped) }
}

/// Standard input with something in it.
fn stdin(chunks: &[&[u8]], is_open: bool) -> Disk {
    let stdin = chunks.iter().map(|chunk| chunk.to_vec()).collect();
    Disk { stdin, stdin_open: is_open, ..Disk::default() }
}

/// The file a receiver should have, and nothing else beside it.
fn assert_only_file(network: &Network, receiver: usize, path: &str, content: &[u8]) {
    let files = &network.receivers[receiver].disk.files;
    assert!(
        files.get(Path::new(path)).is_some_and(|file| file.bytes() == content),
        "{path} differs"
    );
    assert_eq!(files.len(), 1, "left over: {:?}", files.keys());
}
