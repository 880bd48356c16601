//! How paths are called when peers are told several to a destination.
//!
//! Reference: RFC 7911 §3: an identifier is the choice of the speaker that sends it. All peers are told the same ones,
//! so that what they are told is encoded once; a path that a peer has told us is not called as that peer calls it, for
//! another peer may call one of its own so.

use std::collections::BTreeMap;

use weft_routing::OriginId;

/// The identifiers that are in use.
#[derive(Debug, Default)]
pub(crate) struct PathIds {
    /// By the source and its own identifier: ours, and how many have been told of such a path.
    used: BTreeMap<(OriginId, u32), (u32, u64)>,
    free: Vec<u32>,
    /// The highest that was ever in use.
    last: u32,
}

impl PathIds {
    /// The identifier of a path, which is told once more.
    pub(crate) fn take(&mut self, origin: OriginId, path: u32) -> u32 {
        let (free, last) = (&mut self.free, &mut self.last);
        let (id, uses) = self.used.entry((origin, path)).or_insert_with(|| {
            // Each in use takes more than four bytes.
            let id = free.pop().unwrap_or_else(|| {
                *last += 1;
                *last
            });
            (id, 0)
        });
        *uses += 1;
        *id
    }

    /// The identifier of a path that somebody has been told.
    pub(crate) fn get(&self, origin: OriginId, path: u32) -> Option<u32> {
        self.used.get(&(origin, path)).map(|(id, _)| *id)
    }

    /// A path is told once less.
    pub(crate) fn give(&mut self, origin: OriginId, path: u32) {
        if let Some((id, uses)) = self.used.get_mut(&(origin, path)) {
            *uses -= 1;
            if *uses == 0 {
                self.free.push(*id);
                self.used.remove(&(origin, path));
            }
        }
    }

    /// How many are in use.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.used.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_a_paths_as_long_as_somebody_knows_it() {
        let mut ids = PathIds::default();
        let (one, other) = (OriginId(1), OriginId(2));
        let first = ids.take(one, 7);
        assert_eq!((ids.take(one, 7), ids.get(one, 7)), (first, Some(first)));
        let second = ids.take(other, 7);
        assert_ne!(second, first, "each peer has its own names");
        ids.give(one, 7);
        assert_eq!(ids.take(one, 7), first);
        ids.give(one, 7);
        ids.give(one, 7);
        assert_eq!((ids.take(one, 8), ids.len()), (first, 2), "what nobody knows is used again");
        assert_eq!(ids.get(one, 7), None);
        ids.give(one, 9);
        assert_eq!(ids.len(), 2);
    }
}
