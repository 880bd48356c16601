//! The Internet checksum.
//!
//! Reference: RFC 1071 (computation), RFC 1624 (incremental update), RFC 768 and RFC 8200 §8.1
//! (pseudo headers).
//!
//! A *sum* is the 16-bit one's complement sum of big-endian words; a *checksum* is the complement of
//! a sum. Sums of parts combine with [`combine`], as long as every part but the last has an even
//! length.

use core::net::{Ipv4Addr, Ipv6Addr};

use crate::IpProtocol;

/// The one's complement sum of `data`; an odd last byte counts as if a zero followed it.
pub fn sum(data: &[u8]) -> u16 {
    // RFC 1071 §2 (B): the sum may be built in wider words and folded at the end. The accumulator
    // takes 2^32 words of 32 bits before it could overflow, more than a packet can have.
    let mut words = data.chunks_exact(4);
    let mut total: u64 = 0;
    for word in &mut words {
        total += u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
    }
    let mut tail = [0; 4];
    tail[..words.remainder().len()].copy_from_slice(words.remainder());
    total += u64::from(u32::from_be_bytes(tail));
    fold(total)
}

/// The sum of several sums.
pub fn combine(sums: &[u16]) -> u16 {
    fold(sums.iter().copied().map(u64::from).sum())
}

/// The checksum of `data`, whose own checksum field must be zero.
pub fn checksum(data: &[u8]) -> u16 {
    !sum(data)
}

/// Whether `data`, checksum field included, carries the right checksum.
pub fn is_valid(data: &[u8]) -> bool {
    sum(data) == 0xffff
}

/// The checksum after one 16-bit word of the data changed from `old` to `new`.
///
/// This is equation 3 of RFC 1624: HC' = ~(~HC + ~m + m'). Equal to computing the checksum anew
/// unless all the data are zero.
#[must_use]
pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
    !combine(&[!checksum, !old, new])
}

/// Adds the carries back in until 16 bits are left (RFC 1071 §1 (2)).
fn fold(mut total: u64) -> u16 {
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    u16::try_from(total).expect("the loop ends at 16 bits")
}

/// The addresses that a transport checksum covers beside the message itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PseudoHeader {
    /// RFC 768.
    V4 {
        /// Source address.
        source: Ipv4Addr,
        /// Destination address.
        destination: Ipv4Addr,
    },
    /// RFC 8200 §8.1.
    V6 {
        /// Source address.
        source: Ipv6Addr,
        /// Final destination address.
        destination: Ipv6Addr,
    },
}

impl PseudoHeader {
    /// The sum of the pseudo header for a message of `protocol` that is `length` bytes long.
    pub fn sum(&self, protocol: IpProtocol, length: usize) -> u16 {
        // RFC 8200 has a 32-bit length. Its two halves are added as words; for IPv4 the upper is 0.
        let length = fold(length as u64);
        let addresses = match self {
            Self::V4 { source, destination } => [sum(&source.octets()), sum(&destination.octets())],
            Self::V6 { source, destination } => [sum(&source.octets()), sum(&destination.octets())],
        };
        combine(&[addresses[0], addresses[1], u16::from(protocol.0), length])
    }

    /// The checksum of `message`, whose own checksum field must be zero.
    pub fn checksum(&self, protocol: IpProtocol, message: &[u8]) -> u16 {
        !combine(&[self.sum(protocol, message.len()), sum(message)])
    }

    /// Whether `message`, checksum field included, carries the right checksum.
    pub fn is_valid(&self, protocol: IpProtocol, message: &[u8]) -> bool {
        self.checksum(protocol, message) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // RFC 1071 §3: the bytes 00 01 f2 03 f4 f5 f6 f7 sum to ddf2.
    #[test]
    fn example_of_rfc_1071() {
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
    }

    // RFC 1624 §4: HC = 0xDD2F, m = 0x5555, m' = 0x3285 gives 0x0000 by equation 3
    // (equation 2, of RFC 1141, gives 0xFFFF, which is wrong).
    #[test]
    fn example_of_rfc_1624() {
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn odd_length_is_padded_with_zero() {
        assert_eq!(sum(&[0x12, 0x34, 0x56]), 0x1234 + 0x5600);
        assert_eq!(sum(&[]), 0);
    }

    // RFC 8200 §8.1: the length has 32 bits, its upper half counts as well.
    #[test]
    fn lengths_beyond_16_bits_count() {
        let nowhere = Ipv6Addr::UNSPECIFIED;
        let addresses = PseudoHeader::V6 { source: nowhere, destination: nowhere };
        assert_eq!(addresses.sum(IpProtocol(0x11), 0x0001_0002), 0x11 + 1 + 2);
    }

    /// RFC 1071 §1 in its plainest form: add words one by one with end-around carry.
    fn plain_sum(data: &[u8]) -> u16 {
        data.chunks(2).fold(0u16, |total, word| {
            let word = u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]);
            let (total, carry) = total.overflowing_add(word);
            total + u16::from(carry)
        })
    }

    proptest! {
        #[test]
        fn wide_sum_equals_the_plain_sum(data: Vec<u8>) {
            prop_assert_eq!(sum(&data), plain_sum(&data));
        }

        #[test]
        fn sums_of_parts_combine(data: Vec<u8>, cut: prop::sample::Index) {
            let cut = cut.index(data.len() + 1) & !1;
            let (left, right) = data.split_at(cut);
            prop_assert_eq!(combine(&[sum(left), sum(right)]), sum(&data));
        }

        #[test]
        fn update_equals_recomputation(
            mut data in prop::collection::vec(any::<u8>(), 4..64),
            word: prop::sample::Index,
            new: u16,
        ) {
            data[0] = 0x45; // Not all zero, as in every IP header.
            let at = 2 + 2 * word.index((data.len() - 2) / 2);
            let old = u16::from_be_bytes([data[at], data[at + 1]]);
            let before = checksum(&data);
            data[at..at + 2].copy_from_slice(&new.to_be_bytes());
            prop_assert_eq!(update(before, old, new), checksum(&data));
        }

        #[test]
        fn a_single_changed_bit_is_found(
            mut data in prop::collection::vec(any::<u8>(), 2..64),
            bit: prop::sample::Index,
        ) {
            let length = data.len() & !1;
            data.truncate(length);
            data.extend(checksum(&data).to_be_bytes());
            prop_assert!(is_valid(&data));
            let bit = bit.index(data.len() * 8);
            data[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!is_valid(&data));
        }
    }
}
