//! Bit strings that destinations begin with.
//!
//! The bits stand at the front of three words, the first of them highest, and zeros behind; so two
//! prefixes compare by their words as their texts would, and a prefix comes before all that it contains.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The most bits of a prefix: an XIA identifier (160) with its type.
pub const MAX_BITS: u8 = 192;

/// Bits of a word.
const WORD: u8 = 64;
/// Bytes that hold [`MAX_BITS`].
const BYTES: usize = MAX_BITS as usize / 8;

/// The first bits of names: `length` of them.
///
/// Ordered by the bits, and a prefix before those that it contains.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    words: [u64; 3],
    length: u8,
}

/// Bits and a length that are no prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// The length is above what the bytes have, or what a prefix can have.
    #[error("a prefix of {length} bits is too long, at most {most} are possible here")]
    TooLong {
        /// The length asked for, in bits.
        length: u8,
        /// The most that would do.
        most: u8,
    },
    /// A bit behind the prefix is set.
    #[error("bits behind the first {length} are set")]
    BitsBehind {
        /// The length, in bits.
        length: u8,
    },
}

impl Prefix {
    /// The prefix of everything, of length 0.
    pub const ALL: Self = Self { words: [0; 3], length: 0 };

    /// The first `length` bits of `bytes`, the highest bit of the first byte first. Bytes that are
    /// missing count as zeros, up to [`MAX_BITS`].
    ///
    /// # Errors
    /// A later bit is set, or the length is above [`MAX_BITS`].
    pub fn new(bytes: &[u8], length: u8) -> Result<Self, PrefixError> {
        let too_long = PrefixError::TooLong { length, most: MAX_BITS };
        if length > MAX_BITS {
            return Err(too_long);
        }
        let whole = Self::of(bytes).map_err(|_| too_long)?;
        let prefix = Self { length, ..whole }.truncate(length);
        if prefix.words == whole.words {
            Ok(prefix)
        } else {
            Err(PrefixError::BitsBehind { length })
        }
    }

    /// All bits of `bytes`.
    ///
    /// # Errors
    /// They are more than [`MAX_BITS`].
    pub fn of(bytes: &[u8]) -> Result<Self, PrefixError> {
        let mut padded = [0; BYTES];
        let too_long = PrefixError::TooLong { length: u8::MAX, most: MAX_BITS };
        padded.get_mut(..bytes.len()).ok_or(too_long)?.copy_from_slice(bytes);
        // At most 24 bytes, as was just seen.
        Ok(Self::from_padded(&padded, bytes.len() as u8 * 8))
    }

    /// The first `length` of these bits, the highest one first; all of them if that is more than 128.
    ///
    /// For those that read many prefixes: it neither fails nor looks at bytes.
    #[inline]
    #[must_use]
    pub const fn from_high_bits(bits: u128, length: u8) -> Self {
        let length = if length > 128 { 128 } else { length };
        // Shifting by all 128 bits is no shift to the processor, hence the question.
        let kept = if length == 0 { 0 } else { bits & u128::MAX << (128 - length) };
        Self { words: [(kept >> 64) as u64, kept as u64, 0], length }
    }

    /// The first 128 bits, zeros behind where it is shorter.
    #[inline]
    #[must_use]
    pub const fn high_bits(&self) -> u128 {
        (self.words[0] as u128) << 64 | self.words[1] as u128
    }

    fn from_padded(padded: &[u8; BYTES], length: u8) -> Self {
        let mut words = [0; 3];
        for (word, bytes) in words.iter_mut().zip(padded.as_chunks().0) {
            *word = u64::from_be_bytes(*bytes);
        }
        Self { words, length }
    }

    /// How many bits, at most [`MAX_BITS`].
    #[inline]
    #[must_use]
    pub const fn length(&self) -> u8 {
        self.length
    }

    /// The bits, and zeros behind.
    #[must_use]
    pub fn first(&self) -> [u8; BYTES] {
        bytes_of(self.words)
    }

    /// The bits, and ones behind: the last name of those that begin so.
    #[must_use]
    pub fn last(&self) -> [u8; BYTES] {
        let kept = mask(self.length);
        bytes_of(std::array::from_fn(|index| self.words[index] | !kept[index]))
    }

    /// The first `length` bits of it; the whole if it is not longer.
    #[must_use]
    pub fn truncate(&self, length: u8) -> Self {
        let length = length.min(self.length);
        let kept = mask(length);
        Self { words: std::array::from_fn(|index| self.words[index] & kept[index]), length }
    }

    /// Whether every name that begins with `other` begins with this, too.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        self.length <= other.length && other.truncate(self.length) == *self
    }

    /// The bits, and zeros behind, to be consumed from the front.
    pub(crate) const fn bits(&self) -> Bits {
        Bits(self.words)
    }

    /// The five bits behind the first `offset` (a multiple of five below the length, or 0).
    pub(crate) fn branch_at(&self, offset: u8) -> u8 {
        let (index, bit) = (usize::from(offset / WORD), offset % WORD);
        let next = self.words.get(index + 1).copied().unwrap_or(0);
        let front = (u128::from(self.words[index]) << 64 | u128::from(next)) << bit;
        (front >> (128 - 5)) as u8
    }

    /// This prefix and `count` (0 to 60) more bits, which stand at the front of `bits`, zeros behind
    /// them. Only for what fits.
    pub(crate) fn extend(&self, bits: u64, count: u8) -> Self {
        let (index, offset) = (usize::from(self.length / WORD), self.length % WORD);
        let mut words = self.words;
        if let Some(word) = words.get_mut(index) {
            *word |= bits >> offset;
        }
        if let Some(word) = words.get_mut(index + 1)
            && offset > 0
        {
            *word |= bits << (WORD - offset);
        }
        Self { words, length: self.length + count }
    }
}

fn bytes_of(words: [u64; 3]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for (chunk, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
        *chunk = word.to_be_bytes();
    }
    bytes
}

/// Ones at the first `length` places.
fn mask(length: u8) -> [u64; 3] {
    std::array::from_fn(|index| {
        let here = length.saturating_sub(WORD * index as u8).min(WORD);
        // Shifting by all 64 bits is no shift to the processor, hence the question.
        if here == 0 { 0 } else { u64::MAX << (WORD - here) }
    })
}

/// Bits that are taken from the front.
#[derive(Clone, Copy)]
pub(crate) struct Bits([u64; 3]);

impl Bits {
    /// The next 64.
    #[inline]
    pub(crate) const fn front(self) -> u64 {
        self.0[0]
    }

    /// What is left when `count` (1 to 63) are taken.
    #[inline]
    pub(crate) const fn after(self, count: u8) -> Self {
        let [first, second, third] = self.0;
        let back = WORD - count;
        Self([first << count | second >> back, second << count | third >> back, third << count])
    }
}

/// `0x0a/8`: hexadecimal digits as far as the length goes.
impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        let bytes = usize::from(self.length).div_ceil(8);
        self.first()[..bytes].iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, "/{}", self.length)
    }
}

impl From<Ipv4Addr> for Prefix {
    fn from(address: Ipv4Addr) -> Self {
        Self { words: [u64::from(address.to_bits()) << 32, 0, 0], length: 32 }
    }
}

impl From<Ipv6Addr> for Prefix {
    fn from(address: Ipv6Addr) -> Self {
        let bits = address.to_bits();
        Self { words: [(bits >> 64) as u64, bits as u64, 0], length: 128 }
    }
}

impl From<[u8; 20]> for Prefix {
    fn from(bytes: [u8; 20]) -> Self {
        let mut padded = [0; BYTES];
        padded[..bytes.len()].copy_from_slice(&bytes);
        Self::from_padded(&padded, 160)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn prefix(bytes: &[u8], length: u8) -> Prefix {
        Prefix::new(bytes, length).unwrap()
    }

    #[test]
    fn only_bits_in_front_of_the_length_may_be_set() {
        assert_eq!(prefix(&[10, 0, 0, 0], 8), prefix(&[10], 8));
        assert_eq!(prefix(&[], 24), prefix(&[0, 0, 0], 24));
        let behind = Err(PrefixError::BitsBehind { length: 8 });
        assert_eq!(Prefix::new(&[10, 0, 0, 1], 8), behind);
        assert_eq!(Prefix::new(&[10, 128], 8), behind);
        assert!(matches!(Prefix::new(&[], 193), Err(PrefixError::TooLong { length: 193, .. })));
        assert!(Prefix::of(&[0; 25]).is_err());
        assert_eq!(prefix(&[255; 24], 192).length(), 192);
        assert_eq!(Prefix::from_high_bits(u128::MAX, 200), prefix(&[255; 16], 128));
    }

    #[test]
    fn a_range_goes_from_zeros_to_ones() {
        let ten = prefix(&[10], 8);
        assert_eq!(ten.first()[..3], [10, 0, 0]);
        assert_eq!((ten.last()[0], ten.last()[1..] == [255; 23]), (10, true));
        let half = prefix(&[0, 0, 0, 0, 0, 0, 0, 0, 0x80], 65);
        assert_eq!(half.last()[7..10], [0, 255, 255]);
        assert_eq!(Prefix::ALL.last(), [255; 24]);
    }

    #[test]
    fn addresses_are_whole_prefixes() {
        assert_eq!(Prefix::from(Ipv4Addr::new(192, 0, 2, 1)), prefix(&[192, 0, 2, 1], 32));
        let address: Ipv6Addr = "2001:db8::1".parse().unwrap();
        assert_eq!(Prefix::from(address), prefix(&address.octets(), 128));
        assert_eq!(Prefix::from([7; 20]), prefix(&[7; 20], 160));
        assert_eq!(format!("{:?}", prefix(&[10, 0x80], 9)), "0x0a80/9");
    }

    proptest! {
        /// The model is the text of the bits.
        #[test]
        fn agrees_with_the_text_of_its_bits(
            one in prop::collection::vec(any::<bool>(), 0..=192),
            other in prop::collection::vec(any::<bool>(), 0..=192),
            shared in 0usize..=192,
            more in prop::collection::vec(any::<bool>(), 0..=60),
        ) {
            let other: Vec<bool> = one.iter().take(shared).chain(&other).copied().take(192).collect();
            let (a, b) = (of_bits(&one), of_bits(&other));
            prop_assert_eq!(a.cmp(&b), text(&one).cmp(&text(&other)).then(one.len().cmp(&other.len())));
            prop_assert_eq!(a.contains(&b), other.starts_with(&one));
            let cut = shared.min(one.len());
            prop_assert_eq!(a.truncate(shared as u8), of_bits(&one[..cut]));
            let cut_high = cut.min(128);
            let high = Prefix::from_high_bits(a.high_bits(), cut_high as u8);
            prop_assert_eq!(high, of_bits(&one[..cut_high]));
            prop_assert_eq!(high.high_bits(), of_bits(&one[..cut_high]).high_bits());
            if one.len() + more.len() <= 192 {
                let front = more.iter().rev().fold(0, |bits, bit| bits >> 1 | u64::from(*bit) << 63);
                let whole: Vec<_> = one.iter().chain(&more).copied().collect();
                prop_assert_eq!(a.extend(front, more.len() as u8), of_bits(&whole));
            }
            if (1..64).contains(&cut) {
                let rest = a.bits().after(cut as u8).0;
                prop_assert_eq!(rest, of_bits(&one[cut..]).words);
            }
        }
    }

    fn of_bits(bits: &[bool]) -> Prefix {
        let mut bytes = [0u8; BYTES];
        for (index, bit) in bits.iter().enumerate() {
            bytes[index / 8] |= u8::from(*bit) << (7 - index % 8);
        }
        prefix(&bytes, bits.len() as u8)
    }

    /// Padded with zeros, as the order wants it.
    fn text(bits: &[bool]) -> Vec<bool> {
        bits.iter().copied().chain(std::iter::repeat_n(false, 192 - bits.len())).collect()
    }
}
