//! What routes lead to, whatever the architecture.
//!
//! Reference: Handley et al., "Designing Extensible IP Router Software" (XORP), §5: the same stages carry
//! routes of any family. A family says by [`Destination`] what its routes lead to and how that is found.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Bound;

use ipnet::{Ipv4Net, Ipv6Net};

use crate::table::TOGETHER;
use crate::{Prefix, PrefixTable};

/// What a route leads to: a prefix of addresses, an identifier, a name.
pub trait Destination: Copy + Ord + Debug {
    /// What finds the numbers that destinations of this kind have.
    type Index: Index<Self>;

    /// In how many passes the routes to a great many destinations of this kind go, when all go.
    const PASSES: u32 = 1;

    /// In which of these passes the route to this one goes, from 0, if there are `len`. What is built of destinations that
    /// are neighbours is taken down in the order of the passes.
    fn pass(&self, len: usize) -> u32 {
        let _ = len;
        0
    }
}

/// Numbers of destinations, in the order of the destinations.
pub trait Index<D>: Default {
    /// The number of exactly this destination.
    fn get(&self, destination: &D) -> Option<u32>;

    /// Gives a destination a number, in place of the one that it has.
    fn insert(&mut self, destination: D, number: u32);

    /// Takes the number of a destination away, and returns it.
    fn remove(&mut self, destination: &D) -> Option<u32>;

    /// The first destination behind this one, or of all; with its number.
    fn after(&self, destination: Option<&D>) -> Option<(D, u32)>;

    /// These destinations, a few, will be looked up soon.
    fn approach(&self, destinations: &[D]) {
        let _ = destinations;
    }
}

/// An index for destinations that begin with one another: bit strings.
#[derive(Clone, Debug, Default)]
pub struct PrefixIndex(PrefixTable<u32>);

impl PrefixIndex {
    /// The table itself, for its look-ups.
    #[must_use]
    pub fn table(&self) -> &PrefixTable<u32> {
        &self.0
    }
}

/// A destination that is a bit string in other clothes.
pub trait BitString: Copy {
    /// Its bits.
    fn prefix(&self) -> Prefix;

    /// The destination with these bits; only those of [`BitString::prefix`] are asked for.
    fn from_prefix(prefix: &Prefix) -> Self;
}

impl<D: BitString> Index<D> for PrefixIndex {
    fn get(&self, destination: &D) -> Option<u32> {
        self.0.get(&destination.prefix()).copied()
    }

    fn insert(&mut self, destination: D, number: u32) {
        self.0.insert(destination.prefix(), number);
    }

    fn remove(&mut self, destination: &D) -> Option<u32> {
        self.0.remove(&destination.prefix())
    }

    fn after(&self, destination: Option<&D>) -> Option<(D, u32)> {
        let mut cursor = match destination {
            Some(destination) => self.0.cursor_behind(destination.prefix()),
            None => self.0.cursor(),
        };
        cursor.next(&self.0).map(|(prefix, number)| (D::from_prefix(&prefix), *number))
    }

    fn approach(&self, destinations: &[D]) {
        let mut prefixes = [Prefix::default(); TOGETHER];
        for (prefix, destination) in prefixes.iter_mut().zip(destinations) {
            *prefix = destination.prefix();
        }
        self.0.approach(&prefixes[..destinations.len().min(TOGETHER)]);
    }
}

impl Destination for Prefix {
    type Index = PrefixIndex;
}

impl BitString for Prefix {
    fn prefix(&self) -> Prefix {
        *self
    }

    fn from_prefix(prefix: &Prefix) -> Self {
        *prefix
    }
}

/// Linux keeps the routes of IPv4 in a tree whose root has as many children as there are addresses with a number of
/// leading bits (`net/ipv4/fib_trie.c`). As routes go it halves that number, again and again, in one operation each time
/// and under its lock; for two neighbours that are both there still it makes one anew. So of any two neighbours one goes
/// long before the other, as does one of the two that are neighbours then. It is the second one: the first has the shorter
/// prefixes, and when one of these goes that is the shortest below the root, Linux looks through all children for the next.
impl Destination for Ipv4Net {
    type Index = PrefixIndex;

    const PASSES: u32 = 1 << HALVINGS;

    fn pass(&self, len: usize) -> u32 {
        let bits = (len * 5 / 2).max(1).ilog2().clamp(HALVINGS, 32);
        let child = u32::from(self.addr()) >> (32 - bits);
        (!child % Self::PASSES).reverse_bits() >> (32 - HALVINGS)
    }
}

/// How many halvings of the root of Linux's tree the passes are for: later ones are short. (A root of 2^21 children has two
/// for every route to 1,000,000 networks, one of 2^20 for 780,000: it is the power of two below two and a half.)
const HALVINGS: u32 = 3;

impl BitString for Ipv4Net {
    fn prefix(&self) -> Prefix {
        Prefix::from(self.addr()).truncate(self.prefix_len())
    }

    fn from_prefix(prefix: &Prefix) -> Self {
        let [a, b, c, d, ..] = prefix.first();
        // A prefix that was made of a network has no more bits than that.
        Self::new_assert(Ipv4Addr::new(a, b, c, d), prefix.length().min(32))
    }
}

impl Destination for Ipv6Net {
    type Index = PrefixIndex;
}

impl BitString for Ipv6Net {
    fn prefix(&self) -> Prefix {
        Prefix::from(self.addr()).truncate(self.prefix_len())
    }

    fn from_prefix(prefix: &Prefix) -> Self {
        let mut octets = [0; 16];
        octets.copy_from_slice(&prefix.first()[..16]);
        Self::new_assert(Ipv6Addr::from(octets), prefix.length().min(128))
    }
}

/// An index for destinations that only have an order, such as names.
#[derive(Clone, Debug)]
pub struct OrderedIndex<D>(BTreeMap<D, u32>);

impl<D> Default for OrderedIndex<D> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<D: Copy + Ord> Index<D> for OrderedIndex<D> {
    fn get(&self, destination: &D) -> Option<u32> {
        self.0.get(destination).copied()
    }

    fn insert(&mut self, destination: D, number: u32) {
        self.0.insert(destination, number);
    }

    fn remove(&mut self, destination: &D) -> Option<u32> {
        self.0.remove(destination)
    }

    fn after(&self, destination: Option<&D>) -> Option<(D, u32)> {
        let from = destination.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.0.range((from, Bound::Unbounded)).next();
        next.map(|(destination, number)| (*destination, *number))
    }
}
