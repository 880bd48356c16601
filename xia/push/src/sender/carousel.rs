//! Which block is sent next, and which of its symbols.
//!
//! The idea of a digital fountain (Byers, Luby, Mitzenmacher, Rege: "A Digital Fountain Approach to
//! Reliable Distribution of Bulk Data", SIGCOMM 1998): after the source symbols of all blocks come
//! rounds of repair symbols that were never sent before, so whatever a receiver lost, each symbol it
//! gets is new to it. The ids of the repair symbols begin at a random place, so that a sender that was
//! started again does not repeat those of its former life.

use crate::code;
use crate::object::{Description, Extent};
use crate::sender::config::{Limit, share};

/// One visit to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Visit {
    /// Zero is the source round.
    pub(super) round: u32,
    pub(super) block: Extent,
    /// First id and number of the repair symbols to send; `None` for all source symbols.
    pub(super) repair: Option<(u32, u32)>,
}

/// The endless sequence of visits.
pub(super) struct Carousel {
    description: Description,
    length: u64,
    limit: Limit,
    round_percent: u32,
    /// Where repair ids begin, counted from K.
    base: u32,
    round: u32,
    offset: u64,
}

impl Carousel {
    pub(super) fn new(
        description: Description,
        length: u64,
        limit: Limit,
        round_percent: u32,
        base: u32,
    ) -> Self {
        Self { description, length, limit, round_percent, base, round: 0, offset: 0 }
    }

    /// The next visit; `None` if the limit is reached or there is nothing to send.
    pub(super) fn next(&mut self) -> Option<Visit> {
        let mut idle_round = false;
        loop {
            let Some(block) = self.description.file_block(self.length, self.offset) else {
                // A round in which no block had anything to send is the end.
                if idle_round || self.offset == 0 || self.is_last_round() {
                    return None;
                }
                (self.round, self.offset, idle_round) = (self.round + 1, 0, true);
                continue;
            };
            self.offset = block.end();
            if self.round == 0 {
                return Some(Visit { round: 0, block, repair: None });
            }
            let (first, count) = self.repair(block);
            if count > 0 {
                return Some(Visit { round: self.round, block, repair: Some((first, count)) });
            }
        }
    }

    fn is_last_round(&self) -> bool {
        match self.limit {
            Limit::UntilStopped | Limit::Overhead(_) => self.round == u32::MAX,
            Limit::Rounds(rounds) => self.round >= rounds,
        }
    }

    /// First id and number of the repair symbols of a block in this round.
    fn repair(&self, block: Extent) -> (u32, u32) {
        let symbols = block.symbols(self.description.symbol_size);
        let per_round = share(symbols, self.round_percent);
        let before = u64::from(per_round) * u64::from(self.round - 1);
        let count = match self.limit {
            Limit::Overhead(percent) => {
                let left = u64::from(share(symbols, percent)).saturating_sub(before);
                per_round.min(u32::try_from(left).unwrap_or(u32::MAX))
            }
            Limit::UntilStopped | Limit::Rounds(_) => per_round,
        };
        let first = code::advance(symbols, symbols, self.base);
        // The id space has less than 2^24 ids, so reducing the number of steps first loses nothing.
        let space = u64::from(crate::object::ESI_END - symbols);
        (code::advance(symbols, first, (before % space) as u32), count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carousel(length: u64, limit: Limit) -> Carousel {
        let description = Description { name: "a".into(), symbol_size: 10, block_size: 1000 };
        Carousel::new(description, length, limit, 5, 7)
    }

    /// Round, offset of the block, and first id and number of repair symbols.
    type Row = (u32, u64, Option<(u32, u32)>);

    fn all(mut carousel: Carousel) -> Vec<Row> {
        std::iter::from_fn(|| carousel.next())
            .map(|visit| (visit.round, visit.block.offset, visit.repair))
            .collect()
    }

    #[test]
    fn source_symbols_come_once_then_fresh_repair_symbols() {
        assert_eq!(
            all(carousel(1010, Limit::Rounds(2))),
            [
                (0, 0, None),
                (0, 1000, None),
                (1, 0, Some((107, 5))),
                (1, 1000, Some((8, 2))),
                (2, 0, Some((112, 5))),
                (2, 1000, Some((10, 2))),
            ]
        );
    }

    #[test]
    fn overhead_is_spread_over_rounds() {
        let sent = all(carousel(2000, Limit::Overhead(12)));
        let of_first: Vec<_> =
            sent.iter().filter(|visit| visit.1 == 0).map(|visit| visit.2).collect();
        assert_eq!(of_first, [None, Some((107, 5)), Some((112, 5)), Some((117, 2))]);
        assert_eq!(all(carousel(2000, Limit::Rounds(0))).len(), 2);
    }

    #[test]
    fn an_empty_file_has_nothing_to_send() {
        assert_eq!(all(carousel(0, Limit::UntilStopped)), []);
    }

    #[test]
    fn it_goes_on_until_stopped() {
        let mut carousel = carousel(1, Limit::UntilStopped);
        let visits: Vec<_> = (0..10_000).map(|_| carousel.next().unwrap()).collect();
        assert_eq!(visits[9_999].round, 9_999);
        assert_eq!(visits[9_999].repair, Some((8 + 2 * 9_998, 2)));
    }
}
