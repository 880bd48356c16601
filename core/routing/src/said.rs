//! What a reader of a table has said of destinations, by their numbers: nothing, or from which origin the route came.
//!
//! Reference: Handley et al. (XORP), §5.1 (what is deleted was added before). Two bytes for a destination, so that a reader
//! knows whether a withdrawal is due, and to whom, without a copy of the table.

use crate::OriginId;

/// Nothing was said.
const NOTHING: u16 = u16::MAX;

/// What one reader has said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said(Vec<u16>);

impl Said {
    /// From which origin the route came that was said last; none if it was withdrawn, or nothing was ever said.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<OriginId> {
        let said = self.0.get(number as usize).copied().filter(|said| *said != NOTHING);
        said.map(OriginId)
    }

    /// Remembers what is said now; returns what was said before.
    pub fn set(&mut self, number: u32, origin: Option<OriginId>) -> Option<OriginId> {
        let place = number as usize;
        let before = self.get(number);
        if place >= self.0.len() {
            if origin.is_none() {
                return before;
            }
            if place >= self.0.capacity() {
                self.0.reserve_exact((place + 1 - self.0.len()).max(self.0.len() / 8).max(64));
            }
            self.0.resize(place + 1, NOTHING);
        }
        self.0[place] = origin.map_or(NOTHING, |origin| origin.0);
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_is_remembered() {
        let mut sent = Said::default();
        assert_eq!(sent.set(5, None), None);
        assert_eq!(sent.set(5, Some(OriginId(1))), None);
        assert_eq!(sent.set(5, Some(OriginId(2))), Some(OriginId(1)));
        assert_eq!((sent.get(5), sent.get(4), sent.get(6)), (Some(OriginId(2)), None, None));
        assert_eq!(sent.set(5, None), Some(OriginId(2)));
        assert_eq!(sent.get(5), None);
    }
}
