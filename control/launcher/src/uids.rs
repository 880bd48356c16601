//! A block of uids for each node of a machine, and one of them for each of its processes.
//!
//! A node holds a lock on a file named after its block as long as it runs, so no two nodes ever
//! share a uid. In a block the first number is the manager's, and as gid that of all processes of the node;
//! the others go to instances.
//!
//! Reference: flock(2); for the numbers, [`Config::UID_BASE`](crate::Config::UID_BASE).

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::name::Name;
use crate::way::make_way;

/// How many uids a block has.
pub(crate) const BLOCK: u32 = 256;
/// How many blocks there are.
pub(crate) const BLOCKS: u32 = 1_024;

/// The uids of this node.
pub(crate) struct Uids {
    first: u32,
    number: u32,
    /// Held for its lock.
    _lock: File,
    given: BTreeMap<Name, u32>,
}

impl Uids {
    /// Takes a block that no other node has. A node gets the same block again if that is free, so that
    /// files of its manager keep their owner.
    pub(crate) fn claim(base: u32, locks: &Path, node: &str) -> Result<Self, String> {
        let sentence = |error| format!("cannot claim uids in {}: {error}", locks.display());
        // Above them are the run directories of nodes, which others have to reach.
        make_way(locks).map_err(sentence)?;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(locks).map_err(sentence)?;
        let preferred = hash(node) % BLOCKS;
        for offset in 0..BLOCKS {
            let number = (preferred + offset) % BLOCKS;
            let lock = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(locks.join(number.to_string()))
                .map_err(sentence)?;
            if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
                let first = base + number * BLOCK;
                return Ok(Self { first, number, _lock: lock, given: BTreeMap::new() });
            }
        }
        Err(format!("all {BLOCKS} blocks of uids are taken by other nodes: end one of them"))
    }

    /// The number of the block, which no other node of the machine has.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// The manager's uid.
    pub(crate) fn manager(&self) -> u32 {
        self.first
    }

    /// The gid of all processes of the node.
    pub(crate) fn group(&self) -> u32 {
        self.first
    }

    /// The uid of an instance: the same until it is released.
    pub(crate) fn of(&mut self, instance: &Name) -> Result<u32, String> {
        if let Some(uid) = self.given.get(instance) {
            return Ok(*uid);
        }
        let is_free = |uid: &u32| !self.given.values().any(|given| given == uid);
        let uid = (self.first + 1..self.first + BLOCK)
            .find(is_free)
            .ok_or_else(|| format!("a node has at most {} processes", BLOCK - 1))?;
        self.given.insert(instance.clone(), uid);
        Ok(uid)
    }

    /// Takes the uid of an instance back.
    pub(crate) fn release(&mut self, instance: &Name) {
        self.given.remove(instance);
    }
}

/// FNV-1a, so that a name has the same block in every version of weft.
pub(crate) fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    #[test]
    fn no_two_nodes_share_a_block_and_a_freed_one_is_found_again() {
        let locks = tempfile::tempdir().unwrap();
        let claim = |node: &str| Uids::claim(1_000, locks.path(), node).unwrap();
        let (a, b) = (claim("same"), claim("same"));
        let (first, second) = (a.manager(), b.manager());
        assert!(first.abs_diff(second) >= BLOCK);
        drop(a);
        assert_eq!(claim("same").manager(), first);
    }

    #[test]
    fn the_locks_are_private_and_the_way_to_them_is_not() {
        let root = tempfile::tempdir().unwrap();
        let locks = root.path().join("weft/.uids");
        Uids::claim(1_000, &locks, "n").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&locks), mode(&root.path().join("weft"))), (0o700, 0o755));
    }

    #[test]
    fn each_instance_has_a_uid_until_it_is_released() {
        let locks = tempfile::tempdir().unwrap();
        let mut uids = Uids::claim(1_000, locks.path(), "n").unwrap();
        let a = uids.of(&name("a")).unwrap();
        let b = uids.of(&name("b")).unwrap();
        assert_eq!(uids.of(&name("a")).unwrap(), a);
        assert!(a != b && a > uids.manager() && b > uids.manager());
        for n in 2..BLOCK - 1 {
            uids.of(&name(&format!("i{n}"))).unwrap();
        }
        assert!(uids.of(&name("one-more")).unwrap_err().contains("255"));
        uids.release(&name("a"));
        assert_eq!(uids.of(&name("one-more")).unwrap(), a);
    }

    #[test]
    fn all_uids_lie_where_nobody_else_has_any() {
        let last = crate::Config::UID_BASE + BLOCKS * BLOCK - 1;
        assert!(crate::Config::UID_BASE >= 1_879_048_192 && last < 2_147_352_576);
    }
}
