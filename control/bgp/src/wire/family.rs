//! Families of routes: what they lead to, and what for.
//!
//! Reference: RFC 4760 §3 (AFI and SAFI).

use std::fmt;
use std::ops::BitAnd;

use crate::numbers::{afi, safi};

/// An address family with what its routes are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Family {
    /// Number of the address family ([`afi`]).
    pub afi: u16,
    /// What its routes are for ([`safi`]).
    pub safi: u8,
}

impl Family {
    /// IPv4, unicast: what an UPDATE carries without extensions.
    pub const IPV4_UNICAST: Self = Self { afi: afi::IPV4, safi: safi::UNICAST };
    /// IPv4, multicast.
    pub const IPV4_MULTICAST: Self = Self { afi: afi::IPV4, safi: safi::MULTICAST };
    /// IPv6, unicast.
    pub const IPV6_UNICAST: Self = Self { afi: afi::IPV6, safi: safi::UNICAST };
    /// IPv6, multicast.
    pub const IPV6_MULTICAST: Self = Self { afi: afi::IPV6, safi: safi::MULTICAST };

    /// Those whose routes are understood here. Others occur in what peers say only.
    pub const ALL: [Self; 4] =
        [Self::IPV4_UNICAST, Self::IPV4_MULTICAST, Self::IPV6_UNICAST, Self::IPV6_MULTICAST];

    /// Its place in [`Family::ALL`]; none if its routes are not understood.
    #[must_use]
    pub fn index(self) -> Option<usize> {
        Self::ALL.iter().position(|family| *family == self)
    }

    /// Whether its addresses are those of IPv6.
    #[must_use]
    pub const fn is_ipv6(self) -> bool {
        self.afi == afi::IPV6
    }

    /// Bits of an address: 32 or 128.
    #[must_use]
    pub const fn address_bits(self) -> u8 {
        if self.is_ipv6() { 128 } else { 32 }
    }

    /// AFI and SAFI, as most capabilities have them.
    pub(crate) fn bytes(self) -> [u8; 3] {
        let [high, low] = self.afi.to_be_bytes();
        [high, low, self.safi]
    }
}

/// `ipv4 unicast`, or numbers.
impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.afi {
            afi::IPV4 => f.write_str("ipv4 ")?,
            afi::IPV6 => f.write_str("ipv6 ")?,
            other => write!(f, "afi {other} ")?,
        }
        match self.safi {
            safi::UNICAST => f.write_str("unicast"),
            safi::MULTICAST => f.write_str("multicast"),
            other => write!(f, "safi {other}"),
        }
    }
}

/// A set of families that are understood here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Families(u8);

impl Families {
    /// None.
    pub const EMPTY: Self = Self(0);

    /// Adds a family; false, and nothing happens, if it is none of [`Family::ALL`].
    pub fn insert(&mut self, family: Family) -> bool {
        let index = family.index();
        self.0 |= index.map_or(0, |index| 1 << index);
        index.is_some()
    }

    /// Takes a family out.
    pub fn remove(&mut self, family: Family) {
        self.0 &= !family.index().map_or(0, |index| 1 << index);
    }

    /// Whether it is in the set.
    #[must_use]
    pub fn contains(self, family: Family) -> bool {
        family.index().is_some_and(|index| self.0 & 1 << index != 0)
    }

    /// Whether there is none in it.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many there are.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// All in it, in the order of [`Family::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Family> {
        Family::ALL.into_iter().filter(move |family| self.contains(*family))
    }
}

/// What is in both.
impl BitAnd for Families {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// Families that are not understood are left out.
impl FromIterator<Family> for Families {
    fn from_iter<I: IntoIterator<Item = Family>>(families: I) -> Self {
        let mut set = Self::EMPTY;
        for family in families {
            set.insert(family);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_is_understood() {
        let unknown = Family { afi: 25, safi: 70 };
        let mut set: Families = [Family::IPV6_UNICAST, unknown].into_iter().collect();
        assert!(set.contains(Family::IPV6_UNICAST) && !set.contains(unknown));
        assert!(!set.insert(unknown) && set.insert(Family::IPV4_UNICAST));
        assert_eq!(set.iter().collect::<Vec<_>>(), [Family::IPV4_UNICAST, Family::IPV6_UNICAST]);
        assert_eq!((set & Families::from_iter([Family::IPV6_UNICAST])).len(), 1);
        set.remove(Family::IPV4_UNICAST);
        set.remove(Family::IPV6_UNICAST);
        assert!(set.is_empty());
    }

    #[test]
    fn names_are_words_where_there_are_words() {
        assert_eq!(Family::IPV6_MULTICAST.to_string(), "ipv6 multicast");
        assert_eq!(Family { afi: 25, safi: 70 }.to_string(), "afi 25 safi 70");
    }
}
