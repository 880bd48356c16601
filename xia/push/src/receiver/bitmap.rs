//! One bit per source symbol of a block.

/// A fixed number of bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bitmap {
    words: Box<[u64]>,
    len: u32,
    ones: u32,
}

impl Bitmap {
    pub(super) fn new(len: u32) -> Self {
        Self { words: vec![0; len.div_ceil(64) as usize].into(), len, ones: 0 }
    }

    pub(super) fn get(&self, bit: u32) -> bool {
        bit < self.len && self.words[bit as usize / 64] >> (bit % 64) & 1 == 1
    }

    pub(super) fn set(&mut self, bit: u32, value: bool) {
        if bit < self.len && self.get(bit) != value {
            self.words[bit as usize / 64] ^= 1 << (bit % 64);
            self.ones = if value { self.ones + 1 } else { self.ones - 1 };
        }
    }

    pub(super) fn set_range(&mut self, first: u32, count: u32, value: bool) {
        for bit in first..self.len.min(first.saturating_add(count)) {
            self.set(bit, value);
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// How many bits are set.
    pub(super) fn ones(&self) -> u32 {
        self.ones
    }

    /// The runs of bits that are `value`, as first bit and length.
    pub(super) fn runs(&self, value: bool) -> Vec<(u32, u32)> {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for bit in (0..self.len).filter(|bit| self.get(*bit) == value) {
            match runs.last_mut() {
                Some((first, count)) if *first + *count == bit => *count += 1,
                _ => runs.push((bit, 1)),
            }
        }
        runs
    }

    /// Bytes of memory on the heap.
    pub(super) fn memory(&self) -> usize {
        self.words.len() * 8
    }

    /// The bits as octets, the first bit lowest.
    pub(super) fn to_octets(&self) -> impl Iterator<Item = u8> + '_ {
        self.words.iter().flat_map(|word| word.to_le_bytes()).take(octets(self.len))
    }

    /// A bitmap from [`Bitmap::to_octets`]; `None` if there are too few octets or a bit is set
    /// behind the end.
    pub(super) fn from_octets(len: u32, octets: &[u8]) -> Option<Self> {
        if octets.len() != self::octets(len) {
            return None;
        }
        let mut map = Self::new(len);
        for (index, octet) in octets.iter().enumerate() {
            map.words[index / 8] |= u64::from(*octet) << (index % 8 * 8);
        }
        map.ones = map.words.iter().map(|word| word.count_ones()).sum();
        let excess = map.words.last().map_or(0, |word| word.checked_shr(len % 64).unwrap_or(0));
        (len.is_multiple_of(64) || excess == 0).then_some(map)
    }
}

/// How many octets [`Bitmap::to_octets`] gives for `len` bits.
pub(super) fn octets(len: u32) -> usize {
    len.div_ceil(8) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_set_counted_and_found() {
        let mut map = Bitmap::new(70);
        map.set_range(3, 4, true);
        map.set(69, true);
        map.set(69, true);
        map.set(70, true);
        assert_eq!(map.ones(), 5);
        assert_eq!(map.runs(true), [(3, 4), (69, 1)]);
        assert_eq!(map.runs(false), [(0, 3), (7, 62)]);
        map.set(4, false);
        assert_eq!((map.ones(), map.get(4), map.get(5), map.get(1000)), (4, false, true, false));
    }

    #[test]
    fn octets_come_back_and_bits_behind_the_end_are_refused() {
        for len in [1, 7, 8, 63, 64, 65, 130] {
            let mut map = Bitmap::new(len);
            map.set(0, true);
            map.set(len - 1, true);
            let octets: Vec<u8> = map.to_octets().collect();
            assert_eq!(Bitmap::from_octets(len, &octets), Some(map));
            assert_eq!(Bitmap::from_octets(len, &octets[1..]), None);
            if len % 8 != 0 {
                let full = vec![0xff; octets.len()];
                assert_eq!(Bitmap::from_octets(len, &full), None);
            }
        }
    }
}
