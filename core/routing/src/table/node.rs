//! A node: five bits of the way, and where they lead.
//!
//! Below a node lie 62 prefixes that are 1 to 5 bits longer than the way to it, and 32 children, one for
//! each string of 5 bits. (The root has the empty prefix, too.) Prefixes are numbered in *pre-order*: each
//! before those that it contains. So what contains a prefix has lower numbers and what it contains has
//! the numbers right behind it, and the longest of several that contain a name is the one with the
//! highest number.

/// Bits that a node decides on.
pub(super) const STRIDE: u8 = 5;
/// Most strides that a node can skip: 60 bits, as many as fit into its word.
pub(super) const MOST_SKIPPED: u8 = 12;

/// A node of the tree; half of a cache line.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// Which prefixes have values, by their [`number`].
    pub(super) prefixes: u64,
    /// The bits that all names below have in front of those that this node decides on, and that no
    /// other node decides on; at the front of the word, zeros behind.
    pub(super) path: u64,
    /// Which strings of 5 bits have children.
    pub(super) branches: u32,
    /// Where the children stand, in order.
    pub(super) children: u32,
    /// Where the values stand, in order of their numbers.
    pub(super) values: u32,
    /// Length of the path in strides.
    pub(super) skipped: u8,
}

impl Node {
    pub(super) fn value_count(&self) -> usize {
        self.prefixes.count_ones() as usize
    }

    pub(super) fn child_count(&self) -> usize {
        self.branches.count_ones() as usize
    }

    /// Bits of the path.
    #[inline]
    pub(super) fn path_bits(&self) -> u8 {
        self.skipped * STRIDE
    }

    /// Which of the values the prefix `number` has, or would have.
    #[inline]
    pub(super) fn value_index(&self, number: u8) -> u32 {
        (self.prefixes & !(u64::MAX << number)).count_ones()
    }

    /// Which of the children `branch` leads to, or would lead to.
    #[inline]
    pub(super) fn child_index(&self, branch: u8) -> u32 {
        (self.branches & !(u32::MAX << branch)).count_ones()
    }

    /// The child that `branch` leads to.
    #[inline]
    pub(super) fn child(&self, branch: u8) -> Option<u32> {
        (self.branches >> branch & 1 == 1).then(|| self.children + self.child_index(branch))
    }

    /// The first of the prefixes and branches that begin with `from` or more, `prefixes` with lower
    /// numbers left out.
    pub(super) fn first_from(&self, from: Place) -> Option<Found> {
        let number = first_set(self.prefixes & (u64::MAX << from.number));
        // A shift by 32 and more would be none.
        let later = u32::MAX.checked_shl(from.branch.into()).unwrap_or(0);
        let branch = first_set((self.branches & later).into());
        match (number, branch) {
            (Some(number), Some(branch)) if PLACES[usize::from(number)].branch > branch => {
                Some(Found::Branch(branch))
            }
            (Some(number), _) => Some(Found::Prefix(number)),
            (None, Some(branch)) => Some(Found::Branch(branch)),
            (None, None) => None,
        }
    }
}

/// Where the search among a node's prefixes and branches begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The lowest prefix that counts.
    pub(super) number: u8,
    /// The lowest branch that counts.
    pub(super) branch: u8,
}

impl Place {
    /// At the very first.
    pub(super) const FIRST: Self = Self { number: 0, branch: 0 };

    /// At the prefix with this bits and length, or behind it.
    pub(super) fn at(bits: u8, length: u8, behind: bool) -> Self {
        Self { number: number(bits, length) + u8::from(behind), branch: bits }
    }

    /// Behind all that begins with the bits of this branch.
    pub(super) fn behind(branch: u8) -> Self {
        Self { number: number(branch, STRIDE) + 1, branch: branch + 1 }
    }
}

/// What a node has at some place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    /// The value of this prefix.
    Prefix(u8),
    /// The child of this branch.
    Branch(u8),
}

/// The pre-order number, 0 to 62, of the prefix of `length` bits (0 to 5) at the front of `bits` (five
/// bits, zeros behind the prefix): before it come its own beginnings, and for each of its ones everything
/// that has a zero there, which is one less than twice the weight of the one.
pub(super) const fn number(bits: u8, length: u8) -> u8 {
    length + 2 * bits - bits.count_ones() as u8
}

/// The first 5 bits of a word.
#[inline]
pub(super) const fn branch_of(front: u64) -> u8 {
    (front >> (64 - STRIDE)) as u8
}

/// The bits and the length of each numbered prefix.
pub(super) const PLACES: [NumberedPrefix; 63] = {
    let mut places = [NumberedPrefix { branch: 0, length: 0 }; 63];
    let mut length = 0;
    while length <= STRIDE {
        let mut bits = 0;
        while bits < 1 << STRIDE {
            places[number(bits, length) as usize] = NumberedPrefix { branch: bits, length };
            bits += 1 << (STRIDE - length);
        }
        length += 1;
    }
    places
};

/// A prefix below a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumberedPrefix {
    /// Its bits, and zeros behind to five.
    pub(super) branch: u8,
    /// Its length.
    pub(super) length: u8,
}

/// For each number of bits that are left (5 stands for more) and each string of five bits the numbers
/// of all prefixes that it begins with.
pub(super) const LINES: [[u64; 32]; 6] = {
    let mut lines = [[0; 32]; 6];
    let mut left = 0;
    while left <= STRIDE {
        let mut bits = 0;
        while bits < 1 << STRIDE {
            let mut length = 0;
            while length <= left {
                let kept = bits & !((1 << (STRIDE - length)) - 1);
                lines[left as usize][bits as usize] |= 1 << number(kept, length);
                length += 1;
            }
            bits += 1;
        }
        left += 1;
    }
    lines
};

fn first_set(bits: u64) -> Option<u8> {
    (bits != 0).then(|| bits.trailing_zeros() as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_half_a_cache_line() {
        assert_eq!(size_of::<Node>(), 32);
    }

    #[test]
    fn numbers_are_those_of_a_walk_in_pre_order() {
        fn walk(bits: u8, length: u8, next: &mut u8) {
            assert_eq!(number(bits, length), *next, "{bits:05b}/{length}");
            let place = PLACES[usize::from(*next)];
            assert_eq!((place.branch, place.length), (bits, length));
            *next += 1;
            if length < STRIDE {
                walk(bits, length + 1, next);
                walk(bits | 1 << (STRIDE - length - 1), length + 1, next);
            }
        }
        let mut next = 0;
        walk(0, 0, &mut next);
        assert_eq!(next, 63);
    }

    #[test]
    fn a_line_holds_the_prefixes_of_a_branch_that_are_short_enough() {
        for left in 0..=STRIDE {
            for bits in 0..32 {
                let line = LINES[usize::from(left)][usize::from(bits)];
                for (number, prefix) in PLACES.iter().enumerate() {
                    let rest = STRIDE - prefix.length;
                    let begins = prefix.length <= left && bits >> rest == prefix.branch >> rest;
                    assert_eq!(line >> number & 1 == 1, begins, "{left} {bits:05b} {prefix:?}");
                }
            }
        }
    }
}
