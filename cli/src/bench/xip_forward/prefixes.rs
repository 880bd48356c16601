//! The destinations: as many prefixes as a full table had, with lengths as they are in the Internet.
//!
//! Reference: Machado et al., "Linux XIA", §6.3.1, which takes 462,150 CIDR blocks from Route Views;
//! AltraMayor/net-eval for how a prefix becomes a destination.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use weft_base::Random;
use weft_xip::{Xid, XidType};

/// How many of 100,000 prefixes have which length: rounded from the tables of 2012 and 2013, when the paper
/// was measured.
const LENGTHS: [(u8, u32); 19] = [
    (8, 4),
    (9, 3),
    (10, 6),
    (11, 18),
    (12, 52),
    (13, 103),
    (14, 200),
    (15, 350),
    (16, 2_700),
    (17, 1_400),
    (18, 2_400),
    (19, 4_700),
    (20, 7_000),
    (21, 6_800),
    (22, 9_600),
    (23, 9_200),
    (24, 55_064),
    (25, 200),
    (26, 200),
];

/// A block of IPv4 addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Prefix {
    pub(super) address: Ipv4Addr,
    pub(super) length: u8,
}

impl Prefix {
    /// The address of the block that stands for it: the bit behind the prefix is one, all others are zero. No
    /// two blocks have the same.
    pub(super) fn destination(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.address.to_bits() | 1 << (31 - self.length))
    }

    /// The domain that stands for the block: its destination, and zeros.
    pub(super) fn domain(self) -> Xid {
        let mut id = [0; 20];
        id[..4].copy_from_slice(&self.destination().octets());
        Xid::new(XidType::AD, id)
    }
}

/// This many blocks, all different, in no order; which ones follows from `random`.
pub(super) fn prefixes(count: usize, random: &mut Random) -> Vec<Prefix> {
    let mut known = HashSet::with_capacity(count);
    let mut prefixes = Vec::with_capacity(count);
    let all: u32 = LENGTHS.iter().map(|(_, share)| share).sum();
    while prefixes.len() < count {
        let length = length(random.below(u64::from(all)) as u32);
        let bits = (random.number() as u32) >> (32 - length) << (32 - length);
        let prefix = Prefix { address: Ipv4Addr::from_bits(bits), length };
        if is_routable(prefix.address) && known.insert(prefix) {
            prefixes.push(prefix);
        }
    }
    prefixes
}

fn length(mut place: u32) -> u8 {
    for (length, share) in LENGTHS {
        if place < share {
            return length;
        }
        place -= share;
    }
    24
}

/// Whether a block may begin here: none of those that the kernel, or the network of the benchmark, has a use
/// of its own for.
fn is_routable(address: Ipv4Addr) -> bool {
    !matches!(address.octets()[0], 0 | 10 | 127 | 169 | 224..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_as_long_as_those_of_the_internet_and_have_destinations_of_their_own() {
        let prefixes = prefixes(20_000, &mut Random::from_seed(1));
        let share = |length| {
            let count = prefixes.iter().filter(|prefix| prefix.length == length).count();
            count as f64 / prefixes.len() as f64
        };
        assert!((share(24) - 0.55).abs() < 0.02 && (share(22) - 0.096).abs() < 0.01);
        let destinations: HashSet<_> = prefixes.iter().map(|prefix| prefix.destination()).collect();
        assert_eq!(destinations.len(), prefixes.len());
    }

    #[test]
    fn a_destination_is_the_prefix_and_the_bit_behind_it() {
        let prefix = Prefix { address: Ipv4Addr::new(11, 0, 0, 0), length: 8 };
        assert_eq!(prefix.destination(), Ipv4Addr::new(11, 128, 0, 0));
        assert_eq!(prefix.domain().id[..5], [11, 128, 0, 0, 0]);
    }
}
