//! The next hops that entries of the cache lead to, each once.
//!
//! Many destinations lie behind few neighbours. An entry holds a number, and the hop behind the number is
//! close to the processor because every other packet needs it.

use std::collections::HashMap;

use slab::Slab;
use weft_base::KeyedHash;

use crate::principal::NextHop;

/// The number of a next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HopId(u32);

impl HopId {
    pub(super) fn number(self) -> u32 {
        self.0
    }

    /// The one with this number.
    pub(super) fn of(number: u32) -> Self {
        Self(number)
    }
}

/// The next hops in use.
#[derive(Debug)]
pub(super) struct Hops {
    hops: Slab<(NextHop, u32)>,
    numbers: HashMap<NextHop, HopId, KeyedHash>,
}

impl Hops {
    pub(super) fn new(hash: KeyedHash) -> Self {
        Self { hops: Slab::new(), numbers: HashMap::with_hasher(hash) }
    }

    #[inline]
    pub(super) fn get(&self, id: HopId) -> &NextHop {
        &self.hops[id.0 as usize].0
    }

    /// The number of a hop, with one more use; and whether it is the first.
    pub(super) fn take(&mut self, hop: NextHop) -> (HopId, bool) {
        let id =
            *self.numbers.entry(hop).or_insert_with(|| HopId(self.hops.insert((hop, 0)) as u32));
        let uses = &mut self.hops[id.0 as usize].1;
        *uses += 1;
        (id, *uses == 1)
    }

    /// Ends a use of [`Hops::take`]; with the last one, for which this is true, the number becomes free.
    pub(super) fn release(&mut self, id: HopId) -> bool {
        let (hop, uses) = &mut self.hops[id.0 as usize];
        *uses -= 1;
        let is_last = *uses == 0;
        if is_last {
            self.numbers.remove(hop);
            self.hops.remove(id.0 as usize);
        }
        is_last
    }

    /// All of them, with their numbers.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, NextHop)> + '_ {
        self.hops.iter().map(|(id, (hop, _))| (id as u32, *hop))
    }

    /// The bytes in use.
    pub(super) fn bytes(&self) -> usize {
        // A place in the slab, and one in the map, of which an eighth is empty.
        self.hops.len() * (2 * size_of::<NextHop>() + 32)
    }

    pub(super) fn len(&self) -> usize {
        self.hops.len()
    }
}

#[cfg(test)]
mod tests {
    use weft_base::{LinkAddress, PortId, Random};

    use super::*;

    #[test]
    fn a_hop_has_one_number_until_its_last_use_ends() {
        let hop = |port| NextHop { port: PortId(port), link: LinkAddress::Mac([port as u8; 6]) };
        let mut hops = Hops::new(KeyedHash::new(&mut Random::from_seed(1)));
        let ((one, first), (two, _), (again, second)) =
            (hops.take(hop(1)), hops.take(hop(2)), hops.take(hop(1)));
        assert_eq!((one, hops.get(one), hops.get(two)), (again, &hop(1), &hop(2)));
        assert_eq!((first, second), (true, false));
        assert!(!hops.release(one));
        assert_eq!(hops.len(), 2);
        assert!(hops.release(again) && hops.release(two));
        assert_eq!((hops.len(), hops.bytes()), (0, 0));
    }
}
