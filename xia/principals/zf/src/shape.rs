//! What the links of a word have in common.

use crate::filter::Bits;

/// Positions in a window; see [`Codes`](crate::codes::Codes). The first window begins at 0.
const WINDOW: usize = 128;
/// The first position of the second window, which ends with the last.
pub(crate) const SECOND_WINDOW: usize = crate::FILTER_BITS as usize - WINDOW;

/// What the links of a word have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// A bit that each of them has: without it in the filter no link of the word is held.
    pub(crate) head: Option<usize>,
    /// How many codes are enough for each of them, its head aside.
    pub(crate) width: usize,
}

impl Shape {
    /// The one with the fewest codes that the link fits. It has the bit `head`, if that is one.
    pub(crate) fn of(link: Bits, head: Option<usize>) -> Self {
        let rest = head.map_or(link, |head| link.without(head));
        let (mut low, mut high, mut all) = (0, 0, 0);
        for position in rest.positions() {
            low += usize::from(is_low(position));
            high += usize::from(is_high(position));
            all += 1;
        }
        // Half of the codes are of the first window, rounded up, and the others of the second.
        let width = all.max((2 * low).saturating_sub(1)).max(2 * high);
        Self { head, width }
    }

    /// Whether the link can be in the word.
    pub(crate) fn fits(self, link: Bits) -> bool {
        self.head.is_none_or(|head| link.has(head)) && Self::of(link, self.head).width <= self.width
    }
}

/// Whether the position is in the first window only.
pub(crate) fn is_low(position: usize) -> bool {
    position < SECOND_WINDOW
}

/// Whether the position is in the second window only.
pub(crate) fn is_high(position: usize) -> bool {
    position >= WINDOW
}
